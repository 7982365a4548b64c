//! One event, from its inbox row to the commit that makes its effects true.
//!
//! Whatever happens, exactly one of five things has been committed at the end: the effects, a counted failed
//! attempt, a dead letter, the event's removal since it came too late, or nothing at all (then the event is still
//! waiting as it was). Each of these commits reads the event's row, so an event that somebody else has settled meanwhile
//! (its user has ended the conversation, a hanging run was given up) is settled once.

mod jobs;

use std::collections::{BTreeSet, HashMap};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use bytes::Bytes;
use futures_util::FutureExt;
use tokio::sync::{Notify, mpsc};

use super::album::{Album, Member, Patience};
use super::breaker::Breaker;
use super::claims::{Claims, Run, Why};
use super::dead::DeadLetters;
use super::expiry as expiry_task;
use super::failure::Failure;
use super::hot::HotKeys;
use super::offer::Offered;
use super::own;
use super::record::Recorder;
use super::recover::Told;
use super::rehearse::Played;
use super::routes::{Routes, Version};
use super::shares::Shares;
use super::trace::{self, Traces};
use super::{Notice, age};
use crate::backoff;
use crate::clock::unix_millis;
use crate::domain::{BotId, EventLane, PluginName};
use crate::plugin::{Invocation, Journal, Outbound, Queued, Verdict};
use crate::sender::{Sender, is_chat_action};
use crate::store::rows::dead::{self, DeadRow};
use crate::store::rows::inbox::{self, InboxRow, StoredEvent};
use crate::store::rows::outbox::{self, OutboxRow};
use crate::store::rows::{broadcast, expiry, job, prefix_end, timer};
use crate::store::{self, Commit, CommitError, Held, Op, Store, Tx};

pub(super) use self::jobs::JobEnd;

/// How long a message rests while it is looked at as an order.
const ORDERED: Duration = Duration::from_millis(50);

/// What every run needs.
pub(super) struct Context {
    pub(super) store: Store,
    pub(super) bot: BotId,
    pub(super) routes: ArcSwap<Routes>,
    pub(super) sender: Sender,
    pub(super) outbound: Arc<dyn Outbound>,
    /// The bot's own name, once Telegram has told it.
    pub(super) username: ArcSwapOption<String>,
    pub(super) default_locale: String,
    pub(super) max_attempts: u32,
    pub(super) hot: HotKeys,
    /// Plugins whose events wait.
    pub(super) paused: ArcSwap<BTreeSet<PluginName>>,
    /// Plugins that have failed of late.
    pub(super) breakers: Mutex<HashMap<PluginName, Breaker>>,
    pub(super) notices: mpsc::UnboundedSender<Notice>,
    /// Told when what had to wait for a plugin is to be looked at again.
    pub(super) resumed: Arc<Notify>,
    /// Direct calls that events have already made, so that another attempt does not repeat them. Those of runs that
    /// only look on are apart: a plugin may see an event both ways.
    pub(super) journals: Mutex<HashMap<(u64, bool), Journal>>,
    /// Told of new timers, and of other plugins that serve.
    pub(super) timer_set: Arc<Notify>,
    pub(super) claims: Claims,
    pub(super) shares: Shares,
    pub(super) patience: Patience,
    /// What a user is told whose conversation was ended, where the plugin has no words for it.
    pub(super) cancel_reply: String,
    /// What somebody is told who presses a button that leads nowhere, where the plugin has no words for it.
    pub(super) stale_button_reply: String,
    /// Plugins are given presses of buttons that this host has not made.
    pub(super) unsealed_buttons: bool,
    pub(super) expiry: Arc<expiry_task::Alarm>,
    pub(super) recorder: Recorder,
    /// What a rehearsal is answered.
    pub(super) played: ArcSwapOption<Played>,
    /// Told when jobs were queued or cancelled, or may go on.
    pub(super) jobs_changed: Arc<Notify>,
    pub(super) traces: Traces,
    pub(super) dead_letters: DeadLetters,
    /// Told when there is one more.
    pub(super) dead_added: Arc<Notify>,
}

