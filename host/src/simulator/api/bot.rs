//! The bot itself: who it is, its commands, its webhook (called by `webhook.rs`).

use serde_json::{Value, json};

use super::{Answer, ApiError, done, list};
use crate::simulator::params::Params;
use crate::simulator::render;
use crate::simulator::updates::Allowed;
use crate::simulator::webhook::{Webhook, is_near};
use crate::simulator::world::{CommandList, World};

pub(super) fn get_me(world: &mut World, out: &mut Vec<u8>) -> Answer {
    render::bot_open(world, out);
    out.extend_from_slice(
        b",\"can_join_groups\":true,\"can_read_all_group_messages\":true,\"supports_inline_queries\":true,\
        \"can_connect_to_business\":false,\"has_main_web_app\":false}",
    );
    Ok(())
}

/// Scope and language of a list of commands.
fn which(params: &Params) -> Result<(Value, String), ApiError> {
    let scope = match params.json("scope") {
        None => json!({ "type": "default" }),
        Some(Ok(scope @ Value::Object(_))) => scope,
        Some(_) => return Err(ApiError::bad_request("can't parse BotCommandScope: Expected an Object")),
    };
    Ok((scope, params.text("language_code").unwrap_or_default().into_owned()))
}

pub(super) fn set_commands(world: &mut World, params: &Params, out: &mut Vec<u8>) -> Answer {
    let (scope, language) = which(params)?;
    let commands = list(params, "commands")?.unwrap_or_default();
    if commands.len() > 100 {
        return Err(ApiError::bad_request("BOT_COMMANDS_TOO_MUCH"));
    }
    let mut read = Vec::new();
    for entry in &commands {
        let name = entry["command"].as_str().unwrap_or_default().trim_start_matches('/');
        let valid = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if !(1..=32).contains(&name.len()) || !name.chars().all(valid) {
            return Err(ApiError::bad_request("BOT_COMMAND_INVALID"));
        }
        let description = entry["description"].as_str().unwrap_or_default();
        if !(1..=256).contains(&description.chars().count()) {
            return Err(ApiError::bad_request("BOT_COMMAND_DESCRIPTION_INVALID"));
        }
        read.push(json!({ "command": name, "description": description }));
    }
    world.commands.retain(|list| list.scope != scope || list.language != language);
    if !read.is_empty() {
        world.commands.push(CommandList { scope, language, commands: Value::Array(read) });
    }
    world.emit(&json!({ "event": "commands" }));
    done(out)
}

pub(super) fn get_commands(world: &mut World, params: &Params, out: &mut Vec<u8>) -> Answer {
    let (scope, language) = which(params)?;
    match world.commands.iter().find(|list| list.scope == scope && list.language == language) {
        Some(list) => render::json(&list.commands, out),
        None => out.extend_from_slice(b"[]"),
    }
    Ok(())
}

pub(super) fn delete_commands(world: &mut World, params: &Params, out: &mut Vec<u8>) -> Answer {
    let (scope, language) = which(params)?;
    world.commands.retain(|list| list.scope != scope || list.language != language);
    world.emit(&json!({ "event": "commands" }));
    done(out)
}

pub(super) fn set_menu_button(world: &mut World, params: &Params, out: &mut Vec<u8>) -> Answer {
    let button = match params.json("menu_button") {
        None => None,
        Some(Ok(button)) if matches!(button["type"].as_str(), Some("commands" | "web_app" | "default")) => Some(button),
        Some(_) => return Err(ApiError::bad_request("can't parse menu button: Type can't be parsed")),
    };
    match params.int("chat_id") {
        None => world.menu_button = button,
        Some(_) => {
            let chat = super::target(world, params)?;
            world.chats.get_mut(&chat).expect("looked up above").menu_button = button;
        }
    }
    world.emit(&json!({ "event": "commands" }));
    done(out)
}

