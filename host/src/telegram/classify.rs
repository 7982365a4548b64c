//! Tells what an answer means.
//!
//! Pure. The code decides (Telegram's own before HTTP's), then `parameters`, the text last. Nothing that a
//! proxy, a captive portal or a failing server can answer makes it panic, and whatever is not an answer of the
//! Bot API is [`Error::BadAnswer`], which is worth another try, not a refusal. But what begins as a success is
//! one, however it ends: then only the result is lost ([`Error::ResultLost`]), and repeating would do it twice.

use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Error, Response};
use crate::domain::ChatId;

/// What a 429 without any number is taken for.
const UNSAID_WAIT: Duration = Duration::from_secs(5);
/// Keeps sums of time from overflowing. Nobody is told to wait longer, so nothing is shortened by it.
const LONGEST_WAIT: Duration = Duration::from_secs(366 * 24 * 3600);

/// The names that Telegram writes before its descriptions.
const NAMES: [(&str, u16); 11] = [
    ("Bad Request", 400),
    ("Unauthorized", 401),
    ("Forbidden", 403),
    ("Not Found", 404),
    ("Conflict", 409),
    ("Request Entity Too Large", 413),
    ("Misdirected Request", 421),
    ("Too Many Requests", 429),
    ("Internal Server Error", 500),
    ("Bad Gateway", 502),
    ("Service Unavailable", 503),
];

/// Every field as it stands: a wrong type in one must not hide the others.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    ok: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error_code: Option<&'a RawValue>,
    #[serde(borrow, default)]
    description: Option<&'a RawValue>,
    #[serde(borrow, default)]
    parameters: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
struct Parameters<'a> {
    #[serde(borrow, default)]
    retry_after: Option<&'a RawValue>,
    #[serde(borrow, default)]
    migrate_to_chat_id: Option<&'a RawValue>,
}

/// The `result` of an answer, without copying it, or what went wrong.
///
/// # Errors
/// Whatever is not a success.
pub fn classify(method: &str, response: &Response) -> Result<Bytes, Error> {
    let body = response.body.strip_prefix(b"\xef\xbb\xbf".as_slice()).unwrap_or(&response.body);
    // Fields by their place, which a list would be taken for, are none that Telegram gives.
    let is_object = body.trim_ascii_start().starts_with(b"{");
    let envelope = match serde_json::from_slice::<Envelope<'_>>(body) {
        Ok(envelope) if is_object => envelope,
        _ => return Err(unreadable(method, response, body)),
    };
    if envelope.ok.is_none() {
        return Err(unreadable(method, response, body));
    }
    let said_no = envelope.ok.is_some_and(|ok| matches!(unquoted(ok), "false" | "0" | ""));
    let succeeded = (200..300).contains(&response.status) && !said_no && envelope.error_code.is_none();
    match (envelope.ok, envelope.result) {
        (Some(_), Some(result)) if succeeded => Ok(response.body.slice_ref(result.get().as_bytes())),
        // An absent field and one that is null read the same way; Telegram has no result that is null.
        (Some(ok), None) if succeeded && ok.get() == "true" => Err(lost(method, "there is none in the answer")),
        _ => Err(refusal(method, response, &envelope)),
    }
}

/// No answer of the Bot API, which always has an `ok`: nobody but HTTP has a say.
fn unreadable(method: &str, response: &Response, body: &[u8]) -> Error {
    let method = method.to_owned();
    let status = response.status;
    match status {
        413 => Error::Refused { method, code: status, description: name_of(status), migrate_to: None },
        429 => Error::Flooded { method, retry_after: wait(None, response, "") },
        500..600 => Error::ServerError { method, status, description: name_of(status) },
        200..300 if begins_as_success(body) => {
            let reason = response.cut.as_deref().unwrap_or("the answer is damaged after its beginning");
            lost(&method, reason)
        }
        _ => {
            let reason = match (&response.cut, status) {
                (Some(cut), _) => cut.clone(),
                (None, 300..400) => "it is a redirection, which Telegram never sends; is `api_base` right?".to_owned(),
                (None, _) if body.is_empty() => "it is empty".to_owned(),
                (None, _) => "it is not the JSON of a Bot API server; is `api_base` right?".to_owned(),
            };
            Error::BadAnswer { method, status, cut: response.cut.is_some(), reason }
        }
    }
}

