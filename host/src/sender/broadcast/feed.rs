//! Who comes next: from the list or from the known chats, some at a time.

use std::cmp::Reverse;
use std::collections::VecDeque;

use tokio::time::Instant;

use super::super::schedule::Schedule;
use super::fate::Fate;
use super::{AT_A_TIME, Broadcasts, IN_HAND, Job, MOST_OPEN, Open, Place, hand, known, lane, park, unreadable};
use crate::domain::{ChatId, Lane};
use crate::store::rows::broadcast::{self as rows, Cursor, FailureKind, OpenRow, Recipient, To};
use crate::store::{self, Op};

impl Broadcasts {
    pub(super) fn feed_job(
        &mut self,
        id: u64,
        job: &mut Job,
        schedule: &mut Schedule,
        now: Instant,
        ops: &mut Vec<Op>,
    ) -> Result<(), store::Error> {
        self.count(job)?;
        while let Some(Reverse((at, number))) = job.parked.peek().copied().filter(|Reverse((at, _))| *at <= now) {
            job.parked.pop();
            if job.open.get(&number).is_some_and(|open| open.place == Place::Parked(at)) {
                match self.shares.wait(&job.head.owner, now) {
                    Some(ready) => park(job, number, ready),
                    None => hand(id, job, number, &self.chats, schedule, now),
                }
            }
        }
        let mut taken = 0;
        while job.in_lanes < IN_HAND && job.open.len() < MOST_OPEN && self.shares.wait(&job.head.owner, now).is_none() {
            if taken == AT_A_TIME {
                self.busy = true;
                break;
            }
            taken += 1;
            let Some((to, why_not)) = self.take(id, job)? else { break };
            let number = job.progress.taken;
            job.progress.taken += 1;
            job.changed = true;
            if let Some(why) = why_not {
                job.fail(to, FailureKind::Gone, why);
                self.write_full_page(id, job, ops);
                continue;
            }
            let row = OpenRow { to: to.clone(), begun: 0, not_before: 0 };
            ops.push(Op::Put { key: rows::open_key(self.bot, id, number), value: row.encode() });
            let (lane, place) = (lane(&to), Place::Parked(now));
            job.open.insert(
                number,
                Open { to, lane, place, failures: 0, failing_since: None, ambiguous: false, doubts: 0 },
            );
            hand(id, job, number, &self.chats, schedule, now);
        }
        Ok(())
    }

    /// The next of the list, and why nothing is to be sent to him, if so.
    fn take(&mut self, id: u64, job: &mut Job) -> Result<Option<(Recipient, Option<&'static str>)>, store::Error> {
        const GONE: &str = "nothing could be sent there before";
        match job.progress.next {
            Cursor::End => Ok(None),
            Cursor::Known(after) => {
                if job.piece.is_empty() {
                    let page = known::page(&self.store, self.bot, after)?;
                    job.piece = page.into_iter().map(|(chat, gone)| (Recipient::Chat(chat), Some(gone))).collect();
                }
                job.changed = true;
                let Some((to, is_gone)) = job.piece.pop_front() else {
                    job.progress.next = Cursor::End;
                    return Ok(None);
                };
                if let Recipient::Chat(chat) = &to {
                    job.progress.next = Cursor::Known(Some(*chat));
                }
                Ok(Some((to, is_gone.unwrap_or(false).then_some(GONE))))
            }
            Cursor::Listed(piece, place) => {
                if job.piece.is_empty() {
                    let row = self.store.get(&rows::piece_key(self.bot, id, piece))?.unwrap_or_default();
                    let mut list = VecDeque::from(rows::decode_piece(&row).unwrap_or_else(|error| {
                        unreadable(id, &error);
                        Vec::new()
                    }));
                    list.drain(..(place as usize).min(list.len()));
                    job.piece = list.into_iter().map(|to| (to, None)).collect();
                }
                let next = job.piece.pop_front();
                job.changed = true;
                job.progress.next = if job.piece.is_empty() {
                    after(job.head.to, (piece, place), 0)
                } else {
                    after(job.head.to, (piece, place), job.piece.len())
                };
                let Some((to, _)) = next else { return Ok(None) };
                // What is left of somebody whose data was erased.
                if to == Recipient::Chat(ChatId(0)) {
                    return Ok(Some((to, Some(GONE))));
                }
                let Lane::Chat(named) = lane(&to) else { return Ok(Some((to, None))) };
                let Lane::Chat(chat) = self.chats.lane(Lane::Chat(named)) else { return Ok(Some((to, None))) };
                if chat != named && self.is_listed(id, job, chat)? {
                    return Ok(Some((to, Some("this chat is in the list by its present id as well"))));
                }
                let to = match to {
                    Recipient::Chat(_) => Recipient::Chat(chat),
                    name @ Recipient::Name(_) => name,
                };
                let is_gone = known::is_gone(&self.store, self.bot, chat)?;
                Ok(Some((to, is_gone.then_some(GONE))))
            }
        }
    }

