//! What the bot does as an administrator: with members, requests, links and titles.

use serde_json::Value;

use super::{Answer, ApiError, chat_named, done, target};
use crate::simulator::error::Error;
use crate::simulator::model::{Chat, ChatKind, Restriction};
use crate::simulator::params::Params;
use crate::simulator::people::members::{self, Standing};
use crate::simulator::people::{chats, set_blocked};
use crate::simulator::render;
use crate::simulator::world::World;

fn member(world: &World, params: &Params) -> Result<(i64, i64), ApiError> {
    let chat = target(world, params)?;
    let user = params.int("user_id").filter(|&id| id > 0);
    let user = user.ok_or_else(|| ApiError::bad_request("invalid user_id specified"))?;
    if !world.users.contains_key(&user) {
        return Err(ApiError::bad_request("PARTICIPANT_ID_INVALID"));
    }
    Ok((chat, user))
}

fn in_group<'a>(world: &'a World, chat: i64, otherwise: &str) -> Result<&'a Chat, ApiError> {
    let chat = &world.chats[&chat];
    if chat.kind == ChatKind::Private { Err(ApiError::bad_request(otherwise)) } else { Ok(chat) }
}

fn set(world: &mut World, chat: i64, user: i64, standing: Standing, out: &mut Vec<u8>) -> Answer {
    let bot = world.bot.id;
    match members::set(world, chat, user, bot, standing, false) {
        // What the bot does not hear of has happened all the same.
        Ok(_) | Err(Error::QueueFull) => done(out),
        Err(_) => Err(ApiError::bad_request("CHAT_ADMIN_REQUIRED")),
    }
}

pub(super) fn ban(world: &mut World, params: &Params, out: &mut Vec<u8>) -> Answer {
    let (chat, user) = member(world, params)?;
    let place = in_group(world, chat, "can't ban members in private chats")?;
    if place.admins.first() == Some(&user) {
        return Err(ApiError::bad_request("can't remove chat owner"));
    }
    if place.admins.contains(&user) {
        return Err(ApiError::bad_request("user is an administrator of the chat"));
    }
    set(world, chat, user, Standing::Kicked, out)
}

pub(super) fn unban(world: &mut World, params: &Params, out: &mut Vec<u8>) -> Answer {
    let (chat, user) = member(world, params)?;
    let place = in_group(world, chat, "can't unban members in private chats")?;
    let is_banned = place.banned.contains(&user);
    // Without `only_if_banned` it removes whoever is there.
    if is_banned || (place.members.contains(&user) && !params.flag("only_if_banned")) {
        return set(world, chat, user, Standing::Left, out);
    }
    done(out)
}

/// Less than half a minute, and more than a year, is for ever.
const FOR_A_WHILE: std::ops::RangeInclusive<i64> = 30..=366 * 86_400;

pub(super) fn restrict(world: &mut World, params: &Params, out: &mut Vec<u8>) -> Answer {
    let (chat, user) = member(world, params)?;
    let place = in_group(world, chat, "can't restrict members in private chats")?;
    if place.kind != ChatKind::Supergroup {
        return Err(ApiError::bad_request("method is available only for supergroups"));
    }
    if place.admins.first() == Some(&user) {
        return Err(ApiError::bad_request("can't remove chat owner"));
    }
    if place.admins.contains(&user) {
        return Err(ApiError::bad_request("user is an administrator of the chat"));
    }
    let Some(Ok(Value::Object(permissions))) = params.json("permissions") else {
        return Err(ApiError::bad_request("can't parse permissions: object expected"));
    };
    let granted = permissions.into_iter().filter(|(_, granted)| *granted == Value::Bool(true));
    let until = params.int("until_date").unwrap_or(0);
    let until = if FOR_A_WHILE.contains(&until.saturating_sub(world.now())) { until } else { 0 };
    let restriction = Restriction { user, until, may: granted.map(|(name, _)| name).collect() };
    match members::restrict(world, chat, restriction) {
        Ok(_) | Err(Error::QueueFull) => done(out),
        Err(_) => Err(ApiError::bad_request("CHAT_ADMIN_REQUIRED")),
    }
}

pub(super) fn promote(world: &mut World, params: &Params, out: &mut Vec<u8>) -> Answer {
    let (chat, user) = member(world, params)?;
    let place = in_group(world, chat, "can't promote members in private chats")?;
    if place.admins.first() == Some(&user) {
        return Err(ApiError::bad_request("can't remove chat owner"));
    }
    if !place.members.contains(&user) {
        return Err(ApiError::bad_request("USER_NOT_PARTICIPANT"));
    }
    // Every right refused is what takes them all away.
    let gets_any = params.values.keys().any(|name| name.starts_with("can_") && params.flag(name));
    set(world, chat, user, if gets_any { Standing::Administrator } else { Standing::Member }, out)
}

pub(super) fn decide(world: &mut World, params: &Params, let_in: bool, out: &mut Vec<u8>) -> Answer {
    let (chat, user) = member(world, params)?;
    let bot = world.bot.id;
    members::decide(world, chat, user, bot, let_in).map_err(ApiError::bad_request)?;
    done(out)
}

pub(super) fn invite(world: &mut World, export: bool, params: &Params, out: &mut Vec<u8>) -> Answer {
    let chat = target(world, params)?;
    in_group(world, chat, "can't invite members to a private chat")?;
    let link = members::invite_link(world, chat, params.flag("creates_join_request"));
    render::json(if export { &link["invite_link"] } else { &link }, out);
    Ok(())
}

pub(super) fn leave(world: &mut World, params: &Params, out: &mut Vec<u8>) -> Answer {
    let chat = chat_named(world, params, "chat_id")?;
    if chat.kind == ChatKind::Private {
        return Err(ApiError::bad_request("chat member status can't be changed in private chats"));
    }
    let (id, bot) = (target(world, params)?, world.bot.id);
    drop(set_blocked(world, id, bot, true));
    done(out)
}

pub(super) fn set_title(world: &mut World, params: &Params, out: &mut Vec<u8>) -> Answer {
    let chat = target(world, params)?;
    in_group(world, chat, "can't change private chat title")?;
    let title = params.text("title").unwrap_or_default();
    if title.trim().is_empty() {
        return Err(ApiError::bad_request("chat title must be non-empty"));
    }
    let bot = world.bot.id;
    chats::rename(world, chat, bot, &title).map_err(|_| ApiError::bad_request("CHAT_TITLE_INVALID"))?;
    done(out)
}
