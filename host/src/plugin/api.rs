//! What a guest can reach: one file for each WIT interface, and the state of a run that they share.
//!
//! - Effects go into the run's [`Tx`] and nowhere else; only a direct API call takes effect at once.
//! - While a plugin is described there is no run: everything answers empty or denied.
//! - A guest's mistake is an error value that it can read, or a trap where the interface has none. A failure of
//!   the host is a trap of its own kind ([`HostFailed`]), so that nobody blames the guest for it.
//! - What the host keeps for a run is bounded by [`Limits`](super::Limits), whatever the guest does.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::allowance::Queued;
use super::bindings::botyard::types::types;
use super::clock::Ticking;
use super::http::HttpClient;
use super::journal::Cursor;
use super::limits::{Budget, Limit, MemoryGuard};
use super::meter::Meter;
use super::run::Invocation;
use super::version::Context;
use super::{CallError, Journal, Outbound, Tape};
use crate::domain::{BotId, ChatId, Conversation, EventLane, Lane, PluginName, ThreadId, UserId};
use crate::store::Tx;
use crate::store::rows::language::Listener;
use crate::store::rows::moved;

mod bot_api;
mod broadcast;
mod buttons;
mod chats;
mod clock;
mod config;
mod files;
mod fsm;
mod http;
mod i18n;
mod jobs;
mod log;
mod random;
mod schedule;
mod storage;
mod stored;
#[cfg(test)]
mod tests;
pub(super) mod wasi;

pub(super) use fsm::{OfAnother, put_state, read_state};

/// What the guest's host functions work on: the data of a wasmtime store.
pub(super) struct Host {
    pub(super) context: Arc<Context>,
    pub(super) memory: MemoryGuard,
    pub(super) meter: Arc<Meter>,
    pub(super) budget: Budget,
    /// None while the plugin is being described.
    pub(super) run: Option<Run>,
    /// What the guest's panic hook said, just before the trap.
    pub(super) panic: Option<Panic>,
    http: HttpClient,
    /// Bytes of log text that are left.
    log_left: u64,
    /// What was logged.
    pub(super) lines: Vec<String>,
    /// Nanoseconds that it has waited on purpose.
    waited: u64,
    wasi: wasi::Wasi,
    /// While it is in a store.
    pub(super) ticking: Option<Ticking>,
}

/// The state of one run.
pub(super) struct Run {
    /// Whose it is.
    plugin: PluginName,
    pub(super) tx: Tx,
    pub(super) bot: BotId,
    pub(super) conversation: Conversation,
    pub(super) now: u64,
    pub(super) deadline: Instant,
    /// Direct calls made.
    pub(super) calls: u32,
    /// HTTP requests made.
    pub(super) requests: u32,
    /// The calls that it has queued.
    pub(super) queued: Queued,
    /// The allowance of all runs that it found used up, and for how long.
    pub(super) short: Option<(Limit, Duration)>,
    /// Why the guest can't read the state that it was given.
    pub(super) unreadable: Option<String>,
    lane: EventLane,
    event: u64,
    attempt: u32,
    seed: u64,
    outbound: Arc<dyn Outbound>,
    journal: Journal,
    tape: Option<Tape>,
    cursor: Cursor,
    /// The chat actions that are shown for as long as this is here.
    acting: HashMap<Lane, StopOnDrop>,
    http_cursor: Cursor,
    timers: u64,
    jobs: u64,
    effects_left: u32,
    data_left: u64,
    pub(super) growth: stored::Growth,
    random: Option<StdRng>,
    files: files::RunFiles,
    /// Who is spoken to.
    listener: Listener,
}

/// A guest's panic.
#[derive(Debug)]
pub(super) struct Panic {
    pub(super) message: String,
    pub(super) file: String,
    pub(super) line: u32,
}

/// The host could not do its part.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct HostFailed(String);

/// A failure of the host, as a trap.
fn failed(error: impl fmt::Display) -> wasmtime::Error {
    HostFailed(error.to_string()).into()
}

/// What remembering one read takes, besides what was read.
const READ_BYTES: usize = 256;

/// The error text of everything that a plugin can't do while it is described.
const DESCRIBING: &str = "nothing can be done while the plugin describes itself";

impl Host {
    /// For a plugin that describes itself: without access to anything.
    pub(super) fn describing(context: Arc<Context>, meter: Arc<Meter>, http: HttpClient) -> Self {
        let (budget, log_left) = (context.limits.budget(), context.limits.log);
        Self {
            memory: MemoryGuard::new(budget.memory),
            log_left,
            lines: Vec::new(),
            waited: 0,
            wasi: wasi::Wasi::default(),
            meter,
            budget,
            run: None,
            panic: None,
            http,
            context,
            ticking: None,
        }
    }

