//! When a file that changes has settled. Pure: given the time and what `stat` says.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

use tokio::time::Instant;

/// A file that nobody has touched for so long has settled.
pub(super) const QUIET: Duration = Duration::from_millis(200);

/// After so long it is worth saying that a file does not settle. An empty file has settled only then: most are
/// truncated in order to be written.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);

/// What tells two states of a file apart without reading it: a rename shows in the inode, a write in the times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Signature {
    pub(super) inode: (u64, u64),
    pub(super) length: u64,
    pub(super) modified: (i64, i64),
    pub(super) changed: (i64, i64),
}

impl Signature {
    /// None for what is no file.
    pub(super) fn of(metadata: &Metadata) -> Option<Self> {
        metadata.is_file().then(|| Self {
            inode: (metadata.dev(), metadata.ino()),
            length: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        })
    }
}

/// What to do after a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Nothing (yet).
    Wait,
    /// Nothing yet, and it has been long. Said once for a change.
    Late,
    /// It has settled: read it.
    Read,
    /// It is gone and has stayed so. Said once.
    Vanished,
}

/// One file's way from a change to rest.
#[derive(Debug)]
pub(super) struct Settling {
    signature: Option<Signature>,
    change: Option<Change>,
}

#[derive(Debug, Clone, Copy)]
struct Change {
    began: Instant,
    last: Instant,
    is_late: bool,
}

impl Settling {
    pub(super) fn new(signature: Option<Signature>) -> Self {
        Self { signature, change: None }
    }

    /// As last observed.
    pub(super) fn signature(&self) -> Option<Signature> {
        self.signature
    }

    pub(super) fn is_settling(&self) -> bool {
        self.change.is_some()
    }

    pub(super) fn observe(&mut self, now: Instant, signature: Option<Signature>) -> Next {
        if signature != self.signature {
            self.signature = signature;
            let began = self.change.map_or(now, |change| change.began);
            let is_late = self.change.is_some_and(|change| change.is_late);
            self.change = Some(Change { began, last: now, is_late });
        }
        let Some(change) = &mut self.change else { return Next::Wait };
        let is_empty = signature.is_some_and(|signature| signature.length == 0);
        let quiet = if is_empty { PATIENCE } else { QUIET };
        if now - change.last >= quiet {
            self.change = None;
            return if signature.is_some() { Next::Read } else { Next::Vanished };
        }
        if now - change.began >= PATIENCE && !change.is_late {
            change.is_late = true;
            return Next::Late;
        }
        Next::Wait
    }
}
