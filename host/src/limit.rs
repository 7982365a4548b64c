//! How fast calls may follow each other.
//!
//! Pure: `now` is given, always by the caller. A [`Quota`] says what is allowed, a [`Pace`] remembers what was
//! taken. The steady rate and the burst are kept by GCRA (one time stamp); a limit over a sliding span, like
//! "20 in any minute", by remembering that many stamps, because no bucket keeps such a limit at its full rate:
//! a bucket of 5 refilled every 3 s lets 25 through in some minute.
//!
//! Nothing is ever owed: what is not taken, because the caller went away, costs nothing.

mod window;

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

pub use window::Window;

/// What is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// The time between two calls in the long run.
    interval: Duration,
    /// How many may go at once after a rest.
    burst: u32,
    /// No more than so many in any span of this length.
    window: Option<(u32, Duration)>,
}

impl Quota {
    /// `rate` calls per `span`, `burst` of them at once. No quota at all, which means no limit, for a rate of 0
    /// (or one that is no rate).
    #[must_use]
    pub fn new(rate: f64, span: Duration, burst: u32) -> Option<Self> {
        let seconds = span.as_secs_f64() / rate;
        // A rate below one a century is as good as that.
        (rate > 0.0 && seconds > 0.0).then(|| Self {
            interval: Duration::from_secs_f64(seconds.min(3e9)),
            burst: burst.max(1),
            window: None,
        })
    }

    /// The same, and never more than `most` in any `span`.
    #[must_use]
    pub fn at_most(self, most: u32, span: Duration) -> Self {
        Self { burst: self.burst.min(most.max(1)), window: Some((most.max(1), span)), ..self }
    }

    /// So many tenths of it, at least one and at most ten.
    #[must_use]
    pub fn tenths(self, tenths: u32) -> Self {
        let tenths = tenths.clamp(1, 10);
        let share = |count: u32| (u64::from(count) * u64::from(tenths) / 10).max(1).try_into().unwrap_or(count);
        Self {
            interval: self.interval.saturating_mul(10) / tenths,
            burst: share(self.burst),
            window: self.window.map(|(most, span)| (share(most), span)),
        }
    }
}

/// What was taken from a quota.
#[derive(Debug, Clone, Default)]
pub struct Pace {
    /// The theoretical arrival time: when the bucket is full again.
    full_at: Option<Instant>,
    /// What the window still holds, oldest first; empty without a window.
    recent: VecDeque<Instant>,
}

impl Pace {
    /// The earliest time at which `weight` calls may go; `now` if they may go now.
    ///
    /// More than fit into the burst or the window may go when these are wholly free.
    #[must_use]
    pub fn ready_at(&self, quota: &Quota, weight: u32, now: Instant) -> Instant {
        let slack = quota.interval.saturating_mul(quota.burst.saturating_sub(weight));
        let mut ready = now;
        if let Some(full_at) = self.full_at {
            ready = ready.max(full_at.checked_sub(slack).unwrap_or(now));
        }
        if let Some((most, span)) = quota.window {
            let must_leave = (self.recent.len() + weight as usize).saturating_sub(most as usize).min(self.recent.len());
            if let Some(last_to_leave) = must_leave.checked_sub(1).and_then(|index| self.recent.get(index)) {
                ready = ready.max(*last_to_leave + span);
            }
        }
        ready
    }

    /// Takes `weight` calls, whether or not they were ready.
    pub fn take(&mut self, quota: &Quota, weight: u32, now: Instant) {
        self.full_at = Some(self.full_at.unwrap_or(now).max(now) + quota.interval.saturating_mul(weight));
        if let Some((most, span)) = quota.window {
            while self.recent.front().is_some_and(|stamp| *stamp + span <= now) {
                self.recent.pop_front();
            }
            self.recent.extend(std::iter::repeat_n(now, weight as usize));
            // What was taken in spite of the limit is held against the future by the newest stamps alone.
            let surplus = self.recent.len().saturating_sub(most as usize);
            self.recent.drain(..surplus);
        } else {
            self.recent.clear();
        }
    }

    /// From this time on, a new pace would be as good as this one.
    #[must_use]
    pub fn rested_at(&self, quota: &Quota, now: Instant) -> Instant {
        let full_at = self.full_at.unwrap_or(now);
        match (quota.window, self.recent.back()) {
            (Some((_, span)), Some(newest)) => full_at.max(*newest + span),
            _ => full_at,
        }
        .max(now)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const MINUTE: Duration = Duration::from_secs(60);

    fn group() -> Quota {
        Quota::new(20.0, MINUTE, 5).unwrap().at_most(20, MINUTE)
    }

    /// Sends as early as allowed, after each of the rests; the times of sending.
    fn greedy(quota: &Quota, rests: &[u64]) -> Vec<Instant> {
        let mut now = Instant::now();
        let mut pace = Pace::default();
        let mut sent = Vec::new();
        for rest in rests {
            now = pace.ready_at(quota, 1, now + Duration::from_millis(*rest));
            pace.take(quota, 1, now);
            sent.push(now);
        }
        sent
    }

    /// The most that any span, open at its end, holds.
    fn most_in(sent: &[Instant], span: Duration) -> usize {
        (0..sent.len())
            .map(|from| sent[from..].iter().take_while(|at| **at < sent[from] + span).count())
            .max()
            .unwrap_or(0)
    }

    #[test]
    fn a_rate_of_zero_lifts_the_limit() {
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(Quota::new(rate, SECOND, 3), None, "{rate}");
        }
        assert!(Quota::new(1e-300, SECOND, 3).is_some());
    }

