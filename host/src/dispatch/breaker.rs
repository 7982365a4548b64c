//! A plugin that fails one event after another is given a rest, so that its events wait instead of becoming dead
//! letters all at once, and nobody's processor is spent on what fails anyway. Pure: the time is told.
//!
//! After the rest one event is let through, as a probe. If it is handled, all go on; if it fails, the next rest is longer.
//! If the plugin only passes it on, nothing is known of what it takes: all go on, and the first that fails brings the next
//! rest. A probe that ends without having told anything is let go, and another event is the next one.
//!
//! A run that passes or only looks on says nothing of the events that the plugin fails to handle. Where it is runs that
//! look on which fail, one of them that goes well ends the row.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::Instant;

/// So many different events in a row, without one that was handled.
const TOO_MANY: usize = 10;
const FIRST_REST: Duration = Duration::from_secs(30);
const LONGEST_REST: Duration = Duration::from_secs(600);

/// What is known of one plugin's failures.
#[derive(Debug, Default)]
pub(super) struct Breaker {
    /// The events that have failed since the last one that was handled.
    failed: BTreeSet<u64>,
    /// The last run that failed only looked on.
    observing: bool,
    rest: Option<Rest>,
}

/// A rest, until an event has been handled after it.
#[derive(Debug)]
struct Rest {
    length: Duration,
    until: Instant,
    /// Who is let through when it is over.
    lets: Lets,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lets {
    /// The next event.
    One,
    /// This one, and none beside it.
    Only(u64),
    All,
}

/// What a run of the plugin for an event was, as far as its failures are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ran {
    /// It handled the event; or it only looked on, and did not fail.
    Well {
        observing: bool,
    },
    /// It left the event to others.
    Passed,
    Failed {
        observing: bool,
    },
}

/// What follows from a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Follows {
    Nothing,
    /// A rest of this length begins.
    Rest(Duration),
    /// Events that wait may go on, though the plugin has not recovered yet.
    GoOn,
    /// It has recovered.
    Recovered,
}

impl Breaker {
    /// Whether the plugin may be given this event. After a rest, the first one that is asked about is the probe.
    pub(super) fn lets_through(&mut self, event: u64, now: Instant) -> bool {
        let Some(rest) = &mut self.rest else { return true };
        if now < rest.until {
            return false;
        }
        match rest.lets {
            Lets::One => {
                rest.lets = Lets::Only(event);
                true
            }
            Lets::Only(probe) => probe == event,
            Lets::All => true,
        }
    }

    /// Whether a rest is on: for work of the plugin that tells nothing of how it does at events.
    pub(super) fn rests(&self, now: Instant) -> bool {
        self.rest.as_ref().is_some_and(|rest| now < rest.until)
    }

    /// Whether it has had a rest and has not recovered.
    pub(super) fn has_rest(&self) -> bool {
        self.rest.is_some()
    }

    /// The event's turn is over: true if it was the probe and has told nothing, so that another one may be it.
    pub(super) fn let_go(&mut self, event: u64) -> bool {
        match &mut self.rest {
            Some(rest) if rest.lets == Lets::Only(event) => {
                rest.lets = Lets::One;
                true
            }
            _ => false,
        }
    }

    /// Takes note of a run.
    pub(super) fn note(&mut self, event: u64, ran: Ran, now: Instant) -> Follows {
        match ran {
            Ran::Failed { observing } => {
                self.observing = observing;
                self.failed(event, now).map_or(Follows::Nothing, Follows::Rest)
            }
            Ran::Well { observing } if observing == self.observing || !observing => {
                let rested = self.rest.is_some();
                *self = Self::default();
                if rested { Follows::Recovered } else { Follows::Nothing }
            }
            Ran::Well { .. } | Ran::Passed => match &mut self.rest {
                Some(rest) if now >= rest.until && rest.lets != Lets::All => {
                    rest.lets = Lets::All;
                    Follows::GoOn
                }
                _ => Follows::Nothing,
            },
        }
    }

