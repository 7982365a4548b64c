//! `/api/jobs…` and `/api/state…`: JSON in, JSON out, as everything under `/api`.

use axum::extract::rejection::JsonRejection;
use axum::extract::{DefaultBodyLimit, Query};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;

use super::api::{Answer, Api, Refusal, Shared};
use super::plugins;
use crate::domain::PluginName;
use crate::operate::{EntryList, Erase, Erased, Forget, JobList, JobRef, Left, Outcome, Put, Refused, Wanted};

/// A value of the largest kind, written as hexadecimal digits.
const BODY_LIMIT: usize = 130 << 20;
const LIMIT: usize = 50;
const MAX_LIMIT: usize = 10_000;

pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/api/jobs", get(jobs))
        .route("/api/jobs/cancel", post(cancel))
        .route("/api/jobs/retry", post(retry))
        .route("/api/state", get(list))
        .route("/api/state/put", post(put))
        .route("/api/state/erase", post(erase))
        .route("/api/state/left", get(left))
        .route("/api/state/forget", post(forget))
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
}

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Self {
        let status = match refused {
            Refused::Wrong(_) => StatusCode::CONFLICT,
            Refused::Store(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self(status, refused.to_string())
    }
}

#[derive(Deserialize)]
struct Listing {
    limit: Option<usize>,
    plugin: Option<String>,
}

async fn jobs(api: Api, Query(listing): Query<Listing>) -> Answer<JobList> {
    let limit = listing.limit.unwrap_or(LIMIT).min(MAX_LIMIT);
    Ok(Json(api.operator.jobs(limit, listing.plugin.as_deref())?))
}

async fn cancel(api: Api, which: Result<Json<JobRef>, JsonRejection>) -> Answer<Outcome> {
    Ok(Json(api.operator.cancel_jobs(&which?.0).await?))
}

async fn retry(api: Api, which: Result<Json<JobRef>, JsonRejection>) -> Answer<Outcome> {
    Ok(Json(api.operator.retry_jobs(&which?.0).await?))
}

#[derive(Deserialize)]
struct Page {
    limit: Option<usize>,
    after: Option<String>,
    plugin: Option<String>,
    chat: Option<i64>,
    user: Option<i64>,
    #[serde(default)]
    all: bool,
}

async fn list(api: Api, Query(page): Query<Page>) -> Answer<EntryList> {
    let Page { limit, after, plugin, chat, user, all } = page;
    let limit = limit.unwrap_or(LIMIT).clamp(1, MAX_LIMIT);
    Ok(Json(api.operator.entries(&Wanted { plugin, chat, user, all }, after.as_deref(), limit)?))
}

async fn put(api: Api, put: Result<Json<Put>, JsonRejection>) -> Answer<bool> {
    Ok(Json(api.operator.put_entry(&put?.0).await?))
}

async fn erase(api: Api, order: Result<Json<Erase>, JsonRejection>) -> Answer<Erased> {
    Ok(Json(api.operator.erase(&order?.0).await?))
}

async fn left(api: Api) -> Answer<Vec<Left>> {
    Ok(Json(api.operator.left()))
}

async fn forget(api: Api, order: Result<Json<Forget>, JsonRejection>) -> Answer<u64> {
    let Forget { plugin } = order?.0;
    match plugins::is_known(&api, &plugin).await {
        Err(Refusal(StatusCode::NOT_FOUND, _)) => {}
        Err(error) => return Err(error),
        Ok(()) => {
            let still = format!("`{plugin}` is configured, and would go on; take it out of bot.toml first");
            return Err(Refusal(StatusCode::CONFLICT, still));
        }
    }
    Ok(Json(api.operator.forget(&PluginName::new(&plugin)).await?))
}
