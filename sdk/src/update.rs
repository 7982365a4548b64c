//! Reading parts of an update's JSON without building the whole of it.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};

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

/// The value under `key` of the object `json`, skipping everything else.
pub(crate) fn member<'de, T: Deserialize<'de>>(json: &'de str, key: &str) -> Option<T> {
    let mut deserializer = serde_json::Deserializer::from_str(json);
    Member(key, std::marker::PhantomData).deserialize(&mut deserializer).ok()?
}

struct Member<'k, T>(&'k str, std::marker::PhantomData<T>);

impl<'de, T: Deserialize<'de>> DeserializeSeed<'de> for Member<'_, T> {
    type Value = Option<T>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Member<'_, T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an update")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(key) = map.next_key::<std::borrow::Cow<'de, str>>()? {
            if key == self.0 {
                found = Some(map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn finds_the_user_wherever_telegram_puts_it() {
        let message = r#"{"update_id":1,"message":{"message_id":2,"from":{"id":7,"first_name":"A\"🙂"},"text":"x"}}"#;
        assert_eq!(User::of(&Json::from(message).get("message").unwrap()).first_name, "A\"🙂");
        let poll = r#"{"update_id":1,"poll_answer":{"poll_id":"2","user":{"id":8,"first_name":"B"},"option_ids":[]}}"#;
        assert_eq!(User::of(&Json::from(poll).get("poll_answer").unwrap()).id, 8);
    }

    #[test]
    fn absent_or_broken_is_none() {
        for json in ["", "[]", "{", r#"{"message":3}"#, r#"{"other":{"from":{"id":7}}}"#] {
            assert!(member::<BTreeMap<String, u8>>(json, "message").is_none(), "{json}");
        }
    }
}
