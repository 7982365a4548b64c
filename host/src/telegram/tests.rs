//! The client's parts together; [`answers`] is the table of answers, [`sockets`] the real transport.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;

use super::*;
use crate::domain::BotId;

mod answers;
mod files;
mod sockets;

const TOKEN: &str = "123456789:AAEhBOweik6ad9r_QXMENQjcrGbqCr4K-bc";

#[test]
fn a_token_has_one_form() {
    for text in [TOKEN, "1:a", " 123456:ABC\n", "7999999999999:a-_Z"] {
        assert!(Token::parse(text).is_ok(), "{text}");
    }
    assert_eq!(Token::parse(TOKEN).unwrap().bot_id(), BotId(123_456_789));
    for text in [
        "",
        "  ",
        "123",
        "123:",
        ":abc",
        "abc:def",
        "-1:abc",
        "+1:abc",
        "0:a",
        "1:a b",
        "1:a/b",
        "1:ä",
        "bot123:abc",
        "\"1:a\"",
        "99999999999999999999:abc",
    ] {
        let error = Token::parse(text).unwrap_err().to_string();
        let telling = text.trim().len() > 3 && error.contains(text.trim());
        assert!(!telling, "{error}");
    }
}

#[test]
fn a_token_is_never_shown_and_is_told_apart_all_the_same() {
    let token = Token::parse(TOKEN).unwrap();
    let secret = TOKEN.split_once(':').unwrap().1;
    for shown in [format!("{token:?}"), format!("{token}"), format!("{token:#?}")] {
        assert!(!shown.contains(secret), "{shown}");
    }
    let other = Token::parse("123456789:BBEhBOweik6ad9r_QXMENQjcrGbqCr4K-bc").unwrap();
    let base = "https://api.telegram.org";
    assert_eq!(token.fingerprint(base), token.fingerprint("https://api.telegram.org/"));
    assert_ne!(token.fingerprint(base), token.fingerprint("http://127.0.0.1:8081"));
    assert_ne!(token.fingerprint(base), other.fingerprint(base));
}

#[test]
fn an_address_that_is_none_is_named_as_such() {
    for base in ["", "api.telegram.org", "ftp://x", "http://", "https://x/?a=b", "https://x/#a"] {
        let error = Client::new(base, Token::parse(TOKEN).unwrap()).unwrap_err();
        assert!(matches!(error, SetupError::ApiBase(_)), "{base}: {error}");
    }
    let token = || Token::parse(TOKEN).unwrap();
    assert!(Client::new("http://127.0.0.1:1/", token()).is_ok());
    let client = Client::new("https://api.telegram.org", token()).unwrap();
    assert!(!format!("{client:?}").contains("AAE"), "{client:?}");
}

/// Answers from a list, and keeps what it was asked.
#[derive(Default)]
struct Script {
    answers: Mutex<VecDeque<Result<Response, TransportError>>>,
    asked: Mutex<Vec<(String, Bytes, Duration)>>,
}

impl Transport for Script {
    fn post<'a>(
        &'a self,
        method: &'a str,
        body: Bytes,
        deadline: Duration,
    ) -> BoxFuture<'a, Result<Response, TransportError>> {
        self.asked.lock().unwrap().push((method.to_owned(), body, deadline));
        let answer = self.answers.lock().unwrap().pop_front().expect("an answer for every call");
        Box::pin(async { answer })
    }
}

fn script(answers: impl IntoIterator<Item = Result<Response, TransportError>>) -> (Arc<Script>, Client) {
    let script = Arc::new(Script { answers: Mutex::new(answers.into_iter().collect()), ..Script::default() });
    (script.clone(), Client::with_transport(script))
}

fn json(body: &'static str) -> Response {
    Response { status: 200, body: Bytes::from_static(body.as_bytes()), ..Response::default() }
}

#[tokio::test]
async fn a_poll_asks_for_what_it_is_told_and_waits_a_little_longer_than_telegram() {
    let (script, client) = script([Ok(json(r#"{"ok":true,"result":[]}"#)), Ok(json(r#"{"ok":true,"result":[1]}"#))]);
    let kinds = ["message".to_owned()];
    let poll = client.get_updates(Some(-5), Duration::from_secs(30), 100, Some(&kinds)).await;
    assert_eq!(poll.unwrap(), "[]");
    assert_eq!(client.get_updates(None, Duration::ZERO, 1, None).await.unwrap(), "[1]");
    let asked = script.asked.lock().unwrap().clone();
    assert_eq!(asked[0].1, r#"{"offset":-5,"timeout":30,"limit":100,"allowed_updates":["message"]}"#);
    assert_eq!(asked[0].2, Duration::from_secs(40));
    assert_eq!(asked[1].1, r#"{"timeout":0,"limit":1}"#);
}

#[tokio::test]
async fn a_poll_without_a_list_is_no_success() {
    for body in [r#"{"ok":true}"#, r#"{"ok":true,"result":{}}"#, r#"{"ok":true,"result":null}"#] {
        let (_, client) = script([Ok(json(body))]);
        let error = client.get_updates(None, Duration::ZERO, 1, None).await.unwrap_err();
        assert!(matches!(error, Error::BadAnswer { .. } | Error::ResultLost { .. }), "{error}");
    }
}

#[tokio::test]
async fn a_method_that_is_no_word_never_reaches_the_url() {
    let (script, client) = script([]);
    for method in ["", "../getMe", "sendMessage?chat_id=1", "send Message", "a\r\nHost: x", "é", &"a".repeat(65)] {
        let error = client.call(method, Bytes::new(), Duration::ZERO).await.unwrap_err();
        assert!(matches!(error, Error::Refused { code: 404, .. }), "{error}");
    }
    assert!(script.asked.lock().unwrap().is_empty());
}
