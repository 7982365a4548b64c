//! Changes while the bot runs: new versions of plugins, and a new `bot.toml`.
//!
//! What has changed is loaded and checked while the old serves on; only then are the routes swapped, and events
//! under way end with what they began with. What does not load changes nothing: it is reported, and the old serves.

mod orders;
mod trials;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::intake::Origin;
use super::versions::{Loaded, Versions};
use super::{Parts, allowed_updates, bulk_limits, send_settings, stopped};
use crate::admin::Order;
use crate::clock::unix_millis;
use crate::config::Config;
use crate::dispatch::{Entry, Notice, Routes};
use crate::domain::PluginName;
use crate::operate::Operator;
use crate::plugin::{Lock, LockError};
use crate::reload;
use crate::whose;

/// How long new grants may take to be heard of. Without the system's events, files are looked at every two seconds.
const GRANTS_FIRST: Duration = Duration::from_secs(3);

/// The files that are watched. Begun before anything is loaded from them, so that no change is missed.
pub(super) struct Watch {
    pub(super) paths: watch::Sender<Vec<PathBuf>>,
    pub(super) changes: mpsc::Receiver<PathBuf>,
    pub(super) watcher: reload::Watcher,
}

impl Watch {
    pub(super) async fn begin(paths: Vec<PathBuf>) -> Self {
        let (paths, watched) = watch::channel(paths);
        let (changed, changes) = mpsc::channel(64);
        Self { paths, changes, watcher: reload::Watcher::begin(watched, changed).await }
    }
}

pub(super) use self::orders::apply_pauses;

/// The plugins' files; whoever has the bots watches `bot.toml` and `bot.lock`.
pub(super) fn watched_paths(config: &Config) -> Vec<PathBuf> {
    config.enabled().map(|(_, plugin)| plugin.path.clone()).collect()
}

/// Owns which plugins serve, and the configuration in force.
pub(super) struct Live {
    parts: Arc<Parts>,
    config: Config,
    /// What `bot.toml` says, also where it could not be applied.
    wanted: Config,
    versions: Versions,
    origin: Origin,
    /// `bot.lock` as it was when what `bot.toml` says was taken over.
    lock: Result<Lock, LockError>,
    /// The files of entries in `bot.toml` that could not be applied: when one of them changes, it is tried again.
    pending: BTreeMap<PluginName, PathBuf>,
    operator: Operator,
    /// When each plugin's version began to serve.
    since: BTreeMap<PluginName, u64>,
    /// Why the newest version of a plugin does not serve, and since when.
    failures: BTreeMap<PluginName, (u64, String)>,
    /// When the trials end.
    trials: BTreeMap<PluginName, Instant>,
    /// Plugins that fail one event after another, since when, and why the last one failed.
    resting: BTreeMap<PluginName, (u64, String)>,
    /// Plugins that an operator has switched off.
    disabled: BTreeSet<PluginName>,
}

impl Live {
    /// Takes over what was loaded at the start, which serves already.
    pub(super) fn new(
        parts: Arc<Parts>,
        config: Config,
        lock: Result<Lock, LockError>,
        versions: Versions,
        origin: Origin,
        operator: Operator,
        loaded: Vec<(PluginName, Loaded)>,
    ) -> Self {
        let now = unix_millis();
        let since = config.enabled().map(|(name, _)| (name.clone(), now)).collect();
        // A row that can't be read has ended the start already.
        let is_off = |name: &&PluginName| versions.is_disabled(name).unwrap_or_default();
        let disabled = config.enabled().map(|(name, _)| name).filter(is_off).cloned().collect();
        let mut live = Self {
            parts,
            wanted: config.clone(),
            config,
            lock,
            versions,
            origin,
            operator,
            since,
            disabled,
            pending: BTreeMap::new(),
            failures: BTreeMap::new(),
            trials: BTreeMap::new(),
            resting: BTreeMap::new(),
        };
        for (name, loaded) in loaded {
            live.watch_over(&name, &loaded.entry);
            if let Some(why) = loaded.refused {
                live.report_failure(&name, &why);
            }
        }
        live
    }

    /// Runs until told to stop.
    pub(super) async fn run(
        mut self,
        watch: Watch,
        configs: watch::Receiver<Config>,
        orders: mpsc::Receiver<Order>,
        notices: mpsc::UnboundedReceiver<Notice>,
        mut stop: watch::Receiver<bool>,
    ) -> anyhow::Result<()> {
        let Watch { paths, changes, watcher } = watch;
        let watcher = tokio::spawn(whose::same(watcher.run(stop.clone())));
        tokio::select! {
            // Compiling can't be interrupted, but nobody needs to wait for it either.
            () = stopped(&mut stop) => {}
            () = self.follow(changes, configs, orders, notices, &paths) => {}
        }
        watcher.await?;
        Ok(())
    }

