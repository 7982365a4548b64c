use std::time::Duration;

use super::*;
use crate::domain::BotId;
use crate::store::rows::file::Attached;
use crate::store::{Commit, Op};

const BOT: BotId = BotId(1);

struct Bench {
    folder: tempfile::TempDir,
    store: Store,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("data")).unwrap();
        Self { folder, store }
    }

    fn open(&self) -> Files {
        Files::open(&self.folder.path().join("data.files"), &self.store, ServerLimits::default()).unwrap()
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path().join("data.files")).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    async fn until_empty(&self) {
        for _ in 0..500 {
            if self.names().is_empty() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        panic!("there is still {:?}", self.names());
    }
}

fn make(files: &Files, content: &[u8]) -> (Hash, Pin) {
    let mut draft = files.draft().unwrap();
    content.chunks(3).for_each(|chunk| draft.write(chunk).unwrap());
    draft.keep().unwrap()
}

fn attached(hash: Hash, number: u64) -> Attached {
    Attached { id: "a".into(), hash, size: 7, name: "a".into(), content_type: "text/plain".into(), number }
}

#[tokio::test]
async fn a_content_is_there_once_and_goes_with_the_last_who_needs_it() {
    let bench = Bench::new();
    let files = bench.open();
    let (hash, first) = make(&files, b"content");
    let (same, second) = make(&files, b"content");
    assert_eq!(hash, same);
    assert_eq!(bench.names(), [hex(&hash)]);
    assert_eq!(fs::read(files.path(&hash)).unwrap(), b"content");
    let rows = [attached(hash, 1), attached(hash, 2)].map(|file| file::reference(BOT, &file));
    let ops = rows.iter().map(|key| Op::Put { key: key.clone(), value: Vec::new() }).collect();
    bench.store.commit(Commit { ops, ..Commit::default() }).await.unwrap();
    drop((first, second));
    for key in rows {
        files.let_go([hash]);
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert_eq!(bench.names().len(), 1, "a row needs it");
        bench.store.commit(Commit { ops: vec![Op::Delete { key }], ..Commit::default() }).await.unwrap();
    }
    files.let_go([hash]);
    bench.until_empty().await;
}

#[tokio::test]
async fn what_is_not_finished_or_not_committed_leaves_nothing() {
    let bench = Bench::new();
    let files = bench.open();
    let mut draft = files.draft().unwrap();
    draft.write(b"half").unwrap();
    assert_eq!(bench.names().len(), 1);
    drop(draft);
    assert!(bench.names().is_empty());
    drop(make(&files, b"never committed"));
    bench.until_empty().await;
}

#[tokio::test]
async fn a_start_removes_what_a_killed_process_left_and_keeps_what_is_needed() {
    let bench = Bench::new();
    let files = bench.open();
    let (needed, pin) = make(&files, b"needed");
    let (left, other) = make(&files, b"left");
    let key = file::reference(BOT, &attached(needed, 1));
    let ops = vec![Op::Put { key, value: Vec::new() }];
    bench.store.commit(Commit { ops, ..Commit::default() }).await.unwrap();
    let draft = files.draft().unwrap();
    // As a kill would: nothing is dropped.
    std::mem::forget((pin, other, draft));
    assert_eq!(bench.names().len(), 3);
    fs::write(bench.folder.path().join("data.files/notes.txt"), "the operator's").unwrap();
    drop(bench.open());
    let mut names = bench.names();
    names.sort();
    assert_eq!(names, [hex(&needed), "notes.txt".to_owned()]);
    assert_ne!(needed, left);
}
