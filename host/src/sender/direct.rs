//! Calls whose answer somebody waits for, a handler that runs.
//!
//! They take their place in the lane of their chat, after the replies that are queued there already and before
//! bulk, and pass the same limits. Whoever waits is answered within the deadline: with *flooded*, if the call
//! could not begin. Reads and answers to queries, which have no limit, don't queue at all.

use std::time::Duration;

use bytes::Bytes;
use tokio::sync::oneshot;
use tokio::time::{self, Instant};

use super::action::is_chat_action;
use super::attempt::attempt;
use super::decide::{self, History, Next};
use super::{CALL_DEADLINE, METHOD, Sender, Shared};
use crate::backoff;
use crate::clock::unix_millis;
use crate::domain::{Lane, PluginName};
use crate::plugin::Attachment;
use crate::store::rows::unknown::UnknownRow;
use crate::telegram::Error;
use crate::telegram::lane_of;

/// The task answers at the deadline; this is for the case that there is no task.
const GRACE: Duration = Duration::from_millis(500);

/// One call that waits for its turn.
pub(super) struct Direct {
    pub(super) plugin: PluginName,
    pub(super) method: String,
    pub(super) params: Bytes,
    pub(super) files: Vec<Attachment>,
    pub(super) deadline: Instant,
    /// The row of its lane that goes before it; 0 for none.
    pub(super) after: u64,
    pub(super) failures: u32,
    /// An attempt may have taken effect.
    pub(super) ambiguous: bool,
    /// How much doubt there is, as `decide::doubt` counts.
    pub(super) doubts: u32,
    reply: oneshot::Sender<Result<Bytes, Error>>,
}

impl Direct {
    pub(super) fn is_abandoned(&self) -> bool {
        self.reply.is_closed()
    }

    /// One attempt.
    pub(super) async fn make(&self, shared: &Shared, lane: Lane) -> Result<Bytes, Error> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if self.files.is_empty() {
            return attempt(shared, lane, &self.method, self.params.clone(), &[], left.min(CALL_DEADLINE)).await;
        }
        let files: Vec<_> = self.files.iter().map(|file| file.attached.clone()).collect();
        let call = attempt(shared, lane, &self.method, self.params.clone(), &files, left);
        let late = |_| Err(unknown(&self.method, &format!("its files were not sent within {left:?}")));
        time::timeout(left, call).await.unwrap_or_else(late)
    }

    pub(super) fn answer(self, mut result: Result<Bytes, Error>) {
        // The last attempt certainly did nothing, but who hears that would make the call again.
        if let Err(error @ (Error::Flooded { .. } | Error::Unreachable { .. } | Error::Unauthorized { .. })) = &result
            && self.ambiguous
        {
            result = Err(unknown(&self.method, &format!("an earlier attempt had no answer; then: {error}")));
        }
        // Whoever went away needs no answer.
        self.reply.send(result).ok();
    }

    /// The token is refused just now.
    pub(super) fn unauthorized(self) {
        let method = self.method.clone();
        let description = "the token was refused a moment ago".to_owned();
        self.answer(Err(Error::Unauthorized { method, code: 401, description }));
    }

    /// Its lane is not free before `free_at`, too late for it.
    pub(super) fn flooded(self, free_at: Instant, now: Instant) {
        let retry_after = (free_at - now).max(Duration::from_secs(1));
        let method = self.method.clone();
        self.answer(Err(Error::Flooded { method, retry_after }));
    }
}

impl Sender {
    /// Calls a method for a plugin and waits for the `result`, JSON text; at most until the deadline.
    ///
    /// Trouble of the network or the server is tried again while there is time.
    ///
    /// # Errors
    /// As [`Error`] says; `Flooded` where waiting for the chat's turn would take longer than the deadline.
    pub async fn call(
        &self,
        plugin: &PluginName,
        method: &str,
        params: String,
        deadline: Duration,
    ) -> Result<String, Error> {
        self.call_with_files(plugin, method, params, Vec::new(), deadline).await
    }

