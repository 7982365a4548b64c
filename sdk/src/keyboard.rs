//! Buttons below a message, and buttons in place of the keyboard.
//!
//! ```
//! use botyard_sdk::prelude::*;
//!
//! fn offer(ctx: &Run) {
//!     let keyboard = InlineKeyboard::new()
//!         .row([Button::callback("Small", "size:s"), Button::callback("Large", "size:l")])
//!         .row([Button::url("Prices", "https://example.org")]);
//!     ctx.reply("Which size?").keyboard(keyboard);
//! }
//! fn ask_phone(ctx: &Run) {
//!     let keyboard = ReplyKeyboard::new().row([ReplyButton::contact("Send my number")]).row(["No, thanks"]).one_time();
//!     ctx.reply("How can we reach you?").keyboard(keyboard);
//! }
//! fn done(ctx: &Run) {
//!     ctx.reply("Thank you!").keyboard(RemoveKeyboard);
//! }
//! ```

use crate::json::Object;
use crate::{CallbackData, Error};

/// What the host takes as callback data; what does not fit on the button, it keeps.
const MAX_CALLBACK_DATA: usize = 1024;

/// Anything that [`Message::keyboard`](crate::Message::keyboard) takes.
pub trait Markup {
    /// Its JSON, as `reply_markup` holds it.
    #[doc(hidden)]
    fn into_json(self) -> Result<String, Error>;
}

/// A button of an [`InlineKeyboard`].
#[derive(Debug, Clone)]
pub struct Button(Result<Object, Error>);

/// The colour of a button.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Style {
    /// For what matters most: blue.
    Primary,
    /// For what is good: green.
    Success,
    /// For what can't be undone: red.
    Danger,
}

impl Style {
    fn as_str(self) -> &'static str {
        match self {
            Self::Primary => "primary",
            Self::Success => "success",
            Self::Danger => "danger",
        }
    }
}

impl Button {
    /// A button that stands for a value: its press comes back to the handler of `#[callback(Order)]`.
    ///
    /// ```
    /// # use botyard_sdk::prelude::*;
    /// #[derive(CallbackData)]
    /// enum Order {
    ///     Pick { item: u32 },
    /// }
    /// let button = Button::data("Green tea", Order::Pick { item: 3 });
    /// # let _ = button;
    /// ```
    pub fn data(text: impl AsRef<str>, data: impl CallbackData) -> Self {
        Self::callback(text, data.to_data())
    }

    /// A button whose press comes back as a `callback_query` with `data`: 1 to 1,024 bytes; with others, the run fails
    /// and says so. More than 55 are kept by the host, for 90 days.
    pub fn callback(text: impl AsRef<str>, data: impl AsRef<str>) -> Self {
        let (text, data) = (text.as_ref(), data.as_ref());
        if data.is_empty() || data.len() > MAX_CALLBACK_DATA {
            let length = data.len();
            return Self(Err(Error::permanent(format!(
                "the callback data of the button `{text}` has {length} bytes: 1 to {MAX_CALLBACK_DATA} are possible"
            ))));
        }
        Self::with(text, "callback_data", data)
    }

    /// A button that opens a link.
    pub fn url(text: impl AsRef<str>, url: impl AsRef<str>) -> Self {
        Self::with(text.as_ref(), "url", url.as_ref())
    }

    /// A button that opens a web app.
    pub fn web_app(text: impl AsRef<str>, url: impl AsRef<str>) -> Self {
        Self::with_object(text.as_ref(), "web_app", "url", url.as_ref())
    }

    /// A button that copies a text.
    pub fn copy(text: impl AsRef<str>, copied: impl AsRef<str>) -> Self {
        Self::with_object(text.as_ref(), "copy_text", "text", copied.as_ref())
    }

    /// A button that asks for a chat and begins an inline query there.
    pub fn switch_inline(text: impl AsRef<str>, query: impl AsRef<str>) -> Self {
        Self::with(text.as_ref(), "switch_inline_query", query.as_ref())
    }

    /// A button that begins an inline query in this chat.
    pub fn switch_inline_here(text: impl AsRef<str>, query: impl AsRef<str>) -> Self {
        Self::with(text.as_ref(), "switch_inline_query_current_chat", query.as_ref())
    }

    /// The button that pays an invoice: the first of its first row.
    pub fn pay(text: impl AsRef<str>) -> Self {
        Self::with_json(text.as_ref(), "pay", "true")
    }

    /// Gives it a colour.
    #[must_use]
    pub fn style(self, style: Style) -> Self {
        self.and(|button| button.text("style", style.as_str()))
    }

    /// Puts a custom emoji before the text.
    #[must_use]
    pub fn icon(self, custom_emoji_id: impl AsRef<str>) -> Self {
        self.and(|button| button.text("icon_custom_emoji_id", custom_emoji_id.as_ref()))
    }

