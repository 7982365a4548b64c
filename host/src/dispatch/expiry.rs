//! Ends what has lived out its time: values are removed, states too, and a plugin that wants to hear of a state's end is
//! told by an event.
//!
//! Removal and event are one commit, which holds only if the row is still as it was: a state that is set anew just then
//! lives on. So each end is told once, over restarts too. What ended while the host was down ends at the start.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Notify, mpsc, watch};

use super::routes::Version;
use super::run::Context;
use crate::clock::{self, unix_millis};
use crate::domain::EventLane;
use crate::store::rows::expiry::{self, ExpiryRow};
use crate::store::rows::fsm::{self, StateRow};
use crate::store::rows::inbox::{self, InboxRow, StoredEvent};
use crate::store::rows::kv::ValueRow;
use crate::store::rows::parked::{self, ParkedRow};
use crate::store::rows::prefix_end;
use crate::store::{self, Commit, CommitError, Op, Read};

/// Looks again at least this often, so that a wall clock that was set forward is noticed.
const LONGEST_SLEEP: Duration = Duration::from_secs(30);
/// Ends in one commit.
const BATCH: usize = 16;
/// Bytes of rows that a commit looks at, about.
const BATCH_BYTES: usize = 1 << 20;

/// Wakes the sweeper when something ends earlier than what it waits for.
#[derive(Default)]
pub(super) struct Alarm {
    set: Notify,
    /// Unix milliseconds; 0 while it does not wait.
    next: AtomicU64,
}

impl Alarm {
    /// Something that ends then is now stored.
    pub(super) fn set(&self, due: u64) {
        if due < self.next.load(Relaxed) {
            self.set.notify_one();
        }
    }
}

/// Runs until told to stop.
pub(super) async fn run(
    context: Arc<Context>,
    arrivals: mpsc::UnboundedSender<Vec<EventLane>>,
    mut stop: watch::Receiver<bool>,
) {
    let mut clock = clock::moves();
    loop {
        let alarm = &context.expiry;
        // Before the look: what is stored after it is heard of.
        alarm.next.store(u64::MAX, Relaxed);
        let sleep = match sweep(&context, &arrivals).await {
            Ok(None) => LONGEST_SLEEP,
            Ok(Some(due)) => {
                alarm.next.store(due, Relaxed);
                Duration::from_millis(due.saturating_sub(unix_millis()))
            }
            Err(error) => {
                tracing::error!(%error, "what has lived out its time can't be removed");
                LONGEST_SLEEP
            }
        };
        tokio::select! {
            () = tokio::time::sleep(sleep.min(LONGEST_SLEEP)) => {}
            () = alarm.set.notified() => {}
            _ = clock.changed() => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
    }
}

/// Ends what is due, a few at a time. Answers with the time of the next end.
pub(super) async fn sweep(
    context: &Context,
    arrivals: &mpsc::UnboundedSender<Vec<EventLane>>,
) -> Result<Option<u64>, store::Error> {
    let from = expiry::bot_prefix(context.bot);
    let to = prefix_end(&from);
    loop {
        let now = unix_millis();
        let rows = context.store.range(&from, &to, BATCH)?;
        let Some((first, _)) = rows.first() else { return Ok(None) };
        let due = expiry::parse_key(first).map_or(0, |(due, _)| due);
        if due > now {
            return Ok(Some(due));
        }
        let mut batch = Batch::default();
        for (key, value) in &rows {
            if !batch.end(context, key, value, now)? || batch.bytes > BATCH_BYTES {
                break;
            }
        }
        let (values, states) = (batch.values, batch.states);
        match context.store.commit(batch.into_commit(arrivals)).await {
            Ok(_) => {
                metrics::counter!("botyard_expired_total", "what" => "value").increment(values);
                metrics::counter!("botyard_expired_total", "what" => "state").increment(states);
            }
            // Something was set anew; it is looked at again.
            Err(CommitError::Conflict { .. }) => {}
            Err(CommitError::Store(error)) => return Err(error),
        }
        tokio::task::yield_now().await;
    }
}

#[derive(Default)]
struct Batch {
    commit: Commit,
    lanes: Vec<EventLane>,
    bytes: usize,
    values: u64,
    states: u64,
}

impl Batch {
    /// Takes in what is to be done about one entry. False, and nothing is done, if it is not due.
    fn end(&mut self, context: &Context, key: &Bytes, entry: &Bytes, now: u64) -> Result<bool, store::Error> {
        let Some((due, of)) = expiry::parse_key(key).filter(|(due, _)| *due <= now) else { return Ok(false) };
        self.commit.ops.push(Op::Delete { key: key.to_vec() });
        let row = context.store.get(of)?;
        // Also where it does not end: it may be about to be set, with this very time.
        self.commit.reads.push(Read::Value { key: of.to_vec(), seen: row.clone() });
        let Some(row) = row else { return Ok(true) };
        self.bytes += row.len();
        let ends = match ExpiryRow::decode(entry) {
            Ok(ExpiryRow::Value) => {
                let ends = ValueRow::decode(&row).is_ok_and(|row| row.expires == due);
                self.values += u64::from(ends);
                ends
            }
            Ok(ExpiryRow::State { plugin, conversation, lane, tell }) => {
                match StateRow::decode(&row).ok().filter(|row| row.expires == due) {
                    None => false,
                    Some(state) => {
                        // The version that serves knows best; the one that set the state stands in while none does.
                        let serves = context.routes.load().find(&plugin, &conversation, 0);
                        let is_on_trial = serves.as_ref().is_some_and(Version::is_on_trial);
                        let tells = serves.map(|version| version.plugin.manifest.expired);
                        if is_on_trial || !tells.unwrap_or(tell) {
                            // It does not come back after a rollback. Else whoever is told knows better what has ended.
                            let copy = fsm::before_key(context.bot, &plugin, &conversation);
                            self.commit.ops.push(Op::Delete { key: copy });
                        }
                        if tells.is_none() && tell {
                            // It is told when it serves.
                            let prefix = parked::plugin_prefix(context.bot, &plugin);
                            let row = InboxRow::new(StoredEvent::Expired { plugin, conversation, state }, now);
                            self.commit.ops.push(Op::Append { prefix, value: ParkedRow { lane, row }.encode() });
                        } else if tells == Some(true) {
                            let event = StoredEvent::Expired { plugin, conversation, state };
                            let row = InboxRow::new(event, now);
                            // The group of then may have become a supergroup.
                            let lane = EventLane { place: context.sender.chats().lane(lane.place), ..lane };
                            let prefix = inbox::lane_prefix(context.bot, lane);
                            self.commit.ops.push(Op::Append { prefix, value: row.encode() });
                            self.lanes.push(lane);
                        }
                        self.states += 1;
                        true
                    }
                }
            }
            Err(error) => {
                tracing::error!(%error, "the end of something can't be read and is dropped");
                false
            }
        };
        if ends {
            self.commit.ops.push(Op::Delete { key: of.to_vec() });
        }
        Ok(true)
    }

    fn into_commit(self, arrivals: &mpsc::UnboundedSender<Vec<EventLane>>) -> Commit {
        let Self { mut commit, lanes, .. } = self;
        if !lanes.is_empty() {
            let arrivals = arrivals.clone();
            commit.on_durable = Some(Box::new(move |_| {
                // Nobody listens any more while the host stops; the rows are in the inbox.
                arrivals.send(lanes).ok();
            }));
        }
        commit
    }
}
