//! One row per bot: where its polling stands: `m bot`.

use super::{BotId, Deserialize, Serialize, Unreadable, decode, encode, prefix};

const KIND: u8 = b'm';

/// Where polling stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PollRow {
    /// Which queue of Telegram's the offset belongs to: token and API base, hashed.
    pub fingerprint: [u8; 8],
    /// Counts the queues: a changed fingerprint or a jump of the ids begins a new one.
    pub epoch: u64,
    /// The next offset: the last id of the last stored batch, plus one.
    pub offset: i64,
}

impl PollRow {
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
        decode("poll", bytes)
    }
}

/// The one key of this kind.
#[must_use]
pub fn key(bot: BotId) -> Vec<u8> {
    prefix(KIND, bot)
}
