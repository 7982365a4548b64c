//! Chats that the bot has met: `c bot chat`. One row each, written when something about the chat changes.

use super::{BotId, ChatId, Deserialize, Serialize, Unreadable, decode, encode, number_of, prefix};

const KIND: u8 = b'c';
const KEY_LENGTH: usize = 1 + 8 + 8;

/// What was last seen of a chat.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatRow {
    /// `private`, `group`, `supergroup` or `channel`; empty where nobody has said.
    pub kind: String,
    /// Its title, or the name of the person.
    pub title: String,
    /// Its public name, without the `@`.
    pub username: Option<String>,
    /// Unix milliseconds at which it was last heard of, to within a day.
    pub seen: u64,
    /// Why nothing can be sent there; `None` as far as is known it can.
    pub gone: Option<String>,
    /// Unix milliseconds from which on `gone` is what it is.
    pub gone_since: u64,
}

impl ChatRow {
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
        decode("chat", bytes)
    }

    /// As far as is known, something can be sent there.
    #[must_use]
    pub fn is_reachable(&self) -> bool {
        self.gone.is_none()
    }
}

/// Every chat of a bot.
#[must_use]
pub fn bot_prefix(bot: BotId) -> Vec<u8> {
    prefix(KIND, bot)
}

/// One chat.
#[must_use]
pub fn key(bot: BotId, chat: ChatId) -> Vec<u8> {
    let mut key = bot_prefix(bot);
    key.extend_from_slice(&(chat.0 ^ i64::MIN).to_be_bytes());
    key
}

/// The chat of a key that [`key`] made.
#[must_use]
pub fn parse_key(key: &[u8]) -> Option<ChatId> {
    let is_ours = key.len() == KEY_LENGTH && key.first() == Some(&KIND);
    is_ours.then(|| number_of(key)).flatten().map(|bits| ChatId(bits.cast_signed() ^ i64::MIN))
}
