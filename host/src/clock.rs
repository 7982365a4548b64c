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
