//! Chats with more than one name: groups that have moved, and `@names`.

use super::*;
use crate::store::rows::chat::{self, ChatRow};
use crate::telegram::lane_of_name;

const GROUP: i64 = -77;
const SUPER: i64 = -1_000_000_000_077;

/// A server on which the group has become a supergroup.
fn moved(chat: &Value, then: impl FnOnce() -> Answer) -> Answer {
    if chat.as_i64() != Some(GROUP) {
        return then();
    }
    let parameters = json!({ "migrate_to_chat_id": SUPER });
    let text = "Bad Request: group chat was upgraded to a supergroup chat";
    answer(400, json!({ "ok": false, "error_code": 400, "description": text, "parameters": parameters }))
}

fn at(chat: i64) -> Value {
    json!({ "ok": true, "result": { "message_id": 1, "chat": { "id": chat } } })
}

#[tokio::test(start_paused = true)]
async fn calls_to_a_group_that_has_moved_go_to_the_supergroup_in_their_order() {
    let bench = bench(SendSettings::default(), |_, params, _| moved(&params["chat_id"], ok));
    bench.start();
    bench.say(GROUP, &["0", "1", "2"]);
    bench.until(|bench| bench.texts(SUPER).len() == 3).await;
    // Whoever still has the old id, and who has the new one.
    bench.say(SUPER, &["3"]);
    bench.say(GROUP, &["4"]);
    bench.until(|bench| bench.texts(SUPER).len() == 5).await;
    assert_eq!(bench.texts(SUPER), ["0", "1", "2", "3", "4"]);
    assert_eq!(bench.texts(GROUP), ["0"], "it is tried there once");
    bench.until(|bench| bench.left().is_empty()).await;
}

#[tokio::test(start_paused = true)]
async fn what_was_queued_for_the_group_goes_first_and_both_keep_one_pace() {
    let bench = bench(SendSettings::default(), |_, params, _| moved(&params["chat_id"], ok));
    let old: Vec<_> = (0..8).map(|n| message(GROUP, &n.to_string(), Priority::Interactive)).collect();
    let new: Vec<_> = (8..30).map(|n| message(SUPER, &n.to_string(), Priority::Interactive)).collect();
    let rows = [bench.put(&old), bench.put(&new)].concat();
    let (group, to) = (ChatId(GROUP), ChatId(SUPER));
    let chats = bench.sender.chats().clone();
    bench.blocking(|_| async move { chats.moved(group, to).await.unwrap() });
    bench.sender.committed(rows);
    bench.start();
    bench.until(|bench| !bench.seen().is_empty()).await;
    sleep(180 * SECOND).await;
    let expected: Vec<String> = (0..30).map(|n| n.to_string()).collect();
    assert_eq!(bench.texts(SUPER), expected);
    let times = bench.times(SUPER);
    let in_a_minute = times.iter().filter(|at| **at < times[0] + 60 * SECOND).count();
    assert!((18..=20).contains(&in_a_minute), "{in_a_minute}");
}

