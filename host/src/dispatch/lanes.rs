//! Whose turn it is; pure.
//!
//! A lane is known while it has something waiting or under way. Of its events only the fact is held here, not the
//! content and not the number: what waits stays in the inbox on disk. Places take turns, urgent ones first, and within a
//! place its lanes do, so a chat with ten thousand waiting updates costs the others nothing, nor does one with ten
//! thousand people each of whom has a lane. What users order the host itself to do goes before everything.

use std::collections::{HashMap, VecDeque};

use crate::domain::{EventLane, Lane, Part};

/// Above this many known lanes, further ones stay on disk only until there is room.
const MAX_LANES: usize = 250_000;

/// The lanes with something to do.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    known: HashMap<EventLane, State>,
    control: VecDeque<EventLane>,
    urgent: VecDeque<EventLane>,
    ready: VecDeque<Ready>,
    /// The ready lanes of places that have several; the place itself stands in `ready` once.
    parts: HashMap<Lane, VecDeque<EventLane>>,
    overflowed: bool,
}

#[derive(Debug)]
enum Ready {
    Lane(EventLane),
    OneOf(Lane),
}

#[derive(Debug, Default)]
struct State {
    /// Counts what has been announced, so that a finished run knows whether more has come since it began.
    arrivals: u64,
    /// Taken by a run, or waiting for its time; not in a queue.
    busy: bool,
}

/// A lane's turn. It is over with [`Lanes::finished`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Turn {
    pub(super) lane: EventLane,
    arrivals: u64,
}

impl Lanes {
    /// Something has come for the lane.
    pub(super) fn arrived(&mut self, lane: EventLane) {
        if self.known.len() >= MAX_LANES && !self.known.contains_key(&lane) {
            self.overflowed = true;
            return;
        }
        let state = self.known.entry(lane).or_default();
        state.arrivals += 1;
        if state.arrivals == 1 && !state.busy {
            self.enqueue(lane);
        }
    }

    /// The lane of a user's order whose turn it is.
    pub(super) fn next_control(&mut self) -> Option<Turn> {
        let lane = self.control.pop_front()?;
        self.begin(lane)
    }

    /// The lane whose turn it is.
    pub(super) fn next(&mut self) -> Option<Turn> {
        let lane = match self.urgent.pop_front() {
            Some(lane) => lane,
            None => match self.ready.pop_front()? {
                Ready::Lane(lane) => lane,
                Ready::OneOf(place) => self.next_of(place)?,
            },
        };
        self.begin(lane)
    }

    fn next_of(&mut self, place: Lane) -> Option<EventLane> {
        let lanes = self.parts.get_mut(&place)?;
        let lane = lanes.pop_front();
        if lanes.is_empty() {
            self.parts.remove(&place);
        } else {
            self.ready.push_back(Ready::OneOf(place));
        }
        lane
    }

    fn begin(&mut self, lane: EventLane) -> Option<Turn> {
        let state = self.known.get_mut(&lane)?;
        state.busy = true;
        Some(Turn { lane, arrivals: state.arrivals })
    }

    /// A turn is over. `more` says whether the lane held further events when its run began.
    pub(super) fn finished(&mut self, turn: Turn, more: bool) {
        let Some(state) = self.known.get_mut(&turn.lane) else { return };
        if more || state.arrivals != turn.arrivals {
            state.busy = false;
            self.enqueue(turn.lane);
        } else {
            self.known.remove(&turn.lane);
        }
    }

    /// True once, when lanes were left on disk and there is room for them now: time to look there again.
    pub(super) fn take_overflow(&mut self) -> bool {
        self.overflowed && self.known.len() < MAX_LANES / 2 && std::mem::take(&mut self.overflowed)
    }

    pub(super) fn has_room(&self) -> bool {
        self.known.len() < MAX_LANES
    }

