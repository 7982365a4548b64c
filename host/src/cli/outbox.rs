//! `botyard outbox`: the calls that wait to be sent.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use clap::{Args, Subcommand};
use serde::Serialize;

use super::exit::{Exit, WrongArgument};
use super::hand::{self, Hand};
use super::table::{clean, table, utc};
use super::{BotConfig, say, tell};
use crate::clock::unix_millis;
use crate::config::LoadOptions;
use crate::operate::{Cancel, Outbox as Listed, Outcome, Waiting, WaitingCall};

/// See the messages and other calls that wait to be sent, cancel some
///
/// Works through the host that runs with this configuration, and on the store itself when none runs.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Outbox {
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
    /// One line for each, chat by chat, in the order in which they go
    List {
        /// Only those of this chat: its id, or the @name by which it is sent to
        #[arg(long, value_name = "CHAT", allow_hyphen_values = true)]
        chat: Option<String>,
        /// Only those of this plugin
        #[arg(long, value_name = "NAME")]
        plugin: Option<String>,
        /// At most so many
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: usize,
    },
    /// Everything about one, but not what it says
    Show {
        /// Its number, as `list` shows it
        number: u64,
        /// What it says, too
        #[arg(long)]
        content: bool,
    },
    /// Take them out: they are never sent
    ///
    /// The others keep their order. What goes on with the text of a cancelled message is cancelled with it;
    /// what is being sent just then is not cancelled.
    #[command(verbatim_doc_comment)]
    Cancel {
        /// Their numbers, as `list` shows them
        #[arg(value_name = "NUMBER", required_unless_present = "chat", conflicts_with = "chat")]
        numbers: Vec<u64>,
        /// All that wait for this chat now: its id, or the @name by which it is sent to
        #[arg(long, value_name = "CHAT", allow_hyphen_values = true)]
        chat: Option<String>,
        /// Don't ask
        #[arg(long, short)]
        yes: bool,
    },
}

