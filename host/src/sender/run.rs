//! The loop: asks [`Schedule`] what comes next, makes the calls, and writes down what became of them.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use metrics::{Gauge, counter, gauge};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{self, Instant};

use self::deliver::deliver;
use super::action::{self, Action, Actions};
use super::broadcast::gate::Gate;
use super::broadcast::{Broadcasts, Cast};
use super::decide::{self, History, Next};
use super::direct::{self, Direct};
use super::floods::Floods;
use super::ledger::Ledger;
use super::outbox::{Cancelled, Reply};
use super::schedule::{End, Paused, Schedule, Work};
use super::weight::{weight_of, weight_of_failed};
use super::{Shared, backlog};
use crate::clock::unix_millis;
use crate::domain::Lane;
use crate::store::rows::file::{self, Attached, Hash};
use crate::store::rows::outbox::{Delivery, OutboxRow, key as outbox_key};
use crate::store::{self, Commit, Op};
use crate::telegram::Error;
use crate::whose;

mod cast;
mod chats;
mod deliver;
mod lost;
mod outbox;

/// What is in flight may take so long to end after the stop signal.
const STOP_GRACE: Duration = Duration::from_secs(5);
/// A store that can't be read is about to stop the host.
const STORE_TROUBLE: Duration = Duration::from_secs(1);
/// A wait that somebody may wonder about.
const LONG_FLOOD: Duration = Duration::from_secs(30);
/// A wait that somebody should look into.
const VERY_LONG_FLOOD: Duration = Duration::from_secs(300);
/// So many failed calls without a success between them are an outage.
const OUTAGE: u32 = 5;
/// While a call succeeded within so long, Telegram takes calls.
const HEALTHY: Duration = Duration::from_secs(60);

/// A call that has ended.
enum Done {
    Row { lane: Lane, number: u64, ending: Ending },
    Direct { lane: Lane, direct: Direct, result: Result<Bytes, Error> },
    Action { action: Action, result: Result<Bytes, Error> },
    Cast { lane: Lane, cast: Cast, outcome: cast::Outcome },
    Cancelled { rows: Vec<(Lane, u64)>, answer: Option<(Reply, Vec<Cancelled>)> },
}

enum Ending {
    /// The row, its parameters apart from it, and what came of it.
    Called(Box<OutboxRow>, Bytes, Result<(), Error>),
    /// An earlier process has begun to make the call, and it must not be made twice.
    Interrupted(Box<OutboxRow>, Bytes),
    /// A later edit of the same message waits in the lane.
    Superseded(Box<OutboxRow>),
    /// Its markup can't be read; the row is to be sent once more, and has none any more.
    Plain(Box<OutboxRow>, Error),
    /// It is not in the store.
    Missing,
    Unreadable(String),
    StoreFailed(store::Error),
}

struct Loop<'a> {
    shared: &'a Arc<Shared>,
    schedule: Schedule,
    calls: JoinSet<Done>,
    /// What the store has to be told.
    ops: Vec<Op>,
    /// Contents that are needed less, once it has been told.
    let_go: Vec<Hash>,
    /// Rows of this process that are not done; an earlier one's, up to `backlog_end`, are not counted.
    queued: u64,
    /// Rows that are on their way out, by an operator's order.
    cancelled: HashSet<(Lane, u64)>,
    backlog_end: u64,
    queue: Gauge,
    failed_in_a_row: u32,
    /// When Telegram last took a call. Polls don't count: they can do well while sending is out of order.
    last_success: Option<Instant>,
    ledger: Ledger,
    actions: Actions,
    floods: Floods,
    /// Told when lanes turn out to be one chat's.
    lanes_changed: watch::Receiver<u64>,
    broadcasts: Broadcasts,
    gate: Arc<Gate>,
}

