//! Which plugins an event is offered to, and in which order; pure.
//!
//! Decided from the manifests alone, without waking a plugin: first those that observe, then those whose
//! conversation waits for just this, then the others by priority, until one takes it.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use crate::domain::{KeyStrategy, PluginName, UPDATE_KINDS, UpdateView};
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
    albums: bool,
}

/// A plugin that is offered an event.
pub(super) struct Candidate {
    pub(super) plugin: Arc<Plugin>,
    /// Sees the event but does not take it.
    pub(super) observes: bool,
    /// Is offered the album, and not its messages.
    pub(super) album: bool,
    /// The places of the filters that say so.
    pub(super) matched: Vec<u32>,
}

/// What filters look at.
pub(super) struct Facts<'a> {
    pub(super) view: &'a UpdateView<'a>,
    /// Lower case; `None` where it is addressed to another bot.
    pub(super) command: Option<String>,
    /// It is an album as a whole.
    pub(super) album: bool,
}

/// The kind under which filters ask for albums.
const ALBUM: &str = "album";

impl<'a> Facts<'a> {
    /// `username` is the bot's own name.
    pub(super) fn of(view: &'a UpdateView<'a>, username: Option<&str>) -> Self {
        let command = view.command().filter(|command| command.is_for(username));
        Self { view, command: command.map(|command| command.name.to_ascii_lowercase()), album: false }
    }

    /// Of an album: its first message, with the album's text.
    pub(super) fn of_album(view: &'a UpdateView<'a>, username: Option<&str>) -> Self {
        Self { album: true, ..Self::of(view, username) }
    }
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
        let mut filters = entries.iter().flat_map(|entry| &entry.plugin.manifest.filters);
        let albums = filters.any(asks_for_albums);
        Self { entries, commands, albums }
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

    /// What a conversation is to the least particular of the plugins: what events must keep their order in.
    #[must_use]
    pub fn key(&self) -> KeyStrategy {
        self.entries.iter().map(|entry| entry.plugin.manifest.key).reduce(KeyStrategy::join).unwrap_or_default()
    }

    /// Whether some plugin takes albums whole.
    pub(super) fn want_albums(&self) -> bool {
        self.albums
    }

    /// Whether some plugin has this command.
    pub(super) fn has_command(&self, name: &str) -> bool {
        self.commands.contains(name)
    }

    pub(super) fn find(&self, name: &PluginName) -> Option<&Arc<Plugin>> {
        self.entries.iter().map(|entry| &entry.plugin).find(|plugin| plugin.name == *name)
    }

