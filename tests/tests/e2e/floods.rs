//! A Telegram that answers badly, or not at all: what people get all the same, and what they get twice.

use std::time::Duration;

use botyard::simulator::{ALICE, Action, BOTIR, Fault, Simulator};
use botyard::store::Store;
use botyard::store::rows::unknown::{self, UnknownRow};
use botyard_tests::{Host, guest, plugin};

use super::support::{BOT, ask, builder, dead_letters, next, simulator};

const SOON: Duration = Duration::from_secs(30);

fn host(simulator: &Simulator) -> Host {
    builder(simulator).plugin("sends", &guest("sends"), "priority = 1").plugin("echo", &plugin("echo"), "").start()
}

fn answer(status: u16, content_type: &str, body: &str) -> Action {
    let (body, content_type) = (body.to_owned(), content_type.to_owned());
    Action::Answer { status, body, content_type, applied: false }
}

/// What the host that was stopped can't tell the end of.
fn ledger(host: &Host) -> Vec<UnknownRow> {
    let store = Store::open(&host.store_dir()).expect("the host has stopped");
    let rows = store.scan_prefix(&unknown::bot_prefix(BOT), usize::MAX).expect("a sound store");
    rows.iter().map(|(_, value)| UnknownRow::decode(value).expect("a sound row")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_that_changes_nothing_is_as_good_as_done() {
    let simulator = simulator().await;
    let mut host = host(&simulator);
    ask(&simulator, ALICE, "/buttons").await;
    let offered = &simulator.bot_messages(ALICE)[0];
    let mut buttons = offered.inline_keyboard().expect("it has some").iter().filter_map(|row| row.as_array()).flatten();
    let (message, button) = (offered.id, buttons.find(|button| button["text"] == "edits").expect("such a button"));
    for _ in 0..2 {
        // The message has no buttons any more when the second one arrives, but two taps are quick.
        let tap = serde_json::json!({ "callback_query": { "id": "1", "data": button["callback_data"],
            "from": { "id": ALICE, "first_name": "Alice" },
            "message": { "message_id": message, "chat": { "id": ALICE, "type": "private" } } } });
        simulator.raw_update(tap).expect("a kind that is asked for");
    }
    assert_eq!(ask(&simulator, ALICE, "after both").await, "after both");
    host.settle();
    assert_eq!(simulator.bot_messages(ALICE)[0].text(), "edited");
    let metrics = host.metrics();
    assert_eq!(metrics.sum("botyard_events_total", &["outcome=\"handled\""]), 4.0);
    assert_eq!(metrics.sum("botyard_send_dropped_total", &["reason=\"refused\""]), 0.0);
    let edits = simulator.calls_of("editMessageText").len();
    assert!((1..=2).contains(&edits), "{edits} edits: none is repeated");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_blocked_the_bot_harms_nobody() {
    let simulator = simulator().await;
    let mut host = host(&simulator);
    simulator.user_says(ALICE, ALICE, "/slow 1").expect("a chat");
    tokio::time::sleep(Duration::from_millis(300)).await;
    simulator.set_blocked(ALICE, ALICE, true).expect("a chat");
    let refused = simulator.clone();
    assert!(simulator.wait_until(SOON, move || !refused.calls_of("sendMessage").is_empty()).await);
    assert_eq!(ask(&simulator, BOTIR, "others go on").await, "others go on");
    host.settle();
    assert_eq!(simulator.calls_of("sendMessage").len(), 2, "what is refused is not repeated");
    assert_eq!(host.metrics().sum("botyard_send_dropped_total", &["reason=\"chat_gone\""]), 1.0);
    // Nor after a restart: the event is over.
    host.kill();
    host.start();
    simulator.set_blocked(ALICE, ALICE, false).expect("a chat");
    assert_eq!(ask(&simulator, ALICE, "again").await, "again");
    assert!(host.stop().status.success());
    assert!(dead_letters(&host).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_edits_in_a_flood_the_last_is_delivered_and_few_are_made() {
    let simulator = simulator().await;
    let mut host = host(&simulator);
    simulator.add_fault(Fault::on("editMessageText", Action::Flood { retry_after: 1 }).times(1));
    simulator.user_says(ALICE, ALICE, "/edits 60").expect("a chat");
    let handle = simulator.clone();
    let is_last = move || handle.bot_messages(ALICE).iter().any(|message| message.text() == "edit 60");
    assert!(simulator.wait_until(SOON, is_last).await);
    host.settle();
    let edits = simulator.calls_of("editMessageText").len();
    assert!((2..=5).contains(&edits), "{edits} edits");
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_are_none_lose_nothing() {
    const HTML: &str = "<html><body>sign in to the network</body></html>";
    const JSON: &str = "application/json";
    let flood = |retry_after: &str| {
        format!(
            r#"{{"ok":false,"error_code":429,"description":"Too Many","parameters":{{"retry_after":{retry_after}}}}}"#
        )
    };
    let simulator = simulator().await;
    let mut host = host(&simulator);
    for (n, action) in [
        Action::bad_gateway(),
        answer(503, "text/html", HTML),
        answer(520, "text/plain", ""),
        answer(200, "text/html", HTML),
        answer(200, JSON, r#"{"ok":"yes"}"#),
        answer(200, JSON, "[1]"),
        answer(500, JSON, r#"{"ok":false,"error_code":"500","description":7}"#),
        answer(429, JSON, &flood("\"1\"")),
        answer(429, JSON, &flood("-5")),
        answer(429, JSON, &flood("0.5")),
        answer(429, JSON, r#"{"ok":false,"error_code":429}"#),
    ]
    .into_iter()
    .enumerate()
    {
        simulator.add_fault(Fault::on("sendMessage", action).times(1));
        let text = format!("message {n}");
        assert_eq!(ask(&simulator, ALICE, &text).await, text);
        simulator.clear_faults();
    }
    host.settle();
    assert_eq!(simulator.delivered(ALICE), 11, "nothing twice");
    assert_eq!(simulator.calls_of("sendMessage").len(), 22, "each is made once more");
    assert!(host.stop().status.success());
    assert!(ledger(&host).is_empty() && dead_letters(&host).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_that_is_odd_is_a_success_all_the_same() {
    let simulator = simulator().await;
    let mut host = host(&simulator);
    for body in [r#"{"ok":true,"result":null}"#, r#"{"ok":true}"#, r#"{"ok":true,"result":{"mess"#] {
        simulator.add_fault(Fault::on("sendMessage", answer(200, "application/json", body)).times(1));
        simulator.user_says(ALICE, ALICE, "taken").expect("a chat");
        let before = simulator.delivered(ALICE);
        simulator.user_says(ALICE, ALICE, "next").expect("a chat");
        next(&simulator, ALICE, before).await;
        simulator.clear_faults();
    }
    host.settle();
    assert_eq!((simulator.delivered(ALICE), simulator.calls_of("sendMessage").len()), (3, 6), "none is made again");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_have_been_said_is_said_again_or_written_down_as_the_plugin_wants() {
    let simulator = simulator().await;
    let mut host = host(&simulator);
    let lost = || Fault::on("sendMessage", Action::Reset { applied: true }).chat(ALICE).times(1);
    simulator.add_fault(lost());
    simulator.user_says(ALICE, ALICE, "/say at least once").expect("a chat");
    simulator.wait_for_messages(ALICE, 2, SOON).await.expect("it is said again");
    simulator.add_fault(lost());
    simulator.user_says(ALICE, ALICE, "/say once at most").expect("a chat");
    assert_eq!(ask_after(&simulator, 3, "and on").await, "and on");
    host.settle();
    let texts: Vec<_> = simulator.bot_messages(ALICE).iter().map(|message| message.text().to_owned()).collect();
    assert_eq!(texts, ["at least once", "at least once", "at most", "and on"]);
    assert!(host.stop().status.success());
    let [row] = &ledger(&host)[..] else { panic!("one is written down") };
    assert!(row.maybe_sent && row.plugin == "sends" && row.method == "sendMessage" && row.params.contains("at most"));
}

/// Waits for the first messages, then sends a text and waits for the next.
async fn ask_after(simulator: &Simulator, first: u64, text: &str) -> String {
    simulator.wait_for_messages(ALICE, first, SOON).await.expect("they come");
    ask(simulator, ALICE, text).await
}
