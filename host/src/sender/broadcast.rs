//! Broadcasts: one call to many chats, in the time that answers leave.
//!
//! - Here is who comes next; [`Schedule`](super::schedule::Schedule) decides when, as for every call: a broadcast's
//!   calls stand in the lanes of their chats, behind whatever else waits there, and keep to the limits of bulk.
//! - At any time only a few recipients are in hand. The others stand in the store, in a list with a cursor, so memory
//!   does not grow with a broadcast. Whoever has to wait for long (a flood in his chat, say) is parked until his time
//!   and holds nobody up.
//! - Before a call begins it is on disk that it does. A broadcast is made at most once unless it says otherwise: what a
//!   killed process had under way ends as *unknown*, and nobody gets it twice.
//! - What has been done, and how far the broadcast is, are written together, by the sender alone. What is wanted of a
//!   broadcast, others write; [`Sender::broadcasts_changed`](super::Sender::broadcasts_changed) tells of it.
//! - A paid call counts against the cap when it begins, and is given back when it certainly cost nothing.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use metrics::{counter, gauge};
use tokio::time::Instant;

use super::schedule::Schedule;
use super::weight::weight_of;
use crate::chats::Chats;
use crate::clock::unix_millis;
use crate::domain::{BotId, ChatId, Lane, PluginName};
use crate::store::rows::broadcast::{
    self as rows, Cursor, Failure, FailureKind, HeadRow, OpenRow, PAGE, PRICE, ProgressRow, Recipient, Wanted, WishRow,
};
use crate::store::rows::outbox::Delivery;
use crate::store::rows::{Unreadable, prefix_end};
use crate::store::{Op, Store};
use crate::telegram::{cast, lane_of};

pub(super) mod fate;
mod feed;
pub(super) mod gate;
mod known;
mod shares;
mod wishes;

/// Recipients of one broadcast that stand in lanes at a time.
const IN_HAND: usize = 200;
/// So many are taken, removed or looked at before the rest of the sender has its turn.
const AT_A_TIME: usize = 32;
/// With more that wait for their time, nobody new is taken.
const MOST_OPEN: usize = 50_000;
/// Whoever can't be sent to within this is parked.
const SOON: Duration = Duration::from_secs(2);
/// So many refusals in a row, before anything was delivered, are the call's own fault.
const REFUSED_IN_A_ROW: u32 = 20;
/// Failures of one broadcast that are written down; beyond, they are only counted.
const MOST_FAILURES: u64 = 100_000;
/// Broadcasts that have ended and are still shown.
const KEPT: usize = 200;

/// A call of a broadcast, in a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cast {
    pub(super) job: u64,
    /// The number at which its recipient was taken.
    pub(super) number: u64,
    pub(super) paid: bool,
}

/// A call to be made.
pub(super) struct Call {
    pub(super) method: String,
    pub(super) params: Bytes,
    /// What must be durable before.
    pub(super) ops: Vec<Op>,
}

/// What is known of a call that has ended.
pub(super) struct Attempt {
    pub(super) method: String,
    pub(super) params: Bytes,
    pub(super) owner: String,
    pub(super) at_most_once: bool,
    pub(super) failures: u32,
    /// How long it has been failing.
    pub(super) failing: Duration,
    pub(super) ambiguous: bool,
}

pub(super) struct Broadcasts {
    store: Store,
    bot: BotId,
    process: u64,
    chats: Chats,
    jobs: BTreeMap<u64, Job>,
    /// What plugins' broadcasts may send in a minute.
    shares: shares::Shares,
    /// Rows that nobody needs any more: from this key on, to that.
    waste: VecDeque<(Vec<u8>, Vec<u8>)>,
    /// There is more to do at once.
    busy: bool,
}

struct Job {
    head: HeadRow,
    wish: WishRow,
    progress: ProgressRow,
    open: HashMap<u64, Open>,
    parked: BinaryHeap<Reverse<(Instant, u64)>>,
    /// How many stand in lanes.
    in_lanes: usize,
    /// The rest of the piece that the cursor is in, and who is known to be gone, where that is known already.
    piece: VecDeque<(Recipient, Option<bool>)>,
    /// The groups and channels of the list by their ids, sorted; once somebody has to look for one.
    groups: Option<Vec<ChatId>>,
    /// Known chats are counted up to here; `None` when all are.
    counted: Option<Option<ChatId>>,
    /// The last page of failures, if it is not full.
    page: Vec<Failure>,
    page_changed: bool,
    changed: bool,
    refused_in_a_row: u32,
    /// When the time of sending was last counted.
    ran_until: Option<Instant>,
}

