//! What the simulated Telegram consists of: users, chats, messages. Values only, as they are saved.
//!
//! Ids are as wide as Telegram's (52 bits and a sign). A message keeps what was sent, not how a `Message`
//! object looks: `render.rs` makes that. Nothing here can fail.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A person, as bots see one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// The id, which is also the id of the private chat with the bot.
    pub id: i64,
    /// `first_name`
    pub first_name: String,
    /// `last_name`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_name: Option<String>,
    /// `username`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// `language_code`; not every client sends one
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language_code: Option<String>,
}

impl User {
    /// A user of whom no more is known than a name.
    #[must_use]
    pub fn new(id: i64, first_name: &str, language_code: Option<&str>) -> Self {
        Self {
            id,
            first_name: first_name.to_owned(),
            last_name: None,
            username: None,
            language_code: language_code.map(str::to_owned),
        }
    }
}

/// The four types of chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChatKind {
    /// One user and the bot.
    Private,
    /// A basic group.
    Group,
    /// A supergroup; with topics it is a forum.
    Supergroup,
    /// A channel: its posts have no sender.
    Channel,
}

impl ChatKind {
    pub(super) fn name(self) -> &'static str {
        match self {
            ChatKind::Private => "private",
            ChatKind::Group => "group",
            ChatKind::Supergroup => "supergroup",
            ChatKind::Channel => "channel",
        }
    }
}

/// A topic of a forum.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Topic {
    /// `message_thread_id`
    pub id: i64,
    /// What the topic is about.
    pub name: String,
    /// Nobody but administrators writes there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub closed: bool,
}

impl Topic {
    /// One that is open.
    #[must_use]
    pub fn new(id: i64, name: &str) -> Self {
        Self { id, name: name.to_owned(), closed: false }
    }
}

/// A chat that the bot is in.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Chat {
    /// `id`: negative except in private chats
    pub id: i64,
    /// `type`
    pub kind: ChatKind,
    /// `title`; empty in private chats
    pub title: String,
    /// `username`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// The people in it, beside the bot.
    pub members: Vec<i64>,
    /// Those of them who administer it.
    #[serde(default)]
    pub admins: Vec<i64>,
    /// Topics; a supergroup that has any is a forum.
    #[serde(default)]
    pub topics: Vec<Topic>,
    /// The user has blocked the bot, or the group has thrown it out.
    #[serde(default)]
    pub blocked: bool,
    /// The supergroup that this group became.
    #[serde(default)]
    pub migrated_to: Option<i64>,
    /// The message pinned last.
    #[serde(default)]
    pub pinned: Option<i64>,
    /// Who may not come back.
    #[serde(default)]
    pub(super) banned: Vec<i64>,
    /// Who is in it and may not do everything.
    #[serde(default)]
    pub(super) restricted: Vec<Restriction>,
    /// Who waits to be let in.
    #[serde(default)]
    pub(super) requests: Vec<i64>,
    /// The button beside the text field, if it is another than that of all chats.
    #[serde(default)]
    pub(super) menu_button: Option<Value>,
    /// The highest `message_id` given so far.
    pub(super) last_message_id: i64,
    /// How many messages the bot has sent here, all in all.
    pub(super) delivered: u64,
    /// The text of the last of them.
    pub(super) last_text: Option<Box<str>>,
    /// Texts of the bot in order of arrival, where load mode was told to keep them.
    #[serde(skip)]
    pub(super) sequence: Vec<Box<str>>,
    /// The newest messages, ids ascending.
    pub(super) messages: VecDeque<Message>,
}

impl Chat {
    /// An empty chat.
    #[must_use]
    pub fn new(id: i64, kind: ChatKind, title: &str, members: &[i64]) -> Self {
        Self {
            id,
            kind,
            title: title.to_owned(),
            username: None,
            members: members.to_vec(),
            admins: Vec::new(),
            topics: Vec::new(),
            blocked: false,
            migrated_to: None,
            pinned: None,
            banned: Vec::new(),
            restricted: Vec::new(),
            requests: Vec::new(),
            menu_button: None,
            last_message_id: 0,
            delivered: 0,
            last_text: None,
            sequence: Vec::new(),
            messages: VecDeque::new(),
        }
    }

    /// What `user` is kept from at this time.
    pub(super) fn restriction(&self, user: i64, now: i64) -> Option<&Restriction> {
        self.restricted.iter().find(|known| known.user == user && (known.until == 0 || known.until > now))
    }

    pub(super) fn next_message_id(&mut self) -> i64 {
        self.last_message_id += 1;
        self.last_message_id
    }

