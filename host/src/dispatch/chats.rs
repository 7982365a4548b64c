//! What a run has to know of its chat: which id it has now, and whether somebody goes first.

use std::time::Duration;

use super::routes::Candidate;
use super::run::Context;
use crate::chats;
use crate::domain::{ChatId, Lane, UpdateView};
use crate::store::rows::inbox::StoredEvent;
use crate::store::rows::moved;
use crate::store::{self, Tx};

/// How soon a lane that lets another go first looks again.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// What the two fields begin with that tell of a group's move.
const TELLS_OF_A_MOVE: &str = "\"migrate_";

impl Context {
    /// To be called before an event is handled. Where it tells that a group has become a supergroup, everything moves
    /// first. `Some` is for how long the lane has to wait: while its chat moves, and for the last events of the group
    /// that the chat was.
    pub(super) async fn make_way(&self, lane: Lane, event: &StoredEvent) -> Result<Option<Duration>, store::Error> {
        let Lane::Chat(ChatId(..0)) = lane else { return Ok(None) };
        let chats = self.sender.chats();
        if let Some((group, to)) = move_told_by(event) {
            match chats.moved(group, to).await {
                Ok(()) => {}
                Err(chats::Error::Store(error)) => return Err(error),
                Err(error) => tracing::error!(%error, chat_id = group.0, "a group can't move"),
            }
        }
        let waits = chats.is_moving(lane) || chats.must_wait_for_elder(lane)?;
        Ok(waits.then_some(LOOK_AGAIN))
    }

    /// Lets the update be of the chat that its own is now, and writes down what it shows of it.
    pub(super) fn look_at_chat(&self, tx: &mut Tx, view: &mut UpdateView<'_>) -> Result<(), store::Error> {
        let now = self.current_chat(tx, view.chat)?;
        if now == view.chat {
            return self.sender.chats().notice(view, tx);
        }
        view.chat = now;
        Ok(())
    }

    /// Those whose operator lets them have such events.
    pub(super) fn granted(
        &self,
        mut candidates: Vec<Candidate>,
        view: &UpdateView<'_>,
        tx: &mut Tx,
    ) -> Result<Vec<Candidate>, store::Error> {
        let chat = view.chat.map(|chat| (chat, view.chat_type.as_deref()));
        let mut failed = None;
        candidates.retain(|candidate| {
            let offered = candidate.version.plugin.is_offered(&view.kind, chat, tx, self.bot);
            offered.unwrap_or_else(|error| {
                failed = Some(error);
                false
            })
        });
        failed.map_or(Ok(candidates), Err)
    }

    pub(super) fn current_chat(&self, tx: &mut Tx, chat: Option<ChatId>) -> Result<Option<ChatId>, store::Error> {
        chat.map(|chat| moved::current(tx, self.bot, chat)).transpose()
    }

    pub(super) fn current_lane(&self, tx: &mut Tx, lane: Lane) -> Result<Lane, store::Error> {
        match lane {
            Lane::Chat(chat) => moved::current(tx, self.bot, chat).map(Lane::Chat),
            other => Ok(other),
        }
    }
}

fn move_told_by(event: &StoredEvent) -> Option<(ChatId, ChatId)> {
    let StoredEvent::Update(raw) = event else { return None };
    let raw = std::str::from_utf8(raw).ok()?;
    // Most events of groups tell nothing of the kind, and need not be read twice.
    if !raw.contains(TELLS_OF_A_MOVE) {
        return None;
    }
    let view = UpdateView::parse(raw).ok()?;
    view.moved.filter(|_| view.kind == "message")
}
