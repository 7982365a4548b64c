//! Which events come too early to be tried, and which too late to matter; pure.
//!
//! Telegram itself forgets a tap or a query that nobody has fetched in time. One that was fetched and then had to wait,
//! for a stopped host or behind a busy chat, is no better: nobody looks at the answer any more, and Telegram refuses it.
//! What people wrote, paid or became is never too late.

use std::time::Duration;

use crate::backoff;
use crate::domain::UpdateView;
use crate::store::rows::inbox::{InboxRow, StoredEvent};

/// The shortest of all lifetimes: nothing younger need be looked into.
const SHORTEST: Duration = Duration::from_secs(30);

/// How long an event of this kind matters: as long as Telegram keeps it for a bot that does not fetch it. `None`: for
/// ever.
fn lifetime(kind: &str) -> Option<Duration> {
    match kind {
        "inline_query" => Some(SHORTEST),
        "callback_query" | "shipping_query" | "pre_checkout_query" => Some(Duration::from_secs(150)),
        "chosen_inline_result" => Some(Duration::from_secs(600)),
        _ => None,
    }
}

/// Whether an event of this kind, which happened then, does not matter any more now; in Unix milliseconds.
fn is_too_late(kind: &str, happened: u64, now: u64) -> bool {
    lifetime(kind).is_some_and(|lifetime| Duration::from_millis(now.saturating_sub(happened)) > lifetime)
}

/// The kind of an event that does not matter any more at `now`; `None` for one that does.
///
/// The kinds that end have no date of their own (that of a callback query's message is when the message was written),
/// so they count from when they were received.
pub(super) fn expired(row: &InboxRow, now: u64) -> Option<String> {
    if Duration::from_millis(now.saturating_sub(row.received)) <= SHORTEST {
        return None;
    }
    let StoredEvent::Update(raw) = &row.event else { return None };
    let raw = String::from_utf8_lossy(raw);
    let kind = UpdateView::parse(&raw).ok()?.kind.into_owned();
    is_too_late(&kind, row.received, now).then_some(kind)
}

/// How long an event has still to wait at `now`. More than the longest backoff is none: the clock was set back.
pub(super) fn rest(not_before: u64, now: u64) -> Option<Duration> {
    let left = Duration::from_millis(not_before.checked_sub(now)?);
    (!left.is_zero() && left <= backoff::CAP).then_some(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_was_set_back_holds_no_event() {
        let day = 24 * 3600 * 1000;
        for (not_before, now, wait) in [
            (0, 5, None),
            (5, 5, None),
            (7, 5, Some(Duration::from_millis(2))),
            (30_005, 5, Some(backoff::CAP)),
            (5 + day, 5, None),
            (u64::MAX, 0, None),
        ] {
            assert_eq!(rest(not_before, now), wait);
        }
    }

    #[test]
    fn queries_and_taps_end_and_what_people_wrote_or_paid_does_not() {
        let year = 365 * 86_400;
        for (kind, seconds, late) in [
            ("inline_query", 30, false),
            ("inline_query", 31, true),
            ("callback_query", 150, false),
            ("callback_query", 151, true),
            ("pre_checkout_query", 150, false),
            ("pre_checkout_query", 151, true),
            ("shipping_query", 151, true),
            ("chosen_inline_result", 600, false),
            ("chosen_inline_result", 601, true),
            ("message", year, false),
            ("edited_message", year, false),
            ("channel_post", year, false),
            ("purchased_paid_media", year, false),
            ("poll_answer", year, false),
            ("my_chat_member", year, false),
            ("a_kind_of_next_year", year, false),
            ("", year, false),
        ] {
            assert_eq!(is_too_late(kind, 5_000, 5_000 + seconds * 1000), late, "{kind} after {seconds} s");
        }
        assert!(!is_too_late("inline_query", 1_000_000, 5), "a clock that was set back");
    }

    #[test]
    fn an_event_is_as_old_as_it_was_received() {
        let row = |raw: &str| InboxRow::new(StoredEvent::Update(raw.as_bytes().to_vec()), 1_000);
        // The message that the button belongs to may be of last year.
        let tap = row(r#"{"update_id":1,"callback_query":{"data":"x","message":{"date":5,"chat":{"id":1}}}}"#);
        assert_eq!(expired(&tap, 1_000), None);
        assert_eq!(expired(&tap, 151_000), None);
        assert_eq!(expired(&tap, 152_000).as_deref(), Some("callback_query"));
        assert_eq!(expired(&row(r#"{"update_id":1,"message":{"date":5,"text":"x"}}"#), u64::MAX), None);
        assert_eq!(expired(&row("not JSON"), u64::MAX), None, "that is a dead letter, and no less");
    }
}
