//! What a person sees of a pressed button and of a plugin at work: an answer, whatever the plugin does.

use std::time::{Duration, Instant};

use botyard::domain::{ChatId, EventLane, Lane};
use botyard::simulator::{ALICE, BOTIR, Simulator};
use botyard::store::rows::inbox::{self, InboxRow, StoredEvent};
use botyard::store::{Commit, Op, Store};
use botyard_tests::{Host, guest, plugin};
use serde_json::json;

use super::support::{BOT, ask, builder, next, simulator};

const SOON: Duration = Duration::from_secs(20);

/// A host with the guest that sends, and what goes under `[dispatch]`.
fn host(simulator: &Simulator, dispatch: &str) -> Host {
    builder(simulator)
        .sections(&format!("[dispatch]\n{dispatch}\n"))
        .plugin("sends", &guest("sends"), "priority = 1")
        .plugin("echo", &plugin("echo"), "")
        .start()
}

fn press(simulator: &Simulator, button: &str) -> String {
    simulator.user_presses(ALICE, ALICE, None, button).expect("there is such a button").query_id.expect("a query")
}

/// The texts of all answers that were given to a query, that of the host as none.
fn answers(simulator: &Simulator, query: &str) -> Vec<Option<String>> {
    let calls = simulator.calls_of("answerCallbackQuery");
    let of_query = calls.iter().filter(|call| call.text("callback_query_id") == Some(query));
    of_query.map(|call| call.text("text").map(str::to_owned)).collect()
}

