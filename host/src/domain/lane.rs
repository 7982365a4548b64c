//! Lanes: which events must not overtake each other.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{ChatId, PluginName, UserId};

/// The queue that an event waits in, and an API call too. One thing of a lane is under way at a time, in order.
///
/// The derived order is the order of the encoded form (see [`Lane::encode`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Lane {
    /// Queries that expire within seconds (pre-checkout, shipping, inline): by user, ahead of everything else.
    Urgent(UserId),
    /// A chat.
    Chat(ChatId),
    /// A user, for events that belong to no chat.
    User(UserId),
    /// Whatever belongs to neither (a poll's result, say).
    Other,
    /// A plugin's own events that belong to no conversation, by a number made of its name.
    Task(i64),
}

impl Lane {
    /// The lane of a plugin's own events.
    #[must_use]
    pub fn of_task(plugin: &PluginName) -> Self {
        // FNV-1a. Two plugins that met here would only wait for each other.
        let hash = plugin
            .as_str()
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        Lane::Task(hash.cast_signed())
    }

    /// Nine bytes whose order is the lanes' order, for use in keys.
    #[must_use]
    pub fn encode(self) -> [u8; 9] {
        let (tag, id) = match self {
            Lane::Urgent(user) => (0, user.0),
            Lane::Chat(chat) => (1, chat.0),
            Lane::User(user) => (2, user.0),
            Lane::Other => (3, 0),
            Lane::Task(plugin) => (4, plugin),
        };
        let mut bytes = [0; 9];
        bytes[0] = tag;
        // Flipping the sign bit makes the byte order of negative ids the numeric one.
        bytes[1..].copy_from_slice(&(id ^ i64::MIN).to_be_bytes());
        bytes
    }

    /// The reverse of [`Lane::encode`]; `None` for bytes that it never makes.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (&tag, id) = bytes.split_first()?;
        let id = i64::from_be_bytes(id.try_into().ok()?) ^ i64::MIN;
        match tag {
            0 => Some(Lane::Urgent(UserId(id))),
            1 => Some(Lane::Chat(ChatId(id))),
            2 => Some(Lane::User(UserId(id))),
            3 => Some(Lane::Other),
            4 => Some(Lane::Task(id)),
            _ => None,
        }
    }

    /// True for lanes that go first.
    #[must_use]
    pub fn is_urgent(self) -> bool {
        matches!(self, Lane::Urgent(_))
    }
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lane::Urgent(user) => write!(f, "urgent {user}"),
            Lane::Chat(chat) => write!(f, "chat {chat}"),
            Lane::User(user) => write!(f, "user {user}"),
            Lane::Other => f.write_str("other"),
            Lane::Task(plugin) => write!(f, "task {plugin}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lanes() -> impl Strategy<Value = Lane> {
        prop_oneof![
            any::<i64>().prop_map(|id| Lane::Urgent(UserId(id))),
            any::<i64>().prop_map(|id| Lane::Chat(ChatId(id))),
            any::<i64>().prop_map(|id| Lane::User(UserId(id))),
            Just(Lane::Other),
            any::<i64>().prop_map(Lane::Task),
        ]
    }

    proptest! {
        #[test]
        fn encoding_is_reversible(lane in lanes()) {
            prop_assert_eq!(Lane::decode(&lane.encode()), Some(lane));
        }

        #[test]
        fn encoding_keeps_the_order(a in lanes(), b in lanes()) {
            prop_assert_eq!(a.cmp(&b), a.encode().cmp(&b.encode()));
        }
    }
}
