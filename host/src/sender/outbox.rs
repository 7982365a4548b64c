//! What an operator asks of the calls that wait: how their lanes stand, and to take some of them out.
//!
//! The task that sends decides, so that a call is either made or cancelled: what is under way just then stays.

use std::time::Duration;

use tokio::sync::oneshot;

use super::Sender;
use crate::domain::Lane;

/// How a lane stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LaneView {
    /// The row that is being sent.
    pub in_flight: Option<u64>,
    /// How often its first row has failed in a row.
    pub failures: u32,
    /// How long nothing of it is sent, because of its limits, a flood or a failure.
    pub waits: Duration,
}

/// What became of a call that was to be cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancelled {
    /// It is out of the store.
    Done,
    /// It is being sent, or goes on with the text of one that is.
    UnderWay,
    /// It was sent already.
    Gone,
}

pub(super) enum Question {
    Look { lanes: Vec<Lane>, answer: oneshot::Sender<Vec<LaneView>> },
    Cancel { rows: Vec<(Lane, u64)>, answer: Reply },
}

pub(super) type Reply = oneshot::Sender<Vec<Cancelled>>;

impl Sender {
    /// How these lanes stand; `None` when nothing is sent any more.
    pub async fn look(&self, lanes: Vec<Lane>) -> Option<Vec<LaneView>> {
        let (answer, answered) = oneshot::channel();
        self.ask(Question::Look { lanes, answer });
        answered.await.ok()
    }

    /// Takes these rows out, those of a lane being in order, and answers when that is on disk; `None` when nothing is
    /// sent any more, and so nothing was done.
    pub async fn cancel(&self, rows: Vec<(Lane, u64)>) -> Option<Vec<Cancelled>> {
        let (answer, answered) = oneshot::channel();
        self.ask(Question::Cancel { rows, answer });
        answered.await.ok()
    }

    /// Drops it, which answers it, if nobody is there any more.
    fn ask(&self, question: Question) {
        let mut inbox = self.shared.inbox();
        if !inbox.closed {
            inbox.questions.push(question);
            self.shared.wake.notify_one();
        }
    }
}
