//! JSON that is read where it lies: a field is looked for when it is asked for, and nothing else is built.
//!
//! An update is a few kilobytes of which a handler wants a handful of fields, so skipping text is cheaper than making a
//! tree of it, in time and in the size of a plugin. It never fails: what is absent, cut off or of another type reads as
//! `None`. Nothing recurses, so depth costs nothing.

use std::fmt;
use std::ops::Range;
use std::rc::Rc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::json::{self, push_text};
use crate::{Error, Value};

/// A JSON value: a part of a shared text.
///
/// ```
/// use botyard_sdk::api::Json;
///
/// let chat = Json::from(r#"{"id":7,"title":"A \"B\"","new":[1,2]}"#);
/// assert_eq!(chat.get("id").and_then(|id| id.as_i64()), Some(7));
/// assert_eq!(chat.get("title").and_then(|title| title.as_text()).as_deref(), Some("A \"B\""));
/// assert_eq!(chat.get("new").unwrap().items().count(), 2);
/// assert!(chat.get("absent").is_none());
/// ```
#[derive(Clone)]
pub struct Json {
    text: Rc<str>,
    start: usize,
    end: usize,
    /// Why what is under construction can't be sent.
    failure: Option<Rc<Error>>,
}

impl Json {
    /// An object without fields.
    #[must_use]
    pub fn object() -> Self {
        Self::from("{}")
    }

    /// `null`.
    #[must_use]
    pub fn null() -> Self {
        Self::from("null")
    }

    /// A JSON string.
    #[must_use]
    pub fn text(text: &str) -> Self {
        let mut json = String::new();
        push_text(&mut json, text);
        Self::from(json)
    }

    /// The JSON text itself.
    #[must_use]
    pub fn as_json(&self) -> &str {
        self.part(self.start..self.end)
    }

