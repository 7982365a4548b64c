//! The seam between calls and sockets: bytes out, bytes in.
//!
//! Tests put a transport of their own here, in memory, so that waiting can be tested on a paused clock.

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;

use super::{Multipart, Progress};

/// Carries one call.
pub trait Transport: Send + Sync {
    /// Posts a JSON body to a method and reads the whole answer, all within the deadline.
    fn post<'a>(
        &'a self,
        method: &'a str,
        body: Bytes,
        deadline: Duration,
    ) -> BoxFuture<'a, Result<Response, TransportError>>;

    /// The same with a body of another type; whoever does not care takes it for JSON.
    fn post_as<'a>(
        &'a self,
        method: &'a str,
        _content_type: &'a str,
        body: Bytes,
        deadline: Duration,
    ) -> BoxFuture<'a, Result<Response, TransportError>> {
        self.post(method, body, deadline)
    }

    /// Posts a body with files to a method and reads the whole answer. Takes the time that it takes: the caller watches
    /// `progress`, and gives up by dropping the future.
    fn upload<'a>(
        &'a self,
        _method: &'a str,
        _body: &'a Multipart,
        _progress: Progress,
    ) -> BoxFuture<'a, Result<Response, TransportError>> {
        Box::pin(std::future::ready(Err(TransportError::BeforeSend("this way carries no files".to_owned()))))
    }

    /// Begins to fetch the file at a path that `getFile` gave.
    fn download<'a>(&'a self, _path: &'a str) -> BoxFuture<'a, Result<Download, TransportError>> {
        Box::pin(std::future::ready(Err(TransportError::BeforeSend("this way carries no files".to_owned()))))
    }

    /// Leaves all connections behind and begins with new ones.
    fn rebuild(&self) {}
}

/// A file that is on its way.
pub struct Download {
    /// The HTTP status; the body is the file with 200 only.
    pub status: u16,
    /// Bytes that were promised.
    pub length: Option<u64>,
    /// What comes. Its errors hold neither URL nor token.
    pub body: BoxStream<'static, Result<Bytes, String>>,
}

/// An answer, whatever it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// The `Retry-After` header, where it is there and is text.
    pub retry_after: Option<String>,
    /// The body, as far as it came.
    pub body: Bytes,
    /// Why the body is not whole, if it isn't.
    pub cut: Option<String>,
}

/// Why there is no answer. The texts hold neither URL nor token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// The request was not written: no name, no connection, no TLS.
    #[error("{0}")]
    BeforeSend(String),
    /// The request was written, at least in part.
    #[error("{0}")]
    Unknown(String),
    /// The same, and nobody has said anything until the time was over.
    #[error("{0}")]
    Silence(String),
}
