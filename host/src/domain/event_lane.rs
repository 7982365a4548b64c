//! The lanes of events: which events must not overtake each other, and where the plugins' keys allow it, nothing more.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{ChatId, Conversation, KeyStrategy, Lane, ThreadId, UserId};

/// The queue that an event waits in. One event of it is handled at a time, in order.
///
/// The derived order is the order of the encoded form (see [`EventLane::encode`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EventLane {
    /// Where it happened. Places take turns, however many lanes they have.
    pub place: Lane,
    /// Which events of the place.
    pub part: Part,
}

/// The events of a place that keep their order among themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Part {
    /// All that have no narrower lane.
    Whole,
    /// A user's.
    User(UserId),
    /// A forum topic's.
    Thread(ThreadId),
    /// A user's in a forum topic.
    UserInThread(UserId, ThreadId),
    /// One event alone, by its id: no order is asked for.
    Alone(i64),
    /// What a user orders the host itself to do. Never waits for what plugins are at.
    Control(UserId),
    /// What tells that the place's group has become a supergroup: a lane of its own, where whoever is about to handle
    /// something of the place finds it.
    Move,
}

/// How intake chooses lanes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LaneRule {
    /// What a conversation is to the least particular of the plugins.
    pub key: KeyStrategy,
    /// The command, in lower case, that ends a conversation whatever its handler does.
    pub cancel: Option<String>,
}

impl EventLane {
    /// The lane of a whole place.
    #[must_use]
    pub fn whole(place: Lane) -> Self {
        Self { place, part: Part::Whole }
    }

    /// The lane of an event. `id` tells it from others where there is no order.
    #[must_use]
    pub fn of(key: KeyStrategy, chat: Option<ChatId>, user: Option<UserId>, thread: Option<ThreadId>, id: i64) -> Self {
        let conversation = Conversation::of(key, chat, user, thread);
        let place = match (conversation.chat, conversation.user) {
            (Some(chat), _) => Lane::Chat(chat),
            (None, Some(user)) => Lane::User(user),
            (None, None) => Lane::Other,
        };
        // The place tells the user already where there is no chat.
        let user = conversation.chat.and(conversation.user);
        let part = match (user, conversation.thread) {
            _ if key == KeyStrategy::Unordered => Part::Alone(id),
            (None, None) => Part::Whole,
            (Some(user), None) => Part::User(user),
            (None, Some(thread)) => Part::Thread(thread),
            (Some(user), Some(thread)) => Part::UserInThread(user, thread),
        };
        Self { place, part }
    }

    /// Bytes whose order is the lanes' order and none of which begins another lane's, for use in keys.
    #[must_use]
    pub fn encode(self) -> Vec<u8> {
        let (tag, ids) = match self.part {
            Part::Whole => (0, [None, None]),
            Part::User(user) => (1, [Some(user.0), None]),
            Part::Thread(thread) => (2, [Some(thread.0), None]),
            Part::UserInThread(user, thread) => (3, [Some(user.0), Some(thread.0)]),
            Part::Alone(id) => (4, [Some(id), None]),
            Part::Control(user) => (5, [Some(user.0), None]),
            Part::Move => (6, [None, None]),
        };
        let mut bytes = Vec::with_capacity(26);
        bytes.extend_from_slice(&self.place.encode());
        bytes.push(tag);
        for id in ids.into_iter().flatten() {
            bytes.extend_from_slice(&(id ^ i64::MIN).to_be_bytes());
        }
        bytes
    }

    /// The reverse of [`EventLane::encode`]; `None` for bytes that it never makes.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (place, rest) = bytes.split_at_checked(9)?;
        let (&tag, ids) = rest.split_first()?;
        let id = |at: usize| Some(i64::from_be_bytes(ids.get(at * 8..at * 8 + 8)?.try_into().ok()?) ^ i64::MIN);
        let part = match (tag, ids.len()) {
            (0, 0) => Part::Whole,
            (1, 8) => Part::User(UserId(id(0)?)),
            (2, 8) => Part::Thread(ThreadId(id(0)?)),
            (3, 16) => Part::UserInThread(UserId(id(0)?), ThreadId(id(1)?)),
            (4, 8) => Part::Alone(id(0)?),
            (5, 8) => Part::Control(UserId(id(0)?)),
            (6, 0) => Part::Move,
            _ => return None,
        };
        Some(Self { place: Lane::decode(place)?, part })
    }
}

