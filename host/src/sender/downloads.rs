//! Files that plugins ask for. Each is fetched once, by a task of its own.
//!
//! A local Bot API server can take minutes before it has a file, longer than a handler may wait. So the task goes on when
//! the run that asked has ended, and the next attempt at its event finds the file: it is kept for a while. Trouble on the
//! way is tried again. The URL, which holds the token, stays in [`crate::telegram`].

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use metrics::counter;
use serde::Deserialize;
use tokio::sync::{Semaphore, watch};
use tokio::time::{self, Instant};

use super::decide::{self, History, Next};
use super::outbound::call_error;
use super::{Sender, Shared};
use crate::backoff;
use crate::files::{Fetched, Files};
use crate::plugin::{CallError, TOO_LARGE};
use crate::telegram::{DownloadError, Error, Refusal};
use crate::whose;

/// At a time; more would only share the line.
const AT_ONCE: usize = 8;
/// A file is there for those who come again for so long …
const KEEP: Duration = Duration::from_secs(300);
/// … unless there are more bytes than these.
const KEEP_BYTES: u64 = 512 << 20;
/// One `getFile`: a local server fetches the file before it answers.
const ASK: Duration = Duration::from_secs(35);
const ASK_LOCAL: Duration = Duration::from_secs(600);
const ATTEMPTS: u32 = 6;
/// All attempts together. A transfer that has begun is not cut.
const LONGEST: Duration = Duration::from_secs(1_800);

type Outcome = Option<Result<Arc<Fetched>, CallError>>;

#[derive(Default)]
pub(super) struct Downloads {
    /// By file and by what it may have at most.
    jobs: Mutex<HashMap<(String, u64), watch::Receiver<Outcome>>>,
    slots: Slots,
}

struct Slots(Semaphore);

impl Default for Slots {
    fn default() -> Self {
        Self(Semaphore::new(AT_ONCE))
    }
}

#[derive(Deserialize)]
struct File {
    file_unique_id: String,
    #[serde(default)]
    file_size: Option<u64>,
    #[serde(default)]
    file_path: Option<String>,
}

impl Sender {
    /// Fetches a file of at most `limit` bytes.
    ///
    /// # Errors
    /// `Unreachable` when it is not there in time; it may be at the next attempt.
    pub async fn fetch(&self, file_id: String, limit: u64, deadline: Duration) -> Result<Arc<Fetched>, CallError> {
        let mut job = self.job(file_id, limit);
        let fetched = time::timeout(deadline, job.wait_for(Option::is_some)).await;
        match fetched {
            Ok(Ok(outcome)) => outcome.clone().expect("it was waited for"),
            Ok(Err(_)) => Err(CallError::Unreachable("the host stops".to_owned())),
            Err(_) => Err(CallError::Unreachable(format!(
                "the file was not there within {deadline:?}; fetching it goes on, and another attempt may find it"
            ))),
        }
    }

    /// The task that fetches this file, which is begun where there is none.
    fn job(&self, file_id: String, limit: u64) -> watch::Receiver<Outcome> {
        let key = (file_id, limit);
        let mut jobs = self.shared.downloads.jobs();
        if let Some(job) = jobs.get(&key) {
            return job.clone();
        }
        let (done, job) = watch::channel(None);
        jobs.insert(key.clone(), job.clone());
        let shared = self.shared.clone();
        tokio::spawn(whose::same(async move {
            let outcome = fetch(&shared, &key.0, limit).await;
            let word = if outcome.is_ok() { "ok" } else { "failed" };
            counter!("botyard_downloads_total", "outcome" => word).increment(1);
            let keep = outcome.is_ok() && shared.downloads.kept() < KEEP_BYTES;
            // Nobody has to be waiting any more.
            done.send_replace(Some(outcome));
            if keep {
                time::sleep(KEEP).await;
            }
            shared.downloads.jobs().remove(&key);
        }));
        job
    }
}

impl Downloads {
    fn jobs(&self) -> std::sync::MutexGuard<'_, HashMap<(String, u64), watch::Receiver<Outcome>>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of what is kept.
    fn kept(&self) -> u64 {
        let size = |job: &watch::Receiver<Outcome>| match &*job.borrow() {
            Some(Ok(file)) => file.size,
            _ => 0,
        };
        self.jobs().values().map(size).sum()
    }
}