    /// The value of a field, where this is an object that has it.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Self> {
        self.find(key).map(|value| self.at(value))
    }

    /// The items, where this is an array.
    pub fn items(&self) -> impl Iterator<Item = Self> + '_ {
        json::items(self.as_json()).map(|item| self.at(self.start + item.start..self.start + item.end))
    }

    /// The text, where this is a string.
    #[must_use]
    pub fn as_text(&self) -> Option<String> {
        json::unescape(self.as_json())
    }

    /// The number, where this is a whole one that fits. One in quotes counts, too.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        let digits = self.as_json().trim_matches('"');
        digits.strip_suffix(".0").unwrap_or(digits).parse().ok()
    }

    /// The number, where this is one.
    #[must_use]
    pub fn as_f64(&self) -> Option<f64> {
        // `NaN` and `inf` are numbers to Rust and not to JSON.
        let number = self.as_json();
        number.starts_with(|first: char| first == '-' || first.is_ascii_digit()).then(|| number.parse().ok())?
    }

    /// The truth value, where this is one.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        match self.as_json() {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }

    /// True for `null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.as_json() == "null"
    }

    /// True for an object.
    #[must_use]
    pub fn is_object(&self) -> bool {
        self.as_json().starts_with('{')
    }

    /// True for an array.
    #[must_use]
    pub fn is_array(&self) -> bool {
        self.as_json().starts_with('[')
    }

    /// As a type of yours that implements serde's `Deserialize`; `None` where it doesn't fit.
    #[must_use]
    pub fn parse<T: DeserializeOwned>(&self) -> Option<T> {
        json::from_str(self.as_json()).ok()
    }

    pub(super) fn put_text(&mut self, key: &str, value: &str) {
        let mut text = String::new();
        push_text(&mut text, value);
        self.put_raw(key, &text);
    }

    pub(crate) fn put_integer(&mut self, key: &str, value: i64) {
        self.put_raw(key, &value.to_string());
    }

    pub(super) fn put_float(&mut self, key: &str, value: f64) {
        let written = json::to_string(&value).unwrap_or_else(|_| "null".to_owned());
        // A whole one is written as such.
        self.put_raw(key, written.strip_suffix(".0").unwrap_or(&written));
    }

    /// Gives the object this field, in place of an older one of this name. `value` must be a whole JSON value.
    pub(crate) fn put_raw(&mut self, key: &str, value: &str) {
        let mut text = String::new();
        if let Some(old) = self.find(key) {
            text.push_str(self.part(self.start..old.start));
            text.push_str(value);
            text.push_str(self.part(old.end..self.end));
        } else {
            let open = self.as_json().strip_suffix('}').unwrap_or("{");
            text.push_str(open);
            if open.len() > 1 {
                text.push(',');
            }
            push_text(&mut text, key);
            text.push(':');
            text.push_str(value);
            text.push('}');
        }
        (self.start, self.end) = (0, text.len());
        self.text = text.into();
    }

    pub(super) fn put_json(&mut self, key: &str, value: &Self) {
        self.inherit(value);
        self.put_raw(key, value.as_json());
    }

    pub(super) fn put_list(&mut self, key: &str, items: Vec<Self>) {
        let list = Self::list(items);
        self.put_json(key, &list);
    }

    pub(super) fn put_value(&mut self, key: &str, value: &impl Serialize) {
        match json::to_string(value) {
            Ok(json) => self.put_raw(key, &json),
            Err(error) => self.fail(Error::permanent(format!("`{key}` can't be written as JSON: {error}"))),
        }
    }

    pub(crate) fn list(items: Vec<Self>) -> Self {
        let mut list = Self::from("[]");
        let mut text = String::from("[");
        for item in &items {
            list.inherit(item);
            if text.len() > 1 {
                text.push(',');
            }
            text.push_str(item.as_json());
        }
        text.push(']');
        Self { failure: list.failure, ..Self::from(text) }
    }

    pub(super) fn fail(&mut self, error: Error) {
        self.failure.get_or_insert_with(|| Rc::new(error));
    }

    pub(super) fn failure(&self) -> Option<&Error> {
        self.failure.as_deref()
    }

    fn inherit(&mut self, part: &Self) {
        if self.failure.is_none() {
            self.failure.clone_from(&part.failure);
        }
    }

    fn find(&self, key: &str) -> Option<Range<usize>> {
        let value = json::find(self.as_json(), key)?;
        Some(self.start + value.start..self.start + value.end)
    }

    fn at(&self, range: Range<usize>) -> Self {
        Self { text: self.text.clone(), start: range.start, end: range.end, failure: None }
    }

    fn part(&self, range: Range<usize>) -> &str {
        // Every range begins and ends beside ASCII, so there is no character to be split.
        self.text.get(range).unwrap_or_default()
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Self {
        let value = json::first(text);
        Self { text: text.into(), start: value.start, end: value.end, failure: None }
    }
}

impl From<String> for Json {
    fn from(text: String) -> Self {
        let value = json::first(&text);
        Self { text: text.into(), start: value.start, end: value.end, failure: None }
    }
}

impl From<&Value> for Json {
    fn from(value: &Value) -> Self {
        Self::from(json::to_string(value).unwrap_or_default())
    }
}

impl From<Value> for Json {
    fn from(value: Value) -> Self {
        Self::from(&value)
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.as_json() == other.as_json()
    }
}

