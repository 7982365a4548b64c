//! Which chats a plugin has to do with: those of the events that it is offered, and those that its calls name.
//!
//! A call names chats in `chat_id` and `from_chat_id`, wherever in its parameters they stand (those of
//! `reply_parameters` and of a command's `scope` count as well), and in `user_id` where something is sent to a person.
//! Every one of them must be granted. Answers to queries and edits of messages sent through inline mode name none: whether a plugin
//! gets as far as that, its kinds of update decide.
//!
//! What can't be told is denied: a plugin that writes an id in an odd way gets no further than one that writes it plainly.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::Plugin;
use crate::domain::{BotId, ChatFacts, ChatGrant, ChatId, PluginName, is_listed};
use crate::store::rows::chat::{self, ChatRow};
use crate::store::rows::moved;
use crate::store::{self, Tx};

/// Levels of parameters within parameters that are looked at.
const DEPTH: usize = 64;

/// A chat that a call names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Named {
    Number(ChatId),
    /// Without the `@`.
    Name(String),
    /// Something that is neither, as it was written.
    Odd(String),
}

impl Plugin {
    /// The only chats that the operator lets it have events of and call in; `None` for all.
    #[must_use]
    pub fn chats(&self) -> Option<&[ChatGrant]> {
        self.context.grants.chats.as_deref()
    }

    /// Whether the operator lets the plugin have events of this kind.
    #[must_use]
    pub fn may_see(&self, kind: &str) -> bool {
        self.context.grants.kinds.as_ref().is_none_or(|kinds| kinds.iter().any(|granted| granted == kind))
    }

    /// What would have to be granted before the plugin is given such an event, as far as that can be told without knowing
    /// which groups have become which supergroups.
    #[must_use]
    pub fn denies(&self, kind: &str, chat: Option<&ChatFacts<'_>>) -> Option<String> {
        let missing = |what: &str, list: &str| format!("{what} is not in `grants.{list}` of [plugins.{}]", self.name);
        if !self.may_see(kind) {
            return Some(missing(&format!("`{kind}`"), "kinds"));
        }
        match (&self.context.grants.chats, chat) {
            (Some(list), Some(chat)) if !is_listed(list, chat, |listed| listed) => Some(missing("its chat", "chats")),
            _ => None,
        }
    }

    /// Whether the operator lets the plugin have this event. One without a chat is a matter of its kind alone.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn is_offered(
        &self,
        kind: &str,
        chat: Option<(ChatId, Option<&str>)>,
        tx: &mut Tx,
        bot: BotId,
    ) -> Result<bool, store::Error> {
        if !self.may_see(kind) {
            return Ok(false);
        }
        match (&self.context.grants.chats, chat) {
            (Some(list), Some((id, kind))) => Ok(is_granted(list, &Named::Number(id), kind, tx, bot)?),
            _ => Ok(true),
        }
    }
}

/// Decides about one chat. `kind` is what is known of it already.
fn is_granted(
    list: &[ChatGrant],
    chat: &Named,
    kind: Option<&str>,
    tx: &mut Tx,
    bot: BotId,
) -> Result<bool, store::Error> {
    let mut failed = None;
    let mut now = |tx: &mut Tx, id| {
        moved::current(tx, bot, id).unwrap_or_else(|error| {
            failed = Some(error);
            id
        })
    };
    let granted = match chat {
        Named::Number(id) => {
            let id = now(tx, *id);
            let row = tx.peek(&chat::key(bot, id))?.and_then(|row| ChatRow::decode(&row).ok());
            let row_kind = row.as_ref().map(|row| row.kind.as_str()).filter(|kind| !kind.is_empty());
            let username = row.as_ref().and_then(|row| row.username.as_deref());
            let facts = ChatFacts::Number { id, kind: kind.or(row_kind), username };
            is_listed(list, &facts, |listed| now(tx, listed))
        }
        Named::Name(name) => is_listed(list, &ChatFacts::Name(name), |listed| listed),
        Named::Odd(_) => false,
    };
    failed.map_or(Ok(granted), Err)
}

