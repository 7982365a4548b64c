//! Our reader and writer beside `serde_json`'s: the same values, and the same texts.

use std::collections::BTreeMap;
use std::fmt::Debug;

use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::*;
use crate::api::any_json;

/// One of everything that derives make.
#[derive(Serialize, Deserialize, Debug, PartialEq, Clone)]
enum Shape {
    Nothing,
    One(i8),
    Two(u64, String),
    Named { at: Option<Place>, letter: char, rest: BTreeMap<i16, bool> },
    Wrapped(Wrapped),
    Numbers(i128, u128, f64, f32),
    Tagged(Vec<Tagged>),
    Untagged(Untagged),
    Unit(()),
    Bytes([u8; 3]),
}

#[derive(Serialize, Deserialize, Debug, PartialEq, Clone)]
struct Place {
    x: u8,
    #[serde(default)]
    y: i64,
}

#[derive(Serialize, Deserialize, Debug, PartialEq, Clone)]
struct Wrapped(BTreeMap<Colour, Vec<u16>>);

#[derive(Serialize, Deserialize, Debug, PartialEq, Eq, PartialOrd, Ord, Clone)]
enum Colour {
    Red,
    Blue,
}

#[derive(Serialize, Deserialize, Debug, PartialEq, Clone)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Tagged {
    Plain { n: i32 },
    Deep { inner: Box<Shape> },
}

#[derive(Serialize, Deserialize, Debug, PartialEq, Clone)]
#[serde(untagged)]
enum Untagged {
    Text(String),
    Number(f64),
    Both { a: u8, b: String },
}

fn shape() -> impl Strategy<Value = Shape> {
    let text = "\\PC{0,8}|[\"\\\\\n\t\u{1}]{0,4}";
    let place = (any::<u8>(), any::<i64>()).prop_map(|(x, y)| Place { x, y });
    let colour = prop_oneof![Just(Colour::Red), Just(Colour::Blue)];
    let finite = || any::<f64>().prop_filter("JSON has no infinity", |n| n.is_finite());
    let finite_short = any::<f32>().prop_filter("JSON has no infinity", |n| n.is_finite());
    let untagged = prop_oneof![
        text.prop_map(Untagged::Text),
        finite().prop_map(Untagged::Number),
        (any::<u8>(), text).prop_map(|(a, b)| Untagged::Both { a, b }),
    ];
    let leaf = prop_oneof![
        Just(Shape::Nothing),
        any::<i8>().prop_map(Shape::One),
        (any::<u64>(), text).prop_map(|(a, b)| Shape::Two(a, b)),
        (
            proptest::option::of(place),
            any::<char>(),
            proptest::collection::btree_map(any::<i16>(), any::<bool>(), 0..3)
        )
            .prop_map(|(at, letter, rest)| Shape::Named { at, letter, rest }),
        proptest::collection::btree_map(colour, proptest::collection::vec(any::<u16>(), 0..3), 0..3)
            .prop_map(|map| Shape::Wrapped(Wrapped(map))),
        (any::<i128>(), any::<u128>(), finite(), finite_short).prop_map(|(a, b, c, d)| Shape::Numbers(a, b, c, d)),
        untagged.prop_map(Shape::Untagged),
        Just(Shape::Unit(())),
        any::<[u8; 3]>().prop_map(Shape::Bytes),
    ];
    leaf.prop_recursive(3, 16, 3, |inner| {
        let tagged = prop_oneof![
            any::<i32>().prop_map(|n| Tagged::Plain { n }),
            // What serde itself can't keep while it looks for the tag: 128-bit numbers, and keys that are numbers.
            inner
                .prop_filter("not within", |shape| !matches!(shape, Shape::Numbers(..) | Shape::Named { .. }))
                .prop_map(|inner| Tagged::Deep { inner: Box::new(inner) }),
        ];
        proptest::collection::vec(tagged, 0..3).prop_map(Shape::Tagged)
    })
}

fn read<T: DeserializeOwned + Debug + PartialEq>(text: &str) -> Option<T> {
    from_str(text).ok()
}

