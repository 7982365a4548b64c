//! Chat actions ("typing …"): shown for five seconds, so they are made at once or not at all.
//!
//! They stand in no queue, count for no limit and hold nothing up. One is dropped where the chat has something to send
//! (which would end it anyway) or has to wait, where another is under way, and for a while after any failure.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::domain::Lane;
use crate::telegram::Error;

/// Too late to be of use.
pub(super) const DEADLINE: Duration = Duration::from_secs(5);
/// After a failure, the chat has none for so long.
const QUIET: Duration = Duration::from_secs(10);
const MOST_AT_ONCE: usize = 20;
/// More memories than this are looked through for old ones.
const MANY: usize = 1_000;

pub(super) const METHOD: &str = "sendChatAction";

/// True for the method of chat actions.
#[must_use]
pub fn is_chat_action(method: &str) -> bool {
    method.eq_ignore_ascii_case(METHOD)
}

/// The way to whoever waits for an answer.
pub(super) type Reply = oneshot::Sender<Result<Bytes, Error>>;

/// One to be made now.
pub(super) struct Action {
    pub(super) lane: Lane,
    pub(super) params: Bytes,
    /// Somebody who waits for the answer, and hears nothing if it is not made.
    pub(super) reply: Option<Reply>,
}

impl Action {
    pub(super) fn answer(self, result: Result<Bytes, Error>) {
        if let Some(reply) = self.reply {
            // Whoever went away needs no answer.
            reply.send(result).ok();
        }
    }

    /// Not made.
    pub(super) fn dropped(self) {
        metrics::counter!("botyard_send_dropped_total", "reason" => "chat_action").increment(1);
    }
}

/// Which are under way, and where there are none for now.
#[derive(Default)]
pub(super) struct Actions {
    under_way: HashSet<Lane>,
    quiet: HashMap<Lane, Instant>,
}

impl Actions {
    /// True if one may begin, which is then counted as under way.
    pub(super) fn begin(&mut self, lane: Lane, now: Instant) -> bool {
        let quiet = self.quiet.get(&lane).is_some_and(|until| *until > now);
        !quiet && self.under_way.len() < MOST_AT_ONCE && self.under_way.insert(lane)
    }

    pub(super) fn end(&mut self, lane: Lane, error: Option<&Error>, now: Instant) {
        self.under_way.remove(&lane);
        let quiet = match error {
            None => return,
            Some(Error::Flooded { retry_after, .. }) => (*retry_after).max(QUIET),
            Some(_) => QUIET,
        };
        if self.quiet.len() >= MANY {
            self.quiet.retain(|_, until| *until > now);
        }
        self.quiet.insert(lane, now + quiet);
    }
}
