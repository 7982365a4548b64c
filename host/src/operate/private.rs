//! An event to look at, without what people wrote: that is nobody's business unless it is asked for.
//!
//! What may be shown is listed, not what must be hidden: a field that is new to Telegram is hidden.

use serde_json::{Map, Value as Json, json};

use crate::store::rows::inbox::StoredEvent;

/// Texts that say how something is, and nothing of what somebody wrote or is called.
const TELLING: [&str; 13] = [
    "type",
    "chat_type",
    "status",
    "language_code",
    "currency",
    "mime_type",
    "emoji",
    "file_unique_id",
    "media_group_id",
    "inline_message_id",
    "business_connection_id",
    "chat_instance",
    "query_id",
];
/// Numbers in there tell where somebody is or who they are.
const HIDDEN_WHOLE: [&str; 6] = ["location", "live_location", "venue", "contact", "order_info", "passport_data"];

/// The event as JSON.
pub(super) fn show(event: &StoredEvent, rest: &[Vec<u8>], payload: bool) -> Json {
    match event {
        StoredEvent::Update(first) if !rest.is_empty() => {
            let all = std::iter::once(first).chain(rest);
            let items = all.map(|raw| show(&StoredEvent::Update(raw.clone()), &[], payload));
            json!({ "album": items.collect::<Vec<_>>() })
        }
        StoredEvent::Cancel { lane, .. } => json!({ "cancel": lane.to_string() }),
        StoredEvent::Update(raw) => match serde_json::from_slice::<Json>(raw) {
            Ok(update @ Json::Object(_)) if payload => json!({ "update": update }),
            Ok(Json::Object(update)) => json!({ "update": Json::Object(hide_in(update)) }),
            _ => json!({ "unreadable": bytes(raw, payload) }),
        },
        StoredEvent::Timer { plugin, conversation, id, name, payload: stored, due } => json!({ "timer": {
            "plugin": plugin,
            "name": name,
            "id": id,
            "due": due,
            "conversation": conversation,
            "payload": bytes(stored, payload),
        } }),
        StoredEvent::Job { plugin, conversation, id, name, payload: stored, queued, key: _ } => json!({ "job": {
            "plugin": plugin,
            "name": name,
            "id": id,
            "queued": queued,
            "conversation": conversation,
            "payload": bytes(stored, payload),
        } }),
        StoredEvent::Expired { plugin, conversation, state } => json!({ "expired": {
            "plugin": plugin,
            "state": state.name,
            "version": state.version,
            "due": state.expires,
            "conversation": conversation,
            "payload": bytes(&state.bytes, payload),
        } }),
    }
}

fn bytes(bytes: &[u8], payload: bool) -> Json {
    if payload { String::from_utf8_lossy(bytes).into() } else { hidden(bytes.len(), "bytes") }
}

fn hide_in(object: Map<String, Json>) -> Map<String, Json> {
    object
        .into_iter()
        .map(|(key, value)| {
            let value = if HIDDEN_WHOLE.contains(&key.as_str()) { "[hidden]".into() } else { hide(&key, value) };
            (key, value)
        })
        .collect()
}

fn hide(key: &str, value: Json) -> Json {
    match value {
        Json::String(text) if TELLING.contains(&key) => text.into(),
        Json::String(text) => hidden(text.chars().count(), "characters"),
        Json::Array(items) => items.into_iter().map(|item| hide(key, item)).collect(),
        Json::Object(object) => Json::Object(hide_in(object)),
        other => other,
    }
}

fn hidden(length: usize, unit: &str) -> Json {
    format!("[hidden: {length} {unit}]").into()
}
