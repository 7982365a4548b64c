//! What the builders of the generated modules share.

use std::fmt::Write;

use super::Json;
use crate::Error;
use crate::ctx::ChatTarget;

pub(super) fn truth(value: bool) -> &'static str {
    if value { "true" } else { "false" }
}

/// A topic is a parameter beside the chat.
pub(super) fn put_chat(json: &mut Json, key: &str, chat: ChatTarget) {
    match chat {
        ChatTarget::Id(id) => json.put_integer(key, id),
        ChatTarget::Name(name) => json.put_text(key, &name),
        ChatTarget::Topic(id, thread) => {
            json.put_integer(key, id);
            json.put_integer("message_thread_id", thread);
        }
    }
}

pub(super) fn put_markup(json: &mut Json, key: &str, markup: Result<String, Error>) {
    match markup {
        Ok(markup) => json.put_raw(key, &markup),
        Err(error) => json.fail(error),
    }
}

pub(super) fn put_integers(json: &mut Json, key: &str, values: impl IntoIterator<Item = i64>) {
    let mut list = String::from("[");
    for value in values {
        let comma = if list.len() > 1 { "," } else { "" };
        write!(list, "{comma}{value}").expect("writing to a string never fails");
    }
    list.push(']');
    json.put_raw(key, &list);
}

pub(super) fn part<T: Into<Json>>(value: impl Into<T>) -> Json {
    value.into().into()
}

pub(super) fn objects<T: Into<Json>, V: Into<T>>(values: impl IntoIterator<Item = V>) -> Json {
    Json::list(values.into_iter().map(part::<T>).collect())
}
