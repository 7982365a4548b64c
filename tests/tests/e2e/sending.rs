//! What the sender makes of a Telegram that has its troubles.

use std::time::Duration;

use botyard::simulator::{ALICE, Action, BOTIR, Bulk, Fault};

use super::support::{ask, chats, delivered, echo_host, simulator};

#[tokio::test(flavor = "multi_thread")]
async fn trouble_of_the_network_and_the_server_loses_nothing_and_keeps_the_order() {
    let simulator = simulator().await;
    simulator.start_load_mode(true);
    let _host = echo_host(&simulator, "");
    for (seed, action) in [
        (1, Action::internal_error()),
        (2, Action::bad_gateway()),
        (3, Action::Flood { retry_after: 1 }),
        (4, Action::Reset { applied: false }),
    ] {
        simulator.add_fault(Fault::on("sendMessage", action).probability(0.02, seed));
    }
    simulator.add_fault(Fault::on("getUpdates", Action::bad_gateway()).nth(3));
    let bulk = Bulk::new(1_000, 100);
    simulator.push_updates(&bulk);
    delivered(&simulator, bulk.count, Duration::from_secs(120)).await;
    let expected: Vec<String> = (0..10).map(|n| format!("message {n}")).collect();
    for chat in chats(&bulk) {
        assert_eq!(simulator.sequence(chat), expected, "chat {chat}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_in_one_chat_stops_that_chat_only() {
    let simulator = simulator().await;
    let _host = echo_host(&simulator, "");
    simulator.add_fault(Fault::on("sendMessage", Action::Flood { retry_after: 3 }).chat(ALICE).times(1));
    let begun = std::time::Instant::now();
    simulator.user_says(ALICE, ALICE, "flooded").expect("a chat");
    for n in 0..20 {
        let text = format!("dry {n}");
        assert_eq!(ask(&simulator, BOTIR, &text).await, text);
    }
    assert_eq!(simulator.delivered(ALICE), 0);
    simulator.wait_for_messages(ALICE, 1, Duration::from_secs(20)).await.expect("after the flood");
    assert!(begun.elapsed() >= Duration::from_secs(3), "not before Telegram's time was over");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_call_is_raised_at_once_in_telegrams_words_and_blocks_nothing() {
    let simulator = simulator().await;
    let host = echo_host(&simulator, "");
    let refused = Action::Answer {
        status: 400,
        body: r#"{"ok":false,"error_code":400,"description":"Bad Request: chat not found"}"#.to_owned(),
        content_type: "application/json".to_owned(),
        applied: false,
    };
    simulator.add_fault(Fault::on("sendMessage", refused).chat(ALICE).times(1));
    simulator.user_says(ALICE, ALICE, "lost").expect("a chat");
    assert_eq!(ask(&simulator, ALICE, "next").await, "next");
    assert_eq!(simulator.calls_of("sendMessage").len(), 2, "the refused call is not tried again");
    assert!(host.log().contains("Telegram API error [400] on sendMessage: chat not found"));
}

#[tokio::test(flavor = "multi_thread")]
async fn updates_that_cannot_be_read_are_set_aside_and_the_poll_goes_on() {
    let simulator = simulator().await;
    let mut host = echo_host(&simulator, "");
    simulator.raw_update(serde_json::json!({ "message": 17 })).expect("a kind that is asked for");
    let id = simulator.raw_update(serde_json::json!({ "message": { "chat": { "id": "?" } } })).expect("the same");
    assert_eq!(ask(&simulator, ALICE, "after odd ones").await, "after odd ones");
    let said = id + 1;
    let batch =
        format!(r#"{{"ok":true,"result":[{{"update_id":{},"quite_new":{{}}}},{{"message":{{}}}},17]}}"#, said + 1);
    let action =
        Action::Answer { status: 200, body: batch, content_type: "application/json".to_owned(), applied: false };
    simulator.jump_update_id(said + 4).expect("a number");
    simulator.add_fault(Fault::on("getUpdates", action).times(1));
    assert_eq!(ask(&simulator, ALICE, "after broken ones").await, "after broken ones");
    assert!(host.stop().status.success());
    assert_eq!(super::support::dead_letters(&host).len(), 2, "the one without an id, and the number");
}

#[tokio::test(flavor = "multi_thread")]
async fn update_ids_may_jump_down() {
    let simulator = simulator().await;
    let mut host = echo_host(&simulator, "");
    assert_eq!(ask(&simulator, ALICE, "high").await, "high");
    simulator.jump_update_id(117_314_199).expect("a number");
    assert_eq!(ask(&simulator, ALICE, "low").await, "low");
    host.settle();
    host.kill();
    host.start();
    assert_eq!(ask(&simulator, ALICE, "low again").await, "low again");
    assert_eq!(simulator.delivered(ALICE), 3, "and nothing twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_delivers_the_same_for_ever_is_answered_once_and_asked_seldom() {
    let simulator = simulator().await;
    let mut host = echo_host(&simulator, "");
    let say = |id, text| {
        serde_json::json!({ "update_id": id, "message": { "message_id": id, "text": text,
        "chat": { "id": ALICE, "type": "private" }, "from": { "id": ALICE, "language_code": "en" } } })
    };
    let body = serde_json::json!({ "ok": true, "result": [say(71, "one"), say(72, "two")] }).to_string();
    let action = Action::Answer { status: 200, body, content_type: "application/json".to_owned(), applied: false };
    simulator.add_fault(Fault::on("getUpdates", action));
    simulator.wait_for_messages(ALICE, 2, Duration::from_secs(20)).await.expect("both");
    let asked = || host.metrics().sum("botyard_api_calls_total", &["method=\"getUpdates\""]);
    let before = asked();
    tokio::time::sleep(Duration::from_secs(4)).await;
    let asked = asked() - before;
    assert!((1.0..=10.0).contains(&asked), "{asked} polls in 4 s");
    simulator.clear_faults();
    host.settle();
    assert_eq!(simulator.delivered(ALICE), 2, "and nothing twice");
}
