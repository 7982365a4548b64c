//! Whose job is worked on next, and the workers.
//!
//! Jobs wait in the store, of each plugin no more than it is let queue; what is held here of one is a few numbers.
//! Workers run beside the lanes and take nothing from them. Plugins take turns: whoever has the fewest jobs under way
//! goes first, and the last free worker is kept for a plugin that has none.
//!
//! A job that was under way when the host ended has changed nothing, and is begun anew after the next start.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::Notice;
use super::claims::SLACK;
use super::run::{Context, JobEnd};
use crate::clock::{self, unix_millis};
use crate::domain::PluginName;
use crate::store::rows::job::{self, HeadRow, TurnRow};
use crate::store::rows::{number_of, prefix_end};
use crate::store::{self, Commit, CommitError, Op, Read};
use crate::whose;

/// Looks again at least this often, so that a wall clock that was set forward is noticed.
const LONGEST_SLEEP: Duration = Duration::from_secs(10);
/// A queue that is full for so long is something to look at.
const LONG_FULL: Duration = Duration::from_secs(60);
/// Rows that are read at once.
const PAGE: usize = 256;

/// A job whose turn it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Turn {
    pub(super) plugin: PluginName,
    pub(super) number: u64,
    pub(super) id: u64,
}

/// What waits and what is under way; pure.
#[derive(Debug, Default)]
struct Queues {
    of: BTreeMap<PluginName, Queue>,
    /// Counts the turns that were given.
    given: u64,
}

#[derive(Debug, Default)]
struct Queue {
    /// By number, those under way among them.
    turns: BTreeMap<u64, TurnRow>,
    running: BTreeSet<u64>,
    /// When it was last given a turn.
    last: u64,
    full_since: Option<Instant>,
    /// That it is full has been told.
    is_told: bool,
}

impl Queues {
    /// These wait, and no others.
    fn set(&mut self, found: BTreeMap<PluginName, BTreeMap<u64, TurnRow>>) {
        for queue in self.of.values_mut() {
            queue.turns.clear();
        }
        for (plugin, turns) in found {
            self.of.entry(plugin).or_default().turns = turns;
        }
    }

    /// Whose turn it is, if there is a worker for anybody; it is under way from now on. `workers` says how many of a
    /// plugin's jobs may be under way at once.
    fn next(&mut self, now: u64, total: usize, workers: impl Fn(&PluginName) -> usize) -> Option<Turn> {
        let running: usize = self.of.values().map(|queue| queue.running.len()).sum();
        if running >= total {
            return None;
        }
        // One that does not serve, or is paused, can't be given any.
        let idle = self.of.iter().filter(|(plugin, queue)| queue.running.is_empty() && workers(plugin) > 0).count();
        let is_last = running + 1 == total && total > 1;
        let may = |plugin: &PluginName, queue: &Queue| {
            let has = queue.running.len();
            has < workers(plugin) && (has == 0 || !is_last || idle == 0)
        };
        let due = |queue: &Queue| {
            let due = |(number, turn): &(&u64, &TurnRow)| turn.due <= now && !queue.running.contains(number);
            queue.turns.iter().find(due).map(|(number, turn)| (*number, turn.id))
        };
        let candidates = self.of.iter().filter(|(plugin, queue)| may(plugin, queue));
        let ready = candidates.filter_map(|(plugin, queue)| Some((plugin, queue, due(queue)?)));
        let (plugin, _, (number, id)) = ready.min_by_key(|(_, queue, _)| (queue.running.len(), queue.last))?;
        let turn = Turn { plugin: plugin.clone(), number, id };
        self.given += 1;
        let queue = self.of.get_mut(&turn.plugin)?;
        queue.last = self.given;
        queue.running.insert(number);
        Some(turn)
    }

    /// It is not under way any more; `due` is when it wants another turn, if it does.
    fn ended(&mut self, turn: &Turn, due: Option<u64>, now: u64) {
        let Some(queue) = self.of.get_mut(&turn.plugin) else { return };
        queue.running.remove(&turn.number);
        match due {
            Some(due) => queue.turns.insert(turn.number, TurnRow { id: turn.id, due, since: now }),
            None => queue.turns.remove(&turn.number),
        };
    }

