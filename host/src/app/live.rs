//! Changes while the bot runs: new versions of plugins, and a new `bot.toml`.
//!
//! What has changed is loaded and checked while the old serves on, beside the loop, which goes on with orders; only then
//! are the routes swapped, and events under way end with what they began with. What does not load changes nothing: it is
//! reported, and the old serves.

mod loads;
mod orders;
mod trials;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::intake::Origin;
use super::versions::{Loaded, Versions};
use super::{Parts, allowed_updates, stopped};
use crate::admin::Order;
use crate::clock::unix_millis;
use crate::config::Config;
use crate::dispatch::{Entry, Notice, Routes};
use crate::domain::PluginName;
use crate::operate::Operator;
use crate::plugin::{Lock, LockError};
use crate::reload;
use crate::whose;

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

use self::loads::{Done, Loading, Wanted};

pub(super) use self::orders::apply_pauses;

/// The plugins' files, and the folders of the operator's texts for them; whoever has the bots watches `bot.toml` and `bot.lock`.
pub(super) fn watched_paths(config: &Config) -> Vec<PathBuf> {
    let texts = |name: &PluginName| config.i18n.locales.as_ref().map(|folder| folder.join(name.as_str()));
    config.enabled().flat_map(|(name, plugin)| std::iter::once(plugin.path.clone()).chain(texts(name))).collect()
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
    /// What is to be loaded, in this order.
    wanted_work: VecDeque<Wanted>,
    /// What is done beside the loop.
    tasks: JoinSet<Done>,
    /// The one of them that loads something.
    loading: Option<Loading>,
    /// How many loads have begun.
    begun: u64,
    /// How often something was decided about a plugin.
    decisions: BTreeMap<PluginName, u64>,
    /// Until when a file waits for the grants that have come with it.
    grants_due: Option<Instant>,
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
            wanted_work: VecDeque::new(),
            tasks: JoinSet::new(),
            loading: None,
            begun: 0,
            decisions: BTreeMap::new(),
            grants_due: None,
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
        let routes = self.parts.dispatcher.routes();
        let serving = routes.entries().iter().map(|entry| &entry.plugin);
        if let Err(error) = self.versions.keep_paces(serving).await {
            tracing::warn!(%error, "how the plugins have done can't be written down");
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
            self.load_next();
            let mut wanted = watched_paths(&self.config);
            wanted.extend(self.pending.values().cloned());
            paths.send_if_modified(|paths| {
                let differs = *paths != wanted;
                *paths = wanted;
                differs
            });
            let over = self.trials.values().min().copied();
            let grants = self.grants_due;
            tokio::select! {
                changed = changes.recv() => match changed {
                    Some(path) => self.has_changed(path),
                    None => break,
                },
                Ok(()) = configs.changed() => {
                    let config = configs.borrow_and_update().clone();
                    self.take_over(config);
                }
                Some(order) = orders.recv() => self.obey(order).await,
                Some(notice) = notices.recv() => self.heed(notice).await,
                Some(done) = self.tasks.join_next() => match done {
                    Ok(done) => self.is_done(done),
                    Err(error) if error.is_cancelled() => {}
                    Err(error) => {
                        tracing::error!(%error, "what was being loaded has ended with a panic");
                        self.loading = None;
                    }
                },
                () = tokio::time::sleep_until(over.unwrap_or_else(Instant::now)), if over.is_some() => {
                    self.end_trials().await;
                }
                () = tokio::time::sleep_until(grants.unwrap_or_else(Instant::now)), if grants.is_some() => {}
            }
        }
    }

    /// Lets the loaded plugins serve, and those go that are no longer configured or switched off.
    fn swap(&mut self, mut loaded: Vec<(PluginName, Loaded)>) {
        let old = self.parts.dispatcher.routes();
        loaded.iter().for_each(|(name, _)| self.decided(name));
        let may_serve = |name: &PluginName| {
            self.config.plugins.get(name).is_some_and(|plugin| plugin.enabled) && !self.disabled.contains(name)
        };
        // It may have been switched off, or taken out, while it was loaded.
        loaded.retain(|(name, _)| may_serve(name));
        let stay = |entry: &&Entry| {
            let name = &entry.plugin.name;
            may_serve(name) && loaded.iter().all(|(other, _)| other != name)
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
            self.parts.readiness.plugin_texts(&name, None);
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
