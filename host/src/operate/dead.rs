//! Dead letters.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::{Error, Operator, Outcome, Refusal, Selection, jobs, private};
use crate::clock::unix_millis;
use crate::domain::{EventLane, KeyStrategy, Lane, UpdateView};
use crate::store::rows::dead::{self, DeadRow};
use crate::store::rows::inbox::{self, InboxRow, StoredEvent};
use crate::store::rows::{number_of, prefix_end};
use crate::store::{Commit, CommitError, Op, Read, Receipt};

/// Rows that are in memory at once.
const PAGE: usize = 64;
/// What a list shows of a reason.
const SHORT_REASON: usize = 160;

/// A dead letter in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// By which it is named.
    pub number: u64,
    /// Unix milliseconds at which it was set aside.
    pub at: u64,
    /// The plugin that failed; empty when it failed before any.
    pub plugin: String,
    /// The version of that plugin.
    pub version: String,
    /// How often it was tried.
    pub attempts: u32,
    /// Why, in short.
    pub reason: String,
    /// The lane that it was in.
    pub lane: String,
}

/// Dead letters, the newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct List {
    /// As many as were asked for, at most.
    pub letters: Vec<Summary>,
    /// There are older ones.
    pub more: bool,
}

/// A dead letter with all that is known about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Letter {
    /// By which it is named.
    pub number: u64,
    /// Unix milliseconds at which it was set aside.
    pub at: u64,
    /// The plugin that failed; empty when it failed before any.
    pub plugin: String,
    /// The version of that plugin.
    pub version: String,
    /// How often it was tried.
    pub attempts: u32,
    /// Why, with the panic's text and place where there was one.
    pub reason: String,
    /// The lane that it was in.
    pub lane: String,
    /// The guest's backtrace; empty where there is none.
    pub backtrace: String,
    /// `{"update": …}`, `{"album": […]}`, `{"timer": …}`, `{"job": …}` or `{"unreadable": …}`.
    pub event: Json,
}

impl Operator {
    /// The newest `limit` dead letters, of one plugin or of all.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn list(&self, limit: usize, plugin: Option<&str>) -> Result<List, Error> {
        let from = dead::bot_prefix(self.bot);
        let mut to = prefix_end(&from);
        let mut list = List { letters: Vec::new(), more: false };
        while let Some(key) = self.store.last_key(&from, &to)? {
            to = key.to_vec();
            let (Some(number), Some(value)) = (number_of(&key), self.store.get(&key)?) else { continue };
            let row = decode(&value);
            if plugin.is_some_and(|plugin| row.plugin != plugin) {
                continue;
            }
            if list.letters.len() == limit {
                list.more = true;
                break;
            }
            list.letters.push(summary(number, row));
        }
        Ok(list)
    }

    /// How many there are; no more than `most` are counted.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn count_dead(&self, most: usize) -> Result<usize, Error> {
        self.count(dead::bot_prefix(self.bot), most)
    }

    /// Everything about one dead letter. With `payload` also what people wrote, and what the plugin had stored with a
    /// timer; without it these stand as their length.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn show(&self, number: u64, payload: bool) -> Result<Option<Letter>, Error> {
        let Some(value) = self.store.get(&dead::key(self.bot, number))? else { return Ok(None) };
        let row = decode(&value);
        Ok(Some(Letter {
            number,
            at: row.at,
            plugin: row.plugin,
            version: row.version,
            attempts: row.attempts,
            reason: row.reason,
            lane: row.lane.to_string(),
            backtrace: row.backtrace,
            event: private::show(&row.event, &row.rest, payload),
        }))
    }

    /// Puts dead letters back into the inbox, the oldest first, each behind what waits in its lane now: what was
    /// handled since can't be undone, so there is no way to give it its old place. They begin anew, with no attempt
    /// made; an album's messages are gathered anew. Answers when it is on disk.
    ///
    /// # Errors
    /// When the store fails. What was put back before that stays so.
    pub async fn retry(&self, which: &Selection) -> Result<Outcome, Error> {
        self.each(which, |number, value| {
            let row = DeadRow::decode(value).map_err(|error| error.to_string())?;
            if let Some((unique, ops)) = jobs::queued_again(self.bot, &row, unix_millis()) {
                let mut reads = Vec::new();
                if let Some(key) = unique {
                    if self.store.get(&key).map_err(|error| error.to_string())?.is_some() {
                        return Err("another job with its unique key is queued meanwhile".to_owned());
                    }
                    reads.push(Read::Value { key, seen: None });
                }
                tracing::info!(number, "a dead letter goes back into the queue of its plugin's jobs");
                return Ok((None, reads, ops));
            }
            let (lane, rows) = waiting_again(row, unix_millis())?;
            tracing::info!(number, %lane, "a dead letter goes back into the inbox");
            let append = |row: InboxRow| Op::Append { prefix: inbox::lane_prefix(self.bot, lane), value: row.encode() };
            Ok((Some(lane), Vec::new(), rows.into_iter().map(append).collect()))
        })
        .await
    }

    /// Removes dead letters for good. Answers when it is on disk.
    ///
    /// # Errors
    /// When the store fails. What was removed before that stays so.
    pub async fn drop_letters(&self, which: &Selection) -> Result<Outcome, Error> {
        self.each(which, |number, _| {
            tracing::info!(number, "a dead letter is dropped");
            Ok((None, Vec::new(), Vec::new()))
        })
        .await
    }

    /// Removes each of the dead letters, in one commit with what `instead` makes of it.
    async fn each(
        &self,
        which: &Selection,
        instead: impl Fn(u64, &[u8]) -> Result<(Option<EventLane>, Vec<Read>, Vec<Op>), String>,
    ) -> Result<Outcome, Error> {
        let mut outcome = Outcome::default();
        let mut last: Option<Receipt> = None;
        for number in self.numbers(which)? {
            let mut refuse = |reason| outcome.refused.push(Refusal { number, reason });
            let key = dead::key(self.bot, number);
            let Some(value) = self.store.get(&key)? else {
                refuse("there is no such dead letter".to_owned());
                continue;
            };
            let (lane, reads, ops) = match instead(number, &value) {
                Ok(instead) => instead,
                Err(reason) => {
                    refuse(reason);
                    continue;
                }
            };
            let mut commit = self.removal(key, value, lane, ops);
            commit.reads.extend(reads);
            match self.store.commit(commit).await {
                Ok(receipt) => {
                    last = Some(receipt);
                    self.tell_jobs();
                    outcome.done.push(number);
                }
                Err(CommitError::Conflict { .. }) => refuse("somebody else has just dealt with it".to_owned()),
                Err(CommitError::Store(error)) => return Err(error.into()),
            }
        }
        if let Some(receipt) = last {
            receipt.durable().await?;
        }
        Ok(outcome)
    }

    fn removal(&self, key: Vec<u8>, seen: Bytes, lane: Option<EventLane>, ops: Vec<Op>) -> Commit {
        let mut commit = Commit {
            reads: vec![Read::Value { key: key.clone(), seen: Some(seen) }],
            ops: std::iter::once(Op::Delete { key }).chain(ops).collect(),
            on_durable: None,
        };
        if let Some((lane, arrivals)) = lane.zip(self.arrivals.clone()) {
            // Here, and not after the wait: whoever asked may have gone away meanwhile.
            commit.on_durable = Some(Box::new(move |_| {
                // Nobody listens any more while the host stops; the row is in the inbox.
                arrivals.send(vec![lane]).ok();
            }));
        }
        commit
    }

    /// Ascending, so that letters of one lane keep their order. Found before anything is changed: a letter that is put
    /// back and fails again is not met twice.
    fn numbers(&self, which: &Selection) -> Result<Vec<u64>, Error> {
        let plugin = match which {
            Selection::Numbers(numbers) => {
                let mut numbers = numbers.clone();
                numbers.sort_unstable();
                numbers.dedup();
                return Ok(numbers);
            }
            Selection::All { plugin } => plugin.as_deref(),
        };
        let mut from = dead::bot_prefix(self.bot);
        let to = prefix_end(&from);
        let mut numbers = Vec::new();
        loop {
            let rows = self.store.range(&from, &to, PAGE)?;
            let Some((last, _)) = rows.last() else { return Ok(numbers) };
            from = [last, &[0][..]].concat();
            let is_wanted = |value: &[u8]| plugin.is_none_or(|plugin| decode(value).plugin == plugin);
            numbers.extend(rows.iter().filter(|(_, value)| is_wanted(value)).filter_map(|(key, _)| number_of(key)));
        }
    }
}

