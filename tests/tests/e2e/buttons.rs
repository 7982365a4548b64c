//! Buttons: each press comes to the plugin that has made the button, and nobody else's does.

use std::time::Duration;

use botyard::simulator::{ALICE, BOTIR, Simulator};
use botyard_tests::{Host, guest};

use serde_json::{Value, json};

use super::support::{ask, builder, next, simulator};

const OUT_OF_DATE: &str = "This button is out of date.";

/// The same component twice, each with its name.
fn host(simulator: &Simulator, dispatch: &str) -> Host {
    builder(simulator)
        .sections(&format!("[dispatch]\n{dispatch}\n"))
        .plugin("a", &guest("buttons"), "priority = 2\nconfig = { name = \"a\" }\ngrants = { broadcast = true }")
        .plugin("b", &guest("buttons"), "priority = 1\nconfig = { name = \"b\" }")
        .start()
}

/// The callback data of a button on the bot's newest message, as it is on the wire.
fn wire(simulator: &Simulator, chat: i64, label: &str) -> (i64, String) {
    let message = simulator.bot_messages(chat).into_iter().rev().find(|message| message.inline_keyboard().is_some());
    let message = message.expect("a message with buttons");
    let rows = message.inline_keyboard().expect("it has some").iter();
    let buttons = rows.filter_map(|row| row.as_array()).flatten();
    let found = buttons.into_iter().find(|button| button["text"] == label).expect("such a button");
    (message.id, found["callback_data"].as_str().expect("it has data").to_owned())
}

async fn press(simulator: &Simulator, chat: i64, message: i64, label: &str) -> String {
    let before = simulator.delivered(chat);
    simulator.user_presses(chat, chat, Some(message), label).expect("there is such a button");
    next(simulator, chat, before).await
}

/// What a person sees who presses with this data.
async fn forge(simulator: &Simulator, chat: i64, message: i64, data: &str) -> Option<String> {
    let query = simulator.user_forges(chat, chat, message, data).expect("there is such a message").query_id;
    answer(simulator, &query.expect("a press is a query")).await
}

