//! What becomes of conversations' states when another version comes: tried before it serves, and given back to the version
//! before it when its trial ends badly.
//!
//! Trying writes nothing. A version that crashes over a state, or would find none of them, does not serve, unless an operator
//! says so; states that it only can't use are kept aside when their turn comes. What is given back goes state by state, each in a commit that holds only if nobody has written
//! meanwhile; where the host is killed in between, the next start goes on.

use anyhow::Context as _;

use super::Versions;
use crate::clock::unix_millis;
use crate::domain::{Conversation, EventLane, Lane, PluginName};
use crate::plugin::{Plugin, Tried};
use crate::store::rows::expiry::{self, ExpiryRow};
use crate::store::rows::fsm::{self, StateRow};
use crate::store::rows::prefix_end;
use crate::store::{Commit, CommitError, Op, Read, Store};

/// States that are looked at, or rows that are deleted, at once.
const PAGE: usize = 32;
/// States that a version reads of those that are its own already, before it serves.
const MOST_READ: u32 = 10_000;

/// What is known of a version after it was tried.
#[derive(Debug, Default, PartialEq, Eq)]
struct Trial {
    /// States of other versions, those of them that it does not take over, and why the first.
    others: u32,
    refused: u32,
    /// Of its own version: all, and those that the version before reads and it does not.
    own: u32,
    unreadable: u32,
    why: Option<String>,
}

impl Trial {
    /// What looks like a mistake of the author's; pure.
    fn advice(&self) -> Option<&'static str> {
        if self.unreadable > 0 {
            Some("some are of its own version: raise the state's `version`, and add a #[migrate] function")
        } else if self.others > 0 && self.refused == self.others {
            Some("it takes over none that another version wrote: add a #[migrate] function that reads them")
        } else {
            None
        }
    }
}

impl Versions {
    /// Has a version take over, or read, every state that there is, without anything coming of it. `before` is the one that
    /// has served so far. Answers with how many states of other versions will be kept aside, of how many.
    ///
    /// # Errors
    /// When it must not serve, for what would become of them. With `force`, only the log says so.
    pub(super) async fn try_states(
        &self,
        plugin: &Plugin,
        before: Option<&Plugin>,
        force: bool,
    ) -> anyhow::Result<(u32, u32)> {
        let why = match self.losses(plugin, before).await {
            Ok(lost) => return Ok(lost),
            Err(why) => why,
        };
        let name = &plugin.name;
        if force {
            tracing::warn!(plugin = %name, why = format!("{why:#}"), "an operator lets a version serve all the same");
            return Ok((0, 0));
        }
        Err(why.context(format!(
            "conversations would begin anew (`botyard plugin reload {name} --force` has it serve all the same)"
        )))
    }

    /// How many states it can't use, of how many; an error where it must not serve.
    async fn losses(&self, plugin: &Plugin, before: Option<&Plugin>) -> anyhow::Result<(u32, u32)> {
        let (name, version) = (&plugin.name, plugin.manifest.state_version);
        if let Some(before) = before.filter(|before| before.manifest.state_version != 0) {
            let (old, new) = (before.manifest.key, plugin.manifest.key);
            if version == 0 || old != new {
                let mut states = 0;
                let mut walk = self.walk(name);
                while let Some(page) = walk.next_page()? {
                    states += page.len();
                }
                if states > 0 && version == 0 {
                    tracing::warn!(plugin = %name, states, "the new version keeps no states: those that there are stay where they are");
                } else if states > 0 {
                    anyhow::bail!(
                        "its conversations have another key, `{}` in place of `{}`, so it would find none of the {states} states \
                         that there are",
                        new,
                        old
                    );
                }
            }
        }
        if version == 0 {
            return Ok((0, 0));
        }
        let mut trial = Trial::default();
        let mut walk = self.walk(name);
        while let Some(page) = walk.next_page()? {
            for (_, row) in page {
                let place = || format!("it can't take over the state `{}` of version {}", row.name, row.version);
                if row.version != version {
                    trial.others += 1;
                    if let Tried::Refused(why) = plugin.try_state(&row).await.with_context(place)? {
                        trial.refused += 1;
                        trial.why.get_or_insert(why);
                    }
                    continue;
                }
                trial.own += 1;
                // Only by comparison: not every plugin answers about states of its own.
                let can_judge = |before: &&Plugin| before.manifest.state_version == version && trial.own <= MOST_READ;
                let Some(before) = before.filter(can_judge) else { continue };
                let why = match plugin.try_state(&row).await {
                    Ok(Tried::Taken) => continue,
                    Ok(Tried::Refused(why)) => why,
                    Err(error) => error.to_string(),
                };
                if before.try_state(&row).await == Ok(Tried::Taken) {
                    trial.unreadable += 1;
                    trial.why.get_or_insert(why);
                }
            }
        }
        let lost = trial.refused + trial.unreadable;
        let states = trial.others + trial.own;
        if lost > 0 {
            let (why, advice) = (&trial.why, trial.advice());
            tracing::warn!(plugin = %name, states, lost, why, advice, "states that the new version can't use will be kept aside");
        }
        Ok((lost, states))
    }

