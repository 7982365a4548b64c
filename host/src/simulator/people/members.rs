//! Who is in a chat, and as what: joining, leaving, being removed, made an administrator, asking to be let in.

use serde_json::{Value, json};

use super::Done;
use super::payments::user_json;
use super::reactions::{chat_json, note};
use crate::simulator::api::{PERMISSIONS, member_json};
use crate::simulator::error::Error;
use crate::simulator::model::{ChatKind, Restriction};
use crate::simulator::world::World;

/// What somebody becomes in a chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(in crate::simulator) enum Standing {
    /// In it.
    Member,
    /// In it, with rights.
    Administrator,
    /// Not in it.
    Left,
    /// Not in it, and not to come back.
    Kicked,
}

/// Makes `user` be that in a chat, by `by`'s hand. The bot hears of it where it has asked to, and of the notes about
/// coming and going always.
pub(in crate::simulator) fn set(
    world: &mut World,
    chat_id: i64,
    user: i64,
    by: i64,
    standing: Standing,
    through_request: bool,
) -> Result<Done, Error> {
    let is_known = world.users.contains_key(&user);
    let chat = world.chats.get(&chat_id).ok_or(Error::UnknownChat(chat_id))?;
    if chat.kind == ChatKind::Private {
        return Err(Error::Cannot("a private chat has always the same two in it"));
    }
    if !is_known {
        return Err(Error::UnknownUser(user));
    }
    let is_owner = chat.admins.first() == Some(&user);
    if is_owner && matches!(standing, Standing::Member | Standing::Kicked) {
        return Err(Error::Cannot("the owner of a chat can only leave it"));
    }
    if standing == Standing::Administrator && chat.admins.contains(&user) {
        return Ok(Done { update_id: None, message_id: None, query_id: None });
    }
    let old = member_json(world, chat_id, user);
    let chat = world.chats.get_mut(&chat_id).expect("looked up above");
    let was_in = chat.members.contains(&user);
    let is_in = matches!(standing, Standing::Member | Standing::Administrator);
    if !is_in && was_in && chat.members.len() == 1 {
        return Err(Error::Cannot("somebody has to stay; the simulator has no use for an empty chat"));
    }
    for list in [&mut chat.members, &mut chat.admins, &mut chat.banned, &mut chat.requests] {
        list.retain(|&known| known != user);
    }
    if !is_in {
        chat.restricted.retain(|known| known.user != user);
    }
    if is_in {
        chat.members.push(user);
    }
    match standing {
        Standing::Administrator => chat.admins.push(user),
        Standing::Kicked => chat.banned.push(user),
        Standing::Member | Standing::Left => {}
    }
    let kind = chat.kind;
    let new = member_json(world, chat_id, user);
    world.emit(&json!({ "event": "chats" }));
    if old == new {
        return Ok(Done { update_id: None, message_id: None, query_id: None });
    }
    let mut update = json!({
        "chat": chat_json(world, chat_id), "from": user_json(world, by), "date": world.now(),
        "old_chat_member": old, "new_chat_member": new,
    });
    if through_request {
        update["via_join_request"] = json!(true);
    }
    let done = Done::new(world.enqueue("chat_member", update.to_string().as_bytes()))?;
    if kind == ChatKind::Channel || was_in == is_in {
        return Ok(done);
    }
    let person = user_json(world, user);
    let what = if is_in {
        json!({ "new_chat_members": [person], "new_chat_member": person, "new_chat_participant": person })
    } else {
        json!({ "left_chat_member": person, "left_chat_participant": person })
    };
    let told = note(world, chat_id, if through_request { user } else { by }, None, what)?;
    Ok(Done { update_id: done.update_id.or(told.update_id), ..told })
}

/// Takes from somebody what they may do in a chat, or gives it back: the restriction that is on them goes, and
/// this one takes its place where it leaves anything forbidden.
pub(in crate::simulator) fn restrict(world: &mut World, chat_id: i64, restriction: Restriction) -> Result<Done, Error> {
    let (user, bot) = (restriction.user, world.bot.id);
    let old = member_json(world, chat_id, user);
    let chat = world.chats.get_mut(&chat_id).ok_or(Error::UnknownChat(chat_id))?;
    chat.restricted.retain(|known| known.user != user);
    if PERMISSIONS.iter().any(|permission| !restriction.may.iter().any(|name| name == permission)) {
        chat.restricted.push(restriction);
    }
    let new = member_json(world, chat_id, user);
    if old == new {
        return Ok(Done { update_id: None, message_id: None, query_id: None });
    }
    world.emit(&json!({ "event": "chats" }));
    let update = json!({
        "chat": chat_json(world, chat_id), "from": user_json(world, bot), "date": world.now(),
        "old_chat_member": old, "new_chat_member": new,
    });
    Done::new(world.enqueue("chat_member", update.to_string().as_bytes()))
}

/// Asks to be let in.
pub(in crate::simulator) fn ask_to_join(
    world: &mut World,
    chat_id: i64,
    user: i64,
    bio: Option<&str>,
) -> Result<Done, Error> {
    if !world.users.contains_key(&user) {
        return Err(Error::UnknownUser(user));
    }
    let chat = world.chats.get_mut(&chat_id).ok_or(Error::UnknownChat(chat_id))?;
    if matches!(chat.kind, ChatKind::Private | ChatKind::Group) {
        return Err(Error::Cannot("one asks to join supergroups and channels"));
    }
    if chat.members.contains(&user) {
        return Err(Error::Cannot("they are in the chat already"));
    }
    if chat.banned.contains(&user) {
        return Err(Error::Cannot("they were removed from the chat, and may not come back"));
    }
    if chat.requests.contains(&user) {
        return Err(Error::Cannot("they have asked already"));
    }
    chat.requests.push(user);
    world.emit(&json!({ "event": "chats" }));
    let mut update = json!({
        "chat": chat_json(world, chat_id), "from": user_json(world, user), "user_chat_id": user, "date": world.now(),
        "invite_link": invite_link(world, chat_id, true),
    });
    if let Some(bio) = bio.filter(|bio| !bio.is_empty()) {
        update["bio"] = json!(bio);
    }
    Done::new(world.enqueue("chat_join_request", update.to_string().as_bytes()))
}

/// Lets somebody in who has asked, or not; the words of the refusal are Telegram's.
pub(in crate::simulator) fn decide(
    world: &mut World,
    chat_id: i64,
    user: i64,
    by: i64,
    let_in: bool,
) -> Result<(), &'static str> {
    let chat = world.chats.get_mut(&chat_id).ok_or("chat not found")?;
    if chat.members.contains(&user) {
        return Err("USER_ALREADY_PARTICIPANT");
    }
    if !chat.requests.contains(&user) {
        return Err("HIDE_REQUESTER_MISSING");
    }
    chat.requests.retain(|&known| known != user);
    world.emit(&json!({ "event": "chats" }));
    if let_in {
        set(world, chat_id, user, by, Standing::Member, true).map_err(|_| "CHAT_ADMIN_REQUIRED")?;
    }
    Ok(())
}

/// A `ChatInviteLink` of the bot's.
pub(in crate::simulator) fn invite_link(world: &World, chat: i64, asks: bool) -> Value {
    json!({
        "invite_link": format!("https://t.me/+simulated{}", chat.unsigned_abs()), "creator": user_json(world, world.bot.id),
        "creates_join_request": asks, "is_primary": false, "is_revoked": false,
    })
}
