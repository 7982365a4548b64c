//! What a conversation is: the scope of one state.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{ChatId, ThreadId, UserId};

/// Which parts of an event tell its conversation; each plugin chooses one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KeyStrategy {
    /// One state for the whole chat.
    #[default]
    Chat,
    /// One state for a user, wherever they write.
    User,
    /// One state for each user in each chat.
    UserInChat,
    /// One state for a forum topic.
    Topic,
    /// One state for each user in each forum topic.
    UserInTopic,
    /// No conversations: no state, and no event waits for another.
    Unordered,
}

/// A strategy's name that is none.
#[derive(Debug, thiserror::Error)]
#[error("unknown key strategy `{0}`: one of chat, user, user_in_chat, topic, user_in_topic, none")]
pub struct UnknownKeyStrategy(String);

impl FromStr for KeyStrategy {
    type Err = UnknownKeyStrategy;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Ok(match name {
            "chat" => Self::Chat,
            "user" => Self::User,
            "user_in_chat" => Self::UserInChat,
            "topic" => Self::Topic,
            "user_in_topic" => Self::UserInTopic,
            "none" => Self::Unordered,
            _ => return Err(UnknownKeyStrategy(name.to_owned())),
        })
    }
}

impl fmt::Display for KeyStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Chat => "chat",
            Self::User => "user",
            Self::UserInChat => "user_in_chat",
            Self::Topic => "topic",
            Self::UserInTopic => "user_in_topic",
            Self::Unordered => "none",
        })
    }
}

impl KeyStrategy {
    /// Every one.
    pub const ALL: [Self; 6] =
        [Self::Chat, Self::User, Self::UserInChat, Self::Topic, Self::UserInTopic, Self::Unordered];

    /// The most particular strategy under which whatever is one conversation to either is one. There is none above a chat
    /// and a user who writes in several: that is the chat, too.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        // Chat, user, topic: what tells conversations apart.
        let parts = |key| match key {
            Self::Chat => Some([true, false, false]),
            Self::User => Some([false, true, false]),
            Self::UserInChat => Some([true, true, false]),
            Self::Topic => Some([true, false, true]),
            Self::UserInTopic => Some([true, true, true]),
            Self::Unordered => None,
        };
        let (Some(mine), Some(its)) = (parts(self), parts(other)) else {
            return if self == Self::Unordered { other } else { self };
        };
        match [mine[0] && its[0], mine[1] && its[1], mine[2] && its[2]] {
            [true, true, true] => Self::UserInTopic,
            [true, false, true] => Self::Topic,
            [true, true, false] => Self::UserInChat,
            [false, true, _] => Self::User,
            _ => Self::Chat,
        }
    }
}

/// The key of one conversation. Parts that the strategy leaves out, or that the event lacks, are `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Conversation {
    /// The chat, unless the state follows the user.
    pub chat: Option<ChatId>,
    /// The user, where the state is a user's.
    pub user: Option<UserId>,
    /// The forum topic, where the state is a topic's.
    pub thread: Option<ThreadId>,
}

impl Conversation {
    /// The conversation of an event under a strategy. An event without a chat falls back to its user,
    /// one without a user (a channel post) to its chat.
    #[must_use]
    pub fn of(strategy: KeyStrategy, chat: Option<ChatId>, user: Option<UserId>, thread: Option<ThreadId>) -> Self {
        let (chat_part, user_part, thread_part) = match strategy {
            KeyStrategy::Chat => (chat, None, None),
            KeyStrategy::User => (None, user, None),
            KeyStrategy::UserInChat => (chat, user, None),
            KeyStrategy::Topic => (chat, None, thread),
            // The most that is known, for timers: an answer needs the chat.
            KeyStrategy::UserInTopic | KeyStrategy::Unordered => (chat, user, thread),
        };
        if chat_part.is_none() && user_part.is_none() {
            return Self { chat, user: if chat.is_none() { user } else { None }, thread: thread_part };
        }
        Self { chat: chat_part, user: user_part, thread: thread_part }
    }

    /// Bytes for use in keys: a presence mask, then the parts that are there.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let parts = [self.chat.map(|id| id.0), self.user.map(|id| id.0), self.thread.map(|id| id.0)];
        let mut bytes = Vec::with_capacity(25);
        bytes.push(parts.iter().enumerate().fold(0, |mask, (bit, part)| mask | (u8::from(part.is_some()) << bit)));
        for id in parts.into_iter().flatten() {
            bytes.extend_from_slice(&(id ^ i64::MIN).to_be_bytes());
        }
        bytes
    }

    /// The reverse of [`Conversation::encode`]; `None` for bytes that it never makes.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (&mask, rest) = bytes.split_first()?;
        let (ids, rest) = rest.as_chunks::<8>();
        let mut ids = ids.iter().map(|id| i64::from_be_bytes(*id) ^ i64::MIN);
        let mut part = |bit: u8| if mask & (1 << bit) == 0 { Some(None) } else { ids.next().map(Some) };
        let (chat, user, thread) = (part(0)?, part(1)?, part(2)?);
        let is_whole = mask < 8 && rest.is_empty() && ids.next().is_none();
        is_whole.then(|| Self { chat: chat.map(ChatId), user: user.map(UserId), thread: thread.map(ThreadId) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn falls_back_where_the_strategy_finds_nothing() {
        let chat = Some(ChatId(-5));
        let user = Some(UserId(7));
        let of = Conversation::of;
        assert_eq!(of(KeyStrategy::Chat, None, user, None), Conversation { user, ..Default::default() });
        assert_eq!(of(KeyStrategy::User, chat, None, None), Conversation { chat, ..Default::default() });
        for key in [KeyStrategy::UserInChat, KeyStrategy::UserInTopic] {
            assert_eq!(of(key, chat, None, None), Conversation { chat, ..Default::default() }, "a channel post");
        }
        assert_eq!(of(KeyStrategy::UserInChat, chat, user, None), Conversation { chat, user, thread: None });
        assert_eq!(of(KeyStrategy::Topic, chat, user, Some(ThreadId(3))).thread, Some(ThreadId(3)));
    }

    #[test]
    fn encoding_is_reversible() {
        for mask in 0..8 {
            let part = |bit: u8, id: i64| (mask & (1 << bit) != 0).then_some(id);
            let (chat, user, thread) = (part(0, -5).map(ChatId), part(1, 7).map(UserId), part(2, 3).map(ThreadId));
            let conversation = Conversation { chat, user, thread };
            let bytes = conversation.encode();
            assert_eq!(Conversation::decode(&bytes), Some(conversation));
            assert_eq!(Conversation::decode(&[&bytes[..], &[0]].concat()), None);
        }
        assert_eq!((Conversation::decode(&[]), Conversation::decode(&[1, 0])), (None, None));
    }

    #[test]
    fn keys_of_different_shape_never_meet() {
        let chat = Conversation { chat: Some(ChatId(7)), ..Default::default() };
        let user = Conversation { user: Some(UserId(7)), ..Default::default() };
        assert_ne!(chat.encode(), user.encode());
    }
}