    /// The clock may have been ahead, and set back since: then nothing waits longer from now on than it was to wait.
    fn set_right(&mut self, now: u64) {
        for turn in self.of.values_mut().flat_map(|queue| queue.turns.values_mut()) {
            if turn.since > now {
                (turn.due, turn.since) = (now.saturating_add(turn.due.saturating_sub(turn.since)), now);
            }
        }
    }

    /// When the next turn comes that nobody could be given before, for lack of time alone.
    fn next_due(&self, now: u64) -> Option<u64> {
        let turns = self.of.values().flat_map(|queue| queue.turns.values());
        turns.map(|turn| turn.due).filter(|due| *due > now).min()
    }
}

/// Runs until told to stop, and then lets what is under way finish within the grace time.
pub(super) async fn run(
    context: Arc<Context>,
    total: usize,
    grace: Duration,
    mut stop: watch::Receiver<bool>,
) -> Result<(), store::Error> {
    let mut queues = Queues::default();
    let mut running = JoinSet::new();
    let mut clock = clock::moves();
    queues.set(scan(&context, true).await?);
    loop {
        let routes = context.routes.load_full();
        let paused = context.paused.load_full();
        let limits = |plugin: &PluginName| {
            let entry = routes.entries().iter().find(|entry| entry.plugin.name == *plugin)?;
            Some(entry.plugin.limits().jobs.clone())
        };
        let workers = |plugin: &PluginName| {
            if paused.contains(plugin) { 0 } else { limits(plugin).map_or(0, |limits| limits.workers) }
        };
        queues.set_right(unix_millis());
        while let Some(turn) = queues.next(unix_millis(), total, workers) {
            let context = context.clone();
            running.spawn(whose::same(async move {
                let ended = context.job(&turn).await;
                (turn, ended)
            }));
        }
        tell(&context, &mut queues, |plugin| limits(plugin).map_or(usize::MAX, |limits| limits.waiting));
        let now = unix_millis();
        let sleep = queues.next_due(now).map_or(LONGEST_SLEEP, |due| Duration::from_millis(due - now));
        tokio::select! {
            biased;
            () = super::stopped(&mut stop) => break,
            Some(ended) = running.join_next(), if !running.is_empty() => {
                let (turn, ended) = ended.expect("a job catches its panics and is never aborted here");
                let due = match ended? {
                    JobEnd::Done => None,
                    JobEnd::Again { due } => Some(due),
                };
                queues.ended(&turn, due, unix_millis());
            }
            () = context.jobs_changed.notified() => queues.set(scan(&context, false).await?),
            _ = clock.changed() => {}
            () = tokio::time::sleep(sleep.min(LONGEST_SLEEP)) => {}
        }
    }
    let all = async { while running.join_next().await.is_some() {} };
    if tokio::time::timeout(grace, all).await.is_err() {
        tracing::warn!(jobs = running.len(), "rolled back; these jobs are begun anew after the next start");
    }
    // One whose thread hangs never ends, and must not keep the host from it.
    tokio::time::timeout(SLACK, running.shutdown()).await.ok();
    Ok(())
}

