//! Work that is queued, done beside the chats, and done once.

use std::time::Duration;

use botyard::simulator::{ALICE, BOTIR};
use botyard_tests::{guest, plugin};

use super::operator::{botyard, done, json};
use super::support::{ask, builder, dead_letters, next, simulator};

/// Waits for so many messages in the chat, and answers with their texts.
async fn texts(simulator: &botyard::simulator::Simulator, chat: i64, count: u64) -> Vec<String> {
    let messages = simulator.wait_for_messages(chat, count, Duration::from_secs(30)).await.expect("so many messages");
    messages.iter().map(|message| message.text().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_queue_is_an_answer_and_work_keeps_no_chat_waiting() {
    let simulator = simulator().await;
    let jobs = "jobs = { waiting = 2, workers = 1 }";
    let host = builder(&simulator).plugin("jobs", &guest("jobs"), jobs).start();
    assert_eq!(ask(&simulator, ALICE, "/work 1500 tea").await, "queued");
    assert_eq!(ask(&simulator, ALICE, "/work 0 cake").await, "queued");
    // The first is being worked on by now, and still counts; the chat is answered all the same.
    assert_eq!(ask(&simulator, ALICE, "/work 0 more").await, "busy");
    let hits = host.metrics().sum("botyard_plugin_limits_total", &["plugin=\"jobs\"", "limit=\"jobs.waiting\""]);
    assert!(hits >= 1.0, "{hits}");
    assert_eq!(ask(&simulator, BOTIR, "/many 3").await, "queued 0");
    let list = json(&host, &["jobs", "list"]);
    let running = list["jobs"].as_array().expect("a list").iter().map(|job| job["running"] == true).collect::<Vec<_>>();
    assert_eq!(running, [true, false], "{list}");
    assert_eq!(texts(&simulator, ALICE, 5).await[3..], ["tea: 1", "cake: 2"], "in their order, with one worker");
    assert_eq!(ask(&simulator, BOTIR, "/many 3").await, "queued 2", "what this run has queued counts as well");
}

#[tokio::test(flavor = "multi_thread")]
async fn work_survives_a_kill_in_its_middle_and_its_effects_come_once() {
    let simulator = simulator().await;
    let mut host = builder(&simulator).plugin("jobs", &guest("jobs"), "").start();
    assert_eq!(ask(&simulator, ALICE, "/work 1000 tea").await, "queued");
    host.settle();
    host.kill();
    let before = simulator.delivered(ALICE);
    host.start();
    assert_eq!(next(&simulator, ALICE, before).await, "tea: 1");
    assert_eq!(ask(&simulator, ALICE, "/work 0 cake").await, "queued");
    assert_eq!(texts(&simulator, ALICE, 4).await[3], "cake: 2");
    assert!(host.stop().status.success());
    let (code, out, _) = botyard(&host, &["jobs", "list"]);
    assert_eq!((code, out.as_str()), (Some(0), "no jobs\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_fails_is_tried_again_and_then_set_aside_with_its_reason() {
    let simulator = simulator().await;
    let jobs = "jobs = { attempts = 3, cpu = \"50ms\" }";
    let mut host = builder(&simulator).plugin("jobs", &guest("jobs"), jobs).start();
    assert_eq!(ask(&simulator, ALICE, "/flaky").await, "queued");
    assert_eq!(texts(&simulator, ALICE, 2).await[1], "attempt 3");
    for command in ["/crash", "/spin", "/nobody"] {
        assert_eq!(ask(&simulator, ALICE, command).await, "queued");
    }
    host.wait_until("all are set aside", |host| host.metrics().sum("botyard_jobs_total", &["outcome=\"dead\""]) == 3.0);
    // Another try, by hand, is one more job.
    let list = json(&host, &["dead", "list"]);
    let crash = list["letters"]
        .as_array()
        .expect("a list")
        .iter()
        .find(|letter| letter["reason"].as_str().expect("a reason").contains("on purpose"));
    let number = crash.expect("the panic's text")["number"].to_string();
    done(&host, &["dead", "retry", &number]);
    host.wait_until("it is set aside again", |host| {
        host.metrics().sum("botyard_jobs_total", &["outcome=\"dead\""]) == 4.0
    });
    assert!(host.stop().status.success());
    let reasons: Vec<_> = dead_letters(&host).into_iter().map(|letter| (letter.attempts, letter.reason)).collect();
    let has = |attempts: u32, part: &str| reasons.iter().any(|(n, reason)| *n == attempts && reason.contains(part));
    assert!(has(3, "on purpose") && has(3, "jobs.cpu") && has(1, "no handler for the job `nobody`"), "{reasons:?}");
    assert_eq!(reasons.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn work_can_be_taken_back_and_a_unique_key_is_had_once() {
    let simulator = simulator().await;
    let host = builder(&simulator).plugin("jobs", &guest("jobs"), "jobs = { waiting = 2, workers = 1 }").start();
    assert_eq!(ask(&simulator, ALICE, "/once tea").await, "queued");
    assert_eq!(ask(&simulator, ALICE, "/once tea").await, "queued", "the same one");
    assert_eq!(texts(&simulator, ALICE, 3).await[2], "tea: 1");
    assert_eq!(ask(&simulator, ALICE, "/work 60000 never").await, "queued");
    let mut host = host;
    host.wait_until("it runs", |host| host.metrics().sum("botyard_jobs", &["state=\"running\""]) == 1.0);
    assert_eq!(ask(&simulator, ALICE, "/cancel").await, "running true");
    assert_eq!(ask(&simulator, ALICE, "/cancel").await, "gone false");
    assert_eq!(ask(&simulator, ALICE, "/work 0 next").await, "queued", "its place is free again");
    done(&host, &["jobs", "cancel", "jobs", "--all"]);
    assert!(json(&host, &["jobs", "list"])["jobs"].as_array().expect("a list").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_example_draws_a_picture_while_others_are_answered() {
    let simulator = simulator().await;
    let _host =
        builder(&simulator).plugin("converter", &plugin("converter"), "").plugin("echo", &plugin("echo"), "").start();
    assert_eq!(ask(&simulator, ALICE, "/convert rain").await, "Queued. You get it when it is done.");
    assert_eq!(ask(&simulator, BOTIR, "hello").await, "hello");
    simulator.wait_for_messages(ALICE, 2, Duration::from_secs(30)).await.expect("a picture");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_is_told_of_a_state_that_it_has_lost() {
    let simulator = simulator().await;
    let folder = tempfile::tempdir().expect("a folder");
    let wasm = folder.path().join("versioned.wasm");
    std::fs::copy(guest("versioned_a"), &wasm).expect("writable");
    let mut host = builder(&simulator).plugin("versioned", &wasm, "probation = \"0s\"").start();
    assert_eq!(ask(&simulator, ALICE, "/step").await, "1: step 1");
    assert!(host.stop().status.success());
    std::fs::copy(guest("forgetful"), &wasm).expect("writable");
    host.start();
    assert_eq!(
        ask(&simulator, ALICE, "/step").await,
        "1: step 2",
        "a version that takes over none does not serve by itself"
    );
    done(&host, &["plugin", "reload", "versioned", "--force"]);
    assert_eq!(ask(&simulator, ALICE, "/lost").await, "walking 1 {\"Walking\":{\"steps\":2}}");
    assert_eq!(ask(&simulator, ALICE, "/lost").await, "nothing", "it was let go of");
}
