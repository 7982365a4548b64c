//! Loads a plugin only to see whether it loads, and what it is. It runs no handler and changes nothing.

use std::io;
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;

use crate::app::plugin_settings;
use crate::config::{Config, I18n, Pin, Plugin};
use crate::domain::PluginName;
use crate::plugin::{self, Engine, EngineSettings, HttpClient, Lock, Settings};

/// What is said of a plugin that loads.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Summary {
    /// The hash of its file, as it stands in the log.
    pub(super) version: String,
    /// The file's size.
    pub(super) bytes: u64,
    /// The version of the states that it keeps; 0 for none.
    pub(super) state_version: u32,
    /// What its author or operator should look at.
    pub(super) warnings: Vec<String>,
    /// Its filters, in words.
    pub(super) answers_to: Vec<String>,
}

/// Starts the engine when the first plugin is there to be loaded.
#[derive(Default)]
pub(super) struct Inspector {
    engine: Option<Engine>,
}

impl Inspector {
    /// Loads a plugin as the host would, if `bot.lock` lets it in.
    pub(super) fn inspect(&mut self, name: &PluginName, plugin: &Plugin, config: &Config) -> Result<Summary, String> {
        let wasm = plugin::read_file(&plugin.path).map_err(|error| unreadable(&error))?;
        let settings = plugin_settings(plugin, &config.i18n);
        let loaded = self.engine()?.load(name.clone(), &wasm, settings).map_err(|error| error.to_string())?;
        let strict = plugin.pin == Pin::Hash;
        Lock::read(&config.file)
            .and_then(|lock| lock.check(name.as_str(), strict, &plugin::file_hash(&wasm), &loaded.rights))
            .map_err(|error| error.to_string())?;
        Ok(summary(&wasm, &loaded))
    }

    /// The plugin itself, loaded as the host would.
    pub(super) fn load(
        &mut self,
        name: &PluginName,
        plugin: &Plugin,
        i18n: &I18n,
    ) -> Result<Arc<plugin::Plugin>, String> {
        let wasm = plugin::read_file(&plugin.path).map_err(|error| unreadable(&error))?;
        let settings = plugin_settings(plugin, i18n);
        self.engine()?.load(name.clone(), &wasm, settings).map_err(|error| error.to_string())
    }

    /// Loads a file as a plugin without any settings.
    pub(super) fn inspect_file(&mut self, path: &Path) -> Result<Summary, String> {
        let (wasm, plugin) = self.open(path)?;
        Ok(summary(&wasm, &plugin))
    }

    /// The file's content, and the plugin that it makes.
    pub(super) fn open(&mut self, path: &Path) -> Result<(Vec<u8>, Arc<plugin::Plugin>), String> {
        let wasm = plugin::read_file(path).map_err(|error| unreadable(&error))?;
        let plugin = self.plugin(&wasm)?;
        Ok((wasm, plugin))
    }

    /// The plugin that a file's content makes, without any settings.
    pub(super) fn plugin(&mut self, wasm: &[u8]) -> Result<Arc<plugin::Plugin>, String> {
        let settings = Settings {
            config: serde_json::json!({}),
            secrets: Default::default(),
            grants: plugin::Grants::default(),
            limits: plugin::Limits::default(),
            locales_dir: None,
            default_locale: "en".to_owned(),
        };
        self.engine()?.load(PluginName::new("plugin"), wasm, settings).map_err(|error| error.to_string())
    }

    fn engine(&mut self) -> Result<&Engine, String> {
        if self.engine.is_none() {
            // Nothing is kept: a check leaves no trace.
            let settings = EngineSettings { max_runs: 1, cache_dir: None, http: HttpClient::closed() };
            self.engine = Some(Engine::new(settings).map_err(|error| error.to_string())?);
        }
        Ok(self.engine.as_ref().expect("it was just made"))
    }
}

fn summary(wasm: &[u8], plugin: &plugin::Plugin) -> Summary {
    Summary {
        version: plugin.version.to_string(),
        bytes: wasm.len() as u64,
        state_version: plugin.manifest.state_version,
        warnings: plugin.warnings.iter().cloned().chain(plugin.catalog_warnings()).collect(),
        answers_to: plugin.manifest.filters.iter().map(ToString::to_string).collect(),
    }
}

fn unreadable(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file; `botyard build` makes it of a plugin's crate".to_owned(),
        _ => format!("the file can't be read: {error}"),
    }
}
