//! The one database: everything that must come true together is one [`Commit`].
//!
//! - A commit is applied whole or not at all, in its place in one order, and only if what it says it has
//!   read is still so. It is visible before it is durable: nothing outside may be told of it before
//!   [`Receipt::durable`] or its `on_durable`. Durability keeps the order: what is durable is a prefix.
//! - One thread checks and applies, another flushes; the next group gathers while the disk works.
//! - Reads are short: one may wait while a batch is written, never for an fsync. Two reads are no snapshot.
//! - When a write or flush fails, the store has stopped for good: every later call answers
//!   [`Error::Failed`] and [`Store::failed`] resolves. What was durable stays so.
//! - Below it is sled 0.34.7; `engine` holds what that needs to keep these promises.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread::{self, Thread};

use bytes::Bytes;
use tokio::sync::oneshot;

use crate::domain::{BotId, PluginName};

mod committer;
mod engine;
mod error;
mod export;
mod layout;
mod read;
pub mod rows;
mod shared;
mod stage;
mod syncer;
#[cfg(test)]
mod tests;
mod tx;
mod usage;

pub use error::{CommitError, Error};
pub use export::Check;
pub use tx::{Held, Page, Savepoint, Tx};
pub use usage::Room;

use committer::{Committer, Request};
use rows::counted::{self, Ledger};
use shared::Shared;
use usage::Usage;

/// Called with the numbers that the commit's `Append`s were given.
pub type OnDurable = Box<dyn FnOnce(&[u64]) + Send>;

/// A handle to the opened store; clones are cheap. When the last one is dropped, what was handed in is still
/// applied and flushed; [`Store::close`] also waits for it.
#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
    requests: mpsc::Sender<Request>,
}

/// What should come true together.
#[derive(Default)]
pub struct Commit {
    /// What must still be as it was read.
    pub reads: Vec<Read>,
    /// Later operations on a key win.
    pub ops: Vec<Op>,
    /// Called on the store's own thread once the commit is durable, in the order of application, before any
    /// waiter wakes. It must not block. Dropped uncalled if the commit is refused or the store fails.
    pub on_durable: Option<OnDurable>,
}

/// Something that was read.
#[derive(Debug, Clone)]
pub enum Read {
    /// One key.
    Value {
        /// Which.
        key: Vec<u8>,
        /// Its value then.
        seen: Option<Bytes>,
    },
    /// A range: also rows that were not there yet count.
    Range {
        /// The first key.
        from: Vec<u8>,
        /// The key after the last.
        to: Vec<u8>,
        /// How many rows were asked for.
        limit: usize,
        /// The rows then.
        seen: Vec<(Bytes, Bytes)>,
    },
    /// That there are no more rows in a range than so many, whichever they are.
    AtMost {
        /// The first key.
        from: Vec<u8>,
        /// The key after the last.
        to: Vec<u8>,
        /// How many rows.
        rows: usize,
    },
}

/// One change. Keys must not be empty, nor begin with a zero byte or `~`.
#[derive(Debug, Clone)]
pub enum Op {
    /// Sets a key.
    Put {
        /// Which.
        key: Vec<u8>,
        /// To what.
        value: Vec<u8>,
    },
    /// Removes a key, if it is there.
    Delete {
        /// Which.
        key: Vec<u8>,
    },
    /// Puts at `prefix` and the next number, 8 bytes, big-endian. Numbers rise in the order of application,
    /// over restarts too, are shared by all prefixes, and leave gaps.
    Append {
        /// The key without its number.
        prefix: Vec<u8>,
        /// The value.
        value: Vec<u8>,
    },
}

/// Proof that a commit was applied, which is not yet to be durable.
pub struct Receipt {
    /// The numbers of its `Append`s, in their order.
    pub numbers: Vec<u64>,
    position: u64,
    shared: Arc<Shared>,
}

impl Receipt {
    /// Resolves once the commit is on the disk.
    ///
    /// # Errors
    /// When the store failed before.
    pub async fn durable(self) -> Result<(), Error> {
        self.shared.until_durable(self.position).await
    }
}

impl std::fmt::Debug for Receipt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Receipt").field("numbers", &self.numbers).field("position", &self.position).finish()
    }
}

