//! The recurring timers that manifests declare: kept for the plugins that serve, and for no others.
//!
//! One that has not changed keeps its next time, so what was missed while the host was down is made up for.

use std::collections::BTreeMap;

use crate::clock::unix_millis;
use crate::dispatch::routes::{Routes, Version};
use crate::domain::{BotId, Conversation, EventLane, Lane, PluginName};
use crate::plugin::Schedule;
use crate::store::rows::number_of;
use crate::store::rows::timer::{self, Owner, Repeat, TimerRow};
use crate::store::{self, Commit, CommitError, Op, Store};

/// Makes the store's declared timers those of the plugins that serve.
pub(super) async fn keep(store: &Store, bot: BotId, routes: &Routes) -> Result<(), store::Error> {
    let mut wanted: BTreeMap<u64, TimerRow> = BTreeMap::new();
    for entry in routes.entries() {
        // With a version on trial: of the one that is given the plugin's own events.
        let Some(Version { plugin, .. }) = routes.find(&entry.plugin.name, &Conversation::default(), 0) else {
            continue;
        };
        wanted.extend(plugin.manifest.schedules.iter().map(|schedule| declared(&plugin.name, schedule)));
    }
    let mut ops = Vec::new();
    for (key, due) in store.scan_prefix(&timer::declared_prefix(bot), usize::MAX)? {
        let (Some(plugin), Some(id), Some(due)) = (timer::declared_by(&key), number_of(&key), timer::parse_due(&due))
        else {
            continue;
        };
        let row = store.get(&timer::key(bot, &plugin, due, id))?.and_then(|value| TimerRow::decode(&value).ok());
        if row.is_some() && wanted.get(&id) == row.as_ref() {
            wanted.remove(&id);
            continue;
        }
        ops.push(Op::Delete { key: key.to_vec() });
        if let Some(row) = row {
            tracing::debug!(plugin = %row.plugin, timer = row.name, "a declared schedule has changed or gone");
            ops.extend(row.keys(bot, due, id).map(|key| Op::Delete { key }));
        }
    }
    let now = unix_millis();
    for (id, row) in wanted {
        let repeat = row.repeat.as_ref().expect("what is declared recurs");
        let due = repeat.rule.parse().ok().and_then(|recurrence| recurrence.first_after(now));
        let puts = due.into_iter().flat_map(|due| row.rows(bot, due, id));
        ops.extend(puts.map(|(key, value)| Op::Put { key, value }));
    }
    if ops.is_empty() {
        return Ok(());
    }
    // Only this task touches these rows, so nothing can have changed meanwhile.
    match store.commit(Commit { ops, ..Commit::default() }).await {
        Ok(_) | Err(CommitError::Conflict { .. }) => Ok(()),
        Err(CommitError::Store(error)) => Err(error),
    }
}

fn declared(plugin: &PluginName, schedule: &Schedule) -> (u64, TimerRow) {
    let row = TimerRow {
        plugin: plugin.clone(),
        conversation: Conversation::default(),
        lane: EventLane::whole(Lane::of_task(plugin)),
        name: schedule.name.clone(),
        payload: Vec::new(),
        owner: Owner::Manifest,
        repeat: Some(Repeat { rule: schedule.rule.clone(), misfire: schedule.misfire }),
        since: 0,
    };
    (id(plugin, &schedule.name), row)
}

/// Always the same for a name, and never that of a timer that a run has set: those are made of small numbers.
fn id(plugin: &PluginName, name: &str) -> u64 {
    let bytes = plugin.as_str().bytes().chain([0]).chain(name.bytes());
    let hash =
        bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    hash | 1 << 63
}
