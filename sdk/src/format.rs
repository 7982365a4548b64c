//! Texts with bold, links and the rest: written piece by piece, or escaped for HTML and MarkdownV2.
//!
//! ```
//! use botyard_sdk::format::Text;
//! use botyard_sdk::prelude::*;
//!
//! fn invite(ctx: &Run) {
//!     let name = ctx.user().first_name;
//!     ctx.reply(Text::new().plain("Hello, ").bold(&name).plain("! See ").link("the rules", "https://example.org"));
//! }
//! ```

use std::borrow::Cow;

use crate::api::{Json, MessageEntity, MessageEntityType};
use crate::json::Object;

/// A text and what is special about its parts. Nothing in it needs escaping: what people wrote goes in as it is.
#[derive(Debug, Clone, Default)]
pub struct Text {
    text: String,
    /// How Telegram counts: in UTF-16 units.
    length: i64,
    entities: Vec<MessageEntity>,
}

impl Text {
    /// An empty text.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a text without anything special.
    #[must_use]
    pub fn plain(mut self, text: impl AsRef<str>) -> Self {
        self.push(text.as_ref());
        self
    }

    /// Adds a line break.
    #[must_use]
    pub fn line(self) -> Self {
        self.plain("\n")
    }

    /// Adds a bold text.
    #[must_use]
    pub fn bold(self, text: impl Into<Self>) -> Self {
        self.styled(MessageEntityType::Bold, text)
    }

    /// Adds a text in italics.
    #[must_use]
    pub fn italic(self, text: impl Into<Self>) -> Self {
        self.styled(MessageEntityType::Italic, text)
    }

    /// Adds an underlined text.
    #[must_use]
    pub fn underline(self, text: impl Into<Self>) -> Self {
        self.styled(MessageEntityType::Underline, text)
    }

    /// Adds a text with a line through it.
    #[must_use]
    pub fn strikethrough(self, text: impl Into<Self>) -> Self {
        self.styled(MessageEntityType::Strikethrough, text)
    }

    /// Adds a text that shows when it is tapped.
    #[must_use]
    pub fn spoiler(self, text: impl Into<Self>) -> Self {
        self.styled(MessageEntityType::Spoiler, text)
    }

    /// Adds a quotation.
    #[must_use]
    pub fn quote(self, text: impl Into<Self>) -> Self {
        self.styled(MessageEntityType::Blockquote, text)
    }

    /// Adds a quotation that is short until it is tapped.
    #[must_use]
    pub fn long_quote(self, text: impl Into<Self>) -> Self {
        self.styled(MessageEntityType::ExpandableBlockquote, text)
    }

    /// Adds a text in type of one width, within a line.
    #[must_use]
    pub fn code(self, text: impl AsRef<str>) -> Self {
        self.marked(MessageEntityType::Code, text.as_ref(), |entity| entity)
    }

    /// Adds a block of code; the language may be empty.
    #[must_use]
    pub fn pre(self, text: impl AsRef<str>, language: &str) -> Self {
        self.marked(MessageEntityType::Pre, text.as_ref(), |entity| match language {
            "" => entity,
            language => entity.with_language(language),
        })
    }

    /// Adds a text that leads to an address.
    #[must_use]
    pub fn link(self, text: impl AsRef<str>, url: impl AsRef<str>) -> Self {
        self.marked(MessageEntityType::TextLink, text.as_ref(), |entity| entity.with_url(url))
    }

    /// Adds a text that leads to a user, with or without a username.
    #[must_use]
    pub fn mention(self, text: impl AsRef<str>, user_id: i64) -> Self {
        self.link(text, format!("tg://user?id={user_id}"))
    }

    /// Adds a custom emoji; `emoji` is seen where it can't be shown.
    #[must_use]
    pub fn custom_emoji(self, emoji: impl AsRef<str>, id: impl AsRef<str>) -> Self {
        self.marked(MessageEntityType::CustomEmoji, emoji.as_ref(), |entity| entity.with_custom_emoji_id(id))
    }