impl fmt::Display for EventLane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.place.fmt(f)?;
        match self.part {
            Part::Whole => Ok(()),
            Part::User(user) => write!(f, ", user {user}"),
            Part::Thread(thread) => write!(f, ", topic {thread}"),
            Part::UserInThread(user, thread) => write!(f, ", topic {thread}, user {user}"),
            Part::Alone(id) => write!(f, ", update {id}"),
            Part::Control(user) => write!(f, ", control by user {user}"),
            Part::Move => write!(f, ", its move"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lanes() -> impl Strategy<Value = EventLane> {
        let place = prop_oneof![
            any::<i64>().prop_map(|id| Lane::Urgent(UserId(id))),
            any::<i64>().prop_map(|id| Lane::Chat(ChatId(id))),
            any::<i64>().prop_map(|id| Lane::User(UserId(id))),
            Just(Lane::Other),
        ];
        let part = prop_oneof![
            Just(Part::Whole),
            any::<i64>().prop_map(|id| Part::User(UserId(id))),
            any::<i64>().prop_map(|id| Part::Thread(ThreadId(id))),
            any::<(i64, i64)>().prop_map(|(user, thread)| Part::UserInThread(UserId(user), ThreadId(thread))),
            any::<i64>().prop_map(Part::Alone),
            any::<i64>().prop_map(|id| Part::Control(UserId(id))),
            Just(Part::Move),
        ];
        (place, part).prop_map(|(place, part)| EventLane { place, part })
    }

    fn keys() -> impl Strategy<Value = KeyStrategy> {
        prop::sample::select(KeyStrategy::ALL.to_vec())
    }

    proptest! {
        #[test]
        fn encoding_is_reversible_and_keeps_the_order(a in lanes(), b in lanes()) {
            prop_assert_eq!(EventLane::decode(&a.encode()), Some(a));
            prop_assert_eq!(a.cmp(&b), a.encode().cmp(&b.encode()));
            prop_assert!(a == b || !b.encode().starts_with(&a.encode()));
        }

        /// Whatever the plugins' keys are: events that one of them takes for the same conversation share a lane. (A user in
        /// several chats is the exception that no lane by chat can cover.)
        #[test]
        fn the_common_lane_keeps_every_plugins_order(
            keys in prop::collection::vec(keys(), 1..4),
            a in (1i64..3, 1i64..3, prop::option::of(1i64..3)),
            b in (1i64..3, 1i64..3, prop::option::of(1i64..3)),
        ) {
            let common = keys.iter().copied().reduce(KeyStrategy::join).unwrap();
            let parts = |(chat, user, thread): (i64, i64, Option<i64>)| {
                (Some(ChatId(-chat)), Some(UserId(user)), thread.map(ThreadId))
            };
            let lane = |event, id| { let (chat, user, thread) = parts(event); EventLane::of(common, chat, user, thread, id) };
            for key in keys {
                let of = |event| { let (chat, user, thread) = parts(event); Conversation::of(key, chat, user, thread) };
                if key == KeyStrategy::Unordered || (key == KeyStrategy::User && common == KeyStrategy::Chat) {
                    continue;
                }
                if of(a) == of(b) {
                    prop_assert_eq!(lane(a, 1), lane(b, 2), "{:?} under {:?}", key, common);
                }
            }
        }
    }

    #[test]
    fn a_narrow_key_has_narrow_lanes() {
        let (chat, user, thread) = (Some(ChatId(-5)), Some(UserId(7)), Some(ThreadId(3)));
        let lane = |key| EventLane::of(key, chat, user, thread, 1);
        for (key, text) in [
            (KeyStrategy::Chat, "chat -5"),
            (KeyStrategy::User, "user 7"),
            (KeyStrategy::UserInChat, "chat -5, user 7"),
            (KeyStrategy::Topic, "chat -5, topic 3"),
            (KeyStrategy::UserInTopic, "chat -5, topic 3, user 7"),
            (KeyStrategy::Unordered, "chat -5, update 1"),
        ] {
            assert_eq!(lane(key).to_string(), text);
        }
        // A channel post has no user, a poll's result neither.
        assert_eq!(
            EventLane::of(KeyStrategy::UserInChat, chat, None, None, 1),
            EventLane::whole(Lane::Chat(ChatId(-5)))
        );
        assert_eq!(
            EventLane::of(KeyStrategy::UserInChat, None, user, None, 1),
            EventLane::whole(Lane::User(UserId(7)))
        );
        assert_eq!(EventLane::of(KeyStrategy::Topic, None, None, None, 1), EventLane::whole(Lane::Other));
    }
}
