//! The calls of broadcasts: made, and written down.

use metrics::counter;
use tokio::time::Instant;

use super::{Done, Loop, STORE_TROUBLE};
use crate::clock::unix_millis;
use crate::domain::{Lane, PluginName};
use crate::sender::attempt::attempt;
use crate::sender::broadcast::fate::{self, Fate};
use crate::sender::broadcast::{Attempt, Call, Cast};
use crate::sender::decide::{self, History, Next};
use crate::sender::schedule::End;
use crate::sender::weight::{weight_of, weight_of_failed};
use crate::sender::{CALL_DEADLINE, broadcast};
use crate::store::rows::broadcast::{FailureKind, HeadRow, Recipient};
use crate::store::rows::outbox::Priority;
use crate::store::rows::unknown::UnknownRow;
use crate::store::{self, Commit, CommitError, Op};
use crate::telegram::{Error, cast as params};
use crate::whose;

/// What came of a call.
pub(super) enum Outcome {
    Called(Result<(), Error>),
    /// It was not made.
    StoreFailed(store::Error),
}

impl Loop<'_> {
    /// Looks at what is wanted of broadcasts.
    pub(super) fn look_at_broadcasts(&mut self) -> Result<(), store::Error> {
        let now = Instant::now();
        let (store, ledger) = (&self.shared.store, &mut self.ledger);
        self.broadcasts.look(&mut self.schedule, now, &mut self.ops, |id, head, to, ops| {
            let row = entry(id, head, to, "the host ended while the call was under way");
            ledger.keep(store, &row, ops);
        })
    }

    pub(super) fn start_cast(&mut self, lane: Lane, cast: Cast) {
        let now = Instant::now();
        // In the store's one order: what is known of the recipient, and then that his call begins.
        self.write();
        let Some(Call { method, params, ops }) = self.broadcasts.begin(cast, &mut self.schedule, now) else {
            return self.schedule.finish(lane, End::CastDone, 0, None, now);
        };
        let begun = self.shared.store.commit(Commit { ops, ..Commit::default() });
        let (shared, gate) = (self.shared.clone(), self.gate.clone());
        self.calls.spawn(whose::same(async move {
            let durable = async {
                match begun.await {
                    Ok(receipt) => receipt.durable().await,
                    Err(CommitError::Store(error)) => Err(error),
                    Err(CommitError::Conflict { .. }) => unreachable!("a commit that has read nothing"),
                }
            };
            let outcome = match durable.await {
                Ok(()) => {
                    gate.pass(cast.paid).await;
                    Outcome::Called(attempt(&shared, lane, &method, params, &[], CALL_DEADLINE).await.map(drop))
                }
                Err(error) => Outcome::StoreFailed(error),
            };
            Done::Cast { lane, cast, outcome }
        }));
    }

    pub(super) fn finish_cast(&mut self, lane: Lane, cast: Cast, outcome: Outcome, now: Instant) {
        let result = match outcome {
            Outcome::Called(result) => result,
            Outcome::StoreFailed(error) => {
                tracing::error!(%error, "a broadcast's call can't be written down, and is not made");
                self.settle(cast, Fate::Again(STORE_TROUBLE), true, "", now);
                return self.schedule.finish(lane, End::CastDone, 0, None, now);
            }
        };
        let failed =
            result.as_ref().err().filter(|error| error.is_transient() || error.is_not_found()).map(Error::is_ambiguous);
        let Some(attempt) = self.broadcasts.attempt(cast, failed, now) else {
            return self.schedule.finish(lane, End::CastDone, 1, None, now);
        };
        let error = match result {
            Ok(()) => {
                self.note_success(now);
                self.settle(cast, Fate::Sent, false, "", now);
                let weight = weight_of(&attempt.method, &attempt.params);
                return self.schedule.finish(lane, End::CastDone, weight, None, now);
            }
            Err(error) => error,
        };
        let mut history = self.history_of(&attempt, &error, now);
        let doubt = decide::doubt(&error, &attempt.method, history.others_succeed);
        history.doubts = self.broadcasts.count_doubt(cast, doubt);
        let next = decide::next(&error, history, rand::random());
        let blocked_until = self.note_cast(lane, &error, next, now);
        let fate = fate::of(Err((&error, next)), cast.paid, attempt.ambiguous);
        let reason = error.to_string();
        tracing::debug!(broadcast = cast.job, ?fate, reason, "a broadcast's call was not delivered");
        if fate == Fate::Failed(FailureKind::Unknown) && !self.broadcasts.is_erased(cast) {
            let row = unknown(cast.job, &attempt, lane, &reason);
            self.ledger.keep(&self.shared.store, &row, &mut self.ops);
        }
        self.settle(cast, fate, fate::is_free(&error), &reason, now);
        let weight = weight_of_failed(&error, &attempt.method, &attempt.params);
        self.schedule.finish(lane, End::CastDone, weight, blocked_until, now);
    }

    fn settle(&mut self, cast: Cast, fate: Fate, is_free: bool, reason: &str, now: Instant) {
        self.broadcasts.settle(cast, fate, is_free, reason, &mut self.schedule, now, &mut self.ops);
    }

    /// What an answer means for the others; until when the lane is blocked by it.
    fn note_cast(&mut self, lane: Lane, error: &Error, next: Next, now: Instant) -> Option<Instant> {
        match next {
            Next::Done | Next::Refused => self.note_success(now),
            Next::Retry(_) => self.note_trouble(error),
            Next::Flood(wait) => {
                counter!("botyard_broadcast_calls_total", "outcome" => "flooded").increment(1);
                self.note_flood(lane, wait, now);
                return Some(now + wait);
            }
            Next::Halt(wait) => self.halt(error, now + wait),
            Next::GiveUp | Next::Unknown => {}
        }
        None
    }

    fn history_of(&self, attempt: &Attempt, error: &Error, now: Instant) -> History {
        let failing = if error.is_transient() || error.is_not_found() { attempt.failing } else { super::HEALTHY };
        History {
            failures: attempt.failures,
            // Since it began to fail: a broadcast may take days, and nobody's turn is late.
            age: attempt.failing,
            max_age: decide::max_age(Priority::Bulk),
            urgent: false,
            at_most_once: attempt.at_most_once,
            doubts: 0,
            others_succeed: self.last_success.is_some_and(|at| now - at < failing.min(super::HEALTHY)),
            reachable: matches!(error, Error::ServerError { .. }),
        }
    }

    /// What the broadcasts have to be told of a lane that is blocked.
    pub(super) fn casts_blocked(&mut self, lane: Lane, until: Instant, now: Instant) {
        self.broadcasts.blocked(lane, until, &mut self.schedule, now);
    }

    pub(super) fn feed_broadcasts(&mut self, now: Instant) {
        self.broadcasts.feed(&mut self.schedule, now, &mut self.ops);
    }
}

fn unknown(id: u64, attempt: &Attempt, lane: Lane, reason: &str) -> UnknownRow {
    UnknownRow {
        plugin: owner(&attempt.owner),
        event: 0,
        method: attempt.method.clone(),
        lane,
        at: unix_millis(),
        maybe_sent: true,
        reason: format!("broadcast {id}: {reason}"),
        params: String::from_utf8_lossy(&attempt.params).into_owned(),
    }
}

fn entry(id: u64, head: &HeadRow, to: &Recipient, reason: &str) -> UnknownRow {
    UnknownRow {
        plugin: owner(&head.owner),
        event: 0,
        method: head.method.clone(),
        lane: broadcast::lane(to),
        at: unix_millis(),
        maybe_sent: true,
        reason: format!("broadcast {id}: {reason}"),
        params: params::for_one(&head.params, to),
    }
}

fn owner(plugin: &str) -> String {
    if plugin.is_empty() { "(operator)".to_owned() } else { PluginName::new(plugin).as_str().to_owned() }
}

impl Loop<'_> {
    /// The ops of broadcasts that are not among the others yet.
    pub(super) fn write_broadcasts(&mut self) {
        let ops: &mut Vec<Op> = &mut self.ops;
        self.broadcasts.write_all(ops);
    }
}
