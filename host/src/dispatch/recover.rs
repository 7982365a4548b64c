//! After a run has failed: its plugin may be told, and answer in its place.
//!
//! What the failed run asked for has been dropped already, and it counts as failed, for the trial of a version and for the
//! rest that a plugin is given. The run that is told of it has a fresh instance and limits of its own. If it is done, the
//! event is handled with what it asks for; if it passes or fails itself, the first failure stands.

use super::routes::Version;
use super::run::{Context, Failure};
use crate::config::OnCrash;
use crate::plugin::{self, Invocation, Journal, RunError, Verdict};
use crate::store::Tx;

/// Whether the plugin is to be told. Not where another version may still do better, where the operator wants to look at
/// crashes, or where the plugin has nothing to do with it.
pub(super) fn may_recover(version: &Version, error: &RunError) -> bool {
    match error {
        _ if version.is_on_trial() => false,
        RunError::Host(_) => false,
        RunError::Refused { .. } => version.plugin.manifest.recovers,
        _ => version.plugin.manifest.recovers && version.on_crash != OnCrash::Pause,
    }
}

impl Context {
    /// Tells the plugin of its failure.
    pub(super) async fn recover(
        &self,
        version: &Version,
        invocation: &Invocation,
        tx: Tx,
        error: RunError,
    ) -> (Tx, Result<Verdict, Failure>) {
        let message = match &error {
            RunError::Refused { message, .. } => message.clone(),
            other => other.to_string(),
        };
        let failure = Failure::of_plugin(version, error);
        let retry = failure.retry && invocation.attempt < self.max_attempts;
        let told = Invocation {
            failed: Some(plugin::Failure { message, retry }),
            // Its calls are not those of the run that it stands for.
            journal: Journal::default(),
            ..invocation.clone()
        };
        let report = self.run_watched(version, &told, tx).await;
        let (name, event, reason) = (&failure.plugin, invocation.id, &failure.reason);
        match report.result {
            Ok(Verdict::Done) => {
                tracing::warn!(plugin = %name, version = failure.version, event, reason, "a run failed, and its plugin has answered all the same");
                metrics::counter!("botyard_recovered_total", "plugin" => name.as_str().to_owned()).increment(1);
                (report.tx, Ok(Verdict::Done))
            }
            Ok(Verdict::Pass) => (report.tx, Err(failure)),
            Err(error) => {
                tracing::warn!(plugin = %name, version = failure.version, event, %error, "the handler for errors failed itself");
                (report.tx, Err(failure))
            }
        }
    }
}
