//! What kind of a no a refusal is. Pure: the code first, `parameters` next, the text last.

use serde::{Deserialize, Serialize};

use crate::domain::ChatId;

/// Kinds of refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// What was asked for is so already, or can't matter any more: as good as done.
    NoOp,
    /// Nothing can be sent to this chat: it is not there, or has shut the bot out.
    ChatGone,
    /// The group has become this supergroup.
    Migrated(ChatId),
    /// Something is wrong with the call itself.
    Call,
}

/// Texts of 400 that are no failures.
const NO_OPS: [&str; 8] = [
    "message is not modified",
    "MESSAGE_NOT_MODIFIED",
    "CHAT_NOT_MODIFIED",
    "chat description is not modified",
    "query is too old",
    "query ID is invalid",
    "QUERY_ID_INVALID",
    "message to delete not found",
];
/// Texts of 400 and 403 that speak of the chat, not of the call.
const GONE: [&str; 15] = [
    "chat not found",
    "was blocked by the user",
    "USER_IS_BLOCKED",
    "user is deactivated",
    "INPUT_USER_DEACTIVATED",
    "user not found",
    "was kicked",
    "is not a member",
    "chat was deleted",
    "group chat was deactivated",
    "can't initiate conversation",
    "can't send messages to bots",
    "can't send messages to the user",
    "CHANNEL_PRIVATE",
    "PEER_ID_INVALID",
];
/// Methods that ask about a person rather than send to one.
const ABOUT_A_USER: &str = "ChatMember";

impl Refusal {
    pub(super) fn of(method: &str, code: u16, description: &str, migrate_to: Option<ChatId>) -> Self {
        let says = |texts: &[&str]| texts.iter().any(|text| description.contains(text));
        match (migrate_to, code) {
            (Some(chat), _) => Self::Migrated(chat),
            (None, 400) if says(&NO_OPS) => Self::NoOp,
            (None, 400) if method.contains(ABOUT_A_USER) && !description.contains("chat not found") => Self::Call,
            (None, 400 | 403) if says(&GONE) => Self::ChatGone,
            _ => Self::Call,
        }
    }

    /// One word for metrics.
    #[must_use]
    pub fn outcome(self) -> &'static str {
        match self {
            Self::NoOp => "no_op",
            Self::ChatGone => "chat_gone",
            Self::Migrated(_) => "migrated",
            Self::Call => "refused",
        }
    }
}
