//! The menus of commands as Telegram was last told of them: `l bot`.

use super::{BotId, Deserialize, Serialize, Unreadable, decode, encode, prefix};

const KIND: u8 = b'l';

/// What Telegram was told.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MenuRow {
    /// The lists.
    pub lists: Vec<MenuList>,
}

/// One list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MenuList {
    /// The type of its scope, as the Bot API names it, and behind a colon the chat where it is one chat's; empty for
    /// everybody's.
    pub scope: String,
    /// A language code; empty for everybody else's.
    pub language: String,
    /// The commands and what they are good for.
    pub commands: Vec<(String, String)>,
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