    fn with(text: &str, key: &str, value: &str) -> Self {
        let mut button = Object::new();
        button.text("text", text).text(key, value);
        Self(Ok(button))
    }

    fn with_json(text: &str, key: &str, json: &str) -> Self {
        let mut button = Object::new();
        button.text("text", text).raw(key, json);
        Self(Ok(button))
    }

    fn with_object(text: &str, key: &str, inner: &str, value: &str) -> Self {
        let mut object = Object::new();
        object.text(inner, value);
        Self::with_json(text, key, &object.finish())
    }

    fn and(mut self, add: impl FnOnce(&mut Object) -> &mut Object) -> Self {
        if let Ok(button) = &mut self.0 {
            add(button);
        }
        self
    }
}

/// Buttons below a message.
#[derive(Debug, Clone)]
pub struct InlineKeyboard {
    rows: Rows,
    failure: Option<Error>,
}

impl InlineKeyboard {
    /// A keyboard without buttons.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "a keyboard is begun by name")]
    pub fn new() -> Self {
        Self { rows: Rows::default(), failure: None }
    }

    /// Adds a row of buttons.
    #[must_use]
    pub fn row(mut self, buttons: impl IntoIterator<Item = Button>) -> Self {
        let mut row = Vec::new();
        for Button(button) in buttons {
            match button {
                Ok(button) => row.push(button.finish()),
                Err(error) => self.failure = self.failure.or(Some(error)),
            }
        }
        self.rows.push(row);
        self
    }
}

impl InlineKeyboard {
    /// Adds several rows.
    #[must_use]
    pub fn rows<R: IntoIterator<Item = Button>>(self, rows: impl IntoIterator<Item = R>) -> Self {
        rows.into_iter().fold(self, Self::row)
    }
}

impl Markup for InlineKeyboard {
    fn into_json(self) -> Result<String, Error> {
        if let Some(error) = self.failure {
            return Err(error);
        }
        let mut markup = Object::new();
        markup.raw("inline_keyboard", &self.rows.finish());
        Ok(markup.finish())
    }
}

/// A button of a [`ReplyKeyboard`]. A plain text is one, too.
#[derive(Debug, Clone)]
pub struct ReplyButton(Object);

impl ReplyButton {
    /// A button that sends its text.
    pub fn text(text: impl AsRef<str>) -> Self {
        let mut button = Object::new();
        button.text("text", text.as_ref());
        Self(button)
    }

    /// A button that sends the user's phone number, after asking.
    pub fn contact(text: impl AsRef<str>) -> Self {
        Self::with(text.as_ref(), "request_contact", "true")
    }

    /// A button that sends the user's location, after asking.
    pub fn location(text: impl AsRef<str>) -> Self {
        Self::with(text.as_ref(), "request_location", "true")
    }

    /// A button that opens a web app.
    pub fn web_app(text: impl AsRef<str>, url: impl AsRef<str>) -> Self {
        let mut app = Object::new();
        app.text("url", url.as_ref());
        Self::with(text.as_ref(), "web_app", &app.finish())
    }

    /// A button that lets the user make a poll and send it.
    pub fn poll(text: impl AsRef<str>) -> Self {
        Self::with(text.as_ref(), "request_poll", "{}")
    }

    /// Gives it a colour.
    #[must_use]
    pub fn style(mut self, style: Style) -> Self {
        self.0.text("style", style.as_str());
        self
    }

    /// Puts a custom emoji before the text.
    #[must_use]
    pub fn icon(mut self, custom_emoji_id: impl AsRef<str>) -> Self {
        self.0.text("icon_custom_emoji_id", custom_emoji_id.as_ref());
        self
    }

    fn with(text: &str, key: &str, json: &str) -> Self {
        let mut button = Self::text(text);
        button.0.raw(key, json);
        button
    }
}

impl From<&str> for ReplyButton {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for ReplyButton {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

/// Buttons in place of the user's keyboard. It is as low as its buttons.
#[derive(Debug, Clone)]
pub struct ReplyKeyboard {
    rows: Rows,
    options: Vec<&'static str>,
    placeholder: Option<String>,
}

impl ReplyKeyboard {
    /// A keyboard without buttons.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "a keyboard is begun by name")]
    pub fn new() -> Self {
        Self { rows: Rows::default(), options: vec!["resize_keyboard"], placeholder: None }
    }

    /// Adds a row of buttons.
    #[must_use]
    pub fn row<B: Into<ReplyButton>>(mut self, buttons: impl IntoIterator<Item = B>) -> Self {
        self.rows.push(buttons.into_iter().map(|button| button.into().0.finish()).collect());
        self
    }

