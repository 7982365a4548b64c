//! What an operator does by hand to what is stored for a bot: to dead letters, paused plugins, chats, broadcasts,
//! calls that wait and those with an unknown end, jobs, what plugins keep, and whatever is kept of somebody.
//!
//! The same functions serve the running host, behind the admin address, and a stopped store, behind the command line;
//! what they answer with is JSON as it stands. Each change is one commit that checks what it rests on, so that two
//! operators, or an operator and the host, never do half of something. Nothing here runs a plugin or sends anything.

mod broadcast;
mod chats;
mod dead;
mod every_id;
mod holdings;
mod jobs;
mod left;
mod outbox;
mod paused;
mod private;
mod state;
#[cfg(test)]
mod tests;
mod unknown;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, mpsc};

use crate::domain::{BotId, EventLane, PluginName};
use crate::sender::Sender;
use crate::store::rows::counted::Ledger;
use crate::store::rows::prefix_end;
use crate::store::{self, Store};

pub use self::broadcast::{AT_A_TIME, Audience, Begun, Broadcast, Change, Draft, Missed, MissedPage, Problem};
pub use self::chats::{ChatEntry, ChatList, Reach};
pub use self::dead::{Letter, List, Summary};
pub use self::holdings::{Entry, Kind};
pub use self::jobs::{Job, JobList, JobRef};
pub use self::left::{Forget, Left};
pub use self::outbox::{Cancel, Outbox, Waiting, WaitingCall};
pub use self::state::{EntryList, Erase, Erased, Put, Refused, Wanted};
pub use self::unknown::{UnknownCall, UnknownList};

/// What can be done to one bot's part of a store. Cheap to clone.
#[derive(Clone)]
pub struct Operator {
    store: Store,
    bot: BotId,
    /// Where lanes are announced in which something has come; nobody listens on a stopped store.
    arrivals: Option<mpsc::UnboundedSender<Vec<EventLane>>>,
    /// Who is told of what is wanted of broadcasts and of calls; nobody on a stopped store.
    sender: Option<Sender>,
    /// Who is told where something was done to jobs; nobody on a stopped store.
    jobs: Option<Arc<Notify>>,
}

/// Which dead letters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Selection {
    /// Those with these numbers.
    Numbers(Vec<u64>),
    /// All that are there now.
    All {
        /// Only this plugin's.
        plugin: Option<String>,
    },
}

/// What became of a selection.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// The numbers for which it is done.
    pub done: Vec<u64>,
    /// Those for which it is not.
    pub refused: Vec<Refusal>,
}

/// Why something was not done to a dead letter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// Its number.
    pub number: u64,
    /// For people.
    pub reason: String,
}

/// Why it could not be done at all.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Error(#[from] store::Error);

impl Operator {
    /// For a store that no host runs on.
    #[must_use]
    pub fn on_stopped(store: Store, bot: BotId) -> Self {
        Self { store, bot, arrivals: None, sender: None, jobs: None }
    }

    /// For a store that a host runs on, which is told by `arrivals` where there is something new to do.
    #[must_use]
    pub fn on_running(store: Store, bot: BotId, arrivals: mpsc::UnboundedSender<Vec<EventLane>>) -> Self {
        Self { store, bot, arrivals: Some(arrivals), sender: None, jobs: None }
    }

    /// Also tells the host's sender.
    #[must_use]
    pub fn telling(self, sender: Sender) -> Self {
        Self { sender: Some(sender), ..self }
    }

    /// Also tells those who work on the host's jobs.
    #[must_use]
    pub fn telling_workers(self, jobs: Arc<Notify>) -> Self {
        Self { jobs: Some(jobs), ..self }
    }

    fn tell_jobs(&self) {
        if let Some(jobs) = &self.jobs {
            jobs.notify_one();
        }
    }

    /// How many rows begin so; no more than `most` are counted.
    fn count(&self, prefix: Vec<u8>, most: usize) -> Result<usize, Error> {
        let end = prefix_end(&prefix);
        let mut from = prefix;
        let mut count = 0;
        while count < most
            && let Some(key) = self.store.first_key(&from, &end)?
        {
            count += 1;
            from = [&key, &[0][..]].concat();
        }
        Ok(count)
    }

    /// How much each plugin has of something.
    #[must_use]
    pub fn used(&self, of: Ledger) -> Vec<(PluginName, u64)> {
        self.store.used_by_all(of, self.bot)
    }

    /// Whose things these are.
    #[must_use]
    pub fn bot(&self) -> BotId {
        self.bot
    }
}
