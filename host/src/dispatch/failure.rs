//! Why an event, or a job, was not handled, and what follows from that.
//!
//! Nothing is decided here but what the error itself says: whether another attempt makes sense, whether it is one at all,
//! and whether the plugin is to be paused for it.

use std::time::Duration;

use super::claims::Run;
use super::routes::Version;
use crate::config::OnCrash;
use crate::domain::PluginName;
use crate::plugin::RunError;

/// Why an event was not handled this time.
pub(super) struct Failure {
    pub(super) plugin: PluginName,
    pub(super) version: String,
    pub(super) reason: String,
    pub(super) backtrace: String,
    pub(super) retry: bool,
    /// Not a failure of anybody: the plugin is paused.
    pub(super) paused: bool,
    /// Nor this: the plugin does not serve.
    pub(super) absent: bool,
    /// Nor is it one that the plugin has no place just now.
    pub(super) crowded: bool,
    /// The plugin is to be paused for it.
    pub(super) pauses: bool,
    /// Of a version on trial: the one before it is asked before the event is given up.
    pub(super) on_trial: bool,
    /// No attempt: what the plugin's runs may use up in a minute is used up, for so long.
    pub(super) put_off: Option<Duration>,
}

impl Failure {
    /// What no further attempt would change.
    pub(super) fn of_host(reason: String) -> Self {
        Self {
            plugin: PluginName::new(""),
            version: String::new(),
            reason,
            backtrace: String::new(),
            retry: false,
            paused: false,
            absent: false,
            crowded: false,
            pauses: false,
            on_trial: false,
            put_off: None,
        }
    }

    /// Where it happened, for the log: with the first attempt, and with no other.
    pub(super) fn backtrace_once(&self, attempt: u32) -> Option<&str> {
        (attempt <= 1 && !self.backtrace.is_empty()).then_some(&self.backtrace)
    }

    /// Its user has ended it.
    pub(super) fn cancelled(run: Option<Run>) -> Self {
        Self::of_run(run, "its user has ended the conversation while it was handled")
    }

    /// Of a version that does not serve any more.
    pub(super) fn hung(run: Option<Run>) -> Self {
        Self { retry: true, ..Self::of_run(run, "it hung far beyond `limits.time`, and the watchdog has ended it") }
    }

    pub(super) fn of_run(run: Option<Run>, reason: &str) -> Self {
        let failure = Self::of_host(reason.to_owned());
        match run {
            Some(Run { plugin, version, .. }) => Self { plugin, version, ..failure },
            None => failure,
        }
    }

    /// No attempt was made.
    pub(super) fn paused(plugin: &PluginName) -> Self {
        Self { plugin: plugin.clone(), retry: true, paused: true, ..Self::of_host("it is paused".to_owned()) }
    }

    /// Nor was one made here.
    pub(super) fn absent(plugin: &PluginName) -> Self {
        let reason = format!("plugin `{plugin}`, whose event this is, does not serve");
        Self { retry: true, absent: true, ..Self::of_host(reason).of(plugin) }
    }

    /// Nobody has failed: what another version is to be given by now, or nobody, is looked at again.
    pub(super) fn superseded(plugin: &PluginName) -> Self {
        let put_off = Some(Duration::ZERO);
        Self { put_off, retry: true, ..Self::of_host("others serve by now".to_owned()).of(plugin) }
    }

    pub(super) fn of(self, plugin: &PluginName) -> Self {
        Self { plugin: plugin.clone(), ..self }
    }

    /// No attempt was made.
    pub(super) fn crowded(plugin: &PluginName) -> Self {
        Self { paused: false, crowded: true, ..Self::paused(plugin) }
    }

    pub(super) fn of_plugin(version: &Version, error: RunError) -> Self {
        let plugin = &version.plugin;
        let (retry, pauses) = match &error {
            // What follows is the version's before it to say, or its fault when this one has proven itself.
            _ if version.is_on_trial() => (true, false),
            RunError::Refused { retry, .. } => (*retry, false),
            RunError::Host(_) | RunError::Short { .. } | RunError::Superseded => (true, false),
            _ => (version.on_crash != OnCrash::Skip, version.on_crash == OnCrash::Pause),
        };
        Self {
            plugin: plugin.name.clone(),
            version: plugin.version.to_string(),
            reason: error.with_place(&plugin.name),
            put_off: match &error {
                RunError::Short { wait, .. } => Some(*wait),
                // At once, for the version that serves now.
                RunError::Superseded => Some(Duration::ZERO),
                _ => None,
            },
            backtrace: match error {
                RunError::Trapped { backtrace, .. } | RunError::Panicked { backtrace, .. } => backtrace,
                _ => String::new(),
            },
            retry,
            paused: false,
            absent: false,
            crowded: false,
            pauses,
            on_trial: version.is_on_trial(),
        }
    }
}
