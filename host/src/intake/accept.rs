//! Takes updates into the inbox: one commit, durable before anything is confirmed.

use std::collections::HashSet;

use tokio::sync::{mpsc, watch};

use super::batch::{self, Content, Item};
use super::numbers::Numbers;
use super::seen::{Changes, Order, Place, Seen};
use crate::clock::unix_millis;
use crate::domain::{BotId, EventLane, Lane, LaneRule, callback_query_id};
use crate::sender::Sender;
use crate::store::rows::Unreadable;
use crate::store::rows::dead::{self, DeadRow};
use crate::store::rows::inbox::{self, InboxRow, StoredEvent};
use crate::store::rows::meta::{self, PollRow};
use crate::store::rows::seen::{self, SeenRow};
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
    /// Updates can't be taken the way that the configuration says.
    #[error(transparent)]
    Webhook(#[from] super::webhook::SetupError),
    /// Somebody else has a webhook set for this bot.
    #[error(transparent)]
    Foreign(#[from] super::way::Foreign),
}

/// Which updates were taken, in memory as it is, or is about to be, on disk. A commit that fails ends the store and with
/// it the host, so that memory needs no way back.
pub(super) struct Ledger {
    store: Store,
    bot: BotId,
    arrivals: mpsc::UnboundedSender<Vec<EventLane>>,
    /// How updates find their lanes. A change is for those that come after it.
    lanes: watch::Receiver<LaneRule>,
    /// Told of pressed buttons.
    sender: Option<Sender>,
    numbers: Numbers,
    /// The offset that confirms what is on the disk, and nothing that is only on its way there.
    durable: Option<i64>,
}

/// What a batch held.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Accepted {
    pub(super) new: usize,
    pub(super) duplicates: usize,
    pub(super) unreadable: usize,
}

impl Ledger {
    /// Reads how things stand. Another token or another server is another queue of updates: a new epoch, of which
    /// nothing is known.
    pub(super) fn open(
        store: Store,
        bot: BotId,
        fingerprint: [u8; 8],
        arrivals: mpsc::UnboundedSender<Vec<EventLane>>,
        lanes: watch::Receiver<LaneRule>,
    ) -> Result<Self, Error> {
        let stored = store.get(&meta::key(bot))?.map(|value| PollRow::decode(&value)).transpose()?;
        let numbers = Numbers::open(stored, fingerprint, |epoch| {
            let mut intervals = Vec::new();
            for (key, value) in store.scan_prefix(&seen::epoch_prefix(bot, epoch), usize::MAX)? {
                let SeenRow { last, at } = SeenRow::decode(&value)?;
                intervals.extend(seen::first_of(&key).map(|first| (first, (last, at))));
            }
            Ok::<_, Error>(Seen::new(intervals))
        })?;
        let durable = numbers.offset();
        Ok(Self { store, bot, arrivals, lanes, sender: None, numbers, durable })
    }

    /// Tells the sender of each pressed button as it comes.
    pub(super) fn telling(self, sender: Sender) -> Self {
        Self { sender: Some(sender), ..self }
    }

    /// The offset for the next poll; none before the first batch of an epoch, which confirms nothing.
    pub(super) fn offset(&self) -> Option<i64> {
        self.durable
    }

    /// Stores what is new of a poll's answer, and answers once it is durable. When it is dropped before, the offset stays.
    pub(super) async fn accept(&mut self, body: &[u8]) -> Result<Accepted, Error> {
        let body = String::from_utf8_lossy(body);
        let rule = self.lanes.borrow().clone();
        let items = batch::split(&body, self.offset(), &rule).map_err(Error::NotAList)?;
        let mut accepted = Accepted::default();
        let Some(first) = items.first().map(|item| item.id.0) else { return Ok(accepted) };
        self.arrive(first, Order::Total);
        let (mut rest, mut receipt) = (&items[..], None);
        while !rest.is_empty() {
            let (part, others) = rest.split_at(part_length(rest));
            receipt = Some(applied(self.hand_in(part, Order::Total, &mut accepted)).await?);
            rest = others;
        }
        // What is durable is a prefix: the last part stands for all.
        if let Some(receipt) = receipt {
            receipt.durable().await?;
        }
        self.durable = self.numbers.offset();
        Ok(accepted)
    }

