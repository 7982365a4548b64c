//! Who works when there is more to do than processors: runs that take long leave one of the threads to the others.
//!
//! A guest that works on is interrupted a few milliseconds later, but everybody who is due meanwhile has waited for
//! that, and where fifty work on, for all of them in turn. So a run that has worked for a moment already, or whose
//! plugin's runs usually do, goes on only when it has a turn. There is one turn less than there are threads. It is given
//! back whenever the guest waits or is interrupted, and given out in the order in which it was asked for. Nothing fails
//! here; waiting for a turn counts towards `limits.time`, not towards `limits.cpu`.

use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};

/// A run that has worked for so long is a long one.
const LONG: Duration = Duration::from_millis(1);
/// One in so many long runs makes a plugin's runs long ones from their start.
const OFTEN: u32 = 8;

/// The turns of long runs.
#[derive(Debug)]
pub(super) struct Turns(Semaphore);

/// Whether a plugin's runs are long ones: the mean of its last few, in nanoseconds.
#[derive(Debug, Default)]
pub(super) struct Habit(AtomicU64);

impl Turns {
    /// For a host with as many threads.
    pub(super) fn for_threads(threads: usize) -> Self {
        Self(Semaphore::new(threads.saturating_sub(1).max(1)))
    }

    /// Does `work`, with a turn for every poll of it at which `is_long`.
    pub(super) async fn share<T>(&self, is_long: impl Fn() -> bool, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        let mut waiting = None;
        std::future::poll_fn(|context: &mut Context<'_>| -> Poll<T> {
            let turn: Option<SemaphorePermit<'_>> = if waiting.is_some() || is_long() {
                let waiting_for = waiting.get_or_insert_with(|| Box::pin(self.0.acquire()));
                let turn = ready!(waiting_for.as_mut().poll(context)).expect("nobody closes the turns");
                waiting = None;
                Some(turn)
            } else {
                None
            };
            let done = work.as_mut().poll(context);
            drop(turn);
            done
        })
        .await
    }
}

impl Habit {
    /// Takes note of how long a run worked. A very long one counts no more than a long one, so that a plugin is judged
    /// by what it does often.
    pub(super) fn note(&self, cpu: Duration) {
        let cpu = nanos(cpu.min(LONG * OFTEN));
        let mean = self.0.load(Relaxed);
        // Of two runs that end at once one may be forgotten.
        self.0.store(mean - mean / u64::from(OFTEN) + cpu / u64::from(OFTEN), Relaxed);
    }

    /// Whether a run is a long one that has worked for so long.
    pub(super) fn is_long(&self, cpu: Duration) -> bool {
        cpu >= LONG || self.0.load(Relaxed) >= nanos(LONG)
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[test]
    fn a_habit_is_what_is_done_often() {
        let (short, long) = (Duration::from_micros(50), Duration::from_secs(1));
        let habit = Habit::default();
        assert!(!habit.is_long(short) && habit.is_long(LONG));
        for _ in 0..3 {
            habit.note(long);
        }
        assert!(habit.is_long(Duration::ZERO), "its last runs were long");
        for _ in 0..20 {
            habit.note(short);
        }
        assert!(!habit.is_long(Duration::ZERO), "its last runs were short");
        let mut was_long = 0;
        for n in 0..200 {
            habit.note(if n % 20 == 0 { long } else { short });
            was_long += i32::from(habit.is_long(Duration::ZERO));
        }
        assert!(was_long < 20, "one long run in twenty is no habit: {was_long}");
    }

    /// Polls that are under way at once at most, of ten works with five polls each, and which was polled when.
    async fn shared(threads: usize, is_long: bool) -> (usize, Vec<usize>) {
        let turns = Turns::for_threads(threads);
        let (now, most, order) = (AtomicUsize::new(0), AtomicUsize::new(0), std::sync::Mutex::new(Vec::new()));
        let work = |n: usize| {
            let (now, most, order) = (&now, &most, &order);
            let mut polls = 0;
            std::future::poll_fn(move |context| {
                most.fetch_max(now.fetch_add(1, Relaxed) + 1, Relaxed);
                order.lock().unwrap().push(n);
                #[expect(clippy::disallowed_methods, reason = "a thread is what is shared")]
                std::thread::sleep(Duration::from_millis(1));
                now.fetch_sub(1, Relaxed);
                polls += 1;
                context.waker().wake_by_ref();
                if polls < 5 { Poll::Pending } else { Poll::Ready(()) }
            })
        };
        std::thread::scope(|scope| {
            for thread in 0..2 {
                let (turns, work) = (&turns, &work);
                scope.spawn(move || {
                    let works = (0..5).map(|n| turns.share(move || is_long, work(thread * 5 + n)));
                    let all = futures_util::future::join_all(works);
                    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(all);
                });
            }
        });
        (most.into_inner(), order.into_inner().unwrap())
    }

    #[tokio::test]
    async fn long_runs_leave_a_thread_free_and_take_turns() {
        let (most, order) = shared(2, true).await;
        assert_eq!(most, 1, "on two threads, one works for long runs");
        let mut polled: Vec<usize> = order[..20].to_vec();
        polled.sort_unstable();
        polled.dedup();
        assert_eq!(polled.len(), 10, "nobody is polled a third time before all had a turn: {order:?}");
        assert_eq!(shared(1, true).await.0, 1, "a single thread is not forbidden to all");
        assert_eq!(shared(2, false).await.0, 2, "short runs wait for nobody");
    }
}
