//! Turns timers that have come due into events.
//!
//! A timer lies in the store until its time; then one commit takes it out, or moves it to its next time, and puts its
//! event into the inbox. What came due while the host was down fires at the start, a recurring one as its rule says.
//! While an event of a recurring timer waits to be handled, no other is put behind it: a plugin that is slow, or paused
//! for days, finds one.
//!
//! Plugins take turns, so that one with very many timers delays nobody else's. Those of a plugin that does not serve stay
//! where they are, and what came due meanwhile fires when it does.

mod declared;
mod set_back;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{mpsc, watch};

use self::set_back::Watch;
use super::parked;
use super::routes::Routes;
use super::run::Context;
use crate::clock::{self, unix_millis};
use crate::domain::{BotId, EventLane, PluginName};
use crate::recurrence::Recurrence;
use crate::store::rows::inbox::{self, InboxRow, StoredEvent};
use crate::store::rows::prefix_end;
use crate::store::rows::timer::{self, Repeat, TimerRow};
use crate::store::{self, Commit, CommitError, Op, Read, Store};

/// Looks again at least this often, so that a wall clock that was set forward is noticed.
const LONGEST_SLEEP: Duration = Duration::from_secs(30);
/// Timers that a plugin fires before it is another one's turn.
const TURN: usize = 16;

