//! What one run may use, and the guard that keeps its memory within that.
//!
//! Processor time is kept by [`super::meter`], wall time by [`super::run`], the rest by the host functions.

use std::time::Duration;

use wasmtime::ResourceLimiter;

use crate::domain::PluginName;

/// More memory than this no run gets: the pool reserves it for each.
pub const MEMORY_CAP: u64 = 256 << 20;

/// A component that is made of a module has four instances, two tables and one memory; one that brings Python has 14
/// instances, one that brings QuickJS a second memory, which is empty. The pool has room for as much in every place.
pub(super) const MOST_INSTANCES: u32 = 16;
pub(super) const MOST_TABLES: u32 = 4;
pub(super) const MOST_MEMORIES: u32 = 2;
const MOST_TABLE_ELEMENTS: usize = 20_000;

/// One of the limits, for whoever has to tell of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// `memory`
    Memory,
    /// `cpu`
    Cpu,
    /// `time`
    Time,
    /// `state`
    State,
    /// `value`
    Value,
    /// `stored`
    Stored,
    /// `calls`
    Calls,
    /// `calls_per_minute`
    CallsPerMinute,
    /// `bulk_per_minute`
    BulkPerMinute,
    /// `log`
    Log,
    /// `log_per_minute`
    LogPerMinute,
    /// `upload`
    Upload,
    /// `download`
    Download,
    /// `http_bytes`
    HttpBytes,
    /// `http_calls`
    HttpCalls,
    /// `http_per_minute`
    HttpPerMinute,
    /// `http_bytes_per_minute`
    HttpBytesPerMinute,
    /// `effects`
    Effects,
    /// `data`
    Data,
    /// `timers`
    Timers,
    /// `queued`
    Queued,
    /// `jobs.waiting`
    JobsWaiting,
}

impl Limit {
    /// Its key in `bot.toml`, below `limits` but for one.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Cpu => "cpu",
            Self::Time => "time",
            Self::State => "state",
            Self::Value => "value",
            Self::Stored => "stored",
            Self::Calls => "calls",
            Self::CallsPerMinute => "calls_per_minute",
            Self::BulkPerMinute => "bulk_per_minute",
            Self::Log => "log",
            Self::LogPerMinute => "log_per_minute",
            Self::Upload => "upload",
            Self::Download => "download",
            Self::HttpBytes => "http_bytes",
            Self::HttpCalls => "http_calls",
            Self::HttpPerMinute => "http_per_minute",
            Self::HttpBytesPerMinute => "http_bytes_per_minute",
            Self::Effects => "effects",
            Self::Data => "data",
            Self::Timers => "timers",
            Self::Queued => "queued",
            Self::JobsWaiting => "jobs.waiting",
        }
    }

    /// Where it stands, in an error.
    #[must_use]
    pub fn of(self, plugin: &PluginName) -> String {
        let section = if self == Self::JobsWaiting { "" } else { "limits." };
        format!("`{section}{}` of [plugins.{plugin}] in bot.toml", self.key())
    }

    /// Counts that a plugin has run into it.
    pub fn count(self, plugin: &PluginName) {
        let labels = [("plugin", plugin.as_str().to_owned()), ("limit", self.key().to_owned())];
        metrics::counter!("botyard_plugin_limits_total", &labels).increment(1);
    }

    /// Counts it, and says where it stands.
    pub(super) fn hit(self, plugin: &PluginName) -> String {
        self.count(plugin);
        self.of(plugin)
    }
}

/// What one run of a plugin may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of memory.
    pub memory: u64,
    /// Time on a processor.
    pub cpu: Duration,
    /// Time from start to end, waiting included.
    pub time: Duration,
    /// Bytes of one conversation's state.
    pub state: u64,
    /// Bytes of one stored value, one timer's payload or the parameters of one API call.
    pub value: u64,
    /// Bytes of all its states, values, timers and jobs together, for each bot; 0 for no limit.
    pub stored: u64,
    /// Timers that are set, or have rung and are not handled, for each bot; 0 for no limit.
    pub timers: u32,
    /// Bytes of its calls that wait to be sent, and of the files that they carry, for each bot; 0 for no limit.
    pub queued: u64,
    /// API calls whose answer the run waits for.
    pub calls: u32,
    /// API calls of all its runs in a minute, queued ones too; 0 for no limit, here and below.
    pub calls_per_minute: u32,
    /// Bytes of log text.
    pub log: u64,
    /// Bytes of log text of all its runs in a minute.
    pub log_per_minute: u64,
    /// Bytes of the files that the run makes.
    pub upload: u64,
    /// Bytes of the files that it fetches.
    pub download: u64,
    /// Bytes of the body of one HTTP request, and of its answer.
    pub http_bytes: u64,
    /// HTTP requests.
    pub http_calls: u32,
    /// HTTP requests of all its runs in a minute.
    pub http_per_minute: u32,
    /// Bytes that the HTTP requests of all its runs send and get in a minute.
    pub http_bytes_per_minute: u64,
    /// Writes, timers and queued API calls.
    pub effects: u32,
    /// Bytes that the host holds for the run: what it reads from the store and what it writes.
    pub data: u64,
    /// Its jobs.
    pub jobs: JobLimits,
}

