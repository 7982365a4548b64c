//! HTTP for plugins: one request and its answer, within what is granted.
//!
//! The client is not Telegram's: it has other connections, knows no token and refuses to talk to the Bot API. It uses no
//! proxy, since a proxy would look names up itself, keeps no cookies, and follows redirections by hand: each of them is
//! a request of its own, with the same questions asked. An error is for the plugin's author and the operator; it names
//! servers, and never paths, queries, headers or bodies, where secrets are.

mod address;
mod resolver;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION};
use reqwest::{Method, StatusCode, Url};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use self::address::{Class, class};
use self::resolver::{Lookup, NotPublic, Resolver};
use super::Limit;
use super::allowance::{Allowance, Short};
use super::grants::Reach;
use crate::domain::{Origin, PluginName, Server};
use crate::limit::{Pace, Quota};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
const IDLE_CONNECTIONS: usize = 8;
const REDIRECTIONS: usize = 5;
const MINUTE: Duration = Duration::from_secs(60);
/// Bytes of a request's URL and headers.
const HEAD_BYTES: usize = 32 << 10;
/// The connection's own, and what would make the server see another request than the one that was checked.
const HOST_HEADERS: [&str; 11] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "proxy-connection",
    "proxy-authorization",
    "te",
    "trailer",
    "upgrade",
    "expect",
];
/// What a server may know to which another one has sent us. Everything else may be a secret.
const HARMLESS: [&str; 5] = ["accept", "accept-language", "accept-encoding", "content-type", "user-agent"];
/// Ports of the Bot API don't matter: nothing else is there.
const TELEGRAM: &str = "api.telegram.org";

/// A request, as a plugin gave it.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) method: String,
    pub(super) url: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    pub(super) timeout: Option<Duration>,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Response {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    pub(super) url: String,
}

/// Why there is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Error {
    /// It is not granted.
    #[error("{0}")]
    Denied(String),
    /// It can't be right.
    #[error("{0}")]
    Invalid(String),
    /// It, or its answer, is too large, or there were too many.
    #[error("{0}")]
    Limited(String),
    /// It did not reach the server.
    #[error("{0}")]
    Unreachable(String),
    /// It may or may not have taken effect.
    #[error("{0}")]
    UnknownOutcome(String),
}

/// What became of a request.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) result: Result<Response, Error>,
    /// Some server may have seen it.
    pub(super) reached: bool,
    /// There were too many of these in the last minute: not before so long.
    pub(super) short: Option<(Limit, Duration)>,
    /// Requests that were made: redirections are some of their own.
    pub(super) requests: u32,
    /// Bytes that these have sent, and of the heads of their answers.
    pub(super) bytes: u64,
    /// Bytes that were taken of the allowance for redirections.
    pub(super) taken: u64,
}

/// What one request may use up.
#[derive(Debug, Clone)]
pub(super) struct Budget {
    pub(super) bytes: u64,
    /// Requests of the run, and those of them that it has left.
    pub(super) calls: (u32, u32),
    pub(super) per_minute: u32,
    pub(super) bytes_per_minute: u64,
    /// What all runs share. Of the first request, and of the answer's body, the bytes are taken already.
    pub(super) allowance: Arc<Allowance>,
    pub(super) deadline: Instant,
}

/// Makes requests for all plugins. Cheap to clone; nothing is set up before the first request.
#[derive(Clone)]
pub struct HttpClient(Arc<Inner>);

struct Inner {
    telegram: Vec<Origin>,
    lookup: Lookup,
    client: OnceLock<Result<reqwest::Client, String>>,
    paces: Mutex<HashMap<PluginName, Pace>>,
    /// No request is made at all.
    closed: bool,
}

