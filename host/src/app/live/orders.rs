//! What operators want of plugins.

use std::collections::BTreeMap;

use super::loads::{Asked, Done, Work};
use super::{Live, Loaded};
use crate::admin::{Action, KeptVersion, Order, OrderError, PluginState, PluginStatus};
use crate::app::Parts;
use crate::app::versions::WentBack;
use crate::clock::unix_millis;
use crate::config::redaction::redact;
use crate::domain::PluginName;
use crate::intake::SetNow;
use crate::operate::{self, Operator};
use crate::store::rows::paused::PausedRow;
use crate::whose;

/// Lets those plugins wait, and only those, that the store says are paused.
pub(in crate::app) fn apply_pauses(parts: &Parts, operator: &Operator) -> Result<(), operate::Error> {
    let paused = operator.paused()?;
    for name in paused.keys() {
        tracing::warn!(plugin = %name, "the plugin is paused: its events wait; `botyard plugin resume` ends that");
    }
    parts.readiness.plugins_paused(paused.iter().map(|(name, row)| (name.clone(), why_paused(row))));
    parts.dispatcher.set_paused(paused.into_keys().collect());
    Ok(())
}

/// What is left to do of an order.
enum Then {
    /// Nothing.
    Answer,
    /// This is to be loaded first.
    Load(Work),
    /// Another version is to be loaded, beside whatever is being loaded.
    GoBack(Option<String>),
}

