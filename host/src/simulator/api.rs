//! The Bot API's methods: what each does to the world, and how Telegram words its refusals.
//!
//! A method gets the world, its parameters and a buffer for the JSON of its result. Nothing here waits or does I/O
//! (`getUpdates`, which waits, is in `poll.rs`). A method that is not played answers 404, as Telegram does for a
//! name that it does not know.

pub(super) mod bot;
mod chats;
mod content;
mod edits;
pub(super) mod inline_results;
mod media;
mod members;
mod messages;
mod queries;
mod topics;

use serde_json::Value;

use super::model::{Chat, ChatKind};
use super::params::Params;
use super::people::chats::TopicChange;
use super::world::World;
use crate::guard::Refused;

/// A refusal.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ApiError {
    pub(super) code: u16,
    pub(super) description: String,
    pub(super) parameters: Option<Value>,
}

impl ApiError {
    pub(super) fn new(code: u16, description: &str) -> Self {
        Self { code, description: description.to_owned(), parameters: None }
    }

    pub(super) fn bad_request(what: &str) -> Self {
        Self::new(400, &format!("Bad Request: {what}"))
    }

    pub(super) fn forbidden(what: &str) -> Self {
        Self::new(403, &format!("Forbidden: {what}"))
    }

    pub(super) fn conflict(what: &str) -> Self {
        Self::new(409, &format!("Conflict: {what}"))
    }

    pub(super) fn flood(retry_after: u64) -> Self {
        Self {
            code: 429,
            description: format!("Too Many Requests: retry after {retry_after}"),
            parameters: Some(serde_json::json!({ "retry_after": retry_after })),
        }
    }

    /// The whole answer.
    pub(super) fn envelope(&self) -> Vec<u8> {
        let mut json = serde_json::json!({ "ok": false, "error_code": self.code, "description": self.description });
        if let Some(parameters) = &self.parameters {
            json["parameters"] = parameters.clone();
        }
        json.to_string().into_bytes()
    }
}

impl From<Refused> for ApiError {
    fn from(refused: Refused) -> Self {
        Self::forbidden(&refused.to_string())
    }
}

pub(super) use chats::{PERMISSIONS, member_json};
pub(super) use content::dice_sides;
pub(super) use edits::remove;
pub(super) use media::fields as media_fields;

type Answer = Result<(), ApiError>;

