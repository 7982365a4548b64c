//! From a plugin's file to the versions that serve: at once, on trial beside the one before, or not at all.
//!
//! A version that was rolled back never serves again by itself, also not after a restart: what its file holds is compared
//! with what the store remembers. Where the file of the version before is lost, and it does not serve just now either, the
//! new one serves at once, and the log says so.

mod states;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::admission::{self, Admission};
use super::plugins::Loader;
use super::shelf::{self, Shelf, Step};
use crate::clock::unix_millis;
use crate::config::{self, Config};
use crate::dispatch::{Entry, Trial};
use crate::domain::{BotId, PluginName};
use crate::plugin::{LockError, Plugin};
use crate::store::rows::button::{self, ButtonRow};
use crate::store::{Commit, CommitError, Op, Store};

/// Makes versions serve. Cheap to clone.
#[derive(Clone)]
pub(super) struct Versions {
    loader: Arc<Loader>,
    shelf: Shelf,
    store: Store,
    bot: BotId,
    /// What serves, as far as it was decided here.
    serving: Arc<Mutex<HashMap<PluginName, Weak<Plugin>>>>,
}

/// What became of a plugin's file.
pub(super) struct Loaded {
    pub(super) entry: Entry,
    /// Why the version in the file does not serve, where that is so.
    pub(super) refused: Option<String>,
}

/// What an operator has gone back to.
pub(super) struct WentBack {
    pub(super) entry: Entry,
    /// So many of the states that there are it can't use.
    pub(super) lost: u32,
    pub(super) states: u32,
}

impl Versions {
    pub(super) fn new(loader: Arc<Loader>, config: &Config, store: Store, bot: BotId) -> Self {
        let shelf = Shelf::new(&config.store.path, &config.name, store.clone(), bot);
        Self { loader, shelf, store, bot, serving: Arc::default() }
    }

    /// Loads every plugin that is configured and not switched off. Where its file does not load, the version that served
    /// last serves on, as it would have done without the restart.
    ///
    /// # Errors
    /// Those of all plugins that can't be loaded, together.
    pub(super) async fn load_all(&self, config: &Config) -> anyhow::Result<Vec<(PluginName, Loaded)>> {
        let mut all = Vec::new();
        let mut problems = Vec::new();
        for (name, entry) in config.enabled() {
            if self.is_disabled(name)? {
                tracing::warn!(plugin = %name, "the plugin is switched off; `botyard plugin enable` ends that");
                continue;
            }
            match self.load(config, name, entry, false).await {
                Ok(loaded) => all.push((name.clone(), loaded)),
                // Only the approved file itself is to serve, so it makes no difference that this one has served before.
                Err(error) if matches!(error.downcast_ref(), Some(LockError::OtherFile { .. })) => {
                    problems.push(format!("plugin `{name}`: {error:#}"));
                }
                Err(error) => match self.last(config, name, entry).await {
                    Ok(plugin) => {
                        let refused = Some(format!("{error:#}"));
                        all.push((name.clone(), Loaded { entry: self.serving(plugin, entry), refused }));
                    }
                    Err(_) => problems.push(format!("plugin `{name}`: {error:#}")),
                },
            }
        }
        if problems.is_empty() { Ok(all) } else { anyhow::bail!(problems.join("\n")) }
    }

    /// Loads what the plugin's file holds, and says how it is to serve; with `force`, whatever becomes of states.
    ///
    /// # Errors
    /// When it can't serve.
    pub(super) async fn load(
        &self,
        config: &Config,
        name: &PluginName,
        entry: &config::Plugin,
        force: bool,
    ) -> anyhow::Result<Loaded> {
        loop {
            match self.load_once(config, name, entry, force).await {
                // An operator, or the end of a trial, was quicker.
                Err(error) if error.is::<shelf::Changed>() => {}
                loaded => return loaded,
            }
        }
    }

