//! Results of inline queries: whether Telegram would take them, and what message each becomes.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{ApiError, media, messages};
use crate::simulator::model::Message;
use crate::simulator::params::Params;
use crate::simulator::world::World;

/// Checks them all, by making each into a message.
pub(super) fn check(world: &mut World, results: &[Value]) -> Result<(), ApiError> {
    let mut ids = HashSet::new();
    for result in results {
        let id = result["id"].as_str().unwrap_or_default();
        if !(1..=64).contains(&id.len()) {
            return Err(ApiError::bad_request("RESULT_ID_INVALID"));
        }
        if !ids.insert(id) {
            return Err(ApiError::bad_request("RESULT_ID_DUPLICATE"));
        }
        if result["type"] == "article" && result["title"].as_str().is_none_or(str::is_empty) {
            return Err(ApiError::bad_request("can't parse inline query result: Can't find field \"title\""));
        }
        fill(world, &mut Message::new(crate::simulator::model::Sender::Bot), result)?;
    }
    Ok(())
}

/// Makes a message of a result.
pub(in crate::simulator) fn fill(world: &mut World, message: &mut Message, result: &Value) -> Result<(), ApiError> {
    let own = result.as_object().cloned().unwrap_or_default();
    let params = params_of(&own);
    message.markup = messages::markup(&params)?.map(Box::new);
    if let Some(content) = own.get("input_message_content").and_then(Value::as_object) {
        return with_content(message, content);
    }
    let kind = match result["type"].as_str().unwrap_or_default() {
        "gif" | "mpeg4_gif" => "animation",
        kind @ ("photo" | "video" | "audio" | "voice" | "document" | "sticker") => kind,
        "location" | "venue" | "contact" => return with_content(message, &own),
        "article" => {
            let what = "can't parse inline query result: Can't find field \"input_message_content\"";
            return Err(ApiError::bad_request(what));
        }
        _ => return Err(ApiError::bad_request("can't parse inline query result: Type is wrong")),
    };
    let source = |name: &str| own.get(name).and_then(Value::as_str);
    let names = ["photo", "gif", "mpeg4", "video", "audio", "voice", "document", "sticker"];
    let sources = names.iter().flat_map(|name| [format!("{name}_file_id"), format!("{name}_url")]);
    let source = sources.into_iter().find_map(|name| source(&name).map(str::to_owned));
    media::fill(world, message, kind, &source.unwrap_or_default(), &params)?;
    media::set_caption(message, &params)
}

fn params_of(fields: &Map<String, Value>) -> Params {
    Params { values: Arc::new(fields.clone()), uploads: Vec::new() }
}

fn with_content(message: &mut Message, content: &Map<String, Value>) -> Result<(), ApiError> {
    let has = |name: &str| content.contains_key(name);
    if has("message_text") {
        let mut fields = content.clone();
        fields.insert("text".to_owned(), content["message_text"].clone());
        let formatted = messages::text(&params_of(&fields))?;
        (message.text, message.entities) = (Some(formatted.text), formatted.entities);
        return Ok(());
    }
    let pick = |names: &[&str]| -> Value {
        names
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), content.get(*name)?.clone())))
            .collect::<Map<_, _>>()
            .into()
    };
    let location = pick(&["latitude", "longitude"]);
    let content = if has("address") {
        let mut venue = pick(&["title", "address"]);
        venue["location"] = location.clone();
        json!({ "venue": venue, "location": location })
    } else if has("latitude") {
        json!({ "location": location })
    } else if has("phone_number") {
        json!({ "contact": pick(&["phone_number", "first_name", "last_name"]) })
    } else if has("prices") {
        let prices = crate::simulator::people::inline::list_of(&content["prices"]);
        let total: i64 = prices.iter().filter_map(|price| price["amount"].as_i64()).sum();
        let mut invoice = pick(&["title", "description", "currency"]);
        (invoice["total_amount"], invoice["start_parameter"]) = (json!(total), json!(""));
        message.payload = content.get("payload").and_then(Value::as_str).map(str::to_owned);
        message.order = Some(Box::new(json!({ "prices": prices })));
        let pay = || Box::new(json!({ "inline_keyboard": [[{ "text": "Pay", "pay": true }]] }));
        message.markup.get_or_insert_with(pay);
        json!({ "invoice": invoice })
    } else {
        return Err(ApiError::bad_request("can't parse input message content"));
    };
    message.content = Some(Box::new(content));
    Ok(())
}
