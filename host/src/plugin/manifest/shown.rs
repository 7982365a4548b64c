//! Filters in words, for people.

use std::fmt;

use super::Filter;

/// All that must be so.
impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if !self.commands.is_empty() {
            parts.push(self.commands.iter().map(|name| format!("/{name}")).collect::<Vec<_>>().join(" or "));
        }
        if let Some(prefix) = &self.callback_prefix {
            parts.push(if prefix.is_empty() { "any button".to_owned() } else { format!("buttons {prefix}…") });
        }
        if let Some(regex) = &self.text_regex {
            parts.push(format!("text matches {}", regex.as_str()));
        }
        if !self.text_keys.is_empty() {
            parts.push(format!("keyboard button {}", self.text_keys.join(" or ")));
        }
        if self.plain_text {
            parts.push("text that is no command".to_owned());
        }
        let usual = if self.callback_prefix.is_some() { "callback_query" } else { "message" };
        if !self.kinds.is_empty() && (parts.is_empty() || self.kinds != [usual]) {
            parts.push(self.kinds.join(" or "));
        }
        if !self.chat_types.is_empty() {
            parts.push(format!("in {}", self.chat_types.join(" or ")));
        }
        if !self.states.is_empty() {
            parts.push(format!("in state {}", self.states.join(" or ")));
        }
        if parts.is_empty() {
            parts.push("everything".to_owned());
        }
        if let Some(condition) = &self.condition {
            parts.push(format!("if {condition}"));
        }
        if self.observe {
            parts.push("only looks on".to_owned());
        }
        f.write_str(&parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use botyard_filter::Condition;

    use super::*;

    #[test]
    fn filters_have_words() {
        let message = || Filter { kinds: vec!["message".to_owned()], ..Filter::default() };
        let list = |items: &[&str]| items.iter().map(|&item| item.to_owned()).collect::<Vec<_>>();
        let condition = Condition::parse("private&(has(\"photo\"))", 1 << 20).ok();
        let prefix = |prefix: &str| Some(prefix.to_owned());
        for (filter, words) in [
            (Filter { commands: list(&["a", "b"]), ..message() }, "/a or /b"),
            (Filter { condition: condition.clone(), ..message() }, "message, if private & has(\"photo\")"),
            (Filter { condition, ..Filter::default() }, "everything, if private & has(\"photo\")"),
            (Filter { observe: true, ..Filter::default() }, "everything, only looks on"),
            (
                Filter { plain_text: true, states: list(&["name"]), ..message() },
                "text that is no command, in state name",
            ),
            (Filter { kinds: list(&["callback_query"]), callback_prefix: prefix("x:"), ..message() }, "buttons x:…"),
            (Filter { kinds: list(&["callback_query"]), callback_prefix: prefix(""), ..message() }, "any button"),
            (Filter { text_keys: list(&["menu.a", "menu.b"]), ..message() }, "keyboard button menu.a or menu.b"),
            (
                Filter { text_regex: regex::Regex::new("^tea").ok(), chat_types: list(&["group"]), ..message() },
                "text matches ^tea, in group",
            ),
            (Filter { kinds: list(&["edited_message", "poll"]), ..message() }, "edited_message or poll"),
        ] {
            assert_eq!(filter.to_string(), words);
        }
    }
}
