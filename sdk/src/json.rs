//! A small writer for JSON objects.
//!
//! Most calls of the Bot API are a few numbers and texts. Writing those by hand keeps `serde_json`'s serializer out of
//! plugins that don't need it, and is a good deal faster in a guest.

use std::fmt::Write;

/// An object under construction.
#[derive(Debug, Clone)]
pub(crate) struct Object(String);

impl Object {
    pub(crate) fn new() -> Self {
        Self(String::from("{"))
    }

    /// An object that has fields already: `json` is a whole one.
    pub(crate) fn open(json: &str) -> Self {
        Self(json.strip_suffix('}').unwrap_or("{").to_owned())
    }

    pub(crate) fn text(&mut self, key: &str, value: &str) -> &mut Self {
        self.key(key);
        push_text(&mut self.0, value);
        self
    }

    pub(crate) fn integer(&mut self, key: &str, value: i64) -> &mut Self {
        self.key(key);
        write!(self.0, "{value}").expect("writing to a string never fails");
        self
    }

    /// `json` must be a whole JSON value.
    pub(crate) fn raw(&mut self, key: &str, json: &str) -> &mut Self {
        self.key(key);
        self.0.push_str(json);
        self
    }

    pub(crate) fn finish(mut self) -> String {
        self.0.push('}');
        self.0
    }

    fn key(&mut self, key: &str) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        push_text(&mut self.0, key);
        self.0.push(':');
    }
}

/// Appends a JSON string.
pub(crate) fn push_text(out: &mut String, text: &str) {
    out.reserve(text.len() + 2);
    out.push('"');
    let mut rest = text;
    // Everything escaped is one byte of ASCII, so cutting around it never splits a character.
    while let Some(at) = rest.bytes().position(|byte| byte < 0x20 || byte == b'"' || byte == b'\\') {
        let (plain, special) = rest.split_at(at);
        out.push_str(plain);
        push_escaped(out, special.as_bytes()[0]);
        rest = special.split_at(1).1;
    }
    out.push_str(rest);
    out.push('"');
}

fn push_escaped(out: &mut String, byte: u8) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    match byte {
        b'\n' => out.push_str("\\n"),
        b'\r' => out.push_str("\\r"),
        b'\t' => out.push_str("\\t"),
        b'"' | b'\\' => {
            out.push('\\');
            out.push(byte as char);
        }
        _ => {
            out.push_str("\\u00");
            out.push(HEX[usize::from(byte >> 4)] as char);
            out.push(HEX[usize::from(byte & 15)] as char);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped_as_serde_json_does() {
        for text in
            ["", "plain", "a \"quoted\" \\ back", "line\nfeed\r\ttab", "\u{0}\u{1}\u{1f}\u{7f}", "Oʻzbek 👩‍👩‍👧 \u{2028}"]
        {
            let mut ours = String::new();
            push_text(&mut ours, text);
            assert_eq!(serde_json::from_str::<String>(&ours).unwrap(), text);
        }
    }

    #[test]
    fn objects_hold_every_kind_of_value() {
        let mut object = Object::new();
        object.text("a", "x").integer("b", i64::MIN).raw("c", "[1]");
        assert_eq!(object.finish(), r#"{"a":"x","b":-9223372036854775808,"c":[1]}"#);
        assert_eq!(Object::new().finish(), "{}");
    }
}
