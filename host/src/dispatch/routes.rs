//! Which plugins an event is offered to, and in which order; pure.
//!
//! Decided from the manifests alone, without waking a plugin: first those that observe, then those whose
//! conversation waits for just this, then the others by priority, until one takes it.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use super::trial::{Chosen, Trial};
use crate::config::OnCrash;
use crate::domain::{Conversation, PluginName, UpdateView};
use crate::plugin::{Filter, Plugin};

/// A plugin that serves, and where it stands among the others.
#[derive(Clone)]
pub struct Entry {
    /// The version that serves.
    pub plugin: Arc<Plugin>,
    /// A newer one that is on trial.
    pub trial: Option<Arc<Trial>>,
    /// Higher is asked earlier; names decide between equals.
    pub priority: i32,
    /// What follows when a run crashes.
    pub on_crash: OnCrash,
}

/// The version of a plugin that an event is for.
#[derive(Clone)]
pub(super) struct Version {
    pub(super) plugin: Arc<Plugin>,
    pub(super) on_crash: OnCrash,
    /// Where the plugin has a version on trial: how this one was chosen.
    pub(super) trial: Option<(Arc<Trial>, Chosen)>,
}

impl Version {
    /// The version on trial, which leaves no traces that the old one can't read.
    pub(super) fn is_on_trial(&self) -> bool {
        matches!(self.trial, Some((_, Chosen::New)))
    }
}

impl Entry {
    /// The newest version that is given events.
    #[must_use]
    pub fn newest(&self) -> &Arc<Plugin> {
        self.trial.as_ref().map_or(&self.plugin, |trial| trial.plugin())
    }

    /// The versions that may be given events.
    pub(super) fn versions(&self) -> impl Iterator<Item = &Arc<Plugin>> {
        std::iter::once(&self.plugin).chain(self.trial.as_ref().map(|trial| trial.plugin()))
    }

    /// The version for a conversation, whose event has failed so often.
    fn version(&self, conversation: &Conversation, attempts: u32) -> Version {
        let trial = self.trial.as_ref().map(|trial| (trial.clone(), trial.choose(conversation, attempts)));
        let plugin = match &trial {
            Some((trial, Chosen::New)) => trial.plugin(),
            _ => &self.plugin,
        };
        Version { plugin: plugin.clone(), on_crash: self.on_crash, trial }
    }
}

/// The plugins that serve at one moment. An event is handled by one such picture from beginning to end.
#[derive(Default)]
pub struct Routes {
    entries: Vec<Entry>,
    /// Those of plugins without a version on trial.
    commands: HashSet<String>,
}

/// A plugin that is offered an event.
pub(super) struct Candidate {
    pub(super) version: Version,
    /// Sees the event but does not take it.
    pub(super) observes: bool,
    /// The places of the filters that say so.
    pub(super) matched: Vec<u32>,
}

/// What filters look at.
pub(super) struct Facts<'a> {
    pub(super) view: &'a UpdateView<'a>,
    /// Lower case; `None` where it is addressed to another bot.
    pub(super) command: Option<&'a str>,
    /// How often the event has failed.
    pub(super) attempts: u32,
}

impl Routes {
    /// Puts the plugins in order.
    #[must_use]
    pub fn new(mut entries: Vec<Entry>) -> Self {
        entries.sort_by(|a, b| b.priority.cmp(&a.priority).then_with(|| a.plugin.name.cmp(&b.plugin.name)));
        let commands = entries
            .iter()
            .filter(|entry| entry.trial.is_none())
            .flat_map(|entry| &entry.plugin.manifest.filters)
            .flat_map(|filter| filter.commands.iter().cloned())
            .collect();
        Self { entries, commands }
    }