    /// Adds another such text.
    #[must_use]
    pub fn then(mut self, other: impl Into<Self>) -> Self {
        let other = other.into();
        let start = self.length;
        self.push(&other.text);
        for mut entity in other.entities {
            let offset = start + entity.offset();
            entity.0.put_integer("offset", offset);
            self.entities.push(entity);
        }
        self
    }

    /// The text alone.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// What is special, for methods that take it beside the text: `caption_entities`, for example.
    #[must_use]
    pub fn entities(&self) -> Vec<MessageEntity> {
        self.entities.clone()
    }

    fn styled(mut self, kind: MessageEntityType, text: impl Into<Self>) -> Self {
        let text = text.into();
        // An entity without length is refused, and outer ones come first.
        if text.length > 0 {
            self.entities.push(MessageEntity::new(kind, self.length, text.length));
        }
        self.then(text)
    }

    fn marked(
        mut self,
        kind: MessageEntityType,
        text: &str,
        more: impl FnOnce(MessageEntity) -> MessageEntity,
    ) -> Self {
        let start = self.length;
        self.push(text);
        if self.length > start {
            self.entities.push(more(MessageEntity::new(kind, start, self.length - start)));
        }
        self
    }

    fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.length += text.chars().map(char::len_utf16).sum::<usize>() as i64;
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::new().plain(text)
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self::new().plain(text)
    }
}

impl From<&String> for Text {
    fn from(text: &String) -> Self {
        Self::new().plain(text)
    }
}

/// What a message can say: any text, or a [`Text`].
pub trait IntoText {
    #[doc(hidden)]
    fn text_and_entities(&self) -> (Cow<'_, str>, Option<String>);
    #[doc(hidden)]
    fn parse_mode(&self) -> Option<ParseMode> {
        None
    }
}

/// How Telegram reads a text with markup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParseMode {
    /// HTML.
    Html,
    /// MarkdownV2.
    MarkdownV2,
}

impl ParseMode {
    fn as_str(self) -> &'static str {
        match self {
            Self::Html => "HTML",
            Self::MarkdownV2 => "MarkdownV2",
        }
    }

    pub(crate) fn escape(self, text: &str) -> String {
        match self {
            Self::Html => escape_html(text),
            Self::MarkdownV2 => escape_markdown(text),
        }
    }
}

/// A text with markup, which knows what kind: a message that says it is sent in that parse mode.
///
/// `t!(ctx.html(), …)` makes one. Written by hand it stands in for markup of one's own among the arguments of such a text,
/// where everything else is escaped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marked {
    text: String,
    mode: ParseMode,
}

impl Marked {
    pub(crate) fn new(text: String, mode: ParseMode) -> Self {
        Self { text, mode }
    }

    /// HTML.
    ///
    /// ```
    /// # use botyard_sdk::prelude::*;
    /// # use botyard_sdk::format::Marked;
    /// fn thank(ctx: &Run) {
    ///     let shop = Marked::html("<a href=\"https://tea.example\">Tea</a>");
    ///     ctx.reply(t!(ctx.html(), "thanks", shop = shop; "Thank you! {$shop}"));
    /// }
    /// ```
    #[must_use]
    pub fn html(text: impl Into<String>) -> Self {
        Self::new(text.into(), ParseMode::Html)
    }

    /// MarkdownV2.
    #[must_use]
    pub fn markdown(text: impl Into<String>) -> Self {
        Self::new(text.into(), ParseMode::MarkdownV2)
    }

    /// The text with its markup: for what takes no [`IntoText`], a caption say.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The same.
    #[must_use]
    pub fn into_string(self) -> String {
        self.text
    }
}

impl IntoText for Marked {
    fn text_and_entities(&self) -> (Cow<'_, str>, Option<String>) {
        (self.as_str().into(), None)
    }

