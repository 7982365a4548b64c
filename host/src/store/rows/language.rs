//! The languages that people have chosen: `L bot whose id`. They hold for all plugins of the bot.

use super::{BotId, ChatId, Deserialize, Serialize, Unreadable, UserId, decode, encode, number_of, prefix};
use crate::store::{Error, Tx};

const KIND: u8 = b'L';
const KEY_LENGTH: usize = 1 + 8 + 1 + 8;

type Row = (Vec<u8>, Vec<u8>);

/// Whose language.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Whose {
    /// A person's.
    User(UserId),
    /// A chat's: for what is said to everybody there.
    Chat(ChatId),
}

/// What is known of somebody's language.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LanguageRow {
    /// What they have chosen.
    pub chosen: Option<String>,
    /// What Telegram told of them when something was put off that will speak to them: by then nobody tells it.
    pub told: Option<String>,
}

impl LanguageRow {
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
        decode("language", bytes)
    }
}

/// Everybody of a bot.
#[must_use]
pub fn bot_prefix(bot: BotId) -> Vec<u8> {
    prefix(KIND, bot)
}

/// One of them.
#[must_use]
pub fn key(bot: BotId, whose: Whose) -> Vec<u8> {
    let mut key = bot_prefix(bot);
    let (tag, id) = match whose {
        Whose::User(user) => (1, user.0),
        Whose::Chat(chat) => (2, chat.0),
    };
    key.push(tag);
    key.extend_from_slice(&(id ^ i64::MIN).to_be_bytes());
    key
}

/// Whose a key is that [`key`] made.
#[must_use]
pub fn parse_key(key: &[u8]) -> Option<Whose> {
    if key.len() != KEY_LENGTH || key.first() != Some(&KIND) {
        return None;
    }
    let id = number_of(key)?.cast_signed() ^ i64::MIN;
    match key.get(9)? {
        1 => Some(Whose::User(UserId(id))),
        2 => Some(Whose::Chat(ChatId(id))),
        _ => None,
    }
}

/// What is known of somebody's language. It may change before the commit: whoever is spoken to as they wished a moment ago
/// is spoken to rightly.
///
/// # Errors
/// When the store can't be read.
pub fn of(tx: &Tx, bot: BotId, whose: Whose) -> Result<LanguageRow, Error> {
    let row = tx.peek(&key(bot, whose))?;
    // One that can't be read is as good as none.
    Ok(row.and_then(|row| LanguageRow::decode(&row).ok()).unwrap_or_default())
}

/// Who an event is of, as far as it decides in which language the answer is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listener {
    /// Who caused it.
    pub user: Option<UserId>,
    /// Where.
    pub chat: Option<ChatId>,
    /// The user's language as Telegram tells it.
    pub told: Option<String>,
    /// The language of everybody else.
    pub default: String,
}

impl Listener {
    /// The one of an event that the host has made itself for a conversation: nobody tells of a language then. A private
    /// chat has the id of its user.
    #[must_use]
    pub fn of_conversation(user: Option<UserId>, chat: Option<ChatId>, default: String) -> Self {
        let private = chat.filter(|chat| chat.0 > 0).map(|chat| UserId(chat.0));
        Self { user: user.or(private), chat, told: None, default }
    }

    /// The user, or the chat; none where the event has none.
    #[must_use]
    pub fn whose(&self, chat: bool) -> Option<Whose> {
        if chat { self.chat.map(Whose::Chat) } else { self.user.map(Whose::User) }
    }

    /// The rows that decide about it, as they are now.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn rows(&self, tx: &Tx, bot: BotId) -> Result<Vec<Row>, Error> {
        let mut rows = Vec::new();
        for whose in [false, true].into_iter().filter_map(|chat| self.whose(chat)) {
            let key = key(bot, whose);
            rows.extend(tx.peek(&key)?.map(|row| (key, row.to_vec())));
        }
        Ok(rows)
    }

    /// The language that they are spoken to in: what the user has chosen, else the chat, else what Telegram tells of the
    /// user, else the default.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn language(&self, tx: &Tx, bot: BotId) -> Result<String, Error> {
        let row = |whose: Option<Whose>| whose.map_or_else(|| Ok(LanguageRow::default()), |whose| of(tx, bot, whose));
        let own = row(self.whose(false))?;
        if let Some(chosen) = own.chosen {
            return Ok(chosen);
        }
        let chats = row(self.whose(true))?.chosen;
        Ok(chats.or_else(|| self.told.clone()).or(own.told).unwrap_or_else(|| self.default.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;

    #[test]
    fn keys_say_whose_they_are() {
        for whose in
            [Whose::User(UserId(7)), Whose::Chat(ChatId(-100_123)), Whose::Chat(ChatId(7)), Whose::User(UserId(0))]
        {
            assert_eq!(parse_key(&key(BotId(4242), whose)), Some(whose));
        }
        assert_eq!(parse_key(b"L"), None);
    }

    #[test]
    fn the_users_own_choice_goes_before_the_chats_and_that_before_what_telegram_tells() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("store")).unwrap();
        let (bot, user, group) = (BotId(1), UserId(7), ChatId(-5));
        for (own, told_before, chats, told, expected) in [
            ("", "", "", "", "en"),
            ("", "", "", "pt-br", "pt-br"),
            ("", "", "uz", "pt-br", "uz"),
            ("ru", "", "uz", "pt-br", "ru"),
            ("", "de", "", "", "de"),
            ("", "de", "", "fr", "fr"),
            ("", "de", "uz", "", "uz"),
        ] {
            let given = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
            let mut tx = Tx::new(&store);
            let row = LanguageRow { chosen: given(own), told: given(told_before) };
            tx.put(key(bot, Whose::User(user)), row.encode());
            let row = LanguageRow { chosen: given(chats), told: None };
            tx.put(key(bot, Whose::Chat(group)), row.encode());
            let listener =
                Listener { user: Some(user), chat: Some(group), told: given(told), default: "en".to_owned() };
            assert_eq!(listener.language(&tx, bot).unwrap(), expected, "{own} {told_before} {chats} {told}");
        }
        let private = Listener::of_conversation(None, Some(ChatId(7)), "en".to_owned());
        assert_eq!(private.user, Some(user));
        assert_eq!(Listener::of_conversation(None, Some(group), "en".to_owned()).user, None);
    }
}
