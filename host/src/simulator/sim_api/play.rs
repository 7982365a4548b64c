//! `POST /sim/do`: whatever people do, told apart by `what`. And the files that they send.
//!
//! Answers what came of it; see [`people::Done`]. What Telegram's own clients would not do is refused, with the reason.

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Sim;
use crate::simulator::error::Error;
use crate::simulator::hub::Hub;
use crate::simulator::params::Upload;
use crate::simulator::people::chats::{Person, Plan, TopicChange};
use crate::simulator::people::inline::Choice;
use crate::simulator::people::media::Parcel;
use crate::simulator::people::members::Standing;
use crate::simulator::people::payments::Order;
use crate::simulator::people::{self, chats, inline, media, members, payments, polls, reactions};

/// One thing that somebody does.
#[derive(Debug, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
enum Deed {
    Send(Parcel),
    Forward {
        chat: i64,
        user: i64,
        thread: Option<i64>,
        from_chat: i64,
        message_id: i64,
    },
    Delete {
        chat: i64,
        user: i64,
        message_id: i64,
    },
    Pin {
        chat: i64,
        user: i64,
        message_id: i64,
        pinned: bool,
    },
    React {
        chat: i64,
        user: i64,
        message_id: i64,
        emoji: Vec<String>,
    },
    Vote {
        chat: i64,
        user: i64,
        message_id: i64,
        options: Vec<usize>,
    },
    Pay {
        chat: i64,
        user: i64,
        message_id: i64,
        order: Order,
    },
    Choose(Choice),
    /// Somebody new, or another name.
    Person(Person),
    /// A new chat.
    Chat(Plan),
    Rename {
        chat: i64,
        user: i64,
        title: String,
    },
    Topic {
        chat: i64,
        user: i64,
        name: String,
    },
    ChangeTopic {
        chat: i64,
        user: i64,
        thread: i64,
        change: TopicChange,
    },
    /// What `of` becomes in a chat.
    Member {
        chat: i64,
        user: i64,
        of: i64,
        standing: Standing,
    },
    AskToJoin {
        chat: i64,
        user: i64,
        bio: Option<String>,
    },
    Decide {
        chat: i64,
        user: i64,
        of: i64,
        let_in: bool,
    },
}

pub(super) async fn deed(State(hub): Sim, Json(deed): Json<Value>) -> Result<Json<Value>, Response> {
    let read = serde_json::from_value::<Deed>(deed);
    let deed =
        read.map_err(|error| (StatusCode::BAD_REQUEST, Json(json!({ "error": error.to_string() }))).into_response())?;
    play(&hub, deed).map(Json).map_err(IntoResponse::into_response)
}

fn play(hub: &Hub, deed: Deed) -> Result<Value, Error> {
    let world = &mut hub.world();
    let done: people::Done = match deed {
        Deed::Send(parcel) => media::send(world, &parcel)?,
        Deed::Forward { chat, user, thread, from_chat, message_id } => {
            reactions::forward(world, chat, user, thread, (from_chat, message_id))?
        }
        Deed::Delete { chat, user, message_id } => reactions::delete(world, chat, user, message_id)?,
        Deed::Pin { chat, user, message_id, pinned } => reactions::pin(world, chat, user, message_id, pinned)?,
        Deed::React { chat, user, message_id, emoji } => reactions::react(world, chat, user, message_id, &emoji)?,
        Deed::Vote { chat, user, message_id, options } => polls::vote(world, chat, user, message_id, &options)?,
        Deed::Pay { chat, user, message_id, order } => payments::pay(world, chat, user, message_id, order)?,
        Deed::Choose(choice) => inline::choose(world, &choice)?,
        Deed::Person(person) => return Ok(json!({ "id": chats::set_person(world, person)? })),
        Deed::Chat(plan) => return Ok(json!({ "id": chats::make(world, plan)? })),
        Deed::Rename { chat, user, title } => chats::rename(world, chat, user, &title)?,
        Deed::Topic { chat, user, name } => return Ok(json!({ "id": chats::open_topic(world, chat, user, &name)? })),
        Deed::ChangeTopic { chat, user, thread, change } => {
            return Ok(json!({ "changed": chats::change_topic(world, chat, user, thread, &change)? }));
        }
        Deed::Member { chat, user, of, standing } => members::set(world, chat, of, user, standing, false)?,
        Deed::AskToJoin { chat, user, bio } => members::ask_to_join(world, chat, user, bio.as_deref())?,
        Deed::Decide { chat, user, of, let_in } => {
            members::decide(world, chat, of, user, let_in).map_err(Error::Cannot)?;
            return Ok(json!({}));
        }
    };
    Ok(json!(done))
}

#[derive(Deserialize)]
pub(super) struct Named {
    name: String,
    kind: String,
}

/// A file that somebody is going to send.
pub(super) async fn upload(
    State(hub): Sim,
    Query(Named { name, kind }): Query<Named>,
    headers: HeaderMap,
    bytes: Bytes,
) -> Result<Json<Value>, Error> {
    if bytes.is_empty() {
        return Err(Error::Cannot("the file is empty"));
    }
    let kinds = ["photo", "document", "video", "animation", "audio", "voice", "video_note"];
    if !kinds.contains(&kind.as_str()) {
        return Err(Error::Cannot("there is no such kind of file"));
    }
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let content_type = content_type.unwrap_or("application/octet-stream");
    let id = hub.world().files.add(&kind, &Upload::of(&name, content_type, bytes));
    Ok(Json(json!({ "file_id": id })))
}

/// Types that carry no script, and are shown as what they are.
const SHOWN: [&str; 14] = [
    "image/png",
    "image/jpeg",
    "image/gif",
    "image/webp",
    "audio/mpeg",
    "audio/ogg",
    "audio/wav",
    "audio/x-wav",
    "audio/webm",
    "audio/mp4",
    "audio/aac",
    "video/mp4",
    "video/webm",
    "video/ogg",
];

/// A file that somebody or the bot has sent, for the page.
pub(super) async fn file(State(hub): State<Arc<Hub>>, Path(id): Path<String>) -> Response {
    let file = hub.look().files.by_id(&id).cloned();
    let found = file.and_then(|mut file| Some((file.bytes.take()?, file)));
    let Some((bytes, file)) = found else { return StatusCode::NOT_FOUND.into_response() };
    let own = file.content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let known = SHOWN.iter().find(|shown| **shown == own).copied().or_else(|| sniffed(&bytes));
    let disposition = if known.is_some() { "inline" } else { "attachment" };
    let headers = [
        (CONTENT_TYPE, known.unwrap_or("application/octet-stream")),
        (CONTENT_DISPOSITION, disposition),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox"),
    ];
    (headers, bytes).into_response()
}

/// Bots often say nothing of a file's type.
fn sniffed(bytes: &[u8]) -> Option<&'static str> {
    Some(match bytes {
        [0x89, b'P', b'N', b'G', ..] => "image/png",
        [0xff, 0xd8, 0xff, ..] => "image/jpeg",
        [b'G', b'I', b'F', b'8', ..] => "image/gif",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "image/webp",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'A', b'V', b'E', ..] => "audio/wav",
        [b'O', b'g', b'g', b'S', ..] => "audio/ogg",
        [b'I', b'D', b'3', ..] => "audio/mpeg",
        [_, _, _, _, b'f', b't', b'y', b'p', ..] => "video/mp4",
        _ => return None,
    })
}
