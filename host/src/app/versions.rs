//! From a plugin's file to the versions that serve: at once, on trial beside the one before, or not at all.
//!
//! A version that was rolled back never serves again by itself, also not after a restart: what its file holds is compared
//! with what the store remembers. Where the file of the version before is lost, the new one serves at once, and the log
//! says so.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::Context as _;

use super::plugins::Loader;
use super::shelf::{self, Shelf, Step};
use crate::config::{self, Config};
use crate::dispatch::{Entry, Trial};
use crate::domain::{BotId, PluginName};
use crate::plugin::{self, Lock, LockError, Plugin};
use crate::store::rows::button::{self, ButtonRow};
use crate::store::rows::fsm::{self, StateRow};
use crate::store::rows::prefix_end;
use crate::store::{Commit, CommitError, Op, Store};

/// States that are looked at, or rows that are deleted, at once.
const PAGE: usize = 32;

/// Makes versions serve. Cheap to clone.
#[derive(Clone)]
pub(super) struct Versions {
    loader: Arc<Loader>,
    shelf: Shelf,
    store: Store,
    bot: BotId,
}

/// What became of a plugin's file.
pub(super) struct Loaded {
    pub(super) entry: Entry,
    /// Why the version in the file does not serve, where that is so.
    pub(super) refused: Option<String>,
}

