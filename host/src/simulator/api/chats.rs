//! Questions about chats and their members.

use serde_json::Value;

use super::{Answer, ApiError, chat_named};
use crate::simulator::model::{Chat, ChatKind};
use crate::simulator::params::Params;
use crate::simulator::render;
use crate::simulator::world::World;

pub(super) fn get(world: &mut World, params: &Params, out: &mut Vec<u8>) -> Answer {
    let chat = chat_named(world, params, "chat_id")?;
    render::chat_open(world, chat, out);
    out.extend_from_slice(
        b",\"accent_color_id\":0,\"max_reaction_count\":11,\"accepted_gift_types\":{\"unlimited_gifts\":false,\
        \"limited_gifts\":false,\"unique_gifts\":false,\"premium_subscription\":false}",
    );
    if let Some(pinned) = chat.pinned.filter(|&id| chat.message(id).is_some()) {
        out.extend_from_slice(b",\"pinned_message\":");
        world.write_message(chat.id, pinned, out);
    }
    out.push(b'}');
    Ok(())
}

pub(super) fn member(world: &mut World, params: &Params, out: &mut Vec<u8>) -> Answer {
    let chat = chat_named(world, params, "chat_id")?;
    let user = params.int("user_id").ok_or_else(|| ApiError::bad_request("invalid user_id specified"))?;
    if user != world.bot.id && !world.users.contains_key(&user) {
        return Err(ApiError::bad_request("member not found"));
    }
    write_member(world, chat, user, out);
    Ok(())
}

pub(super) fn administrators(world: &mut World, params: &Params, out: &mut Vec<u8>) -> Answer {
    let chat = chat_named(world, params, "chat_id")?;
    if chat.kind == ChatKind::Private {
        return Err(ApiError::bad_request("there are no administrators in the private chat"));
    }
    out.push(b'[');
    for &user in &chat.admins {
        write_member(world, chat, user, out);
        out.push(b',');
    }
    write_member(world, chat, world.bot.id, out);
    out.push(b']');
    Ok(())
}

pub(super) fn member_count(world: &mut World, params: &Params, out: &mut Vec<u8>) -> Answer {
    let chat = chat_named(world, params, "chat_id")?;
    render::json(&(chat.members.len() + 1), out);
    Ok(())
}

/// A `ChatMember`.
pub(in crate::simulator) fn member_json(world: &World, chat: i64, user: i64) -> Value {
    let mut json = Vec::new();
    write_member(world, &world.chats[&chat], user, &mut json);
    serde_json::from_slice(&json).expect("what is written is JSON")
}

/// The first administrator owns the chat; the bot administers every group that it is in.
fn write_member(world: &World, chat: &Chat, user: i64, out: &mut Vec<u8>) {
    let is_bot = user == world.bot.id;
    let restriction = chat.restriction(user, world.now());
    let status = match chat.admins.first() {
        Some(&owner) if owner == user => "creator",
        _ if is_bot && chat.blocked => "kicked",
        _ if chat.banned.contains(&user) => "kicked",
        _ if chat.admins.contains(&user) || (is_bot && chat.kind != ChatKind::Private) => "administrator",
        _ if restriction.is_some() => "restricted",
        _ if chat.members.contains(&user) || is_bot => "member",
        _ => "left",
    };
    out.extend_from_slice(format!("{{\"status\":\"{status}\",\"user\":").as_bytes());
    render::user_id(world, user, out);
    match status {
        "kicked" => out.extend_from_slice(b",\"until_date\":0"),
        "restricted" => {
            let is_member = chat.members.contains(&user);
            let until = restriction.map_or(0, |known| known.until);
            out.extend_from_slice(format!(",\"is_member\":{is_member},\"until_date\":{until}").as_bytes());
            for permission in PERMISSIONS {
                let may = restriction.is_some_and(|known| known.may.iter().any(|name| name == permission));
                out.extend_from_slice(format!(",\"{permission}\":{may}").as_bytes());
            }
        }
        "creator" => out.extend_from_slice(b",\"is_anonymous\":false"),
        "administrator" => {
            out.extend_from_slice(b",\"can_be_edited\":false");
            for right in RIGHTS {
                let value = Value::Bool(right != "is_anonymous");
                out.extend_from_slice(format!(",\"{right}\":{value}").as_bytes());
            }
        }
        _ => {}
    }
    out.push(b'}');
}

/// What a member may do unless it is taken away.
pub(in crate::simulator) const PERMISSIONS: [&str; 16] = [
    "can_send_messages",
    "can_send_audios",
    "can_send_documents",
    "can_send_photos",
    "can_send_videos",
    "can_send_video_notes",
    "can_send_voice_notes",
    "can_send_polls",
    "can_send_other_messages",
    "can_add_web_page_previews",
    "can_react_to_messages",
    "can_edit_tag",
    "can_change_info",
    "can_invite_users",
    "can_pin_messages",
    "can_manage_topics",
];

const RIGHTS: [&str; 12] = [
    "is_anonymous",
    "can_manage_chat",
    "can_delete_messages",
    "can_manage_video_chats",
    "can_restrict_members",
    "can_promote_members",
    "can_change_info",
    "can_invite_users",
    "can_post_stories",
    "can_edit_stories",
    "can_delete_stories",
    "can_pin_messages",
];
