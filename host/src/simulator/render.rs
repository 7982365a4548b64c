//! Writes users, chats and messages as the JSON objects that Telegram sends.
//!
//! By hand, into one buffer: this is where a busy server would otherwise spend its time. Nothing here can fail.

use std::collections::BTreeMap;
use std::io::Write as _;

use serde::Serialize;
use serde_json::Value;

use super::model::{Chat, ChatKind, Entity, Message, Sender, User};
use super::world::World;

/// Who will read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum View {
    /// The bot: exactly Telegram's object.
    Bot,
    /// The chat page: with the keyboards that only clients see, and the reactions.
    Page,
}

macro_rules! put {
    ($out:expr, $($arg:tt)*) => { write!($out, $($arg)*).expect("a Vec takes every write") };
}

/// Writes a JSON string.
pub(super) fn string(text: &str, out: &mut Vec<u8>) {
    json(text, out);
}

/// Writes any value.
pub(super) fn json<T: Serialize + ?Sized>(value: &T, out: &mut Vec<u8>) {
    serde_json::to_writer(out, value).expect("a Vec takes every write, and these types always serialize");
}

fn text_field(name: &str, text: Option<&str>, out: &mut Vec<u8>) {
    if let Some(text) = text {
        put!(out, ",\"{name}\":");
        string(text, out);
    }
}

/// Writes `,"name":[…]` unless there are none.
pub(super) fn entities(name: &str, entities: &[Entity], out: &mut Vec<u8>) {
    if !entities.is_empty() {
        put!(out, ",\"{name}\":");
        json(entities, out);
    }
}

/// Writes a `User` of a person.
pub(super) fn user(user: &User, out: &mut Vec<u8>) {
    put!(out, "{{\"id\":{},\"is_bot\":false,\"first_name\":", user.id);
    string(&user.first_name, out);
    text_field("last_name", user.last_name.as_deref(), out);
    text_field("username", user.username.as_deref(), out);
    text_field("language_code", user.language_code.as_deref(), out);
    out.push(b'}');
}

/// Writes the bot's `User`, without the closing brace.
pub(super) fn bot_open(world: &World, out: &mut Vec<u8>) {
    put!(out, "{{\"id\":{},\"is_bot\":true,\"first_name\":", world.bot.id);
    string(&world.bot.name, out);
    text_field("username", Some(&world.bot.username), out);
}

/// Writes the `User` with this id: the bot, a person, or one of whom nothing is known.
pub(super) fn user_id(world: &World, id: i64, out: &mut Vec<u8>) {
    if id == world.bot.id {
        bot_open(world, out);
        out.push(b'}');
    } else if let Some(known) = world.users.get(&id) {
        user(known, out);
    } else {
        put!(out, "{{\"id\":{id},\"is_bot\":false,\"first_name\":\"Somebody\"}}");
    }
}

/// Writes a `Chat`, without the closing brace.
pub(super) fn chat_open(world: &World, chat: &Chat, out: &mut Vec<u8>) {
    put!(out, "{{\"id\":{}", chat.id);
    if chat.kind == ChatKind::Private {
        if let Some(user) = world.users.get(&chat.id) {
            text_field("first_name", Some(&user.first_name), out);
            text_field("last_name", user.last_name.as_deref(), out);
            text_field("username", user.username.as_deref(), out);
        }
    } else {
        text_field("title", Some(&chat.title), out);
        text_field("username", chat.username.as_deref(), out);
    }
    put!(out, ",\"type\":\"{}\"", chat.kind.name());
    if !chat.topics.is_empty() {
        out.extend_from_slice(b",\"is_forum\":true");
    }
}

/// Writes a `Chat`.
pub(super) fn chat(world: &World, chat: &Chat, out: &mut Vec<u8>) {
    chat_open(world, chat, out);
    out.push(b'}');
}

/// Writes a `Message`, with the one that it replies to.
pub(super) fn message(world: &World, chat: &Chat, message: &Message, view: View, out: &mut Vec<u8>) {
    message_open(world, chat, message, view, out);
    if let Some(original) = message.reply_to.and_then(|id| chat.message(id)) {
        out.extend_from_slice(b",\"reply_to_message\":");
        message_open(world, chat, original, view, out);
        out.push(b'}');
    }
    out.push(b'}');
}

fn message_open(world: &World, chat: &Chat, message: &Message, view: View, out: &mut Vec<u8>) {
    put!(out, "{{\"message_id\":{}", message.id);
    match message.from {
        Sender::Bot if chat.kind != ChatKind::Channel => {
            out.extend_from_slice(b",\"from\":");
            user_id(world, world.bot.id, out);
        }
        Sender::User(id) => {
            out.extend_from_slice(b",\"from\":");
            user_id(world, id, out);
        }
        Sender::Bot | Sender::Channel => {
            out.extend_from_slice(b",\"sender_chat\":");
            self::chat(world, chat, out);
        }
    }
    out.extend_from_slice(b",\"chat\":");
    self::chat(world, chat, out);
    put!(out, ",\"date\":{}", message.date);
    if let Some(date) = message.edit_date {
        put!(out, ",\"edit_date\":{date}");
    }
    if let Some(thread) = message.thread {
        put!(out, ",\"message_thread_id\":{thread},\"is_topic_message\":true");
    }
    if message.via_bot.is_some() {
        out.extend_from_slice(b",\"via_bot\":");
        user_id(world, world.bot.id, out);
    }
    fields(message.extra.as_deref(), out);
    fields(message.content.as_deref(), out);
    let (text, marks) = if message.content.is_some() { ("caption", "caption_entities") } else { ("text", "entities") };
    text_field(text, message.text.as_deref(), out);
    entities(marks, &message.entities, out);
    if let Some(markup) = &message.markup {
        let name = if markup.get("inline_keyboard").is_some() { "reply_markup" } else { "keyboard" };
        if name == "reply_markup" || view == View::Page {
            put!(out, ",\"{name}\":");
            json(markup, out);
        }
    }
    if view == View::Page {
        page_fields(world, message, out);
    }
}

/// What clients know and bots do not.
fn page_fields(world: &World, message: &Message, out: &mut Vec<u8>) {
    put!(out, ",\"from_bot\":{}", message.is_from_bot());
    let bots = (!message.reactions.is_empty()).then_some((&world.bot.id, &message.reactions));
    let mut reactions: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
    for (user, emoji) in
        message.peoples_reactions.iter().chain(bots).flat_map(|(u, all)| all.iter().map(move |e| (u, e)))
    {
        reactions.entry(emoji).or_default().push(*user);
    }
    if !reactions.is_empty() {
        out.extend_from_slice(b",\"reactions\":");
        json(&reactions, out);
    }
    if !message.votes.is_empty() {
        out.extend_from_slice(b",\"votes\":");
        json(&message.votes, out);
    }
    if let Some(order) = &message.order {
        out.extend_from_slice(b",\"order\":");
        json(order, out);
    }
}

/// Writes the fields of an object into the object that is open.
fn fields(object: Option<&Value>, out: &mut Vec<u8>) {
    for (name, value) in object.and_then(Value::as_object).into_iter().flatten() {
        out.push(b',');
        string(name, out);
        out.push(b':');
        json(value, out);
    }
}
