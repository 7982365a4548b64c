//! What is loaded, beside everything else: compiling a plugin and trying its migrations can take minutes, and neither
//! orders nor what the runs show may wait for that.
//!
//! One thing is loaded at a time, in the order in which it was wanted; what is wanted twice is loaded once, in its newest
//! form, and a file that changes while it is loaded is begun anew. Where something has been decided about a plugin meanwhile (it was sent back, went back, was switched off, has
//! other texts), what was loaded for it rests on less than is known: it is not used, and loaded again. The entries of a changed `bot.toml`
//! come into force together, when all of them are loaded.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::{Live, Loaded};
use crate::admin::{Action, OrderError, PluginStatus};
use crate::app::versions::WentBack;
use crate::app::{bulk_limits, send_settings};
use crate::config::Config;
use crate::domain::PluginName;
use crate::plugin::Lock;
use crate::whose;

/// How long new grants may take to be heard of. Without the system's events, files are looked at every two seconds.
const GRANTS_FIRST: Duration = Duration::from_secs(3);

/// What is to be loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Work {
    /// The plugins of a file that has changed.
    File(PathBuf),
    /// What `bot.toml` says. With a file that has changed, nothing else is tried again that did not load before.
    Config(Option<PathBuf>),
    /// One plugin; with `force`, whatever becomes of states.
    Plugin { name: PluginName, force: bool },
}

/// Whoever has ordered something, and is told how the plugin stands then.
pub(super) struct Asked {
    pub(super) plugin: PluginName,
    pub(super) action: Action,
    pub(super) answer: oneshot::Sender<Result<PluginStatus, OrderError>>,
}

/// Work that is to be done, and who waits for it.
pub(super) struct Wanted {
    work: Work,
    asked: Vec<Asked>,
}

/// What is being loaded.
pub(super) struct Loading {
    number: u64,
    work: Work,
    task: AbortHandle,
}

/// What has come of something that was done beside the loop.
pub(super) enum Done {
    Loaded {
        number: u64,
        wanted: Wanted,
        /// As it was loaded by.
        config: Box<Config>,
        tried: Vec<(PluginName, anyhow::Result<Loaded>)>,
        /// What had been decided about each before.
        decided: BTreeMap<PluginName, u64>,
    },
    WentBack {
        asked: Asked,
        from: String,
        went: anyhow::Result<WentBack>,
    },
    Texts {
        plugin: PluginName,
        read: anyhow::Result<()>,
    },
    /// Nothing that anything follows from.
    Nothing,
}

impl Live {
    /// Has something loaded when its turn comes.
    pub(super) fn want(&mut self, work: Work, asked: Option<Asked>) {
        match self.wanted_work.iter_mut().find(|wanted| wanted.work == work) {
            Some(wanted) => wanted.asked.extend(asked),
            None => self.wanted_work.push_back(Wanted { work, asked: asked.into_iter().collect() }),
        }
    }

    /// Whatever is being loaded for the plugin does not know of it.
    pub(super) fn decided(&mut self, plugin: &PluginName) {
        *self.decisions.entry(plugin.clone()).or_default() += 1;
    }

    /// A watched path holds something else.
    pub(super) fn has_changed(&mut self, path: PathBuf) {
        if let Some(plugin) = self.plugin_of_texts(&path) {
            self.read_texts(plugin);
            return;
        }
        // Nobody waits for what the file held before.
        let is_old = |loading: &mut Loading| matches!(&loading.work, Work::File(file) if *file == path);
        if let Some(old) = self.loading.take_if(is_old) {
            old.task.abort();
        }
        if self.pending.values().any(|pending| *pending == path) {
            self.want(Work::Config(Some(path)), None);
        } else {
            self.want(Work::File(path), None);
        }
    }