    async fn follow(
        &mut self,
        mut changes: mpsc::Receiver<PathBuf>,
        mut configs: watch::Receiver<Config>,
        mut orders: mpsc::Receiver<Order>,
        mut notices: mpsc::UnboundedReceiver<Notice>,
        paths: &watch::Sender<Vec<PathBuf>>,
    ) {
        loop {
            let over = self.trials.values().min().copied();
            tokio::select! {
                changed = changes.recv() => match changed {
                    Some(path) => {
                        self.hear_of_grants(&mut configs).await;
                        match self.pending.values().any(|pending| *pending == path) {
                            true => self.reload_config(Some(&path)).await,
                            false => self.reload_plugins(&path).await,
                        }
                    }
                    None => break,
                },
                Ok(()) = configs.changed() => {
                    self.take_over(&mut configs).await;
                }
                Some(order) = orders.recv() => self.obey(order).await,
                Some(notice) = notices.recv() => self.heed(notice).await,
                () = tokio::time::sleep_until(over.unwrap_or_else(Instant::now)), if over.is_some() => {
                    self.end_trials().await;
                }
            }
            let mut wanted = watched_paths(&self.config);
            wanted.extend(self.pending.values().cloned());
            paths.send_replace(wanted);
        }
    }

    /// With a file that has changed, nothing else is tried again that did not load before.
    async fn reload_config(&mut self, file: Option<&Path>) {
        let new = self.wanted.clone();
        for (name, _) in self.failures.extract_if(.., |name, _| !new.plugins.get(name).is_some_and(|new| new.enabled)) {
            self.parts.readiness.plugin_ok(&name);
        }
        let changes = Config::live_changes(&self.config, &new);
        let touched: Vec<PluginName> = if changes.i18n {
            new.enabled().map(|(name, _)| name.clone()).collect()
        } else {
            changes.added.iter().chain(&changes.changed).cloned().collect()
        };
        // What failed and is not wanted any more is as it should be again; the others are told of when they are loaded.
        let mut pending = std::mem::take(&mut self.pending);
        let gone: Vec<_> = pending.extract_if(.., |name, _| !touched.contains(name)).map(|(name, _)| name).collect();
        for name in gone.into_iter().chain(changes.removed.iter().cloned()) {
            self.failures.remove(&name);
            self.parts.readiness.plugin_ok(&name);
        }
        if changes.is_empty() {
            return;
        }
        for key in &changes.needs_restart {
            tracing::warn!(key, "has changed in bot.toml and takes effect at the next start");
        }
        if changes.bot {
            self.origin.follow(&new);
        }
        if changes.bot || changes.intake {
            self.parts.intake.send_replace(self.origin.settings(&new));
        }
        if changes.send {
            self.parts.sender.reconfigure(send_settings(&new));
            self.parts.sender.chats().keep_answers_for(new.send.cache_ttl);
        }
        if changes.acknowledge {
            self.parts.sender.acknowledge_after(new.dispatch.acknowledge_callbacks);
        }
        // A plugin that does not load keeps its old entry, in every respect.
        let mut applied = new.clone();
        let mut loaded = Vec::new();
        for name in touched {
            let Some(entry) = new.plugins.get(&name) else { continue };
            if self.disabled.contains(&name) {
                continue;
            }
            let still_broken = file.is_some_and(|file| pending.get(&name).is_some_and(|path| path != file));
            let tried = if still_broken { None } else { Some(self.versions.load(&new, &name, entry).await) };
            match tried {
                Some(Ok(plugin)) => loaded.push((name, plugin)),
                failed => {
                    if let Some(Err(error)) = failed {
                        self.report_failure(&name, &format!("{error:#}"));
                    }
                    self.pending.insert(name.clone(), entry.path.clone());
                    match self.config.plugins.get(&name) {
                        Some(old) => applied.plugins.insert(name, old.clone()),
                        None => applied.plugins.remove(&name),
                    };
                }
            }
        }
        self.config = applied;
        self.parts.sender.limit_bulk(bulk_limits(&self.config));
        self.swap(loaded);
        if self.pending.is_empty() {
            tracing::info!("bot.toml has changed and is in force");
        } else {
            tracing::warn!("bot.toml has changed and is in force, except for the plugins that do not load");
        }
    }

