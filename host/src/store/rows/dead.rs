//! Dead letters: events set aside after their last attempt, and updates that could not be read: `d bot number`.

use super::inbox::StoredEvent;
use super::{BotId, Deserialize, EventLane, Serialize, Unreadable, decode, encode, prefix};

pub(super) const KIND: u8 = b'd';

/// An event that was set aside.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeadRow {
    /// The plugin that failed; empty when it failed before any. It stands first, where it is found without reading the rest.
    pub plugin: String,
    /// The lane it was in.
    pub lane: EventLane,
    /// Unix milliseconds at which it was set aside.
    pub at: u64,
    /// How often it was tried.
    pub attempts: u32,
    /// The version of that plugin.
    pub version: String,
    /// Why, with the panic's text and place where there was one.
    pub reason: String,
    /// The guest's backtrace; empty where there is none.
    pub backtrace: String,
    /// The event itself.
    pub event: StoredEvent,
    /// The other messages where it is an album, as Telegram sent them.
    pub rest: Vec<Vec<u8>>,
}

impl DeadRow {
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
        decode("dead letter", bytes)
    }
}

/// The plugin of a row that begins so.
pub(super) fn owner(start: &[u8]) -> Option<&str> {
    Some(postcard::take_from_bytes(start).ok()?.0)
}

/// Every dead letter of a bot; an `Append` adds the number.
#[must_use]
pub fn bot_prefix(bot: BotId) -> Vec<u8> {
    prefix(KIND, bot)
}

/// One dead letter.
#[must_use]
pub fn key(bot: BotId, number: u64) -> Vec<u8> {
    let mut key = bot_prefix(bot);
    key.extend_from_slice(&number.to_be_bytes());
    key
}
