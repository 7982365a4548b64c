//! What operators want of plugins.

use std::collections::BTreeMap;

use super::Live;
use crate::admin::{Action, Order, OrderError, PluginState, PluginStatus};
use crate::app::Parts;
use crate::clock::unix_millis;
use crate::config::redaction::redact;
use crate::dispatch::Entry;
use crate::domain::PluginName;
use crate::intake::SetNow;
use crate::operate::{self, Operator};

/// Lets those plugins wait, and only those, that the store says are paused.
pub(in crate::app) fn apply_pauses(parts: &Parts, operator: &Operator) -> Result<(), operate::Error> {
    let paused = operator.paused()?;
    for name in paused.keys() {
        tracing::warn!(plugin = %name, "the plugin is paused: its events wait; `botyard plugin resume` ends that");
    }
    parts.readiness.plugins_paused(paused.keys().cloned());
    parts.dispatcher.set_paused(paused.into_keys().collect());
    Ok(())
}

impl Live {
    /// Whoever has asked may be gone by the time of the answer.
    pub(super) async fn obey(&mut self, order: Order) {
        match order {
            Order::List(answer) => {
                let paused = self.operator.paused().unwrap_or_default();
                let configured = self.config.enabled().map(|(name, _)| name);
                // Those that have failed from their first day are not in the configuration that is in force.
                let mut names: Vec<&PluginName> = configured.chain(self.failures.keys()).collect();
                names.sort_unstable();
                names.dedup();
                let mut statuses: Vec<_> = names.into_iter().map(|name| self.status(name, &paused)).collect();
                statuses.sort_by_key(|status| std::cmp::Reverse(status.priority));
                answer.send(statuses).ok();
            }
            Order::SetWebhook(answer) => {
                // Whoever takes these orders ends before this does only when the host stops.
                self.parts.set_webhook.send(SetNow(answer)).await.ok();
            }
            Order::Change { plugin, action, answer } => {
                let done = self.change(&plugin, action).await;
                answer.send(done).ok();
            }
        }
    }

    async fn change(&mut self, name: &PluginName, action: Action) -> Result<PluginStatus, OrderError> {
        let failed = |error: operate::Error| OrderError::Failed(error.to_string());
        let is_configured = self.config.plugins.get(name).is_some_and(|plugin| plugin.enabled);
        let is_known = match action {
            Action::Reload => is_configured || self.failures.contains_key(name),
            Action::Pause => is_configured,
            // Also one that has been taken out of the configuration meanwhile.
            Action::Resume => is_configured || self.operator.paused().map_err(failed)?.contains_key(name),
        };
        if !is_known {
            let known = self.config.enabled().map(|(name, _)| name.clone()).collect();
            return Err(OrderError::Unknown { name: name.clone(), known });
        }
        match action {
            // It has never been loaded, so it is the configuration that must be looked at again.
            Action::Reload if !is_configured => self.reload_config().await,
            Action::Reload => self.reload(name).await,
            Action::Pause => {
                self.operator.pause(name).await.map_err(failed)?;
                apply_pauses(&self.parts, &self.operator).map_err(failed)?;
            }
            Action::Resume => {
                if self.operator.resume(name).await.map_err(failed)? {
                    self.since.insert(name.clone(), unix_millis());
                }
                apply_pauses(&self.parts, &self.operator).map_err(failed)?;
            }
        }
        match self.failures.get(name) {
            Some((_, reason)) if action == Action::Reload => {
                Err(OrderError::Failed(format!("plugin `{name}` does not load, and nothing has changed: {reason}")))
            }
            _ => Ok(self.status(name, &self.operator.paused().map_err(failed)?)),
        }
    }

    async fn reload(&mut self, name: &PluginName) {
        let Some(entry) = self.config.plugins.get(name) else { return };
        match self.loader.load(&self.config, name, entry).await {
            Ok(plugin) => {
                let entry = Entry { plugin, priority: entry.priority };
                self.swap(vec![(name.clone(), entry)]);
            }
            Err(error) => self.report_failure(name, &error),
        }
    }

    fn status(&self, name: &PluginName, paused: &BTreeMap<PluginName, u64>) -> PluginStatus {
        let routes = self.parts.dispatcher.routes();
        let entry = routes.entries().iter().find(|entry| entry.plugin.name == *name);
        let failure = self.failures.get(name);
        let (state, since) = match (entry, paused.get(name), failure) {
            (None, _, failure) => (PluginState::Failed, failure.map_or(0, |(since, _)| *since)),
            (Some(_), Some(since), _) => (PluginState::Paused, *since),
            (Some(_), None, Some((since, _))) => (PluginState::Stale, *since),
            (Some(_), None, None) => (PluginState::Serving, self.since.get(name).copied().unwrap_or(0)),
        };
        PluginStatus {
            name: name.to_string(),
            version: entry.map(|entry| entry.plugin.version.to_string()).unwrap_or_default(),
            manifest_version: entry.map(|entry| entry.plugin.manifest.version.clone()).unwrap_or_default(),
            priority: entry.map_or(0, |entry| entry.priority),
            state,
            since,
            reason: failure.map(|(_, reason)| redact(reason).into_owned()),
        }
    }
}
