//! One run: one event, one fresh instance, and an end within limits, whatever the guest does.
//!
//! The deadline covers everything from the start of the run, host waits included. When it passes, the future
//! that drives the guest is dropped: wasmtime unwinds the guest's stack without running any more of it, and the
//! instance goes with the store. Only [`Verdict::Done`] leaves writes behind in the [`Tx`].
//!
//! A state that another version wrote, or that can't be read, is seen to first (`run/takeover.rs`).

mod takeover;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use wasmtime::{Store, Trap, WasmBacktrace};

use super::allowance::Queued;
use super::api::{Host, HostFailed, OfAnother, Run, shorten};
use super::bindings::PluginPre;
use super::bindings::botyard::types::types as wire;
use super::bindings::exports::botyard::plugin::handler as exported;
use super::engine::Engine;
use super::limits::Limit;
use super::meter::{Exhausted, Meter};
use super::version::Context;
use super::{Budget, Event, Journal, Limits, Outbound, Plugin, Spent, Tape};
use crate::config::redaction::redact;
use crate::domain::{BotId, Conversation, EventLane, PluginName};
use crate::store::Tx;
use crate::store::rows::language::Listener;

pub use self::takeover::Tried;

/// Bytes of a guest's own words that are kept and logged.
const REASON_BYTES: usize = 4 << 10;
const BACKTRACE_BYTES: usize = 16 << 10;
/// A plugin that describes itself is given at least this much.
const DESCRIBE_CPU: Duration = Duration::from_secs(2);
const DESCRIBE_TIME: Duration = Duration::from_secs(30);

/// One event for one plugin.
#[derive(Debug, Clone)]
pub struct Invocation {
    /// The event's number: unique, and the same on every attempt.
    pub id: u64,
    /// 1 on the first attempt.
    pub attempt: u32,
    /// Unix milliseconds; the plugin's clock stands still at it.
    pub now: u64,
    /// What the plugin's randomness is made from; the same on every attempt.
    pub seed: u64,
    /// The conversation, by this plugin's own strategy.
    pub conversation: Conversation,
    /// The lane of the event: where its timers' events will go.
    pub lane: EventLane,
    /// The bot that the event is for.
    pub bot: BotId,
    /// The places of the manifest's filters that the event matches: those that observe, or the others.
    pub matched: Vec<u32>,
    /// What happened.
    pub event: Event,
    /// The direct calls that earlier attempts have made: one journal for all attempts at an event.
    pub journal: Journal,
    /// What the version is to the plugin.
    pub standing: Standing,
    /// What it asks outside is written down there, or answered from there.
    pub tape: Option<Tape>,
    /// A run of the plugin for this event has just failed: it may settle the event all the same.
    pub failed: Option<wire::Failure>,
    /// Who is spoken to.
    pub listener: Listener,
}

impl Invocation {
    /// What the run may use up.
    pub(super) fn budget(&self, limits: &Limits) -> Budget {
        if matches!(self.event, Event::Job(_)) { limits.jobs.budget } else { limits.budget() }
    }
}

/// What the version that runs is to its plugin, which decides what becomes of states that are not its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Standing {
    /// It serves.
    #[default]
    Serves,
    /// It is on trial: a state that it takes over, or can't use, is kept beside as it was.
    OnTrial,
    /// It is asked for its opinion, since the one on trial has failed: it keeps no state aside.
    Asked,
}

/// What a plugin made of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is handled.
    Done,
    /// It is not this plugin's.
    Pass,
}

/// How a run ended.
pub struct RunReport {
    /// What was read, and, if the verdict was [`Verdict::Done`], what is to be written.
    pub tx: Tx,
    /// The plugin's verdict, or why there is none.
    pub result: Result<Verdict, RunError>,
    /// Time on a processor.
    pub cpu: Duration,
    /// Time in all, but for waiting until it could begin.
    pub time: Duration,
    /// Direct calls that were made (not those that the journal answered).
    pub calls: u32,
    /// What it has logged, within `limits.log`.
    pub lines: Vec<String>,
}

impl RunReport {
    /// What the run took.
    #[must_use]
    pub fn spent(&self) -> Spent {
        Spent { cpu: self.cpu, time: self.time }
    }
}

