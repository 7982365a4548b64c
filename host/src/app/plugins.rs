//! From a file and an entry of `bot.toml` to a plugin.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;

use crate::config::{self, Config};
use crate::domain::PluginName;
use crate::plugin::{
    self, Broadcasting, Budget, Engine, EngineSettings, Grants, HttpClient, JobLimits, Limits, Plugin, Settings,
};

/// Each reserves address space.
const MOST_RUNS: usize = 10_000;

/// Loads plugins with one engine.
pub(super) struct Loader {
    engine: Engine,
}

impl Loader {
    /// The plugins' HTTP requests go anywhere but to the Bot API.
    pub(super) fn new(config: &Config) -> anyhow::Result<Self> {
        let engine = Engine::new(EngineSettings {
            // Enough for every bot, so that none of them waits for another's.
            max_runs: ((config.dispatch.concurrency + config.dispatch.jobs) * config.bots.len()).min(MOST_RUNS),
            cache_dir: Some(cache_dir(&config.store.path)),
            http: HttpClient::new(config.bots.values().map(|bot| bot.bot.api_base.as_str())),
        })?;
        Ok(Self { engine })
    }

    /// Compiles every plugin that is configured, so that loading them is quick.
    ///
    /// # Errors
    /// Those of all plugins that can't be loaded, together.
    pub(super) async fn warm(&self, config: &Config) -> anyhow::Result<()> {
        let mut problems = Vec::new();
        for (name, entry) in config.enabled() {
            let loaded = async { self.load(config, name, entry, self.read(&entry.path).await?).await };
            if let Err(error) = loaded.await {
                problems.push(format!("plugin `{name}`: {error:#}"));
            }
        }
        if problems.is_empty() { Ok(()) } else { anyhow::bail!(problems.join("\n")) }
    }

    /// Reads a plugin's file, whole.
    pub(super) async fn read(&self, path: &Path) -> anyhow::Result<Vec<u8>> {
        let path = path.to_owned();
        let read = move || plugin::read_file(&path).with_context(|| format!("could not read {}", path.display()));
        tokio::task::spawn_blocking(read).await?
    }

    /// Makes a plugin of what was read, away from the threads that serve.
    pub(super) async fn make(
        &self,
        config: &Config,
        name: &PluginName,
        entry: &config::Plugin,
        wasm: Vec<u8>,
    ) -> anyhow::Result<Arc<Plugin>> {
        let plugin = self.load(config, name, entry, wasm).await?;
        tracing::info!(plugin = %plugin.name, version = %plugin.version, "plugin loaded");
        for mend in &plugin.warnings {
            tracing::warn!(plugin = %plugin.name, mend, "the plugin declares what it is not granted");
        }
        Ok(plugin)
    }

    async fn load(
        &self,
        config: &Config,
        name: &PluginName,
        entry: &config::Plugin,
        wasm: Vec<u8>,
    ) -> anyhow::Result<Arc<Plugin>> {
        let (engine, name, path) = (self.engine.clone(), name.clone(), entry.path.display().to_string());
        let settings = settings(entry, &config.i18n);
        let load = move || engine.load(name, &wasm, settings).context(path);
        tokio::task::spawn_blocking(load).await?
    }
}

/// What the configuration says about a plugin, in the engine's words.
#[must_use]
pub fn settings(entry: &config::Plugin, i18n: &config::I18n) -> Settings {
    let limits = &entry.limits;
    Settings {
        config: entry.config.clone(),
        secrets: entry.secrets.clone(),
        grants: Grants {
            methods: entry.grants.methods.clone(),
            kinds: entry.grants.kinds.clone(),
            chats: entry.grants.chats.clone(),
            broadcast: match entry.grants.broadcast {
                config::Broadcasting::Denied => Broadcasting::Denied,
                config::Broadcasting::Free => Broadcasting::Free,
                config::Broadcasting::Paid => Broadcasting::Paid,
            },
            http: entry.grants.http.clone(),
        },
        limits: Limits {
            memory: limits.memory,
            cpu: limits.cpu,
            time: limits.time,
            state: limits.state,
            value: limits.value,
            stored: limits.stored,
            timers: limits.timers,
            queued: limits.queued,
            calls: limits.calls,
            calls_per_minute: limits.calls_per_minute,
            log: limits.log,
            log_per_minute: limits.log_per_minute,
            upload: limits.upload,
            download: limits.download,
            http_bytes: limits.http_bytes,
            http_calls: limits.http_calls,
            http_per_minute: limits.http_per_minute,
            http_bytes_per_minute: limits.http_bytes_per_minute,
            effects: limits.effects,
            data: limits.data,
            jobs: JobLimits {
                waiting: entry.jobs.waiting,
                workers: entry.jobs.workers,
                attempts: entry.jobs.attempts,
                budget: Budget { memory: entry.jobs.memory, cpu: entry.jobs.cpu, time: entry.jobs.time },
            },
        },
        locales_dir: i18n.locales.clone(),
        default_locale: i18n.default_locale.clone(),
    }
}

/// Beside the store: compiled code can be thrown away at any time, the store can't.
fn cache_dir(store: &Path) -> std::path::PathBuf {
    let mut name = store.file_name().unwrap_or_default().to_owned();
    name.push(".compiled");
    store.with_file_name(name)
}
