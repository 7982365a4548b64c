//! Which updates were accepted already: exact membership, kept as intervals; pure.
//!
//! Never "smaller than the last one": ids jump, down as well as up, and an update skipped by mistake is lost.

use std::collections::BTreeMap;

/// How many intervals are kept; the oldest are forgotten first. Ids are consecutive, so a bot that runs for years
/// fills a few dozen.
const MAX_INTERVALS: usize = 4096;

/// A jump down by more than this can't be a redelivery: Telegram keeps at most that many updates.
const EPOCH_JUMP: i64 = 100_000;

/// The accepted ids of one epoch.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    /// First id to (last id, when the newest was accepted).
    intervals: BTreeMap<i64, (i64, u64)>,
}

/// What to write so that the stored intervals equal those in memory.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Changes {
    /// first, last, when
    pub(super) put: BTreeMap<i64, (i64, u64)>,
    pub(super) delete: Vec<i64>,
}

impl Seen {
    pub(super) fn new(intervals: impl IntoIterator<Item = (i64, (i64, u64))>) -> Self {
        Self { intervals: intervals.into_iter().collect() }
    }

    pub(super) fn contains(&self, id: i64) -> bool {
        self.intervals.range(..=id).next_back().is_some_and(|(_, &(last, _))| id <= last)
    }

    /// True when `id` lies so far below everything seen that Telegram must have begun to count anew.
    pub(super) fn begins_new_epoch(&self, id: i64) -> bool {
        self.intervals.last_key_value().is_some_and(|(_, &(last, _))| id < last.saturating_sub(EPOCH_JUMP))
    }

    /// Adds an id. False when it was there already.
    pub(super) fn insert(&mut self, id: i64, now: u64, changes: &mut Changes) -> bool {
        if self.contains(id) {
            return false;
        }
        let below = self.intervals.range(..id).next_back().filter(|(_, (last, _))| last.checked_add(1) == Some(id));
        let first = below.map_or(id, |(&first, _)| first);
        let mut last = id;
        if let Some((joined, _)) = id.checked_add(1).and_then(|next| self.intervals.remove(&next)) {
            last = joined;
            changes.put.remove(&(id + 1));
            changes.delete.push(id + 1);
        }
        self.intervals.insert(first, (last, now));
        changes.put.insert(first, (last, now));
        changes.delete.retain(|&deleted| deleted != first);
        self.forget_oldest(changes);
        true
    }

    fn forget_oldest(&mut self, changes: &mut Changes) {
        while self.intervals.len() > MAX_INTERVALS {
            let Some(oldest) = self.intervals.iter().min_by_key(|(_, (_, at))| *at).map(|(&first, _)| first) else {
                return;
            };
            self.intervals.remove(&oldest);
            changes.put.remove(&oldest);
            changes.delete.push(oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn behaves_like_a_set_and_tells_what_to_write(ids in prop::collection::vec(-30i64..30, 0..200)) {
            let (mut seen, mut model, mut stored) = (Seen::default(), BTreeSet::new(), BTreeMap::new());
            for batch in ids.chunks(7) {
                let mut changes = Changes::default();
                for &id in batch {
                    prop_assert_eq!(seen.insert(id, 1, &mut changes), model.insert(id));
                }
                for first in changes.delete {
                    stored.remove(&first);
                }
                stored.extend(changes.put);
                prop_assert_eq!(&stored, &seen.intervals);
            }
            for id in -35..35 {
                prop_assert_eq!(seen.contains(id), model.contains(&id));
            }
            let reopened = Seen::new(stored);
            prop_assert!(model.iter().all(|&id| reopened.contains(id)));
        }
    }

    #[test]
    fn consecutive_ids_are_one_interval() {
        let mut seen = Seen::default();
        for id in 0..10_000 {
            assert!(seen.insert(id, 1, &mut Changes::default()));
        }
        assert_eq!(seen.intervals.len(), 1);
    }

    #[test]
    fn memory_is_bounded_and_the_oldest_goes_first() {
        let mut seen = Seen::default();
        let mut changes = Changes::default();
        for n in 0..5000 {
            seen.insert(i64::MAX - 2 * n, n.unsigned_abs(), &mut changes);
        }
        assert_eq!(seen.intervals.len(), MAX_INTERVALS);
        assert!(!seen.contains(i64::MAX) && seen.contains(i64::MAX - 9998));
    }

    #[test]
    fn only_a_long_way_down_begins_a_new_epoch() {
        let mut seen = Seen::default();
        assert!(!seen.begins_new_epoch(5), "nothing seen yet");
        seen.insert(727_334_708, 1, &mut Changes::default());
        assert!(seen.begins_new_epoch(117_314_199));
        assert!(!seen.begins_new_epoch(727_334_000), "that is a redelivery, or a small jump: membership decides");
        assert!(!seen.begins_new_epoch(900_000_000), "up is no reason");
    }
}
