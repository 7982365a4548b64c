//! What a call's parameters name that a plugin may not have: chats, people, and files of the Bot API server's machine.
//!
//! - **Chats** stand in every key that ends in `chat_id`, wherever it stands. Somebody whom a call is about within a chat
//!   (`user_id`, `sender_chat_id`) is no chat; in a method that acts in no chat, they are whom it reaches.
//! - **A business account** is reached by its connection, unless the call is for a chat of it.
//! - **Files** are sent by reference. A `file:` address or a path would have a Bot API server of one's own read its disk.
//!
//! What is not in the tables of the Bot API is looked at as if it were all of that: whoever writes something in an odd
//! way, or calls a method that is newer than this host, gets no further than one that writes it plainly. What can't be
//! read whole is refused, because others may well read on. Pure.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::Named;
use super::known::{FILES, IN_A_CHAT, TEXTS, WORDS};
use crate::domain::ChatId;

/// Levels of parameters within parameters that are looked at.
const DEPTH: usize = 64;
/// Methods that name a person or a connection without reaching it: they look at what is there for all to see, or belong
/// to what was sent through inline mode.
const REACH_NOBODY: [&str; 6] = [
    "getbusinessconnection",
    "getgamehighscores",
    "getusergifts",
    "getuserprofileaudios",
    "getuserprofilephotos",
    "setgamescore",
];
/// Where the chat stands that a call is for.
const OWN_CHAT: &str = "chat_id";
/// What a chat's member is called that is no person.
const MEMBERS: [&str; 2] = ["actor_chat_id", "sender_chat_id"];
/// Texts with markup of their own, which may name media by address.
const MARKED_UP: [&str; 2] = ["html", "markdown"];

/// Why parameters go nowhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::plugin) enum Unfit {
    /// They can't be read.
    Unreadable(String),
    /// They name a file on a disk.
    OnDisk,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(why) => write!(f, "the parameters can't be read: {why}"),
            Self::OnDisk => f.write_str(
                "no plugin may have the Bot API server read its disk: send a file that the run has made or fetched, a \
                 file_id, or a web address, and no `file:` address or path",
            ),
        }
    }
}

/// The chats that a call names.
///
/// # Errors
/// When the parameters can't be read, or name a file on a disk.
pub(in crate::plugin) fn named_in(method: &str, params: &str) -> Result<Vec<Named>, Unfit> {
    let mut found = Found::default();
    let mut json = serde_json::Deserializer::from_str(params);
    Walk { found: &mut found, left: DEPTH, objects: 0, key: "" }
        .deserialize(&mut json)
        .and_then(|()| json.end())
        .map_err(|error| Unfit::Unreadable(error.to_string()))?;
    if found.on_disk {
        return Err(Unfit::OnDisk);
    }
    let Found { mut chats, members, account, own_chat, .. } = found;
    let is = |methods: &[&str]| methods.binary_search(&method.to_ascii_lowercase().as_str()).is_ok();
    let in_its_chat = is(&IN_A_CHAT) && own_chat == Some(true);
    if !in_its_chat && !is(&REACH_NOBODY) {
        chats.extend(members);
        chats.extend(account.then_some(Named::Account));
    }
    Ok(chats)
}

/// Whether a value is read as the address of a file on a disk.
pub(in crate::plugin) fn is_on_disk(value: &str) -> bool {
    let value = value.trim_start_matches(|c: char| c.is_whitespace() || c.is_control());
    value.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("file:"))
}

#[derive(Default)]
struct Found {
    chats: Vec<Named>,
    members: Vec<Named>,
    account: bool,
    on_disk: bool,
    /// Whether the call says which chat it is for, and nothing else for the same.
    own_chat: Option<bool>,
}

/// Walks over all of the parameters. A key that stands twice is looked at twice: nobody knows which of them counts.
struct Walk<'a> {
    found: &'a mut Found,
    left: usize,
    /// How many objects it stands in: one for a parameter.
    objects: usize,
    /// What it stands under, in lower case.
    key: &'a str,
}

