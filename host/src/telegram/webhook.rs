//! `setWebhook`, `deleteWebhook` and `getWebhookInfo`: what the host itself calls about its webhook.

use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::{Client, Error};

const DEADLINE: Duration = Duration::from_secs(20);
/// Stands in no certificate.
const BOUNDARY: &str = "botyard-7f3a1c95e2d84b06";

/// What `getWebhookInfo` tells. A field that is absent or of another type than expected makes the answer unreadable only
/// where the host relies on it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WebhookInfo {
    /// Empty when none is set.
    pub url: String,
    /// Whether Telegram was given the certificate.
    pub has_custom_certificate: bool,
    /// Updates that wait at Telegram.
    pub pending_update_count: u64,
    /// Where Telegram calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ip_address: Option<String>,
    /// Unix seconds of the newest delivery that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error_date: Option<u64>,
    /// Why it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error_message: Option<String>,
    /// How many updates may be on their way at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_connections: Option<u32>,
    /// The kinds that are sent; `None` is Telegram's own choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_updates: Option<Vec<String>>,
}

/// What `setWebhook` is to set.
#[derive(Serialize)]
pub struct SetWebhook<'a> {
    /// The public address.
    pub url: &'a str,
    /// What Telegram proves itself with.
    pub secret_token: &'a str,
    /// How many updates may be on their way at once.
    pub max_connections: u32,
    /// Where to call, instead of asking the DNS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ip_address: Option<String>,
    /// The kinds to send; `None` keeps what is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_updates: Option<&'a [String]>,
    /// A certificate, as PEM, that nobody whom Telegram trusts has signed.
    #[serde(skip)]
    pub certificate: Option<&'a [u8]>,
}

impl WebhookInfo {
    /// The host of the URL: the rest of it may hold secrets.
    #[must_use]
    pub fn host(&self) -> String {
        host(&self.url)
    }
}

/// The host of a URL, for people.
#[must_use]
pub fn host(url: &str) -> String {
    let url = reqwest::Url::parse(url).ok();
    url.as_ref().and_then(reqwest::Url::host_str).map_or_else(|| "another host".to_owned(), str::to_owned)
}

impl Client {
    /// How the bot's webhook stands.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn webhook_info(&self) -> Result<WebhookInfo, Error> {
        let method = "getWebhookInfo";
        let answer = self.call(method, Bytes::from_static(b"{}"), DEADLINE).await?;
        serde_json::from_slice(&answer).map_err(|error| Error::BadAnswer {
            method: method.to_owned(),
            status: 200,
            cut: false,
            reason: format!("its result is none of that method: {error}"),
        })
    }

    /// Sets the webhook. What waits at Telegram stays.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn set_webhook(&self, wanted: &SetWebhook<'_>) -> Result<(), Error> {
        let (content_type, body) = match wanted.certificate {
            None => ("application/json".to_owned(), json(wanted)),
            Some(certificate) => (format!("multipart/form-data; boundary={BOUNDARY}"), form(wanted, certificate)),
        };
        self.call_as("setWebhook", &content_type, body, DEADLINE).await.map(drop)
    }

    /// Removes the webhook, so that the bot can poll.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn delete_webhook(&self, drop_pending: bool) -> Result<(), Error> {
        let params = format!("{{\"drop_pending_updates\":{drop_pending}}}");
        self.call("deleteWebhook", params.into(), DEADLINE).await.map(drop)
    }
}

fn json(wanted: &SetWebhook<'_>) -> Bytes {
    serde_json::to_vec(wanted).expect("texts and numbers always serialize").into()
}

/// The only way to bring a file along. Of the values, none can hold the boundary but by malice of our own configuration.
fn form(wanted: &SetWebhook<'_>, certificate: &[u8]) -> Bytes {
    let mut body = Vec::with_capacity(certificate.len() + 2048);
    let fields = serde_json::to_value(wanted).expect("texts and numbers always serialize");
    for (name, value) in fields.as_object().into_iter().flatten() {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        body.extend_from_slice(
            format!("--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{text}\r\n").as_bytes(),
        );
    }
    body.extend_from_slice(
        format!(
            "--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"certificate\"; filename=\"certificate.pem\"\r\n\
             content-type: application/x-pem-file\r\n\r\n"
        )
        .as_bytes(),
    );
    body.extend_from_slice(certificate);
    body.extend_from_slice(format!("\r\n--{BOUNDARY}--\r\n").as_bytes());
    body.into()
}
