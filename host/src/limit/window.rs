//! How much of something was used in the last minute, whatever the amounts: calls, bytes, recipients.
//!
//! Amounts that come close together are kept as one, so that a window is small however much is counted, and never too
//! generous: what is kept as one leaves the window when its newest part does.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

/// Into so many parts a span is divided at most.
const PARTS: u32 = 60;

/// What was used of an amount that is allowed in any span of one length.
#[derive(Debug, Clone, Default)]
pub struct Window {
    /// Oldest first.
    parts: VecDeque<Part>,
    used: u64,
}

#[derive(Debug, Clone, Copy)]
struct Part {
    first: Instant,
    last: Instant,
    amount: u64,
}

impl Window {
    /// When `amount` may be used without there being more than `most` in any `span`; `None` if never.
    #[must_use]
    pub fn ready_at(&self, amount: u64, most: u64, span: Duration, now: Instant) -> Option<Instant> {
        let mut surplus = self.used.checked_add(amount)?.saturating_sub(most);
        if amount > most {
            return None;
        }
        let mut ready = now;
        for part in &self.parts {
            let leaves = part.last + span;
            if leaves > now {
                if surplus == 0 {
                    break;
                }
                ready = leaves;
            }
            surplus = surplus.saturating_sub(part.amount);
        }
        Some(ready)
    }

    /// Uses `amount`, whether or not it was ready.
    pub fn take(&mut self, amount: u64, span: Duration, now: Instant) {
        while self.parts.front().is_some_and(|part| part.last + span <= now) {
            self.used -= self.parts.pop_front().map_or(0, |part| part.amount);
        }
        self.used = self.used.saturating_add(amount);
        match self.parts.back_mut() {
            Some(part) if now < part.first + span / PARTS => {
                part.last = part.last.max(now);
                part.amount = part.amount.saturating_add(amount);
            }
            _ => self.parts.push_back(Part { first: now, last: now, amount }),
        }
    }

    /// Gives back what was taken and not used after all: the newest of it.
    pub fn give_back(&mut self, mut amount: u64) {
        for part in self.parts.iter_mut().rev() {
            let back = amount.min(part.amount);
            part.amount -= back;
            self.used -= back;
            amount -= back;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn what_is_used_comes_back_a_minute_later() {
        let start = Instant::now();
        let second = |n: u64| start + Duration::from_secs(n);
        let mut window = Window::default();
        window.take(6, MINUTE, start);
        window.take(4, MINUTE, second(10));
        for (amount, at, ready) in [
            (0, 10, Some(10)),
            (1, 10, Some(60)),
            (6, 10, Some(60)),
            (7, 10, Some(70)),
            (10, 10, Some(70)),
            (11, 10, None),
            (6, 60, Some(60)),
            (7, 60, Some(70)),
            (10, 70, Some(70)),
        ] {
            let found = window.ready_at(amount, 10, MINUTE, second(at));
            assert_eq!(found, ready.map(second), "{amount} at {at}");
        }
        window.give_back(5);
        assert_eq!(window.ready_at(5, 10, MINUTE, second(10)), Some(second(10)), "of the newest first");
        assert_eq!(window.ready_at(6, 10, MINUTE, second(10)), Some(second(60)));
    }

    proptest! {
        #[test]
        fn no_minute_holds_more_than_is_allowed_and_memory_is_bounded(
            most in 1_u64..50,
            wanted in prop::collection::vec((0_u64..20_000, 1_u64..20), 1..200),
        ) {
            let mut now = Instant::now();
            let mut window = Window::default();
            let mut used: Vec<(Instant, u64)> = Vec::new();
            for (rest, amount) in wanted {
                now += Duration::from_millis(rest);
                let Some(ready) = window.ready_at(amount, most, MINUTE, now) else {
                    prop_assert!(amount > most);
                    continue;
                };
                now = ready;
                prop_assert_eq!(window.ready_at(amount, most, MINUTE, now), Some(now));
                window.take(amount, MINUTE, now);
                used.push((now, amount));
                let of_minute: u64 = used.iter().filter(|(at, _)| *at + MINUTE > now).map(|(_, amount)| amount).sum();
                prop_assert!(of_minute <= most, "{} of {}", of_minute, most);
                prop_assert!(window.parts.len() <= PARTS as usize + 1);
            }
        }
    }
}