    /// Hides after one press.
    #[must_use]
    pub fn one_time(self) -> Self {
        self.option("one_time_keyboard")
    }

    /// Stays when the user would rather see their own keyboard.
    #[must_use]
    pub fn persistent(self) -> Self {
        self.option("is_persistent")
    }

    /// Shows only to the people that the message mentions or replies to.
    #[must_use]
    pub fn selective(self) -> Self {
        self.option("selective")
    }

    /// What the empty field says while the keyboard is there.
    #[must_use]
    pub fn placeholder(mut self, text: impl Into<String>) -> Self {
        self.placeholder = Some(text.into());
        self
    }

    fn option(mut self, name: &'static str) -> Self {
        self.options.push(name);
        self
    }
}

impl Markup for ReplyKeyboard {
    fn into_json(self) -> Result<String, Error> {
        let mut markup = Object::new();
        markup.raw("keyboard", &self.rows.finish());
        for option in self.options {
            markup.raw(option, "true");
        }
        if let Some(placeholder) = &self.placeholder {
            markup.text("input_field_placeholder", placeholder);
        }
        Ok(markup.finish())
    }
}

/// Takes a [`ReplyKeyboard`] away.
#[derive(Debug, Clone, Copy)]
pub struct RemoveKeyboard;

impl Markup for RemoveKeyboard {
    fn into_json(self) -> Result<String, Error> {
        Ok(r#"{"remove_keyboard":true}"#.to_owned())
    }
}

/// Makes the user's next message a reply to this one.
///
/// ```
/// # use botyard_sdk::prelude::*;
/// fn ask(ctx: &Run) {
///     ctx.reply("What is your name?").keyboard(AskReply::new().placeholder("Your name"));
/// }
/// ```
#[derive(Debug, Clone)]
pub struct AskReply(Object);

impl AskReply {
    /// Asks everybody who sees the message.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "as keyboards are begun")]
    pub fn new() -> Self {
        let mut markup = Object::new();
        markup.raw("force_reply", "true");
        Self(markup)
    }

    /// Asks only those whom the message mentions or replies to.
    #[must_use]
    pub fn selective(mut self) -> Self {
        self.0.raw("selective", "true");
        self
    }

    /// What the empty field says meanwhile.
    #[must_use]
    pub fn placeholder(mut self, text: impl AsRef<str>) -> Self {
        self.0.text("input_field_placeholder", text.as_ref());
        self
    }
}

impl Markup for AskReply {
    fn into_json(self) -> Result<String, Error> {
        Ok(self.0.finish())
    }
}

/// JSON of the rows so far. Rows without buttons are left out: Telegram refuses them.
#[derive(Debug, Clone, Default)]
struct Rows(String);

impl Rows {
    fn push(&mut self, buttons: Vec<String>) {
        if buttons.is_empty() {
            return;
        }
        self.0.push(if self.0.is_empty() { '[' } else { ',' });
        self.0.push('[');
        self.0.push_str(&buttons.join(","));
        self.0.push(']');
    }

    fn finish(mut self) -> String {
        if self.0.is_empty() {
            self.0.push('[');
        }
        self.0.push(']');
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inline_buttons_keep_their_rows() {
        let keyboard = InlineKeyboard::new()
            .row([Button::callback("A \"1\"", "a:1"), Button::url("B", "https://b.example")])
            .row([])
            .row([Button::callback("C", "c")]);
        let expected = concat!(
            r#"{"inline_keyboard":[[{"text":"A \"1\"","callback_data":"a:1"},{"text":"B","url":"https://b.example"}],"#,
            r#"[{"text":"C","callback_data":"c"}]]}"#
        );
        assert_eq!(keyboard.into_json().unwrap(), expected);
        assert_eq!(InlineKeyboard::new().into_json().unwrap(), r#"{"inline_keyboard":[]}"#);
    }

    #[test]
    fn callback_data_holds_1024_bytes_and_no_more() {
        let json = |data: &str| InlineKeyboard::new().row([Button::callback("Pick", data)]).into_json();
        assert!(json(&"ß".repeat(512)).is_ok());
        let error = json(&format!("{}x", "ß".repeat(512))).unwrap_err();
        assert!(error.to_string().contains("`Pick` has 1025 bytes"), "{error}");
        assert!(json("").is_err());
    }

    #[test]
    fn reply_buttons_are_texts_or_requests() {
        let keyboard = ReplyKeyboard::new().row(["Yes", "No"]).row([ReplyButton::contact("Phone")]).one_time();
        let expected = concat!(
            r#"{"keyboard":[[{"text":"Yes"},{"text":"No"}],[{"text":"Phone","request_contact":true}]],"#,
            r#""resize_keyboard":true,"one_time_keyboard":true}"#
        );
        assert_eq!(keyboard.into_json().unwrap(), expected);
    }
}
