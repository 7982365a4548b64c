//! Reactions, deletions, pins and forwards: what people do with messages that are there.

use serde_json::{Value, json};

use super::payments::user_json;
use super::{Done, author, chat_of, post, write};
use crate::simulator::error::Error;
use crate::simulator::model::{ChatKind, Message, Sender};
use crate::simulator::render;
use crate::simulator::world::World;

/// The emoji that Telegram knows as reactions.
pub(in crate::simulator) const EMOJI: [&str; 73] = [
    "👍",
    "👎",
    "❤",
    "🔥",
    "🥰",
    "👏",
    "😁",
    "🤔",
    "🤯",
    "😱",
    "🤬",
    "😢",
    "🎉",
    "🤩",
    "🤮",
    "💩",
    "🙏",
    "👌",
    "🕊",
    "🤡",
    "🥱",
    "🥴",
    "😍",
    "🐳",
    "❤‍🔥",
    "🌚",
    "🌭",
    "💯",
    "🤣",
    "⚡",
    "🍌",
    "🏆",
    "💔",
    "🤨",
    "😐",
    "🍓",
    "🍾",
    "💋",
    "🖕",
    "😈",
    "😴",
    "😭",
    "🤓",
    "👻",
    "👨‍💻",
    "👀",
    "🎃",
    "🙈",
    "😇",
    "😨",
    "🤝",
    "✍",
    "🤗",
    "🫡",
    "🎅",
    "🎄",
    "☃",
    "💅",
    "🤪",
    "🗿",
    "🆒",
    "💘",
    "🙉",
    "🦄",
    "😘",
    "💊",
    "🙊",
    "😎",
    "👾",
    "🤷‍♂",
    "🤷",
    "🤷‍♀",
    "😡",
];

/// Sets a person's reactions to a message; the bot hears of it where it has asked to.
pub(in crate::simulator) fn react(
    world: &mut World,
    chat: i64,
    user: i64,
    id: i64,
    emoji: &[String],
) -> Result<Done, Error> {
    chat_of(world, chat, user)?;
    if emoji.iter().any(|emoji| !EMOJI.contains(&emoji.trim_end_matches('\u{fe0f}'))) {
        return Err(Error::Cannot("Telegram has no such reaction"));
    }
    let found = world.chats.get_mut(&chat).and_then(|chat| chat.message_mut(id));
    let message = found.ok_or(Error::UnknownMessage { chat, message: id })?;
    let old = message.peoples_reactions.remove(&user).unwrap_or_default();
    if !emoji.is_empty() {
        message.peoples_reactions.insert(user, emoji.to_vec());
    }
    let message = message.clone();
    world.emit_message("edit", chat, &message);
    let list = |emoji: &[String]| -> Vec<Value> {
        emoji.iter().map(|emoji| json!({ "type": "emoji", "emoji": emoji })).collect()
    };
    let update = json!({
        "chat": chat_json(world, chat), "message_id": id, "user": user_json(world, user), "date": world.now(),
        "old_reaction": list(&old), "new_reaction": list(emoji),
    });
    let done = Done::new(world.enqueue("message_reaction", update.to_string().as_bytes()))?;
    Ok(Done { message_id: Some(id), ..done })
}

/// Deletes a message. No bot is told of that.
pub(in crate::simulator) fn delete(world: &mut World, chat: i64, user: i64, id: i64) -> Result<Done, Error> {
    let place = chat_of(world, chat, user)?;
    let message = place.message(id).ok_or(Error::UnknownMessage { chat, message: id })?;
    let may = place.kind == ChatKind::Private || message.from == Sender::User(user) || place.admins.contains(&user);
    if !may {
        return Err(Error::Cannot("only administrators delete what others have written"));
    }
    crate::simulator::api::remove(world, chat, id, Some(user));
    Ok(Done { update_id: None, message_id: Some(id), query_id: None })
}

