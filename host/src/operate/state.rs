//! What plugins keep, looked at and changed by hand; somebody's data, all of it, given out and erased.
//!
//! A change is one commit that checks what it rests on, so a handler that is at it just then is run again. An erasure
//! takes as many commits as it needs, writes first that it has begun, and looks through the store until nothing is left:
//! one that was interrupted is gone on with.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::holdings::{self, Entry, Kind};
use super::{Error, Operator};
use crate::domain::{ChatId, Conversation, EventLane, Lane, PluginName, ThreadId, UserId};
use crate::store::rows::erasure::{self, Subject};
use crate::store::rows::expiry::{self, ExpiryRow};
use crate::store::rows::fsm::{self, StateRow};
use crate::store::rows::kv::{self, Scope, ValueRow};
use crate::store::rows::{
    album, broadcast, chat, dead, file, flood, inbox, job, language, moved, outbox, parked, prefix_end, timer, unknown,
    version,
};
use crate::store::{Commit, CommitError, Op, Read, Receipt};

/// Rows that are in memory at once.
const PAGE: usize = 64;
/// Rows that are erased in one commit.
const AT_A_TIME: usize = 256;
/// More commits than this one erasure does not make: by then events must be coming faster than they can be erased.
const MOST_ROUNDS: usize = 10_000;
/// A row that changes more often than this while it is put is let be.
const MOST_TRIES: usize = 100;

/// Which rows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wanted {
    /// Only this plugin's.
    #[serde(default)]
    pub plugin: Option<String>,
    /// Only this chat's.
    #[serde(default)]
    pub chat: Option<i64>,
    /// Only this user's.
    #[serde(default)]
    pub user: Option<i64>,
    /// Everything, and not only states and values.
    #[serde(default)]
    pub all: bool,
}

/// A page of rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EntryList {
    /// As many as were asked for, at most.
    pub entries: Vec<Entry>,
    /// Where there may be more.
    pub next: Option<String>,
}

/// A change of a state or a value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Put {
    /// The new row.
    pub entry: Entry,
    /// It goes instead.
    #[serde(default)]
    pub delete: bool,
}

/// Whose data are to go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Erase {
    /// A person's.
    #[serde(default)]
    pub user: Option<i64>,
    /// A chat's.
    #[serde(default)]
    pub chat: Option<i64>,
    /// Only count.
    #[serde(default)]
    pub dry_run: bool,
    /// Also what plugins keep for others, or for themselves, and has the id in it.
    #[serde(default)]
    pub mentions: bool,
}

/// What was erased, or would be.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Erased {
    /// Rows by their kind.
    pub rows: BTreeMap<Kind, u64>,
    /// Rows that plugins keep for others, or for themselves, and have the id in them. They stay unless `mentions` says
    /// otherwise.
    pub mentioned: u64,
    /// False while events keep coming that bring new rows.
    pub done: bool,
}

/// Why an order can't be followed.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// It is not possible like this.
    #[error("{0}")]
    Wrong(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] Error),
}

impl From<crate::store::Error> for Refused {
    fn from(error: crate::store::Error) -> Self {
        Self::Store(error.into())
    }
}

impl Erase {
    fn subject(&self) -> Result<Subject, Refused> {
        match (self.user, self.chat) {
            (Some(0), _) | (_, Some(0)) => Err(Refused::Wrong("nobody has the id 0".to_owned())),
            (Some(user), None) => Ok(Subject::User(UserId(user))),
            (None, Some(chat)) => Ok(Subject::Chat(ChatId(chat))),
            _ => Err(Refused::Wrong("say either whose user id or whose chat id it is".to_owned())),
        }
    }
}

