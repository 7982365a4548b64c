//! Whom an event is offered to, where that depends on the state that a conversation is in.
//!
//! Filters name states as their own version of the plugin does. A state that another version has written is taken over first,
//! in the event's own transaction, and only then are the filters asked: or a form would be mute as soon as the name of
//! its state changes, after a new version and after a rollback. Where taking over fails, the event is tried again.

use super::failure::Failure;
use super::routes::{Candidate, Facts, Routes, Version};
use super::run::Context;
use crate::domain::{Conversation, UpdateView};
use crate::plugin::{Invocation, Plugin, Spent, Standing};
use crate::store::rows::fsm::{self, StateRow};
use crate::store::{self, Tx};

/// The state of a conversation, as a version finds it.
pub(super) enum Open {
    /// There is none.
    None,
    /// One of its own.
    Named(String),
    /// One that it must take over first, or that comes back to it.
    ToBeTakenOver,
}

impl Open {
    pub(super) fn name(self) -> Option<String> {
        match self {
            Self::Named(name) => Some(name),
            Self::None | Self::ToBeTakenOver => None,
        }
    }
}

/// The conversation of an update, as the plugin keeps them.
pub(super) fn conversation(plugin: &Plugin, view: &UpdateView<'_>) -> Conversation {
    Conversation::of(plugin.manifest.key, view.chat, view.user, view.thread)
}

impl Context {
    /// Who is offered the event, of one update or of an album's messages and the album as a whole.
    pub(super) async fn candidates(
        &self,
        routes: &Routes,
        (messages, album): (&[Facts<'_>], Option<&Facts<'_>>),
        view: &UpdateView<'_>,
        invocation: &Invocation,
        mut tx: Tx,
    ) -> Result<(Tx, Result<Vec<Candidate>, Failure>), store::Error> {
        let mut others = Vec::new();
        let candidates = routes.candidates(messages, album, |version| {
            let open = self.open_state(&mut tx, version, view, invocation.now)?;
            if matches!(open, Open::ToBeTakenOver) {
                others.push(version.clone());
            }
            Ok::<_, store::Error>(open.name())
        })?;
        if others.is_empty() {
            return Ok((tx, Ok(candidates)));
        }
        for version in others {
            let plugin = &version.plugin;
            let conversation = conversation(plugin, view);
            let invocation = Invocation { conversation, standing: version.standing(), ..invocation.clone() };
            let (after, taken) = plugin.take_over(&invocation, tx, self.outbound.clone()).await;
            tx = after;
            let Err(error) = taken else { continue };
            let only_looks_on = plugin.manifest.filters.iter().all(|filter| filter.observe || filter.states.is_empty());
            if only_looks_on {
                tracing::warn!(plugin = %plugin.name, event = invocation.id, %error, "an observer could not take a state over");
                continue;
            }
            self.note(&version, invocation.id, only_looks_on, Spent::default(), &Err(error.clone()));
            return Ok((tx, Err(Failure::of_plugin(&version, error))));
        }
        let candidates = routes.candidates(messages, album, |version| {
            Ok::<_, store::Error>(self.open_state(&mut tx, version, view, invocation.now)?.name())
        })?;
        Ok((tx, Ok(candidates)))
    }

    pub(super) fn open_state(
        &self,
        tx: &mut Tx,
        version: &Version,
        view: &UpdateView<'_>,
        now: u64,
    ) -> Result<Open, store::Error> {
        let (plugin, conversation) = (&version.plugin, conversation(&version.plugin, view));
        // Recorded as read: if another run changes the state meanwhile, this routing was wrong.
        let state = tx.get(&fsm::key(self.bot, &plugin.name, &conversation))?;
        let state = state
            .map(|state| StateRow::decode(&state))
            .filter(|state| !state.as_ref().is_ok_and(|state| state.is_expired(now)));
        Ok(match state {
            Some(Ok(state)) if state.version == plugin.manifest.state_version => Open::Named(state.name),
            Some(_) => Open::ToBeTakenOver,
            // What a version on trial could not use.
            None if version.standing() != Standing::OnTrial => {
                let copy = tx.get(&fsm::before_key(self.bot, &plugin.name, &conversation))?;
                let copy = copy.and_then(|copy| StateRow::decode(&copy).ok());
                let is_its_own = copy.is_some_and(|copy| copy.version == plugin.manifest.state_version);
                if is_its_own { Open::ToBeTakenOver } else { Open::None }
            }
            None => Open::None,
        })
    }
}
