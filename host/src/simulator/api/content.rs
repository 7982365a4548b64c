//! Messages that are neither text nor files: polls, dice, places, contacts, invoices.

use serde_json::{Value, json};

use super::messages::draft;
use super::{Answer, ApiError, list, target};
use crate::simulator::params::Params;
use crate::simulator::world::World;

fn required(params: &Params, name: &str) -> Result<String, ApiError> {
    let text = params.text(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    text.ok_or_else(|| ApiError::bad_request(&format!("{name} is empty")))
}

fn number(params: &Params, name: &str) -> Result<f64, ApiError> {
    required(params, name)?.parse().map_err(|_| ApiError::bad_request(&format!("wrong parameter {name} in request")))
}

pub(super) fn poll(world: &mut World, params: &Params, out: &mut Vec<u8>) -> Answer {
    let question = params.text("question").unwrap_or_default().into_owned();
    if question.is_empty() {
        return Err(ApiError::bad_request("poll question must be non-empty"));
    }
    let options = list(params, "options")?.unwrap_or_default();
    if options.len() < 2 {
        return Err(ApiError::bad_request("poll must have at least 2 option"));
    }
    if options.len() > 12 {
        return Err(ApiError::bad_request("poll can't have more than 12 options"));
    }
    let text = |option: &Value| option.as_str().or(option["text"].as_str()).unwrap_or_default().to_owned();
    let options: Vec<_> = options.iter().map(|option| json!({ "text": text(option), "voter_count": 0 })).collect();
    let chat = target(world, params)?;
    let mut message = draft(world, chat, params)?;
    message.content = Some(Box::new(json!({ "poll": {
        "id": world.queries.next_id(),
        "question": question,
        "options": options,
        "total_voter_count": 0,
        "is_closed": params.flag("is_closed"),
        "is_anonymous": params.text("is_anonymous").is_none() || params.flag("is_anonymous"),
        "type": params.text("type").unwrap_or("regular".into()),
        "allows_multiple_answers": params.flag("allows_multiple_answers"),
    }})));
    world.deliver(chat, message, out);
    Ok(())
}

pub(super) fn dice(world: &mut World, params: &Params, out: &mut Vec<u8>) -> Answer {
    let emoji = params.text("emoji").unwrap_or("🎲".into()).into_owned();
    let sides = match emoji.trim_end_matches('\u{fe0f}') {
        "🎲" | "🎯" | "🎳" => 6,
        "🏀" | "⚽" => 5,
        "🎰" => 64,
        _ => return Err(ApiError::bad_request("wrong parameter emoji in request")),
    };
    let chat = target(world, params)?;
    let mut message = draft(world, chat, params)?;
    message.content = Some(Box::new(json!({ "dice": { "emoji": emoji, "value": rand::random_range(1..=sides) } })));
    world.deliver(chat, message, out);
    Ok(())
}

pub(super) fn location(world: &mut World, venue: bool, params: &Params, out: &mut Vec<u8>) -> Answer {
    let location = json!({ "latitude": number(params, "latitude")?, "longitude": number(params, "longitude")? });
    let content = if venue {
        let (title, address) = (required(params, "title")?, required(params, "address")?);
        json!({ "venue": { "location": location, "title": title, "address": address }, "location": location })
    } else {
        json!({ "location": location })
    };
    let chat = target(world, params)?;
    let mut message = draft(world, chat, params)?;
    message.content = Some(Box::new(content));
    world.deliver(chat, message, out);
    Ok(())
}

pub(super) fn contact(world: &mut World, params: &Params, out: &mut Vec<u8>) -> Answer {
    let (phone, name) = (required(params, "phone_number")?, required(params, "first_name")?);
    let chat = target(world, params)?;
    let mut message = draft(world, chat, params)?;
    message.content = Some(Box::new(json!({ "contact": { "phone_number": phone, "first_name": name } })));
    world.deliver(chat, message, out);
    Ok(())
}

pub(super) fn invoice(world: &mut World, params: &Params, out: &mut Vec<u8>) -> Answer {
    let (title, description) = (required(params, "title")?, required(params, "description")?);
    let (payload, currency) = (required(params, "payload")?, required(params, "currency")?);
    let prices = list(params, "prices")?.unwrap_or_default();
    if prices.is_empty() {
        return Err(ApiError::bad_request("there must be at least one price"));
    }
    let total: i64 = prices.iter().filter_map(|price| price["amount"].as_i64()).sum();
    let chat = target(world, params)?;
    let mut message = draft(world, chat, params)?;
    message.content = Some(Box::new(json!({ "invoice": {
        "title": title, "description": description, "start_parameter": params.text("start_parameter").unwrap_or_default(),
        "currency": currency, "total_amount": total,
    }})));
    message.payload = Some(payload);
    let pay = || Box::new(json!({ "inline_keyboard": [[{ "text": "Pay", "pay": true }]] }));
    message.markup.get_or_insert_with(pay);
    world.deliver(chat, message, out);
    Ok(())
}
