//! Requests to servers that the manifest declares and the operator has granted.
//!
//! ```
//! use botyard_sdk::http;
//! use botyard_sdk::prelude::*;
//!
//! #[plugin(http = ["https://api.pay.example"])]
//! mod pay {
//!     use super::http;
//!
//!     #[derive(Deserialize)]
//!     struct Invoice {
//!         link: String,
//!     }
//!
//!     #[command("pay")]
//!     fn pay(ctx: &mut Ctx) -> Result<(), Error> {
//!         let invoice: Invoice = http::post("https://api.pay.example/v1/invoices")
//!             .header("Authorization", &format!("Bearer {}", ctx.secret("pay")?))
//!             // The same on every attempt: the server sees that it is the same request.
//!             .header("Idempotency-Key", &ctx.event_id().to_string())
//!             .json(&json!({ "sum": 5000 }))
//!             .send()?
//!             .ok()?
//!             .json()?;
//!         ctx.reply(invoice.link);
//!         Ok(())
//!     }
//! }
//! # fn main() {}
//! ```
//!
//! A request is made at once, and what it has done stays done, also when the run fails later. A run that is made again
//! gets the earlier answer to the same request, unless it only reads (`GET`, `HEAD`, `OPTIONS`). A restart of the host
//! forgets such answers: let the server tell repetitions by a key, as above.

use std::fmt;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::bindings::botyard::http::client as wit;
use crate::{Error, host, json};

/// A request under construction.
#[derive(Debug, Clone)]
#[must_use = "a request is made by `send`"]
pub struct Request {
    inner: wit::Request,
    problem: Option<String>,
}

/// A `GET` request.
pub fn get(url: impl Into<String>) -> Request {
    request("GET", url)
}

/// A `POST` request.
pub fn post(url: impl Into<String>) -> Request {
    request("POST", url)
}

/// A `PUT` request.
pub fn put(url: impl Into<String>) -> Request {
    request("PUT", url)
}

/// A `PATCH` request.
pub fn patch(url: impl Into<String>) -> Request {
    request("PATCH", url)
}

/// A `DELETE` request.
pub fn delete(url: impl Into<String>) -> Request {
    request("DELETE", url)
}

/// A request with any method.
pub fn request(method: &str, url: impl Into<String>) -> Request {
    let (method, url) = (method.to_owned(), url.into());
    let inner = wit::Request { method, url, headers: Vec::new(), body: Vec::new(), timeout_ms: None };
    Request { inner, problem: None }
}

impl Request {
    /// Adds a header.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.inner.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds a parameter to the URL's query, escaped.
    ///
    /// ```
    /// # use botyard_sdk::http;
    /// let request = http::get("https://api.example/search").query("q", "tea & sugar").query("page", 2);
    /// assert_eq!(request.url(), "https://api.example/search?q=tea%20%26%20sugar&page=2");
    /// ```
    pub fn query(mut self, name: &str, value: impl fmt::Display) -> Self {
        let url = &mut self.inner.url;
        let mark = if !url.contains('?') {
            "?"
        } else if url.ends_with(['?', '&']) {
            ""
        } else {
            "&"
        };
        url.push_str(mark);
        push_escaped(url, name);
        url.push('=');
        push_escaped(url, &value.to_string());
        self
    }

