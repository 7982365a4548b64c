use std::path::PathBuf;

use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::domain::{ChatId, Conversation, Lane, Part, PluginName, UserId};
use crate::store::rows::dead::{self, DeadRow};
use crate::store::rows::inbox::{self, InboxRow, StoredEvent};
use crate::store::{Commit, Op};

mod left;

const BOT: BotId = BotId(42);

mod puts;

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

/// As part of a key, in digits, and as postcard writes numbers.
fn traces(store: &Store, id: i64) -> Vec<String> {
    let (mut rest, mut varint) = (((id << 1) ^ (id >> 63)).cast_unsigned(), Vec::new());
    while rest >= 0x80 {
        varint.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    varint.push(rest as u8);
    let parts = [(id ^ i64::MIN).to_be_bytes().to_vec(), id.to_string().into_bytes(), varint];
    let holds = |bytes: &[u8]| parts.iter().any(|part| bytes.windows(part.len()).any(|window| window == part));
    let rows = store.range(&[1], &[0x7d], usize::MAX).unwrap();
    let found = rows.iter().filter(|(key, value)| holds(key) || holds(value));
    found.map(|(key, _)| key.escape_ascii().to_string()).collect()
}

/// One row of every kind that can be somebody's.
async fn fill(room: &Room, id: i64) {
    let conversation = Conversation { chat: Some(ChatId(-5)), user: Some(UserId(id)), thread: None };
    fill_in(room, id, conversation).await;
}

async fn fill_in(room: &Room, id: i64, conversation: Conversation) {
    use crate::store::rows::broadcast::{self, Recipient};
    use crate::store::rows::outbox::{self, Delivery, Fallback, OutboxRow, Priority};
    use crate::store::rows::parked::{self, ParkedRow};
    use crate::store::rows::{album, chat, expiry, flood, fsm, job, kv, language, timer, unknown, version};
    let (plugin, lane) = (PluginName::new("shop"), Lane::Chat(ChatId(id)));
    let state = |expires| fsm::StateRow { name: "a".to_owned(), version: 1, expires, bytes: vec![7] }.encode();
    let value = || kv::ValueRow { expires: 0, bytes: b"1".to_vec() }.encode();
    let params = format!("{{\"chat_id\":{id},\"text\":\"x\"}}");
    let call = OutboxRow {
        plugin: plugin.clone(),
        carries: 0,
        event: 1,
        method: "sendMessage".to_owned(),
        params: params.clone(),
        priority: Priority::Normal,
        attempts: 0,
        queued: 0,
        delivery: Delivery::AtMostOnce,
        begun: 0,
        files: Vec::new(),
        fallback: Fallback::None,
        follows: false,
    };
    let whole = EventLane::whole(lane);
    let timer_row = timer::TimerRow {
        plugin: plugin.clone(),
        conversation,
        lane: whole,
        name: "t".to_owned(),
        payload: vec![],
        owner: timer::Owner::Conversation,
        repeat: None,
        since: 0,
    };
    let mut albums = album::AlbumsRow::default();
    albums.add("13", 5);
    let end = expiry::ExpiryRow::State { plugin: plugin.clone(), conversation, lane: whole, tell: false };
    let reason = format!("the plugin panicked: chat {id}");
    let rejected = vec![version::Rejected { version: "b".to_owned(), at: 1, reason }];
    let sent_back = version::VersionRow { rejected, ..version::VersionRow::default() };
    let head = job::HeadRow {
        name: "j".to_owned(),
        conversation,
        lane: whole,
        queued: 1,
        due: 0,
        attempts: 0,
        reason: String::new(),
        begun: false,
        key: Some(format!("once-{id}")),
    };
    let lost = unknown::UnknownRow {
        plugin: "shop".to_owned(),
        event: 1,
        method: "sendMessage".to_owned(),
        lane: Lane::Other,
        at: 1,
        maybe_sent: true,
        reason: String::new(),
        params,
    };
    let group = json!({ "update_id": 9, "message": { "chat": { "id": -5 }, "from": { "id": id }, "text": "x" } });
    let waiting = InboxRow::new(update_of(&group), 1);
    let piece = [Recipient::Chat(ChatId(3)), Recipient::Chat(ChatId(id)), Recipient::Chat(ChatId(4))];
    let job_id = id.cast_unsigned() % 1_000;
    let puts = [
        (fsm::key(BOT, &plugin, &conversation), state(44)),
        (expiry::key(BOT, 44, &fsm::key(BOT, &plugin, &conversation)), end.encode()),
        // Left behind by a state that was set anew.
        (expiry::key(BOT, 43, &fsm::key(BOT, &plugin, &conversation)), end.encode()),
        (fsm::aside_key(BOT, &plugin, &conversation), state(0)),
        (fsm::before_key(BOT, &plugin, &conversation), state(0)),
        (kv::key(BOT, &plugin, kv::Scope::User(UserId(id)), "v"), value()),
        (kv::key(BOT, &plugin, kv::Scope::Chat(ChatId(id)), "v"), value()),
        (job::head_key(BOT, &plugin, job_id), head.encode()),
        (job::payload_key(BOT, &plugin, job_id), id.to_string().into_bytes()),
        (job::unique_key(BOT, &plugin, &format!("once-{id}")), job_id.to_be_bytes().to_vec()),
        (chat::key(BOT, ChatId(id)), chat::ChatRow::default().encode()),
        (album::key(BOT, ChatId(id)), albums.encode()),
        (language::key(BOT, language::Whose::User(UserId(id))), language::LanguageRow::default().encode()),
        (language::key(BOT, language::Whose::Chat(ChatId(id))), language::LanguageRow::default().encode()),
        (flood::key(BOT, lane), flood::FloodRow { until: 9 }.encode()),
        (version::key(BOT, &PluginName::new(&format!("v{}", job_id))), sent_back.encode()),
        (broadcast::piece_key(BOT, job_id, 0), broadcast::encode_piece(&piece)),
    ];
    let rang = StoredEvent::Timer {
        plugin: plugin.clone(),
        conversation,
        id: job_id,
        name: "t".to_owned(),
        payload: vec![],
        due: 1,
    };
    let parked = ParkedRow { lane: whole, row: InboxRow::new(rang, 1) };
    let puts = puts.into_iter().chain(timer_row.rows(BOT, 99, job_id));
    let ops = puts.map(|(key, value)| Op::Put { key, value }).chain([
        Op::Append { prefix: outbox::lane_prefix(BOT, lane), value: call.encode() },
        Op::Append {
            prefix: inbox::lane_prefix(BOT, EventLane::whole(Lane::Chat(ChatId(-5)))),
            value: waiting.encode(),
        },
        Op::Append { prefix: dead::bot_prefix(BOT), value: letter("shop", whole, message(id, 8, "x")).encode() },
        Op::Append { prefix: unknown::bot_prefix(BOT), value: lost.encode() },
        Op::Append { prefix: parked::plugin_prefix(BOT, &plugin), value: parked.encode() },
    ]);
    room.operator.store.commit(Commit { ops: ops.collect(), ..Commit::default() }).await.unwrap();
}

#[tokio::test]
async fn an_erasure_leaves_no_trace_of_one_and_all_of_another() {
    let room = room();
    let (one, other) = (7_123_456_789, 7_987_654_321);
    fill(&room, one).await;
    fill(&room, other).await;
    let store = room.operator.store.clone();
    // What a plugin keeps for itself stays, unless it is meant.
    let note = crate::store::rows::kv::key(BOT, &PluginName::new("shop"), crate::store::rows::kv::Scope::Plugin, "all");
    let kept = crate::store::rows::kv::ValueRow { expires: 0, bytes: format!("[{one}]").into_bytes() };
    let ops = vec![Op::Put { key: note.clone(), value: kept.encode() }];
    store.commit(Commit { ops, ..Commit::default() }).await.unwrap();
    let (before, others) = (traces(&store, one).len(), traces(&store, other));
    let order = Erase { user: Some(one), chat: None, dry_run: true, mentions: false };
    let counted = room.operator.erase(&order).await.unwrap();
    assert_eq!(traces(&store, one).len(), before, "only counted");
    let erased = room.operator.erase(&Erase { dry_run: false, ..order.clone() }).await.unwrap();
    assert_eq!(erased, counted);
    let kinds: Vec<u64> = erased.rows.values().copied().collect();
    // States, aside, before, values, timer, job, events, call, dead letter, unknown call, chat, broadcast, albums, ends,
    // flood, version, languages.
    assert_eq!(kinds, [1, 1, 1, 2, 1, 1, 2, 1, 1, 1, 1, 1, 1, 2, 1, 1, 2], "{erased:?}");
    assert_eq!((traces(&store, one), erased.mentioned), (vec![note.escape_ascii().to_string()], 1));
    // Begun, and interrupted: the next start goes on with it.
    let begun = crate::store::rows::erasure::key(BOT, crate::store::rows::erasure::Subject::User(UserId(one)), true);
    let ops = vec![Op::Put { key: begun, value: Vec::new() }];
    store.commit(Commit { ops, ..Commit::default() }).await.unwrap();
    room.operator.finish_erasures().await.unwrap();
    assert_eq!(traces(&store, one), [""; 0]);
    assert_eq!(traces(&store, other), others);
}

/// What is filled in for a group that has become a supergroup, under both ids.
async fn fill_moved(room: &Room, group: i64, to: i64) {
    use crate::store::rows::moved::{self, MovedRow};
    for id in [group, to] {
        fill_in(room, id, Conversation { chat: Some(ChatId(id)), user: Some(UserId(77)), thread: None }).await;
    }
    let row = MovedRow { to: ChatId(to), at: 1, done: true };
    let ops = vec![Op::Put { key: moved::key(BOT, ChatId(group)), value: row.encode() }];
    room.operator.store.commit(Commit { ops, ..Commit::default() }).await.unwrap();
}

/// All but what stands under the id as a user's.
fn left_of_chat(store: &Store, id: i64) -> Vec<String> {
    use crate::store::rows::{kv, language};
    let values = kv::scope_prefix(BOT, &PluginName::new("shop"), kv::Scope::User(UserId(id)));
    let users =
        [values, language::key(BOT, language::Whose::User(UserId(id)))].map(|key| key.escape_ascii().to_string());
    traces(store, id).into_iter().filter(|key| users.iter().all(|user| !key.starts_with(user))).collect()
}

#[tokio::test]
async fn a_group_that_has_moved_is_erased_and_given_out_under_both_ids() {
    let (group, to, other) = (-5_123_456, -1_005_123_456_789, -1_005_987_654_321);
    for by in [to, group] {
        let room = room();
        let store = room.operator.store.clone();
        fill_moved(&room, group, to).await;
        fill(&room, other).await;
        let others = traces(&store, other);
        let wanted = Wanted { chat: Some(by), all: true, ..Wanted::default() };
        let given = room.operator.entries(&wanted, None, usize::MAX).unwrap().entries;
        let of = |id| given.iter().filter(|entry| entry.chat == Some(id) && entry.kind != Kind::Broadcast).count();
        assert!(of(group) == of(to) + 1 && of(to) > 10, "{given:?}");
        let order = Erase { user: None, chat: Some(by), dry_run: true, mentions: false };
        let counted = room.operator.erase(&order).await.unwrap();
        let erased = room.operator.erase(&Erase { dry_run: false, ..order }).await.unwrap();
        assert_eq!(erased, counted);
        assert_eq!((erased.rows[&Kind::Job], erased.rows[&Kind::Broadcast], erased.rows[&Kind::Moved]), (2, 2, 1));
        assert_eq!((left_of_chat(&store, group), left_of_chat(&store, to)), (vec![], vec![]));
        assert_eq!(traces(&store, other), others);
    }
}

#[tokio::test]
async fn an_erasure_that_was_interrupted_knows_both_ids_when_their_link_is_gone() {
    use crate::store::rows::moved;
    let room = room();
    let store = room.operator.store.clone();
    let (group, to) = (-5_123_456, -1_005_123_456_789);
    fill_moved(&room, group, to).await;
    let order = Erase { user: None, chat: Some(to), dry_run: false, mentions: false };
    {
        // No further than to its first commit.
        let mut erasing = std::pin::pin!(room.operator.erase(&order));
        std::future::poll_fn(|cx| std::task::Poll::Ready(erasing.as_mut().poll(cx).is_pending())).await;
    }
    let ops = vec![Op::Delete { key: moved::key(BOT, ChatId(group)) }];
    store.commit(Commit { ops, ..Commit::default() }).await.unwrap();
    room.operator.finish_erasures().await.unwrap();
    assert_eq!((left_of_chat(&store, group), left_of_chat(&store, to)), (vec![], vec![]));
}

#[tokio::test]
async fn what_is_put_ends_when_it_says_and_what_was_there_before_does_not() {
    use crate::store::rows::expiry;
    let room = room();
    let ends = || {
        let rows = room.operator.store.scan_prefix(&expiry::bot_prefix(BOT), 9).unwrap();
        rows.iter().filter_map(|(key, _)| expiry::parse_key(key).map(|(due, _)| due)).collect::<Vec<_>>()
    };
    for fields in [
        json!({ "kind": "state", "chat": 5, "user": 7, "name": "a", "version": 1 }),
        json!({ "kind": "value", "user": 7, "key": "k" }),
    ] {
        let put = async |expires: u64, delete: bool| {
            let mut entry = fields.clone();
            (entry["plugin"], entry["expires"], entry["json"]) = ("shop".into(), expires.into(), 1.into());
            room.operator.put_entry(&Put { entry: serde_json::from_value(entry).unwrap(), delete }).await.unwrap()
        };
        assert!(put(77, false).await && ends() == [77]);
        assert!(put(88, false).await && ends() == [88]);
        assert!(put(0, false).await && ends().is_empty());
        assert!(put(99, false).await && ends() == [99]);
        assert!(put(0, true).await && ends().is_empty());
        assert!(!put(0, true).await, "it is gone");
    }
}

#[tokio::test]
async fn an_erasure_lets_go_of_the_files_that_only_erased_calls_needed() {
    use crate::files::{Files, ServerLimits};
    use crate::sender::{SendSettings, Sender};
    use crate::store::rows::file::{self, Attached};
    use crate::store::rows::outbox::{self, Delivery, Fallback, OutboxRow, Priority};
    let Room { folder, operator, .. } = room();
    let store = operator.store.clone();
    let files = Files::open(&folder.path().join("data.files"), &store, ServerLimits::default()).unwrap();
    let token = crate::telegram::Token::parse("42:a-token-that-nobody-is-ever-asked-with").unwrap();
    let client = Arc::new(crate::telegram::Client::new("http://127.0.0.1:1", token).unwrap());
    let chats = crate::chats::Chats::open(store.clone(), BOT).unwrap();
    let settings = SendSettings {
        overall_per_second: 0.0,
        chat_per_second: 0.0,
        group_per_minute: 0.0,
        bulk_per_second: 0.0,
        paid_per_second: 0.0,
    };
    let sender = Sender::new(store.clone(), client, BOT, chats, settings, Some(files.clone()));
    let operator = operator.telling(sender);
    let mut ops = Vec::new();
    let mut queue = |chat: i64, content: &[u8], number: u64| {
        let mut draft = files.draft().unwrap();
        draft.write(content).unwrap();
        let (hash, pin) = draft.keep().unwrap();
        let (id, name, content_type) = ("a".to_owned(), "a".to_owned(), "text/plain".to_owned());
        let attached = Attached { id, hash, size: 3, name, content_type, number };
        ops.push(Op::Put { key: file::reference(BOT, &attached), value: Vec::new() });
        let row = OutboxRow {
            plugin: PluginName::new("shop"),
            carries: 0,
            event: 1,
            method: "sendDocument".to_owned(),
            params: json!({ "chat_id": chat, "document": "attach://a" }).to_string(),
            priority: Priority::Normal,
            attempts: 0,
            queued: 0,
            delivery: Delivery::AtMostOnce,
            begun: 0,
            files: vec![attached],
            fallback: Fallback::None,
            follows: false,
        };
        ops.push(Op::Append { prefix: outbox::lane_prefix(BOT, Lane::Chat(ChatId(chat))), value: row.encode() });
        (files.path(&hash), pin)
    };
    let [(own, first), (shared, second), (_, third)] =
        [queue(7, &b"her own"[..], 1), queue(7, b"everybody's", 2), queue(8, b"everybody's", 3)];
    store.commit(Commit { ops, ..Commit::default() }).await.unwrap();
    drop((first, second, third));
    assert!(own.exists() && shared.exists());
    operator.erase(&Erase { user: Some(7), chat: None, dry_run: false, mentions: false }).await.unwrap();
    for _ in 0..500 {
        if !own.exists() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    assert!(!own.exists() && shared.exists(), "what somebody else's call needs stays");
}
