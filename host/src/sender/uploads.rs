//! Calls that carry files: each content is uploaded once, and from then on sent by the `file_id` that Telegram gave it.
//!
//! - A few uploads at a time. Who wants to upload what is just being uploaded waits, and has it for nothing.
//! - While a call waits or uploads it takes no place among the calls in flight: texts to other chats go on.
//! - A `file_id` that Telegram takes no more is forgotten, and the content uploaded again.
//! - What is too large is refused before a byte of it is sent.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use metrics::counter;
use tokio::sync::{Mutex as Turn, OwnedMutexGuard, Semaphore};

use super::{CALL_DEADLINE, Shared};
use crate::clock::unix_millis;
use crate::files::Files;
use crate::store::rows::file::{self, Attached, Hash, KnownRow};
use crate::store::{Commit, Op};
use crate::telegram::{Error, FilePart, Multipart};

mod known;
mod plan;
#[cfg(test)]
mod tests;

use plan::Plan;

/// More would only share the line, and Telegram slows down who uploads more than a hundred at once.
const AT_ONCE: usize = 4;
/// So many calls may wait for an upload beside those in flight; more take places of theirs.
const MOST_ASIDE: usize = 1_000;
/// A forgotten `file_id` is uploaded anew, and its successor may be refused too; that is no way to go on.
const ROUNDS: u32 = 4;
/// Telegram's words for a `file_id` that it does not take (any more).
const NOT_TAKEN: [&str; 7] = [
    "wrong file identifier",
    "wrong remote file identifier",
    "wrong file_id",
    "FILE_REFERENCE_",
    "FILE_ID_INVALID",
    "can't use file of type",
    "file is temporarily unavailable",
];

pub(super) struct Uploads {
    pub(super) files: Files,
    slots: Semaphore,
    /// Who is uploading what.
    turns: Mutex<HashMap<Hash, Weak<Turn<()>>>>,
    learnt: AtomicUsize,
}

/// Counts a call as being aside while it lives.
struct Aside<'a>(&'a Shared);

impl Drop for Aside<'_> {
    fn drop(&mut self) {
        self.0.aside.fetch_sub(1, Ordering::Relaxed);
    }
}

fn aside(shared: &Shared) -> Option<Aside<'_>> {
    let stepped = shared
        .aside
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| (count < MOST_ASIDE).then_some(count + 1));
    stepped.ok()?;
    // There is room for another call.
    shared.wake.notify_one();
    Some(Aside(shared))
}

impl Uploads {
    pub(super) fn new(files: Files) -> Self {
        Self { files, slots: Semaphore::new(AT_ONCE), turns: Mutex::default(), learnt: AtomicUsize::new(0) }
    }

    /// A turn for each key, in their order, so that nobody waits in a circle.
    async fn turns(&self, keys: &[Hash]) -> Vec<OwnedMutexGuard<()>> {
        let mut guards = Vec::with_capacity(keys.len());
        for key in keys {
            let turn = {
                let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
                turns.retain(|_, turn| turn.strong_count() > 0);
                let turn = turns.get(key).and_then(Weak::upgrade).unwrap_or_default();
                turns.insert(*key, Arc::downgrade(&turn));
                turn
            };
            guards.push(turn.lock_owned().await);
        }
        guards
    }
}

/// Makes a call that carries files. `attempt` bounds a call that needs no upload (any more).
pub(super) async fn call(
    shared: &Shared,
    method: &str,
    params: &Bytes,
    files: &[Attached],
    attempt: Duration,
) -> Result<Bytes, Error> {
    let Some(uploads) = &shared.uploads else {
        return Err(refused(method, 400, "this host sends no files".to_owned()));
    };
    let Some(plan) = Plan::of(method, params, files) else {
        return Err(refused(method, 400, "the parameters are not a JSON object".to_owned()));
    };
    let limits = uploads.files.limits();
    if let Some(problem) = plan.files().find_map(|(file, is_photo)| limits.refuses(&file.name, file.size, is_photo)) {
        return Err(refused(method, 413, problem));
    }
    let keys = plan.keys();
    let mut round = 0;
    loop {
        round += 1;
        let ids = known::look_up(shared, &keys)?;
        let (_, left) = plan.fill(|key| ids.get(key).cloned());
        let outcome = if left.is_empty() {
            counter!("botyard_uploads_total", "outcome" => "known").increment(1);
            by_id(shared, method, &plan, &ids, attempt).await
        } else {
            let _aside = aside(shared);
            let wanted: Vec<Hash> = keys.iter().filter(|key| !ids.contains_key(*key)).copied().collect();
            let _turns = uploads.turns(&wanted).await;
            let _slot = uploads.slots.acquire().await.expect("it is never closed");
            // Somebody may have uploaded it meanwhile.
            let ids = known::look_up(shared, &keys)?;
            upload(shared, uploads, method, &plan, &ids, attempt).await
        };
        match outcome {
            Err(Error::Refused { description, .. })
                if round < ROUNDS && !ids.is_empty() && NOT_TAKEN.iter().any(|text| description.contains(text)) =>
            {
                tracing::info!(method, "Telegram does not take a remembered file_id; the file is uploaded again");
                known::forget(shared, &ids).await?;
            }
            outcome => return outcome,
        }
    }
}

async fn by_id(
    shared: &Shared,
    method: &str,
    plan: &Plan,
    ids: &HashMap<Hash, String>,
    attempt: Duration,
) -> Result<Bytes, Error> {
    let (params, _) = plan.fill(|key| ids.get(key).cloned());
    let params = serde_json::to_vec(&params).expect("JSON that was read can be written");
    shared.client.call(method, params.into(), attempt.min(CALL_DEADLINE)).await
}

async fn upload(
    shared: &Shared,
    uploads: &Uploads,
    method: &str,
    plan: &Plan,
    ids: &HashMap<Hash, String>,
    attempt: Duration,
) -> Result<Bytes, Error> {
    let (params, left) = plan.fill(|key| ids.get(key).cloned());
    if left.is_empty() {
        counter!("botyard_uploads_total", "outcome" => "known").increment(1);
        return by_id(shared, method, plan, ids, attempt).await;
    }
    let parts: Vec<FilePart> = left.iter().map(|file| part(&uploads.files, file)).collect();
    let body = Multipart::new(&plan::texts(params), &parts);
    let answer = shared.client.upload(method, &body).await;
    let outcome = if answer.is_ok() { "ok" } else { "failed" };
    counter!("botyard_uploads_total", "outcome" => outcome).increment(1);
    let answer = answer?;
    known::remember(shared, uploads, &plan.told(&answer)).await;
    Ok(answer)
}

fn part(files: &Files, file: &Attached) -> FilePart {
    FilePart {
        field: file.id.clone(),
        name: file.name.clone(),
        content_type: file.content_type.clone(),
        path: files.path(&file.hash),
        size: file.size,
        hash: file.hash,
    }
}

fn refused(method: &str, code: u16, description: String) -> Error {
    Error::Refused { method: method.to_owned(), code, description, migrate_to: None }
}
