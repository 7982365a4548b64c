//! Groups that have become supergroups: `v bot group`. The row stays for good: the old id may stand in what plugins
//! keep, and still means the same chat.

use super::super::{Error, Tx};
use super::{BotId, ChatId, Deserialize, Serialize, Unreadable, decode, encode, number_of, prefix};

const KIND: u8 = b'v';
const KEY_LENGTH: usize = 1 + 8 + 8;

/// What became of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MovedRow {
    /// The supergroup.
    pub to: ChatId,
    /// Unix milliseconds at which it became known.
    pub at: u64,
    /// Everything that belonged to the group is the supergroup's now. Until then, nothing of either may be handled.
    pub done: bool,
}

impl MovedRow {
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
        decode("moved group", bytes)
    }
}

/// Every such group of a bot.
#[must_use]
pub fn bot_prefix(bot: BotId) -> Vec<u8> {
    prefix(KIND, bot)
}

/// One group.
#[must_use]
pub fn key(bot: BotId, group: ChatId) -> Vec<u8> {
    let mut key = bot_prefix(bot);
    key.extend_from_slice(&(group.0 ^ i64::MIN).to_be_bytes());
    key
}

/// The group of a key that [`key`] made.
#[must_use]
pub fn parse_key(key: &[u8]) -> Option<ChatId> {
    let is_ours = key.len() == KEY_LENGTH && key.first() == Some(&KIND);
    is_ours.then(|| number_of(key)).flatten().map(|bits| ChatId(bits.cast_signed() ^ i64::MIN))
}

/// The id under which things of this chat stand: another one if it was a group and has moved. That it has not is read
/// too: whoever writes under an old id must not miss the move.
///
/// # Errors
/// When the store can't be read.
pub fn current(tx: &mut Tx, bot: BotId, chat: ChatId) -> Result<ChatId, Error> {
    if !chat.is_basic_group() {
        return Ok(chat);
    }
    let key = key(bot, chat);
    let Some(row) = tx.get(&key)?.and_then(|row| MovedRow::decode(&row).ok()) else { return Ok(chat) };
    let to = row.to;
    if !row.done {
        // Who reads under the new id what has not come there yet must not commit before it has.
        tx.assume(&key, MovedRow { done: true, ..row }.encode());
    }
    Ok(to)
}
