//! `/sim/…`: what tests do through [`super::Simulator`], over HTTP, for other processes and for the page.
//!
//! JSON in, JSON out. What can't be done is a 400 with `{"error": …}`. `http.rs` has refused foreign pages before.
//!
//! - people: `POST /sim/do` (see `sim_api/play.rs`), `say` (see [`Say`]), `press` `{chat, user, message_id?, button}`, `edit` `{chat, user,
//!   message_id, text}`, `inline` `{user, query}`, `block` `{chat, user, blocked}`, `migrate` `{group, notes?}`, `update` (any update)
//! - seen: `GET /sim/chats`, `messages?chat=…&after=…&limit=…`, `commands?chat=…&user=…`, `query?id=…`, `file/{id}`,
//!   `activity?updates=…&runs=…&calls=…`, `clock`, `calls?after=…`, `counters`, `sequence?chat=…`, `state`, `events` (server-sent)
//! - set: `POST /sim/users`, `chats`, `faults` (one is added, a list replaces all; `DELETE` ends them), `load`
//!   `{on, sequences?}`, `push` (see [`Bulk`]), `clock` `{advance_seconds}` or
//!   `{to_next_timer}`, `upload?kind=…&name=…` (a file to send)

mod inside;
mod play;

use std::sync::Arc;

use axum::extract::{DefaultBodyLimit, Query, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};

use super::api::ApiError;
use super::bulk::{self, Bulk};
use super::error::Error;
use super::faults::Fault;
use super::files::DOWNLOAD_LIMIT;
use super::hub::Hub;
use super::model::{Chat, ChatKind, User};
use super::people::{self, MoveNote, Say};
use super::render::{self, View};
use super::world::{LoadMode, World};
use super::{events, http, page};

type Sim = State<Arc<Hub>>;

pub(super) fn router(hub: Arc<Hub>) -> Router {
    let page = page::FILES.into_iter().fold(Router::new(), |router, (path, content_type, content)| {
        router.route(path, get(async move || page::file(content_type, content)))
    });
    page.route("/sim/events", get(events::stream))
        .route("/sim/chats", get(chats).post(add_chat))
        .route("/sim/users", post(add_user))
        .route("/sim/messages", get(messages))
        .route("/sim/commands", get(commands))
        .route("/sim/file/{id}", get(play::file))
        .route("/sim/do", post(play::deed))
        .route("/sim/upload", post(play::upload).layer(DefaultBodyLimit::max(DOWNLOAD_LIMIT as usize)))
        .route("/sim/activity", get(inside::activity))
        .route("/sim/say", post(say))
        .route("/sim/press", post(press))
        .route("/sim/edit", post(edit))
        .route("/sim/inline", post(inline))
        .route("/sim/block", post(block))
        .route("/sim/migrate", post(migrate))
        .route("/sim/update", post(update))
        .route("/sim/query", get(query))
        .route("/sim/calls", get(calls))
        .route("/sim/state", get(state))
        .route("/sim/faults", get(faults).post(add_faults).delete(clear_faults))
        .route("/sim/load", post(load))
        .route("/sim/push", post(push))
        .route("/sim/counters", get(counters))
        .route("/sim/sequence", get(sequence))
        .route("/sim/clock", get(inside::clock).post(inside::advance))
        .fallback(async || http::refusal(&ApiError::new(404, "Not Found")))
        .with_state(hub)
}

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        (StatusCode::BAD_REQUEST, Json(json!({ "error": self.to_string() }))).into_response()
    }
}

fn json_bytes(bytes: Vec<u8>) -> Response {
    ([(CONTENT_TYPE, "application/json")], bytes).into_response()
}

#[derive(Deserialize)]
struct InChat {
    chat: i64,
    #[serde(default)]
    user: i64,
    #[serde(default)]
    after: i64,
    #[serde(default)]
    limit: Option<usize>,
}

/// The bot, everybody, and the chats with their newest message; private ones first.
async fn chats(State(hub): Sim) -> Response {
    let world = hub.look();
    let mut out = b"{\"bot\":".to_vec();
    render::user_id(&world, world.bot.id, &mut out);
    out.extend_from_slice(b",\"users\":");
    // The people of load tests would fill the page.
    let shown = |id: &i64| world.users.len() < 200 || *id < super::bulk::FIRST_CHAT;
    render::json(&world.users.values().filter(|user| shown(&user.id)).collect::<Vec<_>>(), &mut out);
    out.extend_from_slice(b",\"chats\":[");
    let mut chats: Vec<&Chat> = world.chats.values().filter(|chat| shown(&chat.id)).collect();
    chats.sort_by_key(|chat| (chat.kind != ChatKind::Private, chat.id.abs()));
    for (at, chat) in chats.into_iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write_chat(&world, chat, &mut out);
    }
    out.extend_from_slice(b"]}");
    json_bytes(out)
}

