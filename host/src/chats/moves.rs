//! A group that becomes a supergroup takes along everything that belongs to it.
//!
//! Conversation states (those kept aside too), values, the chosen language, what says when they end, and timers move to the new id in one
//! commit, together with the row that says so for good; events and calls that wait stay where they are, are handled and sent before the new id's own,
//! and speak of the new id by then. Where both ids have a state or a value, the supergroup's stays: it is the younger.
//!
//! - First a row says that the group is about to move. It is what every run in a group has read ([`moved::current`]), so none
//!   that began before can still write under the old id: it is made again. What is read of the supergroup's own is
//!   checked by the commit as any run's reads are.
//! - A chat with more than [`MOST_ROWS`] takes several commits. Until the last one nothing of either chat is handled.
//! - A move that a crash interrupted is finished at the next start, before anything is handled ([`Chats::finish_moves`]);
//!   each of its commits takes up whatever is still there, so it does not matter where it was interrupted.

use std::time::Duration;

use bytes::Bytes;

use super::{Chats, Error};
use crate::clock::unix_millis;
use crate::domain::{BotId, ChatId, Conversation, EventLane, Lane, PluginName};
use crate::store::rows::chat::{self, ChatRow};
use crate::store::rows::expiry::{self, ExpiryRow};
use crate::store::rows::fsm::{self, StateRow};
use crate::store::rows::kv::{self, Scope, ValueRow};
use crate::store::rows::moved::{self, MovedRow};
use crate::store::rows::timer::{self, TimerRow};
use crate::store::rows::{inbox, language, prefix_end};
use crate::store::{self, Commit, CommitError, Op, Read, Store};
use crate::whose;

/// Rows that move in one commit. The largest batches cost the database most, but a group has at most 200 members.
const MOST_ROWS: usize = 2_000;
const MOST_BYTES: usize = 4 << 20;
/// About what an ordinary move takes.
const PAUSE: Duration = Duration::from_millis(5);
/// Rows that are in memory at once while looking for some.
const PAGE: usize = 256;

