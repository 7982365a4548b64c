//! Many chats at once: order, fairness, exactness, and memory that stays what it was.

use std::time::{Duration, Instant};

use botyard::simulator::{ALICE, BOTIR, Bulk};
use botyard_tests::{guest, plugin};

use super::support::{ask, builder, chats, delivered, echo_host, simulator};

const LONG: Duration = Duration::from_secs(120);

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_chats_at_once_keep_their_order() {
    let simulator = simulator().await;
    simulator.start_load_mode(true);
    let _host = echo_host(&simulator, "");
    let bulk = Bulk::new(10_000, 1_000);
    simulator.push_updates(&bulk);
    delivered(&simulator, bulk.count, LONG).await;
    let expected: Vec<String> = (0..10).map(|n| format!("message {n}")).collect();
    for chat in chats(&bulk) {
        assert_eq!(simulator.sequence(chat), expected, "chat {chat}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sleeping_chat_keeps_nobody_waiting() {
    let simulator = simulator().await;
    let _host = echo_host(&simulator, "config = { slow_ms = 20000 }");
    simulator.user_says(ALICE, ALICE, "slow").expect("a chat");
    simulator.user_says(ALICE, ALICE, "and then").expect("a chat");
    for n in 0..20 {
        let text = format!("quick {n}");
        assert_eq!(ask(&simulator, BOTIR, &text).await, text);
    }
    assert_eq!(simulator.delivered(ALICE), 0, "Alice's chat sleeps, and her second message waits for the first");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backlog_drains_as_fast_as_the_places_allow_and_a_newcomer_has_an_early_turn() {
    let simulator = simulator().await;
    simulator.start_load_mode(false);
    let mut host = echo_host(&simulator, "config = { slow_ms = 500 }");
    let begun = Instant::now();
    simulator.push_updates(&Bulk { text: "slow".to_owned(), ..Bulk::new(4_000, 500) });
    host.wait_until("all are taken in", |host| host.metrics().sum("botyard_updates_total", &["accepted"]) >= 4_000.0);
    let before = simulator.delivered_in_all();
    let newcomer = Bulk { text: "hello".to_owned(), first_chat: 77, ..Bulk::new(1, 1) };
    simulator.push_updates(&newcomer);
    let handle = simulator.clone();
    assert!(simulator.wait_until(LONG, move || handle.delivered(77) == 1).await, "the newcomer waits in vain");
    let meanwhile = simulator.delivered_in_all() - before;
    assert!(meanwhile < 1_200, "one turn of every chat is 500, and 256 were at work; {meanwhile} were answered first");
    delivered(&simulator, 4_001, LONG).await;
    // One after the other it is 2,000 s, and 8 s with 256 at a time.
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn five_hundred_writes_to_keys_of_their_own_are_all_kept() {
    let simulator = simulator().await;
    simulator.start_load_mode(true);
    let mut host = builder(&simulator).plugin("counter", &plugin("counter"), "").start();
    let bulk = Bulk { text: "/count".to_owned(), ..Bulk::new(500, 500) };
    simulator.push_updates(&bulk);
    delivered(&simulator, 500, LONG).await;
    host.settle();
    host.kill();
    host.start();
    simulator.push_updates(&bulk);
    delivered(&simulator, 1000, LONG).await;
    for chat in chats(&bulk) {
        let answers = simulator.sequence(chat);
        assert!(answers.len() == 2 && answers[1].starts_with("This chat: 2."), "chat {chat}: {answers:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_contended_read_modify_writes_are_exact() {
    let simulator = simulator().await;
    simulator.start_load_mode(true);
    let host = builder(&simulator).plugin("rmw", &guest("counter_rmw"), "").start();
    let bulk = Bulk { text: "/add".to_owned(), ..Bulk::new(1_000, 250) };
    simulator.push_updates(&bulk);
    delivered(&simulator, 1_000, LONG).await;
    let mut answers: Vec<u64> =
        chats(&bulk).flat_map(|chat| simulator.sequence(chat)).map(|text| text.parse().expect("a sum")).collect();
    answers.sort_unstable();
    assert_eq!(answers, (1..=1_000).collect::<Vec<u64>>(), "every sum was told to somebody, and none twice");
    assert!(host.metrics().sum("botyard_commit_conflicts_total", &[]) > 0.0, "they did get into each other's way");
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_that_all_read_the_range_that_all_of_them_write_to_are_exact() {
    let simulator = simulator().await;
    simulator.start_load_mode(true);
    let _host = builder(&simulator).plugin("guestbook", &guest("guestbook"), "limits = { cpu = \"5s\" }").start();
    let bulk = Bulk { text: "/sign".to_owned(), ..Bulk::new(400, 400) };
    simulator.push_updates(&bulk);
    delivered(&simulator, 400, LONG).await;
    let mut answers: Vec<u64> =
        chats(&bulk).flat_map(|chat| simulator.sequence(chat)).map(|text| text.parse().expect("a number")).collect();
    answers.sort_unstable();
    assert_eq!(answers, (1..=400).collect::<Vec<u64>>(), "nobody has missed a name that was there already");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_thousand_waiting_updates_fit_into_little_memory() {
    let simulator = simulator().await;
    simulator.start_load_mode(false);
    let mut host = echo_host(&simulator, "config = { slow_ms = 60000 }\nlimits = { time = \"90s\" }");
    simulator.push_updates(&Bulk { text: "slow".to_owned(), ..Bulk::new(100_000, 2_000) });
    let begun = Instant::now();
    host.wait_until("all are taken in", |host| host.metrics().sum("botyard_updates_total", &["accepted"]) >= 100_000.0);
    assert!(begun.elapsed() < Duration::from_secs(60), "intake never waits for a handler");
    assert_eq!(simulator.delivered_in_all(), 0);
    assert!(host.peak_resident_mib() < 200, "{} MiB", host.peak_resident_mib());
    // And it is all still there for the next start.
    host.kill();
    host.start();
    assert!(host.peak_resident_mib() < 200, "{} MiB after the restart", host.peak_resident_mib());
}

#[tokio::test(flavor = "multi_thread")]
async fn large_updates_that_wait_fit_into_little_memory_too() {
    let simulator = simulator().await;
    simulator.start_load_mode(false);
    // Few runs at once: their memory is not what this is about.
    let mut host = builder(&simulator)
        .sections("[dispatch]\nconcurrency = 16\n")
        .plugin("echo", &plugin("echo"), "config = { slow_ms = 60000 }\nlimits = { time = \"90s\" }")
        .start();
    // 16 kB each, the longest text there is: 128 MB in all.
    let text = format!("slow{}", "😀".repeat(4_000));
    simulator.push_updates(&Bulk { text, ..Bulk::new(8_000, 400) });
    host.wait_until("all are taken in", |host| host.metrics().sum("botyard_updates_total", &["accepted"]) >= 8_000.0);
    // How much the store writes at once depends on how busy the machine is; what stays does not.
    assert!(host.peak_resident_mib() < 450, "{} MiB", host.peak_resident_mib());
    host.wait_until("what is stored is let go of", |host| host.resident_mib() < 270);
}
