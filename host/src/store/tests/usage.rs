//! How much plugins keep, counted.

use super::*;
use crate::domain::{ChatId, Conversation};
use crate::store::rows::fsm;
use crate::store::rows::kv::{self, Scope};

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
    assert_eq!(store.kept_by_all(BOT), [(shop(), kept)]);
    store.close().await.unwrap();
    let store = Store::open(&path).unwrap();
    assert_eq!((store.kept(BOT, &shop()), problems(&store)), (kept, vec![]));
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
        let mut room = tx.room(BOT, &shop());
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
    let (mut one, mut other) = (store.room(BOT, &shop()), store.room(BOT, &shop()));
    assert_eq!(one.grow_to(50, kept + 100), Ok(()));
    assert_eq!(one.grow_to(20, kept + 100), Ok(()), "it has that already");
    assert_eq!(other.grow_to(51, kept + 100), Err(kept));
    assert_eq!(other.grow_to(50, kept + 100), Ok(()));
    assert_eq!(one.grow_to(51, kept + 100), Err(kept));
    assert_eq!(one.grow_to(50, 0), Ok(()));
    drop(other);
    assert_eq!(one.grow_to(100, kept + 100), Ok(()));
    drop(one);
    assert_eq!(store.room(BOT, &shop()).grow_to(101, kept + 100), Err(kept));
}
