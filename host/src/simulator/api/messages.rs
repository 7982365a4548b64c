//! Sending text, and what every way of sending has in common: topic, reply, keyboard, formatting.

use serde_json::{Value, json};

use super::{Answer, ApiError, chat_named, done, target};
use crate::simulator::entities::{self, Formatted};
use crate::simulator::model::{Chat, Entity, Message, Sender};
use crate::simulator::params::Params;
use crate::simulator::people::reactions;
use crate::simulator::world::World;

/// In UTF-16 units, without markup.
const TEXT_LIMIT: usize = 4096;
const CAPTION_LIMIT: usize = 1024;
/// In bytes, with markup.
const SOURCE_LIMIT: usize = 32 << 10;
const CALLBACK_DATA_BYTES: usize = 64;

pub(super) fn send(world: &mut World, params: &Params, out: &mut Vec<u8>) -> Answer {
    let formatted = text(params)?;
    let chat = target(world, params)?;
    let mut message = draft(world, chat, params)?;
    message.text = Some(formatted.text);
    message.entities = formatted.entities;
    world.deliver(chat, message, out);
    Ok(())
}

/// A message of the bot with everything but what it says.
pub(super) fn draft(world: &World, chat: i64, params: &Params) -> Result<Message, ApiError> {
    let chat = &world.chats[&chat];
    let mut message = Message::new(Sender::Bot);
    message.markup = markup(params)?.map(Box::new);
    message.thread = thread(chat, params)?;
    message.reply_to = reply_to(world, chat, params)?;
    Ok(message)
}

fn thread(chat: &Chat, params: &Params) -> Result<Option<i64>, ApiError> {
    match params.int("message_thread_id").filter(|&id| id != 0) {
        Some(id) if chat.topics.iter().any(|topic| topic.id == id) => Ok(Some(id)),
        Some(_) => Err(ApiError::bad_request("message thread not found")),
        None => Ok(None),
    }
}

fn reply_to(world: &World, chat: &Chat, params: &Params) -> Result<Option<i64>, ApiError> {
    let (wanted, optional) = match params.json("reply_parameters") {
        Some(Ok(reply)) => {
            let optional = reply["allow_sending_without_reply"].as_bool().unwrap_or(false);
            (crate::simulator::params::int_of(&reply["message_id"]), optional)
        }
        Some(Err(_)) => return Err(ApiError::bad_request("can't parse reply parameters JSON object")),
        None => (params.int("reply_to_message_id"), params.flag("allow_sending_without_reply")),
    };
    match wanted.filter(|&id| id != 0) {
        // In load mode nothing is kept that could be looked up.
        Some(_) if world.load.is_some() => Ok(None),
        Some(id) if chat.message(id).is_some() => Ok(Some(id)),
        Some(_) if !optional => Err(ApiError::bad_request("message to be replied not found")),
        _ => Ok(None),
    }
}

/// The parameter `text`, formatted and checked.
pub(super) fn text(params: &Params) -> Result<Formatted, ApiError> {
    let formatted = format(params, "text", "entities")?;
    match entities::units(&formatted.text) {
        0 => Err(ApiError::bad_request("message text is empty")),
        1..=TEXT_LIMIT => Ok(formatted),
        _ => Err(ApiError::bad_request("message is too long")),
    }
}

/// The parameter `caption`, formatted and checked; it may be empty.
pub(super) fn caption(params: &Params) -> Result<Formatted, ApiError> {
    let formatted = format(params, "caption", "caption_entities")?;
    if entities::units(&formatted.text) > CAPTION_LIMIT {
        return Err(ApiError::bad_request("message caption is too long"));
    }
    Ok(formatted)
}

fn format(params: &Params, name: &str, entities_name: &str) -> Result<Formatted, ApiError> {
    let text = params.text(name).unwrap_or_default();
    if text.len() > SOURCE_LIMIT {
        return Err(ApiError::bad_request("text is too long"));
    }
    let parse_mode = params.text("parse_mode").unwrap_or_default();
    let given = match params.json(entities_name) {
        Some(Ok(list)) if parse_mode.is_empty() => serde_json::from_value::<Vec<Entity>>(list)
            .map_err(|_| ApiError::bad_request("can't parse entities JSON array"))?,
        Some(Err(_)) => return Err(ApiError::bad_request("can't parse entities JSON array")),
        _ => Vec::new(),
    };
    entities::format(&text, &parse_mode, given).map_err(|what| match what.as_str() {
        "unsupported parse_mode" => ApiError::bad_request(&what),
        _ => ApiError::bad_request(&format!("can't parse entities: {what}")),
    })
}

/// The parameter `reply_markup`, checked; `None` also for an inline keyboard without buttons.
pub(super) fn markup(params: &Params) -> Result<Option<Value>, ApiError> {
    let mut markup = match params.json("reply_markup") {
        None => return Ok(None),
        Some(Ok(markup @ Value::Object(_))) => markup,
        Some(Ok(_)) => return Err(ApiError::bad_request("object expected as reply markup")),
        Some(Err(_)) => return Err(ApiError::bad_request("can't parse reply keyboard markup JSON object")),
    };
    let name = ["inline_keyboard", "keyboard"].into_iter().find(|name| markup.get(name).is_some());
    let Some(name) = name else { return Ok(Some(markup)) };
    let wrong = || ApiError::bad_request(&format!("field \"{name}\" must be of type Array"));
    let rows = markup[name].as_array_mut().ok_or_else(wrong)?;
    for row in &mut *rows {
        for button in row.as_array_mut().ok_or_else(wrong)? {
            if let Value::String(text) = button {
                *button = json!({ "text": text });
            }
            if button["text"].as_str().is_none_or(|text| text.trim().is_empty()) {
                return Err(ApiError::bad_request("can't parse keyboard button: Field \"text\" must be non-empty"));
            }
            if name == "inline_keyboard" {
                check_inline(button)?;
            }
        }
    }
    rows.retain(|row| row.as_array().is_some_and(|row| !row.is_empty()));
    let empty = rows.is_empty();
    Ok((!empty).then_some(markup))
}