struct Open {
    to: Recipient,
    lane: Lane,
    place: Place,
    failures: u32,
    failing_since: Option<Instant>,
    ambiguous: bool,
    /// How much doubt there is, as `decide::doubt` counts.
    doubts: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Lane,
    InFlight,
    Parked(Instant),
}

impl Job {
    fn runs(&self) -> bool {
        self.wish.wanted == Wanted::Run && self.progress.stopped.is_none()
    }

    fn put(&mut self, key: Vec<u8>) -> Op {
        self.changed = false;
        Op::Put { key, value: self.progress.encode() }
    }

    fn cost(&self, params: &[u8]) -> u64 {
        if self.head.paid { PRICE * u64::from(weight_of(&self.head.method, params)) } else { 0 }
    }

    fn fail(&mut self, to: Recipient, kind: FailureKind, reason: &str) {
        match kind {
            FailureKind::Gone => self.progress.gone += 1,
            FailureKind::Refused => self.progress.refused += 1,
            FailureKind::Unknown => self.progress.unknown += 1,
        }
        self.changed = true;
        if self.progress.failures < MOST_FAILURES {
            self.progress.failures += 1;
            self.page.push(fate::failure(to, kind, reason));
            self.page_changed = true;
        }
        let outcome = match kind {
            FailureKind::Gone => "gone",
            FailureKind::Refused => "refused",
            FailureKind::Unknown => "unknown",
        };
        counter!("botyard_broadcast_calls_total", "outcome" => outcome).increment(1);
    }
}

pub(super) fn lane(to: &Recipient) -> Lane {
    match to {
        Recipient::Chat(chat) => Lane::Chat(*chat),
        Recipient::Name(_) => lane_of("", &cast::for_one("{}", to)),
    }
}

impl Broadcasts {
    pub(super) fn new(store: Store, bot: BotId, process: u64, chats: Chats) -> Self {
        Self {
            store,
            bot,
            process,
            chats,
            jobs: BTreeMap::new(),
            shares: Default::default(),
            waste: VecDeque::new(),
            busy: true,
        }
    }

    /// Takes recipients from the lists, puts those into their lanes whose time has come, ends what is over. What the
    /// store has to be told is to be told before any call begins.
    pub(super) fn feed(&mut self, schedule: &mut Schedule, now: Instant, ops: &mut Vec<Op>) {
        self.busy = false;
        self.clean_up(ops);
        for id in self.jobs.keys().copied().collect::<Vec<_>>() {
            let Some(mut job) = self.jobs.remove(&id) else { continue };
            if job.runs() {
                let since = job.ran_until.replace(now).unwrap_or(now);
                let ran = u64::try_from((now - since).as_millis()).unwrap_or(0);
                if ran > 0 {
                    job.progress.ran += ran;
                }
                if let Err(error) = self.feed_job(id, &mut job, schedule, now, ops) {
                    tracing::error!(%error, broadcast = id, "a broadcast can't be read and waits");
                    stop(id, &mut job, schedule, now, &format!("its rows can't be read: {error}"));
                }
            }
            let is_over = job.progress.next == Cursor::End && job.open.is_empty();
            let in_flight = job.open.values().any(|open| open.place == Place::InFlight);
            let is_cancelled = job.wish.wanted == Wanted::Cancel && !in_flight;
            if (is_over && job.counted.is_none()) || is_cancelled {
                self.end(id, job, ops);
            } else {
                self.write(id, &mut job, ops);
                self.jobs.insert(id, job);
            }
        }
        self.measure();
    }

