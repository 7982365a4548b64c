//! The transport over HTTP: one pool of kept-alive connections to one server.
//!
//! Redirections are not followed (Telegram sends none, and they would carry the token elsewhere), and no
//! error of the HTTP client leaves this file: only the innermost cause's text does, which knows no URL.

use std::error::Error as _;
use std::net::IpAddr;
use std::sync::Once;
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::{Bytes, BytesMut};
use futures_util::future::BoxFuture;
use futures_util::{StreamExt as _, TryStreamExt as _};
use reqwest::header::{CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use secrecy::{ExposeSecret, SecretString};

use super::{Download, Multipart, Progress, Response, SetupError, Token, Transport, TransportError};

/// `getUpdates` answers with at most 4 MiB; what is longer than this is not from a Bot API server.
const LONGEST_BODY: usize = 20 << 20;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Shorter than any server's, so that a connection is given up by us first and never under a call.
const IDLE_TIMEOUT: Duration = Duration::from_secs(45);
const KEEP_ALIVE: Duration = Duration::from_secs(15);
const IDLE_CONNECTIONS: usize = 128;

pub(super) struct Http {
    /// Everything of the URL but the method; it holds the token.
    base: SecretString,
    /// The same for files, without the path.
    files: SecretString,
    server: Server,
    client: ArcSwap<reqwest::Client>,
}

#[derive(Clone, Copy)]
struct Server {
    tls: bool,
    loopback: bool,
}

impl Http {
    pub(super) fn new(api_base: &str, token: &Token) -> Result<Self, SetupError> {
        let api_base = api_base.trim().trim_end_matches('/');
        let url = reqwest::Url::parse(api_base).map_err(|error| SetupError::ApiBase(error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(SetupError::ApiBase("it begins with neither https:// nor http://".to_owned()));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(SetupError::ApiBase("there is a `?` or a `#` in it".to_owned()));
        }
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        let loopback = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        let server = Server { tls: url.scheme() == "https", loopback };
        let client = ArcSwap::from_pointee(build(server)?);
        let base = format!("{api_base}/bot{}/", token.expose()).into();
        let files = format!("{api_base}/file/bot{}/", token.expose()).into();
        Ok(Self { base, files, server, client })
    }

    async fn exchange(
        &self,
        method: &str,
        content_type: &str,
        body: Bytes,
        deadline: Duration,
    ) -> Result<Response, TransportError> {
        let url = joined(&self.base, method);
        let request = self.client.load().post(url).header(CONTENT_TYPE, content_type).timeout(deadline).body(body);
        let answer = request.send().await.map_err(|error| failure(error, deadline))?;
        Ok(response(answer, deadline).await)
    }

    async fn send_files(&self, method: &str, body: &Multipart, progress: Progress) -> Result<Response, TransportError> {
        let url = joined(&self.base, method);
        let stream = body.stream(progress.clone());
        let request = self
            .client
            .load()
            .post(url)
            .header(CONTENT_TYPE, body.content_type())
            .header(CONTENT_LENGTH, body.length())
            .body(reqwest::Body::wrap_stream(stream));
        // The caller keeps the time.
        let never = Duration::MAX;
        match request.send().await {
            Ok(answer) => Ok(response(answer, never).await),
            Err(error) if progress.is_whole() => Err(failure(error, never)),
            // A call of which a part is missing is none: nobody can have acted on it.
            Err(error) => Err(TransportError::BeforeSend(match failure(error, never) {
                TransportError::BeforeSend(reason) => reason,
                TransportError::Unknown(reason) | TransportError::Silence(reason) => {
                    format!("broken off after {} of {} bytes: {reason}", progress.done(), body.length())
                }
            })),
        }
    }

    async fn fetch(&self, path: &str) -> Result<Download, TransportError> {
        let request = self.client.load().get(joined(&self.files, path));
        let answer = request.send().await.map_err(|error| failure(error, Duration::MAX))?;
        let (status, length) = (answer.status().as_u16(), answer.content_length());
        let body = answer.bytes_stream().map_err(|error| innermost(&error.without_url())).boxed();
        Ok(Download { status, length, body })
    }
}

impl Transport for Http {
    fn post<'a>(
        &'a self,
        method: &'a str,
        body: Bytes,
        deadline: Duration,
    ) -> BoxFuture<'a, Result<Response, TransportError>> {
        Box::pin(self.exchange(method, "application/json", body, deadline))
    }

    fn post_as<'a>(
        &'a self,
        method: &'a str,
        content_type: &'a str,
        body: Bytes,
        deadline: Duration,
    ) -> BoxFuture<'a, Result<Response, TransportError>> {
        Box::pin(self.exchange(method, content_type, body, deadline))
    }

    fn upload<'a>(
        &'a self,
        method: &'a str,
        body: &'a Multipart,
        progress: Progress,
    ) -> BoxFuture<'a, Result<Response, TransportError>> {
        Box::pin(self.send_files(method, body, progress))
    }

    fn download<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Download, TransportError>> {
        Box::pin(self.fetch(path))
    }

    fn rebuild(&self) {
        match build(self.server) {
            Ok(client) => self.client.store(client.into()),
            Err(error) => tracing::error!(%error, "keeping the old connections"),
        }
    }
}

