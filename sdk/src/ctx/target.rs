//! Which chat a call is for.

use crate::json::Object;

/// Which chat is meant: what [`Run::send`](crate::Run::send) and the methods of [`api`](crate::api) take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChatTarget {
    /// A chat's id; in private chats the user's.
    Id(i64),
    /// A public chat's name, with the `@`.
    Name(String),
    /// A chat's id, and a forum topic in it.
    Topic(i64, i64),
}

impl ChatTarget {
    pub(crate) fn write(&self, params: &mut Object) {
        match self {
            Self::Id(id) => params.integer("chat_id", *id),
            Self::Name(name) => params.text("chat_id", name),
            Self::Topic(id, thread) => params.integer("chat_id", *id).integer("message_thread_id", *thread),
        };
    }
}

impl From<i64> for ChatTarget {
    fn from(id: i64) -> Self {
        Self::Id(id)
    }
}

impl From<&str> for ChatTarget {
    fn from(name: &str) -> Self {
        Self::Name(name.to_owned())
    }
}

impl From<String> for ChatTarget {
    fn from(name: String) -> Self {
        Self::Name(name)
    }
}
