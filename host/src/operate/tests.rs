use std::path::PathBuf;

use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::domain::{ChatId, Conversation, Lane, Part, PluginName, UserId};
use crate::store::rows::dead::{self, DeadRow};
use crate::store::rows::inbox::{self, InboxRow, StoredEvent};
use crate::store::{Commit, Op};

const BOT: BotId = BotId(42);

struct Room {
    folder: TempDir,
    operator: Operator,
    arrivals: mpsc::UnboundedReceiver<Vec<EventLane>>,
}

fn room() -> Room {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&path(&folder)).unwrap();
    let (announce, arrivals) = mpsc::unbounded_channel();
    Room { folder, operator: Operator::on_running(store, BOT, announce), arrivals }
}

fn path(folder: &TempDir) -> PathBuf {
    folder.path().join("data")
}

fn update(raw: &str) -> StoredEvent {
    StoredEvent::Update(raw.as_bytes().to_vec())
}

fn message(chat: i64, id: i64, text: &str) -> StoredEvent {
    let update = json!({ "update_id": id, "message": { "chat": { "id": chat, "type": "private" }, "text": text } });
    update_of(&update)
}

fn update_of(json: &serde_json::Value) -> StoredEvent {
    update(&json.to_string())
}

fn letter(plugin: &str, lane: EventLane, event: StoredEvent) -> DeadRow {
    DeadRow {
        lane,
        at: 1_700_000_000_000,
        attempts: 5,
        plugin: plugin.to_owned(),
        version: "abc".to_owned(),
        reason: format!("it panicked in {plugin}\nat src/lib.rs:7"),
        backtrace: "0: there".to_owned(),
        event,
        rest: Vec::new(),
    }
}

impl Room {
    async fn append(&self, prefix: Vec<u8>, value: Vec<u8>) -> u64 {
        let commit = Commit { ops: vec![Op::Append { prefix, value }], ..Commit::default() };
        let receipt = self.operator.store.commit(commit).await.unwrap();
        receipt.numbers[0]
    }

    async fn set_aside(&self, row: &DeadRow) -> u64 {
        self.append(dead::bot_prefix(BOT), row.encode()).await
    }

    fn dead(&self) -> Vec<u64> {
        self.operator.list(100, None).unwrap().letters.iter().map(|letter| letter.number).collect()
    }

    /// Lane and event of what waits, in order.
    fn inbox(&self) -> Vec<(EventLane, InboxRow)> {
        let rows = self.operator.store.scan_prefix(&inbox::bot_prefix(BOT), usize::MAX).unwrap();
        let read = |(key, value): &(_, bytes::Bytes)| {
            let key: &bytes::Bytes = key;
            (inbox::parse_key(key).unwrap().0, InboxRow::decode(value).unwrap())
        };
        rows.iter().map(read).collect()
    }

    fn announced(&mut self) -> Vec<EventLane> {
        std::iter::from_fn(|| self.arrivals.try_recv().ok()).flatten().collect()
    }
}

const CHAT: EventLane = chat(7);
const NONE: EventLane = EventLane { place: Lane::Other, part: Part::Whole };

const fn chat(id: i64) -> EventLane {
    EventLane { place: Lane::Chat(ChatId(id)), part: Part::Whole }
}

#[tokio::test]
async fn the_newest_are_listed_first_with_a_limit_and_by_plugin() {
    let room = room();
    assert_eq!(room.operator.list(10, None).unwrap(), List { letters: vec![], more: false });
    let mut numbers = Vec::new();
    for plugin in ["a", "b", "a"] {
        numbers.push(room.set_aside(&letter(plugin, CHAT, message(7, 1, "hi"))).await);
    }
    let list = room.operator.list(2, None).unwrap();
    assert!(list.more);
    assert_eq!(list.letters.iter().map(|letter| letter.number).collect::<Vec<_>>(), [numbers[2], numbers[1]]);
    let first = &list.letters[0];
    assert_eq!((first.plugin.as_str(), first.lane.as_str(), first.attempts), ("a", "chat 7", 5));
    assert_eq!(first.reason, "it panicked in a…", "one line of it");
    let of_b = room.operator.list(1, Some("b")).unwrap();
    assert!(!of_b.more && of_b.letters[0].number == numbers[1], "{of_b:?}");
}

