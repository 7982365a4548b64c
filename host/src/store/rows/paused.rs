//! Plugins that an operator has paused: `p bot plugin`.

use super::{BotId, Deserialize, PluginName, Serialize, Unreadable, decode, encode, prefix, push_plugin};

const KIND: u8 = b'p';

/// A plugin whose events wait.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PausedRow {
    /// Unix milliseconds from which on they do.
    pub since: u64,
    /// The crash that paused it; none where an operator did.
    pub crash: Option<Crash>,
}

/// A run that crashed: what its event would be set aside with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Crash {
    /// The number of the event or job, which waits.
    pub event: u64,
    /// The version that crashed.
    pub version: String,
    /// What happened.
    pub reason: String,
    /// Where, as far as is known; empty where it is not.
    pub backtrace: String,
}

impl PausedRow {
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
        decode("pause", bytes)
    }
}

/// Every paused plugin of a bot.
#[must_use]
pub fn bot_prefix(bot: BotId) -> Vec<u8> {
    prefix(KIND, bot)
}

/// One paused plugin.
#[must_use]
pub fn key(bot: BotId, plugin: &PluginName) -> Vec<u8> {
    let mut key = prefix(KIND, bot);
    push_plugin(&mut key, plugin);
    key
}

/// The plugin of a key that [`key`] made.
#[must_use]
pub fn parse_key(key: &[u8]) -> Option<PluginName> {
    let name = key.strip_prefix(&[KIND])?.get(8..)?.strip_suffix(&[0])?;
    std::str::from_utf8(name).ok().map(PluginName::new)
}