impl Chats {
    /// Moves what belongs to a group to the supergroup that it has become. Answers when it is done, or was done before;
    /// goes on when nobody waits any more. What can't be a move is refused with a word in the log.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn moved(&self, group: ChatId, to: ChatId) -> Result<(), Error> {
        if !group.is_basic_group() || !to.is_supergroup() {
            tracing::warn!(
                chat_id = group.0,
                to = to.0,
                "what is said of a group's new id can't be so, and is ignored"
            );
            return Ok(());
        }
        let chats = self.clone();
        let moving = tokio::spawn(whose::same(async move { chats.move_once(group, to).await }));
        moving.await.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
    }

    /// Finishes what an earlier process has begun. To be called before anything is handled.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn finish_moves(&self) -> Result<(), Error> {
        let begun = self.memory().moving.clone();
        for (group, to) in begun {
            tracing::info!(chat_id = group.0, to = to.0, "going on with the move of a group");
            self.move_once(group, to).await?;
        }
        Ok(())
    }

    /// True while a group moves whose lane this is, or that it moves to: nothing of it may be handled.
    #[must_use]
    pub fn is_moving(&self, lane: Lane) -> bool {
        let Lane::Chat(chat) = lane else { return false };
        chat.0 < 0 && self.memory().moving.iter().any(|&(group, to)| group == chat || to == chat)
    }

    /// Who was in the way of a move need not try again at once.
    pub async fn pause_while_moving(&self) {
        let is_moving = !self.memory().moving.is_empty();
        if is_moving {
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// The group that this place's chat was, if events of it still wait: they go first.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn elder(&self, place: Lane) -> Result<Option<Lane>, store::Error> {
        let Lane::Chat(chat) = place else { return Ok(None) };
        let Some(group) = self.memory().draining.get(&chat).copied() else { return Ok(None) };
        if has_events(&self.shared.store, self.shared.bot, group)? {
            return Ok(Some(Lane::Chat(group)));
        }
        self.memory().draining.remove(&chat);
        Ok(None)
    }

    async fn move_once(&self, group: ChatId, to: ChatId) -> Result<(), Error> {
        let _alone = self.shared.mover.lock().await;
        let (store, bot) = (&self.shared.store, self.shared.bot);
        let key = moved::key(bot, group);
        let to = match store.get(&key)?.map(|row| MovedRow::decode(&row)).transpose()? {
            Some(row) if row.to != to => {
                tracing::error!(
                    chat_id = group.0,
                    to = row.to.0,
                    other = to.0,
                    "a group that has moved can't move elsewhere"
                );
                return Ok(());
            }
            Some(row) if row.done => return Ok(()),
            Some(row) => row.to,
            None => to,
        };
        let row = MovedRow { to, at: unix_millis(), done: false };
        self.memory().begin_move(group, to);
        must_commit(store, vec![Op::Put { key: key.clone(), value: row.encode() }]).await?;
        let mut moved = 0;
        loop {
            let mut bundle = Bundle::new(store, bot, group, to);
            let whole = bundle.gather()?;
            if whole {
                bundle.ops.push(Op::Put { key: key.clone(), value: MovedRow { done: true, ..row.clone() }.encode() });
                bundle.chats()?;
                bundle.language()?;
            }
            let Bundle { reads, ops, losers, rows, .. } = bundle;
            match store.commit(Commit { reads, ops, on_durable: None }).await {
                Ok(_) => moved += rows,
                // A run, or a timer that came due, was faster.
                Err(CommitError::Conflict { .. }) => continue,
                Err(CommitError::Store(error)) => return Err(error.into()),
            }
            for (plugin, what) in losers {
                tracing::warn!(%plugin, chat_id = group.0, to = to.0, what, "the supergroup has one of its own, so the group's is dropped");
            }
            if whole {
                break;
            }
        }
        let drains = has_events(store, bot, group)?;
        self.memory().end_move(group, to, drains);
        self.shared.changed.send_modify(|generation| *generation += 1);
        metrics::counter!("botyard_chats_moved_total").increment(1);
        tracing::info!(
            chat_id = group.0,
            to = to.0,
            rows = moved,
            "a group has become a supergroup and took along what belongs to it"
        );
        Ok(())
    }
}

/// What one commit of a move holds.
struct Bundle<'a> {
    store: &'a Store,
    bot: BotId,
    group: ChatId,
    to: ChatId,
    now: u64,
    reads: Vec<Read>,
    ops: Vec<Op>,
    bytes: usize,
    rows: usize,
    /// What the group leaves behind, since the supergroup has its own: whose it is, and what.
    losers: Vec<(PluginName, String)>,
}

impl<'a> Bundle<'a> {
    fn new(store: &'a Store, bot: BotId, group: ChatId, to: ChatId) -> Self {
        let (reads, ops, losers) = (Vec::new(), Vec::new(), Vec::new());
        Self { store, bot, group, to, now: unix_millis(), reads, ops, bytes: 0, rows: 0, losers }
    }

    /// As much as fits of what still belongs to the group; true if that is all.
    fn gather(&mut self) -> Result<bool, Error> {
        for below in fsm::bot_prefixes(self.bot) {
            for plugin in plugins(self.store, &below)? {
                let pairs = fsm::chat_prefixes(&below, &plugin, self.group)
                    .into_iter()
                    .zip(fsm::chat_prefixes(&below, &plugin, self.to));
                for (old, new) in pairs {
                    let end = |value: &[u8]| StateRow::decode(value).map_or(0, |row| row.expires);
                    if !self.take(&plugin, &old, &new, &end)? {
                        return Ok(false);
                    }
                }
            }
        }
        for plugin in plugins(self.store, &kv::bot_prefix(self.bot))? {
            let end = |value: &[u8]| ValueRow::decode(value).map_or(0, |row| row.expires);
            for scope in [Scope::Chat, |chat| Scope::Buttons(Some(chat))] {
                let of = |chat| kv::scope_prefix(self.bot, &plugin, scope(chat));
                if !self.take(&plugin, &of(self.group), &of(self.to), &end)? {
                    return Ok(false);
                }
            }
        }
        self.timers()
    }