    /// Begins with what is to be loaded next, if nothing is being loaded.
    pub(super) fn load_next(&mut self) {
        while self.loading.is_none()
            && let Some(wanted) = self.wanted_work.pop_front()
        {
            let found = match &wanted.work {
                Work::File(_) if self.waits_for_grants() => {
                    self.wanted_work.push_front(wanted);
                    return;
                }
                Work::File(path) => {
                    let of_path = self.config.enabled().filter(|(_, entry)| entry.path == *path);
                    Some((self.config.clone(), of_path.map(|(name, _)| name.clone()).collect()))
                }
                Work::Config(file) => self.take_up_config(file.clone().as_deref()),
                Work::Plugin { name, .. } => Some((self.config.clone(), vec![name.clone()])),
            };
            let Some((config, mut names)) = found else {
                self.answer(wanted.asked);
                continue;
            };
            names.retain(|name| !self.disabled.contains(name) && config.plugins.contains_key(name));
            let of = |name: &PluginName| (name.clone(), self.decisions.get(name).copied().unwrap_or_default());
            let decided = names.iter().map(of).collect();
            let versions = self.versions.clone();
            self.begun += 1;
            let (number, work) = (self.begun, wanted.work.clone());
            let force = matches!(work, Work::Plugin { force: true, .. });
            let task = self.tasks.spawn(whose::same(async move {
                let mut tried = Vec::new();
                for name in names {
                    let Some(entry) = config.plugins.get(&name) else { continue };
                    let loaded = versions.load(&config, &name, entry, force).await;
                    tried.push((name, loaded));
                }
                Done::Loaded { number, wanted, config: Box::new(config), tried, decided }
            }));
            self.loading = Some(Loading { number, work, task });
        }
    }

    /// Takes over what has come of something.
    pub(super) fn is_done(&mut self, done: Done) {
        match done {
            Done::Loaded { number, wanted, config, tried, decided } => {
                // One that was given up may have been done already.
                if self.loading.take_if(|loading| loading.number == number).is_none() {
                    return;
                }
                let stale =
                    |(name, then): (&PluginName, &u64)| self.decisions.get(name).copied().unwrap_or_default() != *then;
                if decided.iter().any(stale) {
                    self.wanted_work.push_front(wanted);
                    return;
                }
                match &wanted.work {
                    Work::Config(file) => self.put_in_force(*config, tried, file.as_deref()),
                    Work::File(_) | Work::Plugin { .. } => {
                        let loaded = self.those_that_load(tried, |_, _| {});
                        self.swap(loaded);
                    }
                }
                self.answer(wanted.asked);
            }
            Done::WentBack { asked, from, went } => {
                match went {
                    Ok(went) => self.has_gone_back(&asked.plugin, &from, went),
                    Err(error) => {
                        asked.answer.send(Err(OrderError::Failed(format!("{error:#}")))).ok();
                        return;
                    }
                }
                self.answer(vec![asked]);
            }
            Done::Nothing => {}
            Done::Texts { plugin, read: Ok(()) } => {
                tracing::info!(%plugin, "the operator's texts for the plugin have changed and are in force");
                self.parts.readiness.plugin_texts(&plugin, None);
                self.parts.menu.notify_one();
            }
            Done::Texts { plugin, read: Err(error) } => {
                let error = format!("{error:#}");
                tracing::error!(%plugin, error, "the operator's texts for the plugin can't be used; those before stay");
                self.parts.readiness.plugin_texts(&plugin, Some(error));
            }
        }
    }

    /// Tells those that have waited for it how their plugins stand.
    pub(super) fn answer(&self, asked: Vec<Asked>) {
        for Asked { plugin, action, answer } in asked {
            answer.send(self.outcome(&plugin, &action)).ok();
        }
    }

    fn those_that_load(
        &mut self,
        tried: Vec<(PluginName, anyhow::Result<Loaded>)>,
        mut failed: impl FnMut(&mut Self, &PluginName),
    ) -> Vec<(PluginName, Loaded)> {
        let mut loaded = Vec::new();
        for (name, result) in tried {
            match result {
                Ok(plugin) => loaded.push((name, plugin)),
                Err(error) => {
                    self.report_failure(&name, &format!("{error:#}"));
                    failed(self, &name);
                }
            }
        }
        loaded
    }

