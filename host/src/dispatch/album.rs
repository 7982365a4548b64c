//! Albums: messages that Telegram sends one by one and people meant as one.
//!
//! There is no collector beside the inbox. An album's messages lie in it like all others; when the first of them comes to
//! the head of its lane, what has come of the album is looked at, and either all of it is given as one event, or the
//! lane rests until it is complete. So nothing is lost in a crash, what came after the album waits behind it, and no
//! timer of one album can go off in another. The rows go in the commit of the album's run.
//!
//! An album is offered whole to the plugins that ask for albums. Where a plugin that does not would be asked before
//! them, or where none of them takes it, its rows are marked, and each message is an event of its own.

use std::time::Duration;

use bytes::Bytes;

use super::run::{Context, Head};
use crate::clock::unix_millis;
use crate::domain::{BotId, ChatId, UpdateView};
use crate::store::rows::album::{self, AlbumsRow};
use crate::store::rows::inbox::{self, InboxRow, StoredEvent};
use crate::store::rows::prefix_end;
use crate::store::{self, Commit, Op, Read, Store, Tx};

/// Telegram's own maximum.
const MOST: usize = 10;
/// How far behind its first message the others of an album are looked for.
const WITHIN: usize = 64;

/// When albums are complete.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// Nothing has joined it for so long.
    pub(super) quiet: Duration,
    /// It is as old as this.
    pub(super) wait: Duration,
    /// Unix milliseconds at which the host began: what came before may have friends that could not come.
    pub(super) since: u64,
}

/// An album at the head of its lane.
pub(super) struct Album {
    pub(super) id: String,
    pub(super) chat: ChatId,
    /// The other messages, in the order of their arrival.
    pub(super) rest: Vec<Member>,
    received: Vec<u64>,
}

/// A message of an album: its row.
#[derive(Clone)]
pub(super) struct Member {
    pub(super) key: Vec<u8>,
    pub(super) value: Bytes,
    pub(super) raw: Vec<u8>,
}

impl Patience {
    /// How long an album of messages that were received then has still to wait at `now`; `None` when it is complete.
    fn left(&self, received: &[u64], now: u64) -> Option<Duration> {
        if received.len() >= MOST {
            return None;
        }
        let oldest = received.iter().copied().min()?.max(self.since);
        let newest = received.iter().copied().max()?.max(self.since);
        let until = newest.saturating_add(millis(self.quiet)).min(oldest.saturating_add(millis(self.wait)));
        let left = Duration::from_millis(until.checked_sub(now)?);
        // More than was ever to be waited for: the clock was set back.
        (!left.is_zero() && left <= self.quiet.max(self.wait)).then_some(left)
    }
}

impl Album {
    /// How long it has still to wait.
    pub(super) fn left(&self, patience: &Patience) -> Option<Duration> {
        patience.left(&self.received, unix_millis())
    }
}

impl Context {
    /// The album that the head of a lane is the first message of, if it is one and some plugin wants albums.
    pub(super) fn album_at(&self, head: &Head, row: &InboxRow) -> Result<Option<Album>, store::Error> {
        if row.alone || !self.routes.load().want_albums() {
            return Ok(None);
        }
        let Some((id, chat)) = album_of(&row.event) else { return Ok(None) };
        let mut album = Album { id, chat, rest: Vec::new(), received: vec![row.received] };
        let from = [&head.key[..], &[0]].concat();
        let to = prefix_end(&inbox::lane_prefix(self.bot, head.lane));
        for (key, value) in self.store.range(&from, &to, WITHIN)? {
            let Ok(InboxRow { received, alone: false, event, .. }) = InboxRow::decode(&value) else { continue };
            if album_of(&event).is_none_or(|(id, _)| id != album.id) || album.received.len() == MOST {
                continue;
            }
            let StoredEvent::Update(raw) = event else { continue };
            album.received.push(received);
            album.rest.push(Member { key: key.to_vec(), value, raw });
        }
        Ok(Some(album))
    }

    /// Whether an earlier part of it was given. Recorded as read.
    pub(super) fn is_late(&self, tx: &mut Tx, album: &Album) -> Result<bool, store::Error> {
        Ok(given(self.bot, tx, album.chat)?.knows(&album.id))
    }

    /// Writes down that it was given.
    pub(super) fn remember_album(&self, tx: &mut Tx, album: &Album) -> Result<(), store::Error> {
        let mut row = given(self.bot, tx, album.chat)?;
        row.add(&album.id, unix_millis());
        tx.put(album::key(self.bot, album.chat), row.encode());
        Ok(())
    }

