//! Which of a plugin's filters an update passes: what in earnest the host decides.

use crate::Update;
use crate::api::Json;
use crate::bindings::botyard::types::types::Command;
use crate::bindings::exports::botyard::plugin::handler::Filter;

pub(super) fn command(text: &str) -> Option<Command> {
    let rest = text.strip_prefix('/')?;
    let (name, args) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let name = name.split('@').next().unwrap_or_default().to_lowercase();
    Some(Command { name, args: args.trim().to_owned() })
}

/// Everything that the update alone decides.
pub(super) fn matches(filter: &Filter, update: &Update) -> bool {
    let any_or = |list: &[String], value: Option<&String>| list.is_empty() || value.is_some_and(|v| list.contains(v));
    let text = update.text.as_deref();
    let regex = filter.text_regex.as_deref().map(|regex| regex::Regex::new(regex).expect("the pattern is valid"));
    any_or(&filter.kinds, Some(&update.kind))
        && any_or(&filter.chat_types, update.chat_type.as_ref())
        && any_or(&filter.commands, update.command.as_ref().map(|command| &command.name))
        && regex.is_none_or(|regex| text.is_some_and(|text| regex.is_match(text)))
        && filter
            .callback_prefix
            .as_deref()
            .is_none_or(|prefix| update.callback_data.as_deref().is_some_and(|data| data.starts_with(prefix)))
        && filter.condition.as_deref().is_none_or(|condition| holds(condition, update))
}

/// What the host decides with the same code.
fn holds(condition: &str, update: &Update) -> bool {
    let condition = botyard_filter::Condition::parse(condition, 512 << 10);
    let condition = condition.unwrap_or_else(|error| panic!("the host would not take this filter: {error}"));
    let raw = Json::from(&*update.raw);
    // An album's messages are messages.
    let content = ["message", &update.kind].into_iter().find_map(|kind| raw.get(kind)).unwrap_or_else(Json::null);
    let language = crate::User::of(&content).language_code;
    condition.holds(&botyard_filter::Subject {
        chat: update.chat_id,
        chat_type: update.chat_type.as_deref(),
        topic: update.thread_id,
        user: update.user_id,
        language: language.as_deref(),
        text: update.text.as_deref(),
        args: update.command.as_ref().map(|command| &*command.args),
        content: content.as_json(),
        fields: Default::default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prelude::*;
    use crate::test::Bot;

    #[derive(serde::Deserialize)]
    struct Case {
        about: String,
        kind: String,
        body: Value,
        #[serde(rename = "true")]
        holds: Vec<String>,
        #[serde(rename = "false")]
        fails: Vec<String>,
    }

    #[plugin]
    mod quiet {
        #[text]
        fn nothing(_ctx: &mut Ctx) {}
    }

    /// The host goes through the same table.
    #[test]
    fn conditions_are_true_of_what_they_say() {
        let cases: Vec<Case> = serde_json::from_str(include_str!("../../filter/cases.json")).unwrap();
        for Case { about, kind, body, holds: holding, fails } in cases {
            let update = Bot::<quiet::Plugin>::new().received(&kind, &body);
            for (conditions, expected) in [(holding, true), (fails, false)] {
                for condition in conditions {
                    assert_eq!(holds(&condition, &update), expected, "{about}: {condition}");
                }
            }
        }
    }
}
