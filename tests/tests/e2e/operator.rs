//! What an operator does by hand, with the host running and without: as a person would, with the command.

use std::process::{Command, Output};

use botyard::domain::{BotId, ChatId, Lane};
use botyard::simulator::{ALICE, BOTIR};
use botyard::store::rows::dead::{self, DeadRow};
use botyard::store::rows::inbox::StoredEvent;
use botyard::store::{Commit, Op, Store};
use botyard_tests::{Host, guest, host_program, plugin};
use serde_json::Value as Json;

use super::support::{BOT, ask, builder, next, simulator};

/// Exit code, stdout and stderr of a command with the host's configuration.
fn botyard(host: &Host, arguments: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = Command::new(host_program())
        .args(arguments)
        .arg("--config")
        .arg(host.config_file())
        // Of a token only the number counts here.
        .env("TEST_TOKEN", "4242:another-secret-of-the-same-bot-that-nobody-sees")
        .output()
        .expect("it starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    let (out, errors) = (text(stdout), text(stderr));
    assert!(!errors.contains("panicked") && !errors.contains("another-secret"), "{errors}");
    (status.code(), out, errors)
}

/// What a command that goes well prints.
fn done(host: &Host, arguments: &[&str]) -> String {
    let (code, out, errors) = botyard(host, arguments);
    assert_eq!(code, Some(0), "{arguments:?}: {out}{errors}");
    out
}

fn json(host: &Host, arguments: &[&str]) -> Json {
    serde_json::from_str(&done(host, &[arguments, &["--json"]].concat())).expect("JSON")
}

/// The numbers of the dead letters, the newest first.
fn letters(host: &Host) -> Vec<u64> {
    let list = json(host, &["dead", "list"]);
    let letters = list["letters"].as_array().expect("a list").iter();
    letters.map(|letter| letter["number"].as_u64().expect("a number")).collect()
}

fn replace(path: &std::path::Path, new: &std::path::Path) {
    let beside = path.with_extension("new");
    std::fs::copy(new, &beside).expect("writable");
    std::fs::rename(&beside, path).expect("writable");
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_are_looked_at_and_retried_after_a_fix_while_the_host_runs() {
    let simulator = simulator().await;
    let folder = tempfile::tempdir().expect("a folder");
    let wasm = folder.path().join("panics.wasm");
    replace(&wasm, &guest("panics"));
    let mut host = builder(&simulator)
        .sections("[dispatch]\nmax_attempts = 1\n")
        .plugin("handler", &wasm, "priority = 1")
        .plugin("echo", &plugin("echo"), "")
        .start();
    assert_eq!(done(&host, &["dead", "list"]), "no dead letters\n");
    for text in ["/panic my-private-text", "/refuse", "/fail"] {
        simulator.user_says(ALICE, ALICE, text).expect("a chat");
    }
    host.wait_until("three are dead", |host| letters(host).len() == 3);
    let numbers = letters(&host);
    assert!(numbers.is_sorted_by(|a, b| a > b), "the newest first: {numbers:?}");
    let (fail, refuse, panic) = (numbers[0].to_string(), numbers[1].to_string(), numbers[2].to_string());

    let list = done(&host, &["dead", "list", "--limit", "2"]);
    assert!(list.contains("refused for good") && list.contains("handler") && list.contains("older ones"), "{list}");
    assert!(list.contains(&format!("chat {ALICE}")), "{list}");
    assert_eq!(done(&host, &["dead", "list", "--plugin", "echo"]), "no dead letters\n");

    let shown = done(&host, &["dead", "show", &panic]);
    for part in
        ["deliberate: my-private-text", "panics/src/lib.rs:", "backtrace", "attempts   1", "[hidden: 22 characters]"]
    {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains("/panic my-private-text"), "{shown}");
    assert!(done(&host, &["dead", "show", &panic, "--payload"]).contains("/panic my-private-text"));
    let (code, _, errors) = botyard(&host, &["dead", "show", "999999"]);
    assert!(code == Some(1) && errors.contains("no dead letter 999999"), "{code:?} {errors}");

    // Dropping asks, and where nobody can be asked it must be said.
    let (code, _, errors) = botyard(&host, &["dead", "drop", &refuse]);
    assert!(code == Some(2) && errors.contains("--yes"), "{code:?} {errors}");
    assert_eq!(done(&host, &["dead", "drop", &refuse, "--yes"]), "1 dead letter dropped\n");
    assert_eq!(letters(&host).len(), 2);

    // The fix: a version that answers every text.
    replace(&wasm, &guest("versioned_a"));
    host.wait_until("the fix serves", |host| host.log().contains("plugin serves from now on"));
    assert_eq!(ask(&simulator, ALICE, "meanwhile").await, "1: meanwhile");
    let before = simulator.delivered(ALICE);
    let out = done(&host, &["dead", "retry", &panic]);
    assert!(out.starts_with("1 dead letter put back, behind what waits now"), "{out}");
    assert_eq!(next(&simulator, ALICE, before).await, "1: /panic my-private-text");
    let out = done(&host, &["dead", "retry", "--all"]);
    assert!(out.starts_with("1 dead letter put back"), "{out}");
    assert_eq!(next(&simulator, ALICE, before + 1).await, "1: /fail");
    assert_eq!(letters(&host), [0; 0]);
    let (code, out, _) = botyard(&host, &["dead", "retry", &fail]);
    assert!(code == Some(1) && out.contains("no such dead letter"), "{out}");
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_of_a_stopped_host_are_handled_after_its_next_start() {
    let simulator = simulator().await;
    let mut host = builder(&simulator)
        .sections("[dispatch]\nmax_attempts = 1\n")
        .plugin("panics", &guest("panics"), "priority = 1")
        .plugin("echo", &plugin("echo"), "")
        .start();
    simulator.user_says(ALICE, ALICE, "/fail 2").expect("a chat");
    host.wait_until("it is dead", |host| letters(host).len() == 1);
    host.stop();

    // As an intake of an earlier version would have left an update that it could not read.
    let store = Store::open(&host.store_dir()).expect("the host has stopped");
    let raw = format!(
        r#"{{"update_id":900,"message":{{"message_id":5,"chat":{{"id":{BOTIR},"type":"private"}},"from":{{"id":{BOTIR}}},"text":"long ago"}}}}"#
    );
    let row = DeadRow {
        lane: Lane::Other,
        at: 1,
        attempts: 0,
        plugin: String::new(),
        version: String::new(),
        reason: "of a kind that is not known yet".to_owned(),
        backtrace: String::new(),
        event: StoredEvent::Update(raw.into_bytes()),
    };
    let ops = vec![Op::Append { prefix: dead::bot_prefix(BOT), value: row.encode() }];
    store.commit(Commit { ops, ..Commit::default() }).await.expect("applied").durable().await.expect("durable");
    store.close().await.expect("closed");
    drop(store);

    let list = json(&host, &["dead", "list"]);
    assert_eq!(list["letters"].as_array().map(Vec::len), Some(2), "{list}");
    assert_eq!(list["letters"][1]["lane"], format!("{}", Lane::Chat(ChatId(ALICE))));
    let out = done(&host, &["dead", "retry", "--all"]);
    assert!(out.contains("2 dead letters put back") && out.contains("after the next start"), "{out}");
    assert_eq!(letters(&host), [0; 0]);

    let before = simulator.delivered(BOTIR);
    host.start();
    assert_eq!(next(&simulator, BOTIR, before).await, "long ago");
    host.wait_until("it fails again, with its attempts counted anew", |host| letters(host).len() == 1);
    assert_eq!(json(&host, &["dead", "list"])["letters"][0]["attempts"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_can_not_get_at_the_store_says_why() {
    let simulator = simulator().await;
    let mut host = builder(&simulator).plugin("echo", &plugin("echo"), "").start();
    let listen = "BOTYARD__ADMIN__LISTEN";
    let elsewhere = |address: &str| {
        let output = Command::new(host_program())
            .args(["dead", "list", "--config"])
            .arg(host.config_file())
            .env(listen, address)
            .env("TEST_TOKEN", "4242:another-secret-of-the-same-bot-that-nobody-sees")
            .output()
            .expect("it starts");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, errors) = elsewhere("127.0.0.1:0");
    assert!(code == Some(3) && errors.contains("can't be asked") && errors.contains("port 0"), "{code:?} {errors}");
    let (code, errors) = elsewhere("127.0.0.1:9");
    assert!(code == Some(3) && errors.contains("nobody answers at 127.0.0.1:9"), "{code:?} {errors}");
    let (code, errors) = elsewhere(&simulator.addr().to_string());
    assert!(code == Some(3) && errors.contains("is no botyard"), "{code:?} {errors}");

    // A host with another store is not asked by mistake.
    let other = builder(&simulator).plugin("echo", &plugin("echo"), "").start();
    let at_other = std::fs::read_to_string(other.config_file()).expect("readable");
    let address = at_other.lines().find_map(|line| line.strip_prefix("listen = ")).expect("it listens");
    let (code, errors) = elsewhere(address.trim_matches('"'));
    assert!(code == Some(3) && errors.contains("has another store"), "{code:?} {errors}");
    assert_eq!(BOT, BotId(4242));
    host.stop();
}
