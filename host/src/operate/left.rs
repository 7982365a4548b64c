//! What plugins have kept and set, by plugin: so that it is seen what one has left that is not configured any more, and can
//! be dropped. Nothing here knows which are; whoever asks does.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Error, Operator, holdings};
use crate::domain::PluginName;
use crate::store::rows::counted::Ledger;
use crate::store::rows::inbox::{self, InboxRow};
use crate::store::rows::{fsm, job, kv, parked, prefix_end, timer};
use crate::store::{Commit, CommitError, Op};

/// Rows that go in one commit.
const AT_A_TIME: usize = 256;

/// What a plugin has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Left {
    /// Its name, as it stands or stood in `bot.toml`.
    pub plugin: String,
    /// Bytes of its states, values, timers and jobs, and of events that wait for it.
    pub bytes: u64,
    /// Timers that are set, or have rung and are not handled.
    pub timers: u64,
}

/// Which plugin's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Forget {
    /// Its name.
    pub plugin: String,
}

impl Operator {
    /// What each plugin has, if it has anything.
    #[must_use]
    pub fn left(&self) -> Vec<Left> {
        let mut timers: BTreeMap<_, _> = self.store.used_by_all(Ledger::Timers, self.bot).into_iter().collect();
        let kept: BTreeMap<_, _> = self.store.used_by_all(Ledger::Kept, self.bot).into_iter().collect();
        let left = kept.into_iter().map(|(plugin, bytes)| {
            let timers = timers.remove(&plugin).unwrap_or_default();
            Left { plugin: plugin.as_str().to_owned(), bytes, timers }
        });
        left.filter(|left| left.bytes > 0).collect()
    }

    /// Drops everything that a plugin has kept, set and queued for itself. What it wanted sent is sent, and its dead letters
    /// stay. Answers with how many rows there were, when they are gone from the disk.
    ///
    /// # Errors
    /// When the store fails. What went before that is gone.
    pub async fn forget(&self, plugin: &PluginName) -> Result<u64, Error> {
        let bot = self.bot;
        let mut prefixes = fsm::plugin_prefixes(bot, plugin).to_vec();
        prefixes.extend([kv::plugin_prefix(bot, plugin), job::plugin_prefix(bot, plugin)]);
        // What finds timers goes after them.
        prefixes.extend([timer::plugin_prefix(bot, plugin), parked::plugin_prefix(bot, plugin)]);
        prefixes.extend(timer::index_prefixes(bot, plugin));
        let mut dropped = 0;
        for prefix in prefixes {
            dropped += self.drop_rows(prefix, |_| true).await?;
        }
        // Those that wait apart are gone; after a stop, some may not have come there yet.
        let is_its_own =
            |value: &[u8]| InboxRow::decode(value).is_ok_and(|row| holdings::plugin_of(&row.event) == plugin.as_str());
        dropped += self.drop_rows(inbox::bot_prefix(bot), is_its_own).await?;
        tracing::info!(%plugin, rows = dropped, "what a plugin has left is dropped");
        self.tell_jobs();
        Ok(dropped)
    }

    async fn drop_rows(&self, prefix: Vec<u8>, wanted: impl Fn(&[u8]) -> bool) -> Result<u64, Error> {
        let (mut from, to, mut dropped) = (prefix.clone(), prefix_end(&prefix), 0);
        loop {
            let rows = self.store.range(&from, &to, AT_A_TIME)?;
            let Some((last, _)) = rows.last() else { return Ok(dropped) };
            from = [&last[..], &[0]].concat();
            let gone = rows.iter().filter(|(_, value)| wanted(value));
            let ops: Vec<Op> = gone.map(|(key, _)| Op::Delete { key: key.to_vec() }).collect();
            if ops.is_empty() {
                continue;
            }
            dropped += ops.len() as u64;
            match self.store.commit(Commit { ops, ..Commit::default() }).await {
                Ok(receipt) => receipt.durable().await?,
                Err(CommitError::Store(error)) => return Err(error.into()),
                Err(CommitError::Conflict { .. }) => unreachable!("the commit reads nothing"),
            }
        }
    }
}
