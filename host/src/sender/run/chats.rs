//! What the loop learns of chats and tells of them: which lanes are of one chat, who has to wait, who is gone.

use std::time::Duration;

use tokio::time::Instant;

use super::{Loop, VERY_LONG_FLOOD, millis};
use crate::clock::unix_millis;
use crate::domain::Lane;
use crate::store::rows::flood::{self, FloodRow};
use crate::store::rows::prefix_end;
use crate::store::{self, Op};
use crate::telegram::{Error, Refusal, chats_of, is_of_name};

impl Loop<'_> {
    /// Goes on waiting where an earlier process was told to.
    pub(super) fn wait_on(&mut self, now: Instant) -> Result<(), store::Error> {
        let (prefix, unix_now) = (flood::bot_prefix(self.shared.bot), unix_millis());
        for (key, value) in self.shared.store.range(&prefix, &prefix_end(&prefix), usize::MAX)? {
            let until = FloodRow::decode(&value).map_or(0, |row| row.until);
            match flood::parse_key(&key) {
                Some(lane) if until > unix_now => {
                    let until = now + Duration::from_millis(until - unix_now);
                    for lane in [lane, self.shared.chats.lane(lane)] {
                        self.schedule.block(lane, until, now);
                    }
                    self.tell_of_wait(lane, until, now);
                }
                _ => self.ops.push(Op::Delete { key: key.to_vec() }),
            }
        }
        Ok(())
    }

    /// The lane waits, also in the next process.
    pub(super) fn note_wait(&mut self, lane: Lane, until: Instant, now: Instant) {
        let until = self.tell_of_wait(lane, until, now);
        let row = FloodRow { until: unix_millis().saturating_add(millis(until - now)) };
        self.ops.push(Op::Put { key: flood::key(self.shared.bot, lane), value: row.encode() });
    }

    pub(super) fn forget_waits(&mut self, now: Instant) {
        for lane in self.floods.forget_past(now) {
            self.ops.push(Op::Delete { key: flood::key(self.shared.bot, lane) });
        }
    }

    fn tell_of_wait(&mut self, lane: Lane, until: Instant, now: Instant) -> Instant {
        let until = self.floods.note(lane, until);
        if until - now > VERY_LONG_FLOOD {
            self.shared.long_floods.send_modify(|chats| {
                chats.retain(|_, until| *until > now);
                chats.insert(lane, until);
            });
        }
        until
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