impl HttpClient {
    /// A client that talks to everybody but the Bot API at these addresses.
    #[must_use]
    pub fn new<'a>(api_bases: impl IntoIterator<Item = &'a str>) -> Self {
        Self::with_lookup(api_bases, resolver::system())
    }

    /// A client that talks to nobody: where plugins are only tried.
    #[must_use]
    pub fn closed() -> Self {
        Self::of([], resolver::system(), true)
    }

    fn with_lookup<'a>(api_bases: impl IntoIterator<Item = &'a str>, lookup: Lookup) -> Self {
        Self::of(api_bases, lookup, false)
    }

    fn of<'a>(api_bases: impl IntoIterator<Item = &'a str>, lookup: Lookup, closed: bool) -> Self {
        let origin = |api_base: &str| Url::parse(api_base.trim()).ok().and_then(|url| Origin::of(&url));
        let telegram = api_bases.into_iter().filter_map(origin).collect();
        Self(Arc::new(Inner { telegram, lookup, client: OnceLock::new(), paces: Mutex::default(), closed }))
    }

    /// Makes a request for a plugin and follows redirections, all before the deadline.
    pub(super) async fn send(
        &self,
        plugin: &PluginName,
        reach: &Reach<'_>,
        request: Request,
        budget: Budget,
    ) -> Exchange {
        let begun = Instant::now();
        let mut made = Made::default();
        let result = self.exchange(plugin, reach, request, &budget, &mut made).await;
        let Made { reached, short, requests, bytes, taken } = made;
        let label = plugin.as_str().to_owned();
        let outcome = outcome(&result);
        metrics::counter!("botyard_http_requests_total", "plugin" => label.clone(), "outcome" => outcome).increment(1);
        if reached {
            metrics::histogram!("botyard_http_seconds", "plugin" => label).record(begun.elapsed().as_secs_f64());
        }
        Exchange { result, reached, short, requests, bytes, taken }
    }

    async fn exchange(
        &self,
        plugin: &PluginName,
        reach: &Reach<'_>,
        request: Request,
        budget: &Budget,
        made: &mut Made,
    ) -> Result<Response, Error> {
        let deadline = request.timeout.map_or(budget.deadline, |time| budget.deadline.min(Instant::now() + time));
        let mut hop = Hop::of(plugin, request, budget.bytes)?;
        let mut origin = self.permit(reach, &hop.url)?;
        if self.0.closed {
            return Err(Error::Unreachable(format!("nothing leaves the machine here: {origin} was not asked")));
        }
        let client = self.client()?;
        for redirections in 0.. {
            self.take_hop(plugin, budget, made, hop.size())?;
            let mut answer = match tokio::time::timeout_at(deadline, hop.request(&client).send()).await {
                Ok(Ok(answer)) => answer,
                Ok(Err(error)) => return Err(failure(error, &origin, &mut made.reached)),
                Err(_) => {
                    made.reached = true;
                    return Err(Error::UnknownOutcome(format!("{origin} has not answered in time")));
                }
            };
            made.reached = true;
            made.bytes += size_of_head(answer.headers());
            let Some(next) = hop.redirection(&answer)? else {
                let body = read_body(&mut answer, plugin, budget.bytes, deadline, &origin).await?;
                let headers = answer.headers().iter().filter(|(name, _)| !HOST_HEADERS.contains(&name.as_str()));
                let headers = headers
                    .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
                    .collect();
                return Ok(Response { status: answer.status().as_u16(), headers, body, url: hop.url.into() });
            };
            if redirections == REDIRECTIONS {
                return Err(Error::Limited(format!("more than {REDIRECTIONS} redirections, the last by {origin}")));
            }
            let target = self.permit(reach, &next).map_err(|error| match error {
                Error::Denied(text) => Error::Denied(format!("{origin} redirects to another place: {text}")),
                other => other,
            })?;
            hop.follow(next, answer.status(), target != origin);
            origin = target;
        }
        unreachable!("the loop ends by its own count")
    }

    /// Whether the plugin may talk to the server of this URL.
    fn permit(&self, reach: &Reach<'_>, url: &Url) -> Result<Origin, Error> {
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Error::Invalid("the URL holds a user or password: give them in a header".to_owned()));
        }
        let origin = Origin::of(url)
            .ok_or_else(|| Error::Invalid("the URL begins with neither https:// nor http://".to_owned()))?;
        if self.is_telegram(&origin) {
            return Err(Error::Denied(format!(
                "{origin} is the Bot API, which only the host talks to: use its methods"
            )));
        }
        reach.check(&origin).map_err(Error::Denied)?;
        if let Server::Address(address) = origin.server
            && class(address) != Class::Public
            && !reach.is_named(&origin)
        {
            return Err(Error::Denied(reach.mend(&origin)));
        }
        if origin.server.is_local_name() && !reach.is_named(&origin) {
            return Err(Error::Denied(reach.mend(&origin)));
        }
        Ok(origin)
    }

    fn is_telegram(&self, origin: &Origin) -> bool {
        let is_here = |server: &Server| match server {
            Server::Name(name) => name == "localhost" || name.ends_with(".localhost"),
            Server::Address(address) => address.is_loopback() || address.is_unspecified(),
        };
        if matches!(&origin.server, Server::Name(name) if name == TELEGRAM) {
            return true;
        }
        self.0.telegram.iter().any(|telegram| {
            let same = telegram.server == origin.server || (is_here(&telegram.server) && is_here(&origin.server));
            same && telegram.port == origin.port
        })
    }

    /// Takes one request of what there is for it; each redirection is one more.
    fn take_hop(&self, plugin: &PluginName, budget: &Budget, made: &mut Made, bytes: u64) -> Result<(), Error> {
        let (most, left) = budget.calls;
        if made.requests >= left {
            let place = Limit::HttpCalls.hit(plugin);
            return Err(Error::Limited(format!(
                "a run can make at most {most} requests, redirections are some: {place}"
            )));
        }
        let per_minute = budget.per_minute;
        // Another attempt would ask for as many again.
        if most - left + made.requests >= per_minute {
            let place = Limit::HttpPerMinute.hit(plugin);
            return Err(Error::Denied(format!(
                "this run alone makes more than {per_minute} requests in a minute: {place}"
            )));
        }
        if let Err(wait) = self.take_turn(plugin, per_minute) {
            made.short = Some((Limit::HttpPerMinute, wait));
            let place = Limit::HttpPerMinute.hit(plugin);
            return Err(Error::Limited(format!("more than {per_minute} requests in a minute: {place}")));
        }
        if made.requests > 0 {
            let most = budget.bytes_per_minute;
            budget.allowance.take_http_bytes(bytes, most).map_err(|short| {
                let place = Limit::HttpBytesPerMinute.hit(plugin);
                if let Short::For(wait) = short {
                    made.short = Some((Limit::HttpBytesPerMinute, wait));
                }
                Error::Limited(format!("more than {most} bytes in a minute, with the redirections: {place}"))
            })?;
            made.taken += bytes;
        }
        made.requests += 1;
        made.bytes += bytes;
        Ok(())
    }

    /// The error is how long there is none.
    fn take_turn(&self, plugin: &PluginName, per_minute: u32) -> Result<(), Duration> {
        let now = Instant::now();
        let mut paces = self.0.paces.lock().unwrap_or_else(PoisonError::into_inner);
        let quota =
            Quota::new(f64::from(per_minute), MINUTE, per_minute).map(|quota| quota.at_most(per_minute, MINUTE));
        let pace = paces.entry(plugin.clone()).or_default();
        let Some(quota) = quota else { return Err(MINUTE) };
        let ready = pace.ready_at(&quota, 1, now);
        if ready > now {
            return Err(ready - now);
        }
        pace.take(&quota, 1, now);
        Ok(())
    }

    fn client(&self) -> Result<reqwest::Client, Error> {
        let client = self.0.client.get_or_init(|| build(self.0.lookup.clone()));
        client.clone().map_err(Error::Unreachable)
    }
}

