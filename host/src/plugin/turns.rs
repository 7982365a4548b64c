//! Who works when there is more to do than processors: runs that take long make room for the others.
//!
//! A guest that works on is interrupted at the next tick, but everybody who is due meanwhile has waited for that, and
//! where fifty work on, for all of them in turn. So a run that has worked for a moment already, or whose
//! plugin's runs usually do, goes on elsewhere: on threads of their own, one less than there are processors.
//! It has a turn there until it waits or is interrupted. Plugins take turns, and so do the runs of one plugin: one that
//! has many long runs under way takes no more from a plugin that has one. Nothing fails here; waiting for a turn counts
//! towards `limits.time`, not towards `limits.cpu`.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;
use std::{io, thread};

use async_task::Runnable;
use tokio::runtime::Handle;

use super::meter::Meter;

/// A run that has worked for so long is a long one.
const LONG: Duration = Duration::from_millis(1);
/// One in so many long runs makes a plugin's runs long ones from their start.
const OFTEN: u32 = 8;
/// What counts of a run at most, so that a plugin is judged by what it does often: as much as makes it long until it does
/// something else.
const MOST: Duration = Duration::from_millis(8);

/// The threads for long runs. They end when it is dropped, and what is under way on them with them.
#[derive(Debug)]
pub(super) struct LongRuns(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    due: Mutex<Due>,
    more: Condvar,
}

/// The runs that are due, of each plugin in the order in which they became due.
#[derive(Debug, Default)]
struct Due {
    of: BTreeMap<Turns, VecDeque<Runnable>>,
    /// Those of which there are some, the one whose turn it is first.
    turns: VecDeque<Turns>,
    over: bool,
}

/// The turns of one plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Turns(u64);

/// Whether a plugin's runs are long ones: the mean of its last few, in nanoseconds.
#[derive(Debug, Default)]
pub(super) struct Habit(AtomicU64);

impl LongRuns {
    /// Starts threads for a machine with as many processors.
    ///
    /// # Errors
    /// When the system gives no threads.
    pub(super) fn on(processors: usize) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let long_runs = Self(Arc::clone(&shared));
        for n in 0..processors.saturating_sub(1).max(1) {
            let shared = Arc::clone(&shared);
            let work = move || {
                while let Some(runnable) = shared.next() {
                    runnable.run();
                    // A system may leave a thread alone that never waits, for longer than others have time.
                    thread::yield_now();
                }
            };
            thread::Builder::new().name(format!("long-runs-{n}")).spawn(work)?;
        }
        Ok(long_runs)
    }

    /// Starts threads for this machine; see [`LongRuns::on`].
    pub(super) fn here() -> io::Result<Self> {
        Self::on(thread::available_parallelism().map_or(1, NonZero::get))
    }

    /// Does `work`: where it is called until a poll of it is to come at which `is_long`, and from then on in `turns`.
    /// Work that nobody waits for any longer ends at its next turn at the latest.
    pub(super) async fn share<T: Send + 'static>(
        &self,
        turns: Turns,
        is_long: impl Fn() -> bool,
        work: impl Future<Output = T> + Send + 'static,
    ) -> T {
        let mut work = Box::pin(work);
        let here = std::future::poll_fn(|context| match is_long() {
            true => Poll::Ready(None),
            false => work.as_mut().poll(context).map(Some),
        });
        if let Some(done) = here.await {
            return done;
        }
        let runtime = Handle::current();
        let work = std::future::poll_fn(move |context| {
            // What it asks of the runtime, its clock above all, is that of whoever waits for it.
            let _runtime = runtime.enter();
            work.as_mut().poll(context)
        });
        let shared = Arc::clone(&self.0);
        let tasks = async_task::Builder::new().propagate_panic(true);
        let (runnable, task) = tasks.spawn(|()| work, move |next| shared.put(turns, next));
        runnable.schedule();
        task.await
    }
}