/// What a plugin's jobs may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobLimits {
    /// Jobs that are queued and not done with.
    pub waiting: usize,
    /// Jobs that are worked on at once.
    pub workers: usize,
    /// After so many failed attempts a job becomes a dead letter.
    pub attempts: u32,
    /// What each run of a job may use, in place of the same of [`Limits`].
    pub budget: Budget,
}

/// What one run may use up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Bytes of memory.
    pub memory: u64,
    /// Time on a processor.
    pub cpu: Duration,
    /// Time from start to end, waiting included.
    pub time: Duration,
}

impl Default for JobLimits {
    fn default() -> Self {
        let (cpu, time) = (Duration::from_secs(10), Duration::from_secs(300));
        Self { waiting: 100, workers: 2, attempts: 5, budget: Budget { memory: 64 << 20, cpu, time } }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory: 32 << 20,
            cpu: Duration::from_millis(200),
            time: Duration::from_secs(30),
            state: 64 << 10,
            value: 1 << 20,
            stored: 256 << 20,
            timers: 10_000,
            queued: 256 << 20,
            calls: 32,
            calls_per_minute: 60_000,
            log: 64 << 10,
            log_per_minute: 4 << 20,
            upload: 50 << 20,
            download: 20 << 20,
            http_bytes: 1 << 20,
            http_calls: 16,
            http_per_minute: 300,
            http_bytes_per_minute: 64 << 20,
            effects: 1_000,
            data: 16 << 20,
            jobs: JobLimits::default(),
        }
    }
}

impl Limits {
    /// What a run that handles an event may use up.
    pub(super) fn budget(&self) -> Budget {
        Budget { memory: self.memory, cpu: self.cpu, time: self.time }
    }

    /// Says what can't be granted, if anything.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.memory > MEMORY_CAP {
            return Err(format!("`limits.memory` is {} bytes; at most {MEMORY_CAP} can be given", self.memory));
        }
        if self.jobs.budget.memory > MEMORY_CAP {
            let memory = self.jobs.budget.memory;
            return Err(format!("`jobs.memory` is {memory} bytes; at most {MEMORY_CAP} can be given"));
        }
        if self.cpu.is_zero() || self.time.is_zero() {
            return Err("`limits.cpu` and `limits.time` must be more than nothing".to_owned());
        }
        Ok(())
    }
}

/// Watches the growth of one run's memory and tables.
#[derive(Debug)]
pub(super) struct MemoryGuard {
    limit: u64,
    used: u64,
    /// True once the guest has been refused memory. What it does about that is its own affair, but if it traps
    /// afterwards, this is the reason to report.
    pub(super) refused: bool,
}

impl MemoryGuard {
    pub(super) fn new(limit: u64) -> Self {
        Self { limit, used: 0, refused: false }
    }
}

impl ResourceLimiter for MemoryGuard {
    fn memory_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        let used = self.used + (desired - current) as u64;
        if used > self.limit {
            self.refused = true;
            return Ok(false);
        }
        self.used = used;
        Ok(true)
    }

    fn memory_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        tracing::debug!(%error, "a plugin's memory could not grow");
        self.refused = true;
        Ok(())
    }

    fn table_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        Ok(desired <= MOST_TABLE_ELEMENTS)
    }

    fn instances(&self) -> usize {
        MOST_INSTANCES as usize
    }

    fn tables(&self) -> usize {
        MOST_TABLES as usize
    }

    fn memories(&self) -> usize {
        MOST_MEMORIES as usize
    }
}
