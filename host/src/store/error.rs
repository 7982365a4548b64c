//! Why the store refused or stopped.
//!
//! Every text is for the operator: it names the folder, the cause and the mend.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why the store can't be opened, read or written.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The path is there, but it is not a folder.
    #[error("the store {} is a file; `store.path` must name a folder", path.display())]
    NotAFolder {
        /// The store's path.
        path: PathBuf,
    },
    /// The folder holds something that is not a store of ours.
    #[error("{} is not a botyard store ({found}); nothing was changed, let `store.path` name an empty folder", path.display())]
    Foreign {
        /// The store's path.
        path: PathBuf,
        /// What was found there.
        found: String,
    },
    /// Another process has it open.
    #[error("the store {} is in use by a running host; stop that host first", path.display())]
    Locked {
        /// The store's path.
        path: PathBuf,
    },
    /// It can be read at best.
    #[error("the store {} can't be written ({source}); give this user write access to the folder", path.display())]
    ReadOnly {
        /// The store's path.
        path: PathBuf,
        /// What the system said.
        source: Arc<io::Error>,
    },
    /// There is no room left.
    #[error("the disk of the store {} is full ({source}); free some space, then start again", path.display())]
    DiskFull {
        /// The store's path.
        path: PathBuf,
        /// What the system said.
        source: Arc<io::Error>,
    },
    /// Written by another version.
    #[error(
        "the store {} has format {found}, this version reads format {expected}; \
         export it with the version that wrote it and `botyard store import` the file", path.display()
    )]
    OtherFormat {
        /// The store's path.
        path: PathBuf,
        /// Its format.
        found: String,
        /// Ours.
        expected: String,
    },
    /// The bytes on the disk are not what was written.
    #[error(
        "the store {} is corrupt ({detail}); move the folder away and bring back the last export with \
         `botyard store import`", path.display()
    )]
    Corrupt {
        /// The store's path.
        path: PathBuf,
        /// What was found.
        detail: String,
    },
    /// Any other failure of the file system.
    #[error("the store {} can't be used: {source}", path.display())]
    Io {
        /// The store's path.
        path: PathBuf,
        /// What the system said.
        source: Arc<io::Error>,
    },
    /// A write or its flush failed, so nobody knows what is on the disk: the store stopped for good.
    #[error("the store has stopped, because a write failed: {cause}")]
    Failed {
        /// The failure.
        cause: Arc<Error>,
    },
    /// A thread of the store panicked.
    #[error("the store has a bug: {0}")]
    Panicked(String),
    /// It was closed.
    #[error("the store is closed")]
    Closed,
    /// An import needs an empty place.
    #[error("{} is not empty; an import needs a new folder, so move this one away first", path.display())]
    NotEmpty {
        /// The store's path.
        path: PathBuf,
    },
    /// An export could not be written.
    #[error("the export can't be written: {source}")]
    ExportNotWritten {
        /// What the system said.
        source: Arc<io::Error>,
    },
    /// A line of an export can't be read.
    #[error("line {line} of the export can't be read: {problem}")]
    BadExport {
        /// Counted from 1.
        line: u64,
        /// What is wrong with it.
        problem: String,
    },
}

impl Error {
    pub(super) fn io(path: &Path, source: io::Error) -> Error {
        let (path, source) = (path.to_path_buf(), Arc::new(source));
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                Error::DiskFull { path, source }
            }
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Error::ReadOnly { path, source },
            io::ErrorKind::NotADirectory => Error::NotAFolder { path },
            _ => Error::Io { path, source },
        }
    }

    pub(super) fn sled(path: &Path, error: sled::Error) -> Error {
        match error {
            // sled reports a held lock as text only.
            sled::Error::Io(source) if source.to_string().contains("could not acquire lock") => {
                Error::Locked { path: path.to_path_buf() }
            }
            // sled copies an error of its writing threads as text, without the system's number.
            sled::Error::Io(source) => Error::io(path, source),
            sled::Error::Unsupported(found) => Error::OtherFormat {
                path: path.to_path_buf(),
                found: format!("of another database version ({found})"),
                expected: super::layout::FORMAT.to_string(),
            },
            other => Error::corrupt(path, other.to_string()),
        }
    }

    pub(super) fn corrupt(path: &Path, detail: impl Into<String>) -> Error {
        Error::Corrupt { path: path.to_path_buf(), detail: detail.into() }
    }
}

/// Why a commit did not take place.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CommitError {
    /// Something that it had read has changed since.
    #[error("what was read has changed since, first at key {}", key.escape_ascii())]
    Conflict {
        /// The first key that is not as it was read.
        key: Vec<u8>,
    },
    /// The store failed or is closed.
    #[error(transparent)]
    Store(#[from] Error),
}