async fn answer(simulator: &Simulator, query: &str) -> Option<String> {
    let handle = simulator.clone();
    let is_answered = || handle.query(query).is_some_and(|query| query.answer.is_some());
    assert!(simulator.wait_until(Duration::from_secs(20), is_answered).await, "the person still waits");
    simulator.query(query)?.answer?["text"].as_str().map(str::to_owned)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_press_comes_to_the_plugin_that_made_the_button() {
    let simulator = simulator().await;
    let host = host(&simulator, "");
    for (name, other) in [("a", "b"), ("b", "a")] {
        assert_eq!(ask(&simulator, ALICE, &format!("/offer {name}")).await, "offered");
        let (message, data) = wire(&simulator, ALICE, "Pick");
        assert!(data.len() <= 64 && data.ends_with("order:pick:3"), "{data}");
        assert_eq!(press(&simulator, ALICE, message, "Pick").await, format!("{name} picked 3"));
        assert_eq!(ask(&simulator, ALICE, &format!("/seen {name}")).await, "all");
        assert_eq!(ask(&simulator, ALICE, &format!("/seen {other}")).await, "a press", "without what it stands for");
        // Everywhere in the event the data is as the plugin made it.
        assert_eq!(press(&simulator, ALICE, message, "Raw").await, "raw:x raw:x \"raw:x\"");
    }
    assert_eq!(host.metrics().sum("botyard_buttons_refused_total", &[]), 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forged_press_reaches_no_plugin() {
    let simulator = simulator().await;
    let host = host(&simulator, "");
    ask(&simulator, ALICE, "/offer a").await;
    ask(&simulator, BOTIR, "/offer b").await;
    let (message, data) = wire(&simulator, ALICE, "Pick");
    let (of_botir, elsewhere) = wire(&simulator, BOTIR, "Pick");
    let (_, kept) = wire(&simulator, BOTIR, "Note");
    assert_ne!(data, elsewhere);
    let before = simulator.delivered_in_all();
    let changed = data.replace("pick:3", "pick:4");
    let flipped = format!("~{}{}", if data.as_bytes()[1] == b'A' { 'B' } else { 'A' }, data.split_at(2).1);
    for (what, data) in [
        ("what it would be without a seal", "order:pick:3"),
        ("another item", &changed),
        ("another seal", &flipped),
        ("a button of another chat", &elsewhere),
        ("what is kept for another chat", &kept),
        ("an id of nothing", "#AAAAAAAAAAAAAAAA"),
        ("a button for any chat", &data.replacen('~', "^", 1)),
        ("what another plugin would take", "raw:x"),
    ] {
        assert_eq!(forge(&simulator, ALICE, message, data).await.as_deref(), Some(OUT_OF_DATE), "{what}");
    }
    assert_eq!(simulator.delivered_in_all(), before);
    assert_eq!(ask(&simulator, ALICE, "/seen a").await, "nothing", "nor does anybody look on");
    let refused = |reason: &str| host.metrics().sum("botyard_buttons_refused_total", &[reason]);
    assert_eq!((refused("unsealed"), refused("broken"), refused("gone")), (2.0, 4.0, 2.0));
    // The buttons themselves are as good as ever.
    assert_eq!(press(&simulator, ALICE, message, "Pick").await, "a picked 3");
    assert_eq!(press(&simulator, BOTIR, of_botir, "Pick").await, "b picked 3");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_button_that_its_plugin_does_not_know_is_out_of_date() {
    let simulator = simulator().await;
    let host = host(&simulator, "stale_button_reply = \"Ask again, please.\"");
    ask(&simulator, ALICE, "/offer a").await;
    for button in ["Gone", "Elsewhere"] {
        let query =
            simulator.user_presses(ALICE, ALICE, None, button).expect("there is one").query_id.expect("a query");
        assert_eq!(answer(&simulator, &query).await.as_deref(), Some("Ask again, please."), "{button}");
    }
    assert_eq!(host.metrics().sum("botyard_buttons_refused_total", &["unwanted"]), 2.0);
    assert_eq!(host.metrics().sum("botyard_events_total", &["outcome=\"dead\""]), 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn data_that_is_too_long_for_a_button_is_kept_over_a_kill() {
    let simulator = simulator().await;
    let mut host = host(&simulator, "");
    ask(&simulator, ALICE, "/offer b").await;
    let (message, data) = wire(&simulator, ALICE, "Note");
    assert_eq!(data.len(), 17, "{data}");
    host.settle();
    host.kill();
    host.start();
    assert_eq!(press(&simulator, ALICE, message, "Note").await, "b noted 600");
    assert_eq!(press(&simulator, ALICE, message, "Pick").await, "b picked 3");
    let before = simulator.delivered(ALICE);
    simulator.user_says(ALICE, ALICE, "/directly").expect("a chat");
    let messages = simulator.wait_for_messages(ALICE, before + 2, Duration::from_secs(20)).await.expect("two");
    assert_eq!(messages.last().expect("two").text(), format!("{}", "order:note:".len() + 100), "as it was made");
    assert_eq!(press(&simulator, ALICE, messages[messages.len() - 2].id, "Now").await, "a noted 100");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_takes_its_buttons_along() {
    let simulator = simulator().await;
    let _host = host(&simulator, "");
    let group = botyard::simulator::GROUP;
    let before = simulator.delivered(group);
    simulator.user_says(group, ALICE, "/offer a").expect("a group");
    next(&simulator, group, before).await;
    let (_, data) = wire(&simulator, group, "Pick");
    let (_, kept) = wire(&simulator, group, "Note");
    let supergroup = simulator.upgrade_group(group).expect("a group");
    let before = simulator.delivered(supergroup);
    simulator.user_says(supergroup, ALICE, "/offer a").expect("a supergroup");
    next(&simulator, supergroup, before).await;
    let (message, _) = wire(&simulator, supergroup, "Pick");
    for (data, expected) in [(data, "a picked 3"), (kept, "a noted 600")] {
        let before = simulator.delivered(supergroup);
        simulator.user_forges(supergroup, ALICE, message, &data).expect("there is such a message");
        assert_eq!(next(&simulator, supergroup, before).await, expected, "from before the move");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn buttons_from_elsewhere_come_to_plugins_where_the_operator_wants_it() {
    let simulator = simulator().await;
    let _host = host(&simulator, "unsealed_buttons = true");
    ask(&simulator, ALICE, "/offer b").await;
    let (message, data) = wire(&simulator, ALICE, "Pick");
    let before = simulator.delivered(ALICE);
    simulator.user_forges(ALICE, ALICE, message, "order:pick:5").expect("there is such a message");
    assert_eq!(next(&simulator, ALICE, before).await, "a picked 5", "whoever is asked first");
    let changed = data.replace("pick:3", "pick:4");
    assert_eq!(forge(&simulator, ALICE, message, &changed).await.as_deref(), Some(OUT_OF_DATE), "what claims a seal");
}

#[tokio::test(flavor = "multi_thread")]
async fn buttons_of_broadcasts_and_inline_messages_hold_wherever_they_are() {
    let simulator = simulator().await;
    let _host = host(&simulator, "");
    simulator.user_says(ALICE, ALICE, &format!("/spread {ALICE},{BOTIR}")).expect("a chat");
    for chat in [ALICE, BOTIR] {
        let messages = simulator.wait_for_messages(chat, 1, Duration::from_secs(20)).await.expect("one");
        assert_eq!(press(&simulator, chat, messages[0].id, "Spread").await, "a picked 9");
    }
    let asked = simulator.user_asks_inline(ALICE, "tea").expect("a query").query_id.expect("a query");
    assert!(simulator.wait_until(Duration::from_secs(20), || simulator.call_count("answerInlineQuery") > 0).await);
    let calls = simulator.calls_of("answerInlineQuery");
    assert_eq!(calls[0].text("inline_query_id"), Some(&*asked));
    let results = match &calls[0].params["results"] {
        Value::String(json) => serde_json::from_str(json).expect("JSON"),
        results => results.clone(),
    };
    let wire = &results[0]["reply_markup"]["inline_keyboard"][0][0]["callback_data"];
    assert_eq!(wire.as_str().map(str::len), Some(17), "{results}");
    let from = json!({ "id": BOTIR, "is_bot": false, "first_name": "Botir" });
    let query = json!({ "id": "77", "from": from, "inline_message_id": "m", "chat_instance": "1", "data": wire });
    simulator.raw_update(json!({ "callback_query": query })).expect("an update");
    assert!(simulator.wait_until(Duration::from_secs(20), || simulator.call_count("editMessageText") > 0).await);
    let edit = simulator.calls_of("editMessageText").pop().expect("an edit");
    assert_eq!((edit.text("inline_message_id"), edit.text("text")), (Some("m"), Some("a noted 70 inline")));
}
