//! Which lane a call belongs to. Whoever puts a call into the outbox asks here.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::domain::{ChatId, Lane, UserId};

/// Only what tells the lane; the rest of the parameters is skipped unread.
#[derive(Deserialize, Default)]
struct Target<'a> {
    #[serde(borrow, default)]
    chat_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    user_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    inline_message_id: Option<&'a RawValue>,
    #[serde(
        borrow,
        default,
        alias = "callback_query_id",
        alias = "inline_query_id",
        alias = "pre_checkout_query_id",
        alias = "shipping_query_id",
        alias = "web_app_query_id"
    )]
    query_id: Option<&'a RawValue>,
}

/// The lane of a call: its chat, else its user, else [`Lane::Other`].
///
/// - Answers to queries have an urgent lane each.
/// - A chat that is given by its `@name` has the lane of a chat whose number no chat can have (Telegram's need
///   52 bits), below zero, so that the limits of groups hold: only channels and groups are sent to by name.
/// - A message sent through inline mode has the lane of a user with such a number, so that its edits keep
///   their order.
///
/// The numbers lie in the store's keys: they must not change from one version to the next.
#[must_use]
pub fn lane_of(method: &str, params: &str) -> Lane {
    let target: Target<'_> = serde_json::from_str(params).unwrap_or_default();
    let answers = method.get(..6).is_some_and(|start| start.eq_ignore_ascii_case("answer"));
    if let Some(Id::Number(id) | Id::Name(id)) = target.query_id.filter(|_| answers).and_then(id) {
        return Lane::Urgent(UserId(id));
    }
    match (target.chat_id.and_then(id), target.inline_message_id.and_then(id), target.user_id.and_then(id)) {
        (Some(Id::Number(chat) | Id::Name(chat)), ..) => Lane::Chat(ChatId(chat)),
        (None, Some(Id::Number(message) | Id::Name(message)), _) => Lane::User(UserId(message)),
        (None, None, Some(Id::Number(user))) => Lane::User(UserId(user)),
        _ => Lane::Other,
    }
}

/// The lane of calls to a chat that is given by its `@name`.
#[must_use]
pub fn lane_of_name(username: &str) -> Lane {
    Lane::Chat(ChatId(made_of(&format!("@{}", username.trim_start_matches('@')))))
}

/// True for the lane of an `@name`, which is no chat's own.
#[must_use]
pub fn is_of_name(lane: Lane) -> bool {
    matches!(lane, Lane::Chat(ChatId(id)) if id < -(1 << 53))
}

enum Id {
    Number(i64),
    /// A number made of a text, below every number that Telegram gives.
    Name(i64),
}

/// A number, the same number as text, or any other text that is not empty.
fn id(raw: &RawValue) -> Option<Id> {
    if let Ok(number) = raw.get().parse() {
        return Some(Id::Number(number));
    }
    let text: Cow<'_, str> = match raw.get().strip_prefix('"')?.strip_suffix('"') {
        Some(plain) if !plain.contains('\\') => plain.into(),
        _ => serde_json::from_str::<String>(raw.get()).ok()?.into(),
    };
    match text.trim() {
        "" => None,
        text => Some(text.parse().map_or_else(|_| Id::Name(made_of(text)), Id::Number)),
    }
}

/// FNV-1a over the lower-case text (names differ in more than case), moved to where no id is.
fn made_of(text: &str) -> i64 {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte.to_ascii_lowercase())).wrapping_mul(0x0000_0100_0000_01b3)
    });
    i64::MIN + i64::try_from(hash >> 2).expect("62 bits fit")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chat(id: i64) -> Lane {
        Lane::Chat(ChatId(id))
    }

    #[test]
    fn the_chat_tells_the_lane_however_it_is_written() {
        for (params, lane) in [
            (r#"{"chat_id":7,"text":"a"}"#, chat(7)),
            (r#"{"text":"\"chat_id\":8","chat_id":-1001557912345}"#, chat(-1_001_557_912_345)),
            (r#"{"chat_id":"7"}"#, chat(7)),
            (r#"{"chat_id":" -7 "}"#, chat(-7)),
            (r#"{"chat_id":4503599627370495}"#, chat((1 << 52) - 1)),
            (r#"{"chat_id":7,"user_id":9,"reply_markup":{"chat_id":1}}"#, chat(7)),
            (r#"{"user_id":9}"#, Lane::User(UserId(9))),
            (r#"{"chat_id":null,"user_id":9}"#, Lane::User(UserId(9))),
            (r#"{"callback_query_id":"1"}"#, Lane::Other),
            ("{}", Lane::Other),
            (r#"{"chat_id":1.5}"#, Lane::Other),
            (r#"{"chat_id":{}}"#, Lane::Other),
            (r#"{"chat_id":""}"#, Lane::Other),
            ("", Lane::Other),
            ("[]", Lane::Other),
            (r#"{"chat_id":7"#, Lane::Other),
        ] {
            assert_eq!(lane_of("sendMessage", params), lane, "{params}");
        }
    }

    #[test]
    fn names_have_lanes_of_their_own_that_no_id_can_have() {
        let named = lane_of("sendMessage", r#"{"chat_id":"@botyard"}"#);
        // Rows on disk lie under this number.
        assert_eq!(named, chat(-6_939_369_940_672_816_757), "{named:?}");
        assert_eq!(lane_of("sendMessage", r#"{"chat_id":"\u0040BotYard"}"#), named);
        assert_ne!(lane_of("sendMessage", r#"{"chat_id":"@botyard2"}"#), named);
        let Lane::Chat(ChatId(id)) = named else { panic!() };
        assert!(id < -(1 << 62));
        assert!(is_of_name(named) && !is_of_name(chat(-(1 << 52))) && !is_of_name(chat(5)));
        assert_eq!((lane_of_name("botyard"), lane_of_name("@BotYard")), (named, named));
        let Lane::User(UserId(id)) = lane_of("editMessageText", r#"{"inline_message_id":"AQAAAA"}"#) else { panic!() };
        assert!(id < -(1 << 62));
    }

    #[test]
    fn every_answer_has_an_urgent_lane() {
        for (method, params) in [
            ("answerCallbackQuery", r#"{"callback_query_id":"4382bfdwdsb323b2d9"}"#),
            ("answercallbackquery", r#"{"callback_query_id":"4382bfdwdsb323b2d9","text":"x"}"#),
            ("answerInlineQuery", r#"{"results":[],"inline_query_id":"12"}"#),
            ("answerPreCheckoutQuery", r#"{"pre_checkout_query_id":"12","ok":true}"#),
            ("answerShippingQuery", r#"{"shipping_query_id":12,"ok":true}"#),
            ("answerWebAppQuery", r#"{"web_app_query_id":"x"}"#),
        ] {
            assert!(lane_of(method, params).is_urgent(), "{method}");
        }
        let lane = |id| lane_of("answerCallbackQuery", &format!(r#"{{"callback_query_id":"{id}"}}"#));
        assert_ne!(lane("a"), lane("b"));
        assert_eq!(lane_of("answerCallbackQuery", "{}"), Lane::Other);
    }
}