impl Outbox {
    pub(super) fn run(self) -> anyhow::Result<Exit> {
        // The running host knows the bot; only a stopped store needs the token.
        let config = self.file.load(LoadOptions { token_optional: true })?;
        if let Action::Cancel { numbers, chat, yes: false } = &self.action
            && !is_confirmed(numbers.len(), chat.as_deref())?
        {
            tell("nothing was cancelled");
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
        Action::List { chat, plugin, limit } => {
            let list = hand.outbox(&Waiting { chat, plugin }, limit).await?;
            print(json, &list, |list| listed(list, unix_millis()))?;
            Ok(Exit::Done)
        }
        Action::Show { number, content } => {
            let call = hand.waiting_call(number, content).await?;
            print(json, &call, |call| shown(call, unix_millis()))?;
            Ok(Exit::Done)
        }
        Action::Cancel { numbers, chat, .. } => {
            let which = chat.map_or(Cancel::Numbers(numbers), Cancel::Chat);
            let outcome = hand.cancel_calls(&which).await?;
            print(json, &outcome, done)?;
            Ok(if outcome.refused.is_empty() { Exit::Done } else { Exit::Failed })
        }
    }
}

fn print<T: Serialize>(json: bool, answer: &T, text: impl FnOnce(&T) -> String) -> anyhow::Result<()> {
    say(&if json { format!("{}\n", serde_json::to_string_pretty(answer)?) } else { clean(&text(answer)) });
    Ok(())
}

fn listed(list: &Listed, now: u64) -> String {
    if list.calls.is_empty() {
        return "nothing waits to be sent\n".to_owned();
    }
    let row = |call: &WaitingCall| {
        [
            call.number.to_string(),
            call.lane.clone(),
            call.plugin.clone(),
            call.method.clone(),
            call.priority.clone(),
            age(now.saturating_sub(call.queued)),
            call.attempts.to_string(),
            next(call, now),
        ]
    };
    let rows: Vec<[String; 8]> = list.calls.iter().map(row).collect();
    let more = match list.total - (list.calls.len() as u64).min(list.total) {
        0 => String::new(),
        more => format!("… and {more} more; --limit shows more\n"),
    };
    table(["NUMBER", "LANE", "PLUGIN", "METHOD", "PRIORITY", "AGE", "TRIES", "NEXT"], &rows) + &more
}

fn shown(call: &WaitingCall, now: u64) -> String {
    let follows = if call.follows { "\n  follows    it goes on with the text of the one before it" } else { "" };
    let content = match &call.params {
        Some(params) => format!("\ncontent:\n  {params}\n"),
        None => "\nwhat it says is hidden; --content shows it\n".to_owned(),
    };
    format!(
        "call {}\n  lane       {}\n  before it  {}\n  plugin     {}\n  event      {}\n  method     {}\n  priority   {}\n  \
         queued     {} UTC, {} ago\n  tries      {}\n  next       {}\n  files      {}{follows}\n{content}",
        call.number,
        call.lane,
        call.before,
        call.plugin,
        call.event,
        call.method,
        call.priority,
        utc(call.queued),
        age(now.saturating_sub(call.queued)),
        call.attempts,
        next(call, now),
        call.files,
    )
}

fn next(call: &WaitingCall, now: u64) -> String {
    match (call.in_flight, call.next_try.saturating_sub(now)) {
        (true, _) => "being sent".to_owned(),
        (false, 0) if call.before > 0 => "in its turn".to_owned(),
        (false, 0) => "now".to_owned(),
        (false, wait) => format!("in {}", age(wait)),
    }
}

/// Milliseconds, as a person would say them.
fn age(millis: u64) -> String {
    match millis / 1_000 {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3_600 => format!("{} min", seconds / 60),
        seconds @ 3_600..86_400 => format!("{} h {} min", seconds / 3_600, seconds / 60 % 60),
        seconds => format!("{} d {} h", seconds / 86_400, seconds / 3_600 % 24),
    }
}

fn done(outcome: &Outcome) -> String {
    let calls = |n: usize| if n == 1 { "1 call".to_owned() } else { format!("{n} calls") };
    let mut text = format!("{} cancelled\n", calls(outcome.done.len()));
    for refusal in &outcome.refused {
        text.push_str(&format!("{}: {}\n", refusal.number, refusal.reason));
    }
    text
}

/// Asks on the terminal.
fn is_confirmed(count: usize, chat: Option<&str>) -> anyhow::Result<bool> {
    let what = match (chat, count) {
        (Some(chat), _) => format!("all that waits for chat {chat}"),
        (None, 1) => "this call".to_owned(),
        (None, n) => format!("these {n} calls"),
    };
    if !io::stdin().is_terminal() {
        let message =
            format!("this cancels {what} for good, and there is no terminal to ask on; say --yes if you mean it");
        return Err(WrongArgument(message).into());
    }
    let mut out = io::stderr().lock();
    out.write_all(format!("cancel {what} for good? [y/N] ").as_bytes()).and_then(|()| out.flush())?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call() -> WaitingCall {
        WaitingCall {
            number: 7,
            chat: Some("42".to_owned()),
            lane: "chat 42".to_owned(),
            plugin: "shop".to_owned(),
            event: 3,
            method: "sendMessage".to_owned(),
            priority: "normal".to_owned(),
            queued: 1_000_000,
            in_flight: false,
            attempts: 2,
            next_try: 1_130_000,
            before: 0,
            files: 0,
            follows: false,
            params: None,
        }
    }

    #[test]
    fn a_list_says_what_waits_for_how_long_and_what_is_next() {
        assert_eq!(listed(&Listed { calls: vec![], total: 0 }, 0), "nothing waits to be sent\n");
        let second = WaitingCall { number: 8, before: 1, attempts: 0, next_try: 0, ..call() };
        let third = WaitingCall { number: 9, in_flight: true, attempts: 0, lane: "chat @news".to_owned(), ..call() };
        assert_eq!(
            listed(&Listed { calls: vec![call(), second, third], total: 9 }, 1_070_000),
            "NUMBER  LANE        PLUGIN  METHOD       PRIORITY  AGE    TRIES  NEXT\n\
             7       chat 42     shop    sendMessage  normal    1 min  2      in 1 min\n\
             8       chat 42     shop    sendMessage  normal    1 min  0      in its turn\n\
             9       chat @news  shop    sendMessage  normal    1 min  0      being sent\n\
             … and 6 more; --limit shows more\n"
        );
    }

    #[test]
    fn what_it_says_is_shown_only_when_asked_for() {
        let hidden = shown(&call(), 1_070_000);
        assert!(hidden.contains("--content shows it") && hidden.contains("1 min ago"), "{hidden}");
        let open = shown(&WaitingCall { params: Some("{\"text\":\"hi\"}".to_owned()), ..call() }, 1_070_000);
        assert!(open.contains("{\"text\":\"hi\"}"), "{open}");
    }

    #[test]
    fn ages_are_short() {
        for (millis, text) in
            [(0, "0 s"), (59_999, "59 s"), (60_000, "1 min"), (3_700_000, "1 h 1 min"), (90_000_000, "1 d 1 h")]
        {
            assert_eq!(age(millis), text);
        }
    }
}
