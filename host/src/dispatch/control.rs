//! A user's order to end their conversation, `/cancel` by default, which must not wait behind the handler it is meant for.
//!
//! Intake stores such a message in its place like any other, and an order in a lane of its own just before it, which is
//! looked at although the conversation's lane is busy and all places are taken. What is in the way is ended first: the
//! user's run that is under way, or their event that fails again and again. It becomes a dead letter; what else came
//! before stays and goes on. Then one commit clears the user's states, removes the message and says so.
//!
//! Where a group has become a supergroup meanwhile, what is in the way may still wait, or run, as the group's: it is looked
//! for there first, and the states are those of the id that the chat has now.
//!
//! Only the user's own: a run or a state of a plugin counts if it is of the conversation that this user, in this place,
//! is in by that plugin's key. Where there is nothing to end, the message is one like any other. It is so too for a bot
//! with a plugin that has the command itself, unless a handler hangs.

use std::time::Duration;

use super::claims::{Run, Why};
use super::failure::Failure;
use super::open::conversation;
use super::routes::{Entry, Facts};
use super::run::{Context, Head, Outcome};
use crate::clock::unix_millis;
use crate::domain::{Conversation, EventLane, Part, PluginName, UpdateView};
use crate::store::rows::fsm::{self, StateRow};
use crate::store::rows::inbox::{self, InboxRow, StoredEvent};
use crate::store::rows::outbox::{self, Delivery, Fallback, OutboxRow, Priority};
use crate::store::{self, CommitError, Tx};
use crate::telegram::lane_of;

/// Where a plugin has the command itself, a handler that runs longer than this hangs.
const HANGS_AFTER: Duration = Duration::from_secs(2);
/// How long until it is looked again at what came before.
const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// The same where something was just ended.
const LOOK_SOON: Duration = Duration::from_millis(5);

/// How things stand when an order is looked at.
#[derive(Debug, Clone, Copy, Default)]
struct Situation {
    /// A plugin has the command itself.
    is_a_plugins: bool,
    /// For how long a run of this conversation has been under way.
    running: Option<Duration>,
    /// The user's event at the head of the lane has failed before.
    fails: bool,
    /// The user has an open state.
    open: bool,
    /// Something was ended for this order already.
    ended: bool,
    /// Other events came before.
    ahead: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// End the run.
    EndRun,
    /// Set the failing event aside.
    SetAside,
    /// Clear the states and say so.
    Finish,
    /// Look again.
    Wait(Duration),
    /// Nothing is to be done: the message is one like any other.
    Leave,
}

fn decide(at: Situation) -> Step {
    let patience = if at.is_a_plugins { HANGS_AFTER } else { Duration::ZERO };
    match at.running {
        Some(running) if running >= patience => return Step::EndRun,
        Some(running) => return Step::Wait(patience - running),
        None if at.fails => return Step::SetAside,
        None => {}
    }
    if at.ended || (at.open && !at.is_a_plugins) {
        Step::Finish
    } else if at.ahead {
        Step::Wait(LOOK_AGAIN)
    } else {
        Step::Leave
    }
}

impl Context {
    /// Whether the message at the head of a lane is an order that is still being looked at.
    pub(super) fn is_being_ordered(&self, head: &Head, view: &UpdateView<'_>) -> Result<bool, store::Error> {
        let (Some(user), Some(before), Some(_)) = (view.user, head.number.checked_sub(1), view.command()) else {
            return Ok(false);
        };
        let lane = EventLane { place: head.lane.place, part: Part::Control(user) };
        Ok(self.store.get(&inbox::key(self.bot, lane, before))?.is_some())
    }

