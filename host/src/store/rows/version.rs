//! Which version of a plugin serves, and which must not: `y bot plugin`.
//!
//! The file of a plugin may hold another version than this by the time the host starts again: one that was rolled back,
//! or one that was saved while nobody ran.

use super::{BotId, Deserialize, PluginName, Serialize, Unreadable, decode, encode, prefix, push_plugin, split_plugin};

const KIND: u8 = b'y';

/// Where the versions of a plugin stand. A version is the beginning of the hash of its file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionRow {
    /// The one that serves, or that the one on trial is measured by.
    pub serving: String,
    /// The one on trial, if there is one.
    pub trial: Option<String>,
    /// Those that have served well, the newest last; `serving` is among them.
    pub good: Vec<Past>,
    /// Those that were rolled back, and must not serve again by themselves.
    pub rejected: Vec<Rejected>,
    /// The operator has it switched off.
    pub disabled: bool,
    /// How the one that serves had done when this was last written.
    pub pace: PaceRow,
    /// Unix milliseconds at which the trial has begun, where one is on.
    pub trial_since: u64,
}

/// How a version does: sums over its runs for events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PaceRow {
    /// Runs that ended well.
    pub runs: u64,
    /// Those of them that handled their event.
    pub handled: u64,
    /// Events that failed at first.
    pub failed: u64,
    /// Nanoseconds of processor time of the runs that ended well.
    pub cpu: u64,
    /// Their time in all, in nanoseconds.
    pub time: u64,
}

/// A version that has served.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Past {
    /// Which.
    pub version: String,
    /// What its author calls it.
    pub manifest_version: String,
    /// Unix milliseconds from which on it served.
    pub since: u64,
}

/// A version that was rolled back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rejected {
    /// Which.
    pub version: String,
    /// Unix milliseconds at which it was.
    pub at: u64,
    /// Why.
    pub reason: String,
}

impl VersionRow {
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
        decode("version", bytes)
    }
}

/// The versions of every plugin of a bot.
#[must_use]
pub fn bot_prefix(bot: BotId) -> Vec<u8> {
    prefix(KIND, bot)
}

/// The versions of one plugin.
#[must_use]
pub fn key(bot: BotId, plugin: &PluginName) -> Vec<u8> {
    let mut key = prefix(KIND, bot);
    push_plugin(&mut key, plugin);
    key
}

/// The plugin of a key that [`key`] made.
#[must_use]
pub fn parse_key(key: &[u8]) -> Option<PluginName> {
    let (plugin, rest) = split_plugin(key.strip_prefix(&[KIND])?.get(8..)?)?;
    rest.is_empty().then_some(plugin)
}
