//! How much each plugin has of what is bounded; see [`Ledger`](super::rows::counted::Ledger).
//!
//! Counted by the one thread that writes, in the batch that writes: so the counts are exact, also after a crash, and whoever
//! writes need not have read them. A store that has none, such as one that was just imported, is counted when it is
//! opened. [`Room`] is what runs that are not committed yet are going to need of a limit; it is in memory alone.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Error;
use super::engine::Engine;
use super::layout::{self, KEPT_KEY};
use super::read::Reader;
use super::rows::counted;

/// All counts. Clones share them.
#[derive(Clone, Default)]
pub(super) struct Usage(Arc<Mutex<HashMap<Vec<u8>, Total>>>);

#[derive(Default)]
struct Total {
    kept: u64,
    reserved: u64,
}

/// One count: which, and whose.
type Key = Vec<u8>;
/// What goes from counts and what comes to them.
pub(super) type Changes = BTreeMap<Key, (u64, u64)>;

impl Usage {
    /// Reads the counts, and counts first if there are none.
    pub(super) fn load(engine: &Engine) -> Result<Self, Error> {
        let reader = engine.reader();
        let kept = match reader.raw(KEPT_KEY)? {
            Some(_) => stored(reader)?,
            None => {
                let counted = count(reader)?;
                let mut batch = sled::Batch::default();
                batch.insert(KEPT_KEY, &[]);
                for (owner, bytes) in &counted {
                    batch.insert(layout::kept_key(owner), &bytes.to_be_bytes());
                }
                engine.apply(batch)?;
                counted
            }
        };
        let totals = kept.into_iter().map(|(owner, kept)| (owner, Total { kept, reserved: 0 })).collect();
        Ok(Self(Arc::new(Mutex::new(totals))))
    }

    /// A commit has changed these. Answers with the rows that say so.
    pub(super) fn change(&self, changes: Changes) -> Vec<(Key, Option<Vec<u8>>)> {
        let mut totals = self.totals();
        let changed = changes.into_iter().filter(|(_, (old, new))| old != new);
        let rows = changed.map(|(key, (old, new))| {
            let total = totals.entry(key.clone()).or_default();
            total.kept = (total.kept + new).saturating_sub(old);
            (layout::kept_key(&key), (total.kept > 0).then(|| total.kept.to_be_bytes().to_vec()))
        });
        rows.collect()
    }

    pub(super) fn kept(&self, owner: &[u8]) -> u64 {
        self.totals().get(owner).map_or(0, |total| total.kept)
    }

    /// All of them, those that are 0 among them.
    pub(super) fn all(&self) -> Vec<(Vec<u8>, u64)> {
        self.totals().iter().map(|(owner, total)| (owner.clone(), total.kept)).collect()
    }

    pub(super) fn room(&self, owner: Vec<u8>) -> Room {
        Room { usage: self.clone(), owner, reserved: 0 }
    }

    fn totals(&self) -> MutexGuard<'_, HashMap<Vec<u8>, Total>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How much more an owner will have, if what is being done comes true: given back when it is dropped, which is to be once
/// that is committed, and counted.
pub struct Room {
    usage: Usage,
    owner: Vec<u8>,
    reserved: u64,
}

impl Room {
    /// Takes so much in all, unless the owner would have more than `most` then; answers with how much it has.
    ///
    /// # Errors
    /// When it would: nothing more is taken.
    pub fn grow_to(&mut self, amount: u64, most: u64) -> Result<(), u64> {
        let Some(more) = amount.checked_sub(self.reserved).filter(|more| *more > 0) else { return Ok(()) };
        let mut totals = self.usage.totals();
        let total = totals.entry(self.owner.clone()).or_default();
        if total.kept.saturating_add(total.reserved).saturating_add(more) > most {
            return Err(total.kept);
        }
        total.reserved += more;
        self.reserved += more;
        Ok(())
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        if let Some(total) = self.usage.totals().get_mut(&self.owner) {
            total.reserved = total.reserved.saturating_sub(self.reserved);
        }
    }
}

/// The counts as they are stored.
pub(super) fn stored(reader: Reader<'_>) -> Result<BTreeMap<Vec<u8>, u64>, Error> {
    let mut kept = BTreeMap::new();
    for row in reader.db.scan_prefix(KEPT_KEY) {
        let (key, bytes) = row.map_err(|error| reader.error(error))?;
        let Some(owner) = key.strip_prefix(KEPT_KEY).filter(|owner| !owner.is_empty()) else { continue };
        let bytes = bytes.as_ref().try_into().map_err(|_| Error::corrupt(reader.path, "a count can't be read"))?;
        kept.insert(owner.to_vec(), u64::from_be_bytes(bytes));
    }
    Ok(kept)
}

/// The counts as they should be.
pub(super) fn count(reader: Reader<'_>) -> Result<BTreeMap<Vec<u8>, u64>, Error> {
    let mut kept: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
    for kind in counted::KINDS {
        for row in reader.rows(&[kind], Some(&[kind + 1])) {
            let (key, stored) = row.map_err(|error| reader.error(error))?;
            let Some((length, start)) = reader.start(&key, &stored)? else { continue };
            for (count, amount) in counted::of(&key, length, &start).iter().flat_map(counted::Counted::amounts) {
                *kept.entry(count).or_default() += amount;
            }
        }
    }
    Ok(kept)
}
