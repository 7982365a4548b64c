//! How many dead letters are kept: of each plugin its newest, so that one that fails all day takes nobody's place but its
//! own. What is dropped is told of and counted.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::run::{Context, millis};
use crate::clock::unix_millis;
use crate::domain::{BotId, PluginName};
use crate::store::rows::counted::Ledger;
use crate::store::rows::dead::{self, DeadRow};
use crate::store::rows::prefix_end;
use crate::store::{self, Commit, CommitError, Op, Store};

/// How often it is looked for old ones.
const LOOK: Duration = Duration::from_secs(3600);
/// Rows that are in memory at once.
const PAGE: usize = 16;

/// How many dead letters are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeadLetters {
    /// Of each plugin; 0 for all.
    pub letters: u64,
    /// Bytes of these; 0 for any number.
    pub bytes: u64,
    /// Older ones go; zero for never.
    pub age: Duration,
}

/// What is too much of a plugin's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Surplus {
    letters: u64,
    bytes: u64,
}

impl DeadLetters {
    /// A little more goes than must, so that not every further one has all of them looked through.
    fn surplus(self, letters: u64, bytes: u64) -> Surplus {
        let over = |is: u64, most: u64| if most > 0 && is > most { is - most + most / 20 } else { 0 };
        Surplus { letters: over(letters, self.letters), bytes: over(bytes, self.bytes) }
    }
}

impl Surplus {
    /// Why a letter of so many bytes goes, if it does.
    fn takes(&mut self, bytes: u64) -> Option<&'static str> {
        let reason = match self {
            Self { letters: 1.., .. } => "number",
            Self { bytes: 1.., .. } => "bytes",
            _ => return None,
        };
        self.letters = self.letters.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
        Some(reason)
    }

    fn is_some(self) -> bool {
        self.letters > 0 || self.bytes > 0
    }
}

/// Runs until it is aborted.
pub(super) async fn run(context: Arc<Context>) {
    loop {
        if let Err(error) = bound(&context.store, context.bot, context.dead_letters, unix_millis()).await {
            tracing::error!(%error, "dead letters can't be looked through");
        }
        // Looked for when there is one more, and for those that grow old.
        tokio::time::timeout(LOOK, context.dead_added.notified()).await.ok();
    }
}

