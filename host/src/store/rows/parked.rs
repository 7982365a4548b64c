//! Events that wait for a plugin that does not serve: `P bot plugin number`.
//!
//! They are for that plugin alone and nobody else misses them, so they stand in nobody's way here. When the plugin
//! serves, they go back behind what waits in their lanes.

use super::inbox::InboxRow;
use super::{BotId, Deserialize, EventLane, PluginName, Serialize, Unreadable, decode, encode, prefix, push_plugin};

pub(super) const KIND: u8 = b'P';

/// An event that waits for its plugin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ParkedRow {
    /// The lane that it is of.
    pub lane: EventLane,
    /// As it was in the inbox.
    pub row: InboxRow,
}

impl ParkedRow {
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
        decode("parked event", bytes)
    }
}

/// Every one of a bot.
#[must_use]
pub fn bot_prefix(bot: BotId) -> Vec<u8> {
    prefix(KIND, bot)
}

/// Those of a plugin; an `Append` adds the number.
#[must_use]
pub fn plugin_prefix(bot: BotId, plugin: &PluginName) -> Vec<u8> {
    let mut key = prefix(KIND, bot);
    push_plugin(&mut key, plugin);
    key
}
