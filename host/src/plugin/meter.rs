//! The processor time of one run.
//!
//! A run is a future, and its guest works only while that future is polled: so the time of the polls, on the
//! clock of the polling thread, is what the guest has used, host functions included and waiting left out.
//! The engine's epoch interrupts a guest that does not come back by itself and asks here whether to go on.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// A budget of processor time and what is gone of it.
#[derive(Debug)]
pub(super) struct Meter {
    budget: Duration,
    /// Nanoseconds that may be spent in all.
    allowed: AtomicU64,
    /// Nanoseconds of the polls that are over.
    spent: AtomicU64,
    /// The thread's clock when the poll that is under way began.
    since: AtomicU64,
    noted: AtomicBool,
}

/// The guest has used up its processor time.
#[derive(Debug, thiserror::Error)]
#[error("out of processor time")]
pub(super) struct Exhausted;

impl Meter {
    pub(super) fn new(budget: Duration) -> Self {
        let [allowed, spent, since] = [(); 3].map(|()| AtomicU64::new(0));
        let meter = Self { budget, allowed, spent, since, noted: AtomicBool::new(false) };
        meter.renew();
        meter
    }

    /// Gives the whole budget again, for the next instance of the same run.
    pub(super) fn renew(&self) {
        let budget = u64::try_from(self.budget.as_nanos()).unwrap_or(u64::MAX);
        self.allowed.store(self.spent.load(Relaxed).saturating_add(budget), Relaxed);
    }

    /// Runs `work`, counting the time of its polls.
    pub(super) async fn measure<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        std::future::poll_fn(|context| {
            let start = thread_time();
            self.since.store(start, Relaxed);
            let poll = work.as_mut().poll(context);
            self.spent.fetch_add(thread_time().saturating_sub(start), Relaxed);
            poll
        })
        .await
    }

    /// Called from within a poll: an error once the budget is gone.
    pub(super) fn check(&self) -> Result<(), Exhausted> {
        let now = self.spent.load(Relaxed) + thread_time().saturating_sub(self.since.load(Relaxed));
        if now < self.allowed.load(Relaxed) { Ok(()) } else { Err(Exhausted) }
    }

    /// What the polls that are over have used.
    pub(super) fn spent(&self) -> Duration {
        Duration::from_nanos(self.spent.load(Relaxed))
    }

    /// True the first time: whoever asks takes note of the run.
    pub(super) fn is_noted_now(&self) -> bool {
        !self.noted.swap(true, Relaxed)
    }
}

/// Nanoseconds that the calling thread has spent on a processor.
fn thread_time() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(iterations: u64) -> u64 {
        std::hint::black_box((0..iterations).fold(1, |sum: u64, n| std::hint::black_box(sum ^ n)))
    }

    #[tokio::test(start_paused = true)]
    async fn counts_work_and_not_waiting() {
        let meter = Meter::new(Duration::from_secs(3600));
        meter.measure(tokio::time::sleep(Duration::from_secs(60))).await;
        let waiting = meter.spent();
        meter.measure(async { work(3_000_000) }).await;
        assert!(meter.spent() > waiting * 2, "{waiting:?} {:?}", meter.spent());
    }

    #[tokio::test]
    async fn the_budget_covers_all_polls_together() {
        let meter = Meter::new(Duration::from_millis(3));
        let mut polls = 0;
        let work = async {
            while meter.check().is_ok() {
                polls += 1;
                work(200_000);
                tokio::task::yield_now().await;
            }
        };
        meter.measure(work).await;
        assert!(polls > 1 && meter.spent() >= Duration::from_millis(3), "{polls}");
        meter.renew();
        meter.measure(async { assert!(meter.check().is_ok()) }).await;
    }
}
