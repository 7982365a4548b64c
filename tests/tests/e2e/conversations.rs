//! The example plugins, as people meet them.

use std::time::Duration;

use botyard::simulator::{ALICE, BOTIR, DIEGO, GROUP};
use botyard_tests::{Host, guest, plugin};

use super::operator::json;
use super::support::{ask, builder, echo_host, next, simulator};

#[tokio::test(flavor = "multi_thread")]
async fn echo_answers_the_same_text_whatever_is_in_it() {
    let simulator = simulator().await;
    let _host = echo_host(&simulator, "");
    let emoji_at_every_boundary = "👩‍👩‍👧‍👦🇺🇿".repeat(100);
    for text in ["hello", "/command", "\u{202e}rtl", "quote \" slash \\ \u{7f}", "line\nline", &emoji_at_every_boundary]
    {
        assert_eq!(ask(&simulator, ALICE, text).await, text);
    }
    // 4,096 UTF-16 units are the most that a message holds.
    let longest = "😀".repeat(2048);
    assert_eq!(ask(&simulator, ALICE, &longest).await, longest);
}

#[tokio::test(flavor = "multi_thread")]
async fn form_goes_on_after_a_kill_in_the_middle() {
    let simulator = simulator().await;
    let mut host = builder(&simulator).plugin("form", &plugin("form"), "").start();
    assert_eq!(ask(&simulator, ALICE, "/form").await, "What is your name?");
    let age_question = ask(&simulator, ALICE, "Zoë 🦊").await;
    host.settle();
    host.kill();
    host.start();
    let refusal = ask(&simulator, ALICE, "old").await;
    assert_ne!(refusal, age_question);
    assert_eq!(ask(&simulator, ALICE, "41").await, "Zoë 🦊, 41. Thank you!");
    // Botir is another conversation.
    assert_eq!(ask(&simulator, BOTIR, "/form").await, "What is your name?");
}

