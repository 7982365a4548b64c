//! What becomes of versions on trial, and of plugins that fail.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::loads::Done;
use super::{Entry, Live, Loaded};
use crate::clock::unix_millis;
use crate::dispatch::{End, Notice};
use crate::domain::PluginName;
use crate::plugin::Plugin;
use crate::whose;

impl Live {
    /// Notes when the entry's trial ends, if it has one.
    pub(super) fn watch_over(&mut self, name: &PluginName, entry: &Entry) {
        let probation = self.config.plugins.get(name).map(|plugin| plugin.probation);
        match (&entry.trial, probation) {
            (Some(_), Some(probation)) => {
                // Over restarts as well, and whatever else is loaded anew.
                let since = self.versions.history(name).map_or_else(|_| unix_millis(), |row| row.trial_since);
                let left = left(probation, Duration::from_millis(unix_millis().saturating_sub(since)));
                self.trials.insert(name.clone(), Instant::now() + left)
            }
            _ => self.trials.remove(name),
        };
    }

    /// Its time is over, and has not shown enough.
    fn watch_on(&mut self, name: &PluginName) {
        let probation = self.config.plugins.get(name).map_or(Duration::ZERO, |plugin| plugin.probation);
        self.trials.insert(name.clone(), Instant::now() + probation);
    }

    /// What the runs have shown.
    pub(super) async fn heed(&mut self, notice: Notice) {
        match notice {
            Notice::Worse { plugin, version, reason } => self.roll_back(&plugin, &version, &reason).await,
            Notice::Crashed { .. } => {
                if let Err(error) = super::apply_pauses(&self.parts, &self.operator) {
                    tracing::error!(%error, "which plugins are paused can't be read");
                }
            }
            // Another version may serve by now.
            Notice::Rests { plugin, .. } if !self.parts.dispatcher.has_rest(&plugin) => {}
            Notice::Rests { plugin, rest, reason } => {
                tracing::error!(%plugin, ?rest, reason, "one event after another fails: the plugin's events wait for a while");
                metrics::counter!("botyard_plugin_rests_total", "plugin" => plugin.to_string()).increment(1);
                self.parts.readiness.plugin_rests(&plugin, &reason);
                self.resting.insert(plugin, (unix_millis(), reason));
            }
            Notice::JobsFull { plugin, waiting } => {
                tracing::warn!(%plugin, waiting, "the plugin's queue of jobs is full, and has been for long");
                self.parts.readiness.jobs_full(&plugin, Some(waiting));
            }
            Notice::JobsHaveRoom { plugin } => self.parts.readiness.jobs_full(&plugin, None),
            Notice::Recovered { plugin } => {
                tracing::info!(%plugin, "the plugin handles events again");
                self.parts.readiness.plugin_recovered(&plugin);
                self.resting.remove(&plugin);
            }
        }
    }

    /// What is to be done about those versions whose time on trial is over.
    pub(super) async fn end_trials(&mut self) {
        let now = Instant::now();
        let over: Vec<PluginName> =
            self.trials.iter().filter(|(_, end)| **end <= now).map(|(name, _)| name.clone()).collect();
        for name in over {
            let Some((entry, trial)) = self.entry(&name).and_then(|entry| Some((entry.clone(), entry.trial?))) else {
                self.trials.remove(&name);
                continue;
            };
            // It is given nothing to show what it does.
            let is_idle = self.parts.dispatcher.is_paused(&name) || self.resting.contains_key(&name);
            match if is_idle { End::WatchOn } else { trial.end() } {
                End::WatchOn => self.watch_on(&name),
                End::RollBack(reason) => {
                    let version = trial.plugin().version.to_string();
                    self.roll_back(&name, &version, &reason).await;
                }
                End::Promote => {
                    let plugin = trial.plugin().clone();
                    tracing::info!(plugin = %name, version = %plugin.version, "the version has proven itself");
                    // What begins from now on leaves no states as they were before.
                    let entry = Entry { plugin: plugin.clone(), trial: None, ..entry };
                    self.swap(vec![(name.clone(), Loaded { entry, refused: None })]);
                    if let Err(error) = self.versions.promote(&plugin).await {
                        tracing::error!(plugin = %name, %error, "that the version has proven itself can't be written down");
                    }
                }
            }
        }
    }

    async fn roll_back(&mut self, name: &PluginName, version: &str, reason: &str) {
        let Some(entry) = self.entry(name) else { return };
        if entry.trial.as_ref().is_none_or(|trial| trial.plugin().version.as_str() != version) {
            // It has been replaced meanwhile.
            return;
        }
        let before = &entry.plugin.version;
        tracing::error!(plugin = %name, version, %before, reason, "the new version is rolled back");
        metrics::counter!("botyard_rollbacks_total", "plugin" => name.to_string()).increment(1);
        // First of all: every further event would fail as well.
        let why = format!(
            "its version {version} was rolled back ({reason}); save another one, or have this one tried again with \
             `botyard plugin reload {name}`"
        );
        let plugin = entry.plugin.clone();
        self.swap(vec![(name.clone(), Loaded { entry: Entry { trial: None, ..entry }, refused: Some(why) })]);
        if let Err(error) = self.versions.reject(name, version, reason).await {
            tracing::error!(plugin = %name, %error, "that the version was rolled back can't be written down");
        }
        self.give_states_back(plugin);
    }

    /// Conversations go on as they were before a trial. Beside the loop, since there may be many; one that goes on before its
    /// turn has come takes its own state back, and so do those where that fails.
    pub(super) fn give_states_back(&mut self, plugin: Arc<Plugin>) {
        let versions = self.versions.clone();
        self.tasks.spawn(whose::same(async move {
            if let Err(error) = versions.give_states_back(&plugin, false).await {
                tracing::error!(plugin = %plugin.name, %error, "states can't be given back yet that a version on trial had taken over");
            }
            Done::Nothing
        }));
    }

    /// The entry that serves.
    pub(super) fn entry(&self, name: &PluginName) -> Option<Entry> {
        let routes = self.parts.dispatcher.routes();
        routes.entries().iter().find(|entry| entry.plugin.name == *name).cloned()
    }
}

/// What is left of a probation after so long. What its runs had shown before is forgotten with every start, so it is watched for
/// a while in any case.
fn left(probation: Duration, been: Duration) -> Duration {
    probation.saturating_sub(been).max(probation / 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probation_does_not_begin_anew_and_is_never_over_unseen() {
        let hours = |hours: u64| Duration::from_secs(hours * 3600);
        for (been, expected) in [(0, 100), (1, 99), (89, 11), (95, 10), (100, 10), (5_000, 10)] {
            assert_eq!(left(hours(100), hours(been)), hours(expected), "{been}");
        }
        assert_eq!(left(Duration::ZERO, hours(1)), Duration::ZERO);
    }
}