    /// How many states a version would lose that is gone back to, of how many: those that come back to it don't count.
    pub(super) async fn lost_by(&self, plugin: &Plugin) -> anyhow::Result<(u32, u32)> {
        let (mut lost, mut states) = (0, 0);
        if plugin.manifest.state_version == 0 {
            return Ok((0, 0));
        }
        let mut walk = self.walk(&plugin.name);
        while let Some(page) = walk.next_page()? {
            for (conversation, row) in page {
                states += 1;
                if row.version == plugin.manifest.state_version {
                    continue;
                }
                let copy = self.store.get(&fsm::before_key(self.bot, &plugin.name, &conversation))?;
                let copy = copy.and_then(|copy| StateRow::decode(&copy).ok());
                let comes_back = copy.is_some_and(|copy| copy.version == plugin.manifest.state_version);
                if !comes_back && plugin.try_state(&row).await != Ok(Tried::Taken) {
                    lost += 1;
                }
            }
        }
        Ok((lost, states))
    }

    fn walk(&self, plugin: &PluginName) -> Walk<'_> {
        let from = fsm::plugin_prefix(self.bot, plugin);
        Walk { store: &self.store, end: prefix_end(&from), from, now: unix_millis() }
    }

    /// Whether the plugin has any state.
    pub(super) fn has_states(&self, plugin: &PluginName) -> anyhow::Result<bool> {
        let from = fsm::plugin_prefix(self.bot, plugin);
        Ok(self.store.first_key(&from, &prefix_end(&from))?.is_some())
    }

    /// A trial is over, or begins: states go on as `plugin`, which has served before it, had left them. With `only_lost`, those
    /// go on as they are that a version on trial has taken over, since another one follows that may read them.
    pub(in crate::app) async fn give_states_back(&self, plugin: &Plugin, only_lost: bool) -> anyhow::Result<()> {
        let mut from = fsm::before_prefix(self.bot, &plugin.name);
        let end = prefix_end(&from);
        let mut given = 0;
        while let Some((key, copy)) = self.store.range(&from, &end, 1)?.into_iter().next() {
            let conversation = fsm::parse_key(&key).map(|(_, _, conversation)| conversation).unwrap_or_default();
            let state_key = fsm::key(self.bot, &plugin.name, &conversation);
            let aside_key = fsm::aside_key(self.bot, &plugin.name, &conversation);
            let (state, aside) = (self.store.get(&state_key)?, self.store.get(&aside_key)?);
            let row = StateRow::decode(&copy).ok().filter(|row| row.version == plugin.manifest.state_version);
            let next = [&key[..], &[0]].concat();
            if only_lost && row.is_some() && state.is_some() {
                from = next;
                continue;
            }
            let mut ops = vec![Op::Delete { key: key.to_vec() }];
            if let Some(row) = &row {
                let old = state.as_ref().and_then(|state| StateRow::decode(state).ok()).map_or(0, |old| old.expires);
                if old != 0 {
                    ops.push(Op::Delete { key: expiry::key(self.bot, old, &state_key) });
                }
                if row.expires != 0 {
                    ops.push(self.end_of(plugin, conversation, row.expires, &state_key)?);
                }
                if aside.as_ref() == Some(&copy) {
                    ops.push(Op::Delete { key: aside_key.clone() });
                }
                ops.push(Op::Put { key: state_key.clone(), value: copy.to_vec() });
            }
            let reads = [(key.to_vec(), Some(copy)), (state_key, state), (aside_key, aside)];
            let reads = reads.into_iter().map(|(key, seen)| Read::Value { key, seen }).collect();
            match self.store.commit(Commit { reads, ops, on_durable: None }).await {
                Ok(_) => given += u32::from(row.is_some()),
                // Somebody has said something just now: it is looked at again.
                Err(CommitError::Conflict { .. }) => continue,
                Err(CommitError::Store(error)) => return Err(error.into()),
            }
            from = next;
        }
        if given > 0 {
            tracing::info!(plugin = %plugin.name, version = %plugin.version, states = given, "conversations go on as they were before the trial");
        }
        Ok(())
    }

    /// When a state ends that is put back.
    fn end_of(&self, plugin: &Plugin, conversation: Conversation, due: u64, key: &[u8]) -> anyhow::Result<Op> {
        let key = expiry::key(self.bot, due, key);
        // It knows its lane, if it is still there.
        if let Some(value) = self.store.get(&key)? {
            return Ok(Op::Put { key, value: value.to_vec() });
        }
        let of_user = || conversation.user.map_or(Lane::Other, Lane::User);
        let lane = EventLane::whole(conversation.chat.map_or_else(of_user, Lane::Chat));
        let end = ExpiryRow::State { plugin: plugin.name.clone(), conversation, lane, tell: plugin.manifest.expired };
        Ok(Op::Put { key, value: end.encode() })
    }

    /// States as they were before the trial are of no use after it.
    pub(super) async fn forget_states_before(&self, name: &PluginName) -> anyhow::Result<()> {
        let prefix = fsm::before_prefix(self.bot, name);
        loop {
            let page = self.store.range(&prefix, &prefix_end(&prefix), PAGE)?;
            if page.is_empty() {
                return Ok(());
            }
            let ops = page.into_iter().map(|(key, _)| Op::Delete { key: key.to_vec() }).collect();
            match self.store.commit(Commit { ops, ..Commit::default() }).await {
                Ok(_) | Err(CommitError::Conflict { .. }) => {}
                Err(CommitError::Store(error)) => return Err(error.into()),
            }
        }
    }
}

