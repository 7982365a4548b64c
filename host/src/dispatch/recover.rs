//! After a run has failed: its plugin may be told, and answer in its place.
//!
//! What the failed run asked for has been dropped already, and it counts as failed, for the trial of a version and for the
//! rest that a plugin is given. The run that is told of it has a fresh instance and limits of its own. If it is done, the
//! event is handled with what it asks for; if it passes or fails itself, the first failure stands.

use std::time::Duration;

use super::failure::Failure;
use super::routes::Version;
use crate::config::OnCrash;
use crate::plugin::{self, Invocation, RunError, RunReport, Verdict};
use crate::store::Tx;

/// A failure of which its plugin is told.
pub(super) struct Told {
    /// The run that is told.
    pub(super) invocation: Invocation,
    error: RunError,
    cpu: Duration,
    time: Duration,
    calls: u32,
    lines: Vec<String>,
}

/// Whether the plugin is to be told. Not where another version may still do better, where the operator wants to look at
/// crashes, or where the plugin has nothing to do with it.
fn may_recover(version: &Version, error: &RunError) -> bool {
    match error {
        _ if version.is_on_trial() => false,
        // None is a failure of the plugin.
        RunError::Host(_) | RunError::Short { .. } | RunError::Superseded => false,
        RunError::Refused { .. } => version.plugin.manifest.recovers,
        _ => version.plugin.manifest.recovers && version.on_crash != OnCrash::Pause,
    }
}

impl Told {
    /// Of a run that does not only look on, with the transaction for the second one; the report itself where nobody is to be
    /// told. An event has `max_attempts`; a job has its own.
    pub(super) fn of(
        version: &Version,
        invocation: &Invocation,
        report: RunReport,
        max_attempts: u32,
    ) -> Result<(Self, Tx), Box<RunReport>> {
        let error = match &report.result {
            Err(error) if may_recover(version, error) => error.clone(),
            _ => return Err(Box::new(report)),
        };
        let message = match &error {
            RunError::Refused { message, .. } => message.clone(),
            other => other.to_string(),
        };
        let most = match invocation.event {
            plugin::Event::Job(_) => version.plugin.limits().jobs.attempts,
            _ => max_attempts,
        };
        let retry = Failure::of_plugin(version, error.clone()).retry && invocation.attempt < most;
        let invocation = Invocation {
            failed: Some(plugin::Failure { message, retry }),
            // Its calls are not those of the run that it stands for.
            journal: invocation.journal.told_of_failure(),
            ..invocation.clone()
        };
        Ok((
            Self { invocation, error, cpu: report.cpu, time: report.time, calls: report.calls, lines: report.lines },
            report.tx,
        ))
    }

    /// What stands after the second run, as of one run; and why the first one failed, where that is answered.
    pub(super) fn settle(self, version: &Version, second: RunReport) -> (RunReport, Option<String>) {
        let (name, version, event) = (&version.plugin.name, &version.plugin.version, self.invocation.id);
        let (result, answered) = match second.result {
            Ok(Verdict::Done) => {
                let reason = self.error.to_string();
                tracing::warn!(plugin = %name, %version, event, reason, "a run failed, and its plugin has answered all the same");
                metrics::counter!("botyard_recovered_total", "plugin" => name.as_str().to_owned()).increment(1);
                (Ok(Verdict::Done), Some(reason))
            }
            Ok(Verdict::Pass) => (Err(self.error), None),
            Err(error) => {
                tracing::warn!(plugin = %name, %version, event, %error, "the handler for errors failed itself");
                (Err(self.error), None)
            }
        };
        let (cpu, time, calls) = (self.cpu + second.cpu, self.time + second.time, self.calls + second.calls);
        let lines = [self.lines, second.lines].concat();
        (RunReport { tx: second.tx, result, cpu, time, calls, lines }, answered)
    }
}
