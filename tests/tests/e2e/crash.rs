//! `kill -9` at any moment: every update answered, state exact, duplicates only where an answer was in flight.

use std::collections::HashMap;
use std::time::Duration;

use botyard::simulator::{Action, Bulk, Fault, Simulator};
use botyard_tests::plugin;
use rand::Rng as _;

use super::support::{builder, chats, simulator};

const UPDATES: u64 = 5_000;
const CHATS: u64 = 100;
const KILLS: u64 = 6;
/// Calls that a sender has in flight at most.
const IN_FLIGHT: u64 = 128;

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_and_no_count_is_wrong_when_the_host_is_killed_again_and_again() {
    let simulator = simulator().await;
    let duplicates = count_through_kills(&simulator).await;
    assert!(duplicates <= IN_FLIGHT * KILLS, "{duplicates} answers came twice in {KILLS} kills");
}

#[tokio::test(flavor = "multi_thread")]
async fn nor_when_the_network_fails_as_well() {
    let simulator = simulator().await;
    for (seed, action) in [
        (1, Action::internal_error()),
        (2, Action::Flood { retry_after: 1 }),
        (3, Action::Reset { applied: true }),
        (4, Action::Cut { after: 7 }),
        (5, Action::Stall { time: Duration::from_millis(300), applied: true }),
    ] {
        simulator.add_fault(Fault::on("sendMessage", action).probability(0.01, seed));
    }
    for (every, action) in
        [(5, Action::bad_gateway()), (7, Action::Reset { applied: true }), (11, Action::Cut { after: 500 })]
    {
        simulator.add_fault(Fault::on("getUpdates", action).every(every));
    }
    // A call whose answer is lost is made again: these are the two faults that do that.
    let duplicates = count_through_kills(&simulator).await;
    assert!(duplicates <= IN_FLIGHT * KILLS + UPDATES / 20, "{duplicates} answers came twice in {KILLS} kills");
}

/// Counts in many chats while the host is killed again and again; answers with the number of answers that came twice.
async fn count_through_kills(simulator: &Simulator) -> u64 {
    simulator.start_load_mode(true);
    let mut host = builder(simulator).plugin("counter", &plugin("counter"), "").start();
    let bulk = Bulk { text: "/count".to_owned(), ..Bulk::new(UPDATES, CHATS) };
    simulator.push_updates(&bulk);
    let mut random = rand::rng();
    for _ in 0..KILLS {
        tokio::time::sleep(Duration::from_millis(random.random_range(5..150))).await;
        host.kill();
        host.start();
    }
    let per_chat = UPDATES / CHATS;
    let last = format!("This chat: {per_chat}.");
    let (handle, all) = (simulator.clone(), bulk.clone());
    let has_last = move |chat| handle.sequence(chat).iter().any(|text| text.starts_with(&last));
    let done = simulator.wait_until(Duration::from_secs(120), move || chats(&all).all(&has_last)).await;
    assert!(done, "{} answers, but not the last one of every chat", simulator.delivered_in_all());
    host.settle();

    // Every run is seen in the count that it told, so the counts say how often each update took effect: an update
    // that was lost leaves the last count too low, one that was handled twice leaves it too high.
    let mut duplicates = 0;
    let mut totals = HashMap::<u64, u64>::new();
    for chat in chats(&bulk) {
        let counts: Vec<(u64, u64)> = simulator.sequence(chat).iter().map(|text| counts(text)).collect();
        let mut expected = 1;
        for (here, all) in counts {
            if here == expected {
                expected += 1;
                *totals.entry(all).or_default() += 1;
            } else {
                assert!(here < expected, "chat {chat}: {here} comes before {expected}");
                duplicates += 1;
            }
        }
        assert_eq!(expected - 1, per_chat, "chat {chat}");
    }
    assert!(totals.len() as u64 == UPDATES && totals.keys().max() == Some(&UPDATES), "the total is not exact");
    duplicates
}

/// `This chat: 3. All chats: 17.`
fn counts(text: &str) -> (u64, u64) {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok());
    (numbers.next().expect("a count"), numbers.next().expect("a total"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clean_stop_finishes_what_runs_and_a_restart_repeats_nothing() {
    let simulator = simulator().await;
    let mut host = builder(&simulator).plugin("echo", &plugin("echo"), "config = { slow_ms = 1000 }").start();
    let chat = botyard::simulator::ALICE;
    simulator.user_says(chat, chat, "slow and steady").expect("a chat");
    host.wait_until("it runs", |host| host.metrics().sum("botyard_lanes", &[]) > 0.0);
    let stopped = host.stop();
    assert!(stopped.status.success(), "{}", stopped.log);
    host.start();
    simulator.user_says(chat, chat, "again").expect("a chat");
    let messages = simulator.wait_for_messages(chat, 2, Duration::from_secs(10)).await.expect("both");
    let texts: Vec<_> = messages.iter().map(|message| message.text().to_owned()).collect();
    assert_eq!(texts, ["slow and steady", "again"]);
}
