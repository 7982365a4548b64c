//! Notices when a plugin file or `bot.toml` has really changed.
//!
//! It tells which path holds other content than before, once that content has settled; loading and swapping are the
//! app's. The system's file events only say when to look: what counts is what `stat` and the content say, so an
//! event that is lost, doubled or never sent (network folders, some containers) costs at most the time to the next
//! look. Folders are watched rather than files, since a file that is replaced by renaming is another file. A file
//! that vanishes is not told of: the old version goes on serving; a warning says so. One that can't be read is told of once,
//! so that whoever wants it says so, and again when it can. A path may be that of a folder: its content is that of the
//! files in it.

mod folders;
mod settle;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use tokio::io::AsyncReadExt as _;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::{Instant, sleep_until};

use folders::Folders;
use settle::{Next, Settling, Signature, files_in};

/// How often a file that is changing is looked at, and the least time between two looks at all.
const SHORT: Duration = Duration::from_millis(50);

/// How often all files are looked at when no event says so.
const LONG: Duration = Duration::from_secs(2);

type Hash = [u8; 32];

struct File {
    settling: Settling,
    /// The content that was last told of, or was there at the beginning.
    told: Option<Hash>,
    /// It could not be read, and that was told.
    is_unreadable: bool,
}

/// Looks after files from the moment it is begun; what it finds is told once it runs.
pub struct Watcher {
    paths: watch::Receiver<Vec<PathBuf>>,
    files: Files,
    woken: Arc<Notify>,
}

impl Watcher {
    /// Begins: a change after this is told of, also one before [`run`](Self::run). The list may change at any time: what is
    /// there already when its path is added later is told of too, since nobody knows whether it was loaded before that.
    pub async fn begin(paths: watch::Receiver<Vec<PathBuf>>, changed: mpsc::Sender<PathBuf>) -> Self {
        let woken = Arc::new(Notify::new());
        let folders = Folders::new(Arc::clone(&woken));
        Self::begin_with(paths, changed, folders, woken).await
    }

    async fn begin_with(
        mut paths: watch::Receiver<Vec<PathBuf>>,
        changed: mpsc::Sender<PathBuf>,
        folders: Folders,
        woken: Arc<Notify>,
    ) -> Self {
        let mut files = Files { files: BTreeMap::new(), folders, changed };
        let listed = paths.borrow_and_update().clone();
        files.follow(listed, true).await;
        Self { paths, files, woken }
    }

    /// Sends each path whose content has changed and settled, until told to stop or nobody listens any more.
    pub async fn run(self, mut stop: watch::Receiver<bool>) {
        tokio::select! {
            // First, and around everything: whoever is told of changes may be busy, or waiting for us to end.
            biased;
            _ = stop.wait_for(|stop| *stop) => {}
            () = self.keep_watching() => {}
        }
    }

    async fn keep_watching(mut self) {
        // Something may have changed since it was begun.
        let mut last_look = Instant::now();
        let mut looked = self.files.look().await;
        while looked.is_ok() {
            let wait = if self.files.is_settling() { SHORT } else { LONG };
            let event = async {
                self.woken.notified().await;
                sleep_until(last_look + SHORT).await;
            };
            tokio::select! {
                listed = self.paths.changed() => {
                    if listed.is_err() {
                        return;
                    }
                    let listed = self.paths.borrow_and_update().clone();
                    self.files.follow(listed, false).await;
                }
                () = event => {}
                () = sleep_until(last_look + wait) => {}
            }
            last_look = Instant::now();
            looked = self.files.look().await;
        }
    }
}

/// Nobody takes the changes any more.
struct NobodyListens;

struct Files {
    files: BTreeMap<PathBuf, File>,
    folders: Folders,
    changed: mpsc::Sender<PathBuf>,
}

impl Files {
    /// `is_known`: whoever asks loads what is there now.
    async fn follow(&mut self, paths: Vec<PathBuf>, is_known: bool) {
        self.files.retain(|path, _| paths.contains(path));
        // Events first: what happens from here on is not missed.
        self.folders.watch(&paths);
        for path in paths {
            if self.files.contains_key(&path) {
                continue;
            }
            let signature = signature(&path).filter(|_| is_known);
            let told = if signature.is_some() { read_hash(&path).await.ok() } else { None };
            self.files.insert(path, File { settling: Settling::new(signature), told, is_unreadable: false });
        }
    }

    fn is_settling(&self) -> bool {
        self.files.values().any(|file| file.settling.is_settling())
    }

    async fn look(&mut self) -> Result<(), NobodyListens> {
        self.folders.watch(self.files.keys());
        let mut settled = Vec::new();
        for (path, file) in &mut self.files {
            match file.settling.observe(Instant::now(), signature(path)) {
                Next::Wait => {}
                Next::Late => tracing::debug!(path = %path.display(), "file keeps changing, waiting for it to settle"),
                Next::Vanished => {
                    tracing::warn!(path = %path.display(), "file is gone, what was loaded from it stays in use");
                }
                Next::Read => settled.push(path.clone()),
            }
        }
        for path in settled {
            self.read(path).await?;
        }
        Ok(())
    }

    async fn read(&mut self, path: PathBuf) -> Result<(), NobodyListens> {
        let hash = read_hash(&path).await;
        let Some(file) = self.files.get_mut(&path) else { return Ok(()) };
        if signature(&path) != file.settling.signature() {
            // It changed under our hands; the next look finds that out and begins anew.
            return Ok(());
        }
        match hash {
            Ok(hash) if file.told == Some(hash) && !file.is_unreadable => {}
            Ok(hash) => {
                (file.told, file.is_unreadable) = (Some(hash), false);
                tracing::debug!(path = %path.display(), "file has changed");
                return self.changed.send(path).await.map_err(|_| NobodyListens);
            }
            Err(error) => {
                // Nothing of it may change when it can be read again.
                file.settling.look_again(Instant::now() + LONG);
                if !std::mem::replace(&mut file.is_unreadable, true) {
                    tracing::warn!(path = %path.display(), %error, "changed file can't be read; it is tried again");
                    return self.changed.send(path).await.map_err(|_| NobodyListens);
                }
            }
        }
        Ok(())
    }
}

/// A look at a file on a stuck network folder blocks this task's thread: the price of looking at all of them cheaply.
fn signature(path: &Path) -> Option<Signature> {
    let metadata = std::fs::metadata(path).ok()?;
    if metadata.is_dir() { Signature::of_folder(path) } else { Signature::of(&metadata) }
}

async fn read_hash(path: &Path) -> std::io::Result<Hash> {
    let mut hash = Sha256::new();
    if path.is_dir() {
        for file in files_in(path) {
            hash.update(file.as_os_str().as_encoded_bytes());
            hash.update([0]);
            read_into(&file, &mut hash).await?;
        }
    } else {
        read_into(path, &mut hash).await?;
    }
    Ok(hash.finalize().into())
}

/// Piece by piece, however large the file is.
async fn read_into(path: &Path, hash: &mut Sha256) -> std::io::Result<()> {
    let mut file = tokio::fs::File::open(path).await?;
    let mut piece = vec![0; 256 << 10];
    loop {
        match file.read(&mut piece).await? {
            0 => return Ok(()),
            n => hash.update(piece.get(..n).unwrap_or_default()),
        }
    }
}