/// What a dead letter is put back as, and where: the lane that it was in. An update that could not be read had none, and
/// is read anew by a version that may be able to.
fn waiting_again(row: DeadRow, now: u64) -> Result<(EventLane, Vec<InboxRow>), String> {
    let fresh = |event| InboxRow::new(event, now);
    let StoredEvent::Update(raw) = row.event else { return Ok((row.lane, vec![fresh(row.event)])) };
    let lane = match lane_of(&raw) {
        Ok(lane) if row.lane.place == Lane::Other => lane,
        Ok(_) => row.lane,
        // Not what Telegram sent, but a row of the inbox that an earlier version could not read.
        Err(reason) => match InboxRow::decode(&raw) {
            Ok(inner) => return Ok((row.lane, vec![fresh(inner.event)])),
            Err(_) => return Err(reason),
        },
    };
    let all = std::iter::once(raw).chain(row.rest);
    Ok((lane, all.map(|raw| fresh(StoredEvent::Update(raw))).collect()))
}

fn lane_of(raw: &[u8]) -> Result<EventLane, String> {
    let raw = String::from_utf8_lossy(raw);
    let view = UpdateView::parse(&raw).map_err(|_| "it still can't be read: it is not a JSON object".to_owned())?;
    match view.defect() {
        None => Ok(view.lane(KeyStrategy::Chat)),
        Some(defect) => Err(format!("it still can't be read: {defect}")),
    }
}

/// A row that can't be read is shown all the same.
fn decode(value: &[u8]) -> DeadRow {
    DeadRow::decode(value).unwrap_or_else(|error| DeadRow {
        lane: EventLane::whole(Lane::Other),
        at: 0,
        attempts: 0,
        plugin: String::new(),
        version: String::new(),
        reason: error.to_string(),
        backtrace: String::new(),
        event: StoredEvent::Update(value.to_vec()),
        rest: Vec::new(),
    })
}

fn summary(number: u64, row: DeadRow) -> Summary {
    let mut reason: String = row.reason.lines().next().unwrap_or_default().chars().take(SHORT_REASON).collect();
    if reason.len() < row.reason.trim_end().len() {
        reason.push('…');
    }
    Summary {
        number,
        at: row.at,
        plugin: row.plugin,
        version: row.version,
        attempts: row.attempts,
        reason,
        lane: row.lane.to_string(),
    }
}