    /// For one run.
    pub(super) fn running(
        context: Arc<Context>,
        meter: Arc<Meter>,
        http: HttpClient,
        invocation: &Invocation,
        tx: Tx,
        outbound: Arc<dyn Outbound>,
    ) -> Self {
        let limits = &context.limits;
        let budget = invocation.budget(limits);
        let growth = match &invocation.event {
            types::Event::Timer(timer) => stored::Growth::after_timer(timer.payload.len()),
            _ => stored::Growth::default(),
        };
        let run = Run {
            plugin: context.name.clone(),
            tx,
            bot: invocation.bot,
            conversation: invocation.conversation,
            now: invocation.now,
            deadline: Instant::now() + budget.time,
            calls: 0,
            requests: 0,
            queued: Queued::of(Arc::clone(&context.allowance), invocation.bot),
            short: None,
            unreadable: None,
            lane: invocation.lane,
            event: invocation.id,
            attempt: invocation.attempt,
            seed: invocation.seed,
            outbound,
            journal: invocation.journal.clone(),
            tape: invocation.tape.clone(),
            cursor: Cursor::default(),
            acting: HashMap::new(),
            http_cursor: Cursor::default(),
            timers: 0,
            jobs: 0,
            effects_left: limits.effects,
            data_left: limits.data,
            growth,
            random: None,
            files: files::RunFiles::default(),
            listener: invocation.listener.clone(),
        };
        Self { run: Some(run), budget, ..Self::describing(context, meter, http) }
    }

    /// For another instance of the same run: memory and processor time begin anew, effects go on.
    pub(super) fn begin(&mut self) {
        self.memory = MemoryGuard::new(self.budget.memory);
        self.meter.renew();
        self.panic = None;
        self.wasi.renew();
    }
}

impl Run {
    /// Counts one effect of so many bytes; the error is for the guest.
    fn charge_effect(&mut self, bytes: usize) -> Result<(), String> {
        let left = self.effects_left.checked_sub(1);
        self.effects_left = left.ok_or_else(|| {
            format!(
                "this run asks for too many writes, timers and queued calls; leave some to jobs, or raise {}",
                Limit::Effects.hit(&self.plugin)
            )
        })?;
        self.charge_data(bytes)
    }

    /// Counts bytes that the host holds for this run.
    fn charge_data(&mut self, bytes: usize) -> Result<(), String> {
        let left = self.data_left.checked_sub(bytes as u64);
        self.data_left = left.ok_or_else(|| {
            format!("this run has read and written too many bytes: {}", Limit::Data.hit(&self.plugin))
        })?;
        Ok(())
    }

    /// Counts bytes read, and that they are remembered until the commit, also where nothing was found. The interface
    /// has no error to give: the run ends.
    fn charge_read(&mut self, bytes: usize) -> wasmtime::Result<()> {
        self.charge_data(READ_BYTES + bytes).map_err(wasmtime::Error::msg)
    }

    /// The chat that is meant by an id that the guest has from somewhere: a group may have moved since.
    fn chat(&mut self, chat: ChatId) -> wasmtime::Result<ChatId> {
        moved::current(&mut self.tx, self.bot, chat).map_err(failed)
    }

    /// The moment from which on something that lives `ttl` seconds is gone; 0 for never.
    fn expiry(&self, ttl: Option<u64>) -> u64 {
        ttl.map_or(0, |seconds| self.now.saturating_add(seconds.saturating_mul(1_000)))
    }

    /// What other runs of the event have done at once, and this one would not have: it can't be undone.
    pub(super) fn left_over(&self, plugin: &PluginName) -> usize {
        self.journal.calls.left_over(&self.cursor, self.attempt, plugin)
            + self.journal.http.left_over(&self.http_cursor, self.attempt, plugin)
    }
}

impl types::Host for Host {}

/// Ends a call when the run that waits for it has ended: nothing of a run outlives it.
struct StopOnDrop(AbortHandle);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl From<Conversation> for types::StateKey {
    fn from(conversation: Conversation) -> Self {
        Self {
            chat_id: conversation.chat.map(|id| id.0),
            user_id: conversation.user.map(|id| id.0),
            thread_id: conversation.thread.map(|id| id.0),
        }
    }
}

impl From<types::StateKey> for Conversation {
    fn from(key: types::StateKey) -> Self {
        Self { chat: key.chat_id.map(ChatId), user: key.user_id.map(UserId), thread: key.thread_id.map(ThreadId) }
    }
}

/// The first `most` bytes of a text, less where that would split a character.
pub(super) fn shorten(text: &mut String, most: usize) {
    text.truncate(text.floor_char_boundary(most));
}