impl Eq for Json {}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_json())
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value: Value = json::from_str(self.as_json()).map_err(serde::ser::Error::custom)?;
        value.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Any JSON, a few levels deep.
    pub(crate) fn value() -> impl Strategy<Value = Value> {
        let text = prop_oneof!["[a-z]{0,6}", "\\PC{0,8}", Just("\"\\/\n\u{0}\u{1F600}]}{[,:".to_owned())];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            // In quarters, which both sides write and read exactly.
            any::<i32>().prop_map(|quarters| Value::from(f64::from(quarters) / 4.0)),
            text.clone().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 48, 6, move |inner| {
            let fields = proptest::collection::btree_map("[a-z_]{1,8}", inner.clone(), 0..6);
            prop_oneof![
                proptest::collection::vec(inner, 0..6).prop_map(Value::from),
                fields.prop_map(|fields| Value::from(fields.into_iter().collect::<serde_json::Map<_, _>>())),
            ]
        })
    }

    fn agrees(json: &Json, value: &Value) {
        assert_eq!(json.parse::<Value>().as_ref(), Some(value));
        assert_eq!(json.as_text().as_deref(), value.as_str());
        assert_eq!(json.as_bool(), value.as_bool());
        assert_eq!(
            (json.is_null(), json.is_object(), json.is_array()),
            (value.is_null(), value.is_object(), value.is_array())
        );
        if !value.is_string() {
            assert_eq!(json.as_f64(), value.as_f64());
        }
        if value.is_i64() {
            assert_eq!(json.as_i64(), value.as_i64());
        }
        for (key, value) in value.as_object().into_iter().flatten() {
            agrees(&json.get(key).unwrap(), value);
        }
        let items: Vec<_> = json.items().collect();
        assert_eq!(items.len(), value.as_array().map_or(0, Vec::len));
        for (json, value) in items.iter().zip(value.as_array().into_iter().flatten()) {
            agrees(json, value);
        }
    }

    proptest! {
        #[test]
        fn reads_what_serde_json_reads(value in value(), pretty: bool) {
            let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
            agrees(&Json::from(format!(" {}\n", text.unwrap())), &value);
        }

        #[test]
        fn survives_what_is_no_json(text in "[\\[\\]{}\":,\\\\ua0-9é🙂 ]{0,40}") {
            let json = Json::from(text.as_str());
            let _ = (json.get("a"), json.as_text(), json.as_i64(), json.as_f64(), json.items().count(), format!("{json:?}"));
        }

        #[test]
        fn a_field_is_written_once(first in value(), second in value(), other in value()) {
            let mut json = Json::object();
            json.put_value("a", &first);
            json.put_value("b", &other);
            json.put_value("a", &second);
            let read = json.parse::<Value>().unwrap();
            prop_assert_eq!(&read["a"], &second);
            prop_assert_eq!(&read["b"], &other);
            prop_assert_eq!(read.as_object().unwrap().len(), 2);
            prop_assert_eq!(json.as_json().matches("\"a\":").count() >= 1, true);
        }
    }

    #[test]
    fn escapes_are_undone() {
        for (json, text) in [
            (r#""\u0041\n\t\b\f\r\/\\\"""#, "A\n\t\u{8}\u{c}\r/\\\""),
            (r#""\ud83d\ude42!""#, "🙂!"),
            (r#""\ud83d!""#, "\u{fffd}!"),
            (r#""\u12""#, "\u{fffd}12"),
            (r#""\ud83d\u0041""#, "\u{fffd}A"),
        ] {
            assert_eq!(Json::from(json).as_text().as_deref(), Some(text), "{json}");
        }
    }

    #[test]
    fn whole_numbers_are_recognised_in_any_dress() {
        for (json, number) in
            [("7", Some(7)), ("-7.0", Some(-7)), ("\"1700000000\"", Some(1_700_000_000)), ("1e3", None)]
        {
            assert_eq!(Json::from(json).as_i64(), number, "{json}");
        }
        for json in ["NaN", "inf", "\"1.5\"", "", "true"] {
            assert_eq!(Json::from(json).as_f64(), None, "{json}");
        }
    }

    #[test]
    fn depth_costs_nothing() {
        let deep = format!("{{\"a\":{}{},\"b\":1}}", "[".repeat(200_000), "]".repeat(200_000));
        assert_eq!(Json::from(deep).get("b").and_then(|b| b.as_i64()), Some(1));
    }
}