    /// Who is offered the event: one update, or the messages of an album and, apart, the album as a whole. A plugin that
    /// asks for this album is not asked about its messages. `state_of` answers with the name of the plugin's open state
    /// in the event's conversation; it is asked at most once per plugin, and only where a filter depends on it.
    pub(super) fn candidates<E>(
        &self,
        messages: &[Facts<'_>],
        album: Option<&Facts<'_>>,
        mut state_of: impl FnMut(&Plugin) -> Result<Option<String>, E>,
    ) -> Result<Vec<Candidate>, E> {
        let (mut observers, mut holders, mut others) = (Vec::new(), Vec::new(), Vec::new());
        for Entry { plugin, .. } in &self.entries {
            let mut state = None;
            let mut is_open = |filter: &Filter| {
                if state.is_none() {
                    state = Some(state_of(plugin)?);
                }
                let open = state.as_ref().and_then(Option::as_ref);
                Ok(open.is_some_and(|open| filter.states.contains(open)))
            };
            let mut found = Found::default();
            if let Some(album) = album {
                found.look(plugin, |filter| self.matches(filter, album), &mut is_open)?;
            }
            let is_whole = !found.is_empty();
            if !is_whole {
                found.look(plugin, |filter| messages.iter().any(|facts| self.matches(filter, facts)), &mut is_open)?;
            }
            if !found.observing.is_empty() {
                let matched = found.observing;
                observers.push(Candidate { plugin: plugin.clone(), observes: true, album: is_whole, matched });
            }
            if !found.taking.is_empty() {
                let rank = if found.holds { &mut holders } else { &mut others };
                let matched = found.taking;
                rank.push(Candidate { plugin: plugin.clone(), observes: false, album: is_whole, matched });
            }
        }
        observers.append(&mut holders);
        observers.append(&mut others);
        Ok(observers)
    }

    /// The plugin's observing filters that one message of an album matches.
    pub(super) fn observed_by<E>(
        &self,
        plugin: &Arc<Plugin>,
        facts: &Facts<'_>,
        mut state_of: impl FnMut(&Plugin) -> Result<Option<String>, E>,
    ) -> Result<Vec<u32>, E> {
        let mut found = Found::default();
        found.look(plugin, |filter| self.matches(filter, facts), &mut |filter| {
            Ok(state_of(plugin)?.is_some_and(|open| filter.states.contains(&open)))
        })?;
        Ok(found.observing)
    }

    /// Everything but the state.
    fn matches(&self, filter: &Filter, facts: &Facts<'_>) -> bool {
        let is_known_command = facts.command.as_ref().is_some_and(|name| self.commands.contains(name));
        matches(filter, facts, is_known_command)
    }
}

/// The filters of one plugin that match.
#[derive(Default)]
struct Found {
    observing: Vec<u32>,
    taking: Vec<u32>,
    /// One of those that take depends on an open state.
    holds: bool,
}

impl Found {
    fn look<E>(
        &mut self,
        plugin: &Plugin,
        matches: impl Fn(&Filter) -> bool,
        is_open: &mut dyn FnMut(&Filter) -> Result<bool, E>,
    ) -> Result<(), E> {
        for (place, filter) in (0..).zip(&plugin.manifest.filters) {
            let depends_on_state = !filter.states.is_empty();
            if !matches(filter) || (depends_on_state && !is_open(filter)?) {
                continue;
            }
            if filter.observe {
                self.observing.push(place);
            } else {
                self.taking.push(place);
                self.holds |= depends_on_state;
            }
        }
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.observing.is_empty() && self.taking.is_empty()
    }
}

/// Only where it says so: other filters see an album's messages.
fn asks_for_albums(filter: &Filter) -> bool {
    filter.kinds.iter().any(|kind| kind == ALBUM)
}

/// The kinds that can match a filter. One that names none but looks at callback data can only match those that
/// have such data, and so on.
fn wanted_kinds(filter: &Filter) -> Vec<&str> {
    const NEW_MESSAGES: [&str; 3] = ["message", "channel_post", "business_message"];
    if !filter.kinds.is_empty() {
        let of = |kind| if kind == ALBUM { NEW_MESSAGES.to_vec() } else { vec![kind] };
        filter.kinds.iter().flat_map(|kind| of(kind.as_str())).collect()
    } else if filter.callback_prefix.is_some() {
        vec!["callback_query"]
    } else if !filter.commands.is_empty() {
        NEW_MESSAGES.to_vec()
    } else {
        UPDATE_KINDS.to_vec()
    }
}

fn matches(filter: &Filter, facts: &Facts<'_>, is_known_command: bool) -> bool {
    let view = facts.view;
    let any_or = |list: &[String], value: Option<&str>| {
        list.is_empty() || value.is_some_and(|value| list.iter().any(|item| item == value))
    };
    (if facts.album { asks_for_albums(filter) } else { any_or(&filter.kinds, Some(&view.kind)) })
        && any_or(&filter.chat_types, view.chat_type.as_deref())
        && any_or(&filter.commands, facts.command.as_deref())
        && (!filter.plain_text || (view.text.is_some() && !is_known_command))
        && filter
            .callback_prefix
            .as_deref()
            .is_none_or(|prefix| view.callback_data.as_deref().is_some_and(|data| data.starts_with(prefix)))
        && filter.text_regex.as_ref().is_none_or(|regex| view.text.as_deref().is_some_and(|text| regex.is_match(text)))
}
