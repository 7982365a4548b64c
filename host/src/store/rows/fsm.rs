//! Conversation state: `s bot plugin conversation`; states that no version could read: `a bot plugin conversation`; and
//! states as they were before a version on trial turned them into its own: `r bot plugin conversation`.

use super::{
    BotId, ChatId, Conversation, Deserialize, PluginName, Serialize, Unreadable, UserId, decode, encode, prefix,
    push_plugin, split_plugin,
};
use crate::domain::ThreadId;

pub(super) const KIND: u8 = b's';
pub(super) const KIND_ASIDE: u8 = b'a';
pub(super) const KIND_BEFORE: u8 = b'r';

/// The state of one conversation with one plugin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StateRow {
    /// The state's own name.
    pub name: String,
    /// The version of the plugin's state type that wrote it.
    pub version: u32,
    /// Unix milliseconds from which on it reads as absent; 0 for never.
    pub expires: u64,
    /// What the plugin made of it.
    pub bytes: Vec<u8>,
}

impl StateRow {
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
        decode("state", bytes)
    }

    /// True when its time to live is over at `now` (Unix milliseconds).
    #[must_use]
    pub fn is_expired(&self, now: u64) -> bool {
        self.expires != 0 && self.expires <= now
    }
}

/// The state of a conversation.
#[must_use]
pub fn key(bot: BotId, plugin: &PluginName, conversation: &Conversation) -> Vec<u8> {
    under(KIND, bot, plugin, conversation)
}

/// Where a state is kept that the plugin's version could not read.
#[must_use]
pub fn aside_key(bot: BotId, plugin: &PluginName, conversation: &Conversation) -> Vec<u8> {
    under(KIND_ASIDE, bot, plugin, conversation)
}

/// Where a state is kept as it was before a version on trial took it over.
#[must_use]
pub fn before_key(bot: BotId, plugin: &PluginName, conversation: &Conversation) -> Vec<u8> {
    under(KIND_BEFORE, bot, plugin, conversation)
}

/// Every state of a plugin that is kept as it was before a trial.
#[must_use]
pub fn before_prefix(bot: BotId, plugin: &PluginName) -> Vec<u8> {
    let mut key = prefix(KIND_BEFORE, bot);
    push_plugin(&mut key, plugin);
    key
}

/// Every state of a plugin.
#[must_use]
pub fn plugin_prefix(bot: BotId, plugin: &PluginName) -> Vec<u8> {
    let mut key = prefix(KIND, bot);
    push_plugin(&mut key, plugin);
    key
}

/// Every state of a bot, and every one that is kept, aside or as it was before a trial.
#[must_use]
pub fn bot_prefixes(bot: BotId) -> [Vec<u8>; 3] {
    [prefix(KIND, bot), prefix(KIND_ASIDE, bot), prefix(KIND_BEFORE, bot)]
}

/// All states of a plugin, of each of these kinds.
#[must_use]
pub fn plugin_prefixes(bot: BotId, plugin: &PluginName) -> [Vec<u8>; 3] {
    bot_prefixes(bot).map(|mut key| {
        push_plugin(&mut key, plugin);
        key
    })
}

/// Everything that a plugin has in a chat, by whatever strategy, below one of [`bot_prefixes`]. What follows in a key
/// does not name the chat again, and the prefixes of two chats correspond in their order.
#[must_use]
pub fn chat_prefixes(below: &[u8], plugin: &PluginName, chat: ChatId) -> Vec<Vec<u8>> {
    let users = [None, Some(UserId(0))];
    let threads = [None, Some(ThreadId(0))];
    let conversations = users
        .into_iter()
        .flat_map(|user| threads.into_iter().map(move |thread| Conversation { chat: Some(chat), user, thread }));
    conversations
        .map(|conversation| {
            let mut key = below.to_vec();
            push_plugin(&mut key, plugin);
            // The mask and the chat, which stands before the other parts.
            key.extend_from_slice(&conversation.encode()[..9]);
            key
        })
        .collect()
}

/// Which of the three kinds a key is of (`s`, `a` or `r`), its plugin and its conversation.
#[must_use]
pub fn parse_key(key: &[u8]) -> Option<(u8, PluginName, Conversation)> {
    let kind = *key.first().filter(|kind| [KIND, KIND_ASIDE, KIND_BEFORE].contains(kind))?;
    let (plugin, rest) = split_plugin(key.get(9..)?)?;
    Some((kind, plugin, Conversation::decode(rest)?))
}

fn under(kind: u8, bot: BotId, plugin: &PluginName, conversation: &Conversation) -> Vec<u8> {
    let mut key = prefix(kind, bot);
    push_plugin(&mut key, plugin);
    key.extend_from_slice(&conversation.encode());
    key
}