pub(super) async fn run(shared: &Arc<Shared>, mut stop: watch::Receiver<bool>) -> Result<(), store::Error> {
    let settings = shared.inbox().settings;
    let mut this = Loop {
        shared,
        schedule: Schedule::new(&settings).with_aside(shared.aside.clone()),
        calls: JoinSet::new(),
        ops: Vec::new(),
        let_go: Vec::new(),
        queued: 0,
        cancelled: HashSet::new(),
        backlog_end: 0,
        queue: gauge!("botyard_send_queue"),
        failed_in_a_row: 0,
        last_success: None,
        ledger: Ledger::new(shared.bot),
        actions: Actions::default(),
        floods: Floods::default(),
        lanes_changed: shared.chats.lanes_changed(),
        broadcasts: Broadcasts::new(shared.store.clone(), shared.bot, shared.process, shared.chats.clone()),
        gate: Arc::default(),
    };
    this.gate.set(&settings);
    let told_to_stop = async move {
        // Whoever drops the signal has gone, which is a reason to stop as well.
        stop.wait_for(|stop| *stop).await.ok();
    };
    tokio::pin!(told_to_stop);
    let begun = tokio::select! {
        biased;
        () = &mut told_to_stop => return Ok(()),
        begun = this.begin() => begun,
    };
    if let Err(error) = begun {
        tracing::error!(%error, "the outbox can't be read, nothing is sent");
        return Err(error);
    }
    let mut settings = settings;
    loop {
        this.take_inbox(&mut settings);
        let now = Instant::now();
        this.feed_broadcasts(now);
        this.write();
        while let Some(work) = this.schedule.next(now) {
            this.start(work);
        }
        let wake_at = [this.schedule.wake_at(now), this.broadcasts.wake_at(now)].into_iter().flatten().min();
        tokio::select! {
            biased;
            () = &mut told_to_stop => break,
            Some(done) = this.calls.join_next() => {
                this.finish(done);
                while let Some(done) = this.calls.try_join_next() {
                    this.finish(done);
                }
                this.write();
            }
            () = shared.wake.notified() => {}
            () = time::sleep_until(wake_at.unwrap_or(now)), if wake_at.is_some() => {}
        }
    }
    this.end().await;
    Ok(())
}

