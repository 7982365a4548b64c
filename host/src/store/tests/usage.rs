//! How much plugins keep, counted.

use super::*;
use crate::domain::{ChatId, Conversation, EventLane, Lane};
use crate::store::rows::counted::Ledger;
use crate::store::rows::inbox::{self, InboxRow, StoredEvent};
use crate::store::rows::kv::{self, Scope};
use crate::store::rows::outbox::{self, Delivery, Fallback, OutboxRow, Priority};
use crate::store::rows::timer::{Owner, TimerRow};
use crate::store::rows::{fsm, job};

const BOT: BotId = BotId(42);

fn shop() -> PluginName {
    PluginName::new("shop")
}

fn key(name: &str) -> Vec<u8> {
    kv::key(BOT, &shop(), Scope::Plugin, name)
}

fn keep(name: &str, bytes: usize) -> Op {
    Op::Put { key: key(name), value: vec![7; bytes] }
}

fn row(name: &str, bytes: usize) -> u64 {
    (key(name).len() + bytes) as u64
}

fn problems(store: &Store) -> Vec<String> {
    store.check().unwrap().problems
}

#[tokio::test]
async fn every_change_is_counted_and_a_restart_changes_nothing() {
    let (_dir, path) = room();
    let store = Store::open(&path).unwrap();
    let state = fsm::key(BOT, &shop(), &Conversation { chat: Some(ChatId(1)), ..Conversation::default() });
    let state_bytes = state.len() as u64 + 5;
    let delete = |name: &str| Op::Delete { key: key(name) };
    for (change, kept) in [
        (vec![keep("a", 10)], row("a", 10)),
        (vec![keep("a", 10)], row("a", 10)),
        (vec![keep("a", 200_000), keep("b", 3)], row("a", 200_000) + row("b", 3)),
        // Several times in one commit.
        (vec![keep("b", 70_000), keep("b", 1), keep("c", 1), delete("c")], row("a", 200_000) + row("b", 1)),
        (vec![delete("a"), delete("never")], row("b", 1)),
        (vec![Op::Put { key: state.clone(), value: vec![1; 5] }, put("of nobody", "x")], row("b", 1) + state_bytes),
    ] {
        store.commit(ops(change)).await.unwrap();
        assert_eq!((store.kept(BOT, &shop()), problems(&store)), (kept, vec![]));
    }
    // Merged with others into one batch.
    let resume = store.pause().unwrap();
    store.submit(ops([keep("m", 1)]));
    store.submit(ops([keep("m", 500)]));
    let last = store.commit(ops([keep("n", 5), delete("b")]));
    drop(resume);
    last.await.unwrap();
    let kept = state_bytes + row("m", 500) + row("n", 5);
    assert_eq!((store.kept(BOT, &shop()), problems(&store)), (kept, vec![]));
    assert_eq!(store.kept(BOT, &PluginName::new("sho")), 0);
    assert_eq!(store.kept(BotId(43), &shop()), 0);
    assert_eq!(store.used_by_all(Ledger::Kept, BOT), [(shop(), kept)]);
    store.close().await.unwrap();
    let store = Store::open(&path).unwrap();
    assert_eq!((store.kept(BOT, &shop()), problems(&store)), (kept, vec![]));
}

fn call(plugin: &str, bytes: usize, carries: u64) -> Op {
    let row = OutboxRow {
        plugin: PluginName::new(plugin),
        carries,
        event: 1,
        method: "sendMessage".into(),
        params: "x".repeat(bytes),
        priority: Priority::Normal,
        attempts: 0,
        queued: 0,
        delivery: Delivery::AtLeastOnce,
        begun: 0,
        files: vec![],
        fallback: Fallback::None,
        follows: false,
    };
    Op::Append { prefix: outbox::lane_prefix(BOT, Lane::Chat(ChatId(1))), value: row.encode() }
}

