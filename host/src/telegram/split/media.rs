//! Captions within `media`: those of an album's items, or the one of an edit. What is too long for one follows in
//! messages, the captions one after the other.

use serde_json::{Map, Value};

use super::parts::{Limits, Markup, is_readable, parts};
use super::{TEXT, entities, may_be_crowded, put, shared};
use crate::telegram::plain;

const METHODS: [&str; 2] = ["sendMediaGroup", "editMessageMedia"];

/// Whether the captions of such a call stand in its `media`.
pub(super) fn is_with_media(method: &str) -> bool {
    METHODS.iter().any(|name| name.eq_ignore_ascii_case(method))
}

/// The call with captions that are short enough, and the messages that follow it; `None` where none is too long, or
/// none can be split.
pub(super) fn split(method: &str, params: &str, or_plain: bool) -> Option<Vec<(String, Map<String, Value>)>> {
    if params.len() <= Limits::CAPTION && !may_be_crowded(params) {
        return None;
    }
    let mut first: Map<String, Value> = serde_json::from_str(params).ok()?;
    // Without a chat there is nowhere for the rest to go.
    first.get("chat_id").filter(|chat| !chat.is_null())?;
    let mut media = match first.get("media")? {
        Value::String(text) => serde_json::from_str(text).ok()?,
        media => media.clone(),
    };
    let items = match &mut media {
        Value::Array(items) => items.iter_mut().filter_map(Value::as_object_mut).collect(),
        Value::Object(item) => vec![item],
        _ => return None,
    };
    let shared = shared(&first);
    let (mut rest, mut has_changed) = (Vec::new(), false);
    for item in items {
        let (Some(text), Some(markup)) =
            (item.get("caption").and_then(Value::as_str), Markup::of(item.get("parse_mode")))
        else {
            continue;
        };
        let given = match markup {
            Markup::None => entities(item.get("caption_entities")),
            _ => Some(Vec::new()),
        };
        let limits = Limits { first: Limits::CAPTION, ..Limits::default() };
        let Some(found) = given.and_then(|given| parts(text, markup, &given, limits)) else {
            if or_plain && text.len() > Limits::CAPTION && !is_readable(text, markup) {
                return split(method, &plain(params)?, false);
            }
            continue;
        };
        has_changed = true;
        let mut found = found.into_iter();
        let parse_mode = item.get("parse_mode").cloned();
        put(item, found.next()?, "caption", "caption_entities");
        for part in found {
            let mut params = shared.clone();
            // Only the item's own says how its caption is marked up.
            params.remove("parse_mode");
            params.extend(parse_mode.clone().map(|mode| ("parse_mode".to_owned(), mode)));
            put(&mut params, part, TEXT.0, TEXT.1);
            rest.push(("sendMessage".to_owned(), params));
        }
    }
    if !has_changed {
        return None;
    }
    first.insert("media".to_owned(), media);
    Some(std::iter::once((method.to_owned(), first)).chain(rest).collect())
}