impl Drop for LongRuns {
    fn drop(&mut self) {
        let left = {
            let mut due = self.0.due();
            due.over = true;
            std::mem::take(&mut due.of)
        };
        self.0.more.notify_all();
        // Not under the lock: what is dropped may put itself here once more.
        drop(left);
    }
}

impl Shared {
    fn due(&self) -> MutexGuard<'_, Due> {
        self.due.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, turns: Turns, runnable: Runnable) {
        let refused = self.due().put(turns, runnable);
        self.more.notify_one();
        drop(refused);
    }

    /// Waits for the run whose turn it is. None when there will be no more.
    fn next(&self) -> Option<Runnable> {
        let mut due = self.due();
        loop {
            match due.next() {
                Some(runnable) => return Some(runnable),
                None if due.over => return None,
                None => due = self.more.wait(due).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

impl Due {
    /// Gives it back when nobody will take it up any more.
    fn put(&mut self, turns: Turns, runnable: Runnable) -> Option<Runnable> {
        if self.over {
            return Some(runnable);
        }
        let due = self.of.entry(turns).or_default();
        if due.is_empty() {
            self.turns.push_back(turns);
        }
        due.push_back(runnable);
        None
    }

    fn next(&mut self) -> Option<Runnable> {
        let turns = self.turns.pop_front()?;
        let due = self.of.get_mut(&turns)?;
        let runnable = due.pop_front();
        if due.is_empty() {
            self.of.remove(&turns);
        } else {
            self.turns.push_back(turns);
        }
        runnable
    }
}

impl Turns {
    /// Those of one more plugin.
    pub(super) fn of_another() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Self(LAST.fetch_add(1, Relaxed))
    }
}

impl Habit {
    /// Whether a run is a long one. That it has just become one is taken note of at once: where many begin together, the
    /// others need not find out for themselves.
    pub(super) fn is_long(&self, run: &Meter) -> bool {
        let worked = run.spent();
        if worked >= LONG && run.is_noted_now() {
            self.note(MOST);
        }
        worked >= LONG || self.mean() >= LONG
    }

    /// Takes note of a run that is over.
    pub(super) fn note_end(&self, run: &Meter) {
        if run.is_noted_now() {
            self.note(run.spent());
        }
    }

    fn note(&self, worked: Duration) {
        let mean = self.0.load(Relaxed);
        // Of two runs that end at once one may be forgotten.
        self.0.store(mean - mean / u64::from(OFTEN) + nanos(worked.min(MOST)) / u64::from(OFTEN), Relaxed);
    }

    fn mean(&self) -> Duration {
        Duration::from_nanos(self.0.load(Relaxed))
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn a_habit_is_what_is_done_often() {
        let (short, long) = (Duration::from_micros(50), Duration::from_secs(1));
        let habit = Habit::default();
        let is_long = || habit.is_long(&Meter::new(long));
        habit.note(short);
        assert!(!is_long());
        habit.note(long);
        assert!(is_long(), "it may well be what it does now");
        for _ in 0..20 {
            habit.note(short);
        }
        assert!(!is_long(), "its last runs were short");
        let mut was_long = 0;
        for n in 0..200 {
            habit.note(if n % 20 == 0 { long } else { short });
            was_long += i32::from(is_long());
        }
        assert!(was_long < 20, "one long run in twenty is no habit: {was_long}");
    }

    #[tokio::test]
    async fn what_begins_together_learns_from_each_other() {
        let work = |meter: Arc<Meter>| async move {
            meter.measure(async { while meter.check().is_ok() {} }).await;
        };
        let habit = Habit::default();
        let [first, second] = [(); 2].map(|()| Arc::new(Meter::new(LONG * 2)));
        work(Arc::clone(&first)).await;
        assert!(!habit.is_long(&second));
        assert!(habit.is_long(&first) && habit.is_long(&second));
        habit.note_end(&first);
        assert_eq!(habit.mean(), MOST / OFTEN, "it counts once");
    }

    /// Long works of so many runs of each plugin, all begun at once, with five polls each: whose polls they were.
    async fn polled<const N: usize>(long_runs: &LongRuns, runs: [usize; N]) -> Vec<(usize, usize)> {
        let log = Arc::new(Mutex::new(Vec::new()));
        let begun = Arc::new(tokio::sync::Barrier::new(runs.iter().sum()));
        let mut works = Vec::new();
        for (plugin, runs) in runs.into_iter().enumerate() {
            let turns = Turns::of_another();
            for run in 0..runs {
                let (log, begun) = (log.clone(), begun.clone());
                works.push(async move {
                    let all_begun = async move {
                        begun.wait().await;
                    };
                    let mut polls = 0;
                    let work = std::future::poll_fn(move |context| {
                        log.lock().unwrap().push((plugin, run));
                        #[expect(clippy::disallowed_methods, reason = "a thread is what is shared")]
                        std::thread::sleep(Duration::from_millis(1));
                        polls += 1;
                        context.waker().wake_by_ref();
                        if polls < 5 { Poll::Pending } else { Poll::Ready(()) }
                    });
                    long_runs.share(turns, || true, all_begun.then(|()| work)).await;
                });
            }
        }
        futures_util::future::join_all(works).await;
        Arc::into_inner(log).unwrap().into_inner().unwrap()
    }

    #[tokio::test]
    async fn plugins_take_turns_whatever_the_number_of_their_runs() {
        let order = polled(&LongRuns::on(2).unwrap(), [20, 1]).await;
        assert_eq!(order.len(), 105);
        let last = order.iter().rposition(|(plugin, _)| *plugin == 1).unwrap();
        assert!(last < 12, "every other turn is that of the plugin with a single run, or nearly: {order:?}");
    }

    #[tokio::test]
    async fn the_runs_of_one_plugin_take_turns() {
        let order = polled(&LongRuns::on(1).unwrap(), [10]).await;
        assert_eq!(order.len(), 50);
        let most = (0..10).map(|n| order[..20].iter().filter(|(_, run)| *run == n).count()).max();
        assert!(most <= Some(4), "one works while the others are not through their second turn: {order:?}");
    }

    /// The threads that work at which is long from its third poll on.
    #[tokio::test(start_paused = true)]
    async fn only_what_is_long_goes_elsewhere_and_the_clock_goes_with_it() {
        let long_runs = LongRuns::on(2).unwrap();
        let polls = Arc::new(AtomicU64::new(0));
        let threads = Arc::new(Mutex::new(Vec::new()));
        let work = {
            let (polls, threads) = (polls.clone(), threads.clone());
            async move {
                for _ in 0..4 {
                    threads.lock().unwrap().push(std::thread::current().id());
                    polls.fetch_add(1, Relaxed);
                    tokio::time::sleep(Duration::from_secs(3600)).await;
                }
                tokio::time::Instant::now()
            }
        };
        let begun = tokio::time::Instant::now();
        let ended = long_runs.share(Turns::of_another(), || polls.load(Relaxed) >= 2, work).await;
        assert_eq!((ended - begun).as_secs(), 4 * 3600);
        let threads = threads.lock().unwrap();
        let here = threads.iter().map(|id| *id == std::thread::current().id()).collect::<Vec<_>>();
        assert_eq!(here, [true, true, false, false]);
    }

    #[tokio::test]
    async fn what_nobody_waits_for_ends() {
        let long_runs = LongRuns::on(2).unwrap();
        let alive = Arc::new(());
        let held = alive.clone();
        let work = std::future::poll_fn(move |context| {
            let _held = &held;
            context.waker().wake_by_ref();
            Poll::<()>::Pending
        });
        let turns = Turns::of_another();
        let waited = tokio::time::timeout(Duration::from_millis(5), long_runs.share(turns, || true, work)).await;
        assert!(waited.is_err());
        while Arc::strong_count(&alive) > 1 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}
