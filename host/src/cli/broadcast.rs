//! `botyard broadcast`: one message to many chats, begun, watched and held up.

use std::io::{IsTerminal as _, Write as _, stderr};
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;
use serde_json::{Map, Value as Json};
use tokio::time;

use super::exit::{Exit, WrongArgument};
use super::hand::{self, Hand};
use super::table::clean;
use super::{BotConfig, say, tell};
use crate::config::{Config, LoadOptions};
use crate::domain::PluginName;
use crate::operate::{Broadcast as Status, Change, Draft, Missed};
use crate::store::rows::broadcast::State;

mod recipients;
mod show;

use recipients::List;

/// How often the bar moves, and how often a line is printed where there is no terminal.
const MOVES: Duration = Duration::from_millis(500);
const LINES: Duration = Duration::from_secs(5);
/// How many times the bar moves before the terminal is asked again how wide it is.
const LOOKS_PER_WIDTH: u32 = 4;
/// Of a terminal that does not tell.
const USUAL_WIDTH: usize = 80;

/// Send one message to many chats, and see how far it is
///
/// Goes out beside the bot's work: answers go first, and Telegram's limits are kept ([send] in bot.toml).
/// It is written down before it begins, survives restarts, and nobody gets it twice; whoever has blocked the
/// bot is skipped, and remembered. Works through the host that runs with this configuration; when none runs,
/// it is written into the store and begins with the next start.
///
///   botyard broadcast --all-chats --text "We are open again."
///   botyard broadcast --to people.txt --method copyMessage --params '{"from_chat_id": 7, "message_id": 9}'
///   botyard broadcast list
#[derive(Debug, Args)]
#[command(verbatim_doc_comment, subcommand_negates_reqs = true)]
pub(super) struct Broadcast {
    #[command(flatten)]
    file: BotConfig,
    /// The simulator's bot, where no host runs that would know whose bot it is
    #[arg(long, global = true)]
    simulator: bool,
    /// The answer as JSON; while it is watched, a line each time
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List them, the newest first, with how far they are
    List {
        /// How many at most
        #[arg(long, value_name = "N", default_value_t = 20)]
        limit: usize,
    },
    /// Show all about one
    Show {
        /// Its id, as `list` shows it
        id: u64,
        /// Also who did not get it, and why
        #[arg(long)]
        failed: bool,
        /// Watch it until it ends
        #[arg(long, conflicts_with = "failed")]
        watch: bool,
    },
    /// Let it wait, over restarts too; what is under way just then still goes out
    Pause {
        /// Its id
        id: u64,
    },
    /// Let it go on
    Resume {
        /// Its id
        id: u64,
        /// From now on it may cost so many Stars in all
        #[arg(long, value_name = "N")]
        max_stars: Option<u64>,
    },
    /// End it: whoever has not got it will not get it
    Cancel {
        /// Its id
        id: u64,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ParseMode {
    #[value(name = "HTML", alias = "html")]
    Html,
    #[value(name = "MarkdownV2", aliases = ["markdownv2", "markdown"])]
    MarkdownV2,
}

#[derive(Debug, Args)]
struct What {
    /// To those in this file: a chat's id or a public @name in each line, `#` for comments; `-` for standard input
    #[arg(long, value_name = "FILE", conflicts_with = "all_chats", required_unless_present = "all_chats")]
    to: Option<PathBuf>,
    /// To every chat that the bot knows: people, groups and channels
    #[arg(long)]
    all_chats: bool,
    /// The text
    #[arg(long, value_name = "TEXT", required_unless_present = "params")]
    text: Option<String>,
    /// How the text is marked up
    #[arg(long, value_name = "MODE")]
    parse_mode: Option<ParseMode>,
    /// Another method that sends something
    #[arg(long, value_name = "METHOD", default_value = "sendMessage")]
    method: String,
    /// Its parameters, without `chat_id`; with --text beside those
    #[arg(long, value_name = "JSON")]
    params: Option<String>,
    /// A name to know it by
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    name: String,
    /// The plugin whose buttons are on it, if any with callback data are: it is given their presses
    #[arg(long, value_name = "PLUGIN")]
    buttons_of: Option<String>,
    /// Send again what may or may not have arrived: rather twice than never
    #[arg(long)]
    at_least_once: bool,
    /// Pay Telegram to take up to 1000 messages in a second, 0.1 Stars for each; the bot must be allowed to
    #[arg(long, requires = "max_stars")]
    paid: bool,
    /// Paid: stop before it costs more Stars than this
    #[arg(long, value_name = "N", requires = "paid")]
    max_stars: Option<u64>,
    /// Only say how many would be reached, and how long it would take
    #[arg(long)]
    dry_run: bool,
    /// Return at once instead of watching
    #[arg(long)]
    detach: bool,
}

impl Broadcast {
    pub(super) fn run(self) -> anyhow::Result<Exit> {
        // The running host knows the bot; only a stopped store needs the token.
        let config = self.file.load(LoadOptions { token_optional: true })?;
        let list = match (&self.action, &self.what.to) {
            (None, Some(path)) => Some(recipients::read(path)?),
            _ => None,
        };
        let draft = if self.action.is_none() { Some(self.what.draft(&config)?) } else { None };
        hand::block_on(async {
            let hand = Hand::on(&config, self.simulator).await?;
            let done = match (self.action, draft) {
                (Some(action), _) => act(&hand, action, self.json).await,
                (None, Some(draft)) => begin(&hand, &config, &self.what, &draft, list, self.json).await,
                (None, None) => unreachable!("without an action there is a draft"),
            };
            hand.finish().await?;
            done
        })
    }
}

impl What {
    fn draft(&self, config: &Config) -> anyhow::Result<Draft> {
        if let Some(name) =
            self.buttons_of.as_deref().filter(|name| !config.plugins.contains_key(&PluginName::new(name)))
        {
            let known = config.plugins.keys().map(|name| name.to_string()).collect::<Vec<_>>().join(", ");
            return Err(
                WrongArgument(format!("there is no plugin `{name}` in the configuration; there are: {known}")).into()
            );
        }
        let params = self.params.as_deref().unwrap_or("{}");
        let params = serde_json::from_str::<Map<String, Json>>(params)
            .map_err(|error| WrongArgument(format!("--params is not a JSON object: {error}")))?;
        let mut params = params;
        let mut add = |name: &str, value: Option<Json>| match value {
            Some(_) if params.contains_key(name) => {
                Err(WrongArgument(format!("`{name}` is in --params and given beside it")))
            }
            Some(value) => {
                params.insert(name.to_owned(), value);
                Ok(())
            }
            None => Ok(()),
        };
        add("text", self.text.clone().map(Json::from))?;
        add(
            "parse_mode",
            self.parse_mode.map(|mode| match mode {
                ParseMode::Html => "HTML".into(),
                ParseMode::MarkdownV2 => "MarkdownV2".into(),
            }),
        )?;
        let draft = Draft {
            name: self.name.clone(),
            method: self.method.clone(),
            params: Json::Object(params),
            known_chats: self.all_chats,
            at_least_once: self.at_least_once,
            max_stars: self.max_stars,
            // Where presses are given to plugins without a seal, buttons can be nobody's.
            buttons_of: self.buttons_of.clone().or(config.dispatch.unsealed_buttons.then(String::new)),
        };
        draft.check().map_err(WrongArgument)?;
        Ok(draft)
    }
}

fn print<T: Serialize>(json: bool, answer: &T, text: impl FnOnce(&T) -> String) -> anyhow::Result<()> {
    say(&if json { format!("{}\n", serde_json::to_string_pretty(answer)?) } else { clean(&text(answer)) });
    Ok(())
}

async fn begin(
    hand: &Hand,
    config: &Config,
    what: &What,
    draft: &Draft,
    list: Option<List>,
    json: bool,
) -> anyhow::Result<Exit> {
    let repeated = list.as_ref().map_or(0, |list| list.repeated);
    if repeated > 0 {
        tell(&format!("{repeated} recipients stand in the list more than once and get it once"));
    }
    if what.dry_run {
        let reach = hand.reach(list.as_ref().map(|list| list.recipients.as_slice())).await?;
        let rate = if what.paid { config.send.paid_per_second } else { config.send.bulk_per_second };
        print(json, &reach, |reach| {
            let left = reach.chats - reach.gone;
            let time = if rate > 0.0 {
                format!(", in {} at the least", show::duration(Duration::from_secs_f64((left as f64 / rate).min(1e9))))
            } else {
                String::new()
            };
            let cost = if what.paid { format!(", for at most {} Stars", left.div_ceil(10)) } else { String::new() };
            let (left, gone) = (show::number(left), show::number(reach.gone));
            format!("would be sent to {left} chats{time}{cost}; {gone} are known to be gone and skipped\n")
        })?;
        return Ok(Exit::Done);
    }
    let recipients = list.map(|list| list.recipients).unwrap_or_default();
    let status = hand.begin(draft, &recipients).await?;
    if hand.is_stopped() {
        print(json, &status, |status| {
            format!("broadcast {}: no host runs; it begins with the next start\n", status.id)
        })?;
        return Ok(Exit::Done);
    }
    if what.detach {
        let how = "`botyard broadcast show ID --watch` watches it";
        print(json, &status, |status| format!("broadcast {} has begun; {how}\n", status.id))?;
        return Ok(Exit::Done);
    }
    watch(hand, status, json).await
}

async fn act(hand: &Hand, action: Action, json: bool) -> anyhow::Result<Exit> {
    let (id, change, max_stars) = match action {
        Action::List { limit } => {
            print(json, &hand.broadcasts(limit).await?, |list| show::list(list))?;
            return Ok(Exit::Done);
        }
        Action::Show { id, failed: false, watch: true } => return watch(hand, hand.broadcast(id).await?, json).await,
        Action::Show { id, failed: false, .. } => {
            print(json, &hand.broadcast(id).await?, show::report)?;
            return Ok(Exit::Done);
        }
        Action::Show { id, failed: true, .. } => return failed(hand, id, json).await,
        Action::Pause { id } => (id, Change::Pause, None),
        Action::Resume { id, max_stars } => (id, Change::Resume, max_stars),
        Action::Cancel { id } => (id, Change::Cancel, None),
    };
    let status = hand.change_broadcast(id, change, max_stars).await?;
    let without = if hand.is_stopped() { " (no host runs)" } else { "" };
    print(json, &status, |status| {
        let (done, total) = (show::number(status.total - status.waiting), show::number(status.total));
        format!("broadcast {id} is {}, {done} of {total} done{without}\n", show::state(status.state))
    })?;
    Ok(Exit::Done)
}

async fn failed(hand: &Hand, id: u64, json: bool) -> anyhow::Result<Exit> {
    let status = hand.broadcast(id).await?;
    if !json {
        say(&clean(&show::report(&status)));
    }
    let mut all: Vec<Missed> = Vec::new();
    let mut from = Some(0);
    while let Some(page) = from {
        let page = hand.missed(id, page).await?;
        from = page.next;
        if json { all.extend(page.missed) } else { say(&clean(&show::missed(&page.missed))) }
    }
    if json {
        print(true, &serde_json::json!({ "broadcast": status, "missed": all }), |_| String::new())?;
    }
    Ok(Exit::Done)
}

/// Until it ends, or waits for somebody to see to it.
async fn watch(hand: &Hand, mut status: Status, json: bool) -> anyhow::Result<Exit> {
    let is_terminal = stderr().is_terminal() && !json;
    if !json {
        let ends = "Ctrl-C ends only the watching";
        tell(&format!("broadcast {} goes on by itself; {ends}", status.id));
    }
    let (mut looks, mut columns) = (0_u32, USUAL_WIDTH);
    let mut told: Option<(time::Instant, u64)> = None;
    loop {
        let is_over = matches!(status.state, State::Done | State::Cancelled | State::Stopped) || hand.is_stopped();
        let done = status.total - status.waiting;
        let is_due = told.is_none_or(|(at, before)| at.elapsed() >= LINES && before != done) || is_over;
        if is_terminal {
            if looks.is_multiple_of(LOOKS_PER_WIDTH) {
                columns = width();
            }
            looks += 1;
            draw(&show::bar(&status, columns.saturating_sub(1)), is_over);
        } else if is_due && json {
            say(&format!("{}\n", serde_json::to_string(&status)?));
        } else if is_due {
            tell(&show::bar(&status, usize::MAX / 2));
        }
        if is_due {
            told = Some((time::Instant::now(), done));
        }
        if is_over {
            break;
        }
        time::sleep(MOVES).await;
        status = hand.broadcast(status.id).await.context("the broadcast goes on, but can't be watched")?;
    }
    if !json {
        say(&clean(&show::report(&status)));
        if status.gone + status.refused + status.unknown > 0 {
            tell(&format!("`botyard broadcast show {} --failed` lists who did not get it", status.id));
        }
    }
    Ok(if status.state == State::Done || hand.is_stopped() { Exit::Done } else { Exit::Failed })
}

/// Puts a line in the place of the one before.
fn draw(line: &str, is_last: bool) {
    let end = if is_last { "\n" } else { "" };
    let mut out = stderr().lock();
    // A terminal that is gone ends the command by itself.
    out.write_all(format!("\r{line}\u{1b}[K{end}").as_bytes()).and_then(|()| out.flush()).unwrap_or_default();
}

/// How wide the terminal is: `stty` knows, wherever there is a terminal.
fn width() -> usize {
    let asked = || {
        let terminal = stderr().as_fd().try_clone_to_owned().ok()?;
        let size = Command::new("stty").arg("size").stdin(terminal).stderr(Stdio::null()).output().ok()?;
        String::from_utf8(size.stdout).ok()?.split_whitespace().nth(1)?.parse().ok()
    };
    asked().filter(|columns| *columns > 0).unwrap_or(USUAL_WIDTH)
}