/// Why a run has no verdict.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The plugin said so.
    #[error("the plugin failed: {message}")]
    Refused {
        /// Its reason.
        message: String,
        /// False when another attempt would fail the same way.
        retry: bool,
    },
    /// The guest did what can't be done.
    #[error("the plugin trapped: {message}")]
    Trapped {
        /// What it did.
        message: String,
        /// Where, the innermost function first; empty when unknown.
        backtrace: String,
    },
    /// The guest panicked.
    #[error("the plugin panicked at {file}:{line}: {message}")]
    Panicked {
        /// The panic's text.
        message: String,
        /// The source file.
        file: String,
        /// The line in it.
        line: u32,
        /// The calls that led there, the innermost first; empty when unknown.
        backtrace: String,
    },
    /// It used up its processor time.
    #[error("the plugin used more than {0:?} of processor time (`limits.cpu`, for a job `jobs.cpu`)")]
    OutOfCpu(Duration),
    /// It took too long.
    #[error("the plugin took more than {0:?} (`limits.time`, for a job `jobs.time`)")]
    OutOfTime(Duration),
    /// Its deadline did not end it either.
    #[error("the plugin was ended by the watchdog, since it hung far beyond {0:?}, its `limits.time`")]
    Hung(Duration),
    /// It could not do with its memory.
    #[error("the plugin needed more than {0} bytes of memory (`limits.memory`, for a job `jobs.memory`)")]
    OutOfMemory(u64),
    /// It failed after an allowance that all its runs share was found used up: another time it may go well.
    #[error("the plugin's runs have used up what they may all together, its `limits.{}`", .limit.key())]
    Short {
        /// Which one.
        limit: Limit,
        /// When there is some again.
        wait: Duration,
    },
    /// Its conversation has a state of another version, which serves by now: that one is to be given the event.
    #[error("another version of the plugin has taken the conversation over meanwhile")]
    Superseded,
    /// The host could not do its part; not the plugin's fault.
    #[error("the host failed: {0}")]
    Host(String),
}

impl RunError {
    /// What the plugin made of an allowance that was used up is no fault of its code.
    fn for_short(self, short: Option<(Limit, Duration)>) -> Self {
        match (self, short) {
            (Self::Refused { .. } | Self::Trapped { .. } | Self::Panicked { .. }, Some((limit, wait))) => {
                Self::Short { limit, wait }
            }
            (error, _) => error,
        }
    }

    /// The limit that it is about, if it is.
    #[must_use]
    pub fn limit(&self) -> Option<Limit> {
        match self {
            Self::OutOfCpu(_) => Some(Limit::Cpu),
            Self::OutOfTime(_) | Self::Hung(_) => Some(Limit::Time),
            Self::OutOfMemory(_) => Some(Limit::Memory),
            Self::Short { limit, .. } => Some(*limit),
            Self::Refused { .. } | Self::Trapped { .. } | Self::Panicked { .. } | Self::Superseded | Self::Host(_) => {
                None
            }
        }
    }

    /// The error, and where in `bot.toml` the limit stands that it is about.
    #[must_use]
    pub fn with_place(&self, plugin: &PluginName) -> String {
        match self.limit() {
            Some(_) => format!("{self} of [plugins.{plugin}] in bot.toml"),
            None => self.to_string(),
        }
    }
}

