//! Paused plugins: their events wait in the inbox, over restarts too, until somebody lets them go on.
//!
//! Only the rows are written here. Whoever runs a host tells its dispatcher.

use std::collections::BTreeMap;

use super::{Error, Operator};
use crate::clock::unix_millis;
use crate::domain::PluginName;
use crate::store::rows::paused::{self, PausedRow};
use crate::store::{Commit, CommitError, Op};

impl Operator {
    /// The paused plugins, since when they are, and why.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn paused(&self) -> Result<BTreeMap<PluginName, PausedRow>, Error> {
        let rows = self.store.scan_prefix(&paused::bot_prefix(self.bot), usize::MAX)?;
        // One that can't be read is a pause all the same.
        let row = |value: &[u8]| PausedRow::decode(value).unwrap_or(PausedRow { since: 0, crash: None });
        Ok(rows.iter().filter_map(|(key, value)| Some((paused::parse_key(key)?, row(value)))).collect())
    }

    /// Pauses a plugin. One that is paused already stays so since when it was. Answers when it is on disk.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn pause(&self, plugin: &PluginName) -> Result<(), Error> {
        let key = paused::key(self.bot, plugin);
        if self.store.get(&key)?.is_some() {
            return Ok(());
        }
        tracing::info!(%plugin, "plugin is paused");
        self.write(Op::Put { key, value: PausedRow { since: unix_millis(), crash: None }.encode() }).await
    }

    /// Lets a plugin go on. Answers when it is on disk, with whether it was paused.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn resume(&self, plugin: &PluginName) -> Result<bool, Error> {
        let key = paused::key(self.bot, plugin);
        if self.store.get(&key)?.is_none() {
            return Ok(false);
        }
        tracing::info!(%plugin, "plugin goes on");
        self.write(Op::Delete { key }).await?;
        Ok(true)
    }

    async fn write(&self, op: Op) -> Result<(), Error> {
        match self.store.commit(Commit { ops: vec![op], ..Commit::default() }).await {
            Ok(receipt) => Ok(receipt.durable().await?),
            Err(CommitError::Store(error)) => Err(error.into()),
            Err(CommitError::Conflict { .. }) => unreachable!("the commit reads nothing"),
        }
    }
}
