//! Callback data where it stands in JSON: in the keyboards of calls, of updates and of answers. Pure.
//!
//! Every member `callback_data` is one, wherever it is: below `reply_markup`, in each of an inline query's results, in
//! keyboards of messages that are replied to. Some parameters may also be given as JSON in a string, and are looked into. What is replaced
//! is replaced where it stands; everything else stays byte for byte as it was.

use std::borrow::Cow;
use std::ops::Range;

const DATA: &str = "callback_data";
/// Parameters that Telegram takes as a string of JSON, too.
const ENCODED: [&str; 3] = ["reply_markup", "results", "result"];

/// Whether there may be something to rewrite: a cheap look, which is never wrong where it says no.
#[must_use]
pub fn may_have_buttons(json: &str) -> bool {
    // A key may be written with escapes.
    json.contains(DATA) || json.contains("\\u")
}

/// The parameters of a call, or any JSON of Telegram's, with the callback data replaced for which `new` has other;
/// `None` where nothing is replaced.
///
/// # Errors
/// The first of `new`'s.
pub fn rewrite<E>(json: &str, new: &mut dyn FnMut(&str) -> Result<Option<String>, E>) -> Result<Option<String>, E> {
    replace(json, &mut |member, value| {
        if member.key == DATA {
            new(value)
        } else if member.depth == 1 && ENCODED.contains(&member.key) {
            rewrite(value, new)
        } else {
            Ok(None)
        }
    })
}

/// As [`rewrite`], for an update; `pressed` is what the data of a pressed button becomes.
///
/// # Errors
/// The first of `new`'s.
pub fn rewrite_update<E>(
    json: &str,
    pressed: Option<&str>,
    new: &mut dyn FnMut(&str) -> Result<Option<String>, E>,
) -> Result<Option<String>, E> {
    replace(json, &mut |member, value| match (member.key, pressed) {
        (DATA, _) => new(value),
        // Of the query itself: its message lies deeper.
        ("data", Some(pressed)) if member.depth == 2 => Ok(Some(pressed.to_owned())),
        _ => Ok(None),
    })
}

/// What a member's string becomes; none where it stays.
type Replace<'f, E> = dyn FnMut(&Member<'_>, &str) -> Result<Option<String>, E> + 'f;

/// A member whose value is a string.
struct Member<'a> {
    key: &'a str,
    /// 1 for those of the outermost object.
    depth: usize,
}