    /// The rows below a prefix. `end` tells when one ends, in Unix milliseconds; 0 for never.
    fn take(&mut self, plugin: &PluginName, old: &[u8], new: &[u8], end: &dyn Fn(&[u8]) -> u64) -> Result<bool, Error> {
        let now = self.now;
        let is_over = |value: &[u8]| (1..=now).contains(&end(value));
        let below = prefix_end(old);
        let mut from = old.to_vec();
        loop {
            let rows = self.store.range(&from, &below, PAGE)?;
            let Some((last, _)) = rows.last() else { return Ok(true) };
            from = [last, &[0][..]].concat();
            for (key, value) in rows {
                if self.is_full() {
                    return Ok(false);
                }
                let target = [new, &key[old.len()..]].concat();
                let there = self.store.get(&target)?;
                let is_free = there.as_ref().is_none_or(|there| is_over(there));
                self.take_end(end(&value), &key, is_free.then_some(&target))?;
                if is_free {
                    self.put(target.clone(), value.to_vec());
                } else if !is_over(&value) {
                    self.losers.push((plugin.clone(), key[old.len()..].escape_ascii().to_string()));
                }
                self.rows += 1;
                self.read(target, there);
                self.read(key.to_vec(), Some(value));
                self.ops.push(Op::Delete { key: key.to_vec() });
            }
        }
    }

    /// What ends the row with this key, so that it ends the same way where the row goes to.
    fn take_end(&mut self, due: u64, of: &[u8], target: Option<&Vec<u8>>) -> Result<(), Error> {
        if due == 0 {
            return Ok(());
        }
        let key = expiry::key(self.bot, due, of);
        let Some(entry) = self.store.get(&key)? else { return Ok(()) };
        if let Some(target) = target {
            let moved = match ExpiryRow::decode(&entry) {
                Ok(ExpiryRow::State { plugin, conversation, lane, tell }) => {
                    let (conversation, lane) = self.home(conversation, lane);
                    ExpiryRow::State { plugin, conversation, lane, tell }.encode()
                }
                Ok(ExpiryRow::Value) | Err(_) => entry.to_vec(),
            };
            self.put(expiry::key(self.bot, due, target), moved);
        }
        self.ops.push(Op::Delete { key: key.clone() });
        self.read(key, Some(entry));
        Ok(())
    }

    /// Timers lie by their time, so all have to be looked at.
    fn timers(&mut self) -> Result<bool, Error> {
        let mut from = timer::bot_prefix(self.bot);
        let end = prefix_end(&from);
        loop {
            let rows = self.store.range(&from, &end, PAGE)?;
            let Some((last, _)) = rows.last() else { return Ok(true) };
            from = [last, &[0][..]].concat();
            for (key, value) in rows {
                // One that can't be read is told of when it is due.
                let Some(((_, due, id), row)) = timer::parse_key(&key).zip(TimerRow::decode(&value).ok()) else {
                    continue;
                };
                let (conversation, lane) = self.home(row.conversation, row.lane);
                if (conversation, lane) == (row.conversation, row.lane) {
                    continue;
                }
                if self.is_full() {
                    return Ok(false);
                }
                self.rows += 1;
                self.read(key.to_vec(), Some(value));
                let [_, _, old_name] = row.keys(self.bot, due, id);
                let [moved, _, by_name] = TimerRow { conversation, lane, ..row }.rows(self.bot, due, id);
                if by_name.0 != old_name {
                    self.ops.push(Op::Delete { key: old_name });
                    self.put(by_name.0, by_name.1);
                }
                self.put(moved.0, moved.1);
            }
        }
    }

