//! The HTTP side of a webhook: one path, one method, one secret.
//!
//! Whether a request is Telegram's is decided by its head alone, before a byte of the body is read. A 200 means that the
//! update is on disk, be it readable or not; nothing is handled inside a request. Anything but a 2xx makes Telegram hold
//! back the chat and send the same again, so it is kept for a store that fails and for requests that are not Telegram's.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt as _;
use hyper::body::{Body as _, Incoming};
use hyper::header::{ALLOW, HeaderValue, RETRY_AFTER};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::secrets::Secrets;
use super::tls::Tls;
use super::{stopped, unix_seconds};
use crate::intake::accept::Ledger;
use crate::whose;

const SECRET_HEADER: &str = "x-telegram-bot-api-secret-token";
/// An update has 512 KiB at most.
const LONGEST_BODY: usize = 1 << 20;
/// Ten times what Telegram opens; more are left waiting.
const CONNECTIONS: usize = 1024;
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Between two requests, and for the head of one. Longer than proxies keep theirs, so that they close first.
const HEAD: Duration = Duration::from_secs(90);
const BODY: Duration = Duration::from_secs(30);
/// How long requests under way may hold up the stop.
const DRAIN: Duration = Duration::from_secs(5);
/// In seconds.
const RETRY: u64 = 10;
/// How often strangers are spoken of, in seconds.
const SELDOM: u64 = 60;

/// What requests are judged by, and where their updates go.
pub(super) struct Endpoint {
    path: String,
    secrets: Arc<Secrets>,
    ledger: Mutex<Ledger>,
    /// Unix seconds of the newest update.
    received: AtomicU64,
    warned: AtomicU64,
}

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Taken,
    WrongPath,
    WrongMethod,
    WrongSecret,
    TooLarge,
    Broken,
    Failed,
}

impl Outcome {
    fn status(self) -> StatusCode {
        match self {
            Self::Taken => StatusCode::OK,
            Self::WrongPath => StatusCode::NOT_FOUND,
            Self::WrongMethod => StatusCode::METHOD_NOT_ALLOWED,
            Self::WrongSecret => StatusCode::UNAUTHORIZED,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Broken => StatusCode::BAD_REQUEST,
            Self::Failed => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Taken => "taken",
            Self::WrongPath => "wrong_path",
            Self::WrongMethod => "wrong_method",
            Self::WrongSecret => "wrong_secret",
            Self::TooLarge => "too_large",
            Self::Broken => "broken",
            Self::Failed => "failed",
        }
    }
}

impl Endpoint {
    pub(super) fn new(path: String, secrets: Arc<Secrets>, ledger: Ledger) -> Self {
        let (received, warned) = Default::default();
        Self { path, secrets, ledger: Mutex::new(ledger), received, warned }
    }

    /// Unix seconds of the newest update; 0 before the first.
    pub(super) fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let begun = Instant::now();
        let outcome = match self.judge(&request) {
            Ok(()) => self.take(request.into_body()).await,
            Err(outcome) => outcome,
        };
        metrics::counter!("botyard_webhook_requests_total", "outcome" => outcome.name()).increment(1);
        let mut response = Response::new(Body::empty());
        *response.status_mut() = outcome.status();
        match outcome {
            Outcome::Taken => metrics::histogram!("botyard_webhook_seconds").record(begun.elapsed().as_secs_f64()),
            Outcome::WrongMethod => _ = response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST")),
            Outcome::Failed => _ = response.headers_mut().insert(RETRY_AFTER, RETRY.into()),
            _ => {}
        }
        response
    }

    /// By the head alone.
    fn judge(&self, request: &Request<Incoming>) -> Result<(), Outcome> {
        let secret = request.headers().get(SECRET_HEADER).map_or(b"".as_slice(), HeaderValue::as_bytes);
        let has_secret = self.secrets.accept(secret);
        if request.uri().path_and_query().is_none_or(|path| path.as_str() != self.path) {
            if has_secret {
                self.warn(
                    "a request of Telegram's asks for another path than that of `url`: a proxy must not rewrite it",
                );
            }
            return Err(Outcome::WrongPath);
        }
        if request.method() != Method::POST {
            return Err(Outcome::WrongMethod);
        }
        if !has_secret {
            self.warn("requests without the right secret come to the webhook; they are refused");
            return Err(Outcome::WrongSecret);
        }
        if request.body().size_hint().lower() > LONGEST_BODY as u64 {
            return Err(Outcome::TooLarge);
        }
        Ok(())
    }

    async fn take(&self, body: Incoming) -> Outcome {
        let body = match tokio::time::timeout(BODY, read(body)).await {
            Ok(Ok(body)) => body,
            Ok(Err(outcome)) => return outcome,
            Err(_) => return Outcome::Broken,
        };
        // The order of arrival here is the order in which the store gets them; waiting is done outside of the lock.
        let stored = self.ledger.lock().unwrap_or_else(PoisonError::into_inner).accept_one(&body);
        match stored.await {
            Ok(()) => {
                self.received.store(unix_seconds(), Ordering::Relaxed);
                Outcome::Taken
            }
            Err(error) => {
                tracing::error!(%error, "an update could not be stored; Telegram is told to send it again");
                Outcome::Failed
            }
        }
    }

    /// Anybody can send requests, and must not be able to fill the log.
    fn warn(&self, what: &str) {
        let now = unix_seconds();
        let last = self.warned.load(Ordering::Relaxed);
        let mine = self.warned.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if now >= last + SELDOM && mine {
            tracing::warn!("{what}");
        }
    }
}

