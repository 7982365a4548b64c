//! Questions that a client waits for an answer to: pressed buttons, inline and payment queries.
//!
//! Each is answered once, in time, or not at all. The newest few thousand are remembered.

use std::collections::{HashMap, VecDeque};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How many are remembered, answered or not.
const KEEP: usize = 10_000;

/// One of them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Query {
    /// `callback_query`, `inline_query` …
    pub kind: String,
    /// The chat it came from, where there is one.
    pub chat: Option<i64>,
    /// Who asked.
    pub user: i64,
    /// The message with the button.
    pub message: Option<i64>,
    /// When it was asked (Unix seconds).
    pub at: i64,
    /// What the bot answered: the parameters of its call.
    pub answer: Option<Value>,
    /// What was asked, where that matters later: the text of an inline query, what a payment comes to.
    #[serde(default)]
    pub details: Value,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Queries {
    next_id: i64,
    known: HashMap<String, Query>,
    order: VecDeque<String>,
}

impl Queries {
    pub(super) fn new(first_id: i64) -> Self {
        Self { next_id: first_id, ..Self::default() }
    }

    pub(super) fn next_id(&mut self) -> String {
        self.next_id += 1;
        // Telegram's are long numbers too.
        format!("{}", i128::from(self.next_id) * 1_000_003)
    }

    pub(super) fn open(&mut self, id: &str, query: Query) {
        self.known.insert(id.to_owned(), query);
        self.order.push_back(id.to_owned());
        if self.order.len() > KEEP
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }

    pub(super) fn get(&self, id: &str) -> Option<&Query> {
        self.known.get(id)
    }

    /// Takes the answer if the query is known, of that kind, open, and not too old.
    pub(super) fn answer(&mut self, id: &str, kind: &str, now: i64, answer: Value) -> Option<&Query> {
        let query = self.known.get_mut(id)?;
        let in_time = now - query.at < super::updates::retention(kind);
        if query.kind != kind || query.answer.is_some() || !in_time {
            return None;
        }
        query.answer = Some(answer);
        Some(query)
    }
}
