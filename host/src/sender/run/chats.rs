//! What the loop learns of chats and tells of them: which lanes are of one chat, who has to wait, who is gone.

use tokio::time::Instant;

use super::{Loop, VERY_LONG_FLOOD};
use crate::domain::Lane;
use crate::telegram::{Error, Refusal, chats_of, is_of_name};

impl Loop<'_> {
    pub(super) fn note_wait(&mut self, lane: Lane, until: Instant, now: Instant) {
        self.floods.note(lane, until, now);
        if until - now > VERY_LONG_FLOOD {
            self.shared.long_floods.send_modify(|chats| {
                chats.retain(|_, until| *until > now);
                chats.insert(lane, until);
            });
        }
    }

    /// A chat that has shut the bot out is marked as one that can't be reached.
    pub(super) fn note_refusal(&self, lane: Lane, params: &[u8], error: &Error) {
        let Lane::Chat(chat) = self.shared.chats.lane(lane) else { return };
        if let (Some(Refusal::ChatGone), Error::Refused { code, description, .. }) = (error.refusal(), error)
            // Where a call names two chats, it may be the other one that is not there.
            && std::str::from_utf8(params).is_ok_and(|params| chats_of(params).len() <= 1)
            && !is_of_name(Lane::Chat(chat))
        {
            self.shared.chats.shut_out(chat, *code, description);
        }
    }

    /// Lanes that have turned out to be of one chat go on as one.
    pub(super) fn join_lanes(&mut self, now: Instant) {
        if self.lanes_changed.has_changed().unwrap_or(false) {
            self.lanes_changed.mark_unchanged();
            for lane in self.schedule.lanes_with_other_names() {
                self.join_lane(lane, now);
            }
        }
    }

    pub(super) fn join_lane(&mut self, lane: Lane, now: Instant) {
        let chat = self.shared.chats.lane(lane);
        if chat != lane {
            self.schedule.join(lane, chat, now);
        }
    }
}
