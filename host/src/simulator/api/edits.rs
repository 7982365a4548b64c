//! Changing what was sent: edit, delete, pin, react.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::messages::{caption as read_caption, markup as read_markup, text as read_text};
use super::{Answer, ApiError, done, list, target};
use crate::simulator::model::{Message, Sender};
use crate::simulator::params::{Params, int_of};
use crate::simulator::people::{polls, reactions};
use crate::simulator::render::{self, View};
use crate::simulator::world::World;

const NOT_MODIFIED: &str = "message is not modified: specified new message content and reply markup are exactly the \
                            same as a current content and reply markup of the message";

pub(super) fn text(world: &mut World, params: &Params, out: &mut Vec<u8>) -> Answer {
    let formatted = read_text(params)?;
    edit(world, params, out, |message| {
        if message.content.is_some() {
            return Err(ApiError::bad_request("there is no text in the message to edit"));
        }
        message.text = Some(formatted.text);
        message.entities = formatted.entities;
        Ok(())
    })
}

fn set_caption(message: &mut Message, params: &Params) -> Result<(), ApiError> {
    let formatted = read_caption(params)?;
    if message.content.is_none() {
        return Err(ApiError::bad_request("there is no caption in the message to edit"));
    }
    message.text = Some(formatted.text).filter(|text| !text.is_empty());
    message.entities = formatted.entities;
    Ok(())
}

pub(super) fn caption(world: &mut World, params: &Params, out: &mut Vec<u8>) -> Answer {
    edit(world, params, out, |message| set_caption(message, params))
}

pub(super) fn media(world: &mut World, params: &Params, out: &mut Vec<u8>) -> Answer {
    let new = super::media::replacement(world, params)?;
    edit(world, params, out, |message| {
        (message.content, message.text, message.entities) = (new.content, new.text, new.entities);
        Ok(())
    })
}

pub(super) fn markup(world: &mut World, params: &Params, out: &mut Vec<u8>) -> Answer {
    edit(world, params, out, |_| Ok(()))
}

/// Applies a change and the new keyboard (none given: none left) to a message of the bot.
fn edit(
    world: &mut World,
    params: &Params,
    out: &mut Vec<u8>,
    change: impl FnOnce(&mut Message) -> Result<(), ApiError>,
) -> Answer {
    let new_markup = read_markup(params)?.map(Box::new);
    let inline = params.text("inline_message_id").filter(|id| !id.is_empty()).map(Cow::into_owned);
    let (chat, id) = match &inline {
        Some(wanted) => find_inline(world, wanted)?,
        None => (target(world, params)?, message_id(params)?),
    };
    let mut edited = match world.chats[&chat].message(id) {
        Some(message) => message.clone(),
        None if world.load.is_some() && id <= world.chats[&chat].last_message_id => unkept(world, id),
        None => return Err(ApiError::bad_request("message to edit not found")),
    };
    if edited.from != Sender::Bot && inline.is_none() {
        return Err(ApiError::bad_request("message can't be edited"));
    }
    let before = edited.clone();
    change(&mut edited)?;
    edited.markup = new_markup;
    if edited == before {
        return Err(ApiError::bad_request(NOT_MODIFIED));
    }
    edited.edit_date = Some(world.now());
    match inline {
        Some(_) => done(out)?,
        None => render::message(world, &world.chats[&chat], &edited, View::Bot, out),
    }
    world.emit_message("edit", chat, &edited);
    let chat = world.chats.get_mut(&chat).expect("looked up above");
    if let Some(message) = chat.message_mut(id) {
        *message = edited;
    }
    world.signals.activity.notify_waiters();
    Ok(())
}

/// The message that came about through the bot's inline mode.
fn find_inline(world: &World, wanted: &str) -> Result<(i64, i64), ApiError> {
    let is = |message: &&Message| message.via_bot.as_deref() == Some(wanted) && message.markup.is_some();
    let found = world.chats.values().find_map(|chat| Some((chat.id, chat.messages.iter().find(is)?.id)));
    found.ok_or_else(|| ApiError::bad_request("MESSAGE_ID_INVALID"))
}

