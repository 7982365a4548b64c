//! The texts that a plugin's buttons have had: `B bot plugin`. Keyboards stay in people's chats for years, with the texts
//! of the day on which they were sent.

use super::{BotId, Deserialize, PluginName, Serialize, Unreadable, decode, encode, prefix, push_plugin};

const KIND: u8 = b'B';

/// Texts and the keys that they were of, the newest last; each text once.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ButtonRow {
    /// Text and key.
    pub texts: Vec<(String, String)>,
}

impl ButtonRow {
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
        decode("button", bytes)
    }
}

/// The row of a plugin.
#[must_use]
pub fn key(bot: BotId, plugin: &PluginName) -> Vec<u8> {
    let mut key = prefix(KIND, bot);
    push_plugin(&mut key, plugin);
    key
}