/// Whose such rows are stands in their values, which may be large.
#[tokio::test]
async fn timers_jobs_and_calls_are_counted_until_they_are_done_with() {
    let (dir, path) = room();
    let store = Store::open(&path).unwrap();
    let used = |store: &Store| {
        let of = |ledger| store.used(ledger, BOT, &shop());
        assert_eq!(problems(store), Vec::<String>::new());
        (of(Ledger::Kept), of(Ledger::Timers), of(Ledger::Queued))
    };
    let lane = EventLane::whole(Lane::Chat(ChatId(1)));
    let timer = TimerRow {
        plugin: shop(),
        conversation: Conversation::default(),
        lane,
        name: "t".into(),
        payload: vec![0; 100_000],
        owner: Owner::Plugin,
        repeat: None,
        since: 0,
    };
    let put = |(key, value)| Op::Put { key, value };
    store.commit(ops(timer.rows(BOT, 5, 64).map(put))).await.unwrap();
    let (kept, timers, _) = used(&store);
    assert!(kept > 100_000 && kept < 101_000 && timers == 1, "{kept}");

    // It rings: what waits now is the event.
    let gone = timer.keys(BOT, 5, 64).map(|key| Op::Delete { key });
    let event = Op::Append { prefix: inbox::lane_prefix(BOT, lane), value: InboxRow::new(rang(), 9).encode() };
    let update = InboxRow::new(StoredEvent::Update(vec![1; 100_000]), 9).encode();
    let update = Op::Append { prefix: inbox::lane_prefix(BOT, lane), value: update };
    store.commit(ops(gone.into_iter().chain([event, update]).collect::<Vec<_>>())).await.unwrap();
    let (kept, timers, _) = used(&store);
    assert!(kept > 100_000 && kept < 101_000 && timers == 1, "{kept}");
    let own = store.scan_prefix(&inbox::lane_prefix(BOT, lane), 1).unwrap().remove(0).0.to_vec();
    // Tried again, and then handled.
    let again = Op::Put { key: own.clone(), value: InboxRow { attempts: 4, ..InboxRow::new(rang(), 9) }.encode() };
    store.commit(ops([again])).await.unwrap();
    assert_eq!(used(&store), (kept, 1, 0));
    let queued = job::payload_key(BOT, &shop(), 7);
    let queued_bytes = queued.len() as u64 + 10;
    store.commit(ops([Op::Delete { key: own }, put((queued, vec![0; 10]))])).await.unwrap();
    assert_eq!(used(&store), (queued_bytes, 0, 0));

    let calls = [call("shop", 70_000, 1 << 20), call("shop", 10, 0), call("other", 10, 0), call("", 10, 0)];
    let numbers = store.commit(ops(calls)).await.unwrap().numbers;
    let (_, _, queued) = used(&store);
    assert!(queued > (1 << 20) + 70_000 && queued < (1 << 20) + 71_000, "{queued}");
    assert_eq!(store.used_by_all(Ledger::Queued, BOT).len(), 2, "nobody's are not counted");
    store.close().await.unwrap();

    let store = Store::open(&path).unwrap();
    assert_eq!(used(&store), (queued_bytes, 0, queued), "over a restart");
    let mut out = Vec::new();
    store.export(&mut out).unwrap();
    let copy = dir.path().join("copy");
    Store::import(&copy, &out[..]).unwrap();
    assert_eq!(used(&Store::open(&copy).unwrap()), (queued_bytes, 0, queued), "and where nothing is counted yet");
    for number in numbers {
        let key = outbox::key(BOT, Lane::Chat(ChatId(1)), number);
        store.commit(ops([Op::Delete { key }])).await.unwrap();
    }
    assert_eq!(used(&store), (queued_bytes, 0, 0));
}

fn rang() -> StoredEvent {
    let payload = vec![0; 100_000];
    StoredEvent::Timer {
        plugin: shop(),
        conversation: Conversation::default(),
        id: 64,
        name: "t".into(),
        payload,
        due: 5,
    }
}

#[tokio::test]
async fn a_store_without_counts_is_counted() {
    let (dir, path) = room();
    let store = Store::open(&path).unwrap();
    store.commit(ops([keep("a", 100_000), keep("b", 9)])).await.unwrap();
    let (mut out, kept) = (Vec::new(), store.kept(BOT, &shop()));
    store.export(&mut out).unwrap();
    let again = dir.path().join("again");
    Store::import(&again, &out[..]).unwrap();
    let again = Store::open(&again).unwrap();
    assert_eq!((again.kept(BOT, &shop()), problems(&again)), (kept, vec![]));
    assert_eq!(kept, row("a", 100_000) + row("b", 9));
}

/// Runs of one plugin that have nothing else in common are not in each other's way.
#[tokio::test]
async fn counting_is_no_read() {
    let (_dir, path) = room();
    let store = Store::open(&path).unwrap();
    let run = |name: &str| {
        let mut tx = Tx::new(&store);
        tx.get(&key(name)).unwrap();
        let mut room = tx.room(Ledger::Kept, BOT, &shop());
        room.grow_to(100, 1_000).unwrap();
        tx.put(key(name), vec![0; 50]);
        (tx.into_commit(), room)
    };
    let ((one, first), (other, second)) = (run("a"), run("b"));
    let (one, other) = tokio::join!(store.commit(one), store.commit(other));
    assert!(one.is_ok() && other.is_ok());
    drop((first, second));
    assert_eq!(store.kept(BOT, &shop()), row("a", 50) + row("b", 50));
}

#[tokio::test]
async fn room_is_what_nobody_has_or_is_about_to_have() {
    let (_dir, path) = room();
    let store = Store::open(&path).unwrap();
    store.commit(ops([keep("a", 100)])).await.unwrap();
    let kept = store.kept(BOT, &shop());
    let (mut one, mut other) = (store.room(Ledger::Kept, BOT, &shop()), store.room(Ledger::Kept, BOT, &shop()));
    assert_eq!(one.grow_to(50, kept + 100), Ok(()));
    assert_eq!(one.grow_to(20, kept + 100), Ok(()), "it has that already");
    assert_eq!(other.grow_to(51, kept + 100), Err(kept));
    assert_eq!(other.grow_to(50, kept + 100), Ok(()));
    assert_eq!(one.grow_to(51, kept + 100), Err(kept));
    assert_eq!(one.grow_to(50, 0), Ok(()));
    drop(other);
    assert_eq!(one.grow_to(100, kept + 100), Ok(()));
    drop(one);
    assert_eq!(store.room(Ledger::Kept, BOT, &shop()).grow_to(101, kept + 100), Err(kept));
}
