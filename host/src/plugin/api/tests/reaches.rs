//! Every way to Telegram is asked the same questions: at once, queued, kept up, and to many.

use super::*;
use crate::domain::ChatGrant;
use crate::plugin::Broadcasting;
use crate::plugin::bindings::botyard::broadcast::broadcasts::{self, Host as _, Recipient, Recipients};

fn host(bench: &Bench, chats: Option<&[i64]>) -> Host {
    let chats = chats.map(|chats| chats.iter().map(|id| ChatGrant::Id(ChatId(*id))).collect());
    let grants = Grants { chats, broadcast: Broadcasting::Free, ..Grants::default() };
    let methods = vec!["*".to_owned()];
    bench.host(Context { grants, methods, ..context("shop") }, 0, Tx::new(&bench.store), Arc::new(NoCalls))
}

fn queue(host: &mut Host, method: &str, params: &str) -> Result<(), String> {
    let options = bot_api::Options {
        priority: bot_api::Priority::Normal,
        delivery: bot_api::Delivery::AtLeastOnce,
        long_text: bot_api::LongText::Whole,
        bad_markup: bot_api::BadMarkup::Refuse,
    };
    host.enqueue(method.into(), params.into(), options).unwrap().map_err(|error| format!("{error:?}"))
}

/// To the first chat that is granted.
fn broadcast(host: &mut Host, method: &str, params: &str) -> Result<u64, String> {
    let options = broadcasts::Options { name: String::new(), at_least_once: false, max_stars: None };
    let to = Recipients::Listed(vec![Recipient::Chat(7)]);
    host.start(to, method.into(), params.into(), options).unwrap().map_err(|error| format!("{error:?}"))
}

#[tokio::test]
async fn a_chat_that_is_not_granted_is_reached_in_no_way() {
    let bench = Bench::new();
    let mut host = host(&bench, Some(&[7]));
    for params in [
        r#""from_chat_id":-1009,"message_id":1"#,
        r#""message_id":1,"from_chat_id":7,"reply_parameters":{"message_id":1,"chat_id":-1009}"#,
        r#""message_id":1,"from_chat_id":7,"reply_parameters":"{\"message_id\":1,\"chat_id\":-1009}""#,
    ] {
        let to_one = format!(r#"{{"chat_id":7,{params}}}"#);
        let at_once = host.call("copyMessage".into(), to_one.clone()).await.unwrap();
        let kept_up = host.keep_action(to_one.clone()).unwrap();
        let denied = |what: &str, result: Result<(), String>| {
            let error = result.expect_err(what);
            assert!(error.contains("add -1009 to `grants.chats`"), "{what} {params}: {error}");
        };
        denied("at once", at_once.map(drop).map_err(|error| format!("{error:?}")));
        denied("kept up", kept_up.map_err(|error| format!("{error:?}")));
        denied("queued", queue(&mut host, "copyMessage", &to_one));
        denied("to many", broadcast(&mut host, "copyMessage", &format!("{{{params}}}")).map(drop));
    }
    assert_eq!(queue(&mut host, "copyMessage", r#"{"chat_id":7,"from_chat_id":7,"message_id":1}"#), Ok(()));
    assert!(broadcast(&mut host, "copyMessage", r#"{"from_chat_id":7,"message_id":1}"#).is_ok());
    // Everything that is asked of one call is asked of many.
    let error = broadcast(&mut host, "sendMessage", r#"{"text":"a","x":"\ud800"}"#).unwrap_err();
    assert!(error.starts_with("BroadcastError::Invalid"), "{error}");
    let limits = Limits { value: 10, ..Limits::default() };
    let grants = Grants { broadcast: Broadcasting::Free, ..Grants::default() };
    let context = Context { limits, grants, ..context("shop") };
    let mut small = bench.host(context, 0, Tx::new(&bench.store), Arc::new(NoCalls));
    assert!(broadcast(&mut small, "sendMessage", r#"{"text":"a long text"}"#).unwrap_err().contains("limits.value"));
    assert!(broadcast(&mut small, "copyMessage", "{}").unwrap_err().contains("does not declare"));
}

#[tokio::test]
async fn no_way_leads_to_a_file_on_the_servers_disk() {
    let bench = Bench::new();
    let mut host = host(&bench, None);
    for (method, params) in [
        ("sendDocument", r#""document":"file:///etc/passwd""#),
        ("sendDocument", r#""document":"/etc/passwd""#),
        ("sendMediaGroup", r#""media":[{"type":"photo","media":"file:///etc/passwd"}]"#),
        ("sendMediaGroup", r#""media":"[{\"type\":\"photo\",\"media\":\"\\u0066ile:///etc/passwd\"}]""#),
    ] {
        let to_one = format!(r#"{{"chat_id":7,{params}}}"#);
        let at_once = host.call(method.into(), to_one.clone()).await.unwrap();
        for (way, error) in [
            ("at once", format!("{:?}", at_once.unwrap_err())),
            ("queued", queue(&mut host, method, &to_one).unwrap_err()),
            ("to many", broadcast(&mut host, method, &format!("{{{params}}}")).unwrap_err()),
        ] {
            assert!(error.contains("read its disk"), "{way} {params}: {error}");
        }
    }
    assert_eq!(queue(&mut host, "sendMessage", r#"{"chat_id":7,"text":"file:///etc/passwd"}"#), Ok(()));
}