    /// The call whose turn has come; `None` if it is not to be made after all.
    pub(super) fn begin(&mut self, cast: Cast, schedule: &mut Schedule, now: Instant) -> Option<Call> {
        let job = self.jobs.get_mut(&cast.job)?;
        let open = job.open.get_mut(&cast.number)?;
        let params = cast::for_one(&job.head.params, &open.to);
        job.in_lanes -= 1;
        let row = OpenRow { to: open.to.clone(), begun: self.process, not_before: 0 };
        open.place = Place::InFlight;
        if let Some(ready) = self.shares.wait(&job.head.owner, now) {
            park(job, cast.number, ready);
            return None;
        }
        let cost = job.cost(params.as_bytes());
        if cost > 0 && job.progress.spent + cost > job.wish.most {
            park(job, cast.number, now);
            let stars = stars(job.wish.most);
            stop(cast.job, job, schedule, now, &format!("it has cost the {stars} Stars that it may cost"));
            self.busy = true;
            return None;
        }
        self.shares.take(&job.head.owner, now);
        job.progress.spent += cost;
        counter!("botyard_broadcast_tenth_stars_total").increment(cost);
        if job.progress.started == 0 {
            job.progress.started = unix_millis();
        }
        let mut ops = vec![Op::Put { key: rows::open_key(self.bot, cast.job, cast.number), value: row.encode() }];
        ops.push(job.put(rows::progress_key(self.bot, cast.job)));
        Some(Call { method: job.head.method.clone(), params: params.into(), ops })
    }

    /// What is known of a call that has ended; it is counted as failed if `failed` says so, and how.
    pub(super) fn attempt(&mut self, cast: Cast, failed: Option<bool>, now: Instant) -> Option<Attempt> {
        let job = self.jobs.get_mut(&cast.job)?;
        let open = job.open.get_mut(&cast.number)?;
        if let Some(ambiguous) = failed {
            open.failures = open.failures.saturating_add(1);
            open.failing_since.get_or_insert(now);
            open.ambiguous |= ambiguous;
        }
        Some(Attempt {
            method: job.head.method.clone(),
            params: cast::for_one(&job.head.params, &open.to).into(),
            owner: job.head.owner.clone(),
            at_most_once: job.head.delivery == Delivery::AtMostOnce,
            failures: open.failures,
            failing: open.failing_since.map_or(Duration::ZERO, |since| now - since),
            ambiguous: open.ambiguous,
        })
    }

    /// Adds to the doubt whether the call has taken effect: how much there is by now.
    pub(super) fn count_doubt(&mut self, cast: Cast, doubt: u32) -> u32 {
        let open = self.jobs.get_mut(&cast.job).and_then(|job| job.open.get_mut(&cast.number));
        let Some(open) = open else { return doubt };
        open.doubts = open.doubts.saturating_add(doubt);
        open.doubts
    }

    /// Whether the recipient was erased while the call was made.
    pub(super) fn is_erased(&self, cast: Cast) -> bool {
        let row = self.store.get(&rows::open_key(self.bot, cast.job, cast.number)).ok().flatten();
        let row = row.and_then(|row| OpenRow::decode(&row).ok());
        let open = self.jobs.get(&cast.job).and_then(|job| job.open.get(&cast.number));
        row.zip(open).is_some_and(|(row, open)| row.to != open.to)
    }

