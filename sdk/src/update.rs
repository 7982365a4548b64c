//! Who caused an event.

use serde::Deserialize;

use crate::api::{self, Json};

/// Who caused an event. Where it has no user (a channel post, say) every field is empty and the id is 0.
///
/// ```
/// # use botyard_sdk::prelude::*;
/// fn greet(ctx: &mut Ctx) {
///     ctx.reply(format!("Hello, {}!", ctx.user().first_name));
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct User {
    /// Up to 52 bits.
    pub id: i64,
    /// True for other bots.
    pub is_bot: bool,
    /// The first name.
    pub first_name: String,
    /// The last name, where the user has one.
    pub last_name: Option<String>,
    /// Without the `@`.
    pub username: Option<String>,
    /// As Telegram tells it, `pt-br` for example.
    pub language_code: Option<String>,
}

impl User {
    /// Who an update's object is from. Polls and reactions say `user` for `from`.
    pub(crate) fn of(body: &Json) -> Self {
        let Some(user) = ["from", "user"].iter().find_map(|key| body.get(key).filter(Json::is_object)) else {
            return Self::default();
        };
        let user = api::User(user);
        Self {
            id: user.id(),
            is_bot: user.is_bot(),
            first_name: user.first_name(),
            last_name: user.last_name(),
            username: user.username(),
            language_code: user.language_code(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_user_wherever_telegram_puts_it() {
        let message = r#"{"update_id":1,"message":{"message_id":2,"from":{"id":7,"first_name":"A\"🙂"},"text":"x"}}"#;
        assert_eq!(User::of(&Json::from(message).get("message").unwrap()).first_name, "A\"🙂");
        let poll = r#"{"update_id":1,"poll_answer":{"poll_id":"2","user":{"id":8,"first_name":"B"},"option_ids":[]}}"#;
        assert_eq!(User::of(&Json::from(poll).get("poll_answer").unwrap()).id, 8);
    }
}
