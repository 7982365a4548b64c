//! `botyard:schedule/timers`: timers that are set when the run commits.
//!
//! A timer's id must be known before that, and be the same on every attempt, so it is made of the event's
//! number and a counter.

use std::time::Duration;

use super::{DESCRIBING, Host, Run, failed};
use crate::domain::{EventLane, Lane, PluginName};
use crate::plugin::Limit;
use crate::plugin::bindings::botyard::schedule::timers as wit;
use crate::recurrence::{Misfire, Rule};
use crate::store::rows::timer::{self, Owner, Repeat, TimerRow};
use crate::store::rows::{number_of, prefix_end};

/// Timers that the runs of one event can set.
const PER_EVENT: u64 = 64;
/// Bytes of a timer's name.
const NAME_BYTES: usize = 64;
/// Rows that are read at once.
const PAGE: usize = 256;

impl wit::Host for Host {
    fn after(&mut self, name: String, delay_ms: u64, payload: Vec<u8>) -> wasmtime::Result<Result<u64, String>> {
        let now = self.run.as_ref().map_or(0, |run| run.now);
        self.set_timer(name, (now.saturating_add(delay_ms), now), wit::Owner::Conversation, None, payload)
    }

    fn at(&mut self, name: String, unix_ms: u64, payload: Vec<u8>) -> wasmtime::Result<Result<u64, String>> {
        self.set_timer(name, (unix_ms, 0), wit::Owner::Conversation, None, payload)
    }

    fn cron(
        &mut self,
        name: String,
        expression: String,
        zone: String,
        misfire: wit::Misfire,
        owner: wit::Owner,
        payload: Vec<u8>,
    ) -> wasmtime::Result<Result<u64, String>> {
        self.repeat(name, Rule::Cron { expression, zone }, misfire, owner, payload)
    }

    fn every(
        &mut self,
        name: String,
        interval_ms: u64,
        misfire: wit::Misfire,
        owner: wit::Owner,
        payload: Vec<u8>,
    ) -> wasmtime::Result<Result<u64, String>> {
        self.repeat(name, Rule::Every(Duration::from_millis(interval_ms)), misfire, owner, payload)
    }

    fn cancel(&mut self, id: u64) -> wasmtime::Result<bool> {
        let Some(run) = &mut self.run else { return Ok(false) };
        run.charge_effect(0).map_err(wasmtime::Error::msg)?;
        let index = run.tx.get(&timer::index_key(run.bot, &self.context.name, id)).map_err(failed)?;
        let Some(due) = index.and_then(|due| timer::parse_due(&due)) else { return Ok(false) };
        let Some(row) = read(run, &self.context.name, due, id)? else { return Ok(false) };
        if row.owner == Owner::Manifest {
            return Ok(false);
        }
        remove(run, &row, due, id);
        Ok(true)
    }

    fn cancel_by_name(&mut self, name: String, owner: wit::Owner) -> wasmtime::Result<u32> {
        let Some(run) = &mut self.run else { return Ok(0) };
        if check_name(&name).is_err() {
            return Ok(0);
        }
        let found = named(run, &self.context.name, owner.into(), &name)?;
        for (row, due, id) in &found {
            run.charge_effect(0).map_err(wasmtime::Error::msg)?;
            remove(run, row, *due, *id);
        }
        Ok(u32::try_from(found.len()).unwrap_or(u32::MAX))
    }

    fn list(&mut self, owner: wit::Owner) -> wasmtime::Result<Vec<wit::Entry>> {
        let Some(run) = &mut self.run else { return Ok(Vec::new()) };
        let prefix = timer::owner_prefix(run.bot, &self.context.name, owner.into(), &run.conversation);
        let found = below(run, &self.context.name, prefix)?;
        Ok(found.into_iter().map(|(row, due, id)| entry(row, due, id)).collect())
    }
}

impl Host {
    fn repeat(
        &mut self,
        name: String,
        rule: Rule,
        misfire: wit::Misfire,
        owner: wit::Owner,
        payload: Vec<u8>,
    ) -> wasmtime::Result<Result<u64, String>> {
        let Some(run) = &mut self.run else { return Ok(Err(DESCRIBING.to_owned())) };
        if let Err(problem) = check_name(&name) {
            return Ok(Err(problem));
        }
        let due = match rule.parse() {
            Ok(recurrence) => recurrence.first_after(run.now),
            Err(problem) => return Ok(Err(problem)),
        };
        let Some(due) = due else { return Ok(Err("the rule has no time that is ever reached".to_owned())) };
        for (row, due, id) in named(run, &self.context.name, owner.into(), &name)? {
            if row.repeat.is_some() {
                remove(run, &row, due, id);
            }
        }
        self.set_timer(name, (due, 0), owner, Some(Repeat { rule, misfire: misfire.into() }), payload)
    }