/// Replaces strings that are members' values. Of text that is no JSON it makes no sense, but does no harm.
fn replace<E>(json: &str, new: &mut Replace<'_, E>) -> Result<Option<String>, E> {
    let mut written = String::new();
    let mut done = 0;
    let mut depth = 0_usize;
    let mut key: Option<Cow<'_, str>> = None;
    let mut at = 0;
    while let Some(&byte) = json.as_bytes().get(at) {
        match byte {
            b'{' | b'[' => (depth, key) = (depth + 1, None),
            b'}' | b']' => (depth, key) = (depth.saturating_sub(1), None),
            b',' => key = None,
            b'"' => {
                let string = string_at(json, at);
                at = string.end;
                let is_key = json.as_bytes().get(at..).unwrap_or_default().trim_ascii_start().starts_with(b":");
                if is_key {
                    key = text(json, string);
                } else if let Some((key, value)) = key.take().zip(text(json, string.clone()))
                    && let Some(value) = new(&Member { key: &key, depth }, &value)?
                {
                    written.push_str(json.get(done..string.start).unwrap_or_default());
                    written.push_str(&serde_json::Value::String(value).to_string());
                    done = string.end;
                }
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    if done == 0 {
        return Ok(None);
    }
    written.push_str(json.get(done..).unwrap_or_default());
    Ok(Some(written))
}

/// A string with its quotes, of which the first is at `from`.
fn string_at(json: &str, from: usize) -> Range<usize> {
    let mut at = from + 1;
    while let Some(&byte) = json.as_bytes().get(at) {
        match byte {
            b'"' => return from..at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    from..json.len()
}

fn text(json: &str, string: Range<usize>) -> Option<Cow<'_, str>> {
    let whole = json.get(string)?;
    match whole.get(1..whole.len().checked_sub(1)?) {
        Some(plain) if !plain.contains('\\') => Some(Cow::Borrowed(plain)),
        _ => serde_json::from_str(whole).ok().map(Cow::Owned),
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn marked(json: &str) -> Option<String> {
        rewrite::<Infallible>(json, &mut |data| Ok((data != "keep").then(|| format!("<{data}>")))).unwrap()
    }

    #[test]
    fn every_button_of_a_call_is_rewritten_and_nothing_else() {
        for (params, expected) in [
            (
                r#"{"chat_id": 7, "reply_markup": {"inline_keyboard": [[{"text": "callback_data", "callback_data" : "a"}]]}}"#,
                r#"{"chat_id": 7, "reply_markup": {"inline_keyboard": [[{"text": "callback_data", "callback_data" : "<a>"}]]}}"#,
            ),
            // Two in a row, two rows, and buttons of other kinds.
            (
                r#"{"reply_markup":{"inline_keyboard":[[{"callback_data":"a","text":"A"},{"callback_data":"keep"}],[{"url":"u"},{"callback_data":"b"}]]}}"#,
                r#"{"reply_markup":{"inline_keyboard":[[{"callback_data":"<a>","text":"A"},{"callback_data":"keep"}],[{"url":"u"},{"callback_data":"<b>"}]]}}"#,
            ),
            // Results of an inline query.
            (
                r#"{"results":[{"id":"1","reply_markup":{"inline_keyboard":[[{"callback_data":"a"}]]}},{"id":"2"}]}"#,
                r#"{"results":[{"id":"1","reply_markup":{"inline_keyboard":[[{"callback_data":"<a>"}]]}},{"id":"2"}]}"#,
            ),
            // JSON in a string, which Telegram takes as well.
            (
                r#"{"text":"{\"callback_data\":\"x\"}","reply_markup":"{\"inline_keyboard\":[[{\"callback_data\":\"a\"}]]}"}"#,
                r#"{"text":"{\"callback_data\":\"x\"}","reply_markup":"{\"inline_keyboard\":[[{\"callback_data\":\"<a>\"}]]}"}"#,
            ),
            // However it is written.
            (
                r#"{"reply_markup":{"inline_keyboard":[[{"callback\u005fdata":"\u0061\"\\"}]]}}"#,
                r#"{"reply_markup":{"inline_keyboard":[[{"callback\u005fdata":"<a\"\\>"}]]}}"#,
            ),
            (r#"{"callback_data":"a","callback_data":"b"}"#, r#"{"callback_data":"<a>","callback_data":"<b>"}"#),
        ] {
            assert!(may_have_buttons(params), "{params}");
            assert_eq!(marked(params).as_deref(), Some(expected), "{params}");
        }
    }

    #[test]
    fn what_has_no_buttons_stays() {
        for params in [
            "{}",
            "",
            "\"",
            "{\"callback_data",
            r#"{"callback_data":"keep"}"#,
            r#"{"callback_data":7,"x":"a"}"#,
            r#"{"callback_data":["a"],"text":"\"callback_data\":\"a\""}"#,
            r#"["callback_data","a"]"#,
            r#"{"x":"callback_data"}"#,
        ] {
            assert_eq!(marked(params), None, "{params}");
        }
    }

    #[test]
    fn of_a_press_its_own_data_is_rewritten_too() {
        let update = json!({
            "update_id": 1,
            "callback_query": {
                "id": "1",
                "message": {
                    "web_app_data": { "data": "x" },
                    "reply_markup": { "inline_keyboard": [[{ "text": "A", "callback_data": "a" }]] },
                },
                "data": "a",
            },
        });
        let new = rewrite_update::<Infallible>(&update.to_string(), Some("b"), &mut |_| Ok(Some("c".to_owned())));
        let new: Value = serde_json::from_str(&new.unwrap().unwrap()).unwrap();
        let query = &new["callback_query"];
        assert_eq!((&query["data"], &query["message"]["web_app_data"]["data"]), (&json!("b"), &json!("x")));
        assert_eq!(query["message"]["reply_markup"]["inline_keyboard"][0][0]["callback_data"], "c");
    }

    #[test]
    fn an_error_ends_it() {
        let failed = rewrite(r#"{"a":{"callback_data":"x"}}"#, &mut |_| Err::<Option<String>, _>("too long"));
        assert_eq!(failed, Err("too long"));
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![any::<i64>().prop_map(Value::from), ".{0,8}".prop_map(Value::from), Just(Value::Null)];
        let key = prop_oneof![Just("callback_data".to_owned()), Just("text".to_owned()), "[\"\\\\a-z]{0,4}"];
        leaf.prop_recursive(5, 40, 5, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::btree_map(key.clone(), inner, 0..5)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    fn mark(value: &mut Value) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(mark),
            Value::Object(members) => members.iter_mut().for_each(|(key, value)| match value {
                Value::String(data) if key == DATA => *data = format!("<{data}>"),
                other => mark(other),
            }),
            _ => {}
        }
    }

    proptest! {
        #[test]
        fn it_does_the_same_as_walking_the_values(value in values()) {
            let json = value.to_string();
            let new = rewrite::<Infallible>(&json, &mut |data| Ok(Some(format!("<{data}>")))).unwrap();
            let mut expected = value;
            mark(&mut expected);
            prop_assert_eq!(serde_json::from_str::<Value>(&new.unwrap_or(json)).unwrap(), expected);
        }

        #[test]
        fn nothing_makes_it_fail(text in ".*") {
            marked(&text);
        }
    }
}
