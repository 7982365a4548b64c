//! Events that the host itself has made for one plugin: a timer that rang, a state that has ended.

use std::collections::BTreeSet;

use super::routes::Routes;
use super::run::{Context, Failure};
use crate::domain::{BotId, PluginName};
use crate::plugin::{self, Invocation};
use crate::store::rows::fsm::{self, StateRow};
use crate::store::rows::inbox::StoredEvent;
use crate::store::rows::timer;
use crate::store::{self, Tx};

impl Context {
    /// Runs the plugin that the event is for. `tx` holds the end of the event.
    pub(super) async fn run_own(
        &self,
        event: &StoredEvent,
        (routes, paused): (&Routes, &BTreeSet<PluginName>),
        mut invocation: Invocation,
        mut tx: Tx,
    ) -> Result<Result<Tx, Failure>, store::Error> {
        let (name, what) = match event {
            StoredEvent::Update(_) => unreachable!("an update is everybody's"),
            StoredEvent::Timer { plugin, .. } => (plugin, "set this timer"),
            StoredEvent::Expired { plugin, .. } => (plugin, "had this state"),
        };
        let Some(plugin) = routes.find(name) else {
            return Ok(Err(Failure::of_host(format!("plugin `{name}`, which {what}, is not configured"))));
        };
        if paused.contains(name) {
            return Ok(Err(Failure::paused(name)));
        }
        match event {
            StoredEvent::Update(_) => {}
            StoredEvent::Timer { conversation, id, name, payload, due, .. } => {
                invocation.conversation = *conversation;
                invocation.event = plugin::Event::Timer(plugin::Timer {
                    id: *id,
                    name: name.clone(),
                    payload: payload.clone(),
                    due: *due,
                });
            }
            StoredEvent::Expired { conversation, state, .. } => {
                // Recorded as read: if it is set while this runs, it has not ended.
                let current = tx.get(&fsm::key(self.bot, name, conversation))?;
                let current = current.and_then(|value| StateRow::decode(&value).ok());
                if current.is_some_and(|current| !current.is_expired(invocation.now)) {
                    metrics::counter!("botyard_events_total", "outcome" => "expired").increment(1);
                    return Ok(Ok(tx));
                }
                invocation.conversation = *conversation;
                invocation.event = plugin::Event::Expired(plugin::State {
                    name: state.name.clone(),
                    version: state.version,
                    bytes: state.bytes.clone(),
                });
            }
        }
        if let Some(key) = end_of(self.bot, event) {
            tx.delete(key);
        }
        let (tx, result) = self.run(plugin, &invocation, tx, false).await;
        if result.is_ok() {
            metrics::counter!("botyard_events_total", "outcome" => "handled").increment(1);
        }
        Ok(result.map(|_| tx))
    }
}

/// What ends with an event, besides itself.
pub(super) fn end_of(bot: BotId, event: &StoredEvent) -> Option<Vec<u8>> {
    match event {
        StoredEvent::Timer { plugin, id, .. } => Some(timer::waiting_key(bot, plugin, *id)),
        StoredEvent::Update(_) | StoredEvent::Expired { .. } => None,
    }
}
