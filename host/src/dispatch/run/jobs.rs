//! One attempt at a job.
//!
//! Like a run for an event of a lane, and yet beside the lanes: what it read must still hold when it commits, or it is
//! made again; a job that was cancelled meanwhile leaves nothing behind.

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use tokio::time::Instant;

use super::super::claims::{Run, SLACK};
use super::super::failure::Failure;
use super::super::jobs::Turn;
use super::super::recover::Told;
use super::super::routes::Version;
use super::super::trace;
use super::{Context, Head, millis, seed};
use crate::backoff;
use crate::clock::unix_millis;
use crate::plugin::{self, Invocation, RunReport, Verdict};
use crate::store::rows::dead::{self, DeadRow};
use crate::store::rows::inbox::StoredEvent;
use crate::store::rows::job::{self, HeadRow, TurnRow};
use crate::store::rows::language::Listener;
use crate::store::{self, Commit, CommitError, Op, Read, Tx};

/// So often an attempt is made again because others have changed what it read.
const REPETITIONS: usize = 5;
/// When a job is looked at again whose plugin can't take it just now.
const LOOK_AGAIN: u64 = 1_000;

/// What became of an attempt.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::dispatch) enum JobEnd {
    /// It is done, or gone from the queue in another way.
    Done,
    /// It wants another turn, from this moment on.
    Again { due: u64 },
}

impl Context {
    /// Works on a job.
    pub(in crate::dispatch) async fn job(&self, turn: &Turn) -> Result<JobEnd, store::Error> {
        let later = || Ok(JobEnd::Again { due: unix_millis() + LOOK_AGAIN });
        let key = job::head_key(self.bot, &turn.plugin, turn.id);
        let Some(seen) = self.store.get(&key)? else { return self.forget_turn(turn).await };
        let mut head = match HeadRow::decode(&seen) {
            Ok(head) => head,
            Err(error) => {
                tracing::error!(%error, plugin = %turn.plugin, job = turn.id, "a job can't be read and is dropped");
                self.must_commit(Commit { ops: vec![Op::Delete { key }], ..Commit::default() }).await?;
                return self.forget_turn(turn).await;
            }
        };
        let version = self.routes.load().find(&turn.plugin, &head.conversation, head.attempts);
        let Some(version) = version.filter(|_| !self.must_jobs_wait(&turn.plugin)) else { return later() };
        // Others see by it that somebody works on it, and let it be.
        head.begun = true;
        let reads = vec![Read::Value { key: key.clone(), seen: Some(seen) }];
        let seen = Bytes::from(head.encode());
        let ops = vec![Op::Put { key: key.clone(), value: seen.to_vec() }];
        match self.store.commit(Commit { reads, ops, on_durable: None }).await {
            Ok(_) => {}
            Err(CommitError::Conflict { .. }) => return later(),
            Err(CommitError::Store(error)) => return Err(error),
        }
        let worked = AssertUnwindSafe(self.work(turn, &head)).catch_unwind().await;
        let failure = match worked {
            Ok(Ok(Ok(()))) => {
                self.forget_journal(turn.number);
                return Ok(JobEnd::Done);
            }
            Ok(Ok(Err(failure))) => failure,
            Ok(Err(error)) => return Err(error),
            Err(_) => Failure::of_host("the host panicked; its log says where".to_owned()),
        };
        self.job_failed(turn, &version, head, seen, failure).await
    }

