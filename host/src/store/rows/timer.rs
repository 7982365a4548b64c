//! Timers: `t bot due id`, with an index `u bot plugin id` that holds the due time, so that one can be cancelled.

use super::{
    BotId, Conversation, Deserialize, EventLane, PluginName, Serialize, Unreadable, decode, encode, prefix, push_plugin,
};

const KIND: u8 = b't';
const KIND_INDEX: u8 = b'u';

/// A timer that has not come due.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TimerRow {
    /// Who set it.
    pub plugin: PluginName,
    /// Where.
    pub conversation: Conversation,
    /// The lane its event will go to: that of the event that set it.
    pub lane: EventLane,
    /// Its name.
    pub name: String,
    /// What the plugin gave it.
    pub payload: Vec<u8>,
}

impl TimerRow {
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
        decode("timer", bytes)
    }
}

/// Every timer of a bot, the next to come due first.
#[must_use]
pub fn bot_prefix(bot: BotId) -> Vec<u8> {
    prefix(KIND, bot)
}

/// One timer, due at `due` (Unix milliseconds).
#[must_use]
pub fn key(bot: BotId, due: u64, id: u64) -> Vec<u8> {
    let mut key = prefix(KIND, bot);
    key.extend_from_slice(&due.to_be_bytes());
    key.extend_from_slice(&id.to_be_bytes());
    key
}

/// Due time and id of a key that [`key`] made.
#[must_use]
pub fn parse_key(key: &[u8]) -> Option<(u64, u64)> {
    if key.len() != 25 || key.first() != Some(&KIND) {
        return None;
    }
    Some((u64::from_be_bytes(key.get(9..17)?.try_into().ok()?), super::number_of(key)?))
}

/// Where a plugin's timer is found by its id; the value is its due time, 8 bytes big-endian.
#[must_use]
pub fn index_key(bot: BotId, plugin: &PluginName, id: u64) -> Vec<u8> {
    let mut key = prefix(KIND_INDEX, bot);
    push_plugin(&mut key, plugin);
    key.extend_from_slice(&id.to_be_bytes());
    key
}