    /// Looks at an order once.
    pub(super) async fn control(
        &self,
        order: &Head,
        lane: EventLane,
        ended: Option<PluginName>,
    ) -> Result<Outcome, store::Error> {
        let done = |lanes| Outcome::Freed { more: order.more, lanes };
        let number = order.number + 1;
        let key = inbox::key(self.bot, lane, number);
        let Some(value) = self.store.get(&key)? else {
            self.settle(order, |tx| tx.delete(order.key.clone())).await?;
            return Ok(done(vec![lane]));
        };
        let raw = match InboxRow::decode(&value).map(|row| row.event) {
            Ok(StoredEvent::Update(raw)) => raw,
            _ => Vec::new(),
        };
        let raw = String::from_utf8_lossy(&raw);
        let mut view = UpdateView::parse(&raw).unwrap_or_default();
        let username = self.username.load();
        let facts = Facts::of(&view, username.as_deref().map(String::as_str), 0);
        if facts.command.is_none() {
            self.settle(order, |tx| tx.delete(order.key.clone())).await?;
            return Ok(done(vec![lane]));
        }
        if let Some(chat) = view.chat {
            self.learn_of_a_move(chat).await?;
            if self.is_moving(chat) {
                return Ok(Outcome::Rest(LOOK_SOON));
            }
        }

        let lanes = self.with_elder(lane)?;
        let routes = self.routes.load_full();
        let is_a_plugins = routes.has_command(&facts);
        let mut tx = Tx::new(&self.store);
        self.look_at_chat(&mut tx, &mut view, unix_millis())?;
        let mut runs = lanes.iter().filter_map(|lane| self.claims.run_in(*lane));
        let run = runs.find(|(_, event, run)| *event < number && self.is_of(run, &view));
        let mut ahead = Vec::new();
        for lane in &lanes {
            ahead.extend(self.head(*lane)?.filter(|head| head.number < number));
        }
        let is_ahead = !ahead.is_empty();
        let failing = ahead.into_iter().find(|head| run.is_none() && self.has_failed(head, &view));
        let open = self.open_states(&mut tx, &view)?;
        let situation = Situation {
            is_a_plugins,
            running: run.as_ref().map(|(.., run)| run.began.elapsed()),
            fails: failing.is_some(),
            open: !open.is_empty(),
            ended: ended.is_some(),
            ahead: is_ahead,
        };
        match decide(situation) {
            Step::EndRun => {
                let Some((turn, event, run)) = run else { return Ok(Outcome::Rest(LOOK_SOON)) };
                tracing::info!(plugin = %run.plugin, event, %lane, "a run is ended, as its user wishes");
                self.keep_ended(order, lane, &run.plugin).await?;
                self.claims.end(turn, Why::Cancelled);
                Ok(Outcome::Rest(LOOK_SOON))
            }
            Step::SetAside => {
                if let Some(head) = failing {
                    self.keep_ended(order, lane, &PluginName::new("")).await?;
                    if let Ok(row) = InboxRow::decode(&head.value) {
                        let head = self.with_album(head, &row)?;
                        self.set_aside(&head, row, Failure::cancelled(None)).await?;
                    }
                }
                Ok(Outcome::Rest(LOOK_SOON))
            }
            Step::Finish => {
                let plugin = open.first().map(|(plugin, _)| plugin).or(ended.as_ref()).cloned();
                if tx.get(&order.key)?.as_ref() != Some(&order.value) || tx.get(&key)?.as_ref() != Some(&value) {
                    return Ok(Outcome::Rest(LOOK_SOON));
                }
                tx.delete(order.key.clone());
                tx.delete(key);
                for (plugin, conversation) in &open {
                    tx.delete(fsm::key(self.bot, plugin, conversation));
                    // Nor is it to come back should a version on trial be rolled back.
                    tx.delete(fsm::before_key(self.bot, plugin, conversation));
                }
                self.say_cancelled(&mut tx, &view, plugin.as_ref(), number)?;
                match self.store.commit(self.with_notices(tx.into_commit(), Vec::new())).await {
                    Ok(_) => {
                        tracing::info!(event = number, %lane, states = open.len(), "a conversation is ended, as its user wishes");
                        metrics::counter!("botyard_events_total", "outcome" => "cancelled").increment(1);
                        Ok(done(lanes))
                    }
                    Err(CommitError::Conflict { .. }) => Ok(Outcome::Rest(LOOK_SOON)),
                    Err(CommitError::Store(error)) => Err(error),
                }
            }
            Step::Wait(rest) => Ok(Outcome::Rest(rest)),
            Step::Leave => {
                self.settle(order, |tx| tx.delete(order.key.clone())).await?;
                Ok(done(lanes))
            }
        }
    }

    /// Writes down, before something is ended, that it is for this order: the message is no longer one like any other.
    async fn keep_ended(&self, order: &Head, lane: EventLane, plugin: &PluginName) -> Result<(), store::Error> {
        let row = InboxRow::new(StoredEvent::Cancel { lane, ended: Some(plugin.clone()) }, unix_millis());
        self.settle(order, |tx| tx.put(order.key.clone(), row.encode())).await?;
        Ok(())
    }

    /// Whether a run is of the conversation that this user, in this place, is in by the plugin's key.
    fn is_of(&self, run: &Run, view: &UpdateView<'_>) -> bool {
        // It may have begun before its group moved.
        let chat = run.conversation.chat.map(|chat| self.chat_now(chat));
        let of = Conversation { chat, ..run.conversation };
        let routes = self.routes.load();
        let mut versions = routes.entry(&run.plugin).into_iter().flat_map(Entry::versions);
        versions.any(|plugin| conversation(plugin, view) == of)
    }

