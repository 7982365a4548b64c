//! Many updates at once, for load tests: queued as a few numbers each, written out when they are read.
//!
//! The messages go round robin over private chats of users made for it. Nothing of it enters a chat's history.

use std::io::Write as _;
use std::sync::Arc;

use serde::Deserialize;

use super::model::{Chat, ChatKind, User};
use super::updates::{Body, retention};
use super::world::World;
use super::{entities, render};

/// What to push; see [`super::Simulator::push_updates`].
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bulk {
    /// How many text messages in all.
    pub count: u64,
    /// Over how many chats, in turn.
    pub chats: u64,
    /// Their text. `{i}` is the number over all, `{n}` the number within the chat, `{chat}` the chat's id; the
    /// first is 0.
    #[serde(default = "default_text")]
    pub text: String,
    /// The user id of the first chat; the others follow.
    #[serde(default = "default_first_chat")]
    pub first_chat: i64,
}

fn default_text() -> String {
    "message {n}".to_owned()
}

/// Where the ids of made users begin.
pub(super) const FIRST_CHAT: i64 = 7_000_000_000;

fn default_first_chat() -> i64 {
    FIRST_CHAT
}

impl Bulk {
    /// `count` messages “message 0”, “message 1” … in each of so many chats.
    #[must_use]
    pub fn new(count: u64, chats: u64) -> Self {
        Self { count, chats, text: default_text(), first_chat: default_first_chat() }
    }
}

/// One message that waits.
#[derive(Debug, Clone)]
pub(super) struct BulkMessage {
    chat: i64,
    message_id: i64,
    date: i64,
    i: u64,
    n: u64,
    text: Arc<str>,
}

impl BulkMessage {
    /// Writes the update's rest: the message and the brace that closes the update.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let text = self
            .text
            .replace("{i}", &self.i.to_string())
            .replace("{n}", &self.n.to_string())
            .replace("{chat}", &self.chat.to_string());
        let (chat, id, date) = (self.chat, self.message_id, self.date);
        write!(
            out,
            "\"message\":{{\"message_id\":{id},\"from\":{{\"id\":{chat},\"is_bot\":false,\"first_name\":\"{name}\",\
             \"language_code\":\"en\"}},\"chat\":{{\"id\":{chat},\"first_name\":\"{name}\",\"type\":\"private\"}},\
             \"date\":{date},\"text\":",
            name = NAME,
        )
        .expect("a Vec takes every write");
        render::string(&text, out);
        render::entities("entities", &entities::detect(&text), out);
        out.extend_from_slice(b"}}");
    }
}

const NAME: &str = "Load";

/// Queues them, whatever the queue's limit, and answers the first id and the one after the last.
pub(super) fn push(world: &mut World, bulk: &Bulk) -> (i64, i64) {
    let first = world.queue.next_id();
    let now = world.now();
    let text: Arc<str> = bulk.text.as_str().into();
    for nth in 0..bulk.chats.min(bulk.count) {
        let id = bulk.first_chat + nth as i64;
        world.users.entry(id).or_insert_with(|| User::new(id, NAME, Some("en")));
        world.chats.entry(id).or_insert_with(|| Chat::new(id, ChatKind::Private, "", &[id]));
    }
    for i in 0..bulk.count {
        let chat = bulk.first_chat + (i % bulk.chats.max(1)) as i64;
        let n = i / bulk.chats.max(1);
        let message_id = world.chats.get_mut(&chat).expect("made above").next_message_id();
        let message = BulkMessage { chat, message_id, date: now, i, n, text: text.clone() };
        world.queue.push(Body::Bulk(message), now + retention("message"), usize::MAX);
    }
    world.signals.polls.notify_waiters();
    (first, world.queue.next_id())
}
