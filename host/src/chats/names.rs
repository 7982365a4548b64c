//! Which names mean the same chat: an `@name` and its id, a group's old id and its new one.

use std::collections::HashMap;

use serde::Deserialize;
use tokio::sync::watch;

use super::Chats;
use crate::domain::{ChatId, Lane};
use crate::telegram::{is_of_name, lane_of_name, redirect};

/// More public chats than one bot sends to by their names.
const MOST: usize = 50_000;

/// Lanes of names with the chats that they mean.
#[derive(Default)]
pub(super) struct Names(HashMap<ChatId, ChatId>);

impl Names {
    /// True if that is new.
    fn learn(&mut self, name: ChatId, chat: ChatId) -> bool {
        let has_room = self.0.len() < MOST || self.0.contains_key(&name);
        has_room && self.0.insert(name, chat) != Some(chat)
    }
}

/// What tells a chat's id: the chat itself, or a message in it.
#[derive(Deserialize)]
struct Told {
    id: Option<i64>,
    chat: Option<Id>,
}

#[derive(Deserialize)]
struct Id {
    id: i64,
}

impl Chats {
    /// The lane that a call to this one belongs to, as far as is known.
    #[must_use]
    pub fn lane(&self, lane: Lane) -> Lane {
        let Lane::Chat(chat @ ChatId(..0)) = lane else { return lane };
        let memory = self.memory();
        let chat = memory.names.0.get(&chat).copied().unwrap_or(chat);
        Lane::Chat(memory.aliases.get(&chat).copied().unwrap_or(chat))
    }

    /// Counts the changes to what [`Chats::lane`] answers.
    #[must_use]
    pub fn lanes_changed(&self) -> watch::Receiver<u64> {
        self.shared.changed.subscribe()
    }

    /// A call's parameters with the ids of groups that have moved replaced; `None` where there is none.
    #[must_use]
    pub fn redirect(&self, params: &str) -> Option<String> {
        if self.memory().aliases.is_empty() {
            return None;
        }
        redirect(params, |chat| self.memory().aliases.get(&chat).copied())
    }

    /// A public chat's name was seen.
    pub(super) fn learn_name(&self, username: &str, chat: ChatId) {
        if let Lane::Chat(name) = lane_of_name(username) {
            self.learn(name, chat);
        }
    }

    /// Where the lane of a call is that of a name, its answer tells the chat.
    pub(super) fn learn_from_answer(&self, lane: Lane, method: &str, result: &[u8]) {
        let Lane::Chat(name) = lane else { return };
        if !is_of_name(lane) {
            return;
        }
        let Ok(told) = serde_json::from_slice::<Told>(result) else { return };
        let id = if method.eq_ignore_ascii_case("getChat") { told.id } else { told.chat.map(|chat| chat.id) };
        if let Some(id) = id {
            self.learn(name, ChatId(id));
        }
    }

    fn learn(&self, name: ChatId, chat: ChatId) {
        if self.memory().names.learn(name, chat) {
            self.shared.changed.send_modify(|generation| *generation += 1);
        }
    }
}
