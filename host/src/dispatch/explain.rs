//! Why an update reaches a plugin or not, filter by filter; pure. The words for what `routes.rs` decides.

use super::routes::{Facts, Routes, matches};
use crate::domain::{ChatFacts, PluginName, UpdateView};
use crate::plugin::{Buttons, Filter, Plugin};

/// What an update means to one plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    /// The plugin.
    pub plugin: PluginName,
    /// Its turn among those that are asked, from 1; none if it is not.
    pub turn: Option<usize>,
    /// It only looks on.
    pub observes: bool,
    /// What the operator has not granted, so that it is not asked.
    pub denied: Option<String>,
    /// Each filter in words, and why the update does not pass it; none if it does.
    pub filters: Vec<(String, Option<String>)>,
}

/// The public name of a chat.
#[derive(serde::Deserialize)]
struct Named {
    username: Option<String>,
}

impl Routes {
    /// What an update means to each plugin, in the order of their priority. `state_of` names the state of the plugin's
    /// conversation; `username` is the bot's.
    pub fn explain(
        &self,
        view: &UpdateView<'_>,
        username: Option<&str>,
        state_of: impl Fn(&Plugin) -> Option<String>,
    ) -> Vec<Explained> {
        let facts = Facts::of(view, username, 0);
        // Alone of its album, as far as is known here.
        let album = view.album.is_some().then(|| Facts::of_album(view, username, 0));
        let is_known = self.has_command(&facts);
        let messages = std::slice::from_ref(&facts);
        let asked = self
            .candidates::<std::convert::Infallible>(messages, album.as_ref(), |version| Ok(state_of(&version.plugin)));
        let mut asked = asked.unwrap_or_else(|never| match never {});
        let username = view.chat_object.and_then(|chat| serde_json::from_str::<Named>(chat).ok()?.username);
        let chat = view.chat.map(|id| ChatFacts::Number {
            id,
            kind: view.chat_type.as_deref(),
            username: username.as_deref(),
        });
        asked.retain(|candidate| candidate.version.plugin.denies(&view.kind, chat.as_ref()).is_none());
        let explain = |plugin: &Plugin| {
            let state = state_of(plugin);
            let of_filter = |filter: &Filter| {
                let facts = album.as_ref().filter(|_| filter.asks_for_albums()).unwrap_or(&facts);
                (filter.to_string(), why_not(filter, &plugin.buttons(), facts, is_known, state.as_deref()))
            };
            let turn = asked.iter().position(|candidate| candidate.version.plugin.name == plugin.name);
            Explained {
                plugin: plugin.name.clone(),
                turn: turn.map(|turn| turn + 1),
                observes: turn.is_some_and(|turn| asked[turn].observes),
                denied: plugin.denies(&view.kind, chat.as_ref()),
                filters: plugin.manifest.filters.iter().map(of_filter).collect(),
            }
        };
        self.entries().iter().map(|entry| explain(&entry.plugin)).collect()
    }
}