/// Decides about all chats that a call names; the inner error is for the plugin's author and the operator.
pub(super) fn check(
    plugin: &PluginName,
    list: &[ChatGrant],
    chats: Vec<Named>,
    tx: &mut Tx,
    bot: BotId,
) -> Result<Result<(), String>, store::Error> {
    for chat in chats {
        if is_granted(list, &chat, None, tx, bot)? {
            continue;
        }
        let line = match chat {
            Named::Number(id) => id.to_string(),
            Named::Name(name) => format!("\"@{name}\""),
            Named::Odd(text) => return Ok(Err(format!("{text} is no chat: use its number or its @name"))),
        };
        return Ok(Err(format!("add {line} to `grants.chats` of [plugins.{plugin}] in bot.toml")));
    }
    Ok(Ok(()))
}

/// The chats that a call names.
pub(super) fn chats_of(method: &str, params: &str) -> Vec<Named> {
    let mut found = Found::default();
    let mut json = serde_json::Deserializer::from_str(params);
    if (Walk { found: &mut found, left: DEPTH }).deserialize(&mut json).is_err() {
        // Others may well read on: a number without end, half a character or great depth is no error to everybody.
        found.chats.push(unreadable());
    }
    let begins = |start: &str| method.get(..start.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start));
    if found.chats.is_empty() && (begins("send") || begins("gift")) {
        return found.users;
    }
    found.chats
}

#[derive(Default)]
struct Found {
    chats: Vec<Named>,
    users: Vec<Named>,
}

/// Walks over all of the parameters. A key that stands twice is looked at twice: nobody knows which of them counts.
struct Walk<'a> {
    found: &'a mut Found,
    left: usize,
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

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Some(left) = self.left.checked_sub(1) else {
            self.found.chats.push(Named::Odd("what lies so deep in the parameters".to_owned()));
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return Ok(());
        };
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            let list = match key.to_ascii_lowercase().as_str() {
                "chat_id" | "from_chat_id" => &mut self.found.chats,
                "user_id" if self.left == DEPTH => &mut self.found.users,
                // Telegram also takes these as JSON within a text.
                "reply_parameters" | "scope" => {
                    let value: Box<RawValue> = map.next_value()?;
                    let inner = serde_json::from_str::<String>(value.get()).unwrap_or_else(|_| value.get().to_owned());
                    let mut json = serde_json::Deserializer::from_str(&inner);
                    let walk = Walk { found: &mut *self.found, left };
                    if walk.deserialize(&mut json).is_err() && inner.trim_start().starts_with(['{', '[']) {
                        self.found.chats.push(unreadable());
                    }
                    continue;
                }
                _ => {
                    map.next_value_seed(Walk { found: self.found, left })?;
                    continue;
                }
            };
            list.extend(named(&map.next_value()?));
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let left = self.left.saturating_sub(1);
        while list.next_element_seed(Walk { found: &mut *self.found, left })?.is_some() {}
        Ok(())
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

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

fn unreadable() -> Named {
    Named::Odd("what can't be read in the parameters".to_owned())
}