/// Plays one call; `method` is in lower case.
pub(super) fn call(world: &mut World, method: &str, params: &Params, out: &mut Vec<u8>) -> Answer {
    match method {
        "sendmessage" => messages::send(world, params, out),
        "sendchataction" => messages::chat_action(world, params, out),
        "forwardmessage" => messages::forward(world, params, out),
        "copymessage" => messages::copy(world, params, out),
        "forwardmessages" => messages::many(world, params, out, messages::forward),
        "copymessages" => messages::many(world, params, out, messages::copy),
        "sendphoto" | "senddocument" | "sendvideo" | "sendaudio" | "sendvoice" | "sendanimation" | "sendsticker"
        | "sendvideonote" => media::send(world, method.trim_start_matches("send"), params, out),
        "sendmediagroup" => media::send_group(world, params, out),
        "getfile" => media::get_file(world, params, out),
        "sendpoll" => content::poll(world, params, out),
        "stoppoll" => edits::stop_poll(world, params, out),
        "senddice" => content::dice(world, params, out),
        "sendlocation" | "sendvenue" => content::location(world, method == "sendvenue", params, out),
        "sendcontact" => content::contact(world, params, out),
        "sendinvoice" => content::invoice(world, params, out),
        "editmessagetext" => edits::text(world, params, out),
        "editmessagecaption" => edits::caption(world, params, out),
        "editmessagemedia" => edits::media(world, params, out),
        "editmessagereplymarkup" => edits::markup(world, params, out),
        "deletemessage" => edits::delete(world, params, out),
        "deletemessages" => edits::delete_many(world, params, out),
        "pinchatmessage" => edits::pin(world, params, out),
        "unpinchatmessage" | "unpinallchatmessages" => edits::unpin(world, params, out),
        "setmessagereaction" => edits::react(world, params, out),
        "answercallbackquery" => queries::callback(world, params, out),
        "answerinlinequery" => queries::inline(world, params, out),
        "answerprecheckoutquery" => queries::pre_checkout(world, params, out),
        "answershippingquery" => queries::shipping(world, params, out),
        "refundstarpayment" => queries::refund(world, params, out),
        "getmystarbalance" => queries::star_balance(world, out),
        "banchatmember" => members::ban(world, params, out),
        "unbanchatmember" => members::unban(world, params, out),
        "restrictchatmember" => members::restrict(world, params, out),
        "promotechatmember" => members::promote(world, params, out),
        "approvechatjoinrequest" => members::decide(world, params, true, out),
        "declinechatjoinrequest" => members::decide(world, params, false, out),
        "createchatinvitelink" | "exportchatinvitelink" => {
            members::invite(world, method == "exportchatinvitelink", params, out)
        }
        "leavechat" => members::leave(world, params, out),
        "setchattitle" => members::set_title(world, params, out),
        "createforumtopic" => topics::create(world, params, out),
        "editforumtopic" => topics::edit(world, params, out),
        "closeforumtopic" => topics::change(world, params, &TopicChange::Close, out),
        "reopenforumtopic" => topics::change(world, params, &TopicChange::Reopen, out),
        "deleteforumtopic" => topics::change(world, params, &TopicChange::Delete, out),
        "setchatmenubutton" => bot::set_menu_button(world, params, out),
        "getchatmenubutton" => bot::menu_button(world, params, out),
        "getchat" => chats::get(world, params, out),
        "getchatmember" => chats::member(world, params, out),
        "getchatadministrators" => chats::administrators(world, params, out),
        "getchatmembercount" => chats::member_count(world, params, out),
        "getme" => bot::get_me(world, out),
        "setmycommands" => bot::set_commands(world, params, out),
        "getmycommands" => bot::get_commands(world, params, out),
        "deletemycommands" => bot::delete_commands(world, params, out),
        "setwebhook" => bot::set_webhook(world, params, out),
        "deletewebhook" => bot::delete_webhook(world, params, out),
        "getwebhookinfo" => bot::webhook_info(world, out),
        _ => Err(ApiError::new(404, "Not Found: method not found")),
    }
}

fn done(out: &mut Vec<u8>) -> Answer {
    out.extend_from_slice(b"true");
    Ok(())
}

/// The chat that a parameter names, whether or not the bot may write there.
fn chat_named<'a>(world: &'a World, params: &Params, name: &str) -> Result<&'a Chat, ApiError> {
    let text = params.text(name).filter(|text| !text.trim().is_empty());
    let text = text.ok_or_else(|| ApiError::bad_request(&format!("{name} is empty")))?;
    let found = match text.trim().strip_prefix('@') {
        Some(username) => {
            let is = |chat: &&Chat| chat.username.as_deref().is_some_and(|name| name.eq_ignore_ascii_case(username));
            world.chats.values().find(is)
        }
        None => text.trim().parse().ok().and_then(|id: i64| world.chats.get(&id)),
    };
    found.ok_or_else(|| ApiError::bad_request("chat not found"))
}

/// The chat that a call wants to write to.
fn target(world: &World, params: &Params) -> Result<i64, ApiError> {
    let chat = chat_named(world, params, "chat_id")?;
    if let Some(to) = chat.migrated_to {
        let mut error = ApiError::bad_request("group chat was upgraded to a supergroup chat");
        error.parameters = Some(serde_json::json!({ "migrate_to_chat_id": to }));
        return Err(error);
    }
    if chat.blocked {
        return Err(ApiError::forbidden(match chat.kind {
            ChatKind::Private => "bot was blocked by the user",
            ChatKind::Group => "bot was kicked from the group chat",
            ChatKind::Supergroup => "bot was kicked from the supergroup chat",
            ChatKind::Channel => "bot was kicked from the channel chat",
        }));
    }
    Ok(chat.id)
}

/// Reads `name` as a list.
fn list(params: &Params, name: &str) -> Result<Option<Vec<Value>>, ApiError> {
    match params.json(name) {
        None => Ok(None),
        Some(Ok(Value::Array(items))) => Ok(Some(items)),
        Some(_) => Err(ApiError::bad_request(&format!("can't parse {name} JSON array"))),
    }
}
