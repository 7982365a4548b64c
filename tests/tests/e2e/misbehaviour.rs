//! Plugins that do what they must not, beside one that behaves.

use std::time::Duration;

use botyard::simulator::{ALICE, Action, BOTIR, Fault, User};
use botyard_tests::{Host, guest, plugin};

use super::operator::{botyard, done, json};
use super::support::{ask, builder, dead_letters, next, simulator};

fn dead(host: &Host) -> f64 {
    host.metrics().sum("botyard_events_total", &["outcome=\"dead\""])
}

#[tokio::test(flavor = "multi_thread")]
async fn traps_loops_and_gluttons_end_as_dead_letters_while_echo_answers() {
    let simulator = simulator().await;
    let mut host = builder(&simulator)
        .sections("[dispatch]\nmax_attempts = 3\n")
        .plugin("traps", &guest("traps"), "priority = 1")
        .plugin("loops", &guest("loops"), "priority = 1\nlimits = { time = \"1s\" }")
        .plugin("eats", &guest("eats_memory"), "priority = 1\nlimits = { memory = \"8MiB\" }")
        .plugin("panics", &guest("panics"), "priority = 1")
        .plugin("echo", &plugin("echo"), "")
        .start();
    ask(&simulator, BOTIR, "warm up").await;
    let (threads, memory) = (host.threads(), host.resident_mib());
    for text in ["/trap", "/loop", "/wait", "/eat", "/panic at noon", "/refuse"] {
        simulator.user_says(ALICE, ALICE, text).expect("a chat");
    }
    let mut n = 0;
    while dead(&host) < 6.0 {
        let text = format!("still there? {n}");
        assert_eq!(ask(&simulator, BOTIR, &text).await, text);
        n += 1;
    }
    assert_eq!(ask(&simulator, ALICE, "and now?").await, "and now?", "the lane goes on behind the dead letters");
    assert_eq!(simulator.delivered(ALICE), 1, "nothing of a failed run is sent");
    assert!(host.threads() <= threads + 2, "{threads} threads before, {} now", host.threads());
    assert!(host.resident_mib() < memory + 60, "{memory} MiB before, {} now", host.resident_mib());

    assert!(host.stop().status.success());
    let letters = dead_letters(&host);
    let reason = |plugin: &str| {
        let of_plugin: Vec<_> = letters.iter().filter(|letter| letter.plugin == plugin).collect();
        of_plugin.iter().map(|letter| (letter.attempts, letter.reason.clone())).collect::<Vec<_>>()
    };
    assert!(matches!(&reason("traps")[..], [(3, text)] if text.contains("trapped")), "{:?}", reason("traps"));
    assert!(matches!(&reason("eats")[..], [(3, text)] if text.contains("memory")), "{:?}", reason("eats"));
    let loops = reason("loops");
    assert!(loops.iter().any(|(_, text)| text.contains("limits.cpu")), "{loops:?}");
    assert!(loops.iter().any(|(_, text)| text.contains("limits.time")), "{loops:?}");
    let panics = reason("panics");
    assert!(
        panics.iter().any(|(attempts, text)| *attempts == 3
            && text.contains("deliberate: at noon")
            && text.contains("panics/src/lib.rs:")),
        "message, file and line: {panics:?}"
    );
    assert!(panics.iter().any(|(attempts, text)| *attempts == 1 && text.contains("refused for good")), "{panics:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_endless_loops_leave_the_host_responsive() {
    let simulator = simulator().await;
    simulator.start_load_mode(false);
    let mut host = builder(&simulator)
        .sections("[dispatch]\nmax_attempts = 1\n")
        .plugin("loops", &guest("loops"), "priority = 1\nlimits = { cpu = \"100ms\" }")
        .plugin("echo", &plugin("echo"), "")
        .start();
    let threads = host.threads();
    simulator
        .push_updates(&botyard::simulator::Bulk { text: "/loop".to_owned(), ..botyard::simulator::Bulk::new(50, 50) });
    simulator.end_load_mode();
    let mut most_threads = threads;
    let mut asked = 0;
    while dead(&host) < 50.0 {
        let text = format!("hello {asked}");
        assert_eq!(ask(&simulator, BOTIR, &text).await, text);
        most_threads = most_threads.max(host.threads());
        asked += 1;
    }
    assert!(asked > 5, "the loops take 5 s of processor time; echo was answered only {asked} times meanwhile");
    assert!(most_threads <= threads + 2, "{threads} threads before, {most_threads} at most");
    assert!(host.stop().status.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_event_is_tried_again_and_then_handled_once() {
    let simulator = simulator().await;
    let host = builder(&simulator).plugin("panics", &guest("panics"), "").start();
    assert_eq!(ask(&simulator, ALICE, "/fail 3").await, "attempt 3");
    assert_eq!(simulator.delivered(ALICE), 1, "the failed attempts left nothing behind");
    assert!(dead(&host).abs() < f64::EPSILON);
}

#[tokio::test(flavor = "multi_thread")]
async fn state_and_values_over_the_limit_are_refused_with_a_reason() {
    let simulator = simulator().await;
    let mut host = builder(&simulator)
        .sections("[dispatch]\nmax_attempts = 1\n")
        .plugin("hog", &guest("hogs_state"), "limits = { state = \"1KiB\", value = \"1KiB\" }")
        .start();
    assert_eq!(ask(&simulator, ALICE, "/state 100").await, "kept");
    simulator.user_says(ALICE, ALICE, "/state 5000").expect("a chat");
    simulator.user_says(ALICE, ALICE, "/value 5000").expect("a chat");
    host.wait_until("both are dead letters", |host| dead(host) >= 2.0);
    assert_eq!(ask(&simulator, ALICE, "/value 100").await, "kept");
    assert!(host.stop().status.success());
    let letters = dead_letters(&host);
    assert!(letters.iter().any(|letter| letter.reason.contains("limits.state")), "{letters:?}");
    assert!(letters.iter().any(|letter| letter.reason.contains("limits.value")), "{letters:?}");
}

/// Every value is small, and there is no end of them.
#[tokio::test(flavor = "multi_thread")]
async fn who_stores_more_and_more_is_stopped_and_harms_nobody() {
    const MOST: u64 = 64 << 10;
    let simulator = simulator().await;
    let mut host = builder(&simulator)
        .sections("[dispatch]\nmax_attempts = 1\n")
        .plugin("hog", &guest("hogs_state"), "limits = { stored = \"64KiB\" }")
        .plugin("counter", &plugin("counter"), "")
        .start();
    let stored = |host: &Host, plugin: &str| {
        let list = json(host, &["plugin", "list"]);
        let of = list.as_array().expect("a list").iter().find(|one| one["name"] == plugin).cloned();
        of.expect("it is there")["stored"].as_u64().expect("a number")
    };
    // In many chats at once: each run alone would be within the limit.
    let chats: Vec<i64> = (9_001..9_013).collect();
    for chat in &chats {
        simulator.add_user(User::new(*chat, "Somebody", None));
        simulator.user_says(*chat, *chat, "/pile 10000").expect("a chat");
    }
    host.wait_until("each has an end", |host| {
        let metrics = host.metrics();
        metrics.sum("botyard_events_total", &["outcome=\"dead\""])
            + metrics.sum("botyard_events_total", &["outcome=\"handled\""])
            >= 12.0
    });
    let refused = dead(&host);
    assert!((6.0..=11.0).contains(&refused), "{refused} of 12 were refused");
    let kept = stored(&host, "hog");
    assert!(kept <= MOST && kept > 10_000, "{kept}");
    assert_eq!(host.metrics().sum("botyard_plugin_stored_bytes", &["plugin=\"hog\""]), kept as f64);
    assert!(host.metrics().sum("botyard_plugin_limits_total", &["plugin=\"hog\"", "limit=\"stored\""]) >= refused);
    assert!(ask(&simulator, BOTIR, "/count").await.starts_with("This chat: 1."), "others have their own");

    host.kill();
    let letters = dead_letters(&host);
    assert!(letters.iter().all(|letter| letter.reason.contains("`limits.stored` of [plugins.hog]")), "{letters:?}");
    let (code, out, errors) = botyard(&host, &["store", "check"]);
    assert_eq!(code, Some(0), "the count is right: {out}{errors}");
    host.start();
    assert_eq!(stored(&host, "hog"), kept);
    assert_eq!(ask(&simulator, ALICE, "/value 100").await, "kept", "there is a little room left");
    // Room is made by whoever lets go of something, whoever that is.
    let before = stored(&host, "hog");
    for chat in &chats {
        done(&host, &["state", "erase", "--user", &chat.to_string(), "--yes"]);
    }
    let after = stored(&host, "hog");
    assert!(after < 1_000 && after < before, "{after} of {before}");
    assert_eq!(ask(&simulator, ALICE, "/pile 50000").await, "kept");
    assert_eq!(ask(&simulator, ALICE, "/clear").await, "cleared");
    assert_eq!(ask(&simulator, ALICE, "/pile 50000").await, "kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_granted_is_denied_and_the_answer_says_what_to_add() {
    let simulator = simulator().await;
    let _host = builder(&simulator)
        .plugin("calls", &guest("calls"), "grants = { methods = [\"sendMessage\", \"get*\"] }")
        .start();
    assert_eq!(ask(&simulator, ALICE, "/me").await, "I am botyard_bot");
    let before = simulator.delivered(ALICE);
    simulator.user_says(ALICE, ALICE, "/call sendDice").expect("a chat");
    let answer = next(&simulator, ALICE, before).await;
    assert!(answer.contains("sendDice") && answer.contains("grants.methods"), "{answer}");
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(simulator.call_count("sendDice"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_plugin_sees_the_token_even_where_telegram_tells_it() {
    let simulator = simulator().await;
    let _host = builder(&simulator).plugin("calls", &guest("calls"), "").start();
    // As a server of one's own answers: its folders are named after the tokens.
    let path = "/var/lib/telegram-bot-api/4242:test-token-that-must-never-be-seen-anywhere/documents/file_0.pdf";
    let body = serde_json::json!({ "ok": true, "result": { "file_path": path } }).to_string();
    let answer = Action::Answer { status: 200, body, content_type: "application/json".to_owned(), applied: false };
    simulator.add_fault(Fault::on("getFile", answer));
    let answer = ask(&simulator, ALICE, "/call getFile").await;
    assert!(answer.contains("documents/file_0.pdf") && !answer.contains("test-token"), "{answer}");
}
