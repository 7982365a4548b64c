//! Whose turn it is: lanes, classes and paces. No clock and no I/O; every question comes with the time.
//!
//! - A lane has at most one call in flight and, while it waits for a time, at most one timer that counts; what
//!   else lies in the queues and the heap is stale and is recognised by the lane's [`Phase`].
//! - A lane's calls go in order, so a call that has bulk before it in its lane lends the bulk its own class.
//! - A lane that has nothing to send is forgotten as soon as its pace is as good as new.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use super::SendSettings;
use super::broadcast::Cast;
use super::direct::Direct;
use super::outbox::LaneView;
use crate::domain::Lane;
use crate::limit::{Pace, Quota};
use crate::store::rows::outbox::Priority;

mod kin;
mod lane;
mod quotas;
mod scope;

use kin::Kin;
use lane::{CLASSES, Class, LaneState, Phase};
use quotas::Quotas;
pub(super) use scope::Paused;
use scope::Scope;

/// Calls in flight, of all lanes together.
const MOST_IN_FLIGHT: usize = 100;
/// More that answers to queries may be: they must not wait for slow calls.
const RESERVED_FOR_URGENT: usize = 28;
/// Of the calls in flight, those that bulk leaves to replies: they must not wait for slow calls either.
const RESERVED_FOR_REPLIES: usize = 20;
/// Paid calls in flight, beside the others.
const MOST_PAID: usize = 100;

/// What to do now.
pub(super) enum Work {
    Row { lane: Lane, number: u64 },
    Direct { lane: Lane, direct: Direct },
    Cast { lane: Lane, cast: Cast },
}

/// How a call of a lane has ended.
pub(super) enum End {
    /// The head is done; the lane's next row, if there is one.
    RowDone(Option<(u64, Priority)>),
    /// The head stays.
    RowStays,
    DirectDone,
    /// To be tried again.
    DirectStays(Direct),
    /// A broadcast's call; whether it is tried again is the broadcast's affair.
    CastDone,
}

pub(super) struct Schedule {
    lanes: HashMap<Lane, LaneState>,
    ready: [VecDeque<Lane>; CLASSES.len()],
    timers: BinaryHeap<Reverse<(Instant, Lane)>>,
    /// When a direct call that has not begun is too late.
    deadlines: BinaryHeap<Reverse<(Instant, Lane)>>,
    quotas: Quotas,
    overall: Pace,
    bulk: Pace,
    paid: Pace,
    scope: Scope,
    kin: Kin,
    /// Of those in flight, the ones that only wait for an upload, or make one.
    aside: Arc<AtomicUsize>,
    /// Without paid ones.
    in_flight: usize,
    paid_in_flight: usize,
    /// Until then, nothing goes; after it, one call at a time until [`Schedule::resume`].
    halted_until: Option<Instant>,
}

impl Schedule {
    pub(super) fn new(settings: &SendSettings) -> Self {
        Self {
            lanes: HashMap::new(),
            ready: Default::default(),
            timers: BinaryHeap::new(),
            deadlines: BinaryHeap::new(),
            quotas: Quotas::new(settings),
            overall: Pace::default(),
            bulk: Pace::default(),
            paid: Pace::default(),
            scope: Scope::default(),
            kin: Kin::default(),
            in_flight: 0,
            aside: Arc::default(),
            paid_in_flight: 0,
            halted_until: None,
        }
    }

    /// Lets calls step aside, counted here.
    pub(super) fn with_aside(self, aside: Arc<AtomicUsize>) -> Self {
        Self { aside, ..self }
    }

    pub(super) fn reconfigure(&mut self, settings: &SendSettings, now: Instant) {
        self.quotas = Quotas::new(settings);
        let waiting = |(lane, state): (&Lane, &LaneState)| matches!(state.phase, Phase::Waiting(_)).then_some(*lane);
        for lane in self.lanes.iter().filter_map(waiting).collect::<Vec<_>>() {
            self.settle(lane, now);
        }
    }

    /// Nothing of the lane goes before `until`.
    pub(super) fn block(&mut self, id: Lane, until: Instant, now: Instant) {
        let lane = self.lanes.entry(id).or_insert_with(LaneState::new);
        lane.blocked_until = lane.blocked_until.max(Some(until));
        self.settle(id, now);
    }

    /// A row is there, and those from `number` to `last` are too.
    pub(super) fn add(&mut self, id: Lane, number: u64, last: u64, priority: Priority, now: Instant) {
        let lane = self.lanes.entry(id).or_insert_with(LaneState::new);
        lane.head.get_or_insert(number);
        lane.last = lane.last.max(last);
        lane.raise(number, priority);
        self.settle(id, now);
    }

