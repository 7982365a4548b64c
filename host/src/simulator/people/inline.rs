//! Inline mode: what somebody types after the bot's name, and the result that they send.

use serde_json::{Value, json};

use super::payments::user_json;
use super::{Done, author, chat_of, open_query, post};
use crate::simulator::api::ApiError;
use crate::simulator::error::Error;
use crate::simulator::model::{ChatKind, Message};
use crate::simulator::world::World;
use crate::simulator::{api, render};

/// Asks the bot, from a chat if one is given.
pub(in crate::simulator) fn ask(world: &mut World, user: i64, query: &str, chat: Option<i64>) -> Result<Done, Error> {
    if !world.users.contains_key(&user) {
        return Err(Error::UnknownUser(user));
    }
    let kind = match chat {
        // The chat with the bot itself.
        None => "sender",
        Some(id) => match chat_of(world, id, user)?.kind {
            ChatKind::Private => "sender",
            kind => kind.name(),
        },
    };
    let id = open_query(world, "inline_query", chat, user, None, json!(query));
    let mut json = format!("{{\"id\":\"{id}\",\"from\":").into_bytes();
    render::user_id(world, user, &mut json);
    json.extend_from_slice(b",\"query\":");
    render::string(query, &mut json);
    json.extend_from_slice(format!(",\"offset\":\"\",\"chat_type\":\"{kind}\"}}").as_bytes());
    Ok(Done { query_id: Some(id), ..Done::new(world.enqueue("inline_query", &json))? })
}

/// A result that somebody sends.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::simulator) struct Choice {
    /// The query that the bot has answered.
    pub(in crate::simulator) query_id: String,
    /// The `id` of the result.
    pub(in crate::simulator) result: String,
    /// Where it goes.
    pub(in crate::simulator) chat: i64,
    /// In which topic.
    #[serde(default)]
    pub(in crate::simulator) thread: Option<i64>,
}

/// Sends a result: a message of the user's through the bot, and word of the choice.
pub(in crate::simulator) fn choose(world: &mut World, choice: &Choice) -> Result<Done, Error> {
    let query = world.queries.get(&choice.query_id).filter(|query| query.kind == "inline_query").cloned();
    let query = query.ok_or(Error::Cannot("there is no such inline query"))?;
    let answer = query.answer.as_ref().ok_or(Error::Cannot("the bot has not answered that query"))?;
    let results = list_of(&answer["results"]);
    let result = results.iter().find(|result| result["id"] == choice.result.as_str());
    let result = result.ok_or(Error::Cannot("the bot has not offered that result"))?;
    let chat = chat_of(world, choice.chat, query.user)?;
    let mut message = Message::new(author(chat, query.user, choice.thread)?);
    message.thread = choice.thread.filter(|id| chat.topics.iter().any(|topic| topic.id == *id));
    api::inline_results::fill(world, &mut message, result).map_err(refused)?;
    let id = world.queries.next_id();
    let editable = message.markup.is_some();
    message.via_bot = Some(id.clone());
    let mut chosen =
        json!({ "result_id": choice.result, "from": user_json(world, query.user), "query": query.details });
    if editable {
        chosen["inline_message_id"] = json!(id);
    }
    let done = post(world, choice.chat, query.user, message)?;
    Done::new(world.enqueue("chosen_inline_result", chosen.to_string().as_bytes()))?;
    Ok(done)
}

fn refused(_: ApiError) -> Error {
    Error::Cannot("that result can't be sent: it is not what Telegram would take")
}

/// A list, as it is or as text that holds one.
pub(in crate::simulator) fn list_of(value: &Value) -> Vec<Value> {
    match value {
        Value::Array(items) => items.clone(),
        Value::String(text) => serde_json::from_str(text).unwrap_or_default(),
        _ => Vec::new(),
    }
}