/// Pins a message, or unpins it.
pub(in crate::simulator) fn pin(world: &mut World, chat: i64, user: i64, id: i64, pinned: bool) -> Result<Done, Error> {
    let place = chat_of(world, chat, user)?;
    if place.kind != ChatKind::Private && !place.admins.contains(&user) {
        return Err(Error::Cannot("only administrators pin messages"));
    }
    let message = place.message(id).ok_or(Error::UnknownMessage { chat, message: id })?;
    let (by, thread) = (author(place, user, None)?, message.thread);
    let mut json = Vec::new();
    world.write_message(chat, id, &mut json);
    let shown: Value = serde_json::from_slice(&json).expect("what is written is JSON");
    let pinned = pinned.then_some(id);
    world.chats.get_mut(&chat).expect("looked up above").pinned = pinned;
    world.emit(&json!({ "event": "pin", "chat": chat, "message_id": pinned }));
    if pinned.is_none() {
        return Ok(Done { update_id: None, message_id: Some(id), query_id: None });
    }
    let mut note = Message::new(by);
    note.thread = thread;
    note.content = Some(Box::new(json!({ "pinned_message": shown })));
    post(world, chat, user, note)
}

/// Forwards a message to another chat, or the same.
pub(in crate::simulator) fn forward(
    world: &mut World,
    chat: i64,
    user: i64,
    thread: Option<i64>,
    from: (i64, i64),
) -> Result<Done, Error> {
    let source = chat_of(world, from.0, user)?;
    let original = source.message(from.1).ok_or(Error::UnknownMessage { chat: from.0, message: from.1 })?.clone();
    let origin = match original.extra.as_deref().and_then(|extra| extra.get("forward_origin")) {
        Some(origin) => origin.clone(),
        None => origin_of(world, from.0, &original),
    };
    let target = chat_of(world, chat, user)?;
    let mut message = Message::new(author(target, user, thread)?);
    message.thread = thread.filter(|id| target.topics.iter().any(|topic| topic.id == *id));
    (message.text, message.entities, message.content) = (original.text, original.entities, original.content);
    message.extra = Some(Box::new(json!({ "forward_origin": origin })));
    post(world, chat, user, message)
}

/// Where a message came from, as `forward_origin` says it.
pub(in crate::simulator) fn origin_of(world: &World, chat: i64, message: &Message) -> Value {
    let date = message.date;
    match message.from {
        Sender::User(id) => json!({ "type": "user", "date": date, "sender_user": user_json(world, id) }),
        Sender::Bot if world.chats[&chat].kind != ChatKind::Channel => {
            json!({ "type": "user", "date": date, "sender_user": user_json(world, world.bot.id) })
        }
        Sender::Bot | Sender::Channel => {
            json!({ "type": "channel", "date": date, "chat": chat_json(world, chat), "message_id": message.id })
        }
    }
}

pub(in crate::simulator) fn chat_json(world: &World, chat: i64) -> Value {
    let mut json = Vec::new();
    render::chat(world, &world.chats[&chat], &mut json);
    serde_json::from_slice(&json).expect("what is written is JSON")
}

/// A note that stands in a chat: somebody came, the title changed. The bot hears of what others do.
pub(in crate::simulator) fn note(
    world: &mut World,
    chat: i64,
    by: i64,
    thread: Option<i64>,
    what: Value,
) -> Result<Done, Error> {
    let kind = world.chats.get(&chat).ok_or(Error::UnknownChat(chat))?.kind;
    let is_bot = by == world.bot.id;
    let from = match kind {
        ChatKind::Channel => Sender::Channel,
        _ if is_bot => Sender::Bot,
        _ => Sender::User(by),
    };
    let mut message = Message::new(from);
    message.thread = thread;
    message.content = Some(Box::new(what));
    if is_bot {
        let id = world.deliver(chat, message, &mut Vec::new());
        return Ok(Done { update_id: None, message_id: Some(id), query_id: None });
    }
    write(world, chat, if kind == ChatKind::Channel { "channel_post" } else { "message" }, message)
}
