//! What arguments must look like in a text with markup: the translator's own text is markup, what people are called is not.

use std::borrow::Cow;

/// The language that a translation is written in, as Telegram's `parse_mode` names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Markup {
    /// No markup: arguments stand as they are.
    #[default]
    Plain,
    /// Arguments are escaped for HTML.
    Html,
    /// Arguments are escaped for MarkdownV2.
    MarkdownV2,
}

impl Markup {
    /// A text as it must stand in this markup.
    #[must_use]
    pub fn escape(self, text: &str) -> Cow<'_, str> {
        let special = match self {
            Self::Plain => "",
            Self::Html => "&<>\"",
            Self::MarkdownV2 => r"_*[]()~`>#+-=|{}.!\",
        };
        if !text.contains(|letter| special.contains(letter)) {
            return text.into();
        }
        let mut escaped = String::with_capacity(text.len() + 8);
        for letter in text.chars() {
            match (self, letter) {
                (Self::Html, '&') => escaped.push_str("&amp;"),
                (Self::Html, '<') => escaped.push_str("&lt;"),
                (Self::Html, '>') => escaped.push_str("&gt;"),
                (Self::Html, '"') => escaped.push_str("&quot;"),
                (_, letter) => {
                    if self == Self::MarkdownV2 && special.contains(letter) {
                        escaped.push('\\');
                    }
                    escaped.push(letter);
                }
            }
        }
        escaped.into()
    }
}