    /// A conversation and a lane as they are after the move.
    fn home(&self, conversation: Conversation, lane: EventLane) -> (Conversation, EventLane) {
        let now = |chat| if chat == self.group { self.to } else { chat };
        let lane = match lane.place {
            Lane::Chat(chat) => EventLane { place: Lane::Chat(now(chat)), ..lane },
            _ => lane,
        };
        (Conversation { chat: conversation.chat.map(now), ..conversation }, lane)
    }

    /// What is known of the two chats.
    fn chats(&mut self) -> Result<(), Error> {
        let (old_key, new_key) = (chat::key(self.bot, self.group), chat::key(self.bot, self.to));
        let (old, new) = (self.store.get(&old_key)?, self.store.get(&new_key)?);
        let known = old.as_ref().and_then(|row| ChatRow::decode(row).ok());
        let mut row =
            known.unwrap_or_else(|| ChatRow { kind: "group".to_owned(), seen: self.now, ..ChatRow::default() });
        if new.is_none() {
            let heir = ChatRow {
                kind: "supergroup".to_owned(),
                username: None,
                gone: None,
                gone_since: 0,
                seen: self.now,
                ..row.clone()
            };
            self.put(new_key.clone(), heir.encode());
        }
        row.gone = Some(format!("it has become the supergroup {}", self.to));
        row.gone_since = self.now;
        self.put(old_key.clone(), row.encode());
        self.read(old_key, old);
        self.read(new_key, new);
        Ok(())
    }

    /// The language that the group has chosen.
    fn language(&mut self) -> Result<(), Error> {
        let [old_key, new_key] = [self.group, self.to].map(|chat| language::key(self.bot, language::Whose::Chat(chat)));
        let (old, new) = (self.store.get(&old_key)?, self.store.get(&new_key)?);
        if let (Some(row), None) = (&old, &new) {
            self.put(new_key.clone(), row.to_vec());
        }
        if old.is_some() {
            self.ops.push(Op::Delete { key: old_key.clone() });
        }
        self.read(old_key, old);
        self.read(new_key, new);
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.rows >= MOST_ROWS || self.bytes >= MOST_BYTES
    }

    fn read(&mut self, key: Vec<u8>, seen: Option<Bytes>) {
        self.reads.push(Read::Value { key, seen });
    }

    fn put(&mut self, key: Vec<u8>, value: Vec<u8>) {
        self.bytes += key.len() + value.len();
        self.ops.push(Op::Put { key, value });
    }
}

/// The plugins that have rows below a prefix of a bot, configured or not.
fn plugins(store: &Store, below: &[u8]) -> Result<Vec<PluginName>, store::Error> {
    let (mut from, end) = (below.to_vec(), prefix_end(below));
    let mut found = Vec::new();
    while let Some(key) = store.first_key(&from, &end)? {
        let rest = &key[below.len()..];
        let name = rest.split(|&byte| byte == 0).next().unwrap_or_default();
        from = prefix_end(&[below, name, &[0][..]].concat());
        found.extend(std::str::from_utf8(name).ok().map(PluginName::new));
    }
    Ok(found)
}

/// Whether anything of the chat waits, in whichever of its lanes.
pub(super) fn has_events(store: &Store, bot: BotId, chat: ChatId) -> Result<bool, store::Error> {
    let prefix = inbox::place_prefix(bot, Lane::Chat(chat));
    Ok(store.first_key(&prefix, &prefix_end(&prefix))?.is_some())
}

async fn must_commit(store: &Store, ops: Vec<Op>) -> Result<(), store::Error> {
    match store.commit(Commit { ops, ..Commit::default() }).await {
        Ok(_) | Err(CommitError::Conflict { .. }) => Ok(()),
        Err(CommitError::Store(error)) => Err(error),
    }
}