    async fn load_once(
        &self,
        config: &Config,
        name: &PluginName,
        entry: &config::Plugin,
        force: bool,
    ) -> anyhow::Result<Loaded> {
        let wasm = self.loader.read(&entry.path).await?;
        let found = crate::plugin::Version::of(&wasm);
        let mut row = self.shelf.row(name)?;
        let is_new = !row.serving.is_empty() && row.serving != found.as_str();
        let step = shelf::step(&row, found.as_str(), !entry.probation.is_zero());
        // A version that nobody watches is compared all the same, where there are states that it may lose.
        let before = match &step {
            Step::Serve if !is_new || !self.has_states(name)? => None,
            Step::Serve | Step::Try | Step::Refuse(_) => self.kept(config, name, entry, &row.serving).await,
        };
        if let Step::Refuse(rejected) = &step
            && let Some(before) = &before
        {
            let why = format!(
                "its version {found} was rolled back ({}); save another one, or have this one tried again with \
                 `botyard plugin reload {name}`",
                rejected.reason
            );
            before.recall(row.pace);
            self.give_states_back(before, false).await?;
            return Ok(Loaded { entry: self.serving(before.clone(), entry), refused: Some(why) });
        }
        let is_watched = step != Step::Serve;
        let admitted = async {
            let admission = Admission::of(config, name, entry, &wasm).await?;
            let plugin = self.loader.make(config, name, entry, wasm.clone()).await?;
            admission.admits(&plugin)?;
            anyhow::Ok(plugin)
        };
        let plugin = match admitted.await {
            Ok(plugin) => plugin,
            Err(error) if !error.is::<LockError>() => return Err(error),
            Err(why) => {
                // Whatever has served goes on, and nothing is written down.
                let before = match before {
                    None if is_new => self.kept(config, name, entry, &row.serving).await,
                    before => before,
                };
                let Some(before) = before else { return Err(why) };
                return Ok(Loaded { entry: self.serving(before, entry), refused: Some(why.to_string()) });
            }
        };
        // One that is on trial has been tried already.
        let goes_on = row.trial.as_deref() == Some(found.as_str());
        let mut lost = (0, 0);
        if is_new && !goes_on {
            if let Some(before) = &before {
                // Where another one is on trial, that is over by this: what it could not use, this one may.
                self.give_states_back(before, row.trial.is_some()).await?;
            }
            lost = self.try_states(&plugin, before.as_deref(), force).await?;
        }
        self.learn_buttons(&plugin).await?;
        let Some(before) = before.filter(|_| is_watched) else {
            let old = row.clone();
            shelf::serves(&mut row, found.as_str(), &plugin.manifest.version);
            row.rejected.retain(|rejected| rejected.version != found.as_str());
            self.shelf.keep(name, found.as_str(), wasm).await;
            if row != old {
                self.shelf.write(name, &old, &row).await?;
            }
            plugin.recall(row.pace);
            // No trial is on, or none any longer.
            self.give_states_back(&plugin, false).await?;
            return Ok(Loaded { entry: self.serving(plugin, entry), refused: None });
        };
        // A keyboard of the one on trial may be answered by the other, also after a rollback.
        self.learn_buttons(&before).await?;
        let old = row.clone();
        if !goes_on {
            row.trial_since = unix_millis();
        }
        row.trial = Some(found.to_string());
        before.recall(row.pace);
        row.pace = before.pace();
        self.shelf.keep(name, found.as_str(), wasm).await;
        self.shelf.write(name, &old, &row).await?;
        let trial = Trial::new(plugin, &before, entry.canary, config.dispatch.max_attempts).losing(lost.0, lost.1);
        Ok(Loaded { entry: Entry { trial: Some(Arc::new(trial)), ..self.serving(before, entry) }, refused: None })
    }

    /// Makes a plugin of a file that has been let in before, if it still is.
    async fn make(
        &self,
        config: &Config,
        name: &PluginName,
        entry: &config::Plugin,
        wasm: Vec<u8>,
    ) -> anyhow::Result<Arc<Plugin>> {
        let plugin = self.loader.make(config, name, entry, wasm.clone()).await?;
        admission::goes_on(config, entry, &plugin, &wasm).await?;
        self.learn_buttons(&plugin).await?;
        Ok(plugin)
    }