/// The states of a plugin that have not ended, one page after the other.
struct Walk<'a> {
    store: &'a Store,
    from: Vec<u8>,
    end: Vec<u8>,
    now: u64,
}

impl Walk<'_> {
    fn next_page(&mut self) -> anyhow::Result<Option<Vec<(Conversation, StateRow)>>> {
        let page = self.store.range(&self.from, &self.end, PAGE)?;
        let Some((last, _)) = page.last() else { return Ok(None) };
        self.from = [&last[..], &[0]].concat();
        let states = page.iter().filter_map(|(key, row)| {
            let (_, _, conversation) = fsm::parse_key(key)?;
            let row = StateRow::decode(row).ok().filter(|row| !row.is_expired(self.now))?;
            Some((conversation, row))
        });
        Ok(Some(states.collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_like_a_mistake_is_said() {
        let trial = |others, refused, unreadable| Trial { others, refused, unreadable, own: unreadable, why: None };
        for (trial, advice) in [
            (trial(0, 0, 0), None),
            (trial(500, 0, 0), None),
            (trial(500, 499, 0), None),
            (trial(500, 500, 0), Some("takes over none")),
            (trial(1, 1, 0), Some("takes over none")),
            (trial(9, 9, 3), Some("of its own version")),
        ] {
            let said = trial.advice().map(|said| advice.is_some_and(|words| said.contains(words)));
            assert_eq!(said, advice.map(|_| true), "{trial:?}");
        }
    }
}
