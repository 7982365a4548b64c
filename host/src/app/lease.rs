//! Who runs on a store: one host, and it can be found.
//!
//! A file beside the store, `NAME.lease`, is locked for as long as a host runs, and says who that is. The lock is the
//! system's, so a host that was killed holds nothing. The file itself stays; without a lock on it, it means nothing.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::clock::{unix_millis, utc};

/// How often it is looked whether the other host is gone.
const AGAIN: Duration = Duration::from_millis(3);

/// Who holds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Its process.
    pub pid: u32,
    /// Which start of the machine the process is of.
    pub boot: String,
    /// Where it can be asked.
    pub admin: Option<SocketAddr>,
    /// Unix milliseconds since when.
    pub since: u64,
}

/// Why the lease is not to be had.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another host runs.
    #[error(
        "the store {} is in use by a running host{}; stop that host first, or take its place: \
         botyard run --replace", store.display(), holder.as_ref().map(Holder::words).unwrap_or_default()
    )]
    Held {
        /// The store.
        store: PathBuf,
        /// Who, if it can be read.
        holder: Option<Holder>,
    },
    /// The file can't be used.
    #[error("{} can't be used ({source}); it must be writable: hosts find each other by it", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl Holder {
    /// For people: which process, where it answers, and since when.
    #[must_use]
    pub fn words(&self) -> String {
        let machine = if self.boot == boot() { "" } else { " on another machine" };
        let admin =
            self.admin.map_or_else(|| "no admin address yet".to_owned(), |admin| format!("admin address {admin}"));
        format!(" (process {}{machine}, {admin}, since {} UTC)", self.pid, utc(self.since))
    }
}

/// Held until it is dropped.
#[derive(Debug)]
pub(super) struct Lease {
    file: File,
    path: PathBuf,
    holder: Holder,
}

impl Lease {
    /// Takes it.
    ///
    /// # Errors
    /// When another host has it.
    pub(super) fn take(store: &Path) -> Result<Self, Error> {
        let path = file_of(store);
        let failed = |source| Error::File { path: path.clone(), source };
        fs::create_dir_all(path.parent().unwrap_or(Path::new("."))).map_err(failed)?;
        let open = File::options().read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = open.map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                // What is just being written can't be read, and that is no reason for another error.
                let holder = file.read_to_string(&mut text).ok().and_then(|_| serde_json::from_str(&text).ok());
                return Err(Error::Held { store: store.to_owned(), holder });
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let holder = Holder { pid: std::process::id(), boot: boot(), admin: None, since: unix_millis() };
        let mut lease = Self { file, path: path.clone(), holder };
        lease.write()?;
        Ok(lease)
    }

    /// Takes it as soon as it is free.
    ///
    /// # Errors
    /// When it is not within this time.
    pub(super) async fn wait(store: &Path, patience: Duration) -> Result<Self, Error> {
        let deadline = Instant::now() + patience;
        loop {
            match Self::take(store) {
                Err(Error::Held { .. }) if Instant::now() < deadline => tokio::time::sleep(AGAIN).await,
                taken => return taken,
            }
        }
    }

    /// Where this host can be asked from now on.
    ///
    /// # Errors
    /// When it can't be written.
    pub(super) fn answers_at(&mut self, admin: SocketAddr) -> Result<(), Error> {
        self.holder.admin = Some(admin);
        self.write()
    }

    fn write(&mut self) -> Result<(), Error> {
        let text = serde_json::to_vec(&self.holder).expect("plain data becomes JSON");
        let file = &mut self.file;
        let written = file.rewind().and_then(|()| file.write_all(&text)).and_then(|()| file.set_len(text.len() as u64));
        written.map_err(|source| Error::File { path: self.path.clone(), source })
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // Closing alone would leave the lock with a process that is being forked at this moment.
        self.file.set_len(0).and_then(|()| self.file.unlock()).unwrap_or_default();
    }
}

fn file_of(store: &Path) -> PathBuf {
    let mut name = store.file_name().unwrap_or_default().to_owned();
    name.push(".lease");
    store.with_file_name(name)
}

fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|id| id.trim().to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_host_has_it_and_the_other_is_told_who() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("new").join("data");
        let mut lease = Lease::take(&store).unwrap();
        lease.answers_at(SocketAddr::from(([127, 0, 0, 1], 8088))).unwrap();
        let error = Lease::take(&store).unwrap_err();
        let Error::Held { holder: Some(holder), .. } = &error else { panic!("{error}") };
        assert_eq!(*holder, lease.holder);
        let text = error.to_string();
        for part in [&std::process::id().to_string(), "127.0.0.1:8088", " UTC", "--replace"] {
            assert!(text.contains(part), "{text}");
        }
        assert!(!text.contains("another machine"), "{text}");
        drop(lease);
        let lease = Lease::take(&store).unwrap();
        assert_eq!(lease.holder.admin, None, "nothing is left of who was there before");
    }

    #[tokio::test]
    async fn it_is_had_as_soon_as_it_is_free() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("data");
        let lease = Lease::take(&store).unwrap();
        assert!(matches!(Lease::wait(&store, Duration::from_millis(10)).await, Err(Error::Held { .. })));
        let (waited, ()) = tokio::join!(Lease::wait(&store, Duration::from_secs(30)), async { drop(lease) });
        waited.unwrap();
    }
}
