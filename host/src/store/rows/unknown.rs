//! Calls of which nobody knows whether they took effect, and those that were given up: `x bot number`.
//!
//! Kept for the operator, the newest [`MOST`] of them.

use super::{BotId, Deserialize, Lane, Serialize, Unreadable, decode, encode, number_of, prefix};

const KIND: u8 = b'x';
const KEY_LENGTH: usize = 1 + 8 + 8;

/// No more are kept; the oldest make room.
pub const MOST: u64 = 10_000;

/// A call without a known end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UnknownRow {
    /// Who asked for it.
    pub plugin: String,
    /// The number of the event it answered; 0 for a direct call, whose event has been told.
    pub event: u64,
    /// The Bot API method.
    pub method: String,
    /// Where it was to go.
    pub lane: Lane,
    /// Unix milliseconds at which it was given up.
    pub at: u64,
    /// True if it may have taken effect, false if it certainly did not.
    pub maybe_sent: bool,
    /// What happened.
    pub reason: String,
    /// Its parameters, a JSON object.
    pub params: String,
}

impl UnknownRow {
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
        decode("unknown outcome", bytes)
    }
}

/// Those of all bots.
#[must_use]
pub fn all() -> Vec<u8> {
    vec![KIND]
}

/// Those of a bot; an `Append` adds the number.
#[must_use]
pub fn bot_prefix(bot: BotId) -> Vec<u8> {
    prefix(KIND, bot)
}

/// One of them.
#[must_use]
pub fn key(bot: BotId, number: u64) -> Vec<u8> {
    let mut key = bot_prefix(bot);
    key.extend_from_slice(&number.to_be_bytes());
    key
}

/// The number of a key of this kind, which no other row has.
#[must_use]
pub fn parse_key(key: &[u8]) -> Option<u64> {
    (key.len() == KEY_LENGTH && key.first() == Some(&KIND)).then(|| number_of(key)).flatten()
}
