//! Changes while the bot runs: new versions of plugins, and a new `bot.toml`.
//!
//! What has changed is loaded and checked while the old serves on; only then are the routes swapped, and events
//! under way end with what they began with. What does not load changes nothing: it is reported, and the old serves.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::{mpsc, watch};

use super::plugins::Loader;
use super::{Parts, allowed_updates, send_settings, stopped};
use crate::config::{Config, LoadOptions};
use crate::dispatch::{Entry, Routes};
use crate::domain::PluginName;
use crate::reload;

/// Runs until told to stop.
pub(super) async fn follow(
    parts: Arc<Parts>,
    config: Config,
    loader: Arc<Loader>,
    token_optional: bool,
    mut stop: watch::Receiver<bool>,
) -> anyhow::Result<()> {
    let (paths, watched) = watch::channel(watched_paths(&config));
    let (changed, mut changes) = mpsc::channel(64);
    let watcher = tokio::spawn(reload::watch(watched, changed, stop.clone()));
    let mut live = Live { parts, config, loader, token_optional, pending: Vec::new() };
    tokio::select! {
        // Compiling can't be interrupted, but nobody needs to wait for it either.
        () = stopped(&mut stop) => {}
        () = live.follow(&mut changes, &paths) => {}
    }
    watcher.await?;
    Ok(())
}

fn watched_paths(config: &Config) -> Vec<PathBuf> {
    let plugins = config.enabled().map(|(_, plugin)| plugin.path.clone());
    std::iter::once(config.file.clone()).chain(plugins).collect()
}

struct Live {
    parts: Arc<Parts>,
    config: Config,
    loader: Arc<Loader>,
    token_optional: bool,
    /// Entries of `bot.toml` that are not in force, because their files could not be loaded: a change of one is a
    /// reason to try again.
    pending: Vec<(PluginName, PathBuf)>,
}

impl Live {
    async fn follow(&mut self, changes: &mut mpsc::Receiver<PathBuf>, paths: &watch::Sender<Vec<PathBuf>>) {
        while let Some(path) = changes.recv().await {
            if path == self.config.file || self.pending.iter().any(|(_, pending)| *pending == path) {
                self.reload_config().await;
            } else {
                self.reload_plugins(&path).await;
            }
            let pending = self.pending.iter().map(|(_, path)| path.clone());
            paths.send_replace(watched_paths(&self.config).into_iter().chain(pending).collect());
        }
    }

    async fn reload_config(&mut self) {
        let options = LoadOptions { token_optional: self.token_optional };
        let file = self.config.file.clone();
        let new = match Config::load(&file, options) {
            Ok(new) => new,
            Err(error) => {
                tracing::error!(%error, "bot.toml has changed but can't be used; the old configuration stays");
                return self.parts.readiness.config_failed(error.to_string());
            }
        };
        self.parts.readiness.config_ok();
        let changes = Config::live_changes(&self.config, &new);
        // What is still wrong will be reported again.
        let pending = self.pending.drain(..).map(|(name, _)| name);
        pending.chain(changes.removed.iter().cloned()).for_each(|name| self.parts.readiness.plugin_ok(&name));
        if changes.is_empty() {
            return;
        }
        for key in &changes.needs_restart {
            tracing::warn!(key, "has changed in bot.toml and takes effect at the next start");
        }
        if changes.send {
            self.parts.sender.reconfigure(send_settings(&new));
        }
        let touched: Vec<PluginName> = if changes.i18n {
            new.enabled().map(|(name, _)| name.clone()).collect()
        } else {
            changes.added.iter().chain(&changes.changed).cloned().collect()
        };
        // A plugin that does not load keeps its old entry, in every respect.
        let mut applied = new.clone();
        let mut loaded = Vec::new();
        for name in touched {
            let Some(entry) = new.plugins.get(&name) else { continue };
            match self.loader.load(&new, &name, entry).await {
                Ok(plugin) => loaded.push((name, Entry { plugin, priority: entry.priority })),
                Err(error) => {
                    self.report_failure(&name, &error);
                    self.pending.push((name.clone(), entry.path.clone()));
                    match self.config.plugins.get(&name) {
                        Some(old) => applied.plugins.insert(name, old.clone()),
                        None => applied.plugins.remove(&name),
                    };
                }
            }
        }
        self.config = applied;
        self.swap(loaded);
        tracing::info!("bot.toml has changed and is in force");
    }

    async fn reload_plugins(&mut self, path: &std::path::Path) {
        let mut loaded = Vec::new();
        for (name, entry) in self.config.enabled().filter(|(_, entry)| entry.path == path) {
            match self.loader.load(&self.config, name, entry).await {
                Ok(plugin) => loaded.push((name.clone(), Entry { plugin, priority: entry.priority })),
                Err(error) => self.report_failure(name, &error),
            }
        }
        self.swap(loaded);
    }

    /// Lets the loaded plugins serve, and those go that are no longer configured.
    fn swap(&self, loaded: Vec<(PluginName, Entry)>) {
        let old = self.parts.dispatcher.routes();
        let stay = |entry: &&Entry| {
            let name = &entry.plugin.name;
            self.config.plugins.get(name).is_some_and(|plugin| plugin.enabled)
                && loaded.iter().all(|(other, _)| other != name)
        };
        let mut entries: Vec<Entry> = old.entries().iter().filter(stay).cloned().collect();
        for entry in &mut entries {
            if let Some(plugin) = self.config.plugins.get(&entry.plugin.name) {
                entry.priority = plugin.priority;
            }
        }
        for (name, entry) in loaded {
            let before = old.entries().iter().find(|old| old.plugin.name == name);
            let from = before.map(|old| old.plugin.version.to_string());
            tracing::info!(plugin = %name, from, to = %entry.plugin.version, "plugin serves from now on");
            self.parts.readiness.plugin_ok(&name);
            entries.push(entry);
        }
        let routes = Routes::new(entries);
        // Only the next poll asks for what a new plugin wants; what Telegram has queued before is as it is.
        self.parts.allowed_updates.send_replace(allowed_updates(&self.config, &routes));
        self.parts.dispatcher.set_routes(routes);
    }

    fn report_failure(&self, name: &PluginName, error: &anyhow::Error) {
        tracing::error!(plugin = %name, error = format!("{error:#}"), "the new version does not load; the old one serves on");
        metrics::counter!("botyard_reloads_total", "plugin" => name.as_str().to_owned(), "outcome" => "failed")
            .increment(1);
        self.parts.readiness.plugin_stale(name, format!("{error:#}"));
    }
}
