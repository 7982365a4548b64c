//! `botyard unknown`: the calls of which nobody knows whether they took effect.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use serde::Serialize;

use super::exit::{Exit, WrongArgument};
use super::{ConfigFile, say, tell};
use crate::config::LoadOptions;
use crate::domain::Lane;
use crate::store::rows::unknown::{self, UnknownRow};
use crate::store::{self, Commit, Op};

/// See the calls whose outcome nobody knows, of a bot that is not running
///
/// Calls that may or may not have taken effect and must not be repeated, and those that were given up.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Unknown {
    #[command(flatten)]
    file: ConfigFile,
    /// The store's folder, instead of the one that the configuration names
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
    List,
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

/// One of them, as it is shown.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Entry {
    number: u64,
    plugin: String,
    event: u64,
    method: String,
    chat_id: Option<i64>,
    at: u64,
    maybe_sent: bool,
    reason: String,
    params: String,
    #[serde(skip)]
    key: Vec<u8>,
}

impl Unknown {
    pub(super) fn run(self) -> anyhow::Result<Exit> {
        let folder = match self.folder {
            Some(folder) => folder,
            None => {
                let config = self.file.load(LoadOptions { token_optional: true });
                config.context("name the store's folder with --path DIR, or mend the configuration")?.store.path
            }
        };
        let store = open(&folder)?;
        let entries = read(&store)?;
        match self.action {
            Action::List => say(&if self.json { json(&entries)? } else { table(&entries) }),
            Action::Show { number } => {
                let entry = find(&entries, number)?;
                say(&if self.json { json(entry)? } else { entry.whole() });
            }
            Action::Drop { numbers, all } => {
                let chosen: Vec<&Entry> = if all {
                    entries.iter().collect()
                } else {
                    numbers.iter().map(|number| find(&entries, *number)).collect::<Result<_, _>>()?
                };
                remove(&store, &chosen)?;
                let count = chosen.len();
                if self.json {
                    say(&json(&serde_json::json!({ "dropped": count }))?);
                } else {
                    tell(&format!("dropped {count}"));
                }
            }
        }
        Ok(Exit::Done)
    }
}

/// All of them, of all bots, the oldest first.
pub(super) fn read(store: &store::Store) -> Result<Vec<Entry>, store::Error> {
    let rows = store.scan_prefix(&unknown::all(), usize::MAX)?;
    let mut entries: Vec<Entry> = rows
        .iter()
        .filter_map(|(key, value)| Some(Entry::new(key, unknown::parse_key(key)?, UnknownRow::decode(value))))
        .collect();
    entries.sort_by_key(|entry| entry.number);
    Ok(entries)
}

/// Takes them out of the store.
pub(super) fn remove(store: &store::Store, entries: &[&Entry]) -> anyhow::Result<()> {
    let ops = entries.iter().map(|entry| Op::Delete { key: entry.key.clone() }).collect();
    drop(store.commit_blocking(Commit { ops, ..Commit::default() })?);
    Ok(())
}

impl Entry {
    fn new(key: &[u8], number: u64, row: Result<UnknownRow, store::rows::Unreadable>) -> Self {
        let row = row.unwrap_or_else(|error| UnknownRow {
            plugin: String::new(),
            event: 0,
            method: String::new(),
            lane: Lane::Other,
            at: 0,
            maybe_sent: true,
            reason: error.to_string(),
            params: String::new(),
        });
        let chat_id = match row.lane {
            Lane::Chat(chat) => Some(chat.0),
            _ => None,
        };
        Self {
            number,
            plugin: row.plugin,
            event: row.event,
            method: row.method,
            chat_id,
            at: row.at,
            maybe_sent: row.maybe_sent,
            reason: row.reason,
            params: row.params,
            key: key.to_vec(),
        }
    }

    fn end(&self) -> &'static str {
        if self.maybe_sent { "maybe sent" } else { "not sent" }
    }

    fn line(&self) -> String {
        let chat = self.chat_id.map(|chat| format!(" to chat {chat}")).unwrap_or_default();
        let (number, plugin, method, reason) = (self.number, &self.plugin, &self.method, &self.reason);
        format!("{number}  {}  {plugin}: {method}{chat}: {reason}\n", self.end())
    }

    fn whole(&self) -> String {
        let chat = self.chat_id.map_or_else(|| "none".to_owned(), |chat| chat.to_string());
        format!(
            "number  {}\nplugin  {}\nevent   {}\nmethod  {}\nchat    {chat}\nat      {} (Unix milliseconds)\nend     {}\n\
             reason  {}\nparams  {}\n",
            self.number,
            self.plugin,
            self.event,
            self.method,
            self.at,
            self.end(),
            self.reason,
            self.params
        )
    }
}

fn table(entries: &[Entry]) -> String {
    if entries.is_empty() { "none\n".to_owned() } else { entries.iter().map(Entry::line).collect() }
}

fn json(value: &(impl Serialize + ?Sized)) -> anyhow::Result<String> {
    Ok(format!("{}\n", serde_json::to_string_pretty(value)?))
}

fn find(entries: &[Entry], number: u64) -> Result<&Entry, WrongArgument> {
    let found = entries.iter().find(|entry| entry.number == number);
    found.ok_or_else(|| WrongArgument(format!("there is none with number {number}; see `botyard unknown list`")))
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
    use crate::domain::{BotId, ChatId};

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
        assert_eq!(table(&read(&store).unwrap()), "none\n");
        // Of two bots, the one that sorts last came first.
        let ops = [(BotId(2), row(1, true)), (BotId(1), row(-5, false))]
            .map(|(bot, row)| Op::Append { prefix: unknown::bot_prefix(bot), value: row.encode() });
        drop(store.commit_blocking(Commit { ops: ops.into(), ..Commit::default() }).unwrap());
        let entries = read(&store).unwrap();
        let [first, second] = entries.as_slice() else { panic!("{entries:?}") };
        assert_eq!(
            table(&entries),
            format!(
                "{}  maybe sent  shop: sendMessage to chat 1: connection reset\n\
                 {}  not sent  shop: sendMessage to chat -5: connection reset\n",
                first.number, second.number
            )
        );
        assert!(first.whole().contains("params  {\"chat_id\":1}"));
        assert!(!json(&entries).unwrap().contains("key"));
        assert!(find(&entries, 999_999).is_err());
        remove(&store, &[find(&entries, first.number).unwrap()]).unwrap();
        assert_eq!(read(&store).unwrap(), std::slice::from_ref(second));
    }
}
