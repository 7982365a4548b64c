//! The wall clock. Waiting is done with `tokio::time` alone, which tests can pause; this is for what is written down.
//!
//! Where a simulator plays Telegram it may put this clock ahead, so that a timer of tomorrow can be seen today. Nothing
//! else ever does.

use std::sync::LazyLock;
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::sync::watch;

/// By how many milliseconds the clock is ahead of the machine's.
static AHEAD: LazyLock<watch::Sender<i64>> = LazyLock::new(|| watch::channel(0).0);

/// Now, in Unix milliseconds.
#[must_use]
pub fn unix_millis() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX).saturating_add_signed(*AHEAD.borrow())
}

/// Puts the clock of this process ahead of the machine's: for the simulator alone.
pub fn set_ahead(seconds: i64) {
    AHEAD.send_replace(seconds.saturating_mul(1000));
}

/// Tells those who wait for a time on this clock that it was moved.
#[must_use]
pub fn moves() -> watch::Receiver<i64> {
    AHEAD.subscribe()
}

/// Unix milliseconds as `2026-11-30 04:22:48`, in UTC.
#[must_use]
pub fn utc(millis: u64) -> String {
    let (days, second) = (millis / 86_400_000, millis / 1000 % 86_400);
    // Howard Hinnant's `civil_from_days`, for times after 1970.
    let day = days + 719_468;
    let (era, of_era) = (day / 146_097, day % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_in_utc() {
        for (seconds, expected) in [
            (0, "1970-01-01 00:00:00"),
            (951_782_399, "2000-02-28 23:59:59"),
            (951_782_400, "2000-02-29 00:00:00"),
            (1_709_251_200, "2024-03-01 00:00:00"),
            (1_796_012_568, "2026-11-30 04:22:48"),
            (4_102_444_799, "2099-12-31 23:59:59"),
        ] {
            assert_eq!(utc(seconds * 1000), expected);
        }
    }
}
