//! `botyard unknown`: the calls of which nobody knows whether they took effect.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde::Serialize;

use super::exit::{Exit, WrongArgument};
use super::hand::{self, Hand};
use super::table::{clean, utc};
use super::{BotConfig, say, tell};
use crate::config::LoadOptions;
use crate::operate::{Outcome, Selection, UnknownCall, UnknownList};
use crate::store::rows::unknown::{self, UnknownRow};
use crate::store::{self, Commit, Op};

/// See the calls whose outcome nobody knows
///
/// Calls that may or may not have taken effect and must not be repeated, and those that were given up.
///
/// Works through the host that runs with this configuration, and on the store itself when none runs.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Unknown {
    #[command(flatten)]
    file: BotConfig,
    /// The simulator's bot, where no host runs that would know whose bot it is
    #[arg(long, global = true)]
    simulator: bool,
    /// Those of all bots in the store in this folder, on which no host may run
    #[arg(long = "path", value_name = "DIR", global = true)]
    folder: Option<PathBuf>,
    /// As JSON
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// One line for each, the oldest first
    List {
        /// Only the newest
        #[arg(long, value_name = "N", default_value_t = 10_000)]
        limit: usize,
    },
    /// Everything about one, its parameters too
    Show {
        /// Its number in the list
        number: u64,
    },
    /// Remove them, once they are looked after
    Drop {
        /// Their numbers in the list
        #[arg(required_unless_present = "all")]
        numbers: Vec<u64>,
        /// All of them
        #[arg(long, conflicts_with = "numbers")]
        all: bool,
    },
}

impl Unknown {
    pub(super) fn run(self) -> anyhow::Result<Exit> {
        if let Some(folder) = &self.folder {
            return act_on(&open(folder)?, self.action, self.json);
        }
        let config = self.file.load(LoadOptions { token_optional: true })?;
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
        Action::List { limit } => {
            let UnknownList { calls, more } = hand.unknown_calls(limit).await?;
            print(json, &calls, |calls| table(calls))?;
            if more {
                tell("there are older ones; --limit shows more");
            }
            Ok(Exit::Done)
        }
        Action::Show { number } => {
            print(json, &hand.unknown_call(number).await?, whole)?;
            Ok(Exit::Done)
        }
        Action::Drop { numbers, all } => {
            let which = if all { Selection::All { plugin: None } } else { Selection::Numbers(numbers) };
            dropped(&hand.drop_unknown(&which).await?, json)
        }
    }
}

/// On a store, for the calls of all bots in it.
fn act_on(store: &store::Store, action: Action, json: bool) -> anyhow::Result<Exit> {
    let calls = read(store)?;
    match action {
        Action::List { limit } => {
            let calls: Vec<_> = calls.into_iter().map(|(_, call)| UnknownCall { params: None, ..call }).collect();
            print(json, &calls[calls.len().saturating_sub(limit)..], table)?;
            Ok(Exit::Done)
        }
        Action::Show { number } => {
            let found = calls.into_iter().find(|(_, call)| call.number == number);
            let missing = || WrongArgument(format!("there is no call {number}; see `botyard unknown list`"));
            print(json, &found.ok_or_else(missing)?.1, whole)?;
            Ok(Exit::Done)
        }
        Action::Drop { numbers, all } => {
            let mut outcome = Outcome::default();
            let mut ops = Vec::new();
            for (key, call) in calls.into_iter().filter(|(_, call)| all || numbers.contains(&call.number)) {
                ops.push(Op::Delete { key });
                outcome.done.push(call.number);
            }
            for lot in ops.chunks(32) {
                drop(store.commit_blocking(Commit { ops: lot.to_vec(), ..Commit::default() })?);
            }
            dropped(&outcome, json)
        }
    }
}

fn dropped(outcome: &Outcome, json: bool) -> anyhow::Result<Exit> {
    print(json, outcome, |outcome| {
        let mut text = format!("dropped {}\n", outcome.done.len());
        for refusal in &outcome.refused {
            text.push_str(&format!("{}: {}\n", refusal.number, refusal.reason));
        }
        text
    })?;
    Ok(if outcome.refused.is_empty() { Exit::Done } else { Exit::Failed })
}

