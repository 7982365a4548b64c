//! The queue of updates that `getUpdates` reads, with Telegram's exact offset rules. Pure: no clock, no socket.
//!
//! - An update is deleted when a poll names an offset above its id, or when its kind has expired; by nothing else.
//! - No offset, or 0, reads from the oldest and deletes nothing. A negative one deletes all but the last n.
//! - An offset more than 10 above the next id is ignored, as is one that was confirmed long ago.
//! - An answer holds at most 100 updates and about 4 MiB.
//! - Updates beyond the queue's limit are dropped, and counted.

use std::collections::VecDeque;
use std::io::Write as _;

use serde::{Deserialize, Serialize};

use super::bulk::BulkMessage;
use crate::domain::UPDATE_KINDS;

/// As Telegram has it.
const FUTURE: i64 = 10;
const ANSWER_BYTES: usize = 4 << 20;

/// Kinds that a bot only gets if it asks for them.
const OPT_IN: [&str; 3] = ["chat_member", "message_reaction", "message_reaction_count"];

/// How long Telegram keeps an update of a kind, in seconds.
pub(super) fn retention(kind: &str) -> i64 {
    match kind {
        "callback_query" | "shipping_query" | "pre_checkout_query" => 150,
        "chosen_inline_result" => 600,
        "inline_query" => 30,
        _ => 24 * 60 * 60,
    }
}

/// What the bot wants to hear of; `None` is Telegram's default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Allowed(pub(super) Option<Vec<String>>);

impl Allowed {
    /// An empty list, or one without any real kind, means the default again.
    pub(super) fn from_list(kinds: Vec<String>) -> Self {
        let known: Vec<_> = kinds.into_iter().filter(|kind| UPDATE_KINDS.contains(&kind.as_str())).collect();
        Self((!known.is_empty()).then_some(known))
    }

    pub(super) fn wants(&self, kind: &str) -> bool {
        match &self.0 {
            Some(kinds) => kinds.iter().any(|wanted| wanted == kind),
            None => !OPT_IN.contains(&kind),
        }
    }
}

/// An update that waits.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Queued {
    id: i64,
    expires: i64,
    body: Body,
    /// Given to the webhook's lanes.
    #[serde(skip)]
    is_handed: bool,
}

/// What an update says, without its id.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(into = "String", from = "String")]
pub(super) enum Body {
    /// The rest of the JSON object, without the brace that opens it.
    Json(Box<str>),
    /// A message of a load test, written out when it is read.
    Bulk(BulkMessage),
}

impl From<Body> for String {
    fn from(body: Body) -> Self {
        match body {
            Body::Json(rest) => rest.into(),
            Body::Bulk(message) => {
                let mut out = Vec::new();
                message.write(&mut out);
                String::from_utf8(out).expect("what is written is JSON, and so UTF-8")
            }
        }
    }
}

impl From<String> for Body {
    fn from(rest: String) -> Self {
        Body::Json(rest.into())
    }
}

impl Queued {
    fn text(&self) -> String {
        format!("{{\"update_id\":{},{}", self.id, String::from(self.body.clone()))
    }
}

/// The queue of one bot.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Queue {
    items: VecDeque<Queued>,
    /// The id of the next update.
    next_id: i64,
    /// Updates that found the queue full.
    pub(super) dropped: u64,
}

