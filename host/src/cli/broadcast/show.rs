//! A broadcast in words, in a table, and as a bar.

use std::time::Duration;

use crate::cli::table::{table, utc};
use crate::operate::{Broadcast, Missed};
use crate::store::rows::broadcast::{FailureKind, State};

pub(super) fn state(state: State) -> &'static str {
    match state {
        State::Incomplete => "incomplete",
        State::Running => "running",
        State::Paused => "paused",
        State::Stopped => "stopped",
        State::Done => "done",
        State::Cancelled => "cancelled",
    }
}

pub(super) fn kind(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::Gone => "gone",
        FailureKind::Refused => "refused",
        FailureKind::Unknown => "unknown",
    }
}

/// `12,345`
pub(super) fn number(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `3 h 12 min`, `4 min 5 s`, `7 s`
pub(super) fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

fn done(broadcast: &Broadcast) -> u64 {
    broadcast.total.saturating_sub(broadcast.waiting)
}

/// How long it will take at the speed that it has.
fn left(broadcast: &Broadcast) -> Option<Duration> {
    let is_moving = broadcast.state == State::Running && broadcast.per_second > 0.0 && broadcast.waiting > 0;
    is_moving.then(|| Duration::from_secs_f64((broadcast.waiting as f64 / broadcast.per_second).min(1e9)))
}

/// One line, no longer than `width`: what fits, the most telling first.
pub(super) fn bar(broadcast: &Broadcast, width: usize) -> String {
    const LEAST_BAR: usize = 8;
    const WIDEST_BAR: usize = 40;
    let (done, total) = (done(broadcast), broadcast.total);
    let percent = (done * 100).checked_div(total).unwrap_or(0);
    let mut text = format!("{percent:3}%");
    let state = match broadcast.state {
        State::Running => None,
        other => Some(state(other).to_owned()),
    };
    let speed = (broadcast.per_second > 0.0).then(|| format!("{:.1}/s", broadcast.per_second));
    let missed = [("gone", broadcast.gone), ("refused", broadcast.refused), ("unknown", broadcast.unknown)];
    let missed = missed.into_iter().filter(|(_, count)| *count > 0).map(|(what, count)| format!("{count} {what}"));
    let parts = [Some(format!("{}/{}", number(done), number(total))), state, speed]
        .into_iter()
        .chain([left(broadcast).map(|left| format!("{} left", duration(left)))])
        .flatten()
        .chain(missed);
    let mut tail = String::new();
    for part in parts {
        let needed = text.chars().count() + tail.chars().count() + 2 + part.chars().count();
        if needed > width {
            break;
        }
        tail.push_str("  ");
        tail.push_str(&part);
    }
    // A blank, two brackets, and the bar.
    let room = width.saturating_sub(text.chars().count() + tail.chars().count() + 3).min(WIDEST_BAR);
    if room >= LEAST_BAR {
        let full = usize::try_from(done.min(total) * room as u64 / total.max(1)).unwrap_or(room);
        text.push_str(&format!(" [{}{}]", "#".repeat(full), ".".repeat(room - full)));
    }
    text.push_str(&tail);
    text.chars().take(width).collect()
}

/// Everything about one.
pub(super) fn report(broadcast: &Broadcast) -> String {
    let name = if broadcast.name.is_empty() { String::new() } else { format!(" “{}”", broadcast.name) };
    let by = if broadcast.plugin.is_empty() { String::new() } else { format!(", begun by `{}`", broadcast.plugin) };
    let mut text = format!(
        "broadcast {}{name} is {}: {} of {} sent{by}\n",
        broadcast.id,
        state(broadcast.state),
        number(broadcast.sent),
        number(broadcast.total),
    );
    let mut line = |what: &str, value: String| text.push_str(&format!("  {what:<9} {value}\n"));
    if let Some(reason) = &broadcast.reason {
        line("why", reason.clone());
    }
    line("method", broadcast.method.clone());
    line("gone", format!("{} (blocked, deactivated, not found; skipped)", number(broadcast.gone)));
    line("refused", number(broadcast.refused));
    line("unknown", format!("{} (may have arrived; not sent again)", number(broadcast.unknown)));
    let waiting = if broadcast.state == State::Cancelled { "never sent" } else { "waiting" };
    line(waiting, number(broadcast.waiting));
    if broadcast.per_second > 0.0 {
        line("speed", format!("{:.1} a second", broadcast.per_second));
    }
    if let Some(left) = left(broadcast) {
        line("left", format!("about {}", duration(left)));
    }
    if let Some(most) = broadcast.max_stars {
        line("cost", format!("{} of at most {} Stars", broadcast.stars, number(most)));
    }
    for (what, at) in [("asked for", broadcast.created), ("started", broadcast.started), ("ended", broadcast.ended)] {
        if at != 0 {
            line(what, format!("{} UTC", utc(at)));
        }
    }
    text
}

pub(super) fn list(broadcasts: &[Broadcast]) -> String {
    if broadcasts.is_empty() {
        return "no broadcasts\n".to_owned();
    }
    let rows: Vec<[String; 9]> = broadcasts
        .iter()
        .map(|broadcast| {
            let reason = broadcast.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
            [
                broadcast.id.to_string(),
                utc(broadcast.created),
                number(broadcast.sent),
                number(broadcast.gone),
                number(broadcast.refused),
                number(broadcast.unknown),
                number(broadcast.waiting),
                if broadcast.name.is_empty() { broadcast.method.clone() } else { broadcast.name.clone() },
                format!("{}{reason}", state(broadcast.state)),
            ]
        })
        .collect();
    table(["ID", "ASKED FOR (UTC)", "SENT", "GONE", "REFUSED", "UNKNOWN", "WAITING", "NAME", "STATE"], &rows)
}

pub(super) fn missed(missed: &[Missed]) -> String {
    missed.iter().map(|missed| format!("{:<9} {:<16} {}\n", kind(missed.kind), missed.chat, missed.reason)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broadcast() -> Broadcast {
        Broadcast {
            id: 40,
            name: "news".to_owned(),
            plugin: String::new(),
            method: "sendMessage".to_owned(),
            state: State::Running,
            reason: None,
            known_chats: false,
            total: 10_000,
            sent: 4_000,
            gone: 210,
            refused: 3,
            unknown: 0,
            waiting: 5_787,
            per_second: 25.0,
            max_stars: Some(100),
            stars: 12.5,
            created: 1_796_012_568_000,
            started: 1_796_012_568_000,
            ended: 0,
        }
    }

    #[test]
    fn a_bar_fits_into_every_terminal() {
        let broadcast = broadcast();
        for width in 0..200 {
            assert!(bar(&broadcast, width).chars().count() <= width, "{width}");
        }
        assert_eq!(bar(&broadcast, 20), " 42%  4,213/10,000");
        assert_eq!(
            bar(&broadcast, 90),
            " 42% [#########..............]  4,213/10,000  25.0/s  3 min 51 s left  210 gone  3 refused"
        );
        let empty = Broadcast { total: 0, waiting: 0, state: State::Paused, ..broadcast };
        assert!(bar(&empty, 80).contains("paused"));
    }

    #[test]
    fn numbers_and_times_are_for_people() {
        assert_eq!([0, 12, 999, 1_000, 1_234_567].map(number), ["0", "12", "999", "1,000", "1,234,567"]);
        let texts = [7, 245, 11_520].map(|seconds| duration(Duration::from_secs(seconds)));
        assert_eq!(texts, ["7 s", "4 min 5 s", "3 h 12 min"]);
    }

    #[test]
    fn a_report_tells_the_cost_and_why_it_waits() {
        let stopped = Broadcast { state: State::Stopped, reason: Some("no Stars".to_owned()), ..broadcast() };
        let text = report(&stopped);
        for part in ["broadcast 40 “news” is stopped: 4,000 of 10,000 sent", "no Stars", "12.5 of at most 100 Stars"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("left"), "{text}");
    }
}
