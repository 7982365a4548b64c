//! The store on a temporary folder. Kills and power losses are in `tests/store_crash.rs`.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use tempfile::TempDir;

use super::*;

mod export;
mod folder;
mod model;
mod tx;
mod usage;

/// Room for a store that is not there yet.
fn room() -> (TempDir, std::path::PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data");
    (dir, path)
}

fn put(key: &str, value: impl Into<Vec<u8>>) -> Op {
    Op::Put { key: key.into(), value: value.into() }
}

fn delete(key: &str) -> Op {
    Op::Delete { key: key.into() }
}

fn append(prefix: &str) -> Op {
    Op::Append { prefix: prefix.into(), value: b"appended".to_vec() }
}

fn ops(ops: impl Into<Vec<Op>>) -> Commit {
    Commit { ops: ops.into(), ..Commit::default() }
}

fn saw(key: &str, value: Option<&str>) -> Read {
    Read::Value { key: key.into(), seen: value.map(|value| Bytes::copy_from_slice(value.as_bytes())) }
}

fn saw_range(store: &Store, from: &str, to: &str, limit: usize) -> Read {
    let seen = store.range(from.as_bytes(), to.as_bytes(), limit).unwrap();
    Read::Range { from: from.into(), to: to.into(), limit, seen }
}

fn large(seed: u8) -> Vec<u8> {
    (0..200_000u32).map(|n| (n % 251) as u8 ^ seed).collect()
}

/// Every row in sled, also those that are hidden.
fn raw_rows(store: &Store) -> usize {
    store.shared.with_engine(|engine| Ok(engine.db.len())).unwrap()
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), future).await.expect("it must not hang")
}