fn write_chat(world: &World, chat: &Chat, out: &mut Vec<u8>) {
    render::chat_open(world, chat, out);
    for (name, value) in [
        ("members", json!(chat.members)),
        ("admins", json!(chat.admins)),
        ("topics", json!(chat.topics)),
        ("blocked", json!(chat.blocked)),
        ("pinned", json!(chat.pinned)),
        ("delivered", json!(chat.delivered)),
        ("migrated_to", json!(chat.migrated_to)),
        ("requests", json!(chat.requests)),
        ("menu_button", json!(chat.menu_button.as_ref().or(world.menu_button.as_ref()))),
    ] {
        out.extend_from_slice(format!(",\"{name}\":{value}").as_bytes());
    }
    if let Some(message) = chat.messages.back() {
        out.extend_from_slice(b",\"last\":");
        render::message(world, chat, message, View::Page, out);
    }
    out.push(b'}');
}

/// The messages after an id; with `limit`, the newest of them.
async fn messages(State(hub): Sim, Query(wanted): Query<InChat>) -> Result<Response, Error> {
    let world = hub.look();
    let chat = world.chats.get(&wanted.chat).ok_or(Error::UnknownChat(wanted.chat))?;
    let start = chat.messages.partition_point(|message| message.id <= wanted.after);
    let start = start.max(chat.messages.len().saturating_sub(wanted.limit.unwrap_or(usize::MAX)));
    let mut out = b"{\"messages\":[".to_vec();
    for (at, message) in chat.messages.range(start..).enumerate() {
        if at > 0 {
            out.push(b',');
        }
        render::message(&world, chat, message, View::Page, &mut out);
    }
    out.extend_from_slice(b"]}");
    Ok(json_bytes(out))
}

/// The commands that a user sees in a chat: the narrowest scope that has some, in their language or in any.
async fn commands(State(hub): Sim, Query(at): Query<InChat>) -> Result<Json<Value>, Error> {
    let world = hub.look();
    let chat = world.chats.get(&at.chat).ok_or(Error::UnknownChat(at.chat))?;
    let language = world.users.get(&at.user).and_then(|user| user.language_code.as_deref()).unwrap_or_default();
    let language = language.split(['-', '_']).next().unwrap_or_default();
    let private = chat.kind == ChatKind::Private;
    let all = if private { "all_private_chats" } else { "all_group_chats" };
    let mut scopes =
        vec![json!({ "type": "chat", "chat_id": at.chat }), json!({ "type": all }), json!({ "type": "default" })];
    if !private {
        scopes.insert(0, json!({ "type": "chat_member", "chat_id": at.chat, "user_id": at.user }));
        if chat.admins.contains(&at.user) {
            scopes.insert(1, json!({ "type": "chat_administrators", "chat_id": at.chat }));
            scopes.insert(3, json!({ "type": "all_chat_administrators" }));
        }
    }
    let found = scopes.iter().flat_map(|scope| [(scope, language), (scope, "")]).find_map(|(scope, language)| {
        world.commands.iter().find(|list| list.scope == *scope && list.language == language)
    });
    Ok(Json(found.map_or(json!([]), |list| list.commands.clone())))
}

async fn say(State(hub): Sim, Json(request): Json<Say>) -> Result<Json<people::Done>, Error> {
    people::say(&mut hub.world(), &request).map(Json)
}

#[derive(Deserialize)]
struct Press {
    chat: i64,
    user: i64,
    #[serde(default)]
    message_id: Option<i64>,
    button: String,
}

async fn press(State(hub): Sim, Json(press): Json<Press>) -> Result<Json<people::Done>, Error> {
    people::press(&mut hub.world(), press.chat, press.user, press.message_id, &press.button).map(Json)
}

#[derive(Deserialize)]
struct Edit {
    chat: i64,
    user: i64,
    message_id: i64,
    text: String,
}

async fn edit(State(hub): Sim, Json(edit): Json<Edit>) -> Result<Json<people::Done>, Error> {
    people::edit(&mut hub.world(), edit.chat, edit.user, edit.message_id, &edit.text).map(Json)
}

#[derive(Deserialize)]
struct Inline {
    user: i64,
    query: String,
    #[serde(default)]
    chat: Option<i64>,
}

async fn inline(State(hub): Sim, Json(inline): Json<Inline>) -> Result<Json<people::Done>, Error> {
    people::inline::ask(&mut hub.world(), inline.user, &inline.query, inline.chat).map(Json)
}

#[derive(Deserialize)]
struct Block {
    chat: i64,
    user: i64,
    blocked: bool,
}

async fn block(State(hub): Sim, Json(block): Json<Block>) -> Result<Json<people::Done>, Error> {
    people::set_blocked(&mut hub.world(), block.chat, block.user, block.blocked).map(Json)
}

