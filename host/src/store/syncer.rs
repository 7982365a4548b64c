//! The thread that makes durable what the committer has applied.
//!
//! One fsync covers everything that was applied when it began; what comes meanwhile is the next group. After
//! it, the callbacks run in the order of application, then the waiters wake. A failed flush or fsync is never
//! tried again: the system may already have forgotten the pages that it could not write.

use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread::Thread;

use super::engine::Engine;
use super::shared::Shared;
use super::{Error, OnDurable};

/// Commits that are in the database and not yet known to be on the disk.
pub(super) struct Applied {
    /// The position of the last of them.
    pub(super) up_to: u64,
    /// With the numbers that each is called with.
    pub(super) callbacks: Vec<(OnDurable, Vec<u64>)>,
}

/// Until the committer is gone.
pub(super) fn run(
    engine: &Engine,
    data: &std::fs::File,
    shared: &Arc<Shared>,
    applied: &Receiver<Applied>,
    committer: &Thread,
) -> Result<(), Error> {
    while let Ok(first) = applied.recv() {
        let group: Vec<Applied> = std::iter::once(first).chain(applied.try_iter()).collect();
        let up_to = group.last().map_or(0, |last| last.up_to);
        engine.flush(data)?;
        for (callback, numbers) in group.into_iter().flat_map(|applied| applied.callbacks) {
            callback(&numbers);
        }
        shared.set_durable(up_to);
        committer.unpark();
        metrics::counter!("botyard_store_commits_total", "state" => "durable").absolute(up_to);
    }
    Ok(())
}
