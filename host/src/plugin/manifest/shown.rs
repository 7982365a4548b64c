//! Filters in words, for people.

use std::fmt;

use super::Filter;

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if !self.commands.is_empty() {
            parts.push(self.commands.iter().map(|name| format!("/{name}")).collect::<Vec<_>>().join(" or "));
        }
        if let Some(prefix) = &self.callback_prefix {
            parts.push(format!("buttons {prefix}…"));
        }
        if let Some(regex) = &self.text_regex {
            parts.push(format!("text that matches {}", regex.as_str()));
        }
        if self.plain_text {
            parts.push("text that is no command".to_owned());
        }
        let usual = if self.callback_prefix.is_some() { "callback_query" } else { "message" };
        if parts.is_empty() || self.kinds != [usual] {
            parts.push(if self.kinds.is_empty() { "every kind".to_owned() } else { self.kinds.join(" or ") });
        }
        if !self.chat_types.is_empty() {
            parts.push(format!("in {}", self.chat_types.join(" or ")));
        }
        if !self.states.is_empty() {
            parts.push(format!("in state {}", self.states.join(" or ")));
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
        let none = || Filter {
            kinds: vec!["message".to_owned()],
            chat_types: vec![],
            commands: vec![],
            callback_prefix: None,
            text_regex: None,
            plain_text: false,
            states: vec![],
            condition: None,
            observe: false,
        };
        let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        let condition = Condition::parse("private&(has(\"photo\"))", 1 << 20).ok();
        for (filter, words) in [
            (Filter { commands: owned(&["a", "b"]), ..none() }, "/a or /b"),
            (Filter { condition, ..none() }, "message, if private & has(\"photo\")"),
            (Filter { kinds: vec![], observe: true, ..none() }, "every kind, only looks on"),
            (Filter { plain_text: true, states: owned(&["name"]), ..none() }, "text that is no command, in state name"),
            (
                Filter { kinds: owned(&["callback_query"]), callback_prefix: Some("x:".to_owned()), ..none() },
                "buttons x:…",
            ),
            (Filter { kinds: owned(&["edited_message", "poll"]), ..none() }, "edited_message or poll"),
        ] {
            assert_eq!(filter.to_string(), words);
        }
    }
}
