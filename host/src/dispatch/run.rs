//! One event, from its inbox row to the commit that makes its effects true.
//!
//! Whatever happens, exactly one of five things has been committed at the end: the effects, a counted failed
//! attempt, a dead letter, the event's removal since it came too late, or nothing at all (then the event is still
//! waiting as it was).

use std::collections::{BTreeSet, HashMap};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use bytes::Bytes;
use futures_util::FutureExt;
use tokio::sync::Notify;

use super::age;
use super::hot::HotKeys;
use super::rehearse::{self, Witness};
use super::routes::{Candidate, Facts, Routes};
use crate::backoff;
use crate::clock::unix_millis;
use crate::domain::{BotId, Conversation, Lane, PluginName, UpdateView};
use crate::plugin::{self, Invocation, Journal, Outbound, Plugin, RunError, Verdict};
use crate::sender::{Sender, is_chat_action};
use crate::store::rows::dead::{self, DeadRow};
use crate::store::rows::fsm::{self, StateRow};
use crate::store::rows::inbox::{self, InboxRow, StoredEvent};
use crate::store::rows::outbox::{self, OutboxRow};
use crate::store::rows::{prefix_end, timer};
use crate::store::{self, Commit, CommitError, Op, Store, Tx};

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
    /// Direct calls that events have already made, so that another attempt does not repeat them. Those of runs that
    /// only look on are apart: a plugin may see an event both ways.
    pub(super) journals: Mutex<HashMap<(u64, bool), Journal>>,
    pub(super) timer_set: Arc<Notify>,
    pub(super) witness: Witness,
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
    /// To be tried (again) after this time.
    Rest(Duration),
}

/// Why an event was not handled this time.
pub(super) struct Failure {
    plugin: PluginName,
    version: String,
    reason: String,
    backtrace: String,
    retry: bool,
    /// Not a failure of anybody: the plugin is paused.
    paused: bool,
}

/// The first event of a lane.
pub(super) struct Head {
    pub(super) key: Vec<u8>,
    pub(super) lane: Lane,
    pub(super) number: u64,
    pub(super) value: Bytes,
    pub(super) more: bool,
}

impl Context {
    /// Handles the event at the head of a lane.
    pub(super) async fn turn(&self, lane: Lane) -> Result<Outcome, store::Error> {
        let Some(head) = self.head(lane)? else { return Ok(Outcome::Empty) };
        let mut row = match InboxRow::decode(&head.value) {
            Ok(row) => row,
            Err(error) => {
                let row = InboxRow {
                    attempts: 0,
                    not_before: 0,
                    received: unix_millis(),
                    event: StoredEvent::Update(head.value.to_vec()),
                };
                let failure = Failure::of_host(format!("the stored event can't be read: {error}"));
                return self.set_aside(&head, row, failure).await;
            }
        };
        if let Some(rest) = rest(row.not_before, unix_millis()) {
            return Ok(Outcome::Rest(rest));
        }
        if row.attempts == 0
            && let Some(kind) = age::expired(&row, unix_millis())
        {
            return self.drop_expired(&head, &row, &kind).await;
        }
        let handled = AssertUnwindSafe(self.handle(&head, &row)).catch_unwind().await;
        let failure = match handled {
            Ok(Ok(Ok(()))) => {
                self.forget_journal(head.number);
                return Ok(Outcome::Done { more: head.more });
            }
            Ok(Ok(Err(failure))) if failure.paused => {
                tracing::debug!(plugin = %failure.plugin, event = head.number, ?lane, "an event waits for a paused plugin");
                return Ok(Outcome::Paused);
            }
            Ok(Ok(Err(failure))) => failure,
            Ok(Err(error)) => return Err(error),
            Err(_) => Failure::of_host("the host panicked; its log says where".to_owned()),
        };
        row.attempts += 1;
        tracing::warn!(
            plugin = %failure.plugin, version = failure.version, event = head.number, ?lane, attempt = row.attempts,
            reason = failure.reason, "an event was not handled"
        );
        if !failure.retry || row.attempts >= self.max_attempts {
            return self.set_aside(&head, row, failure).await;
        }
        let rest = backoff::delay(row.attempts, rand::random());
        row.not_before = unix_millis().saturating_add(millis(rest));
        if age::expired(&row, row.not_before).is_some() {
            // It would be too late for another attempt; a failure is kept all the same, for whoever mends it.
            return self.set_aside(&head, row, failure).await;
        }
        let ops = vec![Op::Put { key: head.key, value: row.encode() }];
        self.must_commit(Commit { ops, ..Commit::default() }).await?;
        metrics::counter!("botyard_events_total", "outcome" => "retried").increment(1);
        Ok(Outcome::Rest(rest))
    }

