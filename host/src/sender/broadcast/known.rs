//! The chats that the bot knows, as broadcasts see them. The one place where broadcasts meet the chats' rows.

use crate::chats::Known;
use crate::clock::unix_millis;
use crate::domain::{BotId, ChatId};
use crate::store::rows::chat::{self, ChatRow};
use crate::store::{Commit, Error, Op, Read, Store};

/// Some of the known chats behind `after`, ascending, and whether each is gone; none when there are no more.
pub(super) fn page(store: &Store, bot: BotId, after: Option<ChatId>) -> Result<Vec<(ChatId, bool)>, Error> {
    let page = Known::after(store, bot, after).next().transpose()?.unwrap_or_default();
    Ok(page.into_iter().map(|(chat, row)| (chat, !row.is_reachable())).collect())
}

/// True if nothing can be sent to this chat, as far as is known.
pub(super) fn is_gone(store: &Store, bot: BotId, chat: ChatId) -> Result<bool, Error> {
    let row = store.get(&chat::key(bot, chat))?;
    Ok(row.and_then(|row| ChatRow::decode(&row).ok()).is_some_and(|row| !row.is_reachable()))
}

/// Writes down that nothing can be sent to this chat, so that the next broadcast skips it. Somebody who hears of the
/// chat at the same moment knows better.
pub(super) fn mark_gone(store: &Store, bot: BotId, chat: ChatId, reason: &str) {
    let key = chat::key(bot, chat);
    let Ok(seen) = store.get(&key) else { return };
    let row = seen.as_ref().map_or_else(|| Ok(ChatRow::default()), |row| ChatRow::decode(row));
    if let Ok(row) = row
        && row.is_reachable()
    {
        let row = ChatRow { gone: Some(reason.to_owned()), gone_since: unix_millis(), ..row };
        let ops = vec![Op::Put { key: key.clone(), value: row.encode() }];
        store.submit(Commit { reads: vec![Read::Value { key, seen }], ops, on_durable: None });
    }
}
