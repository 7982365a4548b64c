//! What a conversation has learned: `${charge}` in what the bot does stands for anything, once, and for just that from
//! then on, in what people do as well. Pure.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::compare::{Deed, Done, capture, matches};
use super::script::{Act, What};

/// Names and what they stand for.
#[derive(Debug, Default)]
pub(super) struct Known(BTreeMap<String, String>);

/// The name in `${name}`, where a text begins with that, and what follows it.
pub(super) fn named(text: &str) -> Option<(&str, &str)> {
    let (name, rest) = text.strip_prefix("${")?.split_once('}')?;
    let fits = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    fits.then_some((name, rest))
}

impl Known {
    /// Puts what is known in the place of names; with `as_pattern`, so that it stands for itself in a pattern. The first
    /// name that is not known is left as it is, and told.
    fn put(&self, text: &str, as_pattern: bool) -> (String, Option<String>) {
        let (mut out, mut rest, mut unknown) = (String::new(), text, None);
        while let Some(at) = rest.find(['$', '\\']) {
            let (before, after) = rest.split_at(at);
            out.push_str(before);
            rest = if let Some((name, behind)) = named(after) {
                match self.0.get(name) {
                    Some(value) if as_pattern => out.extend(value.chars().flat_map(escaped)),
                    Some(value) => out.push_str(value),
                    None => {
                        out.push_str(&format!("${{{name}}}"));
                        unknown.get_or_insert_with(|| name.to_owned());
                    }
                }
                behind
            } else {
                // A backslash takes the next character with it, so that `\${x}` is no name.
                let n = if after.starts_with("\\$") { 2 } else { 1 };
                let (plain, behind) = after.split_at(n);
                out.push_str(if n == 2 && !as_pattern { "$" } else { plain });
                behind
            };
        }
        out.push_str(rest);
        (out, unknown)
    }

    fn filled(&self, text: &str) -> Result<String, String> {
        match self.put(text, false) {
            (text, None) => Ok(text),
            (_, Some(name)) => Err(format!(
                "nothing is known as ${{{name}}} yet: what the bot does before has to hold it, `Bot: … ${{{name}}}`"
            )),
        }
    }

    /// What somebody does, with what is known in it.
    pub(super) fn act(&self, act: &Act) -> Result<Act, String> {
        let mut act = act.clone();
        match &mut act {
            Act::Says { text, .. } | Act::Edits { text, .. } => *text = self.filled(text)?,
            Act::Presses { button, .. } => *button = self.filled(button)?,
            Act::Votes { option, .. } => *option = self.filled(option)?,
            Act::Asks { query, .. } => *query = self.filled(query)?,
            Act::Update(json) => self.json(json, &|text| self.filled(text))?,
            Act::Blocks { .. } | Act::Joins { .. } | Act::Restarts | Act::Waits(_) => {}
        }
        Ok(act)
    }

    /// What the bot should do, with what is known in it.
    pub(super) fn what(&self, what: &What) -> What {
        let mut what = what.clone();
        let put = |text: &str| Ok(self.put(text, true).0);
        match &mut what {
            What::Says { text, buttons } | What::Edits { text, buttons } => {
                *text = self.put(text, true).0;
                for label in buttons.iter_mut().flatten().flatten() {
                    *label = self.put(label, true).0;
                }
            }
            What::Answers(text) | What::Refused(text) => *text = self.put(text, true).0,
            What::Calls { params: Some(params), .. } => drop(self.json(params, &put)),
            What::Calls { params: None, .. } | What::Anything => {}
        }
        what
    }

    fn json(&self, json: &mut Json, put: &dyn Fn(&str) -> Result<String, String>) -> Result<(), String> {
        match json {
            Json::String(text) => *text = put(text)?,
            Json::Array(items) => items.iter_mut().try_for_each(|item| self.json(item, put))?,
            Json::Object(fields) => fields.values_mut().try_for_each(|field| self.json(field, put))?,
            Json::Null | Json::Bool(_) | Json::Number(_) => {}
        }
        Ok(())
    }

