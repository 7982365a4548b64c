//! Loads a plugin only to see whether it loads, and what it is. It runs no handler and changes nothing.

use std::io;
use std::path::Path;

use serde::Serialize;

use crate::app::plugin_settings;
use crate::config::{I18n, Plugin};
use crate::domain::PluginName;
use crate::plugin::{self, Engine, EngineSettings, HttpClient, Settings};

/// What is said of a plugin that loads.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Summary {
    /// The hash of its file, as it stands in the log.
    pub(super) version: String,
    /// The file's size.
    pub(super) bytes: u64,
    /// What its author or operator should look at.
    pub(super) warnings: Vec<String>,
}

/// Starts the engine when the first plugin is there to be loaded.
#[derive(Default)]
pub(super) struct Inspector {
    engine: Option<Engine>,
}

impl Inspector {
    /// Loads a plugin as the host would.
    pub(super) fn inspect(&mut self, name: &PluginName, plugin: &Plugin, i18n: &I18n) -> Result<Summary, String> {
        self.load(name, &plugin.path, plugin_settings(plugin, i18n))
    }

    /// Loads a file as a plugin without any settings.
    pub(super) fn inspect_file(&mut self, path: &Path) -> Result<Summary, String> {
        let settings = Settings {
            config: serde_json::json!({}),
            secrets: Default::default(),
            grants: plugin::Grants::default(),
            limits: plugin::Limits::default(),
            locales_dir: None,
            default_locale: "en".to_owned(),
        };
        self.load(&PluginName::new("plugin"), path, settings)
    }

    fn load(&mut self, name: &PluginName, path: &Path, settings: Settings) -> Result<Summary, String> {
        let wasm = plugin::read_file(path).map_err(|error| unreadable(&error))?;
        let plugin = self.engine()?.load(name.clone(), &wasm, settings).map_err(|error| error.to_string())?;
        let mut warnings = plugin.warnings.clone();
        warnings.extend(plugin.catalog_warnings());
        Ok(Summary { version: plugin.version.to_string(), bytes: wasm.len() as u64, warnings })
    }

    fn engine(&mut self) -> Result<&Engine, String> {
        if self.engine.is_none() {
            // Nothing is kept: a check leaves no trace.
            let settings = EngineSettings { max_runs: 1, cache_dir: None, http: HttpClient::new([]) };
            self.engine = Some(Engine::new(settings).map_err(|error| error.to_string())?);
        }
        Ok(self.engine.as_ref().expect("it was just made"))
    }
}

fn unreadable(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file; `botyard build` makes it of a plugin's crate".to_owned(),
        _ => format!("the file can't be read: {error}"),
    }
}
