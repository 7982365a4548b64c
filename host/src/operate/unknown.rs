//! Calls of which nobody knows whether they took effect, and those that were given up.

use serde::{Deserialize, Serialize};

use super::{Error, Operator, Outcome, Refusal, Selection};
use crate::domain::Lane;
use crate::store::rows::prefix_end;
use crate::store::rows::unknown::{self, UnknownRow};
use crate::store::{Commit, CommitError, Op, Read};

/// Removed in one commit.
const AT_A_TIME: usize = 32;

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnknownCall {
    /// By which it is named.
    pub number: u64,
    /// Who asked for it.
    pub plugin: String,
    /// The number of the event it answered; 0 for none.
    pub event: u64,
    /// The Bot API method.
    pub method: String,
    /// Where it was to go, if to a chat.
    pub chat_id: Option<i64>,
    /// Unix milliseconds at which it was given up.
    pub at: u64,
    /// False if it certainly did not take effect.
    pub maybe_sent: bool,
    /// What happened.
    pub reason: String,
    /// Its parameters, where they were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<String>,
}

/// Some of them, the oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnknownList {
    /// The newest, as many as were asked for at most.
    pub calls: Vec<UnknownCall>,
    /// There are older ones.
    pub more: bool,
}

impl UnknownCall {
    /// What a row says. One that can't be read is shown all the same.
    #[must_use]
    pub fn of(number: u64, row: Result<UnknownRow, impl ToString>) -> Self {
        let row = row.unwrap_or_else(|error| UnknownRow {
            plugin: String::new(),
            event: 0,
            method: String::new(),
            lane: Lane::Other,
            at: 0,
            maybe_sent: true,
            reason: error.to_string(),
            params: String::new(),
        });
        let chat_id = match row.lane {
            Lane::Chat(chat) => Some(chat.0),
            _ => None,
        };
        let UnknownRow { plugin, event, method, at, maybe_sent, reason, params, .. } = row;
        Self { number, plugin, event, method, chat_id, at, maybe_sent, reason, params: Some(params) }
    }
}

impl Operator {
    /// The newest `limit`, without their parameters.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn unknown_calls(&self, limit: usize) -> Result<UnknownList, Error> {
        let start = unknown::bot_prefix(self.bot);
        let mut end = prefix_end(&start);
        let mut list = UnknownList { calls: Vec::new(), more: false };
        while let Some(key) = self.store.last_key(&start, &end)? {
            if list.calls.len() == limit {
                list.more = true;
                break;
            }
            if let (Some(number), Some(value)) = (unknown::parse_key(&key), self.store.get(&key)?) {
                let call = UnknownCall::of(number, UnknownRow::decode(&value));
                list.calls.push(UnknownCall { params: None, ..call });
            }
            end = key.to_vec();
        }
        list.calls.reverse();
        Ok(list)
    }

    /// How many there are; no more than `most` are counted.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn count_unknown(&self, most: usize) -> Result<usize, Error> {
        self.count(unknown::bot_prefix(self.bot), most)
    }

    /// Everything about one.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn unknown_call(&self, number: u64) -> Result<Option<UnknownCall>, Error> {
        let value = self.store.get(&unknown::key(self.bot, number))?;
        Ok(value.map(|value| UnknownCall::of(number, UnknownRow::decode(&value))))
    }

    /// Removes them, once somebody has looked after them. Answers when it is on disk.
    ///
    /// # Errors
    /// When the store fails. What was removed before that stays so.
    pub async fn drop_unknown(&self, which: &Selection) -> Result<Outcome, Error> {
        let numbers = match which {
            Selection::Numbers(numbers) => numbers.clone(),
            Selection::All { .. } => self.unknown_numbers()?,
        };
        let mut outcome = Outcome::default();
        for lot in numbers.chunks(AT_A_TIME) {
            let mut commit = Commit::default();
            let mut done = Vec::new();
            for &number in lot {
                let key = unknown::key(self.bot, number);
                match self.store.get(&key)? {
                    Some(value) if matches(which, &value) && !done.contains(&number) => {
                        commit.reads.push(Read::Value { key: key.clone(), seen: Some(value) });
                        commit.ops.push(Op::Delete { key });
                        done.push(number);
                    }
                    Some(_) => {}
                    None => outcome.refused.push(Refusal { number, reason: "there is no such call".to_owned() }),
                }
            }
            match self.store.commit(commit).await {
                Ok(receipt) => receipt.durable().await?,
                Err(CommitError::Store(error)) => return Err(error.into()),
                Err(CommitError::Conflict { .. }) => {
                    let reason = "somebody else has just dealt with it; try again";
                    outcome.refused.extend(done.iter().map(|&number| Refusal { number, reason: reason.to_owned() }));
                    continue;
                }
            }
            if let Some(sender) = &self.sender {
                sender.unknown_dropped(done.len() as u64);
            }
            outcome.done.extend(done);
        }
        Ok(outcome)
    }

    fn unknown_numbers(&self) -> Result<Vec<u64>, Error> {
        let mut from = unknown::bot_prefix(self.bot);
        let end = prefix_end(&from);
        let mut numbers = Vec::new();
        loop {
            let rows = self.store.range(&from, &end, 256)?;
            let Some((last, _)) = rows.last() else { return Ok(numbers) };
            from = [last, &[0][..]].concat();
            numbers.extend(rows.iter().filter_map(|(key, _)| unknown::parse_key(key)));
        }
    }
}

fn matches(which: &Selection, value: &[u8]) -> bool {
    match which {
        Selection::All { plugin: Some(plugin) } => UnknownRow::decode(value).is_ok_and(|row| row.plugin == *plugin),
        _ => true,
    }
}
