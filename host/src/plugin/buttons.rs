//! The buttons of reply keyboards, which come back as texts: told by what the catalogs say, now and in former days.
//!
//! A text that is a button's now is that button's alone; one that only was counts as what it was last.

use std::collections::{BTreeSet, HashMap};
use std::sync::{PoisonError, RwLock};

use super::Manifest;
use crate::i18n::Catalogs;

/// Texts that are remembered of a plugin.
const MOST: usize = 1_000;

/// The buttons of one version of a plugin.
#[derive(Debug, Default)]
pub struct Buttons {
    now: HashMap<String, BTreeSet<String>>,
    before: RwLock<HashMap<String, String>>,
}

impl Buttons {
    /// What the catalogs say for the keys that the manifest names. The error is for the author.
    pub(super) fn of(manifest: &Manifest, catalogs: &Catalogs) -> Result<Self, String> {
        let mut buttons = Self::default();
        for key in manifest.filters.iter().flat_map(|filter| &filter.text_keys) {
            if let Some(variable) = catalogs.variables(key).first() {
                return Err(format!(
                    "the text of the button `{key}` can't be told, since a catalog has `${variable}` in it"
                ));
            }
            let texts: Vec<String> =
                catalogs.texts(key).map(|text| normal(&text)).filter(|text| !text.is_empty()).collect();
            if texts.is_empty() {
                return Err(format!("no catalog says what stands on the button `{key}`"));
            }
            for text in texts {
                buttons.now.entry(text).or_default().insert(key.clone());
            }
        }
        Ok(buttons)
    }

    /// Whether a text is that of one of these buttons.
    #[must_use]
    pub fn says(&self, keys: &[String], text: &str) -> bool {
        let text = normal(text);
        if let Some(now) = self.now.get(&text) {
            return keys.iter().any(|key| now.contains(key));
        }
        let before = self.before.read().unwrap_or_else(PoisonError::into_inner);
        before.get(&text).is_some_and(|before| keys.contains(before))
    }

    /// Takes up the texts that the buttons have had, the newest last, and answers with all that are to be remembered.
    #[must_use]
    pub fn remember(&self, known: Vec<(String, String)>) -> Vec<(String, String)> {
        let mut all: Vec<_> = known.into_iter().filter(|(text, _)| !self.now.contains_key(text)).collect();
        let now: BTreeSet<_> =
            self.now.iter().filter_map(|(text, keys)| Some((text.clone(), keys.first()?.clone()))).collect();
        let too_many = (all.len() + now.len()).saturating_sub(MOST).min(all.len());
        all.drain(..too_many);
        *self.before.write().unwrap_or_else(PoisonError::into_inner) = all.iter().cloned().collect();
        all.extend(now);
        all
    }

    /// Whether there is nothing to remember.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.now.is_empty()
    }
}

/// Clients and Telegram itself are free with white space.
fn normal(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buttons(texts: &[(&str, &str)]) -> Buttons {
        let mut buttons = Buttons::default();
        for (text, key) in texts {
            buttons.now.entry(normal(text)).or_default().insert((*key).to_owned());
        }
        buttons
    }

    #[test]
    fn one_that_serves_learns_what_another_says_meanwhile() {
        let old = buttons(&[("Order", "order")]);
        let key = ["order".to_owned()];
        let known = old.remember(Vec::new());
        assert!(!old.says(&key, "Buy"));
        let known = buttons(&[("Buy", "order")]).remember(known);
        assert_eq!(old.remember(known).len(), 2);
        assert!(old.says(&key, "Buy") && old.says(&key, "Order"));
    }

    #[test]
    fn old_texts_stay_what_they_were_unless_they_are_another_buttons_now() {
        let first = buttons(&[("Order", "order"), ("Buyurtma", "order"), ("Help", "help")]);
        let known = first.remember(Vec::new());
        let second = buttons(&[("Order  now", "order"), ("Help", "order"), ("Aid", "help")]);
        let known = second.remember(known);
        let says = |buttons: &Buttons, key: &str, text: &str| buttons.says(&[key.to_owned()], text);
        for (key, text, expected) in [
            ("order", " Order\nnow ", true),
            ("order", "Order", true),
            ("order", "Buyurtma", true),
            ("help", "Buyurtma", false),
            ("order", "Help", true),
            ("help", "Help", false),
            ("help", "Aid", true),
            ("order", "order", false),
            ("order", "", false),
        ] {
            assert_eq!(says(&second, key, text), expected, "{key} {text}");
        }
        // And once more, as after a restart.
        let third = buttons(&[("Buy", "order")]);
        assert_eq!(third.remember(known).len(), 6);
        assert!(says(&third, "order", "Buyurtma") && says(&third, "order", "Help") && says(&third, "help", "Aid"));
    }

    #[test]
    fn what_is_remembered_has_an_end() {
        let known: Vec<_> = (0..3 * MOST).map(|n| (format!("text {n}"), "order".to_owned())).collect();
        let now = buttons(&[("Order", "order")]);
        let all = now.remember(known);
        assert_eq!(all.len(), MOST);
        assert!(now.says(&["order".to_owned()], &format!("text {}", 3 * MOST - 1)));
        assert!(!now.says(&["order".to_owned()], "text 0"));
    }
}
