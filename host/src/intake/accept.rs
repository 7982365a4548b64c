//! Takes a batch into the inbox: one commit, durable before anything is confirmed.

use std::collections::HashSet;

use tokio::sync::{mpsc, watch};

use super::batch::{self, Content, Item};
use super::seen::{Changes, Seen};
use crate::clock::unix_millis;
use crate::domain::{BotId, EventLane, Lane, LaneRule};
use crate::store::rows::dead::{self, DeadRow};
use crate::store::rows::inbox::{self, InboxRow, StoredEvent};
use crate::store::rows::meta::{self, PollRow};
use crate::store::rows::seen::{self, SeenRow};
use crate::store::rows::{Unreadable, prefix_end};
use crate::store::{self, Commit, CommitError, OnDurable, Op, Receipt, Store};

/// An ordinary batch is one commit; one of large updates is several.
const BYTES_PER_COMMIT: usize = 128 << 10;

/// Why a batch was not taken.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The answer is no list of updates.
    #[error("the answer of getUpdates is not a list of updates: {0}")]
    NotAList(serde_json::Error),
    /// The store failed; nothing has been confirmed.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// What the store holds about earlier polls can't be read.
    #[error("where polling stood can't be read: {0}")]
    Unreadable(#[from] Unreadable),
}

/// Where polling stands, in memory as it is on disk.
pub(super) struct Ledger {
    store: Store,
    bot: BotId,
    arrivals: mpsc::UnboundedSender<Vec<EventLane>>,
    lanes: watch::Receiver<LaneRule>,
    poll: PollRow,
    seen: Seen,
}

/// What a batch held.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Accepted {
    pub(super) new: usize,
    pub(super) duplicates: usize,
    pub(super) unreadable: usize,
}

impl Ledger {
    /// Reads where polling stood. Another token or another server is another queue of updates: a new epoch, of
    /// which nothing is known.
    pub(super) fn open(
        store: Store,
        bot: BotId,
        fingerprint: [u8; 8],
        arrivals: mpsc::UnboundedSender<Vec<EventLane>>,
        lanes: watch::Receiver<LaneRule>,
    ) -> Result<Self, Error> {
        let stored = store.get(&meta::key(bot))?.map(|value| PollRow::decode(&value)).transpose()?;
        let poll = match stored {
            Some(poll) if poll.fingerprint == fingerprint => poll,
            Some(other) => PollRow { fingerprint, epoch: other.epoch + 1, offset: 0 },
            None => PollRow { fingerprint, epoch: 0, offset: 0 },
        };
        let prefix = seen::epoch_prefix(bot, poll.epoch);
        let mut intervals = Vec::new();
        for (key, value) in store.range(&prefix, &prefix_end(&prefix), usize::MAX)? {
            let SeenRow { last, at } = SeenRow::decode(&value)?;
            intervals.extend(seen::first_of(&key).map(|first| (first, (last, at))));
        }
        Ok(Self { store, bot, arrivals, lanes, poll, seen: Seen::new(intervals) })
    }

    /// The offset for the next poll; none before the first batch of an epoch, which confirms nothing.
    pub(super) fn offset(&self) -> Option<i64> {
        (self.poll.offset != 0).then_some(self.poll.offset)
    }

    /// Stores what is new, and answers once it is durable.
    pub(super) async fn accept(&mut self, body: &[u8]) -> Result<Accepted, Error> {
        let body = String::from_utf8_lossy(body);
        let rule = self.lanes.borrow().clone();
        let items = batch::split(&body, self.offset(), &rule).map_err(Error::NotAList)?;
        let mut accepted = Accepted::default();
        let Some(last) = items.last().map(|item| item.id.0) else { return Ok(accepted) };
        if items.first().is_some_and(|first| self.seen.begins_new_epoch(first.id.0)) {
            tracing::warn!(update_id = last, "Telegram counts its updates anew: a new epoch begins");
            self.poll.epoch += 1;
            self.seen = Seen::default();
        }
        let (mut rest, mut receipt) = (&items[..], None);
        while !rest.is_empty() {
            let (part, others) = rest.split_at(part_length(rest));
            receipt = Some(self.take(part, &mut accepted).await?);
            rest = others;
        }
        // What is durable is a prefix: the last part stands for all.
        if let Some(receipt) = receipt {
            receipt.durable().await?;
        }
        Ok(accepted)
    }