    pub(super) fn set_overflowed(&mut self) {
        self.overflowed = true;
    }

    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    fn enqueue(&mut self, lane: EventLane) {
        match lane.part {
            Part::Control(_) => self.control.push_back(lane),
            _ if lane.place.is_urgent() => self.urgent.push_back(lane),
            Part::Whole => self.ready.push_back(Ready::Lane(lane)),
            _ => {
                let lanes = self.parts.entry(lane.place).or_default();
                if lanes.is_empty() {
                    self.ready.push_back(Ready::OneOf(lane.place));
                }
                lanes.push_back(lane);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;
    use crate::domain::{ChatId, UserId};

    fn chat(id: i64) -> EventLane {
        EventLane::whole(Lane::Chat(ChatId(id)))
    }

    fn user_in_chat(chat: i64, user: i64) -> EventLane {
        EventLane { place: Lane::Chat(ChatId(chat)), part: Part::User(UserId(user)) }
    }

    #[test]
    fn one_event_of_a_lane_at_a_time() {
        let mut lanes = Lanes::default();
        lanes.arrived(chat(1));
        lanes.arrived(chat(1));
        let turn = lanes.next().unwrap();
        lanes.arrived(chat(1));
        assert_eq!(lanes.next(), None, "chat 1 is busy");
        lanes.finished(turn, true);
        assert_eq!(lanes.next().unwrap().lane, chat(1));
    }

    #[test]
    fn a_chat_with_much_waiting_takes_turns_with_the_others() {
        let mut lanes = Lanes::default();
        for _ in 0..1000 {
            lanes.arrived(chat(1));
        }
        lanes.arrived(chat(2));
        let first = lanes.next().unwrap();
        lanes.finished(first, true);
        assert_eq!(lanes.next().unwrap().lane, chat(2));
    }

    #[test]
    fn urgent_lanes_go_first() {
        let mut lanes = Lanes::default();
        lanes.arrived(chat(1));
        let urgent = EventLane::whole(Lane::Urgent(UserId(5)));
        lanes.arrived(urgent);
        assert_eq!(lanes.next().unwrap().lane, urgent);
    }

    #[test]
    fn people_of_a_group_run_beside_each_other_and_the_group_takes_turns_as_one() {
        let mut lanes = Lanes::default();
        for user in 0..1000 {
            lanes.arrived(user_in_chat(1, user));
        }
        lanes.arrived(chat(2));
        lanes.arrived(user_in_chat(3, 1));
        let first: Vec<_> = (0..4).map(|_| lanes.next().unwrap().lane).collect();
        assert_eq!(first, [user_in_chat(1, 0), chat(2), user_in_chat(3, 1), user_in_chat(1, 1)]);
        let others = std::iter::from_fn(|| lanes.next()).count();
        assert_eq!(others, 998, "nobody waits for anybody else of the group");
    }

    #[test]
    fn an_order_to_the_host_waits_for_nothing() {
        let mut lanes = Lanes::default();
        lanes.arrived(chat(1));
        assert_eq!(lanes.next_control(), None);
        let busy = lanes.next().unwrap();
        let control = EventLane { place: busy.lane.place, part: Part::Control(UserId(5)) };
        lanes.arrived(control);
        assert_eq!(lanes.next(), None, "it takes no ordinary turn");
        assert_eq!(lanes.next_control().unwrap().lane, control);
    }

    #[test]
    fn what_comes_while_a_run_ends_is_not_forgotten() {
        let mut lanes = Lanes::default();
        lanes.arrived(chat(1));
        let turn = lanes.next().unwrap();
        lanes.arrived(chat(1));
        lanes.finished(turn, false);
        assert_eq!(lanes.next().unwrap().lane, chat(1));
    }

    #[test]
    fn the_number_of_lanes_in_memory_is_bounded() {
        let mut lanes = Lanes::default();
        for id in 0..=MAX_LANES as i64 {
            lanes.arrived(chat(id));
        }
        assert_eq!(lanes.len(), MAX_LANES);
        assert!(!lanes.take_overflow(), "no room yet");
        while let Some(turn) = lanes.next() {
            lanes.finished(turn, false);
        }
        assert!(lanes.take_overflow());
        assert!(!lanes.take_overflow(), "told once");
    }

    #[derive(Debug, Clone)]
    enum Step {
        Arrive(EventLane),
        Begin,
        End(prop::sample::Index),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            prop_oneof![(0i64..4).prop_map(chat), (0i64..2, 0i64..3).prop_map(|(chat, user)| user_in_chat(chat, user))]
                .prop_map(Step::Arrive),
            Just(Step::Begin),
            any::<prop::sample::Index>().prop_map(Step::End)
        ];
        prop::collection::vec(step, 0..300)
    }

    proptest! {
        /// Against a model of the inbox: every event gets its turn, and no lane has two at once.
        #[test]
        fn everything_that_arrives_is_handled(steps in steps()) {
            let (mut lanes, mut inbox, mut running) = (Lanes::default(), HashMap::<EventLane, u32>::new(), Vec::new());
            let begin = |lanes: &mut Lanes, inbox: &mut HashMap<EventLane, u32>, running: &mut Vec<(Turn, bool)>| {
                let Some(turn) = lanes.next() else { return false };
                assert!(running.iter().all(|(other, _)| other.lane != turn.lane));
                let waiting = inbox.get_mut(&turn.lane).unwrap();
                assert!(*waiting > 0, "a turn for nothing");
                *waiting -= 1;
                running.push((turn, *waiting > 0));
                true
            };
            for step in steps {
                match step {
                    Step::Arrive(lane) => {
                        *inbox.entry(lane).or_default() += 1;
                        lanes.arrived(lane);
                    }
                    Step::Begin => { begin(&mut lanes, &mut inbox, &mut running); }
                    Step::End(which) if !running.is_empty() => {
                        let (turn, more) = running.swap_remove(which.index(running.len()));
                        lanes.finished(turn, more);
                    }
                    Step::End(_) => {}
                }
            }
            loop {
                for (turn, more) in running.drain(..) {
                    lanes.finished(turn, more);
                }
                if !begin(&mut lanes, &mut inbox, &mut running) {
                    break;
                }
            }
            prop_assert!(inbox.values().all(|&waiting| waiting == 0), "{:?}", inbox);
            prop_assert_eq!(lanes.len(), 0);
        }
    }
}
