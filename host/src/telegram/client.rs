//! One bot's way to the Bot API.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use serde::Serialize;
use tokio::time::Instant;

use super::http::Http;
use super::meter::Meter;
use super::patience::{self, Ended};
use super::{
    DownloadError, Error, Multipart, Progress, Response, SetupError, Token, Transport, TransportError, classify,
    download,
};

/// How much longer than Telegram itself a poll is waited for.
const POLL_SLACK: Duration = Duration::from_secs(10);
const LONGEST_METHOD: usize = 64;

/// Calls the Bot API: one attempt a call. Shared by reference.
pub struct Client {
    way: ArcSwap<Way>,
    meter: Meter,
}

/// Where calls go.
struct Way {
    transport: Arc<dyn Transport>,
    /// For cleaning texts that came from outside; a transport in memory has none.
    token: Option<Token>,
}

impl Way {
    fn over_http(api_base: &str, token: Token) -> Result<Self, SetupError> {
        Ok(Self { transport: Arc::new(Http::new(api_base, &token)?), token: Some(token) })
    }
}

impl Client {
    /// A client over HTTP.
    ///
    /// # Errors
    /// When the address is none, or TLS can't be set up.
    pub fn new(api_base: &str, token: Token) -> Result<Self, SetupError> {
        Ok(Self { way: ArcSwap::from_pointee(Way::over_http(api_base, token)?), meter: Meter::default() })
    }

    /// Goes on with another token, or at another server. Calls under way end as they began.
    ///
    /// # Errors
    /// As [`Client::new`]; then everything stays as it was.
    pub fn replace(&self, api_base: &str, token: Token) -> Result<(), SetupError> {
        self.way.store(Arc::new(Way::over_http(api_base, token)?));
        Ok(())
    }

    /// A client over a transport of the caller's.
    #[must_use]
    pub fn with_transport(transport: Arc<dyn Transport>) -> Self {
        Self { way: ArcSwap::from_pointee(Way { transport, token: None }), meter: Meter::default() }
    }

