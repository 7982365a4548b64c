//! How many messages a call makes.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::telegram::Error;

/// Telegram takes 100 messages at most to be forwarded, and 10 in an album.
const MOST: usize = 100;

#[derive(Deserialize)]
struct Many<'a> {
    #[serde(borrow, default, alias = "message_ids")]
    media: Option<&'a RawValue>,
}

/// An album, and messages forwarded or copied together, weigh their items; everything else weighs one.
pub(super) fn weight_of(method: &str, params: &[u8]) -> u32 {
    let many = ["sendMediaGroup", "forwardMessages", "copyMessages"];
    if !many.iter().any(|name| method.eq_ignore_ascii_case(name)) {
        return 1;
    }
    let count = serde_json::from_slice::<Many<'_>>(params).ok().and_then(|many| items(many.media?)).unwrap_or(1);
    u32::try_from(count.clamp(1, MOST)).unwrap_or(1)
}

/// What Telegram counts a call for that failed: nothing, if it certainly did not get there.
pub(super) fn weight_of_failed(error: &Error, method: &str, params: &[u8]) -> u32 {
    match error {
        Error::Unreachable { .. } => 0,
        _ if error.is_ambiguous() || matches!(error, Error::ResultLost { .. }) => weight_of(method, params),
        _ => 1,
    }
}

/// A list, or the JSON of one as text.
fn items(raw: &RawValue) -> Option<usize> {
    let text = match raw.get().starts_with('"') {
        true => serde_json::from_str::<String>(raw.get()).ok()?,
        false => raw.get().to_owned(),
    };
    serde_json::from_str::<Vec<IgnoredAny>>(&text).ok().map(|items| items.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_album_weighs_its_items() {
        for (method, params, weight) in [
            ("sendMediaGroup", r#"{"chat_id":1,"media":[{"type":"photo"},{},{}]}"#, 3),
            ("sendmediagroup", r#"{"media":"[{},{}]"}"#, 2),
            ("copyMessages", r#"{"message_ids":[1,2,3,4]}"#, 4),
            ("sendMediaGroup", r#"{"media":[]}"#, 1),
            ("sendMediaGroup", r#"{"media":7}"#, 1),
            ("sendMediaGroup", "", 1),
            ("sendMessage", r#"{"media":[1,2]}"#, 1),
        ] {
            assert_eq!(weight_of(method, params.as_bytes()), weight, "{method} {params}");
        }
    }
}
