//! The menu of commands as Telegram was last told of it: `l bot`.

use super::{BotId, Deserialize, Serialize, Unreadable, decode, encode, prefix};

const KIND: u8 = b'l';

/// What Telegram was told.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MenuRow {
    /// A list for each language, the one for everybody else under the empty text: the commands and what they are good for.
    pub lists: Vec<(String, Vec<(String, String)>)>,
}

impl MenuRow {
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
        decode("menu", bytes)
    }
}

/// The one key of this kind.
#[must_use]
pub fn key(bot: BotId) -> Vec<u8> {
    prefix(KIND, bot)
}
