//! What is written down of a row whose call is over without an answer that says how.
//!
//! Only while the row still stands: whoever had it erased meanwhile must not find its text somewhere else.

use metrics::counter;

use super::{Loop, chat_of};
use crate::clock::unix_millis;
use crate::domain::Lane;
use crate::store::rows::outbox::{Delivery, OutboxRow, key as outbox_key};
use crate::store::rows::unknown::UnknownRow;
use crate::store::{Commit, Op, Read};

impl Loop<'_> {
    /// Tells the operator of a row that ends without having been delivered for sure.
    pub(super) fn row_lost(
        &mut self,
        (lane, number): (Lane, u64),
        row: &OutboxRow,
        params: &[u8],
        maybe_sent: bool,
        reason: &str,
    ) {
        let (plugin, chat_id, method) = (&row.plugin, chat_of(lane), &row.method);
        let end = if maybe_sent { "unknown" } else { "expired" };
        tracing::error!(%plugin, chat_id, event = row.event, method, end, reason, "a queued call is given up");
        counter!("botyard_send_dropped_total", "reason" => end).increment(1);
        let entry = UnknownRow {
            plugin: plugin.as_str().to_owned(),
            event: row.event,
            method: method.clone(),
            lane,
            at: unix_millis(),
            maybe_sent,
            reason: reason.to_owned(),
            params: String::from_utf8_lossy(params).into_owned(),
        };
        let key = outbox_key(self.shared.bot, lane, number);
        let Ok(Some(seen)) = self.shared.store.get(&key) else { return };
        // Both in one commit: nothing is given up without a word, and nothing twice.
        let mut ops = vec![Op::Delete { key: key.clone() }];
        self.ledger.keep(&self.shared.store, &entry, &mut ops);
        self.shared.store.submit(Commit { reads: vec![Read::Value { key, seen: Some(seen) }], ops, on_durable: None });
    }

    /// The call certainly had no effect: the next process may make it as well.
    pub(super) fn not_begun(&mut self, lane: Lane, number: u64, row: &OutboxRow) {
        if row.delivery != Delivery::AtMostOnce {
            return;
        }
        let key = outbox_key(self.shared.bot, lane, number);
        let Ok(Some(seen)) = self.shared.store.get(&key) else { return };
        let Ok(row) = OutboxRow::decode(&seen) else { return };
        let ops = vec![Op::Put { key: key.clone(), value: OutboxRow { begun: 0, ..row }.encode() }];
        self.shared.store.submit(Commit { reads: vec![Read::Value { key, seen: Some(seen) }], ops, on_durable: None });
    }
}