    fn set_timer(
        &mut self,
        name: String,
        (due, since): (u64, u64),
        owner: wit::Owner,
        repeat: Option<Repeat>,
        payload: Vec<u8>,
    ) -> wasmtime::Result<Result<u64, String>> {
        let Some(run) = &mut self.run else { return Ok(Err(DESCRIBING.to_owned())) };
        let (size, limit) = (payload.len(), self.context.limits.value);
        if size as u64 > limit {
            return Ok(Err(format!(
                "the payload has {size} bytes; at most {limit} are kept: {}",
                Limit::Value.hit(&self.context.name)
            )));
        }
        if let Err(problem) = check_name(&name).and_then(|()| run.charge_effect(size)) {
            return Ok(Err(problem));
        }
        run.remember_language()?;
        let plugin = &self.context.name;
        let (conversation, lane) = match owner {
            wit::Owner::Conversation => (run.conversation, run.lane),
            wit::Owner::Plugin => (Default::default(), EventLane::whole(Lane::of_task(plugin))),
        };
        // One that is due already is not before those that others have set.
        let due = due.max(run.now);
        while run.timers < PER_EVENT {
            let id = run.event.wrapping_mul(PER_EVENT) + run.timers;
            run.timers += 1;
            // The plugin may be asked twice about one event, and counts from the same number then.
            if run.tx.peek(&timer::index_key(run.bot, plugin, id)).map_err(failed)?.is_some() {
                continue;
            }
            let plugin = plugin.clone();
            let row = TimerRow { plugin, conversation, lane, name, payload, owner: owner.into(), repeat, since };
            let key = timer::key(run.bot, &self.context.name, due, id);
            if let Err(problem) = run.charge_timer(&self.context, &key, row.encode().len()) {
                return Ok(Err(problem));
            }
            for (key, value) in row.rows(run.bot, due, id) {
                run.tx.put(key, value);
            }
            return Ok(Ok(id));
        }
        Ok(Err(format!("one event can set at most {PER_EVENT} timers")))
    }
}

fn check_name(name: &str) -> Result<(), String> {
    if name.len() > NAME_BYTES {
        return Err(format!("the timer's name has {} bytes; at most {NAME_BYTES} are kept", name.len()));
    }
    if name.contains('\0') {
        return Err("the timer's name has a zero byte in it".to_owned());
    }
    Ok(())
}

fn read(run: &mut Run, plugin: &PluginName, due: u64, id: u64) -> wasmtime::Result<Option<TimerRow>> {
    let value = run.tx.get(&timer::key(run.bot, plugin, due, id)).map_err(failed)?;
    run.charge_read(value.as_ref().map_or(0, bytes::Bytes::len))?;
    value.map(|value| TimerRow::decode(&value).map_err(failed)).transpose()
}

fn named(run: &mut Run, plugin: &PluginName, owner: Owner, name: &str) -> wasmtime::Result<Vec<(TimerRow, u64, u64)>> {
    let prefix = timer::name_prefix(run.bot, plugin, owner, &run.conversation, name);
    below(run, plugin, prefix)
}

/// The timers whose names are found under a prefix: all of them, as far as the run may read.
fn below(run: &mut Run, plugin: &PluginName, prefix: Vec<u8>) -> wasmtime::Result<Vec<(TimerRow, u64, u64)>> {
    let (end, mut next, mut found) = (prefix_end(&prefix), Some(prefix), Vec::new());
    while let Some(from) = next {
        let page = run.tx.page(&from, &end, PAGE).map_err(failed)?;
        run.charge_read(page.bytes)?;
        for (key, due) in page.rows {
            let (Some(id), Some(due)) = (number_of(&key), timer::parse_due(&due)) else { continue };
            if let Some(row) = read(run, plugin, due, id)? {
                found.push((row, due, id));
            }
        }
        next = page.next;
    }
    Ok(found)
}

fn remove(run: &mut Run, row: &TimerRow, due: u64, id: u64) {
    run.credit_timer(&timer::key(run.bot, &row.plugin, due, id));
    for key in row.keys(run.bot, due, id) {
        run.tx.delete(key);
    }
}

fn entry(row: TimerRow, due: u64, id: u64) -> wit::Entry {
    let rule = match row.repeat.map(|repeat| repeat.rule) {
        None => wit::Rule::Once,
        Some(Rule::Cron { expression, zone }) => wit::Rule::Cron((expression, zone)),
        Some(Rule::Every(interval)) => wit::Rule::EveryMs(u64::try_from(interval.as_millis()).unwrap_or(u64::MAX)),
    };
    wit::Entry { id, name: row.name, due, rule, payload: row.payload }
}

impl From<wit::Owner> for Owner {
    fn from(owner: wit::Owner) -> Self {
        match owner {
            wit::Owner::Conversation => Self::Conversation,
            wit::Owner::Plugin => Self::Plugin,
        }
    }
}

impl From<wit::Misfire> for Misfire {
    fn from(misfire: wit::Misfire) -> Self {
        match misfire {
            wit::Misfire::Once => Self::Once,
            wit::Misfire::Skip => Self::Skip,
        }
    }
}
