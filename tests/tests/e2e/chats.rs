//! What the host knows of chats: groups that become supergroups, and whom it can't reach.

use std::process::Command;
use std::time::Duration;

use botyard::simulator::{ALICE, BOTIR, CHANNEL, Chat, ChatKind, MoveNote, Say, Simulator};
use botyard_tests::{Host, guest, host_program, plugin};
use serde_json::{Value as Json, json};

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
async fn people_who_waited_in_the_group_and_an_album_go_before_the_supergroup_too() {
    let simulator = simulator().await;
    let mut host = builder(&simulator)
        .sections("[dispatch]\nalbum_quiet = \"50ms\"\n")
        .plugin("albums", &guest("albums"), "priority = 1")
        .plugin("by_user", &guest("by_user"), "")
        .start();
    // With this plugin alone everybody in a group has a lane.
    for (group, plugins) in [(-3_200, 2), (-3_201, 1)] {
        simulator.add_chat(Chat::new(group, ChatKind::Group, "Chess", &[ALICE, BOTIR]));
        host.stop();
        if plugins == 1 {
            let toml = std::fs::read_to_string(host.config_file()).expect("readable");
            let from = toml.find("[plugins.albums]").expect("it is there");
            let to = toml.find("[plugins.by_user]").expect("it is there");
            std::fs::write(host.config_file(), toml.replace(toml.get(from..to).expect("in this order"), ""))
                .expect("writable");
        }
        for n in 0..10 {
            simulator.user_says(group, ALICE, &format!("Alice {n}")).expect("she is there");
            simulator.user_says(group, BOTIR, &format!("Botir {n}")).expect("he is there");
        }
        for message_id in [902, 901] {
            picture(&simulator, group, message_id);
        }
        let to = simulator.move_group(group, &[MoveNote::From]).expect("a group");
        for n in 0..10 {
            simulator.user_says(to, BOTIR, &format!("later {n}")).expect("he is there");
        }
        host.start();
        let album = u64::from(plugins == 2);
        // To one of the plugins, what tells of the move is a message, too.
        let said = simulator.wait_for_messages(to, 30 + 2 * album, PATIENCE).await.expect("all are answered");
        let is_wanted = |text: &&str| !text.starts_with("message") || !text.ends_with("\"\"");
        let texts: Vec<&str> = said.iter().map(|message| message.text()).filter(is_wanted).collect();
        let of = |name: &str| texts.iter().filter(|text| text.contains(name)).copied().collect::<Vec<_>>();
        for name in ["Alice", "Botir", "later"] {
            let numbers: Vec<_> = of(name).iter().filter_map(|text| text.trim_matches('"').chars().last()).collect();
            assert_eq!(numbers, ('0'..='9').collect::<Vec<_>>(), "{name}");
        }
        assert_eq!(of("album").len() as u64, album);
        assert!(album == 0 || of("album") == ["album 901 902 \"\""], "{texts:?}");
        let (before, after) = texts.split_at(20 + usize::from(plugins == 2));
        assert!(!before.iter().any(|text| text.contains("later")), "{texts:?}");
        assert!(after.iter().all(|text| text.contains("later")), "{texts:?}");
    }
}

/// A picture of Alice's that stands in an album.
fn picture(simulator: &Simulator, group: i64, message_id: i64) {
    let message = json!({
        "message_id": message_id, "date": 1_750_000_000, "media_group_id": "one",
        "from": { "id": ALICE, "first_name": "A" }, "chat": { "id": group, "type": "group", "title": "Chess" },
        "photo": [{ "file_id": "x", "file_unique_id": "y", "width": 1, "height": 1 }],
    });
    simulator.raw_update(json!({ "message": message })).expect("an update");
}

#[tokio::test(flavor = "multi_thread")]
async fn cancel_reaches_what_hangs_in_the_group_that_was_and_clears_what_it_left() {
    let simulator = simulator().await;
    let mut host = builder(&simulator).plugin("by_user", &guest("by_user"), "limits = { time = \"10m\" }").start();
    let group = -3_300;
    simulator.add_chat(Chat::new(group, ChatKind::Group, "Chess", &[ALICE, BOTIR]));
    simulator.user_says(group, ALICE, "slow").expect("she is there");
    simulator.user_says(group, ALICE, "behind it").expect("she is there");
    host.wait_until("they are taken in", |host| host.metrics().sum("botyard_updates_total", &["accepted"]) >= 2.0);
    tokio::time::sleep(Duration::from_millis(200)).await;
    let to = simulator.move_group(group, &[MoveNote::From, MoveNote::To]).expect("a group");
    simulator.user_says(to, BOTIR, "waits").expect("he is there");
    // The plugin's own command has its turn unless something hangs, and what does hangs in the group.
    simulator.user_says(to, ALICE, "/cancel").expect("she is there");
    let said = simulator.wait_for_messages(to, 3, PATIENCE).await.expect("nobody waits any more");
    let mut texts: Vec<&str> = said.iter().map(|message| message.text()).collect();
    texts.sort_unstable();
    assert_eq!(texts, ["Cancelled.", "behind it", "waits"]);
    assert_eq!(say(&simulator, to, "free?").await, "free?");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_cancel_by_the_groups_old_id_ends_what_the_supergroup_has_by_now() {
    let simulator = simulator().await;
    let _host =
        builder(&simulator).plugin("asks", &guest("asks"), "priority = 1").plugin("echo", &plugin("echo"), "").start();
    let group = -3_400;
    simulator.add_chat(Chat::new(group, ChatKind::Group, "Chess", &[ALICE]));
    assert_eq!(say(&simulator, group, "/ask").await, "What is your name?");
    let to = simulator.move_group(group, &[MoveNote::From]).expect("a group");
    assert_eq!(say(&simulator, to, "Alice").await, "Hello, Alice!");
    assert_eq!(say(&simulator, to, "/ask").await, "What is your name?");
    let before = simulator.delivered(to);
    let message = json!({
        "message_id": 9_000, "date": 1_750_000_000, "text": "/cancel",
        "from": { "id": ALICE, "first_name": "A" }, "chat": { "id": group, "type": "group", "title": "Chess" },
    });
    simulator.raw_update(json!({ "message": message })).expect("an update");
    assert_eq!(next(&simulator, to, before).await, "Cancelled.");
    assert_eq!(say(&simulator, to, "Alice").await, "Alice", "nobody waits for a name any more");
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