pub(super) fn stop_poll(world: &mut World, params: &Params, out: &mut Vec<u8>) -> Answer {
    polls::close_due(world);
    let (chat, id) = (target(world, params)?, message_id(params)?);
    let new_markup = read_markup(params)?.map(Box::new);
    let chat_mut = world.chats.get_mut(&chat).expect("looked up above");
    let message = chat_mut.message_mut(id).filter(|message| message.is_from_bot());
    let message = message.ok_or_else(|| ApiError::bad_request("message with poll to stop not found"))?;
    let poll = polls::poll_of(message).ok_or_else(|| ApiError::bad_request("message with poll to stop not found"))?;
    if poll["is_closed"] == json!(true) {
        return Err(ApiError::bad_request("poll has already been closed"));
    }
    message.markup = new_markup;
    let poll = polls::close(world, chat, id).unwrap_or_default();
    render::json(&poll, out);
    Ok(())
}

/// A message that load mode has not kept.
fn unkept(world: &World, id: i64) -> Message {
    Message { id, date: world.now(), ..Message::new(Sender::Bot) }
}

fn message_id(params: &Params) -> Result<i64, ApiError> {
    let id = params.int("message_id").filter(|&id| id > 0);
    id.ok_or_else(|| ApiError::bad_request("message identifier is not specified"))
}

pub(super) fn delete(world: &mut World, params: &Params, out: &mut Vec<u8>) -> Answer {
    let chat = target(world, params)?;
    let id = message_id(params)?;
    if !remove(world, chat, id, None) && world.load.is_none() {
        return Err(ApiError::bad_request("message to delete not found"));
    }
    done(out)
}

pub(super) fn delete_many(world: &mut World, params: &Params, out: &mut Vec<u8>) -> Answer {
    let chat = target(world, params)?;
    let ids = list(params, "message_ids")?.unwrap_or_default();
    if ids.is_empty() || ids.len() > 100 {
        return Err(ApiError::bad_request("message identifiers are not specified"));
    }
    for id in ids.iter().filter_map(int_of) {
        remove(world, chat, id, None);
    }
    done(out)
}

/// Removes a message for good: for the bot, or for the user who is named.
pub(in crate::simulator) fn remove(world: &mut World, chat: i64, id: i64, by: Option<i64>) -> bool {
    let removed = world.chats.get_mut(&chat).and_then(|chat| chat.remove_message(id)).is_some();
    if removed {
        world.emit(&json!({ "event": "delete", "chat": chat, "message_id": id, "by": by }));
        world.signals.activity.notify_waiters();
    }
    removed
}

pub(super) fn pin(world: &mut World, params: &Params, out: &mut Vec<u8>) -> Answer {
    let chat = target(world, params)?;
    let id = message_id(params)?;
    set_pinned(world, chat, id, Some(id), "message to pin not found")?;
    done(out)
}

pub(super) fn unpin(world: &mut World, params: &Params, out: &mut Vec<u8>) -> Answer {
    let chat = target(world, params)?;
    if let Some(id) = params.int("message_id").or(world.chats[&chat].pinned) {
        set_pinned(world, chat, id, None, "message to unpin not found")?;
    }
    done(out)
}

fn set_pinned(world: &mut World, chat_id: i64, id: i64, pinned: Option<i64>, missing: &str) -> Result<(), ApiError> {
    let chat = world.chats.get_mut(&chat_id).expect("the caller looked it up");
    if chat.message(id).is_none() {
        return Err(ApiError::bad_request(missing));
    }
    chat.pinned = pinned;
    world.emit(&json!({ "event": "pin", "chat": chat_id, "message_id": pinned }));
    Ok(())
}

pub(super) fn react(world: &mut World, params: &Params, out: &mut Vec<u8>) -> Answer {
    let chat_id = target(world, params)?;
    let id = message_id(params)?;
    let emoji = |reaction: &Value| reaction["emoji"].as_str().map(str::to_owned);
    let reactions: Vec<String> = list(params, "reaction")?.unwrap_or_default().iter().filter_map(emoji).collect();
    if reactions.iter().any(|emoji| !reactions::EMOJI.contains(&emoji.trim_end_matches('\u{fe0f}'))) {
        return Err(ApiError::bad_request("REACTION_INVALID"));
    }
    if reactions.len() > 1 {
        return Err(ApiError::bad_request("REACTIONS_TOO_MANY"));
    }
    let chat = world.chats.get_mut(&chat_id).expect("looked up above");
    let Some(message) = chat.message_mut(id) else {
        return Err(ApiError::bad_request("message to react not found"));
    };
    message.reactions = reactions;
    let message = message.clone();
    world.emit_message("edit", chat_id, &message);
    done(out)
}
