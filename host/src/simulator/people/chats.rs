//! New people, chats and topics, and other names for them.

use serde_json::{Value, json};

use super::Done;
use super::payments::user_json;
use super::reactions::{chat_json, note};
use crate::simulator::api::member_json;
use crate::simulator::error::Error;
use crate::simulator::model::{Chat, ChatKind, Topic, User};
use crate::simulator::world::World;

/// Somebody new, or another name for somebody who is there.
#[derive(Debug, Clone, serde::Deserialize)]
pub(in crate::simulator) struct Person {
    /// Theirs; without it they are new and get one.
    #[serde(default)]
    pub(in crate::simulator) id: Option<i64>,
    /// `first_name`
    pub(in crate::simulator) first_name: String,
    /// `last_name`
    #[serde(default)]
    pub(in crate::simulator) last_name: Option<String>,
    /// `username`
    #[serde(default)]
    pub(in crate::simulator) username: Option<String>,
    /// `language_code`
    #[serde(default)]
    pub(in crate::simulator) language_code: Option<String>,
}

/// Where the ids of people begin who are made without one.
const FIRST_PERSON: i64 = 2001;

/// Adds or changes a person; answers their id.
pub(in crate::simulator) fn set_person(world: &mut World, person: Person) -> Result<i64, Error> {
    let clean = |text: Option<String>| text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    let first_name = clean(Some(person.first_name)).ok_or(Error::Cannot("a person needs a first name"))?;
    let username = clean(person.username).map(|name| name.trim_start_matches('@').to_owned());
    let is_valid = |name: &String| name.len() >= 4 && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if username.as_ref().is_some_and(|name| !is_valid(name)) {
        return Err(Error::Cannot("a username has at least four letters, digits and underscores"));
    }
    let id = match person.id {
        Some(id) => id,
        None => (FIRST_PERSON..).find(|id| !world.users.contains_key(id)).unwrap_or(FIRST_PERSON),
    };
    let (last_name, language_code) = (clean(person.last_name), clean(person.language_code));
    world.add_user(User { id, first_name, last_name, username, language_code });
    world.emit(&json!({ "event": "chats" }));
    Ok(id)
}

/// A chat that is to be.
#[derive(Debug, Clone, serde::Deserialize)]
pub(in crate::simulator) struct Plan {
    /// Without it, it gets one.
    #[serde(default)]
    pub(in crate::simulator) id: Option<i64>,
    /// `type`
    #[serde(rename = "type")]
    pub(in crate::simulator) kind: ChatKind,
    /// `title`
    #[serde(default)]
    pub(in crate::simulator) title: String,
    /// `username`
    #[serde(default)]
    pub(in crate::simulator) username: Option<String>,
    /// Who is in it.
    pub(in crate::simulator) members: Vec<i64>,
    /// Who makes it and owns it. Without anybody it has always been there, and the bot hears of nothing.
    #[serde(default)]
    pub(in crate::simulator) by: Option<i64>,
    /// The names of its topics: with any it is a forum.
    #[serde(default)]
    pub(in crate::simulator) topics: Vec<String>,
}

/// Makes a chat with the bot in it; answers its id.
pub(in crate::simulator) fn make(world: &mut World, plan: Plan) -> Result<i64, Error> {
    let title = plan.title.trim();
    if title.is_empty() && plan.kind != ChatKind::Private {
        return Err(Error::Cannot("a chat needs a title"));
    }
    if let Some(unknown) = plan.members.iter().find(|id| plan.by.is_some() && !world.users.contains_key(id)) {
        return Err(Error::UnknownUser(*unknown));
    }
    let id = plan.id.unwrap_or_else(|| {
        let from = if plan.kind == ChatKind::Group { -3001 } else { -1_002_000_000_001 };
        (0..).map(|n| from - n).find(|id| !world.chats.contains_key(id)).unwrap_or(from)
    });
    let mut chat = Chat::new(id, plan.kind, title, &plan.members);
    chat.username = plan.username.filter(|name| !name.is_empty());
    chat.admins = plan.by.into_iter().collect();
    for (at, name) in plan.topics.iter().filter(|name| !name.trim().is_empty()).enumerate() {
        // A topic has the id of the message that opened it; 1 is the general one.
        let topic = Topic::new(2 + at as i64, name.trim());
        chat.last_message_id = topic.id;
        chat.topics.push(topic);
    }
    world.chats.insert(id, chat);
    world.emit(&json!({ "event": "chats" }));
    if let Some(by) = plan.by {
        let bot = world.bot.id;
        let new = member_json(world, id, bot);
        let old = json!({ "status": "left", "user": user_json(world, bot) });
        let update = json!({
            "chat": chat_json(world, id), "from": user_json(world, by), "date": world.now(),
            "old_chat_member": old, "new_chat_member": new,
        });
        world.enqueue("my_chat_member", update.to_string().as_bytes());
        if plan.kind == ChatKind::Group {
            note(world, id, by, None, json!({ "group_chat_created": true }))?;
        }
    }
    Ok(id)
}

