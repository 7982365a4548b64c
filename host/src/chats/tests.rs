//! Chats against a store on disk.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;
use crate::clock::unix_millis;
use crate::domain::{Lane, UpdateView};
use crate::store::rows::chat::{self, ChatRow};
use crate::store::{Commit, CommitError, Op, Tx};

mod moving;

const BOT: BotId = BotId(4242);
const GROUP: ChatId = ChatId(-77);
const SUPER: ChatId = ChatId(-1_000_000_000_077);

struct Bench {
    chats: Chats,
    store: Store,
    folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        Self { chats: Chats::open(store.clone(), BOT).unwrap(), store, folder }
    }

    /// As after a restart.
    fn again(self) -> Self {
        let chats = Chats::open(self.store.clone(), BOT).unwrap();
        Self { chats, ..self }
    }

    async fn put(&self, rows: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>) {
        let ops = rows.into_iter().map(|(key, value)| Op::Put { key, value }).collect();
        self.store.commit(Commit { ops, ..Commit::default() }).await.unwrap();
    }

    /// Handles an update, and answers with how much it wrote.
    async fn notice(&self, update: Value) -> usize {
        let update = update.to_string();
        let mut tx = Tx::new(&self.store);
        self.chats.notice(&UpdateView::parse(&update).unwrap(), &mut tx, unix_millis()).unwrap();
        let commit = tx.into_commit();
        let written = commit.ops.len();
        self.store.commit(commit).await.unwrap();
        written
    }

    fn row(&self, chat: ChatId) -> Option<ChatRow> {
        self.store.get(&chat::key(BOT, chat)).unwrap().map(|row| ChatRow::decode(&row).unwrap())
    }

    fn gone(&self, chat: ChatId) -> Option<String> {
        self.row(chat).unwrap().gone
    }
}

fn now() -> u64 {
    unix_millis() / 1000
}

fn message(chat: &Value, text: &str) -> Value {
    json!({ "update_id": 1, "message": { "message_id": 1, "date": now(), "chat": chat, "text": text } })
}

fn member(chat: &Value, status: &str, date: u64) -> Value {
    let new = json!({ "status": status, "user": { "id": 4242 } });
    json!({ "update_id": 1, "my_chat_member": { "chat": chat, "date": date, "new_chat_member": new } })
}

#[tokio::test]
async fn a_chat_is_written_down_once_and_again_when_it_changes() {
    let bench = Bench::new();
    let mut chat = json!({ "id": SUPER.0, "type": "supergroup", "title": "Chess", "username": "chess" });
    assert_eq!(bench.notice(message(&chat, "hi")).await, 1);
    for _ in 0..3 {
        assert_eq!(bench.notice(message(&chat, "hi")).await, 0);
    }
    let row = bench.row(SUPER).unwrap();
    assert_eq!((&*row.kind, &*row.title, row.username.as_deref()), ("supergroup", "Chess", Some("chess")));
    assert!(row.is_reachable() && row.seen > 0);
    chat["title"] = json!("Go");
    assert_eq!(bench.notice(message(&chat, "hi")).await, 1);
    assert_eq!(bench.row(SUPER).unwrap().title, "Go");
    // Another process knows of nothing but the row.
    let bench = bench.again();
    assert_eq!(bench.notice(message(&chat, "hi")).await, 0);
    let person = json!({ "id": 5, "type": "private", "first_name": "Ada", "last_name": "L" });
    bench.notice(message(&person, "hi")).await;
    assert_eq!(bench.row(ChatId(5)).unwrap().title, "Ada L");
}

