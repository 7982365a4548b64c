//! How a version of a plugin does: its runs, what they took, and the events that it failed.
//!
//! Counted for as long as somebody holds the version, also while it is loaded anew from the same file: what a new version is
//! measured by. Jobs don't count.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use super::{RunError, Verdict};
use crate::domain::PluginName;
use crate::store::rows::version::PaceRow;

/// What a run took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spent {
    /// Time on a processor.
    pub cpu: Duration,
    /// Time in all, waiting for others included.
    pub time: Duration,
}

/// The counts of one version.
#[derive(Debug, Default)]
pub(super) struct Pace {
    runs: AtomicU64,
    handled: AtomicU64,
    failed: AtomicU64,
    cpu: AtomicU64,
    time: AtomicU64,
}

impl Pace {
    /// Counts a run; an event that fails is counted by its first attempt.
    pub(super) fn note(&self, spent: Spent, attempt: u32, result: &Result<Verdict, RunError>) {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        match result {
            Ok(verdict) => {
                self.runs.fetch_add(1, Relaxed);
                self.cpu.fetch_add(nanos(spent.cpu), Relaxed);
                self.time.fetch_add(nanos(spent.time), Relaxed);
                self.handled.fetch_add(u64::from(*verdict == Verdict::Done), Relaxed);
            }
            Err(RunError::Host(_) | RunError::Short { .. }) => {}
            Err(_) => {
                self.failed.fetch_add(u64::from(attempt == 1), Relaxed);
            }
        }
    }

    pub(super) fn get(&self) -> PaceRow {
        PaceRow {
            runs: self.runs.load(Relaxed),
            handled: self.handled.load(Relaxed),
            failed: self.failed.load(Relaxed),
            cpu: self.cpu.load(Relaxed),
            time: self.time.load(Relaxed),
        }
    }

    /// Goes on from what was counted before a restart.
    pub(super) fn recall(&self, row: PaceRow) {
        let PaceRow { runs, handled, failed, cpu, time } = row;
        if self.runs.compare_exchange(0, runs, Relaxed, Relaxed).is_ok() {
            for (count, before) in
                [(&self.handled, handled), (&self.failed, failed), (&self.cpu, cpu), (&self.time, time)]
            {
                count.fetch_add(before, Relaxed);
            }
        }
    }
}

/// Those of all versions that somebody holds.
#[derive(Debug, Default)]
pub(super) struct Paces(Mutex<HashMap<(PluginName, String), Weak<Pace>>>);

impl Paces {
    pub(super) fn of(&self, name: &PluginName, version: &str) -> Arc<Pace> {
        let mut paces = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        paces.retain(|_, pace| pace.strong_count() > 0);
        let place = paces.entry((name.clone(), version.to_owned())).or_default();
        place.upgrade().unwrap_or_else(|| {
            let pace = Arc::default();
            *place = Arc::downgrade(&pace);
            pace
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_that_is_loaded_anew_goes_on_counting() {
        let (paces, shop) = (Paces::default(), PluginName::new("shop"));
        let first = paces.of(&shop, "a");
        let spent = Spent { cpu: Duration::from_nanos(2), time: Duration::from_nanos(5) };
        first.note(spent, 1, &Ok(Verdict::Done));
        first.note(spent, 1, &Ok(Verdict::Pass));
        let bad = || Err(RunError::Refused { message: String::new(), retry: true });
        first.note(spent, 1, &bad());
        first.note(spent, 2, &bad());
        first.note(spent, 1, &Err(RunError::Host(String::new())));
        let counted = PaceRow { runs: 2, handled: 1, failed: 1, cpu: 4, time: 10 };
        let again = paces.of(&shop, "a");
        drop(first);
        assert_eq!(again.get(), counted);
        assert_eq!(paces.of(&shop, "b").get(), PaceRow::default());
        assert_eq!(paces.of(&PluginName::new("other"), "a").get(), PaceRow::default());
        again.recall(PaceRow { runs: 9, ..counted });
        assert_eq!(again.get(), counted, "it knows better by now");
        drop(again);
        let later = paces.of(&shop, "a");
        assert_eq!(later.get(), PaceRow::default());
        later.recall(counted);
        assert_eq!(later.get(), counted);
    }
}
