//! What updates show of their chats, and what refusals do.
//!
//! Nearly every update shows what the one before it has shown. So the chat's object is not read but hashed, and only
//! where the hash is new are the object and the chat's row looked at: once for a chat and process, once a day, and when
//! something has changed.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::PoisonError;

use serde::Deserialize;

use super::Chats;
use crate::clock::unix_millis;
use crate::domain::{ChatId, Lane, UpdateView};
use crate::store::rows::chat::{self, ChatRow};
use crate::store::{self, Commit, Op, Read, Tx};

const DAY: u64 = 24 * 3600 * 1000;
/// Telegram's clock, whole seconds at that, and ours may differ by this much.
const CLOCKS_DIFFER: u64 = 60_000;
/// Chats of which a hash is held, twice over.
const MOST: usize = 50_000;
/// Bytes of a title that are kept.
const TITLE: usize = 512;

/// Hashes of what was seen, of the chats seen last.
#[derive(Default)]
pub(super) struct Seen {
    young: HashMap<ChatId, u64>,
    old: HashMap<ChatId, u64>,
}

impl Seen {
    fn is(&self, chat: ChatId, hash: u64) -> bool {
        self.young.get(&chat).or_else(|| self.old.get(&chat)) == Some(&hash)
    }

    fn insert(&mut self, chat: ChatId, hash: u64) {
        if self.young.len() >= MOST {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(chat, hash);
    }

    fn remove(&mut self, chat: ChatId) {
        self.young.remove(&chat);
        self.old.remove(&chat);
    }
}

/// A chat as updates show it.
#[derive(Deserialize, Default)]
struct Shown<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    title: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    first_name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    last_name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    username: Option<Cow<'a, str>>,
}

impl Shown<'_> {
    fn name(&self) -> String {
        let mut name = match (&self.title, &self.first_name, &self.last_name) {
            (Some(title), ..) => title.to_string(),
            (None, Some(first), Some(last)) => format!("{first} {last}"),
            (None, first, last) => first.as_ref().or(last.as_ref()).map(ToString::to_string).unwrap_or_default(),
        };
        name.truncate(name.floor_char_boundary(TITLE));
        name
    }
}

/// What tells whether the bot is in the chat.
#[derive(Deserialize, Default)]
struct Presence {
    #[serde(default)]
    date: u64,
    #[serde(default)]
    new_chat_member: Option<Member>,
    #[serde(default)]
    left_chat_member: Option<Person>,
}

#[derive(Deserialize)]
struct Member {
    #[serde(default)]
    status: String,
    #[serde(default)]
    is_member: Option<bool>,
}

#[derive(Deserialize)]
struct Person {
    id: i64,
}

/// Kinds whose chat is one that the bot is in, or was. Chats of business accounts, and those of people who vote or ask
/// from elsewhere, are not the bot's to write to.
fn is_bots_own(kind: &str) -> bool {
    matches!(
        kind,
        "message"
            | "edited_message"
            | "channel_post"
            | "edited_channel_post"
            | "callback_query"
            | "my_chat_member"
            | "chat_member"
            | "message_reaction"
            | "message_reaction_count"
            | "chat_join_request"
            | "chat_boost"
            | "removed_chat_boost"
    )
}

