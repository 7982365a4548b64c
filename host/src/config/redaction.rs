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

static TOKEN: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\d{5,}(?::|%3[Aa])[A-Za-z0-9_-]{20,}").expect("a constant, covered by the tests"));
static SECRETS: RwLock<Vec<String>> = RwLock::new(Vec::new());

/// Hides `secret` from now on, for the life of the process.
pub fn hide(secret: &str) {
    let mut secrets = SECRETS.write().unwrap_or_else(PoisonError::into_inner);
    if secret.len() >= SHORTEST_SECRET && !secrets.iter().any(|known| known == secret) {
        secrets.push(secret.to_owned());
        // A secret that holds another one goes first.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    }
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
