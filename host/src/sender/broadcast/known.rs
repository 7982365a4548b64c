//! The chats that the bot knows, as broadcasts see them. The one place where broadcasts meet the chats' rows.

use crate::domain::{BotId, ChatId};
use crate::store::{Error, Op, Store};

/// The known chats behind `after`, ascending, at most `limit` (which is not 0), and whether each is gone. Fewer than
/// `limit` mean that there are no more.
pub(crate) fn chats(
    _store: &Store,
    _bot: BotId,
    _after: Option<ChatId>,
    _limit: usize,
) -> Result<Vec<(ChatId, bool)>, Error> {
    Ok(Vec::new())
}

/// True if nothing can be sent to this chat, as far as is known.
pub(crate) fn is_gone(_store: &Store, _bot: BotId, _chat: ChatId) -> Result<bool, Error> {
    Ok(false)
}

/// What the store has to be told when a chat turns out to be gone.
pub(super) fn mark_gone(_store: &Store, _bot: BotId, _chat: ChatId) -> Option<Op> {
    None
}