    /// Applies what of a changed `bot.toml` needs nothing to be loaded; answers with what does, if anything has changed.
    fn take_up_config(&mut self, file: Option<&Path>) -> Option<(Config, Vec<PluginName>)> {
        let new = self.wanted.clone();
        for (name, _) in self.failures.extract_if(.., |name, _| !new.plugins.get(name).is_some_and(|new| new.enabled)) {
            self.parts.readiness.plugin_ok(&name);
        }
        let changes = Config::live_changes(&self.config, &new);
        let touched = touched(&self.config, &new);
        // What failed and is not wanted any more is as it should be again; the others are told of when they are loaded.
        let gone: Vec<_> =
            self.pending.extract_if(.., |name, _| !touched.contains(name)).map(|(name, _)| name).collect();
        for name in gone.into_iter().chain(changes.removed.iter().cloned()) {
            self.failures.remove(&name);
            self.parts.readiness.plugin_ok(&name);
        }
        if changes.is_empty() {
            return None;
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
        for name in &touched {
            // Also one that was switched off before it was taken out, and is back.
            if self.versions.is_disabled(name).unwrap_or_default() {
                self.disabled.insert(name.clone());
            }
        }
        let names = touched.into_iter().filter(|name| !self.is_still_broken(name, file)).collect();
        Some((new, names))
    }

    fn is_still_broken(&self, name: &PluginName, file: Option<&Path>) -> bool {
        file.is_some_and(|file| self.pending.get(name).is_some_and(|path| path != file))
    }

    /// What was loaded by a changed `bot.toml` comes into force, all at once.
    fn put_in_force(&mut self, new: Config, tried: Vec<(PluginName, anyhow::Result<Loaded>)>, file: Option<&Path>) {
        // A plugin that does not load keeps its old entry, in every respect.
        let touched = touched(&self.config, &new);
        let mut failed: Vec<_> = touched.into_iter().filter(|name| self.is_still_broken(name, file)).collect();
        let loaded = self.those_that_load(tried, |_, name| failed.push(name.clone()));
        let mut applied = new.clone();
        loaded.iter().for_each(|(name, _)| drop(self.pending.remove(name)));
        for name in failed {
            let Some(entry) = new.plugins.get(&name) else { continue };
            self.pending.insert(name.clone(), entry.path.clone());
            match self.config.plugins.get(&name) {
                Some(old) => applied.plugins.insert(name, old.clone()),
                None => applied.plugins.remove(&name),
            };
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
    fn waits_for_grants(&mut self) -> bool {
        if self.lock == Lock::read(&self.config.file) {
            self.grants_due = None;
            return false;
        }
        let due = *self.grants_due.get_or_insert_with(|| Instant::now() + GRANTS_FIRST);
        if Instant::now() < due {
            return true;
        }
        // None come where bot.toml can't be used, or bot.lock is gone.
        self.grants_due = None;
        self.let_in();
        false
    }

    pub(super) fn take_over(&mut self, config: Config) {
        self.wanted = config;
        self.grants_due = None;
        // Before the files, which may be granted more by it.
        let waiting = std::mem::take(&mut self.wanted_work);
        self.want(Work::Config(None), None);
        self.wanted_work
            .extend(waiting.into_iter().filter(|wanted| wanted.work != Work::Config(None) || !wanted.asked.is_empty()));
        self.let_in();
    }

    /// If `bot.lock` has changed, what has failed may be let in now. What was granted with it stands in `bot.toml`, was
    /// written before, and is taken up before.
    fn let_in(&mut self) {
        let lock = Lock::read(&self.config.file);
        if self.lock == lock {
            return;
        }
        self.lock = lock;
        let failed = self.failures.keys().filter_map(|name| Some(self.config.plugins.get(name)?.path.clone()));
        for path in failed.collect::<Vec<_>>() {
            self.want(Work::File(path), None);
        }
    }

    fn plugin_of_texts(&self, path: &Path) -> Option<PluginName> {
        let folder = self.config.i18n.locales.as_ref()?;
        self.config.enabled().map(|(name, _)| name).find(|name| folder.join(name.as_str()) == path).cloned()
    }

    /// Has the versions that serve read the operator's texts again: no version changes by that.
    fn read_texts(&mut self, plugin: PluginName) {
        // One that is being loaded may have read those before.
        self.decided(&plugin);
        let Some(entry) = self.entry(&plugin) else { return };
        let versions = self.versions.clone();
        self.tasks.spawn(whose::same(async move {
            let mut read = versions.read_texts(&entry.plugin).await;
            if let Some(trial) = &entry.trial {
                read = read.and(versions.read_texts(trial.plugin()).await);
            }
            Done::Texts { plugin, read }
        }));
    }
}

/// The plugins that are to be loaded for a new configuration.
fn touched(old: &Config, new: &Config) -> Vec<PluginName> {
    let changes = Config::live_changes(old, new);
    if changes.i18n {
        new.enabled().map(|(name, _)| name.clone()).collect()
    } else {
        changes.added.into_iter().chain(changes.changed).collect()
    }
}