    /// Writes down what became of a recipient.
    #[expect(clippy::too_many_arguments, reason = "all of them are about one answer")]
    pub(super) fn settle(
        &mut self,
        cast: Cast,
        fate: fate::Fate,
        is_free: bool,
        reason: &str,
        schedule: &mut Schedule,
        now: Instant,
        ops: &mut Vec<Op>,
    ) {
        let fate = self.once(cast.job, fate);
        let Some(job) = self.jobs.get_mut(&cast.job) else { return };
        let Some(open) = job.open.get(&cast.number) else { return };
        let (to, key) = (open.to.clone(), rows::open_key(self.bot, cast.job, cast.number));
        if is_free {
            let cost = job.cost(cast::for_one(&job.head.params, &to).as_bytes());
            job.progress.spent = job.progress.spent.saturating_sub(cost);
        }
        job.changed = true;
        let again = |to: &Recipient, at: Duration| {
            let not_before = if at.is_zero() { 0 } else { unix_millis().saturating_add(millis(at)) };
            Op::Put { key: key.clone(), value: OpenRow { to: to.clone(), begun: 0, not_before }.encode() }
        };
        match fate {
            fate::Fate::Sent => {
                job.progress.sent += 1;
                job.refused_in_a_row = 0;
                counter!("botyard_broadcast_calls_total", "outcome" => "sent").increment(1);
                job.open.remove(&cast.number);
                ops.push(Op::Delete { key });
            }
            fate::Fate::Failed(kind) => {
                job.open.remove(&cast.number);
                ops.push(Op::Delete { key });
                if let (FailureKind::Gone, Recipient::Chat(chat)) = (kind, &to) {
                    known::mark_gone(&self.store, self.bot, *chat, reason);
                }
                job.fail(to, kind, reason);
                if kind == FailureKind::Refused && job.progress.sent == 0 {
                    job.refused_in_a_row += 1;
                    if job.refused_in_a_row == REFUSED_IN_A_ROW {
                        let why = format!("Telegram refused the first {REFUSED_IN_A_ROW}: {reason}");
                        stop(cast.job, job, schedule, now, &why);
                    }
                }
            }
            fate::Fate::Moved(chat) => {
                let to = Recipient::Chat(chat);
                ops.push(again(&to, Duration::ZERO));
                if let Some(open) = job.open.get_mut(&cast.number) {
                    (open.lane, open.to) = (lane(&to), to);
                }
                park(job, cast.number, now);
            }
            fate::Fate::Again(wait) => {
                ops.push(again(&to, wait));
                park(job, cast.number, now + wait);
            }
            fate::Fate::Stop => {
                ops.push(again(&to, Duration::ZERO));
                park(job, cast.number, now);
                stop(cast.job, job, schedule, now, &format!("Telegram does not let the bot pay: {reason}"));
            }
        }
        if let Some(mut job) = self.jobs.remove(&cast.job) {
            self.write_full_page(cast.job, &mut job, ops);
            self.jobs.insert(cast.job, job);
        }
        self.busy = true;
    }

    /// A lane is blocked: whoever waits in it comes back when it is free.
    pub(super) fn blocked(&mut self, lane: Lane, until: Instant, schedule: &mut Schedule, now: Instant) {
        for cast in schedule.take_casts(lane, |_| true, now) {
            if let Some(job) = self.jobs.get_mut(&cast.job) {
                job.in_lanes -= 1;
                park(job, cast.number, until);
            }
        }
    }

    /// What is to be written before anything else happens.
    pub(super) fn write_all(&mut self, ops: &mut Vec<Op>) {
        for id in self.jobs.keys().copied().collect::<Vec<_>>() {
            if let Some(mut job) = self.jobs.remove(&id) {
                self.write(id, &mut job, ops);
                self.jobs.insert(id, job);
            }
        }
    }

    /// How many recipients the broadcasts of these plugins may reach in a minute.
    pub(super) fn share(&mut self, most: BTreeMap<PluginName, u32>) {
        self.shares.set(most);
        self.busy = true;
    }

    /// When to feed again, if nothing else happens before.
    pub(super) fn wake_at(&self, now: Instant) -> Option<Instant> {
        let parked = self.jobs.values().filter(|job| job.runs()).filter_map(|job| job.parked.peek());
        let parked = parked.map(|Reverse((at, _))| *at);
        let slowed = self.jobs.values().filter(|job| job.runs());
        let slowed = slowed.filter_map(|job| self.shares.ready_at(&job.head.owner, now));
        parked.chain(slowed).chain((self.busy || !self.waste.is_empty()).then_some(now)).min()
    }

    fn write(&self, id: u64, job: &mut Job, ops: &mut Vec<Op>) {
        if job.page_changed {
            self.write_page(id, job, ops);
        }
        if job.changed {
            ops.push(job.put(rows::progress_key(self.bot, id)));
        }
    }

    fn write_full_page(&self, id: u64, job: &mut Job, ops: &mut Vec<Op>) {
        if job.page.len() >= PAGE {
            self.write_page(id, job, ops);
        }
    }

    fn write_page(&self, id: u64, job: &mut Job, ops: &mut Vec<Op>) {
        job.page_changed = false;
        let Some(last) = job.progress.failures.checked_sub(1) else { return };
        let page = u32::try_from(last / PAGE as u64).unwrap_or(u32::MAX);
        ops.push(Op::Put { key: rows::failures_key(self.bot, id, page), value: rows::encode_failures(&job.page) });
        if job.page.len() >= PAGE {
            job.page.clear();
        }
    }

