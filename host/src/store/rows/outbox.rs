//! API calls that are committed and not yet delivered: `o bot lane number`.

use super::file::Attached;
use super::{BotId, Deserialize, Lane, PluginName, Serialize, Unreadable, decode, encode, prefix};

pub(super) const KIND: u8 = b'o';
const KEY_LENGTH: usize = 1 + 8 + 9 + 8;

/// How urgent a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Priority {
    /// Somebody waits for it.
    Interactive,
    /// Neither urgent nor bulk.
    Normal,
    /// One of many; sent when nothing else waits.
    Bulk,
}

/// What becomes of a call that may or may not have taken effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Delivery {
    /// It is made again: it may take effect twice.
    AtLeastOnce,
    /// It is not made again: it may never take effect.
    AtMostOnce,
}

/// What becomes of a call whose markup Telegram can't read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fallback {
    /// It is refused.
    None,
    /// It is made once more, without markup.
    Plain,
    /// This is that once more.
    Tried,
}

/// A call that waits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OutboxRow {
    /// Who asked for it.
    pub plugin: PluginName,
    /// Bytes of the files that it is the first to carry, so that what waits can be counted.
    pub carries: u64,
    /// The number of the event it answers.
    pub event: u64,
    /// The Bot API method.
    pub method: String,
    /// Its parameters, a JSON object.
    pub params: String,
    /// How urgent it is.
    pub priority: Priority,
    /// Failed attempts so far.
    pub attempts: u32,
    /// Unix milliseconds at which it was asked for: the start of its age.
    pub queued: u64,
    /// What becomes of it when its outcome is unknown.
    pub delivery: Delivery,
    /// Which process has begun to make it, by a number of that process's own; 0 while nobody has. Only kept for
    /// calls that are made at most once.
    pub begun: u64,
    /// The files that it carries.
    pub files: Vec<Attached>,
    /// What becomes of it when its markup can't be read.
    pub fallback: Fallback,
    /// It goes on with the text of the call before it in its lane: without that it is not to be made.
    pub follows: bool,
}

impl OutboxRow {
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
        decode("outbox", bytes)
    }
}

/// The plugin of a row that begins so, and what it carries.
pub(super) fn owner(start: &[u8]) -> Option<(&str, u64)> {
    Some(postcard::take_from_bytes(start).ok()?.0)
}

/// Every call of a bot.
#[must_use]
pub fn bot_prefix(bot: BotId) -> Vec<u8> {
    prefix(KIND, bot)
}

/// Every call of a lane; an `Append` adds the number.
#[must_use]
pub fn lane_prefix(bot: BotId, lane: Lane) -> Vec<u8> {
    let mut key = prefix(KIND, bot);
    key.extend_from_slice(&lane.encode());
    key
}

/// One call.
#[must_use]
pub fn key(bot: BotId, lane: Lane, number: u64) -> Vec<u8> {
    let mut key = lane_prefix(bot, lane);
    key.extend_from_slice(&number.to_be_bytes());
    key
}

/// Lane and number of a key that [`key`] made.
#[must_use]
pub fn parse_key(key: &[u8]) -> Option<(Lane, u64)> {
    if key.len() != KEY_LENGTH || key.first() != Some(&KIND) {
        return None;
    }
    Some((Lane::decode(key.get(9..18)?)?, super::number_of(key)?))
}

/// The lane of a prefix that [`lane_prefix`] made.
#[must_use]
pub fn parse_lane_prefix(prefix: &[u8]) -> Option<Lane> {
    if prefix.len() != KEY_LENGTH - 8 || prefix.first() != Some(&KIND) {
        return None;
    }
    Lane::decode(prefix.get(9..)?)
}
