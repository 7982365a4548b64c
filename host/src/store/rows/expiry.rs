//! What is to be removed when its time to live is over: `e bot due key`, where `key` is that of the row itself.
//!
//! A row whose life was changed later leaves its old entry behind: the row tells which of them counts.

use super::{BotId, Conversation, Deserialize, EventLane, PluginName, Serialize, Unreadable, decode, encode, prefix};

const KIND: u8 = b'e';

/// The end of something.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum ExpiryRow {
    /// Of a value.
    Value,
    /// Of a conversation's state.
    State {
        /// Whose.
        plugin: PluginName,
        /// Where.
        conversation: Conversation,
        /// The lane of the conversation.
        lane: EventLane,
        /// Whether the plugin that set it wants to hear of its end.
        tell: bool,
    },
}

impl ExpiryRow {
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
        decode("expiry", bytes)
    }
}

/// All of a bot, the next to end first.
#[must_use]
pub fn bot_prefix(bot: BotId) -> Vec<u8> {
    prefix(KIND, bot)
}

/// The end, at `due` (Unix milliseconds), of the row with this key.
#[must_use]
pub fn key(bot: BotId, due: u64, of: &[u8]) -> Vec<u8> {
    let mut key = prefix(KIND, bot);
    key.extend_from_slice(&due.to_be_bytes());
    key.extend_from_slice(of);
    key
}

/// When, and what, of a key that [`key`] made.
#[must_use]
pub fn parse_key(key: &[u8]) -> Option<(u64, &[u8])> {
    let (due, of) = key.strip_prefix(&[KIND])?.get(8..)?.split_first_chunk()?;
    Some((u64::from_be_bytes(*due), of))
}