/// Without `notes`, a word in the group and then one in the supergroup: `["to", "from"]`.
#[derive(Deserialize)]
struct Migrate {
    group: i64,
    #[serde(default)]
    notes: Option<Vec<MoveNote>>,
}

async fn migrate(State(hub): Sim, Json(migrate): Json<Migrate>) -> Result<Json<Value>, Error> {
    let notes = migrate.notes.unwrap_or_else(|| vec![MoveNote::To, MoveNote::From]);
    let to = people::upgrade(&mut hub.world(), migrate.group, &notes)?;
    Ok(Json(json!({ "to": to })))
}

async fn update(State(hub): Sim, Json(update): Json<Value>) -> Result<Json<people::Done>, Error> {
    people::raw_update(&mut hub.world(), update).map(Json)
}

#[derive(Deserialize)]
struct QueryId {
    id: String,
}

async fn query(State(hub): Sim, Query(wanted): Query<QueryId>) -> Response {
    match hub.look().queries.get(&wanted.id) {
        Some(query) => Json(query).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn add_user(State(hub): Sim, Json(user): Json<User>) -> Json<Value> {
    let mut world = hub.world();
    world.add_user(user);
    world.emit(&json!({ "event": "chats" }));
    Json(json!({}))
}

#[derive(Deserialize)]
struct NewChat {
    id: i64,
    #[serde(rename = "type")]
    kind: ChatKind,
    #[serde(default)]
    title: String,
    members: Vec<i64>,
}

async fn add_chat(State(hub): Sim, Json(new): Json<NewChat>) -> Json<Value> {
    let mut world = hub.world();
    world.chats.insert(new.id, Chat::new(new.id, new.kind, &new.title, &new.members));
    world.emit(&json!({ "event": "chats" }));
    Json(json!({}))
}

#[derive(Deserialize)]
struct After {
    #[serde(default)]
    after: u64,
}

async fn calls(State(hub): Sim, Query(wanted): Query<After>) -> Json<Value> {
    let world = hub.look();
    Json(json!({ "calls": world.calls.since(wanted.after), "counts": world.calls.counts() }))
}

async fn state(State(hub): Sim) -> Json<Value> {
    let world = hub.look();
    Json(json!({
        "waiting_updates": world.queue.len(), "dropped_updates": world.queue.dropped,
        "next_update_id": world.queue.next_id(), "load_mode": world.load.is_some(), "now": world.now(),
    }))
}

async fn faults(State(hub): Sim) -> Json<Value> {
    Json(json!(hub.fault_rules()))
}

/// Adds one rule, or sets a list of them in place of all.
async fn add_faults(State(hub): Sim, Json(request): Json<Value>) -> Response {
    let outcome = if request.is_array() {
        serde_json::from_value::<Vec<Fault>>(request).map(|faults| hub.set_faults(faults))
    } else {
        serde_json::from_value::<Fault>(request).map(|fault| hub.add_fault(fault))
    };
    match outcome {
        Ok(()) => Json(json!(hub.fault_rules())).into_response(),
        Err(error) => (StatusCode::BAD_REQUEST, Json(json!({ "error": error.to_string() }))).into_response(),
    }
}

async fn clear_faults(State(hub): Sim) -> Json<Value> {
    hub.set_faults(Vec::new());
    Json(json!([]))
}

#[derive(Deserialize)]
struct Load {
    on: bool,
    #[serde(default)]
    sequences: bool,
}

async fn load(State(hub): Sim, Json(load): Json<Load>) -> Json<Value> {
    let mut world = hub.world();
    world.load = load.on.then_some(LoadMode { sequences: load.sequences });
    world.calls.clear();
    Json(json!({}))
}

async fn push(State(hub): Sim, Json(request): Json<Bulk>) -> Json<Value> {
    let (first, end) = bulk::push(&mut hub.world(), &request);
    Json(json!({ "first": first, "end": end }))
}

/// What was delivered: in all, and per chat with the last text.
async fn counters(State(hub): Sim) -> Json<Value> {
    let world = hub.look();
    let used = world.chats.values().filter(|chat| chat.delivered > 0);
    let of = |chat: &Chat| (chat.id.to_string(), json!({ "delivered": chat.delivered, "last_text": chat.last_text }));
    let chats: serde_json::Map<_, _> = used.map(of).collect();
    let total: u64 = world.chats.values().map(|chat| chat.delivered).sum();
    Json(json!({ "delivered": total, "waiting_updates": world.queue.len(), "chats": chats }))
}

async fn sequence(State(hub): Sim, Query(wanted): Query<InChat>) -> Result<Json<Value>, Error> {
    let world = hub.look();
    let chat = world.chats.get(&wanted.chat).ok_or(Error::UnknownChat(wanted.chat))?;
    Ok(Json(json!(chat.sequence)))
}