impl Queue {
    pub(super) fn new(first_id: i64) -> Self {
        Self { items: VecDeque::new(), next_id: first_id, dropped: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    pub(super) fn next_id(&self) -> i64 {
        self.next_id
    }

    /// Goes on at another id, as Telegram does after a quiet week. Only while nothing waits.
    pub(super) fn jump_to(&mut self, next_id: i64) -> bool {
        let empty = self.items.is_empty();
        if empty {
            self.next_id = next_id;
        }
        empty
    }

    /// Skips ids that may have been given before a crash and were not saved.
    pub(super) fn skip(&mut self, ids: i64) {
        self.next_id += ids;
    }

    /// Appends an update and answers its id; `None` if the queue is full.
    pub(super) fn push(&mut self, body: Body, expires: i64, limit: usize) -> Option<i64> {
        if self.items.len() >= limit {
            self.dropped += 1;
            return None;
        }
        let id = self.next_id;
        self.next_id += 1;
        self.items.push_back(Queued { id, expires, body, is_handed: false });
        Some(id)
    }

    pub(super) fn clear(&mut self) {
        self.items.clear();
    }

    /// Deletes what `offset` confirms.
    pub(super) fn confirm(&mut self, offset: i64) {
        let head = self.items.front().map_or(self.next_id, |item| item.id);
        let offset = if offset < 0 { self.next_id.saturating_add(offset) } else { offset };
        if offset <= head || offset > self.next_id + FUTURE {
            return;
        }
        while self.items.front().is_some_and(|item| item.id < offset) {
            self.items.pop_front();
        }
    }

    /// The updates that have not been asked for here yet, the oldest first.
    pub(super) fn fresh(&mut self) -> Vec<(i64, String)> {
        let mut fresh = Vec::new();
        for item in self.items.iter_mut().rev().take_while(|item| !item.is_handed) {
            item.is_handed = true;
            fresh.push((item.id, item.text()));
        }
        fresh.reverse();
        fresh
    }

    /// All of them are fresh again.
    pub(super) fn take_back(&mut self) {
        self.items.iter_mut().for_each(|item| item.is_handed = false);
    }

    /// One update, and when it is too old.
    pub(super) fn read(&self, id: i64) -> Option<(Vec<u8>, i64)> {
        let item = self.items.get(self.items.binary_search_by_key(&id, |item| item.id).ok()?)?;
        Some((item.text().into_bytes(), item.expires))
    }

    /// It is delivered, or too old.
    pub(super) fn remove(&mut self, id: i64) {
        if let Ok(at) = self.items.binary_search_by_key(&id, |item| item.id) {
            self.items.remove(at);
        }
    }

    /// Writes up to `limit` updates as the elements of a JSON array; answers how many.
    pub(super) fn write(&mut self, limit: usize, now: i64, out: &mut Vec<u8>) -> usize {
        if self.items.iter().take(limit).any(|item| item.expires <= now) {
            self.items.retain(|item| item.expires > now);
        }
        let start = out.len();
        let mut written = 0;
        for item in self.items.iter().take(limit) {
            if written > 0 {
                out.push(b',');
            }
            write!(out, "{{\"update_id\":{},", item.id).expect("a Vec takes every write");
            match &item.body {
                Body::Json(rest) => out.extend_from_slice(rest.as_bytes()),
                Body::Bulk(message) => message.write(out),
            }
            written += 1;
            if out.len() - start >= ANSWER_BYTES {
                break;
            }
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(ids: std::ops::Range<i64>) -> Queue {
        let mut queue = Queue::new(ids.start);
        for _ in ids {
            queue.push(Body::Json("\"x\":1}".into()), 100, 1000).unwrap();
        }
        queue
    }

    fn read(queue: &mut Queue, offset: i64, limit: usize) -> Vec<i64> {
        queue.confirm(offset);
        let mut out = vec![b'['];
        queue.write(limit, 0, &mut out);
        out.push(b']');
        let updates: Vec<serde_json::Value> = serde_json::from_slice(&out).unwrap();
        updates.iter().map(|update| update["update_id"].as_i64().unwrap()).collect()
    }

    #[test]
    fn offsets_are_read_as_telegram_reads_them() {
        let all = vec![50, 51, 52, 53];
        for (offset, first, kept) in [
            (0, all.clone(), 4),
            (50, all.clone(), 4),
            (51, vec![51, 52, 53], 3),
            (53, vec![53], 1),
            (54, vec![], 0),      // just past the newest: everything is confirmed
            (64, vec![], 0),      // up to ten ahead too
            (65, all.clone(), 4), // further ahead: ignored
            (-1, vec![53], 1),    // the last one; the others are gone
            (-3, vec![51, 52, 53], 3),
            (-4, all.clone(), 4),
            (-99, all.clone(), 4),
            (i64::MIN, all.clone(), 4),
            (3, all.clone(), 4),    // long confirmed
            (50 - 100_001, all, 4), // negative, more than there are
        ] {
            let mut queue = queue(50..54);
            assert_eq!(read(&mut queue, offset, 100), first, "offset {offset}");
            assert_eq!(queue.len(), kept, "offset {offset}");
        }
    }

    #[test]
    fn an_offset_far_below_the_oldest_is_ignored() {
        let mut queue = queue(500_000..500_002);
        assert_eq!(read(&mut queue, 1, 100), [500_000, 500_001]);
        assert_eq!(read(&mut queue, 400_000, 100), [500_000, 500_001]);
    }

    #[test]
    fn an_offset_ahead_also_deletes_what_comes_below_it() {
        let mut queue = queue(50..54);
        assert_eq!(read(&mut queue, 56, 100), [0; 0]);
        for _ in 0..3 {
            queue.push(Body::Json("\"x\":1}".into()), 100, 1000);
        }
        assert_eq!(read(&mut queue, 56, 100), [56]);
    }

    #[test]
    fn reading_deletes_nothing_and_the_limit_holds() {
        let mut queue = queue(7..12);
        assert_eq!(read(&mut queue, 0, 2), [7, 8]);
        assert_eq!(read(&mut queue, 0, 2), [7, 8]);
        assert_eq!(read(&mut queue, 9, 2), [9, 10]);
    }

    #[test]
    fn expired_updates_and_those_over_the_limit_never_arrive() {
        let mut queue = Queue::new(1);
        for expires in [10, 30, 20] {
            queue.push(Body::Json("\"x\":1}".into()), expires, 3).unwrap();
        }
        assert_eq!(queue.push(Body::Json("\"x\":1}".into()), 99, 3), None);
        assert_eq!((queue.dropped, queue.next_id()), (1, 4));
        let mut out = Vec::new();
        assert_eq!(queue.write(100, 20, &mut out), 1);
        assert!(out.starts_with(b"{\"update_id\":2,"));
    }

    #[test]
    fn ids_may_jump_down_once_nothing_waits() {
        let mut queue = queue(700..701);
        assert!(!queue.jump_to(100));
        queue.confirm(701);
        assert!(queue.jump_to(100));
        queue.push(Body::Json("\"x\":1}".into()), 100, 10);
        assert_eq!(read(&mut queue, 701, 100), [100], "the old offset is out of range and ignored");
        assert_eq!(read(&mut queue, 101, 100), [0; 0]);
    }

    #[test]
    fn three_kinds_have_to_be_asked_for() {
        let default = Allowed::default();
        assert!(default.wants("message") && default.wants("callback_query"));
        assert!(!default.wants("chat_member") && !default.wants("message_reaction"));
        let only = Allowed::from_list(vec!["chat_member".into(), "no_such_kind".into()]);
        assert!(only.wants("chat_member") && !only.wants("message"));
        assert_eq!(Allowed::from_list(vec!["nonsense".into()]), default);
    }
}