fn print<T: Serialize + ?Sized>(json: bool, answer: &T, text: impl FnOnce(&T) -> String) -> anyhow::Result<()> {
    say(&if json { format!("{}\n", serde_json::to_string_pretty(answer)?) } else { clean(&text(answer)) });
    Ok(())
}

/// All of them, of all bots, the oldest first, and their keys.
fn read(store: &store::Store) -> Result<Vec<(Vec<u8>, UnknownCall)>, store::Error> {
    let rows = store.scan_prefix(&unknown::all(), usize::MAX)?;
    let mut calls: Vec<_> = rows
        .iter()
        .filter_map(|(key, value)| {
            Some((key.to_vec(), UnknownCall::of(unknown::parse_key(key)?, UnknownRow::decode(value))))
        })
        .collect();
    calls.sort_by_key(|(_, call)| call.number);
    Ok(calls)
}

fn end(call: &UnknownCall) -> &'static str {
    if call.maybe_sent { "maybe sent" } else { "not sent" }
}

fn table(calls: &[UnknownCall]) -> String {
    if calls.is_empty() {
        return "none\n".to_owned();
    }
    let line = |call: &UnknownCall| {
        let chat = call.chat_id.map(|chat| format!(" to chat {chat}")).unwrap_or_default();
        let UnknownCall { number, plugin, method, reason, .. } = call;
        format!("{number}  {}  {plugin}: {method}{chat}: {reason}\n", end(call))
    };
    calls.iter().map(line).collect()
}

fn whole(call: &UnknownCall) -> String {
    let chat = call.chat_id.map_or_else(|| "none".to_owned(), |chat| chat.to_string());
    format!(
        "number  {}\nplugin  {}\nevent   {}\nmethod  {}\nchat    {chat}\nat      {} UTC\nend     {}\nreason  {}\nparams  {}\n",
        call.number,
        call.plugin,
        call.event,
        call.method,
        utc(call.at),
        end(call),
        call.reason,
        call.params.as_deref().unwrap_or_default(),
    )
}

/// Opening makes a store where there is none, which nobody wants here.
fn open(folder: &Path) -> anyhow::Result<store::Store> {
    if !folder.exists() {
        let message = format!("there is no store at {}; name its folder with --path DIR", folder.display());
        return Err(WrongArgument(message).into());
    }
    Ok(store::Store::open(folder)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{BotId, ChatId, Lane};

    #[test]
    fn what_is_there_is_shown_and_only_what_is_dropped_goes() {
        let folder = tempfile::tempdir().unwrap();
        let store = store::Store::open(folder.path()).unwrap();
        let row = |chat: i64, maybe_sent| UnknownRow {
            plugin: "shop".to_owned(),
            event: 7,
            method: "sendMessage".to_owned(),
            lane: Lane::Chat(ChatId(chat)),
            at: 1_700_000_000_000,
            maybe_sent,
            reason: "connection reset".to_owned(),
            params: r#"{"chat_id":1}"#.to_owned(),
        };
        assert_eq!(table(&[]), "none\n");
        // Of two bots, the one that sorts last came first.
        let ops = [(BotId(2), row(1, true)), (BotId(1), row(-5, false))]
            .map(|(bot, row)| Op::Append { prefix: unknown::bot_prefix(bot), value: row.encode() });
        drop(store.commit_blocking(Commit { ops: ops.into(), ..Commit::default() }).unwrap());
        let calls: Vec<_> = read(&store).unwrap().into_iter().map(|(_, call)| call).collect();
        let [first, second] = calls.as_slice() else { panic!("{calls:?}") };
        assert_eq!(
            table(&calls),
            format!(
                "{}  maybe sent  shop: sendMessage to chat 1: connection reset\n\
                 {}  not sent  shop: sendMessage to chat -5: connection reset\n",
                first.number, second.number
            )
        );
        assert!(whole(first).contains("params  {\"chat_id\":1}"));
        let drop_first = Action::Drop { numbers: vec![first.number], all: false };
        assert_eq!(act_on(&store, drop_first, false).unwrap(), Exit::Done);
        let left: Vec<_> = read(&store).unwrap().into_iter().map(|(_, call)| call).collect();
        assert_eq!(left, std::slice::from_ref(second));
        assert!(act_on(&store, Action::Show { number: first.number }, false).is_err());
    }
}