fn conflict(result: Result<Receipt, CommitError>) -> Option<String> {
    match result {
        Ok(_) => None,
        Err(CommitError::Conflict { key }) => Some(String::from_utf8(key).unwrap()),
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn a_commit_is_refused_when_what_it_read_has_changed() {
    let (_dir, path) = room();
    let store = Store::open(&path).unwrap();
    store.commit(ops([put("a", "1"), put("b", "1"), put("d", "1")])).await.unwrap();
    let range = saw_range(&store, "a", "e", 10);
    let head = saw_range(&store, "a", "e", 2);
    let gap = saw_range(&store, "e", "r", 10);

    // (what changes, what was read, the key that the refusal names)
    let cases: Vec<(Vec<Op>, Read, Option<&str>)> = vec![
        (vec![], saw("a", Some("1")), None),
        (vec![], saw("a", None), Some("a")),
        (vec![], saw("a", Some("2")), Some("a")),
        (vec![], saw("x", None), None),
        (vec![put("a", "1")], saw("a", Some("1")), None),
        (vec![put("c", "new")], range.clone(), Some("c")),
        (vec![put("c", "new")], head.clone(), None),
        (vec![delete("c")], range.clone(), None),
        (vec![delete("d")], range.clone(), Some("d")),
        (vec![put("d", "1")], range.clone(), None),
        (vec![put("b", "2")], range.clone(), Some("b")),
        (vec![put("b", "1"), put("aa", "new")], head.clone(), Some("aa")),
        (vec![delete("aa")], head, None),
        (vec![], gap.clone(), None),
        (vec![append("q")], gap, Some("q")),
    ];
    for (n, (changes, read, expected)) in cases.into_iter().enumerate() {
        store.commit(ops(changes)).await.unwrap();
        let refused = conflict(store.commit(Commit { reads: vec![read], ..ops([put("written", "x")]) }).await);
        match expected {
            Some(key) => assert!(refused.as_ref().is_some_and(|named| named.starts_with(key)), "case {n}: {refused:?}"),
            None => assert_eq!(refused, None, "case {n}"),
        }
    }
}

#[tokio::test]
async fn commits_that_are_merged_see_each_other() {
    let (_dir, path) = room();
    let store = Store::open(&path).unwrap();
    store.commit(ops([put("k", "0")])).await.unwrap();
    let resume = store.pause().unwrap();
    let first = store.commit(Commit { reads: vec![saw("k", Some("0"))], ..ops([put("k", "1")]) });
    let stale = store.commit(Commit { reads: vec![saw("k", Some("0"))], ..ops([put("k", "lost"), append("n")]) });
    let second = store.commit(Commit { reads: vec![saw("k", Some("1"))], ..ops([put("k", "2")]) });
    let empty = saw_range(&store, "n", "o", 5);
    let appended = store.commit(Commit { reads: vec![empty.clone()], ..ops([append("n")]) });
    let phantom = store.commit(Commit { reads: vec![empty], ..ops([append("n")]) });
    drop(resume);
    assert_eq!(conflict(first.await), None);
    assert_eq!(conflict(stale.await).as_deref(), Some("k"));
    assert_eq!(conflict(second.await), None);
    assert_eq!(appended.await.unwrap().numbers.len(), 1);
    assert!(matches!(phantom.await, Err(CommitError::Conflict { .. })));
    assert_eq!(store.get(b"k").unwrap().as_deref(), Some(&b"2"[..]));
    assert_eq!(store.scan_prefix(b"n", 10).unwrap().len(), 1);
}

#[tokio::test]
async fn numbers_rise_over_restarts() {
    let (_dir, path) = room();
    let mut last = 0;
    for _ in 0..3 {
        let store = Store::open(&path).unwrap();
        for _ in 0..2 {
            let receipt = store.commit(ops([append("a"), put("x", "y"), append("b")])).await.unwrap();
            assert_eq!(receipt.numbers.len(), 2);
            for number in receipt.numbers {
                assert!(number > last, "{number} after {last}");
                last = number;
            }
        }
        let newest = store.last_key(b"b", b"c").unwrap().unwrap();
        assert_eq!(rows::number_of(&newest), Some(last));
        store.close().await.unwrap();
    }
}

#[tokio::test]
async fn large_values_are_like_others() {
    let (_dir, path) = room();
    let store = Store::open(&path).unwrap();
    let before = raw_rows(&store);
    let sizes = [0, layout::CHUNK_SIZE, layout::CHUNK_SIZE + 1, 3 * layout::CHUNK_SIZE, 1_000_000];
    for size in sizes {
        let value = vec![7; size];
        store.commit(ops([put("big", value.clone()), put("bigger", "small")])).await.unwrap();
        assert_eq!(store.get(b"big").unwrap().unwrap(), value);
        let rows = store.range(b"b", b"c", 10).unwrap();
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0].1, value);
        assert_eq!(conflict(store.commit(Commit { reads: vec![saw("big", None)], ..ops([]) }).await).unwrap(), "big");
    }
    assert_eq!(store.first_key(b"", &[0xff]).unwrap().as_deref(), Some(&b"big"[..]), "no row of the store's own");
    assert_eq!(store.last_key(b"", &[0xff]).unwrap().as_deref(), Some(&b"bigger"[..]));
    assert_eq!(store.range(b"", &[0xff], 100).unwrap().len(), 2);
    store.close().await.unwrap();

    let store = Store::open(&path).unwrap();
    assert_eq!(store.get(b"big").unwrap().unwrap().len(), 1_000_000);
    // Replaced twice in one commit, and deleted in one that is merged with it.
    let resume = store.pause().unwrap();
    store.submit(ops([put("big", large(1)), put("big", large(2))]));
    store.submit(ops([delete("bigger")]));
    let last = store.commit(ops([delete("big")]));
    drop(resume);
    last.await.unwrap();
    // What is left: the counter of the chunks' ids.
    assert_eq!(raw_rows(&store), before + 1);
}

#[test]
fn a_reader_sees_one_value_or_the_other() {
    let (_dir, path) = room();
    let store = Store::open(&path).unwrap();
    store.commit_blocking(ops([put("k", large(0))])).unwrap();
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for seed in 1..40 {
                store.commit_blocking(ops([put("k", large(seed))])).unwrap();
            }
        });
        while !writer.is_finished() {
            let value = store.get(b"k").unwrap().expect("it is never absent");
            assert_eq!(value, large(value[0]));
        }
    });
}

