//! What is wanted of broadcasts: read from their rows, at the start and whenever somebody has changed it.

use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use super::super::schedule::Schedule;
use super::{Broadcasts, Job, KEPT, Open, Place, Reverse, fate, lane, take_back, unreadable};
use crate::clock::unix_millis;
use crate::store::rows::broadcast::{
    self as rows, HeadRow, OpenRow, PAGE, ProgressRow, Recipient, To, Wanted, WishRow,
};
use crate::store::rows::outbox::Delivery;
use crate::store::rows::{number_of, prefix_end};
use crate::store::{self, Op};

impl Broadcasts {
    /// Looks at what is wanted. What an earlier process had under way is told by `unknown`.
    pub(in super::super) fn look(
        &mut self,
        schedule: &mut Schedule,
        now: Instant,
        ops: &mut Vec<Op>,
        mut unknown: impl FnMut(u64, &HeadRow, &Recipient, &mut Vec<Op>),
    ) -> Result<(), store::Error> {
        let end = prefix_end(&rows::bot_prefix(self.bot));
        let mut from = rows::bot_prefix(self.bot);
        let mut ended = Vec::new();
        while let Some(key) = self.store.first_key(&from, &end)? {
            let Some(id) = rows::id_of(&key) else { break };
            from = prefix_end(&rows::job_prefix(self.bot, id));
            let Some(wish) = self.wish(id)? else { continue };
            if let Some(job) = self.jobs.get_mut(&id) {
                job.wish = wish;
            } else if wish.wanted != Wanted::Collect && !self.load(id, wish, now, ops, &mut unknown)? {
                ended.push(id);
            }
        }
        // The ids rise with time.
        let surplus = ended.len().saturating_sub(KEPT);
        for id in ended.drain(..surplus) {
            self.waste(rows::job_prefix(self.bot, id));
        }
        for id in self.jobs.keys().copied().collect::<Vec<_>>() {
            self.obey(id, schedule, now);
        }
        self.busy = true;
        Ok(())
    }

    fn wish(&self, id: u64) -> Result<Option<WishRow>, store::Error> {
        let row = self.store.get(&rows::wish_key(self.bot, id))?;
        Ok(row.and_then(|value| WishRow::decode(&value).inspect_err(|error| unreadable(id, error)).ok()))
    }

    /// False if it has ended.
    fn load(
        &mut self,
        id: u64,
        wish: WishRow,
        now: Instant,
        ops: &mut Vec<Op>,
        unknown: &mut impl FnMut(u64, &HeadRow, &Recipient, &mut Vec<Op>),
    ) -> Result<bool, store::Error> {
        let Some(head) = self.store.get(&rows::head_key(self.bot, id))? else { return Ok(true) };
        let head = match HeadRow::decode(&head) {
            Ok(head) => head,
            Err(error) => {
                unreadable(id, &error);
                return Ok(true);
            }
        };
        let progress = match self.store.get(&rows::progress_key(self.bot, id))?.map(|row| ProgressRow::decode(&row)) {
            None => ProgressRow::begun(head.to),
            Some(Ok(progress)) => progress,
            Some(Err(error)) => {
                unreadable(id, &error);
                return Ok(true);
            }
        };
        if progress.ended != 0 {
            // What a process that was ended just then has not got to.
            self.waste(rows::pieces_prefix(self.bot, id));
            self.waste(rows::open_prefix(self.bot, id));
            return Ok(false);
        }
        let page = u32::try_from(progress.failures / PAGE as u64).unwrap_or(u32::MAX);
        let page = self.store.get(&rows::failures_key(self.bot, id, page))?;
        let mut job = Job {
            counted: (head.to == To::KnownChats).then_some(None),
            wish,
            open: HashMap::new(),
            parked: BinaryHeap::new(),
            in_lanes: 0,
            piece: VecDeque::new(),
            groups: None,
            page: page.and_then(|page| rows::decode_failures(&page).ok()).unwrap_or_default(),
            page_changed: false,
            changed: true,
            refused_in_a_row: 0,
            ran_until: None,
            head,
            progress,
        };
        if job.counted.is_some() {
            job.progress.total = 0;
        }
        let unix_now = unix_millis();
        let prefix = rows::open_prefix(self.bot, id);
        let mut from = prefix.clone();
        loop {
            let found = self.store.range(&from, &prefix_end(&prefix), 256)?;
            let Some((last, _)) = found.last() else { break };
            from = [last, &[0][..]].concat();
            for (key, value) in &found {
                let (Some(number), Ok(open)) = (number_of(key), OpenRow::decode(value)) else { continue };
                let at_most_once = job.head.delivery == Delivery::AtMostOnce;
                if let Some(kind) = fate::after_restart(&open, self.process, at_most_once) {
                    unknown(id, &job.head, &open.to, ops);
                    job.fail(open.to, kind, "the host ended while the call was under way");
                    ops.push(Op::Delete { key: key.to_vec() });
                    if job.page.len() >= PAGE {
                        self.write_page(id, &mut job, ops);
                    }
                    continue;
                }
                let at = now + Duration::from_millis(open.not_before.saturating_sub(unix_now));
                job.parked.push(Reverse((at, number)));
                let (lane, ambiguous) = (lane(&open.to), open.begun != 0);
                let place = Place::Parked(at);
                job.open.insert(
                    number,
                    Open { to: open.to, lane, place, failures: 0, failing_since: None, ambiguous, doubts: 0 },
                );
            }
        }
        tracing::info!(broadcast = id, name = job.head.name, done = job.progress.done(), "a broadcast goes on");
        self.jobs.insert(id, job);
        Ok(true)
    }

    /// Follows a wish that may be new.
    fn obey(&mut self, id: u64, schedule: &mut Schedule, now: Instant) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if job.progress.stopped.as_ref().is_some_and(|(wish, _)| *wish != job.wish.number) {
            job.progress.stopped = None;
            job.refused_in_a_row = 0;
            job.changed = true;
        }
        if !job.runs() {
            job.ran_until = None;
            take_back(id, job, schedule, now);
        }
    }
}