    /// A group that turns out to be a supergroup that is in the list too gets it there, and only there.
    pub(super) fn once(&mut self, id: u64, fate: Fate) -> Fate {
        let Fate::Moved(chat) = fate else { return fate };
        let Some(mut job) = self.jobs.remove(&id) else { return fate };
        // What can't be read is found out when the broadcast is fed.
        let is_listed = self.is_listed(id, &mut job, chat).unwrap_or(false);
        self.jobs.insert(id, job);
        if is_listed { Fate::Failed(FailureKind::Gone) } else { fate }
    }

    /// True if the list has this chat by its id, taken already or not. Pieces stay until the end for this.
    fn is_listed(&self, id: u64, job: &mut Job, chat: ChatId) -> Result<bool, store::Error> {
        if let Some(groups) = &job.groups {
            return Ok(groups.binary_search(&chat).is_ok());
        }
        let To::Listed { pieces, .. } = job.head.to else { return Ok(false) };
        let mut groups = Vec::new();
        for piece in 0..pieces {
            let row = self.store.get(&rows::piece_key(self.bot, id, piece))?.unwrap_or_default();
            groups.extend(rows::decode_piece(&row).unwrap_or_default().into_iter().filter_map(|to| match to {
                Recipient::Chat(chat @ ChatId(..0)) => Some(chat),
                _ => None,
            }));
        }
        groups.sort_unstable();
        let is_listed = groups.binary_search(&chat).is_ok();
        job.groups = Some(groups);
        Ok(is_listed)
    }

    /// How many chats are known; some at a time.
    fn count(&mut self, job: &mut Job) -> Result<(), store::Error> {
        let Some(after) = job.counted else { return Ok(()) };
        let chats = known::page(&self.store, self.bot, after)?;
        job.progress.total += chats.len() as u64;
        job.changed = true;
        job.counted = chats.last().map(|(chat, _)| Some(*chat));
        self.busy |= job.counted.is_some();
        Ok(())
    }
}

/// Where to go on when the recipient at `place` in `piece` has been taken and so many are left behind him there.
fn after(to: To, (piece, place): (u32, u32), left: usize) -> Cursor {
    match to {
        _ if left > 0 => Cursor::Listed(piece, place + 1),
        To::Listed { pieces, .. } if piece + 1 < pieces => Cursor::Listed(piece + 1, 0),
        _ => Cursor::End,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// However often it is interrupted: all that is kept is the cursor.
        #[test]
        fn everybody_in_a_list_is_met_once_in_order(sizes in prop::collection::vec(1_usize..7, 1..9)) {
            let total: usize = sizes.iter().sum();
            let to = To::Listed { total: total as u64, pieces: u32::try_from(sizes.len()).unwrap() };
            let mut met = Vec::new();
            let mut cursor = Cursor::Listed(0, 0);
            while let Cursor::Listed(piece, place) = cursor {
                met.push((piece, place));
                let left = sizes[piece as usize] - place as usize - 1;
                cursor = after(to, (piece, place), left);
            }
            prop_assert_eq!(cursor, Cursor::End);
            let all = sizes.iter().zip(0..).flat_map(|(size, piece)| (0..*size as u32).map(move |place| (piece, place)));
            prop_assert_eq!(met, all.collect::<Vec<_>>());
        }
    }
}