/// What the store holds of jobs. Turns of cancelled jobs are removed; at the start, so is what says that a job is under
/// way.
async fn scan(context: &Context, is_start: bool) -> Result<BTreeMap<PluginName, BTreeMap<u64, TurnRow>>, store::Error> {
    let (store, bot) = (&context.store, context.bot);
    let mut found = BTreeMap::new();
    let mut from = job::bot_prefix(bot);
    let to = prefix_end(&from);
    while let Some(key) = store.first_key(&from, &to)? {
        let Some(plugin) = job::plugin_of(&key) else {
            from = [&key[..], &[0]].concat();
            continue;
        };
        let mut heads = BTreeSet::new();
        for (key, value) in rows(context, job::heads(bot, &plugin)).await? {
            heads.extend(number_of(&key));
            let Ok(head) = HeadRow::decode(&value) else { continue };
            if is_start && head.begun {
                let reads = vec![Read::Value { key: key.clone(), seen: Some(value.into()) }];
                let ops = vec![Op::Put { key, value: HeadRow { begun: false, ..head }.encode() }];
                commit(context, Commit { reads, ops, on_durable: None }).await?;
            }
        }
        let mut turns = BTreeMap::new();
        let mut gone = Vec::new();
        for (key, value) in rows(context, job::queue(bot, &plugin)).await? {
            match (number_of(&key), TurnRow::decode(&value)) {
                (Some(number), Ok(turn)) if heads.contains(&turn.id) => {
                    turns.insert(number, turn);
                }
                // A job that is queued just now has its head in the same commit, which was there before.
                (_, Ok(turn)) if store.get(&job::head_key(bot, &plugin, turn.id))?.is_some() => {
                    context.jobs_changed.notify_one();
                }
                _ => gone.push(Op::Delete { key }),
            }
        }
        if !gone.is_empty() {
            metrics::counter!("botyard_jobs_total", "plugin" => plugin.to_string(), "outcome" => "cancelled")
                .increment(gone.len() as u64);
            commit(context, Commit { ops: gone, ..Commit::default() }).await?;
        }
        from = prefix_end(&job::plugin_prefix(bot, &plugin));
        found.insert(plugin, turns);
    }
    Ok(found)
}

async fn rows(context: &Context, prefix: Vec<u8>) -> Result<Vec<(Vec<u8>, Vec<u8>)>, store::Error> {
    let to = prefix_end(&prefix);
    let (mut from, mut rows) = (prefix, Vec::new());
    loop {
        let page = context.store.range(&from, &to, PAGE)?;
        let Some((last, _)) = page.last() else { return Ok(rows) };
        from = [&last[..], &[0]].concat();
        rows.extend(page.into_iter().map(|(key, value)| (key.to_vec(), value.to_vec())));
        tokio::task::yield_now().await;
    }
}

async fn commit(context: &Context, commit: Commit) -> Result<(), store::Error> {
    match context.store.commit(commit).await {
        Ok(_) | Err(CommitError::Conflict { .. }) => Ok(()),
        Err(CommitError::Store(error)) => Err(error),
    }
}

