//! What interrupts a guest that does not come back by itself: a thread that ticks while there are guests.
//!
//! A guest keeps its processor from one tick to the next, and so do all who are due there meanwhile wait: systems that
//! leave a thread alone for several milliseconds are common. The shorter the tick, the less others notice of a guest
//! that works on. Without guests the thread sleeps.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread::{self, Thread};
use std::time::Duration;
use std::{fmt, io};

/// How often a guest is interrupted to see whether it may go on.
const TICK: Duration = Duration::from_millis(1);
/// It goes on for so many ticks without a guest, so that a run seldom has to wake it.
const PATIENCE: u32 = 100;

/// The clock. Its thread, named `epoch`, ends when this is dropped.
#[derive(Debug)]
pub(super) struct Clock {
    shared: Arc<Shared>,
    thread: Thread,
}

#[derive(Debug, Default)]
struct Shared {
    guests: AtomicUsize,
    asleep: AtomicBool,
    over: AtomicBool,
}

/// Keeps the clock ticking for as long as it lives.
pub(super) struct Ticking(Arc<Shared>);

impl Clock {
    /// Starts the thread that calls `tick`.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub(super) fn start(tick: impl Fn() + Send + 'static) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let work = {
            let shared = Arc::clone(&shared);
            move || shared.run(tick)
        };
        let thread = thread::Builder::new().name("epoch".to_owned()).spawn(work)?.thread().clone();
        Ok(Self { shared, thread })
    }

    /// For one guest.
    pub(super) fn ticking(&self) -> Ticking {
        self.shared.guests.fetch_add(1, SeqCst);
        // Either it sees the guest before it sleeps, or it is seen to sleep here.
        if self.shared.asleep.load(SeqCst) {
            self.thread.unpark();
        }
        Ticking(Arc::clone(&self.shared))
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        self.shared.over.store(true, SeqCst);
        self.thread.unpark();
    }
}

impl Drop for Ticking {
    fn drop(&mut self) {
        self.0.guests.fetch_sub(1, SeqCst);
    }
}

impl fmt::Debug for Ticking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ticking")
    }
}

impl Shared {
    fn run(&self, tick: impl Fn()) {
        let mut quiet = 0;
        while !self.over.load(SeqCst) {
            thread::park_timeout(TICK);
            tick();
            quiet = if self.has_guests() { 0 } else { quiet + 1 };
            if quiet >= PATIENCE {
                self.asleep.store(true, SeqCst);
                while !self.has_guests() && !self.over.load(SeqCst) {
                    thread::park();
                }
                self.asleep.store(false, SeqCst);
                quiet = 0;
            }
        }
    }

    fn has_guests(&self) -> bool {
        self.guests.load(SeqCst) > 0
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_types, clippy::disallowed_methods, reason = "threads and real time are what it is about")]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn it_ticks_for_guests_and_sleeps_without() {
        let ticks = Arc::new(AtomicUsize::new(0));
        let clock = {
            let ticks = Arc::clone(&ticks);
            Clock::start(move || {
                ticks.fetch_add(1, SeqCst);
            })
            .unwrap()
        };
        let begun = Instant::now();
        let until = |what: &dyn Fn() -> bool| {
            while !what() {
                assert!(begun.elapsed() < Duration::from_secs(30), "never, after {} ticks", ticks.load(SeqCst));
                thread::sleep(TICK);
            }
        };
        for _ in 0..2 {
            let [first, second] = [(); 2].map(|()| clock.ticking());
            drop(first);
            let before = ticks.load(SeqCst);
            until(&|| ticks.load(SeqCst) > before + 2 * PATIENCE as usize);
            assert!(!clock.shared.asleep.load(SeqCst));
            drop(second);
            until(&|| clock.shared.asleep.load(SeqCst));
            let before = ticks.load(SeqCst);
            thread::sleep(5 * TICK);
            assert_eq!(ticks.load(SeqCst), before, "nobody is there");
        }
        let shared = Arc::downgrade(&clock.shared);
        drop(clock);
        until(&|| shared.strong_count() == 0);
    }
}
