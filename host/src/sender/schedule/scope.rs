//! When floods are more than one chat's affair. Pure: the time is given.
//!
//! - Three chats flooded within ten seconds, or a flood on a call that has no chat, pause bulk for the shortest wait
//!   that was named. The flooded chats themselves wait for their own.
//! - Three more while bulk is paused pause replies too, but only if there were more floods than successes meanwhile:
//!   as long as most chats are answered, the floods are those chats' own, and the others should not notice.
//! - When the pause is over, one call goes first. If that is not flooded, everything is open again.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use super::lane::Class;
use crate::domain::Lane;

const SPAN: Duration = Duration::from_secs(10);
const CHATS: usize = 3;

/// What waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Paused {
    Bulk,
    /// And everything but answers to queries.
    Replies,
}

#[derive(Default)]
pub(super) struct Scope {
    /// Of the last seconds: when, where, how long.
    floods: VecDeque<(Instant, Lane, Duration)>,
    /// Since the first of them.
    successes: usize,
    paused: Option<(Paused, Instant)>,
    /// The call that tries whether the pause is over.
    probe: Option<Lane>,
}

impl Scope {
    /// A call was flooded. Answers with what is paused by that.
    pub(super) fn flooded(&mut self, lane: Lane, wait: Duration, now: Instant) -> Option<Paused> {
        if lane.is_urgent() {
            return None;
        }
        while self.floods.front().is_some_and(|(at, ..)| *at + SPAN <= now) {
            self.floods.pop_front();
        }
        if self.floods.is_empty() {
            self.successes = 0;
        }
        self.floods.push_back((now, lane, wait));
        let was_probe = self.probe == Some(lane);
        if was_probe {
            self.probe = None;
        }
        let mut lanes: Vec<Lane> = self.floods.iter().map(|(_, lane, _)| *lane).collect();
        lanes.sort_unstable();
        lanes.dedup();
        let many = lanes.len() >= CHATS;
        if !many && lane != Lane::Other && !was_probe {
            return None;
        }
        let everywhere = many && self.floods.len() > self.successes;
        let paused = match self.paused {
            Some((Paused::Replies, _)) => Paused::Replies,
            Some((Paused::Bulk, _)) if everywhere => Paused::Replies,
            _ => Paused::Bulk,
        };
        let shortest = self.floods.iter().map(|(.., wait)| *wait).min().unwrap_or(wait);
        let until = self.paused.map_or(now, |(_, until)| until).max(now + shortest);
        self.paused = Some((paused, until));
        self.floods.clear();
        self.successes = 0;
        Some(paused)
    }

    /// A call has begun.
    pub(super) fn begun(&mut self, lane: Lane, class: Class) {
        if self.covers(class) {
            self.probe = Some(lane);
        }
    }

    /// A call has ended without a flood; `answered` if Telegram took it up.
    pub(super) fn ended(&mut self, lane: Lane, answered: bool) {
        if answered {
            self.successes += 1;
        }
        if self.probe == Some(lane) {
            self.probe = None;
            if answered {
                self.paused = None;
            }
        }
    }

    /// When calls of this class may go; never while another tries.
    pub(super) fn open_at(&self, class: Class) -> Option<Instant> {
        self.paused.filter(|_| self.covers(class)).map(|(_, until)| until)
    }

    pub(super) fn is_probing(&self, class: Class) -> bool {
        self.probe.is_some() && self.covers(class)
    }

    fn covers(&self, class: Class) -> bool {
        match self.paused {
            None => false,
            Some((Paused::Bulk, _)) => class >= Class::Bulk,
            Some((Paused::Replies, _)) => class != Class::Urgent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{ChatId, UserId};

    const SECOND: Duration = Duration::from_secs(1);

    fn chat(id: i64) -> Lane {
        Lane::Chat(ChatId(id))
    }

    #[test]
    fn three_chats_pause_bulk_for_the_shortest_wait_and_one_chat_does_not() {
        let now = Instant::now();
        let mut scope = Scope::default();
        for _ in 0..5 {
            assert_eq!(scope.flooded(chat(1), SECOND, now), None);
        }
        assert_eq!(scope.flooded(chat(2), 40 * SECOND, now), None);
        assert_eq!(scope.flooded(Lane::Urgent(UserId(1)), SECOND, now), None);
        // Too late to count with the others.
        assert_eq!(scope.flooded(chat(3), 40 * SECOND, now + SPAN), None);
        assert_eq!(scope.flooded(chat(4), 30 * SECOND, now + SPAN), None);
        assert_eq!(scope.flooded(chat(5), 50 * SECOND, now + SPAN), Some(Paused::Bulk));
        assert_eq!(scope.open_at(Class::Bulk), Some(now + SPAN + 30 * SECOND));
        assert_eq!(scope.open_at(Class::Interactive), None);
    }

    #[test]
    fn a_flood_without_a_chat_pauses_bulk_and_never_replies() {
        let now = Instant::now();
        let mut scope = Scope::default();
        for _ in 0..3 {
            assert_eq!(scope.flooded(Lane::Other, 491 * SECOND, now), Some(Paused::Bulk));
        }
        assert_eq!(scope.open_at(Class::Normal), None);
    }

    #[test]
    fn replies_are_paused_only_where_floods_are_the_rule() {
        for (successes, expect) in [(0, Paused::Replies), (2, Paused::Replies), (3, Paused::Bulk)] {
            let now = Instant::now();
            let mut scope = Scope::default();
            let mut last = None;
            for id in 1..=6 {
                last = scope.flooded(chat(id), SECOND, now);
                if id == 4 {
                    (0..successes).for_each(|_| scope.ended(chat(100), true));
                }
            }
            assert_eq!(last, Some(expect), "{successes}");
        }
    }

    #[test]
    fn one_call_tries_before_the_rest() {
        let now = Instant::now();
        let mut scope = Scope::default();
        for id in 1..=3 {
            scope.flooded(chat(id), 5 * SECOND, now);
        }
        scope.begun(chat(7), Class::Interactive);
        assert!(!scope.is_probing(Class::Bulk));
        scope.begun(chat(8), Class::Bulk);
        assert!(scope.is_probing(Class::Bulk) && !scope.is_probing(Class::Interactive));
        // It did not reach Telegram: another may try.
        scope.ended(chat(8), false);
        assert!(!scope.is_probing(Class::Bulk) && scope.open_at(Class::Bulk).is_some());
        scope.begun(chat(9), Class::Bulk);
        assert_eq!(scope.flooded(chat(9), 9 * SECOND, now + 5 * SECOND), Some(Paused::Bulk));
        assert!(!scope.is_probing(Class::Bulk));
        scope.begun(chat(9), Class::Bulk);
        scope.ended(chat(9), true);
        assert_eq!(scope.open_at(Class::Bulk), None);
    }
}