impl Plugin {
    /// Gives one event to the plugin. Waits for a place among the engine's runs first; that time is not the
    /// plugin's. Dropping the future ends the run at once, without a trace.
    pub async fn run(&self, invocation: &Invocation, tx: Tx, outbound: Arc<dyn Outbound>) -> RunReport {
        let _place = self.engine.place().await;
        let (mut start, began) = (tx.savepoint(), Instant::now());
        let meter = Arc::new(Meter::new(invocation.budget(&self.context.limits).cpu));
        let is_job = matches!(invocation.event, Event::Job(_));
        // A job's time says nothing of how fast events are handled.
        if is_job {
            meter.is_noted_now();
        }
        let http = self.engine.http();
        let host = Host::running(Arc::clone(&self.context), Arc::clone(&meter), http, invocation, tx, outbound);
        let (host, result) = match &invocation.event {
            wire::Event::Expired(state) => self.handle_expired(host, invocation, state).await,
            // Long ones would be made again with every step of their user: they read the state when they ask for it.
            job @ wire::Event::Job(_) if host.has_own_state() => self.handle(host, invocation, job.clone()).await,
            event => match self.take_over_state(host, invocation.standing).await {
                (host, Ok(())) => {
                    // What became of the state stays, also where the run passes.
                    start = host.run.as_ref().map_or(start, |run| run.tx.savepoint());
                    self.handle(host, invocation, event.clone()).await
                }
                (host, Err(error)) => (host, Err(error)),
            },
        };
        let (host, result) = match host.run.as_ref().is_some_and(|run| run.unreadable.is_some()) {
            true => self.without_state(host, invocation, &mut start).await,
            false => (host, result),
        };
        let spent = Spent { cpu: meter.spent(), time: began.elapsed() };
        self.habit.note_end(&meter);
        if !is_job {
            self.pace.note(spent, invocation.attempt, &result);
        }
        let lines = host.lines;
        let run = host.run.expect("a host that was made for a run has one");
        if result.is_ok() {
            let left_over = run.left_over(&self.name);
            if left_over > 0 {
                tracing::warn!(
                    plugin = %self.name, event = invocation.id, calls = left_over,
                    "a run has made direct calls, and its repetition went another way: they stay made"
                );
            }
        }
        let Run { mut tx, calls, requests, queued, short, growth, .. } = run;
        let result = result.map_err(|error| error.for_short(short));
        if result == Ok(Verdict::Done) {
            hold(&mut tx, queued);
            growth.hold(&mut tx);
        } else {
            tx.roll_back(start);
        }
        if let Some(limit @ (Limit::Cpu | Limit::Time | Limit::Memory)) =
            result.as_ref().err().and_then(RunError::limit)
        {
            limit.count(&self.name);
        }
        RunReport { tx, result, cpu: spent.cpu, time: spent.time, calls: calls + requests, lines }
    }

    async fn handle(
        &self,
        host: Host,
        invocation: &Invocation,
        event: wire::Event,
    ) -> (Host, Result<Verdict, RunError>) {
        let locale = host.run.as_ref().map(|run| run.language());
        let locale = match locale.transpose() {
            Ok(locale) => locale.unwrap_or_default(),
            Err(error) => return (host, Err(RunError::Host(error.to_string()))),
        };
        let invocation = wire::Invocation {
            locale,
            id: invocation.id,
            attempt: invocation.attempt,
            now: invocation.now,
            seed: invocation.seed,
            key: invocation.conversation.into(),
            matched: invocation.matched.clone(),
            event,
            failed: invocation.failed.clone(),
        };
        let (code, mut store) = (self.code.clone(), self.engine.store(host));
        let guard = Guard::of(&store);
        let handled = self.in_turn(Arc::clone(&guard.meter), async move {
            let work = async {
                let guest = code.instantiate_async(&mut store).await?;
                guest.botyard_plugin_handler().call_handle(&mut store, &invocation).await
            };
            let answer = guard.watch(work).await;
            finish(store, answer)
        });
        let (host, answer) = handled.await;
        let result = answer.and_then(|answer| match answer {
            Ok(exported::Verdict::Done) => Ok(Verdict::Done),
            Ok(exported::Verdict::Pass) => Ok(Verdict::Pass),
            Err(exported::Failure { message, retry }) => {
                let message = guests_words(message);
                Err(RunError::Refused { message, retry })
            }
        });
        (host, result)
    }

    /// Work of which the meter tells how long it took; when that is long, it makes room for the others.
    async fn in_turn<T: Send + 'static>(&self, meter: Arc<Meter>, work: impl Future<Output = T> + Send + 'static) -> T {
        let is_long = || self.habit.is_long(&meter);
        self.engine.long_runs().share(self.turns, is_long, work).await
    }
}

/// What was queued counts for good with the commit, and not without it.
fn hold(tx: &mut Tx, queued: Queued) {
    if queued.count() > 0 {
        tx.hold(queued);
    }
}