async fn fetch(shared: &Shared, file_id: &str, limit: u64) -> Result<Arc<Fetched>, CallError> {
    let Some(uploads) = &shared.uploads else {
        return Err(CallError::Unreachable("this host fetches no files".to_owned()));
    };
    let _slot = shared.downloads.slots.0.acquire().await.expect("it is never closed");
    let begun = Instant::now();
    let mut attempt = 0;
    loop {
        attempt += 1;
        let (error, wait) = match once(shared, &uploads.files, file_id, limit, attempt).await {
            Ok(fetched) => return Ok(Arc::new(fetched)),
            Err(Failed { error, wait }) => (error, wait),
        };
        match wait {
            Some(wait) if attempt < ATTEMPTS && begun.elapsed() + wait < LONGEST => time::sleep(wait).await,
            _ => return Err(error),
        }
    }
}

/// Why an attempt failed, and after what time another one may help.
struct Failed {
    error: CallError,
    wait: Option<Duration>,
}

impl Failed {
    fn for_good(error: CallError) -> Self {
        Self { error, wait: None }
    }
}

async fn once(shared: &Shared, files: &Files, file_id: &str, limit: u64, attempt: u32) -> Result<Fetched, Failed> {
    let local = files.limits().local;
    let params = serde_json::json!({ "file_id": file_id }).to_string();
    let answer = shared.client.call("getFile", params.into(), if local { ASK_LOCAL } else { ASK }).await;
    let answer = answer.map_err(|error| {
        let wait = wait_after(&error, attempt, local);
        Failed { error: call_error(&error), wait }
    })?;
    let file: File = serde_json::from_slice(&answer).map_err(|error| {
        Failed::for_good(CallError::UnknownOutcome(format!("what getFile gives is no file: {error}")))
    })?;
    if file.file_size.is_some_and(|size| size > limit) {
        return Err(Failed::for_good(too_large(limit)));
    }
    let Some(path) = file.file_path else {
        return Err(Failed::for_good(refused(400, "Telegram does not give this file".to_owned())));
    };
    if Path::new(&path).is_absolute() {
        let folder = files.local_folder().map(Path::to_owned);
        let opened = tokio::task::spawn_blocking(move || {
            Fetched::local(Path::new(&path), folder.as_deref(), file.file_unique_id)
        });
        let opened = opened.await.unwrap_or_else(|error| Err(error.to_string()));
        let fetched = opened.map_err(|text| Failed::for_good(CallError::Denied(text)))?;
        return if fetched.size > limit { Err(Failed::for_good(too_large(limit))) } else { Ok(fetched) };
    }
    let name = path.rsplit('/').next().unwrap_or_default().to_owned();
    let transient = |text: String| Failed {
        error: CallError::Unreachable(text),
        wait: Some(backoff::delay(attempt, rand::random())),
    };
    let scratch = files.scratch().map_err(|error| transient(format!("the file could not be written: {error}")))?;
    let fetched = shared.client.download(&path, scratch.file(), limit).await;
    match fetched {
        Ok(size) => Ok(Fetched::copy(scratch, size, file.file_unique_id, name)),
        Err(DownloadError::TooLarge(limit)) => Err(Failed::for_good(too_large(limit))),
        Err(error) => Err(transient(error.to_string())),
    }
}

fn wait_after(error: &Error, attempt: u32, local: bool) -> Option<Duration> {
    match decide::next(error, History { failures: attempt, ..History::default() }, rand::random()) {
        Next::Retry(wait) | Next::Flood(wait) => Some(wait),
        // Reading again changes nothing.
        Next::Done if error.refusal().is_none() => Some(backoff::delay(attempt, rand::random())),
        // A local server says so for a flood of its own, too.
        _ if local && error.to_string().contains("temporarily unavailable") => {
            Some(backoff::delay(attempt + 2, rand::random()))
        }
        _ => None,
    }
}

fn too_large(limit: u64) -> CallError {
    CallError::Denied(format!("{TOO_LARGE}, {limit} bytes"))
}

fn refused(code: u16, description: String) -> CallError {
    CallError::Refused { code, description, kind: Refusal::Call }
}