    pub(super) fn add_direct(&mut self, id: Lane, mut direct: Direct, now: Instant) {
        let lane = self.lanes.entry(id).or_insert_with(LaneState::new);
        direct.after = if lane.head.is_some() { lane.last } else { 0 };
        let free_at = lane.free_at(self.quotas.of(id), now);
        if self.halted_until.is_some_and(|until| until > now) {
            direct.unauthorized();
        } else if free_at > direct.deadline {
            direct.flooded(free_at, now);
        } else {
            self.deadlines.push(Reverse((direct.deadline, id)));
            lane.direct.push_back(direct);
        }
        self.settle(id, now);
    }

    /// A broadcast's call for this lane.
    pub(super) fn add_cast(&mut self, id: Lane, cast: Cast, now: Instant) {
        self.lanes.entry(id).or_insert_with(LaneState::new).casts.push_back(cast);
        self.settle(id, now);
    }

    /// Takes a broadcast's calls out of a lane again: those that have not begun.
    pub(super) fn take_casts(&mut self, id: Lane, which: impl Fn(&Cast) -> bool, now: Instant) -> Vec<Cast> {
        let Some(lane) = self.lanes.get_mut(&id) else { return Vec::new() };
        let (taken, left) = std::mem::take(&mut lane.casts).into_iter().partition(|cast| which(cast));
        lane.casts = left;
        self.settle(id, now);
        self.release(id, now);
        VecDeque::into(taken)
    }

    /// When the lane could send, as far as its own limits go.
    pub(super) fn free_at(&self, id: Lane, now: Instant) -> Instant {
        self.lanes.get(&id).map_or(now, |lane| lane.free_at(self.quotas.of(id), now))
    }

    /// What comes next, if something can go now. Counts it as in flight.
    pub(super) fn next(&mut self, now: Instant) -> Option<Work> {
        self.fire(now);
        for class in CLASSES {
            while self.has_room(class) && !self.scope.is_probing(class) && self.open_at(class, now) <= now {
                let Some(id) = self.ready[class as usize].pop_front() else { break };
                if let Some(work) = self.start(id, class, now) {
                    return Some(work);
                }
            }
        }
        None
    }

    /// When to ask again, if nothing else happens before.
    pub(super) fn wake_at(&self, now: Instant) -> Option<Instant> {
        let timers = [self.timers.peek(), self.deadlines.peek()].into_iter().flatten().map(|Reverse((at, _))| *at);
        let queues = CLASSES
            .into_iter()
            .filter(|class| {
                self.has_room(*class) && !self.scope.is_probing(*class) && !self.ready[*class as usize].is_empty()
            })
            .map(|class| self.open_at(class, now));
        timers.chain(queues).min()
    }

    /// The last row of a lane that is durable.
    pub(super) fn last_row(&self, id: Lane) -> u64 {
        self.lanes.get(&id).map_or(0, |lane| lane.last)
    }

    /// The first row of a lane.
    pub(super) fn head(&self, id: Lane) -> Option<u64> {
        self.lanes.get(&id).and_then(|lane| lane.head)
    }

    /// How a lane stands. While a direct call of it is under way, its first row counts as under way too.
    pub(super) fn view(&self, id: Lane, now: Instant) -> LaneView {
        let Some(lane) = self.lanes.get(&id) else { return LaneView::default() };
        let free_at = lane.free_at(self.quotas.of(id), now).max(self.heir_free_at(id, now));
        LaneView {
            in_flight: lane.head.filter(|_| lane.phase == Phase::InFlight),
            failures: lane.failures,
            waits: free_at - now,
        }
    }

    /// The first row of a lane, which is not in flight, is there no more; this one comes next.
    pub(super) fn skip(&mut self, id: Lane, next: Option<(u64, Priority)>, now: Instant) {
        let Some(lane) = self.lanes.get_mut(&id) else { return };
        lane.go_on(next);
        self.settle(id, now);
        self.release(id, now);
    }

    /// Counts a failure of the lane's head: how many there were in a row, and for how long. `ambiguous` tells that it
    /// may have taken effect.
    pub(super) fn count_failure(&mut self, id: Lane, ambiguous: bool, now: Instant) -> (u32, Duration) {
        let Some(lane) = self.lanes.get_mut(&id) else { return (1, Duration::ZERO) };
        lane.failures = lane.failures.saturating_add(1);
        lane.ambiguous |= ambiguous;
        (lane.failures, now - *lane.failing_since.get_or_insert(now))
    }

