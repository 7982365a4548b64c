//! The programs in `docs/ports` that do what other frameworks' examples do. Here they are compiled, played, and counted:
//! none is longer than its original.

#![allow(clippy::module_inception, reason = "a plugin is called like its file")]

use botyard_sdk::json;
use botyard_sdk::test::{Bot, Outcome};

#[path = "../../docs/ports/admin.rs"]
mod admin;
#[path = "../../docs/ports/dialogue.rs"]
mod dialogue;
#[path = "../../docs/ports/fsm_form_bot.rs"]
mod fsm_form_bot;
#[path = "../../docs/ports/parallel_bot.rs"]
mod parallel_bot;
#[path = "../../docs/ports/webhook_bot.rs"]
mod webhook_bot;

/// Lines that are neither blank nor comments.
fn code_lines(source: &str) -> usize {
    source.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")).count()
}

#[test]
fn none_is_longer_than_its_original() {
    for (name, source, original) in [
        ("dialogue", include_str!("../../docs/ports/dialogue.rs"), 90),
        ("admin", include_str!("../../docs/ports/admin.rs"), 105),
        ("fsm_form_bot", include_str!("../../docs/ports/fsm_form_bot.rs"), 31),
        ("parallel_bot", include_str!("../../docs/ports/parallel_bot.rs"), 27),
        ("webhook_bot", include_str!("../../docs/ports/webhook_bot.rs"), 18),
    ] {
        let lines = code_lines(source);
        println!("{name}: {lines} of {original}");
        assert!(lines <= original, "{name} has {lines} lines, its original {original}");
        let row = format!("| `{name}` | {original} | {lines} |");
        assert!(include_str!("../../docs/comparison.md").contains(&row), "docs/comparison.md lacks `{row}`");
    }
}

#[test]
fn dialogue_asks_three_questions() {
    let mut bot = Bot::<dialogue::dialogue::Plugin>::new();
    assert_eq!(bot.text("Hey").texts(), ["Let's start! What's your full name?"]);
    assert_eq!(bot.message(&json!({ "sticker": { "file_id": "x" } })).texts(), ["Send me plain text."]);
    assert_eq!(bot.text("Gandalf the Grey").texts(), ["How old are you?"]);
    assert_eq!(bot.text("very").texts(), ["Send me a number."]);
    assert_eq!(bot.text("223").texts(), ["What's your location?"]);
    let report = bot.text("Middle-earth");
    assert_eq!(report.texts(), ["Full name: Gandalf the Grey\nAge: 223\nLocation: Middle-earth"]);
    assert_eq!(bot.state(), None);
}

#[test]
fn admin_acts_on_who_is_replied_to() {
    fn says(text: &str, replied: bool) -> Outcome {
        let mut message = json!({
            "message_id": 5, "date": 1000, "from": { "id": 7, "is_bot": false, "first_name": "Ann" }, "text": text,
            "chat": { "id": -100, "type": "supergroup" },
        });
        if replied {
            let bob = json!({ "id": 8, "is_bot": false, "first_name": "Bob" });
            message["reply_to_message"] = json!({ "message_id": 4, "from": bob });
        }
        Bot::<admin::admin::Plugin>::new().receive("message", message)
    }
    for (text, method, until) in [
        ("/kick", "unbanChatMember", json!(null)),
        ("/ban 2 h", "banChatMember", json!(8200)),
        ("/mute 10 minutes", "restrictChatMember", json!(1600)),
    ] {
        let (called, params) = says(text, true).calls.remove(0);
        assert_eq!((&*called, &params["user_id"], &params["until_date"]), (method, &json!(8), &until));
    }
    assert_eq!(says("/kick", false).texts(), ["Use this command in reply to another message"]);
    assert_eq!(says("/ban 2 years", true).texts(), ["Please write it like this: /ban TIME UNIT"]);
    assert!(says("/help", false).texts()[0].contains("/mute"));
}

#[test]
fn fsm_form_asks_for_name_and_age() {
    let mut bot = Bot::<fsm_form_bot::fsm_form_bot::Plugin>::new();
    assert_eq!(bot.text("hi").texts(), ["Send /start to begin."]);
    assert_eq!(bot.text("/start").texts(), ["What's your name?"]);
    assert_eq!(bot.text("Ann").texts(), ["Great. How old are you?"]);
    assert_eq!(bot.text("30").texts(), ["Got it, Ann (30). Send /start to go again."]);
}

#[test]
fn echoes_echo() {
    let mut parallel = Bot::<parallel_bot::parallel_bot::Plugin>::new();
    assert_eq!(parallel.text("/start").texts(), ["Parallel bot ready."]);
    assert_eq!(parallel.text("tea").texts(), ["tea"]);
    let mut webhook = Bot::<webhook_bot::webhook_bot::Plugin>::new();
    assert_eq!(webhook.text("/start").texts(), ["Webhook bot ready."]);
    let echoed = webhook.text("tea");
    assert_eq!((echoed.texts(), echoed.log.len()), (vec!["tea"], 1));
}
