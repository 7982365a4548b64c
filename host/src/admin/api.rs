//! `/api/…`: what an operator does to the running host. JSON in, JSON out; what can't be done is `{"error": …}`.
//!
//! There is no login, so it answers to this machine alone, wherever the address listens: the peer must be on loopback,
//! and the guard keeps out web pages that an operator has open. Whoever may use it may read people's messages
//! (`payload=true`), as may whoever can read the store.
//!
//! Where there are several bots, each request but those of the host says which one it means: `?bot=NAME`.
//!
//! - `GET /api/host`: which store and bots these are
//! - `POST /api/hand-over`: `{"store": …, "until": …}`: another host takes this one's place
//! - `GET /api/dead?limit=…&plugin=…`, `GET /api/dead/{number}?payload=true`
//! - `POST /api/dead/retry`, `POST /api/dead/drop`: `{"numbers": [1, 2]}` or `{"all": {"plugin": null}}`
//! - `GET /api/chats?limit=…&after=…&reach=…`
//! - `GET /api/summary`: in numbers
//! - `/api/broadcasts…`, `/api/reach`, `/api/unknown…`: see `broadcasts`
//! - `/api/jobs…`, `/api/state…`: see `state`
//! - `/api/outbox…`: see `outbox`
//! - `POST /api/webhook/set`
//! - `GET /api/record?plugin=…`: see `record`
//! - `GET /api/plugins`, `GET /api/plugins/{name}/versions`, `POST /api/plugins/{name}/reload`, `…/pause`, `…/resume`,
//!   `…/disable`, `…/enable`, `…/rollback?to=…` (`force=true` for the first)

use std::net::SocketAddr;
use std::path::PathBuf;

use axum::extract::rejection::JsonRejection;
use axum::extract::{ConnectInfo, DefaultBodyLimit, Path, Query, Request, State};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::{mpsc, watch};

use super::bots::{BotStatus, Bots};
use super::plugins::{self, Order};
use super::{broadcasts, outbox, record, state};
use crate::clock::unix_millis;
use crate::dispatch::Recorder;
use crate::domain::{BotId, ChatId};
use crate::guard;
use crate::operate::{self, ChatList, Letter, List, Operator, Outcome, Reach, Selection};

pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Thousands of numbers, and no more.
const BODY_LIMIT: usize = 256 << 10;
/// How many dead letters are listed unless told otherwise, and at most.
const LIMIT: usize = 50;
const MAX_LIMIT: usize = 10_000;

/// What the API works on.
#[derive(Clone)]
pub struct Shared {
    /// The folder of the store, absolute: by it a command knows that this is its host.
    pub store: PathBuf,
    /// The bots.
    pub bots: Bots,
    /// Turns true when the host is to make room for another.
    pub hand_over: watch::Sender<bool>,
}

/// The bot that a request means.
#[derive(Clone)]
pub(super) struct Api {
    /// Its part of the store.
    pub(super) operator: Operator,
    /// To whoever owns its plugins.
    pub(super) orders: mpsc::Sender<Order>,
    /// Takes notes of its plugins.
    pub(super) recorder: Recorder,
}

/// `GET /api/host`
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Host {
    /// The folder of its store.
    pub store: PathBuf,
    /// The bot's id, if it is the only one and runs.
    pub bot: Option<BotId>,
    /// All of them.
    #[serde(default)]
    pub bots: Vec<BotStatus>,
    /// The host's version.
    pub version: String,
}

/// `POST /api/hand-over`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HandOver {
    /// The store that the other host is to run on: this one's.
    pub store: PathBuf,
    /// Unix milliseconds until when it waits for the answer: after that it has given up.
    pub until: u64,
}

/// `GET /api/summary`
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Summary {
    /// The bot's id.
    pub bot: BotId,
    /// The host's version.
    pub version: String,
    /// Dead letters; 1,000 stand for as many or more, here and below.
    pub dead: usize,
    /// Calls with an unknown end.
    pub unknown: usize,
}

/// The body of whatever is not 200.
#[derive(Debug, Serialize, Deserialize)]
pub struct Failed {
    /// For people.
    pub error: String,
}

/// An answer that is none.
pub(super) struct Refusal(pub(super) StatusCode, pub(super) String);

pub(super) type Answer<T> = Result<Json<T>, Refusal>;