#[tokio::test]
async fn chats_that_are_not_the_bots_to_write_to_are_none() {
    let bench = Bench::new();
    let chat = json!({ "id": 9, "type": "private", "first_name": "Customer" });
    for update in [
        json!({ "update_id": 1, "business_message": { "chat": chat, "text": "x" } }),
        json!({ "update_id": 1, "poll_answer": { "voter_chat": chat } }),
        json!({ "update_id": 1, "message": { "chat": 7 } }),
        json!({ "update_id": 1, "inline_query": { "from": chat } }),
    ] {
        assert_eq!(bench.notice(update.clone()).await, 0, "{update}");
    }
    assert_eq!(known(&bench.store, BOT).count(), 0);
}

#[tokio::test]
async fn who_shuts_the_bot_out_is_marked_until_a_sign_of_life() {
    let bench = Bench::new();
    let person = json!({ "id": 5, "type": "private", "first_name": "Ada" });
    let group = json!({ "id": -5, "type": "group", "title": "G" });
    bench.notice(message(&person, "hi")).await;
    bench.notice(member(&person, "kicked", now())).await;
    assert_eq!(bench.gone(ChatId(5)).as_deref(), Some("the user has blocked the bot"));
    // What was written before and waited says nothing.
    let mut late = message(&person, "hi");
    late["message"]["date"] = json!(now() - 3600);
    bench.notice(late).await;
    bench.notice(member(&person, "member", now() - 3600)).await;
    assert!(bench.gone(ChatId(5)).is_some());
    bench.notice(member(&person, "member", now())).await;
    assert_eq!(bench.gone(ChatId(5)), None);

    bench.notice(member(&group, "left", now())).await;
    let farewell =
        json!({ "update_id": 1, "message": { "date": now(), "chat": group, "left_chat_member": { "id": BOT.0 } } });
    bench.notice(farewell).await;
    assert_eq!(bench.gone(ChatId(-5)).as_deref(), Some("the bot is not in the chat"));
    bench.notice(message(&group, "welcome back")).await;
    assert_eq!(bench.gone(ChatId(-5)), None);
}

#[tokio::test]
async fn a_refusal_marks_a_chat_and_the_next_message_takes_that_back() {
    let bench = Bench::new();
    let person = json!({ "id": 5, "type": "private", "first_name": "Ada" });
    for _ in 0..3 {
        bench.notice(message(&person, "hi")).await;
    }
    bench.chats.shut_out(ChatId(5), 403, "bot was blocked by the user");
    bench.store.flushed().await.unwrap();
    bench.put([]).await;
    bench.store.flushed().await.unwrap();
    assert_eq!(bench.gone(ChatId(5)).as_deref(), Some("bot was blocked by the user"));
    assert_eq!(bench.notice(message(&person, "hi")).await, 1, "what was seen before does not hide it");
    assert_eq!(bench.gone(ChatId(5)), None);
    // Whoever was never met: only one that is forbidden is a chat at all.
    bench.chats.shut_out(ChatId(6), 400, "chat not found");
    bench.chats.shut_out(ChatId(7), 403, "user is deactivated");
    bench.put([]).await;
    assert_eq!(bench.row(ChatId(6)), None);
    let row = bench.row(ChatId(7)).unwrap();
    assert_eq!((&*row.kind, row.gone.as_deref()), ("private", Some("user is deactivated")));
}

