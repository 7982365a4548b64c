//! The bot itself: who it is, its commands, its webhook (kept, never called).

use serde_json::{Value, json};

use super::{Answer, ApiError, done, list};
use crate::simulator::params::Params;
use crate::simulator::render;
use crate::simulator::updates::Allowed;
use crate::simulator::world::{CommandList, Webhook, World};

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
    if !url.starts_with("https://") {
        let what = "bad webhook: An HTTPS URL must be provided for webhook";
        return Err(ApiError::bad_request(what));
    }
    take_allowed_updates(world, params);
    if params.flag("drop_pending_updates") {
        world.queue.clear();
    }
    let max_connections = params.int("max_connections").unwrap_or(40);
    world.webhook = Some(Webhook { url, max_connections });
    world.signals.polls.notify_waiters();
    out.extend_from_slice(b"true,\"description\":\"Webhook was set\"");
    Ok(())
}

pub(super) fn delete_webhook(world: &mut World, params: &Params, out: &mut Vec<u8>) -> Answer {
    if params.flag("drop_pending_updates") {
        world.queue.clear();
    }
    out.extend_from_slice(match world.webhook.take() {
        Some(_) => b"true,\"description\":\"Webhook was deleted\"".as_slice(),
        None => b"true,\"description\":\"Webhook is already deleted\"".as_slice(),
    });
    Ok(())
}

pub(super) fn webhook_info(world: &mut World, out: &mut Vec<u8>) -> Answer {
    let mut info = json!({
        "url": world.webhook.as_ref().map_or("", |webhook| webhook.url.as_str()),
        "has_custom_certificate": false,
        "pending_update_count": world.queue.len(),
    });
    if let Some(webhook) = &world.webhook {
        info["max_connections"] = json!(webhook.max_connections);
    }
    if let Some(kinds) = &world.allowed.0 {
        info["allowed_updates"] = json!(kinds);
    }
    render::json(&info, out);
    Ok(())
}