impl Loop<'_> {
    /// Takes up what an earlier process has left. That was read from its files, which may be ahead of the disk.
    async fn begin(&mut self) -> Result<(), store::Error> {
        self.shared.store.flushed().await?;
        self.ledger.count(&self.shared.store)?;
        let backlog = self.shared.inbox().backlog.take();
        let backlog = backlog.unwrap_or_else(|| Ok(Vec::new()))?;
        if !backlog.is_empty() {
            tracing::info!(chats = backlog.len(), "going on with the calls that were waiting");
        }
        let now = Instant::now();
        self.wait_on(now)?;
        for waiting in backlog {
            self.backlog_end = self.backlog_end.max(waiting.last);
            self.join_lane(waiting.lane, now);
            self.schedule.add(waiting.lane, waiting.head, waiting.last, waiting.priority, now);
        }
        self.look_at_broadcasts()
    }

    fn take_inbox(&mut self, settings: &mut super::SendSettings) {
        let questions;
        let (committed, direct, actions, unknown, wanted, broadcasts) = {
            let mut inbox = self.shared.inbox();
            let actions = std::mem::take(&mut inbox.actions);
            let broadcasts = std::mem::take(&mut inbox.broadcasts);
            questions = std::mem::take(&mut inbox.questions);
            if let Some(most) = inbox.shares.take() {
                self.broadcasts.share(most);
            }
            self.ledger.dropped(std::mem::take(&mut inbox.unknown_dropped));
            let (committed, direct) = (std::mem::take(&mut inbox.committed), std::mem::take(&mut inbox.direct));
            (committed, direct, actions, std::mem::take(&mut inbox.unknown), inbox.settings, broadcasts)
        };
        if let Some(error) = broadcasts.then(|| self.look_at_broadcasts().err()).flatten() {
            tracing::error!(%error, "what is wanted of broadcasts can't be read");
        }
        for row in unknown {
            self.ledger.keep(&self.shared.store, &row, &mut self.ops);
        }
        let now = Instant::now();
        if *settings != wanted {
            *settings = wanted;
            self.schedule.reconfigure(settings, now);
            self.gate.set(settings);
        }
        self.forget_waits(now);
        self.join_lanes(now);
        self.queued += committed.len() as u64;
        for (lane, number, priority) in committed {
            self.join_lane(lane, now);
            self.schedule.add(lane, number, number, priority, now);
        }
        for (lane, direct) in direct {
            self.join_lane(lane, now);
            self.schedule.add_direct(lane, direct, now);
        }
        for action in actions {
            self.act(action, now);
        }
        for question in questions {
            self.answer(question, now);
        }
        self.queue.set(self.queued as f64);
    }

    fn act(&mut self, action: Action, now: Instant) {
        if !self.schedule.may_act(action.lane, now) || !self.actions.begin(action.lane, now) {
            return action.dropped();
        }
        let shared = self.shared.clone();
        self.calls.spawn(whose::same(async move {
            let result = shared.client.call("sendChatAction", action.params.clone(), action::DEADLINE).await;
            Done::Action { action, result }
        }));
    }

    fn start(&mut self, work: Work) {
        let shared = self.shared.clone();
        match work {
            Work::Row { lane, number } => {
                let again = self.schedule.is_ambiguous(lane);
                let now = Instant::now();
                self.schedule.begins(lane, self.last_success.is_some_and(|at| now - at < HEALTHY));
                self.calls.spawn(whose::same(async move {
                    let ending = deliver(&shared, lane, number, again).await;
                    Done::Row { lane, number, ending }
                }));
            }
            Work::Direct { lane, direct } => {
                self.calls.spawn(whose::same(async move {
                    let result = direct.make(&shared, lane).await;
                    Done::Direct { lane, direct, result }
                }));
            }
            Work::Cast { lane, cast } => self.start_cast(lane, cast),
        }
    }

    fn finish(&mut self, done: Result<Done, tokio::task::JoinError>) {
        let now = Instant::now();
        match done {
            Ok(Done::Row { lane, number, ending }) => self.finish_row(lane, number, ending, now),
            Ok(Done::Direct { lane, direct, result }) => self.finish_direct(lane, direct, result, now),
            Ok(Done::Cast { lane, cast, outcome }) => self.finish_cast(lane, cast, outcome, now),
            Ok(Done::Cancelled { rows, answer }) => self.finish_cancelled(&rows, answer),
            Ok(Done::Action { action, result }) => {
                self.actions.end(action.lane, result.as_ref().err(), now);
                action.answer(result);
            }
            // A lane whose call is gone would wait for ever: better to be seen failing.
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }

    fn finish_row(&mut self, lane: Lane, number: u64, ending: Ending, now: Instant) {
        match ending {
            Ending::Called(row, params, Ok(())) => {
                self.note_success(now);
                tracing::debug!(plugin = %row.plugin, event = row.event, method = row.method, "sent");
                self.row_done(lane, number, &row.files, weight_of(&row.method, &params), now);
            }
            Ending::Called(row, params, Err(error)) => self.row_failed(lane, number, &row, &params, &error, now),
            Ending::Interrupted(row, params) => {
                let reason = "the host ended while the call was under way";
                self.row_lost((lane, number), &row, &params, true, reason);
                self.row_done(lane, number, &row.files, 0, now);
            }
            Ending::Plain(row, error) => {
                self.note_success(now);
                tracing::warn!(plugin = %row.plugin, chat_id = chat_of(lane), event = row.event, "{error}; it is sent without markup");
                counter!("botyard_send_plain_total", "method" => row.method.clone()).increment(1);
                self.schedule.finish(lane, End::RowStays, 1, None, now);
            }
            Ending::Superseded(row) => {
                counter!("botyard_send_dropped_total", "reason" => "superseded").increment(1);
                self.row_void(lane, number, &row.files, 0, now);
            }
            Ending::Missing => self.row_over(lane, number, 0, now),
            Ending::Unreadable(error) => {
                tracing::error!(?lane, number, error, "a queued call can't be read; it stays in the store, unsent");
                self.row_over(lane, number, 0, now);
            }
            Ending::StoreFailed(error) => {
                tracing::error!(%error, "a queued call can't be read");
                self.schedule.finish(lane, End::RowStays, 0, Some(now + STORE_TROUBLE), now);
            }
        }
    }

    fn row_failed(&mut self, lane: Lane, number: u64, row: &OutboxRow, params: &[u8], error: &Error, now: Instant) {
        let chat_id = chat_of(lane);
        let plugin = &row.plugin;
        let history = self.history(lane, row, error, now);
        let weight = weight_of_failed(error, &row.method, params);
        match decide::next(error, history, rand::random()) {
            Next::Done => {
                self.note_success(now);
                tracing::debug!(%plugin, chat_id, event = row.event, %error, "as good as sent");
                self.row_done(lane, number, &row.files, weight, now);
            }
            Next::Refused => {
                self.note_success(now);
                tracing::warn!(%plugin, chat_id, event = row.event, "{error}");
                counter!("botyard_send_dropped_total", "reason" => error.outcome()).increment(1);
                self.note_refusal(lane, params, error);
                self.row_void(lane, number, &row.files, 1, now);
            }
            Next::GiveUp => {
                let maybe_sent = self.schedule.is_ambiguous(lane);
                let reason = format!("given up after {} failures, {:?} old: {error}", history.failures, history.age);
                self.row_lost((lane, number), row, params, maybe_sent, &reason);
                if let Error::Flooded { retry_after, .. } = error {
                    self.note_flood(lane, *retry_after, now);
                }
                self.row_done(lane, number, &row.files, weight, now);
            }
            Next::Unknown => {
                self.row_lost((lane, number), row, params, true, &error.to_string());
                self.row_done(lane, number, &row.files, weight, now);
            }
            Next::Retry(wait) => {
                self.note_trouble(error);
                tracing::debug!(%plugin, chat_id, event = row.event, %error, ?wait, "a queued call will be tried again");
                self.not_begun(lane, number, row);
                self.schedule.finish(lane, End::RowStays, weight, Some(now + wait), now);
            }
            Next::Flood(wait) => {
                self.note_flood(lane, wait, now);
                self.not_begun(lane, number, row);
                self.schedule.finish(lane, End::RowStays, 1, Some(now + wait), now);
            }
            Next::Halt(wait) => {
                self.halt(error, now + wait);
                self.not_begun(lane, number, row);
                self.schedule.finish(lane, End::RowStays, 1, None, now);
            }
        }
    }

    fn finish_direct(&mut self, lane: Lane, mut direct: Direct, result: Result<Bytes, Error>, now: Instant) {
        let error = match result {
            Ok(result) => {
                self.note_success(now);
                let weight = weight_of(&direct.method, &direct.params);
                direct.answer(Ok(result));
                return self.schedule.finish(lane, End::DirectDone, weight, None, now);
            }
            Err(error) => error,
        };
        direct.failures += 1;
        direct.ambiguous |= error.is_ambiguous();
        let weight = weight_of_failed(&error, &direct.method, &direct.params);
        // Who waits is told, so nothing is lost where a method that is not there does not halt the others.
        let others_succeed = self.last_success.is_some_and(|at| now - at < HEALTHY);
        let others_succeed = others_succeed && error.is_not_found();
        // Who waits is told of any doubt as soon as of silence.
        let is_doubtful = decide::doubt(&error, &direct.method, false) > 0;
        direct.doubts += if is_doubtful { decide::SILENCE } else { 0 };
        let (failures, doubts) = (direct.failures, direct.doubts);
        let history = History { failures, doubts, others_succeed, ..History::default() };
        let (wait, is_flood) = match decide::next(&error, history, rand::random()) {
            Next::Retry(wait) => {
                self.note_trouble(&error);
                (Some(wait), false)
            }
            Next::Flood(wait) => {
                self.note_flood(lane, wait, now);
                (Some(wait), true)
            }
            Next::Halt(wait) => {
                self.halt(&error, now + wait);
                (None, false)
            }
            Next::Done | Next::Refused | Next::GiveUp | Next::Unknown => (None, false),
        };
        match wait.map(|wait| now + wait) {
            Some(until) if until < direct.deadline => {
                self.schedule.finish(lane, End::DirectStays(direct), weight, Some(until), now);
            }
            until => {
                // Whoever waits writes it down; nobody does.
                if direct.is_abandoned() && (direct.ambiguous || direct::is_unclear(&error)) {
                    let row = direct::entry(&direct.plugin, &direct.method, lane, &direct.params, &error);
                    self.ledger.keep(&self.shared.store, &row, &mut self.ops);
                }
                self.note_refusal(lane, &direct.params, &error);
                direct.answer(Err(error));
                self.schedule.finish(lane, End::DirectDone, weight, until.filter(|_| is_flood), now);
            }
        }
    }

    fn history(&mut self, lane: Lane, row: &OutboxRow, error: &Error, now: Instant) -> History {
        let (failures, failing) = if error.is_transient() || error.is_not_found() {
            self.schedule.count_failure(lane, error.is_ambiguous(), now)
        } else {
            (0, HEALTHY)
        };
        // What succeeded before this call began to fail says nothing of the time since.
        let others_succeed = self.last_success.is_some_and(|at| now - at < failing.min(HEALTHY));
        let others_succeed = others_succeed && self.schedule.began_amid_success(lane);
        let doubt = decide::doubt(error, &row.method, others_succeed);
        History {
            failures,
            age: Duration::from_millis(unix_millis().saturating_sub(row.queued)),
            max_age: decide::max_age(row.priority),
            urgent: lane.is_urgent(),
            at_most_once: row.delivery == Delivery::AtMostOnce,
            doubts: self.schedule.count_doubt(lane, doubt),
            others_succeed,
            reachable: matches!(error, Error::ServerError { .. }),
        }
    }

    /// The row is over and leaves the store.
    fn row_done(&mut self, lane: Lane, number: u64, files: &[Attached], weight: u32, now: Instant) {
        self.remove(lane, number, files);
        self.row_over(lane, number, weight, now);
    }

    /// The row leaves the store, and was not delivered. Nor is what goes on with its text: nobody could read it.
    fn row_void(&mut self, lane: Lane, number: u64, files: &[Attached], weight: u32, now: Instant) {
        self.remove(lane, number, files);
        let mut last = number;
        while let Some((follower, row)) = self.follower(lane, last) {
            counter!("botyard_send_dropped_total", "reason" => "rest").increment(1);
            tracing::debug!(plugin = %row.plugin, chat_id = chat_of(lane), event = row.event, "the rest of a text goes with its beginning");
            self.remove(lane, follower, &row.files);
            self.row_left(last);
            last = follower;
        }
        self.row_over(lane, last, weight, now);
    }

    fn remove(&mut self, lane: Lane, number: u64, files: &[Attached]) {
        self.ops.push(Op::Delete { key: outbox_key(self.shared.bot, lane, number) });
        for file in files {
            self.ops.push(Op::Delete { key: file::reference(self.shared.bot, file) });
            self.let_go.push(file.hash);
        }
    }

    /// The row behind this one, if it goes on with its text. Both are of one commit, and as durable as each other.
    fn follower(&self, lane: Lane, number: u64) -> Option<(u64, OutboxRow)> {
        let last = self.schedule.last_row(lane);
        // What can't be read says so when it is its turn.
        let (next, _) = backlog::next(&self.shared.store, self.shared.bot, lane, number, last).ok()??;
        let value = self.shared.store.get(&outbox_key(self.shared.bot, lane, next)).ok()??;
        OutboxRow::decode(&value).ok().filter(|row| row.follows).map(|row| (next, row))
    }

    fn row_left(&mut self, number: u64) {
        if number > self.backlog_end {
            self.queued = self.queued.saturating_sub(1);
        }
    }

    fn row_over(&mut self, lane: Lane, number: u64, weight: u32, now: Instant) {
        self.row_left(number);
        let next = self.next_row(lane, number);
        self.schedule.finish(lane, End::RowDone(next), weight, None, now);
    }

    fn write(&mut self) {
        self.write_broadcasts();
        if !self.ops.is_empty() {
            let mut commit = Commit { ops: std::mem::take(&mut self.ops), ..Commit::default() };
            if !self.let_go.is_empty()
                && let Some(uploads) = &self.shared.uploads
            {
                let (files, let_go) = (uploads.files.clone(), std::mem::take(&mut self.let_go));
                commit.on_durable = Some(Box::new(move |_| files.let_go(let_go)));
            }
            self.shared.store.submit(commit);
        }
    }

    fn note_success(&mut self, now: Instant) {
        self.last_success = Some(now);
        if std::mem::take(&mut self.failed_in_a_row) >= OUTAGE {
            tracing::info!("Telegram answers again");
        }
        if self.schedule.is_halted() {
            self.schedule.resume();
            self.shared.refuse_token(false);
            tracing::info!("Telegram takes the token again");
        }
    }

    fn note_trouble(&mut self, error: &Error) {
        self.failed_in_a_row = self.failed_in_a_row.saturating_add(1);
        if self.failed_in_a_row == OUTAGE {
            tracing::warn!(%error, "calls fail one after another; they wait and are tried again");
        }
    }

    fn note_flood(&mut self, lane: Lane, wait: Duration, now: Instant) {
        counter!("botyard_send_flood_waits_total").increment(1);
        let chat_id = chat_of(lane);
        let paused = self.schedule.flooded(lane, now + wait, now);
        self.note_wait(lane, now + wait, now);
        self.casts_blocked(lane, now + wait, now);
        match paused {
            Some(Paused::Bulk) => tracing::warn!("several chats are flooded: bulk waits"),
            Some(Paused::Replies) => tracing::error!("Telegram floods all that is sent: replies wait as well"),
            None => {}
        }
        if paused.is_some() {
            counter!("botyard_send_pauses_total").increment(1);
        }
        if wait > VERY_LONG_FLOOD {
            counter!("botyard_send_long_floods_total").increment(1);
            tracing::error!(chat_id, ?wait, "flood control: the chat has to wait for long; something sends too much");
        } else if wait > LONG_FLOOD {
            tracing::warn!(chat_id, ?wait, "flood control: the chat has to wait");
        } else {
            tracing::debug!(chat_id, ?wait, "flood control: the chat has to wait");
        }
    }

    fn halt(&mut self, error: &Error, until: Instant) {
        if !self.schedule.is_halted() {
            tracing::error!(%error, "Telegram refuses the token; all calls wait. Put a valid one in place and restart");
        }
        self.schedule.halt(until);
        self.shared.refuse_token(true);
    }

    /// Begins nothing new. What does not end in time is sent again at the next start.
    async fn end(mut self) {
        let all = async {
            while let Some(done) = self.calls.join_next().await {
                self.finish(done);
                self.write();
            }
        };
        if time::timeout(STOP_GRACE, all).await.is_err() {
            tracing::warn!(calls = self.calls.len(), "stopping with calls in flight; they will be sent again");
        }
        self.write();
    }
}

fn chat_of(lane: Lane) -> Option<i64> {
    match lane {
        Lane::Chat(chat) => Some(chat.0),
        _ => None,
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
