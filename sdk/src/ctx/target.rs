//! Which chat a message goes to.

use crate::json::Object;

/// Where [`Run::send`](crate::Run::send) sends to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChatTarget {
    /// A chat's id; in private chats the user's.
    Id(i64),
    /// A public chat's name, with the `@`.
    Name(String),
}

impl ChatTarget {
    pub(super) fn write(&self, params: &mut Object) {
        match self {
            Self::Id(id) => params.integer("chat_id", *id),
            Self::Name(name) => params.text("chat_id", name),
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