fn build(server: Server) -> Result<reqwest::Client, SetupError> {
    static PROVIDER: Once = Once::new();
    // Fails only where somebody has chosen a provider already, which is as good.
    PROVIDER.call_once(|| drop(rustls::crypto::ring::default_provider().install_default()));

    let mut builder = reqwest::Client::builder()
        .user_agent(concat!("botyard/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .tcp_keepalive(KEEP_ALIVE)
        .pool_idle_timeout(IDLE_TIMEOUT)
        .pool_max_idle_per_host(IDLE_CONNECTIONS);
    if !server.tls {
        // Otherwise the machine's root certificates would be read for nothing.
        builder = builder.tls_certs_only(std::iter::empty());
    }
    if server.loopback {
        // A proxy has its own idea of what 127.0.0.1 is.
        builder = builder.no_proxy();
    }
    builder.build().map_err(|error| SetupError::Tls(innermost(&error)))
}

fn joined(base: &SecretString, rest: &str) -> String {
    let base = base.expose_secret();
    let mut url = String::with_capacity(base.len() + rest.len());
    url.push_str(base);
    url.push_str(rest);
    url
}

async fn response(mut answer: reqwest::Response, deadline: Duration) -> Response {
    let status = answer.status().as_u16();
    let retry_after = match answer.headers().get(RETRY_AFTER) {
        Some(header) => header.to_str().ok().map(str::to_owned),
        None => None,
    };
    let (body, cut) = read(&mut answer, deadline).await;
    Response { status, retry_after, body, cut }
}

/// The body, and why it is not whole.
async fn read(answer: &mut reqwest::Response, deadline: Duration) -> (Bytes, Option<String>) {
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    let cut = loop {
        match answer.chunk().await {
            Ok(None) => break None,
            Ok(Some(chunk)) => {
                if first.len() + all.len() + chunk.len() > LONGEST_BODY {
                    break Some(format!("it is longer than {} MiB", LONGEST_BODY >> 20));
                }
                // Nearly every body is one chunk, which is passed on as it is.
                if first.is_empty() && all.is_empty() {
                    first = chunk;
                } else {
                    if all.is_empty() {
                        all.extend_from_slice(&std::mem::take(&mut first));
                    }
                    all.extend_from_slice(&chunk);
                }
            }
            Err(error) if error.is_timeout() => break Some(format!("it was not whole after {deadline:?}")),
            Err(error) => break Some(format!("it broke off: {}", innermost(&error.without_url()))),
        }
    };
    (if all.is_empty() { first } else { all.freeze() }, cut)
}

fn failure(error: reqwest::Error, deadline: Duration) -> TransportError {
    let error = error.without_url();
    if error.is_connect() || error.is_builder() {
        let text = if error.is_timeout() { "the connection timed out".to_owned() } else { innermost(&error) };
        return TransportError::BeforeSend(text);
    }
    // The deadline covers connecting too, but nothing tells how far the request had come.
    if error.is_timeout() {
        TransportError::Silence(format!("no answer within {deadline:?}"))
    } else {
        TransportError::Unknown(innermost(&error))
    }
}

/// The text of the first cause. The errors around it say little, and one of them knows the URL.
fn innermost(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    match error.source() {
        Some(_) => cause.to_string(),
        None => "the request failed".to_owned(),
    }
}