    /// Hands in the update of one request. Once the commit is durable, the request may be answered: for a duplicate too,
    /// since its first coming may still be on its way to the disk.
    pub(super) fn accept_one(&mut self, body: &[u8]) -> impl Future<Output = Result<(), Error>> + Send + use<> {
        let text = String::from_utf8_lossy(body);
        let rule = self.lanes.borrow().clone();
        let commit = match batch::single(&text, &rule) {
            Ok(item) => {
                self.arrive(item.id.0, Order::Loose);
                self.commit_of(&[item], Order::Loose, &mut Accepted::default())
            }
            Err(reason) => {
                tracing::error!(reason, "what came as an update can't be read and became a dead letter");
                count("unreadable", "other");
                let row = unreadable(StoredEvent::Update(body.to_vec()), reason, unix_millis());
                let op = Op::Append { prefix: dead::bot_prefix(self.bot), value: row };
                Commit { ops: vec![op], ..Commit::default() }
            }
        };
        let handed_in = applied(self.store.commit(commit));
        async move { Ok(handed_in.await?.durable().await?) }
    }

    fn arrive(&mut self, first: i64, order: Order) {
        match self.numbers.arrive(first, unix_millis(), order) {
            Place::Near => {}
            Place::Far => {
                metrics::counter!("botyard_updates_far_total").increment(1);
                tracing::error!(
                    update_id = first,
                    "an update's number is far from those around it: it is very late, or not from Telegram"
                );
            }
            Place::NewEpoch => {
                self.durable = None;
                tracing::warn!(update_id = first, "Telegram counts its updates anew: a new epoch begins");
            }
        }
    }

    fn hand_in(
        &mut self,
        items: &[Item<'_>],
        order: Order,
        accepted: &mut Accepted,
    ) -> impl Future<Output = Result<Receipt, CommitError>> + Send + use<> {
        let commit = self.commit_of(items, order, accepted);
        self.store.commit(commit)
    }

    /// What stores these; of a poll, with the offset that confirms just that.
    fn commit_of(&mut self, items: &[Item<'_>], order: Order, accepted: &mut Accepted) -> Commit {
        let now = unix_millis();
        let (mut changes, mut ops, mut lanes) =
            (Changes::default(), Vec::with_capacity(items.len() + 4), HashSet::new());
        let mut queries = Vec::new();
        for item in items {
            if !self.numbers.insert(item.id.0, now, &mut changes) {
                accepted.duplicates += 1;
                count("duplicate", item.kind);
                continue;
            }
            let event = StoredEvent::Update(item.raw.as_bytes().to_vec());
            match item.content {
                Content::Update { lane, control } => {
                    accepted.new += 1;
                    count("accepted", item.kind);
                    lanes.insert(lane);
                    queries.extend(callback_query_id(item.raw));
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
                    count("unreadable", item.kind);
                    tracing::error!(update_id = item.id.0, reason, "an update can't be read and became a dead letter");
                    ops.push(Op::Append { prefix: dead::bot_prefix(self.bot), value: unreadable(event, reason, now) });
                }
            }
        }
        if let (Order::Total, Some(last)) = (order, items.last()) {
            self.numbers.confirm(last.id.0);
        }
        let epoch = self.numbers.epoch();
        ops.extend(self.numbers.unsaved().map(|row| Op::Put { key: meta::key(self.bot), value: row.encode() }));
        ops.extend(changes.delete.iter().map(|&first| Op::Delete { key: seen::key(self.bot, epoch, first) }));
        ops.extend(changes.put.iter().map(|(&first, &(last, at))| Op::Put {
            key: seen::key(self.bot, epoch, first),
            value: SeenRow { last, at }.encode(),
        }));
        let arrivals = self.arrivals.clone();
        let lanes: Vec<_> = lanes.into_iter().collect();
        let sender = self.sender.clone().filter(|_| !queries.is_empty());
        let on_durable: Option<OnDurable> = (!lanes.is_empty()).then(|| -> OnDurable {
            Box::new(move |_| {
                // Before the dispatcher hears of them, and may say that they are answered.
                if let Some(sender) = sender {
                    sender.expect_answers(queries);
                }
                // Nobody listens any more while the host stops; the rows are in the inbox.
                arrivals.send(lanes).ok();
            })
        });
        Commit { reads: Vec::new(), ops, on_durable }
    }
}

async fn applied(commit: impl Future<Output = Result<Receipt, CommitError>>) -> Result<Receipt, Error> {
    match commit.await {
        Ok(receipt) => Ok(receipt),
        Err(CommitError::Store(error)) => Err(error.into()),
        Err(CommitError::Conflict { .. }) => unreachable!("the commit reads nothing"),
    }
}

fn count(outcome: &'static str, kind: &'static str) {
    metrics::counter!("botyard_updates_total", "outcome" => outcome, "kind" => kind).increment(1);
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
