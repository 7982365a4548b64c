//! What becomes of a recipient after an answer. Pure.

use std::time::Duration;

use super::super::decide::Next;
use crate::domain::ChatId;
use crate::store::rows::broadcast::{Failure, FailureKind, OpenRow, Recipient};
use crate::telegram::{Error, Refusal};

#[derive(Debug, Clone, PartialEq)]
pub(in super::super) enum Fate {
    Sent,
    /// Over, and not delivered for sure.
    Failed(FailureKind),
    /// He has moved.
    Moved(ChatId),
    /// To be tried again after so long.
    Again(Duration),
    /// Nobody can be sent to like this: the broadcast waits for whoever sees to it.
    Stop,
}

/// `ambiguous`: an attempt, this one included, may have taken effect.
pub(in super::super) fn of(result: Result<(), (&Error, Next)>, paid: bool, ambiguous: bool) -> Fate {
    let (error, next) = match result {
        Ok(()) => return Fate::Sent,
        Err(failed) => failed,
    };
    match next {
        Next::Done => Fate::Sent,
        Next::Refused => match error.refusal() {
            Some(Refusal::ChatGone) => Fate::Failed(FailureKind::Gone),
            Some(Refusal::Migrated(chat)) => Fate::Moved(chat),
            _ if paid && is_about_money(error) => Fate::Stop,
            _ => Fate::Failed(FailureKind::Refused),
        },
        Next::GiveUp if ambiguous => Fate::Failed(FailureKind::Unknown),
        Next::GiveUp => Fate::Failed(FailureKind::Refused),
        Next::Unknown => Fate::Failed(FailureKind::Unknown),
        Next::Retry(wait) | Next::Flood(wait) | Next::Halt(wait) => Fate::Again(wait),
    }
}

/// Telegram does not let this bot pay. Its words for that are not written down anywhere, so: whatever speaks of it.
fn is_about_money(error: &Error) -> bool {
    let Error::Refused { description, .. } = error else { return false };
    let description = description.to_ascii_lowercase();
    ["star", "paid", "balance", "payment"].iter().any(|word| description.contains(word))
}

/// True if the call has certainly cost nothing: only what succeeds is paid for.
pub(in super::super) fn is_free(error: &Error) -> bool {
    match error {
        Error::Refused { .. } => error.refusal() != Some(Refusal::NoOp),
        Error::Flooded { .. } | Error::Unauthorized { .. } | Error::Conflict { .. } | Error::Unreachable { .. } => true,
        _ => false,
    }
}

/// What an earlier process has left under way: the failure that it is, or nothing if it is simply tried again.
pub(super) fn after_restart(open: &OpenRow, process: u64, at_most_once: bool) -> Option<FailureKind> {
    (open.begun != 0 && open.begun != process && at_most_once).then_some(FailureKind::Unknown)
}

pub(super) fn failure(to: Recipient, kind: FailureKind, reason: &str) -> Failure {
    const LONGEST: usize = 160;
    Failure { to, kind, reason: reason.chars().take(LONGEST).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: u16, description: &str, migrate_to: Option<i64>) -> Error {
        let (method, description) = ("sendMessage".to_owned(), description.to_owned());
        Error::Refused { method, code, description, migrate_to: migrate_to.map(ChatId) }
    }

    #[test]
    fn each_answer_has_one_meaning() {
        const WAIT: Duration = Duration::from_secs(7);
        let gone = refused(403, "bot was blocked by the user", None);
        let bad = refused(400, "can't parse entities: unclosed tag", None);
        let poor = refused(400, "not enough Telegram Stars on the balance", None);
        let moved = refused(400, "group chat was upgraded to a supergroup chat", Some(-100));
        let server = Error::ServerError { method: String::new(), status: 500, description: String::new() };
        for (error, next, paid, ambiguous, fate) in [
            (&gone, Next::Refused, false, false, Fate::Failed(FailureKind::Gone)),
            (&gone, Next::Refused, true, false, Fate::Failed(FailureKind::Gone)),
            (&bad, Next::Refused, true, false, Fate::Failed(FailureKind::Refused)),
            (&poor, Next::Refused, false, false, Fate::Failed(FailureKind::Refused)),
            (&poor, Next::Refused, true, false, Fate::Stop),
            (&moved, Next::Refused, false, false, Fate::Moved(ChatId(-100))),
            (&server, Next::Unknown, false, true, Fate::Failed(FailureKind::Unknown)),
            (&server, Next::GiveUp, false, true, Fate::Failed(FailureKind::Unknown)),
            (&server, Next::GiveUp, false, false, Fate::Failed(FailureKind::Refused)),
            (&server, Next::Retry(WAIT), false, true, Fate::Again(WAIT)),
            (&server, Next::Flood(WAIT), true, false, Fate::Again(WAIT)),
            (&server, Next::Halt(WAIT), false, false, Fate::Again(WAIT)),
            (&server, Next::Done, false, false, Fate::Sent),
        ] {
            assert_eq!(of(Err((error, next)), paid, ambiguous), fate, "{error} {next:?}");
        }
        assert_eq!(of(Ok(()), true, true), Fate::Sent);
    }

    #[test]
    fn only_what_may_have_been_delivered_costs() {
        for (error, free) in [
            (refused(403, "bot was blocked by the user", None), true),
            (Error::Flooded { method: String::new(), retry_after: Duration::ZERO }, true),
            (Error::Unreachable { method: String::new(), reason: String::new() }, true),
            (Error::UnknownOutcome { method: String::new(), reason: String::new(), silent: true }, false),
            (Error::ResultLost { method: String::new(), reason: String::new() }, false),
            (Error::ServerError { method: String::new(), status: 500, description: String::new() }, false),
        ] {
            assert_eq!(is_free(&error), free, "{error}");
        }
    }

    #[test]
    fn after_a_kill_only_what_was_under_way_is_unknown() {
        for (begun, at_most_once, expect) in
            [(0, true, None), (9, true, None), (8, true, Some(FailureKind::Unknown)), (8, false, None)]
        {
            let open = OpenRow { to: Recipient::Chat(ChatId(1)), begun, not_before: 0 };
            assert_eq!(after_restart(&open, 9, at_most_once), expect);
        }
    }
}
