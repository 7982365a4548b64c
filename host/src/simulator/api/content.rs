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
    if options.iter().any(|option| text(option).trim().is_empty()) {
        return Err(ApiError::bad_request("poll option text must be non-empty"));
    }
    if options.iter().any(|option| text(option).chars().count() > 100) {
        return Err(ApiError::bad_request("poll options length must not exceed 100"));
    }
    let n_options = options.len() as i64;
    let option = |(at, option): (usize, &Value)| json!({ "persistent_id": at.to_string(), "text": text(option), "voter_count": 0 });
    let options: Vec<_> = options.iter().enumerate().map(option).collect();
    let kind = params.text("type").filter(|kind| !kind.is_empty()).unwrap_or("regular".into());
    let mut poll = json!({
        "id": world.queries.next_id(),
        "question": question,
        "options": options,
        "total_voter_count": 0,
        "is_closed": params.flag("is_closed"),
        "is_anonymous": params.text("is_anonymous").is_none() || params.flag("is_anonymous"),
        "type": kind,
        "allows_multiple_answers": params.flag("allows_multiple_answers"),
        // Who has answered a quiz does not get to think again.
        "allows_revoting": kind != "quiz" && (params.text("allows_revoting").is_none() || params.flag("allows_revoting")),
    });
    if kind == "quiz" {
        let several = list(params, "correct_option_ids")?;
        let one = params.int("correct_option_id");
        let right: Vec<i64> = match several {
            Some(several) => several.iter().filter_map(crate::simulator::params::int_of).collect(),
            None => one.into_iter().collect(),
        };
        if right.is_empty() || right.iter().any(|at| !(0..n_options).contains(at)) {
            return Err(ApiError::bad_request("wrong correct option ID specified"));
        }
        poll["correct_option_id"] = json!(right[0]);
        poll["correct_option_ids"] = json!(right);
        if let Some(explanation) = params.text("explanation").filter(|text| !text.is_empty()) {
            poll["explanation"] = json!(explanation);
        }
    }
    let period = params.int("open_period").filter(|period| *period > 0);
    if let Some(date) = params.int("close_date").or_else(|| period.map(|period| world.now() + period)) {
        poll["close_date"] = json!(date);
        if let Some(period) = period {
            poll["open_period"] = json!(period);
        }
    }
    let chat = target(world, params)?;
    let mut message = draft(world, chat, params)?;
    message.content = Some(Box::new(json!({ "poll": poll })));
    world.deliver(chat, message, out);
    Ok(())
}

/// How many values such dice have.
pub(in crate::simulator) fn dice_sides(emoji: &str) -> Option<u32> {
    match emoji.trim_end_matches('\u{fe0f}') {
        "🎲" | "🎯" | "🎳" => Some(6),
        "🏀" | "⚽" => Some(5),
        "🎰" => Some(64),
        _ => None,
    }
}

pub(super) fn dice(world: &mut World, params: &Params, out: &mut Vec<u8>) -> Answer {
    let emoji = params.text("emoji").unwrap_or("🎲".into()).into_owned();
    let sides = dice_sides(&emoji).ok_or_else(|| ApiError::bad_request("wrong parameter emoji in request"))?;
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
    if !(1..=128).contains(&payload.len()) {
        return Err(ApiError::bad_request("INVOICE_PAYLOAD_INVALID"));
    }
    if currency == "XTR" && prices.len() != 1 {
        return Err(ApiError::bad_request("STARS_INVOICE_INVALID"));
    }
    let total: i64 = prices.iter().filter_map(|price| price["amount"].as_i64()).sum();
    let mut order = json!({ "prices": prices });
    for name in ["need_name", "need_phone_number", "need_email", "need_shipping_address", "is_flexible"] {
        if params.flag(name) {
            order[name] = json!(true);
        }
    }
    let chat = target(world, params)?;
    let mut message = draft(world, chat, params)?;
    message.content = Some(Box::new(json!({ "invoice": {
        "title": title, "description": description, "start_parameter": params.text("start_parameter").unwrap_or_default(),
        "currency": currency, "total_amount": total,
    }})));
    message.payload = Some(payload);
    message.order = Some(Box::new(order));
    let pay = || Box::new(json!({ "inline_keyboard": [[{ "text": "Pay", "pay": true }]] }));
    message.markup.get_or_insert_with(pay);
    world.deliver(chat, message, out);
    Ok(())
}