/// Drops what is too much, the oldest first.
pub(super) async fn bound(store: &Store, bot: BotId, most: DeadLetters, now: u64) -> Result<(), store::Error> {
    let bytes: BTreeMap<PluginName, u64> = store.used_by_all(Ledger::DeadBytes, bot).into_iter().collect();
    let surplus = |(plugin, letters): (PluginName, u64)| {
        let bytes = bytes.get(&plugin).copied().unwrap_or_default();
        (plugin, most.surplus(letters, bytes))
    };
    let mut surplus: BTreeMap<PluginName, Surplus> = store
        .used_by_all(Ledger::Dead, bot)
        .into_iter()
        .map(surplus)
        .filter(|(_, surplus)| surplus.is_some())
        .collect();
    let oldest = if most.age.is_zero() { 0 } else { now.saturating_sub(millis(most.age)) };
    let mut from = dead::bot_prefix(bot);
    let to = prefix_end(&from);
    let mut dropped: BTreeMap<(PluginName, &str), u64> = BTreeMap::new();
    loop {
        let rows = store.range(&from, &to, PAGE)?;
        let Some((last, _)) = rows.last() else { break };
        from = [&last[..], &[0]].concat();
        let (mut ops, mut is_old) = (Vec::new(), false);
        for (key, value) in &rows {
            // What can't be read is of nobody, and stays: somebody should look at it.
            let Ok(row) = DeadRow::decode(value) else { continue };
            let plugin = PluginName::new(&row.plugin);
            is_old = row.at < oldest;
            let too_much = surplus.get_mut(&plugin).and_then(|surplus| surplus.takes((key.len() + value.len()) as u64));
            let Some(reason) = too_much.or(is_old.then_some("age")) else { continue };
            ops.push(Op::Delete { key: key.to_vec() });
            *dropped.entry((plugin, reason)).or_default() += 1;
        }
        if !ops.is_empty() {
            // They read nothing, so nothing is in their way.
            if let Err(CommitError::Store(error)) = store.commit(Commit { ops, ..Commit::default() }).await {
                return Err(error);
            }
        }
        // They lie by their age.
        if !is_old && !surplus.values().any(|surplus| surplus.is_some()) {
            break;
        }
        tokio::task::yield_now().await;
    }
    for ((plugin, reason), letters) in dropped {
        tracing::warn!(%plugin, letters, reason, "the oldest dead letters are dropped");
        metrics::counter!("botyard_dead_letters_dropped_total", "plugin" => plugin.to_string(), "reason" => reason)
            .increment(letters);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{EventLane, Lane};
    use crate::store::rows::inbox::StoredEvent;
    use crate::store::rows::number_of;

    const BOT: BotId = BotId(7);
    const DAY: u64 = 86_400_000;

    struct Bench {
        store: Store,
        _folder: tempfile::TempDir,
    }

    impl Bench {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            Self { store: Store::open(folder.path()).unwrap(), _folder: folder }
        }

        async fn die(&self, plugin: &str, at: u64, bytes: usize) -> u64 {
            let row = DeadRow {
                plugin: plugin.to_owned(),
                lane: EventLane::whole(Lane::Other),
                at,
                attempts: 5,
                version: String::new(),
                reason: "no".to_owned(),
                backtrace: String::new(),
                event: StoredEvent::Update(vec![b'x'; bytes]),
                rest: Vec::new(),
            };
            let ops = vec![Op::Append { prefix: dead::bot_prefix(BOT), value: row.encode() }];
            self.store.commit(Commit { ops, ..Commit::default() }).await.unwrap().numbers[0]
        }

        fn left(&self) -> Vec<u64> {
            let rows = self.store.scan_prefix(&dead::bot_prefix(BOT), 10_000).unwrap();
            rows.iter().filter_map(|(key, _)| number_of(key)).collect()
        }
    }

    fn most(letters: u64, bytes: u64, days: u64) -> DeadLetters {
        DeadLetters { letters, bytes, age: Duration::from_secs(days * 86_400) }
    }

    #[tokio::test]
    async fn of_each_plugin_the_newest_stay() {
        let bench = Bench::new();
        let old = bench.die("quiet", 1, 10).await;
        let mut loud = Vec::new();
        for _ in 0..50 {
            loud.push(bench.die("loud", 2, 10).await);
        }
        bound(&bench.store, BOT, most(50, 0, 0), 3).await.unwrap();
        assert_eq!(bench.left().len(), 51, "as many as may stay");
        loud.push(bench.die("loud", 2, 10).await);
        bound(&bench.store, BOT, most(50, 0, 0), 3).await.unwrap();
        // One that must, and a twentieth.
        assert_eq!(bench.left(), [&[old], &loud[3..]].concat());
        bound(&bench.store, BOT, most(0, 0, 0), u64::MAX).await.unwrap();
        assert_eq!(bench.left().len(), 49, "0 lifts the limits");
    }

    #[tokio::test]
    async fn bytes_and_age_have_an_end_too() {
        let bench = Bench::new();
        // One too large for a single row of the database among them.
        let mut letters = Vec::new();
        for bytes in [200_000, 10, 10, 90_000] {
            letters.push(bench.die("shop", 5 * DAY, bytes).await);
        }
        bound(&bench.store, BOT, most(0, 150_000, 0), 0).await.unwrap();
        assert_eq!(bench.left(), letters[1..]);
        let young = bench.die("other", 9 * DAY, 10).await;
        bound(&bench.store, BOT, most(0, 0, 7), 12 * DAY).await.unwrap();
        assert_eq!(bench.left().len(), 4, "a week old at most");
        bound(&bench.store, BOT, most(0, 0, 7), 12 * DAY + 1).await.unwrap();
        assert_eq!(bench.left(), [young]);
        for ledger in [Ledger::Dead, Ledger::DeadBytes] {
            assert_eq!(bench.store.used(ledger, BOT, &PluginName::new("shop")), 0);
        }
        assert_eq!(bench.store.used(Ledger::Dead, BOT, &PluginName::new("other")), 1);
    }
}
