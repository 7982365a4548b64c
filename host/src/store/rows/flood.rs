//! Lanes that flood control makes wait: `q bot lane`. Whoever wants to send there, the wait holds over a restart.

use super::{BotId, Deserialize, Lane, Serialize, Unreadable, decode, encode, prefix};

const KIND: u8 = b'q';

/// A wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FloodRow {
    /// Unix milliseconds before which nothing of the lane goes.
    pub until: u64,
}

impl FloodRow {
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
        decode("flood", bytes)
    }
}

/// Every such lane of a bot.
#[must_use]
pub fn bot_prefix(bot: BotId) -> Vec<u8> {
    prefix(KIND, bot)
}

/// One lane.
#[must_use]
pub fn key(bot: BotId, lane: Lane) -> Vec<u8> {
    let mut key = bot_prefix(bot);
    key.extend_from_slice(&lane.encode());
    key
}

/// The lane of a key that [`key`] made.
#[must_use]
pub fn parse_key(key: &[u8]) -> Option<Lane> {
    let lane = key.strip_prefix(&[KIND])?.get(8..)?;
    (lane.len() == 9).then(|| Lane::decode(lane)).flatten()
}