    /// Tells a plugin which texts its buttons have had, and writes down those that they have now.
    async fn learn_buttons(&self, plugin: &Plugin) -> anyhow::Result<()> {
        if plugin.buttons().is_empty() {
            return Ok(());
        }
        let key = button::key(self.bot, &plugin.name);
        let row = self.store.get(&key)?;
        // One that can't be read is as good as none.
        let known = row.and_then(|row| ButtonRow::decode(&row).ok()).unwrap_or_default();
        let texts = plugin.buttons().remember(known.texts.clone());
        if texts != known.texts {
            let ops = vec![Op::Put { key, value: ButtonRow { texts }.encode() }];
            match self.store.commit(Commit { ops, ..Commit::default() }).await {
                Ok(_) | Err(CommitError::Conflict { .. }) => {}
                Err(CommitError::Store(error)) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// The version that served last, from the files that are kept.
    async fn last(&self, config: &Config, name: &PluginName, entry: &config::Plugin) -> anyhow::Result<Arc<Plugin>> {
        let row = self.shelf.row(name)?;
        self.make(config, name, entry, self.shelf.read(name, &row.serving).await?).await
    }

    /// The entry of a version that serves, or that another one is measured by.
    fn serving(&self, plugin: Arc<Plugin>, entry: &config::Plugin) -> Entry {
        self.remember(&plugin);
        Entry { plugin, trial: None, priority: entry.priority, on_crash: entry.on_crash }
    }

    fn remember(&self, plugin: &Arc<Plugin>) {
        let mut serving = self.serving.lock().unwrap_or_else(PoisonError::into_inner);
        serving.insert(plugin.name.clone(), Arc::downgrade(plugin));
    }

    /// The version that has served, from the files that are kept, or as it serves just now.
    async fn kept(
        &self,
        config: &Config,
        name: &PluginName,
        entry: &config::Plugin,
        version: &str,
    ) -> Option<Arc<Plugin>> {
        let loaded = async { self.make(config, name, entry, self.shelf.read(name, version).await?).await };
        let error = match loaded.await {
            Ok(plugin) => return Some(plugin),
            Err(error) => format!("{error:#}"),
        };
        let serving = self.serving.lock().unwrap_or_else(PoisonError::into_inner).get(name).and_then(Weak::upgrade);
        let serving = serving.filter(|plugin| plugin.version.as_str() == version);
        match &serving {
            Some(_) => {
                tracing::warn!(plugin = %name, version, error, "the file of the version before can't be had: nobody can go back to it after a restart")
            }
            None => {
                tracing::warn!(plugin = %name, version, error, "the version before can't be had: the new one serves at once")
            }
        }
        serving
    }

    /// The version on trial has done well: it serves.
    pub(super) async fn promote(&self, plugin: &Arc<Plugin>) -> anyhow::Result<()> {
        self.remember(plugin);
        let serves = |row: &mut _| shelf::serves(row, plugin.version.as_str(), &plugin.manifest.version);
        self.shelf.change(&plugin.name, serves).await?;
        self.forget_states_before(&plugin.name).await
    }

    /// The version must not serve again by itself.
    pub(super) async fn reject(&self, name: &PluginName, version: &str, reason: &str) -> anyhow::Result<()> {
        self.shelf.change(name, |row| shelf::reject(row, version, reason)).await
    }

    /// Forgets that a version was rolled back.
    pub(super) async fn pardon(&self, name: &PluginName) -> anyhow::Result<()> {
        if self.shelf.row(name)?.rejected.is_empty() {
            return Ok(());
        }
        self.shelf.change(name, |row| row.rejected.clear()).await
    }

    /// Goes back to a version that has served: the one that is named, else the last before the newest. Answers with the
    /// entry that is to serve now, and what it costs.
    ///
    /// # Errors
    /// When there is no such version, or it can't be loaded any more.
    pub(super) async fn go_back(
        &self,
        config: &Config,
        name: &PluginName,
        entry: &config::Plugin,
        to: Option<&str>,
    ) -> anyhow::Result<WentBack> {
        let row = self.shelf.row(name)?;
        let newest = row.trial.clone().unwrap_or_else(|| row.serving.clone());
        let others = || row.good.iter().rev().map(|past| past.version.clone()).filter(|version| *version != newest);
        let target = match to {
            Some(to) => others().find(|version| !to.is_empty() && version.starts_with(to)),
            None => others().next(),
        };
        let Some(target) = target else {
            let known: Vec<_> = others().collect();
            anyhow::bail!(match (to, known.is_empty()) {
                (_, true) => format!("no other version of `{name}` is kept"),
                (Some(to), false) => format!("no version {to} of `{name}` is kept; there are {}", known.join(", ")),
                (None, false) => unreachable!("the newest of them is taken"),
            });
        };
        let plugin = self.make(config, name, entry, self.shelf.read(name, &target).await?).await?;
        // What was taken over on trial comes back by itself, and only that.
        if row.trial.is_none() {
            self.forget_states_before(name).await?;
        }
        let (lost, states) = self.lost_by(&plugin).await?;
        if lost > 0 {
            tracing::warn!(plugin = %name, states, lost, "states that the version before does not take over will be kept aside");
        }
        // Also one that is being loaded just now must not serve by itself.
        let saved = self.loader.read(&entry.path).await.ok().map(|wasm| crate::plugin::Version::of(&wasm).to_string());
        let sent_back: BTreeSet<_> = saved.into_iter().chain([newest]).filter(|version| *version != target).collect();
        let goes_back = |row: &mut _| {
            for version in &sent_back {
                shelf::reject(row, version, "an operator went back to another version");
            }
            shelf::serves(row, &target, &plugin.manifest.version);
        };
        self.shelf.change(name, goes_back).await?;
        Ok(WentBack { entry: self.serving(plugin, entry), lost, states })
    }

    /// Writes down how the versions have done that serve, for the day on which others come.
    pub(super) async fn keep_paces<'a>(&self, serving: impl Iterator<Item = &'a Arc<Plugin>>) -> anyhow::Result<()> {
        for plugin in serving {
            let (row, pace) = (self.shelf.row(&plugin.name)?, plugin.pace());
            if row.serving == plugin.version.as_str() && row.pace != pace {
                self.shelf.change(&plugin.name, |row| row.pace = pace).await?;
            }
        }
        Ok(())
    }

    pub(super) fn is_disabled(&self, name: &PluginName) -> anyhow::Result<bool> {
        Ok(self.shelf.row(name)?.disabled)
    }

    pub(super) async fn set_disabled(&self, name: &PluginName, disabled: bool) -> anyhow::Result<()> {
        self.shelf.change(name, |row| row.disabled = disabled).await
    }

    /// Has a version read the operator's texts again.
    ///
    /// # Errors
    /// When they can't be used; then those before stay.
    pub(super) async fn read_texts(&self, plugin: &Arc<Plugin>) -> anyhow::Result<()> {
        let reading = plugin.clone();
        tokio::task::spawn_blocking(move || reading.read_texts()).await??;
        self.learn_buttons(plugin).await
    }

    /// What is kept of the plugin's versions.
    pub(super) fn history(&self, name: &PluginName) -> anyhow::Result<crate::store::rows::version::VersionRow> {
        self.shelf.row(name)
    }
}