pub(super) fn menu_button(world: &mut World, params: &Params, out: &mut Vec<u8>) -> Answer {
    let chat = if params.int("chat_id").is_some() { Some(super::target(world, params)?) } else { None };
    let own = chat.and_then(|chat| world.chats[&chat].menu_button.as_ref());
    let usual = json!({ "type": "default" });
    render::json(own.or(world.menu_button.as_ref()).unwrap_or(&usual), out);
    Ok(())
}

/// Takes over `allowed_updates` if it is a list of texts; anything else is ignored, as Telegram does.
pub(in crate::simulator) fn take_allowed_updates(world: &mut World, params: &Params) {
    if let Some(Ok(list)) = params.json("allowed_updates")
        && let Ok(kinds) = serde_json::from_value::<Vec<String>>(list)
    {
        world.allowed = Allowed::from_list(kinds);
    }
}

pub(super) fn set_webhook(world: &mut World, params: &Params, out: &mut Vec<u8>) -> Answer {
    let url = params.text("url").unwrap_or_default().into_owned();
    if url.is_empty() {
        return delete_webhook(world, params, out);
    }
    // Plain HTTP as a local Bot API server allows it, which this is in a way.
    let parsed = reqwest::Url::parse(&url).map_err(|_| ApiError::bad_request("bad webhook: invalid webhook URL"))?;
    if parsed.scheme() != "https" && !(parsed.scheme() == "http" && is_near(&parsed)) {
        let what = "bad webhook: An HTTPS URL must be provided for webhook";
        return Err(ApiError::bad_request(what));
    }
    let secret = params.text("secret_token").filter(|secret| !secret.is_empty()).map(Into::into);
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if secret.as_ref().is_some_and(|secret: &String| secret.len() > 256 || !secret.chars().all(is_allowed)) {
        return Err(ApiError::bad_request("secret token contains unallowed characters"));
    }
    take_allowed_updates(world, params);
    if params.flag("drop_pending_updates") {
        world.queue.clear();
    }
    let webhook = Webhook {
        url,
        max_connections: params.int("max_connections").unwrap_or(40).clamp(1, 100_000),
        secret,
        ip_address: params.text("ip_address").filter(|address| !address.is_empty()).map(Into::into),
        has_certificate: params.upload("certificate").is_some(),
        ..Webhook::default()
    };
    world.change_webhook(Some(webhook));
    out.extend_from_slice(b"true,\"description\":\"Webhook was set\"");
    Ok(())
}

pub(super) fn delete_webhook(world: &mut World, params: &Params, out: &mut Vec<u8>) -> Answer {
    if params.flag("drop_pending_updates") {
        world.queue.clear();
    }
    let before = world.webhook.take();
    world.change_webhook(None);
    out.extend_from_slice(match before {
        Some(_) => b"true,\"description\":\"Webhook was deleted\"".as_slice(),
        None => b"true,\"description\":\"Webhook is already deleted\"".as_slice(),
    });
    Ok(())
}

pub(super) fn webhook_info(world: &mut World, out: &mut Vec<u8>) -> Answer {
    let mut info = json!({
        "url": world.webhook.as_ref().map_or("", |webhook| webhook.url.as_str()),
        "has_custom_certificate": world.webhook.as_ref().is_some_and(|webhook| webhook.has_certificate),
        "pending_update_count": world.queue.len(),
    });
    if let Some(webhook) = &world.webhook {
        info["max_connections"] = json!(webhook.max_connections);
        // Where no address is fixed, Telegram tells the one that it found.
        info["ip_address"] = json!(webhook.ip_address.as_deref().unwrap_or("127.0.0.1"));
        if let (Some(date), Some(message)) = (webhook.last_error_date, &webhook.last_error_message) {
            info["last_error_date"] = json!(date);
            info["last_error_message"] = json!(message);
        }
    }
    if let Some(kinds) = &world.allowed.0 {
        info["allowed_updates"] = json!(kinds);
    }
    render::json(&info, out);
    Ok(())
}
