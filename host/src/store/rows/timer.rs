//! Timers: `t bot plugin due id`. Beside them, under `u bot`, what finds them: `0 plugin id`, and `1 plugin owner name 0 id` (`3 …`
//! for what a manifest declares), all with the due time; and `2 plugin id` for a recurring one whose last event has not
//! been handled yet.

use super::{
    BotId, Conversation, Deserialize, EventLane, PluginName, Serialize, Unreadable, decode, encode, prefix,
    push_plugin, split_plugin,
};

use crate::recurrence::{Misfire, Rule};

pub(super) const KIND: u8 = b't';
const KIND_INDEX: u8 = b'u';

/// A timer that has not come due.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TimerRow {
    /// Who set it.
    pub plugin: PluginName,
    /// Where.
    pub conversation: Conversation,
    /// The lane its event will go to: that of the event that set it.
    pub lane: EventLane,
    /// Its name.
    pub name: String,
    /// What the plugin gave it.
    pub payload: Vec<u8>,
    /// Who it is found under.
    pub owner: Owner,
    /// How it goes on; `None` for one that comes once.
    pub repeat: Option<Repeat>,
    /// Unix milliseconds at which it was set, where it is to come so long after that; 0 where only its time counts.
    pub since: u64,
}

/// Whose name space a timer is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Owner {
    /// The plugin's manifest.
    Manifest,
    /// The plugin.
    Plugin,
    /// The timer's conversation.
    Conversation,
}

/// How a timer recurs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repeat {
    /// When.
    pub rule: Rule,
    /// What becomes of missed times.
    pub misfire: Misfire,
}

impl TimerRow {
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
        decode("timer", bytes)
    }
}

/// Every timer of a bot, plugin by plugin.
#[must_use]
pub fn bot_prefix(bot: BotId) -> Vec<u8> {
    prefix(KIND, bot)
}

/// Every timer of a plugin, the next to come due first.
#[must_use]
pub fn plugin_prefix(bot: BotId, plugin: &PluginName) -> Vec<u8> {
    let mut key = prefix(KIND, bot);
    push_plugin(&mut key, plugin);
    key
}

/// One timer, due at `due` (Unix milliseconds).
#[must_use]
pub fn key(bot: BotId, plugin: &PluginName, due: u64, id: u64) -> Vec<u8> {
    let mut key = plugin_prefix(bot, plugin);
    key.extend_from_slice(&due.to_be_bytes());
    key.extend_from_slice(&id.to_be_bytes());
    key
}

/// Plugin, due time and id of a key that [`key`] made.
#[must_use]
pub fn parse_key(key: &[u8]) -> Option<(PluginName, u64, u64)> {
    let (plugin, rest) = split_plugin(key.strip_prefix(&[KIND])?.get(8..)?)?;
    let (due, id) = rest.split_first_chunk::<8>()?;
    Some((plugin, u64::from_be_bytes(*due), u64::from_be_bytes(id.try_into().ok()?)))
}

/// Everything that finds a plugin's timers, or says that one waits.
#[must_use]
pub fn index_prefixes(bot: BotId, plugin: &PluginName) -> [Vec<u8>; 4] {
    [0, 1, 2, 3].map(|part| {
        let mut key = prefix(KIND_INDEX, bot);
        key.push(part);
        push_plugin(&mut key, plugin);
        key
    })
}

/// Where a plugin's timer is found by its id; the value is its due time, 8 bytes big-endian.
#[must_use]
pub fn index_key(bot: BotId, plugin: &PluginName, id: u64) -> Vec<u8> {
    let mut key = prefix(KIND_INDEX, bot);
    key.push(0);
    push_plugin(&mut key, plugin);
    key.extend_from_slice(&id.to_be_bytes());
    key
}

/// Every timer of an owner, by name.
#[must_use]
pub fn owner_prefix(bot: BotId, plugin: &PluginName, owner: Owner, conversation: &Conversation) -> Vec<u8> {
    let mut key = prefix(KIND_INDEX, bot);
    key.push(if owner == Owner::Manifest { 3 } else { 1 });
    push_plugin(&mut key, plugin);
    match owner {
        Owner::Manifest => {}
        Owner::Plugin => key.push(1),
        Owner::Conversation => {
            key.push(2);
            key.extend_from_slice(&conversation.encode());
        }
    }
    key
}

/// Every timer of an owner with this name, which holds no zero byte.
#[must_use]
pub fn name_prefix(bot: BotId, plugin: &PluginName, owner: Owner, conversation: &Conversation, name: &str) -> Vec<u8> {
    let mut key = owner_prefix(bot, plugin, owner, conversation);
    key.extend_from_slice(name.as_bytes());
    key.push(0);
    key
}

/// Every timer that a manifest declares.
#[must_use]
pub fn declared_prefix(bot: BotId) -> Vec<u8> {
    let mut key = prefix(KIND_INDEX, bot);
    key.push(3);
    key
}

/// Whose a key is that begins with [`declared_prefix`].
#[must_use]
pub fn declared_by(key: &[u8]) -> Option<PluginName> {
    split_plugin(key.get(10..)?).map(|(plugin, _)| plugin)
}

/// There while an event of a recurring timer waits to be handled.
#[must_use]
pub fn waiting_key(bot: BotId, plugin: &PluginName, id: u64) -> Vec<u8> {
    let mut key = prefix(KIND_INDEX, bot);
    key.push(2);
    push_plugin(&mut key, plugin);
    key.extend_from_slice(&id.to_be_bytes());
    key
}

/// The due time that an index holds.
#[must_use]
pub fn parse_due(value: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(value.try_into().ok()?))
}

impl TimerRow {
    /// All rows of a timer, with their values.
    #[must_use]
    pub fn rows(&self, bot: BotId, due: u64, id: u64) -> [(Vec<u8>, Vec<u8>); 3] {
        let [row, by_id, by_name] = self.keys(bot, due, id);
        let due = due.to_be_bytes().to_vec();
        [(row, self.encode()), (by_id, due.clone()), (by_name, due)]
    }

    /// The keys of all rows of a timer.
    #[must_use]
    pub fn keys(&self, bot: BotId, due: u64, id: u64) -> [Vec<u8>; 3] {
        let mut by_name = name_prefix(bot, &self.plugin, self.owner, &self.conversation, &self.name);
        by_name.extend_from_slice(&id.to_be_bytes());
        [key(bot, &self.plugin, due, id), index_key(bot, &self.plugin, id), by_name]
    }
}