impl Entry {
    /// Whether it can be put: whatever is wrong with the row itself is said here, before anything is written.
    ///
    /// # Errors
    /// What is wrong.
    pub fn fits(&self) -> Result<(), String> {
        let wrong = |text: &str| Err(text.to_owned());
        self.content()?;
        if self.plugin.is_empty() || self.plugin.contains('\0') {
            return wrong("say which plugin's it is");
        }
        match self.kind {
            Kind::Value if self.key.is_none() => wrong("a value has a key"),
            Kind::Value if self.chat.is_some() && self.user.is_some() => {
                wrong("a value is of a chat or of a user, not of both")
            }
            Kind::Value => Ok(()),
            Kind::State | Kind::Aside | Kind::Before if self.name.is_none() || self.version.is_none() => {
                wrong("a state has a name and a version")
            }
            Kind::State | Kind::Aside | Kind::Before => Ok(()),
            _ => wrong("only states and values can be put"),
        }
    }
}

/// A row with what it was.
type Row = (Vec<u8>, Bytes);

impl Operator {
    /// Rows behind `after`, a page of them.
    ///
    /// # Errors
    /// When `after` is no place, or the store can't be read.
    pub fn entries(&self, wanted: &Wanted, after: Option<&str>, limit: usize) -> Result<EntryList, Refused> {
        let mut list = EntryList { entries: Vec::new(), next: None };
        let user = wanted.user.map(|user| vec![Subject::User(UserId(user))]);
        let chat = wanted.chat.map(|chat| self.every_id(Subject::Chat(ChatId(chat)))).transpose()?;
        let told = user.as_ref().or(chat.as_ref());
        let after = after.map(unhex).transpose()?;
        self.walk(after.as_deref(), wanted.all, |key, value| {
            let holding = holdings::read(self.bot, key, value).filter(|holding| {
                wanted.plugin.as_ref().is_none_or(|plugin| holding.entry.plugin == *plugin)
                    && chat.as_ref().is_none_or(|ids| holding.is_of(ids))
                    && user.as_ref().is_none_or(|ids| holding.is_of(ids))
            });
            let in_broadcast = || holdings::in_broadcast(self.bot, key, value, told?);
            let Some(mut entry) = holding.map(|holding| holding.entry).or_else(in_broadcast) else {
                return Ok(true);
            };
            if entry.kind == Kind::Job {
                entry = self.with_payload(entry)?;
            }
            list.entries.push(entry);
            if list.entries.len() < limit {
                return Ok(true);
            }
            list.next = Some(key.iter().map(|byte| format!("{byte:02x}")).collect());
            Ok(false)
        })?;
        Ok(list)
    }

    fn with_payload(&self, entry: Entry) -> Result<Entry, crate::store::Error> {
        let id = entry.key.as_ref().and_then(|id| id.parse().ok()).unwrap_or_default();
        let payload = self.store.get(&job::payload_key(self.bot, &PluginName::new(&entry.plugin), id))?;
        let payload = payload.unwrap_or_default();
        let payload = serde_json::from_slice(&payload).unwrap_or_else(|_| String::from_utf8_lossy(&payload).into());
        let mut json = entry.json.unwrap_or_default();
        json["payload"] = payload;
        Ok(Entry { json: Some(json), ..entry })
    }

