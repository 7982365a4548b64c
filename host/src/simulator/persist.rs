//! Keeps the world in a file: saved a moment after something has changed, and at the end; whole or not at all.
//!
//! A file that can't be read is an error that says how to go on; nothing is ever overwritten because of it. After
//! a kill the last moment may be missing; update ids then leave a gap, so that none is given twice.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::error::Error;
use super::http::stopped;
use super::hub::Hub;
use super::world::World;

const FORMAT: u32 = 1;
const SETTLE: Duration = Duration::from_millis(300);
/// More updates than can be queued between two saves.
const GAP: i64 = 200_000;

#[derive(Serialize, Deserialize)]
struct Saved<W> {
    simulator_format: u32,
    /// The simulator was stopped, not killed.
    complete: bool,
    world: W,
}

/// Reads the file; `None` if there is none.
pub(super) fn load(path: &Path) -> Result<Option<World>, Error> {
    let refuse = |why: String| Error::StateFile { path: path.to_owned(), why };
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(refuse(error.to_string())),
    };
    let saved: Saved<World> = serde_json::from_slice(&bytes).map_err(|error| refuse(error.to_string()))?;
    if saved.simulator_format != FORMAT {
        return Err(refuse(format!("it has format {}, not {FORMAT}", saved.simulator_format)));
    }
    let mut world = saved.world;
    if !saved.complete {
        world.queue.skip(GAP);
    }
    Ok(Some(world))
}

fn encode(world: &World, complete: bool) -> Vec<u8> {
    let saved = Saved { simulator_format: FORMAT, complete, world };
    serde_json::to_vec(&saved).expect("the world always serializes")
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let refuse = |source| Error::Save { path: path.to_owned(), source };
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".tmp");
    let temporary = PathBuf::from(temporary);
    let mut file = std::fs::File::create(&temporary).map_err(refuse)?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(refuse)?;
    std::fs::rename(&temporary, path).map_err(refuse)
}

/// Writes the file for the first time, so that a folder that can't be written to is noticed at the start.
pub(super) fn save(path: &Path, world: &World, complete: bool) -> Result<(), Error> {
    write(path, &encode(world, complete))
}

/// Saves now and then until told to stop, and once more then.
pub(super) async fn keep_saved(hub: Arc<Hub>, path: PathBuf, mut stop: watch::Receiver<bool>) -> Result<(), Error> {
    let mut last = Vec::new();
    loop {
        let ending = tokio::select! {
            () = hub.changed.notified() => false,
            () = stopped(&mut stop) => true,
        };
        if ending {
            let bytes = encode(&hub.look(), true);
            return tokio::task::spawn_blocking(move || write(&path, &bytes)).await.expect("writing does not panic");
        }
        tokio::select! {
            () = tokio::time::sleep(SETTLE) => {}
            () = stopped(&mut stop) => continue,
        }
        let bytes = {
            let world = hub.look();
            // A load test changes everything all the time and is nothing to come back to.
            if world.load.is_some() {
                continue;
            }
            encode(&world, false)
        };
        if bytes == last {
            continue;
        }
        last.clone_from(&bytes);
        let to = path.clone();
        let written = tokio::task::spawn_blocking(move || write(&to, &bytes)).await.expect("writing does not panic");
        if let Err(error) = written {
            tracing::warn!(%error, "simulator state not saved");
        }
    }
}
