//! Files that grow: written piece by piece, and gone when they are dropped before they are kept.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::{Files, Pin};
use crate::store::rows::file::Hash;

/// Names of what is not kept begin so; no content's does.
pub(super) const PREFIX: &str = "unfinished-";

/// A file that goes when this is dropped.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    file: File,
}

impl Scratch {
    pub(super) fn create(path: PathBuf) -> io::Result<Self> {
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&path)?;
        Ok(Self { path, file })
    }

    /// The opened file.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // It has another name if it was kept, and the next start removes what stays.
        fs::remove_file(&self.path).ok();
    }
}

/// A content under construction.
pub struct Draft {
    files: Files,
    scratch: Scratch,
    hash: Sha256,
    size: u64,
}

impl Draft {
    pub(super) fn new(files: Files, scratch: Scratch) -> Self {
        Self { files, scratch, hash: Sha256::new(), size: 0 }
    }

    /// Adds to its end. Blocks for the disk.
    ///
    /// # Errors
    /// As the system says; the draft is of no use then.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.scratch.file().write_all(bytes)?;
        self.hash.update(bytes);
        self.size += bytes.len() as u64;
        Ok(())
    }

    /// Bytes so far.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Ends it: the content is on the disk when this returns, and stays as long as the pin does. Blocks for the disk.
    ///
    /// # Errors
    /// As the system says.
    pub fn keep(self) -> io::Result<(Hash, Pin)> {
        let hash = self.hash.finalize().into();
        // First: nobody takes it away any more.
        let pin = self.files.pin(&hash);
        self.files.place(&self.scratch, &hash, self.size)?;
        Ok((hash, pin))
    }
}
