//! What people do: write, edit, press buttons, block, and more in the modules below. Each makes the update that Telegram
//! would.

pub(super) mod chats;
pub(super) mod inline;
pub(super) mod media;
pub(super) mod members;
pub(super) mod payments;
pub(super) mod polls;
pub(super) mod reactions;

use serde_json::{Value, json};

use super::error::Error;
use super::model::{Chat, ChatKind, Message, Sender, User};
use super::queries::Query;
use super::world::{Enqueued, World};
use super::{entities, render};

/// A message that somebody writes.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Say {
    /// Where.
    pub chat: i64,
    /// Who; ignored in channels.
    #[serde(default)]
    pub user: i64,
    /// What.
    pub text: String,
    /// In which topic.
    #[serde(default)]
    pub thread: Option<i64>,
    /// In reply to which message.
    #[serde(default)]
    pub reply_to: Option<i64>,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Done {
    /// The new update. `None` if the bot does not want this kind of update (`allowed_updates`).
    pub update_id: Option<i64>,
    /// The message written or changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<i64>,
    /// The id of the query, when a button was pressed or something asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query_id: Option<String>,
}

impl Done {
    pub(super) fn new(enqueued: Enqueued) -> Result<Self, Error> {
        let update_id = match enqueued {
            Enqueued::Id(id) => Some(id),
            Enqueued::Unwanted => None,
            Enqueued::QueueFull => return Err(Error::QueueFull),
        };
        Ok(Self { update_id, message_id: None, query_id: None })
    }

    /// The update's id, if the bot wants it.
    pub fn wanted(&self) -> Result<i64, Error> {
        self.update_id.ok_or(Error::Unwanted)
    }
}

fn chat_of(world: &World, chat: i64, user: i64) -> Result<&Chat, Error> {
    let chat = world.chats.get(&chat).ok_or(Error::UnknownChat(chat))?;
    if chat.kind != ChatKind::Channel && !chat.members.contains(&user) {
        return Err(Error::NotAMember { chat: chat.id, user });
    }
    Ok(chat)
}

pub(super) fn say(world: &mut World, say: &Say) -> Result<Done, Error> {
    let text = say.text.trim();
    if text.is_empty() {
        return Err(Error::EmptyText);
    }
    let chat = chat_of(world, say.chat, say.user)?;
    let mut message = Message::new(author(chat, say.user, say.thread)?);
    message.entities = entities::detect(text);
    message.text = Some(text.to_owned());
    message.thread = say.thread.filter(|id| chat.topics.iter().any(|topic| topic.id == *id));
    message.reply_to = say.reply_to.filter(|&id| chat.message(id).is_some());
    post(world, say.chat, say.user, message)
}

/// Checks that somebody may write in a chat, and answers who the message is from.
fn author(chat: &Chat, user: i64, thread: Option<i64>) -> Result<Sender, Error> {
    let is_admin = chat.admins.contains(&user);
    let topic = chat.topics.iter().find(|topic| Some(topic.id) == thread);
    if topic.is_some_and(|topic| topic.closed) && !is_admin {
        return Err(Error::Cannot("the topic is closed; only administrators write there"));
    }
    Ok(if chat.kind == ChatKind::Channel { Sender::Channel } else { Sender::User(user) })
}

/// Puts what a person wrote into the chat, and tells the bot if it is there.
fn post(world: &mut World, chat: i64, user: i64, message: Message) -> Result<Done, Error> {
    let at = world.chats.get(&chat).ok_or(Error::UnknownChat(chat))?;
    let (blocked, kind) = (at.blocked, at.kind);
    if at.restriction(user, world.now()).is_some_and(|left| !left.may.iter().any(|may| may == "can_send_messages")) {
        return Err(Error::Cannot("they may not write here: the bot has restricted them"));
    }
    if blocked && kind == ChatKind::Private {
        // Who writes to the bot wants to hear of it again.
        set_blocked(world, chat, user, false)?;
    } else if blocked {
        // The bot is not in the group any more and hears nothing.
        let id = world.deliver(chat, message, &mut Vec::new());
        return Ok(Done { update_id: None, message_id: Some(id), query_id: None });
    }
    write(world, chat, if kind == ChatKind::Channel { "channel_post" } else { "message" }, message)
}

fn write(world: &mut World, chat: i64, kind: &str, message: Message) -> Result<Done, Error> {
    let mut json = Vec::new();
    let id = world.deliver(chat, message, &mut json);
    let done = Done::new(world.enqueue(kind, &json))?;
    Ok(Done { message_id: Some(id), ..done })
}

