//! `botyard:fsm/conversation`: the state of the event's conversation.

use super::{DESCRIBING, Host, Run, failed, shorten};
use crate::domain::{Conversation, PluginName};
use crate::plugin::Limit;
use crate::plugin::bindings::botyard::fsm::conversation as wit;
use crate::plugin::bindings::botyard::types::types::{State, StateKey};
use crate::plugin::version::Context;
use crate::store::rows::expiry::{self, ExpiryRow};
use crate::store::rows::fsm::{StateRow, aside_key, before_key, key};

/// What is kept of why a state can't be read.
const PROBLEM_BYTES: usize = 1 << 10;

impl wit::Host for Host {
    fn get(&mut self) -> wasmtime::Result<Option<State>> {
        let Some(run) = &mut self.run else { return Ok(None) };
        let conversation = run.conversation;
        let state = state(run, &self.context.name, &conversation)?;
        match state {
            // Only of a job, which did not look before.
            Some(state) if state.version != self.context.state_version => Err(OfAnother.into()),
            state => Ok(state),
        }
    }

    fn set(&mut self, state: State, ttl_seconds: Option<u64>) -> wasmtime::Result<Result<(), String>> {
        let Some(run) = &mut self.run else { return Ok(Err(DESCRIBING.to_owned())) };
        let (size, limit) = (state.bytes.len() + state.name.len(), self.context.limits.state);
        if size as u64 > limit {
            return Ok(Err(format!(
                "the state has {size} bytes; at most {limit} are kept: {}",
                Limit::State.hit(&self.context.name)
            )));
        }
        if let Err(problem) = run.charge_effect(size) {
            return Ok(Err(problem));
        }
        let row =
            StateRow { name: state.name, version: state.version, expires: run.expiry(ttl_seconds), bytes: state.bytes };
        let key = key(run.bot, &self.context.name, &run.conversation);
        if let Err(problem) = run.charge_stored(&self.context, &key, row.encode().len()) {
            return Ok(Err(problem));
        }
        if row.expires != 0 && self.context.tells_expired {
            run.remember_language()?;
        }
        put_state(run, &self.context, &row);
        Ok(Ok(()))
    }

    fn clear(&mut self) -> wasmtime::Result<()> {
        if let Some(run) = &mut self.run {
            run.charge_effect(0).map_err(wasmtime::Error::msg)?;
            let key = key(run.bot, &self.context.name, &run.conversation);
            forget_end(run, &key);
            run.credit_stored(&key);
            run.tx.delete(key);
            // What has come to its end does not come back, should a version on trial be rolled back.
            let copy = before_key(run.bot, &self.context.name, &run.conversation);
            if run.tx.length(&copy).map_err(failed)?.is_some() {
                run.credit_stored(&copy);
                run.tx.delete(copy);
            }
        }
        Ok(())
    }

    fn peek(&mut self, key: StateKey) -> wasmtime::Result<Option<State>> {
        let Some(run) = &mut self.run else { return Ok(None) };
        let mut conversation: Conversation = key.into();
        if let Some(chat) = conversation.chat {
            conversation.chat = Some(run.chat(chat)?);
        }
        state(run, &self.context.name, &conversation)
    }

    fn lost(&mut self) -> wasmtime::Result<Option<State>> {
        let Some(run) = &mut self.run else { return Ok(None) };
        let row = run.tx.get(&aside_key(run.bot, &self.context.name, &run.conversation)).map_err(failed)?;
        run.charge_read(row.as_ref().map_or(0, |row| row.len()))?;
        // One that can't even be read as a row is nothing that a plugin could make something of.
        let row = row.and_then(|row| StateRow::decode(&row).ok());
        Ok(row.map(|row| State { name: row.name, version: row.version, bytes: row.bytes }))
    }

    fn drop_lost(&mut self) -> wasmtime::Result<()> {
        if let Some(run) = &mut self.run {
            run.charge_effect(0).map_err(wasmtime::Error::msg)?;
            let key = aside_key(run.bot, &self.context.name, &run.conversation);
            run.credit_stored(&key);
            run.tx.delete(key);
        }
        Ok(())
    }

    fn unreadable(&mut self, mut problem: String) -> wasmtime::Result<()> {
        if let Some(run) = &mut self.run {
            shorten(&mut problem, PROBLEM_BYTES);
            run.unreadable = Some(problem);
        }
        Ok(())
    }
}

/// A run has met a state that another version has written meanwhile.
#[derive(Debug, thiserror::Error)]
#[error("the state is another version's")]
pub(in crate::plugin) struct OfAnother;

impl Host {
    /// Whether the conversation's state is of this version, or none, as far as can be seen. Not recorded as read.
    pub(in crate::plugin) fn has_own_state(&self) -> bool {
        let Some(run) = &self.run else { return true };
        let row = run.tx.peek(&key(run.bot, &self.context.name, &run.conversation));
        let own = |row: StateRow| row.version == self.context.state_version || row.is_expired(run.now);
        row.is_ok_and(|row| row.is_none_or(|row| StateRow::decode(&row).is_ok_and(own)))
    }
}

/// Writes the conversation's state, and when it ends.
pub(in crate::plugin) fn put_state(run: &mut Run, context: &Context, row: &StateRow) {
    let key = key(run.bot, &context.name, &run.conversation);
    forget_end(run, &key);
    if row.expires != 0 {
        let end = ExpiryRow::State {
            plugin: context.name.clone(),
            conversation: run.conversation,
            lane: run.lane,
            tell: context.tells_expired,
        };
        run.tx.put(expiry::key(run.bot, row.expires, &key), end.encode());
    }
    run.tx.put(key, row.encode());
}

/// Removes the entry for the end of a state that ends otherwise. One that is left behind does no harm.
fn forget_end(run: &mut Run, key: &[u8]) {
    let before = run.tx.peek(key).ok().flatten().and_then(|before| StateRow::decode(&before).ok());
    if let Some(before) = before.filter(|before| before.expires != 0) {
        run.tx.delete(expiry::key(run.bot, before.expires, key));
    }
}

fn state(run: &mut Run, plugin: &PluginName, conversation: &Conversation) -> wasmtime::Result<Option<State>> {
    let row = read_state(run, plugin, conversation).map_err(failed)?.transpose().map_err(failed)?;
    run.charge_read(row.as_ref().map_or(0, |row| row.bytes.len()))?;
    let Some(row) = row else { return Ok(None) };
    Ok(Some(State { name: row.name, version: row.version, bytes: row.bytes }))
}

/// The state of a conversation, if it has one that is not over. The inner error is a row that can't be read.
pub(in crate::plugin) fn read_state(
    run: &mut Run,
    plugin: &PluginName,
    conversation: &Conversation,
) -> Result<Option<Result<StateRow, crate::store::rows::Unreadable>>, crate::store::Error> {
    let now = run.now;
    let row = run.tx.get(&key(run.bot, plugin, conversation))?.map(|bytes| StateRow::decode(&bytes));
    Ok(row.filter(|row| !row.as_ref().is_ok_and(|row| row.is_expired(now))))
}