impl Versions {
    pub(super) fn new(loader: Arc<Loader>, config: &Config, store: Store, bot: BotId) -> Self {
        Self { loader, shelf: Shelf::new(&config.store.path, &config.name, store.clone(), bot), store, bot }
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
            match self.load(config, name, entry).await {
                Ok(loaded) => all.push((name.clone(), loaded)),
                Err(error) => match self.last(config, name, entry).await {
                    Ok(plugin) => {
                        let refused = Some(format!("{error:#}"));
                        all.push((name.clone(), Loaded { entry: serving(plugin, entry), refused }));
                    }
                    Err(_) => problems.push(format!("plugin `{name}`: {error:#}")),
                },
            }
        }
        if problems.is_empty() { Ok(all) } else { anyhow::bail!(problems.join("\n")) }
    }

    /// Loads what the plugin's file holds, and says how it is to serve.
    ///
    /// # Errors
    /// When it can't serve.
    pub(super) async fn load(
        &self,
        config: &Config,
        name: &PluginName,
        entry: &config::Plugin,
    ) -> anyhow::Result<Loaded> {
        loop {
            match self.load_once(config, name, entry).await {
                // An operator, or the end of a trial, was quicker.
                Err(error) if error.is::<shelf::Changed>() => {}
                loaded => return loaded,
            }
        }
    }

    async fn load_once(&self, config: &Config, name: &PluginName, entry: &config::Plugin) -> anyhow::Result<Loaded> {
        let wasm = self.loader.read(&entry.path).await?;
        let found = crate::plugin::Version::of(&wasm);
        let mut row = self.shelf.row(name)?;
        let before = match shelf::step(&row, found.as_str(), !entry.probation.is_zero()) {
            Step::Serve => None,
            Step::Try | Step::Refuse(_) => self.kept(config, name, entry, &row.serving).await,
        };
        if let Step::Refuse(rejected) = shelf::step(&row, found.as_str(), true)
            && let Some(before) = &before
        {
            let why = format!(
                "its version {found} was rolled back ({}); save another one, or have this one tried again with \
                 `botyard plugin reload {name}`",
                rejected.reason
            );
            return Ok(Loaded { entry: serving(before.clone(), entry), refused: Some(why) });
        }
        let plugin = self.loader.make(config, name, entry, wasm.clone()).await?;
        if let Err(why) = approval(config, name, entry, &plugin, &wasm).await {
            // Whatever has served goes on, and nothing is written down.
            let before = match before {
                None if !row.serving.is_empty() && row.serving != found.as_str() => {
                    self.kept(config, name, entry, &row.serving).await
                }
                before => before,
            };
            let Some(before) = before else { anyhow::bail!(why) };
            return Ok(Loaded { entry: serving(before, entry), refused: Some(why.to_string()) });
        }
        self.learn_buttons(&plugin).await?;
        let Some(before) = before else {
            let old = row.clone();
            shelf::serves(&mut row, found.as_str(), &plugin.manifest.version);
            row.rejected.retain(|rejected| rejected.version != found.as_str());
            self.shelf.keep(name, found.as_str(), wasm).await;
            if row != old {
                self.shelf.write(name, &old, &row).await?;
            }
            return Ok(Loaded { entry: serving(plugin, entry), refused: None });
        };
        if plugin.manifest.state_version != before.manifest.state_version {
            self.try_migrations(&plugin).await?;
        }
        // A keyboard of the one on trial may be answered by the other, also after a rollback.
        self.learn_buttons(&before).await?;
        self.learn_buttons(&plugin).await?;
        let old = row.clone();
        row.trial = Some(found.to_string());
        self.shelf.keep(name, found.as_str(), wasm).await;
        self.shelf.write(name, &old, &row).await?;
        let trial = Some(Arc::new(Trial::new(plugin, &before, entry.canary)));
        Ok(Loaded { entry: Entry { trial, ..serving(before, entry) }, refused: None })
    }

    /// Makes a plugin of a file that has been let in before.
    async fn make(
        &self,
        config: &Config,
        name: &PluginName,
        entry: &config::Plugin,
        wasm: Vec<u8>,
    ) -> anyhow::Result<Arc<Plugin>> {
        let plugin = self.loader.make(config, name, entry, wasm).await?;
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

    /// The version that has served, from the files that are kept.
    async fn kept(
        &self,
        config: &Config,
        name: &PluginName,
        entry: &config::Plugin,
        version: &str,
    ) -> Option<Arc<Plugin>> {
        let loaded = async { self.make(config, name, entry, self.shelf.read(name, version).await?).await };
        loaded
            .await
            .inspect_err(|error| {
                let error = format!("{error:#}");
                tracing::warn!(plugin = %name, version, error, "the version before can't be had: the new one serves at once");
            })
            .ok()
    }

    /// Has a version take over every state that there is, without anything coming of it.
    async fn try_migrations(&self, plugin: &Plugin) -> anyhow::Result<()> {
        let prefix = fsm::plugin_prefix(self.bot, &plugin.name);
        let end = prefix_end(&prefix);
        let (mut from, mut states, mut refused) = (prefix, 0, 0);
        loop {
            let page = self.store.range(&from, &end, PAGE)?;
            let Some((last, _)) = page.last() else { break };
            from = [&last[..], &[0]].concat();
            for row in page.iter().filter_map(|(_, row)| StateRow::decode(row).ok()) {
                states += 1;
                let tried = plugin.try_migration(&row).await;
                refused += u32::from(
                    tried
                        .with_context(|| {
                            format!("it can't take over the state `{}` of version {}", row.name, row.version)
                        })?
                        .is_err(),
                );
            }
        }
        if refused > 0 {
            tracing::warn!(plugin = %plugin.name, states, refused, "states that the new version does not take over will be kept aside");
        }
        Ok(())
    }

    /// The version on trial has done well: it serves.
    pub(super) async fn promote(&self, plugin: &Plugin) -> anyhow::Result<()> {
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
    /// entry that is to serve now.
    ///
    /// # Errors
    /// When there is no such version, or it can't be loaded any more.
    pub(super) async fn go_back(
        &self,
        config: &Config,
        name: &PluginName,
        entry: &config::Plugin,
        to: Option<&str>,
    ) -> anyhow::Result<Entry> {
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
        // Also one that is being loaded just now must not serve by itself.
        let saved = self.loader.read(&entry.path).await.ok().map(|wasm| plugin::Version::of(&wasm).to_string());
        let sent_back: BTreeSet<_> = saved.into_iter().chain([newest]).filter(|version| *version != target).collect();
        let goes_back = |row: &mut _| {
            for version in &sent_back {
                shelf::reject(row, version, "an operator went back to another version");
            }
            shelf::serves(row, &target, &plugin.manifest.version);
        };
        self.shelf.change(name, goes_back).await?;
        Ok(serving(plugin, entry))
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

    /// States as they were before the trial are of no use after it.
    async fn forget_states_before(&self, name: &PluginName) -> anyhow::Result<()> {
        let prefix = fsm::before_prefix(self.bot, name);
        loop {
            let page = self.store.range(&prefix, &prefix_end(&prefix), PAGE)?;
            if page.is_empty() {
                return Ok(());
            }
            let ops = page.into_iter().map(|(key, _)| Op::Delete { key: key.to_vec() }).collect();
            match self.store.commit(Commit { ops, ..Commit::default() }).await {
                Ok(_) | Err(CommitError::Conflict { .. }) => {}
                Err(CommitError::Store(error)) => return Err(error.into()),
            }
        }
    }
}

/// Whether `bot.lock` lets this file in.
async fn approval(
    config: &Config,
    name: &PluginName,
    entry: &config::Plugin,
    plugin: &Plugin,
    wasm: &[u8],
) -> Result<(), LockError> {
    let file = config.file.clone();
    let lock = tokio::task::spawn_blocking(move || Lock::read(&file)).await;
    let lock = lock.unwrap_or_else(|error| {
        Err(LockError::Unreadable { path: "bot.lock".to_owned(), reason: error.to_string() })
    })?;
    lock.check(name.as_str(), entry.pin == config::Pin::Hash, &plugin::file_hash(wasm), &plugin.rights)
}

fn serving(plugin: Arc<Plugin>, entry: &config::Plugin) -> Entry {
    Entry { plugin, trial: None, priority: entry.priority, on_crash: entry.on_crash }
}