    /// Where a plugin's file has changed together with `bot.lock`, its grants are on their way, and go before it.
    async fn hear_of_grants(&mut self, configs: &mut watch::Receiver<Config>) {
        if self.lock == Lock::read(&self.config.file) {
            return;
        }
        // None comes where bot.toml can't be used, or bot.lock is gone.
        match tokio::time::timeout(GRANTS_FIRST, configs.changed()).await {
            Ok(Ok(())) => self.take_over(configs).await,
            _ => self.let_in().await,
        }
    }

    async fn take_over(&mut self, configs: &mut watch::Receiver<Config>) {
        self.wanted = configs.borrow_and_update().clone();
        self.reload_config(None).await;
        self.let_in().await;
    }

    /// If `bot.lock` has changed, what has failed may be let in now. What was granted with it stands in `bot.toml`, was
    /// written before, and is in force already.
    async fn let_in(&mut self) {
        let lock = Lock::read(&self.config.file);
        if self.lock == lock {
            return;
        }
        self.lock = lock;
        let failed = self.failures.keys().filter_map(|name| Some(self.config.plugins.get(name)?.path.clone()));
        for path in failed.collect::<BTreeSet<_>>() {
            self.reload_plugins(&path).await;
        }
    }

    async fn reload_plugins(&mut self, path: &Path) {
        let of_path = self.config.enabled().filter(|(_, entry)| entry.path == path);
        let names: Vec<PluginName> = of_path.map(|(name, _)| name.clone()).collect();
        let mut loaded = Vec::new();
        for name in names {
            let Some(entry) = self.config.plugins.get(&name) else { continue };
            if self.disabled.contains(&name) {
                continue;
            }
            match self.versions.load(&self.config, &name, entry).await {
                Ok(plugin) => loaded.push((name, plugin)),
                Err(error) => self.report_failure(&name, &format!("{error:#}")),
            }
        }
        self.swap(loaded);
    }

    /// Lets the loaded plugins serve, and those go that are no longer configured or switched off.
    fn swap(&mut self, loaded: Vec<(PluginName, Loaded)>) {
        let old = self.parts.dispatcher.routes();
        let stay = |entry: &&Entry| {
            let name = &entry.plugin.name;
            self.config.plugins.get(name).is_some_and(|plugin| plugin.enabled)
                && !self.disabled.contains(name)
                && loaded.iter().all(|(other, _)| other != name)
        };
        let mut entries: Vec<Entry> = old.entries().iter().filter(stay).cloned().collect();
        for entry in &mut entries {
            if let Some(plugin) = self.config.plugins.get(&entry.plugin.name) {
                entry.priority = plugin.priority;
            }
        }
        for (name, Loaded { entry, refused }) in loaded {
            let before = old.entries().iter().find(|old| old.plugin.name == name).map(|old| old.newest().clone());
            let (from, to) = (before.as_ref().map(|plugin| &plugin.version), &entry.newest().version);
            let (from, share) = (from.map(ToString::to_string), entry.trial.as_ref().map(|trial| trial.share()));
            if !self.trials.contains_key(&name) || from.as_deref() != Some(to.as_str()) {
                tracing::info!(plugin = %name, from, %to, trial_percent = share, "plugin serves from now on");
            }
            if from.as_deref() != Some(to.as_str()) {
                self.since.insert(name.clone(), unix_millis());
            }
            self.watch_over(&name, &entry);
            entries.push(entry);
            self.parts.readiness.plugin_ok(&name);
            self.failures.remove(&name);
            if let Some(why) = refused {
                self.report_failure(&name, &why);
            }
        }
        self.trials.retain(|name, _| entries.iter().any(|entry| entry.plugin.name == *name && entry.trial.is_some()));
        let routes = Routes::new(entries);
        // Only the next poll asks for what a new plugin wants; what Telegram has queued before is as it is.
        self.parts.allowed_updates.send_replace(allowed_updates(&self.config, &routes));
        for name in self.parts.dispatcher.set_routes(routes) {
            self.resting.remove(&name);
            self.parts.readiness.plugin_recovered(&name);
        }
        self.parts.menu.notify_one();
    }

    fn report_failure(&mut self, name: &PluginName, error: &str) {
        let error = error.to_owned();
        metrics::counter!("botyard_reloads_total", "plugin" => name.as_str().to_owned(), "outcome" => "failed")
            .increment(1);
        self.failures.insert(name.clone(), (unix_millis(), error.clone()));
        if self.parts.dispatcher.routes().entries().iter().any(|entry| entry.plugin.name == *name) {
            tracing::error!(plugin = %name, error, "the new version does not load; the old one serves on");
            self.parts.readiness.plugin_stale(name, error);
        } else {
            tracing::error!(plugin = %name, error, "the plugin does not load, and does not serve until its file does");
            self.parts.readiness.plugin_failed(name, error);
        }
    }
}
