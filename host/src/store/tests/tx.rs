//! The overlay: own writes first, reads recorded, savepoints.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// What a run does with its overlay.
type Run<'a> = &'a dyn Fn(&mut Tx);

/// All rows, by pages.
fn all(tx: &mut Tx, from: &[u8], to: &[u8], limit: usize) -> Vec<(Bytes, Bytes)> {
    let mut rows = Vec::new();
    let mut next = Some(from.to_vec());
    while let Some(from) = next {
        let page = tx.page(&from, to, limit).unwrap();
        rows.extend(page.rows);
        next = page.next;
    }
    rows
}

fn texts(rows: Vec<(Bytes, Bytes)>) -> String {
    let row = |(key, value): (Bytes, Bytes)| {
        format!("{}={}", String::from_utf8(key.to_vec()).unwrap(), String::from_utf8(value.to_vec()).unwrap())
    };
    rows.into_iter().map(row).collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn what_it_read_must_still_be_so() {
    let (_dir, path) = room();
    let store = Store::open(&path).unwrap();
    store.commit(ops([put("a", "1"), put("b", "1"), put("c", "1")])).await.unwrap();
    let read_a = |tx: &mut Tx| drop(tx.get(b"a").unwrap());
    let peek_a = |tx: &mut Tx| drop(tx.peek(b"a").unwrap());
    let own_a = |tx: &mut Tx| {
        tx.put(b"a".to_vec(), b"own".to_vec());
        tx.get(b"a").unwrap();
    };
    let range = |tx: &mut Tx| drop(tx.page(b"a", b"c", 10).unwrap());
    let rolled_back = |tx: &mut Tx| {
        let start = tx.savepoint();
        tx.get(b"a").unwrap();
        tx.roll_back(start);
    };
    // (what the run does, what changes meanwhile, whether it is refused)
    let cases: [(Run<'_>, Op, bool); 9] = [
        (&read_a, put("a", "2"), true),
        (&read_a, put("b", "2"), false),
        (&peek_a, put("a", "3"), false),
        (&own_a, put("a", "4"), false),
        (&range, put("aa", "new"), true),
        (&range, put("c", "2"), false),
        (&range, delete("aa"), true),
        (&rolled_back, put("a", "5"), true),
        (&rolled_back, put("a", "5"), false),
    ];
    for (n, (run, change, refused)) in cases.into_iter().enumerate() {
        let mut tx = Tx::new(&store);
        run(&mut tx);
        store.commit(ops([change])).await.unwrap();
        tx.append(b"done".to_vec(), Vec::new());
        assert_eq!(conflict(store.commit(tx.into_commit()).await).is_some(), refused, "case {n}");
    }
}

#[test]
fn reading_twice_gives_the_same() {
    let (_dir, path) = room();
    let store = Store::open(&path).unwrap();
    let mut tx = Tx::new(&store);
    assert_eq!(tx.get(b"a").unwrap(), None);
    store.commit_blocking(ops([put("a", "later")])).unwrap();
    assert_eq!(tx.get(b"a").unwrap(), None);
    assert_eq!(tx.peek(b"a").unwrap(), None);
}

#[test]
fn a_rolled_back_part_leaves_nothing() {
    let (_dir, path) = room();
    let store = Store::open(&path).unwrap();
    store.commit_blocking(ops([put("a", "1"), put("b", "1")])).unwrap();
    let mut tx = Tx::new(&store);
    tx.put(b"a".to_vec(), b"2".to_vec());
    tx.append(b"n".to_vec(), b"kept".to_vec());
    let outer = tx.savepoint();
    tx.put(b"a".to_vec(), b"3".to_vec());
    tx.delete(b"b".to_vec());
    let inner = tx.savepoint();
    tx.delete(b"a".to_vec());
    tx.put(b"b".to_vec(), b"9".to_vec());
    tx.put(b"c".to_vec(), b"9".to_vec());
    tx.append(b"n".to_vec(), b"lost".to_vec());
    assert_eq!(texts(all(&mut tx, b"a", b"z", 9)), "b=9 c=9");
    tx.roll_back(inner);
    assert_eq!(texts(all(&mut tx, b"a", b"z", 9)), "a=3");
    tx.roll_back(outer);
    assert_eq!(texts(all(&mut tx, b"a", b"z", 9)), "a=2 b=1");
    let receipt = store.commit_blocking(tx.into_commit()).unwrap();
    assert_eq!(receipt.numbers.len(), 1);
    assert_eq!(texts(store.range(b"a", b"m", 9).unwrap()), "a=2 b=1");
    assert_eq!(store.scan_prefix(b"n", 9).unwrap()[0].1, "kept");
}

#[test]
fn what_was_read_and_what_was_written_since_can_be_told() {
    let (_dir, path) = room();
    let store = Store::open(&path).unwrap();
    store.commit_blocking(ops([put("a", "1"), put("b", "1"), put("c", "1"), put("m", "1")])).unwrap();
    let mut tx = Tx::new(&store);
    tx.get(b"m").unwrap();
    tx.get(b"none").unwrap();
    all(&mut tx, b"a", b"c", 9);
    tx.put(b"a".to_vec(), b"2".to_vec());
    tx.append(b"n".to_vec(), b"before".to_vec());
    let start = tx.savepoint();
    tx.put(b"x".to_vec(), b"8".to_vec());
    tx.put(b"x".to_vec(), b"9".to_vec());
    tx.delete(b"b".to_vec());
    tx.append(b"n".to_vec(), b"after".to_vec());
    let mut seen: Vec<_> = tx.seen().map(|(key, _)| String::from_utf8_lossy(key).into_owned()).collect();
    seen.sort();
    assert_eq!(seen, ["a", "b", "m"]);
    let append = Op::Append { prefix: b"n".to_vec(), value: b"after".to_vec() };
    let expected = [Op::Delete { key: b"b".to_vec() }, put("x", "9"), append];
    assert_eq!(format!("{:?}", tx.written_since(start)), format!("{expected:?}"));
    tx.roll_back(start);
    assert!(tx.written_since(start).is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]
    /// With any writes over any rows, and pages of any length, a range is that of a map with the same writes.
    #[test]
    fn ranges_are_those_of_a_map(
        rows in prop::collection::btree_map(0..20u8, any::<u8>(), 0..12),
        writes in prop::collection::vec((0..20u8, prop::option::of(any::<u8>())), 0..12),
        (from, to, limit) in (0..22u8, 0..22u8, 1..8usize),
    ) {
        let (_dir, path) = room();
        let store = Store::open(&path).unwrap();
        let key = |n: u8| vec![b'k', n];
        store.commit_blocking(ops(rows.iter().map(|(&k, &v)| Op::Put { key: key(k), value: vec![v] }).collect::<Vec<_>>())).unwrap();
        let mut tx = Tx::new(&store);
        let mut model: BTreeMap<Vec<u8>, Vec<u8>> = rows.iter().map(|(&k, &v)| (key(k), vec![v])).collect();
        for (k, value) in writes {
            match value {
                Some(value) => {
                    tx.put(key(k), vec![value]);
                    model.insert(key(k), vec![value]);
                }
                None => {
                    tx.delete(key(k));
                    model.remove(&key(k));
                }
            }
        }
        let expected: Vec<(Bytes, Bytes)> = model.iter()
            .filter(|(k, _)| **k >= key(from) && **k < key(to))
            .map(|(k, v)| (k.clone().into(), v.clone().into()))
            .collect();
        prop_assert_eq!(all(&mut tx, &key(from), &key(to), limit), expected);
    }
}

/// Whoever adds a row where there is room must not be one too many because others do so at the same moment.
#[tokio::test(flavor = "multi_thread")]
async fn a_bound_holds_for_all_who_add_at_once() {
    let (_dir, path) = room();
    let store = Store::open(&path).unwrap();
    const MOST: usize = 20;
    let add = |store: Store, rows: usize| async move {
        let mut added = 0;
        for _ in 0..rows {
            let mut tx = Tx::new(&store);
            // Two in one commit, as far as there is room.
            let fitting = (0..2).filter(|_| {
                let has_room = tx.has_room(b"q", MOST).unwrap();
                if has_room {
                    tx.append(b"q".to_vec(), b"x".to_vec());
                }
                has_room
            });
            let fitting = fitting.count();
            if store.commit(tx.into_commit()).await.is_ok() {
                added += fitting;
            }
            tokio::task::yield_now().await;
        }
        added
    };
    let adding: Vec<_> = (0..8).map(|_| tokio::spawn(add(store.clone(), 30))).collect();
    let mut added = 0;
    for each in adding {
        added += each.await.unwrap();
    }
    let there = store.count(b"q", b"r", usize::MAX).unwrap();
    assert_eq!((there, added), (MOST, MOST));
    let mut tx = Tx::new(&store);
    assert!(!tx.has_room(b"q", MOST).unwrap() && tx.has_room(b"q", MOST + 1).unwrap());
    let mut other = Tx::new(&store);
    assert!(other.has_room(b"q", MOST + 1).unwrap());
    tx.append(b"q".to_vec(), b"x".to_vec());
    other.append(b"q".to_vec(), b"x".to_vec());
    store.commit(tx.into_commit()).await.unwrap();
    assert!(matches!(store.commit(other.into_commit()).await, Err(CommitError::Conflict { .. })));
}

#[test]
fn what_was_peeked_at_is_known_as_it_was_first_where_somebody_wants_to_know() {
    let (_dir, path) = room();
    let store = Store::open(&path).unwrap();
    store.commit_blocking(ops([put("a", "1"), put("b", "1"), put("c", "1")])).unwrap();
    let mut tx = Tx::new(&store);
    tx.peek(b"a").unwrap();
    assert_eq!(tx.peeked(), []);
    tx.keep_peeked();
    tx.put(b"c".to_vec(), b"own".to_vec());
    for key in [b"a", b"b", b"c", b"d"] {
        tx.peek(key).unwrap();
    }
    store.commit_blocking(ops([put("a", "2"), put("d", "2"), delete("b")])).unwrap();
    for key in [b"a", b"b", b"c", b"d"] {
        tx.peek(key).unwrap();
    }
    tx.keep_peeked();
    let rows = tx.peeked().into_iter().map(|(key, value)| (key.into(), value)).collect();
    assert_eq!(texts(rows), "a=1 b=1", "neither its own nor what was not there");
}