#[tokio::test]
async fn a_name_is_the_lane_of_its_chat_once_the_chat_is_known() {
    let bench = Bench::new();
    let (named, chat) = (crate::telegram::lane_of_name("@News"), Lane::Chat(SUPER));
    let changed = bench.chats.lanes_changed();
    assert_eq!(bench.chats.lane(named), named);
    bench.chats.succeeded(named, "sendMessage", format!(r#"{{"message_id":1,"chat":{{"id":{SUPER}}}}}"#).as_bytes());
    assert_eq!((bench.chats.lane(named), bench.chats.lane(chat)), (chat, chat));
    assert!(changed.has_changed().unwrap());
    // By what an update shows, too; and a name may go to another chat.
    let other = json!({ "id": -1_000_000_000_099_i64, "type": "channel", "title": "News", "username": "news" });
    let post = json!({ "update_id": 1, "channel_post": { "chat": other, "text": "x" } });
    bench.notice(post).await;
    assert_eq!(bench.chats.lane(named), Lane::Chat(ChatId(-1_000_000_000_099)));
    let bob = json!({ "id": 5, "type": "private", "first_name": "Bob", "username": "bob" });
    bench.notice(message(&bob, "x")).await;
    let bob = crate::telegram::lane_of_name("@bob");
    assert_eq!(bench.chats.lane(bob), bob, "people are not sent to by their names");
}

#[tokio::test]
async fn an_answer_is_kept_until_the_chat_changes() {
    let bench = Bench::new();
    let chats = &bench.chats;
    chats.keep_answers_for(Duration::from_secs(600));
    let (lane, question) = (Lane::Chat(SUPER), format!(r#"{{"chat_id":{SUPER}}}"#));
    let keep = || chats.keep_answer(lane, "getChat", &question, "full");
    let full = || chats.full(lane, "getChat", &question);
    assert_eq!(full(), None);
    keep();
    assert_eq!(full().as_deref(), Some("full"));
    let mut chat = json!({ "id": SUPER.0, "type": "supergroup", "title": "Chess" });
    bench.notice(message(&chat, "first")).await;
    keep();
    bench.notice(message(&chat, "an ordinary message")).await;
    bench.notice(message(&chat, "another")).await;
    chats.succeeded(lane, "sendMessage", b"{}");
    assert_eq!(full().as_deref(), Some("full"));
    chat["title"] = json!("Go");
    bench.notice(message(&chat, "x")).await;
    assert_eq!(full(), None, "the title has changed");
    keep();
    bench.notice(json!({ "update_id": 1, "message": { "date": now(), "chat": chat, "pinned_message": {} } })).await;
    assert_eq!(full(), None, "something was pinned");
    keep();
    chats.succeeded(lane, "setChatDescription", b"true");
    assert_eq!(full(), None, "the bot has changed it");
    keep();
    bench.notice(member(&chat, "administrator", now())).await;
    assert_eq!(full(), None, "the bot is something else there");
    assert_eq!(chats.full(lane, "getChatMember", &question), None);
}

#[tokio::test]
async fn who_somebody_is_in_a_chat_is_kept_until_that_may_have_changed() {
    let bench = Bench::new();
    let chats = &bench.chats;
    chats.keep_answers_for(Duration::from_secs(600));
    let (lane, question) = (Lane::Chat(SUPER), format!(r#"{{"chat_id":{SUPER},"user_id":7}}"#));
    let answer = r#"{"status":"administrator"}"#;
    let keep = || chats.keep_answer(lane, "getChatMember", &question, answer);
    let known = || chats.full(lane, "getChatMember", &question).as_deref() == Some(answer);
    assert!(!known());
    keep();
    assert!(known());
    let chat = json!({ "id": SUPER.0, "type": "supergroup", "title": "Chess" });
    bench.notice(message(&chat, "an ordinary message")).await;
    bench.notice(json!({ "update_id": 1, "message": { "date": now(), "chat": chat, "photo": [] } })).await;
    chats.succeeded(lane, "deleteMessage", b"true");
    chats.succeeded(Lane::Chat(GROUP), "promoteChatMember", b"true");
    assert!(known());
    let someone_else = format!(r#"{{"chat_id":{SUPER},"user_id":8}}"#);
    assert_eq!(chats.full(lane, "getChatMember", &someone_else), None);
    chats.succeeded(lane, "promoteChatMember", b"true");
    assert!(!known(), "the bot has made them something else");
    let changed =
        json!({ "chat": chat, "date": now(), "from": { "id": 7 }, "new_chat_member": { "status": "member" } });
    for kind in ["chat_member", "my_chat_member"] {
        keep();
        bench.notice(json!({ "update_id": 1, kind: changed })).await;
        assert!(!known(), "{kind}");
    }
}
