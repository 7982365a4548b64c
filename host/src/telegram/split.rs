//! Makes several calls of one whose text is longer than Telegram takes; pure.
//!
//! - A text is cut where a reader would pause: at a paragraph, a line, a sentence, a word, and only then within one;
//!   never within a grapheme, and within a link or a short mark only where nothing else is left.
//! - What is marked up at a cut is closed there and opened again behind it; lists of entities are cut and shifted.
//! - The parts, one after another, are the text. Parts that would show nothing are left out, since Telegram refuses
//!   them.
//! - No part has more entities than Telegram takes note of.
//! - What can't be read (marks that don't match, say) is left whole: Telegram's refusal says best what is wrong with it.

mod cut;
mod html;
mod markdown;
mod media;
mod parsed;
mod parts;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

pub(super) use html::{reference, tag_length};
pub(super) use parts::units;
pub(crate) use parts::{Limits, Markup, Part, parts};
use parts::{MOST_ENTITIES, is_readable};

/// Parameters that the messages after the first share with it: where they go, and how.
const SHARED: [&str; 9] = [
    "chat_id",
    "message_thread_id",
    "direct_messages_topic_id",
    "business_connection_id",
    "disable_notification",
    "protect_content",
    "allow_paid_broadcast",
    "parse_mode",
    "link_preview_options",
];
const TEXT: (&str, &str, usize) = ("text", "entities", Limits::TEXT);
const CAPTION: (&str, &str, usize) = ("caption", "caption_entities", Limits::CAPTION);

/// Name of the text, name of its entities, and limit, for methods whose text can go on in further messages.
fn text_of(method: &str) -> Option<(&'static str, &'static str, usize)> {
    const TEXTS: [&str; 2] = ["sendMessage", "editMessageText"];
    const CAPTIONS: [&str; 9] = [
        "sendPhoto",
        "sendVideo",
        "sendAnimation",
        "sendDocument",
        "sendAudio",
        "sendVoice",
        "sendPaidMedia",
        "copyMessage",
        "editMessageCaption",
    ];
    let is_in = |names: &[&str]| names.iter().any(|name| name.eq_ignore_ascii_case(method));
    if is_in(&TEXTS) {
        Some(TEXT)
    } else if is_in(&CAPTIONS) {
        Some(CAPTION)
    } else {
        None
    }
}

/// The calls that take the place of one with too long a text or caption, in order: method and parameters. `None` where
/// it is not too long, and where it can't be split.
///
/// What the message answers to goes with the first part, its keyboard with the last. `or_plain`: markup that can't be
/// read is taken away rather than left for Telegram to refuse.
#[must_use]
pub fn split(method: &str, params: &str, or_plain: bool) -> Option<Vec<(String, String)>> {
    if media::is_with_media(method) {
        return media::split(method, params, or_plain).map(finished);
    }
    let (text_name, entities_name, limit) = text_of(method)?;
    if params.len() <= limit && !may_be_crowded(params) {
        // A text has at least as many bytes as units: nearly every call ends here, unread.
        return None;
    }
    let mut first: Map<String, Value> = serde_json::from_str(params).ok()?;
    // Without a chat there is nowhere for the rest to go: a message of inline mode.
    first.get("chat_id").filter(|chat| !chat.is_null())?;
    let text = first.get(text_name)?.as_str()?;
    let markup = Markup::of(first.get("parse_mode"))?;
    let entities = match markup {
        Markup::None => entities(first.get(entities_name))?,
        _ => Vec::new(),
    };
    let limits = Limits { first: limit, ..Limits::default() };
    let Some(parts) = parts(text, markup, &entities, limits) else {
        let stripped = Some(params).filter(|_| or_plain && !is_readable(text, markup)).and_then(super::plain)?;
        return split(method, &stripped, false);
    };
    let mut parts = parts.into_iter();

    let rest = shared(&first);
    put(&mut first, parts.next()?, text_name, entities_name);
    let mut calls = vec![(method.to_owned(), first)];
    for part in parts {
        let mut params = rest.clone();
        put(&mut params, part, TEXT.0, TEXT.1);
        calls.push(("sendMessage".to_owned(), params));
    }
    Some(finished(calls))
}

/// The parameters of a call that the messages after it share with it.
fn shared(first: &Map<String, Value>) -> Map<String, Value> {
    let shared = SHARED.iter().filter_map(|name| Some(((*name).to_owned(), first.get(*name)?.clone())));
    shared.collect()
}

/// True if there may be more entities than Telegram takes; cheap, since it is asked of every call.
fn may_be_crowded(params: &str) -> bool {
    // Neither marks nor entities can be shorter.
    let is_mark = |byte: &u8| matches!(byte, b'<' | b'*' | b'_' | b'~' | b'|' | b'`' | b'[' | b'>');
    params.len() > 2 * MOST_ENTITIES
        && (params.bytes().filter(|byte| is_mark(byte)).count() > MOST_ENTITIES
            || params.matches("offset").count() > MOST_ENTITIES)
}

/// The keyboard goes with the last.
fn finished(mut calls: Vec<(String, Map<String, Value>)>) -> Vec<(String, String)> {
    if calls.len() > 1
        && let Some(keyboard) = calls.first_mut().and_then(|(_, first)| first.remove("reply_markup"))
        && let Some((_, last)) = calls.last_mut()
    {
        last.insert("reply_markup".to_owned(), keyboard);
    }
    calls.into_iter().map(|(method, params)| (method, Value::Object(params).to_string())).collect()
}

fn put(params: &mut Map<String, Value>, part: Part, text_name: &str, entities_name: &str) {
    params.insert(text_name.to_owned(), part.text.into());
    params.remove(entities_name);
    if !part.entities.is_empty() {
        params.insert(entities_name.to_owned(), part.entities.into());
    }
}

/// A list, or the JSON of one as text; `None` if it is neither.
fn entities(value: Option<&Value>) -> Option<Vec<Value>> {
    match value {
        None | Some(Value::Null) => Some(Vec::new()),
        Some(Value::Array(list)) => Some(list.clone()),
        Some(Value::String(text)) if text.trim().is_empty() => Some(Vec::new()),
        Some(Value::String(text)) => serde_json::from_str(text).ok(),
        Some(_) => None,
    }
}
