//! The socket side: accepts connections, tells Bot API calls from the rest, and lets faults happen for real.
//!
//! Bot API calls take the short way past the router. Everything else (`/sim`, the page) is an axum router. A
//! connection that breaks ends alone; the server goes on.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::api::ApiError;
use super::faults::Action;
use super::hub::Hub;
use super::params::{Params, percent_decode};
use super::sim_api;
use super::socket::{ResetSwitch, Socket};
use crate::guard;

/// Telegram takes files of up to 50 MB, a local server of up to 2,000; and something comes with them.
const BODY_LIMIT: usize = (50 << 20) + (64 << 10);
const LOCAL_BODY_LIMIT: usize = (2_000 << 20) + (64 << 10);

type Router = TowerToHyperService<axum::Router>;

/// Ends the connection instead of answering.
#[derive(Debug, thiserror::Error)]
#[error("the connection is to break")]
struct Broken;

/// Serves until told to stop; then every connection is closed at once.
pub(super) async fn serve(listener: TcpListener, hub: Arc<Hub>, mut stop: watch::Receiver<bool>) {
    let router = TowerToHyperService::new(sim_api::router(hub.clone()));
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => _ = connections.spawn(connection(stream, hub.clone(), router.clone())),
                // Out of descriptors, say: they come back when connections end.
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            },
            Some(_) = connections.join_next() => {}
            () = stopped(&mut stop) => break,
        }
    }
    connections.shutdown().await;
}

/// Resolves once told to stop, or when nobody is left who could tell.
pub(super) async fn stopped(stop: &mut watch::Receiver<bool>) {
    drop(stop.wait_for(|stop| *stop).await);
}

async fn connection(stream: TcpStream, hub: Arc<Hub>, router: Router) {
    // Best effort: without it answers are merely slower.
    drop(stream.set_nodelay(true));
    let reset = ResetSwitch::default();
    let socket = TokioIo::new(Socket::new(stream, reset.clone()));
    let service = service_fn(move |request| handle(hub.clone(), router.clone(), reset.clone(), request));
    // Broken connections are the peer's affair, or a fault that was asked for.
    drop(http1::Builder::new().serve_connection(socket, service).await);
}

async fn handle(
    hub: Arc<Hub>,
    router: Router,
    reset: ResetSwitch,
    request: Request<Incoming>,
) -> Result<Response<Body>, Broken> {
    let path = request.uri().path();
    if let Some(rest) = path.strip_prefix("/bot")
        && let Some((token, method)) = rest.split_once('/')
    {
        let (token, method) = (percent_decode(token), method.to_owned());
        return match hub.admits(&token).and_then(|()| Ok(guard::check_origin(request.headers())?)) {
            Ok(()) => bot_api(&hub, &reset, &method, request).await,
            Err(error) => Ok(refusal(&error)),
        };
    }
    if let Some((token, path)) = path.strip_prefix("/file/bot").and_then(|rest| rest.split_once('/')) {
        return download(&hub, &reset, &percent_decode(token), path).await;
    }
    match guard::check_host(request.headers()).and_then(|()| guard::check_origin(request.headers())) {
        Ok(()) => Ok(router.call(request.map(Body::new)).await.unwrap_or_else(|never| match never {})),
        Err(refused) => Ok(refusal(&refused.into())),
    }
}

async fn bot_api(
    hub: &Hub,
    reset: &ResetSwitch,
    method: &str,
    request: Request<Incoming>,
) -> Result<Response<Body>, Broken> {
    let params = match read_params(hub, reset, method, request).await {
        Ok(params) => params,
        Err(_) if reset.is_set() => return Err(Broken),
        Err(error) => return Ok(refusal(&error)),
    };
    let (number, action) = hub.arrived(method, &params);
    match action {
        None => {
            let result = hub.call(method, &params).await;
            if !method.eq_ignore_ascii_case("getUpdates") {
                hub.answered(number, &result);
            }
            Ok(answer(result))
        }
        Some(action) => faulty(hub, reset, method, &params, action).await,
    }
}

async fn read_params(
    hub: &Hub,
    reset: &ResetSwitch,
    method: &str,
    request: Request<Incoming>,
) -> Result<Params, ApiError> {
    let limit = if hub.look().limits.local_files.is_some() { LOCAL_BODY_LIMIT } else { BODY_LIMIT };
    let (parts, body) = request.into_parts();
    if body.size_hint().lower() > limit as u64 {
        return Err(ApiError::new(413, "Request Entity Too Large"));
    }
    let body = match hub.body_fault(method) {
        Some(action) => troubled(body, action, reset.clone()),
        None => Body::new(body),
    };
    let content_type = parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    Params::read(parts.uri.query(), content_type, body, limit).await
}

