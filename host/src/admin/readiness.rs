//! Whether the bot serves, and if not, why: reported by the parts, asked for by `/readyz`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tokio::time::Instant;

use crate::config::redaction::redact;
use crate::domain::PluginName;

/// Two attempts at a poll with the longest pause between them, and then some.
const MARGIN: Duration = Duration::from_secs(60);

/// Shared by everybody who has something to report.
#[derive(Debug, Clone)]
pub struct Readiness {
    patience: Duration,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    last_good_poll: Option<Instant>,
    poll_failure: Option<String>,
    plugin_failures: BTreeMap<PluginName, String>,
    stale_plugins: BTreeMap<PluginName, String>,
    paused_plugins: BTreeSet<PluginName>,
    resting_plugins: BTreeMap<PluginName, String>,
    config_failure: Option<String>,
    store_failure: Option<String>,
    is_stopping: bool,
}

/// What `/readyz` answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Updates are fetched and handled.
    pub ready: bool,
    /// Why not; empty when ready.
    pub reasons: Vec<Reason>,
    /// What should be looked at although the bot serves: a change that could not be applied.
    pub notes: Vec<Reason>,
}

/// One thing that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// `intake`, `store`, `host`, `config` or `plugins.NAME`.
    pub part: String,
    /// For people.
    pub reason: String,
}

impl Readiness {
    /// A good poll counts for as long as the next one may take: `poll_timeout` and some time for trying again.
    #[must_use]
    pub fn new(poll_timeout: Duration) -> Self {
        Self { patience: poll_timeout + MARGIN, state: Arc::default() }
    }

    /// Telegram has answered a poll.
    pub fn poll_ok(&self) {
        let mut state = self.lock();
        state.last_good_poll = Some(Instant::now());
        state.poll_failure = None;
    }

    /// A poll has failed. The bot stays ready until the last good one is too old.
    pub fn poll_failed(&self, reason: impl Into<String>) {
        self.lock().poll_failure = Some(reason.into());
    }

    /// The plugin's newest version serves, or the plugin is no longer wanted.
    pub fn plugin_ok(&self, name: &PluginName) {
        let mut state = self.lock();
        state.plugin_failures.remove(name);
        state.stale_plugins.remove(name);
    }

    /// The plugin does not serve: no version of it could be loaded.
    pub fn plugin_failed(&self, name: &PluginName, reason: impl Into<String>) {
        self.lock().plugin_failures.insert(name.clone(), reason.into());
    }

    /// The plugin serves, but not in its newest version: that one could not be loaded. The bot stays ready.
    pub fn plugin_stale(&self, name: &PluginName, reason: impl Into<String>) {
        self.lock().stale_plugins.insert(name.clone(), reason.into());
    }

    /// These plugins are paused by an operator, and no others. The bot stays ready.
    pub fn plugins_paused(&self, names: impl IntoIterator<Item = PluginName>) {
        self.lock().paused_plugins = names.into_iter().collect();
    }

    /// The plugin fails one event after another, so that they wait for a while. The bot stays ready.
    pub fn plugin_rests(&self, name: &PluginName, reason: impl Into<String>) {
        self.lock().resting_plugins.insert(name.clone(), reason.into());
    }

    /// The plugin handles events again.
    pub fn plugin_recovered(&self, name: &PluginName) {
        self.lock().resting_plugins.remove(name);
    }

    /// The configuration that is in force is the one in the file.
    pub fn config_ok(&self) {
        self.lock().config_failure = None;
    }

    /// The file has changed and can't be used, so the old configuration is in force. The bot stays ready.
    pub fn config_failed(&self, reason: impl Into<String>) {
        self.lock().config_failure = Some(reason.into());
    }

    /// The store has failed, for good: the host is going to stop.
    pub fn store_failed(&self, reason: impl Into<String>) {
        self.lock().store_failure = Some(reason.into());
    }

    /// The host was asked to stop: whoever spreads load should look elsewhere.
    pub fn stopping(&self) {
        self.lock().is_stopping = true;
    }

    /// How things stand.
    #[must_use]
    pub fn report(&self) -> Report {
        let state = self.lock();
        let reason = |part: &str, reason: &str| Reason { part: part.to_owned(), reason: redact(reason).into_owned() };
        let mut reasons = Vec::new();
        if state.is_stopping {
            reasons.push(reason("host", "the host is stopping"));
        }
        if let Some(failure) = &state.store_failure {
            reasons.push(reason("store", failure));
        }
        reasons.extend(self.poll_problem(&state).map(|problem| reason("intake", &problem)));
        let of_plugin = |(name, why): (&PluginName, &String)| reason(&format!("plugins.{name}"), why);
        reasons.extend(state.plugin_failures.iter().map(of_plugin));
        let mut notes: Vec<Reason> = state.stale_plugins.iter().map(of_plugin).collect();
        let paused =
            |name: &PluginName| reason(&format!("plugins.{name}"), "an operator has paused it: its events wait");
        notes.extend(state.paused_plugins.iter().map(paused));
        notes.extend(state.resting_plugins.iter().map(|(name, why)| {
            reason(&format!("plugins.{name}"), &format!("it fails one event after another, and rests: {why}"))
        }));
        notes.extend(state.config_failure.iter().map(|why| reason("config", why)));
        Report { ready: reasons.is_empty(), reasons, notes }
    }

    fn poll_problem(&self, state: &State) -> Option<String> {
        let age = state.last_good_poll.map(|at| at.elapsed());
        let when = match age {
            Some(age) if age <= self.patience => return None,
            Some(age) => format!("the last good poll was {} s ago", age.as_secs()),
            None => "no poll has been answered yet".to_owned(),
        };
        Some(state.poll_failure.as_ref().map_or(when.clone(), |failure| format!("{when}: {failure}")))
    }

    /// A panic elsewhere leaves nothing half done in here.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
