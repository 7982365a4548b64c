//! Opens sled, with the care that it needs.
//!
//! - Looks before it writes: a folder with somebody else's files is refused and left as it is.
//! - Under the lock of the data file, removes half-written snapshots, which sled would take for whole ones,
//!   and syncs what a killed process has written: sled is about to make a snapshot of it.
//! - `flush` is not an fsync, so [`Engine::flush`] adds one. Segments are large, so that a page never goes
//!   into one of the files that sled does not sync at all.
//! - Opens on a thread of its own: sled panics on some kinds of damage.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use super::Error;
use super::layout::{self, FORMAT, FORMAT_KEY};
use super::read::Reader;

/// Written into the store when it is made; sled refuses to open it with another.
const SEGMENT_SIZE: usize = 8 << 20;
/// Counted in bytes on disk; in memory it is a multiple.
const CACHE: u64 = 32 << 20;
/// How long a process that is going away may still hold the lock.
const LOCK_PATIENCE: Duration = Duration::from_secs(1);

/// The opened database.
#[derive(Clone)]
pub(super) struct Engine {
    pub(super) db: sled::Db,
    pub(super) path: PathBuf,
}

impl Engine {
    pub(super) fn reader(&self) -> Reader<'_> {
        Reader { db: &self.db, path: &self.path }
    }

    /// Syncs the data file after sled has written to it. Opened once, because the system reports a failed
    /// write-back to those who had the file open at that time.
    pub(super) fn data_file(&self) -> Result<File, Error> {
        File::open(self.path.join("db")).map_err(|error| Error::io(&self.path, error))
    }

    pub(super) fn flush(&self, data: &File) -> Result<(), Error> {
        self.db.flush().map_err(|error| Error::sled(&self.path, error))?;
        data.sync_data().map_err(|error| Error::io(&self.path, error))
    }

    pub(super) fn apply(&self, batch: sled::Batch) -> Result<(), Error> {
        self.db.apply_batch(batch).map_err(|error| Error::sled(&self.path, error))
    }

    /// Drops the database and waits until its background threads have let go of the lock.
    pub(super) fn release(self, data: &File) {
        drop(self.db);
        if lock(data, Duration::from_secs(5)).is_ok()
            && let Err(error) = data.unlock()
        {
            tracing::warn!(%error, "the lock of the store can't be released");
        }
    }
}

pub(super) fn open(path: &Path) -> Result<Engine, Error> {
    let io = |error| Error::io(path, error);
    look(path)?;
    fs::create_dir_all(path).map_err(io)?;
    if path.join("db").exists() {
        clean(path)?;
    }
    let engine = Engine { db: open_sled(path)?, path: path.to_path_buf() };
    let format = engine.reader().raw(FORMAT_KEY)?;
    match format {
        Some(format) if format == FORMAT.to_string().as_bytes() => Ok(engine),
        Some(format) => Err(Error::OtherFormat {
            path: path.to_path_buf(),
            found: String::from_utf8_lossy(&format).into_owned(),
            expected: FORMAT.to_string(),
        }),
        None => create(engine),
    }
}

/// Refuses what is not ours, before anything is written.
fn look(path: &Path) -> Result<(), Error> {
    match fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Error::io(path, error)),
        Ok(metadata) if !metadata.is_dir() => return Err(Error::NotAFolder { path: path.to_path_buf() }),
        Ok(_) => {}
    }
    let has_data = fs::metadata(path.join("db")).is_ok_and(|data| data.len() > 0);
    if has_data && path.join("conf").exists() {
        return Ok(());
    }
    // A store that is being made, by a process that was killed, has a part of these and no data yet.
    let ours = |name: &str| matches!(name, "db" | "conf" | "blobs" | "lost+found") || name.starts_with("snap.");
    for entry in fs::read_dir(path).map_err(|error| Error::io(path, error))? {
        let name = entry.map_err(|error| Error::io(path, error))?.file_name();
        let name = name.to_string_lossy();
        if has_data || !ours(&name) {
            return Err(Error::Foreign { path: path.to_path_buf(), found: format!("it holds `{name}`") });
        }
    }
    Ok(())
}

/// Under the lock, so that no other host is at work, and lets go of it for sled to take.
fn clean(path: &Path) -> Result<(), Error> {
    let io = |error| Error::io(path, error);
    let data = File::open(path.join("db")).map_err(io)?;
    lock(&data, LOCK_PATIENCE).map_err(|error| match error {
        TryLockError::WouldBlock => Error::Locked { path: path.to_path_buf() },
        TryLockError::Error(error) => io(error),
    })?;
    let cleaned = data.sync_data().and_then(|()| remove_unfinished_snapshots(path));
    // Closing alone would leave the lock with a process that is being forked at this moment.
    data.unlock().and(cleaned).map_err(io)
}

fn remove_unfinished_snapshots(path: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with("snap.") && (name.ends_with(".generating") || name.contains(".tmp")) {
            tracing::info!(file = %name, "removed a half-written snapshot");
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

#[allow(clippy::disallowed_methods, reason = "runs on threads of its own, where there is no runtime to wait with")]
fn lock(data: &File, patience: Duration) -> Result<(), TryLockError> {
    const PAUSE: Duration = Duration::from_millis(5);
    let mut waited = Duration::ZERO;
    loop {
        match data.try_lock() {
            Err(TryLockError::WouldBlock) if waited < patience => {
                thread::sleep(PAUSE);
                waited += PAUSE;
            }
            done => return done,
        }
    }
}

fn open_sled(path: &Path) -> Result<sled::Db, Error> {
    let config = sled::Config::new().path(path).segment_size(SEGMENT_SIZE).cache_capacity(CACHE);
    let opening = thread::Builder::new()
        .name("store-open".to_owned())
        .spawn(move || config.open())
        .map_err(|error| Error::io(path, error))?;
    match opening.join() {
        Ok(opened) => opened.map_err(|error| Error::sled(path, error)),
        Err(panic) => Err(Error::corrupt(path, panic_text(panic.as_ref()))),
    }
}

/// Marks a new database as ours, once its files are sure to be there after a power loss.
fn create(engine: Engine) -> Result<Engine, Error> {
    let path = &engine.path;
    let foreign = |found: &str| Err(Error::Foreign { path: path.clone(), found: found.to_owned() });
    if engine.db.tree_names().len() > 1 || !engine.db.is_empty() {
        return foreign("it is a sled database of another program");
    }
    let io = |error| Error::io(path, error);
    File::open(path.join("conf")).and_then(|conf| conf.sync_all()).map_err(io)?;
    sync_folder(&path.join("blobs"))?;
    sync_folder(path)?;
    sync_folder(parent(path))?;
    let mut batch = sled::Batch::default();
    batch.insert(FORMAT_KEY, FORMAT.to_string().as_bytes());
    engine.apply(batch)?;
    engine.flush(&engine.data_file()?)?;
    Ok(engine)
}

pub(super) fn sync_folder(path: &Path) -> Result<(), Error> {
    File::open(path).and_then(|folder| folder.sync_all()).map_err(|error| Error::io(path, error))
}

pub(super) fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

pub(super) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without a text").to_owned()
}

const _: () = assert!(layout::CHUNK_SIZE * 17 < SEGMENT_SIZE / 4, "a full page of chunks must stay in its segment");