/// How a lane's turn ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Nothing was waiting.
    Empty,
    /// The event is handled or set aside; `more` were waiting behind it.
    Done { more: bool },
    /// The event is for a paused plugin, and waits for it as it is.
    Paused,
    /// The plugin that the event is for has its share of the places: it waits for one.
    Crowded(PluginName),
    /// To be tried (again) after this time.
    Rest(Duration),
    /// As [`Outcome::Done`], and these other lanes need to rest no longer.
    Freed { more: bool, lanes: Vec<EventLane> },
}

/// The first event of a lane.
pub(super) struct Head {
    pub(super) key: Vec<u8>,
    pub(super) lane: EventLane,
    pub(super) number: u64,
    pub(super) value: Bytes,
    pub(super) more: bool,
    /// The other messages, where it is an album that is handled whole.
    pub(super) rest: Vec<Member>,
}

/// Sees to it that no plugin waits for ever for what an event was to tell.
struct Probe<'a> {
    context: &'a Context,
    event: u64,
}

impl Drop for Probe<'_> {
    fn drop(&mut self) {
        self.context.let_go_of_probes(self.event);
    }
}

/// An attempt without an error of the store.
enum Handled {
    Done,
    Superseded,
    Ordered,
}

impl Context {
    /// Handles the event at the head of a lane.
    pub(super) async fn turn(&self, turn: u64, lane: EventLane) -> Result<Outcome, store::Error> {
        let Some(mut head) = self.head(lane)? else { return Ok(Outcome::Empty) };
        let row = match InboxRow::decode(&head.value) {
            Ok(row) => row,
            Err(error) => {
                let row = InboxRow::new(StoredEvent::Update(head.value.to_vec()), unix_millis());
                let failure = Failure::of_host(format!("the stored event can't be read: {error}"));
                return self.set_aside(&head, row, failure).await;
            }
        };
        if let Some(rest) = age::rest(row.not_before, unix_millis()) {
            return Ok(Outcome::Rest(rest));
        }
        if row.attempts == 0
            && let Some(kind) = age::expired(&row, unix_millis())
        {
            return self.drop_expired(&head, &row, &kind).await;
        }
        if let StoredEvent::Cancel { lane, ended } = row.event {
            return self.control(&head, lane, ended).await;
        }
        if let Some(rest) = self.make_way(lane, &row.event).await? {
            return Ok(Outcome::Rest(rest));
        }
        let album = self.album_at(&head, &row)?;
        if let Some(album) = &album {
            if let Some(rest) = album.left(&self.patience) {
                return Ok(Outcome::Rest(rest));
            }
            (head.rest, head.more) = (album.rest.clone(), true);
        }
        let (_held, told) = self.claims.take(turn, lane, head.number);
        let _probe = Probe { context: self, event: head.number };
        let handled = AssertUnwindSafe(self.handle(&head, &row, album.as_ref())).catch_unwind();
        let handled = tokio::select! {
            biased;
            handled = handled => handled,
            Ok(why) = told => match why {
                Why::Cancelled => Ok(Ok(Err(Failure::cancelled(self.claims.run_of(turn))))),
                Why::Wedged => Ok(Ok(Err(self.hung(self.claims.run_of(turn), head.number, &row)))),
            },
        };
        let failure = match handled {
            Ok(Ok(Ok(Handled::Done))) => {
                self.forget_journal(head.number);
                return Ok(Outcome::Done { more: head.more });
            }
            Ok(Ok(Ok(Handled::Superseded))) => return Ok(Outcome::Done { more: true }),
            // Short, since the order may have been decided while this turn ended.
            Ok(Ok(Ok(Handled::Ordered))) => return Ok(Outcome::Rest(ORDERED)),
            Ok(Ok(Err(failure))) if failure.paused => {
                tracing::debug!(plugin = %failure.plugin, event = head.number, ?lane, "an event waits for a paused plugin");
                return Ok(Outcome::Paused);
            }
            Ok(Ok(Err(failure))) if failure.crowded => return Ok(Outcome::Crowded(failure.plugin)),
            Ok(Ok(Err(failure))) if failure.absent => return self.park(&head, row, &failure.plugin).await,
            Ok(Ok(Err(failure))) => failure,
            Ok(Err(error)) => return Err(error),
            Err(_) => Failure::of_host("the host panicked; its log says where".to_owned()),
        };
        self.recorder.settle(head.number, Some(&failure.reason));
        self.fail(head, row, failure).await
    }

