//! Who is at work on what: for ending a run from outside, and for noticing one that does not end.
//!
//! A claim is held by a lane's turn from beginning to end, in memory only: when the process ends, so do all claims, and
//! what was not committed is simply there at the next start. Nothing rests on a claim for its truth. A run whose event
//! was settled by somebody else meanwhile can't commit, since every commit reads the event that it ends.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::domain::{Conversation, EventLane, PluginName};

/// How far beyond its time limit a run is ended from here: its own deadline did not work.
pub(super) const SLACK: Duration = Duration::from_secs(5);

/// Why a turn is to end at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// The user has ended the conversation.
    Cancelled,
    /// It is beyond all limits.
    Wedged,
}

/// What is under way.
#[derive(Default)]
pub(super) struct Claims(Mutex<HashMap<u64, Claim>>);

struct Claim {
    lane: EventLane,
    event: u64,
    run: Option<Run>,
    end: Option<oneshot::Sender<Why>>,
}

/// The run of one plugin within a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) plugin: PluginName,
    /// The version at work.
    pub(super) version: String,
    pub(super) conversation: Conversation,
    pub(super) began: Instant,
    /// Its time limit is over then.
    pub(super) due: Instant,
}

/// What the watchdog has found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Overdue {
    pub(super) turn: u64,
    pub(super) lane: EventLane,
    pub(super) event: u64,
    pub(super) run: Run,
    /// It was told to end and did not: its thread hangs.
    pub(super) is_deaf: bool,
}

/// Lets go of a claim when its turn ends, however it does.
pub(super) struct Held<'a> {
    claims: &'a Claims,
    turn: u64,
}

impl Claims {
    /// A turn begins. The receiver is told when it is to end at once.
    pub(super) fn take(&self, turn: u64, lane: EventLane, event: u64) -> (Held<'_>, oneshot::Receiver<Why>) {
        let (end, told) = oneshot::channel();
        self.lock().insert(turn, Claim { lane, event, run: None, end: Some(end) });
        (Held { claims: self, turn }, told)
    }

    /// The turn at `event` begins a plugin's run, or has ended it. (No two lanes have an event of the same number.)
    pub(super) fn set_run(&self, event: u64, run: Option<Run>) {
        if let Some(claim) = self.lock().values_mut().find(|claim| claim.event == event) {
            claim.run = run;
        }
    }

    /// The run that a turn is at.
    pub(super) fn run_of(&self, turn: u64) -> Option<Run> {
        self.lock().get(&turn)?.run.clone()
    }

    /// The run under way in a lane: its turn, its event and itself.
    pub(super) fn run_in(&self, lane: EventLane) -> Option<(u64, u64, Run)> {
        let claims = self.lock();
        let newest = claims.iter().filter(|(_, claim)| claim.lane == lane).max_by_key(|(turn, _)| **turn);
        newest.and_then(|(turn, claim)| Some((*turn, claim.event, claim.run.clone()?)))
    }

    /// Ends a turn.
    pub(super) fn end(&self, turn: u64, why: Why) {
        let told = self.lock().get_mut(&turn).and_then(|claim| claim.end.take());
        if let Some(told) = told {
            // It has just ended by itself.
            told.send(why).ok();
        }
    }

    /// The runs that are over their time by more than the slack, and those that are not ended by being told.
    pub(super) fn overdue(&self, now: Instant) -> Vec<Overdue> {
        let claims = self.lock();
        let overdue = claims.iter().filter_map(|(&turn, claim)| {
            let run = claim.run.as_ref().filter(|run| run.due + SLACK <= now)?;
            let is_deaf = claim.end.is_none();
            if is_deaf && run.due + SLACK + SLACK > now {
                return None;
            }
            Some(Overdue { turn, lane: claim.lane, event: claim.event, run: run.clone(), is_deaf })
        });
        overdue.collect()
    }

    /// Nobody waits for this turn any more.
    pub(super) fn forget(&self, turn: u64) {
        self.lock().remove(&turn);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Claim>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.claims.forget(self.turn);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{ChatId, Lane};

    const LANE: EventLane = EventLane { place: Lane::Chat(ChatId(1)), part: crate::domain::Part::Whole };

    fn run(limit: Duration) -> Run {
        let began = Instant::now();
        let version = "1".to_owned();
        Run { plugin: PluginName::new("a"), version, conversation: Conversation::default(), began, due: began + limit }
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_beyond_its_limit_is_told_to_end_and_then_given_up() {
        let claims = Claims::default();
        let (held, told) = claims.take(1, LANE, 9);
        let limit = Duration::from_secs(30);
        claims.set_run(9, Some(run(limit)));
        let begin = Instant::now();
        let at = |after| claims.overdue(begin + after);
        assert_eq!(at(limit + SLACK - Duration::from_millis(1)), []);
        let found = at(limit + SLACK);
        assert!(matches!(&found[..], [Overdue { turn: 1, event: 9, is_deaf: false, .. }]), "{found:?}");
        claims.end(1, Why::Wedged);
        assert_eq!(told.await, Ok(Why::Wedged));
        assert_eq!(at(limit + SLACK), [], "it has a moment for that");
        let found = at(limit + SLACK * 2);
        assert!(matches!(&found[..], [Overdue { turn: 1, is_deaf: true, .. }]), "{found:?}");
        drop(held);
        assert_eq!(at(limit + SLACK * 9), []);
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_between_runs_is_nobodys_time() {
        let claims = Claims::default();
        let (_held, _told) = claims.take(1, LANE, 9);
        claims.set_run(9, Some(run(Duration::from_secs(1))));
        claims.set_run(9, None);
        assert_eq!(claims.overdue(Instant::now() + Duration::from_secs(3600)), []);
        assert_eq!(claims.run_in(LANE), None);
    }

    #[tokio::test(start_paused = true)]
    async fn of_a_lane_that_was_freed_by_force_the_newest_turn_counts() {
        let claims = Claims::default();
        let (_deaf, _) = claims.take(1, LANE, 9);
        claims.set_run(9, Some(run(Duration::from_secs(1))));
        let (_held, _) = claims.take(2, LANE, 10);
        claims.set_run(10, Some(run(Duration::from_secs(1))));
        assert_eq!(claims.run_in(LANE).map(|(turn, event, _)| (turn, event)), Some((2, 10)));
    }
}
