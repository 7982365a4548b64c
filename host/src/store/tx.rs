//! What a run has read and wants to write: an overlay over the store.
//!
//! Everything read through it is checked again when it is committed, so a run whose ground has moved is
//! refused. It writes nothing itself; dropping it forgets everything.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;

use super::rows::counted::Ledger;
use super::{Commit, Error, Op, Read, Room, Store};
use crate::domain::{BotId, PluginName};

/// Something that is to live until what a run asked for is on disk.
pub type Held = Box<dyn Any + Send + Sync>;

/// Collected reads and writes.
pub struct Tx {
    store: Store,
    values: BTreeMap<Vec<u8>, Option<Bytes>>,
    ranges: Vec<Read>,
    writes: BTreeMap<Vec<u8>, Option<Bytes>>,
    appends: Vec<(Vec<u8>, Vec<u8>)>,
    /// What each write replaced in `writes`.
    undo: Vec<(Vec<u8>, Option<Option<Bytes>>)>,
    held: Vec<Held>,
    /// What [`Tx::peek`] found first, or did not, where somebody wants to know.
    peeked: Option<Box<Mutex<Peeked>>>,
}

type Peeked = BTreeMap<Vec<u8>, Option<Bytes>>;

/// What [`Tx::page`] found.
#[derive(Debug, Default)]
pub struct Page {
    /// The rows. Those that the run itself has deleted are not among them, but were read.
    pub rows: Vec<(Bytes, Bytes)>,
    /// Bytes that were read from the store, and are held until the commit.
    pub bytes: usize,
    /// Where there may be more.
    pub next: Option<Vec<u8>>,
}

/// A place to roll back to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Savepoint {
    n_writes: usize,
    n_appends: usize,
}

impl Tx {
    /// Nothing read, nothing written.
    #[must_use]
    pub fn new(store: &Store) -> Tx {
        Tx {
            store: store.clone(),
            values: BTreeMap::new(),
            ranges: Vec::new(),
            writes: BTreeMap::new(),
            appends: Vec::new(),
            undo: Vec::new(),
            held: Vec::new(),
            peeked: None,
        }
    }

    /// From now on it is known what was peeked at, too.
    pub fn keep_peeked(&mut self) {
        self.peeked.get_or_insert_default();
    }

