//! Photos, documents and their like: uploaded, by `file_id` or by address; and their download.

use serde_json::{Value, json};

use super::messages::{caption, draft};
use super::{Answer, ApiError, list, target};
use crate::simulator::files::{self, DOWNLOAD_LIMIT, StoredFile};
use crate::simulator::model::{Message, Sender};
use crate::simulator::params::Params;
use crate::simulator::render;
use crate::simulator::world::World;

pub(super) fn send(world: &mut World, kind: &str, params: &Params, out: &mut Vec<u8>) -> Answer {
    let kind = if kind == "videonote" { "video_note" } else { kind };
    let chat = target(world, params)?;
    let mut message = draft(world, chat, params)?;
    fill(world, &mut message, kind, &params.text(kind).unwrap_or_default(), params)?;
    if !matches!(kind, "sticker" | "video_note") {
        set_caption(&mut message, params)?;
    }
    world.deliver(chat, message, out);
    Ok(())
}

pub(super) fn send_group(world: &mut World, params: &Params, out: &mut Vec<u8>) -> Answer {
    let chat = target(world, params)?;
    let items = list(params, "media")?.unwrap_or_default();
    if !(2..=10).contains(&items.len()) {
        return Err(ApiError::bad_request("group must contain 2-10 media"));
    }
    let mut messages = Vec::new();
    let group = world.queries.next_id();
    for item in &items {
        let kind = item["type"].as_str().unwrap_or_default();
        if !matches!(kind, "photo" | "video" | "audio" | "document") {
            return Err(ApiError::bad_request("can't parse InputMedia: type must be photo, video, audio or document"));
        }
        let mut message = draft(world, chat, params)?;
        message.extra = Some(Box::new(json!({ "media_group_id": group })));
        fill(world, &mut message, kind, item["media"].as_str().unwrap_or_default(), params)?;
        let own = item.as_object().cloned().unwrap_or_default();
        set_caption(&mut message, &Params { values: own.into(), uploads: Vec::new() })?;
        messages.push(message);
    }
    out.push(b'[');
    for (at, message) in messages.into_iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        world.deliver(chat, message, out);
    }
    out.push(b']');
    Ok(())
}

pub(super) fn set_caption(message: &mut Message, params: &Params) -> Result<(), ApiError> {
    let formatted = caption(params)?;
    if !formatted.text.is_empty() {
        message.text = Some(formatted.text);
        message.entities = formatted.entities;
    }
    Ok(())
}

/// Puts the media that `source` names into the message: an upload (`attach://field`), a `file_id` or an address.
pub(super) fn fill(
    world: &mut World,
    message: &mut Message,
    kind: &str,
    source: &str,
    params: &Params,
) -> Result<(), ApiError> {
    let field = source.strip_prefix("attach://").unwrap_or(kind);
    let address;
    let file = if let Some(upload) = params.upload(field) {
        if upload.size == 0 {
            return Err(ApiError::bad_request("file must be non-empty"));
        }
        let id = world.files.add(kind, upload);
        world.files.by_id(&id)
    } else if let Some(file) = world.files.by_id(source) {
        Some(file)
    } else if source.starts_with("http://") || source.starts_with("https://") {
        // Nothing is fetched from the network: the address stands for the file.
        address = StoredFile::at(source);
        Some(&address)
    } else if source.is_empty() {
        return Err(ApiError::bad_request(&format!("there is no {kind} in the request")));
    } else {
        return Err(ApiError::bad_request("wrong file identifier/HTTP URL specified"));
    };
    let file = file.ok_or_else(|| ApiError::bad_request("wrong file identifier/HTTP URL specified"))?;
    message.content = Some(Box::new(json!({ kind: fields(kind, file) })));
    Ok(())
}

/// What a message of this kind says of a file.
pub(in crate::simulator) fn fields(kind: &str, file: &StoredFile) -> Value {
    let StoredFile { id, size, name, content_type, .. } = file;
    let mut file = json!({ "file_id": id, "file_unique_id": unique(id), "file_size": size });
    match kind {
        "photo" => file = json!([with(file, json!({ "width": 800, "height": 600 }))]),
        "document" => file = with(file, json!({ "file_name": name, "mime_type": content_type })),
        "video" | "animation" => {
            let more = json!({
                "width": 640, "height": 480, "duration": 1, "mime_type": content_type, "file_name": name
            });
            file = with(file, more);
        }
        "audio" => {
            file = with(file, json!({ "duration": 1, "mime_type": content_type, "file_name": name }));
        }
        "voice" => file = with(file, json!({ "duration": 1, "mime_type": content_type })),
        "video_note" => file = with(file, json!({ "length": 240, "duration": 1 })),
        _ => {
            let more = json!({
                "type": "regular", "width": 512, "height": 512, "is_animated": false, "is_video": false
            });
            file = with(file, more);
        }
    }
    file
}

fn with(mut object: Value, more: Value) -> Value {
    if let (Some(fields), Value::Object(more)) = (object.as_object_mut(), more) {
        fields.extend(more);
    }
    object
}

/// Short, the same for the same file, and useless for sending, as Telegram's are.
fn unique(id: &str) -> String {
    let hash = id
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    format!("{hash:016x}")
}

/// What `editMessageMedia` puts in a message's place.
pub(super) fn replacement(world: &mut World, params: &Params) -> Result<Message, ApiError> {
    let mut message = Message::new(Sender::Bot);
    let item = match params.json("media") {
        Some(Ok(item @ Value::Object(_))) => item,
        _ => return Err(ApiError::bad_request("can't parse InputMedia JSON object")),
    };
    let kind = item["type"].as_str().unwrap_or_default();
    if !matches!(kind, "photo" | "video" | "audio" | "document" | "animation") {
        return Err(ApiError::bad_request("can't parse InputMedia: type is wrong"));
    }
    fill(world, &mut message, kind, item["media"].as_str().unwrap_or_default(), params)?;
    let own = item.as_object().cloned().unwrap_or_default();
    set_caption(&mut message, &Params { values: own.into(), uploads: Vec::new() })?;
    Ok(message)
}

pub(super) fn get_file(world: &mut World, params: &Params, out: &mut Vec<u8>) -> Answer {
    let id = params.text("file_id").unwrap_or_default();
    let file = world.files.by_id(&id);
    let file = file.ok_or_else(|| ApiError::bad_request("wrong file_id or the file is temporarily unavailable"))?;
    let unique_id = unique(&file.id);
    let path = match &world.limits.local_files {
        Some(folder) => {
            let written = files::local(folder, world.bot.id, file);
            written
                .map_err(|error| ApiError::new(500, &format!("Internal Server Error: {error}")))?
                .display()
                .to_string()
        }
        None if file.size > DOWNLOAD_LIMIT => return Err(ApiError::bad_request("file is too big")),
        None => file.path.clone(),
    };
    let json = json!({ "file_id": file.id, "file_unique_id": unique_id, "file_size": file.size, "file_path": path });
    render::json(&json, out);
    Ok(())
}
