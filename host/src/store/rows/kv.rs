//! Values that plugins keep: `k bot plugin scope key`.

use super::{
    BotId, ChatId, Deserialize, PluginName, Serialize, Unreadable, UserId, decode, encode, prefix, push_plugin,
    split_plugin,
};

pub(super) const KIND: u8 = b'k';

/// Whose value it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// The plugin's own.
    Plugin,
    /// A chat's.
    Chat(ChatId),
    /// A user's.
    User(UserId),
    /// The host's for the plugin: what its buttons stand for, in a chat or wherever they are.
    Buttons(Option<ChatId>),
}

/// A kept value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ValueRow {
    /// Unix milliseconds from which on it reads as absent; 0 for never.
    pub expires: u64,
    /// The value.
    pub bytes: Vec<u8>,
}

impl ValueRow {
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
        decode("value", bytes)
    }

    /// True when its time to live is over at `now` (Unix milliseconds).
    #[must_use]
    pub fn is_expired(&self, now: u64) -> bool {
        self.expires != 0 && self.expires <= now
    }
}

/// Every value of a bot.
#[must_use]
pub fn bot_prefix(bot: BotId) -> Vec<u8> {
    prefix(KIND, bot)
}

/// Every value of a plugin.
#[must_use]
pub fn plugin_prefix(bot: BotId, plugin: &PluginName) -> Vec<u8> {
    let mut key = prefix(KIND, bot);
    push_plugin(&mut key, plugin);
    key
}

/// Every value of a plugin in a scope; the plugin's key follows.
#[must_use]
pub fn scope_prefix(bot: BotId, plugin: &PluginName, scope: Scope) -> Vec<u8> {
    let mut key = plugin_prefix(bot, plugin);
    let (tag, id) = match scope {
        Scope::Plugin => (0, 0),
        Scope::Chat(chat) => (1, chat.0),
        Scope::User(user) => (2, user.0),
        Scope::Buttons(Some(chat)) => (3, chat.0),
        Scope::Buttons(None) => (4, 0),
    };
    key.push(tag);
    key.extend_from_slice(&(id ^ i64::MIN).to_be_bytes());
    key
}

/// Plugin, scope and name of a key that [`key`] made.
#[must_use]
pub fn parse_key(key: &[u8]) -> Option<(PluginName, Scope, String)> {
    if key.first() != Some(&KIND) {
        return None;
    }
    let (plugin, rest) = split_plugin(key.get(9..)?)?;
    let (&tag, rest) = rest.split_first()?;
    let (id, name) = rest.split_first_chunk::<8>()?;
    let id = i64::from_be_bytes(*id) ^ i64::MIN;
    let scope = match tag {
        0 => Scope::Plugin,
        1 => Scope::Chat(ChatId(id)),
        2 => Scope::User(UserId(id)),
        3 => Scope::Buttons(Some(ChatId(id))),
        4 => Scope::Buttons(None),
        _ => return None,
    };
    Some((plugin, scope, String::from_utf8(name.to_vec()).ok()?))
}

/// One value.
#[must_use]
pub fn key(bot: BotId, plugin: &PluginName, scope: Scope, name: &str) -> Vec<u8> {
    let mut key = scope_prefix(bot, plugin, scope);
    key.extend_from_slice(name.as_bytes());
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_say_whose_value_it_is() {
        let plugin = PluginName::new("shop");
        for scope in [
            Scope::Plugin,
            Scope::Chat(ChatId(-100_123)),
            Scope::User(UserId(7)),
            Scope::Buttons(Some(ChatId(-7))),
            Scope::Buttons(None),
        ] {
            let key = key(BotId(4242), &plugin, scope, "stock");
            assert_eq!(parse_key(&key), Some((plugin.clone(), scope, "stock".to_owned())), "{scope:?}");
        }
    }
}