    /// Learns from something that the bot should do, and did.
    pub(super) fn learn(&mut self, what: &What, deed: &Deed) {
        match (what, &deed.what) {
            (What::Says { text: pattern, .. }, Done::Says { text, .. })
            | (What::Edits { text: pattern, .. }, Done::Edits { text, .. })
            | (What::Answers(pattern), Done::Answers(text)) => self.take(pattern, text),
            (What::Calls { params: Some(wanted), .. }, Done::Calls { params, .. }) => self.learn_json(wanted, params),
            _ => {}
        }
    }

    fn learn_json(&mut self, wanted: &Json, there: &Json) {
        match (wanted, there) {
            (Json::String(pattern), Json::String(text)) => self.take(pattern, text),
            (Json::Array(wanted), Json::Array(there)) => {
                wanted.iter().zip(there).for_each(|(wanted, there)| self.learn_json(wanted, there));
            }
            (Json::Object(wanted), Json::Object(there)) => {
                for (key, wanted) in wanted {
                    self.learn_json(wanted, there.get(key).unwrap_or(&Json::Null));
                }
            }
            _ => {}
        }
    }

    fn take(&mut self, pattern: &str, text: &str) {
        debug_assert!(matches(pattern, text), "only what fits is learned from");
        for (name, value) in capture(pattern, text).unwrap_or_default() {
            self.0.entry(name).or_insert(value);
        }
    }
}

/// A character that stands for itself.
fn escaped(c: char) -> impl Iterator<Item = char> {
    matches!(c, '*' | '\\' | '[' | '$').then_some('\\').into_iter().chain([c])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(text: &str) -> Act {
        Act::Says { who: "Alice".to_owned(), place: None, to: None, text: text.to_owned() }
    }

    fn learned(pattern: &str, text: &str) -> Known {
        let what = What::Says { text: pattern.to_owned(), buttons: None };
        let deed = Deed { chat: None, what: Done::Says { text: text.to_owned(), buttons: Vec::new() }, refused: None };
        let mut known = Known::default();
        known.learn(&what, &deed);
        known
    }

    #[test]
    fn what_was_learned_stands_for_itself_from_then_on() {
        let known = learned("Thanks, *!\nYour payment: ${charge}, ${n-1}.", "Thanks, Bo!\nYour payment: a*b\\$1, 2.");
        assert_eq!(
            known.act(&says("/refund ${charge} ${n-1} \\${charge} $5 \\d")),
            Ok(says("/refund a*b\\$1 2 ${charge} $5 \\d"))
        );
        let What::Answers(pattern) = known.what(&What::Answers("${charge} of ${n-1}, ${new}".to_owned())) else {
            panic!("it stays an answer")
        };
        assert!(matches(&pattern, "a*b\\$1 of 2, whatever"), "{pattern}");
        assert!(!matches(&pattern, "a-b\\$1 of 2, whatever"), "{pattern}");
    }

    #[test]
    fn what_is_not_known_yet_is_told() {
        let error = Known::default().act(&says("/refund ${charge}")).unwrap_err();
        assert!(error.contains("nothing is known as ${charge} yet"), "{error}");
        assert!(Known::default().act(&Act::Update(serde_json::json!({ "a": ["${x}"] }))).is_err());
    }

    #[test]
    fn parameters_of_calls_are_learned_from_too() {
        let params = |id: &str| serde_json::json!({ "a": [{ "id": id }], "b": 1 });
        let what = What::Calls { method: "m".to_owned(), params: Some(params("x-${id}")) };
        let done = Done::Calls { method: "m".to_owned(), params: params("x-7") };
        let mut known = Known::default();
        known.learn(&what, &Deed { chat: None, what: done, refused: None });
        assert_eq!(known.act(&says("${id}")), Ok(says("7")));
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(pattern in "[a$\\\\{}*é]{0,12}", text in "[a$\\\\{}*é]{0,12}") {
            let known = learned("${a}", &text);
            drop(known.act(&says(&pattern)));
            drop(capture(&pattern, &text));
        }
    }
}