pub(super) fn routes(shared: Shared) -> Router {
    Router::new()
        .route("/api/host", get(host))
        .route("/api/hand-over", post(hand_over))
        .route("/api/dead", get(list))
        .route("/api/dead/{number}", get(show))
        .route("/api/dead/retry", post(retry))
        .route("/api/dead/drop", post(drop_letters))
        .route("/api/chats", get(chats))
        .route("/api/summary", get(summary))
        .route("/api/plugins", get(plugins::list))
        .route("/api/webhook/set", post(plugins::set_webhook))
        .route("/api/plugins/{name}/versions", get(plugins::versions))
        .route("/api/plugins/{name}/{action}", post(plugins::change))
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        .merge(broadcasts::routes())
        .merge(record::routes())
        .merge(state::routes())
        .merge(outbox::routes())
        .layer(middleware::from_fn(only_this_machine))
        .with_state(shared)
}

async fn only_this_machine(ConnectInfo(peer): ConnectInfo<SocketAddr>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    let refused = if peer.ip().to_canonical().is_loopback() {
        guard::check_host(headers).and_then(|()| guard::check_origin(headers)).err().map(|refused| refused.to_string())
    } else {
        Some("only programs on the host's own machine are answered here".to_owned())
    };
    match refused {
        None => next.run(request).await,
        Some(why) => Refusal(StatusCode::FORBIDDEN, why).into_response(),
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.0, Json(json!(Failed { error: self.1 }))).into_response()
    }
}

impl From<operate::Error> for Refusal {
    fn from(error: operate::Error) -> Self {
        Self(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
    }
}

impl From<JsonRejection> for Refusal {
    fn from(rejection: JsonRejection) -> Self {
        Self(rejection.status(), rejection.body_text())
    }
}

async fn host(State(shared): State<Shared>) -> Json<Host> {
    let bots = shared.bots.list();
    let bot = if let [one] = &bots[..] { one.id } else { None };
    Json(Host { store: shared.store, bot, bots, version: VERSION.to_owned() })
}

/// The answer comes first, and then the end.
async fn hand_over(
    State(shared): State<Shared>,
    wanted: Result<Json<HandOver>, JsonRejection>,
) -> Answer<serde_json::Value> {
    let wanted = wanted?.0;
    if wanted.store != shared.store {
        let error = format!("that it runs on another store, {}", shared.store.display());
        return Err(Refusal(StatusCode::CONFLICT, error));
    }
    if unix_millis() > wanted.until {
        return Err(Refusal(StatusCode::CONFLICT, "that the question came too late".to_owned()));
    }
    shared.hand_over.send_replace(true);
    Ok(Json(json!({ "pid": std::process::id() })))
}

async fn summary(api: Api) -> Answer<Summary> {
    let (bot, version) = (api.operator.bot(), VERSION.to_owned());
    const MOST: usize = 1_000;
    let (dead, unknown) = (api.operator.count_dead(MOST)?, api.operator.count_unknown(MOST)?);
    Ok(Json(Summary { bot, version, dead, unknown }))
}

#[derive(Deserialize)]
struct Listing {
    limit: Option<usize>,
    plugin: Option<String>,
}

async fn list(api: Api, Query(listing): Query<Listing>) -> Answer<List> {
    let limit = listing.limit.unwrap_or(LIMIT).min(MAX_LIMIT);
    Ok(Json(api.operator.list(limit, listing.plugin.as_deref())?))
}

#[derive(Deserialize)]
struct Showing {
    #[serde(default)]
    payload: bool,
}

async fn show(api: Api, Path(number): Path<u64>, Query(showing): Query<Showing>) -> Answer<Letter> {
    let letter = api.operator.show(number, showing.payload)?;
    letter.map(Json).ok_or_else(|| Refusal(StatusCode::NOT_FOUND, format!("there is no dead letter {number}")))
}

async fn retry(api: Api, which: Result<Json<Selection>, JsonRejection>) -> Answer<Outcome> {
    Ok(Json(api.operator.retry(&which?.0).await?))
}

async fn drop_letters(api: Api, which: Result<Json<Selection>, JsonRejection>) -> Answer<Outcome> {
    Ok(Json(api.operator.drop_letters(&which?.0).await?))
}

#[derive(Deserialize)]
struct Chats {
    limit: Option<usize>,
    after: Option<i64>,
    #[serde(default)]
    reach: Reach,
}

async fn chats(api: Api, Query(wanted): Query<Chats>) -> Answer<ChatList> {
    let limit = wanted.limit.unwrap_or(LIMIT).min(MAX_LIMIT);
    Ok(Json(api.operator.chats(wanted.after.map(ChatId), limit, wanted.reach)?))
}
