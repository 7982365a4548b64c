//! Whose turn it is; pure.
//!
//! A lane is known while it has something waiting or under way. Of its events only the fact is held here, not the
//! content and not the number: what waits stays in the inbox on disk. Lanes take turns, urgent ones first, so a
//! chat with ten thousand waiting updates costs the others nothing.

use std::collections::{HashMap, VecDeque};

use crate::domain::Lane;

/// Above this many known lanes, further ones stay on disk only until there is room.
const MAX_LANES: usize = 250_000;

/// The lanes with something to do.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    known: HashMap<Lane, State>,
    urgent: VecDeque<Lane>,
    ready: VecDeque<Lane>,
    overflowed: bool,
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
    pub(super) lane: Lane,
    arrivals: u64,
}

impl Lanes {
    /// Something has come for the lane.
    pub(super) fn arrived(&mut self, lane: Lane) {
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

    /// The lane whose turn it is.
    pub(super) fn next(&mut self) -> Option<Turn> {
        let lane = self.urgent.pop_front().or_else(|| self.ready.pop_front())?;
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

    fn enqueue(&mut self, lane: Lane) {
        if lane.is_urgent() { &mut self.urgent } else { &mut self.ready }.push_back(lane);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;
    use crate::domain::{ChatId, UserId};

    fn chat(id: i64) -> Lane {
        Lane::Chat(ChatId(id))
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
        lanes.arrived(Lane::Urgent(UserId(5)));
        assert_eq!(lanes.next().unwrap().lane, Lane::Urgent(UserId(5)));
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
        Arrive(u8),
        Begin,
        End(prop::sample::Index),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            (0u8..4).prop_map(Step::Arrive),
            Just(Step::Begin),
            any::<prop::sample::Index>().prop_map(Step::End)
        ];
        prop::collection::vec(step, 0..300)
    }

    proptest! {
        /// Against a model of the inbox: every event gets its turn, and no lane has two at once.
        #[test]
        fn everything_that_arrives_is_handled(steps in steps()) {
            let (mut lanes, mut inbox, mut running) = (Lanes::default(), HashMap::<Lane, u32>::new(), Vec::new());
            let begin = |lanes: &mut Lanes, inbox: &mut HashMap<Lane, u32>, running: &mut Vec<(Turn, bool)>| {
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
                    Step::Arrive(id) => {
                        *inbox.entry(chat(id.into())).or_default() += 1;
                        lanes.arrived(chat(id.into()));
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
