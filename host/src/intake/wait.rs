//! What follows after a poll that failed; pure.
//!
//! - Every wait but flood control's grows with the failures in a row and has an upper bound.
//! - A 429 waits what Telegram says, never less.
//! - A server that has nothing new and does not wait is not asked in a hot loop.
//! - Two time-outs in a row, and the connections are thought dead.
//! - No good answer for twice the poll and a little more: everything is begun anew, whatever the reasons were.
//! - A refused token is asked about rarely: nothing but another token, or Telegram thinking better of it, could help.

use std::time::Duration;

use crate::backoff;
use crate::telegram::Error;

/// How much longer than its time-out a poll may take before it counts as stuck; longer than the transport's own deadline.
pub(super) const SLACK: Duration = Duration::from_secs(15);
/// How often to look whether somebody else's webhook is still set.
pub(super) const FOREIGN: Duration = Duration::from_secs(30);

/// How long there may be no good answer.
pub(super) fn stalled(poll_timeout: Duration) -> Duration {
    poll_timeout * 2 + SLACK
}

/// How long to wait before asking again whether a refused token works. The first refusal may have been a proxy's.
pub(super) fn before_probe(attempt: u32) -> Duration {
    Duration::from_secs(match attempt {
        0 => 5,
        1 => 30,
        _ => 300,
    })
}

/// What to do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Wait {
        pause: Duration,
        /// Ask without waiting, to find out soon whether the trouble is over.
        probe: bool,
        /// Throw the connections away.
        rebuild: bool,
    },
    /// The token is refused.
    Refused,
}

/// After `failures` failed polls in a row and now this one. `dice` is between 0 and 1.
pub(super) fn after(error: &Error, failures: u32, poll_timeout: Duration, dice: f64) -> Next {
    match error {
        Error::Unauthorized { .. } | Error::Refused { code: 404, .. } => Next::Refused,
        Error::Flooded { retry_after, .. } => {
            Next::Wait { pause: (*retry_after).max(Duration::from_secs(1)), probe: false, rebuild: false }
        }
        // The other poller's long poll ends within its time-out; asking more often would only disturb it.
        Error::Conflict { .. } => {
            let longest = poll_timeout.max(Duration::from_secs(5));
            let pause = Duration::from_secs(5).saturating_mul(1 << failures.min(4)).min(longest);
            Next::Wait { pause: pause.mul_f64(0.9 + 0.1 * dice.clamp(0.0, 1.0)), probe: true, rebuild: false }
        }
        Error::UnknownOutcome { .. } => Next::Wait {
            pause: backoff::delay(failures.saturating_add(1), dice),
            probe: false,
            rebuild: failures % 2 == 1,
        },
        _ => again(failures, dice),
    }
}

/// After trouble that time may heal.
pub(super) fn again(failures: u32, dice: f64) -> Next {
    Next::Wait { pause: backoff::delay(failures.saturating_add(1), dice), probe: false, rebuild: false }
}

/// After `empty` good answers in a row that held nothing new, the last of them within `took`. A server that answers
/// sooner than any long poll ends, be it with nothing or with what it told before, is not asked without a pause.
pub(super) fn after_nothing(empty: u32, took: Duration) -> Duration {
    const FIRST: Duration = Duration::from_millis(25);
    const LONGEST: Duration = Duration::from_secs(1);
    if empty > 0 && took < LONGEST {
        FIRST.saturating_mul(1 << (empty - 1).min(16)).min(LONGEST)
    } else {
        Duration::ZERO
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLL: Duration = Duration::from_secs(30);

    fn pause(error: &Error, failures: u32) -> Duration {
        match after(error, failures, POLL, 1.0) {
            Next::Wait { pause, .. } => pause,
            Next::Refused => panic!("the token is refused after {error}"),
        }
    }

    fn method() -> String {
        "getUpdates".to_owned()
    }

    #[test]
    fn a_conflict_is_asked_about_seldom() {
        let error = Error::Conflict { method: method(), webhook: false, description: String::new() };
        let pauses: Vec<_> = (0..6).map(|failures| pause(&error, failures).as_secs()).collect();
        assert_eq!(pauses, [5, 10, 20, 30, 30, 30]);
        assert!(matches!(after(&error, 0, POLL, 1.0), Next::Wait { probe: true, .. }));
    }

    #[test]
    fn a_server_that_does_not_wait_is_asked_less_and_less() {
        let pauses: Vec<_> = (0..9).map(|empty| after_nothing(empty, Duration::ZERO).as_millis()).collect();
        assert_eq!(pauses, [0, 25, 50, 100, 200, 400, 800, 1_000, 1_000]);
        assert_eq!(after_nothing(u32::MAX, Duration::ZERO), Duration::from_secs(1));
        assert_eq!(after_nothing(5, Duration::from_secs(2)), Duration::ZERO, "it did wait");
    }

    #[test]
    fn flood_control_is_obeyed_to_the_letter() {
        let flooded = |seconds| Error::Flooded { method: method(), retry_after: Duration::from_secs(seconds) };
        assert_eq!(pause(&flooded(6775), 0), Duration::from_secs(6775));
        assert_eq!(pause(&flooded(0), 9), Duration::from_secs(1), "never a hot loop");
    }

    #[test]
    fn only_a_refused_token_is_asked_about_rarely() {
        let refused = Error::Unauthorized { method: method(), code: 401, description: String::new() };
        assert_eq!(after(&refused, 0, POLL, 1.0), Next::Refused);
        assert_eq!([0, 1, 2, 99].map(|attempt| before_probe(attempt).as_secs()), [5, 30, 300, 300]);
        for failures in [0, 1, 50, u32::MAX - 1] {
            let broken = Error::ServerError { method: method(), status: 502, description: String::new() };
            assert!(pause(&broken, failures) <= Duration::from_secs(30));
        }
    }

    #[test]
    fn the_second_time_out_in_a_row_rebuilds_the_connections() {
        let silent = Error::UnknownOutcome { method: method(), reason: String::new(), silent: true };
        assert!(matches!(after(&silent, 0, POLL, 1.0), Next::Wait { rebuild: false, .. }));
        assert!(matches!(after(&silent, 1, POLL, 1.0), Next::Wait { rebuild: true, .. }));
    }
}