    /// Adds to the doubt whether the lane's head has taken effect: how much there is by now.
    pub(super) fn count_doubt(&mut self, id: Lane, doubt: u32) -> u32 {
        let Some(lane) = self.lanes.get_mut(&id) else { return doubt };
        lane.doubts = lane.doubts.saturating_add(doubt);
        lane.doubts
    }

    /// An attempt at the lane's head begins, while others succeed or not.
    pub(super) fn begins(&mut self, id: Lane, amid_success: bool) {
        if let Some(lane) = self.lanes.get_mut(&id) {
            lane.amid_success = amid_success;
        }
    }

    /// Whether others succeeded when the last attempt at the lane's head began. One that began before the end of an outage
    /// belongs to it, whenever it fails.
    pub(super) fn began_amid_success(&self, id: Lane) -> bool {
        self.lanes.get(&id).is_some_and(|lane| lane.amid_success)
    }

    /// True if an attempt at the lane's head may have taken effect.
    pub(super) fn is_ambiguous(&self, id: Lane) -> bool {
        self.lanes.get(&id).is_some_and(|lane| lane.ambiguous)
    }

    /// A call was flooded, and nothing of its lane goes before `until`; to be told before its end. Answers with what is
    /// paused because this was one flood too many.
    pub(super) fn flooded(&mut self, id: Lane, until: Instant, now: Instant) -> Option<Paused> {
        for id in self.kin.heir(id).into_iter().chain([id]) {
            if let Some(lane) = self.lanes.get_mut(&id) {
                lane.slow_down(until, now);
                lane.blocked_until = lane.blocked_until.max(Some(until));
            }
        }
        self.scope.flooded(id, until - now, now)
    }

    /// A call has ended. The lane goes on, not before `blocked_until` if that is given. `weight` is what Telegram counts
    /// it for: nothing, if it certainly did not get there.
    pub(super) fn finish(&mut self, id: Lane, end: End, weight: u32, blocked_until: Option<Instant>, now: Instant) {
        let Some(lane) = self.lanes.get_mut(&id) else { return };
        let answered = match end {
            End::RowDone(_) | End::DirectDone => weight > 0,
            End::CastDone => weight > 0 && blocked_until.is_none(),
            End::RowStays | End::DirectStays(_) => false,
        };
        self.scope.ended(id, answered);
        // One was counted when it began.
        let (in_flight, quota, pace) = match lane.under_way {
            Class::Paid => (&mut self.paid_in_flight, &self.quotas.paid, &mut self.paid),
            _ => (&mut self.in_flight, &self.quotas.overall, &mut self.overall),
        };
        *in_flight -= 1;
        if let (Some(quota), 2..) = (quota, weight) {
            pace.take(quota, weight - 1, now);
        }
        // Counted from the end of the call: its arrival lies before that, so the next one is surely late enough.
        if weight > 0 {
            lane.take(self.quotas.of(id), weight, now);
        }
        lane.blocked_until = lane.blocked_until.max(blocked_until).filter(|until| *until > now);
        match end {
            End::RowDone(next) => lane.go_on(next),
            End::RowStays | End::DirectDone | End::CastDone => {}
            End::DirectStays(direct) => {
                self.deadlines.push(Reverse((direct.deadline, id)));
                lane.direct.push_front(direct);
            }
        }
        lane.phase = Phase::Settling;
        self.settle(id, now);
        self.charge_heir(id, weight, now);
        self.release(id, now);
    }

    /// True if a chat action would be of use and harm nobody.
    pub(super) fn may_act(&self, id: Lane, now: Instant) -> bool {
        let open = self.halted_until.is_none() && self.scope.open_at(Class::Interactive).is_none();
        open && !self.is_held(id)
            && self.lanes.get(&id).is_none_or(|lane| {
                lane.phase != Phase::InFlight
                    && lane.class(id).is_none_or(|class| class >= Class::Bulk)
                    && lane.free_at(self.quotas.of(id), now) <= now
            })
    }

    pub(super) fn halt(&mut self, until: Instant) {
        self.halted_until = Some(until);
    }

    pub(super) fn resume(&mut self) {
        self.halted_until = None;
    }

    pub(super) fn is_halted(&self) -> bool {
        self.halted_until.is_some()
    }

    /// How many lanes have something to send, or sent something a moment ago.
    #[cfg(test)]
    pub(super) fn n_lanes(&self) -> usize {
        self.lanes.len()
    }

    fn has_room(&self, class: Class) -> bool {
        let room = match (self.halted_until, class) {
            (Some(_), _) => return self.in_flight + self.paid_in_flight == 0,
            (None, Class::Paid) => return self.paid_in_flight < MOST_PAID,
            (None, Class::Urgent) => MOST_IN_FLIGHT + RESERVED_FOR_URGENT,
            (None, Class::Bulk) => MOST_IN_FLIGHT - RESERVED_FOR_REPLIES,
            (None, _) => MOST_IN_FLIGHT,
        };
        self.in_flight.saturating_sub(self.aside.load(Ordering::Relaxed)) < room
    }