    /// Whether the event at the head of a lane is this user's and has failed before.
    fn has_failed(&self, head: &Head, view: &UpdateView<'_>) -> bool {
        let Ok(InboxRow { attempts: 1.., event: StoredEvent::Update(raw), .. }) = InboxRow::decode(&head.value) else {
            return false;
        };
        let raw = String::from_utf8_lossy(&raw);
        let Ok(other) = UpdateView::parse(&raw) else { return false };
        other.user == view.user && other.chat.map(|chat| self.chat_now(chat)) == view.chat
    }

    /// The conversations with this user in this place that plugins hold open.
    fn open_states(&self, tx: &mut Tx, view: &UpdateView<'_>) -> Result<Vec<(PluginName, Conversation)>, store::Error> {
        let now = unix_millis();
        let mut open = Vec::new();
        for plugin in self.routes.load().entries().iter().flat_map(Entry::versions) {
            let found = (plugin.name.clone(), conversation(plugin, view));
            let row = tx.get(&fsm::key(self.bot, &found.0, &found.1))?;
            let is_open = row.is_some_and(|row| StateRow::decode(&row).map_or(true, |row| !row.is_expired(now)));
            if is_open && !open.contains(&found) {
                open.push(found);
            }
        }
        Ok(open)
    }

    /// In the words of the plugin whose conversation it was, if it has some for it.
    fn say_cancelled(
        &self,
        tx: &mut Tx,
        view: &UpdateView<'_>,
        plugin: Option<&PluginName>,
        event: u64,
    ) -> Result<(), store::Error> {
        let Some(chat) = view.chat else { return Ok(()) };
        let locale = self.listener(view).language(tx, self.bot)?;
        let routes = self.routes.load();
        let own = plugin.and_then(|plugin| {
            let mut versions = routes.entry(plugin)?.versions();
            versions.find_map(|version| version.translate(&locale, "cancelled", &[]))
        });
        let text = own.unwrap_or_else(|| self.cancel_reply.clone());
        let mut params = serde_json::json!({ "chat_id": chat.0, "text": text });
        if let Some(thread) = view.thread {
            params["message_thread_id"] = thread.0.into();
        }
        let (method, params) = ("sendMessage".to_owned(), params.to_string());
        let lane = lane_of(&method, &params);
        let row = OutboxRow {
            plugin: plugin.cloned().unwrap_or_else(|| PluginName::new("")),
            carries: 0,
            event,
            method,
            params,
            priority: Priority::Interactive,
            attempts: 0,
            follows: false,
            queued: unix_millis(),
            delivery: Delivery::AtLeastOnce,
            begun: 0,
            files: Vec::new(),
            fallback: Fallback::None,
        };
        tx.append(outbox::lane_prefix(self.bot, lane), row.encode());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_about_an_order() {
        let at = Situation::default();
        let (running, seconds) = (|secs| Some(Duration::from_secs(secs)), Duration::from_secs);
        for (situation, step) in [
            (at, Step::Leave),
            (Situation { ahead: true, ..at }, Step::Wait(LOOK_AGAIN)),
            (Situation { open: true, ..at }, Step::Finish),
            (Situation { open: true, ahead: true, ..at }, Step::Finish),
            (Situation { running: running(0), ahead: true, ..at }, Step::EndRun),
            (Situation { running: running(0), open: true, ahead: true, ..at }, Step::EndRun),
            (Situation { ended: true, ..at }, Step::Finish),
            (Situation { fails: true, ahead: true, ..at }, Step::SetAside),
            // A plugin's own command has its turn, unless something hangs.
            (Situation { is_a_plugins: true, open: true, ..at }, Step::Leave),
            (Situation { is_a_plugins: true, open: true, ahead: true, ..at }, Step::Wait(LOOK_AGAIN)),
            (Situation { is_a_plugins: true, running: running(1), ahead: true, ..at }, Step::Wait(seconds(1))),
            (Situation { is_a_plugins: true, running: running(2), ahead: true, ..at }, Step::EndRun),
            (Situation { is_a_plugins: true, fails: true, ahead: true, ..at }, Step::SetAside),
            (Situation { is_a_plugins: true, ended: true, ..at }, Step::Finish),
        ] {
            assert_eq!(decide(situation), step, "{situation:?}");
        }
    }
}