    #[test]
    fn a_private_chat_gets_three_at_once_and_then_one_a_second() {
        let sent = greedy(&Quota::new(1.0, SECOND, 3).unwrap(), &[0; 6]);
        let seconds: Vec<_> = sent.iter().map(|at| (*at - sent[0]).as_secs()).collect();
        assert_eq!(seconds, [0, 0, 0, 1, 2, 3]);
    }

    #[test]
    fn a_group_gets_its_full_rate_and_no_minute_holds_more() {
        let sent = greedy(&group(), &[0; 100]);
        assert_eq!(most_in(&sent, MINUTE), 20);
        // The hundredth begins the fifth minute's last burst at the latest: nothing of the rate is given away.
        assert!(*sent.last().unwrap() - sent[0] <= 5 * MINUTE);
    }

    /// A counter that is refilled every minute would let 40 through around the refill.
    #[test]
    fn twenty_before_and_twenty_after_the_full_minute_are_not_forty() {
        let quota = group();
        let start = Instant::now();
        let mut pace = Pace::default();
        let mut sent = Vec::new();
        for wanted in [59_u64; 20].into_iter().chain([61; 20]) {
            let now = pace.ready_at(
                &quota,
                1,
                sent.last().copied().unwrap_or(start).max(start + Duration::from_secs(wanted)),
            );
            pace.take(&quota, 1, now);
            sent.push(now);
        }
        assert!(most_in(&sent, MINUTE) <= 20);
    }

    #[test]
    fn weights_count_and_what_is_heavier_than_the_burst_goes_after_a_rest() {
        let quota = group();
        let start = Instant::now();
        let mut pace = Pace::default();
        assert_eq!(pace.ready_at(&quota, 10, start), start);
        pace.take(&quota, 10, start);
        assert_eq!(pace.ready_at(&quota, 1, start), start + 18 * SECOND);
        assert_eq!(pace.ready_at(&quota, 10, start), start + 30 * SECOND);
        assert_eq!(pace.ready_at(&quota, 20, start), start + MINUTE);
    }

    #[test]
    fn half_of_a_group_is_ten_a_minute() {
        let sent = greedy(&group().tenths(5), &[0; 40]);
        assert_eq!(most_in(&sent, MINUTE), 10);
        assert_eq!(group().tenths(10), group());
        assert_eq!(Quota::new(1.0, SECOND, 1).unwrap().tenths(0), Quota::new(0.1, SECOND, 1).unwrap());
    }

    fn quotas() -> impl Strategy<Value = (Quota, f64, u32, Option<u32>)> {
        (1_u32..200, 1_u32..8, proptest::option::of(1_u32..30)).prop_map(|(per_minute, burst, most)| {
            let rate = f64::from(per_minute);
            let quota = Quota::new(rate, MINUTE, burst).unwrap();
            (most.map_or(quota, |most| quota.at_most(most, 7 * SECOND)), rate / 60.0, burst, most)
        })
    }

    proptest! {
        #[test]
        fn no_span_ever_holds_more_than_burst_and_rate_allow(
            (quota, rate, burst, most) in quotas(),
            rests in prop::collection::vec(prop_oneof![3 => Just(0_u64), 1 => 0_u64..90_000], 1..120),
        ) {
            let sent = greedy(&quota, &rests);
            for from in 0..sent.len() {
                for to in from..sent.len() {
                    let span = (sent[to] - sent[from]).as_secs_f64();
                    prop_assert!((to - from + 1) as f64 <= f64::from(burst) + rate * span + 1e-6);
                }
            }
            if let Some(most) = most {
                prop_assert!(most_in(&sent, 7 * SECOND) <= most as usize);
            }
        }

        #[test]
        fn what_is_ready_then_is_ready_then(
            (quota, ..) in quotas(),
            taken in prop::collection::vec((0_u64..20_000, 1_u32..4), 0..60),
            weight in 1_u32..12,
        ) {
            let mut now = Instant::now();
            let mut pace = Pace::default();
            for (rest, weight) in taken {
                now += Duration::from_millis(rest);
                pace.take(&quota, weight, now);
            }
            let ready = pace.ready_at(&quota, weight, now);
            prop_assert_eq!(pace.ready_at(&quota, weight, ready), ready);
            prop_assert_eq!(pace.rested_at(&quota, now).max(ready), pace.rested_at(&quota, now));
            let rested = pace.rested_at(&quota, now);
            for weight in 1..12 {
                prop_assert_eq!(pace.ready_at(&quota, weight, rested), rested);
            }
        }
    }
}
