//! All chats that a bot has met, in pages.

use crate::domain::{BotId, ChatId};
use crate::store::rows::chat::{self, ChatRow};
use crate::store::rows::prefix_end;
use crate::store::{Error, Store};

/// Rows of a page.
const PAGE: usize = 256;

/// Every chat that the bot has met, in the order of their ids: groups and channels first, then people. A page is what
/// stood there when it was read; chats that come or go meanwhile may be among the later ones or not. After an error
/// there is no further page.
pub fn known(store: &Store, bot: BotId) -> Known {
    Known::after(store, bot, None)
}

/// See [`known`].
pub struct Known {
    store: Store,
    from: Option<Vec<u8>>,
    to: Vec<u8>,
}

impl Known {
    /// The same from behind this chat on, so that whoever was interrupted can go on.
    #[must_use]
    pub fn after(store: &Store, bot: BotId, last: Option<ChatId>) -> Self {
        let prefix = chat::bot_prefix(bot);
        let to = prefix_end(&prefix);
        let from = last.map_or(prefix, |last| behind(&chat::key(bot, last)));
        Self { store: store.clone(), from: Some(from), to }
    }
}

impl Iterator for Known {
    type Item = Result<Vec<(ChatId, ChatRow)>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let from = self.from.take()?;
            let rows = match self.store.range(&from, &self.to, PAGE) {
                Ok(rows) => rows,
                Err(error) => return Some(Err(error)),
            };
            self.from = rows.last().filter(|_| rows.len() == PAGE).map(|(key, _)| behind(key));
            let readable = rows.iter().filter_map(|(key, value)| {
                let id = chat::parse_key(key)?;
                match ChatRow::decode(value) {
                    Ok(row) => Some((id, row)),
                    Err(error) => {
                        tracing::error!(chat_id = id.0, %error, "what is known of a chat can't be read");
                        None
                    }
                }
            });
            let page: Vec<_> = readable.collect();
            if !page.is_empty() {
                return Some(Ok(page));
            }
        }
    }
}

fn behind(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Commit, Op};

    #[test]
    fn pages_hold_every_chat_of_the_bot_once_and_can_be_gone_on_with() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        let (bot, other) = (BotId(7), BotId(8));
        let ids: Vec<i64> = (-300..300).collect();
        let put = |bot, id: i64| Op::Put {
            key: chat::key(bot, ChatId(id)),
            value: ChatRow { title: id.to_string(), ..ChatRow::default() }.encode(),
        };
        let mut ops: Vec<Op> = ids.iter().map(|&id| put(bot, id)).collect();
        ops.extend([put(other, 1), Op::Put { key: chat::key(bot, ChatId(1000)), value: b"\xff".to_vec() }]);
        drop(store.commit_blocking(Commit { ops, ..Commit::default() }).unwrap());
        let all = |known: Known| -> Vec<i64> {
            known
                .flat_map(Result::unwrap)
                .map(|(id, row)| (id.0, row.title))
                .map(|(id, title)| {
                    assert_eq!(title, id.to_string());
                    id
                })
                .collect()
        };
        assert_eq!(all(known(&store, bot)), ids);
        assert_eq!(all(Known::after(&store, bot, Some(ChatId(290)))), (291..300).collect::<Vec<_>>());
        assert_eq!(all(known(&store, other)), [1]);
        assert_eq!(known(&store, BotId(9)).count(), 0);
    }
}
