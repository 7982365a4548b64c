//! Calls that wait to be sent: looking at them, and cancelling some.
//!
//! What they say is shown only where it is asked for. Whoever cancels one cancels what goes on with its text too; the
//! others keep their order.

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use super::{Error, Operator, Outcome, Refusal};
use crate::clock::unix_millis;
use crate::domain::{ChatId, Lane};
use crate::sender::{Cancelled, LaneView};
use crate::store::rows::flood::{self, FloodRow};
use crate::store::rows::outbox::{self, OutboxRow, Priority};
use crate::store::rows::{file, prefix_end};
use crate::store::{Commit, CommitError, Op, Read};
use crate::telegram::is_of_name;

/// Rows looked at at a time, and cancelled in one commit.
const AT_A_TIME: usize = 256;

/// A call that waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitingCall {
    /// By which it is named.
    pub number: u64,
    /// Where it is to go: a chat's id, or its `@name` where the call gives that; none for calls of no chat.
    pub chat: Option<String>,
    /// What it waits behind: the calls of the same lane go in order.
    pub lane: String,
    /// Who asked for it.
    pub plugin: String,
    /// The number of the event it answers; 0 for none.
    pub event: u64,
    /// The Bot API method.
    pub method: String,
    /// `interactive`, `normal` or `bulk`.
    pub priority: String,
    /// Unix milliseconds at which it was asked for.
    pub queued: u64,
    /// It is being sent.
    pub in_flight: bool,
    /// Failed attempts in a row, of those that this process has made.
    pub attempts: u32,
    /// Unix milliseconds before which nothing of its lane is sent; 0 for at once.
    pub next_try: u64,
    /// How many calls of its lane go before it.
    pub before: u64,
    /// Files that go along.
    pub files: usize,
    /// It goes on with the text of the call before it.
    pub follows: bool,
    /// Its parameters, where they were asked for: what is said, and to whom.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<String>,
}

/// Some of them, lane by lane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outbox {
    /// As many as were asked for at most.
    pub calls: Vec<WaitingCall>,
    /// How many there are, as far as the filter goes.
    pub total: u64,
}

/// Which of them are looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Waiting {
    /// Those of this chat: its id, or the `@name` by which it is sent to.
    #[serde(default)]
    pub chat: Option<String>,
    /// Those of this plugin.
    #[serde(default)]
    pub plugin: Option<String>,
}

/// Which are cancelled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Cancel {
    /// Those with these numbers.
    Numbers(Vec<u64>),
    /// All that wait for this chat now: its id, or the `@name` by which it is sent to.
    Chat(String),
}

struct Found {
    lane: Lane,
    number: u64,
    before: u64,
    row: Option<OutboxRow>,
}

impl Operator {
    /// The first `limit` of them, those that go next first in each lane, without their parameters.
    ///
    /// # Errors
    /// When the store can't be read.
    pub async fn outbox(&self, which: &Waiting, limit: usize) -> Result<Outbox, Error> {
        let mut found = Vec::new();
        let mut total = 0;
        self.each_waiting(|call| {
            if which.matches(&call) {
                total += 1;
                if found.len() < limit {
                    found.push(call);
                }
            }
            true
        })?;
        Ok(Outbox { calls: self.shown(found, false).await?, total })
    }

    /// One of them.
    ///
    /// # Errors
    /// When the store can't be read.
    pub async fn waiting_call(&self, number: u64, with_params: bool) -> Result<Option<WaitingCall>, Error> {
        let mut found = None;
        self.each_waiting(|call| {
            if call.number == number {
                found = Some(call);
            }
            found.is_none()
        })?;
        Ok(self.shown(found.into_iter().collect(), with_params).await?.pop())
    }

    /// Cancels calls that wait, and what goes on with their texts. Answers when that is on disk.
    ///
    /// # Errors
    /// When the store fails. What was cancelled before that stays so.
    pub async fn cancel_calls(&self, which: &Cancel) -> Result<Outcome, Error> {
        let mut rows: Vec<(Lane, u64)> = Vec::new();
        let mut taken = None;
        self.each_waiting(|call| {
            let goes_along = taken == Some(call.lane) && call.row.as_ref().is_some_and(|row| row.follows);
            taken = (goes_along || which.matches(&call)).then_some(call.lane);
            if taken.is_some() {
                rows.push((call.lane, call.number));
            }
            true
        })?;
        let mut outcome = Outcome::default();
        if let Cancel::Numbers(numbers) = which {
            let missing = numbers.iter().filter(|number| rows.iter().all(|(_, found)| found != *number));
            outcome.refused.extend(missing.map(|&number| Refusal { number, reason: "no such call waits".to_owned() }));
        }
        for lot in rows.chunks(AT_A_TIME) {
            let answers = match &self.sender {
                Some(sender) => sender.cancel(lot.to_vec()).await,
                None => Some(self.cancel_on_stopped(lot).await?),
            };
            for (place, &(_, number)) in lot.iter().enumerate() {
                let reason = match answers.as_ref().and_then(|answers| answers.get(place)) {
                    Some(Cancelled::Done) => {
                        outcome.done.push(number);
                        continue;
                    }
                    Some(Cancelled::UnderWay) => "it is being sent just now",
                    Some(Cancelled::Gone) => "it has just been sent",
                    None => "the host stops; try again when it has",
                };
                outcome.refused.push(Refusal { number, reason: reason.to_owned() });
            }
        }
        Ok(outcome)
    }