fn why_paused(row: &PausedRow) -> String {
    match &row.crash {
        Some(crash) => format!("a run crashed, and it is paused: its events wait; {}", crash.reason),
        None => "an operator has paused it: its events wait".to_owned(),
    }
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
                let parts = self.parts.clone();
                // Whoever takes these orders ends before this does only when the host stops, and may be busy until then.
                tokio::spawn(whose::same(async move { parts.set_webhook.send(SetNow(answer)).await.ok() }));
            }
            Order::Versions { plugin, answer } => {
                answer.send(self.kept(&plugin)).ok();
            }
            Order::Change { plugin, action, answer } => {
                let asked = Asked { plugin, action, answer };
                match self.change(&asked.plugin, &asked.action).await {
                    Ok(Then::Answer) => self.answer(vec![asked]),
                    Ok(Then::Load(work)) => self.want(work, Some(asked)),
                    Ok(Then::GoBack(to)) => self.go_back(asked, to),
                    Err(error) => drop(asked.answer.send(Err(error))),
                }
            }
        }
    }

    fn unknown(&self, name: &PluginName) -> OrderError {
        let known = self.config.enabled().map(|(name, _)| name.clone()).collect();
        OrderError::Unknown { name: name.clone(), known }
    }

    /// The versions of a plugin that are kept, the newest first, and those that were rolled back.
    fn kept(&self, name: &PluginName) -> Result<Vec<KeptVersion>, OrderError> {
        if !self.config.plugins.contains_key(name) {
            return Err(self.unknown(name));
        }
        let row = self.versions.history(name).map_err(|error| OrderError::Failed(format!("{error:#}")))?;
        let trial = row.trial.iter().map(|version| KeptVersion {
            version: version.clone(),
            manifest_version: String::new(),
            since: self.since.get(name).copied().unwrap_or(0),
            state: "trial".to_owned(),
            reason: None,
        });
        let good = row.good.iter().rev().map(|past| KeptVersion {
            version: past.version.clone(),
            manifest_version: past.manifest_version.clone(),
            since: past.since,
            state: if past.version == row.serving { "serving" } else { "kept" }.to_owned(),
            reason: None,
        });
        let rejected = row.rejected.iter().rev().map(|rejected| KeptVersion {
            version: rejected.version.clone(),
            manifest_version: String::new(),
            since: rejected.at,
            state: "rejected".to_owned(),
            reason: Some(redact(&rejected.reason).into_owned()),
        });
        Ok(trial.chain(good).chain(rejected).collect())
    }

    /// Does what can be done at once.
    async fn change(&mut self, name: &PluginName, action: &Action) -> Result<Then, OrderError> {
        let failed = |error: operate::Error| OrderError::Failed(error.to_string());
        let is_configured = self.config.plugins.get(name).is_some_and(|plugin| plugin.enabled);
        let is_known = match action {
            Action::Reload { .. } => is_configured || self.failures.contains_key(name),
            Action::Pause | Action::Rollback(_) | Action::Disable | Action::Enable => is_configured,
            // Also one that has been taken out of the configuration meanwhile.
            Action::Resume => is_configured || self.operator.paused().map_err(failed)?.contains_key(name),
        };
        if !is_known {
            return Err(self.unknown(name));
        }
        match action {
            Action::Rollback(to) => return Ok(Then::GoBack(to.clone())),
            Action::Disable => return self.switch(name, false).await,
            Action::Enable => return self.switch(name, true).await,
            Action::Reload { .. } if self.disabled.contains(name) => {
                let why = format!("plugin `{name}` is switched off; `botyard plugin enable {name}` ends that");
                return Err(OrderError::Failed(why));
            }
            // It has never been loaded, so it is the configuration that must be looked at again.
            Action::Reload { .. } if !is_configured => return Ok(Then::Load(Work::Config(None))),
            Action::Reload { force } => {
                // Also a version that was rolled back.
                self.versions.pardon(name).await.map_err(|error| OrderError::Failed(format!("{error:#}")))?;
                return Ok(Then::Load(Work::Plugin { name: name.clone(), force: *force }));
            }
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
        Ok(Then::Answer)
    }

    /// How a plugin stands, for whoever has ordered something.
    pub(super) fn outcome(&self, name: &PluginName, action: &Action) -> Result<PluginStatus, OrderError> {
        match self.failures.get(name) {
            Some((_, reason))
                if matches!(action, Action::Reload { .. })
                    || (*action == Action::Enable && self.entry(name).is_none()) =>
            {
                Err(OrderError::Failed(format!("plugin `{name}` does not load, and nothing has changed: {reason}")))
            }
            _ => {
                let paused = self.operator.paused().map_err(|error| OrderError::Failed(error.to_string()))?;
                Ok(self.status(name, &paused))
            }
        }
    }

    /// Loads the version to go back to, which is in the cache mostly: no other plugin that is compiled is waited for.
    fn go_back(&mut self, asked: Asked, to: Option<String>) {
        let name = &asked.plugin;
        let from = self.entry(name).map(|entry| entry.newest().version.to_string()).unwrap_or_default();
        let (versions, config) = (self.versions.clone(), self.config.clone());
        self.tasks.spawn(whose::same(async move {
            let name = &asked.plugin;
            let went = match config.plugins.get(name) {
                Some(plugin) => versions.go_back(&config, name, plugin, to.as_deref()).await,
                None => Err(anyhow::anyhow!("plugin `{name}` is no longer configured")),
            };
            Done::WentBack { asked, from, went }
        }));
    }

    pub(super) fn has_gone_back(&mut self, name: &PluginName, newest: &str, went: WentBack) {
        let WentBack { entry, lost, states } = went;
        tracing::warn!(plugin = %name, from = newest, to = %entry.plugin.version, "an operator goes back to another version");
        let mut why = format!(
            "an operator went back from version {newest}; save another one, or have this one tried again with \
             `botyard plugin reload {name}`"
        );
        if lost > 0 {
            why += &format!(
                "; {lost} of the {states} states that there are the version before can't use: these conversations begin anew, and \
                 the states are kept aside"
            );
        }
        let plugin = entry.plugin.clone();
        self.swap(vec![(name.clone(), Loaded { entry, refused: Some(why) })]);
        self.give_states_back(plugin);
    }

    /// Gives the plugin events, or none, from now on.
    async fn switch(&mut self, name: &PluginName, on: bool) -> Result<Then, OrderError> {
        let written = self.versions.set_disabled(name, !on).await;
        written.map_err(|error| OrderError::Failed(format!("{error:#}")))?;
        let changed = if on { self.disabled.remove(name) } else { self.disabled.insert(name.clone()) };
        self.decided(name);
        tracing::info!(plugin = %name, on, "an operator has switched the plugin");
        match (changed, on) {
            (false, _) => {}
            (true, true) => return Ok(Then::Load(Work::Plugin { name: name.clone(), force: false })),
            (true, false) => {
                self.failures.remove(name);
                self.parts.readiness.plugin_ok(name);
                self.swap(Vec::new());
            }
        }
        Ok(Then::Answer)
    }

    fn status(&self, name: &PluginName, paused: &BTreeMap<PluginName, PausedRow>) -> PluginStatus {
        let routes = self.parts.dispatcher.routes();
        let entry = routes.entries().iter().find(|entry| entry.plugin.name == *name);
        let failure = self.failures.get(name);
        let resting = self.resting.get(name);
        let serving_since = self.since.get(name).copied().unwrap_or(0);
        let (state, since) = match (entry, paused.get(name), failure, resting) {
            (None, ..) if self.disabled.contains(name) => (PluginState::Disabled, 0),
            (None, _, failure, _) => (PluginState::Failed, failure.map_or(0, |(since, _)| *since)),
            (Some(_), Some(row), ..) => (PluginState::Paused, row.since),
            (Some(_), None, _, Some((since, _))) => (PluginState::Resting, *since),
            (Some(_), None, Some((since, _)), None) => (PluginState::Stale, *since),
            (Some(entry), None, None, None) if entry.trial.is_some() => (PluginState::Trial, serving_since),
            (Some(_), None, None, None) => (PluginState::Serving, serving_since),
        };
        let crash = paused.get(name).and_then(|row| row.crash.as_ref());
        let so_far = entry.and_then(|entry| Some(entry.trial.as_ref()?.so_far()));
        let reason = crash.map(|crash| &crash.reason).or(failure.or(resting).map(|(_, reason)| reason));
        PluginStatus {
            name: name.to_string(),
            version: entry.map(|entry| entry.newest().version.to_string()).unwrap_or_default(),
            manifest_version: entry.map(|entry| entry.newest().manifest.version.clone()).unwrap_or_default(),
            before: entry.filter(|entry| entry.trial.is_some()).map(|entry| entry.plugin.version.to_string()),
            priority: entry.map_or(0, |entry| entry.priority),
            state,
            since,
            reason: reason.map(|reason| redact(reason).into_owned()).or(so_far),
            backtrace: crash.map(|crash| redact(&crash.backtrace).into_owned()).filter(|text| !text.is_empty()),
            stored: self.parts.store.kept(self.operator.bot(), name),
            limits: self.config.plugins.get(name).map_or_else(BTreeMap::new, |plugin| {
                plugin.limits.shown().into_iter().map(|(key, limit)| (key.to_owned(), limit)).collect()
            }),
        }
    }
}
