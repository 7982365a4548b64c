//! Which query Telegram waits for an answer to, where an update is a pressed button.

use std::borrow::Cow;

use serde::Deserialize;

/// The id of the callback query that an update is; `None` for every other update.
#[must_use]
pub fn callback_query_id(update: &str) -> Option<String> {
    const KIND: &str = "callback_query";
    #[derive(Deserialize)]
    struct Update<'a> {
        #[serde(borrow)]
        callback_query: Query<'a>,
    }
    #[derive(Deserialize)]
    struct Query<'a> {
        #[serde(borrow)]
        id: Cow<'a, str>,
    }
    // Most updates are something else, and need not be read for that.
    if !update.contains(KIND) {
        return None;
    }
    let update: Update<'_> = serde_json::from_str(update).ok()?;
    Some(update.callback_query.id.into_owned()).filter(|id| !id.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_pressed_button_has_a_query() {
        for (update, id) in [
            (r#"{"update_id":1,"callback_query":{"id":"42","data":"x","message":{"text":"y"}}}"#, Some("42")),
            (r#"{"callback_query":{"message":{"id":"1"},"id":"4\u0032"},"update_id":1}"#, Some("42")),
            (r#"{"update_id":1,"message":{"text":"\"callback_query\":{\"id\":\"42\"}"}}"#, None),
            (r#"{"update_id":1,"inline_query":{"id":"42","query":"callback_query"}}"#, None),
            (r#"{"update_id":1,"callback_query":{"id":42}}"#, None),
            (r#"{"update_id":1,"callback_query":{"id":""}}"#, None),
            (r#"{"update_id":1,"callback_query":7}"#, None),
            ("callback_query", None),
        ] {
            assert_eq!(callback_query_id(update).as_deref(), id, "{update}");
        }
    }
}
