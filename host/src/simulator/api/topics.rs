//! Topics of forums, as the bot administers them.

use serde_json::json;

use super::{Answer, ApiError, done, target};
use crate::simulator::params::Params;
use crate::simulator::people::chats::{self, ICON_COLOR, TopicChange};
use crate::simulator::render;
use crate::simulator::world::World;

fn forum(world: &World, params: &Params) -> Result<i64, ApiError> {
    let chat = target(world, params)?;
    if world.chats[&chat].topics.is_empty() {
        return Err(ApiError::bad_request("the chat is not a forum"));
    }
    Ok(chat)
}

fn name(params: &Params) -> Result<String, ApiError> {
    let name = params.text("name").unwrap_or_default().trim().to_owned();
    if (1..=128).contains(&name.chars().count()) { Ok(name) } else { Err(ApiError::bad_request("TOPIC_TITLE_EMPTY")) }
}

pub(super) fn create(world: &mut World, params: &Params, out: &mut Vec<u8>) -> Answer {
    let (chat, name, bot) = (forum(world, params)?, name(params)?, world.bot.id);
    let id = chats::open_topic(world, chat, bot, &name).map_err(|_| ApiError::bad_request("TOPIC_TITLE_EMPTY"))?;
    let color = params.int("icon_color").unwrap_or_else(|| i64::from(ICON_COLOR));
    render::json(&json!({ "message_thread_id": id, "name": name, "icon_color": color }), out);
    Ok(())
}

pub(super) fn edit(world: &mut World, params: &Params, out: &mut Vec<u8>) -> Answer {
    let change = TopicChange::Rename(name(params)?);
    change_to(world, params, &change, out)
}

pub(super) fn change(world: &mut World, params: &Params, change: &TopicChange, out: &mut Vec<u8>) -> Answer {
    change_to(world, params, change, out)
}

fn change_to(world: &mut World, params: &Params, change: &TopicChange, out: &mut Vec<u8>) -> Answer {
    let (chat, bot) = (forum(world, params)?, world.bot.id);
    let id = params.int("message_thread_id").unwrap_or(0);
    match chats::change_topic(world, chat, bot, id, change) {
        Ok(true) => done(out),
        Ok(false) => Err(ApiError::bad_request("TOPIC_NOT_MODIFIED")),
        Err(_) => Err(ApiError::bad_request("message thread not found")),
    }
}