    /// What makes its messages events of their own.
    pub(super) fn split_album(&self, head: &Head, row: &InboxRow, album: &Album) -> Result<Tx, store::Error> {
        let mut tx = Tx::new(&self.store);
        if tx.get(&head.key)?.as_ref() != Some(&head.value) {
            return Ok(tx);
        }
        tx.put(head.key.clone(), InboxRow { alone: true, ..row.clone() }.encode());
        for member in &album.rest {
            if tx.get(&member.key)?.as_ref() == Some(&member.value)
                && let Ok(row) = InboxRow::decode(&member.value)
            {
                tx.put(member.key.clone(), InboxRow { alone: true, ..row }.encode());
            }
        }
        self.remember_album(&mut tx, album)?;
        Ok(tx)
    }
}

fn given(bot: BotId, tx: &mut Tx, chat: ChatId) -> Result<AlbumsRow, store::Error> {
    let row = tx.get(&album::key(bot, chat))?;
    Ok(row.and_then(|value| AlbumsRow::decode(&value).ok()).unwrap_or_default())
}

fn album_of(event: &StoredEvent) -> Option<(String, ChatId)> {
    let StoredEvent::Update(raw) = event else { return None };
    let raw = String::from_utf8_lossy(raw);
    let view = UpdateView::parse(&raw).ok()?;
    Some((view.album?.into_owned(), view.chat?))
}

/// Forgets the albums that were given long ago.
pub(super) async fn sweep(store: &Store, bot: BotId) -> Result<(), store::Error> {
    let mut from = album::bot_prefix(bot);
    let to = prefix_end(&from);
    loop {
        let rows = store.range(&from, &to, WITHIN)?;
        let Some((last, _)) = rows.last() else { return Ok(()) };
        from = [&last[..], &[0]].concat();
        for (key, value) in rows {
            if !AlbumsRow::decode(&value).is_ok_and(|row| !row.is_over(unix_millis())) {
                let key = key.to_vec();
                let reads = vec![Read::Value { key: key.clone(), seen: Some(value) }];
                // One that has just got another album stays.
                store.submit(Commit { reads, ops: vec![Op::Delete { key }], ..Commit::default() });
            }
        }
        tokio::task::yield_now().await;
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const QUIET: u64 = 1_000;
    const WAIT: u64 = 10_000;

    fn patience(since: u64) -> Patience {
        Patience { quiet: Duration::from_millis(QUIET), wait: Duration::from_millis(WAIT), since }
    }

    #[test]
    fn an_album_is_complete_when_it_is_quiet_or_full_or_old() {
        let trickle: Vec<u64> = (0..9).map(|n| 100_000 + n * 900).collect();
        let slow: Vec<u64> = (0..9).map(|n| 100_000 + n * 1_200).collect();
        for (received, since, now, left) in [
            (&[100_000][..], 0, 100_000, Some(1_000)),
            (&[100_000, 100_300], 0, 100_300, Some(1_000)),
            (&[100_000, 100_300], 0, 101_299, Some(1)),
            (&[100_000, 100_300], 0, 101_300, None),
            (&[100_300, 100_000], 0, 101_000, Some(300)),
            (&[100_000; 10], 0, 100_000, None),
            (&trickle, 0, 107_200, Some(1_000)),
            (&slow, 0, 109_600, Some(400)),
            (&slow, 0, 110_000, None),
            // It waited while the host was down: its friends come with the first poll.
            (&[100_000], 500_000, 500_200, Some(800)),
            (&[100_000], 500_000, 501_000, None),
            // The clock was set back.
            (&[900_000], 0, 100_000, None),
        ] {
            let expected = left.map(Duration::from_millis);
            assert_eq!(patience(since).left(received, now), expected, "{received:?} since {since} at {now}");
        }
    }

    proptest! {
        /// Whatever comes when: an album is given within the longest wait of its first message, and not before it was
        /// quiet, unless it is full.
        #[test]
        fn it_waits_long_enough_and_not_for_ever(gaps in prop::collection::vec(0u64..3_000, 0..9)) {
            let mut received = vec![100_000];
            let mut now = 100_000;
            for gap in gaps {
                match patience(0).left(&received, now) {
                    Some(left) if gap < millis(left) => {
                        now += gap;
                        received.push(now);
                    }
                    _ => break,
                }
            }
            let left = millis(patience(0).left(&received, now).unwrap_or_default());
            let given = now + left;
            prop_assert!(given <= 100_000 + WAIT);
            let quiet_since = received.last().unwrap();
            prop_assert!(given >= quiet_since + QUIET || given == 100_000 + WAIT || received.len() == MOST);
            prop_assert_eq!(patience(0).left(&received, given), None);
        }
    }
}