    /// Gives up a turn that hangs, so that its lane goes on. Should it ever come back, it finds its event settled.
    pub(super) async fn give_up(&self, lane: EventLane, event: u64, run: Run) -> Result<Outcome, store::Error> {
        let Some(head) = self.head(lane)?.filter(|head| head.number == event) else {
            return Ok(Outcome::Done { more: true });
        };
        let Ok(row) = InboxRow::decode(&head.value) else { return Ok(Outcome::Done { more: true }) };
        let head = self.with_album(head, &row)?;
        let failure = self.hung(Some(run), event, &row);
        self.let_go_of_probes(event);
        self.fail(head, row, failure).await
    }

    /// Counts a failed attempt, or sets the event aside.
    async fn fail(&self, head: Head, mut row: InboxRow, failure: Failure) -> Result<Outcome, store::Error> {
        if failure.pauses {
            return self.pause_after_crash(&head, &failure).await;
        }
        if let Some(wait) = failure.put_off {
            return self.put_off(head, row, failure, wait).await;
        }
        let lane = head.lane;
        row.attempts += 1;
        tracing::warn!(
            plugin = %failure.plugin, version = failure.version, event = head.number, ?lane, attempt = row.attempts,
            reason = failure.reason, backtrace = failure.backtrace_once(row.attempts), "an event was not handled"
        );
        if (!failure.retry || row.attempts >= self.max_attempts) && !failure.on_trial {
            return self.set_aside(&head, row, failure).await;
        }
        let rest = backoff::delay(row.attempts, rand::random());
        row.not_before = unix_millis().saturating_add(millis(rest));
        if age::expired(&row, row.not_before).is_some() && !failure.on_trial {
            // It would be too late for another attempt; a failure is kept all the same, for whoever mends it.
            return self.set_aside(&head, row, failure).await;
        }
        if !self.settle(&head, |tx| tx.put(head.key.clone(), row.encode())).await? {
            return Ok(Outcome::Done { more: true });
        }
        metrics::counter!("botyard_events_total", "outcome" => "retried").increment(1);
        Ok(Outcome::Rest(rest))
    }

    /// With the rest of its album, if it is the first of one.
    pub(super) fn with_album(&self, head: Head, row: &InboxRow) -> Result<Head, store::Error> {
        let rest = self.album_at(&head, row)?.map_or_else(Vec::new, |album| album.rest);
        Ok(Head { more: head.more || !rest.is_empty(), rest, ..head })
    }

    pub(super) fn head(&self, lane: EventLane) -> Result<Option<Head>, store::Error> {
        let from = inbox::lane_prefix(self.bot, lane);
        let mut rows = self.store.range(&from, &prefix_end(&from), 2)?.into_iter();
        let Some((key, value)) = rows.next() else { return Ok(None) };
        let number = inbox::parse_key(&key).map_or(0, |(_, number)| number);
        Ok(Some(Head { key: key.to_vec(), lane, number, value, more: rows.next().is_some(), rest: Vec::new() }))
    }

    /// Runs the plugins and commits, again and again while others change what was read.
    async fn handle(
        &self,
        head: &Head,
        row: &InboxRow,
        album: Option<&Album>,
    ) -> Result<Result<Handled, Failure>, store::Error> {
        let mut contended = BTreeSet::new();
        loop {
            let guards = self.hot.lock(&contended).await;
            // Of a run that is made again.
            self.recorder.take(head.number);
            let mut tx = match self.run_plugins(head, row, album, unix_millis()).await? {
                Ok(Offered::Settled(tx)) => tx,
                Ok(Offered::Split) => match album {
                    Some(album) => self.split_album(head, row, album)?,
                    None => return Ok(Ok(Handled::Superseded)),
                },
                Ok(Offered::Superseded) => return Ok(Ok(Handled::Superseded)),
                Ok(Offered::Ordered) => return Ok(Ok(Handled::Ordered)),
                Err(failure) => return Ok(Err(failure)),
            };
            let held = tx.take_held();
            let mut commit = tx.into_commit();
            self.answer(&mut commit, row, head.number);
            let result = self.store.commit(self.with_notices(commit, held)).await;
            drop(guards);
            match result {
                Ok(_) => {
                    self.recorder.settle(head.number, None);
                    self.answered(row);
                    return Ok(Ok(Handled::Done));
                }
                Err(CommitError::Conflict { key }) => {
                    metrics::counter!("botyard_commit_conflicts_total").increment(1);
                    contended.insert(key);
                    self.sender.chats().pause_while_moving().await;
                }
                Err(CommitError::Store(error)) => return Err(error),
            }
        }
    }

