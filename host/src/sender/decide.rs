//! What becomes of a queued call that failed.
//!
//! Pure: no clock, no dice of its own.
//!
//! - A flood waits at least as long as Telegram says, and counts as no failure.
//! - What Telegram refused is over: the same call would fail the same way. What it refused because there is
//!   nothing left to do is done, and so is what succeeded and lost its result on the way.
//! - Trouble on the way is tried again, with growing waits, whatever the trouble is; one budget counts it all. What
//!   may have taken effect is tried again only if the call is to be made at least once, and twice at most where nobody said
//!   anything and doing it again would do it twice. A server that answers with an error has rarely done it: five times
//!   then, and only while others succeed does that count, since else it is an outage. A connection that breaks says least.
//! - An outage loses nothing, however long it is: a call is given up for its age or its failures only when others
//!   succeed meanwhile. Then the trouble is its own, and its chat should not wait for it. Where nobody else sends
//!   anything, but a server answers, that takes a day.
//! - An old call that does not fail is sent: age alone ends nothing, since a chat that had to wait for hours, by a
//!   flood or an outage, has not had its answer yet. Queries are the exception: nobody can answer a late one.

use std::time::Duration;

use crate::backoff;
use crate::store::rows::outbox::Priority;
use crate::telegram::{Error, Refusal};

/// Somebody waits for it, and has turned away by then.
const MAX_AGE_INTERACTIVE: Duration = Duration::from_secs(600);
const MAX_AGE_NORMAL: Duration = Duration::from_secs(3600);
const MAX_AGE_BULK: Duration = Duration::from_secs(24 * 3600);
/// Where it is not known whether others succeed, and for a chat that is flooded again and again.
const MAX_AGE: Duration = Duration::from_secs(24 * 3600);
/// No query can be answered after this.
const MAX_AGE_URGENT: Duration = Duration::from_secs(60);
/// Some minutes of trying.
const MAX_FAILURES: u32 = 20;
/// However old it is, one bad moment must not end it.
const MIN_FAILURES: u32 = 6;
/// With more [`doubt`] than this, a call is not made again: after three times silence, six errors of the server's, or twelve
/// connections that broke.
const MOST_DOUBT: u32 = 11;
/// The [`doubt`] where nobody said anything.
pub(super) const SILENCE: u32 = 4;
/// Beginnings of methods that leave things as they are when they are called again.
const REPEATABLE: [&str; 22] = [
    "get",
    "set",
    "edit",
    "delete",
    "pin",
    "unpin",
    "answer",
    "stop",
    "ban",
    "unban",
    "restrict",
    "promote",
    "approve",
    "decline",
    "close",
    "reopen",
    "leave",
    "hide",
    "unhide",
    "read",
    "remove",
    "sendChatAction",
];
/// While the token is refused, one call tries again after so long.
const REFUSED_TOKEN: Duration = Duration::from_secs(30);

/// The way a call has come.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct History {
    /// How often it failed, this time included. Floods don't count.
    pub(super) failures: u32,
    /// How long ago it was asked for.
    pub(super) age: Duration,
    /// How old it may grow while others succeed.
    pub(super) max_age: Duration,
    /// Answers something that expires soon.
    pub(super) urgent: bool,
    /// It is not made again if it may have taken effect.
    pub(super) at_most_once: bool,
    /// The [`doubt`] of all its failures, this one included.
    pub(super) doubts: u32,
    /// Calls in other lanes have succeeded while this one failed.
    pub(super) others_succeed: bool,
    /// A server has answered, though not well: there is no such outage that lasts a day.
    pub(super) reachable: bool,
}

impl History {
    fn is_used_up(&self) -> bool {
        if self.urgent {
            return self.age > MAX_AGE_URGENT;
        }
        let old = self.failures >= MIN_FAILURES && self.age > self.max_age;
        let old_for_anybody = self.failures >= MIN_FAILURES && self.age > MAX_AGE;
        (self.others_succeed && (old || self.failures >= MAX_FAILURES)) || (self.reachable && old_for_anybody)
    }
}

/// How old a call may grow while others succeed.
pub(super) fn max_age(priority: Priority) -> Duration {
    match priority {
        Priority::Interactive => MAX_AGE_INTERACTIVE,
        Priority::Normal => MAX_AGE_NORMAL,
        Priority::Bulk => MAX_AGE_BULK,
    }
}