/// Another title for a chat.
pub(in crate::simulator) fn rename(world: &mut World, chat: i64, by: i64, title: &str) -> Result<Done, Error> {
    let title = title.trim();
    if title.is_empty() || title.chars().count() > 128 {
        return Err(Error::Cannot("a title has 1 to 128 characters"));
    }
    let found = world.chats.get_mut(&chat).filter(|chat| chat.kind != ChatKind::Private);
    let found = found.ok_or(Error::UnknownChat(chat))?;
    title.clone_into(&mut found.title);
    world.emit(&json!({ "event": "chats" }));
    note(world, chat, by, None, json!({ "new_chat_title": title }))
}

/// What is to become of a topic.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::simulator) enum TopicChange {
    /// It has another name.
    Rename(String),
    /// Nobody writes there any more.
    Close,
    /// Or again.
    Reopen,
    /// It goes, and its messages with it.
    Delete,
}

/// Opens a topic in a supergroup; answers its id. With the first one it becomes a forum.
pub(in crate::simulator) fn open_topic(world: &mut World, chat: i64, by: i64, name: &str) -> Result<i64, Error> {
    let name = name.trim();
    if name.is_empty() || name.chars().count() > 128 {
        return Err(Error::Cannot("a topic's name has 1 to 128 characters"));
    }
    let found = world.chats.get_mut(&chat).filter(|chat| chat.kind == ChatKind::Supergroup);
    let found = found.ok_or(Error::Cannot("only supergroups have topics"))?;
    let id = found.last_message_id.max(1) + 1;
    found.last_message_id = id - 1;
    found.topics.push(Topic::new(id, name));
    world.emit(&json!({ "event": "chats" }));
    let what = json!({ "forum_topic_created": { "name": name, "icon_color": ICON_COLOR } });
    note(world, chat, by, Some(id), what)?;
    Ok(id)
}

/// Telegram's first one.
pub(in crate::simulator) const ICON_COLOR: u32 = 0x6f_b9_f0;

/// Changes a topic. False if it is so already.
pub(in crate::simulator) fn change_topic(
    world: &mut World,
    chat_id: i64,
    by: i64,
    id: i64,
    change: &TopicChange,
) -> Result<bool, Error> {
    let chat = world.chats.get_mut(&chat_id).ok_or(Error::UnknownChat(chat_id))?;
    let topic = chat.topics.iter_mut().find(|topic| topic.id == id).ok_or(Error::Cannot("there is no such topic"))?;
    let (what, changed): (Value, bool) = match change {
        TopicChange::Rename(name) => {
            let name = name.trim();
            let changed = topic.name != name && !name.is_empty();
            if changed {
                name.clone_into(&mut topic.name);
            }
            (json!({ "forum_topic_edited": { "name": name } }), changed)
        }
        TopicChange::Close => (json!({ "forum_topic_closed": {} }), !std::mem::replace(&mut topic.closed, true)),
        TopicChange::Reopen => (json!({ "forum_topic_reopened": {} }), std::mem::replace(&mut topic.closed, false)),
        TopicChange::Delete => {
            chat.topics.retain(|topic| topic.id != id);
            chat.messages.retain(|message| message.thread != Some(id));
            world.emit(&json!({ "event": "reset" }));
            return Ok(true);
        }
    };
    if changed {
        world.emit(&json!({ "event": "chats" }));
        note(world, chat_id, by, Some(id), what)?;
    }
    Ok(changed)
}
