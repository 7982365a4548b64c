//! Keeps secrets out of whatever is written for people: the last filter before a log line or a report goes out.
//!
//! Two nets: text of a bot token's form (`123456:AA…`), and every secret that a configuration has named so far in this
//! process, whatever its form. Nothing else in the host may rely on it: each part keeps secrets out of its own texts.

use std::borrow::Cow;
use std::sync::{LazyLock, PoisonError, RwLock};

use regex::Regex;

/// What stands in a secret's place.
pub const MASK: &str = "[hidden]";

/// Shorter ones would mask ordinary words.
const SHORTEST_SECRET: usize = 6;
/// A shorter line of a secret says little, and may be an ordinary word.
const LONG_LINE: usize = 16;

static TOKEN: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\d{5,}(?::|%3[Aa])[A-Za-z0-9_-]{20,}").expect("a constant, covered by the tests"));
static SECRETS: RwLock<Vec<String>> = RwLock::new(Vec::new());

/// Hides `secret` from now on, for the life of the process: as it is, as texts in quotes have it, and each line of one
/// that has several (a key in PEM form).
pub fn hide(secret: &str) {
    let json = serde_json::Value::from(secret).to_string();
    let escaped = json.trim_matches('"');
    let debug = secret.escape_debug().to_string();
    let lines = secret.lines().filter(|line| line.len() >= LONG_LINE && !line.starts_with("-----"));
    let mut secrets = SECRETS.write().unwrap_or_else(PoisonError::into_inner);
    for form in [secret, escaped, &debug].into_iter().chain(lines) {
        if form.len() >= SHORTEST_SECRET && !secrets.iter().any(|known| known == form) {
            secrets.push(form.to_owned());
        }
    }
    // A secret that holds another one goes first.
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
}

/// `text` without secrets.
#[must_use]
pub fn redact(text: &str) -> Cow<'_, str> {
    let mut text = TOKEN.replace_all(text, MASK);
    for secret in SECRETS.read().unwrap_or_else(PoisonError::into_inner).iter() {
        if text.contains(secret.as_str()) {
            text = Cow::Owned(text.replace(secret.as_str(), MASK));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_hidden_in_every_form_it_is_printed_in() {
        let secret = "pa\"ss\\wo\nrd-of-the-shop-é";
        hide(secret);
        for text in [
            format!("key={secret}."),
            format!("key={secret:?}."),
            format!("key={}.", serde_json::Value::from(secret)),
            format!("{:?}", Some(secret)),
            "the last line: rd-of-the-shop-é".to_owned(),
        ] {
            let shown = redact(&text);
            assert!(shown.contains(MASK) && !shown.contains("of-the-shop"), "{shown}");
        }
        hide("short");
        assert_eq!(redact("a short word"), "a short word");
    }
}