    async fn cancel_on_stopped(&self, rows: &[(Lane, u64)]) -> Result<Vec<Cancelled>, Error> {
        let mut commit = Commit::default();
        let mut answers = Vec::new();
        for &(lane, number) in rows {
            let key = outbox::key(self.bot, lane, number);
            let Some(value) = self.store.get(&key)? else {
                answers.push(Cancelled::Gone);
                continue;
            };
            for attached in OutboxRow::decode(&value).map_or_else(|_| Vec::new(), |row| row.files) {
                commit.ops.push(Op::Delete { key: file::reference(self.bot, &attached) });
            }
            commit.reads.push(Read::Value { key: key.clone(), seen: Some(value) });
            commit.ops.push(Op::Delete { key });
            answers.push(Cancelled::Done);
        }
        match self.store.commit(commit).await {
            Ok(receipt) => receipt.durable().await?,
            Err(CommitError::Store(error)) => return Err(error.into()),
            Err(CommitError::Conflict { .. }) => answers.fill(Cancelled::Gone),
        }
        let cancelled = answers.iter().filter(|answer| **answer == Cancelled::Done).count();
        tracing::info!(calls = cancelled, "queued calls were cancelled by an operator");
        Ok(answers)
    }

    /// Looks at every call that waits, lane by lane, until told to stop.
    fn each_waiting(&self, mut look: impl FnMut(Found) -> bool) -> Result<(), Error> {
        let mut from = outbox::bot_prefix(self.bot);
        let end = prefix_end(&from);
        let mut last: Option<(Lane, u64)> = None;
        loop {
            let rows = self.store.range(&from, &end, AT_A_TIME)?;
            let Some((key, _)) = rows.last() else { return Ok(()) };
            from = [key, &[0][..]].concat();
            for (key, value) in &rows {
                let Some((lane, number)) = outbox::parse_key(key) else { continue };
                let before = last.filter(|(before, _)| *before == lane).map_or(0, |(_, count)| count + 1);
                last = Some((lane, before));
                if !look(Found { lane, number, before, row: OutboxRow::decode(value).ok() }) {
                    return Ok(());
                }
            }
        }
    }

    async fn shown(&self, found: Vec<Found>, with_params: bool) -> Result<Vec<WaitingCall>, Error> {
        let lanes: Vec<Lane> = found.iter().map(|call| call.lane).collect();
        let views = match &self.sender {
            Some(sender) => sender.look(lanes).await.unwrap_or_default(),
            None => Vec::new(),
        };
        let now = unix_millis();
        let mut calls = Vec::new();
        for (place, call) in found.into_iter().enumerate() {
            let view = views.get(place).copied().unwrap_or_default();
            let flooded = self.store.get(&flood::key(self.bot, call.lane))?.and_then(|row| FloodRow::decode(&row).ok());
            let flooded = flooded.map_or(0, |row| row.until).max(now);
            let waits = now.saturating_add(u64::try_from(view.waits.as_millis()).unwrap_or(u64::MAX)).max(flooded);
            calls.push(call.shown(view, if waits > now { waits } else { 0 }, with_params));
        }
        Ok(calls)
    }
}

impl Found {
    fn shown(self, view: LaneView, next_try: u64, with_params: bool) -> WaitingCall {
        let chat = self.chat();
        let Self { lane, number, before, row } = self;
        let lane = match (lane, &chat) {
            (Lane::Chat(_), Some(chat)) => format!("chat {chat}"),
            (Lane::Chat(chat), None) => format!("chat {}", chat.0),
            (Lane::User(user), _) => format!("user {}", user.0),
            (Lane::Urgent(user), _) => format!("answers to user {}", user.0),
            (Lane::Other | Lane::Task(_), _) => "other".to_owned(),
        };
        let in_flight = view.in_flight == Some(number);
        let attempts = if before == 0 { view.failures } else { 0 };
        let next_try = if in_flight { 0 } else { next_try };
        let unreadable = WaitingCall {
            number,
            chat,
            lane,
            plugin: String::new(),
            event: 0,
            method: "(it can't be read)".to_owned(),
            priority: String::new(),
            queued: 0,
            in_flight,
            attempts,
            next_try,
            before,
            files: 0,
            follows: false,
            params: None,
        };
        let Some(row) = row else { return unreadable };
        WaitingCall {
            plugin: row.plugin.to_string(),
            event: row.event,
            method: row.method,
            priority: match row.priority {
                Priority::Interactive => "interactive",
                Priority::Normal => "normal",
                Priority::Bulk => "bulk",
            }
            .to_owned(),
            queued: row.queued,
            files: row.files.len(),
            follows: row.follows,
            params: with_params.then_some(row.params),
            ..unreadable
        }
    }

    /// As a person would name it.
    fn chat(&self) -> Option<String> {
        #[derive(Deserialize)]
        struct To {
            chat_id: Option<serde_json::Value>,
        }
        match self.lane {
            Lane::Chat(_) if is_of_name(self.lane) => {
                let to: To = serde_json::from_str(&self.row.as_ref()?.params).ok()?;
                to.chat_id?.as_str().map(str::to_owned)
            }
            Lane::Chat(ChatId(chat)) => Some(chat.to_string()),
            _ => None,
        }
    }
}

/// Names are the same in any case.
fn is_chat(call: &Found, wanted: &str) -> bool {
    call.chat().is_some_and(|chat| chat.eq_ignore_ascii_case(wanted.trim()))
}

impl Cancel {
    fn matches(&self, call: &Found) -> bool {
        match self {
            Self::Numbers(numbers) => numbers.contains(&call.number),
            Self::Chat(chat) => is_chat(call, chat),
        }
    }
}

impl Waiting {
    fn matches(&self, call: &Found) -> bool {
        let is_of = |plugin: &String| call.row.as_ref().is_some_and(|row| row.plugin.as_str() == plugin);
        self.chat.as_deref().is_none_or(|chat| is_chat(call, chat)) && self.plugin.as_ref().is_none_or(is_of)
    }
}
