//! How plugins do: what follows from runs that fail, beyond the event itself.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::Notice;
use super::age;
use super::breaker::{Breaker, Follows, Ran};
use super::claims::Run;
use super::failure::Failure;
use super::routes::{Routes, Version};
use super::run::{Context, Head, Outcome, millis};
use super::trial::Ended;
use crate::backoff;
use crate::clock::unix_millis;
use crate::domain::PluginName;
use crate::plugin::{Invocation, RunError, RunReport, Spent, Verdict};
use crate::store::rows::inbox::InboxRow;
use crate::store::rows::paused::{self, Crash, PausedRow};
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
        let (ended, ran) = match result {
            Ok(Verdict::Pass) => (Ended::Passed(spent), Ran::Passed),
            Ok(Verdict::Done) if observing => (Ended::Passed(spent), Ran::Well { observing }),
            Ok(Verdict::Done) => (Ended::Well(spent), Ran::Well { observing }),
            // It says nothing of the plugin.
            Err(RunError::Host(_) | RunError::Short { .. } | RunError::Superseded) => return,
            Err(_) => (Ended::Badly, Ran::Failed { observing }),
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
        let follows = match (breakers.get_mut(plugin), result) {
            (Some(breaker), _) => breaker.note(event, ran, now),
            (None, Ok(_)) => return,
            (None, Err(_)) => breakers.entry(plugin.clone()).or_default().note(event, ran, now),
        };
        match follows {
            Follows::Nothing => {}
            Follows::GoOn => self.resumed.notify_one(),
            Follows::Recovered => {
                tell(Notice::Recovered { plugin: plugin.clone() });
                self.resumed.notify_one();
            }
            Follows::Rest(rest) => {
                let reason = result.as_ref().err().map(ToString::to_string).unwrap_or_default();
                tell(Notice::Rests { plugin: plugin.clone(), rest, reason });
                let (resumed, jobs_changed) = (self.resumed.clone(), self.jobs_changed.clone());
                tokio::spawn(async move {
                    tokio::time::sleep_until(now + rest).await;
                    resumed.notify_one();
                    jobs_changed.notify_one();
                });
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

    /// Forgets the failures of plugins that other versions serve for now, or none: those begin anew. Answers with the
    /// plugins whose rest has ended by that.
    pub(super) fn end_rests(&self, before: &Routes, now: &Routes) -> Vec<PluginName> {
        let stays = |name: &PluginName| {
            let (before, now) = (before.entry(name), now.entry(name));
            before.zip(now).is_some_and(|(before, now)| Arc::ptr_eq(before.newest(), now.newest()))
        };
        let mut breakers = self.breakers.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = breakers.extract_if(|name, _| !stays(name));
        ended.filter(|(_, breaker)| breaker.has_rest()).map(|(name, _)| name).collect()
    }

    /// Whether the plugin's events wait: an operator has it paused, or it rests.
    pub(super) fn must_wait(&self, plugin: &PluginName, event: u64) -> bool {
        if self.paused.load().contains(plugin) {
            return true;
        }
        let mut breakers = self.breakers.lock().unwrap_or_else(PoisonError::into_inner);
        breakers.get_mut(plugin).is_some_and(|breaker| !breaker.lets_through(event, Instant::now()))
    }

    /// Whether the plugin's jobs wait. Their number is not that of an event: how they do says nothing of a rest's end.
    pub(super) fn must_jobs_wait(&self, plugin: &PluginName) -> bool {
        let breakers = self.breakers.lock().unwrap_or_else(PoisonError::into_inner);
        self.paused.load().contains(plugin) || breakers.get(plugin).is_some_and(|breaker| breaker.rests(Instant::now()))
    }

    /// Whether the plugin has had a rest and has handled nothing since.
    pub(super) fn has_rest(&self, plugin: &PluginName) -> bool {
        let breakers = self.breakers.lock().unwrap_or_else(PoisonError::into_inner);
        breakers.get(plugin).is_some_and(Breaker::has_rest)
    }

    /// An event's turn is over, however it ended: where it was to tell whether a plugin's rest is over and has not, another
    /// one is.
    pub(super) fn let_go_of_probes(&self, event: u64) {
        let mut breakers = self.breakers.lock().unwrap_or_else(PoisonError::into_inner);
        if breakers.values_mut().filter_map(|breaker| breaker.let_go(event).then_some(())).count() > 0 {
            self.resumed.notify_one();
        }
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
            backtrace = failure.backtrace_once(1), "a run crashed, and the plugin is paused; `botyard plugin resume` lets it go on"
        );
        let (version, reason) = (failure.version.clone(), failure.reason.clone());
        let crash = Crash { event: head.number, version, reason, backtrace: failure.backtrace.clone() };
        let value = PausedRow { since: unix_millis(), crash: Some(crash) }.encode();
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
