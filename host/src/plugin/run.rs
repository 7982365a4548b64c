//! One run: one event, one fresh instance, and an end within limits, whatever the guest does.
//!
//! The deadline covers everything from the start of the run, host waits included. When it passes, the future
//! that drives the guest is dropped: wasmtime unwinds the guest's stack without running any more of it, and the
//! instance goes with the store. Only [`Verdict::Done`] leaves writes behind in the [`Tx`].
//!
//! A state that another version wrote is handed to `migrate` first, in an instance with memory and processor
//! time of its own, under the same deadline. If that fails, the state is kept aside and reads as none: a user with an old state must
//! not be locked out.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use wasmtime::{Store, Trap, WasmBacktrace};

use super::allowance::Queued;
use super::api::{Host, HostFailed, OfAnother, Run, put_state, read_state, shorten};
use super::bindings::PluginPre;
use super::bindings::botyard::types::types::{self as wire, State};
use super::bindings::exports::botyard::plugin::handler as exported;
use super::engine::Engine;
use super::limits::Limit;
use super::meter::{Exhausted, Meter};
use super::version::Context;
use super::{Budget, Event, Journal, Limits, Outbound, Plugin, Tape};
use crate::config::redaction::redact;
use crate::domain::{BotId, Conversation, EventLane, PluginName};
use crate::store::rows::fsm::{StateRow, aside_key, before_key, key};
use crate::store::rows::language::Listener;
use crate::store::{self, Tx};

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
    /// The version is on trial: a state that it takes over from another version is kept as it was.
    pub on_trial: bool,
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
    /// Direct calls that were made (not those that the journal answered).
    pub calls: u32,
    /// What it has logged, within `limits.log`.
    pub lines: Vec<String>,
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
    #[error("the plugin's runs have used up what they may in a minute, its `limits.{}`", .limit.key())]
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
        let start = tx.savepoint();
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
            event => match self.migrate_state(host, invocation.on_trial).await {
                (host, Ok(())) => self.handle(host, invocation, event.clone()).await,
                (host, Err(error)) => (host, Err(error)),
            },
        };
        self.habit.note_end(&meter);
        let lines = host.lines;
        let run = host.run.expect("a host that was made for a run has one");
        if result.is_ok() {
            if !is_job {
                self.pace.note(meter.spent());
            }
            let left_over = run.left_over(&self.name);
            if left_over > 0 {
                tracing::warn!(
                    plugin = %self.name, event = invocation.id, calls = left_over,
                    "a run has made direct calls, and its repetition went another way: they stay made"
                );
            }
        }
        let Run { mut tx, calls, requests, queued, short, stored, .. } = run;
        let result = result.map_err(|error| error.for_short(short));
        if result == Ok(Verdict::Done) {
            hold(&mut tx, queued);
            stored.hold(&mut tx);
        } else {
            tx.roll_back(start);
        }
        if let Some(limit @ (Limit::Cpu | Limit::Time | Limit::Memory)) =
            result.as_ref().err().and_then(RunError::limit)
        {
            limit.count(&self.name);
        }
        RunReport { tx, result, cpu: meter.spent(), calls: calls + requests, lines }
    }

    /// The end of a state, which reads as none already: it comes with the event, as one of this version.
    async fn handle_expired(
        &self,
        mut host: Host,
        invocation: &Invocation,
        state: &State,
    ) -> (Host, Result<Verdict, RunError>) {
        let version = self.context.state_version;
        if state.version == version {
            return self.handle(host, invocation, invocation.event.clone()).await;
        }
        if self.is_retired() {
            return (host, Err(RunError::Superseded));
        }
        let run = host.run.as_mut().expect("a host that was made for a run has one");
        match take_before(run, &self.name, version) {
            Ok(None) => {}
            Ok(Some(StateRow { name, version, bytes, .. })) => {
                return self.handle(host, invocation, wire::Event::Expired(State { name, version, bytes })).await;
            }
            Err(error) => return (host, Err(RunError::Host(error.to_string()))),
        }
        let (migrated, problem) = match self.migrate(host, state.clone()).await {
            (host, Ok(Ok(new))) => return self.handle(host, invocation, wire::Event::Expired(new)).await,
            (host, Ok(Err(problem))) => (host, guests_words(problem)),
            (host, Err(error @ (RunError::OutOfTime(_) | RunError::Host(_)))) => return (host, Err(error)),
            (host, Err(error)) => (host, error.to_string()),
        };
        host = migrated;
        let run = host.run.as_mut().expect("a host that was made for a run has one");
        tracing::warn!(plugin = %self.name, problem, "an expired state of another version can't be used; it is kept aside");
        let State { name, version, bytes } = state.clone();
        let row = StateRow { name, version, expires: 0, bytes };
        run.tx.put(aside_key(run.bot, &self.name, &run.conversation), row.encode());
        (host, Ok(Verdict::Done))
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

    /// Sees to it that the conversation's state is one of this version, or none.
    async fn migrate_state(&self, mut host: Host, on_trial: bool) -> (Host, Result<(), RunError>) {
        let version = self.context.state_version;
        if version == 0 {
            return (host, Ok(()));
        }
        let run = host.run.as_mut().expect("a host that was made for a run has one");
        let conversation = run.conversation;
        let row = match read_state(run, &self.name, &conversation) {
            Ok(None) => return (host, Ok(())),
            Ok(Some(Ok(row))) if row.version == version => return (host, Ok(())),
            Ok(Some(_)) if self.is_retired() => return (host, Err(RunError::Superseded)),
            Ok(Some(Ok(row))) => row,
            Ok(Some(Err(error))) => return set_aside(host, &error.to_string()),
            Err(error) => return (host, Err(RunError::Host(error.to_string()))),
        };
        match take_back(run, &self.context) {
            Ok(false) => {}
            Ok(true) => return (host, Ok(())),
            Err(error) => return (host, Err(RunError::Host(error.to_string()))),
        }
        let before = run.tx.savepoint();
        let kept = on_trial.then(|| row.encode());
        let old = State { name: row.name, version: row.version, bytes: row.bytes };
        let (mut host, migrated) = self.migrate(host, old).await;
        let run = host.run.as_mut().expect("a host that was made for a run has one");
        let problem = match migrated.map(|answer| answer.and_then(|new| self.check_migrated(new))) {
            Ok(Ok(new)) => {
                let new = StateRow { name: new.name, version: new.version, expires: row.expires, bytes: new.bytes };
                run.tx.put(key(run.bot, &self.name, &conversation), new.encode());
                if let Some(kept) = kept {
                    run.tx.put(before_key(run.bot, &self.name, &conversation), kept);
                }
                return (host, Ok(()));
            }
            Ok(Err(problem)) => guests_words(problem),
            // Another attempt may well go better: nothing is said about the state.
            Err(error @ (RunError::OutOfTime(_) | RunError::Host(_))) => return (host, Err(error)),
            Err(error) => error.to_string(),
        };
        run.tx.roll_back(before);
        set_aside(host, &problem)
    }

    /// A state as `migrate` must answer it.
    fn check_migrated(&self, new: State) -> Result<State, String> {
        let size = new.name.len() + new.bytes.len();
        if new.version != self.context.state_version {
            return Err(format!("it became version {} instead of {}", new.version, self.context.state_version));
        }
        if size as u64 > self.context.limits.state {
            return Err(format!("it grew to {size} bytes: {}", Limit::State.hit(&self.name)));
        }
        Ok(new)
    }

    async fn migrate(&self, host: Host, old: State) -> (Host, Result<Result<State, String>, RunError>) {
        let (code, mut store) = (self.code.clone(), self.engine.store(host));
        let guard = Guard::of(&store);
        let migrated = self.in_turn(Arc::clone(&guard.meter), async move {
            let work = async {
                let guest = code.instantiate_async(&mut store).await?;
                guest.botyard_plugin_handler().call_migrate(&mut store, &old).await
            };
            let answer = guard.watch(work).await;
            finish(store, answer)
        });
        migrated.await
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

/// Puts the conversation's state back as it was before a later version took it over on trial, if this version wrote it.
fn take_back(run: &mut Run, context: &Context) -> Result<bool, store::Error> {
    let Some(old) = take_before(run, &context.name, context.state_version)? else { return Ok(false) };
    tracing::info!(plugin = %context.name, "a state goes on as it was before the trial of a version that was rolled back");
    put_state(run, context, &old);
    Ok(true)
}

/// The state that this version wrote before a later one took it over on trial; it is not kept any longer.
fn take_before(run: &mut Run, plugin: &PluginName, version: u32) -> Result<Option<StateRow>, store::Error> {
    let kept = before_key(run.bot, plugin, &run.conversation);
    let old = run.tx.get(&kept)?.and_then(|old| StateRow::decode(&old).ok()).filter(|old| old.version == version);
    if old.is_some() {
        run.tx.delete(kept);
    }
    Ok(old)
}

impl Plugin {
    /// Tries what would become of a state, without anything coming of it. The inner error is a state that this version
    /// says it can't take over.
    ///
    /// # Errors
    /// When the plugin crashes over it.
    pub async fn try_migration(&self, old: &StateRow) -> Result<Result<(), String>, RunError> {
        if old.version == self.context.state_version {
            return Ok(Ok(()));
        }
        let meter = Arc::new(Meter::new(self.context.limits.cpu));
        let host = Host::describing(Arc::clone(&self.context), meter, self.engine.http());
        let old = State { name: old.name.clone(), version: old.version, bytes: old.bytes.clone() };
        let (_, migrated) = self.migrate(host, old).await;
        migrated.map(|answer| answer.and_then(|new| self.check_migrated(new)).map(drop))
    }
}

/// Moves a state that can't be used to where it is kept for later, untouched.
fn set_aside(mut host: Host, problem: &str) -> (Host, Result<(), RunError>) {
    let plugin = &host.context.name;
    let run = host.run.as_mut().expect("a host that was made for a run has one");
    tracing::warn!(%plugin, problem, "a state of another version can't be used; it is kept aside");
    let state = key(run.bot, plugin, &run.conversation);
    let old = match run.tx.get(&state) {
        Ok(old) => old,
        Err(error) => return (host, Err(RunError::Host(error.to_string()))),
    };
    if let Some(old) = old {
        run.tx.put(aside_key(run.bot, plugin, &run.conversation), old.to_vec());
        run.tx.delete(state);
    }
    (host, Ok(()))
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
    shorten(&mut backtrace, BACKTRACE_BYTES);
    if let Some(panic) = host.panic.take() {
        return RunError::Panicked {
            message: guests_words(panic.message),
            file: panic.file,
            line: panic.line,
            backtrace,
        };
    }
    let message = match error.downcast_ref::<Trap>() {
        Some(trap) => trap.to_string(),
        None => error.root_cause().to_string(),
    };
    RunError::Trapped { message, backtrace }
}