async fn read(body: Incoming) -> Result<Bytes, Outcome> {
    let mut pieces = Body::new(body).into_data_stream();
    let mut whole = BytesMut::new();
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|_| Outcome::Broken)?;
        if whole.len() + piece.len() > LONGEST_BODY {
            return Err(Outcome::TooLarge);
        }
        whole.extend_from_slice(&piece);
    }
    Ok(whole.freeze())
}

/// Serves until told to stop; then what is under way is answered, and idle connections are closed.
pub(super) async fn serve(
    listener: &TcpListener,
    tls: Option<&Tls>,
    endpoint: Arc<Endpoint>,
    mut stop: watch::Receiver<bool>,
) {
    let mut connections = JoinSet::new();
    let accepting = accept_all(listener, tls, &endpoint, &stop, &mut connections);
    let fresh = async {
        match tls {
            Some(tls) => tls.keep_fresh().await,
            None => std::future::pending().await,
        }
    };
    let mut stopping = stop.clone();
    tokio::select! {
        () = accepting => {}
        () = fresh => {}
        () = stopped(&mut stopping) => {}
    }
    stopped(&mut stop).await;
    let drained = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(DRAIN, drained).await.is_err() {
        tracing::warn!("a request to the webhook does not end, and is cut off; Telegram sends it again");
    }
}

async fn accept_all(
    listener: &TcpListener,
    tls: Option<&Tls>,
    endpoint: &Arc<Endpoint>,
    stop: &watch::Receiver<bool>,
    connections: &mut JoinSet<()>,
) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        while connections.try_join_next().is_some() {}
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            // Out of descriptors, say: they come back when connections end.
            Err(_) => {
                tokio::time::sleep(Duration::from_millis(10)).await;
                continue;
            }
        };
        let (acceptor, endpoint, stop) = (tls.map(Tls::acceptor), endpoint.clone(), stop.clone());
        connections.spawn(whose::same(async move {
            connection(stream, acceptor, endpoint, stop).await;
            drop(place);
        }));
    }
}

async fn connection(
    stream: TcpStream,
    acceptor: Option<tokio_rustls::TlsAcceptor>,
    endpoint: Arc<Endpoint>,
    stop: watch::Receiver<bool>,
) {
    // Best effort: without it answers are merely slower.
    drop(stream.set_nodelay(true));
    match acceptor {
        None => speak(stream, endpoint, stop).await,
        Some(acceptor) => match tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await {
            Ok(Ok(stream)) => speak(stream, endpoint, stop).await,
            Ok(Err(error)) => tracing::debug!(%error, "a connection to the webhook did not become one of TLS"),
            Err(_) => tracing::debug!("a connection to the webhook did not become one of TLS in time"),
        },
    }
}

async fn speak<S: AsyncRead + AsyncWrite + Unpin>(stream: S, endpoint: Arc<Endpoint>, mut stop: watch::Receiver<bool>) {
    let service = service_fn(|request| {
        let endpoint = endpoint.clone();
        async move { Ok::<_, std::convert::Infallible>(endpoint.answer(request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    // A connection that breaks is the peer's affair: what was not answered comes again.
    tokio::select! {
        ended = connection.as_mut() => drop(ended),
        () = stopped(&mut stop) => {
            connection.as_mut().graceful_shutdown();
            drop(connection.await);
        }
    }
}