/// How far the store has come since it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stats {
    /// Commits that are visible.
    pub applied: u64,
    /// Commits that are on the disk.
    pub durable: u64,
    /// Flushes that made them so.
    pub groups: u64,
    /// Bytes on the disk.
    pub disk_bytes: u64,
}

impl Store {
    /// Opens the store in folder `path`, which is made if it is not there. Blocks for the disk.
    ///
    /// # Errors
    /// When the folder is in use, not a store of ours, damaged, or can't be written.
    pub fn open(path: &Path) -> Result<Store, Error> {
        let engine = engine::open(path)?;
        let data = engine.data_file()?;
        let shared = Arc::new(Shared::new(engine.clone(), Usage::load(&engine)?));
        let (requests, asked) = mpsc::channel();
        let (to_syncer, applied) = mpsc::channel();
        let mut committer = Committer::new(engine.clone(), shared.clone(), asked, to_syncer)?;
        let ending = shared.clone();
        let committer = spawn(path, "store-commit", move || watched(&ending, || committer.run()))?;
        let ending = shared.clone();
        spawn(path, "store-sync", move || {
            watched(&ending, || syncer::run(&engine, &data, &ending, &applied, &committer));
            ending.stop_reads(&Error::Closed);
            engine.release(&data);
            ending.set_end(Error::Closed);
        })?;
        Ok(Store { shared, requests })
    }

    /// The value of a key.
    ///
    /// # Errors
    /// When the store failed or the disk can't be read.
    pub fn get(&self, key: &[u8]) -> Result<Option<Bytes>, Error> {
        self.shared.read(|reader| reader.get(key))
    }

    /// How long the value of a key is.
    ///
    /// # Errors
    /// When the store failed or the disk can't be read.
    pub fn length(&self, key: &[u8]) -> Result<Option<u64>, Error> {
        self.shared.read(|reader| reader.length(key))
    }

    /// Bytes of all that a plugin keeps for a bot, keys included.
    #[must_use]
    pub fn kept(&self, bot: BotId, plugin: &PluginName) -> u64 {
        self.used(Ledger::Kept, bot, plugin)
    }

    /// How much a plugin has of something for a bot.
    #[must_use]
    pub fn used(&self, of: Ledger, bot: BotId, plugin: &PluginName) -> u64 {
        self.shared.usage.kept(&counted::key(of, bot, plugin))
    }

    /// The same of all plugins that have had some since the store was opened.
    #[must_use]
    pub fn used_by_all(&self, of: Ledger, bot: BotId) -> Vec<(PluginName, u64)> {
        let of_bot = |(key, used): (Vec<u8>, u64)| Some((counted::plugin_of(&key, of, bot)?, used));
        self.shared.usage.all().into_iter().filter_map(of_bot).collect()
    }

    /// What the plugin is going to have beyond that: nothing at first.
    #[must_use]
    pub fn room(&self, of: Ledger, bot: BotId, plugin: &PluginName) -> Room {
        self.shared.usage.room(counted::key(of, bot, plugin))
    }

    /// The rows with keys in `[from, to)`, ascending, at most `limit`.
    ///
    /// # Errors
    /// When the store failed or the disk can't be read.
    pub fn range(&self, from: &[u8], to: &[u8], limit: usize) -> Result<Vec<(Bytes, Bytes)>, Error> {
        self.shared.read(|reader| reader.range(from, to, limit))
    }

    /// The rows whose keys begin with `prefix`, ascending, at most `limit`.
    ///
    /// # Errors
    /// When the store failed or the disk can't be read.
    pub fn scan_prefix(&self, prefix: &[u8], limit: usize) -> Result<Vec<(Bytes, Bytes)>, Error> {
        self.range(prefix, &rows::prefix_end(prefix), limit)
    }

    /// How many rows there are with keys in `[from, to)`; no more than `most` are counted.
    ///
    /// # Errors
    /// When the store failed or the disk can't be read.
    pub fn count(&self, from: &[u8], to: &[u8], most: usize) -> Result<usize, Error> {
        self.shared.read(|reader| reader.count(from, to, most))
    }

    /// The first key in `[from, to)`.
    ///
    /// # Errors
    /// When the store failed or the disk can't be read.
    pub fn first_key(&self, from: &[u8], to: &[u8]) -> Result<Option<Bytes>, Error> {
        self.shared.read(|reader| reader.first_key(from, to))
    }