    pub(super) async fn run(
        &self,
        version: &Version,
        invocation: &mut Invocation,
        tx: Tx,
        observes: bool,
    ) -> (Tx, Result<Verdict, Failure>) {
        invocation.standing = version.standing();
        invocation.tape = self.tape(&version.plugin.name, observes);
        let seen = trace::before(&self.traces, &version.plugin, invocation, &tx);
        let before = self.before(invocation, &tx);
        let report = self.run_watched(version, invocation, tx).await;
        if report.calls > 0 {
            self.keep_journal(invocation.id, observes, invocation.journal.clone());
        }
        self.note(version, invocation.id, observes, report.spent(), &report.result);
        let told =
            if observes { Err(Box::new(report)) } else { Told::of(version, invocation, report, self.max_attempts) };
        let (report, answered) = match told {
            Ok((told, tx)) => {
                let second = self.run_watched(version, &told.invocation, tx).await;
                told.settle(version, second)
            }
            Err(report) => (*report, None),
        };
        if report.calls > 0 {
            self.keep_journal(invocation.id, observes, invocation.journal.clone());
        }
        trace::note(&self.traces, seen, &version.plugin, invocation, observes, &report);
        self.take_note(invocation, version, observes, before, &report, answered);
        (report.tx, report.result.map_err(|error| Failure::of_plugin(version, error)))
    }

    /// The commit, with what is to be told to the sender and the timers once it is durable. Chat actions are told of, but
    /// not stored: nobody wants to see them later.
    pub(super) fn with_notices(&self, mut commit: Commit, held: Vec<Held>) -> Commit {
        let mut rows = Vec::new();
        let mut place = 0;
        let mut sets_timer = false;
        let mut broadcasts = false;
        let mut first_end = u64::MAX;
        let mut jobs = false;
        let mut actions = Vec::new();
        commit.ops.retain_mut(|op| {
            match op {
                Op::Append { prefix, value } => {
                    if let Some((lane, row)) = outbox::parse_lane_prefix(prefix).zip(OutboxRow::decode(value).ok()) {
                        let chats_own = self.sender.chats().lane(lane);
                        if chats_own != lane {
                            *prefix = outbox::lane_prefix(self.bot, chats_own);
                        }
                        let lane = chats_own;
                        if is_chat_action(&row.method) {
                            actions.push(row.params);
                            return false;
                        }
                        rows.push((place, lane, row.priority));
                    }
                    jobs |= job::is_queue(prefix);
                    place += 1;
                }
                Op::Put { key, .. } => {
                    sets_timer |= timer::parse_key(key).is_some();
                    broadcasts |= broadcast::is_wish(key);
                    first_end = first_end.min(expiry::parse_key(key).map_or(u64::MAX, |(due, _)| due));
                }
                Op::Delete { key } => jobs |= job::parse_head(key).is_some(),
            }
            true
        });
        let tells = sets_timer || broadcasts || jobs || first_end < u64::MAX;
        if tells || !rows.is_empty() || !actions.is_empty() || !held.is_empty() {
            let sender = self.sender.clone();
            let alarm = self.expiry.clone();
            let timer_set = sets_timer.then(|| self.timer_set.clone());
            let jobs_changed = jobs.then(|| self.jobs_changed.clone());
            commit.on_durable =
                Some(Box::new(move |numbers| {
                    sender.committed(rows.into_iter().filter_map(|(place, lane, priority)| {
                        numbers.get(place).map(|&number| (lane, number, priority))
                    }));
                    sender.act(actions);
                    held.into_iter().filter_map(|held| held.downcast::<Queued>().ok()).for_each(|queued| queued.keep());
                    if broadcasts {
                        sender.broadcasts_changed();
                    }
                    alarm.set(first_end);
                    for changed in timer_set.into_iter().chain(jobs_changed) {
                        changed.notify_one();
                    }
                }));
        }
        commit
    }

