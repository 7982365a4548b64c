//! The store when its process or its power goes: what was called durable is there, every commit is whole, and
//! what survived is a prefix.
//!
//! The test binary starts itself as the process that dies; [`the_child`] is its way in. Power losses are
//! simulated: see `power_loss/shim.c`.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "helpers of tests, and real processes that take real time"
)]

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use botyard::domain::{BotId, PluginName};
use botyard::store::{Commit, Error, Op, Store, Tx, rows};
use rand::Rng;

const BOT: BotId = BotId(42);
const WRITERS: u8 = 4;
/// How many of its values a writer leaves.
const KEPT: u64 = 5;

#[test]
fn the_child() {
    let Ok(role) = std::env::var("STORE_CHILD_ROLE") else { return };
    let path = PathBuf::from(std::env::var_os("STORE_CHILD_PATH").unwrap());
    let size = std::env::var("STORE_CHILD_VALUE").map_or(100, |size| size.parse().unwrap());
    let store = Store::open(&path).unwrap();
    say("open");
    if role == "open" {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let writers: Vec<_> = (0..WRITERS).map(|writer| write(&store, writer, size)).collect();
        let failed = futures_util::future::join_all(writers).await;
        assert_eq!(failed.len(), usize::from(WRITERS));
        say(&format!("failed {}", store.failed().await));
    });
}

/// Straight to the pipe, which outlives the process.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("\n@{line}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

fn last_key(writer: u8) -> Vec<u8> {
    vec![b'l', writer]
}

/// One of a plugin's values, of which it is counted how much they are.
fn value_key(writer: u8, n: u64) -> Vec<u8> {
    rows::kv::key(BOT, &keeper(writer), rows::kv::Scope::Plugin, &format!("{n:020}"))
}

fn keeper(writer: u8) -> PluginName {
    PluginName::new(&format!("writer-{writer}"))
}

fn value(writer: u8, n: u64, size: usize) -> Vec<u8> {
    // Every seventh is cut into chunks.
    let size = if n.is_multiple_of(7) { 150_000 } else { size };
    let mut value = n.to_be_bytes().repeat(size.div_ceil(8));
    value.push(writer);
    value
}

/// Counts, until the store fails. One commit: the count, a value, an older value removed, a row appended.
async fn write(store: &Store, writer: u8, size: usize) {
    loop {
        let mut tx = Tx::new(store);
        let Ok(last) = tx.get(&last_key(writer)) else { return };
        let n = last.map_or(0, |last| u64::from_be_bytes(last.as_ref().try_into().unwrap())) + 1;
        tx.put(last_key(writer), n.to_be_bytes().to_vec());
        tx.put(value_key(writer, n), value(writer, n, size));
        tx.delete(value_key(writer, n.saturating_sub(KEPT)));
        tx.append(vec![b'q', writer], n.to_be_bytes().to_vec());
        let mut commit = tx.into_commit();
        commit.on_durable = Some(Box::new(move |_| say(&format!("durable {writer} {n}"))));
        let Ok(receipt) = store.commit(commit).await else { return };
        if receipt.durable().await.is_err() {
            return;
        }
    }
}

/// Checks everything that the writers promise, and that nothing durable is missing.
fn verify(path: &Path, size: usize, durable: &BTreeMap<u8, u64>) {
    let store = Store::open(path).unwrap();
    assert_eq!(store.check().unwrap().problems, Vec::<String>::new());
    let mut highest = 0;
    for writer in 0..WRITERS {
        let last = store.get(&last_key(writer)).unwrap();
        let last = last.map_or(0, |last| u64::from_be_bytes(last.as_ref().try_into().unwrap()));
        let promised = durable.get(&writer).copied().unwrap_or(0);
        assert!(last >= promised, "writer {writer}: {promised} was durable, {last} is there");

        let values = store.scan_prefix(&rows::kv::plugin_prefix(BOT, &keeper(writer)), usize::MAX).unwrap();
        let expected = (1..=last).skip(last.saturating_sub(KEPT) as usize);
        let expected = expected.map(|n| (value_key(writer, n).into(), value(writer, n, size).into()));
        assert!(
            values.into_iter().eq(expected),
            "writer {writer}: not the values of one moment, {last} being the last"
        );

        let appended = store.scan_prefix(&[b'q', writer], usize::MAX).unwrap();
        assert!(appended.iter().map(|(_, n)| n.to_vec()).eq((1..=last).map(|n| n.to_be_bytes().to_vec())));
        highest = highest.max(appended.last().and_then(|(key, _)| rows::number_of(key)).unwrap_or(0));
    }
    let append = Op::Append { prefix: b"after".to_vec(), value: Vec::new() };
    let receipt = store.commit_blocking(Commit { ops: vec![append], ..Commit::default() }).unwrap();
    assert!(receipt.numbers[0] > highest, "a number was given twice");
    close(&store);
}

fn close(store: &Store) {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(store.close()).unwrap();
}

/// A child and what it says.
struct Dying {
    child: Child,
    says: mpsc::Receiver<String>,
}

