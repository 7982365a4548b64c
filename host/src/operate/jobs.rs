//! Jobs: what waits, taken back, and hurried.

use serde::{Deserialize, Serialize};

use super::{Error, Operator, Outcome, Refusal};
use crate::domain::{BotId, PluginName};
use crate::store::rows::dead::DeadRow;
use crate::store::rows::inbox::StoredEvent;
use crate::store::rows::job::{self, HeadRow, TurnRow};
use crate::store::rows::{number_of, prefix_end};
use crate::store::{Commit, CommitError, Op, Read};

/// Rows that are in memory at once.
const PAGE: usize = 64;

/// A job that is queued, or worked on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Whose it is.
    pub plugin: String,
    /// By which it is named, together with the plugin.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// The lane of the event that queued it.
    pub lane: String,
    /// Unix milliseconds at which it was queued.
    pub queued: u64,
    /// Unix milliseconds before which it is not begun, or not tried again; 0 for at once.
    pub due: u64,
    /// Failed attempts so far.
    pub attempts: u32,
    /// Why the last one failed.
    pub reason: Option<String>,
    /// Somebody works on it, as far as is known.
    pub running: bool,
}

/// Jobs, plugin by plugin, the oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobList {
    /// As many as were asked for, at most.
    pub jobs: Vec<Job>,
    /// There are more.
    pub more: bool,
}

/// Which jobs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobRef {
    /// The plugin.
    pub plugin: String,
    /// Their ids; none for all of the plugin's.
    pub ids: Vec<u64>,
}

