//! The SDK's typed Bot API: against the simulator's answers, and what it costs a plugin.

use std::time::Duration;

use botyard::simulator::ALICE;
use botyard_tests::guest;

use super::support::{ask, builder, simulator};

#[tokio::test(flavor = "multi_thread")]
async fn typed_calls_are_answered_and_queued() {
    let simulator = simulator().await;
    let _host = builder(&simulator).plugin("typed", &guest("typed"), "").start();
    assert_eq!(ask(&simulator, ALICE, "/who").await, "Alice is a member");
    simulator.user_says(ALICE, ALICE, "/edit").expect("a chat");
    let limit = Duration::from_secs(10);
    let edited = || simulator.bot_messages(ALICE).pop().is_some_and(|message| message.text() == "done");
    assert!(simulator.wait_until(limit, edited).await);
    simulator.user_says(ALICE, ALICE, "/poll").expect("a chat");
    assert!(simulator.wait_until(limit, || simulator.call_count("setMessageReaction") == 1).await);
    assert_eq!(simulator.call_count("sendPoll"), 1);
}

#[test]
fn what_a_plugin_does_not_use_is_not_in_it() {
    let size = std::fs::metadata(guest("typed")).expect("the guests are built").len();
    assert!(size < 120_000, "{size} bytes: the typed Bot API has found a way into plugins that don't use it");
}
