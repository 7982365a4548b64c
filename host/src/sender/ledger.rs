//! Writes down the calls that end without anybody knowing how, for the operator to look at.
//!
//! Bounded: beyond [`unknown::MOST`] the oldest make room. Numbers are given by the store's thread, so what is
//! there is counted once, at the start, and the oldest are found by a place that only moves on.

use crate::domain::BotId;
use crate::store::rows::prefix_end;
use crate::store::rows::unknown::{self, UnknownRow};
use crate::store::{Error, Op, Store};

pub(super) struct Ledger {
    bot: BotId,
    most: u64,
    rows: u64,
    /// Everything before it has made room.
    oldest: Vec<u8>,
}

impl Ledger {
    pub(super) fn new(bot: BotId) -> Self {
        Self { bot, most: unknown::MOST, rows: 0, oldest: unknown::bot_prefix(bot) }
    }

    #[cfg(test)]
    pub(super) fn of_at_most(bot: BotId, most: u64) -> Self {
        Self { most, ..Self::new(bot) }
    }

    /// Counts what an earlier process has left.
    pub(super) fn count(&mut self, store: &Store) -> Result<(), Error> {
        let mut from = unknown::bot_prefix(self.bot);
        let end = prefix_end(&from);
        loop {
            let rows = store.range(&from, &end, 256)?;
            let Some((last, _)) = rows.last() else { return Ok(()) };
            self.rows += rows.len() as u64;
            from = last.to_vec();
            from.push(0);
        }
    }

    /// The operator has removed some.
    pub(super) fn dropped(&mut self, count: u64) {
        self.rows = self.rows.saturating_sub(count);
    }

    /// What the store has to be told to keep this row.
    pub(super) fn keep(&mut self, store: &Store, row: &UnknownRow, ops: &mut Vec<Op>) {
        metrics::counter!("botyard_send_unknown_total", "method" => row.method.clone()).increment(1);
        let prefix = unknown::bot_prefix(self.bot);
        self.rows += 1;
        let mut surplus = self.rows.saturating_sub(self.most);
        while surplus > 0 {
            let Ok(Some(key)) = store.first_key(&self.oldest, &prefix_end(&prefix)) else {
                // The operator has dropped them meanwhile.
                self.rows -= surplus;
                break;
            };
            self.oldest = key.to_vec();
            self.oldest.push(0);
            ops.push(Op::Delete { key: key.to_vec() });
            self.rows -= 1;
            surplus -= 1;
        }
        ops.push(Op::Append { prefix, value: row.encode() });
    }
}