impl Chats {
    /// Writes down what an update shows of its chat, as a part of what the update brings about. Costs next to nothing
    /// where that is nothing new.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn notice(&self, view: &UpdateView<'_>, tx: &mut Tx, now: u64) -> Result<(), store::Error> {
        let (Some(chat), Some(object)) = (view.chat, view.chat_object) else { return Ok(()) };
        if !is_bots_own(&view.kind) {
            return Ok(());
        }
        let tells_presence = view.kind == "my_chat_member";
        let hash = hash(object, now / DAY);
        if tells_presence || view.kind == "chat_member" {
            self.forget_members(Lane::Chat(chat));
        }
        // Titles, pictures and pinned messages change by messages without a text.
        if tells_presence || view.text.is_none() {
            self.forget_answer(chat);
        }
        if !tells_presence && self.seen().is(chat, hash) {
            return Ok(());
        }
        let key = chat::key(self.shared.bot, chat);
        let before = tx.peek(&key)?.and_then(|row| ChatRow::decode(&row).ok());
        let row = self.shown(view, object, before.as_ref(), now);
        if before.as_ref() != Some(&row) {
            // Read for the commit: a refusal may say something else of the chat meanwhile.
            tx.get(&key)?;
            tx.put(key, row.encode());
            self.forget_answer(chat);
        } else if row.is_reachable() {
            // Those that are not are looked at each time: any message may be a sign of life.
            self.seen().insert(chat, hash);
        }
        Ok(())
    }

    fn shown(&self, view: &UpdateView<'_>, object: &str, before: Option<&ChatRow>, now: u64) -> ChatRow {
        let shown: Shown<'_> = serde_json::from_str(object).unwrap_or_default();
        let is_public = shown.kind == "supergroup" || shown.kind == "channel";
        if let (Some(username), Some(chat), true) = (&shown.username, view.chat, is_public) {
            self.learn_name(username, chat);
        }
        let mut row = before.cloned().unwrap_or_default();
        row.title = shown.name();
        row.kind = shown.kind.into_owned();
        row.username = shown.username.map(Cow::into_owned);
        if row.seen.saturating_add(DAY) <= now {
            row.seen = now;
        }
        if let Some(gone) = self.presence(view, &row) {
            if gone != row.gone {
                row.gone_since = now;
            }
            row.gone = gone;
        }
        row
    }

    /// Why the chat can't be reached, `Some(None)` if it can; `None` where the update does not tell.
    fn presence(&self, view: &UpdateView<'_>, row: &ChatRow) -> Option<Option<String>> {
        let may_tell = view.kind == "my_chat_member"
            || (row.gone.is_some() && matches!(&*view.kind, "message" | "channel_post") && view.moved.is_none());
        if !may_tell {
            return None;
        }
        let presence: Presence = serde_json::from_str(view.content).unwrap_or_default();
        if presence.date.saturating_mul(1000).saturating_add(CLOCKS_DIFFER) < row.gone_since {
            // It has waited since before that.
            return None;
        }
        let Some(member) = presence.new_chat_member.filter(|_| view.kind == "my_chat_member") else {
            let is_farewell = presence.left_chat_member.is_some_and(|left| left.id == self.shared.bot.0);
            return (!is_farewell && view.kind != "my_chat_member").then_some(None);
        };
        let is_private = row.kind == "private";
        let why = match (&*member.status, member.is_member) {
            ("kicked", _) if is_private => "the user has blocked the bot",
            ("kicked", _) => "the bot was removed from the chat",
            ("left", _) | ("restricted", Some(false)) => "the bot is not in the chat",
            _ => return Some(None),
        };
        Some(Some(why.to_owned()))
    }

    /// Telegram has refused a call because of the chat itself.
    pub fn shut_out(&self, chat: ChatId, code: u16, why: &str) {
        let key = chat::key(self.shared.bot, chat);
        // The store that can't be read is about to stop the host.
        let Ok(seen) = self.shared.store.get(&key) else { return };
        let before = seen.as_ref().and_then(|row| ChatRow::decode(row).ok());
        let mut row = match before {
            Some(row) if row.gone.is_some() => return,
            Some(row) => row,
            // Whoever is forbidden to write to a chat has met it. One that is not found may never have been there.
            None if code == 403 => {
                let kind = if chat.0 > 0 { "private" } else { "" };
                ChatRow { kind: kind.to_owned(), seen: unix_millis(), ..ChatRow::default() }
            }
            None => return,
        };
        row.gone = Some(why.to_owned());
        row.gone_since = unix_millis();
        tracing::info!(chat_id = chat.0, reason = why, "a chat can't be reached any more");
        let chats = self.clone();
        self.shared.store.submit(Commit {
            // If an update has shown something else meanwhile, the next refusal says it again.
            reads: vec![Read::Value { key: key.clone(), seen }],
            ops: vec![Op::Put { key, value: row.encode() }],
            on_durable: Some(Box::new(move |_| chats.seen().remove(chat))),
        });
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.shared.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn hash(object: &str, day: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    (object, day).hash(&mut hasher);
    hasher.finish()
}
