//! JSON in a plugin: objects written by hand, and what implements serde's traits.
//!
//! Most calls of the Bot API are a few numbers and texts. Writing those by hand keeps a serializer out of plugins that
//! don't need it, and is a good deal faster in a guest. For the rest there are a reader and a writer of our own that are
//! a third of the size of `serde_json`'s. Of that, plugins see [`Value`](serde_json::Value) and its macro.

mod read;
mod scan;
#[cfg(test)]
mod with_serde;
mod write;

use std::fmt::{self, Display, Write};

use serde::de::{DeserializeOwned, Expected, Unexpected};
use serde::{Serialize, de, ser};

pub(crate) use scan::{fields, find, first, items, unescape};

/// Why a value can't be read or written.
#[derive(Debug)]
pub(crate) struct Error {
    /// Where in the value, from the outside in.
    path: String,
    message: String,
}

impl Error {
    #[cold]
    #[inline(never)]
    fn new(message: String) -> Self {
        Self { path: String::new(), message }
    }

    #[cold]
    #[inline(never)]
    fn within_item(self, at: usize) -> Self {
        self.within(&at.to_string())
    }

    /// It was in this field or item of something larger.
    #[cold]
    #[inline(never)]
    fn within(mut self, key: &str) -> Self {
        self.path.insert_str(0, if self.path.is_empty() { ": " } else { "." });
        self.path.insert_str(0, key);
        self
    }
}

impl Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)?;
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl ser::Error for Error {
    #[cold]
    fn custom<T: Display>(message: T) -> Self {
        Self::new(message.to_string())
    }
}

impl de::Error for Error {
    #[cold]
    fn custom<T: Display>(message: T) -> Self {
        Self::new(message.to_string())
    }

    #[cold]
    fn invalid_type(met: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(misfit("type", met, expected))
    }

    #[cold]
    fn invalid_value(met: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(misfit("value", met, expected))
    }
}

/// Without `Unexpected`'s own words, which come with the printing of fractions.
fn misfit(what: &str, met: Unexpected<'_>, expected: &dyn Expected) -> String {
    let mut message = format!("invalid {what}: ");
    match met {
        Unexpected::Bool(truth) => message.push_str(if truth { "true" } else { "false" }),
        Unexpected::Unsigned(number) => message.push_str(&number.to_string()),
        Unexpected::Signed(number) => message.push_str(&number.to_string()),
        Unexpected::Char(letter) => push_text(&mut message, letter.encode_utf8(&mut [0; 4])),
        Unexpected::Str(text) => push_text(&mut message, text),
        Unexpected::Float(_) => message.push_str("a fraction"),
        Unexpected::Bytes(_) => message.push_str("bytes"),
        Unexpected::Unit | Unexpected::Option => message.push_str("null"),
        Unexpected::Seq => message.push_str("an array"),
        Unexpected::Map => message.push_str("an object"),
        Unexpected::Other(other) => message.push_str(other),
        _ => message.push_str("an enum"),
    }
    format!("{message}, expected {expected}")
}

/// Reads what is written in JSON.
pub(crate) fn from_str<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    let mut reader = read::Reader::new(text);
    let value = T::deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// Reads what is written in JSON, and should be UTF-8.
pub(crate) fn from_slice<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Error> {
    from_str(std::str::from_utf8(bytes).map_err(|_| Error::new("no JSON: it is not UTF-8".to_owned()))?)
}

/// Writes as JSON.
pub(crate) fn to_string<T: ?Sized + Serialize>(value: &T) -> Result<String, Error> {
    let mut out = String::new();
    value.serialize(write::Writer(&mut out))?;
    Ok(out)
}

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
