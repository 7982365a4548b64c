//! How plugins do: what follows from runs that fail, beyond the event itself.

use std::collections::{BTreeSet, HashMap};
use std::sync::PoisonError;
use std::time::Duration;

use tokio::time::Instant;

use super::Notice;
use super::age;
use super::breaker::Breaker;
use super::claims::Run;
use super::routes::Version;
use super::run::{Context, Failure, Head, Outcome, millis};
use super::trial::Ended;
use crate::backoff;
use crate::clock::unix_millis;
use crate::domain::PluginName;
use crate::plugin::{Invocation, RunError, RunReport, Spent, Verdict};
use crate::store::rows::inbox::InboxRow;
use crate::store::rows::paused::{self, PausedRow};
use crate::store::{self, Commit, Op, Tx};

impl Context {
    /// One run of a plugin, under the eyes of the watchdog.
    pub(super) async fn run_watched(&self, version: &Version, invocation: &Invocation, tx: Tx) -> RunReport {
        let plugin = &version.plugin;
        let began = Instant::now();
        let run = Run {
            plugin: plugin.name.clone(),
            version: plugin.version.to_string(),
            conversation: invocation.conversation,
            began,
            due: began + plugin.limits().time,
        };
        self.claims.set_run(invocation.id, Some(run));
        let report = plugin.run(invocation, tx, self.outbound.clone()).await;
        self.claims.set_run(invocation.id, None);
        metrics::histogram!("botyard_run_cpu_seconds", "plugin" => plugin.name.as_str().to_owned())
            .record(report.cpu.as_secs_f64());
        report
    }

    /// Keeps count of how a plugin does, and says so where something follows from it.
    pub(super) fn note(
        &self,
        version: &Version,
        event: u64,
        observing: bool,
        spent: Spent,
        result: &Result<Verdict, RunError>,
    ) {
        let (plugin, now) = (&version.plugin.name, Instant::now());
        let ended = match result {
            Ok(Verdict::Done) if !observing => Ended::Well(spent),
            Ok(_) => Ended::Passed(spent),
            // It says nothing of the plugin.
            Err(RunError::Host(_) | RunError::Short { .. }) => return,
            Err(_) => Ended::Badly,
        };
        // Nobody listens any more while the host stops.
        let tell = |notice| self.notices.send(notice).unwrap_or_default();
        if let Some((trial, chosen)) = &version.trial
            && let Some(reason) = trial.note(event, *chosen, ended)
        {
            let version = trial.plugin().version.to_string();
            tell(Notice::Worse { plugin: plugin.clone(), version, reason });
        }
        let mut breakers = self.breakers.lock().unwrap_or_else(PoisonError::into_inner);
        match result {
            Ok(_) => {
                if breakers.remove(plugin).is_some_and(|mut breaker| breaker.handled()) {
                    tell(Notice::Recovered { plugin: plugin.clone() });
                    self.resumed.notify_one();
                }
            }
            Err(error) => {
                if let Some(rest) = breakers.entry(plugin.clone()).or_default().failed(event, now) {
                    tell(Notice::Rests { plugin: plugin.clone(), rest, reason: error.to_string() });
                    let resumed = self.resumed.clone();
                    tokio::spawn(async move {
                        tokio::time::sleep_until(now + rest).await;
                        resumed.notify_one();
                    });
                }
            }
        }
    }

    /// A run that its own deadline did not end: it counts like any that takes too long.
    pub(super) fn hung(&self, run: Option<Run>, event: u64, row: &InboxRow) -> Failure {
        let routes = self.routes.load();
        let version = run.as_ref().and_then(|run| {
            let version = routes.find(&run.plugin, &run.conversation, row.attempts)?;
            // Another one that serves by now is not to blame.
            (version.plugin.version.to_string() == run.version).then_some(version)
        });
        let Some(version) = version else { return Failure::hung(run) };
        let error = RunError::Hung(version.plugin.limits().time);
        self.note(&version, event, false, Spent::default(), &Err(error.clone()));
        Failure::of_plugin(&version, error)
    }

    /// Forgets which plugins have failed.
    pub(super) fn end_rests(&self) -> HashMap<PluginName, Breaker> {
        std::mem::take(&mut self.breakers.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether the plugin's events wait: an operator has it paused, or it rests.
    pub(super) fn must_wait(&self, plugin: &PluginName, event: u64) -> bool {
        if self.paused.load().contains(plugin) {
            return true;
        }
        let mut breakers = self.breakers.lock().unwrap_or_else(PoisonError::into_inner);
        breakers.get_mut(plugin).is_some_and(|breaker| !breaker.lets_through(event, Instant::now()))
    }

    /// Lets an event wait until its plugin may use more; that is no attempt. A failure that was counted before keeps it
    /// from waiting beyond its time.
    pub(super) async fn put_off(
        &self,
        head: Head,
        mut row: InboxRow,
        failure: Failure,
        wait: Duration,
    ) -> Result<Outcome, store::Error> {
        let rest = wait.clamp(Duration::from_millis(1), backoff::CAP);
        row.not_before = unix_millis().saturating_add(millis(rest));
        if row.attempts > 0 && age::expired(&row, row.not_before).is_some() {
            return self.set_aside(&head, row, failure).await;
        }
        tracing::debug!(
            plugin = %failure.plugin, event = head.number, lane = ?head.lane, ?rest, reason = failure.reason,
            "an event is put off"
        );
        if !self.settle(&head, |tx| tx.put(head.key.clone(), row.encode())).await? {
            return Ok(Outcome::Done { more: head.more });
        }
        metrics::counter!("botyard_events_total", "outcome" => "put_off").increment(1);
        Ok(Outcome::Rest(rest))
    }

    /// Pauses the plugin, over restarts too, and leaves the event as it is.
    pub(super) async fn pause_after_crash(&self, head: &Head, failure: &Failure) -> Result<Outcome, store::Error> {
        let plugin = &failure.plugin;
        tracing::error!(
            %plugin, version = failure.version, event = head.number, lane = ?head.lane, reason = failure.reason,
            "a run crashed, and the plugin is paused; `botyard plugin resume` lets it go on"
        );
        let value = PausedRow { since: unix_millis() }.encode();
        let ops = vec![Op::Put { key: paused::key(self.bot, plugin), value }];
        self.must_commit(Commit { ops, ..Commit::default() }).await?;
        self.paused.rcu(|paused| {
            let mut paused = BTreeSet::clone(paused);
            paused.insert(plugin.clone());
            paused
        });
        self.notices.send(Notice::Crashed { plugin: plugin.clone() }).unwrap_or_default();
        Ok(Outcome::Paused)
    }
}
