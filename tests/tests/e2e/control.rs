//! `/cancel` ends a conversation even when its handler hangs; people of a group don't wait for each other where the
//! plugin's key says so; and nothing stays claimed.

use std::time::{Duration, Instant};

use botyard::simulator::{ALICE, BOTIR, CHIARA, GROUP, Simulator};
use botyard_tests::{Host, guest, plugin};

use super::support::{ask, builder, dead_letters, next, simulator};

fn says(simulator: &Simulator, chat: i64, user: i64, text: &str) {
    simulator.user_says(chat, user, text).expect("a chat");
}

/// Waits until so many events have been taken in and the first of them are being handled.
async fn accepted(host: &mut Host, count: f64) {
    host.wait_until("they are taken in", |host| host.metrics().sum("botyard_updates_total", &["accepted"]) >= count);
    tokio::time::sleep(Duration::from_millis(200)).await;
}

async fn has_said(simulator: &Simulator, chat: i64, count: u64) -> Vec<String> {
    let messages = simulator.wait_for_messages(chat, count, Duration::from_secs(20)).await;
    let messages = messages.unwrap_or_else(|_| panic!("only {} messages", simulator.bot_messages(chat).len()));
    messages.iter().map(|message| message.text().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn cancel_ends_a_hanging_handler_though_all_places_are_taken() {
    let simulator = simulator().await;
    let mut host = builder(&simulator)
        .sections("[dispatch]\nconcurrency = 1\n")
        .plugin("loops", &guest("loops"), "priority = 1\nlimits = { time = \"10m\" }")
        .plugin("echo", &plugin("echo"), "")
        .start();
    says(&simulator, ALICE, ALICE, "/wait");
    says(&simulator, ALICE, ALICE, "waits behind it");
    accepted(&mut host, 2.0).await;
    let asked = Instant::now();
    says(&simulator, ALICE, ALICE, "/cancel");
    let mut said = has_said(&simulator, ALICE, 2).await;
    said.sort();
    assert_eq!(said, ["Cancelled.", "waits behind it"], "what came before goes on");
    assert!(asked.elapsed() < Duration::from_secs(10), "{:?}", asked.elapsed());
    assert_eq!(ask(&simulator, ALICE, "free?").await, "free?");
    assert!(host.stop().status.success());
    let letters = dead_letters(&host);
    assert!(
        matches!(&letters[..], [letter] if letter.plugin == "loops" && letter.reason.contains("user")),
        "{letters:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn cancel_ends_an_event_that_fails_again_and_again() {
    let simulator = simulator().await;
    let mut host = builder(&simulator)
        .sections("[dispatch]\nmax_attempts = 1000\n")
        .plugin("traps", &guest("traps"), "priority = 1")
        .plugin("echo", &plugin("echo"), "")
        .start();
    says(&simulator, ALICE, ALICE, "/trap");
    says(&simulator, ALICE, ALICE, "behind");
    host.wait_until("it rests", |host| host.metrics().sum("botyard_events_total", &["retried"]) >= 3.0);
    says(&simulator, ALICE, ALICE, "/cancel");
    let mut said = has_said(&simulator, ALICE, 2).await;
    said.sort();
    assert_eq!(said, ["Cancelled.", "behind"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn cancel_clears_the_state_and_is_an_ordinary_message_where_there_is_none() {
    let simulator = simulator().await;
    let _host =
        builder(&simulator).plugin("asks", &guest("asks"), "priority = 1").plugin("echo", &plugin("echo"), "").start();
    assert_eq!(ask(&simulator, ALICE, "/cancel").await, "/cancel", "nothing to end");
    ask(&simulator, ALICE, "/ask").await;
    assert_eq!(ask(&simulator, ALICE, "/CANCEL@botyard_bot").await, "Cancelled.");
    assert_eq!(ask(&simulator, ALICE, "Alice").await, "Alice", "nobody waits for a name any more");
    // In a group: only the conversation of the one who says so.
    says(&simulator, GROUP, ALICE, "/ask");
    has_said(&simulator, GROUP, 1).await;
    says(&simulator, GROUP, BOTIR, "/cancel");
    assert_eq!(next(&simulator, GROUP, 1).await, "/cancel", "it is not Botir's");
    says(&simulator, GROUP, ALICE, "/cancel");
    assert_eq!(next(&simulator, GROUP, 2).await, "Cancelled.");
    says(&simulator, GROUP, ALICE, "/ask");
    says(&simulator, GROUP, ALICE, "/cancel@some_other_bot");
    let said = has_said(&simulator, GROUP, 5).await;
    assert_eq!(said[4], "Hello, /cancel@some_other_bot!", "another bot's affair");
}

#[tokio::test(flavor = "multi_thread")]
async fn it_can_be_turned_off_and_worded() {
    let simulator = simulator().await;
    let mut host = builder(&simulator)
        .sections("[dispatch]\ncancel_command = \"\"\n")
        .plugin("asks", &guest("asks"), "priority = 1")
        .start();
    let question = ask(&simulator, ALICE, "/ask").await;
    assert_ne!(ask(&simulator, ALICE, "/cancel").await, "Cancelled.", "it is an answer: {question}");
    assert!(host.stop().status.success());
    let toml = std::fs::read_to_string(host.config_file()).expect("readable");
    let texts = host.folder().join("texts/asks");
    std::fs::create_dir_all(&texts).expect("writable");
    std::fs::write(texts.join("uz.ftl"), "cancelled = Bekor qilindi.\n").expect("writable");
    let toml = toml.replace("cancel_command = \"\"", "cancel_command = \"stop\"\ncancel_reply = \"As you wish.\"");
    std::fs::write(host.config_file(), format!("{toml}\n[i18n]\nlocales = \"texts\"\n")).expect("writable");
    host.start();
    ask(&simulator, ALICE, "/ask").await;
    assert_eq!(ask(&simulator, ALICE, "/stop").await, "As you wish.");
    ask(&simulator, BOTIR, "/ask").await;
    assert_eq!(ask(&simulator, BOTIR, "/stop").await, "Bekor qilindi.", "in the plugin's words where it has some");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugins_own_command_has_its_turn_unless_something_hangs() {
    let simulator = simulator().await;
    let mut host = builder(&simulator).plugin("by_user", &guest("by_user"), "limits = { time = \"10m\" }").start();
    assert_eq!(ask(&simulator, ALICE, "/cancel").await, "the plugin's own");
    says(&simulator, ALICE, ALICE, "slow");
    accepted(&mut host, 2.0).await;
    assert_eq!(ask(&simulator, ALICE, "/cancel").await, "Cancelled.");
    assert_eq!(ask(&simulator, ALICE, "free?").await, "free?");
}

#[tokio::test(flavor = "multi_thread")]
async fn people_of_a_group_are_not_in_each_others_way_where_the_key_says_so() {
    let simulator = simulator().await;
    let mut host = builder(&simulator).plugin("by_user", &guest("by_user"), "limits = { time = \"10m\" }").start();
    says(&simulator, GROUP, ALICE, "slow");
    says(&simulator, GROUP, ALICE, "Alice, after it");
    accepted(&mut host, 2.0).await;
    for n in 0..5 {
        says(&simulator, GROUP, BOTIR, &format!("Botir {n}"));
        says(&simulator, GROUP, CHIARA, &format!("Chiara {n}"));
    }
    let said = has_said(&simulator, GROUP, 10).await;
    for name in ["Botir", "Chiara"] {
        let theirs: Vec<_> = said.iter().filter(|text| text.starts_with(name)).collect();
        let expected: Vec<_> = (0..5).map(|n| format!("{name} {n}")).collect();
        assert_eq!(theirs, expected.iter().collect::<Vec<_>>(), "each in order");
    }
    // With a plugin to which a chat is one conversation, the chat is one lane.
    says(&simulator, GROUP, ALICE, "/cancel");
    let said = has_said(&simulator, GROUP, 12).await;
    assert!(said.contains(&"Alice, after it".to_owned()) && said.contains(&"Cancelled.".to_owned()), "{said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_stays_claimed_by_a_host_that_was_killed() {
    let simulator = simulator().await;
    let mut host = builder(&simulator).plugin("echo", &plugin("echo"), "config = { slow_ms = 1500 }").start();
    says(&simulator, ALICE, ALICE, "slow");
    accepted(&mut host, 1.0).await;
    host.kill();
    host.start();
    says(&simulator, ALICE, ALICE, "and on");
    assert_eq!(has_said(&simulator, ALICE, 2).await, ["slow", "and on"]);
}
