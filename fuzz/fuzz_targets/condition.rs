//! A condition of a manifest on the first line, and behind it what it is held against: it is refused, or written as what
//! is read again as the same, and says the same.
#![no_main]

use botyard_filter::{Condition, Subject};
use libfuzzer_sys::fuzz_target;

const REGEX_BYTES: usize = 64 << 10;

fuzz_target!(|input: &str| {
    let (condition, content) = input.split_once('\n').unwrap_or((input, ""));
    let read = match Condition::parse(condition, REGEX_BYTES) {
        Ok(read) => read,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let shown = read.to_string();
    // What is escaped may be longer than what was read.
    let Ok(again) = Condition::parse(&shown, REGEX_BYTES) else {
        return assert!(shown.len() > botyard_filter::MOST_BYTES, "{shown}");
    };
    assert_eq!(again.to_string(), shown);
    let subject = Subject {
        chat: Some(7),
        chat_type: Some("private"),
        language: Some(content),
        text: Some(content),
        args: Some(content),
        content,
        ..Subject::default()
    };
    assert_eq!(read.holds(&subject), again.holds(&subject), "{shown}");
});