    /// The last key in `[from, to)`.
    ///
    /// # Errors
    /// When the store failed or the disk can't be read.
    pub fn last_key(&self, from: &[u8], to: &[u8]) -> Result<Option<Bytes>, Error> {
        self.shared.read(|reader| reader.last_key(from, to))
    }

    /// Hands a commit in at once, in the order of the calls; resolves when it is applied, that is, visible to
    /// readers. Dropping the future does not take it back.
    ///
    /// # Errors
    /// When something that it read has changed, or the store failed.
    pub fn commit(&self, commit: Commit) -> impl Future<Output = Result<Receipt, CommitError>> + Send + use<> {
        let answer = self.hand_in(commit);
        let shared = self.shared.clone();
        async move {
            match answer.await {
                Ok(answer) => answer,
                Err(_) => Err(shared.ended().await.into()),
            }
        }
    }

    /// The same for a thread that may block.
    ///
    /// # Errors
    /// As [`Store::commit`].
    pub fn commit_blocking(&self, commit: Commit) -> Result<Receipt, CommitError> {
        let answer = self.hand_in(commit).blocking_recv();
        answer.unwrap_or_else(|_| Err(self.shared.end().unwrap_or(Error::Closed).into()))
    }

    /// Hands in a commit that nobody waits for. It is refused silently if it has reads and they changed; a
    /// failure of the store shows in [`Store::failed`].
    pub fn submit(&self, commit: Commit) {
        drop(self.hand_in(commit));
    }

    fn hand_in(&self, commit: Commit) -> oneshot::Receiver<Result<Receipt, CommitError>> {
        debug_assert!(
            commit.ops.iter().all(|op| match op {
                Op::Put { key, .. } | Op::Delete { key } | Op::Append { prefix: key, .. } => !layout::is_reserved(key),
            }),
            "the first bytes 0 and `~` are the store's own"
        );
        let (answer, answered) = oneshot::channel();
        // When the committer is gone, the answer is dropped with the request, which says so.
        self.requests.send(Request::Commit(commit, answer)).ok();
        answered
    }

    /// Resolves once everything applied so far is on the disk.
    ///
    /// # Errors
    /// When the store failed before.
    pub async fn flushed(&self) -> Result<(), Error> {
        self.shared.until_durable(self.shared.applied()).await
    }

    /// Resolves when the store has failed; never, if it is well or closed.
    pub async fn failed(&self) -> Error {
        match self.shared.ended().await {
            Error::Closed => std::future::pending().await,
            error => error,
        }
    }

    /// Applies and flushes what was handed in, stops the threads and releases the lock.
    ///
    /// # Errors
    /// When the store had failed, or fails now.
    pub async fn close(&self) -> Result<(), Error> {
        self.requests.send(Request::Close).ok();
        match self.shared.ended().await {
            Error::Closed => Ok(()),
            error => Err(error),
        }
    }

    /// How far it has come.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let applied = self.shared.applied();
        let (durable, groups) = self.shared.durable();
        let disk_bytes = self.shared.with_engine(|engine| Ok(engine.db.size_on_disk().unwrap_or(0)));
        Stats { applied, durable, groups, disk_bytes: disk_bytes.unwrap_or(0) }
    }
}

fn spawn(path: &Path, name: &str, body: impl FnOnce() + Send + 'static) -> Result<Thread, Error> {
    let spawned = thread::Builder::new().name(name.to_owned()).spawn(body);
    Ok(spawned.map_err(|error| Error::io(path, error))?.thread().clone())
}

/// Stops the store when one of its threads fails. What the thread owns is dropped after that, so that those
/// whose answers go with it find the reason.
fn watched(shared: &Shared, body: impl FnOnce() -> Result<(), Error>) {
    let cause = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => return,
        Ok(Err(failed @ (Error::Failed { .. } | Error::Closed))) => failed,
        Ok(Err(error)) => Error::Failed { cause: Arc::new(error) },
        Err(panic) => Error::Failed { cause: Arc::new(Error::Panicked(engine::panic_text(panic.as_ref()))) },
    };
    let text = cause.to_string();
    if shared.set_end(cause) {
        tracing::error!(reason = %text, "the store has stopped");
    }
}