    /// Runs it and commits, and again while others change what was read: a few times, since it may take long.
    async fn work(&self, turn: &Turn, head: &HeadRow) -> Result<Result<(), Failure>, store::Error> {
        let mut contended = BTreeSet::new();
        for _ in 0..=REPETITIONS {
            let guards = self.hot.lock(&contended).await;
            // Each time anew: a state that another version has taken over meanwhile is for that one.
            let version = self.routes.load().find(&turn.plugin, &head.conversation, head.attempts);
            let Some(version) = version else { return Ok(Err(Failure::superseded(&turn.plugin))) };
            let (version, plugin) = (&version, &version.plugin);
            // Of a run that is made again.
            self.recorder.take(turn.number);
            let mut tx = self.begin_tx();
            if tx.get(&job::head_key(self.bot, &turn.plugin, turn.id))?.is_none() {
                // Cancelled, and its turn goes with the next look at the queue.
                self.forget_turn(turn).await?;
                return Ok(Ok(()));
            }
            let payload = tx.peek(&job::payload_key(self.bot, &turn.plugin, turn.id))?.unwrap_or_default();
            let mut conversation = head.conversation;
            conversation.chat = self.current_chat(&mut tx, conversation.chat)?;
            let mut invocation = Invocation {
                id: turn.number,
                attempt: head.attempts + 1,
                now: unix_millis(),
                seed: seed(self.bot, turn.number),
                conversation,
                lane: self.current_lane(&mut tx, head.lane)?,
                bot: self.bot,
                journal: self.journal(turn.number, false),
                standing: version.standing(),
                tape: self.tape(&plugin.name, false),
                failed: None,
                listener: Listener::of_conversation(conversation.user, conversation.chat, self.default_locale.clone()),
                matched: Vec::new(),
                event: plugin::Event::Job(plugin::Job {
                    id: turn.id,
                    name: head.name.clone(),
                    payload: payload.to_vec(),
                    queued: head.queued,
                }),
            };
            // How its jobs do says nothing of how a plugin does at its events: neither trials nor rests count them.
            let seen = trace::before(&self.traces, &version.plugin, &invocation, &tx);
            let before = self.before(&invocation, &tx);
            let report = match self.run_once(turn, version, &invocation, tx).await {
                Ok(report) => report,
                Err(hung) => return Ok(Err(hung)),
            };
            if report.calls > 0 {
                self.keep_journal(turn.number, false, invocation.journal.clone());
            }
            let (report, answered) = match Told::of(version, &invocation, report, self.max_attempts) {
                Ok((told, tx)) => match self.run_once(turn, version, &told.invocation, tx).await {
                    Ok(second) => told.settle(version, second),
                    Err(hung) => return Ok(Err(hung)),
                },
                Err(report) => (*report, None),
            };
            if report.calls > 0 {
                self.keep_journal(turn.number, false, invocation.journal.clone());
            }
            trace::note(&self.traces, seen, &version.plugin, &invocation, false, &report);
            self.take_note(&mut invocation, version, false, before, &report, answered);
            match report.result {
                Ok(Verdict::Done) => {}
                Ok(Verdict::Pass) => {
                    let name = &head.name;
                    return Ok(Err(Failure {
                        plugin: plugin.name.clone(),
                        version: plugin.version.to_string(),
                        ..Failure::of_host(format!("the plugin has no handler for the job `{name}`"))
                    }));
                }
                Err(error) => return Ok(Err(Failure::of_plugin(version, error))),
            }
            let mut tx = report.tx;
            let held = tx.take_held();
            let mut commit = tx.into_commit();
            commit.ops.extend(self.job_removal(turn, head));
            let result = self.store.commit(self.with_notices(commit, held)).await;
            drop(guards);
            match result {
                Ok(_) => {
                    self.recorder.settle(turn.number, None);
                    metrics::counter!("botyard_jobs_total", "plugin" => plugin.name.to_string(), "outcome" => "done")
                        .increment(1);
                    return Ok(Ok(()));
                }
                Err(CommitError::Conflict { key }) => {
                    metrics::counter!("botyard_commit_conflicts_total").increment(1);
                    contended.insert(key);
                    self.sender.chats().pause_while_moving().await;
                }
                Err(CommitError::Store(error)) => return Err(error),
            }
        }
        let reason = "others change what it reads while it works, time and again; let it read that late";
        Ok(Err(Failure { retry: true, ..Failure::of_run(None, reason) }.of(&turn.plugin)))
    }

    /// One run of it; or that it hangs.
    async fn run_once(
        &self,
        turn: &Turn,
        version: &Version,
        invocation: &Invocation,
        tx: Tx,
    ) -> Result<RunReport, Failure> {
        let (plugin, began) = (&version.plugin, Instant::now());
        let run = Run {
            plugin: plugin.name.clone(),
            version: plugin.version.to_string(),
            conversation: invocation.conversation,
            began,
            due: began + plugin.limits().jobs.budget.time,
        };
        let report = plugin.run(invocation, tx, self.outbound.clone());
        // Its own deadline comes first; this one is for a host that hangs.
        let Ok(report) = tokio::time::timeout_at(run.due + SLACK, report).await else {
            metrics::counter!("botyard_watchdog_total", "outcome" => "ended").increment(1);
            tracing::error!(plugin = %plugin.name, job = turn.id, "a job hangs far beyond its time limit, and is ended");
            return Err(Failure::hung(Some(run)));
        };
        metrics::histogram!("botyard_job_cpu_seconds", "plugin" => plugin.name.to_string())
            .record(report.cpu.as_secs_f64());
        Ok(report)
    }

