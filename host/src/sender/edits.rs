//! Which edits are made for nothing, because a later one of the same message waits behind them.
//!
//! An edit is left out when the lane holds a younger one of the same method for the same message. The youngest is sent
//! in its own place: nothing overtakes anything, and the last is always delivered. That the younger row may not be
//! durable yet does no harm: what removes the older one comes after it in the store's one order.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::domain::{BotId, Lane};
use crate::store::rows::outbox::{self, OutboxRow};
use crate::store::rows::prefix_end;
use crate::store::{Error, Store};

const METHODS: [&str; 4] = ["editMessageText", "editMessageCaption", "editMessageReplyMarkup", "editMessageMedia"];
/// A lane with more than this before the younger edit sends the older one too.
const LOOKS_AHEAD: usize = 64;

/// What an edit changes.
#[derive(Debug, PartialEq, Eq)]
struct Target {
    method: &'static str,
    /// The number of the message, or the id that inline mode gave it.
    message: String,
    /// The mailbox, where it is not the bot's own: messages are numbered in each of them.
    connection: Option<String>,
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow, default)]
    message_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    inline_message_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    business_connection_id: Option<Cow<'a, str>>,
}

impl Target {
    /// Within one lane; that is the chat.
    fn of(method: &str, params: &str) -> Option<Self> {
        let method = METHODS.into_iter().find(|name| name.eq_ignore_ascii_case(method))?;
        let params: Params<'_> = serde_json::from_str(params).ok()?;
        let message = match (params.message_id, params.inline_message_id) {
            (Some(number), _) => number.get().trim_matches('"').trim().to_owned(),
            (None, Some(id)) => id.into_owned(),
            (None, None) => return None,
        };
        let connection = params.business_connection_id.map(Cow::into_owned).filter(|id| !id.is_empty());
        Some(Self { method, message, connection })
    }
}

/// True if a younger edit makes this row of a lane pointless.
pub(super) fn is_superseded(
    store: &Store,
    bot: BotId,
    lane: Lane,
    number: u64,
    row: &OutboxRow,
) -> Result<bool, Error> {
    let Some(target) = Target::of(&row.method, &row.params) else { return Ok(false) };
    let end = prefix_end(&outbox::lane_prefix(bot, lane));
    let younger = store.range(&outbox::key(bot, lane, number + 1), &end, LOOKS_AHEAD)?;
    let mut younger = younger.iter().filter_map(|(_, value)| OutboxRow::decode(value).ok());
    Ok(younger.any(|row| Target::of(&row.method, &row.params).as_ref() == Some(&target)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_tells_the_target_however_it_is_written() {
        let target = |method: &str, params: &str| Target::of(method, params).map(|target| target.message);
        for (params, message) in [
            (r#"{"chat_id":1,"message_id":7,"text":"a"}"#, Some("7")),
            (r#"{"chat_id":1,"message_id":" 7 "}"#, Some("7")),
            (r#"{"inline_message_id":"AQ\u0041"}"#, Some("AQA")),
            (r#"{"chat_id":1}"#, None),
            ("", None),
        ] {
            assert_eq!(target("editmessagetext", params).as_deref(), message, "{params}");
        }
        assert_eq!(target("sendMessage", r#"{"message_id":7}"#), None);
        assert_ne!(
            Target::of("editMessageText", r#"{"message_id":7}"#),
            Target::of("editMessageCaption", r#"{"message_id":7}"#)
        );
        let with = |connection: &str| {
            let params = format!(r#"{{"message_id":7,"business_connection_id":"{connection}"}}"#);
            Target::of("editMessageText", &params)
        };
        assert_eq!(with("a"), with("a"));
        assert_ne!(with("a"), with("b"));
        assert_ne!(with("a"), Target::of("editMessageText", r#"{"message_id":7}"#));
    }
}