    fn open_at(&self, class: Class, now: Instant) -> Instant {
        let ready_at = |quota: &Option<Quota>, pace: &Pace| quota.as_ref().map(|quota| pace.ready_at(quota, 1, now));
        let overall =
            ready_at(&self.quotas.overall, &self.overall).filter(|_| !matches!(class, Class::Urgent | Class::Paid));
        let bulk = ready_at(&self.quotas.bulk, &self.bulk).filter(|_| class == Class::Bulk);
        let paid = ready_at(&self.quotas.paid, &self.paid).filter(|_| class == Class::Paid);
        [overall, bulk, paid, self.halted_until, self.scope.open_at(class)]
            .into_iter()
            .flatten()
            .fold(now, Instant::max)
    }

    fn start(&mut self, id: Lane, class: Class, now: Instant) -> Option<Work> {
        let lane = self.lanes.get_mut(&id)?;
        if lane.phase != Phase::Ready(class) {
            return None;
        }
        lane.direct.retain(|direct| !direct.is_abandoned());
        if lane.class(id) != Some(class) || self.is_held(id) {
            self.settle(id, now);
            self.release(id, now);
            return None;
        }
        let lane = self.lanes.get_mut(&id)?;
        let work = match lane.take_direct() {
            Some(direct) => Work::Direct { lane: id, direct },
            None => match lane.head {
                Some(number) => Work::Row { lane: id, number },
                None => Work::Cast { lane: id, cast: lane.casts.pop_front()? },
            },
        };
        lane.phase = Phase::InFlight;
        lane.under_way = class;
        self.scope.begun(id, class);
        match class {
            Class::Paid => self.paid_in_flight += 1,
            _ => self.in_flight += 1,
        }
        let take = |quota: &Option<Quota>, pace: &mut Pace| {
            if let Some(quota) = quota {
                pace.take(quota, 1, now);
            }
        };
        match class {
            Class::Urgent => {}
            Class::Paid => take(&self.quotas.paid, &mut self.paid),
            Class::Bulk => {
                take(&self.quotas.overall, &mut self.overall);
                take(&self.quotas.bulk, &mut self.bulk);
            }
            Class::Interactive | Class::Normal => take(&self.quotas.overall, &mut self.overall),
        }
        Some(work)
    }

    /// What was to happen by now.
    fn fire(&mut self, now: Instant) {
        while let Some(Reverse((at, id))) = self.timers.peek().copied().filter(|Reverse((at, _))| *at <= now) {
            self.timers.pop();
            if self.lanes.get(&id).is_some_and(|lane| lane.phase == Phase::Waiting(at)) {
                self.settle(id, now);
            }
        }
        while let Some(Reverse((_, id))) = self.deadlines.peek().copied().filter(|Reverse((at, _))| *at <= now) {
            self.deadlines.pop();
            let Some(lane) = self.lanes.get_mut(&id) else { continue };
            let free_at = lane.free_at(self.quotas.of(id), now);
            let (late, in_time): (VecDeque<_>, _) =
                std::mem::take(&mut lane.direct).into_iter().partition(|direct| direct.deadline <= now);
            lane.direct = in_time;
            late.into_iter().for_each(|direct| direct.flooded(free_at, now));
            self.settle(id, now);
            self.release(id, now);
        }
    }

    /// Puts a lane where it belongs.
    fn settle(&mut self, id: Lane, now: Instant) {
        let (is_held, heir_free_at) = (self.is_held(id), self.heir_free_at(id, now));
        let Some(lane) = self.lanes.get_mut(&id) else { return };
        if lane.phase == Phase::InFlight {
            return;
        }
        let quota = self.quotas.of(id);
        let (class, at) = match lane.class(id) {
            Some(class) => (Some(class), lane.free_at(quota, now).max(heir_free_at)),
            None => (None, lane.rested_at(quota, now)),
        };
        match class {
            _ if at > now => {
                if lane.phase != Phase::Waiting(at) {
                    lane.phase = Phase::Waiting(at);
                    self.timers.push(Reverse((at, id)));
                }
            }
            None => {
                self.lanes.remove(&id);
            }
            Some(_) if is_held => lane.phase = Phase::Held,
            Some(class) => {
                if lane.phase != Phase::Ready(class) {
                    lane.phase = Phase::Ready(class);
                    self.ready[class as usize].push_back(id);
                }
            }
        }
    }
}