/// A body that is not taken in as it comes.
fn troubled(body: Incoming, action: Action, reset: ResetSwitch) -> Body {
    let pieces = Body::new(body).into_data_stream();
    let state = (pieces, 0_u64, action, reset);
    Body::from_stream(stream::unfold(state, |(mut pieces, taken, action, reset)| async move {
        match action {
            Action::HangUp { after } if taken >= after => {
                reset.set();
                return Some((Err(axum::Error::new(Broken)), (pieces, taken, action, reset)));
            }
            Action::Hang { after } if taken >= after => std::future::pending().await,
            _ => {}
        }
        let piece = pieces.next().await?;
        let size = piece.as_ref().map_or(0, Bytes::len);
        if let Action::Slow { bytes_per_second } = action {
            tokio::time::sleep(Duration::from_secs_f64(size as f64 / bytes_per_second.max(1) as f64)).await;
        }
        Some((piece, (pieces, taken + size as u64, action, reset)))
    }))
}

/// Plays a call with which something is to go wrong.
async fn faulty(
    hub: &Hub,
    reset: &ResetSwitch,
    method: &str,
    params: &Params,
    action: Action,
) -> Result<Response<Body>, Broken> {
    let play = || hub.call(method, params);
    match action {
        Action::Flood { retry_after } => Ok(refusal(&ApiError::flood(retry_after))),
        Action::Answer { status, body, content_type, applied } => {
            if applied {
                drop(play().await);
            }
            Ok(response(status, &content_type, body.into()))
        }
        Action::Cut { after } => Ok(cut(answer_bytes(play().await), after)),
        Action::Reset { applied } => {
            if applied {
                drop(play().await);
            }
            reset.set();
            Err(Broken)
        }
        Action::Stall { time, applied: false } => {
            tokio::time::sleep(time).await;
            Ok(answer(play().await))
        }
        Action::Stall { time, applied: true } => {
            let result = play().await;
            tokio::time::sleep(time).await;
            Ok(answer(result))
        }
        // They happen before the call is there.
        Action::Slow { .. } | Action::Hang { .. } | Action::HangUp { .. } => Ok(answer(play().await)),
        Action::Silence { applied } => {
            if applied {
                drop(play().await);
            }
            std::future::pending().await
        }
    }
}

fn answer(result: Result<Vec<u8>, ApiError>) -> Response<Body> {
    match result {
        Ok(json) => response(200, "application/json", json.into()),
        Err(error) => refusal(&error),
    }
}

fn answer_bytes(result: Result<Vec<u8>, ApiError>) -> (u16, Bytes) {
    match result {
        Ok(json) => (200, json.into()),
        Err(error) => (error.code, error.envelope().into()),
    }
}

pub(super) fn refusal(error: &ApiError) -> Response<Body> {
    let mut response = response(error.code, "application/json", error.envelope().into());
    let retry_after = error.parameters.as_ref().and_then(|parameters| parameters["retry_after"].as_u64());
    if let Some(seconds) = retry_after {
        response.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    response
}

fn response(status: u16, content_type: &str, body: Bytes) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if let Ok(value) = HeaderValue::from_str(content_type) {
        response.headers_mut().insert(CONTENT_TYPE, value);
    }
    response
}

/// An answer that promises more than comes: after the beginning of the body the connection is closed.
fn cut((status, full): (u16, Bytes), after: usize) -> Response<Body> {
    let promised = full.len();
    let beginning = full.slice(..after.min(promised.saturating_sub(1)));
    let parts = stream::unfold(Some(beginning), |beginning| async move {
        match beginning {
            Some(bytes) => Some((Ok(bytes), None)),
            None => {
                // hyper flushes what it has when the body makes it wait.
                tokio::time::sleep(Duration::from_millis(5)).await;
                Some((Err(Broken), None))
            }
        }
    });
    let mut response = response(status, "application/json", Bytes::new());
    *response.body_mut() = Body::from_stream(parts);
    response.headers_mut().insert(CONTENT_LENGTH, promised.into());
    response
}

/// A fault for it is one for the method `file`.
async fn download(hub: &Hub, reset: &ResetSwitch, token: &str, path: &str) -> Result<Response<Body>, Broken> {
    if let Err(error) = hub.admits(token) {
        return Ok(refusal(&error));
    }
    let bytes = hub.world().files.by_path(&percent_decode(path)).and_then(|file| file.bytes.clone());
    let answer = match bytes {
        Some(bytes) => response(200, "application/octet-stream", bytes),
        None => refusal(&ApiError::new(404, "Not Found")),
    };
    match hub.arrived("file", &Params::default()).1 {
        None => Ok(answer),
        Some(Action::Answer { status, body, content_type, .. }) => Ok(response(status, &content_type, body.into())),
        Some(Action::Flood { retry_after }) => Ok(refusal(&ApiError::flood(retry_after))),
        Some(Action::Stall { time, .. }) => {
            tokio::time::sleep(time).await;
            Ok(answer)
        }
        Some(Action::Cut { after }) => {
            let whole = axum::body::to_bytes(answer.into_body(), usize::MAX).await.map_err(|_| Broken)?;
            Ok(cut((200, whole), after))
        }
        Some(Action::Silence { .. } | Action::Slow { .. } | Action::Hang { .. }) => std::future::pending().await,
        Some(Action::Reset { .. } | Action::HangUp { .. }) => {
            reset.set();
            Err(Broken)
        }
    }
}
