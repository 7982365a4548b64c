//! Keeps secrets out of whatever is written for people: the last filter before a log line or a report goes out.
//!
//! Two nets: text of a bot token's form (`123456:AA…`), and every secret that a configuration has named so far in this
//! process, whatever its form. Nothing else in the host may rely on it: each part keeps secrets out of its own texts.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::{LazyLock, PoisonError, RwLock};

use regex::{Regex, RegexBuilder};

mod forms;

/// What stands in a secret's place.
pub const MASK: &str = "[hidden]";

/// Shorter ones would mask ordinary words.
const SHORTEST_SECRET: usize = 6;
/// For all forms of all secrets together.
const FILTER_BYTES: usize = 256 << 20;

static TOKEN: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\d{5,}(?::|%3[Aa])[A-Za-z0-9_-]{20,}").expect("a constant, covered by the tests"));
static SECRETS: RwLock<Secrets> = RwLock::new(Secrets { forms: BTreeSet::new(), filter: None });

struct Secrets {
    forms: BTreeSet<String>,
    /// Of all forms; none until it is needed.
    filter: Option<Filter>,
}

/// Finds all forms in one go, for every line of a log passes here.
enum Filter {
    All(Regex),
    /// There is more than one pattern can hold. The longest first.
    Each(Vec<String>),
}

/// Hides `secret` from now on, for the life of the process: as it is, as texts in quotes have it, as it stands in addresses and
/// in base64, and each line of one that has several (a key in PEM form).
pub fn hide(secret: &str) {
    let new: Vec<String> = forms::of(secret).into_iter().filter(|form| form.len() >= SHORTEST_SECRET).collect();
    let mut secrets = SECRETS.write().unwrap_or_else(PoisonError::into_inner);
    let known = secrets.forms.len();
    secrets.forms.extend(new);
    if secrets.forms.len() > known {
        secrets.filter = None;
    }
}

/// `text` without secrets.
#[must_use]
pub fn redact(text: &str) -> Cow<'_, str> {
    let text = TOKEN.replace_all(text, MASK);
    let secrets = SECRETS.read().unwrap_or_else(PoisonError::into_inner);
    if secrets.forms.is_empty() {
        return text;
    }
    if let Some(filter) = &secrets.filter {
        return filter.apply(text);
    }
    drop(secrets);
    let mut secrets = SECRETS.write().unwrap_or_else(PoisonError::into_inner);
    let filter = Filter::of(&secrets.forms);
    secrets.filter.insert(filter).apply(text)
}

impl Filter {
    fn of(forms: &BTreeSet<String>) -> Self {
        let mut longest_first: Vec<&String> = forms.iter().collect();
        // A secret that holds another one goes first.
        longest_first.sort_by_key(|form| std::cmp::Reverse(form.len()));
        let pattern: Vec<String> = longest_first.iter().map(|form| regex::escape(form)).collect();
        match RegexBuilder::new(&pattern.join("|")).size_limit(FILTER_BYTES).build() {
            Ok(all) => Self::All(all),
            Err(_) => Self::Each(longest_first.into_iter().cloned().collect()),
        }
    }

    fn apply<'a>(&self, mut text: Cow<'a, str>) -> Cow<'a, str> {
        match self {
            Self::All(all) => {
                if let Cow::Owned(redacted) = all.replace_all(&text, MASK) {
                    text = Cow::Owned(redacted);
                }
            }
            Self::Each(forms) => {
                for form in forms {
                    if text.contains(form.as_str()) {
                        text = Cow::Owned(text.replace(form.as_str(), MASK));
                    }
                }
            }
        }
        text
    }
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
        let secret = "k3y/of+the=shop é&more";
        hide(secret);
        let url = reqwest::Url::parse_with_params("https://a.example/", [("key", secret)]).unwrap();
        let mut path = url.clone();
        path.set_path(secret);
        path.set_query(Some(secret));
        let mut user = url.clone();
        user.set_password(Some(secret)).unwrap();
        for text in [
            url.to_string(),
            path.to_string(),
            user.to_string(),
            // Of JavaScript, of Python, of writers of JSON that trust in ASCII.
            "k3y%2Fof%2Bthe%3Dshop%20%C3%A9%26more".to_owned(),
            "k3y%2fof%2bthe%3dshop%20%c3%a9%26more".to_owned(),
            "k3y/of%2Bthe%3Dshop%20%C3%A9%26more".to_owned(),
            r#"{"key":"k3y\/of+the=shop \u00e9&more"}"#.to_owned(),
            // `printf 'me:k3y/of+the=shop é&more' | base64`
            "Basic bWU6azN5L29mK3RoZT1zaG9wIMOpJm1vcmU=".to_owned(),
        ] {
            let shown = redact(&text);
            assert!(shown.contains(MASK) && !shown.contains("shop") && !shown.contains("c2hvc"), "{text}: {shown}");
        }
        // All of them at once, also where one pattern could not hold them.
        let forms = forms::of(secret);
        let each = Filter::Each(forms.iter().cloned().collect());
        assert_eq!(each.apply(secret.into()), Filter::of(&forms).apply(secret.into()));
        hide("short");
        assert_eq!(redact("a short word"), "a short word");
    }
}
