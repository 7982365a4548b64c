//! `/api/outbox…`: the calls that wait to be sent. JSON in, JSON out, as everything under `/api`.
//!
//! - `GET /api/outbox?limit=…&chat=…&plugin=…`, `GET /api/outbox/{number}?content=true`
//! - `POST /api/outbox/cancel`: `{"numbers": [1, 2]}` or `{"chat": "42"}`

use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, Query};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;

use super::api::{Answer, Api, Refusal, Shared};
use crate::operate::{Cancel, Outbox, Outcome, Waiting, WaitingCall};
use crate::whose;

const LIMIT: usize = 50;
const MAX_LIMIT: usize = 10_000;

pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/api/outbox", get(list))
        .route("/api/outbox/{number}", get(show))
        .route("/api/outbox/cancel", post(cancel))
}

#[derive(Deserialize)]
struct Listing {
    limit: Option<usize>,
    chat: Option<String>,
    plugin: Option<String>,
}

async fn list(api: Api, Query(Listing { limit, chat, plugin }): Query<Listing>) -> Answer<Outbox> {
    let limit = limit.unwrap_or(LIMIT).min(MAX_LIMIT);
    Ok(Json(api.operator.outbox(&Waiting { chat, plugin }, limit).await?))
}

#[derive(Deserialize)]
struct Showing {
    #[serde(default)]
    content: bool,
}

async fn show(api: Api, Path(number): Path<u64>, Query(showing): Query<Showing>) -> Answer<WaitingCall> {
    let call = api.operator.waiting_call(number, showing.content).await?;
    call.map(Json).ok_or_else(|| Refusal(StatusCode::NOT_FOUND, format!("no call {number} waits")))
}

async fn cancel(api: Api, which: Result<Json<Cancel>, JsonRejection>) -> Answer<Outcome> {
    let which = which?.0;
    // To its end, also when whoever asked has gone.
    let cancelled = tokio::spawn(whose::same(async move { api.operator.cancel_calls(&which).await })).await;
    let failed = |_| Refusal(StatusCode::INTERNAL_SERVER_ERROR, "the calls could not be cancelled".to_owned());
    Ok(Json(cancelled.map_err(failed)??))
}