async fn answered(simulator: &Simulator, query: &str) {
    let (handle, id) = (simulator.clone(), query.to_owned());
    let is_answered = move || handle.query(&id).is_some_and(|query| query.answer.is_some());
    assert!(simulator.wait_until(SOON, is_answered).await, "the person still waits");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_pressed_button_is_answered_once_whatever_becomes_of_it() {
    let simulator = simulator().await;
    let mut host = host(&simulator, "");
    ask(&simulator, ALICE, "/buttons").await;
    for (button, expected) in [
        ("answered", Some("noticed")),
        ("directly", Some("at once")),
        ("silent", None),
        ("fails", None),
        ("nobody", Some("This button is out of date.")),
        ("edits", None),
    ] {
        let query = press(&simulator, button);
        answered(&simulator, &query).await;
        // Behind it in its lane: what else there was to come has come.
        ask(&simulator, ALICE, "and?").await;
        host.settle();
        assert_eq!(answers(&simulator, &query), [expected.map(str::to_owned)], "{button}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_takes_long_is_acknowledged_meanwhile_and_keeps_its_place() {
    let simulator = simulator().await;
    let mut host = host(&simulator, "acknowledge_callbacks = \"500ms\"");
    ask(&simulator, ALICE, "/buttons").await;
    let before = simulator.delivered(ALICE);
    let begun = Instant::now();
    let (slow, waiting) = (press(&simulator, "slow-answered"), press(&simulator, "silent"));
    answered(&simulator, &slow).await;
    answered(&simulator, &waiting).await;
    assert!(begun.elapsed() < Duration::from_millis(2500), "{:?}", begun.elapsed());
    assert_eq!(simulator.delivered(ALICE), before, "the handler is at work still");
    assert_eq!(next(&simulator, ALICE, before).await, "slow is done", "and its own answer does no harm");
    ask(&simulator, ALICE, "and?").await;
    host.settle();
    assert_eq!(answers(&simulator, &slow), [None, Some("late".to_owned())]);
    assert_eq!(answers(&simulator, &waiting), [None], "who was acknowledged is not answered again");
    let metrics = host.metrics();
    assert_eq!(metrics.sum("botyard_callbacks_acknowledged_total", &["when=\"early\""]), 2.0);
    assert_eq!(metrics.sum("botyard_events_total", &["outcome=\"dead\""]), 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_in_between_does_no_harm() {
    let simulator = simulator().await;
    let mut host = host(&simulator, "acknowledge_callbacks = \"200ms\"");
    ask(&simulator, ALICE, "/buttons").await;
    host.settle();
    let before = simulator.delivered(ALICE);
    let (slow, waiting) = (press(&simulator, "slow"), press(&simulator, "silent"));
    answered(&simulator, &slow).await;
    host.kill();
    host.start();
    assert_eq!(next(&simulator, ALICE, before).await, "slow is done");
    answered(&simulator, &waiting).await;
    assert_eq!(ask(&simulator, ALICE, "and?").await, "and?");
    host.settle();
    assert_eq!(simulator.delivered(ALICE), before + 2);
    assert_eq!(host.metrics().sum("botyard_events_total", &["outcome=\"dead\""]), 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_acknowledged_early_where_that_is_turned_off() {
    let simulator = simulator().await;
    let mut host = host(&simulator, "acknowledge_callbacks = \"0s\"");
    ask(&simulator, ALICE, "/buttons").await;
    let before = simulator.delivered(ALICE);
    let query = press(&simulator, "slow-answered");
    next(&simulator, ALICE, before).await;
    host.settle();
    assert_eq!(answers(&simulator, &query), [Some("late".to_owned())]);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_whose_user_ends_the_conversation_is_answered() {
    let simulator = simulator().await;
    let mut host = host(&simulator, "acknowledge_callbacks = \"0s\"");
    ask(&simulator, ALICE, "/buttons").await;
    let begun = Instant::now();
    let query = press(&simulator, "slow-answered");
    host.wait_until("it is taken in", |host| host.metrics().sum("botyard_updates_total", &["callback_query"]) >= 1.0);
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(ask(&simulator, ALICE, "/cancel").await, "Cancelled.");
    answered(&simulator, &query).await;
    assert!(begun.elapsed() < Duration::from_millis(2_900), "the handler was ended: {:?}", begun.elapsed());
    host.settle();
    assert_eq!(answers(&simulator, &query), [None], "by the host");
    assert_eq!(host.metrics().sum("botyard_events_total", &["outcome=\"dead\""]), 1.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_came_too_late_to_be_handled_is_answered_too() {
    let simulator = simulator().await;
    let mut host = host(&simulator, "");
    host.stop();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("it is later").as_millis();
    let tap = |id: &str, seconds: u64| {
        let raw = json!({ "update_id": 1, "callback_query": { "id": id, "data": "b:silent",
            "from": { "id": ALICE }, "message": { "message_id": 1, "chat": { "id": ALICE } } } });
        let received = u64::try_from(now).expect("it fits") - seconds * 1000;
        let event = StoredEvent::Update(raw.to_string().into_bytes());
        let row = InboxRow::new(event, received);
        Op::Append { prefix: inbox::lane_prefix(BOT, EventLane::whole(Lane::Chat(ChatId(ALICE)))), value: row.encode() }
    };
    let store = Store::open(&host.store_dir()).expect("the host has stopped");
    let ops = vec![tap("a day", 86_400), tap("minutes", 300)];
    drop(store.commit(Commit { ops, ..Commit::default() }).await.expect("a sound store"));
    store.close().await.expect("a sound store");

    host.start();
    ask(&simulator, ALICE, "after them").await;
    host.settle();
    assert_eq!(answers(&simulator, "minutes"), [None]);
    assert_eq!(answers(&simulator, "a day"), [], "nobody looks at it any more");
    assert_eq!(host.metrics().sum("botyard_events_total", &["outcome=\"expired\""]), 2.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_in_a_busy_chat_is_answered_at_once() {
    let simulator = simulator().await;
    let _host = host(&simulator, "");
    simulator.user_says(ALICE, ALICE, "/invoice").expect("a chat");
    simulator.wait_for_messages(ALICE, 1, SOON).await.expect("an invoice");
    simulator.user_says(ALICE, ALICE, "/slow 5").expect("a chat");
    // Into the middle of it.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let begun = Instant::now();
    let query = press(&simulator, "Pay");
    answered(&simulator, &query).await;
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    assert!(simulator.bot_messages(ALICE).iter().all(|message| message.text() != "slow is done"), "the chat is busy");
}

#[tokio::test(flavor = "multi_thread")]
async fn typing_lasts_as_long_as_the_run_however_it_ends() {
    let simulator = simulator().await;
    let _host = builder(&simulator)
        .sections("[dispatch]\nmax_attempts = 1\n")
        .plugin("sends", &guest("sends"), "limits = { time = \"6s\" }")
        .start();
    simulator.user_says(BOTIR, BOTIR, "/type 600").expect("a chat");
    assert_eq!(ask(&simulator, ALICE, "/type 5").await, "typed");
    let typed = |chat| simulator.calls_of("sendChatAction").iter().filter(|call| call.chat() == Some(chat)).count();
    assert_eq!(typed(ALICE), 2, "at once, and once again");
    // The other run has reached its limit by then.
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!((typed(ALICE), typed(BOTIR)), (2, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn typing_needs_the_grant_for_it() {
    let simulator = simulator().await;
    let host = builder(&simulator)
        .sections("[dispatch]\nmax_attempts = 1\n")
        .plugin("sends", &guest("sends"), "priority = 1\ngrants = { methods = [\"sendMessage\"] }")
        .plugin("echo", &plugin("echo"), "")
        .start();
    simulator.user_says(ALICE, ALICE, "/type 1").expect("a chat");
    assert_eq!(ask(&simulator, ALICE, "next").await, "next");
    assert!(host.log().contains("sendChatAction"), "it names what is missing");
    assert_eq!(simulator.calls_of("sendChatAction").len(), 0);
}