    async fn drop_expired(&self, head: &Head, row: &InboxRow, kind: &str) -> Result<Outcome, store::Error> {
        let age = Duration::from_millis(unix_millis().saturating_sub(row.received));
        tracing::debug!(event = head.number, lane = ?head.lane, kind, ?age, "an event came too late to matter and is dropped");
        self.end(head, row, |tx| tx.delete(head.key.clone())).await?;
        metrics::counter!("botyard_events_total", "outcome" => "expired").increment(1);
        Ok(Outcome::Done { more: head.more })
    }

    pub(super) async fn set_aside(
        &self,
        head: &Head,
        row: InboxRow,
        failure: Failure,
    ) -> Result<Outcome, store::Error> {
        tracing::error!(
            plugin = %failure.plugin, version = failure.version, event = head.number, lane = ?head.lane,
            attempts = row.attempts, reason = failure.reason, "an event became a dead letter"
        );
        let end = own::end_of(self.bot, &row.event);
        let dead = DeadRow {
            lane: head.lane,
            at: unix_millis(),
            attempts: row.attempts,
            plugin: failure.plugin.as_str().to_owned(),
            version: failure.version,
            reason: failure.reason,
            backtrace: failure.backtrace,
            event: row.event.clone(),
            rest: head.rest.iter().map(|member| member.raw.clone()).collect(),
        };
        let ended = self.end(head, &row, |tx| {
            tx.delete(head.key.clone());
            for member in &head.rest {
                tx.delete(member.key.clone());
            }
            tx.append(dead::bot_prefix(self.bot), dead.encode());
            if let Some(key) = end {
                tx.delete(key);
            }
        });
        if ended.await? {
            self.forget_journal(head.number);
            self.dead_added.notify_one();
            metrics::counter!("botyard_events_total", "outcome" => "dead").increment(1);
        }
        Ok(Outcome::Done { more: head.more })
    }

    /// Commits the end of an event that nobody has handled. False where somebody else has settled it.
    async fn end(&self, head: &Head, row: &InboxRow, write: impl FnOnce(&mut Tx)) -> Result<bool, store::Error> {
        let ended = self.settle_with(head, write, |commit| {
            self.answer(commit, row, head.number);
        });
        let ended = ended.await?;
        if ended {
            self.answered(row);
        }
        Ok(ended)
    }

    /// Commits what puts an event off, or does away with an order. False where somebody else has settled it.
    pub(super) async fn settle(&self, head: &Head, write: impl FnOnce(&mut Tx)) -> Result<bool, store::Error> {
        self.settle_with(head, write, |_| {}).await
    }

    async fn settle_with(
        &self,
        head: &Head,
        write: impl FnOnce(&mut Tx),
        complete: impl FnOnce(&mut Commit),
    ) -> Result<bool, store::Error> {
        let mut tx = Tx::new(&self.store);
        if !is_there(&mut tx, head)? {
            return Ok(false);
        }
        write(&mut tx);
        let mut commit = tx.into_commit();
        complete(&mut commit);
        match self.store.commit(self.with_notices(commit, Vec::new())).await {
            Ok(_) => Ok(true),
            Err(CommitError::Conflict { .. }) => Ok(false),
            Err(CommitError::Store(error)) => Err(error),
        }
    }

    /// A commit that read nothing, so that nothing can be in its way.
    pub(super) async fn must_commit(&self, commit: Commit) -> Result<(), store::Error> {
        match self.store.commit(commit).await {
            Ok(_) | Err(CommitError::Conflict { .. }) => Ok(()),
            Err(CommitError::Store(error)) => Err(error),
        }
    }
}

/// Whether the event still waits as it was found. Recorded as read.
fn is_there(tx: &mut Tx, head: &Head) -> Result<bool, store::Error> {
    if tx.get(&head.key)?.as_ref() != Some(&head.value) {
        return Ok(false);
    }
    for member in &head.rest {
        if tx.get(&member.key)?.as_ref() != Some(&member.value) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The end of the event itself, in the commit of what it brings about.
pub(super) fn take_event(tx: &mut Tx, head: &Head) -> Result<bool, store::Error> {
    let is_there = is_there(tx, head)?;
    tx.delete(head.key.clone());
    for member in &head.rest {
        tx.delete(member.key.clone());
    }
    Ok(is_there)
}

/// The same for every attempt at an event, and different from one event to the next.
pub(super) fn seed(bot: BotId, number: u64) -> u64 {
    // SplitMix64's finalizer.
    let mut z = number.wrapping_add(bot.0.cast_unsigned()).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
