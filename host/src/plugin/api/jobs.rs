//! `botyard:jobs/jobs`: work that is queued when the run commits.
//!
//! The bound holds for all runs together: a commit that would go beyond it, because others have queued something
//! meanwhile, is refused by the store, and its run is made again and told so. A plugin sees its own jobs alone.

use super::{DESCRIBING, Host, Run, failed};
use crate::domain::PluginName;
use crate::plugin::Limit;
use crate::plugin::bindings::botyard::jobs::jobs as wit;
use crate::store::rows::job::{self, HeadRow, IDS_EACH, TurnRow};
use crate::store::rows::number_of;

/// Bytes of a job's name.
const NAME_BYTES: usize = 64;
/// Bytes of a unique key.
const KEY_BYTES: usize = 256;

impl wit::Host for Host {
    fn enqueue(
        &mut self,
        name: String,
        payload: Vec<u8>,
        options: wit::Options,
    ) -> wasmtime::Result<Result<u64, wit::JobError>> {
        use wit::JobError::{Full, Invalid};
        let Some(run) = &mut self.run else { return Ok(Err(Invalid(DESCRIBING.to_owned()))) };
        let (size, limits) = (payload.len(), &self.context.limits);
        let key_bytes = options.unique_key.as_ref().map_or(0, String::len);
        if size as u64 > limits.value {
            let (limit, place) = (limits.value, Limit::Value.hit(&self.context.name));
            return Ok(Err(Invalid(format!("the payload has {size} bytes; at most {limit} are kept: {place}"))));
        }
        if name.len() > NAME_BYTES || key_bytes > KEY_BYTES {
            let problem =
                format!("a job's name has at most {NAME_BYTES} bytes, and its unique key at most {KEY_BYTES}");
            return Ok(Err(Invalid(problem)));
        }
        if let Err(problem) = run.charge_effect(name.len() + key_bytes + size) {
            return Ok(Err(Invalid(problem)));
        }
        let (bot, plugin) = (run.bot, &self.context.name);
        let unique = options.unique_key.as_deref().map(|key| job::unique_key(bot, plugin, key));
        if let Some(unique) = &unique
            && let Some(id) = run.tx.get(unique).map_err(failed)?
        {
            return Ok(Ok(number_of(&id).ok_or_else(|| failed("the key of a job can't be read"))?));
        }
        let Some(id) = free_id(run, plugin)? else {
            return Ok(Err(Invalid(format!("one event can queue at most {IDS_EACH} jobs"))));
        };
        let queue = job::queue(bot, plugin);
        if !run.tx.has_room(&queue, limits.jobs.waiting).map_err(failed)? {
            metrics::counter!("botyard_jobs_total", "plugin" => plugin.to_string(), "outcome" => "refused")
                .increment(1);
            let (waiting, place) = (limits.jobs.waiting, Limit::JobsWaiting.hit(plugin));
            return Ok(Err(Full(format!("{waiting} jobs wait already: {place}"))));
        }
        run.remember_language()?;
        let due = if options.delay_ms == 0 { 0 } else { run.now.saturating_add(options.delay_ms) };
        let head = HeadRow {
            name,
            conversation: run.conversation,
            lane: run.lane,
            queued: run.now,
            due,
            attempts: 0,
            reason: String::new(),
            begun: false,
            key: options.unique_key,
        };
        let mut rows =
            vec![(job::head_key(bot, plugin, id), head.encode()), (job::payload_key(bot, plugin, id), payload)];
        rows.extend(unique.map(|unique| (unique, id.to_be_bytes().to_vec())));
        let before = run.tx.savepoint();
        for (key, value) in rows {
            if let Err(problem) = run.charge_stored(&self.context, &key, value.len()) {
                run.tx.roll_back(before);
                return Ok(Err(Full(problem)));
            }
            run.tx.put(key, value);
        }
        // Its turn is small, and there are few.
        run.tx.append(queue, TurnRow { id, due, since: run.now }.encode());
        Ok(Ok(id))
    }

    fn status(&mut self, id: u64) -> wasmtime::Result<Option<wit::Report>> {
        let Some(run) = &mut self.run else { return Ok(None) };
        // It changes by itself; what it was is no reason to run again.
        let head = run.tx.peek(&job::head_key(run.bot, &self.context.name, id)).map_err(failed)?;
        run.charge_read(0)?;
        let Some(head) = head else { return Ok(None) };
        let HeadRow { name, queued, due, attempts, reason, begun, .. } = HeadRow::decode(&head).map_err(failed)?;
        let reason = (!reason.is_empty()).then_some(reason);
        Ok(Some(wit::Report { name, running: begun, attempts, queued, due, reason }))
    }

    fn cancel(&mut self, id: u64) -> wasmtime::Result<bool> {
        let Some(run) = &mut self.run else { return Ok(false) };
        run.charge_effect(0).map_err(wasmtime::Error::msg)?;
        let (bot, plugin) = (run.bot, &self.context.name);
        let key = job::head_key(bot, plugin, id);
        let Some(head) = run.tx.get(&key).map_err(failed)? else { return Ok(false) };
        let head = HeadRow::decode(&head).map_err(failed)?;
        let unique = head.key.map(|unique| job::unique_key(bot, plugin, &unique));
        for key in [key, job::payload_key(bot, plugin, id)].into_iter().chain(unique) {
            run.credit_stored(&key);
            run.tx.delete(key);
        }
        // Its turn, which is found by another number, goes as soon as the workers hear of it.
        Ok(true)
    }
}

/// Known before the commit, and the same on every attempt. Another plugin that handles the same event counts from the
/// same number, in a space of its own; the same one may be asked twice.
fn free_id(run: &mut Run, plugin: &PluginName) -> wasmtime::Result<Option<u64>> {
    while run.jobs < IDS_EACH {
        let id = run.event.wrapping_mul(IDS_EACH) + run.jobs;
        run.jobs += 1;
        if run.tx.peek(&job::head_key(run.bot, plugin, id)).map_err(failed)?.is_none() {
            return Ok(Some(id));
        }
    }
    Ok(None)
}
