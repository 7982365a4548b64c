//! Which chats a plugin has to do with: those of the events that it is offered, and those that its calls name.
//!
//! Which chats a call names, [`params`] reads. Every one of them must be granted. Answers to queries and edits of messages
//! sent through inline mode name none: whether a plugin gets as far as that, its kinds of update decide.
//!
//! What can't be told is denied: a plugin that writes an id in an odd way gets no further than one that writes it plainly.

use super::Plugin;
use crate::domain::{BotId, ChatFacts, ChatGrant, ChatId, PluginName, is_listed};
use crate::store::rows::chat::{self, ChatRow};
use crate::store::rows::moved;
use crate::store::{self, Tx};

mod known;
mod params;

pub(super) use params::{Unfit, is_on_disk, named_in};

/// A chat that a call names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Named {
    Number(ChatId),
    /// Without the `@`.
    Name(String),
    /// Something that is neither, as it was written.
    Odd(String),
    /// The account of a person, by the connection that the person has made: as good as all private chats.
    Account,
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
        Named::Account => list.contains(&ChatGrant::Kind("private")),
    };
    failed.map_or(Ok(granted), Err)
}

/// Decides about all chats that a call names; the inner error is for the plugin's author and the operator.
pub(super) fn check(
    plugin: &PluginName,
    list: &[ChatGrant],
    chats: impl IntoIterator<Item = Named>,
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
            Named::Account => "\"private\"".to_owned(),
        };
        return Ok(Err(format!("add {line} to `grants.chats` of [plugins.{plugin}] in bot.toml")));
    }
    Ok(Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;
    use crate::store::rows::moved::MovedRow;

    const BOT: BotId = BotId(42);
    const SUPER: i64 = -1_001_557_912_345;

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
            (vec![kind("private")], r#"{"business_connection_id":"b"}"#.to_owned(), None),
            (vec![id(7)], r#"{"business_connection_id":"b"}"#.to_owned(), Some("\"private\"".to_owned())),
        ] {
            let chats = named_in("sendMessage", &params).unwrap();
            let answer = check(&PluginName::new("shop"), &list, chats, &mut tx, BOT).unwrap();
            let says = denied.map(|line| format!("add {line} to `grants.chats` of [plugins.shop] in bot.toml"));
            assert_eq!(answer.err(), says, "{list:?} {params}");
        }
    }
}
