//! Paying: an invoice becomes a question about shipping, then one whether to take the money, then a payment.

use serde_json::{Value, json};

use super::{Done, open_query, write};
use crate::simulator::error::Error;
use crate::simulator::model::{Message, Sender};
use crate::simulator::queries::Query;
use crate::simulator::render;
use crate::simulator::world::{Charge, World};

/// What a buyer fills in.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::simulator) struct Order {
    /// `OrderInfo`: name, phone number, address.
    #[serde(default)]
    pub(in crate::simulator) info: Option<Value>,
    /// The shipping query that the bot has answered, and which of its options is wanted.
    #[serde(default)]
    pub(in crate::simulator) shipping: Option<(String, String)>,
}

/// Begins to pay an invoice: with the question about shipping if its price depends on it and none was chosen yet.
pub(in crate::simulator) fn pay(
    world: &mut World,
    chat: i64,
    user: i64,
    message: i64,
    order: Order,
) -> Result<Done, Error> {
    let found = world.chats.get(&chat).and_then(|chat| chat.message(message));
    let found = found.ok_or(Error::UnknownMessage { chat, message })?;
    let invoice = found.content.as_deref().and_then(|content| content.get("invoice")).cloned();
    let (Some(invoice), Some(payload)) = (invoice, found.payload.clone()) else {
        return Err(Error::Cannot("that message is no invoice"));
    };
    let wanted = found.order.as_deref().cloned().unwrap_or_default();
    let info = order.info.unwrap_or_else(|| usual_info(world, user, &wanted));
    if wanted["is_flexible"] == json!(true) && order.shipping.is_none() {
        let id = open_query(world, "shipping_query", Some(chat), user, Some(message), json!({ "info": info }));
        let update = json!({
            "id": id, "from": user_json(world, user), "invoice_payload": payload, "shipping_address": info["shipping_address"],
        });
        let done = Done::new(world.enqueue("shipping_query", update.to_string().as_bytes()))?;
        return Ok(Done { query_id: Some(id), ..done });
    }
    let mut total = invoice["total_amount"].as_i64().unwrap_or(0);
    let mut update = json!({
        "from": user_json(world, user), "currency": invoice["currency"], "invoice_payload": payload,
    });
    if let Some((query, option)) = order.shipping {
        total += shipping_price(world, &query, &option)?;
        update["shipping_option_id"] = json!(option);
    }
    if info.as_object().is_some_and(|info| !info.is_empty()) {
        update["order_info"] = info;
    }
    update["total_amount"] = json!(total);
    let id = open_query(world, "pre_checkout_query", Some(chat), user, Some(message), update.clone());
    update["id"] = json!(id);
    let done = Done::new(world.enqueue("pre_checkout_query", update.to_string().as_bytes()))?;
    Ok(Done { query_id: Some(id), ..done })
}

/// What a buyer gives who is asked and does not care.
fn usual_info(world: &World, user: i64, wanted: &Value) -> Value {
    let name = world.users.get(&user).map_or_else(String::new, |user| user.first_name.clone());
    let asks = |what: &str| wanted[what] == json!(true);
    let mut info = json!({});
    if asks("need_name") {
        info["name"] = json!(name);
    }
    if asks("need_phone_number") {
        info["phone_number"] = json!(super::media::phone_of(user));
    }
    if asks("need_email") {
        info["email"] = json!(format!("{}@example.com", name.to_lowercase()));
    }
    if asks("need_shipping_address") || asks("is_flexible") {
        info["shipping_address"] = json!({
            "country_code": "GB", "state": "", "city": "London", "street_line1": "221B Baker Street", "street_line2": "",
            "post_code": "NW1 6XE",
        });
    }
    info
}

fn shipping_price(world: &World, query: &str, option: &str) -> Result<i64, Error> {
    let answer = world.queries.get(query).and_then(|query| query.answer.as_ref());
    let answer = answer.ok_or(Error::Cannot("the bot has not said how it ships"))?;
    let options = super::inline::list_of(&answer["shipping_options"]);
    let chosen = options.iter().find(|known| known["id"] == option);
    let chosen = chosen.ok_or(Error::Cannot("the bot has not offered that way of shipping"))?;
    Ok(super::inline::list_of(&chosen["prices"]).iter().filter_map(|price| price["amount"].as_i64()).sum())
}

/// The bot has agreed to be paid: so it is.
pub(in crate::simulator) fn has_paid(world: &mut World, query: &Query) {
    let Some(chat) = query.chat else { return };
    let charge = world.queries.next_id();
    let mut payment = json!({
        "currency": query.details["currency"], "total_amount": query.details["total_amount"],
        "invoice_payload": query.details["invoice_payload"], "telegram_payment_charge_id": charge,
        "provider_payment_charge_id": charge,
    });
    for name in ["shipping_option_id", "order_info"] {
        if let Some(value) = query.details.get(name) {
            payment[name] = value.clone();
        }
    }
    world.charges.push(Charge { user: query.user, chat, payment: payment.clone(), refunded: false });
    let mut paid = Message::new(Sender::User(query.user));
    paid.reply_to = query.message;
    paid.content = Some(Box::new(json!({ "successful_payment": payment })));
    // A full queue loses it, as it would at Telegram.
    drop(write(world, chat, "message", paid));
}

/// Gives Stars back; the words of the refusal are Telegram's.
pub(in crate::simulator) fn refund(world: &mut World, user: i64, charge: &str) -> Result<(), &'static str> {
    let is = |known: &&mut Charge| known.user == user && known.payment["telegram_payment_charge_id"] == charge;
    let known = world.charges.iter_mut().find(is).ok_or("CHARGE_NOT_FOUND")?;
    if known.payment["currency"] != "XTR" {
        return Err("CHARGE_NOT_FOUND");
    }
    if std::mem::replace(&mut known.refunded, true) {
        return Err("CHARGE_ALREADY_REFUNDED");
    }
    let (chat, mut payment) = (known.chat, known.payment.clone());
    if let Some(fields) = payment.as_object_mut() {
        fields.retain(|name, _| !matches!(name.as_str(), "shipping_option_id" | "order_info"));
    }
    let mut message = Message::new(Sender::User(user));
    message.content = Some(Box::new(json!({ "refunded_payment": payment })));
    drop(write(world, chat, "message", message));
    Ok(())
}

pub(in crate::simulator) fn user_json(world: &World, user: i64) -> Value {
    let mut json = Vec::new();
    render::user_id(world, user, &mut json);
    serde_json::from_slice(&json).expect("what is written is JSON")
}
