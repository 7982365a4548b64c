//! Albums: what Telegram sends as several messages and people meant as one.

use std::time::Duration;

use botyard::simulator::{ALICE, BOTIR, Simulator};
use botyard_tests::{Host, guest, plugin};
use serde_json::json;

use super::support::{builder, next, simulator};

/// A picture of an album, as Telegram sends it.
fn picture(simulator: &Simulator, chat: i64, album: &str, message_id: i64, caption: &str) {
    let mut message = json!({
        "message_id": message_id, "date": 1_750_000_000, "media_group_id": album,
        "from": { "id": chat, "first_name": "A" }, "chat": { "id": chat, "type": "private", "first_name": "A" },
        "photo": [{ "file_id": "x", "file_unique_id": "y", "width": 1, "height": 1 }],
    });
    if !caption.is_empty() {
        message["caption"] = caption.into();
    }
    simulator.raw_update(json!({ "message": message })).expect("an update");
}

fn host(simulator: &Simulator, sections: &str) -> Host {
    builder(simulator).sections(sections).plugin("albums", &guest("albums"), "").start()
}

fn accepted(host: &mut Host, count: f64) {
    host.wait_until("they are taken in", |host| host.metrics().sum("botyard_updates_total", &["accepted"]) >= count);
}

async fn answers(simulator: &Simulator, chat: i64, count: u64) -> Vec<String> {
    let messages = simulator.wait_for_messages(chat, count, Duration::from_secs(30)).await;
    let messages = messages.unwrap_or_else(|_| panic!("only {:?}", simulator.bot_messages(chat).len()));
    messages.iter().map(|message| message.text().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_album_is_one_event_in_order_and_what_comes_after_it_waits() {
    let simulator = simulator().await;
    let mut host = host(&simulator, "");
    picture(&simulator, ALICE, "one", 903, "");
    picture(&simulator, ALICE, "one", 901, "");
    // Another page of getUpdates.
    accepted(&mut host, 2.0);
    picture(&simulator, ALICE, "one", 902, "my cat");
    picture(&simulator, ALICE, "two", 910, "");
    simulator.user_says(ALICE, ALICE, "and?").expect("a chat");
    picture(&simulator, BOTIR, "one", 5, "");
    let of_alice = answers(&simulator, ALICE, 3).await;
    assert_eq!(&of_alice[..2], ["album 901 902 903 \"my cat\"", "album 910 \"\""]);
    assert!(of_alice[2].ends_with("\"and?\""), "{of_alice:?}");
    assert_eq!(answers(&simulator, BOTIR, 1).await, ["album 5 \"\""], "albums of two chats are two");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_late_is_an_album_of_its_own_and_says_so() {
    let simulator = simulator().await;
    let mut host = host(&simulator, "[dispatch]\nalbum_quiet = \"50ms\"\n");
    picture(&simulator, ALICE, "one", 1, "early");
    assert_eq!(next(&simulator, ALICE, 0).await, "album 1 \"early\"");
    host.settle();
    host.kill();
    host.start();
    picture(&simulator, ALICE, "one", 2, "");
    picture(&simulator, ALICE, "one", 3, "");
    assert_eq!(next(&simulator, ALICE, 1).await, "album 2 3 \"\" late");
    picture(&simulator, ALICE, "another", 4, "");
    assert_eq!(next(&simulator, ALICE, 2).await, "album 4 \"\"");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_in_the_middle_of_an_album_loses_nothing_and_gives_it_once() {
    let simulator = simulator().await;
    let mut host = host(&simulator, "");
    picture(&simulator, ALICE, "one", 1, "slow");
    picture(&simulator, ALICE, "one", 2, "");
    accepted(&mut host, 2.0);
    // While it is gathered.
    host.kill();
    host.start();
    picture(&simulator, ALICE, "one", 3, "");
    host.wait_until("its handler runs", |host| host.metrics().sum("botyard_lanes", &[]) > 0.0);
    tokio::time::sleep(Duration::from_millis(1_800)).await;
    // While it is handled.
    host.kill();
    host.start();
    assert_eq!(next(&simulator, ALICE, 0).await, "album 1 2 3 \"slow\"");
    simulator.user_says(ALICE, ALICE, "done?").expect("a chat");
    let after = next(&simulator, ALICE, 1).await;
    assert!(after.ends_with("\"done?\""), "{after}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_album_that_nobody_takes_whole_comes_message_by_message() {
    let simulator = simulator().await;
    let _host = host(&simulator, "[dispatch]\nalbum_quiet = \"50ms\"\n");
    picture(&simulator, ALICE, "one", 1, "pass");
    picture(&simulator, ALICE, "one", 2, "");
    simulator.user_says(ALICE, ALICE, "next").expect("a chat");
    let answers = answers(&simulator, ALICE, 3).await;
    assert_eq!(&answers[..2], ["message 1 \"pass\"", "message 2 \"\""]);
    assert!(answers[2].ends_with("\"next\""), "{answers:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_is_asked_first_and_knows_no_albums_gets_its_messages() {
    let simulator = simulator().await;
    let _host = builder(&simulator)
        .sections("[dispatch]\nalbum_quiet = \"50ms\"\n")
        .plugin("echo", &plugin("echo"), "priority = 2")
        .plugin("albums", &guest("albums"), "priority = 1")
        .start();
    picture(&simulator, ALICE, "one", 1, "a caption is a text");
    picture(&simulator, ALICE, "one", 2, "");
    assert_eq!(answers(&simulator, ALICE, 2).await, ["a caption is a text", "message 2 \"\""]);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_only_looks_on_sees_each_message_of_an_album_that_is_taken_whole() {
    let simulator = simulator().await;
    let _host = builder(&simulator)
        .sections("[dispatch]\nalbum_quiet = \"50ms\"\n")
        .plugin("watches", &guest("watches"), "")
        .plugin("albums", &guest("albums"), "")
        .start();
    picture(&simulator, ALICE, "one", 1, "");
    picture(&simulator, ALICE, "one", 2, "");
    assert_eq!(answers(&simulator, ALICE, 3).await, ["saw 1", "saw 2", "album 1 2 \"\""]);
}
