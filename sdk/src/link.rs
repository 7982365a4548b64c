//! Links that lead to the bot and bring something along, and what they bring.
//!
//! ```
//! use botyard_sdk::link;
//!
//! assert_eq!(link::start("tea_bot", "ref-42").unwrap(), "https://t.me/tea_bot?start=ref-42");
//! assert!(link::start("tea_bot", "42%").unwrap_err().to_string().contains("`%`"));
//! assert_eq!(link::start("tea_bot", &link::encode("Günter & Co")).unwrap(), "https://t.me/tea_bot?start=R8O8bnRlciAmIENv");
//! ```
//!
//! What `start` and `start_group` bring comes back as `/start PAYLOAD`, to the handler that is marked with what it begins
//! with: `#[start("ref-")]`. A bot finds its own name with `ctx.ask(api::GetMe::new())?.username()`.

use std::fmt;
use std::str::FromStr;

use crate::Error;

/// Bytes of what a link to a chat brings along.
const MOST: usize = 64;
/// Mini apps are brought more.
const MOST_FOR_APPS: usize = 512;

/// A link that begins a private chat with the bot.
///
/// # Errors
/// Permanently, when Telegram would not take the payload or the bot's name.
pub fn start(bot: &str, payload: &str) -> Result<String, Error> {
    link(bot, "start", payload, MOST)
}

/// A link that puts the bot into a group of the person's choice.
///
/// # Errors
/// As [`start`].
pub fn start_group(bot: &str, payload: &str) -> Result<String, Error> {
    link(bot, "startgroup", payload, MOST)
}

/// A link that opens the bot's mini app: the main one, or `Some("name")`. The app itself is given the payload, not a handler.
///
/// # Errors
/// As [`start`], but that there may be 512 bytes.
pub fn start_app(bot: &str, app: Option<&str>, payload: &str) -> Result<String, Error> {
    let Some(app) = app else { return link(bot, "startapp", payload, MOST_FOR_APPS) };
    if app.is_empty() || !app.bytes().all(is_plain) {
        return Err(Error::permanent(format!("`{app}` can't be the short name of a mini app: a-z, A-Z, 0-9 and _")));
    }
    let link = link(bot, "startapp", payload, MOST_FOR_APPS)?;
    Ok(link.replacen('?', &format!("/{app}?"), 1))
}

fn link(bot: &str, parameter: &str, payload: &str, most: usize) -> Result<String, Error> {
    let name = bot.strip_prefix('@').unwrap_or(bot);
    if !(1..=32).contains(&name.len()) || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return Err(Error::permanent(format!("`{bot}` can't be the name of a bot: 1 to 32 of a-z, A-Z, 0-9 and _")));
    }
    if payload.is_empty() || payload.len() > most {
        let length = payload.len();
        return Err(Error::permanent(format!(
            "the payload of a `{parameter}` link has 1 to {most} characters, and this one {length}: keep the rest in the \
             storage, and bring the key"
        )));
    }
    if let Some(wrong) = payload.chars().find(|&letter| !letter.is_ascii() || !is_plain(letter as u8)) {
        return Err(Error::permanent(format!(
            "`{wrong}` can't be in the payload of a link: a-z, A-Z, 0-9, _ and - can; `link::encode` makes any text fit"
        )));
    }
    Ok(format!("https://t.me/{name}?{parameter}={payload}"))
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Base64url without padding: any 48 bytes become 64 characters that a link can bring.
#[must_use]
pub fn encode(bytes: impl AsRef<[u8]>) -> String {
    let mut text = String::new();
    for part in bytes.as_ref().chunks(3) {
        let bits = part.iter().fold(0u32, |bits, &byte| bits << 8 | u32::from(byte)) << (8 * (3 - part.len()));
        for place in 0..=part.len() {
            text.push(ALPHABET[(bits >> (18 - 6 * place)) as usize & 63] as char);
        }
    }
    text
}

/// What [`encode`] has encoded; padding is let pass. `None` for anything else.
#[must_use]
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    for part in text.trim_end_matches('=').as_bytes().chunks(4) {
        let mut bits = 0u32;
        for &letter in part {
            bits = bits << 6 | u32::try_from(ALPHABET.iter().position(|&known| known == letter)?).ok()?;
        }
        let missing = 4 - part.len();
        let [_, three @ ..] = (bits << (6 * missing)).to_be_bytes();
        // What does not make up a byte must be empty, or two texts would mean the same.
        if missing == 3 || three.iter().skip(3 - missing).any(|&byte| byte != 0) {
            return None;
        }
        bytes.extend(three.iter().take(3 - missing));
    }
    Some(bytes)
}

/// A text that a link has brought in encoded form: `Start(Decoded(text)): Start<Decoded>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded(pub String);

impl FromStr for Decoded {
    type Err = NotEncoded;

    fn from_str(text: &str) -> Result<Self, NotEncoded> {
        decode(text).and_then(|bytes| String::from_utf8(bytes).ok()).map(Self).ok_or(NotEncoded)
    }
}

/// A text that [`encode`] has not made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotEncoded;

impl fmt::Display for NotEncoded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this is no text in base64url")
    }
}

impl std::error::Error for NotEncoded {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn links_are_those_that_telegram_takes() {
        assert_eq!(start("@tea_bot", "a-b_C9").unwrap(), "https://t.me/tea_bot?start=a-b_C9");
        assert_eq!(start_group("tea_bot", "x").unwrap(), "https://t.me/tea_bot?startgroup=x");
        assert_eq!(start_app("tea_bot", None, "x").unwrap(), "https://t.me/tea_bot?startapp=x");
        assert_eq!(start_app("tea_bot", Some("shop"), "x").unwrap(), "https://t.me/tea_bot/shop?startapp=x");
        assert!(start("tea_bot", &"x".repeat(64)).is_ok());
        assert!(start_app("tea_bot", None, &"x".repeat(512)).is_ok());
        for (link, part) in [
            (start("tea_bot", ""), "1 to 64 characters, and this one 0"),
            (start("tea_bot", &"x".repeat(65)), "1 to 64 characters, and this one 65"),
            (start("tea_bot", "a b"), "` ` can't be"),
            (start("tea_bot", "é"), "`é` can't be"),
            (start("tea/bot", "x"), "can't be the name of a bot"),
            (start("", "x"), "can't be the name of a bot"),
            (start_app("tea_bot", Some("a/b"), "x"), "short name"),
            (start_app("tea_bot", None, &"x".repeat(513)), "1 to 512 characters"),
        ] {
            let error = link.unwrap_err();
            assert!(!error.retries() && error.to_string().contains(part), "{error}");
        }
    }

    #[test]
    fn encoded_texts_are_those_of_rfc_4648() {
        for (text, encoded) in
            [("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v"), ("foob", "Zm9vYg"), ("ü?>", "w7w_Pg")]
        {
            assert_eq!(encode(text), encoded);
            assert_eq!(decode(encoded).as_deref(), Some(text.as_bytes()));
        }
        assert_eq!(decode("Zg==").as_deref(), Some(&b"f"[..]));
        for wrong in ["Z", "Zh", "Zm9", "Zm+v", "Zm 9", "é"] {
            assert_eq!(decode(wrong), None, "{wrong}");
        }
        assert!("_w".parse::<Decoded>().is_err(), "it is no text");
    }

    proptest! {
        #[test]
        fn whatever_is_encoded_comes_back(bytes in prop::collection::vec(any::<u8>(), 1..48)) {
            let text = encode(&bytes);
            prop_assert!(start("tea_bot", &text).is_ok());
            prop_assert_eq!(decode(&text), Some(bytes));
        }
    }
}