    /// Its own write, else the store's value, which from then on must not change. Reading twice gives the
    /// same.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn get(&mut self, key: &[u8]) -> Result<Option<Bytes>, Error> {
        if let Some(known) = self.writes.get(key).or_else(|| self.values.get(key)) {
            return Ok(known.clone());
        }
        let value = self.store.get(key)?;
        self.values.insert(key.to_vec(), value.clone());
        Ok(value)
    }

    /// Takes a value for what the store holds, or will hold by the commit, which is refused if it does not.
    pub fn assume(&mut self, key: &[u8], value: Vec<u8>) {
        self.values.insert(key.to_vec(), Some(value.into()));
    }

    /// The same as [`Tx::get`], but the store's value may change before the commit.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn peek(&self, key: &[u8]) -> Result<Option<Bytes>, Error> {
        if let Some(known) = self.writes.get(key).or_else(|| self.values.get(key)) {
            return Ok(known.clone());
        }
        let value = self.store.get(key)?;
        if let Some(peeked) = &self.peeked {
            let mut peeked = peeked.lock().unwrap_or_else(PoisonError::into_inner);
            peeked.entry(key.to_vec()).or_insert_with(|| value.clone());
        }
        Ok(value)
    }

    /// How long the value is that [`Tx::peek`] would find.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn length(&self, key: &[u8]) -> Result<Option<u64>, Error> {
        match self.writes.get(key).or_else(|| self.values.get(key)) {
            Some(known) => Ok(known.as_ref().map(|value| value.len() as u64)),
            None => self.store.length(key),
        }
    }

    /// What a plugin is going to have of something, beyond what it has already.
    #[must_use]
    pub fn room(&self, of: Ledger, bot: BotId, plugin: &PluginName) -> Room {
        self.store.room(of, bot, plugin)
    }

    /// Sets a key.
    pub fn put(&mut self, key: Vec<u8>, value: Vec<u8>) {
        self.write(key, Some(value.into()));
    }

    /// Removes a key.
    pub fn delete(&mut self, key: Vec<u8>) {
        self.write(key, None);
    }

    /// Puts at `prefix` and a number that the commit will choose; not visible before that.
    pub fn append(&mut self, prefix: Vec<u8>, value: Vec<u8>) {
        self.appends.push((prefix, value));
    }

    /// Some of the rows in `[from, to)`, ascending, its own writes among them: as far as the next `limit` rows of the
    /// store reach. What it took from the store must not change, nor be joined by other rows.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn page(&mut self, from: &[u8], to: &[u8], limit: usize) -> Result<Page, Error> {
        if from >= to {
            return Ok(Page::default());
        }
        let seen = self.store.range(from, to, limit)?;
        let bytes = seen.iter().map(|(key, value)| key.len() + value.len()).sum();
        // Behind the last row that was looked at.
        let next = seen.last().filter(|_| seen.len() == limit).map(|(key, _)| [&key[..], &[0]].concat());
        let end = next.as_deref().unwrap_or(to);
        let own = self.writes.range::<[u8], _>((Bound::Included(from), Bound::Excluded(end)));
        let mut rows: BTreeMap<Bytes, Option<Bytes>> = seen.iter().cloned().map(|(k, v)| (k, Some(v))).collect();
        rows.extend(own.map(|(key, value)| (Bytes::copy_from_slice(key), value.clone())));
        let rows = rows.into_iter().filter_map(|(key, value)| Some((key, value?))).collect();
        self.ranges.push(Read::Range { from: from.to_vec(), to: to.to_vec(), limit, seen });
        Ok(Page { rows, bytes, next })
    }

    /// Whether there is room for one more row below `prefix`, beside those of the store and those that were appended
    /// there: at most `most` in all. If so, there must still be room for all of them at the commit.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn has_room(&mut self, prefix: &[u8], most: usize) -> Result<bool, Error> {
        let to = super::rows::prefix_end(prefix);
        let own = self.appends.iter().filter(|(at, _)| at == prefix).count() + 1;
        let Some(rows) = most.checked_sub(own) else { return Ok(false) };
        if self.store.count(prefix, &to, rows + 1)? > rows {
            return Ok(false);
        }
        self.ranges.push(Read::AtMost { from: prefix.to_vec(), to, rows });
        Ok(true)
    }

    /// Here.
    #[must_use]
    pub fn savepoint(&self) -> Savepoint {
        Savepoint { n_writes: self.undo.len(), n_appends: self.appends.len() }
    }

    /// Forgets what was written and appended since; what was read still counts.
    pub fn roll_back(&mut self, to: Savepoint) {
        while self.undo.len() > to.n_writes
            && let Some((key, before)) = self.undo.pop()
        {
            match before {
                Some(value) => self.writes.insert(key, value),
                None => self.writes.remove(&key),
            };
        }
        self.appends.truncate(to.n_appends);
    }

    /// The rows that were there and were read from the store, perhaps more than once.
    pub fn seen(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let values = self.values.iter().filter_map(|(key, value)| Some((&key[..], &value.as_ref()?[..])));
        let ranges = self.ranges.iter().flat_map(|read| match read {
            Read::Range { seen, .. } => &seen[..],
            Read::Value { .. } | Read::AtMost { .. } => &[],
        });
        values.chain(ranges.map(|(key, value)| (&key[..], &value[..])))
    }

    /// The rows that were there when they were first peeked at, if [`Tx::keep_peeked`] was called before.
    #[must_use]
    pub fn peeked(&self) -> Vec<(Vec<u8>, Bytes)> {
        let Some(peeked) = &self.peeked else { return Vec::new() };
        let peeked = peeked.lock().unwrap_or_else(PoisonError::into_inner);
        peeked.iter().filter_map(|(key, value)| Some((key.clone(), value.clone()?))).collect()
    }

    /// What was written and appended since, as it would be committed.
    #[must_use]
    pub fn written_since(&self, place: Savepoint) -> Vec<Op> {
        let keys: BTreeSet<&Vec<u8>> = self.undo.iter().skip(place.n_writes).map(|(key, _)| key).collect();
        let writes = keys.into_iter().filter_map(|key| match self.writes.get(key)? {
            Some(value) => Some(Op::Put { key: key.clone(), value: value.to_vec() }),
            None => Some(Op::Delete { key: key.clone() }),
        });
        let appends = self.appends.iter().skip(place.n_appends);
        writes.chain(appends.cloned().map(|(prefix, value)| Op::Append { prefix, value })).collect()
    }

    /// Keeps something alive until what refers to it is committed, whatever it is.
    pub fn hold(&mut self, what: impl Send + Sync + 'static) {
        self.held.push(Box::new(what));
    }

    /// What is held: to be dropped when the commit is durable, or refused.
    pub fn take_held(&mut self) -> Vec<Held> {
        std::mem::take(&mut self.held)
    }

    /// What to hand to [`Store::commit`].
    #[must_use]
    pub fn into_commit(self) -> Commit {
        let mut reads = self.ranges;
        reads.extend(self.values.into_iter().map(|(key, seen)| Read::Value { key, seen }));
        let writes = self.writes.into_iter().map(|(key, value)| match value {
            Some(value) => Op::Put { key, value: value.into() },
            None => Op::Delete { key },
        });
        let appends = self.appends.into_iter().map(|(prefix, value)| Op::Append { prefix, value });
        Commit { reads, ops: writes.chain(appends).collect(), on_durable: None }
    }

    fn write(&mut self, key: Vec<u8>, value: Option<Bytes>) {
        let before = self.writes.insert(key.clone(), value);
        self.undo.push((key, before));
    }
}