/// `null` is as good as nothing.
fn named(value: &serde_json::Value) -> Option<Named> {
    let odd = || Named::Odd(format!("{:.64}", value.to_string()));
    match value {
        serde_json::Value::Null => None,
        serde_json::Value::Number(number) => Some(number.as_i64().map_or_else(odd, |id| Named::Number(ChatId(id)))),
        serde_json::Value::String(text) => match (text.trim().parse(), text.trim().strip_prefix('@')) {
            (Ok(id), _) => Some(Named::Number(ChatId(id))),
            (_, Some(name)) => Some(Named::Name(name.to_owned())),
            _ => Some(odd()),
        },
        _ => Some(odd()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;
    use crate::store::rows::moved::MovedRow;

    const BOT: BotId = BotId(42);
    const SUPER: i64 = -1_001_557_912_345;

    #[test]
    fn every_chat_of_a_call_is_found_however_it_is_written() {
        let show = |chat: &Named| match chat {
            Named::Number(id) => id.to_string(),
            Named::Name(name) => format!("@{name}"),
            Named::Odd(_) => "?".to_owned(),
        };
        for (method, params, expected) in [
            ("sendMessage", r#"{"chat_id":7,"text":"\"chat_id\":8"}"#, "7"),
            ("sendMessage", r#"{"chat_id":" -7 "}"#, "-7"),
            ("sendMessage", r#"{"chat_id":"\u0040news"}"#, "@news"),
            ("sendMessage", r#"{"chat_id":7,"chat_id":8}"#, "7 8"),
            ("sendMessage", r#"{"chat\u005fid":7,"Chat_Id":8}"#, "7 8"),
            ("sendMessage", r#"{"chat_id":7,"reply_parameters":{"message_id":1,"chat_id":-5}}"#, "7 -5"),
            ("sendMessage", r#"{"chat_id":7,"reply_parameters":"{\"message_id\":1,\"chat_id\":\"@a\"}"}"#, "7 @a"),
            ("forwardMessage", r#"{"from_chat_id":-5,"chat_id":7,"message_id":1}"#, "-5 7"),
            ("setMyCommands", r#"{"commands":[],"scope":{"type":"chat","chat_id":-5}}"#, "-5"),
            ("sendMessage", r#"{"chat_id":7.5}"#, "?"),
            ("sendMessage", r#"{"chat_id":"7abc"}"#, "?"),
            ("sendMessage", r#"{"chat_id":[7]}"#, "?"),
            ("sendMessage", r#"{"chat_id":18446744073709551615}"#, "?"),
            ("sendMessage", r#"{"chat_id":null}"#, ""),
            // What stands behind them must not be overlooked.
            ("sendMessage", r#"{"a":1e999,"chat_id":7}"#, "?"),
            ("sendMessage", r#"{"a":"\ud800","chat_id":7}"#, "?"),
            ("sendMessage", r#"{"\udc00":1,"chat_id":7}"#, "?"),
            ("sendMessage", r#"{"chat_id":8,"reply_parameters":"{\"a\":1e999,\"chat_id\":7}"}"#, "8 ?"),
            ("setChatTitle", r#"{"chat_id":8,"scope":"a word"}"#, "8"),
            ("sendGift", r#"{"user_id":9,"gift_id":"1"}"#, "9"),
            ("banChatMember", r#"{"chat_id":-5,"user_id":9}"#, "-5"),
            ("getUserProfilePhotos", r#"{"user_id":9}"#, ""),
            ("answerCallbackQuery", r#"{"callback_query_id":"12"}"#, ""),
            ("editMessageText", r#"{"inline_message_id":"AQ","text":"x"}"#, ""),
        ] {
            let found: Vec<_> = chats_of(method, params).iter().map(show).collect();
            assert_eq!(found.join(" "), expected, "{method} {params}");
        }
        let deep = format!("{}{}{}", r#"{"a":"#.repeat(100), r#"{"chat_id":7}"#, "}".repeat(100));
        assert_eq!(show(&chats_of("sendMessage", &deep)[0]), "?");
        let deep = format!("{{\"a\":{}{},\"chat_id\":7}}", "[".repeat(1_000), "]".repeat(1_000));
        assert_eq!(show(&chats_of("sendMessage", &deep)[0]), "?");
    }

    #[tokio::test]
    async fn what_the_store_knows_of_a_chat_counts() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("store")).unwrap();
        let mut tx = Tx::new(&store);
        let row = ChatRow { kind: "channel".into(), username: Some("news".into()), ..ChatRow::default() };
        tx.put(chat::key(BOT, ChatId(SUPER)), row.encode());
        let moved_row = MovedRow { to: ChatId(SUPER - 1), at: 0, done: true };
        tx.put(moved::key(BOT, ChatId(-5)), moved_row.encode());
        let kind = |kind| ChatGrant::parse(kind).unwrap();
        let id = |id| ChatGrant::Id(ChatId(id));
        for (list, params, denied) in [
            (vec![kind("channel")], format!(r#"{{"chat_id":{SUPER}}}"#), None),
            (vec![kind("supergroup")], format!(r#"{{"chat_id":{SUPER}}}"#), Some(SUPER.to_string())),
            (vec![kind("@news")], format!(r#"{{"chat_id":{SUPER}}}"#), None),
            (vec![id(-5)], format!(r#"{{"chat_id":{}}}"#, SUPER - 1), None),
            (vec![id(SUPER - 1)], r#"{"chat_id":-5}"#.to_owned(), None),
            (vec![kind("private")], r#"{"chat_id":7,"from_chat_id":-9}"#.to_owned(), Some("-9".to_owned())),
            (vec![kind("private")], r#"{"chat_id":"@shop"}"#.to_owned(), Some("\"@shop\"".to_owned())),
            (vec![], r#"{"callback_query_id":"1"}"#.to_owned(), None),
        ] {
            let chats = chats_of("sendMessage", &params);
            let answer = check(&PluginName::new("shop"), &list, chats, &mut tx, BOT).unwrap();
            let says = denied.map(|line| format!("add {line} to `grants.chats` of [plugins.shop] in bot.toml"));
            assert_eq!(answer.err(), says, "{list:?} {params}");
        }
    }
}