impl Walk<'_> {
    fn deeper<E: serde::de::Error>(&self) -> Result<usize, E> {
        self.left.checked_sub(1).ok_or_else(|| E::custom("they are nested too deeply"))
    }

    /// Takes what a key of an id holds.
    fn take(&mut self, key: &str, value: Value) {
        let (key, values) = match (key.strip_suffix('s'), value) {
            (Some(key), Value::Array(items)) => (key, items),
            (_, value) => (key, vec![value]),
        };
        if key == "business_connection_id" {
            self.found.account |= values.iter().any(|value| !value.is_null() && value != "");
            return;
        }
        let is_member = key.ends_with("user_id") || MEMBERS.contains(&key);
        let list = if is_member { &mut self.found.members } else { &mut self.found.chats };
        list.extend(values.iter().filter_map(named));
    }

    fn text<E: serde::de::Error>(&mut self, text: &str) -> Result<(), E> {
        let has = |names: &[&str]| names.binary_search(&self.key).is_ok();
        let is_param = self.objects <= 1;
        let is_words = if is_param { has(&WORDS) } else { has(&TEXTS) };
        let is_path = || has(&FILES) && text.trim_start().starts_with(['/', '\\', '~']);
        self.found.on_disk |= match MARKED_UP.contains(&self.key) {
            true => addresses_disk(text),
            false => !is_words && (is_on_disk(text) || is_path()),
        };
        // Telegram takes lists and objects as JSON within a text as well.
        if is_param && !is_words && looks_like_json(text) {
            let left = self.deeper()?;
            let mut json = serde_json::Deserializer::from_str(text);
            let walk = Walk { found: &mut *self.found, left, objects: self.objects, key: self.key };
            walk.deserialize(&mut json).and_then(|()| json.end()).map_err(E::custom)?;
        }
        Ok(())
    }
}

/// Whether a text with markup shows a file on a disk.
fn addresses_disk(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    text.rsplit("file:").skip(1).any(|before| before.trim_end().ends_with(['"', '\'', '=', '(', '<']))
}

/// Whether somebody may take it for a list or an object; what people write in brackets is none.
fn looks_like_json(text: &str) -> bool {
    let mut marks = text.chars().filter(|c| !c.is_whitespace() && !c.is_control());
    match (marks.next(), marks.next()) {
        (Some('{'), second) => matches!(second, Some('"')),
        (Some('['), second) => matches!(second, Some('"' | '[' | '{')),
        _ => false,
    }
}

fn is_id(key: &str) -> bool {
    let key = key.strip_suffix('s').unwrap_or(key);
    key.ends_with("chat_id") || key.ends_with("user_id") || key == "business_connection_id"
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("parameters")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        let (left, objects) = (self.deeper()?, self.objects + 1);
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            // Others may not know it in capitals.
            let is_own_chat = objects == 1 && key == OWN_CHAT;
            let key = key.to_ascii_lowercase();
            if is_id(&key) {
                let value: Value = map.next_value()?;
                if is_own_chat {
                    self.found.own_chat = Some(!value.is_null() && self.found.own_chat.unwrap_or(true));
                }
                self.take(&key, value);
            } else {
                map.next_value_seed(Walk { found: &mut *self.found, left, objects, key: &key })?;
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let left = self.deeper()?;
        // A list of texts is as good as one text, whatever it is a list of.
        while list.next_element_seed(Walk { found: &mut *self.found, left, ..self })?.is_some() {}
        Ok(())
    }

    fn visit_str<E: serde::de::Error>(mut self, text: &str) -> Result<(), E> {
        self.text(text)
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

/// `null` is as good as nothing.
fn named(value: &Value) -> Option<Named> {
    let odd = || Named::Odd(format!("{:.64}", value.to_string()));
    match value {
        Value::Null => None,
        Value::Number(number) => Some(number.as_i64().map_or_else(odd, |id| Named::Number(ChatId(id)))),
        Value::String(text) => match (text.trim().parse(), text.trim().strip_prefix('@')) {
            (Ok(id), _) => Some(Named::Number(ChatId(id))),
            (_, Some(name)) => Some(Named::Name(name.to_owned())),
            _ => Some(odd()),
        },
        _ => Some(odd()),
    }
}

#[cfg(test)]
mod tests;
