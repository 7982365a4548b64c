//! Turns timers that have come due into events.
//!
//! A timer lies in the store until its time; then one commit takes it out and puts its event into the inbox. What
//! came due while the host was down fires at the start.

use std::time::Duration;

use tokio::sync::{Notify, mpsc, watch};

use crate::clock::{self, unix_millis};
use crate::domain::{BotId, Lane};
use crate::store::rows::inbox::{self, InboxRow, StoredEvent};
use crate::store::rows::prefix_end;
use crate::store::rows::timer::{self, TimerRow};
use crate::store::{self, Commit, CommitError, Op, Read, Store};

/// Looks again at least this often, so that a wall clock that was set forward is noticed.
const LONGEST_SLEEP: Duration = Duration::from_secs(30);

/// Runs until told to stop. `changed` is notified when a commit has set a timer.
pub(super) async fn run(
    store: Store,
    bot: BotId,
    arrivals: mpsc::UnboundedSender<Vec<Lane>>,
    changed: &Notify,
    mut stop: watch::Receiver<bool>,
) {
    let mut clock = clock::moves();
    loop {
        let sleep = match fire_due(&store, bot, &arrivals).await {
            Ok(next) => next.map_or(LONGEST_SLEEP, |due| Duration::from_millis(due.saturating_sub(unix_millis()))),
            Err(error) => {
                tracing::error!(%error, "timers can't be read");
                LONGEST_SLEEP
            }
        };
        tokio::select! {
            () = tokio::time::sleep(sleep.min(LONGEST_SLEEP)) => {}
            () = changed.notified() => {}
            _ = clock.changed() => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
    }
}

/// Fires what is due. Answers with the due time of the next timer.
async fn fire_due(
    store: &Store,
    bot: BotId,
    arrivals: &mpsc::UnboundedSender<Vec<Lane>>,
) -> Result<Option<u64>, store::Error> {
    let from = timer::bot_prefix(bot);
    let to = prefix_end(&from);
    loop {
        let Some((key, value)) = store.range(&from, &to, 1)?.pop() else { return Ok(None) };
        let Some((due, id)) = timer::parse_key(&key) else { return Ok(None) };
        let now = unix_millis();
        if due > now {
            return Ok(Some(due));
        }
        let row = match TimerRow::decode(&value) {
            Ok(row) => row,
            Err(error) => {
                // It would stand before all others for ever.
                tracing::error!(%error, id, "a timer can't be read and is dropped");
                store.submit(Commit { ops: vec![Op::Delete { key: key.to_vec() }], ..Commit::default() });
                store.flushed().await?;
                continue;
            }
        };
        let lane = row.lane;
        let index = timer::index_key(bot, &row.plugin, id);
        let event = StoredEvent::Timer {
            plugin: row.plugin,
            conversation: row.conversation,
            id,
            name: row.name,
            payload: row.payload,
            due,
        };
        let arrivals = arrivals.clone();
        let commit = Commit {
            // It may have been cancelled in between.
            reads: vec![Read::Value { key: key.to_vec(), seen: Some(value) }],
            ops: vec![
                Op::Delete { key: key.to_vec() },
                Op::Delete { key: index },
                Op::Append {
                    prefix: inbox::lane_prefix(bot, lane),
                    value: InboxRow { attempts: 0, not_before: 0, received: now, event }.encode(),
                },
            ],
            on_durable: Some(Box::new(move |_| {
                // Nobody listens any more while the host stops; the row is in the inbox.
                arrivals.send(vec![lane]).ok();
            })),
        };
        match store.commit(commit).await {
            Ok(_) | Err(CommitError::Conflict { .. }) => {}
            Err(CommitError::Store(error)) => return Err(error),
        }
    }
}
