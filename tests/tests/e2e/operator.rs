//! What an operator does by hand, with the host running and without: as a person would, with the command.

use std::process::{Command, Output};

use botyard::domain::{BotId, ChatId, EventLane, KeyStrategy, Lane};
use botyard::simulator::{ALICE, BOTIR};
use botyard::store::rows::dead::{self, DeadRow};
use botyard::store::rows::inbox::{self, InboxRow, StoredEvent};
use botyard::store::{Commit, Op, Store};
use botyard_tests::{Host, guest, host_program, plugin};
use serde_json::Value as Json;

use super::support::{BOT, ask, builder, next, simulator};

/// Exit code, stdout and stderr of a command with the host's configuration.
pub(crate) fn botyard(host: &Host, arguments: &[&str]) -> (Option<i32>, String, String) {
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
pub(crate) fn done(host: &Host, arguments: &[&str]) -> String {
    let (code, out, errors) = botyard(host, arguments);
    assert_eq!(code, Some(0), "{arguments:?}: {out}{errors}");
    out
}

pub(crate) fn json(host: &Host, arguments: &[&str]) -> Json {
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
        lane: EventLane::whole(Lane::Other),
        at: 1,
        attempts: 0,
        plugin: String::new(),
        version: String::new(),
        reason: "of a kind that is not known yet".to_owned(),
        backtrace: String::new(),
        event: StoredEvent::Update(raw.into_bytes()),
        rest: Vec::new(),
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

/// State of a plugin, as the list tells it.
pub(crate) fn state(host: &Host, name: &str) -> (String, Json) {
    let list = json(host, &["plugin", "list"]);
    let found = list.as_array().expect("a list").iter().find(|plugin| plugin["name"] == name).cloned();
    let plugin = found.unwrap_or_else(|| panic!("{name} is not in {list}"));
    (plugin["state"].as_str().expect("a text").to_owned(), plugin)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_plugins_events_wait_over_restarts_and_are_handled_in_order() {
    let simulator = simulator().await;
    let mut host = builder(&simulator)
        .plugin("counter", &plugin("counter"), "priority = 5")
        .plugin("echo", &plugin("echo"), "")
        .start();
    assert_eq!(ask(&simulator, ALICE, "/count").await, "This chat: 1. All chats: 1.");
    assert_eq!(done(&host, &["plugin", "pause", "counter"]), "`counter` is paused: its events wait\n");
    assert_eq!(state(&host, "counter").0, "paused");
    assert_eq!(state(&host, "echo").0, "serving");
    let (status, report) = host.get("/readyz").expect("it answers");
    assert!(status == 200 && report.contains("plugins.counter"), "it serves, with a note: {report}");

    let before = simulator.delivered(ALICE);
    for text in ["/count", "behind it", "/count"] {
        simulator.user_says(ALICE, ALICE, text).expect("a chat");
    }
    assert_eq!(ask(&simulator, BOTIR, "another chat").await, "another chat", "other lanes go on");
    host.wait_until("all is fetched", |_| simulator.waiting_updates() == 0);
    assert_eq!(simulator.delivered(ALICE), before, "the lane rests");

    host.kill();
    host.start();
    assert_eq!(state(&host, "counter").0, "paused", "the pause survives");
    assert_eq!(ask(&simulator, BOTIR, "after the start").await, "after the start");
    assert_eq!(simulator.delivered(ALICE), before);

    assert_eq!(done(&host, &["plugin", "resume", "counter"]), "`counter` goes on\n");
    next(&simulator, ALICE, before + 2).await;
    let answers: Vec<_> =
        simulator.bot_messages(ALICE).iter().skip(1).map(|message| message.text().to_owned()).collect();
    assert_eq!(answers, ["This chat: 2. All chats: 2.", "behind it", "This chat: 3. All chats: 3."]);
    assert_eq!(state(&host, "counter").0, "serving");

    // On a stopped store, too.
    host.stop();
    assert!(done(&host, &["plugin", "pause", "counter"]).contains("no host runs"));
    host.start();
    let before = simulator.delivered(ALICE);
    simulator.user_says(ALICE, ALICE, "/count").expect("a chat");
    assert_eq!(ask(&simulator, BOTIR, "still here").await, "still here");
    assert_eq!(simulator.delivered(ALICE), before);
    host.stop();
    assert!(done(&host, &["plugin", "resume", "counter"]).contains("goes on"));
    host.start();
    assert_eq!(next(&simulator, ALICE, before).await, "This chat: 4. All chats: 4.");
    assert!(json(&host, &["dead", "list"])["letters"].as_array().is_some_and(Vec::is_empty), "waiting is no failure");
}

#[tokio::test(flavor = "multi_thread")]
async fn plugins_are_listed_and_reloaded_by_hand() {
    let simulator = simulator().await;
    let folder = tempfile::tempdir().expect("a folder");
    let wasm = folder.path().join("versioned.wasm");
    replace(&wasm, &guest("versioned_a"));
    let mut host =
        builder(&simulator).plugin("steps", &wasm, "priority = 7").plugin("echo", &plugin("echo"), "").start();
    let list = json(&host, &["plugin", "list"]);
    let names: Vec<_> = list.as_array().expect("a list").iter().map(|plugin| plugin["name"].clone()).collect();
    assert_eq!(names, ["steps", "echo"], "in the order in which they are asked");
    let steps = state(&host, "steps").1;
    assert_eq!((&steps["manifest_version"], &steps["priority"]), (&"1.0.0".into(), &7.into()));
    assert!(done(&host, &["plugin", "list"]).contains("serving"));

    let out = done(&host, &["plugin", "reload", "steps"]);
    assert!(out.contains(steps["version"].as_str().expect("a hash")), "{out}");
    assert_eq!(ask(&simulator, ALICE, "hello").await, "1: hello");
    replace(&wasm, &guest("versioned_b"));
    done(&host, &["plugin", "reload", "steps"]);
    assert_eq!(ask(&simulator, ALICE, "hello").await, "2: hello", "at once, whatever the watcher has seen");

    std::fs::write(&wasm, "no plugin").expect("writable");
    let (code, _, errors) = botyard(&host, &["plugin", "reload", "steps"]);
    assert!(code == Some(1) && errors.contains("not WebAssembly"), "{code:?} {errors}");
    let (stale, steps) = state(&host, "steps");
    assert!(stale == "stale" && steps["reason"].as_str().is_some_and(|why| why.contains("not WebAssembly")), "{steps}");
    assert_eq!(ask(&simulator, ALICE, "hello").await, "2: hello");

    for action in ["reload", "pause", "resume"] {
        let (code, _, errors) = botyard(&host, &["plugin", action, "stesp"]);
        assert!(code == Some(1) && errors.contains("no plugin `stesp`") && errors.contains("`steps`"), "{errors}");
    }
    host.stop();
    let (code, _, errors) = botyard(&host, &["plugin", "list"]);
    assert!(code == Some(1) && errors.contains("nobody answers"), "{errors}");
    let (code, _, errors) = botyard(&host, &["plugin", "pause", "stesp"]);
    assert!(code == Some(2) && errors.contains("no plugin `stesp`"), "{errors}");
}

/// An update that was received so long ago and waits in a stopped host's store.
async fn leave_waiting(store: &Store, raw: String, seconds: u64) {
    let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("it is later");
    let received = u64::try_from(since_1970.as_millis()).expect("few") - seconds * 1000;
    let lane = botyard::domain::UpdateView::parse(&raw).expect("JSON").lane(KeyStrategy::Chat);
    let row = InboxRow::new(StoredEvent::Update(raw.into_bytes()), received);
    let ops = vec![Op::Append { prefix: inbox::lane_prefix(BOT, lane), value: row.encode() }];
    store.commit(Commit { ops, ..Commit::default() }).await.expect("applied").durable().await.expect("durable");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_came_too_late_to_matter_is_dropped_and_counted_and_messages_never_are() {
    let simulator = simulator().await;
    let mut host = builder(&simulator).plugin("echo", &plugin("echo"), "").start();
    host.stop();
    let store = Store::open(&host.store_dir()).expect("the host has stopped");
    let from = format!(r#""from":{{"id":{ALICE}}}"#);
    let message = format!(r#""chat":{{"id":{ALICE},"type":"private"}},{from},"message_id":5,"date":1700000000"#);
    let tap = |n: u64| format!(r#"{{"update_id":{n},"callback_query":{{"id":"{n}",{from},"message":{{{message}}}}}}}"#);
    let query = |n: u64| format!(r#"{{"update_id":{n},"inline_query":{{"id":"{n}",{from},"query":"q"}}}}"#);
    leave_waiting(&store, query(901), 40).await;
    leave_waiting(&store, query(902), 0).await;
    leave_waiting(&store, tap(903), 160).await;
    leave_waiting(&store, tap(904), 100).await;
    let days_ago = format!(r#"{{"update_id":905,"message":{{{message},"text":"days ago"}}}}"#);
    leave_waiting(&store, days_ago, 3 * 86_400).await;
    store.close().await.expect("closed");
    drop(store);

    let before = simulator.delivered(ALICE);
    host.start();
    assert_eq!(next(&simulator, ALICE, before).await, "days ago");
    let outcome =
        |host: &Host, outcome: &str| host.metrics().sum("botyard_events_total", &[&format!("outcome=\"{outcome}\"")]);
    host.wait_until("all had their turn", |host| outcome(host, "unrouted") + outcome(host, "expired") >= 4.0);
    assert!((outcome(&host, "expired") - 2.0).abs() < f64::EPSILON, "a query of 40 s and a tap of 160 s");
    assert_eq!(letters(&host), [0; 0]);
}
