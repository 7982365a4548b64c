//! What an earlier process has left in the outbox: the lanes, found by skipping from one to the next.

use crate::domain::{BotId, Lane};
use crate::store::rows::outbox::{self, OutboxRow, Priority};
use crate::store::rows::{number_of, prefix_end};
use crate::store::{Error, Store};

/// A lane with calls that wait.
pub(super) struct Waiting {
    pub(super) lane: Lane,
    /// Its first row.
    pub(super) head: u64,
    /// Its last row.
    pub(super) last: u64,
    /// How urgent the first is.
    pub(super) priority: Priority,
}

/// Every lane of the outbox.
pub(super) fn read(store: &Store, bot: BotId) -> Result<Vec<Waiting>, Error> {
    let mut lanes = Vec::new();
    let mut from = outbox::bot_prefix(bot);
    let end = prefix_end(&from);
    while let Some((key, value)) = store.range(&from, &end, 1)?.pop() {
        let Some((lane, head)) = outbox::parse_key(&key) else {
            tracing::error!(key = %key.escape_ascii(), "the outbox holds a row of an unknown kind, which is skipped");
            from = key.to_vec();
            from.push(0);
            continue;
        };
        let prefix = outbox::lane_prefix(bot, lane);
        from = prefix_end(&prefix);
        let last = store.last_key(&prefix, &from)?.and_then(|key| number_of(&key)).unwrap_or(head);
        lanes.push(Waiting { lane, head, last, priority: priority_of(&value) });
    }
    Ok(lanes)
}

/// The first row of a lane that is younger than `after` and not younger than `last`.
pub(super) fn next(
    store: &Store,
    bot: BotId,
    lane: Lane,
    after: u64,
    last: u64,
) -> Result<Option<(u64, Priority)>, Error> {
    if after >= last {
        return Ok(None);
    }
    let mut end = outbox::key(bot, lane, last);
    end.push(0);
    let row = store.range(&outbox::key(bot, lane, after + 1), &end, 1)?.pop();
    Ok(row.and_then(|(key, value)| Some((number_of(&key)?, priority_of(&value)))))
}

/// What can't be read is found out, and said, when it is its turn.
fn priority_of(value: &[u8]) -> Priority {
    OutboxRow::decode(value).map_or(Priority::Normal, |row| row.priority)
}
