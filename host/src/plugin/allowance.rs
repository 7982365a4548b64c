//! What all runs of a plugin may use up together in a minute: calls, log text, bytes of HTTP.
//!
//! Counted for as long as the host runs, through all versions of the plugin. Calls are counted for each bot by itself, as
//! everything that is sent is. What a run has queued and did not commit is given back.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::domain::{BotId, PluginName};
use crate::limit::Window;

const MINUTE: Duration = Duration::from_secs(60);

/// Those of all plugins.
#[derive(Debug, Default)]
pub(super) struct Allowances(Mutex<HashMap<PluginName, Arc<Allowance>>>);

/// That of one plugin.
#[derive(Debug, Default)]
pub(super) struct Allowance {
    calls: Mutex<HashMap<BotId, Window>>,
    log: Mutex<Log>,
    http_bytes: Mutex<Window>,
}

#[derive(Debug, Default)]
struct Log {
    window: Window,
    /// When it was last said that lines are dropped.
    told: Option<Instant>,
}

/// What became of a line for the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Line {
    /// It may be written.
    Written,
    /// It is dropped, and this is to be told.
    DroppedAndTold,
    Dropped,
}

/// Why nothing was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Short {
    /// It can be had after this time.
    For(Duration),
    /// It is more than there ever is.
    Always,
}

impl Allowances {
    pub(super) fn of(&self, plugin: &PluginName) -> Arc<Allowance> {
        locked(&self.0).entry(plugin.clone()).or_default().clone()
    }
}

impl Allowance {
    /// Takes so many calls of one bot.
    pub(super) fn take_calls(&self, bot: BotId, count: u64, most: u32) -> Result<(), Short> {
        take(locked(&self.calls).entry(bot).or_default(), count, most.into())
    }

    /// Takes bytes that a request may need: what it does not need is to be given back.
    pub(super) fn take_http_bytes(&self, bytes: u64, most: u64) -> Result<(), Short> {
        take(&mut locked(&self.http_bytes), bytes, most)
    }

    pub(super) fn give_back_http_bytes(&self, bytes: u64) {
        locked(&self.http_bytes).give_back(bytes);
    }

    /// Takes bytes that have come, whether there is room for them or not.
    pub(super) fn note_http_bytes(&self, bytes: u64) {
        locked(&self.http_bytes).take(bytes, MINUTE, Instant::now());
    }

    /// Takes room for a line of the log.
    pub(super) fn line(&self, bytes: u64, most: u64) -> Line {
        let mut log = locked(&self.log);
        if take(&mut log.window, bytes, most).is_ok() {
            return Line::Written;
        }
        let now = Instant::now();
        if log.told.is_some_and(|told| told + MINUTE > now) {
            return Line::Dropped;
        }
        log.told = Some(now);
        Line::DroppedAndTold
    }
}

fn take(window: &mut Window, amount: u64, most: u64) -> Result<(), Short> {
    let now = Instant::now();
    match window.ready_at(amount, most, MINUTE, now) {
        // No limit: nothing to remember.
        _ if most == 0 => Ok(()),
        Some(ready) if ready <= now => {
            window.take(amount, MINUTE, now);
            Ok(())
        }
        Some(ready) => Err(Short::For(ready - now)),
        None => Err(Short::Always),
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The calls that a run has queued: given back unless they are committed.
#[derive(Debug)]
pub struct Queued {
    allowance: Arc<Allowance>,
    bot: BotId,
    count: u64,
}

impl Queued {
    pub(super) fn of(allowance: Arc<Allowance>, bot: BotId) -> Self {
        Self { allowance, bot, count: 0 }
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn take(&mut self, count: u64, most: u32) -> Result<(), Short> {
        self.allowance.take_calls(self.bot, count, most)?;
        // With no limit nothing was taken, and nothing is to be given back.
        self.count += if most == 0 { 0 } else { count };
        Ok(())
    }

    /// They are committed.
    pub fn keep(mut self) {
        self.count = 0;
    }
}

impl Drop for Queued {
    fn drop(&mut self) {
        if self.count > 0
            && let Some(window) = locked(&self.allowance.calls).get_mut(&self.bot)
        {
            window.give_back(self.count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn calls_are_counted_for_each_bot_and_those_that_came_to_nothing_are_given_back() {
        let allowance = Allowances::default().of(&PluginName::new("shop"));
        let queue = |bot, count| {
            let mut queued = Queued::of(allowance.clone(), BotId(bot));
            queued.take(count, 10).map(|()| queued)
        };
        let eight = queue(1, 8).unwrap();
        assert_eq!(queue(1, 3).map(drop), Err(Short::For(MINUTE)));
        assert_eq!(queue(1, 11).map(drop), Err(Short::Always));
        queue(2, 10).unwrap().keep();
        drop(eight);
        queue(1, 10).unwrap().keep();
        tokio::time::sleep(MINUTE / 2).await;
        assert_eq!(queue(1, 1).map(drop), Err(Short::For(MINUTE / 2)));
        tokio::time::sleep(MINUTE / 2).await;
        assert!(queue(1, 1).is_ok());
        assert_eq!(allowance.take_calls(BotId(1), 1_000_000, 0), Ok(()), "0 lifts the limit");
    }

    #[tokio::test(start_paused = true)]
    async fn dropped_lines_are_told_of_once_a_minute() {
        let allowance = Allowance::default();
        let mut said = Vec::new();
        for _ in 0..5 {
            said.push(allowance.line(40, 100));
            tokio::time::sleep(MINUTE / 4).await;
        }
        use Line::{Dropped, DroppedAndTold, Written};
        assert_eq!(said, [Written, Written, DroppedAndTold, Dropped, Written]);
    }
}