    /// Every row that may be somebody's, until told to stop.
    fn walk(
        &self,
        after: Option<&[u8]>,
        all: bool,
        mut see: impl FnMut(&[u8], &Bytes) -> Result<bool, crate::store::Error>,
    ) -> Result<(), crate::store::Error> {
        let bot = self.bot;
        let mut prefixes = fsm::bot_prefixes(bot).to_vec();
        prefixes.push(kv::bot_prefix(bot));
        if all {
            prefixes.extend([timer::bot_prefix(bot), job::bot_prefix(bot), inbox::bot_prefix(bot)]);
            prefixes.extend([outbox::bot_prefix(bot), dead::bot_prefix(bot), unknown::bot_prefix(bot)]);
            prefixes.extend([chat::bot_prefix(bot), moved::bot_prefix(bot), broadcast::bot_prefix(bot)]);
            prefixes.extend([album::bot_prefix(bot), expiry::bot_prefix(bot), flood::bot_prefix(bot)]);
            prefixes.extend([version::bot_prefix(bot), language::bot_prefix(bot), parked::bot_prefix(bot)]);
        }
        // In the order of their keys, so that a key says how far a walk is.
        prefixes.sort_unstable();
        for prefix in prefixes {
            let to = prefix_end(&prefix);
            let mut from = match after {
                Some(after) if after >= &to[..] => continue,
                Some(after) if after >= &prefix[..] => [after, &[0]].concat(),
                _ => prefix,
            };
            loop {
                let rows = self.store.range(&from, &to, PAGE)?;
                let Some((last, _)) = rows.last() else { break };
                from = [&last[..], &[0]].concat();
                for (key, value) in &rows {
                    if !see(key, value)? {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    /// Puts a state or a value, or removes it. Answers when it is on disk; false if there was nothing to remove.
    ///
    /// # Errors
    /// When it is neither, its content can't be read, or the store fails.
    pub async fn put_entry(&self, put: &Put) -> Result<bool, Refused> {
        let key = self.key_of(&put.entry)?;
        if !put.delete {
            put.entry.fits().map_err(Refused::Wrong)?;
        }
        tracing::info!(plugin = put.entry.plugin, kind = ?put.entry.kind, delete = put.delete, "an operator changes what a plugin keeps");
        // The operator's word holds, whatever a handler makes of the row meanwhile: that one is run again.
        for _ in 0..MOST_TRIES {
            let seen = self.store.get(&key)?;
            if put.delete && seen.is_none() {
                return Ok(false);
            }
            let mut ops = self.old_end(&key, seen.as_ref());
            if put.delete {
                ops.push(Op::Delete { key: key.clone() });
            } else {
                ops.push(self.put_of(key.clone(), &put.entry)?);
                ops.extend(self.new_end(&key, &put.entry));
            }
            let reads = vec![Read::Value { key: key.clone(), seen }];
            if let Some(receipt) = self.must(Commit { reads, ops, on_durable: None }).await? {
                receipt.durable().await?;
                return Ok(true);
            }
        }
        Err(Refused::Wrong("it changes too often; try again when less is going on".to_owned()))
    }

    fn key_of(&self, entry: &Entry) -> Result<Vec<u8>, Refused> {
        let wrong = |text: &str| Err(Refused::Wrong(text.to_owned()));
        if entry.plugin.is_empty() || entry.plugin.contains('\0') {
            return wrong("say which plugin's it is");
        }
        let (bot, plugin) = (self.bot, PluginName::new(&entry.plugin));
        if entry.kind == Kind::Value {
            let Some(name) = entry.key.as_deref() else { return wrong("a value has a key") };
            let scope = match (entry.chat, entry.user) {
                (None, None) => Scope::Plugin,
                (Some(chat), None) => Scope::Chat(ChatId(chat)),
                (None, Some(user)) => Scope::User(UserId(user)),
                _ => return wrong("a value is of a chat or of a user, not of both"),
            };
            return Ok(kv::key(bot, &plugin, scope, name));
        }
        let conversation = Conversation {
            chat: entry.chat.map(ChatId),
            user: entry.user.map(UserId),
            thread: entry.thread.map(ThreadId),
        };
        match entry.kind {
            Kind::State => Ok(fsm::key(bot, &plugin, &conversation)),
            Kind::Aside => Ok(fsm::aside_key(bot, &plugin, &conversation)),
            Kind::Before => Ok(fsm::before_key(bot, &plugin, &conversation)),
            _ => wrong("only states and values can be put"),
        }
    }

    /// Nothing is kept any longer of when a row was to end.
    fn old_end(&self, key: &[u8], seen: Option<&Bytes>) -> Vec<Op> {
        let expires = seen.and_then(|row| holdings::read(self.bot, key, row)).map_or(0, |old| old.entry.expires);
        let end = (expires != 0).then(|| Op::Delete { key: expiry::key(self.bot, expires, key) });
        end.into_iter().collect()
    }

    /// When the new row ends, where it does. Whether the plugin wants to hear of it, the version that serves then knows.
    fn new_end(&self, key: &[u8], entry: &Entry) -> Option<Op> {
        if entry.expires == 0 || !matches!(entry.kind, Kind::State | Kind::Value) {
            return None;
        }
        let end = match fsm::parse_key(key) {
            None => ExpiryRow::Value,
            Some((_, plugin, conversation)) => {
                let of_user = || conversation.user.map_or(Lane::Other, Lane::User);
                let lane = EventLane::whole(conversation.chat.map_or_else(of_user, Lane::Chat));
                ExpiryRow::State { plugin, conversation, lane, tell: false }
            }
        };
        Some(Op::Put { key: expiry::key(self.bot, entry.expires, key), value: end.encode() })
    }

    fn put_of(&self, key: Vec<u8>, entry: &Entry) -> Result<Op, Refused> {
        let bytes = entry.content().map_err(Refused::Wrong)?;
        if entry.kind == Kind::Value {
            return Ok(Op::Put { key, value: ValueRow { expires: entry.expires, bytes }.encode() });
        }
        let (Some(name), Some(version)) = (entry.name.clone(), entry.version) else {
            return Err(Refused::Wrong("a state has a name and a version".to_owned()));
        };
        Ok(Op::Put { key, value: StateRow { name, version, expires: entry.expires, bytes }.encode() })
    }

    /// Erases all that the store holds of somebody, whichever of a chat's ids was given. Which updates were accepted is known by their numbers alone, and stays.
    /// Answers when it is on disk.
    ///
    /// # Errors
    /// When it is not said whose, or the store fails. What was erased before that is erased.
    pub async fn erase(&self, order: &Erase) -> Result<Erased, Refused> {
        let ids = self.every_id(order.subject()?)?;
        let mut report = Erased::default();
        if order.dry_run {
            let (found, mentioned) = self.find(&ids, order.mentions, usize::MAX)?;
            for (kind, n, ..) in &found {
                *report.rows.entry(*kind).or_default() += n;
            }
            return Ok(Erased { mentioned, done: true, ..report });
        }
        // Each id for itself: what links them is erased as well, and perhaps first.
        let begun: Vec<_> = ids.iter().map(|&subject| erasure::key(self.bot, subject, order.mentions)).collect();
        let ops = begun.iter().map(|key| Op::Put { key: key.clone(), value: Vec::new() }).collect();
        self.must(Commit { ops, ..Commit::default() }).await?;
        tracing::info!("an operator has somebody's data erased");
        self.forget_calls(&ids, order.mentions);
        for _ in 0..MOST_ROUNDS {
            let (found, mentioned) = self.find(&ids, order.mentions, AT_A_TIME)?;
            if found.is_empty() {
                self.forget_calls(&ids, order.mentions);
                let ops = begun.into_iter().map(|key| Op::Delete { key }).collect();
                let receipt = self.must(Commit { ops, ..Commit::default() }).await?;
                if let Some(receipt) = receipt {
                    receipt.durable().await?;
                }
                (report.mentioned, report.done) = (mentioned, true);
                break;
            }
            let mut commit = Commit::default();
            let mut let_go = Vec::new();
            for (_, _, (key, seen), ops) in &found {
                commit.reads.push(Read::Value { key: key.clone(), seen: Some(seen.clone()) });
                commit.ops.extend(ops.iter().cloned());
                let_go.extend(ops.iter().filter_map(|op| match op {
                    Op::Delete { key } => file::needed_by(key),
                    Op::Put { .. } | Op::Append { .. } => None,
                }));
            }
            if let Some(sender) = self.sender.clone() {
                commit.on_durable = Some(Box::new(move |_| sender.let_go(let_go)));
            }
            if self.must(commit).await?.is_some() {
                for (kind, n, ..) in &found {
                    *report.rows.entry(*kind).or_default() += n;
                }
            }
        }
        self.tell_jobs();
        let rows: u64 = report.rows.values().sum();
        tracing::info!(rows, done = report.done, "somebody's data are erased");
        Ok(report)
    }

    /// Calls that are under way at this moment must not be written down when they end without an answer.
    fn forget_calls(&self, ids: &[Subject], with_mentions: bool) {
        let Some(sender) = &self.sender else { return };
        let key = unknown::key(self.bot, 0);
        sender.forget(|row| {
            holdings::read(self.bot, &key, &row.encode())
                .is_some_and(|holding| holding.is_of(ids) || (with_mentions && holding.mentions(ids)))
        });
    }

    /// Goes on with what an earlier process has begun to erase.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn finish_erasures(&self) -> Result<(), Error> {
        for (key, _) in self.store.scan_prefix(&erasure::bot_prefix(self.bot), usize::MAX)? {
            let Some((subject, mentions)) = erasure::parse_key(&key) else { continue };
            let (user, chat) = match subject {
                Subject::User(user) => (Some(user.0), None),
                Subject::Chat(chat) => (None, Some(chat.0)),
            };
            match self.erase(&Erase { user, chat, dry_run: false, mentions }).await {
                Ok(_) => {}
                Err(Refused::Store(error)) => return Err(error),
                Err(Refused::Wrong(reason)) => tracing::error!(reason, "an erasure can't be gone on with"),
            }
        }
        Ok(())
    }

    /// The first rows that are somebody's, each with what takes it away; and how many only mention them.
    #[expect(clippy::type_complexity, reason = "used here alone")]
    fn find(
        &self,
        ids: &[Subject],
        with_mentions: bool,
        most: usize,
    ) -> Result<(Vec<(Kind, u64, Row, Vec<Op>)>, u64), crate::store::Error> {
        let (mut found, mut mentioned) = (Vec::new(), 0);
        self.walk(None, true, |key, value| {
            if let Some((kind, row, n)) = holdings::without(self.bot, key, value, ids) {
                let ops = vec![Op::Put { key: key.to_vec(), value: row }];
                found.push((kind, n, (key.to_vec(), value.clone()), ops));
                return Ok(found.len() < most);
            }
            let Some(holding) = holdings::read(self.bot, key, value) else { return Ok(true) };
            let mut is_mentioned = holding.mentions(ids);
            if holding.entry.kind == Kind::Job
                && let Some(payload) = self.store.get(&holding.along[0])?
            {
                is_mentioned |= holdings::mentions_any(&payload, ids);
            }
            if holding.is_of(ids) || (with_mentions && is_mentioned) {
                let along = holding.along.into_iter().chain(std::iter::once(key.to_vec()));
                let ops = along.map(|key| Op::Delete { key }).collect();
                found.push((holding.entry.kind, 1, (key.to_vec(), value.clone()), ops));
            } else if is_mentioned {
                mentioned += 1;
            }
            Ok(found.len() < most)
        })?;
        Ok((found, mentioned))
    }

    /// `None`: what it rests on has changed.
    async fn must(&self, commit: Commit) -> Result<Option<Receipt>, crate::store::Error> {
        match self.store.commit(commit).await {
            Ok(receipt) => Ok(Some(receipt)),
            Err(CommitError::Conflict { .. }) => Ok(None),
            Err(CommitError::Store(error)) => Err(error),
        }
    }
}

fn unhex(text: &str) -> Result<Vec<u8>, Refused> {
    let bytes =
        (0..text.len()).step_by(2).map(|at| text.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok()));
    bytes.collect::<Option<_>>().ok_or_else(|| Refused::Wrong(format!("{text:?} is no place to go on from")))
}
