//! `botyard:schedule/timers`: timers that are set when the run commits.
//!
//! A timer's id must be known before that, and be the same on every attempt, so it is made of the event's
//! number and a counter.

use super::{DESCRIBING, Host, failed};
use crate::plugin::bindings::botyard::schedule::timers as wit;
use crate::store::rows::timer::{TimerRow, index_key, key};

/// Timers that the runs of one event can set.
const PER_EVENT: u64 = 64;
/// Bytes of a timer's name.
const NAME_BYTES: usize = 64;

impl wit::Host for Host {
    fn after(&mut self, name: String, delay_ms: u64, payload: Vec<u8>) -> wasmtime::Result<Result<u64, String>> {
        let now = self.run.as_ref().map_or(0, |run| run.now);
        self.at(name, now.saturating_add(delay_ms), payload)
    }

    fn at(&mut self, name: String, unix_ms: u64, payload: Vec<u8>) -> wasmtime::Result<Result<u64, String>> {
        let Some(run) = &mut self.run else { return Ok(Err(DESCRIBING.to_owned())) };
        let (size, limit) = (payload.len(), self.context.limits.value);
        if size as u64 > limit {
            return Ok(Err(format!("the payload has {size} bytes; at most {limit} are kept (`limits.value`)")));
        }
        if name.len() > NAME_BYTES {
            return Ok(Err(format!("the timer's name has {} bytes; at most {NAME_BYTES} are kept", name.len())));
        }
        if let Err(problem) = run.charge_effect(size) {
            return Ok(Err(problem));
        }
        let plugin = &self.context.name;
        while run.timers < PER_EVENT {
            let id = run.event.wrapping_mul(PER_EVENT) + run.timers;
            run.timers += 1;
            // Another plugin that handles the same event counts from the same number.
            if run.tx.peek(&key(run.bot, unix_ms, id)).map_err(failed)?.is_some() {
                continue;
            }
            let row =
                TimerRow { plugin: plugin.clone(), conversation: run.conversation, lane: run.lane, name, payload };
            run.tx.put(key(run.bot, unix_ms, id), row.encode());
            run.tx.put(index_key(run.bot, plugin, id), unix_ms.to_be_bytes().to_vec());
            return Ok(Ok(id));
        }
        Ok(Err(format!("one event can set at most {PER_EVENT} timers")))
    }

    fn cancel(&mut self, id: u64) -> wasmtime::Result<bool> {
        let Some(run) = &mut self.run else { return Ok(false) };
        run.charge_effect(0).map_err(wasmtime::Error::msg)?;
        let index = index_key(run.bot, &self.context.name, id);
        let Some(due) = run.tx.get(&index).map_err(failed)? else { return Ok(false) };
        let due = due[..].try_into().map_err(|_| failed("the index of a timer can't be read"))?;
        run.tx.delete(key(run.bot, u64::from_be_bytes(due), id));
        run.tx.delete(index);
        Ok(true)
    }
}