#[tokio::test(start_paused = true)]
async fn after_a_restart_the_groups_calls_still_go_first() {
    let bench = bench(SendSettings::default(), |_, params, _| moved(&params["chat_id"], ok));
    let rows = [message(SUPER, "b", Priority::Interactive), message(GROUP, "a", Priority::Bulk)];
    bench.put(&rows);
    let chats = bench.sender.chats().clone();
    bench.blocking(|_| async move { chats.moved(ChatId(GROUP), ChatId(SUPER)).await.unwrap() });
    let again = bench.restarted(SendSettings::default(), |_, params, _| moved(&params["chat_id"], ok));
    again.start();
    again.until(|bench| bench.seen().len() == 2).await;
    assert_eq!(again.texts(SUPER), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn a_direct_call_is_made_once_more_where_the_chat_is_now() {
    let bench = bench(SendSettings::default(), |_, params, _| moved(&params["chat_id"], ok));
    bench.start();
    for (n, text) in ["a", "b"].into_iter().enumerate() {
        let params = json!({ "chat_id": GROUP, "text": text }).to_string();
        let plugin = PluginName::new("test");
        let (sender, deadline) = (bench.sender.clone(), 10 * SECOND);
        let call = tokio::spawn(async move { sender.call(&plugin, "sendMessage", params, deadline).await });
        bench.until(|bench| bench.texts(SUPER).len() == n + 1).await;
        assert!(call.await.unwrap().is_ok());
    }
    assert_eq!((bench.texts(SUPER), bench.texts(GROUP)), (vec!["a".into(), "b".into()], vec!["a".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_sends_calls_in_a_circle_is_asked_twice() {
    let bench = bench(UNLIMITED, |_, _, _| moved(&json!(GROUP), ok));
    bench.start();
    bench.say(GROUP, &["a"]);
    bench.until(|bench| bench.left().is_empty()).await;
    assert_eq!((bench.texts(GROUP).len(), bench.texts(SUPER).len()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_name_shares_the_lane_of_its_chat_once_it_is_known() {
    let bench = bench(SendSettings::default(), |_, _, _| after(2 * SECOND, answer(200, at(SUPER))));
    bench.start();
    let named = |text: &str| ("sendMessage", json!({ "chat_id": "@news", "text": text }), Priority::Interactive);
    bench.queue(&[named("0"), named("1"), named("2")]);
    // The first answer tells, and by then calls to the number are there as well.
    sleep(SECOND).await;
    assert_eq!(bench.sender.chats().lane(lane_of_name("@news")), lane_of_name("@news"));
    sleep(2 * SECOND).await;
    assert_eq!(bench.sender.chats().lane(lane_of_name("@news")), Lane::Chat(ChatId(SUPER)));
    bench.say(SUPER, &["3", "4"]);
    bench.queue(&[named("5")]);
    sleep(120 * SECOND).await;
    let seen = bench.seen();
    let texts: Vec<&str> = seen.iter().map(|seen| &*seen.text).collect();
    assert_eq!(texts, ["0", "1", "2", "3", "4", "5"]);
    for pair in seen.windows(2) {
        assert!(pair[1].at >= pair[0].at + 2 * SECOND, "{pair:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_flood_by_one_name_holds_all_of_them() {
    let bench = bench(SendSettings::default(), |_, params, times| match params["text"].as_str() {
        Some("1") if times == 0 => flood(40),
        _ => answer(200, at(SUPER)),
    });
    bench.start();
    let named = |text: &str| ("sendMessage", json!({ "chat_id": "@news", "text": text }), Priority::Interactive);
    bench.queue(&[named("0"), named("1")]);
    sleep(SECOND).await;
    bench.say(SUPER, &["2"]);
    sleep(30 * SECOND).await;
    assert_eq!(bench.seen().len(), 2);
    sleep(60 * SECOND).await;
    let texts: Vec<String> = bench.seen().into_iter().map(|seen| seen.text).collect();
    assert_eq!(texts, ["0", "1", "1", "2"]);
}

#[tokio::test(start_paused = true)]
async fn who_has_shut_the_bot_out_is_marked_and_a_wrong_call_marks_nobody() {
    let bench = bench(UNLIMITED, |method, params, _| match params["chat_id"].as_i64() {
        Some(1) => error(403, "Forbidden: bot was blocked by the user"),
        _ if method == "forwardMessage" => error(400, "Bad Request: chat not found"),
        _ => error(400, "Bad Request: message text is empty"),
    });
    bench.blocking(|store| async move {
        let put = |chat| Op::Put { key: chat::key(BOT, ChatId(chat)), value: ChatRow::default().encode() };
        drop(store.commit(Commit { ops: [1, 2, 3].map(put).into(), ..Commit::default() }).await);
    });
    bench.start();
    bench.queue(&[
        message(1, "a", Priority::Interactive),
        message(2, "a", Priority::Interactive),
        ("forwardMessage", json!({ "chat_id": 3, "from_chat_id": 9, "message_id": 1 }), Priority::Interactive),
    ]);
    bench.until(|bench| bench.left().is_empty()).await;
    let gone = |chat| ChatRow::decode(&bench.store.get(&chat::key(BOT, ChatId(chat))).unwrap().unwrap()).unwrap().gone;
    assert_eq!((gone(1).as_deref(), gone(2), gone(3)), (Some("bot was blocked by the user"), None, None));
}

#[tokio::test(start_paused = true)]
async fn a_very_long_flood_is_told_until_it_is_over() {
    let bench = bench(SendSettings::default(), |_, params, times| match (params["chat_id"].as_i64(), times) {
        (Some(1), 0) => flood(400),
        (Some(2), 0) => flood(200),
        _ => ok(),
    });
    let floods = bench.sender.long_floods();
    bench.start();
    bench.say(1, &["a"]);
    bench.say(2, &["a"]);
    sleep(SECOND).await;
    let lanes: Vec<Lane> = floods.borrow().keys().copied().collect();
    assert_eq!(lanes, [Lane::Chat(ChatId(1))]);
    assert!(floods.borrow().values().all(|until| *until > Instant::now() + 390 * SECOND));
}

#[tokio::test(start_paused = true)]
async fn a_chat_is_asked_for_once_while_the_answer_is_good() {
    let bench = bench(UNLIMITED, |_, params, times| {
        let id = if params["chat_id"] == "@news" { json!(SUPER) } else { params["chat_id"].clone() };
        answer(200, json!({ "ok": true, "result": { "id": id, "asked": times } }))
    });
    bench.sender.chats().keep_answers_for(10 * SECOND);
    let ask = async |chat: Value| {
        let params = json!({ "chat_id": chat }).to_string();
        bench.sender.call(&PluginName::new("test"), "getChat", params, 5 * SECOND).await.unwrap()
    };
    let first = ask(json!(SUPER)).await;
    assert_eq!(ask(json!(SUPER)).await, first);
    assert_eq!(ask(json!(SUPER.to_string())).await, first);
    assert_eq!(bench.seen().len(), 1);
    // By its name it is the same chat, once that is known.
    ask(json!("@news")).await;
    ask(json!("@news")).await;
    assert_eq!(bench.seen().len(), 2);
    sleep(11 * SECOND).await;
    ask(json!(SUPER)).await;
    assert_eq!(bench.seen().len(), 3);
}
