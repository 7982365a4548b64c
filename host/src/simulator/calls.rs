//! The record of what the bot asked for: method, parameters and time of arrival, never the token.
//!
//! The oldest go when there are too many; the counts stay. In load mode nothing but the counts is kept.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

/// How many are kept.
const KEEP: usize = 20_000;

/// One request that arrived.
#[derive(Debug, Clone, Serialize)]
pub struct Call {
    /// Counts all requests since the start, from 1.
    pub number: u64,
    /// As the bot spelled it.
    pub method: String,
    /// Its parameters; files by name only.
    #[serde(serialize_with = "as_object")]
    pub params: Arc<Map<String, Value>>,
    /// When it arrived, in Unix milliseconds of the simulated clock.
    pub at: i64,
    /// Why it was refused, in Telegram's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// The `result` that it was answered with; of a long one the beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
}

/// How much of an answer is kept.
const ANSWER: usize = 4 << 10;

fn as_object<S: Serializer>(params: &Arc<Map<String, Value>>, serializer: S) -> Result<S::Ok, S::Error> {
    params.as_ref().serialize(serializer)
}

impl Call {
    /// The chat that it concerns.
    #[must_use]
    pub fn chat(&self) -> Option<i64> {
        super::params::int_of(self.params.get("chat_id")?)
    }

    /// A parameter that is a text.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.params.get(name)?.as_str()
    }
}

#[derive(Debug, Default)]
pub(super) struct Calls {
    kept: VecDeque<Call>,
    total: u64,
    by_method: BTreeMap<String, u64>,
}

impl Calls {
    pub(super) fn record(&mut self, method: &str, params: &Arc<Map<String, Value>>, at: i64, keep: bool) -> u64 {
        self.total += 1;
        if let Some(count) = self.by_method.get_mut(method) {
            *count += 1;
        } else if self.by_method.len() < 500 {
            // Misspelt ones must not add up for ever.
            self.by_method.insert(method.to_owned(), 1);
        }
        if keep {
            let (method, params) = (method.to_owned(), params.clone());
            self.kept.push_back(Call { number: self.total, method, params, at, refused: None, answer: None });
            if self.kept.len() > KEEP {
                self.kept.pop_front();
            }
        }
        self.total
    }

    pub(super) fn refused(&mut self, number: u64, why: &str) {
        if let Ok(place) = self.kept.binary_search_by_key(&number, |call| call.number) {
            self.kept[place].refused = Some(why.to_owned());
        }
    }

    pub(super) fn answered(&mut self, number: u64, envelope: &[u8]) {
        if let Ok(place) = self.kept.binary_search_by_key(&number, |call| call.number) {
            let result = envelope.strip_prefix(br#"{"ok":true,"result":"#).unwrap_or(envelope);
            let result = result.strip_suffix(b"}").unwrap_or(result);
            let mut text = String::from_utf8_lossy(&result[..result.len().min(ANSWER)]).into_owned();
            if result.len() > ANSWER {
                text.push('…');
            }
            self.kept[place].answer = Some(text);
        }
    }

    pub(super) fn since(&self, number: u64) -> Vec<Call> {
        let start = self.kept.partition_point(|call| call.number <= number);
        self.kept.range(start..).cloned().collect()
    }

    pub(super) fn counts(&self) -> &BTreeMap<String, u64> {
        &self.by_method
    }

    pub(super) fn clear(&mut self) {
        self.kept.clear();
    }
}
