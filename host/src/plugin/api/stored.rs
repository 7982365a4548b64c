//! How much more a plugin has after a run than before it: `limits.stored`, `limits.timers` and `limits.queued`.
//!
//! What is there already, the store counts. Nothing of it is read by the run, so runs of one plugin are not in each other's
//! way; but what they are going to add is reserved until it is committed, so that many at once don't go beyond the limit
//! together. What was there before a limit was lowered stays, and may be made smaller.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Run;
use crate::domain::{BotId, PluginName};
use crate::plugin::version::Context;
use crate::plugin::{CallError, Limit};
use crate::store::rows::counted::Ledger;
use crate::store::{Room, Tx};

/// Calls are sent all the time: whoever finds too many waiting looks again after this.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// That of one run, by what is counted.
#[derive(Default)]
pub(in crate::plugin) struct Growth(BTreeMap<Ledger, Grown>);

#[derive(Default)]
struct Grown {
    /// Below 0 where it lets go of more than it adds.
    by: i64,
    room: Option<Room>,
}

/// There would be too much: so much is there already.
struct Full(u64);

impl Growth {
    /// Of a run for a timer that rang: it is done with, so that another one can be set in its place.
    pub(super) fn after_timer(payload: usize) -> Self {
        let mut growth = Self::default();
        growth.shrink(Ledger::Timers, 1);
        growth.shrink(Ledger::Kept, payload as u64);
        growth
    }

    /// It is known to the store once what was written is committed, and until then has to be kept in mind.
    pub(in crate::plugin) fn hold(self, tx: &mut Tx) {
        for room in self.0.into_values().filter_map(|grown| grown.room) {
            tx.hold(room);
        }
    }

    fn grow(
        &mut self,
        of: Ledger,
        (new, old): (u64, u64),
        most: u64,
        (tx, bot, plugin): (&Tx, BotId, &PluginName),
    ) -> Result<(), Full> {
        if most == 0 {
            return Ok(());
        }
        let grown = self.0.entry(of).or_default();
        let by = grown.by.saturating_add_unsigned(new).saturating_sub_unsigned(old);
        if let Ok(more) = u64::try_from(by) {
            let room = grown.room.get_or_insert_with(|| tx.room(of, bot, plugin));
            room.grow_to(more, most).map_err(Full)?;
        }
        grown.by = by;
        Ok(())
    }

    fn shrink(&mut self, of: Ledger, by: u64) {
        let grown = self.0.entry(of).or_default();
        grown.by = grown.by.saturating_sub_unsigned(by);
    }
}

impl Run {
    /// Counts that a row is about to be written; the error is for the guest.
    pub(super) fn charge_stored(&mut self, context: &Context, key: &[u8], value: usize) -> Result<(), String> {
        let sizes = ((key.len() + value) as u64, self.row_bytes(key));
        let (most, whose) = (context.limits.stored, (&self.tx, self.bot, &context.name));
        self.growth.grow(Ledger::Kept, sizes, most, whose).map_err(|Full(kept)| {
            let place = Limit::Stored.hit(&context.name);
            format!("{kept} bytes are kept already, of at most {most} for all states, values, timers and jobs: {place}")
        })
    }

    /// Counts that one is about to be removed.
    pub(super) fn credit_stored(&mut self, key: &[u8]) {
        let bytes = self.row_bytes(key);
        self.growth.shrink(Ledger::Kept, bytes);
    }

    /// Counts one more timer.
    pub(super) fn charge_timer(&mut self, context: &Context, key: &[u8], value: usize) -> Result<(), String> {
        let (most, whose) = (context.limits.timers.into(), (&self.tx, self.bot, &context.name));
        self.growth.grow(Ledger::Timers, (1, 0), most, whose).map_err(|Full(set)| {
            let place = Limit::Timers.hit(&context.name);
            format!("{set} timers are set already, of at most {most}: {place}")
        })?;
        self.charge_stored(context, key, value)
    }

    /// Counts that one is about to be removed.
    pub(super) fn credit_timer(&mut self, key: &[u8]) {
        self.credit_stored(key);
        self.growth.shrink(Ledger::Timers, 1);
    }

    /// Counts a call that is about to be queued. They are sent in time, so the event is better put off than lost.
    pub(super) fn charge_queued(&mut self, context: &Context, bytes: u64, carries: u64) -> Result<(), CallError> {
        let limits = &context.limits;
        let most = match limits.queued {
            // What one run may make, it can also have sent.
            most @ 1.. if carries > 0 => most.max(limits.upload.saturating_add(limits.data)),
            most => most,
        };
        let (bytes, whose) = (bytes.saturating_add(carries), (&self.tx, self.bot, &context.name));
        self.growth.grow(Ledger::Queued, (bytes, 0), most, whose).map_err(|Full(waiting)| {
            let alone = self.growth.0.get(&Ledger::Queued).map_or(0, |grown| grown.by).saturating_add_unsigned(bytes);
            let place = Limit::Queued.hit(&context.name);
            if u64::try_from(alone).is_ok_and(|alone| alone <= most) {
                self.short = Some((Limit::Queued, LOOK_AGAIN));
                CallError::Denied(format!(
                    "{waiting} bytes of calls wait to be sent already, of at most {most}: {place}"
                ))
            } else {
                CallError::Denied(format!("this run alone queues more than {most} bytes of calls: {place}"))
            }
        })
    }

    /// Of a row as the run sees it. Where the store can't be read, the commit will say so.
    fn row_bytes(&self, key: &[u8]) -> u64 {
        let length = self.tx.length(key).ok().flatten();
        length.map_or(0, |length| key.len() as u64 + length)
    }
}
