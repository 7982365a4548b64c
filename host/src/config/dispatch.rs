//! `[dispatch]`: how updates are handled.

use std::time::Duration;

use super::reader::Reader;
use super::units;

/// `[dispatch]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dispatch {
    /// `concurrency`: how many events are handled at once, each of another conversation; 256.
    pub concurrency: usize,
    /// `max_attempts`: after so many failed runs an event is set aside as a dead letter; 5.
    pub max_attempts: u32,
    /// `jobs`: how many jobs are worked on at once, of all plugins together; 4.
    pub jobs: usize,
    /// `acknowledge_callbacks`: a pressed button that has no answer after so long is acknowledged by the host; `"3s"`,
    /// and never early for `"0s"`.
    pub acknowledge_callbacks: Duration,
}

impl Default for Dispatch {
    fn default() -> Self {
        Self { concurrency: 256, max_attempts: 5, jobs: 4, acknowledge_callbacks: Duration::from_secs(3) }
    }
}

impl Dispatch {
    pub(super) fn read(mut section: Reader<'_>) -> Self {
        let default = Self::default();
        let concurrency = section.value("concurrency", |node| units::integer(node, 1..=10_000));
        let max_attempts = section.value("max_attempts", |node| units::integer(node, 1..=1_000));
        let jobs = section.value("jobs", |node| units::integer(node, 1..=1_000));
        let acknowledge = |node: &_| units::duration(node, Duration::ZERO..=Duration::from_secs(60));
        let acknowledge_callbacks = section.value("acknowledge_callbacks", acknowledge);
        section.finish();
        Self {
            concurrency: concurrency.and_then(|n| n.try_into().ok()).unwrap_or(default.concurrency),
            max_attempts: max_attempts.and_then(|n| n.try_into().ok()).unwrap_or(default.max_attempts),
            jobs: jobs.and_then(|n| n.try_into().ok()).unwrap_or(default.jobs),
            acknowledge_callbacks: acknowledge_callbacks.unwrap_or(default.acknowledge_callbacks),
        }
    }
}
