//! What becomes of timers when the wall clock was ahead for a while and is set back.
//!
//! A recurring timer that rang meanwhile has its next time far ahead, and one that was to come after some time would come
//! much later than that. Both are measured anew; a timer for a certain time keeps it. Nothing is said of what rang too early.

use std::time::Duration;

use tokio::time::Instant;

use crate::domain::BotId;
use crate::store::rows::prefix_end;
use crate::store::rows::timer::{self, TimerRow};
use crate::store::{self, Commit, CommitError, Op, Read, Store};

/// Clocks that are kept right are moved by less than this.
const SLACK: Duration = Duration::from_secs(1);
/// Rows that are in memory at once.
const PAGE: usize = 256;

/// Notices that the wall clock was set back.
#[derive(Debug)]
pub(super) struct Watch {
    seen: Option<(Instant, u64)>,
}

impl Watch {
    /// One that does not know how the clock was before, and expects the worst.
    pub(super) fn suspicious() -> Self {
        Self { seen: None }
    }

    /// Whether it was, since this was last asked.
    pub(super) fn was_set_back(&mut self, now: u64) -> bool {
        let at = Instant::now();
        let Some((before, then)) = self.seen.replace((at, now)) else { return true };
        let passed = u64::try_from((at - before).saturating_sub(SLACK).as_millis()).unwrap_or(u64::MAX);
        now < then || now < then.saturating_add(passed)
    }
}

/// When a timer is due that was set for `due` by a clock that may have been ahead.
fn right_due(row: &TimerRow, due: u64, now: u64) -> u64 {
    let first = row.repeat.as_ref().and_then(|repeat| repeat.rule.parse().ok()?.first_after(now));
    match first {
        // Its next time is never later than the first one from now on.
        Some(first) => due.min(first),
        None if row.since > now => now.saturating_add(due.saturating_sub(row.since)),
        None => due,
    }
}

/// Sets all timers of a bot right.
pub(super) async fn set_right(store: &Store, bot: BotId, now: u64) -> Result<(), store::Error> {
    let mut from = timer::bot_prefix(bot);
    let to = prefix_end(&from);
    loop {
        let rows = store.range(&from, &to, PAGE)?;
        let Some((last, _)) = rows.last() else { return Ok(()) };
        from = [&last[..], &[0]].concat();
        for (key, value) in rows {
            let Some(((plugin, due, id), row)) = timer::parse_key(&key).zip(TimerRow::decode(&value).ok()) else {
                continue;
            };
            let right = right_due(&row, due, now);
            if right == due {
                continue;
            }
            let since = if row.since == 0 { 0 } else { now };
            tracing::warn!(%plugin, timer = row.name, id, "the clock was set back: a timer is due earlier again");
            let reads = vec![Read::Value { key: key.to_vec(), seen: Some(value) }];
            let gone = row.keys(bot, due, id).map(|key| Op::Delete { key });
            let rows = TimerRow { since, ..row }.rows(bot, right, id);
            let ops = gone.into_iter().chain(rows.map(|(key, value)| Op::Put { key, value })).collect();
            match store.commit(Commit { reads, ops, on_durable: None }).await {
                // It was cancelled, or has moved with its group: then it is looked at when the clock is set again.
                Ok(_) | Err(CommitError::Conflict { .. }) => {}
                Err(CommitError::Store(error)) => return Err(error),
            }
        }
        tokio::task::yield_now().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Conversation, EventLane, Lane, PluginName};
    use crate::recurrence::{Misfire, Rule};
    use crate::store::rows::timer::{Owner, Repeat};

    const DAY: u64 = 86_400_000;
    const NOW: u64 = 1_000 * DAY;
    const BOT: BotId = BotId(7);

    fn row(name: &str, rule: Option<Rule>, since: u64) -> TimerRow {
        TimerRow {
            plugin: PluginName::new("shop"),
            conversation: Conversation::default(),
            lane: EventLane::whole(Lane::Other),
            name: name.to_owned(),
            payload: vec![],
            owner: Owner::Plugin,
            repeat: rule.map(|rule| Repeat { rule, misfire: Misfire::Once }),
            since,
        }
    }

    #[tokio::test]
    async fn what_was_put_off_by_a_clock_that_was_ahead_comes_in_time_again() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        let every = || Some(Rule::Every(Duration::from_secs(60)));
        let cron = || Some(Rule::Cron { expression: "0 0 * * *".to_owned(), zone: "UTC".to_owned() });
        let year = 365 * DAY;
        let cases = [
            (row("every minute, as it should be", every(), 0), NOW + 30_000, NOW + 30_000),
            (row("every minute, due already", every(), 0), NOW - 5, NOW - 5),
            (row("every minute, after a year", every(), 0), NOW + year, NOW + 60_000),
            (row("every night, as it should be", cron(), 0), NOW + DAY, NOW + DAY),
            (row("every night, after a year", cron(), 0), NOW + year, NOW + DAY),
            (row("at a time", None, 0), NOW + year, NOW + year),
            (row("an hour later", None, NOW - 60_000), NOW + 3_540_000, NOW + 3_540_000),
            (row("an hour later, set in a year", None, NOW + year), NOW + year + 3_600_000, NOW + 3_600_000),
        ];
        let rows = (1..).zip(&cases).flat_map(|(id, (row, due, _))| row.rows(BOT, *due, id));
        let ops = rows.map(|(key, value)| Op::Put { key, value }).collect();
        drop(store.commit(Commit { ops, ..Commit::default() }).await.unwrap());
        for _ in 0..2 {
            set_right(&store, BOT, NOW).await.unwrap();
            let rows = store.scan_prefix(&timer::bot_prefix(BOT), 100).unwrap();
            assert_eq!(rows.len(), cases.len());
            for (key, value) in rows {
                let (plugin, due, id) = timer::parse_key(&key).unwrap();
                let (row, _, right) = &cases[usize::try_from(id).unwrap() - 1];
                assert_eq!(due, *right, "{}", row.name);
                let index = store.get(&timer::index_key(BOT, &plugin, id)).unwrap().unwrap();
                assert_eq!(timer::parse_due(&index), Some(due), "{}: what finds it leads there", row.name);
                let by_name = TimerRow::decode(&value).unwrap().keys(BOT, due, id)[2].clone();
                assert_eq!(store.get(&by_name).unwrap().as_ref().and_then(|due| timer::parse_due(due)), Some(due));
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_goes_back_or_stands_still_is_noticed() {
        let mut watch = Watch::suspicious();
        assert!(watch.was_set_back(NOW), "nobody knows what was before");
        for (passes, now, back) in [
            (0, NOW, false),
            (10, NOW + 10_000, false),
            (10, NOW + 19_500, false),
            (10, NOW + 500_000, false),
            (10, NOW + 500_000, true),
            (10, NOW + 510_000, false),
            (0, NOW, true),
        ] {
            tokio::time::sleep(Duration::from_secs(passes)).await;
            assert_eq!(watch.was_set_back(now), back, "{now}");
        }
    }
}
