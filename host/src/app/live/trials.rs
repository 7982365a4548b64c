//! What becomes of versions on trial, and of plugins that fail.

use tokio::time::Instant;

use super::{Entry, Live, Loaded};
use crate::clock::unix_millis;
use crate::dispatch::Notice;
use crate::domain::PluginName;

impl Live {
    /// Notes when the entry's trial ends, if it has one.
    pub(super) fn watch_over(&mut self, name: &PluginName, entry: &Entry) {
        let probation = self.config.plugins.get(name).map(|plugin| plugin.probation);
        match (&entry.trial, probation) {
            (Some(_), Some(probation)) => self.trials.insert(name.clone(), Instant::now() + probation),
            _ => self.trials.remove(name),
        };
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

    /// Lets those versions serve whose time on trial is over.
    pub(super) async fn end_trials(&mut self) {
        let now = Instant::now();
        let over: Vec<PluginName> =
            self.trials.iter().filter(|(_, end)| **end <= now).map(|(name, _)| name.clone()).collect();
        for name in over {
            let Some(entry) = self.entry(&name) else {
                self.trials.remove(&name);
                continue;
            };
            let plugin = entry.newest().clone();
            if let Err(error) = self.versions.promote(&plugin).await {
                tracing::error!(plugin = %name, %error, "that the version has proven itself can't be written down");
            }
            tracing::info!(plugin = %name, version = %plugin.version, "the version has proven itself");
            self.swap(vec![(name, Loaded { entry: Entry { plugin, trial: None, ..entry }, refused: None })]);
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
        self.swap(vec![(name.clone(), Loaded { entry: Entry { trial: None, ..entry }, refused: Some(why) })]);
        if let Err(error) = self.versions.reject(name, version, reason).await {
            tracing::error!(plugin = %name, %error, "that the version was rolled back can't be written down");
        }
    }

    /// The entry that serves.
    pub(super) fn entry(&self, name: &PluginName) -> Option<Entry> {
        let routes = self.parts.dispatcher.routes();
        routes.entries().iter().find(|entry| entry.plugin.name == *name).cloned()
    }
}
