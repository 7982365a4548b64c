//! Random commits against a `BTreeMap`, with reopening.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

#[derive(Debug, Clone)]
enum Step {
    /// Commits that are handed in together.
    Commits(Vec<Vec<Change>>),
    /// What is read, of the model as it is or as it is not, and a change.
    Checked {
        from: u8,
        to: u8,
        limit: usize,
        stale: bool,
        change: Change,
    },
    Reopen,
}

#[derive(Debug, Clone)]
enum Change {
    Put(u8, Vec<u8>),
    Delete(u8),
    Append(u8),
}

fn key(n: u8) -> Vec<u8> {
    // Keys on either side of the chunks', keys that begin like others, and such of which it is counted how much is kept.
    let prefix: &[u8] = [&b"s12345678a\0"[..], b"k12345678a\0b", b"\x7f", b"}"][usize::from(n % 4)];
    [prefix, &[n]].concat()
}

fn change() -> impl Strategy<Value = Change> {
    let value = prop_oneof![
        4 => prop::collection::vec(any::<u8>(), 0..300),
        1 => (any::<u8>(), 65_000..200_000usize).prop_map(|(byte, length)| vec![byte; length]),
    ];
    prop_oneof![
        4 => (0..24u8, value).prop_map(|(key, value)| Change::Put(key, value)),
        2 => (0..24u8).prop_map(Change::Delete),
        1 => (0..4u8).prop_map(Change::Append),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let commits = prop::collection::vec(prop::collection::vec(change(), 0..8), 1..6);
    prop_oneof![
        6 => commits.prop_map(Step::Commits),
        3 => (0..24u8, 0..24u8, 0..6usize, any::<bool>(), change()).prop_map(|(from, to, limit, stale, change)| {
            Step::Checked { from, to, limit, stale, change }
        }),
        1 => Just(Step::Reopen),
    ]
}

fn op(change: &Change) -> Op {
    match change {
        Change::Put(n, value) => Op::Put { key: key(*n), value: value.clone() },
        Change::Delete(n) => Op::Delete { key: key(*n) },
        Change::Append(n) => Op::Append { prefix: key(*n), value: vec![*n] },
    }
}

fn apply(model: &mut Model, changes: &[Change], receipt: &Receipt, last: &mut u64) {
    let mut numbers = receipt.numbers.iter();
    for change in changes {
        match change {
            Change::Put(n, value) => {
                model.insert(key(*n), value.clone());
            }
            Change::Delete(n) => {
                model.remove(&key(*n));
            }
            Change::Append(n) => {
                let number = *numbers.next().expect("one number for each append");
                assert!(number > *last);
                *last = number;
                model.insert([&key(*n)[..], &number.to_be_bytes()].concat(), vec![*n]);
            }
        }
    }
    assert!(numbers.next().is_none());
}

fn slice(model: &Model, from: &[u8], to: &[u8], limit: usize) -> Vec<(Bytes, Bytes)> {
    let rows = model.iter().filter(|(key, _)| key.as_slice() >= from && key.as_slice() < to);
    rows.take(limit).map(|(key, value)| (Bytes::copy_from_slice(key), Bytes::copy_from_slice(value))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn the_store_is_a_map(steps in prop::collection::vec(step(), 1..24)) {
        let (_dir, path) = room();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let mut store = Store::open(&path).unwrap();
        let mut model = Model::new();
        let mut last = 0;
        for step in steps {
            match step {
                Step::Commits(commits) => {
                    let receipts: Vec<_> =
                        commits.iter().map(|changes| store.commit(ops(changes.iter().map(op).collect::<Vec<_>>()))).collect();
                    for (changes, receipt) in commits.iter().zip(receipts) {
                        apply(&mut model, changes, &runtime.block_on(receipt).unwrap(), &mut last);
                    }
                }
                Step::Checked { from, to, limit, stale, change } => {
                    let (from, to) = (key(from), key(to));
                    let mut seen = slice(&model, &from, &to, limit);
                    prop_assert_eq!(&store.range(&from, &to, limit).unwrap(), &seen);
                    let value = model.get(&from).map(|value| Bytes::copy_from_slice(value));
                    prop_assert_eq!(&store.get(&from).unwrap(), &value);
                    if stale {
                        // One row less than there is, or one more.
                        if seen.pop().is_none() {
                            seen.push((from.clone().into(), Bytes::new()));
                        }
                    }
                    let reads = vec![
                        Read::Value { key: from.clone(), seen: value },
                        Read::Range { from, to, limit, seen },
                    ];
                    let result = store.commit_blocking(Commit { reads, ops: vec![op(&change)], on_durable: None });
                    match result {
                        Ok(receipt) => {
                            prop_assert!(!stale);
                            apply(&mut model, &[change], &receipt, &mut last);
                        }
                        Err(CommitError::Conflict { .. }) => prop_assert!(stale),
                        Err(error) => panic!("{error}"),
                    }
                }
                Step::Reopen => {
                    runtime.block_on(within(store.close())).unwrap();
                    store = Store::open(&path).unwrap();
                }
            }
        }
        prop_assert_eq!(store.range(b"", &[0xff], usize::MAX).unwrap(), slice(&model, b"", &[0xff], usize::MAX));
        prop_assert_eq!(store.first_key(b"", &[0xff]).unwrap(), model.keys().next().cloned().map(Bytes::from));
        prop_assert_eq!(store.last_key(b"", &[0xff]).unwrap(), model.keys().next_back().cloned().map(Bytes::from));
        prop_assert_eq!(store.check().unwrap().problems, Vec::<String>::new());
        runtime.block_on(within(store.close())).unwrap();
    }
}