    /// The same with files.
    ///
    /// # Errors
    /// As [`Sender::call`].
    pub async fn call_with_files(
        &self,
        plugin: &PluginName,
        method: &str,
        params: String,
        files: Vec<Attachment>,
        deadline: Duration,
    ) -> Result<String, Error> {
        let given = lane_of(method, &params);
        if let Some(answer) = self.shared.chats.full(given, method, &params) {
            return Ok(answer);
        }
        let lane = self.shared.chats.lane(given);
        let deadline = Instant::now() + deadline;
        let reads = method.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("get"));
        let params = Bytes::from(params);
        let begun = self.shared.under_way.begin(plugin, method, lane, params.clone());
        let result = if is_chat_action(method) {
            let (reply, answer) = oneshot::channel();
            self.act_now(lane, params.clone(), Some(reply));
            match time::timeout_at(deadline, answer).await {
                Ok(Ok(result)) => result,
                Ok(Err(_)) => Err(not_now(method)),
                Err(_) => Err(unknown(method, "there was no answer in time")),
            }
        } else if (reads || lane.is_urgent()) && files.is_empty() {
            self.call_at_once(given, method, params.clone(), deadline, reads).await
        } else {
            let (reply, answer) = oneshot::channel();
            let direct = Direct {
                plugin: plugin.clone(),
                method: method.to_owned(),
                params: params.clone(),
                files,
                deadline,
                after: 0,
                failures: 0,
                ambiguous: false,
                doubts: 0,
                reply,
            };
            self.enqueue(lane, direct);
            match time::timeout_at(deadline + GRACE, answer).await {
                Ok(Ok(result)) => result,
                // Nobody answers any more: the task has ended, with this call in flight or waiting.
                Ok(Err(_)) => Err(unknown(method, "the host stops")),
                Err(_) => Err(unknown(method, "the host is too busy to tell")),
            }
        };
        match result {
            Ok(result) => {
                if method.eq_ignore_ascii_case(METHOD) {
                    self.answered(lane);
                }
                let mut result = text(result);
                self.shared.client.redact(&mut result);
                if begun.may_be_kept()
                    && let Ok(params) = std::str::from_utf8(&params)
                {
                    self.shared.chats.keep_answer(given, method, params, &result);
                }
                Ok(result)
            }
            Err(error) => {
                if !reads && !is_chat_action(method) && is_unclear(&error) && begun.may_be_kept() {
                    let row = entry(plugin, method, lane, &params, &error);
                    self.shared.inbox().unknown.push(row);
                    self.shared.wake.notify_one();
                }
                tracing::debug!(%plugin, %error, "a plugin's call failed");
                Err(error)
            }
        }
    }

    /// Puts it where the task finds it; drops it, which answers it, if there is no task any more.
    fn enqueue(&self, lane: Lane, direct: Direct) {
        let mut inbox = self.shared.inbox();
        if !inbox.closed {
            inbox.direct.push_back((lane, direct));
            self.shared.wake.notify_one();
        }
    }

    async fn call_at_once(
        &self,
        lane: Lane,
        method: &str,
        params: Bytes,
        deadline: Instant,
        reads: bool,
    ) -> Result<Bytes, Error> {
        let mut failures = 0;
        loop {
            let time = deadline.saturating_duration_since(Instant::now()).min(CALL_DEADLINE);
            let error = match attempt(&self.shared, lane, method, params.clone(), &[], time).await {
                Ok(result) => return Ok(result),
                Err(error) => error,
            };
            failures += 1;
            let next = match decide::next(&error, History { failures, ..History::default() }, rand::random()) {
                // Reading again changes nothing.
                Next::Done if reads && error.refusal().is_none() => {
                    Next::Retry(backoff::delay(failures, rand::random()))
                }
                next => next,
            };
            match next {
                Next::Retry(wait) | Next::Flood(wait) if Instant::now() + wait < deadline => time::sleep(wait).await,
                _ => return Err(error),
            }
        }
    }
}

/// It was not made.
fn not_now(method: &str) -> Error {
    Error::Flooded { method: method.to_owned(), retry_after: Duration::from_secs(1) }
}

fn text(result: Bytes) -> String {
    String::from_utf8(result.into()).expect("JSON that was parsed is UTF-8")
}

/// True where whoever made the call can't know what it did.
pub(super) fn is_unclear(error: &Error) -> bool {
    error.is_ambiguous() || matches!(error, Error::ResultLost { .. })
}

/// What the operator is to see of a direct call.
pub(super) fn entry(plugin: &PluginName, method: &str, lane: Lane, params: &[u8], error: &Error) -> UnknownRow {
    UnknownRow {
        plugin: plugin.as_str().to_owned(),
        event: 0,
        method: method.to_owned(),
        lane,
        at: unix_millis(),
        maybe_sent: true,
        reason: format!("a direct call, whose plugin was told: {error}"),
        params: String::from_utf8_lossy(params).into_owned(),
    }
}

fn unknown(method: &str, reason: &str) -> Error {
    Error::UnknownOutcome { method: method.to_owned(), reason: reason.to_owned(), silent: true }
}
