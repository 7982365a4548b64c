//! `botyard dead`: events that were set aside, looked at and dealt with.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use clap::{Args, Subcommand};
use serde::Serialize;

use super::exit::{Exit, WrongArgument};
use super::hand::{self, Hand};
use super::table::{clean, table, utc};
use super::{BotConfig, say, tell};
use crate::config::LoadOptions;
use crate::operate::{Letter, List, Outcome, Selection};

/// Look at events that no handler could handle, and try them again or drop them
///
/// An event that failed too often is set aside as a dead letter, and its chat goes on without it. When
/// the plugin is mended, `retry` puts it back.
///
/// Works through the host that runs with this configuration, and on the store itself when none runs.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Dead {
    #[command(flatten)]
    file: BotConfig,
    /// The simulator's bot, where no host runs that would know whose bot it is
    #[arg(long, global = true)]
    simulator: bool,
    /// The answer as JSON
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List them, the newest first
    List {
        /// How many at most
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: usize,
        /// Only those of this plugin
        #[arg(long, value_name = "NAME")]
        plugin: Option<String>,
    },
    /// Show all about one: the reason, the panic's text, the backtrace, the update
    Show {
        /// Its number, as `list` shows it
        number: u64,
        /// Show also what people wrote; without it, texts stand as their length
        #[arg(long)]
        payload: bool,
    },
    /// Put them back, to be handled as if they had just come
    ///
    /// Each goes behind what waits in its chat now: what was handled since can't be undone. Its attempts
    /// begin anew, and direct calls that its handler made before are made again.
    #[command(verbatim_doc_comment)]
    Retry(Which),
    /// Remove them for good
    Drop {
        #[command(flatten)]
        which: Which,
        /// Don't ask
        #[arg(long, short)]
        yes: bool,
    },
}

#[derive(Debug, Args)]
struct Which {
    /// Their numbers, as `list` shows them
    #[arg(value_name = "NUMBER", required_unless_present = "all", conflicts_with = "all")]
    numbers: Vec<u64>,
    /// All that are there now
    #[arg(long)]
    all: bool,
    /// With --all: only those of this plugin
    #[arg(long, value_name = "NAME", requires = "all")]
    plugin: Option<String>,
}

impl Which {
    fn selection(self) -> Selection {
        if self.all { Selection::All { plugin: self.plugin } } else { Selection::Numbers(self.numbers) }
    }
}

impl Dead {
    pub(super) fn run(self) -> anyhow::Result<Exit> {
        // The running host knows the bot; only a stopped store needs the token.
        let config = self.file.load(LoadOptions { token_optional: true })?;
        if let Action::Drop { which, yes: false } = &self.action
            && !is_confirmed(which)?
        {
            tell("nothing was dropped");
            return Ok(Exit::Failed);
        }
        hand::block_on(async {
            let hand = Hand::on(&config, self.simulator).await?;
            let done = act(&hand, self.action, self.json).await;
            hand.finish().await?;
            done
        })
    }
}

async fn act(hand: &Hand, action: Action, json: bool) -> anyhow::Result<Exit> {
    match action {
        Action::List { limit, plugin } => {
            let list = hand.list(limit, plugin.as_deref()).await?;
            print(json, &list, listed)?;
            Ok(Exit::Done)
        }
        Action::Show { number, payload } => {
            let letter = hand.show(number, payload).await?;
            print(json, &letter, |letter| shown(letter, payload))?;
            Ok(Exit::Done)
        }
        Action::Retry(which) => {
            let outcome = hand.retry(&which.selection()).await?;
            let when = if hand.is_stopped() { ", to be handled after the next start" } else { "" };
            print(json, &outcome, |outcome| done(outcome, &format!("put back, behind what waits now{when}")))?;
            Ok(exit(&outcome))
        }
        Action::Drop { which, .. } => {
            let outcome = hand.drop_letters(&which.selection()).await?;
            print(json, &outcome, |outcome| done(outcome, "dropped"))?;
            Ok(exit(&outcome))
        }
    }
}

fn print<T: Serialize>(json: bool, answer: &T, text: impl FnOnce(&T) -> String) -> anyhow::Result<()> {
    say(&if json { format!("{}\n", serde_json::to_string_pretty(answer)?) } else { clean(&text(answer)) });
    Ok(())
}

fn exit(outcome: &Outcome) -> Exit {
    if outcome.refused.is_empty() { Exit::Done } else { Exit::Failed }
}

fn or_dash(text: &str) -> String {
    if text.is_empty() { "-".to_owned() } else { text.to_owned() }
}

fn listed(list: &List) -> String {
    if list.letters.is_empty() {
        return "no dead letters\n".to_owned();
    }
    let rows: Vec<[String; 7]> = list
        .letters
        .iter()
        .map(|letter| {
            [
                letter.number.to_string(),
                utc(letter.at),
                or_dash(&letter.plugin),
                or_dash(&letter.version),
                letter.attempts.to_string(),
                letter.lane.clone(),
                letter.reason.clone(),
            ]
        })
        .collect();
    let more = if list.more { "… and older ones; --limit shows more\n" } else { "" };
    let head = ["NUMBER", "WHEN (UTC)", "PLUGIN", "VERSION", "TRIES", "LANE", "REASON"];
    table(head, &rows) + more
}

fn shown(letter: &Letter, payload: bool) -> String {
    let mut text = format!(
        "dead letter {}\n  set aside  {} UTC\n  plugin     {}\n  version    {}\n  attempts   {}\n  lane       {}\n",
        letter.number,
        utc(letter.at),
        or_dash(&letter.plugin),
        or_dash(&letter.version),
        letter.attempts,
        letter.lane,
    );
    let mut part = |name: &str, content: &str| {
        if !content.trim().is_empty() {
            text.push_str(&format!("\n{name}:\n  {}\n", content.trim_end().replace('\n', "\n  ")));
        }
    };
    part("reason", &letter.reason);
    part("backtrace", &letter.backtrace);
    let name = if payload { "event" } else { "event (texts are hidden; --payload shows them)" };
    part(name, &format!("{:#}", letter.event));
    text
}

fn done(outcome: &Outcome, what: &str) -> String {
    let letters = |n: usize| if n == 1 { "1 dead letter".to_owned() } else { format!("{n} dead letters") };
    let mut text = format!("{} {what}\n", letters(outcome.done.len()));
    for refusal in &outcome.refused {
        text.push_str(&format!("{}: {}\n", refusal.number, refusal.reason));
    }
    text
}

/// Asks on the terminal.
fn is_confirmed(which: &Which) -> anyhow::Result<bool> {
    let what = match (&which.plugin, which.numbers.len()) {
        (Some(plugin), _) => format!("all dead letters of `{plugin}`"),
        (None, 0) => "all dead letters".to_owned(),
        (None, 1) => "this dead letter".to_owned(),
        (None, n) => format!("these {n} dead letters"),
    };
    if !io::stdin().is_terminal() {
        let message =
            format!("this removes {what} for good, and there is no terminal to ask on; say --yes if you mean it");
        return Err(WrongArgument(message).into());
    }
    let mut out = io::stderr().lock();
    out.write_all(format!("remove {what} for good? [y/N] ").as_bytes()).and_then(|()| out.flush())?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