#[tokio::test]
async fn a_letter_is_shown_whole_and_private_texts_only_when_asked_for() {
    let room = room();
    let event = update_of(&json!({ "update_id": 3, "message": {
        "message_id": 9, "date": 1_700_000_000, "text": "my secret", "new_thing": ["also", { "said": "secret" }],
        "chat": { "id": 7, "type": "private", "first_name": "Ann" }, "location": { "latitude": 41.0, "longitude": 69 },
    } }));
    let number = room.set_aside(&letter("a", CHAT, event)).await;
    let hidden = room.operator.show(number, false).unwrap().unwrap();
    assert!(hidden.reason.contains("src/lib.rs:7") && hidden.backtrace == "0: there", "{hidden:?}");
    let message = &hidden.event["update"]["message"];
    assert_eq!(message["text"], "[hidden: 9 characters]");
    assert_eq!(message["chat"], json!({ "id": 7, "type": "private", "first_name": "[hidden: 3 characters]" }));
    assert_eq!((&message["message_id"], &message["date"]), (&json!(9), &json!(1_700_000_000)));
    for private in ["secret", "Ann", "also", "41", "69"] {
        assert!(!hidden.event.to_string().contains(private), "{private}: {}", hidden.event);
    }
    let shown = room.operator.show(number, true).unwrap().unwrap();
    assert_eq!(shown.event["update"]["message"]["text"], "my secret");
    assert_eq!(room.operator.show(number + 1, true).unwrap(), None);

    let broken = room.set_aside(&letter("", NONE, update("[1]"))).await;
    assert_eq!(room.operator.show(broken, false).unwrap().unwrap().event, json!({ "unreadable": "[hidden: 3 bytes]" }));
    assert_eq!(room.operator.show(broken, true).unwrap().unwrap().event, json!({ "unreadable": "[1]" }));
}

#[tokio::test]
async fn a_retried_letter_waits_behind_what_waits_now_with_its_attempts_forgotten() {
    let mut room = room();
    let first = room.set_aside(&letter("a", CHAT, message(7, 1, "one"))).await;
    let waiting = InboxRow { attempts: 2, ..InboxRow::new(message(7, 5, "waits"), 1) };
    room.append(inbox::lane_prefix(BOT, CHAT), waiting.encode()).await;
    let second = room.set_aside(&letter("a", CHAT, message(7, 2, "two"))).await;

    let outcome = room.operator.retry(&Selection::Numbers(vec![second, first, second, 999])).await.unwrap();
    assert_eq!(outcome.done, [first, second]);
    let refused: Vec<_> = outcome.refused.iter().map(|refusal| (refusal.number, refusal.reason.as_str())).collect();
    assert_eq!(refused, [(999, "there is no such dead letter")]);
    assert_eq!(room.dead(), [0; 0]);
    let inbox = room.inbox();
    let events: Vec<_> = inbox.iter().map(|(_, row)| row.event.clone()).collect();
    assert_eq!(events, [message(7, 5, "waits"), message(7, 1, "one"), message(7, 2, "two")]);
    assert!(inbox[1..].iter().all(|(lane, row)| (*lane, row.attempts, row.not_before) == (CHAT, 0, 0)));
    assert_eq!(room.announced(), [CHAT, CHAT], "the dispatcher is told");
}

