//! `/api/broadcasts…` and `/api/unknown…`: JSON in, JSON out, as everything under `/api`.
//!
//! A broadcast is drafted, given its recipients in lots, and then begun, so that neither side ever holds a long list.

use axum::Json;
use axum::Router;
use axum::extract::rejection::JsonRejection;
use axum::extract::{DefaultBodyLimit, Path, Query};
use axum::http::StatusCode;
use axum::routing::{get, post};
use serde::{Deserialize, Serialize};

use super::api::{Answer, Api, Refusal, Shared};
use super::plugins::is_known;
use crate::operate::{
    Audience, Begun, Broadcast, Change, Draft, MissedPage, Outcome, Problem, Selection, UnknownCall, UnknownList,
};
use crate::store::rows::broadcast::Recipient;
use crate::telegram::cast;

/// A lot of recipients, all of them with long names.
const BODY_LIMIT: usize = 1 << 20;
const LIMIT: usize = 50;
const MAX_LIMIT: usize = 10_000;

/// The body of what changes a broadcast.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Terms {
    /// From now on it may cost so much.
    #[serde(default)]
    pub max_stars: Option<u64>,
}

/// The body where recipients are told: as people write them, ids and names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipients {
    /// They.
    pub recipients: Vec<String>,
}

pub(super) fn routes() -> Router<Shared> {
    let with_many = Router::new()
        .route("/api/broadcasts/{id}/recipients", post(add))
        .route("/api/reach", get(reach_of_all).post(reach))
        .layer(DefaultBodyLimit::max(BODY_LIMIT));
    Router::new()
        .route("/api/broadcasts", get(list).post(draft))
        .route("/api/broadcasts/{id}", get(show))
        .route("/api/broadcasts/{id}/missed", get(missed))
        .route("/api/broadcasts/{id}/{change}", post(change))
        .route("/api/unknown", get(unknown))
        .route("/api/unknown/{number}", get(unknown_call))
        .route("/api/unknown/drop", post(drop_unknown))
        .merge(with_many)
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        let status = match problem {
            Problem::Missing(_) => StatusCode::NOT_FOUND,
            Problem::Wrong(_) => StatusCode::CONFLICT,
            Problem::Unreadable(_) | Problem::Store(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self(status, problem.to_string())
    }
}

#[derive(Deserialize)]
struct Listing {
    limit: Option<usize>,
}

impl Listing {
    fn limit(&self) -> usize {
        self.limit.unwrap_or(LIMIT).min(MAX_LIMIT)
    }
}

async fn list(api: Api, Query(listing): Query<Listing>) -> Answer<Vec<Broadcast>> {
    Ok(Json(api.operator.broadcasts(listing.limit())?))
}

async fn draft(api: Api, draft: Result<Json<Draft>, JsonRejection>) -> Answer<Begun> {
    let draft = draft?.0;
    if let Some(plugin) = draft.buttons_of.as_deref().filter(|plugin| !plugin.is_empty()) {
        is_known(&api, plugin).await?;
    }
    Ok(Json(api.operator.draft(&draft).await?))
}

async fn show(api: Api, Path(id): Path<u64>) -> Answer<Broadcast> {
    Ok(Json(api.operator.broadcast(id)?))
}

#[derive(Deserialize)]
struct Start {
    #[serde(default)]
    from: u32,
}

async fn missed(api: Api, Path(id): Path<u64>, Query(start): Query<Start>) -> Answer<MissedPage> {
    Ok(Json(api.operator.missed(id, start.from)?))
}

async fn add(api: Api, Path(id): Path<u64>, recipients: Result<Json<Recipients>, JsonRejection>) -> Answer<Broadcast> {
    api.operator.add_recipients(id, &parse(&recipients?.0)?).await?;
    Ok(Json(api.operator.broadcast(id)?))
}

async fn change(
    api: Api,
    Path((id, change)): Path<(u64, String)>,
    terms: Result<Json<Terms>, JsonRejection>,
) -> Answer<Broadcast> {
    let change = match change.as_str() {
        "run" => Change::Run,
        "pause" => Change::Pause,
        "resume" => Change::Resume,
        "cancel" => Change::Cancel,
        _ => return Err(Refusal(StatusCode::NOT_FOUND, format!("there is no `{change}` for broadcasts"))),
    };
    Ok(Json(api.operator.change_broadcast(id, change, terms?.0.max_stars).await?))
}

async fn reach_of_all(api: Api) -> Answer<Audience> {
    // It looks at every chat.
    let counted = tokio::task::spawn_blocking(move || api.operator.reach_of_all()).await;
    let stopped = |_| Refusal(StatusCode::INTERNAL_SERVER_ERROR, "the chats could not be counted".to_owned());
    Ok(Json(counted.map_err(stopped)??))
}

async fn reach(api: Api, recipients: Result<Json<Recipients>, JsonRejection>) -> Answer<Audience> {
    Ok(Json(api.operator.reach_of(&parse(&recipients?.0)?)?))
}

fn parse(recipients: &Recipients) -> Result<Vec<Recipient>, Refusal> {
    let parsed = recipients.recipients.iter().map(|text| cast::recipient(text)).collect::<Result<_, _>>();
    parsed.map_err(|error| Refusal(StatusCode::UNPROCESSABLE_ENTITY, error))
}

async fn unknown(api: Api, Query(listing): Query<Listing>) -> Answer<UnknownList> {
    Ok(Json(api.operator.unknown_calls(listing.limit())?))
}

async fn unknown_call(api: Api, Path(number): Path<u64>) -> Answer<UnknownCall> {
    let call = api.operator.unknown_call(number)?;
    call.map(Json).ok_or_else(|| Refusal(StatusCode::NOT_FOUND, format!("there is no call {number}")))
}

async fn drop_unknown(api: Api, which: Result<Json<Selection>, JsonRejection>) -> Answer<Outcome> {
    Ok(Json(api.operator.drop_unknown(&which?.0).await?))
}
