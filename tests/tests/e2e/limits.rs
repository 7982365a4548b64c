//! What a plugin may use, and what waits to be sent.

use botyard::simulator::{ALICE, Action, BOTIR, Bulk, Fault};
use botyard::store::Store;
use botyard::store::rows::inbox::{self, InboxRow};
use botyard_tests::{Host, guest, plugin};

use super::operator::{botyard, done, json, state};
use super::support::{BOT, ask, builder, dead_letters, delivered, simulator};

fn events(host: &Host, outcome: &str) -> f64 {
    host.metrics().sum("botyard_events_total", &[&format!("outcome=\"{outcome}\"")])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_has_used_up_its_calls_is_waited_for_and_not_blamed() {
    let simulator = simulator().await;
    simulator.start_load_mode(false);
    let mut host = builder(&simulator)
        .sections("[dispatch]\nmax_attempts = 1\n")
        .plugin("sends", &guest("sends"), "priority = 1")
        .plugin("echo", &plugin("echo"), "on_crash = \"pause\"\nlimits = { calls_per_minute = 3 }")
        .start();
    simulator.push_updates(&Bulk { text: "hello".to_owned(), ..Bulk::new(20, 20) });
    host.wait_until("the others are put off", |host| events(host, "put_off") >= 17.0);
    simulator.end_load_mode();
    delivered(&simulator, 3, std::time::Duration::from_secs(20)).await;
    assert_eq!(ask(&simulator, BOTIR, "/say another plugin").await, "another plugin");
    assert_eq!(state(&host, "echo").0, "serving", "neither paused by on_crash nor given a rest");
    let limits = host.metrics().sum("botyard_plugin_limits_total", &["limit=\"calls_per_minute\"", "plugin=\"echo\""]);
    assert!(limits >= 17.0, "{limits}");
    let list = done(&host, &["plugin", "list", "--limits"]);
    assert!(list.lines().any(|line| line.split_whitespace().eq(["echo", "calls_per_minute", "3"])), "{list}");

    assert!(host.stop().status.success());
    assert_eq!(dead_letters(&host).len(), 0);
    let store = Store::open(&host.store_dir()).expect("the host has stopped");
    let waiting = store.scan_prefix(&inbox::bot_prefix(BOT), usize::MAX).expect("a sound store");
    let rows: Vec<_> = waiting.iter().map(|(_, row)| InboxRow::decode(row).expect("a sound row")).collect();
    assert_eq!(rows.len(), 17, "nothing is lost");
    assert!(rows.iter().all(|row| row.attempts == 0 && row.not_before > 0), "and none of it was an attempt");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_alone_wants_more_calls_than_there_ever_are_ends_with_the_line_to_change() {
    let simulator = simulator().await;
    let mut host = builder(&simulator).plugin("sends", &guest("sends"), "limits = { calls_per_minute = 3 }").start();
    simulator.user_says(ALICE, ALICE, "/edits 5").expect("a chat");
    host.wait_until("a dead letter", |host| events(host, "dead") >= 1.0);
    assert!(host.stop().status.success());
    let letters = dead_letters(&host);
    let [letter] = &letters[..] else { panic!("{letters:?}") };
    assert!(letter.reason.contains("`limits.calls_per_minute` of [plugins.sends] in bot.toml"), "{}", letter.reason);
    assert_eq!(letter.attempts, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_with_too_much_to_send_is_waited_for_and_nothing_is_lost() {
    let simulator = simulator().await;
    let mut host = builder(&simulator)
        .sections("[dispatch]\nmax_attempts = 1\n")
        .plugin("echo", &plugin("echo"), "limits = { queued = \"300B\" }")
        .start();
    simulator.add_fault(Fault::on("sendMessage", Action::Flood { retry_after: 1 }).chat(ALICE));
    let texts = ["a", "b", "c", "d", "e"];
    for text in texts {
        simulator.user_says(ALICE, ALICE, text).expect("a chat");
    }
    host.wait_until("some are put off", |host| events(host, "put_off") >= 1.0);
    let hits = host.metrics().sum("botyard_plugin_limits_total", &["limit=\"queued\"", "plugin=\"echo\""]);
    assert!(hits >= 1.0, "{hits}");
    assert!(json(&host, &["outbox", "list"])["total"].as_u64().expect("a number") < 4);
    simulator.clear_faults();
    let sent = simulator.wait_for_messages(ALICE, 5, std::time::Duration::from_secs(30)).await.expect("all of them");
    assert_eq!(sent.iter().map(|message| message.text().to_owned()).collect::<Vec<_>>(), texts);
    assert!(host.stop().status.success());
    assert_eq!(dead_letters(&host).len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_to_be_sent_is_seen_and_cancelled_with_the_host_running_and_without() {
    let simulator = simulator().await;
    let mut host = builder(&simulator).plugin("echo", &plugin("echo"), "").start();
    simulator.add_fault(Fault::on("sendMessage", Action::Flood { retry_after: 600 }).chat(ALICE));
    for text in ["first secret", "second secret", "third secret", "fourth secret"] {
        simulator.user_says(ALICE, ALICE, text).expect("a chat");
    }
    host.wait_until("all wait", |host| json(host, &["outbox", "list"])["total"] == 4);
    host.wait_until("the flood is known", |host| json(host, &["outbox", "list"])["calls"][0]["next_try"] != 0);
    let list = json(&host, &["outbox", "list", "--chat", &ALICE.to_string(), "--plugin", "echo"]);
    let calls = list["calls"].as_array().expect("a list");
    let numbers: Vec<String> = calls.iter().map(|call| call["number"].to_string()).collect();
    assert_eq!((calls.len(), calls[3]["before"].as_u64()), (4, Some(3)));
    let text = done(&host, &["outbox", "list"]);
    assert!(text.contains(&format!("chat {ALICE}")) && !text.contains("secret"), "{text}");
    assert!(!done(&host, &["outbox", "show", &numbers[1]]).contains("secret"));
    assert!(done(&host, &["outbox", "show", &numbers[1], "--content"]).contains("second secret"));

    let (code, _, errors) = botyard(&host, &["outbox", "cancel", &numbers[1]]);
    assert!(code == Some(2) && errors.contains("--yes"), "{errors}");
    assert!(done(&host, &["outbox", "cancel", &numbers[1], "--yes"]).contains("1 call cancelled"));
    let (code, out, _) = botyard(&host, &["outbox", "cancel", &numbers[1], "--yes"]);
    assert!(code == Some(1) && out.contains("no such call waits"), "{out}");
    let cancelled = host.metrics().sum("botyard_send_dropped_total", &["reason=\"cancelled\""]);
    assert!((cancelled - 1.0).abs() < f64::EPSILON, "{cancelled}");
    assert_eq!(ask(&simulator, BOTIR, "others go on").await, "others go on");

    assert!(host.stop().status.success());
    assert_eq!(json(&host, &["outbox", "list"])["total"], 3);
    // First the head, whose flood the others share; then, on the running host again, all but one.
    assert!(done(&host, &["outbox", "cancel", &numbers[0], "--yes"]).contains("1 call cancelled"));
    simulator.clear_faults();
    host.start();
    let left = json(&host, &["outbox", "list"]);
    assert_eq!(left["total"], 2);
    assert_ne!(left["calls"][0]["next_try"], 0, "the flood is the chat's");
    assert!(done(&host, &["outbox", "cancel", "--chat", &ALICE.to_string(), "--yes"]).contains("2 calls cancelled"));
    assert_eq!(done(&host, &["outbox", "list"]), "nothing waits to be sent\n");
    assert_eq!(simulator.delivered(ALICE), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_dead_letters_the_newest_are_kept() {
    let simulator = simulator().await;
    let mut host =
        builder(&simulator).sections("[dispatch]\ndead_letters = 2\n").plugin("panics", &guest("panics"), "").start();
    for n in 1..=4 {
        simulator.user_says(ALICE, ALICE, "/refuse").expect("a chat");
        host.wait_until("it is set aside", |host| events(host, "dead") >= f64::from(n));
    }
    let dropped = |host: &Host| {
        host.metrics().sum("botyard_dead_letters_dropped_total", &["plugin=\"panics\"", "reason=\"number\""])
    };
    host.wait_until("the oldest are gone", |host| dropped(host) >= 2.0);
    let list = json(&host, &["dead", "list"]);
    let numbers: Vec<_> = list["letters"].as_array().expect("a list").iter().map(|letter| &letter["number"]).collect();
    assert_eq!(numbers.len(), 2, "{list}");
    assert!(host.metrics().sum("botyard_plugin_dead_letters", &["plugin=\"panics\""]) <= 2.0);
}
