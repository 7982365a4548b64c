//! What a run has to know of its chat: which id it has now, and whether somebody goes first.

use std::time::Duration;

use super::routes::Candidate;
use super::run::Context;
use crate::chats;
use crate::domain::{ChatId, EventLane, Lane, Part, UpdateView};
use crate::store::rows::inbox::{self, InboxRow, StoredEvent};
use crate::store::rows::{moved, prefix_end};
use crate::store::{self, Tx};

/// How soon a lane that lets another go first looks again.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// A move is told of once or twice.
const FEW: usize = 4;
/// What the two fields begin with that tell of a group's move.
const TELLS_OF_A_MOVE: &str = "\"migrate_";

impl Context {
    /// To be called before an event is handled. Where it tells that a group has become a supergroup, everything moves
    /// first. `Some` is for how long the lane has to wait: while its chat moves, and for the last events of the group
    /// that the chat was.
    pub(super) async fn make_way(
        &self,
        lane: EventLane,
        event: &StoredEvent,
    ) -> Result<Option<Duration>, store::Error> {
        let chat = match lane.place {
            Lane::Chat(chat) => Some(chat),
            // Where lanes follow people, only the event tells its chat. What they said in the group goes first as it is.
            Lane::User(_) => chat_of(event),
            _ => None,
        };
        let Some(chat @ ChatId(..0)) = chat else { return Ok(None) };
        self.move_if_told(event).await?;
        self.learn_of_a_move(chat).await?;
        let waits = self.is_moving(chat) || self.sender.chats().elder(lane.place)?.is_some();
        Ok(waits.then_some(LOOK_AGAIN))
    }

    /// What tells of a move may wait in a lane beside the others of the chat, and they must not go before it.
    pub(super) async fn learn_of_a_move(&self, chat: ChatId) -> Result<(), store::Error> {
        if chat.0 >= 0 {
            return Ok(());
        }
        let told = inbox::lane_prefix(self.bot, EventLane { place: Lane::Chat(chat), part: Part::Move });
        for (_, row) in self.store.range(&told, &prefix_end(&told), FEW)? {
            if let Ok(row) = InboxRow::decode(&row) {
                self.move_if_told(&row.event).await?;
            }
        }
        Ok(())
    }

    /// Moves a group of which an event tells that it has become a supergroup.
    async fn move_if_told(&self, event: &StoredEvent) -> Result<(), store::Error> {
        let Some((group, to)) = move_told_by(event).filter(|(group, to)| self.chat_now(*group) != *to) else {
            return Ok(());
        };
        match self.sender.chats().moved(group, to).await {
            Ok(()) => {}
            Err(chats::Error::Store(error)) => return Err(error),
            Err(error) => tracing::error!(%error, chat_id = group.0, "a group can't move"),
        }
        Ok(())
    }

    /// True while everything of this chat moves.
    pub(super) fn is_moving(&self, chat: ChatId) -> bool {
        self.sender.chats().is_moving(Lane::Chat(chat))
    }

    /// The id that a chat has by now, as far as is known.
    pub(super) fn chat_now(&self, chat: ChatId) -> ChatId {
        match self.sender.chats().lane(Lane::Chat(chat)) {
            Lane::Chat(now) => now,
            _ => chat,
        }
    }

    /// A lane, after the same one of the group that its chat was if something waits there still.
    pub(super) fn with_elder(&self, lane: EventLane) -> Result<Vec<EventLane>, store::Error> {
        let elder = self.sender.chats().elder(lane.place)?;
        Ok(elder.map(|place| EventLane { place, ..lane }).into_iter().chain([lane]).collect())
    }

    /// Lets the update be of the chat that its own is now, and writes down what it shows of it.
    pub(super) fn look_at_chat(&self, tx: &mut Tx, view: &mut UpdateView<'_>, now: u64) -> Result<(), store::Error> {
        let chat = self.current_chat(tx, view.chat)?;
        if chat == view.chat {
            return self.sender.chats().notice(view, tx, now);
        }
        view.chat = chat;
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

    pub(super) fn current_lane(&self, tx: &mut Tx, lane: EventLane) -> Result<EventLane, store::Error> {
        match lane.place {
            Lane::Chat(chat) => {
                moved::current(tx, self.bot, chat).map(|chat| EventLane { place: Lane::Chat(chat), ..lane })
            }
            _ => Ok(lane),
        }
    }
}

fn chat_of(event: &StoredEvent) -> Option<ChatId> {
    match event {
        StoredEvent::Update(raw) => UpdateView::parse(std::str::from_utf8(raw).ok()?).ok()?.chat,
        StoredEvent::Timer { conversation, .. }
        | StoredEvent::Job { conversation, .. }
        | StoredEvent::Expired { conversation, .. } => conversation.chat,
        StoredEvent::Cancel { .. } => None,
    }
}

fn move_told_by(event: &StoredEvent) -> Option<(ChatId, ChatId)> {
    let StoredEvent::Update(raw) = event else { return None };
    let raw = std::str::from_utf8(raw).ok()?;
    // Most events of groups tell nothing of the kind, and need not be read twice.
    if !raw.contains(TELLS_OF_A_MOVE) {
        return None;
    }
    UpdateView::parse(raw).ok()?.tells_of_a_move()
}