pub(super) fn edit(world: &mut World, chat: i64, user: i64, id: i64, text: &str) -> Result<Done, Error> {
    let now = world.now();
    let channel = chat_of(world, chat, user)?.kind == ChatKind::Channel;
    let found = world.chats.get_mut(&chat).and_then(|chat| chat.message_mut(id));
    let message = found.ok_or(Error::UnknownMessage { chat, message: id })?;
    if !channel && message.from != Sender::User(user) {
        return Err(Error::Cannot("people edit only what they have written themselves"));
    }
    if text.trim().is_empty() && message.content.is_none() {
        return Err(Error::EmptyText);
    }
    message.text = Some(text.trim().to_owned());
    message.entities = entities::detect(text.trim());
    message.edit_date = Some(now);
    let message = message.clone();
    world.emit_message("edit", chat, &message);
    let mut json = Vec::new();
    world.write_message(chat, id, &mut json);
    let done = Done::new(world.enqueue(if channel { "edited_channel_post" } else { "edited_message" }, &json))?;
    Ok(Done { message_id: Some(id), ..done })
}

/// Presses the button with this callback data or label; without a message, on the newest one that has it.
pub(super) fn press(world: &mut World, chat: i64, user: i64, id: Option<i64>, button: &str) -> Result<Done, Error> {
    let messages = &chat_of(world, chat, user)?.messages;
    let found = messages
        .iter()
        .rev()
        .filter(|message| id.is_none_or(|id| id == message.id))
        .find_map(|message| find_button(message, button).map(|found| (message.id, found.clone())));
    let (message, found) = found.ok_or_else(|| Error::NoSuchButton { chat, button: button.to_owned() })?;
    if found["pay"] == json!(true) {
        return payments::pay(world, chat, user, message, payments::Order::default());
    }
    let data = found["callback_data"].as_str().ok_or_else(|| Error::NotACallback(button.to_owned()))?;
    press_with(world, chat, user, message, data)
}

/// Presses a button with other callback data than it has, as a client that was made for it can.
pub(super) fn forge(world: &mut World, chat: i64, user: i64, message: i64, data: &str) -> Result<Done, Error> {
    let found = chat_of(world, chat, user)?.messages.iter().any(|found| found.id == message);
    if !found {
        return Err(Error::UnknownMessage { chat, message });
    }
    press_with(world, chat, user, message, data)
}

fn press_with(world: &mut World, chat: i64, user: i64, message: i64, data: &str) -> Result<Done, Error> {
    let query_id = open_query(world, "callback_query", Some(chat), user, Some(message), Value::Null);
    let mut json = format!("{{\"id\":\"{query_id}\",\"from\":").into_bytes();
    render::user_id(world, user, &mut json);
    let inline = world.chats[&chat].message(message).and_then(|message| message.via_bot.clone());
    match inline {
        Some(id) => json.extend_from_slice(format!(",\"inline_message_id\":\"{id}\"").as_bytes()),
        None => {
            json.extend_from_slice(b",\"message\":");
            world.write_message(chat, message, &mut json);
        }
    }
    json.extend_from_slice(format!(",\"chat_instance\":\"{}\",\"data\":", chat.wrapping_mul(7_919)).as_bytes());
    render::string(data, &mut json);
    json.push(b'}');
    let done = Done::new(world.enqueue("callback_query", &json))?;
    Ok(Done { message_id: Some(message), query_id: Some(query_id), ..done })
}

fn find_button<'a>(message: &'a Message, wanted: &str) -> Option<&'a Value> {
    let buttons = || message.inline_keyboard().into_iter().flatten().filter_map(Value::as_array).flatten();
    let by = |field: &str| buttons().find(|button| button[field] == wanted);
    by("callback_data").or_else(|| by("text"))
}

fn open_query(
    world: &mut World,
    kind: &str,
    chat: Option<i64>,
    user: i64,
    message: Option<i64>,
    details: Value,
) -> String {
    let id = world.queries.next_id();
    let query = Query { kind: kind.to_owned(), chat, user, message, at: world.now(), answer: None, details };
    world.queries.open(&id, query);
    id
}

