//! How long a transfer may take: as long as it goes on, within reason for its size.
//!
//! A total timeout would cut every large file on a slow line. So three things end a transfer: nothing moves for
//! [`STALL`]; it is slower than anybody's line, over all; or, once the whole body is out, the answer does not come. What
//! a server does with a large file before it answers (a local one sends it on to Telegram first) takes time that grows
//! with the file too.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::{self, Instant};

/// Nothing moves for so long.
pub(super) const STALL: Duration = Duration::from_secs(30);
/// A transfer of nothing may take so long.
const LEAST: Duration = Duration::from_secs(60);
/// Bytes per second of the slowest line.
const SLOWEST: u64 = 16 << 10;
/// What can be on its way, out of our hands and not yet in the server's.
const IN_BUFFERS: u64 = 4 << 20;
/// Bytes per second that a server makes of a file that it has.
const HANDLING: u64 = 512 << 10;
/// How often to look.
const LOOK: Duration = Duration::from_secs(1);

/// Counts the bytes of a transfer. Clones share the count.
#[derive(Debug, Clone)]
pub struct Progress(Arc<Counts>);

#[derive(Debug)]
struct Counts {
    done: AtomicU64,
    whole: u64,
}

/// How a transfer ended that did not end well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// Nothing moved.
    Stalled(Duration),
    /// It took too long over all.
    TooSlow(Duration),
    /// All was sent, and nothing came back.
    NoAnswer(Duration),
}

impl Progress {
    /// A transfer of so many bytes that has not begun.
    #[must_use]
    pub fn of(whole: u64) -> Self {
        Self(Arc::new(Counts { done: AtomicU64::new(0), whole }))
    }

    /// So many more have gone.
    pub fn advance(&self, bytes: u64) {
        self.0.done.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Bytes that have gone.
    #[must_use]
    pub fn done(&self) -> u64 {
        self.0.done.load(Ordering::Relaxed)
    }

    /// True once all have.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.done() >= self.0.whole
    }
}

/// How long all of a transfer may take.
fn ceiling(bytes: u64) -> Duration {
    LEAST + Duration::from_secs(bytes / SLOWEST)
}

/// How long to wait for the answer to a body of so many bytes.
fn answer_time(bytes: u64) -> Duration {
    LEAST + Duration::from_secs(bytes.min(IN_BUFFERS) / SLOWEST + bytes / HANDLING)
}

/// Waits for a transfer for as long as it deserves.
pub(super) async fn watch<T>(transfer: impl Future<Output = T>, progress: &Progress) -> Result<T, Ended> {
    let begun = Instant::now();
    let (mut seen, mut moved) = (progress.done(), begun);
    let whole = progress.0.whole;
    tokio::pin!(transfer);
    loop {
        if let Ok(done) = time::timeout(LOOK, &mut transfer).await {
            return Ok(done);
        }
        let now = Instant::now();
        if progress.done() > seen {
            (seen, moved) = (progress.done(), now);
        }
        if progress.is_whole() {
            if now - moved > answer_time(whole) {
                return Err(Ended::NoAnswer(answer_time(whole)));
            }
        } else if now - moved > STALL {
            return Err(Ended::Stalled(STALL));
        } else if now - begun > ceiling(whole) {
            return Err(Ended::TooSlow(ceiling(whole)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// A transfer that moves `step` bytes every `pause` until all is gone, or until it stops for good; then the answer
    /// takes `answer`.
    async fn transfer(progress: Progress, step: u64, pause: Duration, stop_at: u64, answer: Duration) -> u32 {
        while !progress.is_whole() {
            if progress.done() >= stop_at {
                std::future::pending::<()>().await;
            }
            time::sleep(pause).await;
            progress.advance(step);
        }
        time::sleep(answer).await;
        7
    }

    #[tokio::test(start_paused = true)]
    async fn what_moves_may_take_hours_and_what_stands_still_is_over_soon() {
        let seconds = Duration::from_secs;
        for (bytes, step, pause, stop_at, answer, result, least, most) in [
            // 50 MiB at 100 KiB/s: far more than any timeout in one piece.
            (50 * MIB, 100 << 10, seconds(1), u64::MAX, seconds(5), Ok(7), 500, 600),
            // 1,500 MiB to a local server, which takes twenty minutes to send it on.
            (1_500 * MIB, MIB, seconds(1), u64::MAX, seconds(1_200), Ok(7), 2_700, 2_701),
            // It moves a little every 29 s.
            (MIB, 64 << 10, seconds(5), u64::MAX, seconds(1), Ok(7), 80, 82),
            (50 * MIB, MIB, seconds(1), 20 * MIB, seconds(1), Err(Ended::Stalled(STALL)), 50, 52),
            (50 * MIB, MIB, seconds(1), 0, seconds(1), Err(Ended::Stalled(STALL)), 30, 32),
            // A byte now and then is no transfer.
            (MIB, 1, seconds(20), u64::MAX, seconds(1), Err(Ended::TooSlow(seconds(124))), 124, 126),
            (MIB, MIB, seconds(1), u64::MAX, seconds(9_999), Err(Ended::NoAnswer(seconds(126))), 126, 129),
        ] {
            let begun = Instant::now();
            let progress = Progress::of(bytes);
            let ended = watch(transfer(progress.clone(), step, pause, stop_at, answer), &progress).await;
            assert_eq!(ended, result, "{bytes} bytes, {step} every {pause:?}");
            let took = begun.elapsed().as_secs();
            assert!((least..=most).contains(&took), "{bytes} bytes, {step} every {pause:?}: {took} s");
        }
    }
}
