//! When a file that changes has settled. Pure: given the time and what `stat` says.

use std::fs::Metadata;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::Instant;

/// A file that nobody has touched for so long has settled.
pub(super) const QUIET: Duration = Duration::from_millis(200);

/// After so long it is worth saying that a file does not settle. An empty file has settled only then: most are
/// truncated in order to be written.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);

/// What tells two states of a file apart without reading it: a rename shows in the inode, a write in the times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Signature {
    pub(super) inode: (u64, u64),
    pub(super) length: u64,
    pub(super) modified: (i64, i64),
    pub(super) changed: (i64, i64),
}

impl Signature {
    /// Of a folder: what stands in it.
    pub(super) fn of_folder(folder: &Path) -> Option<Self> {
        let metadata = std::fs::metadata(folder).ok()?;
        let mut all = DefaultHasher::new();
        let mut any_empty = false;
        for path in files_in(folder) {
            let file = Self::of(&std::fs::metadata(&path).ok()?);
            any_empty |= file.is_some_and(|file| file.length == 0);
            (path, file).hash(&mut all);
        }
        let inode = (metadata.dev(), metadata.ino());
        Some(Self { inode, length: u64::from(!any_empty), modified: (all.finish().cast_signed(), 0), changed: (0, 0) })
    }

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

/// The files of a folder, in order; those that begin with a dot are tools' own.
pub(super) fn files_in(folder: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let is_shown = |file: &std::fs::DirEntry| !file.file_name().as_encoded_bytes().starts_with(b".");
    let mut files: Vec<_> = files.filter(is_shown).map(|file| file.path()).filter(|path| path.is_file()).collect();
    files.sort();
    files
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

    /// What has settled could not be read: it is looked at again after a while.
    pub(super) fn look_again(&mut self, at: Instant) {
        self.change = Some(Change { began: at, last: at, is_late: true });
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
        if now >= change.last + quiet {
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