/// Blocks the bot (or throws it out of the group), or lets it in again.
pub(super) fn set_blocked(world: &mut World, chat_id: i64, user: i64, blocked: bool) -> Result<Done, Error> {
    let chat = world.chats.get_mut(&chat_id).ok_or(Error::UnknownChat(chat_id))?;
    let before = std::mem::replace(&mut chat.blocked, blocked);
    let status = |blocked| if blocked { "kicked" } else { "member" };
    let now = world.now();
    let mut json = b"{\"chat\":".to_vec();
    render::chat(world, &world.chats[&chat_id], &mut json);
    json.extend_from_slice(b",\"from\":");
    render::user_id(world, user, &mut json);
    json.extend_from_slice(format!(",\"date\":{now}").as_bytes());
    for (field, blocked) in [("old_chat_member", before), ("new_chat_member", blocked)] {
        json.extend_from_slice(format!(",\"{field}\":{{\"status\":\"{}\",\"user\":", status(blocked)).as_bytes());
        render::user_id(world, world.bot.id, &mut json);
        json.extend_from_slice(if blocked { b",\"until_date\":0}" } else { b"}" });
    }
    json.push(b'}');
    world.emit(&json!({ "event": "chats" }));
    Done::new(world.enqueue("my_chat_member", &json))
}

/// Which of the two words about a group that has become a supergroup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MoveNote {
    /// `migrate_to_chat_id`, in the group.
    To,
    /// `migrate_from_chat_id`, in the supergroup.
    From,
}

/// Makes a supergroup of a group: another id, and a word about it in each, in this order; none of them has to be there.
pub(super) fn upgrade(world: &mut World, group: i64, notes: &[MoveNote]) -> Result<i64, Error> {
    let old = world.chats.get_mut(&group).filter(|chat| chat.kind == ChatKind::Group);
    let old = old.ok_or(Error::UnknownChat(group))?;
    let id = -1_000_000_000_000 - group.abs();
    old.migrated_to = Some(id);
    let (title, members, admins) = (old.title.clone(), old.members.clone(), old.admins.clone());
    let by = Sender::User(members.first().copied().unwrap_or(group.abs()));
    let new = Chat { admins, ..Chat::new(id, ChatKind::Supergroup, &title, &members) };
    world.chats.insert(id, new);
    for note in notes {
        let (chat, note) = match note {
            MoveNote::To => (group, json!({ "migrate_to_chat_id": id })),
            MoveNote::From => (id, json!({ "migrate_from_chat_id": group })),
        };
        let mut message = Message::new(by);
        message.content = Some(Box::new(note));
        write(world, chat, "message", message)?;
    }
    world.emit(&json!({ "event": "chats" }));
    Ok(id)
}

/// Queues any update, as it is. An `update_id` in it is replaced. Chats, users and queries that it names come to
/// exist, so that the bot can answer.
pub(super) fn raw_update(world: &mut World, mut update: Value) -> Result<Done, Error> {
    let object = update.as_object_mut().ok_or(Error::NotAnUpdate)?;
    object.remove("update_id");
    let (kind, event) = object.iter().next().ok_or(Error::NotAnUpdate)?;
    let (kind, event) = (kind.clone(), event.clone());
    let chat = event.get("chat").or_else(|| event.get("message")?.get("chat"));
    if let Some(from) = event.get("from").and_then(known_user) {
        world.users.entry(from.id).or_insert(from);
    }
    if let Some(chat) = chat.and_then(|chat| known_chat(chat, event["from"]["id"].as_i64())) {
        if chat.kind == ChatKind::Private
            && let Some(user) = event.get("chat").and_then(known_user)
        {
            world.users.entry(user.id).or_insert(user);
        }
        world.chats.entry(chat.id).or_insert(chat);
    }
    if kind.ends_with("_query")
        && let Some(id) = event["id"].as_str()
    {
        let chat = event["message"]["chat"]["id"].as_i64();
        let (user, message) = (event["from"]["id"].as_i64().unwrap_or(0), event["message"]["message_id"].as_i64());
        let at = world.now();
        world
            .queries
            .open(id, Query { kind: kind.clone(), chat, user, message, at, answer: None, details: Value::Null });
    }
    // Filtering goes by the first name; what follows it is kept, however odd.
    let json = Value::Object(std::mem::take(object)).to_string();
    let rest = json.strip_prefix('{').and_then(|json| json.strip_prefix(&format!("\"{kind}\":")));
    let rest = rest.and_then(|rest| rest.strip_suffix('}')).ok_or(Error::NotAnUpdate)?;
    Done::new(world.enqueue(&kind, rest.as_bytes()))
}

fn known_user(json: &Value) -> Option<User> {
    let text = |name: &str| json[name].as_str().map(str::to_owned);
    Some(User {
        id: json["id"].as_i64()?,
        first_name: text("first_name")?,
        last_name: text("last_name"),
        username: text("username"),
        language_code: text("language_code"),
    })
}

fn known_chat(json: &Value, from: Option<i64>) -> Option<Chat> {
    let kind = serde_json::from_value(json["type"].clone()).ok()?;
    let members: Vec<i64> = from.into_iter().collect();
    Some(Chat::new(json["id"].as_i64()?, kind, json["title"].as_str().unwrap_or_default(), &members))
}