    fn parse_mode(&self) -> Option<ParseMode> {
        Some(self.mode)
    }
}

impl<T: AsRef<str>> IntoText for T {
    fn text_and_entities(&self) -> (Cow<'_, str>, Option<String>) {
        (self.as_ref().into(), None)
    }
}

impl IntoText for Text {
    fn text_and_entities(&self) -> (Cow<'_, str>, Option<String>) {
        let entities = Json::list(self.entities.iter().cloned().map(Json::from).collect());
        (self.as_str().into(), Some(entities.as_json().to_owned()).filter(|list| list != "[]"))
    }
}

pub(crate) fn put(params: &mut Object, text_of: &impl IntoText) {
    let (text, entities) = text_of.text_and_entities();
    params.text("text", &text);
    if let Some(mode) = text_of.parse_mode() {
        params.text("parse_mode", mode.as_str());
    }
    if let Some(entities) = entities {
        params.raw("entities", &entities);
    }
}

/// A text as it must stand in HTML: within tags and within the quotes of an attribute.
///
/// ```
/// use botyard_sdk::format::escape_html;
/// assert_eq!(escape_html("<b> & \"c\""), "&lt;b&gt; &amp; &quot;c&quot;");
/// ```
#[must_use]
pub fn escape_html(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// A text as it must stand in MarkdownV2, outside of code and addresses.
///
/// ```
/// use botyard_sdk::format::escape_markdown;
/// assert_eq!(escape_markdown("1. (a_b)!"), r"1\. \(a\_b\)\!");
/// ```
#[must_use]
pub fn escape_markdown(text: &str) -> String {
    escape(text, r"_*[]()~`>#+-=|{}.!\")
}

/// A text as it must stand within `` `code` `` and code blocks of MarkdownV2.
#[must_use]
pub fn escape_markdown_code(text: &str) -> String {
    escape(text, r"`\")
}

/// An address as it must stand in the round brackets of a MarkdownV2 link.
#[must_use]
pub fn escape_markdown_url(url: &str) -> String {
    escape(url, r")\")
}

fn escape(text: &str, special: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + 8);
    for letter in text.chars() {
        if special.contains(letter) {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_count_utf16_units() {
        let text = Text::new()
            .plain("👩‍👩‍👧 ß ")
            .bold(Text::from("né ").italic("🙂"))
            .line()
            .link("a", "https://a.example?\"")
            .then(Text::new().plain("é").code("x"))
            .bold("");
        assert_eq!(text.as_str(), "👩‍👩‍👧 ß né 🙂\naéx");
        let found: Vec<_> = text.entities().iter().map(|e| (e.kind().to_string(), e.offset(), e.length())).collect();
        let found: Vec<_> = found.iter().map(|(kind, offset, length)| (kind.as_str(), *offset, *length)).collect();
        assert_eq!(found, [("bold", 11, 5), ("italic", 14, 2), ("text_link", 17, 1), ("code", 19, 1)]);
        let units: Vec<u16> = text.as_str().encode_utf16().collect();
        assert_eq!(String::from_utf16(&units[14..16]).unwrap(), "🙂");
        assert_eq!(text.entities()[2].url().as_deref(), Some("https://a.example?\""));
    }

    #[test]
    fn what_is_special_in_markdown_is_escaped_and_nothing_else() {
        for special in r"_*[]()~`>#+-=|{}.!\".chars() {
            assert_eq!(escape_markdown(&special.to_string()), format!("\\{special}"));
        }
        assert_eq!(escape_markdown("Oʻzbek, 5 👩‍👩‍👧 \"x\""), "Oʻzbek, 5 👩‍👩‍👧 \"x\"");
        assert_eq!(escape_markdown_code("a`b\\_"), "a\\`b\\\\_");
        assert_eq!(escape_markdown_url("https://a.example/(b)"), "https://a.example/(b\\)");
    }
}
