//! Which updates were accepted: `n bot epoch first`, intervals of `update_id`s.
//!
//! Ids are consecutive within an epoch, so a handful of rows stands for millions of updates.

use super::{BotId, Deserialize, Serialize, Unreadable, decode, encode, prefix};

const KIND: u8 = b'n';

/// The ids from the key's `first` to `last`, both included.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SeenRow {
    /// The last id of the interval.
    pub last: i64,
    /// Unix milliseconds at which the newest of them was accepted.
    pub at: u64,
}

impl SeenRow {
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
        decode("seen", bytes)
    }
}

/// Every interval of an epoch.
#[must_use]
pub fn epoch_prefix(bot: BotId, epoch: u64) -> Vec<u8> {
    let mut key = prefix(KIND, bot);
    key.extend_from_slice(&epoch.to_be_bytes());
    key
}

/// One interval.
#[must_use]
pub fn key(bot: BotId, epoch: u64, first: i64) -> Vec<u8> {
    let mut key = epoch_prefix(bot, epoch);
    key.extend_from_slice(&(first ^ i64::MIN).to_be_bytes());
    key
}

/// The first id of an interval, from its key.
#[must_use]
pub fn first_of(key: &[u8]) -> Option<i64> {
    super::number_of(key).map(|bits| bits.cast_signed() ^ i64::MIN)
}