    /// The length of the rest that begins, if one does.
    fn failed(&mut self, event: u64, now: Instant) -> Option<Duration> {
        self.failed.insert(event);
        let length = match &self.rest {
            None if self.failed.len() < TOO_MANY => return None,
            None => FIRST_REST,
            // A run that had begun before.
            Some(rest) if now < rest.until => return None,
            Some(rest) => (rest.length * 2).min(LONGEST_REST),
        };
        self.failed.clear();
        self.rest = Some(Rest { length, until: now + length, lets: Lets::One });
        Some(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WELL: Ran = Ran::Well { observing: false };
    const FAILED: Ran = Ran::Failed { observing: false };
    const LOOKED_ON: Ran = Ran::Well { observing: true };

    fn fail(breaker: &mut Breaker, events: std::ops::Range<u64>, now: Instant) -> Option<Duration> {
        events.into_iter().find_map(|event| breaker.failed(event, now))
    }

    /// One that has rested, and when its rest is over.
    fn rested() -> (Breaker, Instant) {
        let (mut breaker, now) = (Breaker::default(), Instant::now());
        fail(&mut breaker, 0..10, now);
        (breaker, now + FIRST_REST)
    }

    #[test]
    fn many_events_that_fail_in_a_row_bring_a_rest() {
        let (mut breaker, now) = (Breaker::default(), Instant::now());
        assert_eq!(fail(&mut breaker, 0..9, now), None);
        assert_eq!(breaker.note(50, WELL, now), Follows::Nothing);
        assert_eq!(fail(&mut breaker, 0..9, now), None);
        assert_eq!(breaker.note(9, FAILED, now), Follows::Rest(FIRST_REST));
        let nearly = now + FIRST_REST - Duration::from_millis(1);
        assert!(!breaker.lets_through(20, nearly) && breaker.rests(nearly));
    }

    #[test]
    fn runs_that_handle_nothing_do_not_end_the_row() {
        for neutral in [Ran::Passed, LOOKED_ON] {
            let (mut breaker, now) = (Breaker::default(), Instant::now());
            let follows = (0..10).map(|event| {
                assert_eq!(breaker.note(event, neutral, now), Follows::Nothing);
                breaker.note(event, FAILED, now)
            });
            assert_eq!(follows.last(), Some(Follows::Rest(FIRST_REST)), "{neutral:?}");
        }
    }

    #[test]
    fn a_plugin_that_only_looks_on_is_judged_by_that() {
        let (mut breaker, now) = (Breaker::default(), Instant::now());
        let looked_badly = Ran::Failed { observing: true };
        (0..9).for_each(|event| assert_eq!(breaker.note(event, looked_badly, now), Follows::Nothing));
        assert_eq!(breaker.note(9, LOOKED_ON, now), Follows::Nothing);
        (10..19).for_each(|event| assert_eq!(breaker.note(event, looked_badly, now), Follows::Nothing));
        assert_eq!(breaker.note(20, looked_badly, now), Follows::Rest(FIRST_REST));
        let later = now + FIRST_REST;
        assert!(breaker.lets_through(21, later));
        assert_eq!(breaker.note(21, LOOKED_ON, later), Follows::Recovered);
    }

    #[test]
    fn one_event_that_fails_again_and_again_is_one() {
        let (mut breaker, now) = (Breaker::default(), Instant::now());
        assert_eq!((0..100).find_map(|_| breaker.failed(7, now)), None);
        assert!(breaker.lets_through(7, now));
    }

    #[test]
    fn after_the_rest_one_event_tells_whether_it_is_over() {
        let (mut breaker, later) = rested();
        assert!(!breaker.rests(later));
        assert!(breaker.lets_through(20, later));
        assert!(breaker.lets_through(20, later), "the same one again");
        assert!(!breaker.lets_through(21, later));
        assert_eq!(breaker.note(20, WELL, later), Follows::Recovered);
        assert!(breaker.lets_through(22, later) && !breaker.has_rest());
    }

    #[test]
    fn a_probe_that_has_told_nothing_is_let_go() {
        let (mut breaker, later) = rested();
        assert!(breaker.lets_through(20, later));
        assert!(!breaker.let_go(21), "it is not the probe");
        assert!(!breaker.lets_through(21, later));
        assert!(breaker.let_go(20));
        assert!(breaker.lets_through(21, later));
        assert_eq!(breaker.note(21, FAILED, later), Follows::Rest(2 * FIRST_REST));
        assert!(!breaker.let_go(21), "it has told enough");
    }

    #[test]
    fn a_probe_that_is_passed_on_lets_all_go_on_until_one_fails() {
        let (mut breaker, later) = rested();
        assert!(breaker.lets_through(20, later));
        assert_eq!(breaker.note(20, Ran::Passed, later), Follows::GoOn);
        assert_eq!(breaker.note(20, Ran::Passed, later), Follows::Nothing, "said once");
        assert!(!breaker.let_go(20) && breaker.has_rest());
        assert!(breaker.lets_through(21, later) && breaker.lets_through(22, later));
        assert_eq!(breaker.note(22, FAILED, later), Follows::Rest(2 * FIRST_REST));
        assert!(!breaker.lets_through(23, later));
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
