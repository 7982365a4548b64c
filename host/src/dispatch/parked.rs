//! Events of a plugin that does not serve, since it is switched off, or has gone from the configuration: what it has set
//! timers for, and states of its that have ended. They wait apart, so that the chats go on without them, and come back
//! behind what waits there when the plugin serves again. What is left of one that never does, an operator drops.

use tokio::sync::mpsc;

use super::routes::Routes;
use super::run::{Context, Head, Outcome};
use crate::domain::{EventLane, PluginName};
use crate::store::rows::inbox::{self, InboxRow};
use crate::store::rows::parked::{self, ParkedRow};
use crate::store::rows::{number_of, prefix_end};
use crate::store::{self, Commit, CommitError, Op, Read};

/// Rows that are in memory at once.
const PAGE: usize = 64;

impl Context {
    /// Puts the event at the head of a lane where it is in nobody's way.
    pub(super) async fn park(&self, head: &Head, row: InboxRow, plugin: &PluginName) -> Result<Outcome, store::Error> {
        tracing::info!(%plugin, event = head.number, lane = ?head.lane, "an event waits until its plugin serves");
        let parked = ParkedRow { lane: head.lane, row: InboxRow { attempts: 0, not_before: 0, ..row } };
        let parked_now = self.settle(head, |tx| {
            tx.delete(head.key.clone());
            tx.append(parked::plugin_prefix(self.bot, plugin), parked.encode());
        });
        if parked_now.await? {
            self.forget_journal(head.number);
            metrics::counter!("botyard_events_total", "outcome" => "parked").increment(1);
        }
        if self.routes.load().entry(plugin).is_some() {
            // It has come back just then.
            self.timer_set.notify_one();
        }
        Ok(Outcome::Done { more: head.more })
    }
}

/// Puts the events of plugins that serve back into the inbox.
pub(super) async fn release(
    context: &Context,
    routes: &Routes,
    arrivals: &mpsc::UnboundedSender<Vec<EventLane>>,
) -> Result<(), store::Error> {
    let (store, bot) = (&context.store, context.bot);
    for entry in routes.entries() {
        let plugin = &entry.plugin.name;
        let mut from = parked::plugin_prefix(bot, plugin);
        let to = prefix_end(&from);
        loop {
            let rows = store.range(&from, &to, PAGE)?;
            let Some((last, _)) = rows.last() else { break };
            from = [&last[..], &[0]].concat();
            for (key, value) in rows {
                let mut commit = Commit { ops: vec![Op::Delete { key: key.to_vec() }], ..Commit::default() };
                match ParkedRow::decode(&value) {
                    Ok(ParkedRow { lane, row }) => {
                        tracing::debug!(%plugin, event = number_of(&key), "an event goes on, since its plugin serves");
                        // The group of then may have become a supergroup.
                        let lane = EventLane { place: context.sender.chats().lane(lane.place), ..lane };
                        commit.ops.push(Op::Append { prefix: inbox::lane_prefix(bot, lane), value: row.encode() });
                        let arrivals = arrivals.clone();
                        // Nobody listens any more while the host stops; the row is in the inbox.
                        commit.on_durable = Some(Box::new(move |_| arrivals.send(vec![lane]).unwrap_or_default()));
                    }
                    Err(error) => tracing::error!(%error, %plugin, "an event that waited is dropped"),
                }
                commit.reads.push(Read::Value { key: key.to_vec(), seen: Some(value) });
                match store.commit(commit).await {
                    // An operator has dropped it just then.
                    Ok(_) | Err(CommitError::Conflict { .. }) => {}
                    Err(CommitError::Store(error)) => return Err(error),
                }
            }
            tokio::task::yield_now().await;
        }
    }
    Ok(())
}
