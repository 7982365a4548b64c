//! What conditions look at.

use std::collections::HashMap;
use std::sync::OnceLock;

use serde_json::value::RawValue;

/// An update, as far as conditions look at it.
#[derive(Debug, Clone, Default)]
pub struct Subject<'a> {
    /// The chat it happened in.
    pub chat: Option<i64>,
    /// `private`, `group`, `supergroup` or `channel`.
    pub chat_type: Option<&'a str>,
    /// The forum topic.
    pub topic: Option<i64>,
    /// Who did it.
    pub user: Option<i64>,
    /// Their language, as Telegram tells it.
    pub language: Option<&'a str>,
    /// Text or caption of a message.
    pub text: Option<&'a str>,
    /// What follows the command, where there is one that is for this bot.
    pub args: Option<&'a str>,
    /// The update's own object (its `message`, say), as JSON.
    pub content: &'a str,
    /// Read when they are first asked for.
    pub fields: Fields,
}

/// The names of the fields that an update's object has.
#[derive(Debug, Clone, Default)]
pub struct Fields(OnceLock<Vec<String>>);

impl Subject<'_> {
    /// Whether the update's object has this field. Of what is about a message, like a pressed button, that message is
    /// looked at.
    pub(crate) fn has(&self, field: &str) -> bool {
        self.fields.0.get_or_init(|| fields(self.content)).iter().any(|name| name == field)
    }
}

fn fields(content: &str) -> Vec<String> {
    let parse = |json| serde_json::from_str::<HashMap<String, &RawValue>>(json).unwrap_or_default();
    let mut object = parse(content);
    if let Some(message) = object.get("message").map(|message| message.get()).filter(|json| json.starts_with('{')) {
        object = parse(message);
    }
    object.into_iter().filter(|(_, value)| value.get() != "null").map(|(name, _)| name).collect()
}
