//! What files hold, on disk: for calls that are still to be made, and for downloads while they are read.
//!
//! - A content lies under its SHA-256, once, however many calls carry it. It is on the disk before anybody can commit a
//!   call that needs it ([`Draft::keep`]), and goes when no row of the store and no [`Pin`] needs it any more.
//! - Nothing of it is ever whole in memory.
//! - What a killed process has left half done is removed at the start, and so is what no row needs.
//! - A file that can't be removed is tried again at the next start.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use crate::store::Store;
use crate::store::rows::file::{self, Hash};

mod draft;
mod fetched;
mod limit;
#[cfg(test)]
mod tests;

pub use draft::{Draft, Scratch};
pub use fetched::Fetched;
pub use limit::ServerLimits;

/// Why the folder can't be used.
#[derive(Debug, thiserror::Error)]
#[error("the folder for files, {}, can't be used ({source}); it must be writable and have room", path.display())]
pub struct Error {
    /// The folder.
    pub path: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

/// The folder of files. Clones are cheap and share it.
#[derive(Clone)]
pub struct Files {
    shelf: Arc<Shelf>,
    /// Contents that may not be needed any more.
    doubtful: mpsc::Sender<Hash>,
    limits: ServerLimits,
    local_folder: Option<Arc<Path>>,
}

struct Shelf {
    folder: PathBuf,
    /// How often a content is in use by what is not in the store.
    pins: Mutex<HashMap<Hash, usize>>,
    next: AtomicU64,
}

/// Keeps a content while it lives.
pub struct Pin {
    hash: Hash,
    shelf: Arc<Shelf>,
    doubtful: mpsc::Sender<Hash>,
}

impl Drop for Pin {
    fn drop(&mut self) {
        let mut pins = self.shelf.pins();
        if let Some(count) = pins.get_mut(&self.hash) {
            *count -= 1;
            if *count == 0 {
                pins.remove(&self.hash);
                // When nobody listens the host stops, and the next start looks.
                self.doubtful.send(self.hash).ok();
            }
        }
    }
}

impl Shelf {
    fn pins(&self) -> std::sync::MutexGuard<'_, HashMap<Hash, usize>> {
        self.pins.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn path(&self, hash: &Hash) -> PathBuf {
        self.folder.join(hex(hash))
    }

    /// Removes a content that nobody needs.
    fn tidy(&self, store: &Store, hash: &Hash) {
        // Under the lock: who wants the content now waits, and makes it anew.
        let pins = self.pins();
        if pins.contains_key(hash) || is_needed(store, hash) {
            return;
        }
        match fs::remove_file(self.path(hash)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(%error, folder = %self.folder.display(), "a file that is done with can't be removed");
            }
            _ => {}
        }
    }
}

impl Files {
    /// Opens the folder, which is made if it is not there, and removes what is left of earlier times. To be called
    /// once for a store that was just opened; blocks.
    ///
    /// # Errors
    /// When the folder can't be made or read.
    pub fn open(folder: &Path, store: &Store, limits: ServerLimits) -> Result<Self, Error> {
        let failed = |source| Error { path: folder.to_owned(), source };
        fs::create_dir_all(folder).map_err(failed)?;
        for entry in fs::read_dir(folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            let left = match name.to_str().map(|name| (name, unhex(name))) {
                Some((_, Some(hash))) => !is_needed(store, &hash),
                Some((name, None)) => name.starts_with(draft::PREFIX),
                None => false,
            };
            if left {
                fs::remove_file(entry.path()).map_err(failed)?;
            }
        }
        let shelf = Arc::new(Shelf { folder: folder.to_owned(), pins: Mutex::default(), next: AtomicU64::new(0) });
        let (doubtful, doubts) = mpsc::channel();
        let (tidied, store) = (shelf.clone(), store.clone());
        let tidy = move || {
            while let Ok(hash) = doubts.recv() {
                tidied.tidy(&store, &hash);
            }
        };
        std::thread::Builder::new().name("files".to_owned()).spawn(tidy).map_err(failed)?;
        Ok(Self { shelf, doubtful, limits, local_folder: None })
    }

    /// The same folder for a bot at this server, whose own files are read from below `local_folder`.
    #[must_use]
    pub fn at(self, limits: ServerLimits, local_folder: Option<&Path>) -> Self {
        Self { limits, local_folder: local_folder.map(Arc::from), ..self }
    }

    /// The folder of a local Bot API server.
    #[must_use]
    pub fn local_folder(&self) -> Option<&Path> {
        self.local_folder.as_deref()
    }

    /// Begins a file.
    ///
    /// # Errors
    /// As the system says.
    pub fn draft(&self) -> io::Result<Draft> {
        Ok(Draft::new(self.clone(), self.scratch()?))
    }

    /// A file without a name of its own, which goes when it is dropped.
    ///
    /// # Errors
    /// As the system says.
    pub fn scratch(&self) -> io::Result<Scratch> {
        let number = self.shelf.next.fetch_add(1, Ordering::Relaxed);
        Scratch::create(self.shelf.folder.join(format!("{}{number}", draft::PREFIX)))
    }

    /// Where a content lies.
    #[must_use]
    pub fn path(&self, hash: &Hash) -> PathBuf {
        self.shelf.path(hash)
    }

    /// Keeps a content from now on.
    #[must_use]
    pub fn pin(&self, hash: &Hash) -> Pin {
        *self.shelf.pins().entry(*hash).or_default() += 1;
        Pin { hash: *hash, shelf: self.shelf.clone(), doubtful: self.doubtful.clone() }
    }

    /// Rows that needed these contents are gone, durably.
    pub fn let_go(&self, hashes: impl IntoIterator<Item = Hash>) {
        for hash in hashes {
            // As in `Pin::drop`.
            self.doubtful.send(hash).ok();
        }
    }

    /// What the server takes and gives.
    #[must_use]
    pub fn limits(&self) -> &ServerLimits {
        &self.limits
    }

    /// Puts a finished file in its place, durably.
    fn place(&self, scratch: &Scratch, hash: &Hash, size: u64) -> io::Result<()> {
        let path = self.path(hash);
        if fs::metadata(&path).is_ok_and(|there| there.len() == size) {
            // Somebody else may have put it there this moment, and not have come to the folder yet.
            return sync(&self.shelf.folder);
        }
        scratch.file().sync_all()?;
        fs::rename(scratch.path(), &path)?;
        sync(&self.shelf.folder)
    }
}

fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// True as well when the store can't tell: the next start looks again.
fn is_needed(store: &Store, hash: &Hash) -> bool {
    !store.scan_prefix(&file::references(hash), 1).is_ok_and(|rows| rows.is_empty())
}

fn hex(hash: &Hash) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Hash> {
    let mut hash = Hash::default();
    if text.len() != 2 * hash.len() {
        return None;
    }
    for (byte, pair) in hash.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(hash)
}