    fn head(&self, lane: Lane) -> Result<Option<Head>, store::Error> {
        let from = inbox::lane_prefix(self.bot, lane);
        let mut rows = self.store.range(&from, &prefix_end(&from), 2)?.into_iter();
        let Some((key, value)) = rows.next() else { return Ok(None) };
        let number = inbox::parse_key(&key).map_or(0, |(_, number)| number);
        Ok(Some(Head { key: key.to_vec(), lane, number, value, more: rows.next().is_some() }))
    }

    /// Runs the plugins and commits, again and again while others change what was read.
    async fn handle(&self, head: &Head, row: &InboxRow) -> Result<Result<(), Failure>, store::Error> {
        let mut contended = BTreeSet::new();
        loop {
            let guards = self.hot.lock(&contended).await;
            let tx = match self.run_plugins(head, row).await? {
                Ok(tx) => tx,
                Err(failure) => return Ok(Err(failure)),
            };
            let result = self.store.commit(self.with_notices(tx)).await;
            drop(guards);
            match result {
                Ok(_) => return Ok(Ok(())),
                Err(CommitError::Conflict { key }) => {
                    metrics::counter!("botyard_commit_conflicts_total").increment(1);
                    contended.insert(key);
                }
                Err(CommitError::Store(error)) => return Err(error),
            }
        }
    }

    /// Offers the event to the plugins until one takes it. The transaction holds the effects of all runs, and the
    /// end of the event itself.
    pub(super) async fn run_plugins(&self, head: &Head, row: &InboxRow) -> Result<Result<Tx, Failure>, store::Error> {
        let mut tx = Tx::new(&self.store);
        tx.delete(head.key.clone());
        let now = unix_millis();
        let mut invocation = Invocation {
            id: head.number,
            attempt: row.attempts + 1,
            now,
            seed: seed(self.bot, head.number),
            conversation: Conversation::default(),
            lane: head.lane,
            bot: self.bot,
            journal: self.journal(head.number, false),
            matched: Vec::new(),
            event: plugin::Event::Other((String::new(), String::new())),
        };
        let (routes, paused) = (self.routes.load_full(), self.paused.load_full());
        let raw = match &row.event {
            StoredEvent::Update(raw) => raw,
            StoredEvent::Timer { plugin, conversation, id, name, payload, due } => {
                let Some(plugin) = routes.find(plugin) else {
                    return Ok(Err(Failure::of_host(format!(
                        "plugin `{plugin}`, which set this timer, is not configured"
                    ))));
                };
                if paused.contains(&plugin.name) {
                    return Ok(Err(Failure::paused(&plugin.name)));
                }
                invocation.conversation = *conversation;
                invocation.event = plugin::Event::Timer(plugin::Timer {
                    id: *id,
                    name: name.clone(),
                    payload: payload.clone(),
                    due: *due,
                });
                let (tx, result) = self.run(plugin, &invocation, tx, false).await;
                return Ok(result.map(|_| tx));
            }
        };
        let raw = String::from_utf8_lossy(raw);
        let view = match UpdateView::parse(&raw) {
            Ok(view) => view,
            Err(error) => return Ok(Err(Failure::of_host(format!("the update can't be read: {error}")))),
        };
        let username = self.username.load();
        let command = view.command().filter(|command| command.is_for(username.as_deref().map(String::as_str)));
        let command_name = command.map(|command| command.name.to_ascii_lowercase());
        let facts = Facts { view: &view, command: command_name.as_deref() };
        let candidates = routes.candidates(&facts, |plugin| self.open_state(&mut tx, plugin, &view, now))?;
        if candidates.is_empty() {
            metrics::counter!("botyard_events_total", "outcome" => "unrouted").increment(1);
            return Ok(Ok(tx));
        }
        // Whoever would be asked first; so that waiting costs no run, of an observer say.
        if let Some(first) = candidates.iter().find(|candidate| !candidate.observes)
            && paused.contains(&first.plugin.name)
        {
            return Ok(Err(Failure::paused(&first.plugin.name)));
        }
        invocation.event = plugin::Event::Update(plugin::Update {
            id: view.id.map_or(0, |id| id.0),
            kind: view.kind.clone().into_owned(),
            chat_id: view.chat.map(|id| id.0),
            chat_type: view.chat_type.as_deref().map(str::to_owned),
            thread_id: view.thread.map(|id| id.0),
            message_id: view.message_id,
            user_id: view.user.map(|id| id.0),
            locale: view.language.as_deref().unwrap_or(&self.default_locale).to_owned(),
            text: view.text.as_deref().map(str::to_owned),
            command: command
                .zip(command_name.clone())
                .map(|(command, name)| plugin::Command { name, args: command.args.to_owned() }),
            callback_data: view.callback_data.as_deref().map(str::to_owned),
            raw: raw.clone().into_owned(),
        });
        for Candidate { plugin, observes, matched } in candidates {
            if paused.contains(&plugin.name) {
                if observes {
                    // As with one that fails: who only looks on must not keep the event from those that handle it.
                    continue;
                }
                return Ok(Err(Failure::paused(&plugin.name)));
            }
            invocation.conversation = conversation(&plugin, &view);
            invocation.matched = matched;
            invocation.journal = self.journal(head.number, observes);
            let before = tx.savepoint();
            let (after, result) = self.run(&plugin, &invocation, tx, observes).await;
            tx = after;
            match result {
                Ok(Verdict::Done) if !observes => {
                    metrics::counter!("botyard_events_total", "outcome" => "handled").increment(1);
                    return Ok(Ok(tx));
                }
                Ok(Verdict::Done) => {}
                Ok(Verdict::Pass) => tx.roll_back(before),
                Err(failure) if observes => {
                    // Who only looks on must not keep the event from those that handle it.
                    tracing::warn!(plugin = %failure.plugin, event = head.number, reason = failure.reason, "an observer failed");
                    tx.roll_back(before);
                }
                Err(failure) => return Ok(Err(failure)),
            }
        }
        metrics::counter!("botyard_events_total", "outcome" => "passed").increment(1);
        Ok(Ok(tx))
    }