/// Says how long the queues are, and which are full for long.
fn tell(context: &Context, queues: &mut Queues, most: impl Fn(&PluginName) -> usize) {
    let gauge = |plugin: &PluginName, state: &'static str, n: usize| {
        metrics::gauge!("botyard_jobs", "plugin" => plugin.to_string(), "state" => state).set(n as f64);
    };
    for (plugin, queue) in &mut queues.of {
        let running = queue.running.len();
        gauge(plugin, "waiting", queue.turns.len().saturating_sub(running));
        gauge(plugin, "running", running);
        // Nobody listens any more while the host stops.
        let tell = |notice| context.notices.send(notice).unwrap_or_default();
        if queue.turns.len() < most(plugin) {
            queue.full_since = None;
            if std::mem::take(&mut queue.is_told) {
                tell(Notice::JobsHaveRoom { plugin: plugin.clone() });
            }
        } else if queue.full_since.get_or_insert_with(Instant::now).elapsed() >= LONG_FULL && !queue.is_told {
            queue.is_told = true;
            tell(Notice::JobsFull { plugin: plugin.clone(), waiting: queue.turns.len() });
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn name(n: usize) -> PluginName {
        PluginName::new(&format!("p{n}"))
    }

    fn queues(jobs: &[(usize, u64)]) -> Queues {
        let mut found: BTreeMap<PluginName, BTreeMap<u64, TurnRow>> = BTreeMap::new();
        for (number, (plugin, due)) in (0..).zip(jobs) {
            found.entry(name(*plugin)).or_default().insert(number, TurnRow { id: number, due: *due, since: 0 });
        }
        let mut queues = Queues::default();
        queues.set(found);
        queues
    }

    #[test]
    fn plugins_take_turns_and_nobody_takes_the_last_worker_twice() {
        let mut queues = queues(&[(0, 0), (0, 0), (0, 0), (0, 0), (1, 0)]);
        let first: Vec<_> = (0..3).map(|_| queues.next(1, 3, |_| 9).map(|turn| (turn.plugin, turn.number))).collect();
        assert_eq!(first, [Some((name(0), 0)), Some((name(1), 4)), Some((name(0), 1))]);
        assert_eq!(queues.next(1, 3, |_| 9), None, "all workers have something to do");
        queues.ended(&Turn { plugin: name(1), number: 4, id: 4 }, None, 1);
        assert_eq!(queues.next(1, 3, |_| 9), None, "the last one is kept for the other plugin");
        assert_eq!(queues.next(1, 4, |_| 2), None, "it has its two");
        assert_eq!(queues.next(1, 4, |_| 3).map(|turn| turn.number), Some(2));
    }

    #[test]
    fn a_plugin_that_is_gone_keeps_no_worker() {
        let mut queues = queues(&[(0, 0), (0, 0), (1, 0)]);
        let gone = |plugin: &PluginName| if *plugin == name(1) { 0 } else { 9 };
        let given: Vec<_> = (0..3).map(|_| queues.next(1, 2, gone).map(|turn| turn.number)).collect();
        assert_eq!(given, [Some(0), Some(1), None]);
    }

    #[test]
    fn what_is_not_due_waits() {
        let mut queues = queues(&[(0, 50), (0, 20)]);
        assert_eq!((queues.next(10, 4, |_| 9), queues.next_due(10)), (None, Some(20)));
        let turn = queues.next(20, 4, |_| 9).unwrap();
        assert_eq!(turn.number, 1);
        queues.ended(&turn, Some(90), 20);
        assert_eq!(queues.next_due(20), Some(50));
        assert_eq!(queues.next(60, 4, |_| 9).map(|turn| turn.number), Some(0));
    }

    #[test]
    fn a_clock_that_was_ahead_and_is_set_back_holds_no_job_for_longer_than_it_was_to_wait() {
        let (day, now) = (86_400_000, 1_000);
        let turn = |due, since| TurnRow { id: 1, due, since };
        for (queued, due) in [
            (turn(0, now), 0),
            (turn(now + 500, now - 500), now + 500),
            (turn(now + day, 0), now + day),
            (turn(now + day + 500, now + day), now + 500),
            (turn(now - 5, now + day), now),
        ] {
            let mut queues = Queues::default();
            queues.set(BTreeMap::from([(name(0), BTreeMap::from([(7, queued)]))]));
            for later in 0..2 {
                queues.set_right(now + later);
                assert_eq!(queues.of[&name(0)].turns[&7].due, due, "{queued:?}");
            }
        }
    }

    proptest! {
        /// No plugin has more under way than it may, all together no more than there are workers, and every job ends.
        #[test]
        fn bounds_hold_and_everything_is_worked_on(
            jobs in prop::collection::vec((0usize..4, 0u64..30), 0..60),
            total in 1usize..6,
            workers in 1usize..4,
        ) {
            let mut queues = queues(&jobs);
            let (mut now, mut under_way, mut done) = (0, Vec::new(), 0);
            while done < jobs.len() {
                while let Some(turn) = queues.next(now, total, |_| workers) {
                    under_way.push(turn);
                }
                prop_assert!(under_way.len() <= total);
                for n in 0..4 {
                    prop_assert!(under_way.iter().filter(|turn| turn.plugin == name(n)).count() <= workers);
                }
                prop_assert!(!under_way.is_empty() || now < 30, "nothing is worked on though all are due");
                if let Some(turn) = under_way.pop() {
                    queues.ended(&turn, None, now);
                    done += 1;
                }
                now += 1;
            }
        }
    }
}
