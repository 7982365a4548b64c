//! One lane: what waits in it, and what holds it back.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use super::super::broadcast::Cast;
use super::super::direct::Direct;
use crate::domain::Lane;
use crate::limit::{Pace, Quota};
use crate::store::rows::outbox::Priority;

const MINUTE: Duration = Duration::from_secs(60);

/// In the order in which they go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    Urgent,
    Interactive,
    Normal,
    Bulk,
    /// Bulk that Telegram is paid for: limits of its own.
    Paid,
}

pub(super) const CLASSES: [Class; 5] = [Class::Urgent, Class::Interactive, Class::Normal, Class::Bulk, Class::Paid];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Between two phases.
    Settling,
    /// In the queue of a class.
    Ready(Class),
    /// While lanes of the same chat go first.
    Held,
    /// Until then: to send, or to be forgotten.
    Waiting(Instant),
    InFlight,
}

pub(super) struct LaneState {
    pub(super) phase: Phase,
    /// The first row and the last; both durable.
    pub(super) head: Option<u64>,
    pub(super) last: u64,
    /// Rows up to here go as interactive ones, because one that is waits among them.
    interactive_up_to: u64,
    normal_up_to: u64,
    pub(super) direct: VecDeque<Direct>,
    /// Broadcasts' calls, which go when nothing else waits.
    pub(super) casts: VecDeque<Cast>,
    /// The class of what is in flight.
    pub(super) under_way: Class,
    pub(super) pace: Pace,
    pub(super) blocked_until: Option<Instant>,
    /// After a flood: the tenths of its rate that it has, one more with every minute from then on.
    slowed: Option<(u32, Instant)>,
    /// Failures of the head in a row, and when they began.
    pub(super) failures: u32,
    pub(super) failing_since: Option<Instant>,
    /// One of them may have taken effect.
    pub(super) ambiguous: bool,
    /// How much doubt there is, as `decide::doubt` counts.
    pub(super) doubts: u32,
    /// Others succeeded when the attempt that is under way, or was the last, began.
    pub(super) amid_success: bool,
}

impl LaneState {
    pub(super) fn new() -> Self {
        Self {
            phase: Phase::Settling,
            head: None,
            last: 0,
            interactive_up_to: 0,
            normal_up_to: 0,
            direct: VecDeque::new(),
            casts: VecDeque::new(),
            under_way: Class::Normal,
            pace: Pace::default(),
            blocked_until: None,
            slowed: None,
            failures: 0,
            failing_since: None,
            ambiguous: false,
            doubts: 0,
            amid_success: false,
        }
    }

    /// Goes on with the pace and the floods of another lane of the same chat.
    pub(super) fn inherit(&mut self, elder: &Self) {
        self.pace = elder.pace.clone();
        (self.blocked_until, self.slowed) = (elder.blocked_until, elder.slowed);
    }

    /// Another row is the first now, if there is one.
    pub(super) fn go_on(&mut self, next: Option<(u64, Priority)>) {
        self.head = next.map(|(number, _)| number);
        (self.failures, self.failing_since, self.ambiguous, self.doubts) = (0, None, false, 0);
        if let Some((number, priority)) = next {
            self.raise(number, priority);
        }
    }

    pub(super) fn raise(&mut self, number: u64, priority: Priority) {
        match priority {
            Priority::Interactive => self.interactive_up_to = self.interactive_up_to.max(number),
            Priority::Normal => self.normal_up_to = self.normal_up_to.max(number),
            Priority::Bulk => {}
        }
    }

    pub(super) fn class_of_row(&self, number: u64) -> Class {
        if number <= self.interactive_up_to {
            Class::Interactive
        } else if number <= self.normal_up_to {
            Class::Normal
        } else {
            Class::Bulk
        }
    }

    /// `None` if there is nothing to send.
    pub(super) fn class(&self, id: Lane) -> Option<Class> {
        match (self.head, self.direct.is_empty()) {
            (None, true) => self.casts.front().map(|cast| if cast.paid { Class::Paid } else { Class::Bulk }),
            (Some(_), _) if id.is_urgent() => Some(Class::Urgent),
            (_, false) => Some(Class::Interactive),
            (Some(head), true) => Some(self.class_of_row(head)),
        }
    }

    /// The direct call that goes next: not before the replies that were queued when it came.
    pub(super) fn take_direct(&mut self) -> Option<Direct> {
        let first = self.direct.front()?;
        let goes = self.head.is_none_or(|head| head > first.after || self.class_of_row(head) == Class::Bulk);
        if goes { self.direct.pop_front() } else { None }
    }

    /// Halves the rate, which begins to recover at `until`.
    pub(super) fn slow_down(&mut self, until: Instant, now: Instant) {
        self.slowed = Some(((self.tenths(now) / 2).max(1), until));
    }

    fn tenths(&self, now: Instant) -> u32 {
        self.slowed.map_or(10, |(tenths, from)| {
            let minutes = now.saturating_duration_since(from).as_secs() / MINUTE.as_secs();
            tenths.saturating_add(u32::try_from(minutes).unwrap_or(10)).min(10)
        })
    }

    /// What it keeps to just now.
    pub(super) fn quota(&self, nominal: Option<&Quota>, now: Instant) -> Option<Quota> {
        nominal.map(|quota| quota.tenths(self.tenths(now)))
    }

    pub(super) fn take(&mut self, nominal: Option<&Quota>, weight: u32, now: Instant) {
        if let Some(quota) = self.quota(nominal, now) {
            self.pace.take(&quota, weight, now);
        }
    }

    pub(super) fn free_at(&self, nominal: Option<&Quota>, now: Instant) -> Instant {
        let paced = self.quota(nominal, now).map_or(now, |quota| self.pace.ready_at(&quota, 1, now));
        self.blocked_until.map_or(paced, |blocked| paced.max(blocked))
    }

    pub(super) fn rested_at(&self, nominal: Option<&Quota>, now: Instant) -> Instant {
        let rested = self.quota(nominal, now).map_or(now, |quota| self.pace.rested_at(&quota, now));
        let recovered = self.slowed.filter(|_| nominal.is_some()).map(|(tenths, from)| from + MINUTE * (10 - tenths));
        let rested = recovered.map_or(rested, |recovered| rested.max(recovered));
        self.blocked_until.map_or(rested, |blocked| rested.max(blocked))
    }
}
