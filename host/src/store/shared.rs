//! What the handles and the two threads know of each other: how far the store has come, and whether it ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use tokio::sync::watch;

use super::Error;
use super::engine::Engine;
use super::read::Reader;
use super::usage::Usage;

pub(super) struct Shared {
    pub(super) usage: Usage,
    state: ArcSwap<State>,
    applied: AtomicU64,
    progress: watch::Sender<Progress>,
}

enum State {
    Open(Engine),
    Ended(Error),
}

#[derive(Default)]
struct Progress {
    durable: u64,
    groups: u64,
    end: Option<Error>,
}

impl Shared {
    pub(super) fn new(engine: Engine, usage: Usage) -> Shared {
        Shared {
            usage,
            state: ArcSwap::from_pointee(State::Open(engine)),
            applied: AtomicU64::new(0),
            progress: watch::Sender::default(),
        }
    }

    pub(super) fn with_engine<T>(&self, f: impl FnOnce(&Engine) -> Result<T, Error>) -> Result<T, Error> {
        match &**self.state.load() {
            State::Open(engine) => f(engine),
            State::Ended(error) => Err(error.clone()),
        }
    }

    pub(super) fn read<T>(&self, f: impl FnOnce(Reader<'_>) -> Result<T, Error>) -> Result<T, Error> {
        self.with_engine(|engine| f(engine.reader()))
    }

    pub(super) fn applied(&self) -> u64 {
        self.applied.load(Ordering::Acquire)
    }

    pub(super) fn set_applied(&self, applied: u64) {
        self.applied.store(applied, Ordering::Release);
    }

    pub(super) fn set_durable(&self, durable: u64) {
        self.progress.send_modify(|progress| {
            progress.durable = durable;
            progress.groups += 1;
        });
    }

    /// How many commits are durable, and in how many groups.
    pub(super) fn durable(&self) -> (u64, u64) {
        let progress = self.progress.borrow();
        (progress.durable, progress.groups)
    }

    pub(super) async fn until_durable(&self, position: u64) -> Result<(), Error> {
        let mut progress = self.progress.subscribe();
        let reached = progress.wait_for(|progress| progress.durable >= position || progress.end.is_some()).await;
        match reached.as_deref() {
            Ok(Progress { durable, .. }) if *durable >= position => Ok(()),
            Ok(Progress { end: Some(error), .. }) => Err(error.clone()),
            // The sender lives in `self`, and the condition leaves no third case.
            _ => Err(Error::Closed),
        }
    }

    /// Nobody reads the database from here on. Only the first call counts.
    pub(super) fn stop_reads(&self, error: &Error) {
        if self.with_engine(|_| Ok(())).is_ok() {
            self.state.store(Arc::new(State::Ended(error.clone())));
        }
    }

    /// Stops everything; only the first call counts. Returns whether it was the first.
    pub(super) fn set_end(&self, error: Error) -> bool {
        self.stop_reads(&error);
        self.progress.send_if_modified(|progress| {
            let first = progress.end.is_none();
            if first {
                progress.end = Some(error);
            }
            first
        })
    }

    pub(super) fn end(&self) -> Option<Error> {
        self.progress.borrow().end.clone()
    }

    /// Why the store ended, once it has.
    pub(super) async fn ended(&self) -> Error {
        let mut progress = self.progress.subscribe();
        let ended = progress.wait_for(|progress| progress.end.is_some()).await;
        ended.ok().and_then(|progress| progress.end.clone()).unwrap_or(Error::Closed)
    }
}
