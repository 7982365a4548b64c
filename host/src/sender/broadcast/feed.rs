//! Who comes next: from the list or from the known chats, some at a time.

use std::cmp::Reverse;
use std::collections::VecDeque;

use tokio::time::Instant;

use super::super::schedule::Schedule;
use super::{AT_A_TIME, Broadcasts, IN_HAND, Job, MOST_OPEN, Open, Place, hand, known, lane, unreadable};
use crate::domain::ChatId;
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
                hand(id, job, number, schedule, now);
            }
        }
        let mut taken = 0;
        while job.in_lanes < IN_HAND && job.open.len() < MOST_OPEN {
            if taken == AT_A_TIME {
                self.busy = true;
                break;
            }
            taken += 1;
            let Some((to, is_gone)) = self.take(id, job, ops)? else { break };
            let number = job.progress.taken;
            job.progress.taken += 1;
            job.changed = true;
            if is_gone {
                job.fail(to, FailureKind::Gone, "nothing could be sent there before");
                self.write_full_page(id, job, ops);
                continue;
            }
            let row = OpenRow { to: to.clone(), begun: 0, not_before: 0 };
            ops.push(Op::Put { key: rows::open_key(self.bot, id, number), value: row.encode() });
            let (lane, place) = (lane(&to), Place::Parked(now));
            job.open.insert(number, Open { to, lane, place, failures: 0, failing_since: None, ambiguous: false });
            hand(id, job, number, schedule, now);
        }
        Ok(())
    }

    /// The next of the list, and whether he is known to be gone.
    fn take(&mut self, id: u64, job: &mut Job, ops: &mut Vec<Op>) -> Result<Option<(Recipient, bool)>, store::Error> {
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
                Ok(Some((to, is_gone.unwrap_or(false))))
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
                    ops.push(Op::Delete { key: rows::piece_key(self.bot, id, piece) });
                    after(job.head.to, (piece, place), 0)
                } else {
                    after(job.head.to, (piece, place), job.piece.len())
                };
                let Some((to, _)) = next else { return Ok(None) };
                let is_gone = match &to {
                    // What is left of somebody whose data was erased.
                    Recipient::Chat(ChatId(0)) => true,
                    Recipient::Chat(chat) => known::is_gone(&self.store, self.bot, *chat)?,
                    Recipient::Name(_) => false,
                };
                Ok(Some((to, is_gone)))
            }
        }
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