    fn end(&mut self, id: u64, mut job: Job, ops: &mut Vec<Op>) {
        job.progress.ended = unix_millis();
        job.progress.next = Cursor::End;
        self.write(id, &mut job, ops);
        ops.push(job.put(rows::progress_key(self.bot, id)));
        self.waste(rows::pieces_prefix(self.bot, id));
        self.waste(rows::open_prefix(self.bot, id));
        let ProgressRow { total, sent, gone, refused, unknown, .. } = job.progress;
        let cancelled = job.wish.wanted == Wanted::Cancel;
        tracing::info!(
            broadcast = id,
            name = job.head.name,
            cancelled,
            total,
            sent,
            gone,
            refused,
            unknown,
            "a broadcast has ended"
        );
    }

    fn waste(&mut self, prefix: Vec<u8>) {
        let end = prefix_end(&prefix);
        self.waste.push_back((prefix, end));
    }

    /// Removes some of the rows that nobody needs.
    fn clean_up(&mut self, ops: &mut Vec<Op>) {
        let Some((from, end)) = self.waste.front_mut() else { return };
        match self.store.range(from, end, AT_A_TIME) {
            Ok(found) => {
                match found.last() {
                    Some((last, _)) if found.len() == AT_A_TIME => *from = [last, &[0][..]].concat(),
                    _ => drop(self.waste.pop_front()),
                }
                ops.extend(found.into_iter().map(|(key, _)| Op::Delete { key: key.to_vec() }));
            }
            Err(error) => {
                tracing::error!(%error, "what is left of a broadcast can't be removed before the next start");
                self.waste.clear();
            }
        }
    }

    fn measure(&self) {
        let state = |runs: bool| self.jobs.values().filter(|job| job.runs() == runs).count() as f64;
        gauge!("botyard_broadcasts", "state" => "running").set(state(true));
        gauge!("botyard_broadcasts", "state" => "paused").set(state(false));
        let waiting = |job: &Job| job.progress.total.saturating_sub(job.progress.done());
        gauge!("botyard_broadcast_waiting").set(self.jobs.values().map(waiting).sum::<u64>() as f64);
    }
}

/// Puts somebody who is parked into his lane, or parks him again if that is not free soon.
fn hand(id: u64, job: &mut Job, number: u64, chats: &Chats, schedule: &mut Schedule, now: Instant) {
    let Some(open) = job.open.get_mut(&number) else { return };
    // Calls to a chat keep one order and one pace, whichever name they know it by.
    open.lane = chats.lane(lane(&open.to));
    let free_at = schedule.free_at(open.lane, now);
    if free_at > now + SOON {
        return park(job, number, free_at);
    }
    open.place = Place::Lane;
    job.in_lanes += 1;
    schedule.add_cast(open.lane, Cast { job: id, number, paid: job.head.paid }, now);
}

fn park(job: &mut Job, number: u64, at: Instant) {
    if let Some(open) = job.open.get_mut(&number) {
        open.place = Place::Parked(at);
        job.parked.push(Reverse((at, number)));
    }
}

/// Takes everybody who stands in a lane out of it.
fn take_back(id: u64, job: &mut Job, schedule: &mut Schedule, now: Instant) {
    let in_lanes = job.open.iter().filter(|(_, open)| open.place == Place::Lane);
    let in_lanes: Vec<(u64, Lane)> = in_lanes.map(|(number, open)| (*number, open.lane)).collect();
    for (number, lane) in in_lanes {
        schedule.take_casts(lane, |cast| cast.job == id, now);
        park(job, number, now);
    }
    job.in_lanes = 0;
}

fn stop(id: u64, job: &mut Job, schedule: &mut Schedule, now: Instant, why: &str) {
    tracing::error!(broadcast = id, name = job.head.name, why, "a broadcast waits; resume it once that is seen to");
    job.progress.stopped = Some((job.wish.number, why.to_owned()));
    job.changed = true;
    job.ran_until = None;
    take_back(id, job, schedule, now);
}

/// Tenths of a Star, for people.
fn stars(tenths: u64) -> String {
    if tenths.is_multiple_of(10) { (tenths / 10).to_string() } else { format!("{}.{}", tenths / 10, tenths % 10) }
}

fn unreadable(id: u64, error: &Unreadable) {
    tracing::error!(broadcast = id, %error, "a broadcast can't be read and is left as it is");
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