    /// Gives it a body.
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.inner.body = body.into();
        self
    }

    /// Gives it a JSON body.
    pub fn json(mut self, body: &impl Serialize) -> Self {
        match json::to_string(body) {
            Ok(body) => self.inner.body = body.into_bytes(),
            Err(error) => self.problem = Some(format!("the body can't be written as JSON: {error}")),
        }
        self.header("Content-Type", "application/json")
    }

    /// Gives it a form as its body.
    ///
    /// ```
    /// # use botyard_sdk::http;
    /// http::post("https://api.example/login").form(&[("user", "alice"), ("password", "a&b")]);
    /// ```
    pub fn form(mut self, fields: &[(&str, &str)]) -> Self {
        let mut body = String::new();
        for (name, value) in fields {
            if !body.is_empty() {
                body.push('&');
            }
            push_escaped(&mut body, name);
            body.push('=');
            push_escaped(&mut body, value);
        }
        self.inner.body = body.into_bytes();
        self.header("Content-Type", "application/x-www-form-urlencoded")
    }

    /// Gives up after this time. Without it the run's time limit is all that holds.
    pub fn timeout(mut self, time: Duration) -> Self {
        self.inner.timeout_ms = Some(u32::try_from(time.as_millis()).unwrap_or(u32::MAX));
        self
    }

    /// The URL as it is so far.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.inner.url
    }

    /// Makes the request and waits for the answer. An answer of any status is one: see [`Response::ok`].
    ///
    /// # Errors
    /// See [`HttpError`].
    pub fn send(self) -> Result<Response, HttpError> {
        if let Some(problem) = self.problem {
            return Err(HttpError::Invalid(problem));
        }
        let wit::Response { status, headers, body, url } = host::http_send(&self.inner)?;
        Ok(Response { status, headers, body, url })
    }
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Response {
    /// The status, 200 for example.
    pub status: u16,
    /// Names in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// Where it came from, after redirections.
    pub url: String,
}

impl Response {
    /// An answer for tests: see [`Bot::answer`](crate::test::Bot::answer).
    #[must_use]
    pub fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: Vec::new(), body: body.into(), url: String::new() }
    }

    /// The first header of this name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// The body as a text; what is not UTF-8 is replaced.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body, read as JSON.
    ///
    /// # Errors
    /// Permanently, when it is no `T`.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        json::from_slice(&self.body)
            .map_err(|error| Error::permanent(format!("the answer (status {}) can't be read: {error}", self.status)))
    }

    /// True for a status from 200 to 299.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The answer itself, if its status is from 200 to 299.
    ///
    /// # Errors
    /// [`HttpError::Status`] with any other.
    pub fn ok(self) -> Result<Self, HttpError> {
        if self.is_ok() { Ok(self) } else { Err(HttpError::Status(self.status)) }
    }
}

/// Why a request had no answer, or not the one that was wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum HttpError {
    /// The manifest or the operator does not allow it; the text says what to add, and where.
    Denied(String),
    /// The request can't be right.
    Invalid(String),
    /// Too many requests, or too much of a request or an answer.
    Limited(String),
    /// It did not reach the server.
    Unreachable(String),
    /// It may or may not have reached the server: the answer did not come, or not whole, or not in time.
    UnknownOutcome(String),
    /// The answer has this status: from [`Response::ok`].
    Status(u16),
}

impl HttpError {
    /// True if the same request may succeed later.
    ///
    /// ```
    /// use botyard_sdk::http::HttpError;
    /// assert!(HttpError::Status(503).may_pass() && !HttpError::Status(404).may_pass());
    /// ```
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Limited(_) | Self::Unreachable(_) | Self::UnknownOutcome(_) => true,
            Self::Status(status) => *status >= 500 || matches!(status, 408 | 425 | 429),
            Self::Denied(_) | Self::Invalid(_) => false,
        }
    }
}

impl fmt::Display for HttpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Denied(text)
            | Self::Invalid(text)
            | Self::Limited(text)
            | Self::Unreachable(text)
            | Self::UnknownOutcome(text) => f.write_str(text),
            Self::Status(status) => write!(f, "the server answered with status {status}"),
        }
    }
}

impl std::error::Error for HttpError {}

impl From<wit::Error> for HttpError {
    fn from(error: wit::Error) -> Self {
        match error {
            wit::Error::Denied(text) => Self::Denied(text),
            wit::Error::Invalid(text) => Self::Invalid(text),
            wit::Error::Limited(text) => Self::Limited(text),
            wit::Error::Unreachable(text) => Self::Unreachable(text),
            wit::Error::UnknownOutcome(text) => Self::UnknownOutcome(text),
        }
    }
}

/// All but letters, digits and `-._~` as `%XX`.
fn push_escaped(out: &mut String, text: &str) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push(char::from(HEX[usize::from(byte >> 4)]));
            out.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
}