impl Operator {
    /// The jobs of one plugin or of all.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn jobs(&self, limit: usize, plugin: Option<&str>) -> Result<JobList, Error> {
        let mut from = match plugin {
            Some(plugin) => job::heads(self.bot, &PluginName::new(plugin)),
            None => job::bot_prefix(self.bot),
        };
        let to = prefix_end(&from);
        let mut list = JobList { jobs: Vec::new(), more: false };
        while let Some(key) = self.store.first_key(&from, &to)? {
            from = [&key[..], &[0]].concat();
            let Some((plugin, id)) = job::parse_head(&key) else { continue };
            let Some(head) = self.store.get(&key)?.and_then(|head| HeadRow::decode(&head).ok()) else { continue };
            if list.jobs.len() == limit {
                list.more = true;
                break;
            }
            list.jobs.push(Job {
                plugin: plugin.to_string(),
                id,
                name: head.name,
                lane: head.lane.to_string(),
                queued: head.queued,
                due: head.due,
                attempts: head.attempts,
                reason: (!head.reason.is_empty()).then_some(head.reason),
                running: head.begun && self.jobs.is_some(),
            });
        }
        Ok(list)
    }

    /// Takes jobs back. What is worked on leaves nothing behind. Answers when it is on disk.
    ///
    /// # Errors
    /// When the store fails. What was taken back before that stays so.
    pub async fn cancel_jobs(&self, which: &JobRef) -> Result<Outcome, Error> {
        self.each_job(which, |plugin, id, head, turn| {
            tracing::info!(%plugin, job = id, "a job is cancelled by an operator");
            let mut ops = job::removal(self.bot, plugin, id, &head);
            ops.extend(turn.map(|(key, _)| Op::Delete { key }));
            Ok(ops)
        })
        .await
    }

    /// Lets jobs that wait for their time, or for another attempt, go at once, with their attempts counted anew.
    ///
    /// # Errors
    /// When the store fails. What was hurried before that stays so.
    pub async fn retry_jobs(&self, which: &JobRef) -> Result<Outcome, Error> {
        self.each_job(which, |plugin, id, head, turn| {
            if head.begun && self.jobs.is_some() {
                return Err("somebody works on it just now".to_owned());
            }
            let Some((key, turn)) = turn else { return Err("it has no place in the queue".to_owned()) };
            let head = HeadRow { due: 0, attempts: 0, reason: String::new(), begun: false, ..head };
            Ok(vec![
                Op::Put { key: job::head_key(self.bot, plugin, id), value: head.encode() },
                Op::Put { key, value: TurnRow { due: 0, ..turn }.encode() },
            ])
        })
        .await
    }

    async fn each_job(
        &self,
        which: &JobRef,
        change: impl Fn(&PluginName, u64, HeadRow, Option<(Vec<u8>, TurnRow)>) -> Result<Vec<Op>, String>,
    ) -> Result<Outcome, Error> {
        let plugin = PluginName::new(&which.plugin);
        let mut ids = which.ids.clone();
        if ids.is_empty() {
            ids = self.jobs(usize::MAX, Some(&which.plugin))?.jobs.into_iter().map(|job| job.id).collect();
        }
        let mut outcome = Outcome::default();
        for id in ids {
            let mut refuse = |reason| outcome.refused.push(Refusal { number: id, reason });
            let key = job::head_key(self.bot, &plugin, id);
            let Some(seen) = self.store.get(&key)? else {
                refuse(format!("plugin `{plugin}` has no such job"));
                continue;
            };
            let changed = HeadRow::decode(&seen).map_err(|error| error.to_string());
            let turn = self.turn_of(&plugin, id)?;
            let ops = match changed.and_then(|head| change(&plugin, id, head, turn)) {
                Ok(ops) => ops,
                Err(reason) => {
                    refuse(reason);
                    continue;
                }
            };
            let reads = vec![Read::Value { key, seen: Some(seen) }];
            match self.store.commit(Commit { reads, ops, on_durable: None }).await {
                Ok(receipt) => {
                    receipt.durable().await?;
                    outcome.done.push(id);
                }
                Err(CommitError::Conflict { .. }) => refuse("it has changed just now".to_owned()),
                Err(CommitError::Store(error)) => return Err(error.into()),
            }
        }
        self.tell_jobs();
        Ok(outcome)
    }

    /// A job's place in the queue.
    fn turn_of(&self, plugin: &PluginName, id: u64) -> Result<Option<(Vec<u8>, TurnRow)>, Error> {
        let mut from = job::queue(self.bot, plugin);
        let to = prefix_end(&from);
        loop {
            let rows = self.store.range(&from, &to, PAGE)?;
            let Some((last, _)) = rows.last() else { return Ok(None) };
            from = [&last[..], &[0]].concat();
            for (key, value) in rows {
                if let Ok(turn) = TurnRow::decode(&value)
                    && turn.id == id
                    && number_of(&key).is_some()
                {
                    return Ok(Some((key.to_vec(), turn)));
                }
            }
        }
    }
}

/// What puts a job that was set aside back into its plugin's queue, under its id and its unique key, which nobody must have
/// meanwhile; `None` for what is no job. The bound of the queue is the plugin's, not the operator's.
pub(super) fn queued_again(bot: BotId, letter: &DeadRow, now: u64) -> Option<(Option<Vec<u8>>, Vec<Op>)> {
    let StoredEvent::Job { plugin, conversation, id, name, payload, queued: _, key } = &letter.event else {
        return None;
    };
    let unique = key.as_deref().map(|key| job::unique_key(bot, plugin, key));
    let head = HeadRow {
        name: name.clone(),
        conversation: *conversation,
        lane: letter.lane,
        queued: now,
        due: 0,
        attempts: 0,
        reason: String::new(),
        begun: false,
        key: key.clone(),
    };
    let mut ops = vec![
        Op::Put { key: job::head_key(bot, plugin, *id), value: head.encode() },
        Op::Put { key: job::payload_key(bot, plugin, *id), value: payload.clone() },
        Op::Append { prefix: job::queue(bot, plugin), value: TurnRow { id: *id, due: 0, since: 0 }.encode() },
    ];
    ops.extend(unique.clone().map(|key| Op::Put { key, value: id.to_be_bytes().to_vec() }));
    Some((unique, ops))
}