/// Runs until told to stop. `timer_set` of the context is notified when a commit has set a timer, and when other plugins
/// serve.
pub(super) async fn run(
    context: Arc<Context>,
    arrivals: mpsc::UnboundedSender<Vec<EventLane>>,
    mut stop: watch::Receiver<bool>,
) {
    let mut served: Option<Arc<Routes>> = None;
    let mut clock = clock::moves();
    // It may have been set back while no host ran.
    let mut wall = Watch::suspicious();
    loop {
        let routes = context.routes.load_full();
        if !served.as_ref().is_some_and(|served| Arc::ptr_eq(served, &routes)) {
            match declared::keep(&context.store, context.bot, &routes).await {
                Ok(()) => served = Some(routes.clone()),
                Err(error) => tracing::error!(%error, "the schedules that plugins declare can't be kept"),
            }
        }
        if let Err(error) = parked::release(&context, &routes, &arrivals).await {
            tracing::error!(%error, "events that waited for their plugin can't be read");
        }
        if wall.was_set_back(unix_millis())
            && let Err(error) = set_back::set_right(&context.store, context.bot, unix_millis()).await
        {
            tracing::error!(%error, "timers can't be set right after the clock was set back");
        }
        let sleep = match fire_due(&context, &routes, &arrivals).await {
            Ok(next) => next.map_or(LONGEST_SLEEP, |due| Duration::from_millis(due.saturating_sub(unix_millis()))),
            Err(error) => {
                tracing::error!(%error, "timers can't be read");
                LONGEST_SLEEP
            }
        };
        tokio::select! {
            () = tokio::time::sleep(sleep.min(LONGEST_SLEEP)) => {}
            () = context.timer_set.notified() => {}
            _ = clock.changed() => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
    }
}

/// When the next timer of a bot is due, whoever has set it, in Unix milliseconds.
///
/// # Errors
/// When the store can't be read.
pub fn next_due(store: &Store, bot: BotId) -> Result<Option<u64>, store::Error> {
    let mut first = None;
    for plugin in plugins(store, bot)? {
        let from = timer::plugin_prefix(bot, &plugin);
        let key = store.first_key(&from, &prefix_end(&from))?;
        let due = key.and_then(|key| timer::parse_key(&key)).map(|(_, due, _)| due);
        first = first.into_iter().chain(due).min();
    }
    Ok(first)
}

/// Who has timers.
fn plugins(store: &Store, bot: BotId) -> Result<Vec<PluginName>, store::Error> {
    let mut from = timer::bot_prefix(bot);
    let (to, mut plugins) = (prefix_end(&from), Vec::new());
    while let Some(key) = store.first_key(&from, &to)? {
        match timer::parse_key(&key) {
            Some((plugin, ..)) => {
                from = prefix_end(&timer::plugin_prefix(bot, &plugin));
                plugins.push(plugin);
            }
            None => from = [&key[..], &[0]].concat(),
        }
    }
    Ok(plugins)
}

/// Fires what is due, of each plugin a few at a time. Answers with the due time of the next timer.
async fn fire_due(
    context: &Context,
    routes: &Routes,
    arrivals: &mpsc::UnboundedSender<Vec<EventLane>>,
) -> Result<Option<u64>, store::Error> {
    loop {
        let (mut next, mut is_more_due) = (None, false);
        for plugin in plugins(&context.store, context.bot)? {
            if routes.entry(&plugin).is_none() {
                continue;
            }
            let due = take_turn(context, &plugin, arrivals).await?;
            is_more_due |= due.is_some_and(|due| due <= unix_millis());
            next = next.into_iter().chain(due).min();
        }
        if !is_more_due {
            return Ok(next);
        }
        tokio::task::yield_now().await;
    }
}

/// Fires the next few timers of a plugin that are due. Answers with the due time of the one after these.
async fn take_turn(
    context: &Context,
    plugin: &PluginName,
    arrivals: &mpsc::UnboundedSender<Vec<EventLane>>,
) -> Result<Option<u64>, store::Error> {
    let from = timer::plugin_prefix(context.bot, plugin);
    let rows = context.store.range(&from, &prefix_end(&from), TURN + 1)?;
    for (place, (key, value)) in rows.into_iter().enumerate() {
        let Some((_, due, id)) = timer::parse_key(&key) else { continue };
        let now = unix_millis();
        if due > now || place == TURN {
            return Ok(Some(due));
        }
        fire(context, (key, value), (due, id), now, arrivals).await?;
    }
    // A recurring one has a next time now.
    let first = context.store.first_key(&from, &prefix_end(&from))?;
    Ok(first.and_then(|key| timer::parse_key(&key)).map(|(_, due, _)| due))
}

async fn fire(
    context: &Context,
    (key, value): (Bytes, Bytes),
    (due, id): (u64, u64),
    now: u64,
    arrivals: &mpsc::UnboundedSender<Vec<EventLane>>,
) -> Result<(), store::Error> {
    let (store, bot) = (&context.store, context.bot);
    let row = match TimerRow::decode(&value) {
        Ok(row) => row,
        Err(error) => {
            // It would stand before all others of its plugin for ever.
            tracing::error!(%error, id, "a timer can't be read and is dropped");
            store.submit(Commit { ops: vec![Op::Delete { key: key.to_vec() }], ..Commit::default() });
            return store.flushed().await;
        }
    };
    // It may have been cancelled in between.
    let mut reads = vec![Read::Value { key: key.to_vec(), seen: Some(value) }];
    let mut ops: Vec<Op> = row.keys(bot, due, id).into_iter().map(|key| Op::Delete { key }).collect();
    let fires = match &row.repeat {
        None => true,
        Some(repeat) => {
            let waiting_key = timer::waiting_key(bot, &row.plugin, id);
            let waiting = store.get(&waiting_key)?;
            let (counts, next) = go_on(&row, repeat, due, now);
            let puts = next.into_iter().flat_map(|next| row.rows(bot, next, id));
            ops.extend(puts.map(|(key, value)| Op::Put { key, value }));
            let fires = counts && waiting.is_none();
            if fires {
                ops.push(Op::Put { key: waiting_key.clone(), value: Vec::new() });
            }
            reads.push(Read::Value { key: waiting_key, seen: waiting });
            fires
        }
    };
    let lane = row.lane;
    let mut commit = Commit { reads, ops, on_durable: None };
    if fires {
        let event = StoredEvent::Timer {
            plugin: row.plugin,
            conversation: row.conversation,
            id,
            name: row.name,
            payload: row.payload,
            due,
        };
        let row = InboxRow::new(event, now);
        commit.ops.push(Op::Append { prefix: inbox::lane_prefix(bot, lane), value: row.encode() });
        let arrivals = arrivals.clone();
        commit.on_durable = Some(Box::new(move |_| {
            // Nobody listens any more while the host stops; the row is in the inbox.
            arrivals.send(vec![lane]).ok();
        }));
    }
    match store.commit(commit).await {
        Ok(_) => {
            let outcome = if fires { "fired" } else { "missed" };
            metrics::counter!("botyard_timers_total", "outcome" => outcome).increment(1);
            Ok(())
        }
        Err(CommitError::Conflict { .. }) => Ok(()),
        Err(CommitError::Store(error)) => Err(error),
    }
}

/// Whether this time of a recurring timer counts, and when the next one is.
fn go_on(row: &TimerRow, repeat: &Repeat, due: u64, now: u64) -> (bool, Option<u64>) {
    match repeat.rule.parse() {
        Ok(recurrence) => Recurrence::turn(&recurrence, repeat.misfire, due, now),
        // It was fine when it was set; the time zone may have gone from the system's database.
        Err(problem) => {
            tracing::error!(plugin = %row.plugin, timer = row.name, problem, "a recurring timer is tried again in an hour");
            (false, Some(now.saturating_add(3_600_000)))
        }
    }
}
