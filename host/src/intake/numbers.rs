//! Which updates are new: epoch, offset and the accepted ids together; pure.
//!
//! Another token, another server or a new count is an epoch of its own, of which nothing is known at its beginning. So
//! an id can only be a duplicate within its epoch, and nothing is skipped because of numbers that mean something else.

use super::seen::{Changes, Order, Place, Seen};
use crate::store::rows::meta::PollRow;

#[derive(Debug, Clone)]
pub(super) struct Numbers {
    row: PollRow,
    seen: Seen,
    /// Whether the stored row is not as this one.
    is_unsaved: bool,
}

impl Numbers {
    /// Where things stand for the queue `fingerprint`, by what is stored. The ids are those of the row's epoch, read when
    /// it is known which one that is.
    pub(super) fn open<E>(
        stored: Option<PollRow>,
        fingerprint: [u8; 8],
        ids: impl FnOnce(u64) -> Result<Seen, E>,
    ) -> Result<Self, E> {
        let (row, is_unsaved) = match stored {
            Some(row) if row.fingerprint == fingerprint => (row, false),
            Some(other) => (PollRow { fingerprint, epoch: other.epoch + 1, offset: 0 }, true),
            None => (PollRow { fingerprint, epoch: 0, offset: 0 }, true),
        };
        let seen = ids(row.epoch)?;
        Ok(Self { row, seen, is_unsaved })
    }

    pub(super) fn epoch(&self) -> u64 {
        self.row.epoch
    }

    /// The offset for the next poll; none before the first batch of an epoch, which confirms nothing.
    pub(super) fn offset(&self) -> Option<i64> {
        (self.row.offset != 0).then_some(self.row.offset)
    }

    /// Looks at the first id of what has come, and begins a new epoch if that is what it means.
    pub(super) fn arrive(&mut self, first: i64, now: u64, order: Order) -> Place {
        let place = self.seen.place(first, now, order);
        if place == Place::NewEpoch {
            self.row.epoch += 1;
            self.row.offset = 0;
            self.seen = Seen::default();
            self.is_unsaved = true;
        }
        place
    }

    /// Accepts an id. False when it was accepted before.
    pub(super) fn insert(&mut self, id: i64, now: u64, changes: &mut Changes) -> bool {
        self.seen.insert(id, now, changes)
    }

    /// All up to `last` has been accepted, in order: the next poll confirms it.
    pub(super) fn confirm(&mut self, last: i64) {
        self.row.offset = last.saturating_add(1);
        self.is_unsaved = true;
    }

