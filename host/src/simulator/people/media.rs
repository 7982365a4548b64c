//! What people send that is no text: files that were uploaded before, places, contacts, dice, stickers.

use serde_json::{Map, Value, json};

use super::{Done, author, chat_of, post};
use crate::simulator::api;
use crate::simulator::entities;
use crate::simulator::error::Error;
use crate::simulator::model::{ChatKind, Message};
use crate::simulator::world::World;

/// Something to send. Several files are an album.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::simulator) struct Parcel {
    /// Where.
    pub(in crate::simulator) chat: i64,
    /// Who.
    pub(in crate::simulator) user: i64,
    /// In which topic.
    #[serde(default)]
    pub(in crate::simulator) thread: Option<i64>,
    /// In reply to which message.
    #[serde(default)]
    pub(in crate::simulator) reply_to: Option<i64>,
    /// `photo`, `document`, `video`, `animation`, `audio`, `voice`, `video_note`, `sticker`, `dice`, `location`, `venue`,
    /// `contact`, `web_app_data`.
    pub(in crate::simulator) kind: String,
    /// The `file_id`s of what was uploaded.
    #[serde(default)]
    pub(in crate::simulator) files: Vec<String>,
    /// Under the (first) file.
    #[serde(default)]
    pub(in crate::simulator) caption: String,
    /// The fields of a place, a contact, dice, a sticker or of what a mini app sends.
    #[serde(default)]
    pub(in crate::simulator) fields: Map<String, Value>,
}

const MOST_APP_DATA: usize = 4096;
const FILES: [&str; 7] = ["photo", "document", "video", "animation", "audio", "voice", "video_note"];

/// Sends it. The messages of an album are updates of their own; the answer tells of the last.
pub(in crate::simulator) fn send(world: &mut World, parcel: &Parcel) -> Result<Done, Error> {
    let contents =
        if FILES.contains(&parcel.kind.as_str()) { files(world, parcel)? } else { vec![without_file(world, parcel)?] };
    let album = (contents.len() > 1).then(|| world.queries.next_id());
    let mut done = None;
    for (at, content) in contents.into_iter().enumerate() {
        let chat = chat_of(world, parcel.chat, parcel.user)?;
        let mut message = Message::new(author(chat, parcel.user, parcel.thread)?);
        message.thread = parcel.thread.filter(|id| chat.topics.iter().any(|topic| topic.id == *id));
        message.reply_to = parcel.reply_to.filter(|&id| chat.message(id).is_some());
        message.content = Some(Box::new(content));
        message.extra = album.as_ref().map(|id| Box::new(json!({ "media_group_id": id })));
        let caption = parcel.caption.trim();
        if at == 0 && !caption.is_empty() {
            (message.text, message.entities) = (Some(caption.to_owned()), entities::detect(caption));
        }
        done = Some(post(world, parcel.chat, parcel.user, message)?);
    }
    done.ok_or(Error::Cannot("there is no file to send"))
}

fn files(world: &World, parcel: &Parcel) -> Result<Vec<Value>, Error> {
    if parcel.files.len() > 10 {
        return Err(Error::Cannot("an album has at most ten files"));
    }
    let content = |id: &String| {
        let file = world.files.by_id(id).ok_or(Error::Cannot("there is no such file any more; upload it again"))?;
        Ok(json!({ parcel.kind.as_str(): api::media_fields(&parcel.kind, file) }))
    };
    parcel.files.iter().map(content).collect()
}

fn without_file(world: &mut World, parcel: &Parcel) -> Result<Value, Error> {
    let number = |name: &str| parcel.fields.get(name).and_then(Value::as_f64);
    let text =
        |name: &str| parcel.fields.get(name).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
    Ok(match parcel.kind.as_str() {
        "dice" => {
            let emoji = text("emoji").unwrap_or("🎲");
            let sides = api::dice_sides(emoji).ok_or(Error::Cannot("there is no such dice"))?;
            json!({ "dice": { "emoji": emoji, "value": rand::random_range(1..=sides) } })
        }
        "location" | "venue" => {
            let place = number("latitude").zip(number("longitude"));
            let (latitude, longitude) = place.ok_or(Error::Cannot("a place needs its latitude and longitude"))?;
            if !(-90.0..=90.0).contains(&latitude) || !(-180.0..=180.0).contains(&longitude) {
                return Err(Error::Cannot("there is no such place on Earth"));
            }
            let location = json!({ "latitude": latitude, "longitude": longitude });
            if parcel.kind == "location" {
                return Ok(json!({ "location": location }));
            }
            let (title, address) = (text("title").unwrap_or("Here"), text("address").unwrap_or_default());
            json!({ "venue": { "location": location, "title": title, "address": address }, "location": location })
        }
        "contact" => {
            let of = parcel.fields.get("user_id").and_then(Value::as_i64).unwrap_or(parcel.user);
            let user = world.users.get(&of);
            let name = text("first_name").map(str::to_owned).or_else(|| user.map(|user| user.first_name.clone()));
            let phone = text("phone_number").map_or_else(|| phone_of(of), str::to_owned);
            let mut contact = json!({ "phone_number": phone, "first_name": name.unwrap_or_default() });
            if text("phone_number").is_none() {
                contact["user_id"] = json!(of);
            }
            json!({ "contact": contact })
        }
        // What a mini app sends that a keyboard has opened; only chats with the bot have such keyboards.
        "web_app_data" => {
            let data = parcel.fields.get("data").and_then(Value::as_str).unwrap_or_default();
            let button = text("button_text").unwrap_or_default();
            let chat = chat_of(world, parcel.chat, parcel.user)?;
            let opens = |button: &Value, label: &str| button["text"] == label && button.get("web_app").is_some();
            let has = |markup: &Value, label: &str| {
                let rows = markup["keyboard"].as_array().into_iter().flatten().filter_map(Value::as_array);
                rows.flatten().any(|button| opens(button, label))
            };
            let mut markups = chat.messages.iter().filter_map(|message| message.markup.as_deref());
            if chat.kind != ChatKind::Private || !markups.any(|markup| has(markup, button)) {
                return Err(Error::Cannot("no keyboard in this chat has such a button that opens a mini app"));
            }
            if data.is_empty() || data.len() > MOST_APP_DATA {
                return Err(Error::Cannot("what a mini app sends has 1 to 4096 bytes"));
            }
            json!({ "web_app_data": { "data": data, "button_text": button } })
        }
        "sticker" => {
            let emoji = text("emoji").unwrap_or("👍").to_owned();
            let id = world.files.add("sticker", &sticker());
            let file = world.files.by_id(&id).ok_or(Error::Cannot("the sticker is gone"))?;
            let mut sticker = api::media_fields("sticker", file);
            sticker["emoji"] = json!(emoji);
            json!({ "sticker": sticker })
        }
        _ => return Err(Error::Cannot("there is no such kind of message")),
    })
}

/// A number that can belong to nobody.
pub(in crate::simulator) fn phone_of(user: i64) -> String {
    format!("+999{:08}", user.unsigned_abs() % 100_000_000)
}

/// The smallest picture there is: what is shown is the emoji.
fn sticker() -> crate::simulator::params::Upload {
    const WEBP: &[u8] = b"RIFF\x1a\0\0\0WEBPVP8L\x0d\0\0\0\x2f\0\0\0\x10\x07\x10\x11\x11\x88\x88\xfe\x07\0";
    crate::simulator::params::Upload::of("sticker.webp", "image/webp", bytes::Bytes::from_static(WEBP))
}
