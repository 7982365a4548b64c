//! `GET /api/record?plugin=…`: what plugins are given and what they do, line by line, from now on, until either side ends
//! it. An empty line every few seconds shows a listener that the host is there, and the host one that has gone.

use std::convert::Infallible;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Query;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::stream;
use serde::Deserialize;

use super::api::{Api, Shared, VERSION};
use crate::dispatch::{FORM, Line, Notes, write};
use crate::domain::PluginName;

const SIGN_OF_LIFE: Duration = Duration::from_secs(5);

pub(super) fn routes() -> Router<Shared> {
    Router::new().route("/api/record", get(record))
}

#[derive(Deserialize)]
struct Which {
    plugin: Option<String>,
}

async fn record(api: Api, Query(which): Query<Which>) -> Response {
    let notes = api.recorder.listen(which.plugin.as_deref().map(PluginName::new));
    let head = write(&Line::Recording { form: FORM, host: VERSION.to_owned() });
    let lines = stream::unfold((Some(head), notes), |(head, notes)| next(head, notes));
    ([(CONTENT_TYPE, "application/jsonl")], Body::from_stream(lines)).into_response()
}

type State = (Option<std::sync::Arc<str>>, Notes);

async fn next(head: Option<std::sync::Arc<str>>, mut notes: Notes) -> Option<(Result<Bytes, Infallible>, State)> {
    let line = match head {
        Some(head) => head,
        None => match tokio::time::timeout(SIGN_OF_LIFE, notes.next()).await {
            Ok(line) => line?,
            Err(_) => "".into(),
        },
    };
    Some((Ok(Bytes::from(format!("{line}\n"))), (None, notes)))
}