/// The first thing that is not as the filter wants it.
fn why_not(
    filter: &Filter,
    buttons: &Buttons,
    facts: &Facts<'_>,
    is_known: bool,
    state: Option<&str>,
) -> Option<String> {
    // Part by part: a filter with one condition says whether that one holds.
    let only = |change: fn(&mut Filter, &Filter)| {
        let mut part = Filter::default();
        change(&mut part, filter);
        matches(&part, buttons, facts, is_known)
    };
    let view = facts.view;
    let kind = &view.kind;
    if !only(|part, filter| part.kinds.clone_from(&filter.kinds)) {
        return Some(format!("it is a `{kind}`"));
    }
    if !only(|part, filter| part.commands.clone_from(&filter.commands)) {
        return Some(match (&facts.command, view.command()) {
            (Some(command), _) => format!("the command is /{command}"),
            (None, Some(command)) => format!("/{} is for another bot", command.name),
            (None, None) => "it is no command".to_owned(),
        });
    }
    if !only(|part, filter| part.callback_prefix.clone_from(&filter.callback_prefix)) {
        return Some(match &view.callback_data {
            Some(data) => format!("the button's data is {data:?}"),
            None => "it is no pressed button".to_owned(),
        });
    }
    if !only(|part, filter| part.chat_types.clone_from(&filter.chat_types)) {
        return Some(format!("the chat is a {}", view.chat_type.as_deref().unwrap_or("unknown one")));
    }
    if !only(|part, filter| part.plain_text = filter.plain_text) {
        let is_command = view.text.is_some();
        return Some(if is_command { "it is a command of some plugin" } else { "it has no text" }.to_owned());
    }
    if !only(|part, filter| part.text_regex.clone_from(&filter.text_regex)) {
        return Some(if view.text.is_some() { "the text does not match" } else { "it has no text" }.to_owned());
    }
    if !only(|part, filter| part.text_keys.clone_from(&filter.text_keys)) {
        return Some("it is not the text of that button".to_owned());
    }
    if !only(|part, filter| part.condition.clone_from(&filter.condition)) {
        return Some("the condition is not true of it".to_owned());
    }
    let is_open = filter.states.is_empty() || state.is_some_and(|state| filter.states.iter().any(|name| name == state));
    (!is_open).then(|| match state {
        Some(state) => format!("the conversation is in state {state}"),
        None => "no conversation is open".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use botyard_filter::Condition;

    use super::*;

    fn filters() -> Vec<Filter> {
        let list = |items: &[&str]| items.iter().map(|&item| item.to_owned()).collect::<Vec<_>>();
        vec![
            Filter { commands: list(&["start", "help"]), ..Filter::default() },
            Filter { kinds: list(&["callback_query"]), callback_prefix: Some("buy:".to_owned()), ..Filter::default() },
            Filter { kinds: list(&["message"]), plain_text: true, states: list(&["name"]), ..Filter::default() },
            Filter { text_regex: regex::Regex::new("^tea").ok(), chat_types: list(&["group"]), ..Filter::default() },
            Filter { observe: true, condition: Condition::parse("!channel", 1 << 20).ok(), ..Filter::default() },
        ]
    }

    #[test]
    fn a_reason_is_given_exactly_where_the_filter_does_not_match() {
        let updates = [
            (
                r#"{"message":{"chat":{"id":1,"type":"private"},"text":"/start"}}"#,
                [None, Some("`message`"), Some("command of some"), Some("a private"), None],
            ),
            (
                r#"{"message":{"chat":{"id":1,"type":"group"},"text":"tea"}}"#,
                [Some("no command"), Some("`message`"), Some("no conversation"), None, None],
            ),
            (
                r#"{"callback_query":{"data":"sell:1"}}"#,
                [Some("no command"), Some("sell:1"), Some("`callback_query`"), Some("unknown one"), None],
            ),
            (
                r#"{"channel_post":{"chat":{"id":-1,"type":"channel"}}}"#,
                [
                    Some("no command"),
                    Some("`channel_post`"),
                    Some("`channel_post`"),
                    Some("a channel"),
                    Some("condition"),
                ],
            ),
            (
                r#"{"callback_query":{"data":"buy:1"}}"#,
                [Some("no command"), None, Some("`callback_query`"), Some("unknown one"), None],
            ),
        ];
        let buttons = Buttons::default();
        for (raw, expected) in updates {
            let view = UpdateView::parse(raw).unwrap();
            let facts = Facts::of(&view, None, 0);
            for (filter, expected) in filters().iter().zip(expected) {
                let is_known = facts.command.is_some();
                let reason = why_not(filter, &buttons, &facts, is_known, None);
                let is_open = filter.states.is_empty();
                assert_eq!(
                    reason.is_none(),
                    matches(filter, &buttons, &facts, is_known) && is_open,
                    "{raw}: {reason:?}"
                );
                match (&reason, expected) {
                    (None, None) => {}
                    (Some(reason), Some(word)) => assert!(reason.contains(word), "{raw}: {reason}"),
                    other => panic!("{raw}: {filter}: {other:?}"),
                }
            }
        }
        let view = UpdateView::parse(updates[1].0).unwrap();
        let facts = Facts::of(&view, None, 0);
        assert_eq!(why_not(&filters()[2], &buttons, &facts, false, Some("name")), None);
    }
}
