//! Answers to pressed buttons, inline queries and payments.

use serde_json::{Value, json};

use super::{Answer, ApiError, done};
use crate::simulator::params::Params;
use crate::simulator::people::payments;
use crate::simulator::queries::Query;
use crate::simulator::world::World;

const TOO_OLD: &str = "query is too old and response timeout expired or query ID is invalid";

/// Takes the answer of a query that is still open; answers what was asked.
fn answer(world: &mut World, params: &Params, id_name: &str, kind: &str) -> Result<(String, Query), ApiError> {
    let id = params.text(id_name).unwrap_or_default().into_owned();
    let now = world.now();
    let given = Value::Object(params.values.as_ref().clone());
    let query = world.queries.answer(&id, kind, now, given).cloned();
    let query = query.ok_or_else(|| ApiError::bad_request(TOO_OLD))?;
    world.signals.activity.notify_waiters();
    Ok((id, query))
}

pub(super) fn callback(world: &mut World, params: &Params, out: &mut Vec<u8>) -> Answer {
    let text = params.text("text").unwrap_or_default();
    if text.chars().count() > 200 {
        return Err(ApiError::bad_request("MESSAGE_TOO_LONG"));
    }
    let (id, query) = answer(world, params, "callback_query_id", "callback_query")?;
    world.emit(&json!({
        "event": "answer", "id": id, "chat": query.chat, "user": query.user, "text": text,
        "show_alert": params.flag("show_alert"), "url": params.text("url"),
    }));
    done(out)
}

pub(super) fn inline(world: &mut World, params: &Params, out: &mut Vec<u8>) -> Answer {
    match params.json("results") {
        Some(Ok(Value::Array(results))) if results.len() > 50 => {
            return Err(ApiError::bad_request("RESULTS_TOO_MUCH"));
        }
        Some(Ok(Value::Array(results))) => super::inline_results::check(world, &results)?,
        _ => return Err(ApiError::bad_request("can't parse inline query results JSON array")),
    }
    let (id, query) = answer(world, params, "inline_query_id", "inline_query")?;
    world.emit(&json!({ "event": "inline_answer", "id": id, "user": query.user }));
    done(out)
}

pub(super) fn pre_checkout(world: &mut World, params: &Params, out: &mut Vec<u8>) -> Answer {
    let ok = params.flag("ok");
    if !ok && params.text("error_message").is_none() {
        return Err(ApiError::bad_request("error message must be non-empty"));
    }
    let (id, query) = answer(world, params, "pre_checkout_query_id", "pre_checkout_query")?;
    let text = params.text("error_message").unwrap_or_default();
    world.emit(&json!({ "event": "answer", "id": id, "chat": query.chat, "user": query.user, "text": text, "show_alert": !ok }));
    if ok {
        payments::has_paid(world, &query);
    }
    done(out)
}

pub(super) fn shipping(world: &mut World, params: &Params, out: &mut Vec<u8>) -> Answer {
    let ok = params.flag("ok");
    let options = super::list(params, "shipping_options")?.unwrap_or_default();
    if ok && options.is_empty() {
        return Err(ApiError::bad_request("there must be at least one shipping option"));
    }
    if !ok && params.text("error_message").is_none() {
        return Err(ApiError::bad_request("error message must be non-empty"));
    }
    let (id, query) = answer(world, params, "shipping_query_id", "shipping_query")?;
    world.emit(&json!({
        "event": "shipping", "id": id, "chat": query.chat, "user": query.user, "ok": ok, "options": options,
        "text": params.text("error_message"),
    }));
    done(out)
}

pub(super) fn refund(world: &mut World, params: &Params, out: &mut Vec<u8>) -> Answer {
    let user = params.int("user_id").ok_or_else(|| ApiError::bad_request("invalid user_id specified"))?;
    let charge = params.text("telegram_payment_charge_id").unwrap_or_default();
    payments::refund(world, user, &charge).map_err(ApiError::bad_request)?;
    done(out)
}

pub(super) fn star_balance(world: &mut World, out: &mut Vec<u8>) -> Answer {
    let kept = world.charges.iter().filter(|charge| !charge.refunded && charge.payment["currency"] == "XTR");
    let amount: i64 = kept.filter_map(|charge| charge.payment["total_amount"].as_i64()).sum();
    crate::simulator::render::json(&json!({ "amount": amount }), out);
    Ok(())
}