    /// The row, if it has to be written.
    pub(super) fn unsaved(&mut self) -> Option<&PollRow> {
        std::mem::take(&mut self.is_unsaved).then_some(&self.row)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
    use std::convert::Infallible;

    use proptest::prelude::*;

    use super::*;

    const HOUR: u64 = 3600 * 1000;
    const WEEK: u64 = 7 * 24 * HOUR;

    /// What happens to Telegram's queue and to the host.
    #[derive(Debug, Clone)]
    enum Step {
        /// Updates come in at Telegram.
        Push(u8),
        /// The host asks, and confirms what it has stored before.
        Poll,
        /// The host asks, and dies before the disk has it.
        PollAndForget,
        /// The host ends and begins again.
        Restart,
        /// A week without updates; then Telegram counts from elsewhere.
        Silence(i64),
        /// BotFather gives another token: another queue.
        NewToken(i64),
        /// A webhook brings one of those that wait, whichever, and the answer may get lost.
        Hook { which: u8, answered: bool },
        /// Somebody repeats an old request.
        Replay(u8),
    }

    fn step() -> impl Strategy<Value = Step> {
        let start = 1_000_000i64..1_999_000_000;
        prop_oneof![
            4 => (1u8..20).prop_map(Step::Push),
            4 => Just(Step::Poll),
            2 => Just(Step::PollAndForget),
            2 => Just(Step::Restart),
            1 => start.clone().prop_map(Step::Silence),
            1 => start.prop_map(Step::NewToken),
            6 => (any::<u8>(), any::<bool>()).prop_map(|(which, answered)| Step::Hook { which, answered }),
            1 => any::<u8>().prop_map(Step::Replay),
        ]
    }

    /// The row, and by epoch the intervals of ids.
    type Disk = (Option<PollRow>, HashMap<u64, BTreeMap<i64, (i64, u64)>>);

    /// Telegram, a disk and a host.
    struct World {
        now: u64,
        token: u8,
        next: i64,
        /// Id and which update it is, over all tokens and counts.
        queue: VecDeque<(i64, u64)>,
        pushed: u64,
        disk: Disk,
        host: Numbers,
        handled: Vec<u64>,
        /// What was brought since Telegram began to count from here.
        brought: Vec<(i64, u64)>,
    }

    fn open(disk: &Disk, token: u8) -> Numbers {
        let ids = |epoch| Ok::<_, Infallible>(Seen::new(disk.1.get(&epoch).cloned().unwrap_or_default()));
        Numbers::open(disk.0.clone(), [token; 8], ids).unwrap()
    }

    impl World {
        fn new() -> Self {
            let disk = (None, HashMap::new());
            let host = open(&disk, 0);
            let (queue, handled, brought) = Default::default();
            Self { now: WEEK, token: 0, next: 700_000_000, queue, pushed: 0, disk, host, handled, brought }
        }

        fn take(&mut self, batch: &[(i64, u64)], order: Order) {
            let Some(&(first, _)) = batch.first() else { return };
            self.host.arrive(first, self.now, order);
            let mut changes = Changes::default();
            for &(id, update) in batch {
                if self.host.insert(id, self.now, &mut changes) {
                    self.handled.push(update);
                }
            }
            if order == Order::Total {
                self.host.confirm(batch.last().unwrap().0);
            }
            if let Some(row) = self.host.unsaved() {
                self.disk.0 = Some(row.clone());
            }
            let rows = self.disk.1.entry(self.host.epoch()).or_default();
            for first in changes.delete {
                rows.remove(&first);
            }
            rows.extend(changes.put);
            self.brought.extend_from_slice(batch);
        }

        /// Telegram's rules for the offset, and what waits then.
        fn asked(&mut self) -> Vec<(i64, u64)> {
            if let Some(offset) = self.host.offset() {
                let head = self.queue.front().map_or(self.next, |&(id, _)| id);
                if (head - 100_000..=self.next + 10).contains(&offset) {
                    self.queue.retain(|&(id, _)| id >= offset);
                }
            }
            self.queue.iter().take(7).copied().collect()
        }

        fn drain(&mut self) {
            loop {
                let batch = self.asked();
                if batch.is_empty() {
                    return;
                }
                self.take(&batch, Order::Total);
            }
        }

        fn run(&mut self, step: Step) {
            self.now += HOUR / 60;
            match step {
                Step::Push(count) => {
                    for _ in 0..count {
                        self.queue.push_back((self.next, self.pushed));
                        (self.next, self.pushed) = (self.next + 1, self.pushed + 1);
                    }
                }
                Step::Poll => {
                    let batch = self.asked();
                    self.take(&batch, Order::Total);
                }
                Step::PollAndForget => {
                    self.asked();
                    self.host = open(&self.disk, self.token);
                }
                Step::Restart => self.host = open(&self.disk, self.token),
                Step::Silence(next) => {
                    self.drain();
                    (self.now, self.next) = (self.now + WEEK, next);
                    self.brought.clear();
                }
                Step::NewToken(next) => {
                    self.drain();
                    (self.token, self.next) = (self.token + 1, next);
                    self.host = open(&self.disk, self.token);
                    self.brought.clear();
                }
                Step::Hook { which, answered } => {
                    if self.queue.is_empty() {
                        return;
                    }
                    let at = usize::from(which) % self.queue.len();
                    let update = self.queue[at];
                    self.take(&[update], Order::Loose);
                    if answered {
                        self.queue.remove(at);
                    }
                }
                Step::Replay(which) => {
                    if let Some(&update) = self.brought.get(usize::from(which) % self.brought.len().max(1)) {
                        self.take(&[update], Order::Loose);
                    }
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        /// Through kills, redeliveries, replays, webhooks out of order, new tokens and new counts.
        #[test]
        fn every_update_is_accepted_once_whatever_the_numbers_do(steps in prop::collection::vec(step(), 1..60)) {
            let mut world = World::new();
            for step in steps {
                world.run(step);
            }
            world.drain();
            let handled: BTreeSet<u64> = world.handled.iter().copied().collect();
            prop_assert_eq!(handled.len(), world.handled.len(), "one was accepted twice");
            prop_assert_eq!(handled, (0..world.pushed).collect::<BTreeSet<_>>(), "one was lost");
        }
    }
}
