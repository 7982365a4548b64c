//! What becomes of a queued call that failed.
//!
//! Pure: no clock, no dice of its own.
//!
//! - A flood waits at least as long as Telegram says, and counts as no failure.
//! - What Telegram refused is over: the same call would fail the same way. What it refused because there is
//!   nothing left to do is done, and so is what succeeded and lost its result on the way.
//! - Trouble on the way is tried again, with growing waits, for a day: an outage loses nothing. Only when
//!   everybody else's calls succeed is a call given up earlier: then the trouble is its own, and its chat
//!   should not wait for it.

use std::time::Duration;

use crate::backoff;
use crate::telegram::{Error, Refusal};

/// A reply that is a day late answers nothing.
const MAX_AGE: Duration = Duration::from_secs(24 * 3600);
/// No query can be answered after this.
const MAX_AGE_URGENT: Duration = Duration::from_secs(60);
/// Some minutes of trying.
const MAX_FAILURES: u32 = 20;
/// While the token is refused, one call tries again after so long.
const REFUSED_TOKEN: Duration = Duration::from_secs(30);

/// The way a call has come.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct History {
    /// How often it failed, this time included. Floods don't count.
    pub(super) failures: u32,
    /// How long ago the first failure was.
    pub(super) since: Duration,
    /// Answers something that expires soon.
    pub(super) urgent: bool,
    /// Other calls are answered well.
    pub(super) others_succeed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Next {
    /// Over: as good as delivered.
    Done,
    /// Over: refused.
    Refused,
    /// Over: tried enough.
    GiveUp,
    /// The lane waits, then the call is tried again.
    Retry(Duration),
    /// The same, by Telegram's order.
    Flood(Duration),
    /// Everything waits: the token is refused.
    Halt(Duration),
}

pub(super) fn next(error: &Error, history: History, dice: f64) -> Next {
    let max_age = if history.urgent { MAX_AGE_URGENT } else { MAX_AGE };
    match error {
        Error::ResultLost { .. } => Next::Done,
        Error::Refused { .. } if error.refusal() == Some(Refusal::NoOp) => Next::Done,
        Error::Refused { .. } | Error::Conflict { .. } => Next::Refused,
        Error::Unauthorized { .. } => Next::Halt(REFUSED_TOKEN),
        Error::Flooded { retry_after, .. } if history.urgent && *retry_after > MAX_AGE_URGENT => Next::GiveUp,
        Error::Flooded { retry_after, .. } => Next::Flood(*retry_after + flood_jitter(*retry_after, dice)),
        _ if history.since > max_age => Next::GiveUp,
        _ if history.failures >= MAX_FAILURES && history.others_succeed => Next::GiveUp,
        _ => Next::Retry(backoff::delay(history.failures, dice)),
    }
}

/// Chats that were flooded together should not come back together.
fn flood_jitter(wait: Duration, dice: f64) -> Duration {
    const LEAST: Duration = Duration::from_millis(100);
    let most = (wait / 10).clamp(LEAST, Duration::from_secs(5));
    LEAST + (most - LEAST).mul_f64(dice.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn flooded(seconds: u64) -> Error {
        Error::Flooded { method: String::new(), retry_after: Duration::from_secs(seconds) }
    }

    fn unreachable() -> Error {
        Error::Unreachable { method: String::new(), reason: String::new() }
    }

    fn refused() -> Error {
        Error::Refused { method: String::new(), code: 400, description: String::new(), migrate_to: None }
    }

    const FRESH: History = History { failures: 1, since: Duration::ZERO, urgent: false, others_succeed: true };

    #[test]
    fn what_was_refused_is_over() {
        assert_eq!(next(&refused(), FRESH, 0.5), Next::Refused);
        let conflict = Error::Conflict { method: String::new(), webhook: false, description: String::new() };
        assert_eq!(next(&conflict, FRESH, 0.5), Next::Refused);
    }

    #[test]
    fn what_has_nothing_left_to_do_is_done() {
        let lost = Error::ResultLost { method: String::new(), reason: String::new() };
        assert_eq!(next(&lost, FRESH, 0.5), Next::Done);
        let same = Error::Refused {
            method: "editMessageText".to_owned(),
            code: 400,
            description: "message is not modified".to_owned(),
            migrate_to: None,
        };
        assert_eq!(next(&same, FRESH, 0.5), Next::Done);
    }

    #[test]
    fn an_outage_is_waited_out_for_a_day() {
        let outage = |hours: u64| History {
            failures: 5_000,
            since: Duration::from_secs(hours * 3600),
            urgent: false,
            others_succeed: false,
        };
        assert_eq!(next(&unreachable(), outage(23), 1.0), Next::Retry(backoff::CAP));
        assert_eq!(next(&unreachable(), outage(25), 1.0), Next::GiveUp);
    }

    #[test]
    fn a_call_that_fails_alone_does_not_hold_its_chat_for_a_day() {
        let alone = History { failures: MAX_FAILURES, ..FRESH };
        assert_eq!(next(&unreachable(), alone, 0.0), Next::GiveUp);
        assert_eq!(
            next(&unreachable(), History { failures: MAX_FAILURES - 1, ..alone }, 0.0),
            Next::Retry(Duration::ZERO)
        );
        assert_eq!(next(&unreachable(), History { others_succeed: false, ..alone }, 0.0), Next::Retry(Duration::ZERO));
    }

    #[test]
    fn nobody_waits_for_a_late_answer_to_a_query() {
        let urgent = History { urgent: true, ..FRESH };
        assert_eq!(next(&flooded(61), urgent, 0.0), Next::GiveUp);
        assert!(matches!(next(&flooded(3), urgent, 0.0), Next::Flood(_)));
        let late = History { since: Duration::from_secs(61), ..urgent };
        assert_eq!(next(&unreachable(), late, 0.0), Next::GiveUp);
    }

    proptest! {
        #[test]
        fn a_flood_is_never_shortened_and_hardly_lengthened(seconds in 1_u64..20_000, failures: u32, dice in 0.0..1.0) {
            let history = History { failures, since: Duration::from_secs(1 << 40), ..FRESH };
            let Next::Flood(wait) = next(&flooded(seconds), history, dice) else { panic!() };
            let told = Duration::from_secs(seconds);
            prop_assert!(wait > told && wait <= told + Duration::from_secs(5));
        }
    }
}
