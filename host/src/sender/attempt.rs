//! One attempt at a call, wherever its chat is by now.
//!
//! Ids of groups that have moved are replaced. Where the answer is that the group has become a supergroup, everything
//! that belongs to it moves, and the call is made once more, there: the refusal says that it had no effect.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use super::{Shared, uploads};
use crate::domain::Lane;
use crate::store::rows::file::Attached;
use crate::telegram::{Error, Refusal, chats_of};

/// How long to wait for an answer to `getMe`.
const PROBE_DEADLINE: Duration = Duration::from_secs(10);

/// Makes the call within the deadline; with files it takes as long as they take.
pub(super) async fn attempt(
    shared: &Shared,
    lane: Lane,
    method: &str,
    params: Bytes,
    files: &[Attached],
    deadline: Duration,
) -> Result<Bytes, Error> {
    let until = Instant::now() + deadline;
    let params = redirected(shared, params);
    let mut result = make(shared, method, &params, files, deadline).await;
    let refusal = result.as_ref().err().and_then(Error::refusal);
    if let Some(Refusal::Migrated(to)) = refusal
        && let Ok(text) = std::str::from_utf8(&params)
        && let Some(group) = chats_of(text).into_iter().find(|chat| chat.is_basic_group())
    {
        if let Err(error) = shared.chats.moved(group, to).await {
            tracing::error!(%error, chat_id = group.0, "a group can't move");
            return result;
        }
        let again = redirected(shared, params.clone());
        if again != params {
            result = make(shared, method, &again, files, until.saturating_duration_since(Instant::now())).await;
        }
    }
    if let Ok(result) = &result {
        shared.chats.succeeded(lane, method, result);
    }
    result
}

/// Asks Telegram for the bot itself, before a call is made again that may have taken effect: while nobody answers to that
/// either, another attempt would only be another copy, and says nothing of the call.
pub(super) async fn known_to_telegram(shared: &Shared, method: &str) -> Result<(), Error> {
    let Err(error) = shared.client.call("getMe", Bytes::from_static(b"{}"), PROBE_DEADLINE).await else {
        return Ok(());
    };
    let method = method.to_owned();
    Err(match error {
        Error::Unauthorized { code, description, .. } => Error::Unauthorized { method, code, description },
        error => Error::Unreachable { method, reason: format!("it waits until Telegram answers again ({error})") },
    })
}

async fn make(
    shared: &Shared,
    method: &str,
    params: &Bytes,
    files: &[Attached],
    deadline: Duration,
) -> Result<Bytes, Error> {
    if files.is_empty() {
        shared.client.call(method, params.clone(), deadline).await
    } else {
        uploads::call(shared, method, params, files, deadline).await
    }
}

fn redirected(shared: &Shared, params: Bytes) -> Bytes {
    let redirected = std::str::from_utf8(&params).ok().and_then(|text| shared.chats.redirect(text));
    redirected.map_or(params, Bytes::from)
}