    /// Counts the attempt, or sets the job aside. `seen` is its head as it stands in the store.
    async fn job_failed(
        &self,
        turn: &Turn,
        version: &Version,
        mut head: HeadRow,
        seen: Bytes,
        failure: Failure,
    ) -> Result<JobEnd, store::Error> {
        self.recorder.settle(turn.number, Some(&failure.reason));
        let key = job::head_key(self.bot, &turn.plugin, turn.id);
        let reads = vec![Read::Value { key: key.clone(), seen: Some(seen) }];
        head.begun = false;
        if failure.pauses {
            let value = Bytes::from(head.encode());
            let at = Head {
                key: key.clone(),
                lane: head.lane,
                number: turn.number,
                value: value.clone(),
                more: false,
                rest: Vec::new(),
            };
            self.pause_after_crash(&at, &failure).await?;
            let ops = vec![Op::Put { key, value: value.to_vec() }];
            self.must_commit(Commit { reads, ops, on_durable: None }).await?;
            return Ok(JobEnd::Again { due: head.due });
        }
        // Another time there is more of what it was short of; that is no attempt.
        if let Some(wait) = failure.put_off {
            let rest = wait.clamp(Duration::from_millis(1), backoff::CAP);
            let due = unix_millis().saturating_add(millis(rest));
            head.due = due;
            let turn_key = job::turn_key(self.bot, &turn.plugin, turn.number);
            let ops = vec![
                Op::Put { key, value: head.encode() },
                Op::Put { key: turn_key, value: TurnRow { id: turn.id, due, since: unix_millis() }.encode() },
            ];
            return self.end_job(turn, Commit { reads, ops, on_durable: None }, JobEnd::Again { due }).await;
        }
        head.attempts += 1;
        let (plugin, attempts) = (&turn.plugin, version.plugin.limits().jobs.attempts);
        let is_over = !failure.retry || head.attempts >= attempts;
        tracing::warn!(
            %plugin, version = failure.version, job = turn.id, name = head.name, attempt = head.attempts,
            reason = failure.reason, backtrace = failure.backtrace_once(head.attempts), "a job failed"
        );
        let outcome = if is_over { "dead" } else { "retried" };
        metrics::counter!("botyard_jobs_total", "plugin" => plugin.to_string(), "outcome" => outcome).increment(1);
        if !is_over {
            let due = unix_millis().saturating_add(millis(backoff::delay(head.attempts, rand::random())));
            (head.due, head.reason) = (due, failure.reason);
            let turn_key = job::turn_key(self.bot, plugin, turn.number);
            let ops = vec![
                Op::Put { key, value: head.encode() },
                Op::Put { key: turn_key, value: TurnRow { id: turn.id, due, since: unix_millis() }.encode() },
            ];
            return self.end_job(turn, Commit { reads, ops, on_durable: None }, JobEnd::Again { due }).await;
        }
        tracing::error!(%plugin, job = turn.id, name = head.name, "a job became a dead letter");
        let payload = self.store.get(&job::payload_key(self.bot, plugin, turn.id))?.unwrap_or_default();
        let dead = DeadRow {
            lane: head.lane,
            at: unix_millis(),
            attempts: head.attempts,
            plugin: plugin.as_str().to_owned(),
            version: failure.version,
            reason: failure.reason,
            backtrace: failure.backtrace,
            event: StoredEvent::Job {
                plugin: plugin.clone(),
                conversation: head.conversation,
                id: turn.id,
                name: head.name.clone(),
                payload: payload.to_vec(),
                queued: head.queued,
                key: head.key.clone(),
            },
            rest: Vec::new(),
        };
        let mut ops = self.job_removal(turn, &head);
        ops.push(Op::Append { prefix: dead::bot_prefix(self.bot), value: dead.encode() });
        self.forget_journal(turn.number);
        let ended = self.end_job(turn, Commit { reads, ops, on_durable: None }, JobEnd::Done).await;
        self.dead_added.notify_one();
        ended
    }

    /// A commit that rests on nobody having cancelled the job.
    async fn end_job(&self, turn: &Turn, commit: Commit, end: JobEnd) -> Result<JobEnd, store::Error> {
        match self.store.commit(commit).await {
            Ok(_) => Ok(end),
            Err(CommitError::Conflict { .. }) => self.forget_turn(turn).await,
            Err(CommitError::Store(error)) => Err(error),
        }
    }

    fn job_removal(&self, turn: &Turn, head: &HeadRow) -> Vec<Op> {
        let mut ops = job::removal(self.bot, &turn.plugin, turn.id, head);
        ops.push(Op::Delete { key: job::turn_key(self.bot, &turn.plugin, turn.number) });
        ops
    }

    async fn forget_turn(&self, turn: &Turn) -> Result<JobEnd, store::Error> {
        let ops = vec![Op::Delete { key: job::turn_key(self.bot, &turn.plugin, turn.number) }];
        self.must_commit(Commit { ops, ..Commit::default() }).await?;
        self.forget_journal(turn.number);
        Ok(JobEnd::Done)
    }
}
