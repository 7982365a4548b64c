//! When something that recurs is due next: cron expressions in a time zone, and plain intervals. Pure.
//!
//! Time zones are known by their IANA names; the system's database is asked first and one that is built in after it, so
//! a machine without any knows them too. What is wrong with a rule is said when it is made, in words for its author;
//! what was made once can always be asked.

mod cron;
#[cfg(test)]
mod tests;

use std::fmt;
use std::time::Duration;

use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use self::cron::Cron;

/// Intervals are no shorter.
pub const SHORTEST_INTERVAL: Duration = Duration::from_secs(1);
/// And no longer: ten years.
const LONGEST_INTERVAL: Duration = Duration::from_secs(3_653 * 86_400);
/// What is later than this was missed. The host itself is never so late while it runs.
const LATE: u64 = 60_000;

/// When something recurs, as it is written and kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Rule {
    /// At the times of a cron expression.
    Cron {
        /// Minute, hour, day of the month, month, day of the week.
        expression: String,
        /// An IANA name.
        zone: String,
    },
    /// Again and again after this time.
    Every(Duration),
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cron { expression, zone } => write!(f, "at {expression} in {zone}"),
            Self::Every(interval) => write!(f, "every {interval:?}"),
        }
    }
}

/// What becomes of times that nobody could keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Misfire {
    /// One event for all of them.
    #[default]
    Once,
    /// Nothing.
    Skip,
}

/// A rule that was checked.
#[derive(Debug)]
pub struct Recurrence(Kind);

#[derive(Debug)]
enum Kind {
    Cron(Cron, TimeZone),
    /// Milliseconds.
    Every(u64),
}

impl Rule {
    /// Checks the rule.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(&self) -> Result<Recurrence, String> {
        match self {
            Self::Cron { expression, zone } => {
                let cron = Cron::parse(expression).map_err(|problem| format!("`{expression:.80}`: {problem}"))?;
                let zone = TimeZone::get(zone).map_err(|_| {
                    format!(
                        "`{zone:.80}` is not the name of a time zone; expected one such as `Asia/Tashkent` or `UTC`"
                    )
                })?;
                Ok(Recurrence(Kind::Cron(cron, zone)))
            }
            Self::Every(interval) if (SHORTEST_INTERVAL..=LONGEST_INTERVAL).contains(interval) => {
                Ok(Recurrence(Kind::Every(u64::try_from(interval.as_millis()).expect("ten years fit"))))
            }
            Self::Every(interval) => Err(format!("an interval of {interval:?}: it must be from a second to ten years")),
        }
    }
}

impl Recurrence {
    /// The first time after `now`, both in Unix milliseconds. `None` at the end of the calendar.
    #[must_use]
    pub fn first_after(&self, now: u64) -> Option<u64> {
        match &self.0 {
            Kind::Cron(cron, zone) => cron.next(zone, now),
            Kind::Every(interval) => now.checked_add(*interval),
        }
    }

    /// What to do at `now` about a time that was due: whether it counts, and when the next one is.
    #[must_use]
    pub fn turn(&self, misfire: Misfire, due: u64, now: u64) -> (bool, Option<u64>) {
        let counts = misfire == Misfire::Once || now.saturating_sub(due) <= LATE;
        let next = match &self.0 {
            Kind::Cron(..) => self.first_after(now.max(due)),
            // In step with the times before, whatever was missed.
            Kind::Every(interval) => {
                let missed = now.saturating_sub(due) / interval;
                interval.checked_mul(missed + 1).and_then(|ahead| due.checked_add(ahead))
            }
        };
        (counts, next)
    }
}
