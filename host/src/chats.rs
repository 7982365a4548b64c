//! What is known of chats.
//!
//! - [`known`]: all chats that the bot has met, one row each in the store, for whoever wants to reach everybody. A row is
//!   written when something in it changes, in the commit of the event that showed it ([`Chats::notice`]), and when
//!   Telegram refuses a call because of the chat ([`Chats::shut_out`]). Of people there is no more than their private
//!   chats: whoever does something is in the update that tells it, and the Bot API has no question about a person alone.
//! - [`Chats::moved`]: a group that becomes a supergroup takes along what belongs to it.
//! - [`Chats::lane`]: one chat has one lane, whichever of its names a call gives.
//! - [`Chats::full`]: answers of `getChat` and `getChatMember` for a while, so that asking again costs no call.
//!
//! Nothing here calls Telegram. When the store fails, so does what needs it; memory is bounded throughout.

mod answers;
mod known;
mod moves;
mod names;
mod notice;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use crate::domain::{BotId, ChatId};
use crate::store::rows::moved::{self, MovedRow};
use crate::store::rows::{Unreadable, prefix_end};
use crate::store::{self, Store};

pub use self::known::{Known, known};

/// Why something could not be done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// What the store holds of a group that has moved can't be read.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
}

/// What one bot knows of its chats. Clones are cheap and share it.
#[derive(Clone)]
pub struct Chats {
    shared: Arc<Shared>,
}

struct Shared {
    store: Store,
    bot: BotId,
    memory: Mutex<Memory>,
    seen: Mutex<notice::Seen>,
    answers: Mutex<answers::Answers>,
    /// Held by whoever moves a group.
    mover: tokio::sync::Mutex<()>,
    /// Counts the changes to what [`Chats::lane`] answers.
    changed: watch::Sender<u64>,
}

/// What is looked up for every call and event; small, since few groups ever move.
#[derive(Default)]
struct Memory {
    /// Groups that have moved, and where to.
    aliases: HashMap<ChatId, ChatId>,
    /// Groups that move just now.
    moving: Vec<(ChatId, ChatId)>,
    /// Supergroups, each with the group that it was, whose last events may still wait.
    draining: HashMap<ChatId, ChatId>,
    names: names::Names,
}

impl Memory {
    fn begin_move(&mut self, group: ChatId, to: ChatId) {
        if !self.moving.contains(&(group, to)) {
            self.moving.push((group, to));
        }
    }

    fn end_move(&mut self, group: ChatId, to: ChatId, drains: bool) {
        self.moving.retain(|&(moving, _)| moving != group);
        self.aliases.insert(group, to);
        if drains {
            self.draining.insert(to, group);
        }
    }
}

impl Chats {
    /// Reads which groups have moved.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn open(store: Store, bot: BotId) -> Result<Self, Error> {
        let mut memory = Memory::default();
        let prefix = moved::bot_prefix(bot);
        for (key, value) in store.range(&prefix, &prefix_end(&prefix), usize::MAX)? {
            let (Some(group), row) = (moved::parse_key(&key), MovedRow::decode(&value)?) else { continue };
            if row.done {
                memory.end_move(group, row.to, moves::has_events(&store, bot, group)?);
            } else {
                memory.begin_move(group, row.to);
            }
        }
        let generation = u64::from(!memory.aliases.is_empty());
        let shared = Shared {
            store,
            bot,
            memory: Mutex::new(memory),
            seen: Mutex::default(),
            answers: Mutex::default(),
            mover: tokio::sync::Mutex::default(),
            changed: watch::channel(generation).0,
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// How long answers of `getChat` are kept; zero for not at all.
    pub fn keep_answers_for(&self, time: Duration) {
        self.answers().keep_for(time);
    }

    /// The chat, and the groups that it was.
    #[must_use]
    pub fn all_ids(&self, chat: ChatId) -> Vec<ChatId> {
        let memory = self.memory();
        let was = memory.aliases.iter().filter(|(_, now)| **now == chat).map(|(group, _)| *group);
        std::iter::once(chat).chain(was).collect()
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.shared.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answers(&self) -> MutexGuard<'_, answers::Answers> {
        self.shared.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
