//! Accepted events that are not handled yet: `i bot lane number`.
//!
//! The lane stands before the number, so that the events of one lane lie together in order and memory
//! need hold no more than the lanes' names.

use super::fsm::StateRow;
use super::{BotId, Deserialize, EventLane, Lane, PluginName, Serialize, Unreadable, decode, encode, prefix};
use crate::domain::Conversation;

pub(super) const KIND: u8 = b'i';
/// The places of these among the kinds of [`StoredEvent`].
const TIMER: u32 = 1;
const EXPIRED: u32 = 4;
/// Kind and bot.
const LANE_AT: usize = 1 + 8;

/// An event that waits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InboxRow {
    /// Failed attempts so far.
    pub attempts: u32,
    /// Unix milliseconds before which it is not tried again; 0 for at once.
    pub not_before: u64,
    /// Unix milliseconds at which it was accepted.
    pub received: u64,
    /// Its album was offered whole and not taken, so it is handled by itself.
    pub alone: bool,
    /// The event itself.
    pub event: StoredEvent,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum StoredEvent {
    /// An update, as the bytes that Telegram sent.
    Update(#[serde(with = "bytes_field")] Vec<u8>),
    /// A timer that a plugin had set.
    Timer {
        /// Who set it.
        plugin: PluginName,
        /// Where.
        conversation: Conversation,
        /// Its id, as the plugin knows it.
        id: u64,
        /// Its name.
        name: String,
        /// What the plugin gave it.
        payload: Vec<u8>,
        /// Unix milliseconds at which it was due.
        due: u64,
    },
    /// Work that a plugin had queued. Never waits here: only a dead letter holds one.
    Job {
        /// Who queued it.
        plugin: PluginName,
        /// Where.
        conversation: Conversation,
        /// Its id, as the plugin knows it.
        id: u64,
        /// Its name.
        name: String,
        /// What the plugin gave it.
        payload: Vec<u8>,
        /// Unix milliseconds at which it was queued.
        queued: u64,
        /// The key under which there was to be one only.
        key: Option<String>,
    },
    /// The next event, of another lane, is a user's order to end a conversation. What is in its way is ended first.
    Cancel {
        /// The lane of that event; its number is the next one.
        lane: EventLane,
        /// The plugin whose handler was ended for it, so far.
        ended: Option<PluginName>,
    },
    /// A state whose time to live is over.
    Expired {
        /// Whose.
        plugin: PluginName,
        /// Where.
        conversation: Conversation,
        /// What it was.
        state: StateRow,
    },
}

/// Postcard writes `Vec<u8>` element by element unless told that it is bytes.
mod bytes_field {
    use serde::de::{Deserializer, Visitor};
    use serde::ser::Serializer;

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(bytes)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = Vec<u8>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("bytes")
            }

            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Self::Value, E> {
                Ok(bytes.to_vec())
            }
        }
        deserializer.deserialize_bytes(Bytes)
    }
}

impl InboxRow {
    /// An event that was just accepted.
    #[must_use]
    pub fn new(event: StoredEvent, received: u64) -> Self {
        Self { attempts: 0, not_before: 0, received, alone: false, event }
    }

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
        decode("inbox", bytes)
    }
}

/// The plugin for which the host has made the event of a row that begins so, and whether that is a timer that rang.
pub(super) fn owner(start: &[u8]) -> Option<(&str, bool)> {
    let (_, event) = postcard::take_from_bytes::<(u32, u64, u64, bool)>(start).ok()?;
    let (kind, event) = postcard::take_from_bytes::<u32>(event).ok()?;
    let rang = match kind {
        TIMER => true,
        EXPIRED => false,
        _ => return None,
    };
    Some((postcard::take_from_bytes(event).ok()?.0, rang))
}

/// Every event of a bot.
#[must_use]
pub fn bot_prefix(bot: BotId) -> Vec<u8> {
    prefix(KIND, bot)
}

/// Every event of a place, whatever lanes it has.
#[must_use]
pub fn place_prefix(bot: BotId, place: Lane) -> Vec<u8> {
    let mut key = prefix(KIND, bot);
    key.extend_from_slice(&place.encode());
    key
}

/// Every event of a lane; an `Append` adds the number.
#[must_use]
pub fn lane_prefix(bot: BotId, lane: EventLane) -> Vec<u8> {
    let mut key = prefix(KIND, bot);
    key.extend_from_slice(&lane.encode());
    key
}

/// One event.
#[must_use]
pub fn key(bot: BotId, lane: EventLane, number: u64) -> Vec<u8> {
    let mut key = lane_prefix(bot, lane);
    key.extend_from_slice(&number.to_be_bytes());
    key
}

/// Lane and number of a key that [`key`] made.
#[must_use]
pub fn parse_key(key: &[u8]) -> Option<(EventLane, u64)> {
    if key.first() != Some(&KIND) {
        return None;
    }
    let lane = key.get(LANE_AT..key.len().checked_sub(8)?)?;
    Some((EventLane::decode(lane)?, super::number_of(key)?))
}