    async fn run(
        &self,
        plugin: &Arc<Plugin>,
        invocation: &Invocation,
        tx: Tx,
        observes: bool,
    ) -> (Tx, Result<Verdict, Failure>) {
        let report = plugin.run(invocation, tx, self.outbound.clone()).await;
        rehearse::note(&self.witness, plugin, invocation, &report, observes);
        if report.calls > 0 {
            self.keep_journal(invocation.id, observes, invocation.journal.clone());
        }
        metrics::histogram!("botyard_run_cpu_seconds", "plugin" => plugin.name.as_str().to_owned())
            .record(report.cpu.as_secs_f64());
        let result = report.result.map_err(|error| Failure::of_plugin(plugin, error));
        (report.tx, result)
    }

    fn open_state(
        &self,
        tx: &mut Tx,
        plugin: &Plugin,
        view: &UpdateView<'_>,
        now: u64,
    ) -> Result<Option<String>, store::Error> {
        let key = fsm::key(self.bot, &plugin.name, &conversation(plugin, view));
        // Recorded as read: if another run changes the state meanwhile, this routing was wrong.
        let Some(value) = tx.get(&key)? else { return Ok(None) };
        Ok(StateRow::decode(&value).ok().filter(|row| !row.is_expired(now)).map(|row| row.name))
    }

    /// The commit, with what is to be told to the sender and the timers once it is durable. Chat actions are told of, but
    /// not stored: nobody wants to see them later.
    fn with_notices(&self, tx: Tx) -> Commit {
        let mut commit = tx.into_commit();
        let mut rows = Vec::new();
        let mut place = 0;
        let mut sets_timer = false;
        let mut actions = Vec::new();
        commit.ops.retain(|op| {
            match op {
                Op::Append { prefix, value } => {
                    if let Some((lane, row)) = outbox::parse_lane_prefix(prefix).zip(OutboxRow::decode(value).ok()) {
                        if is_chat_action(&row.method) {
                            actions.push(row.params);
                            return false;
                        }
                        rows.push((place, lane, row.priority));
                    }
                    place += 1;
                }
                Op::Put { key, .. } => sets_timer |= timer::parse_key(key).is_some(),
                Op::Delete { .. } => {}
            }
            true
        });
        if sets_timer || !rows.is_empty() || !actions.is_empty() {
            let sender = self.sender.clone();
            let timer_set = sets_timer.then(|| self.timer_set.clone());
            commit.on_durable =
                Some(Box::new(move |numbers| {
                    sender.committed(rows.into_iter().filter_map(|(place, lane, priority)| {
                        numbers.get(place).map(|&number| (lane, number, priority))
                    }));
                    sender.act(actions);
                    if let Some(timer_set) = timer_set {
                        timer_set.notify_one();
                    }
                }));
        }
        commit
    }

