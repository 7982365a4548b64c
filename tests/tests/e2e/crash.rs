//! `kill -9` at any moment: every update answered, state exact, duplicates only where an answer was in flight.

use std::time::Duration;

use botyard_tests::chaos::{self, Mode, Options};
use botyard_tests::plugin;

use super::support::{builder, simulator};

/// Calls that a sender has in flight at most.
const IN_FLIGHT: u64 = 128;

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_and_no_count_is_wrong_when_the_host_is_killed_again_and_again() {
    let (mode, seed) = (Mode::Polling, rand::random());
    let options = Options { updates: 5_000, kills: 6, faults: false, reloads: false, mode, seed };
    let report = chaos::run(options, |_| {}).await;
    assert!(report.is_clean() && report.kills > 0, "{report:?} with {options:?}");
    assert!(report.repeated_answers <= IN_FLIGHT * u64::from(report.kills), "{report:?} with {options:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nor_when_the_network_breaks_and_the_plugin_is_replaced_meanwhile() {
    with_everything(Mode::Polling).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nor_when_updates_come_through_a_webhook() {
    with_everything(Mode::Webhook).await;
}

async fn with_everything(mode: Mode) {
    let options = Options { updates: 1_000, kills: 5, faults: true, reloads: true, mode, seed: rand::random() };
    let report = chaos::run(options, |_| {}).await;
    assert!(report.is_clean() && report.kills > 0, "{report:?} with {options:?}");
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
