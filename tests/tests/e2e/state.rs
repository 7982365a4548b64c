//! What plugins keep, in an operator's hands; and nothing left of somebody who wants to be forgotten.

use botyard::simulator::{ALICE, BOTIR};
use botyard::store::Store;
use botyard_tests::{guest, plugin};
use serde_json::Value as Json;

use super::operator::{botyard, done, json};
use super::support::{BOT, ask, builder, simulator};

/// Keys and values in which the id stands, as a part of a key or in digits.
fn traces(store: &Store, id: i64) -> Vec<String> {
    let big = (id ^ i64::MIN).to_be_bytes();
    let digits = id.to_string();
    let holds = |bytes: &[u8]| {
        let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
        let mut places = bytes.windows(digits.len()).enumerate();
        bytes.windows(8).any(|window| window == big)
            || places.any(|(at, window)| {
                window == digits.as_bytes() && !is_digit(at.wrapping_sub(1)) && !is_digit(at + digits.len())
            })
    };
    let rows = store.range(&[1], &[0x7d], usize::MAX).expect("a sound store");
    let found = rows.iter().filter(|(key, value)| holds(key) || holds(value));
    found.map(|(key, value)| format!("{} = {}", key.escape_ascii(), value.escape_ascii())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_of_somebody_who_is_erased_and_everything_of_the_others() {
    let simulator = simulator().await;
    let mut host = builder(&simulator)
        .plugin("counter", &plugin("counter"), "")
        .plugin("form", &plugin("form"), "")
        .plugin("timers", &guest("timers"), "")
        .plugin("panics", &guest("panics"), "priority = -9")
        .plugin("jobs", &guest("jobs"), "jobs = { workers = 1 }")
        .sections("[dispatch]\nmax_attempts = 1\n")
        .start();
    for person in [ALICE, BOTIR] {
        ask(&simulator, person, "/count").await;
        assert_eq!(ask(&simulator, person, "/remind 3600000 tea").await, "set");
        assert_eq!(ask(&simulator, person, "/work 3600000 forever").await, "queued");
        simulator.user_says(person, person, "/panic").expect("a chat");
        ask(&simulator, person, "/form").await;
    }
    host.wait_until("the panics are set aside", |host| {
        host.metrics().sum("botyard_events_total", &["outcome=\"dead\""]) == 2.0
    });
    let alice = ALICE.to_string();
    let given = done(&host, &["state", "export", "--user", &alice]);
    let mut kinds: Vec<String> = given
        .lines()
        .map(|line| serde_json::from_str::<Json>(line).expect("JSON")["kind"].as_str().expect("a kind").to_owned())
        .collect();
    kinds.sort_unstable();
    kinds.dedup();
    assert_eq!(kinds, ["chat", "dead", "expiry", "job", "language", "state", "timer", "value"], "{given}");
    assert!(!given.contains(&BOTIR.to_string()));

    let counted = json(&host, &["state", "erase", "--user", &alice, "--dry-run"]);
    assert_eq!(botyard(&host, &["state", "erase", "--user", &alice]).0, Some(2), "it must be meant");
    let erased = json(&host, &["state", "erase", "--user", &alice, "--yes"]);
    assert_eq!(counted["rows"], erased["rows"], "a dry run tells the truth");
    assert_eq!(erased["done"], true);
    assert!(host.stop().status.success());
    let store = Store::open(&host.store_dir()).expect("the host has stopped");
    assert_eq!(traces(&store, ALICE), [""; 0]);
    assert!(traces(&store, BOTIR).len() >= 6, "the others' stays");
    assert!(
        !store
            .scan_prefix(&[b"n", &(BOT.0 ^ i64::MIN).to_be_bytes()[..]].concat(), 1)
            .expect("a sound store")
            .is_empty(),
        "what was accepted is known"
    );
    drop(store);
    host.start();
    assert_eq!(ask(&simulator, ALICE, "/count").await, "This chat: 1. All chats: 3.", "a new beginning");
    assert_eq!(ask(&simulator, BOTIR, "/count").await, "This chat: 2. All chats: 4.");
}

#[tokio::test(flavor = "multi_thread")]
async fn states_and_values_are_seen_changed_taken_out_and_put_back() {
    let simulator = simulator().await;
    let mut host = builder(&simulator)
        .plugin("counter", &plugin("counter"), "limits = { value = \"1KiB\" }")
        .plugin("versioned", &guest("versioned_a"), "")
        .start();
    ask(&simulator, ALICE, "/count").await;
    ask(&simulator, ALICE, "/step").await;
    let alice = ALICE.to_string();
    let here = ["--chat", alice.as_str(), "--key", "count"];
    let command = |action: &'static str, more: &[&'static str]| -> Vec<String> {
        ["state", action, "counter"].into_iter().chain(here).chain(more.iter().copied()).map(str::to_owned).collect()
    };
    let run = |host: &botyard_tests::Host, arguments: Vec<String>| {
        botyard(host, &arguments.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let value: Json = serde_json::from_str(&run(&host, command("get", &[])).1).expect("JSON");
    assert_eq!((&value["json"], &value["kind"]), (&Json::from(1), &Json::from("value")));
    assert_eq!(run(&host, command("set", &["41"])).0, Some(0));
    assert_eq!(ask(&simulator, ALICE, "/count").await, "This chat: 42. All chats: 2.", "as the running host sees it");
    let long: &'static str = Box::leak(format!("\"{}\"", "x".repeat(2000)).into_boxed_str());
    let (code, _, why) = run(&host, command("set", &[long]));
    assert!(code == Some(2) && why.contains("limits.value"), "{why}");

    let state = json(&host, &["state", "list", "--plugin", "versioned"])["entries"][0].clone();
    assert_eq!((state["name"].as_str(), state["version"].as_u64()), (Some("walking"), Some(1)), "{state}");
    let mut arguments =
        vec!["state", "set", "versioned", "{\"Walking\":{\"steps\":9}}", "--version", "7", "--name", "walking"];
    let user = state["user"].as_i64().map(|id| id.to_string());
    let chat = state["chat"].as_i64().map(|id| id.to_string());
    arguments.extend(chat.iter().flat_map(|id| ["--chat", id]).chain(user.iter().flat_map(|id| ["--user", id])));
    let (code, _, why) = botyard(&host, &arguments);
    assert!(code == Some(2) && why.contains("version 1") && why.contains("--force"), "{why}");
    arguments[5] = "1";
    done(&host, &arguments);
    assert_eq!(ask(&simulator, ALICE, "/step").await, "1: step 10");

    assert!(host.stop().status.success());
    let kept = done(&host, &["state", "export", "--plugin", "counter"]);
    let file = host.folder().join("kept.jsonl");
    std::fs::write(&file, &kept).expect("writable");
    assert_eq!(run(&host, command("delete", &[])).0, Some(0));
    assert_eq!(run(&host, command("get", &[])).0, Some(1));
    done(&host, &["state", "import", file.to_str().expect("a path")]);
    host.start();
    assert_eq!(ask(&simulator, ALICE, "/count").await, "This chat: 43. All chats: 3.");

    // One line that can't be put, and none is.
    let bad = "{\"kind\":\"value\",\"plugin\":\"counter\",\"expires\":0,\"json\":1}";
    std::fs::write(&file, format!("{kept}{bad}\n")).expect("writable");
    let (code, _, why) = botyard(&host, &["state", "import", file.to_str().expect("a path")]);
    assert!(code == Some(2) && why.contains(&format!("line {}", kept.lines().count() + 1)), "{why}");
    assert_eq!(ask(&simulator, ALICE, "/count").await, "This chat: 44. All chats: 4.");
}
