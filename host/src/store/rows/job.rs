//! Jobs, work that plugins have queued for later: `j bot plugin part`, and behind the part what tells them apart.
//!
//! - The *turn*, by a number that rises, is what waits: small, so that the queue can be looked through and counted. Its
//!   number is that of the job's event.
//! - The *head*, by the job's id, is what is known of it, and the *payload* what the plugin gave it.
//! - The *key* leads from a unique key to the job that has it.
//!
//! A turn whose head is gone is of a job that was cancelled.

use super::{
    BotId, Conversation, Deserialize, EventLane, PluginName, Serialize, Unreadable, decode, encode, number_of, prefix,
    push_plugin, split_plugin,
};
use crate::store::Op;

pub(super) const KIND: u8 = b'j';
const TURN: u8 = 1;
const HEAD: u8 = 2;
const PAYLOAD: u8 = 3;
const KEY: u8 = 4;

/// How many jobs the runs of one event can queue. Their ids are made of its number.
pub const IDS_EACH: u64 = 64;

/// A job's place in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnRow {
    /// Its id.
    pub id: u64,
    /// Unix milliseconds before which it is not begun; 0 for at once.
    pub due: u64,
    /// Unix milliseconds at which that was decided.
    pub since: u64,
}

/// What is known of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HeadRow {
    /// Its name.
    pub name: String,
    /// The conversation of the event that queued it.
    pub conversation: Conversation,
    /// The lane of that event: where its timers' events will go.
    pub lane: EventLane,
    /// Unix milliseconds at which it was queued.
    pub queued: u64,
    /// Unix milliseconds before which it is not begun, or not tried again; 0 for at once. Its turn says the same.
    pub due: u64,
    /// Failed attempts so far.
    pub attempts: u32,
    /// Why the last one failed; empty before.
    pub reason: String,
    /// Somebody works on it. Taken back at the start of a host.
    pub begun: bool,
    /// While it is there, no other job with this key is queued.
    pub key: Option<String>,
}

macro_rules! row {
    ($row:ty, $what:literal) => {
        impl $row {
            /// The stored form.
            #[must_use]
            pub fn encode(&self) -> Vec<u8> {
                encode(self)
            }

            /// Reads the stored form.
            ///
            /// # Errors
            /// When the bytes are not a row of this kind.
            pub fn decode(bytes: &[u8]) -> Result<Self, Unreadable> {
                decode($what, bytes)
            }
        }
    };
}

row!(TurnRow, "job's turn");
row!(HeadRow, "job");

/// Everything about all jobs of a bot.
#[must_use]
pub fn bot_prefix(bot: BotId) -> Vec<u8> {
    prefix(KIND, bot)
}

/// Everything about a plugin's jobs.
#[must_use]
pub fn plugin_prefix(bot: BotId, plugin: &PluginName) -> Vec<u8> {
    let mut key = prefix(KIND, bot);
    push_plugin(&mut key, plugin);
    key
}

fn part(bot: BotId, plugin: &PluginName, part: u8) -> Vec<u8> {
    let mut key = prefix(KIND, bot);
    push_plugin(&mut key, plugin);
    key.push(part);
    key
}

fn numbered(mut key: Vec<u8>, number: u64) -> Vec<u8> {
    key.extend_from_slice(&number.to_be_bytes());
    key
}

/// A plugin's queue; an `Append` adds the number.
#[must_use]
pub fn queue(bot: BotId, plugin: &PluginName) -> Vec<u8> {
    part(bot, plugin, TURN)
}

/// One turn.
#[must_use]
pub fn turn_key(bot: BotId, plugin: &PluginName, number: u64) -> Vec<u8> {
    numbered(queue(bot, plugin), number)
}

/// True for what [`queue`] makes.
#[must_use]
pub fn is_queue(prefix: &[u8]) -> bool {
    matches!(split(prefix), Some((_, TURN, [])))
}

/// A job's head.
#[must_use]
pub fn head_key(bot: BotId, plugin: &PluginName, id: u64) -> Vec<u8> {
    numbered(part(bot, plugin, HEAD), id)
}

/// Every head of a plugin.
#[must_use]
pub fn heads(bot: BotId, plugin: &PluginName) -> Vec<u8> {
    part(bot, plugin, HEAD)
}

/// A job's payload.
#[must_use]
pub fn payload_key(bot: BotId, plugin: &PluginName, id: u64) -> Vec<u8> {
    numbered(part(bot, plugin, PAYLOAD), id)
}

/// Where the job with a unique key is found: its id, 8 bytes big-endian.
#[must_use]
pub fn unique_key(bot: BotId, plugin: &PluginName, unique: &str) -> Vec<u8> {
    let mut key = part(bot, plugin, KEY);
    key.extend_from_slice(unique.as_bytes());
    key
}

/// The plugin of a key of this kind.
#[must_use]
pub fn plugin_of(key: &[u8]) -> Option<PluginName> {
    split(key).map(|(plugin, ..)| plugin)
}

/// Plugin and id of a key that [`head_key`] made.
#[must_use]
pub fn parse_head(key: &[u8]) -> Option<(PluginName, u64)> {
    match split(key)? {
        (plugin, HEAD, id) if id.len() == 8 => Some((plugin, number_of(id)?)),
        _ => None,
    }
}

/// Plugin, part and rest.
fn split(key: &[u8]) -> Option<(PluginName, u8, &[u8])> {
    if key.first() != Some(&KIND) {
        return None;
    }
    let (plugin, rest) = split_plugin(key.get(9..)?)?;
    let (&part, rest) = rest.split_first()?;
    Some((plugin, part, rest))
}

/// What takes a job out of the store, its turn apart.
#[must_use]
pub fn removal(bot: BotId, plugin: &PluginName, id: u64, head: &HeadRow) -> Vec<Op> {
    let key = head.key.as_deref().map(|key| unique_key(bot, plugin, key));
    [head_key(bot, plugin, id), payload_key(bot, plugin, id)]
        .into_iter()
        .chain(key)
        .map(|key| Op::Delete { key })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_tell_what_they_are_of() {
        let (bot, plugin) = (BotId(7), PluginName::new("convert"));
        assert!(is_queue(&queue(bot, &plugin)));
        assert!(!is_queue(&turn_key(bot, &plugin, 1)) && !is_queue(&heads(bot, &plugin)) && !is_queue(b"j"));
        assert_eq!(parse_head(&head_key(bot, &plugin, 9)), Some((plugin.clone(), 9)));
        assert_eq!(parse_head(&payload_key(bot, &plugin, 9)), None);
        // A part of one, and a number, could look like a part of another.
        for key in [turn_key(bot, &plugin, 2), unique_key(bot, &plugin, "\u{1}\0"), payload_key(bot, &plugin, 2)] {
            assert_eq!(plugin_of(&key), Some(plugin.clone()));
            assert!(key.starts_with(&bot_prefix(bot)));
        }
    }
}
