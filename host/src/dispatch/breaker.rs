//! A plugin that fails one event after another is given a rest, so that its events wait instead of becoming dead
//! letters all at once, and nobody's processor is spent on what fails anyway. Pure: the time is told.
//!
//! After the rest one event is let through. If it is handled, all go on; if not, the next rest is longer.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::Instant;

/// So many different events in a row, without one that was handled.
const TOO_MANY: usize = 10;
const FIRST_REST: Duration = Duration::from_secs(30);
const LONGEST_REST: Duration = Duration::from_secs(600);
/// The event that was let through may have been taken by another plugin: then another one is.
const PROBE_PATIENCE: Duration = Duration::from_secs(60);

/// What is known of one plugin's failures.
#[derive(Debug, Default)]
pub(super) struct Breaker {
    /// The events that have failed since the last one that was handled.
    failed: BTreeSet<u64>,
    /// The rest that it was given, and its end.
    rest: Option<(Duration, Instant)>,
    /// The event that was let through, and when.
    probe: Option<(u64, Instant)>,
}

impl Breaker {
    /// Whether the plugin may be given this event.
    pub(super) fn lets_through(&mut self, event: u64, now: Instant) -> bool {
        let Some((_, until)) = self.rest else { return true };
        if now < until {
            return false;
        }
        match self.probe {
            Some((other, since)) if other != event && now < since + PROBE_PATIENCE => false,
            _ => {
                self.probe = Some((event, now));
                true
            }
        }
    }

    /// An event was handled: true if that ends a rest.
    pub(super) fn handled(&mut self) -> bool {
        let rested = self.rest.is_some();
        *self = Self::default();
        rested
    }

    /// An event failed: the length of the rest that begins, if one does.
    pub(super) fn failed(&mut self, event: u64, now: Instant) -> Option<Duration> {
        self.failed.insert(event);
        let rest = match self.rest {
            None if self.failed.len() < TOO_MANY => return None,
            None => FIRST_REST,
            // A run that had begun before.
            Some((_, until)) if now < until => return None,
            Some((last, _)) => (last * 2).min(LONGEST_REST),
        };
        self.failed.clear();
        self.probe = None;
        self.rest = Some((rest, now + rest));
        Some(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fail(breaker: &mut Breaker, events: std::ops::Range<u64>, now: Instant) -> Option<Duration> {
        events.into_iter().find_map(|event| breaker.failed(event, now))
    }

    #[test]
    fn many_events_that_fail_in_a_row_bring_a_rest() {
        let (mut breaker, now) = (Breaker::default(), Instant::now());
        assert_eq!(fail(&mut breaker, 0..9, now), None);
        assert!(!breaker.handled());
        assert_eq!(fail(&mut breaker, 0..9, now), None);
        assert_eq!(breaker.failed(9, now), Some(FIRST_REST));
        assert!(!breaker.lets_through(20, now + FIRST_REST - Duration::from_millis(1)));
    }

    #[test]
    fn one_event_that_fails_again_and_again_is_one() {
        let (mut breaker, now) = (Breaker::default(), Instant::now());
        assert_eq!((0..100).find_map(|_| breaker.failed(7, now)), None);
        assert!(breaker.lets_through(7, now));
    }

    #[test]
    fn after_the_rest_one_event_tells_whether_it_is_over() {
        let (mut breaker, start) = (Breaker::default(), Instant::now());
        fail(&mut breaker, 0..10, start);
        let later = start + FIRST_REST;
        assert!(breaker.lets_through(20, later));
        assert!(breaker.lets_through(20, later), "the same one again");
        assert!(!breaker.lets_through(21, later));
        assert!(breaker.lets_through(21, later + PROBE_PATIENCE), "nobody has heard of the first one");
        assert!(breaker.handled());
        assert!(breaker.lets_through(22, later));
    }

    #[test]
    fn rests_grow_to_ten_minutes() {
        let (mut breaker, mut now) = (Breaker::default(), Instant::now());
        let mut rest = fail(&mut breaker, 0..10, now).unwrap();
        let mut seen = vec![rest.as_secs()];
        for event in 100..106 {
            now += rest;
            assert!(breaker.lets_through(event, now));
            rest = breaker.failed(event, now).unwrap();
            seen.push(rest.as_secs());
            assert_eq!(breaker.failed(50, now), None, "an earlier run ends");
        }
        assert_eq!(seen, [30, 60, 120, 240, 480, 600, 600]);
    }
}