    /// The plugins, in the order they are asked.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The update kinds that some plugin wants: what `allowed_updates` must hold.
    #[must_use]
    pub fn kinds(&self) -> Vec<String> {
        let versions = self.entries.iter().flat_map(Entry::versions);
        let filters = versions.flat_map(|plugin| plugin.manifest.filters.iter().map(move |filter| (plugin, filter)));
        let kinds =
            filters.flat_map(|(plugin, filter)| filter.wanted_kinds().into_iter().map(move |kind| (plugin, kind)));
        let kinds: BTreeSet<&str> = kinds.filter(|(plugin, kind)| plugin.may_see(kind)).map(|(_, kind)| kind).collect();
        kinds.into_iter().map(str::to_owned).collect()
    }

    pub(super) fn find(&self, name: &PluginName, conversation: &Conversation, attempts: u32) -> Option<Version> {
        let entry = self.entries.iter().find(|entry| entry.plugin.name == *name)?;
        Some(entry.version(conversation, attempts))
    }

    /// Who is offered the event. `state_of` answers with the name of the plugin's open state in the event's
    /// conversation; it is asked at most once per plugin, and only where a filter depends on it.
    pub(super) fn candidates<E>(
        &self,
        facts: &Facts<'_>,
        mut state_of: impl FnMut(&Plugin) -> Result<Option<String>, E>,
    ) -> Result<Vec<Candidate>, E> {
        let version_of = |entry: &Entry| {
            let view = facts.view;
            let key = Conversation::of(entry.plugin.manifest.key, view.chat, view.user, view.thread);
            entry.version(&key, facts.attempts)
        };
        let is_on_trial = |name| {
            let trials = self.entries.iter().filter(|entry| entry.trial.is_some());
            let mut filters = trials.flat_map(|entry| version_of(entry).plugin.manifest.filters.clone());
            filters.any(|filter| filter.commands.iter().any(|command| command == name))
        };
        let is_known_command = facts.command.is_some_and(|name| self.commands.contains(name) || is_on_trial(name));
        let (mut observers, mut holders, mut others) = (Vec::new(), Vec::new(), Vec::new());
        for entry in &self.entries {
            let version = version_of(entry);
            let plugin = &version.plugin;
            let mut state = None;
            let (mut observing, mut taking, mut holds) = (Vec::new(), Vec::new(), false);
            for (place, filter) in (0..).zip(&plugin.manifest.filters) {
                if !matches(filter, facts, is_known_command) {
                    continue;
                }
                let depends_on_state = !filter.states.is_empty();
                if depends_on_state {
                    if state.is_none() {
                        state = Some(state_of(plugin)?);
                    }
                    let open = state.as_ref().and_then(Option::as_ref);
                    if !open.is_some_and(|open| filter.states.contains(open)) {
                        continue;
                    }
                }
                if filter.observe {
                    observing.push(place);
                } else {
                    taking.push(place);
                    holds |= depends_on_state;
                }
            }
            if !observing.is_empty() {
                observers.push(Candidate { version: version.clone(), observes: true, matched: observing });
            }
            if !taking.is_empty() {
                let rank = if holds { &mut holders } else { &mut others };
                rank.push(Candidate { version, observes: false, matched: taking });
            }
        }
        observers.append(&mut holders);
        observers.append(&mut others);
        Ok(observers)
    }
}

/// Everything but the state.
fn matches(filter: &Filter, facts: &Facts<'_>, is_known_command: bool) -> bool {
    let view = facts.view;
    let any_or = |list: &[String], value: Option<&str>| {
        list.is_empty() || value.is_some_and(|value| list.iter().any(|item| item == value))
    };
    any_or(&filter.kinds, Some(&view.kind))
        && any_or(&filter.chat_types, view.chat_type.as_deref())
        && any_or(&filter.commands, facts.command)
        && (!filter.plain_text || (view.text.is_some() && !is_known_command))
        && filter
            .callback_prefix
            .as_deref()
            .is_none_or(|prefix| view.callback_data.as_deref().is_some_and(|data| data.starts_with(prefix)))
        && filter.text_regex.as_ref().is_none_or(|regex| view.text.as_deref().is_some_and(|text| regex.is_match(text)))
}
