//! On a store that nobody sends from.

use super::*;
use crate::domain::{BotId, PluginName, UserId};
use crate::store::Store;
use crate::store::rows::file::Attached;
use crate::store::rows::outbox::{Delivery, Fallback};
use crate::telegram::lane_of;

const BOT: BotId = BotId(42);

struct Room {
    operator: Operator,
    store: Store,
    _folder: tempfile::TempDir,
}

impl Room {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("data")).unwrap();
        Self { operator: Operator::on_stopped(store.clone(), BOT), store, _folder: folder }
    }

    async fn queue(&self, bot: BotId, params: &str, change: impl FnOnce(&mut OutboxRow)) -> u64 {
        let mut row = OutboxRow {
            plugin: PluginName::new("shop"),
            carries: 0,
            event: 3,
            method: "sendMessage".to_owned(),
            params: params.to_owned(),
            priority: Priority::Normal,
            attempts: 0,
            queued: 1_000,
            delivery: Delivery::AtLeastOnce,
            begun: 0,
            files: vec![],
            fallback: Fallback::None,
            follows: false,
        };
        change(&mut row);
        let prefix = outbox::lane_prefix(bot, lane_of(&row.method, &row.params));
        let ops = vec![Op::Append { prefix, value: row.encode() }];
        self.store.commit(Commit { ops, ..Commit::default() }).await.unwrap().numbers[0]
    }

    async fn numbers(&self, which: &Waiting) -> Vec<u64> {
        let list = self.operator.outbox(which, 1_000).await.unwrap();
        assert_eq!(list.total, list.calls.len() as u64);
        list.calls.iter().map(|call| call.number).collect()
    }
}

fn to(chat: &str) -> Waiting {
    Waiting { chat: Some(chat.to_owned()), plugin: None }
}

#[tokio::test]
async fn what_waits_is_listed_by_chat_and_plugin_and_says_nothing_of_its_text() {
    let room = Room::new();
    let hello = room.queue(BOT, r#"{"chat_id":7,"text":"secret words"}"#, |_| ()).await;
    let group = room.queue(BOT, r#"{"chat_id":-1005,"text":"x"}"#, |row| row.plugin = PluginName::new("news")).await;
    let name = room.queue(BOT, r#"{"chat_id":"@News","text":"x"}"#, |row| row.priority = Priority::Bulk).await;
    let again = room.queue(BOT, r#"{"chat_id":7,"text":"y"}"#, |_| ()).await;
    room.queue(BotId(1), r#"{"chat_id":7,"text":"of another bot"}"#, |_| ()).await;
    assert_eq!(room.numbers(&to("7")).await, [hello, again]);
    assert_eq!(room.numbers(&to("@news")).await, [name]);
    assert_eq!(room.numbers(&Waiting { plugin: Some("news".to_owned()), ..Waiting::default() }).await, [group]);
    let all = room.operator.outbox(&Waiting::default(), 2).await.unwrap();
    assert_eq!((all.calls.len(), all.total), (2, 4));
    assert!(!serde_json::to_string(&all).unwrap().contains("secret words"));

    let until = unix_millis() + 90_000;
    let key = flood::key(BOT, Lane::Chat(ChatId(7)));
    let ops = vec![Op::Put { key, value: FloodRow { until }.encode() }];
    drop(room.store.commit(Commit { ops, ..Commit::default() }).await.unwrap());
    let call = room.operator.waiting_call(again, true).await.unwrap().unwrap();
    assert_eq!((call.before, call.next_try, call.lane.as_str()), (1, until, "chat 7"));
    assert_eq!(call.params.as_deref(), Some(r#"{"chat_id":7,"text":"y"}"#));
    assert_eq!(room.operator.waiting_call(again, false).await.unwrap().unwrap().params, None);
    assert_eq!(room.operator.waiting_call(999, true).await.unwrap(), None);
}

#[tokio::test]
async fn cancelling_takes_the_rest_of_the_text_and_the_files_along_and_nothing_else() {
    let room = Room::new();
    let attached = Attached {
        id: "x".to_owned(),
        hash: Default::default(),
        size: 3,
        name: "a.txt".to_owned(),
        content_type: String::new(),
        number: 5,
    };
    let reference = file::reference(BOT, &attached);
    let ops = vec![Op::Put { key: reference.clone(), value: Vec::new() }];
    drop(room.store.commit(Commit { ops, ..Commit::default() }).await.unwrap());
    let in_chat = r#"{"chat_id":7,"text":"x"}"#;
    let first = room.queue(BOT, in_chat, |row| row.files.push(attached)).await;
    let rest = room.queue(BOT, in_chat, |row| row.follows = true).await;
    let next = room.queue(BOT, in_chat, |_| ()).await;
    let other = room.queue(BOT, r#"{"chat_id":8,"text":"x"}"#, |_| ()).await;
    let outcome = room.operator.cancel_calls(&Cancel::Numbers(vec![first, 999])).await.unwrap();
    assert_eq!(outcome.done, [first, rest]);
    assert_eq!(outcome.refused.iter().map(|refusal| refusal.number).collect::<Vec<_>>(), [999]);
    assert!(room.store.get(&reference).unwrap().is_none());
    assert_eq!(room.numbers(&Waiting::default()).await, [next, other]);
    let outcome = room.operator.cancel_calls(&Cancel::Chat("8".to_owned())).await.unwrap();
    assert_eq!((outcome.done, room.numbers(&Waiting::default()).await), (vec![other], vec![next]));
}

#[tokio::test]
async fn calls_of_no_chat_and_rows_that_can_not_be_read_are_shown_and_can_be_cancelled() {
    let room = Room::new();
    let prefix = outbox::lane_prefix(BOT, Lane::Urgent(UserId(5)));
    let ops = vec![Op::Append { prefix, value: b"\xff".to_vec() }];
    let number = room.store.commit(Commit { ops, ..Commit::default() }).await.unwrap().numbers[0];
    let list = room.operator.outbox(&Waiting::default(), 10).await.unwrap();
    assert_eq!((list.calls[0].lane.as_str(), &list.calls[0].chat), ("answers to user 5", &None));
    assert_eq!(room.operator.cancel_calls(&Cancel::Numbers(vec![number])).await.unwrap().done, [number]);
    assert_eq!(room.numbers(&Waiting::default()).await, [0; 0]);
}
