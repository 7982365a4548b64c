//! One call for many chats: what may be sent to many, and the parameters for one of them. Pure.

use serde_json::{Map, Value as Json};

use crate::store::rows::broadcast::Recipient;

/// What a method's name begins with that sends something to a chat.
const SENDS: [&str; 3] = ["send", "copy", "forward"];
const NOT_FOR_MANY: &str = "sendChatAction";
const PAID: &str = "allow_paid_broadcast";
const CHAT: &str = "chat_id";

/// The parameters without a chat, as they are kept; with `paid`, asking Telegram to take the money.
///
/// # Errors
/// When this can't be sent to many; the text says what to change.
pub fn for_many(method: &str, params: &str, paid: bool) -> Result<String, String> {
    let begins = |start: &&str| method.get(..start.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start));
    if method.is_empty() || !method.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Err(format!("`{method:.64}` is not the name of a Bot API method"));
    }
    if !SENDS.iter().any(begins) || method.eq_ignore_ascii_case(NOT_FOR_MANY) {
        return Err(format!("`{method}` sends nothing to a chat: broadcast `sendMessage`, `copyMessage` or the like"));
    }
    let params: Json =
        serde_json::from_str(params).map_err(|error| format!("the parameters are not a JSON object: {error}"))?;
    let Json::Object(mut params) = params else { return Err("the parameters are not a JSON object".to_owned()) };
    if params.contains_key(CHAT) {
        return Err("leave `chat_id` out of the parameters: it is each recipient's".to_owned());
    }
    if params.contains_key(PAID) {
        return Err(format!("leave `{PAID}` out of the parameters: paying is an option of the broadcast"));
    }
    if paid {
        params.insert(PAID.to_owned(), true.into());
    }
    check_text(method, &params)?;
    Ok(Json::Object(params).to_string())
}

/// What would be refused everywhere.
fn check_text(method: &str, params: &Map<String, Json>) -> Result<(), String> {
    if !method.eq_ignore_ascii_case("sendMessage") {
        return Ok(());
    }
    let text = params.get("text").and_then(Json::as_str).unwrap_or_default();
    if text.trim().is_empty() {
        return Err("the message has no text".to_owned());
    }
    // With markup, only Telegram knows how much of it is text.
    let is_plain = !params.contains_key("parse_mode");
    match text.encode_utf16().count() {
        length if is_plain && length > 4096 => Err(format!("the text has {length} characters, and a message 4096")),
        _ => Ok(()),
    }
}

/// The parameters for one of them.
#[must_use]
pub fn for_one(params: &str, to: &Recipient) -> String {
    let chat = match to {
        Recipient::Chat(chat) => chat.to_string(),
        Recipient::Name(name) => Json::from(name.as_str()).to_string(),
    };
    match params.trim_start().strip_prefix('{').map(str::trim_start) {
        None | Some("}") => format!(r#"{{"{CHAT}":{chat}}}"#),
        Some(rest) => format!(r#"{{"{CHAT}":{chat},{rest}"#),
    }
}

/// Somebody to send to, as people write it: an id, or an `@name`.
///
/// # Errors
/// When it is neither.
pub fn recipient(text: &str) -> Result<Recipient, String> {
    let text = text.trim();
    if let Ok(id) = text.parse::<i64>() {
        // Telegram's ids have 52 bits.
        return match id {
            0 => Err("0 is no chat".to_owned()),
            id if id.unsigned_abs() >> 52 == 0 => Ok(Recipient::Chat(crate::domain::ChatId(id))),
            id => Err(format!("{id} is too large for a chat's id")),
        };
    }
    let is_name = |name: &str| {
        (3..=64).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    match text.strip_prefix('@') {
        Some(name) if is_name(name) => Ok(Recipient::Name(format!("@{}", name.to_ascii_lowercase()))),
        _ => Err(format!("{text:?} is neither a chat's id nor a public @name")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ChatId;

    #[test]
    fn only_what_is_for_a_chat_can_be_sent_to_many() {
        for (method, params, paid, expect) in [
            ("sendMessage", r#"{ "text": "hi" }"#, false, Ok(r#"{"text":"hi"}"#)),
            ("copyMessage", r#"{"message_id":7,"from_chat_id":1}"#, false, Ok(r#"{"from_chat_id":1,"message_id":7}"#)),
            ("sendMessage", r#"{"text":"hi"}"#, true, Ok(r#"{"allow_paid_broadcast":true,"text":"hi"}"#)),
            ("sendPhoto", "{}", false, Ok("{}")),
            ("getChat", "{}", false, Err("sends nothing")),
            ("deleteWebhook", "{}", false, Err("sends nothing")),
            ("banChatMember", "{}", false, Err("sends nothing")),
            ("sendChatAction", "{}", false, Err("sends nothing")),
            ("send/Message", "{}", false, Err("not the name")),
            ("sendMessage", "[]", false, Err("not a JSON object")),
            ("sendMessage", "{", false, Err("not a JSON object: EOF")),
            ("sendMessage", r#"{"chat_id":1,"text":"x"}"#, false, Err("leave `chat_id` out")),
            (
                "sendMessage",
                r#"{"allow_paid_broadcast":true,"text":"x"}"#,
                false,
                Err("leave `allow_paid_broadcast` out"),
            ),
            ("sendmessage", r#"{"text":" "}"#, false, Err("no text")),
        ] {
            match (for_many(method, params, paid), expect) {
                (Ok(params), Ok(expected)) => {
                    let json = |text: &str| serde_json::from_str::<Json>(text).unwrap();
                    assert_eq!(json(&params), json(expected), "{method}");
                }
                (Err(error), Err(part)) => assert!(error.contains(part), "{method}: {error}"),
                (other, _) => panic!("{method} {params}: {other:?}"),
            }
        }
        let long = |length: usize| format!(r#"{{"text":"{}"}}"#, "😀".repeat(length));
        assert!(for_many("sendMessage", &long(2048), false).is_ok());
        assert!(for_many("sendMessage", &long(2049), false).unwrap_err().contains("4098"));
    }

    #[test]
    fn each_gets_the_parameters_with_his_own_chat() {
        let (chat, name) = (Recipient::Chat(ChatId(-5)), Recipient::Name("@news".to_owned()));
        assert_eq!(for_one(r#"{"text":"a}"}"#, &chat), r#"{"chat_id":-5,"text":"a}"}"#);
        assert_eq!(for_one("{}", &name), r#"{"chat_id":"@news"}"#);
    }

    #[test]
    fn recipients_are_ids_and_names() {
        for (text, expect) in [
            ("7", Ok(Recipient::Chat(ChatId(7)))),
            (" -1001557912345 ", Ok(Recipient::Chat(ChatId(-1_001_557_912_345)))),
            ("@News_1", Ok(Recipient::Name("@news_1".to_owned()))),
            ("0", Err("no chat")),
            ("4503599627370496", Err("too large")),
            ("news", Err("neither")),
            ("@", Err("neither")),
            ("@a b c", Err("neither")),
            ("7,8", Err("neither")),
        ] {
            match (recipient(text), expect) {
                (Ok(one), Ok(other)) => assert_eq!(one, other),
                (Err(error), Err(part)) => assert!(error.contains(part), "{text}: {error}"),
                (other, _) => panic!("{text}: {other:?}"),
            }
        }
    }
}