    /// Calls a method with a JSON object of parameters and answers with the `result`, JSON too.
    ///
    /// The deadline covers everything from connecting to the last byte of the answer.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn call(&self, method: &str, params: Bytes, deadline: Duration) -> Result<Bytes, Error> {
        self.call_as(method, "application/json", params, deadline).await
    }

    /// The same with a body of another type.
    pub(super) async fn call_as(
        &self,
        method: &str,
        content_type: &str,
        body: Bytes,
        deadline: Duration,
    ) -> Result<Bytes, Error> {
        if !is_method(method) {
            return Err(no_such_method(method));
        }
        let begun = Instant::now();
        let way = self.way.load_full();
        let answer = way.transport.post_as(method, content_type, body, deadline).await;
        self.conclude(method, &way, answer, begun)
    }

    /// The same with files. There is no deadline: it takes as long as it goes on, within reason for its size.
    ///
    /// # Errors
    /// See [`Error`]. A body that did not go out whole had no effect: `Unreachable`.
    pub async fn upload(&self, method: &str, body: &Multipart) -> Result<Bytes, Error> {
        if !is_method(method) {
            return Err(no_such_method(method));
        }
        if let Some(missing) = body.missing().await {
            let description = format!("a file that it carries is not there any more: {missing}");
            return Err(Error::Refused { method: method.to_owned(), code: 400, description, migrate_to: None });
        }
        let begun = Instant::now();
        let progress = Progress::of(body.length());
        let way = self.way.load_full();
        let sending = way.transport.upload(method, body, progress.clone());
        let answer = match patience::watch(sending, &progress).await {
            Ok(answer) => answer,
            Err(Ended::NoAnswer(time)) => Err(TransportError::Silence(format!("no answer within {time:?}"))),
            Err(Ended::Stalled(time)) => Err(TransportError::BeforeSend(format!(
                "the upload stood still for {time:?} after {} of {} bytes",
                progress.done(),
                body.length()
            ))),
            Err(Ended::TooSlow(time)) => Err(TransportError::BeforeSend(format!(
                "only {} of {} bytes were sent within {time:?}",
                progress.done(),
                body.length()
            ))),
        };
        metrics::counter!("botyard_upload_bytes_total").increment(progress.done());
        self.conclude(method, &way, answer, begun)
    }

    /// Fetches the file at a path that `getFile` gave, piece by piece, into a file; at most `limit` bytes.
    ///
    /// # Errors
    /// See [`DownloadError`]. What was written until then is of no use.
    pub async fn download(&self, path: &str, into: &std::fs::File, limit: u64) -> Result<u64, DownloadError> {
        let way = self.way.load_full();
        let fetched = download::fetch(&*way.transport, path, into, limit).await;
        fetched.map_err(|mut error| {
            if let DownloadError::Transient(text) = &mut error {
                way.redact(text);
            }
            error
        })
    }

    /// What an answer means; counted.
    fn conclude(
        &self,
        method: &str,
        way: &Way,
        answer: Result<Response, TransportError>,
        begun: Instant,
    ) -> Result<Bytes, Error> {
        let outcome = match answer {
            Ok(response) => classify(method, &response),
            Err(TransportError::BeforeSend(reason)) => Err(Error::Unreachable { method: method.to_owned(), reason }),
            Err(TransportError::Unknown(reason)) => {
                Err(Error::UnknownOutcome { method: method.to_owned(), reason, silent: false })
            }
            Err(TransportError::Silence(reason)) => {
                Err(Error::UnknownOutcome { method: method.to_owned(), reason, silent: true })
            }
        };
        let outcome = outcome.map_err(|error| way.cleaned(error));
        self.meter.record(method, outcome.as_ref().err(), begun.elapsed());
        outcome
    }

    /// Waits for updates; the result is a JSON array.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn get_updates(
        &self,
        offset: Option<i64>,
        timeout: Duration,
        limit: u8,
        allowed_updates: Option<&[String]>,
    ) -> Result<Bytes, Error> {
        #[derive(Serialize)]
        struct Params<'a> {
            #[serde(skip_serializing_if = "Option::is_none")]
            offset: Option<i64>,
            timeout: u64,
            limit: u8,
            #[serde(skip_serializing_if = "Option::is_none")]
            allowed_updates: Option<&'a [String]>,
        }
        let params = Params { offset, timeout: timeout.as_secs(), limit, allowed_updates };
        let params = serde_json::to_vec(&params).expect("numbers and texts always serialize");
        let result = self.call("getUpdates", params.into(), timeout + POLL_SLACK).await?;
        if !result.starts_with(b"[") {
            return Err(Error::BadAnswer {
                method: "getUpdates".to_owned(),
                status: 200,
                cut: false,
                reason: "its result is no list of updates".to_owned(),
            });
        }
        Ok(result)
    }

    /// Leaves all connections behind: after timeouts, they may lead nowhere without saying so.
    pub fn rebuild(&self) {
        self.way.load().transport.rebuild();
    }

    /// Takes the token out of a text that is to go on to others: paths of a local server hold it, and webhooks may.
    pub fn redact(&self, text: &mut String) {
        self.way.load().redact(text);
    }
}

impl Way {
    fn redact(&self, text: &mut String) {
        if let Some(token) = &self.token {
            token.redact(text);
        }
    }

    /// A proxy may answer with the URL that it was asked for.
    fn cleaned(&self, mut error: Error) -> Error {
        if let Some(text) = error.text_mut() {
            self.redact(text);
        }
        error
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("token", &self.way.load().token).finish_non_exhaustive()
    }
}

/// Whatever is more than a word could lead the URL elsewhere.
fn is_method(method: &str) -> bool {
    !method.is_empty() && method.len() <= LONGEST_METHOD && method.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn no_such_method(method: &str) -> Error {
    let method: String = method.chars().take(LONGEST_METHOD).flat_map(char::escape_debug).collect();
    Error::Refused { method, code: 404, description: "there is no method of this name".to_owned(), migrate_to: None }
}
