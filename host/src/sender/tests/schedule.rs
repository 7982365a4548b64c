//! The schedule alone, under whatever comes.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::broadcast::Cast;
use super::super::schedule::{End, Schedule, Work};
use super::*;

#[derive(Debug, Clone, Copy)]
enum Step {
    Add(i64, Priority),
    Rest(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let priority = prop_oneof![Just(Priority::Interactive), Just(Priority::Normal), Just(Priority::Bulk)];
    let step = prop_oneof![
        4 => (-6_i64..6, priority).prop_map(|(chat, priority)| Step::Add(chat, priority)),
        1 => (0_u64..3_000).prop_map(Step::Rest),
    ];
    prop::collection::vec(step, 1..150)
}

/// The rows of each lane that are not sent, as the store would hold them.
type Outbox = BTreeMap<Lane, BTreeMap<u64, Priority>>;

fn next_row(outbox: &Outbox, lane: Lane, after: u64, last: u64) -> Option<(u64, Priority)> {
    outbox.get(&lane)?.range(after + 1..(last + 1).max(after + 1)).next().map(|(number, priority)| (*number, *priority))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn every_row_is_sent_once_in_the_order_of_its_lane_and_all_is_forgotten_after(
        steps in steps(),
        dice in prop::collection::vec(0_u8..10, 64),
    ) {
        let settings = SendSettings { overall_per_second: 10.0, ..SendSettings::default() };
        let mut schedule = Schedule::new(&settings);
        let mut outbox = Outbox::new();
        let mut sent: Vec<(Lane, u64, Instant)> = Vec::new();
        let mut begun: Vec<Instant> = Vec::new();
        let mut in_flight: Vec<(Lane, u64)> = Vec::new();
        let mut now = Instant::now();
        let mut dice = dice.into_iter().cycle();
        let mut steps = steps.into_iter().enumerate();
        let mut idle = 0;
        loop {
            match steps.next() {
                Some((number, Step::Add(chat, priority))) => {
                    let (lane, number) = (Lane::Chat(ChatId(chat)), number as u64 + 1);
                    outbox.entry(lane).or_default().insert(number, priority);
                    schedule.add(lane, number, number, priority, now);
                }
                Some((_, Step::Rest(millis))) => now += Duration::from_millis(millis),
                None => idle += 1,
            }
            while let Some(work) = schedule.next(now) {
                let Work::Row { lane, number } = work else { panic!() };
                prop_assert!(in_flight.iter().all(|(other, _)| *other != lane), "two of a lane in flight");
                in_flight.push((lane, number));
                begun.push(now);
            }
            // Something of what is in flight ends, well or not.
            if !in_flight.is_empty() {
                let (lane, number) = in_flight.swap_remove(dice.next().unwrap() as usize % in_flight.len());
                now += Duration::from_millis(u64::from(dice.next().unwrap()));
                if dice.next() == Some(0) {
                    schedule.finish(lane, End::RowStays, 1, Some(now + SECOND), now);
                } else {
                    sent.push((lane, number, now));
                    outbox.get_mut(&lane).unwrap().remove(&number);
                    let next = next_row(&outbox, lane, number, schedule.last_row(lane));
                    schedule.finish(lane, End::RowDone(next), 1, None, now);
                }
            } else if idle > 0 {
                let Some(at) = schedule.wake_at(now) else { break };
                prop_assert!(at > now, "it would be asked for ever");
                now = at;
            }
            prop_assert!(idle < 100_000);
        }
        prop_assert!(outbox.values().all(BTreeMap::is_empty), "left: {:?}", outbox);
        for lane in outbox.keys() {
            let numbers: Vec<_> = sent.iter().filter(|(of, ..)| of == lane).map(|(_, number, _)| *number).collect();
            prop_assert!(numbers.is_sorted_by(|a, b| a < b), "{:?}", numbers);
        }
        for at in &begun {
            prop_assert!(begun.iter().filter(|other| **other >= *at && **other < *at + SECOND).count() <= 10);
        }
        prop_assert_eq!(schedule.n_lanes(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_broadcast_that_is_taken_out_lets_the_chat_go_on_under_its_other_name() {
    let (elder, heir) = (Lane::Chat(ChatId(-7)), Lane::Chat(ChatId(-1_000_000_000_007)));
    let mut schedule = Schedule::new(&UNLIMITED);
    let now = Instant::now();
    schedule.add_cast(elder, Cast { job: 1, number: 1, paid: false }, now);
    schedule.join(elder, heir, now);
    schedule.add(heir, 1, 1, Priority::Interactive, now);
    assert_eq!(schedule.take_casts(elder, |_| true, now).len(), 1);
    assert!(matches!(schedule.next(now), Some(Work::Row { lane, .. }) if lane == heir));
}
