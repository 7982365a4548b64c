//! Bytes as a recording has them: to be read by people, the very same when they are read back, and without secrets.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::config::redaction::{MASK, redact};

/// See the module. Only where a secret was hidden, the bytes are not what they were.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// JSON in one line, as it was written.
    Json(Box<RawValue>),
    /// Other text.
    Text(String),
    /// What is no text, in hexadecimal digits.
    Hex(String),
}

impl Content {
    /// Takes bytes over.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        let Ok(text) = std::str::from_utf8(bytes) else {
            let is_harmless = matches!(redact(&String::from_utf8_lossy(bytes)), std::borrow::Cow::Borrowed(_));
            let hex = || bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            return if is_harmless { Self::Hex(hex()) } else { Self::Text(MASK.to_owned()) };
        };
        let text = redact(text).into_owned();
        match RawValue::from_string(text.clone()) {
            // A recording has lines.
            Ok(json) if json.get() == text && !text.contains(['\n', '\r']) => Self::Json(json),
            _ => Self::Text(text),
        }
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Json(json) => json.get().as_bytes().to_vec(),
            Self::Text(text) => text.as_bytes().to_vec(),
            Self::Hex(hex) => {
                let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
                hex.as_bytes().chunks(2).map_while(byte).collect()
            }
        }
    }

    /// As text, whatever it is.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::Json(json) => json.get(),
            Self::Text(text) | Self::Hex(text) => text,
        }
    }

    /// How long it is in a recording, about.
    #[must_use]
    pub fn weight(&self) -> usize {
        self.text().len()
    }
}

impl PartialEq for Content {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::config::redaction::hide;

    #[test]
    fn what_can_be_read_is_readable() {
        for (bytes, written) in [
            (&br#"{"b":1,"a":[2.50]}"#[..], r#"{"json":{"b":1,"a":[2.50]}}"#),
            (b"tea", r#"{"text":"tea"}"#),
            (b"{\n}", r#"{"text":"{\n}"}"#),
            (b" 1", r#"{"text":" 1"}"#),
            (b"", r#"{"text":""}"#),
            (&[0xff, 0x0a], r#"{"hex":"ff0a"}"#),
        ] {
            assert_eq!(serde_json::to_string(&Content::of(bytes)).unwrap(), written);
        }
    }

    #[test]
    fn a_secret_is_in_none_of_its_forms() {
        hide("hush\"hush-secret");
        let token = b"1234567:AAaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
        for bytes in [&b"a hush\"hush-secret"[..], br#"{"key":"hush\"hush-secret"}"#, token, b"\xffhush\"hush-secret"] {
            let written = serde_json::to_string(&Content::of(bytes)).unwrap();
            assert!(!written.contains("secret") && !written.contains("AAaaa"), "{written}");
        }
    }

    proptest! {
        #[test]
        fn bytes_come_back_as_they_were(bytes in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..40),
            "[\\[{\"a:1, \n}\\]]{0,12}".prop_map(String::into_bytes),
        ]) {
            let written = serde_json::to_string(&Content::of(&bytes)).unwrap();
            prop_assert!(!written.contains('\n'));
            let read: Content = serde_json::from_str(&written).unwrap();
            prop_assert_eq!(read.bytes(), bytes);
        }
    }
}
