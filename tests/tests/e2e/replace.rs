//! A host that takes another one's place: as a deploy does, with people writing meanwhile.

use std::process::Command;
use std::time::Duration;

use botyard::simulator::{ALICE, Bulk, Simulator, SimulatorSettings};
use botyard_tests::{host_program, plugin};

use super::support::{ask, builder, chats, delivered, echo_host, simulator};

#[tokio::test(flavor = "multi_thread")]
async fn two_hand_overs_under_load_lose_nothing_repeat_nothing_and_keep_the_order() {
    let simulator = simulator().await;
    simulator.start_load_mode(true);
    let mut host = echo_host(&simulator, "");
    let bulk = Bulk::new(2_000, 100);
    simulator.push_updates(&bulk);
    for share in [300, 1_000] {
        delivered(&simulator, share, Duration::from_secs(60)).await;
        assert!(host.replace().success(), "the old one ends well");
    }
    delivered(&simulator, bulk.count, Duration::from_secs(60)).await;
    host.settle();
    let expected: Vec<String> = (0..20).map(|n| format!("message {n}")).collect();
    for chat in chats(&bulk) {
        assert_eq!(simulator.sequence(chat), expected, "chat {chat}");
    }
    let log = host.stop().log;
    assert!(!log.contains(" 409") && !log.contains("[409]") && !log.to_lowercase().contains("conflict"), "{log}");
    assert_eq!(log.matches("has taken the place").count(), 2, "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_host_is_replaced_quickly_and_without_one_it_just_starts() {
    let simulator = simulator().await;
    let mut host = echo_host(&simulator, "");
    assert_eq!(ask(&simulator, ALICE, "one").await, "one");
    assert!(host.replace().success());
    assert_eq!(ask(&simulator, ALICE, "two").await, "two");
    let log = host.stop().log;
    println!("{}", log.lines().find(|line| line.contains("has taken the place")).expect("it says so"));
    assert!(!log.contains(" 409") && !log.contains("[409]"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_host_is_refused_and_told_who_runs() {
    let simulator = simulator().await;
    let mut host = echo_host(&simulator, "");
    let run = |more: &[&str], admin: &str| {
        let mut command = Command::new(host_program());
        command.args(["run", "--config"]).arg(host.config_file()).args(more);
        command.env("TEST_TOKEN", "4242:the-second-token-of-this-test").env("BOTYARD__ADMIN__LISTEN", admin);
        let run = command.output().expect("it starts");
        (run.status.code(), String::from_utf8_lossy(&run.stderr).into_owned())
    };
    let (code, text) = run(&[], "127.0.0.1:0");
    assert_eq!(code, Some(3), "{text}");
    for part in [&*format!("process {}", host.id()), "127.0.0.1:", "since", "--replace"] {
        assert!(text.contains(part), "`{part}` is not in {text}");
    }

    // What is wrong with the new one is found while the old one serves on.
    let wrong = host.folder().join("wrong.toml");
    let config = std::fs::read_to_string(host.config_file()).expect("readable");
    let echo = plugin("echo").display().to_string();
    std::fs::write(&wrong, config.replace(&echo, "/nowhere/echo.wasm")).expect("writable");
    let mut command = Command::new(host_program());
    command.args(["run", "--replace", "--config"]).arg(&wrong).env("TEST_TOKEN", "4242:the-second-token-of-this-test");
    let broken = command.output().expect("it starts");
    let text = String::from_utf8_lossy(&broken.stderr).into_owned();
    assert!(broken.status.code() == Some(1) && text.contains("/nowhere/echo.wasm"), "{text}");
    assert_eq!(ask(&simulator, ALICE, "still here").await, "still here");
    assert!(host.stop().status.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_port_of_a_webhook_is_taken_over_too() {
    let settings = SimulatorSettings { webhook_second: Duration::from_millis(20), ..SimulatorSettings::default() };
    let simulator = Simulator::start(settings).await.expect("a free port");
    let mut host = builder(&simulator).plugin("echo", &plugin("echo"), "").webhook("").start();
    assert_eq!(ask(&simulator, ALICE, "one").await, "one");
    let writing = tokio::spawn({
        let simulator = simulator.clone();
        async move {
            for n in 0..50 {
                simulator.user_says(ALICE, ALICE, &format!("text {n}")).expect("a chat");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    });
    assert!(host.replace().success());
    writing.await.expect("no panic");
    let messages = simulator.wait_for_messages(ALICE, 51, Duration::from_secs(30)).await.expect("all are answered");
    let mut texts: Vec<&str> = messages.iter().skip(1).map(|message| message.text()).collect();
    texts.sort_unstable();
    texts.dedup();
    assert_eq!((messages.len(), texts.len()), (51, 50), "none is lost, none is answered twice");
    assert_eq!(simulator.calls_of("deleteWebhook").len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_does_not_answer_is_left_alone() {
    let simulator = simulator().await;
    let mut host = echo_host(&simulator, "");
    let signal = |name: &str| {
        let sent = Command::new("kill").args([name, &host.id().to_string()]).status().expect("kill is there");
        assert!(sent.success());
    };
    signal("-STOP");
    let mut command = Command::new(host_program());
    command.args(["run", "--replace", "--config"]).arg(host.config_file());
    let run = command.env("TEST_TOKEN", "4242:the-second-token-of-this-test").output().expect("it starts");
    signal("-CONT");
    let text = String::from_utf8_lossy(&run.stderr).into_owned();
    assert!(run.status.code() == Some(1) && text.contains("does not answer"), "{text}");
    assert!(text.contains(&format!("process {}", host.id())), "{text}");
    // The question has arrived after all, and is too late.
    assert_eq!(ask(&simulator, ALICE, "still here").await, "still here");
    assert!(host.stop().status.success());
}
