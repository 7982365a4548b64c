//! The chats that the bot has met.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Error, Operator};
use crate::chats::Known;
use crate::domain::ChatId;
use crate::store::rows::chat::ChatRow;

/// Which chats.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// All.
    #[default]
    Any,
    /// Those that something can be sent to, as far as is known.
    Reachable,
    /// The others.
    Gone,
}

impl Reach {
    fn holds(self, row: &ChatRow) -> bool {
        match self {
            Self::Any => true,
            Self::Reachable => row.is_reachable(),
            Self::Gone => !row.is_reachable(),
        }
    }
}

impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Any => "any",
            Self::Reachable => "reachable",
            Self::Gone => "gone",
        })
    }
}

/// A chat in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatEntry {
    /// By which it is sent to.
    pub id: i64,
    /// `private`, `group`, `supergroup` or `channel`; empty where nobody has said.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its title, or the person's name.
    pub title: String,
    /// Without the `@`.
    pub username: Option<String>,
    /// Unix milliseconds at which it was last heard of, to within a day.
    pub seen: u64,
    /// Why nothing can be sent there; `None` as far as is known it can.
    pub gone: Option<String>,
    /// Unix milliseconds since when, or when it came back; 0 where that has never changed.
    pub gone_since: u64,
}

/// Chats in the order of their ids.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatList {
    /// As many as were asked for, at most.
    pub chats: Vec<ChatEntry>,
    /// The id to go on after; `None` where there are no more.
    pub next: Option<i64>,
}

impl Operator {
    /// At most `limit` chats behind one.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn chats(&self, after: Option<ChatId>, limit: usize, reach: Reach) -> Result<ChatList, Error> {
        let mut list = ChatList::default();
        for page in Known::after(&self.store, self.bot, after) {
            for (id, row) in page?.into_iter().filter(|(_, row)| reach.holds(row)) {
                if list.chats.len() == limit {
                    list.next = list.chats.last().map(|last| last.id);
                    return Ok(list);
                }
                let ChatRow { kind, title, username, seen, gone, gone_since } = row;
                list.chats.push(ChatEntry { id: id.0, kind, title, username, seen, gone, gone_since });
            }
        }
        Ok(list)
    }
}
