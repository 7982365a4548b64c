//! Looks once a minute how much waits: in the own inbox, and at Telegram.
//!
//! Telegram keeps 100,000 updates of a bot and drops what comes then, so both are worth an alarm long before. Counting reads
//! the inbox in small pieces, away from the threads that serve, and never further than [`MOST`].

use std::time::Duration;

use super::status::{Status, alarm};
use super::supervise::Parts;
use crate::domain::BotId;
use crate::store::rows::{inbox, prefix_end};
use crate::store::{self, Store};

pub(super) const EVERY: Duration = Duration::from_secs(60);
/// As many as Telegram itself would keep; more is as bad.
const MOST: usize = 100_000;
const PIECE: usize = 512;
/// Half of what Telegram keeps.
const PENDING: u64 = 50_000;

/// Whether the inbox has to be spoken of; pure.
#[derive(Debug, Default)]
struct Growth {
    last: usize,
    rising: u32,
}

impl Growth {
    /// Ten thousand events are too many; a thousand are, when there have been more of them every minute for five.
    fn look(&mut self, count: usize) -> Option<String> {
        self.rising = if count > self.last { self.rising + 1 } else { 0 };
        self.last = count;
        let or_more = if count >= MOST { " or more" } else { "" };
        if count >= 10_000 {
            Some(format!("{count}{or_more} events wait to be handled: handlers are too slow, or a plugin is paused"))
        } else if count >= 1_000 && self.rising >= 5 {
            let minutes = self.rising;
            Some(format!(
                "{count} events wait to be handled, more every minute for {minutes} minutes: handlers are too slow"
            ))
        } else {
            None
        }
    }
}

/// Follows the inbox, for ever.
pub(super) async fn follow(parts: &Parts) -> store::Error {
    let mut growth = Growth::default();
    loop {
        let (store, bot) = (parts.store.clone(), parts.bot);
        let counted = tokio::task::spawn_blocking(move || count(&store, bot)).await;
        match counted {
            Ok(Ok(count)) => {
                metrics::gauge!("botyard_inbox_events").set(count as f64);
                let note = growth.look(count);
                if let Some(note) = &note {
                    alarm("inbox");
                    tracing::error!(count, "{note}");
                }
                Status::note(&parts.status, "inbox", note);
            }
            Ok(Err(error)) => return error,
            // The host is ending.
            Err(_) => std::future::pending().await,
        }
        tokio::time::sleep(EVERY).await;
    }
}

fn count(store: &Store, bot: BotId) -> Result<usize, store::Error> {
    let prefix = inbox::bot_prefix(bot);
    let (mut from, end) = (prefix.clone(), prefix_end(&prefix));
    let mut count = 0;
    while count < MOST {
        let piece = store.range(&from, &end, PIECE)?;
        count += piece.len();
        match piece.last() {
            Some((last, _)) if piece.len() == PIECE => {
                from = last.to_vec();
                from.push(0);
            }
            _ => break,
        }
    }
    Ok(count)
}

/// Speaks of what waits at Telegram.
pub(super) fn pending(parts: &Parts, count: u64) {
    metrics::gauge!("botyard_telegram_pending_updates").set(count as f64);
    let note = (count >= PENDING).then(|| {
        format!("{count} updates wait at Telegram, which keeps 100,000 and drops what comes then: they come faster than they are taken")
    });
    if let Some(note) = &note {
        alarm("pending");
        tracing::error!(count, "{note}");
    }
    Status::note(&parts.status, "pending", note);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{ChatId, EventLane, Lane};
    use crate::store::{Commit, Op};

    #[test]
    fn much_is_an_alarm_and_so_is_some_that_grows() {
        let mut growth = Growth::default();
        assert!(growth.look(9_999).is_none());
        assert!(growth.look(10_000).unwrap().contains("10000 events"));
        assert!(growth.look(100_000).unwrap().contains("or more"));
        let mut growth = Growth::default();
        let looks: Vec<_> =
            [500, 1_000, 1_100, 1_200, 1_300, 1_400, 1_400, 1_500].map(|n| growth.look(n).is_some()).into();
        assert_eq!(looks, [false, false, false, false, true, true, false, false]);
    }

    #[tokio::test]
    async fn the_inbox_is_counted_over_all_lanes_and_pieces() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        let append = |chat: i64, bot: i64| Op::Append {
            prefix: inbox::lane_prefix(BotId(bot), EventLane::whole(Lane::Chat(ChatId(chat)))),
            value: vec![1],
        };
        let ops = (0..1_300).map(|n| append(n % 7, 1)).chain([append(1, 2)]).collect();
        drop(store.commit(Commit { ops, ..Commit::default() }).await.unwrap());
        assert_eq!(count(&store, BotId(1)).unwrap(), 1_300);
        assert_eq!(count(&store, BotId(2)).unwrap(), 1);
        assert_eq!(count(&store, BotId(3)).unwrap(), 0);
    }
}
