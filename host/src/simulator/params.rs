//! Parameters of a Bot API call, however they were sent: query string, urlencoded form, JSON or multipart.
//!
//! Telegram makes text of everything first, so a number may come as text and an object as text that holds JSON.
//! The accessors accept both.

use std::borrow::Cow;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{DefaultBodyLimit, FromRequest as _, Multipart};
use bytes::{Bytes, BytesMut};
use hyper::Request;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::api::ApiError;
use super::files::DOWNLOAD_LIMIT;

/// Without files no call is as long as this.
const TEXT_LIMIT: usize = 50 << 20;

/// A file that came along.
#[derive(Debug, Clone)]
pub(super) struct Upload {
    pub(super) field: String,
    pub(super) name: String,
    pub(super) content_type: String,
    pub(super) size: u64,
    /// SHA-256 in hexadecimal.
    pub(super) hash: String,
    /// None if it is larger than what can be fetched again.
    pub(super) bytes: Option<Bytes>,
}

impl Upload {
    /// One that did not come with a call.
    pub(super) fn of(name: &str, content_type: &str, bytes: Bytes) -> Self {
        Self {
            field: String::new(),
            name: name.to_owned(),
            content_type: content_type.to_owned(),
            size: bytes.len() as u64,
            hash: Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect(),
            bytes: (bytes.len() as u64 <= DOWNLOAD_LIMIT).then_some(bytes),
        }
    }
}

/// The parameters of one call.
#[derive(Debug, Clone, Default)]
pub(super) struct Params {
    pub(super) values: Arc<Map<String, Value>>,
    pub(super) uploads: Vec<Upload>,
}

impl Params {
    /// Reads them all. Later sources win over earlier ones: the query string first, then the body.
    /// Files are taken in piece by piece.
    pub(super) async fn read(
        query: Option<&str>,
        content_type: &str,
        body: Body,
        limit: usize,
    ) -> Result<Self, ApiError> {
        let mut values = Map::new();
        form(query.unwrap_or_default(), &mut values);
        let mut uploads = Vec::new();
        if content_type.starts_with("multipart/form-data") {
            multipart(content_type, body, limit, &mut values, &mut uploads).await?;
            return Ok(Self { values: Arc::new(values), uploads });
        }
        let body = axum::body::to_bytes(body, limit.min(TEXT_LIMIT)).await;
        let body = body.map_err(|_| ApiError::new(413, "Request Entity Too Large"))?;
        if body.is_empty() {
        } else if content_type.starts_with("application/json") {
            let parsed: Map<String, Value> = serde_json::from_slice(&body)
                .map_err(|_| ApiError::bad_request("can't parse request parameters as a JSON object"))?;
            if values.is_empty() {
                values = parsed;
            } else {
                values.extend(parsed);
            }
        } else {
            form(&String::from_utf8_lossy(&body), &mut values);
        }
        Ok(Self { values: Arc::new(values), uploads })
    }

    fn get(&self, name: &str) -> Option<&Value> {
        self.values.get(name).filter(|value| !value.is_null())
    }

    pub(super) fn text(&self, name: &str) -> Option<Cow<'_, str>> {
        self.get(name).map(|value| match value {
            Value::String(text) => Cow::Borrowed(text.as_str()),
            other => Cow::Owned(other.to_string()),
        })
    }

    pub(super) fn int(&self, name: &str) -> Option<i64> {
        self.get(name).and_then(int_of)
    }

    pub(super) fn flag(&self, name: &str) -> bool {
        self.text(name).is_some_and(|text| matches!(text.trim().to_ascii_lowercase().as_str(), "true" | "yes" | "1"))
    }

    /// An object or a list: as it is, or as text that holds one. `Err` if it is neither.
    pub(super) fn json(&self, name: &str) -> Option<Result<Value, serde_json::Error>> {
        match self.get(name)? {
            Value::String(text) if text.trim().is_empty() => None,
            Value::String(text) => Some(serde_json::from_str(text)),
            other => Some(Ok(other.clone())),
        }
    }

    pub(super) fn upload(&self, field: &str) -> Option<&Upload> {
        self.uploads.iter().find(|upload| upload.field == field)
    }
}

/// A whole number, or text that is one.
pub(super) fn int_of(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => number.as_i64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

fn form(text: &str, into: &mut Map<String, Value>) {
    for pair in text.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        into.insert(percent_decode(name), Value::String(percent_decode(value)));
    }
}

pub(super) fn percent_decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        match (first, hex) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            (b'+', _) => {
                bytes.push(b' ');
                rest = after;
            }
            _ => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

async fn multipart(
    content_type: &str,
    body: Body,
    limit: usize,
    values: &mut Map<String, Value>,
    uploads: &mut Vec<Upload>,
) -> Result<(), ApiError> {
    let unreadable = || ApiError::bad_request("can't parse multipart form data");
    let mut request = Request::new(body);
    request.headers_mut().insert("content-type", content_type.parse().map_err(|_| unreadable())?);
    DefaultBodyLimit::max(limit).apply(&mut request);
    let mut parts = Multipart::from_request(request, &()).await.map_err(|_| unreadable())?;
    while let Some(mut part) = parts.next_field().await.map_err(|_| unreadable())? {
        let field = part.name().unwrap_or_default().to_owned();
        let Some(name) = part.file_name().map(str::to_owned) else {
            values.insert(field, Value::String(part.text().await.map_err(|_| unreadable())?));
            continue;
        };
        let content_type = part.content_type().unwrap_or("application/octet-stream").to_owned();
        values.insert(field.clone(), Value::String(format!("attach://{field}")));
        let (mut hash, mut size, mut kept) = (Sha256::new(), 0, BytesMut::new());
        while let Some(piece) = part.chunk().await.map_err(|_| unreadable())? {
            hash.update(&piece);
            size += piece.len() as u64;
            if size <= DOWNLOAD_LIMIT {
                kept.extend_from_slice(&piece);
            } else {
                kept = BytesMut::new();
            }
        }
        let hash = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        let bytes = (size <= DOWNLOAD_LIMIT).then(|| kept.freeze());
        uploads.push(Upload { field, name, content_type, size, hash, bytes });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_same_parameters_come_in_four_ways() {
        let multipart = "--b\r\ncontent-disposition: form-data; name=\"chat_id\"\r\n\r\n7\r\n--b\r\n\
            content-disposition: form-data; name=\"text\"\r\n\r\nh\u{e9} +&\r\n--b\r\n\
            content-disposition: form-data; name=\"photo\"; filename=\"a.png\"\r\ncontent-type: image/png\r\n\r\n\
            123\r\n--b--\r\n";
        let encoded = "chat_id=7&text=h%C3%A9+%2B%26";
        for (query, kind, body) in [
            (Some(encoded), "", ""),
            (None, "application/x-www-form-urlencoded", encoded),
            (None, "application/json", r#"{"chat_id":7,"text":"hé +&"}"#),
            (None, "multipart/form-data; boundary=b", multipart),
        ] {
            let params = Params::read(query, kind, Body::from(body), 1 << 20).await.unwrap();
            assert_eq!(params.int("chat_id"), Some(7), "{kind}");
            assert_eq!(params.text("text").as_deref(), Some("hé +&"), "{kind}");
            assert_eq!(params.upload("photo").is_some(), kind.starts_with("multipart"));
        }
        let error = Params::read(None, "application/json", Body::from("[1]"), 1 << 20).await.unwrap_err();
        assert_eq!(error.code, 400);
    }
}