/// Has a plugin describe itself, without access to anything.
pub(super) fn describe(
    engine: &Engine,
    code: &PluginPre<Host>,
    context: Context,
) -> (Context, Result<exported::Manifest, RunError>) {
    let context = Arc::new(context);
    let cpu = context.limits.cpu.max(DESCRIBE_CPU);
    let mut host = Host::describing(Arc::clone(&context), Arc::new(Meter::new(cpu)), engine.http());
    (host.budget.cpu, host.budget.time) = (cpu, DESCRIBE_TIME);
    // A thread of its own, because a runtime can't be entered from within another.
    let described = std::thread::scope(|scope| {
        let describe = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
            runtime.map_err(|error| RunError::Host(error.to_string()))?.block_on(describe_in(engine, code, host))
        };
        let thread = scope.spawn(describe);
        thread.join().unwrap_or_else(|_| Err(RunError::Host("the thread that describes plugins panicked".to_owned())))
    });
    let context = Arc::into_inner(context).expect("the host that shared it is gone");
    (context, described)
}

async fn describe_in(engine: &Engine, code: &PluginPre<Host>, host: Host) -> Result<exported::Manifest, RunError> {
    let mut store = engine.store(host);
    let guard = Guard::of(&store);
    let work = async {
        let guest = code.instantiate_async(&mut store).await?;
        guest.botyard_plugin_handler().call_describe(&mut store).await
    };
    let answer = guard.watch(work).await;
    finish(store, answer).1
}

/// What ends a guest's work from outside.
struct Guard {
    meter: Arc<Meter>,
    deadline: Instant,
}

impl Guard {
    fn of(store: &Store<Host>) -> Self {
        let host = store.data();
        let deadline = host.run.as_ref().map_or_else(|| Instant::now() + DESCRIBE_TIME, |run| run.deadline);
        Self { meter: Arc::clone(&host.meter), deadline }
    }

    /// Does measured work. None when the deadline passed first.
    async fn watch<T>(&self, work: impl Future<Output = wasmtime::Result<T>>) -> Option<wasmtime::Result<T>> {
        tokio::time::timeout_at(self.deadline, self.meter.measure(work)).await.ok()
    }
}

/// Throws the instance away, and says why there is no answer where there is none.
fn finish<T>(store: Store<Host>, answer: Option<wasmtime::Result<T>>) -> (Host, Result<T, RunError>) {
    let mut host = store.into_data();
    host.end_lines();
    let result = match answer {
        Some(Ok(answer)) => Ok(answer),
        Some(Err(error)) => Err(explain(&mut host, &error)),
        None => Err(RunError::OutOfTime(host.budget.time)),
    };
    (host, result)
}

/// What a guest says of its failure is logged and kept with its event: bounded, and without secrets that it was given.
fn guests_words(text: String) -> String {
    // A secret that the end cuts in two would not be seen any more.
    let mut text = redact(&text).into_owned();
    shorten(&mut text, REASON_BYTES);
    text
}

fn explain(host: &mut Host, error: &wasmtime::Error) -> RunError {
    let limits = host.budget;
    if error.is::<Exhausted>() {
        return RunError::OutOfCpu(limits.cpu);
    }
    if error.is::<OfAnother>() {
        return RunError::Superseded;
    }
    if let Some(failed) = error.downcast_ref::<HostFailed>() {
        return RunError::Host(failed.to_string());
    }
    if host.memory.refused {
        return RunError::OutOfMemory(limits.memory);
    }
    // Its first line is a heading.
    let backtrace = error.downcast_ref::<WasmBacktrace>().map(ToString::to_string).unwrap_or_default();
    let mut backtrace = backtrace.lines().skip(1).map(str::trim).collect::<Vec<_>>().join("\n");
    // The names in it are the guest's.
    backtrace = redact(&backtrace).into_owned();
    shorten(&mut backtrace, BACKTRACE_BYTES);
    if let Some(panic) = host.panic.take() {
        let (message, file) = (guests_words(panic.message), guests_words(panic.file));
        return RunError::Panicked { message, file, line: panic.line, backtrace };
    }
    // Those of host functions quote what the guest has given them.
    let message = match error.downcast_ref::<Trap>() {
        Some(trap) => trap.to_string(),
        None => error.root_cause().to_string(),
    };
    RunError::Trapped { message: guests_words(message), backtrace }
}