    fn position(&self, id: i64) -> Option<usize> {
        self.messages.binary_search_by_key(&id, |message| message.id).ok()
    }

    pub(super) fn message(&self, id: i64) -> Option<&Message> {
        self.position(id).map(|at| &self.messages[at])
    }

    pub(super) fn message_mut(&mut self, id: i64) -> Option<&mut Message> {
        self.position(id).map(|at| &mut self.messages[at])
    }

    pub(super) fn remove_message(&mut self, id: i64) -> Option<Message> {
        self.position(id).and_then(|at| self.messages.remove(at))
    }

    /// Appends a message; the oldest goes when there are more than `keep`.
    pub(super) fn keep_message(&mut self, message: Message, keep: usize) {
        self.messages.push_back(message);
        while self.messages.len() > keep {
            self.messages.pop_front();
        }
    }
}

/// What somebody may not do in a chat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Restriction {
    pub(super) user: i64,
    /// `until_date`; 0 is for ever.
    pub(super) until: i64,
    /// The permissions that are left, by their names.
    pub(super) may: Vec<String>,
}

/// Who wrote a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sender {
    /// The bot.
    Bot,
    /// A user.
    User(i64),
    /// The channel that it stands in.
    Channel,
}

/// A stretch of text with a meaning. Offset and length count UTF-16 units, as everywhere in the Bot API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entity {
    /// `type`
    #[serde(rename = "type")]
    pub kind: String,
    /// Where it begins.
    pub offset: usize,
    /// How long it is.
    pub length: usize,
    /// Of a `text_link`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Of a `pre`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// Of a `custom_emoji`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_emoji_id: Option<String>,
    /// Of a `text_mention`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<Value>,
}

impl Entity {
    pub(super) fn new(kind: &str, offset: usize, length: usize) -> Self {
        Self { kind: kind.to_owned(), offset, length, url: None, language: None, custom_emoji_id: None, user: None }
    }
}

/// One message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// `message_id`: counts up within a chat
    pub id: i64,
    /// When it was sent (Unix seconds).
    pub date: i64,
    /// When it was edited last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edit_date: Option<i64>,
    /// Who wrote it.
    pub from: Sender,
    /// The topic it stands in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<i64>,
    /// The text, or the caption of what `content` holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Entities of that text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entities: Vec<Entity>,
    /// What else there is, as fields of a `Message` (`photo`, `dice`, `invoice` …). With it, the text is a caption.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Box<Value>>,
    /// The keyboard: inline, reply, removal or forced reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub markup: Option<Box<Value>>,
    /// The message that this one replies to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<i64>,
    /// Further fields of a `Message` (`forward_origin`, say).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra: Option<Box<Value>>,
    /// What the bot gave along and nobody sees: the payload of an invoice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) payload: Option<String>,
    /// Emoji that the bot has reacted with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reactions: Vec<String>,
    /// Emoji that people have reacted with.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) peoples_reactions: BTreeMap<i64, Vec<String>>,
    /// What people have chosen of the poll in it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) votes: BTreeMap<i64, Vec<usize>>,
    /// It came about through the bot's inline mode; if it has a keyboard, by this id the bot may change it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) via_bot: Option<String>,
    /// How an invoice is to be paid: prices, and what the buyer is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) order: Option<Box<Value>>,
}

impl Message {
    pub(super) fn new(from: Sender) -> Self {
        Self {
            id: 0,
            date: 0,
            edit_date: None,
            from,
            thread: None,
            text: None,
            entities: Vec::new(),
            content: None,
            markup: None,
            reply_to: None,
            extra: None,
            payload: None,
            reactions: Vec::new(),
            peoples_reactions: BTreeMap::new(),
            votes: BTreeMap::new(),
            via_bot: None,
            order: None,
        }
    }

    /// The text or caption, empty if there is none.
    #[must_use]
    pub fn text(&self) -> &str {
        self.text.as_deref().unwrap_or_default()
    }

    /// True for what the bot sent.
    #[must_use]
    pub fn is_from_bot(&self) -> bool {
        self.from == Sender::Bot
    }

    /// The rows of inline buttons, as the bot sent them.
    #[must_use]
    pub fn inline_keyboard(&self) -> Option<&Vec<Value>> {
        self.markup.as_deref()?.get("inline_keyboard")?.as_array()
    }

    /// The labels of the inline buttons, row by row.
    #[must_use]
    pub fn buttons(&self) -> Vec<Vec<String>> {
        let label = |button: &Value| button["text"].as_str().unwrap_or_default().to_owned();
        let row = |row: &Value| row.as_array().into_iter().flatten().map(label).collect();
        self.inline_keyboard().into_iter().flatten().map(row).collect()
    }
}
