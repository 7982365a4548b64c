//! Which plugins an event is offered to, and in which order; pure.
//!
//! Decided from the manifests alone, without waking a plugin: first those that observe, then those whose
//! conversation waits for just this, then the others by priority, until one takes it.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use botyard_filter::{Fields, Subject};

use super::trial::{Chosen, Trial};
use crate::config::OnCrash;
use crate::domain::{Conversation, KeyStrategy, PluginName, UpdateView};
use crate::plugin::{Buttons, Filter, Plugin, Standing};

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
        self.standing() == Standing::OnTrial
    }

    pub(super) fn standing(&self) -> Standing {
        match self.trial {
            Some((_, Chosen::New)) => Standing::OnTrial,
            Some((_, Chosen::SecondOpinion)) => Standing::Asked,
            Some((_, Chosen::Old)) | None => Standing::Serves,
        }
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

    /// The version for an event.
    fn version_for(&self, facts: &Facts<'_>) -> Version {
        let view = facts.view;
        let conversation = Conversation::of(self.plugin.manifest.key, view.chat, view.user, view.thread);
        self.version(&conversation, facts.attempts)
    }
}

/// The plugins that serve at one moment. An event is handled by one such picture from beginning to end.
#[derive(Default)]
pub struct Routes {
    entries: Vec<Entry>,
    /// Those of plugins without a version on trial.
    commands: HashSet<String>,
    albums: bool,
}

/// A plugin that is offered an event.
pub(super) struct Candidate {
    pub(super) version: Version,
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
    /// How often the event has failed.
    pub(super) attempts: u32,
    /// It is an album as a whole.
    pub(super) album: bool,
    /// It is a press of this plugin's button: others may look on, but not at its data.
    pub(super) owner: Option<PluginName>,
    /// For conditions.
    subject: Subject<'a>,
}

impl<'a> Facts<'a> {
    /// `username` is the bot's own name.
    pub(super) fn of(view: &'a UpdateView<'a>, username: Option<&str>, attempts: u32) -> Self {
        let command = view.command().filter(|command| command.is_for(username));
        let subject = Subject {
            chat: view.chat.map(|id| id.0),
            chat_type: view.chat_type.as_deref(),
            topic: view.thread.map(|id| id.0),
            user: view.user.map(|id| id.0),
            language: view.language.as_deref(),
            text: view.text.as_deref(),
            args: command.map(|command| command.args),
            content: view.content,
            fields: Fields::default(),
        };
        let command = command.map(|command| command.name.to_ascii_lowercase());
        Self { view, command, attempts, album: false, owner: None, subject }
    }

    /// Of an album: its first message, with the album's text.
    pub(super) fn of_album(view: &'a UpdateView<'a>, username: Option<&str>, attempts: u32) -> Self {
        Self { album: true, ..Self::of(view, username, attempts) }
    }
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
        let versions = entries.iter().flat_map(Entry::versions);
        let albums = versions.flat_map(|plugin| &plugin.manifest.filters).any(Filter::asks_for_albums);
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
        let versions = self.entries.iter().flat_map(Entry::versions);
        let filters = versions.flat_map(|plugin| plugin.manifest.filters.iter().map(move |filter| (plugin, filter)));
        let kinds =
            filters.flat_map(|(plugin, filter)| filter.wanted_kinds().into_iter().map(move |kind| (plugin, kind)));
        let kinds: BTreeSet<&str> = kinds.filter(|(plugin, kind)| plugin.may_see(kind)).map(|(_, kind)| kind).collect();
        kinds.into_iter().map(str::to_owned).collect()
    }

    /// What a conversation is to the least particular of the plugins, versions on trial included: what events must keep
    /// their order in.
    #[must_use]
    pub fn key(&self) -> KeyStrategy {
        let versions = self.entries.iter().flat_map(Entry::versions);
        versions.map(|plugin| plugin.manifest.key).reduce(KeyStrategy::join).unwrap_or_default()
    }

    /// Whether some plugin takes albums whole.
    pub(super) fn want_albums(&self) -> bool {
        self.albums
    }

    /// Whether some plugin has the event's command, in the version that the event is for.
    pub(super) fn has_command(&self, facts: &Facts<'_>) -> bool {
        let Some(name) = &facts.command else { return false };
        let mut trials = self.entries.iter().filter(|entry| entry.trial.is_some());
        let is_on_trial = |entry: &Entry| {
            let version = entry.version_for(facts);
            version.plugin.manifest.filters.iter().any(|filter| filter.commands.contains(name))
        };
        self.commands.contains(name) || trials.any(is_on_trial)
    }

    pub(super) fn entry(&self, name: &PluginName) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.plugin.name == *name)
    }

    pub(super) fn find(&self, name: &PluginName, conversation: &Conversation, attempts: u32) -> Option<Version> {
        Some(self.entry(name)?.version(conversation, attempts))
    }

    /// Who is offered the event: one update, or the messages of an album and, apart, the album as a whole. A plugin that
    /// asks for this album is not asked about its messages. `state_of` answers with the name of the plugin's open state
    /// in the event's conversation; it is asked at most once per plugin, and only where a filter depends on it.
    pub(super) fn candidates<E>(
        &self,
        messages: &[Facts<'_>],
        album: Option<&Facts<'_>>,
        mut state_of: impl FnMut(&Version) -> Result<Option<String>, E>,
    ) -> Result<Vec<Candidate>, E> {
        let (mut observers, mut holders, mut others) = (Vec::new(), Vec::new(), Vec::new());
        // Its messages are of the same conversation.
        let Some(any) = album.or(messages.first()) else { return Ok(Vec::new()) };
        for entry in &self.entries {
            let version = entry.version_for(any);
            let plugin = &version.plugin;
            let mut state = None;
            let mut is_open = |filter: &Filter| {
                if state.is_none() {
                    state = Some(state_of(&version)?);
                }
                let open = state.as_ref().and_then(Option::as_ref);
                Ok(open.is_some_and(|open| filter.states.contains(open)))
            };
            let is_others = any.owner.as_ref().is_some_and(|owner| *owner != plugin.name);
            let may_see = |filter: &Filter| !is_others || (filter.observe && filter.callback_prefix.is_none());
            let mut found = Found::default();
            if let Some(album) = album {
                found.look(plugin, |filter| self.matches(plugin, filter, album), &mut is_open)?;
            }
            let is_whole = !found.is_empty();
            if !is_whole {
                let matches = |filter: &Filter| {
                    may_see(filter) && messages.iter().any(|facts| self.matches(plugin, filter, facts))
                };
                found.look(plugin, matches, &mut is_open)?;
            }
            if !found.observing.is_empty() {
                let matched = found.observing;
                let version = version.clone();
                observers.push(Candidate { version, observes: true, album: is_whole, matched });
            }
            if !found.taking.is_empty() {
                let rank = if found.holds { &mut holders } else { &mut others };
                let matched = found.taking;
                rank.push(Candidate { version, observes: false, album: is_whole, matched });
            }
        }
        observers.append(&mut holders);
        observers.append(&mut others);
        Ok(observers)
    }

    /// The plugin's observing filters that one message of an album matches.
    pub(super) fn observed_by<E>(
        &self,
        version: &Version,
        facts: &Facts<'_>,
        mut state_of: impl FnMut(&Version) -> Result<Option<String>, E>,
    ) -> Result<Vec<u32>, E> {
        let plugin = &version.plugin;
        let mut found = Found::default();
        found.look(plugin, |filter| self.matches(plugin, filter, facts), &mut |filter| {
            Ok(state_of(version)?.is_some_and(|open| filter.states.contains(&open)))
        })?;
        Ok(found.observing)
    }

    /// Everything but the state.
    fn matches(&self, plugin: &Plugin, filter: &Filter, facts: &Facts<'_>) -> bool {
        matches(filter, &plugin.buttons(), facts, filter.plain_text && self.has_command(facts))
    }
}