    /// Stores a part of a batch, with the offset that confirms just that.
    async fn take(&mut self, items: &[Item<'_>], accepted: &mut Accepted) -> Result<Receipt, Error> {
        let now = unix_millis();
        let mut seen = self.seen.clone();
        let (mut changes, mut ops, mut lanes) =
            (Changes::default(), Vec::with_capacity(items.len() + 4), HashSet::new());
        for item in items {
            if !seen.insert(item.id.0, now, &mut changes) {
                accepted.duplicates += 1;
                continue;
            }
            let event = StoredEvent::Update(item.raw.as_bytes().to_vec());
            match item.content {
                Content::Update { lane, control } => {
                    accepted.new += 1;
                    lanes.insert(lane);
                    if let Some(control) = control {
                        // Right before the event it is about: that has the next number.
                        let row = InboxRow::new(StoredEvent::Cancel { lane, ended: None }, now);
                        ops.push(Op::Append { prefix: inbox::lane_prefix(self.bot, control), value: row.encode() });
                        lanes.insert(control);
                    }
                    let row = InboxRow::new(event, now);
                    ops.push(Op::Append { prefix: inbox::lane_prefix(self.bot, lane), value: row.encode() });
                }
                Content::Unreadable(reason) => {
                    accepted.unreadable += 1;
                    tracing::error!(update_id = item.id.0, reason, "an update can't be read and became a dead letter");
                    ops.push(Op::Append { prefix: dead::bot_prefix(self.bot), value: unreadable(event, reason, now) });
                }
            }
        }
        let offset = items.last().map_or(self.poll.offset, |last| last.id.0.saturating_add(1));
        let poll = PollRow { offset, ..self.poll.clone() };
        let epoch = poll.epoch;
        ops.push(Op::Put { key: meta::key(self.bot), value: poll.encode() });
        ops.extend(changes.delete.iter().map(|&first| Op::Delete { key: seen::key(self.bot, epoch, first) }));
        ops.extend(changes.put.iter().map(|(&first, &(last, at))| Op::Put {
            key: seen::key(self.bot, epoch, first),
            value: SeenRow { last, at }.encode(),
        }));
        let arrivals = self.arrivals.clone();
        let lanes: Vec<_> = lanes.into_iter().collect();
        let on_durable: Option<OnDurable> = Some(Box::new(move |_| {
            // Nobody listens any more while the host stops; the rows are in the inbox.
            arrivals.send(lanes).ok();
        }));
        let receipt = match self.store.commit(Commit { reads: Vec::new(), ops, on_durable }).await {
            Ok(receipt) => receipt,
            Err(CommitError::Store(error)) => return Err(error.into()),
            Err(CommitError::Conflict { .. }) => unreachable!("the commit reads nothing"),
        };
        (self.poll, self.seen) = (poll, seen);
        Ok(receipt)
    }
}

/// How many of the items go into one commit: the database keeps what large ones leave behind for long.
fn part_length(items: &[Item<'_>]) -> usize {
    let mut bytes = 0;
    let fitting = items.iter().take_while(|item| {
        bytes += item.raw.len();
        bytes <= BYTES_PER_COMMIT
    });
    fitting.count().max(1)
}

fn unreadable(event: StoredEvent, reason: &str, now: u64) -> Vec<u8> {
    DeadRow {
        lane: EventLane::whole(Lane::Other),
        at: now,
        attempts: 0,
        plugin: String::new(),
        version: String::new(),
        reason: reason.to_owned(),
        backtrace: String::new(),
        event,
        rest: Vec::new(),
    }
    .encode()
}
