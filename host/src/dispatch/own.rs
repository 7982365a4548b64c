//! Events that the host itself has made for one plugin: a timer that rang, a state that has ended.

use super::failure::Failure;
use super::routes::Routes;
use super::run::Context;
use crate::domain::{BotId, EventLane};
use crate::plugin::{self, Invocation};
use crate::store::rows::fsm::{self, StateRow};
use crate::store::rows::inbox::StoredEvent;
use crate::store::rows::language::Listener;
use crate::store::rows::timer;
use crate::store::{self, Tx};

impl Context {
    /// Runs the plugin that the event is for. `tx` holds the end of the event.
    pub(super) async fn run_own(
        &self,
        event: &StoredEvent,
        lane: EventLane,
        attempts: u32,
        routes: &Routes,
        mut invocation: Invocation,
        mut tx: Tx,
    ) -> Result<Result<Tx, Failure>, store::Error> {
        let (name, mut conversation) = match event {
            StoredEvent::Update(_) | StoredEvent::Cancel { .. } | StoredEvent::Job { .. } => {
                unreachable!("it is no event of the host's for a plugin")
            }
            StoredEvent::Timer { plugin, conversation, .. } | StoredEvent::Expired { plugin, conversation, .. } => {
                (plugin, *conversation)
            }
        };
        conversation.chat = self.current_chat(&mut tx, conversation.chat)?;
        let Some(version) = routes.find(name, &conversation, attempts) else {
            return Ok(Err(Failure::absent(name)));
        };
        if self.must_wait(name, invocation.id) {
            return Ok(Err(Failure::paused(name)));
        }
        if !self.shares.take(lane, name) {
            return Ok(Err(Failure::crowded(name)));
        }
        invocation.conversation = conversation;
        invocation.listener =
            Listener::of_conversation(conversation.user, conversation.chat, self.default_locale.clone());
        match event {
            StoredEvent::Update(_) | StoredEvent::Cancel { .. } | StoredEvent::Job { .. } => {}
            StoredEvent::Timer { id, name, payload, due, .. } => {
                invocation.event = plugin::Event::Timer(plugin::Timer {
                    id: *id,
                    name: name.clone(),
                    payload: payload.clone(),
                    due: *due,
                });
            }
            StoredEvent::Expired { state, .. } => {
                // Recorded as read: if it is set while this runs, it has not ended.
                let current = tx.get(&fsm::key(self.bot, name, &conversation))?;
                let current = current.and_then(|value| StateRow::decode(&value).ok());
                if current.is_some_and(|current| !current.is_expired(invocation.now)) {
                    metrics::counter!("botyard_events_total", "outcome" => "expired").increment(1);
                    return Ok(Ok(tx));
                }
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
        let (tx, result) = self.run(&version, &mut invocation, tx, false).await;
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
        StoredEvent::Update(_) | StoredEvent::Cancel { .. } | StoredEvent::Job { .. } | StoredEvent::Expired { .. } => {
            None
        }
    }
}