/// Whether it makes no difference how often the method is called.
pub(super) fn is_repeatable(method: &str) -> bool {
    let begins = |with: &&str| method.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with));
    REPEATABLE.iter().any(begins)
}

/// How likely the call has taken effect, where another would do it twice. A server that has trouble with everybody has
/// done nothing, and a call must outlast that.
pub(super) fn doubt(error: &Error, method: &str, others_succeed: bool) -> u32 {
    match error {
        _ if !error.is_ambiguous() || is_repeatable(method) => 0,
        Error::ServerError { .. } => {
            if others_succeed {
                2
            } else {
                0
            }
        }
        // Whoever takes a call and says nothing may well be at it.
        Error::UnknownOutcome { silent: true, .. } => SILENCE,
        _ => 1,
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Next {
    /// Over: as good as delivered.
    Done,
    /// Over: refused.
    Refused,
    /// Over: tried enough, or too old.
    GiveUp,
    /// Over: it may have taken effect, which must not happen twice, or not once more.
    Unknown,
    /// The lane waits, then the call is tried again.
    Retry(Duration),
    /// The same, by Telegram's order.
    Flood(Duration),
    /// Everything waits: the token is refused.
    Halt(Duration),
}

pub(super) fn next(error: &Error, history: History, dice: f64) -> Next {
    match error {
        Error::ResultLost { .. } => Next::Done,
        Error::Refused { .. } if error.refusal() == Some(Refusal::NoOp) => Next::Done,
        Error::Refused { .. } | Error::Conflict { .. } => Next::Refused,
        // Others go through with the same token, so it is the method that is not there.
        Error::Unauthorized { .. } if error.is_not_found() && history.others_succeed => Next::Refused,
        Error::Unauthorized { .. } => Next::Halt(REFUSED_TOKEN),
        Error::Flooded { retry_after, .. } if history.urgent && *retry_after > MAX_AGE_URGENT => Next::GiveUp,
        Error::Flooded { .. } if history.age > MAX_AGE && history.others_succeed => Next::GiveUp,
        Error::Flooded { retry_after, .. } => Next::Flood(*retry_after + flood_jitter(*retry_after, dice)),
        _ if error.is_ambiguous() && (history.at_most_once || history.doubts > MOST_DOUBT) => Next::Unknown,
        _ if history.is_used_up() => Next::GiveUp,
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

    const FRESH: History = History {
        failures: 1,
        age: Duration::ZERO,
        max_age: MAX_AGE_INTERACTIVE,
        urgent: false,
        at_most_once: false,
        doubts: 0,
        others_succeed: true,
        reachable: true,
    };

    fn hours(hours: u64) -> Duration {
        Duration::from_secs(hours * 3600)
    }

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
    fn an_outage_is_waited_out_however_long_it_is() {
        let outage = History { failures: 5_000, others_succeed: false, reachable: false, ..FRESH };
        for age in [0, 23, 25, 24 * 30] {
            let outage = History { age: hours(age), ..outage };
            assert_eq!(next(&unreachable(), outage, 1.0), Next::Retry(backoff::CAP));
            // The first calls after it may still fail.
            let after = History { failures: MIN_FAILURES - 1, others_succeed: true, reachable: true, ..outage };
            assert!(matches!(next(&unreachable(), after, 1.0), Next::Retry(_)));
        }
    }

    #[test]
    fn where_nobody_else_sends_a_call_that_can_not_be_made_is_over_after_a_day() {
        let lonely = History { failures: 5_000, others_succeed: false, reachable: true, ..FRESH };
        assert!(matches!(next(&unreachable(), History { age: hours(23), ..lonely }, 1.0), Next::Retry(_)));
        assert_eq!(next(&unreachable(), History { age: hours(25), ..lonely }, 1.0), Next::GiveUp);
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
        let old = History { failures: MIN_FAILURES, age: MAX_AGE_INTERACTIVE + Duration::from_secs(1), ..FRESH };
        assert_eq!(next(&unreachable(), old, 0.0), Next::GiveUp);
        assert!(matches!(next(&unreachable(), History { max_age: MAX_AGE_NORMAL, ..old }, 0.0), Next::Retry(_)));
    }

    #[test]
    fn age_alone_ends_nothing_but_floods_for_a_day_do() {
        let old = History { failures: 0, age: hours(23), ..FRESH };
        assert!(matches!(next(&flooded(6775), old, 0.0), Next::Flood(_)));
        assert_eq!(next(&flooded(6775), History { age: hours(25), ..old }, 0.0), Next::GiveUp);
    }

    #[test]
    fn what_may_have_taken_effect_is_not_repeated_if_it_must_not_be() {
        let once = History { at_most_once: true, ..FRESH };
        let unknown = Error::UnknownOutcome { method: String::new(), reason: String::new(), silent: false };
        let server = Error::ServerError { method: String::new(), status: 500, description: "restart".to_owned() };
        let odd = Error::BadAnswer { method: String::new(), status: 200, cut: true, reason: String::new() };
        for error in [unknown, server, odd] {
            assert_eq!(next(&error, once, 0.5), Next::Unknown, "{error}");
            assert!(matches!(next(&error, FRESH, 0.5), Next::Retry(_)), "{error}");
        }
        assert!(matches!(next(&unreachable(), once, 0.5), Next::Retry(_)));
        assert!(matches!(next(&flooded(3), once, 0.5), Next::Flood(_)));
    }

    #[test]
    fn what_would_be_done_twice_is_not_repeated_without_end() {
        let [unknown, broken] =
            [true, false].map(|silent| Error::UnknownOutcome { method: String::new(), reason: String::new(), silent });
        let server = Error::ServerError { method: String::new(), status: 500, description: String::new() };
        let odd = |status| Error::BadAnswer { method: String::new(), status, cut: false, reason: String::new() };
        for (doubts, expect) in [(2, false), (11, false), (12, true), (15, true)] {
            let history = History { doubts, others_succeed: false, ..FRESH };
            for error in [&unknown, &broken, &server, &odd(200)] {
                assert_eq!(next(error, history, 0.5) == Next::Unknown, expect, "{doubts} {error}");
            }
            assert!(matches!(next(&unreachable(), history, 0.5), Next::Retry(_)), "{doubts}");
            assert!(matches!(next(&odd(404), history, 0.5), Next::Retry(_)), "{doubts}");
        }
        for (error, method, others_succeed, expect) in [
            (&unknown, "sendMessage", false, 4),
            (&broken, "sendMessage", true, 1),
            (&unknown, "SENDMESSAGE", true, 4),
            (&unknown, "forwardMessage", false, 4),
            (&unknown, "createInvoiceLink", false, 4),
            (&unknown, "editMessageText", false, 0),
            (&unknown, "deletemessage", false, 0),
            (&unknown, "answerCallbackQuery", false, 0),
            (&unknown, "sendChatAction", false, 0),
            (&unknown, "s", false, 4),
            (&server, "sendMessage", false, 0),
            (&server, "sendMessage", true, 2),
            (&odd(200), "sendMessage", false, 1),
            (&odd(403), "sendMessage", false, 0),
            (&unreachable(), "sendMessage", true, 0),
        ] {
            assert_eq!(doubt(error, method, others_succeed), expect, "{method} {error}");
        }
    }

    #[test]
    fn nobody_waits_for_a_late_answer_to_a_query() {
        let urgent = History { urgent: true, ..FRESH };
        assert_eq!(next(&flooded(61), urgent, 0.0), Next::GiveUp);
        assert!(matches!(next(&flooded(3), urgent, 0.0), Next::Flood(_)));
        let late = History { age: Duration::from_secs(61), others_succeed: false, reachable: false, ..urgent };
        assert_eq!(next(&unreachable(), late, 0.0), Next::GiveUp);
    }

    proptest! {
        #[test]
        fn a_flood_is_never_shortened_and_hardly_lengthened(seconds in 1_u64..20_000, failures: u32, dice in 0.0..1.0) {
            let history = History { failures, ..FRESH };
            let Next::Flood(wait) = next(&flooded(seconds), history, dice) else { panic!() };
            let told = Duration::from_secs(seconds);
            prop_assert!(wait > told && wait <= told + Duration::from_secs(5));
        }
    }
}
