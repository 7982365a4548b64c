//! Whether the bot serves, and if not, why: reported by the parts, asked for by `/readyz`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use tokio::time::Instant;

use crate::config::redaction::redact;
use crate::domain::PluginName;
use crate::intake::Status;
use crate::telegram::WebhookInfo;

/// Shared by everybody who has something to report.
#[derive(Debug, Clone, Default)]
pub struct Readiness {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    intake: Status,
    plugin_failures: BTreeMap<PluginName, String>,
    stale_plugins: BTreeMap<PluginName, String>,
    wrong_texts: BTreeMap<PluginName, String>,
    paused_plugins: BTreeMap<PluginName, String>,
    resting_plugins: BTreeMap<PluginName, String>,
    /// How many jobs wait where no more may.
    full_jobs: BTreeMap<PluginName, usize>,
    config_failure: Option<String>,
    store_failure: Option<String>,
    bot_failure: Option<String>,
    /// Which chats wait for flood control, and until when.
    floods: BTreeMap<String, Instant>,
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
    /// What Telegram last said of the webhook, when updates come that way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook: Option<WebhookInfo>,
}

/// One thing that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// `intake`, `store`, `bot`, `host`, `config`, `send` or `plugins.NAME`.
    pub part: String,
    /// For people.
    pub reason: String,
}

impl Readiness {
    /// How intake goes. After a failure the bot stays ready until the last success is too old, unless it is certain that
    /// nothing is heard.
    pub fn intake(&self, status: Status) {
        self.lock().intake = status;
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

    /// The operator's texts for the plugin can't be used, or can. The bot stays ready.
    pub fn plugin_texts(&self, name: &PluginName, problem: Option<String>) {
        let wrong = &mut self.lock().wrong_texts;
        match problem {
            Some(problem) => wrong.insert(name.clone(), problem),
            None => wrong.remove(name),
        };
    }

    /// These plugins are paused, for these reasons, and no others. The bot stays ready.
    pub fn plugins_paused(&self, paused: impl IntoIterator<Item = (PluginName, String)>) {
        self.lock().paused_plugins = paused.into_iter().collect();
    }

    /// The plugin fails one event after another, so that they wait for a while. The bot stays ready.
    pub fn plugin_rests(&self, name: &PluginName, reason: impl Into<String>) {
        self.lock().resting_plugins.insert(name.clone(), reason.into());
    }

    /// The plugin handles events again.
    pub fn plugin_recovered(&self, name: &PluginName) {
        self.lock().resting_plugins.remove(name);
    }

    /// The plugin's queue of jobs has been full for long, or is not any more. The bot stays ready.
    pub fn jobs_full(&self, name: &PluginName, waiting: Option<usize>) {
        let full = &mut self.lock().full_jobs;
        match waiting {
            Some(waiting) => full.insert(name.clone(), waiting),
            None => full.remove(name),
        };
    }

    /// The configuration that is in force is the one in the file.
    pub fn config_ok(&self) {
        self.lock().config_failure = None;
    }

    /// The file has changed and can't be used, so the old configuration is in force. The bot stays ready.
    pub fn config_failed(&self, reason: impl Into<String>) {
        self.lock().config_failure = Some(reason.into());
    }

    /// These lanes have to wait for long, until then, and no others. The bot stays ready.
    pub fn chats_flooded(&self, chats: BTreeMap<String, Instant>) {
        self.lock().floods = chats;
    }

    /// The store has failed, for good: the host is going to stop.
    pub fn store_failed(&self, reason: impl Into<String>) {
        self.lock().store_failure = Some(reason.into());
    }

    /// The bot does not run, for this reason.
    pub fn bot_failed(&self, reason: impl Into<String>) {
        self.lock().bot_failure = Some(reason.into());
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
        reasons.extend(state.bot_failure.iter().map(|failure| reason("bot", failure)));
        reasons.extend(intake_problem(&state.intake).map(|problem| reason("intake", &problem)));
        let of_plugin = |(name, why): (&PluginName, &String)| reason(&format!("plugins.{name}"), why);
        reasons.extend(state.plugin_failures.iter().map(of_plugin));
        let mut notes: Vec<Reason> = state.stale_plugins.iter().map(of_plugin).collect();
        notes.extend(state.wrong_texts.iter().map(of_plugin));
        notes.extend(state.paused_plugins.iter().map(of_plugin));
        notes.extend(state.resting_plugins.iter().map(|(name, why)| {
            reason(&format!("plugins.{name}"), &format!("it fails one event after another, and rests: {why}"))
        }));
        notes.extend(state.full_jobs.iter().map(|(name, waiting)| {
            let why =
                format!("its queue of jobs has been full for long ({waiting} wait): `jobs.workers` may be too few");
            reason(&format!("plugins.{name}"), &why)
        }));
        notes.extend(state.config_failure.iter().map(|why| reason("config", why)));
        notes.extend(flood_note(&state.floods, Instant::now()).map(|why| reason("send", &why)));
        notes.extend(state.intake.notes.values().map(|why| reason("intake", why)));
        let webhook = state.intake.webhook.clone().map(shown);
        Report { ready: reasons.is_empty(), reasons, notes, webhook }
    }

    /// A panic elsewhere leaves nothing half done in here.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn intake_problem(intake: &Status) -> Option<String> {
    let what = if intake.what.is_empty() { "the last good poll" } else { intake.what };
    let when = match intake.last_good.map(|at| at.elapsed()) {
        Some(age) if age <= intake.patience && !intake.is_deaf => return None,
        Some(age) => format!("{what} was {} s ago", age.as_secs()),
        None => format!("{what} is still to come"),
    };
    Some(intake.problem.as_ref().map_or(when.clone(), |problem| format!("{when}: {problem}")))
}

/// Addresses of webhooks often hold what nobody else should know.
fn shown(mut info: WebhookInfo) -> WebhookInfo {
    info.url = redact(&info.url).into_owned();
    info.last_error_message = info.last_error_message.map(|message| redact(&message).into_owned());
    info
}

/// One note for all of them, that names the one which has to wait longest.
fn flood_note(floods: &BTreeMap<String, Instant>, now: Instant) -> Option<String> {
    let (longest, until) = floods.iter().filter(|(_, until)| **until > now).max_by_key(|(_, until)| **until)?;
    let wait = (*until - now).as_secs();
    let others = match floods.values().filter(|until| **until > now).count() - 1 {
        0 => String::new(),
        1 => " and one other".to_owned(),
        n => format!(" and {n} others"),
    };
    Some(format!("flood control: {longest} has to wait for another {wait} s{others}; something sends too much there"))
}