#[tokio::test]
async fn an_update_that_could_not_be_read_is_read_anew() {
    let mut room = room();
    let raw = r#"{"update_id":4,"callback_query":{"from":{"id":8},"data":"x"}}"#;
    let readable_now = room.set_aside(&letter("", NONE, update(raw))).await;
    let still_broken = room.set_aside(&letter("", NONE, update(r#"{"message":{}}"#))).await;
    let old_row = InboxRow { attempts: 1, not_before: 9, ..InboxRow::new(message(7, 1, "one"), 1) };
    let inbox_row = room.set_aside(&letter("", CHAT, StoredEvent::Update(old_row.encode()))).await;
    let timer = StoredEvent::Timer {
        plugin: PluginName::new("a"),
        conversation: Conversation::default(),
        id: 1,
        name: "t".to_owned(),
        payload: vec![1],
        due: 5,
    };
    let timer_letter = room.set_aside(&letter("a", chat(9), timer.clone())).await;

    let outcome = room.operator.retry(&Selection::All { plugin: None }).await.unwrap();
    assert_eq!(outcome.done, [readable_now, inbox_row, timer_letter]);
    assert_eq!(outcome.refused.len(), 1);
    assert!(outcome.refused[0].reason.contains("update_id"), "{outcome:?}");
    assert_eq!(room.dead(), [still_broken]);
    let inbox: Vec<_> = room.inbox().into_iter().map(|(lane, row)| (lane, row.event)).collect();
    let expected =
        [(CHAT, message(7, 1, "one")), (chat(9), timer), (EventLane::whole(Lane::User(UserId(8))), update(raw))];
    assert_eq!(inbox, expected);
    assert_eq!(room.announced().len(), 3);
}

#[tokio::test]
async fn a_letter_keeps_the_lane_it_was_in_and_an_album_is_put_back_message_by_message() {
    let room = room();
    let lane = EventLane { place: Lane::Chat(ChatId(7)), part: Part::User(UserId(5)) };
    let raw = |id| {
        let StoredEvent::Update(raw) = message(7, id, "a picture") else { unreachable!() };
        raw
    };
    let album = DeadRow { rest: vec![raw(2), raw(3)], ..letter("a", lane, StoredEvent::Update(raw(1))) };
    let number = room.set_aside(&album).await;
    let shown = room.operator.show(number, false).unwrap().unwrap();
    assert_eq!(shown.event["album"].as_array().map(Vec::len), Some(3), "{}", shown.event);
    room.operator.retry(&Selection::Numbers(vec![number])).await.unwrap();
    let inbox: Vec<_> = room.inbox().into_iter().map(|(lane, row)| (lane, row.event)).collect();
    assert_eq!(inbox, [1, 2, 3].map(|id| (lane, StoredEvent::Update(raw(id)))));
}

#[tokio::test]
async fn letters_are_dropped_by_number_and_by_plugin_and_other_bots_keep_theirs() {
    let mut room = room();
    let mut numbers = Vec::new();
    for plugin in ["a", "b", "a", "c"] {
        numbers.push(room.set_aside(&letter(plugin, CHAT, message(7, 1, "hi"))).await);
    }
    let foreign = letter("a", CHAT, message(7, 1, "hi"));
    room.append(dead::bot_prefix(BotId(43)), foreign.encode()).await;
    let outcome = room.operator.drop_letters(&Selection::All { plugin: Some("a".to_owned()) }).await.unwrap();
    assert_eq!(outcome, Outcome { done: vec![numbers[0], numbers[2]], refused: vec![] });
    let outcome = room.operator.drop_letters(&Selection::Numbers(vec![numbers[3]])).await.unwrap();
    assert_eq!(outcome.done, [numbers[3]]);
    assert_eq!(room.dead(), [numbers[1]]);
    assert!(room.inbox().is_empty() && room.announced().is_empty());
    let others = Operator::on_stopped(room.operator.store.clone(), BotId(43));
    assert_eq!(others.list(9, None).unwrap().letters.len(), 1);
}

#[tokio::test]
async fn two_operators_never_put_back_the_same_letter() {
    let room = room();
    for n in 0..200 {
        room.set_aside(&letter("a", CHAT, message(7, n, "hi"))).await;
    }
    let all = Selection::All { plugin: None };
    let (one, other) = tokio::join!(room.operator.retry(&all), room.operator.retry(&all));
    let done = one.unwrap().done.len() + other.unwrap().done.len();
    assert_eq!((done, room.inbox().len(), room.dead().len()), (200, 200, 0));
    room.operator.store.close().await.unwrap();
    let again = Operator::on_stopped(Store::open(&path(&room.folder)).unwrap(), BOT);
    assert_eq!(again.list(1, None).unwrap().letters, []);
}

#[tokio::test]
async fn a_pause_lasts_until_it_is_ended() {
    let room = room();
    let (a, b) = (PluginName::new("a"), PluginName::new("a-b"));
    room.operator.pause(&a).await.unwrap();
    room.operator.pause(&b).await.unwrap();
    let since = room.operator.paused().unwrap();
    assert_eq!(since.keys().collect::<Vec<_>>(), [&a, &b]);
    room.operator.pause(&a).await.unwrap();
    assert_eq!(room.operator.paused().unwrap(), since, "since when it was");
    let others = Operator::on_stopped(room.operator.store.clone(), BotId(43));
    assert!(others.paused().unwrap().is_empty());

    room.operator.store.close().await.unwrap();
    let again = Operator::on_stopped(Store::open(&path(&room.folder)).unwrap(), BOT);
    assert_eq!(again.paused().unwrap(), since);
    assert!(again.resume(&a).await.unwrap() && !again.resume(&a).await.unwrap());
    assert_eq!(again.paused().unwrap().into_keys().collect::<Vec<_>>(), [b]);
}