/// Everything but the state.
pub(super) fn matches(filter: &Filter, buttons: &Buttons, facts: &Facts<'_>, is_known_command: bool) -> bool {
    let view = facts.view;
    let any_or = |list: &[String], value: Option<&str>| {
        list.is_empty() || value.is_some_and(|value| list.iter().any(|item| item == value))
    };
    (if facts.album { filter.asks_for_albums() } else { any_or(&filter.kinds, Some(&view.kind)) })
        && any_or(&filter.chat_types, view.chat_type.as_deref())
        && any_or(&filter.commands, facts.command.as_deref())
        && (!filter.plain_text || (view.text.is_some() && !is_known_command))
        && filter
            .callback_prefix
            .as_deref()
            .is_none_or(|prefix| view.callback_data.as_deref().is_some_and(|data| data.starts_with(prefix)))
        && filter.text_regex.as_ref().is_none_or(|regex| view.text.as_deref().is_some_and(|text| regex.is_match(text)))
        && (filter.text_keys.is_empty()
            || view.text.as_deref().is_some_and(|text| buttons.says(&filter.text_keys, text)))
        && filter.condition.as_ref().is_none_or(|condition| condition.holds(&facts.subject))
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

#[cfg(test)]
mod tests {
    use botyard_filter::Condition;

    use super::*;

    #[derive(serde::Deserialize)]
    struct Case {
        about: String,
        kind: String,
        body: serde_json::Value,
        #[serde(rename = "true")]
        holds: Vec<String>,
        #[serde(rename = "false")]
        fails: Vec<String>,
    }

    /// The SDK's test driver goes through the same table.
    #[test]
    fn conditions_are_true_of_what_they_say() {
        let cases: Vec<Case> = serde_json::from_str(include_str!("../../../sdk/filter/cases.json")).unwrap();
        for Case { about, kind, body, holds, fails } in cases {
            let raw = serde_json::json!({ "update_id": 1, kind: body }).to_string();
            let view = UpdateView::parse(&raw).unwrap();
            let facts = Facts::of(&view, Some("botyard_bot"), 0);
            for (conditions, expected) in [(holds, true), (fails, false)] {
                for text in conditions {
                    let condition = Condition::parse(&text, 1 << 20).unwrap();
                    assert_eq!(condition.holds(&facts.subject), expected, "{about}: {text}");
                }
            }
        }
    }

    #[test]
    fn a_command_for_another_bot_has_no_arguments() {
        let raw = r#"{"update_id":1,"message":{"chat":{"id":7,"type":"private"},"text":"/start@other ref-1"}}"#;
        let view = UpdateView::parse(raw).unwrap();
        let condition = Condition::parse("args_begin(\"ref-\")", 1 << 20).unwrap();
        assert!(!condition.holds(&Facts::of(&view, Some("botyard_bot"), 0).subject));
        assert!(condition.holds(&Facts::of(&view, Some("Other"), 0).subject));
    }
}
