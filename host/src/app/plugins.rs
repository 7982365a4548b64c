//! From the entries of `bot.toml` to plugins that serve.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;

use crate::config::{self, Config};
use crate::dispatch::Entry;
use crate::domain::PluginName;
use crate::plugin::{self, Engine, EngineSettings, Grants, HttpClient, Limits, Plugin, Settings};

/// Loads plugins with one engine.
pub(super) struct Loader {
    engine: Engine,
}

impl Loader {
    /// The plugins' HTTP requests go anywhere but to the Bot API.
    pub(super) fn new(config: &Config, api_base: &str) -> anyhow::Result<Self> {
        let engine = Engine::new(EngineSettings {
            max_runs: config.dispatch.concurrency,
            cache_dir: Some(cache_dir(&config.store.path)),
            http: HttpClient::new(api_base),
        })?;
        Ok(Self { engine })
    }

    /// Loads every plugin that is configured.
    ///
    /// # Errors
    /// Those of all plugins that can't be loaded, together.
    pub(super) async fn load_all(&self, config: &Config) -> anyhow::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        let mut problems = Vec::new();
        for (name, entry) in config.enabled() {
            match self.load(config, name, entry).await {
                Ok(plugin) => entries.push(Entry { plugin, priority: entry.priority }),
                Err(error) => problems.push(format!("plugin `{name}`: {error:#}")),
            }
        }
        if problems.is_empty() { Ok(entries) } else { anyhow::bail!(problems.join("\n")) }
    }

    /// Reads the file whole, and makes a plugin of it away from the threads that serve.
    pub(super) async fn load(
        &self,
        config: &Config,
        name: &PluginName,
        entry: &config::Plugin,
    ) -> anyhow::Result<Arc<Plugin>> {
        let (engine, name, path) = (self.engine.clone(), name.clone(), entry.path.clone());
        let settings = settings(entry, &config.i18n);
        let plugin = tokio::task::spawn_blocking(move || -> anyhow::Result<_> {
            let wasm = plugin::read_file(&path).with_context(|| format!("could not read {}", path.display()))?;
            engine.load(name, &wasm, settings).with_context(|| path.display().to_string())
        })
        .await??;
        tracing::info!(plugin = %plugin.name, version = %plugin.version, "plugin loaded");
        for mend in &plugin.warnings {
            tracing::warn!(plugin = %plugin.name, mend, "the plugin declares what it is not granted");
        }
        Ok(plugin)
    }
}

/// What the configuration says about a plugin, in the engine's words.
#[must_use]
pub fn settings(entry: &config::Plugin, i18n: &config::I18n) -> Settings {
    let limits = &entry.limits;
    Settings {
        config: entry.config.clone(),
        secrets: entry.secrets.clone(),
        grants: Grants { methods: entry.grants.methods.clone(), http: entry.grants.http.clone() },
        limits: Limits {
            memory: limits.memory,
            cpu: limits.cpu,
            time: limits.time,
            state: limits.state,
            value: limits.value,
            calls: limits.calls,
            log: limits.log,
            http_bytes: limits.http_bytes,
            http_calls: limits.http_calls,
            http_per_minute: limits.http_per_minute,
            ..Limits::default()
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
