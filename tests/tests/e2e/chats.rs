//! What the host knows of chats: groups that become supergroups, and whom it can't reach.

use std::process::Command;
use std::time::Duration;

use botyard::simulator::{ALICE, BOTIR, CHANNEL, Chat, ChatKind, MoveNote, Say, Simulator};
use botyard_tests::{Host, guest, host_program};
use serde_json::Value as Json;

use super::support::{ask, builder, next, simulator};

const PATIENCE: Duration = Duration::from_secs(30);

/// Alice writes in a chat, and the bot answers there.
async fn say(simulator: &Simulator, chat: i64, text: &str) -> String {
    let before = simulator.delivered(chat);
    simulator.user_says(chat, ALICE, text).expect("she is there");
    next(simulator, chat, before).await
}

fn chats(host: &Host, arguments: &[&str]) -> Vec<Json> {
    let mut command = Command::new(host_program());
    command.args(["chats", "list", "--json", "--config"]).arg(host.config_file()).args(arguments);
    let output =
        command.env("TEST_TOKEN", "4242:another-secret-of-the-same-bot-that-nobody-sees").output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let list: Json = serde_json::from_slice(&output.stdout).expect("JSON");
    list["chats"].as_array().expect("a list").clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_that_becomes_a_supergroup_takes_everything_along_whatever_is_told_of_it() {
    let simulator = simulator().await;
    let mut host = builder(&simulator).plugin("tally", &guest("tally"), "").start();
    let ways: [&[MoveNote]; 6] = [
        &[MoveNote::To, MoveNote::From],
        &[MoveNote::From, MoveNote::To],
        &[MoveNote::To],
        &[MoveNote::From, MoveNote::From],
        &[MoveNote::To, MoveNote::To, MoveNote::From],
        &[],
    ];
    let groups: Vec<i64> = (0..ways.len()).map(|n| -3_001 - i64::try_from(n).expect("few")).collect();
    for &group in &groups {
        simulator.add_chat(Chat::new(group, ChatKind::Group, "Chess", &[ALICE, BOTIR]));
        assert_eq!(say(&simulator, group, "/count").await, "1 1");
        assert_eq!(say(&simulator, group, "/count").await, "2 2");
        assert_eq!(say(&simulator, group, "/later 1500").await, "set");
    }
    let mut supergroups = Vec::new();
    for (&group, notes) in groups.iter().zip(ways) {
        let to = simulator.move_group(group, notes).expect("a group");
        supergroups.push(to);
        // Somebody has kept the old id. Where nothing else was said, Telegram's refusal tells.
        let before = simulator.delivered(to);
        simulator.user_says(ALICE, ALICE, &format!("/say {group} by the old id")).expect("a chat");
        assert_eq!(next(&simulator, to, before).await, "by the old id", "{notes:?}");
        assert_eq!(say(&simulator, to, "/count").await, "3 3", "{notes:?}");
        assert_eq!(ask(&simulator, ALICE, &format!("/known {group}")).await, format!("{to} Chess here"));
    }
    for &to in &supergroups {
        let handle = simulator.clone();
        let rung = move || handle.bot_messages(to).iter().any(|message| message.text() == "later 3");
        assert!(simulator.wait_until(PATIENCE, rung).await, "the timer of {to}");
    }
    let asked_before = simulator.calls_of("sendMessage").len();
    host.kill();
    host.start();
    for (&group, &to) in groups.iter().zip(&supergroups) {
        let before = simulator.delivered(to);
        simulator.user_says(ALICE, ALICE, &format!("/say {group} again")).expect("a chat");
        assert_eq!(next(&simulator, to, before).await, "again");
        assert_eq!(say(&simulator, to, "/count").await, "4 4");
    }
    let calls = simulator.calls_of("sendMessage");
    let to_groups =
        calls[asked_before..].iter().filter(|call| groups.iter().any(|group| call.params["chat_id"] == *group));
    assert_eq!(to_groups.count(), 0, "the old id is not tried again, not after a restart either");
    let gone: Vec<i64> = chats(&host, &["--gone"]).iter().filter_map(|chat| chat["id"].as_i64()).collect();
    assert_eq!(gone, groups.iter().copied().rev().collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn events_that_waited_in_the_group_are_handled_before_those_of_the_supergroup() {
    let simulator = simulator().await;
    let mut host = builder(&simulator).plugin("tally", &guest("tally"), "").start();
    let group = -3_100;
    simulator.add_chat(Chat::new(group, ChatKind::Group, "Chess", &[ALICE]));
    assert_eq!(say(&simulator, group, "/count").await, "1 1");
    // A kill might repeat that message.
    host.stop();
    let before = 20;
    for _ in 0..before {
        simulator.user_says(group, ALICE, "/count").expect("she is there");
    }
    // The supergroup speaks first.
    let to = simulator.move_group(group, &[MoveNote::From]).expect("a group");
    for _ in 0..before {
        simulator.user_says(to, ALICE, "/count").expect("she is there");
    }
    host.start();
    let counted = simulator.wait_for_messages(to, 2 * before, PATIENCE).await.expect("all are answered");
    let texts: Vec<&str> = counted.iter().map(|message| message.text()).collect();
    let expected: Vec<String> = (2..2 + 2 * before).map(|n| format!("{n} {n}")).collect();
    assert_eq!(texts, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_blocks_the_bot_is_listed_as_gone_until_they_come_back() {
    let simulator = simulator().await;
    let mut host = builder(&simulator).plugin("tally", &guest("tally"), "").start();
    ask(&simulator, ALICE, "/count").await;
    ask(&simulator, BOTIR, "/count").await;
    simulator.say(&Say { chat: CHANNEL, text: "/count".to_owned(), ..Say::default() }).expect("a channel");
    let ids = |host: &Host, arguments: &[&str]| -> Vec<i64> {
        chats(host, arguments).iter().filter_map(|chat| chat["id"].as_i64()).collect()
    };
    assert_eq!(ids(&host, &[]), [ALICE, BOTIR]);
    let alice = &chats(&host, &["--limit", "1"])[0];
    assert_eq!(
        (&alice["type"], &alice["title"], &alice["username"]),
        (&"private".into(), &"Alice Archer".into(), &"alice".into())
    );
    // By Telegram's word, though no plugin has asked for it.
    simulator.set_blocked(ALICE, ALICE, true).expect("a chat");
    host.wait_until("it is known", |host| ids(host, &["--gone"]) == [ALICE]);
    assert_eq!(
        ask(&simulator, BOTIR, &format!("/known {ALICE}")).await,
        format!("{ALICE} Alice Archer the user has blocked the bot")
    );
    assert_eq!(ids(&host, &["--reachable"]), [BOTIR]);
    host.kill();
    assert_eq!(ids(&host, &["--gone", "--all"]), [ALICE], "on the store of a stopped host too");
    host.start();
    ask(&simulator, ALICE, "/count").await;
    host.wait_until("she is back", |host| ids(host, &["--gone"]).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chat_is_asked_for_once() {
    let simulator = simulator().await;
    let _host = builder(&simulator).plugin("tally", &guest("tally"), "").start();
    for _ in 0..5 {
        assert_eq!(ask(&simulator, ALICE, &format!("/title {CHANNEL}")).await, "News");
    }
    assert_eq!(simulator.call_count("getChat"), 1);
}
