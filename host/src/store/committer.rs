//! The thread that owns writing: checks what a commit has read, then applies it.
//!
//! Commits that wait together go into one sled batch of about a hundred operations, a commit never over two. While
//! the disk is busy with earlier ones, a batch gathers for a moment: none of it could be durable any sooner, and
//! sled's price is per batch. A commit that has read what the gathered batch would write is checked after that
//! batch is applied, so checking needs to look at nothing but the database. Any failure stops the store for good.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender};
use std::thread;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::engine::Engine;
use super::read::Reader;
use super::rows::counted::{self, Counted};
use super::shared::Shared;
use super::stage::Stage;
use super::syncer::Applied;
use super::usage::{Changes, Usage};
use super::{Commit, CommitError, Error, OnDurable, Op, Read, Receipt};

/// sled's price is per batch, but it keeps what large batches leave behind for long: at ten times as many, memory
/// grows without end.
const OPERATIONS_PER_BATCH: usize = 128;
const BYTES_PER_BATCH: usize = 1 << 20;
/// How long a batch may gather. Its commits are not visible before that, so whatever waits for them does too.
const GATHER: Duration = Duration::from_millis(1);

/// What the committer is asked.
pub(super) enum Request {
    Commit(Commit, oneshot::Sender<Result<Receipt, CommitError>>),
    /// Apply nothing from when `paused` is sent to until `resume` is dropped.
    Pause {
        paused: SyncSender<()>,
        resume: Receiver<()>,
    },
    Close,
}

pub(super) struct Committer {
    engine: Engine,
    shared: Arc<Shared>,
    requests: Receiver<Request>,
    syncer: Sender<Applied>,
    stage: Stage,
    usage: Usage,
    staged: Vec<Staged>,
    /// How many commits were applied.
    applied: u64,
}

/// A commit whose operations are in the stage.
struct Staged {
    numbers: Vec<u64>,
    on_durable: Option<OnDurable>,
    answer: oneshot::Sender<Result<Receipt, CommitError>>,
}

impl Committer {
    pub(super) fn new(
        engine: Engine,
        shared: Arc<Shared>,
        requests: Receiver<Request>,
        syncer: Sender<Applied>,
    ) -> Result<Committer, Error> {
        let stage = Stage::load(engine.reader())?;
        let usage = shared.usage.clone();
        Ok(Committer { engine, shared, requests, syncer, stage, usage, staged: Vec::new(), applied: 0 })
    }

    /// Until it is told to close or every handle is gone.
    pub(super) fn run(&mut self) -> Result<(), Error> {
        while let Ok(request) = self.requests.recv() {
            self.let_gather();
            let mut next = Some(request);
            while let Some(request) = next {
                match request {
                    Request::Commit(commit, answer) => self.take(commit, answer)?,
                    Request::Pause { paused, resume } => {
                        self.apply()?;
                        if paused.send(()).is_ok() {
                            // Nothing is ever sent: it ends when the other side is dropped.
                            resume.recv().ok();
                        }
                    }
                    Request::Close => return self.apply(),
                }
                next = if self.is_full() { None } else { self.requests.try_recv().ok() };
            }
            self.apply()?;
        }
        Ok(())
    }

