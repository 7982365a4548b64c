//! Which updates were accepted already: exact membership, kept as intervals; pure.
//!
//! Never "smaller than the last one": ids jump, down as well as up, and an update skipped by mistake is lost.

use std::collections::BTreeMap;

/// How many intervals are kept; the oldest are forgotten first. Ids are consecutive, so a bot that runs for years
/// fills a few dozen.
const MAX_INTERVALS: usize = 4096;

/// Telegram keeps at most so many updates, so what it hands over in order is never further back.
const FAR: i64 = 100_000;

/// After so long without an update, in milliseconds, nothing can come again: Telegram keeps updates for a day. It counts
/// anew only after a week without any.
const QUIET: u64 = 2 * 24 * 60 * 60 * 1000;

/// The accepted ids of one epoch.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    /// First id to (last id, when the newest was accepted).
    intervals: BTreeMap<i64, (i64, u64)>,
    /// When the newest of all was.
    newest: u64,
}

/// In what order updates come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// By their ids: polling.
    Total,
    /// By their ids within a chat at most, and what failed comes up to a day late: a webhook.
    Loose,
}

/// Where an id lies, measured by those that were accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Where it was to be expected.
    Near,
    /// Where it was not, although Telegram has no reason to count anew: very late, or sent by somebody else.
    Far,
    /// Telegram has begun to count anew.
    NewEpoch,
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
        let intervals: BTreeMap<_, _> = intervals.into_iter().collect();
        let newest = intervals.values().map(|&(_, at)| at).max().unwrap_or(0);
        Self { intervals, newest }
    }

    pub(super) fn contains(&self, id: i64) -> bool {
        self.intervals.range(..=id).next_back().is_some_and(|(_, &(last, _))| id <= last)
    }

    /// Where `id` lies. A lower one than those seen begins a new epoch after a long silence, or where the order is total
    /// and it is much lower; else membership decides, for it may be late.
    pub(super) fn place(&self, id: i64, now: u64, order: Order) -> Place {
        let Some((_, &(top, _))) = self.intervals.last_key_value() else { return Place::Near };
        let is_quiet = now.saturating_sub(self.newest) > QUIET;
        let far_below = id < top.saturating_sub(FAR);
        if id <= top && (is_quiet || (far_below && order == Order::Total)) {
            Place::NewEpoch
        } else if far_below || (id > top.saturating_add(FAR) && !is_quiet) {
            Place::Far
        } else {
            Place::Near
        }
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
        self.newest = self.newest.max(now);
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

    const DAY: u64 = 24 * 60 * 60 * 1000;

    #[test]
    fn telegram_counts_anew_after_a_silence_or_a_long_way_down_in_order() {
        use Order::{Loose, Total};
        use Place::{Far, Near, NewEpoch};
        let mut seen = Seen::default();
        assert_eq!(seen.place(5, 0, Total), Near, "nothing seen yet");
        seen.insert(727_334_708, DAY, &mut Changes::default());
        for (id, days, total, loose) in [
            (727_334_709, 1, Near, Near),
            // Redelivered, or a little late: membership decides.
            (727_334_708, 1, Near, Near),
            (727_334_000, 1, Near, Near),
            // A long way down; through a webhook it may be a day late, or a replay.
            (117_314_199, 1, NewEpoch, Far),
            (117_314_199, 2, NewEpoch, Far),
            // Nothing can be late after such a silence.
            (117_314_199, 8, NewEpoch, NewEpoch),
            (727_334_708, 8, NewEpoch, NewEpoch),
            // Up is no reason, since nothing up there was seen.
            (900_000_000, 1, Far, Far),
            (900_000_000, 8, Near, Near),
        ] {
            assert_eq!(seen.place(id, days * DAY, Total), total, "{id} on day {days}, in order");
            assert_eq!(seen.place(id, days * DAY, Loose), loose, "{id} on day {days}, loosely");
        }
    }
}