impl Dying {
    fn start(mut command: Command) -> Dying {
        command.args(["the_child", "--exact", "--nocapture", "--test-threads=1"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (said, says) = mpsc::channel();
        std::thread::spawn(move || {
            lines.map_while(Result::ok).filter_map(|line| Some(line.strip_prefix('@')?.to_owned())).for_each(|line| {
                said.send(line).ok();
            });
        });
        Dying { child, says }
    }

    fn until_open(&self) {
        assert_eq!(self.says.recv_timeout(Duration::from_secs(30)).as_deref(), Ok("open"));
    }

    /// Kills it after a while, unless it ends before. The rest of what it said.
    fn kill_after(mut self, milliseconds: Range<u64>) -> Vec<String> {
        std::thread::sleep(Duration::from_millis(rand::rng().random_range(milliseconds)));
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.says.iter().collect()
    }
}

fn child(role: &str, path: &Path, size: usize) -> Command {
    with_environment(Command::new(std::env::current_exe().unwrap()), role, path, size)
}

fn with_environment(mut command: Command, role: &str, path: &Path, size: usize) -> Command {
    command.env("STORE_CHILD_ROLE", role).env("STORE_CHILD_PATH", path).env("STORE_CHILD_VALUE", size.to_string());
    command
}

/// The last number of each writer that was called durable.
fn durable(said: &[String]) -> BTreeMap<u8, u64> {
    let durable = said.iter().filter_map(|line| line.strip_prefix("durable ")?.split_once(' '));
    durable.map(|(writer, n)| (writer.parse().unwrap(), n.parse().unwrap())).collect()
}

#[test]
fn killed_while_writing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data");
    let mut n_durable = 0;
    for _ in 0..10 {
        let writer = Dying::start(child("write", &path, 100));
        writer.until_open();
        let said = durable(&writer.kill_after(20..250));
        n_durable += said.len();
        verify(&path, 100, &said);
    }
    assert!(n_durable > 0, "it must have got to writing");
}

#[test]
fn killed_while_opening() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data");
    let mut last = BTreeMap::new();
    for _ in 0..10 {
        // Something to recover, without which opening writes nothing.
        let writer = Dying::start(child("write", &path, 100));
        writer.until_open();
        last = durable(&writer.kill_after(30..60));
        Dying::start(child("open", &path, 100)).kill_after(2..30);
    }
    verify(&path, 100, &last);
}

#[test]
fn another_process_is_told_that_it_is_locked() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data");
    let writer = Dying::start(child("write", &path, 100));
    writer.until_open();
    assert!(matches!(Store::open(&path), Err(Error::Locked { .. })));
    let said = durable(&writer.kill_after(0..10));
    verify(&path, 100, &said);
}

#[test]
fn a_full_disk_stops_the_store_and_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data");
    // Files may grow to 20 MiB, counted in blocks of 512 bytes.
    let limited = "trap '' XFSZ; ulimit -f 40960; exec \"$0\" \"$@\"";
    let mut command = Command::new("sh");
    command.arg("-c").arg(limited).arg(std::env::current_exe().unwrap());
    let mut writer = Dying::start(with_environment(command, "write", &path, 20_000));
    writer.until_open();
    let said: Vec<String> = writer.says.iter().collect();
    assert!(writer.child.wait().unwrap().success(), "it must have ended by itself");
    let failed = said.last().unwrap();
    assert!(failed.starts_with("failed the store has stopped") && failed.contains("is full"), "{failed}");
    let durable = durable(&said);
    assert_eq!(durable.len(), usize::from(WRITERS));
    verify(&path, 20_000, &durable);
}

fn power_is_lost(size: usize) {
    let dir = tempfile::tempdir().unwrap();
    let shim = dir.path().join("shim.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/power_loss/shim.c");
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&shim).arg(source).args(["-ldl", "-lpthread"]);
    assert!(cc.status().unwrap().success());
    let (path, disk) = (dir.path().join("data"), dir.path().join("disk"));
    let mut n_durable = 0;
    for _ in 0..4 {
        let mut command = child("write", &path, size);
        command.env("LD_PRELOAD", &shim).env("POWER_LOSS_FOLDER", &path).env("POWER_LOSS_DISK", &disk);
        let writer = Dying::start(command);
        writer.until_open();
        let said = durable(&writer.kill_after(100..700));
        n_durable += said.len();
        // What is on the disk is all there is.
        fs::remove_dir_all(&path).unwrap();
        copy_folder(&disk, &path);
        verify(&path, size, &said);
        fs::remove_dir_all(&disk).unwrap();
        fs::remove_dir_all(dir.path().join("disk.inodes")).unwrap();
        copy_folder(&path, &disk);
    }
    assert!(n_durable > 0, "it must have got to writing");
}

#[test]
fn power_is_lost_with_small_values() {
    power_is_lost(100);
}

#[test]
fn power_is_lost_with_values_of_20_kilobytes() {
    power_is_lost(20_000);
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (from, to) = {
            let entry = entry.unwrap();
            (entry.path(), to.join(entry.file_name()))
        };
        if from.is_dir() {
            copy_folder(&from, &to);
        } else if from.extension().is_none_or(|extension| extension != "shim") {
            fs::copy(from, to).unwrap();
        }
    }
}