#[tokio::test(flavor = "multi_thread")]
async fn greeter_speaks_the_users_language_and_the_operators_words() {
    let simulator = simulator().await;
    let mut host =
        builder(&simulator).sections("[i18n]\nlocales = \"texts\"\n").plugin("greeter", &plugin("greeter"), "").start();
    assert_eq!(ask(&simulator, ALICE, "/hello").await, "Hello, Alice!");
    assert_eq!(ask(&simulator, BOTIR, "/hello").await, "Salom, Botir!");
    assert_eq!(ask(&simulator, DIEGO, "/hello").await, "Hello, Diego!", "pt-BR has no catalog");

    let texts = host.folder().join("texts/greeter");
    std::fs::create_dir_all(&texts).expect("writable");
    let key = "hello";
    std::fs::write(texts.join("pt.ftl"), format!("{key} = Oi, {{ $name }}!\n")).expect("writable");
    assert!(host.stop().status.success());
    host.start();
    assert_eq!(ask(&simulator, DIEGO, "/hello").await, "Oi, Diego!");
    assert_eq!(ask(&simulator, ALICE, "/hello").await, "Hello, Alice!");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operators_words_are_in_force_when_they_are_saved() {
    let simulator = simulator().await;
    let mut host =
        builder(&simulator).sections("[i18n]\nlocales = \"texts\"\n").plugin("greeter", &plugin("greeter"), "").start();
    let (version, since) = (json(&host, &["plugin", "list"])[0]["version"].clone(), |host: &Host| {
        json(host, &["plugin", "list"])[0]["since"].clone()
    });
    let began = since(&host);
    let texts = host.folder().join("texts/greeter");
    let said = |host: &Host, times: usize| host.log().matches("texts for the plugin have changed").count() >= times;
    let noted =
        |host: &Host| host.get("/readyz").is_some_and(|(status, report)| status == 200 && report.contains("pt.ftl"));

    // The folder comes later than the host.
    std::fs::create_dir_all(&texts).expect("writable");
    std::fs::write(texts.join("pt.ftl"), "hello = Oi, { $name }!\n").expect("writable");
    host.wait_until("the new file is read", |host| said(host, 1));
    assert_eq!(ask(&simulator, DIEGO, "/hello").await, "Oi, Diego!");

    // Half of a file, as an editor leaves it.
    std::fs::write(texts.join("pt.ftl"), "hello = Salve, { $na").expect("writable");
    host.wait_until("the broken file is noted", noted);
    assert_eq!(ask(&simulator, DIEGO, "/hello").await, "Oi, Diego!", "the words before stay");
    std::fs::write(texts.join("pt.ftl"), "hello = Salve, { $name }!\n").expect("writable");
    host.wait_until("the mended file is read", |host| said(host, 2) && !noted(host));
    assert_eq!(ask(&simulator, DIEGO, "/hello").await, "Salve, Diego!");

    std::fs::remove_file(texts.join("pt.ftl")).expect("writable");
    host.wait_until("it is gone", |host| said(host, 3));
    assert_eq!(ask(&simulator, DIEGO, "/hello").await, "Hello, Diego!");
    assert_eq!(
        (&json(&host, &["plugin", "list"])[0]["version"], since(&host)),
        (&version, began),
        "no version has changed"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn counter_counts_per_chat_and_over_all() {
    let simulator = simulator().await;
    let mut host = builder(&simulator).plugin("counter", &plugin("counter"), "").start();
    assert_eq!(ask(&simulator, ALICE, "/count").await, "This chat: 1. All chats: 1.");
    assert_eq!(ask(&simulator, BOTIR, "/COUNT@Botyard_Bot").await, "This chat: 1. All chats: 2.");
    host.settle();
    host.kill();
    host.start();
    let before = simulator.delivered(GROUP);
    simulator.user_says(GROUP, ALICE, "/count@some_other_bot").expect("a group");
    simulator.user_says(GROUP, ALICE, "/count@botyard_bot").expect("a group");
    assert_eq!(next(&simulator, GROUP, before).await, "This chat: 1. All chats: 3.", "the other bot's is not ours");
}

#[tokio::test(flavor = "multi_thread")]
async fn menu_edits_its_message_when_a_button_is_pressed() {
    let simulator = simulator().await;
    let _host = builder(&simulator).plugin("menu", &plugin("menu"), "").start();
    ask(&simulator, ALICE, "/menu").await;
    let message = simulator.bot_messages(ALICE).pop().expect("the menu");
    let button = message.buttons().first().and_then(|row| row.first()).cloned().expect("a button");
    let pressed = simulator.user_presses(ALICE, ALICE, Some(message.id), &button).expect("it can be pressed");
    let edited = simulator
        .wait_until(std::time::Duration::from_secs(10), || {
            simulator.bot_messages(ALICE).pop().is_some_and(|now| now.text() != message.text())
        })
        .await;
    assert!(edited, "the message stays as it was");
    assert_eq!(simulator.bot_messages(ALICE).len(), 1, "edited, not sent anew");
    let query = pressed.query_id.expect("a press is a query");
    let answered = simulator
        .wait_until(std::time::Duration::from_secs(10), || {
            simulator.query(&query).is_some_and(|query| query.answer.is_some())
        })
        .await;
    assert!(answered, "the button's spinner never stops");
}

#[tokio::test(flavor = "multi_thread")]
async fn five_plugins_share_a_bot() {
    let simulator = simulator().await;
    let mut host = builder(&simulator);
    for (name, priority) in [("form", 5), ("greeter", 4), ("counter", 3), ("menu", 2), ("echo", 1)] {
        host = host.plugin(name, &plugin(name), &format!("priority = {priority}"));
    }
    let _host = host.start();
    for (text, answer) in [
        ("hi", "hi"),
        ("/nobodys_command", "/nobodys_command"),
        ("/hello", "Hello, Alice!"),
        ("/count", "This chat: 1. All chats: 1."),
        ("/form", "What is your name?"),
    ] {
        assert_eq!(ask(&simulator, ALICE, text).await, answer);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_form_gets_its_answers_before_echo_does() {
    let simulator = simulator().await;
    let _host = builder(&simulator)
        .plugin("form", &plugin("form"), "priority = 0")
        .plugin("echo", &plugin("echo"), "priority = 99")
        .start();
    ask(&simulator, ALICE, "/form").await;
    assert_ne!(ask(&simulator, ALICE, "Alice").await, "Alice");
    assert_eq!(ask(&simulator, ALICE, "34").await, "Alice, 34. Thank you!");
    assert_eq!(ask(&simulator, ALICE, "34").await, "34", "the form is over");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timer_survives_a_kill_and_can_be_cancelled() {
    let simulator = simulator().await;
    let mut host = builder(&simulator).plugin("timers", &guest("timers"), "").start();
    assert_eq!(ask(&simulator, ALICE, "/remind 1500 tea").await, "set");
    host.settle();
    host.kill();
    let before = simulator.delivered(ALICE);
    host.start();
    assert_eq!(next(&simulator, ALICE, before).await, "reminder: tea");
    assert_eq!(ask(&simulator, ALICE, "/remind 200 coffee").await, "set");
    assert_eq!(ask(&simulator, ALICE, "/forget").await, "forgotten");
    assert_eq!(ask(&simulator, ALICE, "/remind 600 cake").await, "set");
    let before = simulator.delivered(ALICE);
    assert_eq!(next(&simulator, ALICE, before).await, "reminder: cake", "coffee was cancelled");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_direct_call_answers_and_an_edit_follows_its_message() {
    let simulator = simulator().await;
    let _host = builder(&simulator).plugin("calls", &guest("calls"), "").start();
    assert_eq!(ask(&simulator, ALICE, "/me").await, "I am botyard_bot");
    let refused = ask(&simulator, ALICE, "/call deleteWebhook").await;
    assert!(refused.starts_with("error: ") && refused.contains("deleteWebhook"), "{refused}");
    simulator.user_says(ALICE, ALICE, "/edit").expect("a chat");
    let edited = simulator
        .wait_until(std::time::Duration::from_secs(10), || {
            simulator.bot_messages(ALICE).pop().is_some_and(|message| message.text() == "done")
        })
        .await;
    assert!(edited);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_button_that_is_tapped_again_and_again_counts_once() {
    let simulator = simulator().await;
    let config = format!("config = {{ admins = [{ALICE}] }}\ngrants = {{ broadcast = true }}");
    let host = builder(&simulator).plugin("panel", &plugin("panel"), &config).start();
    ask(&simulator, BOTIR, "/subscribe").await;
    ask(&simulator, ALICE, "/panel").await;
    simulator.user_says(ALICE, ALICE, "We are open").expect("a chat");
    // What it looks like, and the question below it.
    simulator.wait_for_messages(ALICE, 3, Duration::from_secs(30)).await.expect("both");
    let taps: Vec<_> = (0..5)
        .map(|_| {
            simulator.user_presses(ALICE, ALICE, None, "Everybody").expect("there is one").query_id.expect("a query")
        })
        .collect();
    for query in &taps {
        let is_answered = || simulator.query(query).is_some_and(|query| query.answer.is_some());
        assert!(simulator.wait_until(Duration::from_secs(30), is_answered).await, "nobody is left waiting");
    }
    let texts = |chat| -> Vec<_> {
        simulator.bot_messages(chat).into_iter().map(|message| message.text().to_owned()).collect()
    };
    let sent = || texts(BOTIR).len() >= 2;
    assert!(simulator.wait_until(Duration::from_secs(30), sent).await, "it goes out");
    let ended = || host.metrics().sum("botyard_broadcast_waiting", &[]) == 0.0;
    assert!(simulator.wait_until(Duration::from_secs(30), ended).await);
    assert_eq!(texts(BOTIR).iter().filter(|text| *text == "We are open").count(), 1);
    assert_eq!(host.metrics().sum("botyard_buttons_refused_total", &["unwanted"]), 4.0);
}
