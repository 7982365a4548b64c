//! Rewrites the chats that a call names, and nothing else of it. Pure.
//!
//! Chats stand in `chat_id` and `from_chat_id`, and in those of `reply_parameters` and `scope`. A number is changed
//! where it stands, so that the rest of the parameters stays byte for byte what the plugin wrote. What can't be read is
//! left as it is: Telegram says what is wrong with it.

use std::ops::Range;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::domain::ChatId;

#[derive(Deserialize, Default)]
struct Named<'a> {
    #[serde(borrow, default)]
    chat_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    from_chat_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    reply_parameters: Option<&'a RawValue>,
    #[serde(borrow, default)]
    scope: Option<&'a RawValue>,
}

/// The chats that a call names by their numbers: the one that it is for first.
#[must_use]
pub fn chats_of(params: &str) -> Vec<ChatId> {
    places(params).into_iter().map(|(_, chat)| chat).collect()
}

/// The parameters with every chat replaced for which `now` knows another id; `None` where there is none.
#[must_use]
pub fn redirect(params: &str, mut now: impl FnMut(ChatId) -> Option<ChatId>) -> Option<String> {
    let mut places: Vec<_> = places(params).into_iter().filter_map(|(place, chat)| Some((place, now(chat)?))).collect();
    if places.is_empty() {
        return None;
    }
    // From the last on, so that the places before it stay where they are.
    places.sort_by_key(|(place, _)| std::cmp::Reverse(place.start));
    let mut params = params.to_owned();
    for (place, chat) in places {
        params.replace_range(place, &chat.to_string());
    }
    Some(params)
}

/// Where the digits of chats stand.
fn places(params: &str) -> Vec<(Range<usize>, ChatId)> {
    let top: Named<'_> = serde_json::from_str(params).unwrap_or_default();
    let inner = [top.reply_parameters, top.scope].into_iter().flatten();
    let inner = inner.map(|raw| serde_json::from_str::<Named<'_>>(raw.get()).unwrap_or_default());
    let all =
        std::iter::once((top.chat_id, top.from_chat_id)).chain(inner.map(|named| (named.chat_id, named.from_chat_id)));
    let raw = all.flat_map(|(chat, from)| [chat, from]).flatten();
    raw.filter_map(|raw| {
        let text = raw.get();
        let digits = text.trim_matches('"').trim();
        let chat = ChatId(digits.parse().ok()?);
        let start = digits.as_ptr() as usize - params.as_ptr() as usize;
        Some((start..start + digits.len(), chat))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEW: ChatId = ChatId(-1_000_000_000_005);

    fn moved(chat: ChatId) -> Option<ChatId> {
        (chat == ChatId(-5)).then_some(NEW)
    }

    #[test]
    fn every_place_that_names_the_chat_is_rewritten_and_nothing_else() {
        for (params, expected) in [
            (r#"{"chat_id":-5,"text":"-5"}"#, Some(r#"{"chat_id":-1000000000005,"text":"-5"}"#)),
            (
                r#"{"text":"\"chat_id\":-5", "chat_id" : "-5" }"#,
                Some(r#"{"text":"\"chat_id\":-5", "chat_id" : "-1000000000005" }"#),
            ),
            (r#"{"chat_id":7,"from_chat_id":-5}"#, Some(r#"{"chat_id":7,"from_chat_id":-1000000000005}"#)),
            (
                r#"{"reply_parameters":{"message_id":-5,"chat_id":-5},"chat_id":-5}"#,
                Some(r#"{"reply_parameters":{"message_id":-5,"chat_id":-1000000000005},"chat_id":-1000000000005}"#),
            ),
            (
                r#"{"commands":[],"scope":{"type":"chat","chat_id":-5}}"#,
                Some(r#"{"commands":[],"scope":{"type":"chat","chat_id":-1000000000005}}"#),
            ),
            (r#"{"chat_id":-55,"user_id":-5}"#, None),
            (r#"{"chat_id":"@x"}"#, None),
            (r#"{"chat_id":-5"#, None),
            ("", None),
        ] {
            assert_eq!(redirect(params, moved).as_deref(), expected, "{params}");
        }
    }

    #[test]
    fn the_chat_that_a_call_is_for_comes_first() {
        let params = r#"{"from_chat_id":-7,"chat_id":-5}"#;
        assert_eq!(chats_of(params), [ChatId(-5), ChatId(-7)]);
    }
}
