//! Which plugins an event is offered to, and in which order; pure.
//!
//! Decided from the manifests alone, without waking a plugin: first those that observe, then those whose
//! conversation waits for just this, then the others by priority, until one takes it.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use crate::domain::{PluginName, UPDATE_KINDS, UpdateView};
use crate::plugin::{Filter, Plugin};

/// A plugin that serves, and where it stands among the others.
#[derive(Clone)]
pub struct Entry {
    /// The version that serves.
    pub plugin: Arc<Plugin>,
    /// Higher is asked earlier; names decide between equals.
    pub priority: i32,
}

/// The plugins that serve at one moment. An event is handled by one such picture from beginning to end.
#[derive(Default)]
pub struct Routes {
    entries: Vec<Entry>,
    commands: HashSet<String>,
}

/// A plugin that is offered an event.
pub(super) struct Candidate {
    pub(super) plugin: Arc<Plugin>,
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
}

impl Routes {
    /// Puts the plugins in order.
    #[must_use]
    pub fn new(mut entries: Vec<Entry>) -> Self {
        entries.sort_by(|a, b| b.priority.cmp(&a.priority).then_with(|| a.plugin.name.cmp(&b.plugin.name)));
        let commands = entries
            .iter()
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
        let filters = self.entries.iter().flat_map(|entry| &entry.plugin.manifest.filters);
        let kinds: BTreeSet<&str> = filters.flat_map(wanted_kinds).collect();
        kinds.into_iter().map(str::to_owned).collect()
    }

    pub(super) fn find(&self, name: &PluginName) -> Option<&Arc<Plugin>> {
        self.entries.iter().map(|entry| &entry.plugin).find(|plugin| plugin.name == *name)
    }

    /// Who is offered the event. `state_of` answers with the name of the plugin's open state in the event's
    /// conversation; it is asked at most once per plugin, and only where a filter depends on it.
    pub(super) fn candidates<E>(
        &self,
        facts: &Facts<'_>,
        mut state_of: impl FnMut(&Plugin) -> Result<Option<String>, E>,
    ) -> Result<Vec<Candidate>, E> {
        let is_known_command = facts.command.is_some_and(|name| self.commands.contains(name));
        let (mut observers, mut holders, mut others) = (Vec::new(), Vec::new(), Vec::new());
        for Entry { plugin, .. } in &self.entries {
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
                observers.push(Candidate { plugin: plugin.clone(), observes: true, matched: observing });
            }
            if !taking.is_empty() {
                let rank = if holds { &mut holders } else { &mut others };
                rank.push(Candidate { plugin: plugin.clone(), observes: false, matched: taking });
            }
        }
        observers.append(&mut holders);
        observers.append(&mut others);
        Ok(observers)
    }
}

/// The kinds that can match a filter. One that names none but looks at callback data can only match those that
/// have such data, and so on.
fn wanted_kinds(filter: &Filter) -> Vec<&str> {
    if !filter.kinds.is_empty() {
        filter.kinds.iter().map(String::as_str).collect()
    } else if filter.callback_prefix.is_some() {
        vec!["callback_query"]
    } else if !filter.commands.is_empty() {
        vec!["message", "channel_post", "business_message"]
    } else {
        UPDATE_KINDS.to_vec()
    }
}

/// Everything but the state.
pub(super) fn matches(filter: &Filter, facts: &Facts<'_>, is_known_command: bool) -> bool {
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