proptest! {
    #[test]
    fn whatever_serde_json_writes_is_read(shape in shape(), pretty: bool) {
        let text = if pretty { serde_json::to_string_pretty(&shape) } else { serde_json::to_string(&shape) };
        prop_assert_eq!(from_str::<Shape>(&text.unwrap()).unwrap(), shape);
    }

    #[test]
    fn whatever_we_write_is_read_by_both(shape in shape()) {
        let text = to_string(&shape).unwrap();
        prop_assert_eq!(&from_str::<Shape>(&text).unwrap(), &shape);
        // Of its fractions, serde_json may miss the last digit.
        serde_json::from_str::<Shape>(&text).unwrap();
    }

    #[test]
    fn values_are_written_alike(value in any_json()) {
        prop_assert_eq!(to_string(&value).unwrap(), serde_json::to_string(&value).unwrap());
        prop_assert_eq!(from_str::<Value>(&to_string(&value).unwrap()).unwrap(), value);
    }

    #[test]
    fn what_is_no_json_to_serde_json_is_none_here(text in "[\\[\\]{}\":,ua0-9eE.+ -]{0,12}") {
        prop_assert_eq!(from_str::<Value>(&text).is_ok(), serde_json::from_str::<Value>(&text).is_ok(), "{}", text);
        prop_assert_eq!(read::<serde::de::IgnoredAny>(&text).is_some(), serde_json::from_str::<Value>(&text).is_ok());
    }
}

#[test]
fn what_follows_a_value_is_an_error() {
    for text in ["1 2", "{} x", "", "  ", "[1,]", "{\"a\":1,}", "{\"a\"}", "[1 2]", "nul", "01", "1.", "-", "\"a"] {
        assert!(from_str::<Value>(text).is_err(), "{text}");
        assert!(read::<serde::de::IgnoredAny>(text).is_none(), "{text}");
    }
}

#[test]
fn errors_name_the_field() {
    fn error<T: DeserializeOwned + Debug>(text: &str) -> String {
        from_str::<T>(text).unwrap_err().to_string()
    }
    for (told, expected) in [
        (error::<Place>(r#"{"x":"7"}"#), r#"x: invalid type: "7", expected u8"#),
        (error::<Place>(r#"{"x":1.5}"#), "x: invalid type: 1.5, expected u8"),
        (error::<Place>(r#"{"x":256}"#), "x: invalid value: 256, expected u8"),
        (error::<Place>(r#"{"y":1}"#), "missing field `x`"),
        (error::<Vec<Place>>(r#"[{"x":1},{"x":[]}]"#), "1.x: invalid type: an array, expected u8"),
        (error::<BTreeMap<i16, bool>>(r#"{"a":true}"#), r#"invalid type: "a", expected i16"#),
        (error::<Colour>(r#""Green""#), "unknown variant `Green`, expected `Red` or `Blue`"),
        (error::<Shape>(r#""One""#), "this variant holds something, which is missing"),
        (error::<(u8, u8)>("[1,2,3]"), "2 values were expected, and there are more"),
        (error::<f64>("1e999"), "the number 1e999 is out of range"),
        (error::<Value>("<html>"), "no JSON at byte 0: expected a number"),
    ] {
        assert_eq!(told, expected);
    }
}

#[test]
fn depth_is_an_error_and_no_overflow() {
    for open in ["[", "{\"a\":"] {
        let deep = open.repeat(100_000);
        assert_eq!(from_str::<Value>(&deep).unwrap_err().message, "nested too deeply");
        assert_eq!(from_str::<serde::de::IgnoredAny>(&deep).unwrap_err().message, "nested too deeply");
    }
    // Side by side is not in each other.
    let wide = format!("[{}0]", r#"[{"a":"Red"}],"#.repeat(500));
    from_str::<Value>(&wide).unwrap();
    let enums = format!("[{}\"Nothing\"]", r#"{"One":1},"#.repeat(500));
    assert_eq!(from_str::<Vec<Shape>>(&enums).unwrap().len(), 501);
}

#[test]
fn what_json_has_no_key_for_is_an_error() {
    let error = to_string(&BTreeMap::from([(vec![1], 2)])).unwrap_err();
    assert_eq!(error.to_string(), "a map's keys must be texts, numbers or truth values");
    assert_eq!(to_string(&f64::NAN).unwrap(), "null");
}
