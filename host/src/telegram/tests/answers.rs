//! What answers mean: Telegram's own, and everything else that comes back from a network.

use proptest::prelude::*;

use super::super::classify;
use super::*;
use crate::domain::ChatId;

/// `ok RESULT`, or the class and the text of the error.
fn told(response: &Response) -> String {
    match classify("sendMessage", response) {
        Ok(result) => format!("ok {}", String::from_utf8(result.to_vec()).unwrap()),
        Err(error) => {
            let text = error.to_string();
            let text = text.strip_prefix("Telegram API error ").unwrap_or(&text).replace(" on sendMessage:", "");
            format!("{} {text}", error.outcome())
        }
    }
}

fn check(status: u16, body: &'static str, expect: &str) {
    let response = Response { status, ..json(body) };
    assert_eq!(told(&response), expect, "status {status}: {body}");
}

#[test]
fn successes() {
    check(200, r#"{"ok":true,"result":{"message_id":7}}"#, r#"ok {"message_id":7}"#);
    check(200, r#"{"result":true,"ok":true,"description":"Webhook was set"}"#, "ok true");
    check(200, r#"{"ok":true,"result":[]}"#, "ok []");
    check(200, r#"{"ok":true,"result":12}"#, "ok 12");
    check(200, "\n {\"ok\" : true , \"result\" : \"x\\u00e9\" }\n", r#"ok "x\u00e9""#);
    check(200, "\u{feff}{\"ok\":true,\"result\":1}", "ok 1");
    check(200, r#"{"ok":"yes","result":1}"#, "ok 1");
    check(200, r#"{"ok":1,"result":1}"#, "ok 1");
    check(200, r#"{"ok":true,"result":1,"error_code":null,"description":null}"#, "ok 1");
    check(200, r#"{"ok":true,"result":{"ok":false,"error_code":400}}"#, r#"ok {"ok":false,"error_code":400}"#);
    check(200, r#"{"ok":true,"result":1,"new_field":{"a":[1,2,{}]}}"#, "ok 1");
    check(201, r#"{"ok":true,"result":1}"#, "ok 1");
}

#[test]
fn refusals_with_telegrams_words() {
    for (code, description, expect) in [
        (400, "Bad Request: chat not found", "chat_gone [400] chat not found"),
        (
            400,
            "Bad Request: message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message",
            "no_op [400] message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message",
        ),
        (400, "Bad Request: message to delete not found", "no_op [400] message to delete not found"),
        (400, "Bad Request: message can't be edited", "refused [400] message can't be edited"),
        (
            400,
            "Bad Request: query is too old and response timeout expired or query ID is invalid",
            "no_op [400] query is too old and response timeout expired or query ID is invalid",
        ),
        (
            400,
            "Bad Request: can't parse entities: Can't find end of the entity starting at byte offset 12",
            "refused [400] can't parse entities: Can't find end of the entity starting at byte offset 12",
        ),
        (400, "Bad Request: message text is empty", "refused [400] message text is empty"),
        (400, "Bad Request: message is too long", "refused [400] message is too long"),
        (400, "Bad Request: BUTTON_DATA_INVALID", "refused [400] BUTTON_DATA_INVALID"),
        (
            400,
            "Bad Request: wrong file identifier/HTTP URL specified",
            "refused [400] wrong file identifier/HTTP URL specified",
        ),
        (
            400,
            "Bad Request: not enough rights to send text messages to the chat",
            "refused [400] not enough rights to send text messages to the chat",
        ),
        (400, "Bad Request: message thread not found", "refused [400] message thread not found"),
        (400, "Bad Request: TOPIC_CLOSED", "refused [400] TOPIC_CLOSED"),
        (400, "Bad Request: chat_id is empty", "refused [400] chat_id is empty"),
        (
            400,
            "Bad Request: can't parse reply keyboard markup JSON object",
            "refused [400] can't parse reply keyboard markup JSON object",
        ),
        (
            400,
            "Bad Request: failed to send message #1 with the error message \"Too Many Requests: retry after 5\"",
            "refused [400] failed to send message #1 with the error message \"Too Many Requests: retry after 5\"",
        ),
        (400, "[Error : 400 : USER_IS_BLOCKED]", "chat_gone [400] [Error : 400 : USER_IS_BLOCKED]"),
        (400, "", "refused [400] Bad Request"),
        (400, "Bad Request: MESSAGE_NOT_MODIFIED", "no_op [400] MESSAGE_NOT_MODIFIED"),
        (400, "Bad Request: CHAT_NOT_MODIFIED", "no_op [400] CHAT_NOT_MODIFIED"),
        (400, "Bad Request: QUERY_ID_INVALID", "no_op [400] QUERY_ID_INVALID"),
        (400, "Bad Request: message to edit not found", "refused [400] message to edit not found"),
        (400, "Bad Request: message to be replied not found", "refused [400] message to be replied not found"),
        (400, "Bad Request: message can't be deleted", "refused [400] message can't be deleted"),
        (400, "Bad Request: group chat was deactivated", "chat_gone [400] group chat was deactivated"),
        (400, "Bad Request: PEER_ID_INVALID", "chat_gone [400] PEER_ID_INVALID"),
        (400, "Bad Request: CHAT_WRITE_FORBIDDEN", "refused [400] CHAT_WRITE_FORBIDDEN"),
        (400, "Bad Request: have no rights to send a message", "refused [400] have no rights to send a message"),
        (400, "Bad Request: MEDIA_EMPTY", "refused [400] MEDIA_EMPTY"),
        (400, "Bad Request: PHOTO_INVALID_DIMENSIONS", "refused [400] PHOTO_INVALID_DIMENSIONS"),
        (400, "Bad Request: message caption is too long", "refused [400] message caption is too long"),
        (400, "Bad Request: inline keyboard expected", "refused [400] inline keyboard expected"),
        (400, "Bad Request: failed to get HTTP URL content", "refused [400] failed to get HTTP URL content"),
        (400, "Bad Request: file is too big", "refused [400] file is too big"),
        (403, "Forbidden: the group chat was deleted", "chat_gone [403] the group chat was deleted"),
        (403, "Forbidden: bot was kicked from the group chat", "chat_gone [403] bot was kicked from the group chat"),
        (
            403,
            "Forbidden: not enough rights to manage pinned messages in the chat",
            "refused [403] not enough rights to manage pinned messages in the chat",
        ),
        (403, "Forbidden: bot was blocked by the user", "chat_gone [403] bot was blocked by the user"),
        (403, "Forbidden: user is deactivated", "chat_gone [403] user is deactivated"),
        (
            403,
            "Forbidden: bot was kicked from the supergroup chat",
            "chat_gone [403] bot was kicked from the supergroup chat",
        ),
        (
            403,
            "Forbidden: bot is not a member of the channel chat",
            "chat_gone [403] bot is not a member of the channel chat",
        ),
        (
            403,
            "Forbidden: bot can't initiate conversation with a user",
            "chat_gone [403] bot can't initiate conversation with a user",
        ),
        (403, "Forbidden: bot can't send messages to bots", "chat_gone [403] bot can't send messages to bots"),
        (404, "Not Found", "unauthorized [404] Not Found"),
        (400, "Logged out", "unauthorized [400] Logged out"),
        (421, "Misdirected Request: unallowed token", "unauthorized [421] unallowed token"),
        (404, "Not Found: method not found", "refused [404] method not found"),
        (413, "Request Entity Too Large", "refused [413] Request Entity Too Large"),
        (406, "Not Acceptable", "refused [406] Not Acceptable"),
        (401, "Unauthorized", "unauthorized [401] Unauthorized"),
        (401, "Unauthorized: invalid token specified", "unauthorized [401] invalid token specified"),
        (
            409,
            "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running",
            "conflict [409] terminated by other getUpdates request; make sure that only one bot instance is running",
        ),
        (500, "Internal Server Error", "server_error [500] Internal Server Error"),
        (500, "Internal Server Error: restart", "server_error [500] restart"),
        (502, "Bad Gateway", "server_error [502] Bad Gateway"),
    ] {
        let body = serde_json::json!({ "ok": false, "error_code": code, "description": description }).to_string();
        assert_eq!(told(&Response { status: code, body: body.into(), ..Response::default() }), expect);
    }
}

#[test]
fn a_webhook_in_the_way_is_told_from_another_poll() {
    let conflict = |description: &str| {
        let body = serde_json::json!({ "ok": false, "error_code": 409, "description": description }).to_string();
        match classify("getUpdates", &Response { status: 409, body: body.into(), ..Response::default() }) {
            Err(Error::Conflict { webhook, .. }) => webhook,
            other => panic!("{other:?}"),
        }
    };
    assert!(conflict(
        "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"
    ));
    assert!(!conflict(
        "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
    ));
}

#[test]
fn a_group_that_has_moved_says_where_to() {
    for (id, expect) in [
        ("-1001557912345", Some(-1_001_557_912_345)),
        (r#""-1001557912345""#, Some(-1_001_557_912_345)),
        ("true", None),
        ("null", None),
        ("1e99", None),
    ] {
        let body = format!(
            r#"{{"ok":false,"error_code":400,"description":"Bad Request: group chat was upgraded to a supergroup chat","parameters":{{"migrate_to_chat_id":{id}}}}}"#
        );
        match classify("sendMessage", &Response { status: 400, body: body.into(), ..Response::default() }) {
            Err(Error::Refused { migrate_to, code: 400, .. }) => assert_eq!(migrate_to, expect.map(ChatId)),
            other => panic!("{other:?}"),
        }
    }
}

/// The wait of a 429 with these parameters, in seconds.
fn waits(parameters: &str, header: Option<&str>, description: &str) -> u64 {
    let body = format!(r#"{{"ok":false,"error_code":429,"description":"{description}"{parameters}}}"#);
    let retry_after = header.map(str::to_owned);
    match classify("sendMessage", &Response { status: 429, retry_after, body: body.into(), cut: None }) {
        Err(Error::Flooded { retry_after, .. }) => retry_after.as_secs(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_flood_waits_what_it_is_told_however_that_is_written() {
    let said = |value: &str| waits(&format!(r#","parameters":{{"retry_after":{value}}}"#), None, "");
    for (value, seconds) in
        [("5", 5), ("6775", 6775), (r#""40""#, 40), ("0.2", 1), ("2.5", 3), ("0", 1), ("-7", 1), ("1e3", 1000)]
    {
        assert_eq!(said(value), seconds, "{value}");
    }
    let a_year = 366 * 24 * 3600;
    for huge in ["99999999999999999999", "1e400", "1e300"] {
        assert_eq!(said(huge), a_year, "{huge}");
    }
    for garbage in ["true", "null", "[]", "{}", r#""soon""#, r#""NaN""#] {
        assert_eq!(said(garbage), 5, "{garbage}");
    }
    assert_eq!(waits("", Some("17"), ""), 17);
    assert_eq!(waits("", Some("Wed, 21 Oct 2026 07:28:00 GMT"), ""), 5);
    assert_eq!(waits("", None, "Too Many Requests: retry after 8"), 8);
    assert_eq!(waits("", None, "Too Many Requests: retry after"), 5);
    assert_eq!(waits(r#","parameters":7"#, None, "Too Many Requests: retry after 9"), 9);
    assert_eq!(waits(r#","parameters":{"retry_after":3}"#, Some("4"), "retry after 2"), 4, "the longest of all");
}

#[test]
fn a_flood_is_one_whichever_code_says_so() {
    check(
        200,
        r#"{"ok":false,"error_code":429,"parameters":{"retry_after":3}}"#,
        "flooded [429] too many requests, retry after 3 s",
    );
    check(
        400,
        r#"{"ok":false,"error_code":400,"parameters":{"retry_after":3}}"#,
        "flooded [429] too many requests, retry after 3 s",
    );
    check(429, "<html>slow down</html>", "flooded [429] too many requests, retry after 5 s");
    check(429, "", "flooded [429] too many requests, retry after 5 s");
    check(400, r#"{"ok":false,"error_code":400,"parameters":{"retry_after":"x"}}"#, "refused [400] Bad Request");
}

#[test]
fn gateways_and_portals_are_no_refusals() {
    let html = "<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>";
    check(502, html, "server_error [502] Bad Gateway");
    check(503, "", "server_error [503] Service Unavailable");
    check(504, html, "server_error [504] no description");
    check(520, html, "server_error [520] no description");
    check(500, "[]", "server_error [500] Internal Server Error");
    check(413, html, "refused [413] Request Entity Too Large");
    let not_json = "the answer (status {}) can't be read: it is not the JSON of a Bot API server; is `api_base` right?";
    for status in [200, 400, 401, 403, 404, 407, 418] {
        check(status, html, &format!("bad_answer sendMessage: {}", not_json.replace("{}", &status.to_string())));
    }
    // A list whose parts stand where an answer's fields would.
    check(200, "[1,2]", &format!("bad_answer sendMessage: {}", not_json.replace("{}", "200")));
    check(200, "", "bad_answer sendMessage: the answer (status 200) can't be read: it is empty");
    check(
        302,
        html,
        "bad_answer sendMessage: the answer (status 302) can't be read: it is a redirection, which Telegram never sends; is `api_base` right?",
    );
}

#[test]
fn json_that_is_no_answer_is_no_refusal_either() {
    for body in [
        "null",
        "true",
        "[]",
        "\"ok\"",
        "12",
        "{\"ok\":tru",
        "{}",
        r#"{"ok":null,"result":1}"#,
        r#"{"result":1}"#,
        r#"{"error":"no"}"#,
    ] {
        assert!(told(&json(body)).starts_with("bad_answer"), "{body}");
    }
    for body in [
        r#"{"ok":false}"#,
        r#"{"ok":"false","result":1}"#,
        r#"{"ok":false,"error_code":7}"#,
        r#"{"ok":false,"error_code":{},"description":[]}"#,
    ] {
        let told = told(&json(body));
        assert!(told.starts_with("bad_answer") && told.ends_with("nor what went wrong"), "{body}: {told}");
    }
}

#[test]
fn what_a_gateway_says_in_json_is_no_refusal_whatever_its_status() {
    for body in [
        r#"{"message":"Forbidden"}"#,
        r#"{"message":"no Route matched"}"#,
        r#"{"detail":"Not Found"}"#,
        r#"{"error_code":400,"description":"Bad Request: chat not found"}"#,
        r#"{"ok":null,"error_code":403}"#,
    ] {
        for status in [200, 302, 400, 401, 403, 404, 409, 421] {
            let error = classify("sendMessage", &Response { status, ..json(body) }).unwrap_err();
            assert_eq!(error.outcome(), "bad_answer", "{status}: {body}");
            assert_eq!(error.is_ambiguous(), status == 200, "{status}: {body}");
        }
        for (status, outcome) in [(413, "refused"), (429, "flooded"), (502, "server_error")] {
            assert_eq!(classify("a", &Response { status, ..json(body) }).unwrap_err().outcome(), outcome, "{body}");
        }
    }
}

#[test]
fn the_text_decides_where_the_code_is_missing() {
    check(200, r#"{"ok":false,"description":"Bad Request: chat not found"}"#, "chat_gone [400] chat not found");
    check(
        200,
        r#"{"ok":false,"error_code":"403","description":"Forbidden: user is deactivated"}"#,
        "chat_gone [403] user is deactivated",
    );
    check(403, r#"{"ok":false,"error_code":true,"description":5}"#, "refused [403] 5");
    check(500, r#"{"ok":true,"result":1}"#, "server_error [500] Internal Server Error");
}

#[test]
fn a_body_that_broke_off_is_told_by_its_reason() {
    let cut = |body| Response { cut: Some("it broke off".to_owned()), ..json(body) };
    for body in ["", "{", r#"{"ok":tru"#, r#"{"ok":false,"error_co"#, r#"{"result":{"ok":true"#] {
        assert_eq!(
            told(&cut(body)),
            "bad_answer sendMessage: the answer (status 200) can't be read: it broke off",
            "{body}"
        );
        assert!(matches!(classify("a", &cut(body)), Err(Error::BadAnswer { cut: true, status: 200, .. })));
    }
    let enough = Response { cut: Some("it broke off".to_owned()), ..json(r#"{"ok":true,"result":1}"#) };
    assert_eq!(told(&enough), "ok 1");
}

#[test]
fn what_begins_as_a_success_is_one_however_it_ends() {
    let cut = Response { cut: Some("it broke off".to_owned()), ..json(r#"{"ok":true,"result":{"mess"#) };
    assert_eq!(told(&cut), "result_lost sendMessage has succeeded, but its result is lost: it broke off");
    for body in [
        r#"{"ok":true"#,
        " { \"ok\" : true , ",
        "\u{feff}{\"ok\":true,\"result\":{\"text\":\"\\ud8",
        r#"{"ok":true,"result":{"message_id":7}"#,
        r#"{"ok":true,"result":1}}"#,
        r#"{"ok":true,"ok":true,"result":1}"#,
        r#"{"ok":true}"#,
        r#"{"ok":true,"result":null}"#,
    ] {
        assert!(told(&json(body)).starts_with("result_lost "), "{body}");
        for status in [302, 400, 502] {
            assert!(!told(&Response { status, ..json(body) }).starts_with("result_lost "), "{status}: {body}");
        }
    }
}

#[test]
fn a_user_who_is_unknown_in_a_chat_is_no_chat_that_is_gone() {
    let refusal = |method: &str, description: &str| {
        let body = serde_json::json!({ "ok": false, "error_code": 400, "description": description }).to_string();
        let response = Response { status: 400, body: body.into(), ..Response::default() };
        classify(method, &response).unwrap_err().refusal()
    };
    assert_eq!(refusal("getChatMember", "Bad Request: user not found"), Some(Refusal::Call));
    assert_eq!(refusal("getChatMember", "Bad Request: PEER_ID_INVALID"), Some(Refusal::Call));
    assert_eq!(refusal("getChatMember", "Bad Request: chat not found"), Some(Refusal::ChatGone));
    assert_eq!(refusal("sendMessage", "Bad Request: user not found"), Some(Refusal::ChatGone));
}

#[test]
fn a_result_is_not_copied() {
    let response = json(r#"{"ok":true,"result":{"text":"long"}}"#);
    let result = classify("getMe", &response).unwrap();
    assert!(response.body.as_ptr_range().contains(&result.as_ptr()));
}

proptest! {
    #[test]
    fn nothing_panics_and_nothing_odd_is_a_success(
        status in 0_u16..1000,
        body in prop_oneof![
            ".{0,60}",
            r#"\{"ok":(true|false|1|"a"),"(result|error_code|parameters|description)":("x"|-?[0-9]{1,25}|\{\}|null)(\}|,|)"#,
        ],
        header in proptest::option::of(".{0,12}"),
    ) {
        let response = Response { status, retry_after: header, body: body.clone().into(), cut: None };
        if let Ok(result) = classify("getMe", &response) {
            prop_assert!((200..300).contains(&status));
            prop_assert!(serde_json::from_slice::<serde_json::Value>(&result).is_ok());
        }
    }
}