#[tokio::test]
async fn callbacks_run_in_order_when_durable_and_before_the_waiter_wakes() {
    let (_dir, path) = room();
    let store = Store::open(&path).unwrap();
    let called = Arc::new(Mutex::new(Vec::new()));
    let note = |name: &'static str| -> Option<OnDurable> {
        let (called, shared) = (called.clone(), store.shared.clone());
        Some(Box::new(move |numbers: &[u64]| {
            assert_eq!(thread::current().name(), Some("store-sync"));
            assert!(shared.applied() > shared.durable().0);
            called.lock().unwrap().push((name, numbers.len()));
        }))
    };
    let resume = store.pause().unwrap();
    store.submit(Commit { on_durable: note("first"), ..ops([append("a"), append("a")]) });
    let refused = Commit { on_durable: note("refused"), reads: vec![saw("a", Some("?"))], ..ops([]) };
    let refused = store.commit(refused);
    let last = store.commit(Commit { on_durable: note("last"), ..ops([append("a")]) });
    drop(resume);
    assert!(matches!(refused.await, Err(CommitError::Conflict { .. })));
    within(last.await.unwrap().durable()).await.unwrap();
    assert_eq!(*called.lock().unwrap(), [("first", 2), ("last", 1)]);
    let stats = store.stats();
    assert_eq!((stats.applied, stats.durable), (2, 2));
    assert!(stats.groups >= 1 && stats.disk_bytes > 0);
}

#[tokio::test]
async fn a_failure_stops_everything_and_everybody_hears_of_it() {
    let (_dir, path) = room();
    let store = Store::open(&path).unwrap();
    let resume = store.pause().unwrap();
    let deadly = store.commit(Commit { on_durable: Some(Box::new(|_| panic!("on purpose"))), ..ops([]) });
    drop(resume);
    let receipt = within(deadly).await.unwrap();
    let told = |error: Error| matches!(&error, Error::Failed { .. }) && error.to_string().contains("on purpose");
    assert!(told(within(receipt.durable()).await.unwrap_err()));
    assert!(told(within(store.failed()).await));
    assert!(told(store.get(b"k").unwrap_err()));
    match within(store.commit(ops([put("k", "v")]))).await {
        Err(CommitError::Store(error)) => assert!(told(error)),
        other => panic!("{other:?}"),
    }
    assert!(told(within(store.close()).await.unwrap_err()));
    assert!(told(within(store.flushed()).await.unwrap_err()));
}

#[tokio::test]
async fn a_closed_store_refuses_and_can_be_opened_at_once() {
    let (_dir, path) = room();
    let store = Store::open(&path).unwrap();
    let waiting = store.commit(ops([put("k", "v")]));
    let other = store.clone();
    within(store.close()).await.unwrap();
    assert!(waiting.await.is_ok(), "what was handed in before is applied");
    assert!(matches!(other.get(b"k"), Err(Error::Closed)));
    assert!(matches!(within(other.commit(ops([]))).await, Err(CommitError::Store(Error::Closed))));
    assert!(matches!(other.export(Vec::new()), Err(Error::Closed)));
    within(other.close()).await.unwrap();
    let failed = tokio::time::timeout(Duration::from_millis(1), other.failed()).await;
    assert!(failed.is_err(), "closing is no failure");
    let store = Store::open(&path).unwrap();
    assert_eq!(store.get(b"k").unwrap().as_deref(), Some(&b"v"[..]));
}

#[test]
fn dropping_every_handle_keeps_what_was_handed_in() {
    let (_dir, path) = room();
    for n in 0..3 {
        let store = Store::open(&path).unwrap();
        assert_eq!(store.range(b"k", b"l", 10).unwrap().len(), n);
        store.submit(ops([put(&format!("k{n}"), "v")]));
    }
}