fn check_inline(button: &Value) -> Result<(), ApiError> {
    let actions = button.as_object().map_or(0, |fields| fields.keys().filter(|name| *name != "text").count());
    if actions == 0 {
        let what = "can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard";
        return Err(ApiError::bad_request(what));
    }
    if let Some(data) = button.get("callback_data") {
        let fits = data.as_str().is_some_and(|data| (1..=CALLBACK_DATA_BYTES).contains(&data.len()));
        return if fits { Ok(()) } else { Err(ApiError::bad_request("BUTTON_DATA_INVALID")) };
    }
    match button.get("url").map(|url| url.as_str().unwrap_or_default()) {
        Some(url) if !url.contains('.') && !url.contains("://") => Err(ApiError::bad_request("BUTTON_URL_INVALID")),
        _ => Ok(()),
    }
}

pub(super) fn chat_action(world: &mut World, params: &Params, out: &mut Vec<u8>) -> Answer {
    const ACTIONS: [&str; 11] = [
        "typing",
        "upload_photo",
        "record_video",
        "upload_video",
        "record_voice",
        "upload_voice",
        "upload_document",
        "choose_sticker",
        "find_location",
        "record_video_note",
        "upload_video_note",
    ];
    let chat = target(world, params)?;
    let action = params.text("action").unwrap_or_default();
    if !ACTIONS.contains(&action.as_ref()) {
        return Err(ApiError::bad_request("wrong parameter action in request"));
    }
    world.emit(&json!({ "event": "action", "chat": chat, "action": action }));
    done(out)
}

pub(super) fn forward(world: &mut World, params: &Params, out: &mut Vec<u8>) -> Answer {
    let (chat, mut message) = again(world, params, "forward")?;
    let from = chat_named(world, params, "from_chat_id")?.id;
    let origin = match message.extra.as_deref().and_then(|extra| extra.get("forward_origin")) {
        Some(origin) => origin.clone(),
        None => reactions::origin_of(world, from, &message),
    };
    message.extra = Some(Box::new(json!({ "forward_origin": origin })));
    message.from = Sender::Bot;
    world.deliver(chat, message, out);
    Ok(())
}

pub(super) fn copy(world: &mut World, params: &Params, out: &mut Vec<u8>) -> Answer {
    let (chat, mut message) = again(world, params, "copy")?;
    message.from = Sender::Bot;
    message.markup = markup(params)?.map(Box::new);
    if params.text("caption").is_some() && message.content.is_some() {
        let formatted = caption(params)?;
        message.text = Some(formatted.text);
        message.entities = formatted.entities;
    }
    let id = world.deliver(chat, message, &mut Vec::new());
    out.extend_from_slice(format!("{{\"message_id\":{id}}}").as_bytes());
    Ok(())
}

/// Several messages, one by one; those that are not there are left out.
pub(super) fn many(
    world: &mut World,
    params: &Params,
    out: &mut Vec<u8>,
    again: fn(&mut World, &Params, &mut Vec<u8>) -> Answer,
) -> Answer {
    let ids = super::list(params, "message_ids")?.unwrap_or_default();
    if !(1..=100).contains(&ids.len()) {
        return Err(ApiError::bad_request("message identifiers are not specified"));
    }
    let mut sent = Vec::new();
    for id in &ids {
        let mut values = params.values.as_ref().clone();
        values.insert("message_id".to_owned(), id.clone());
        let mut json = Vec::new();
        match again(world, &Params { values: values.into(), uploads: Vec::new() }, &mut json) {
            Ok(()) => {
                let message: Value = serde_json::from_slice(&json).expect("what is written is JSON");
                sent.push(json!({ "message_id": message["message_id"] }));
            }
            Err(error) if error.description.ends_with(" not found") && !error.description.contains("chat") => {}
            Err(error) => return Err(error),
        }
    }
    crate::simulator::render::json(&sent, out);
    Ok(())
}

/// The message that is to be sent again, and where.
fn again(world: &World, params: &Params, verb: &str) -> Result<(i64, Message), ApiError> {
    let chat = target(world, params)?;
    let from = chat_named(world, params, "from_chat_id")?;
    let message = params.int("message_id").and_then(|id| from.message(id));
    let message = message.ok_or_else(|| ApiError::bad_request(&format!("message to {verb} not found")))?;
    let mut message = message.clone();
    message.thread = thread(&world.chats[&chat], params)?;
    message.reply_to = None;
    message.edit_date = None;
    message.reactions.clear();
    message.peoples_reactions.clear();
    message.via_bot = None;
    if verb == "copy" {
        message.extra = None;
    }
    Ok((chat, message))
}