/// True for `{"ok":true`, which only a success begins with.
fn begins_as_success(body: &[u8]) -> bool {
    let mut rest = body;
    for token in [b"{".as_slice(), b"\"ok\"", b":", b"true"] {
        match rest.trim_ascii_start().strip_prefix(token) {
            Some(after) => rest = after,
            None => return false,
        }
    }
    true
}

fn lost(method: &str, reason: &str) -> Error {
    Error::ResultLost { method: method.to_owned(), reason: reason.to_owned() }
}

fn refusal(method: &str, response: &Response, envelope: &Envelope<'_>) -> Error {
    let text = envelope.description.map(text_of).unwrap_or_default();
    let parameters = envelope.parameters.filter(|raw| raw.get().starts_with('{'));
    let parameters: Parameters<'_> =
        parameters.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    let said = envelope.error_code.and_then(number_of).filter(|code| (300.0..600.0).contains(code));
    let code = match (said, response.status) {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 300 and 600")]
        (Some(code), _) => code as u16,
        (None, 400..) => response.status,
        (None, _) => NAMES.iter().find(|(name, _)| text.starts_with(name)).map_or(0, |(_, code)| *code),
    };
    let method = method.to_owned();
    let description = match (without_name(&text), code) {
        ("", _) => name_of(code),
        (text, _) => text.to_owned(),
    };
    let told_to_wait = parameters.retry_after.and_then(number_of).is_some();
    match code {
        _ if is_about_the_token(code, &description) => Error::Unauthorized { method, code, description },
        409 => Error::Conflict { method, webhook: text.contains("webhook"), description },
        429 => Error::Flooded { method, retry_after: wait(parameters.retry_after, response, &text) },
        400..500 if told_to_wait => {
            Error::Flooded { method, retry_after: wait(parameters.retry_after, response, &text) }
        }
        400..500 => Error::Refused {
            method,
            code,
            description,
            migrate_to: parameters.migrate_to_chat_id.and_then(|raw| unquoted(raw).parse().ok()).map(ChatId),
        },
        500..600 => Error::ServerError { method, status: code, description },
        _ => Error::BadAnswer {
            method,
            status: response.status,
            cut: false,
            reason: "it says neither that the call succeeded nor what went wrong".to_owned(),
        },
    }
}

/// Speaks of the bot, not of the call: 404 is what a token of a wrong form gets, or an `api_base` that leads nowhere; a
/// method that is not there is named in the text. A server of one's own answers 421 where the bot is not let in, and
/// "Logged out" after `logOut`.
fn is_about_the_token(code: u16, description: &str) -> bool {
    match code {
        401 | 421 => true,
        404 => description == "Not Found",
        400 => description == "Logged out",
        _ => false,
    }
}

/// The longest of all waits that the answer names, at least a second.
fn wait(parameter: Option<&RawValue>, response: &Response, text: &str) -> Duration {
    let named = [
        parameter.and_then(number_of),
        response.retry_after.as_deref().and_then(|header| header.trim().parse().ok()),
        text.rsplit_once("retry after ").and_then(|(_, rest)| {
            rest.split(|c: char| !c.is_ascii_digit()).next().and_then(|digits| digits.parse().ok())
        }),
    ];
    let longest = named.into_iter().flatten().filter(|seconds: &f64| !seconds.is_nan()).reduce(f64::max);
    match longest {
        None => UNSAID_WAIT,
        Some(seconds) => Duration::from_secs_f64(seconds.ceil().clamp(1.0, LONGEST_WAIT.as_secs_f64())),
    }
}

/// A number, be it written as one or as text.
fn number_of(raw: &RawValue) -> Option<f64> {
    unquoted(raw).trim().parse().ok()
}

fn unquoted(raw: &RawValue) -> &str {
    raw.get().trim_matches('"')
}

/// A text, or the JSON of what stands in its place.
fn text_of(raw: &RawValue) -> String {
    serde_json::from_str(raw.get()).unwrap_or_else(|_| raw.get().to_owned())
}

/// Telegram's text without the name of the code: the code is shown beside it.
fn without_name(text: &str) -> &str {
    NAMES.iter().find_map(|(name, _)| text.strip_prefix(name)?.strip_prefix(": ")).unwrap_or(text).trim()
}

fn name_of(code: u16) -> String {
    match NAMES.iter().find(|(_, known)| *known == code) {
        Some((name, _)) => (*name).to_owned(),
        None => "no description".to_owned(),
    }
}