fn build(lookup: Lookup) -> Result<reqwest::Client, String> {
    // Fails only where somebody has chosen a provider already, which is as good.
    drop(rustls::crypto::ring::default_provider().install_default());
    reqwest::Client::builder()
        .user_agent(concat!("botyard/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .no_proxy()
        .dns_resolver(Arc::new(Resolver(lookup)))
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .pool_idle_timeout(IDLE_TIMEOUT)
        .pool_max_idle_per_host(IDLE_CONNECTIONS)
        .build()
        .map_err(|error| format!("the HTTP client can't be set up: {}", innermost(&error)))
}

/// What became of a request so far.
#[derive(Default)]
struct Made {
    reached: bool,
    short: Option<(Limit, Duration)>,
    requests: u32,
    bytes: u64,
    taken: u64,
}

/// Bytes of headers, about.
fn size_of_head(headers: &HeaderMap) -> u64 {
    headers.iter().map(|(name, value)| (name.as_str().len() + value.len()) as u64).sum()
}

/// One request to one server.
struct Hop {
    method: Method,
    url: Url,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Hop {
    fn of(plugin: &PluginName, request: Request, most_bytes: u64) -> Result<Self, Error> {
        let invalid = |text: String| Error::Invalid(text);
        let method = Method::from_bytes(request.method.to_ascii_uppercase().as_bytes())
            .ok()
            .filter(|method| !matches!(*method, Method::CONNECT | Method::TRACE) && method.as_str().len() <= 32)
            .ok_or_else(|| invalid(format!("`{:.32}` is not a method that can be used", request.method)))?;
        let head = request.headers.iter().map(|(name, value)| name.len() + value.len() + 4).sum::<usize>();
        if request.url.len() + head > HEAD_BYTES {
            return Err(Error::Limited(format!("the URL and the headers have more than {HEAD_BYTES} bytes")));
        }
        if request.body.len() as u64 > most_bytes {
            let size = request.body.len();
            let place = Limit::HttpBytes.hit(plugin);
            return Err(Error::Limited(format!(
                "the request has {size} bytes; at most {most_bytes} are sent: {place}"
            )));
        }
        // Its text may hold a secret.
        let mut url = Url::parse(&request.url).map_err(|error| invalid(format!("the URL is not valid: {error}")))?;
        url.set_fragment(None);
        let mut headers = HeaderMap::new();
        for (name, value) in request.headers {
            let parsed = HeaderName::from_bytes(name.as_bytes());
            let header = parsed.map_err(|_| invalid(format!("`{name:.64}` is not the name of a header")))?;
            if HOST_HEADERS.contains(&header.as_str()) {
                return Err(invalid(format!("the header `{header}` is the host's own")));
            }
            let value = HeaderValue::from_str(&value)
                .map_err(|_| invalid(format!("the header `{header}` has a value that can't be sent")))?;
            headers.append(header, value);
        }
        Ok(Self { method, url, headers, body: request.body })
    }

    /// Bytes that it sends, about.
    fn size(&self) -> u64 {
        (self.url.as_str().len() + self.body.len()) as u64 + size_of_head(&self.headers)
    }

    fn request(&self, client: &reqwest::Client) -> reqwest::RequestBuilder {
        let request = client.request(self.method.clone(), self.url.clone()).headers(self.headers.clone());
        let bare = self.body.is_empty() && !matches!(self.method, Method::POST | Method::PUT | Method::PATCH);
        if bare { request } else { request.body(self.body.clone()) }
    }

    /// Where the answer leads to, if it does.
    fn redirection(&self, answer: &reqwest::Response) -> Result<Option<Url>, Error> {
        if !matches!(answer.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
            return Ok(None);
        }
        let Some(location) = answer.headers().get(LOCATION) else { return Ok(None) };
        let next = location.to_str().ok().and_then(|location| self.url.join(location).ok());
        let mut next =
            next.ok_or_else(|| Error::UnknownOutcome("the answer redirects to what is no URL".to_owned()))?;
        next.set_fragment(None);
        Ok(Some(next))
    }

    fn follow(&mut self, next: Url, status: StatusCode, elsewhere: bool) {
        self.url = next;
        let becomes_get = match status.as_u16() {
            303 => self.method != Method::HEAD,
            301 | 302 => self.method == Method::POST,
            _ => false,
        };
        if becomes_get {
            self.method = Method::GET;
            self.body.clear();
            self.headers.remove(CONTENT_TYPE);
        }
        if elsewhere {
            let secrets: Vec<HeaderName> =
                self.headers.keys().filter(|name| !HARMLESS.contains(&name.as_str())).cloned().collect();
            for name in secrets {
                self.headers.remove(name);
            }
        }
    }
}

async fn read_body(
    answer: &mut reqwest::Response,
    plugin: &PluginName,
    most: u64,
    deadline: Instant,
    origin: &Origin,
) -> Result<Vec<u8>, Error> {
    let too_long = || {
        let place = Limit::HttpBytes.hit(plugin);
        Error::Limited(format!("the answer of {origin} has more than {most} bytes: {place}"))
    };
    // A HEAD request tells a length and has no body.
    let mut body = Vec::new();
    loop {
        match tokio::time::timeout_at(deadline, answer.chunk()).await {
            Ok(Ok(None)) => return Ok(body),
            Ok(Ok(Some(chunk))) if (body.len() + chunk.len()) as u64 > most => return Err(too_long()),
            Ok(Ok(Some(chunk))) => body.extend_from_slice(&chunk),
            Ok(Err(error)) => {
                let reason = innermost(&error.without_url());
                return Err(Error::UnknownOutcome(format!("the answer of {origin} broke off: {reason}")));
            }
            Err(_) => return Err(Error::UnknownOutcome(format!("the answer of {origin} was not whole in time"))),
        }
    }
}

fn failure(error: reqwest::Error, origin: &Origin, reached: &mut bool) -> Error {
    let error = error.without_url();
    if let Some(not_public) = causes(&error).find_map(|cause| cause.downcast_ref::<NotPublic>()) {
        return Error::Denied(not_public.to_string());
    }
    let before_send = error.is_connect() || error.is_builder();
    let reason = if error.is_timeout() { "the connection timed out".to_owned() } else { innermost(&error) };
    if before_send && !*reached {
        return Error::Unreachable(format!("{origin} can't be reached: {reason}"));
    }
    *reached = true;
    Error::UnknownOutcome(format!("{origin} gave no answer: {reason}"))
}

fn causes(error: &reqwest::Error) -> impl Iterator<Item = &(dyn std::error::Error + 'static)> {
    std::iter::successors(Some(error as &(dyn std::error::Error + 'static)), |error| error.source())
}

/// The text of the first cause: those around it say little.
fn innermost(error: &reqwest::Error) -> String {
    causes(error).last().map_or_else(String::new, ToString::to_string)
}

fn outcome(result: &Result<Response, Error>) -> &'static str {
    match result {
        Ok(response) => match response.status {
            ..300 => "ok",
            300..400 => "redirected",
            400..500 => "refused",
            500.. => "failed",
        },
        Err(Error::Denied(_)) => "denied",
        Err(Error::Invalid(_)) => "invalid",
        Err(Error::Limited(_)) => "limited",
        Err(Error::Unreachable(_)) => "unreachable",
        Err(Error::UnknownOutcome(_)) => "unknown",
    }
}