    /// Waits a moment if the disk is busy, until it is not; the syncer unparks this thread then. Nobody who hands in
    /// a commit meanwhile has to wake it.
    fn let_gather(&self) {
        let until = Instant::now() + GATHER;
        while self.shared.durable().0 < self.applied && self.shared.end().is_none() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            thread::park_timeout(left);
        }
    }

    fn is_full(&self) -> bool {
        self.stage.n_rows() >= OPERATIONS_PER_BATCH || self.stage.n_bytes() >= BYTES_PER_BATCH
    }

    fn take(&mut self, commit: Commit, answer: oneshot::Sender<Result<Receipt, CommitError>>) -> Result<(), Error> {
        if commit.reads.iter().any(|read| self.is_staged(read)) {
            self.apply()?;
        }
        for read in &commit.reads {
            if let Some(key) = changed(self.engine.reader(), read)? {
                // Whoever does not wait for the answer does not need it.
                answer.send(Err(CommitError::Conflict { key })).ok();
                return Ok(());
            }
        }
        let (mut numbers, mut changes) = (Vec::new(), Changes::new());
        for op in commit.ops {
            match op {
                Op::Put { key, value } => {
                    self.weigh(&key, Some(&value), true, &mut changes)?;
                    self.stage.put(key, value);
                }
                Op::Delete { key } => {
                    self.weigh(&key, None, true, &mut changes)?;
                    self.stage.delete(key);
                }
                Op::Append { prefix, value } => {
                    let number = self.stage.number();
                    let key = [&prefix[..], &number.to_be_bytes()].concat();
                    self.weigh(&key, Some(&value), false, &mut changes)?;
                    self.stage.put(key, value);
                    numbers.push(number);
                }
            }
        }
        // All at once: what only changes its place is never seen to be gone.
        for (count, amount) in self.usage.change(changes) {
            self.stage.own(count, amount);
        }
        self.staged.push(Staged { numbers, on_durable: commit.on_durable, answer });
        Ok(())
    }

    /// Counts what somebody has, before it changes. Where a number was chosen just now, there is nothing old.
    fn weigh(&self, key: &[u8], new: Option<&[u8]>, may_be_there: bool, changes: &mut Changes) -> Result<(), Error> {
        if counted::is_counted(key.first()).is_none() {
            return Ok(());
        }
        let old = match self.stage.start(key) {
            _ if !may_be_there => None,
            Some(old) => old.and_then(|(length, start)| counted::of(key, length, start)),
            // What can't be read was not counted either.
            None => match self.engine.reader().raw(key)? {
                Some(row) => {
                    self.engine.reader().start(key, &row)?.and_then(|(length, start)| counted::of(key, length, &start))
                }
                None => None,
            },
        };
        let new = new.and_then(|value| counted::of(key, value.len() as u64, counted::start(value)));
        if old == new {
            return Ok(());
        }
        for (count, amount) in old.iter().flat_map(Counted::amounts) {
            changes.entry(count).or_default().0 += amount;
        }
        for (count, amount) in new.iter().flat_map(Counted::amounts) {
            changes.entry(count).or_default().1 += amount;
        }
        Ok(())
    }

    fn is_staged(&self, read: &Read) -> bool {
        match read {
            Read::Value { key, .. } => self.stage.holds(key),
            Read::Range { from, to, .. } | Read::AtMost { from, to, .. } => self.stage.holds_any(from, to),
        }
    }

    fn apply(&mut self) -> Result<(), Error> {
        // Set when the syncer has failed.
        if let Some(end) = self.shared.end() {
            return Err(end);
        }
        if let Some(batch) = self.stage.take() {
            self.engine.apply(batch)?;
        }
        if self.staged.is_empty() {
            return Ok(());
        }
        let mut callbacks = Vec::new();
        let mut answers = Vec::with_capacity(self.staged.len());
        for staged in self.staged.drain(..) {
            self.applied += 1;
            if let Some(on_durable) = staged.on_durable {
                callbacks.push((on_durable, staged.numbers.clone()));
            }
            answers.push((staged.answer, staged.numbers, self.applied));
        }
        self.shared.set_applied(self.applied);
        metrics::counter!("botyard_store_commits_total", "state" => "applied").absolute(self.applied);
        // The syncer leaves first only when it has failed just now.
        if self.syncer.send(Applied { up_to: self.applied, callbacks }).is_err() {
            return Err(self.shared.end().unwrap_or(Error::Closed));
        }
        for (answer, numbers, position) in answers {
            answer.send(Ok(Receipt { numbers, position, shared: self.shared.clone() })).ok();
        }
        Ok(())
    }
}

/// The first key that is not as it was read.
fn changed(reader: Reader<'_>, read: &Read) -> Result<Option<Vec<u8>>, Error> {
    match read {
        Read::Value { key, seen } => Ok((reader.get(key)? != *seen).then(|| key.clone())),
        Read::Range { from, to, limit, seen } => {
            let now = reader.range(from, to, *limit)?;
            let same = seen.iter().zip(&now).take_while(|(seen, now)| seen == now).count();
            let differing = [seen.get(same), now.get(same)].into_iter().flatten().map(|(key, _)| key);
            Ok(differing.min().map(|key| key.to_vec()))
        }
        Read::AtMost { from, to, rows } => Ok((reader.count(from, to, rows + 1)? > *rows).then(|| from.clone())),
    }
}
