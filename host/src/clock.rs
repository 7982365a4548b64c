//! The wall clock. Waiting is done with `tokio::time` alone, which tests can pause; this is for what is written down.

use std::time::{SystemTime, UNIX_EPOCH};

/// Now, in Unix milliseconds.
#[must_use]
pub fn unix_millis() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
