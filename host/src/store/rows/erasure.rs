//! Erasures that an operator has begun: `z bot whom id`. The row goes with the last of what is erased, so that one that was
//! interrupted is gone on with.

use super::{BotId, ChatId, UserId, prefix};

const KIND: u8 = b'z';

/// Whose data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Subject {
    /// A person's: also their private chat.
    User(UserId),
    /// A chat's.
    Chat(ChatId),
}

/// Every erasure of a bot.
#[must_use]
pub fn bot_prefix(bot: BotId) -> Vec<u8> {
    prefix(KIND, bot)
}

/// One of them; `mentions` where also rows go that only mention the id.
#[must_use]
pub fn key(bot: BotId, subject: Subject, mentions: bool) -> Vec<u8> {
    let mut key = prefix(KIND, bot);
    let (tag, id) = match subject {
        Subject::User(user) => (1, user.0),
        Subject::Chat(chat) => (2, chat.0),
    };
    key.extend_from_slice(&[tag, mentions.into()]);
    key.extend_from_slice(&(id ^ i64::MIN).to_be_bytes());
    key
}

/// What [`key`] was made of.
#[must_use]
pub fn parse_key(key: &[u8]) -> Option<(Subject, bool)> {
    if key.first() != Some(&KIND) {
        return None;
    }
    let (&[tag, mentions], id) = key.get(9..)?.split_first_chunk::<2>()?;
    let id = i64::from_be_bytes(id.try_into().ok()?) ^ i64::MIN;
    let subject = match tag {
        1 => Subject::User(UserId(id)),
        2 => Subject::Chat(ChatId(id)),
        _ => return None,
    };
    Some((subject, mentions == 1))
}