    async fn drop_expired(&self, head: &Head, row: &InboxRow, kind: &str) -> Result<Outcome, store::Error> {
        let age = Duration::from_millis(unix_millis().saturating_sub(row.received));
        tracing::debug!(event = head.number, lane = ?head.lane, kind, ?age, "an event came too late to matter and is dropped");
        let ops = vec![Op::Delete { key: head.key.clone() }];
        self.must_commit(Commit { ops, ..Commit::default() }).await?;
        metrics::counter!("botyard_events_total", "outcome" => "expired").increment(1);
        Ok(Outcome::Done { more: head.more })
    }

    async fn set_aside(&self, head: &Head, row: InboxRow, failure: Failure) -> Result<Outcome, store::Error> {
        tracing::error!(
            plugin = %failure.plugin, version = failure.version, event = head.number, lane = ?head.lane,
            attempts = row.attempts, reason = failure.reason, "an event became a dead letter"
        );
        let dead = DeadRow {
            lane: head.lane,
            at: unix_millis(),
            attempts: row.attempts,
            plugin: failure.plugin.as_str().to_owned(),
            version: failure.version,
            reason: failure.reason,
            backtrace: failure.backtrace,
            event: row.event,
        };
        let ops = vec![
            Op::Delete { key: head.key.clone() },
            Op::Append { prefix: dead::bot_prefix(self.bot), value: dead.encode() },
        ];
        self.must_commit(Commit { ops, ..Commit::default() }).await?;
        self.forget_journal(head.number);
        metrics::counter!("botyard_events_total", "outcome" => "dead").increment(1);
        Ok(Outcome::Done { more: head.more })
    }

    /// A commit that read nothing, so that nothing can be in its way.
    async fn must_commit(&self, commit: Commit) -> Result<(), store::Error> {
        match self.store.commit(commit).await {
            Ok(_) | Err(CommitError::Conflict { .. }) => Ok(()),
            Err(CommitError::Store(error)) => Err(error),
        }
    }

    fn journal(&self, event: u64, observes: bool) -> Journal {
        let journals = self.journals.lock().unwrap_or_else(PoisonError::into_inner);
        journals.get(&(event, observes)).cloned().unwrap_or_default()
    }

    fn keep_journal(&self, event: u64, observes: bool, journal: Journal) {
        self.journals.lock().unwrap_or_else(PoisonError::into_inner).insert((event, observes), journal);
    }

    pub(super) fn forget_journal(&self, event: u64) {
        let mut journals = self.journals.lock().unwrap_or_else(PoisonError::into_inner);
        journals.remove(&(event, false));
        journals.remove(&(event, true));
    }
}

impl Failure {
    /// In words.
    pub(super) fn reason(self) -> String {
        self.reason
    }

    /// What no further attempt would change.
    fn of_host(reason: String) -> Self {
        let (version, backtrace) = (String::new(), String::new());
        Self { plugin: PluginName::new(""), version, reason, backtrace, retry: false, paused: false }
    }

    /// No attempt was made.
    fn paused(plugin: &PluginName) -> Self {
        Self { plugin: plugin.clone(), retry: true, paused: true, ..Self::of_host("it is paused".to_owned()) }
    }

    fn of_plugin(plugin: &Plugin, error: RunError) -> Self {
        let retry = !matches!(error, RunError::Refused { retry: false, .. });
        Self {
            plugin: plugin.name.clone(),
            version: plugin.version.to_string(),
            reason: error.to_string(),
            backtrace: match error {
                RunError::Trapped { backtrace, .. } | RunError::Panicked { backtrace, .. } => backtrace,
                _ => String::new(),
            },
            retry,
            paused: false,
        }
    }
}

fn conversation(plugin: &Plugin, view: &UpdateView<'_>) -> Conversation {
    Conversation::of(plugin.manifest.key, view.chat, view.user, view.thread)
}

/// The same for every attempt at an event, and different from one event to the next.
fn seed(bot: BotId, number: u64) -> u64 {
    // SplitMix64's finalizer.
    let mut z = number.wrapping_add(bot.0.cast_unsigned()).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// How long an event has still to wait at `now`. More than the longest backoff is none: the clock was set back.
fn rest(not_before: u64, now: u64) -> Option<Duration> {
    let left = Duration::from_millis(not_before.checked_sub(now)?);
    (!left.is_zero() && left <= backoff::CAP).then_some(left)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_was_set_back_holds_no_event() {
        let day = 24 * 3600 * 1000;
        for (not_before, now, wait) in [
            (0, 5, None),
            (5, 5, None),
            (7, 5, Some(Duration::from_millis(2))),
            (30_005, 5, Some(backoff::CAP)),
            (5 + day, 5, None),
            (u64::MAX, 0, None),
        ] {
            assert_eq!(rest(not_before, now), wait);
        }
    }
}
