//! Work that is queued, done beside the chats, and done once.

use std::time::Duration;

use botyard::simulator::{ALICE, BOTIR};
use botyard_tests::{Host, guest, plugin};

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
    assert_eq!(ask(&simulator, ALICE, "/lost").await, "walking 1 {\"Walking\":{\"steps\":1}}");
    assert_eq!(ask(&simulator, ALICE, "/lost").await, "nothing", "it was let go of");
}

/// A host whose plugin has states and jobs, in its first version, and where its file is.
async fn versioned(config: &str) -> (botyard::simulator::Simulator, Host, tempfile::TempDir) {
    let simulator = simulator().await;
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::copy(guest("versioned_a"), folder.path().join("steps.wasm")).expect("writable");
    let config = format!("probation = \"0s\"\n{config}");
    let host = builder(&simulator).plugin("steps", &folder.path().join("steps.wasm"), &config).start();
    (simulator, host, folder)
}

fn jobs(host: &Host, outcome: &str) -> f64 {
    host.metrics().sum("botyard_jobs_total", &[&format!("outcome=\"{outcome}\"")])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_of_a_version_that_serves_no_more_leaves_the_state_to_the_one_that_does() {
    for when in ["early", "late"] {
        let (simulator, mut host, folder) = versioned("").await;
        assert_eq!(ask(&simulator, ALICE, "/step").await, "1: step 1");
        let first = json(&host, &["plugin", "list"])[0]["version"].clone();
        simulator.user_says(ALICE, ALICE, &format!("/later {when} 1500")).expect("a chat");
        host.wait_until("it runs", |host| host.metrics().sum("botyard_jobs", &["state=\"running\""]) == 1.0);
        std::fs::copy(guest("versioned_b"), folder.path().join("new")).expect("writable");
        std::fs::rename(folder.path().join("new"), folder.path().join("steps.wasm")).expect("writable");
        host.wait_until("it serves", |host| json(host, &["plugin", "list"])[0]["version"] != first);
        assert_eq!(ask(&simulator, ALICE, "/step").await, "2: step 2, carried over");
        assert_eq!(jobs(&host, "done"), 0.0, "it is still at work");
        assert_eq!(next(&simulator, ALICE, 2).await, "2: 2 steps", "made again, by the version whose state it is");
        assert_eq!(ask(&simulator, ALICE, "/step").await, "2: step 3, carried over", "{when}");
        assert_eq!(jobs(&host, "retried") + jobs(&host, "dead"), 0.0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_reads_the_state_late_is_not_made_again_with_every_step() {
    let (simulator, host, _folder) = versioned("").await;
    assert_eq!(ask(&simulator, ALICE, "/step").await, "1: step 1");
    simulator.user_says(ALICE, ALICE, "/later late 1000").expect("a chat");
    for step in 2..=5 {
        assert_eq!(ask(&simulator, ALICE, "/step").await, format!("1: step {step}"));
    }
    assert_eq!(jobs(&host, "done"), 0.0, "it is still at work");
    assert_eq!(next(&simulator, ALICE, 5).await, "1: 5 steps");
    assert_eq!(host.metrics().sum("botyard_commit_conflicts_total", &[]), 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_others_are_always_in_the_way_of_is_given_up_some_time() {
    let (simulator, mut host, _folder) = versioned("jobs = { attempts = 1 }").await;
    assert_eq!(ask(&simulator, ALICE, "/step").await, "1: step 1");
    simulator.user_says(ALICE, ALICE, "/later early 200").expect("a chat");
    for step in 2.. {
        assert_eq!(ask(&simulator, ALICE, "/step").await, format!("1: step {step}"));
        if jobs(&host, "dead") > 0.0 {
            break;
        }
        assert_eq!(jobs(&host, "done"), 0.0);
    }
    assert_eq!(host.metrics().sum("botyard_commit_conflicts_total", &[]), 6.0);
    assert!(host.stop().status.success());
    let letters = dead_letters(&host);
    assert!(letters.len() == 1 && letters[0].reason.contains("read that late"), "{letters:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_is_put_back_keeps_its_unique_key() {
    let simulator = simulator().await;
    let mut host =
        builder(&simulator).plugin("jobs", &guest("jobs"), "jobs = { attempts = 1, time = \"500ms\" }").start();
    assert_eq!(ask(&simulator, ALICE, "/once tea").await, "queued");
    host.wait_until("it is set aside", |host| jobs(host, "dead") == 1.0);
    let letters = json(&host, &["dead", "list"]);
    let number = letters["letters"][0]["number"].to_string();
    done(&host, &["plugin", "pause", "jobs"]);
    done(&host, &["dead", "retry", &number]);
    let ids = |host: &Host| -> Vec<u64> {
        let list = json(host, &["jobs", "list"]);
        list["jobs"].as_array().expect("a list").iter().map(|job| job["id"].as_u64().expect("an id")).collect()
    };
    let queued = ids(&host);
    assert_eq!(queued.len(), 1);
    done(&host, &["plugin", "resume", "jobs"]);
    assert_eq!(ask(&simulator, ALICE, "/once tea").await, "queued");
    assert!(ids(&host).iter().all(|id| queued.contains(id)), "there is no second one");

    // While another one has the key, it is not put back beside it.
    host.wait_until("it is set aside again", |host| jobs(host, "dead") >= 2.0);
    assert_eq!(ask(&simulator, ALICE, "/once tea").await, "queued");
    let letters = json(&host, &["dead", "list"]);
    let number = letters["letters"][0]["number"].to_string();
    let (_, out, errors) = botyard(&host, &["dead", "retry", &number]);
    assert!(format!("{out}{errors}").contains("unique key"), "{out}{errors}");
}
