//! The menu behind `/`: the commands of all plugins in one list, in every language that one of them speaks, told to
//! Telegram when it has changed, and only then.
//!
//! It has its own pace and never keeps anything waiting: a refusal is told of in the log, anything else is tried again
//! until it is done or the menu changes again. A list that no plugin has anything for any more is taken back, unless it
//! was never ours.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};

use super::Parts;
use crate::backoff;
use crate::dispatch::Routes;
use crate::domain::BotId;
use crate::store::rows::menu::{self, MenuRow};
use crate::store::{self, Commit, CommitError, Op};
use crate::telegram::{Client, Error};

const DEADLINE: Duration = Duration::from_secs(20);
/// Plugins are often swapped several at a time.
const QUIET: Duration = Duration::from_secs(1);
const REFUSED_TOKEN: Duration = Duration::from_secs(300);
/// Telegram's bounds: commands in a list, characters of a name and of a description.
const MOST: usize = 100;
const LONGEST_NAME: usize = 32;
const LONGEST_DESCRIPTION: usize = 256;

/// Language codes, the empty one for everybody else, each with its commands in order.
type Menu = BTreeMap<String, Vec<(String, String)>>;

/// What a plugin adds to the menu.
struct Source<'a> {
    /// Names, and what describes them.
    commands: Vec<(&'a str, &'a str)>,
    locales: Vec<String>,
    translate: Translate<'a>,
}

/// From a locale and a key to a text.
type Translate<'a> = Box<dyn Fn(&str, &str) -> Option<String> + 'a>;

/// Follows what the plugins offer.
pub(super) async fn follow(parts: Arc<Parts>, client: Arc<Client>, bot: BotId, default_locale: String) {
    let mut failures = 0;
    loop {
        let wanted = wanted(&parts.dispatcher.routes(), &default_locale);
        let pause = match tell(&parts, &client, bot, wanted).await {
            Ok(()) => {
                failures = 0;
                parts.menu.notified().await;
                QUIET
            }
            Err(Trouble::Refused(error)) => {
                tracing::warn!(%error, "Telegram refuses the menu of commands; it stays as it was");
                parts.menu.notified().await;
                QUIET
            }
            Err(Trouble::Store(error)) => {
                tracing::error!(%error, "what the menu of commands was can't be read or written");
                return;
            }
            Err(Trouble::Wait(at_least)) => {
                failures += 1;
                backoff::delay(failures, rand::random()).max(at_least)
            }
        };
        tokio::time::sleep(pause).await;
    }
}

enum Trouble {
    /// Not before this has passed.
    Wait(Duration),
    Refused(Error),
    Store(store::Error),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        match error {
            Error::Flooded { retry_after, .. } => Self::Wait(retry_after),
            Error::Refused { .. } => Self::Refused(error),
            // Intake tells of that, and looks after it.
            Error::Unauthorized { .. } => Self::Wait(REFUSED_TOKEN),
            _ => Self::Wait(Duration::ZERO),
        }
    }
}

impl From<store::Error> for Trouble {
    fn from(error: store::Error) -> Self {
        Self::Store(error)
    }
}

/// Tells Telegram what differs, list by list, and writes down what it has been told.
async fn tell(parts: &Parts, client: &Client, bot: BotId, wanted: Menu) -> Result<(), Trouble> {
    let stored = parts.store.get(&menu::key(bot))?;
    // One that can't be read is as good as none: all is told again.
    let mut told: Menu =
        stored.and_then(|row| MenuRow::decode(&row).ok()).unwrap_or_default().lists.into_iter().collect();
    let languages: BTreeSet<String> = wanted.keys().chain(told.keys()).cloned().collect();
    for language in languages {
        let list = wanted.get(&language);
        if list == told.get(&language) {
            continue;
        }
        let mut params = json!({});
        if !language.is_empty() {
            params["language_code"] = language.as_str().into();
        }
        let method = match list {
            Some(list) => {
                params["commands"] = list.iter().map(command).collect();
                "setMyCommands"
            }
            None => "deleteMyCommands",
        };
        client.call(method, Bytes::from(params.to_string()), DEADLINE).await?;
        tracing::info!(language, commands = list.map_or(0, Vec::len), "Telegram knows the menu of commands");
        match list {
            Some(list) => told.insert(language, list.clone()),
            None => told.remove(&language),
        };
        let row = MenuRow { lists: told.clone().into_iter().collect() };
        let ops = vec![Op::Put { key: menu::key(bot), value: row.encode() }];
        match parts.store.commit(Commit { ops, ..Commit::default() }).await {
            Ok(_) | Err(CommitError::Conflict { .. }) => {}
            Err(CommitError::Store(error)) => return Err(error.into()),
        }
    }
    Ok(())
}

fn command((name, description): &(String, String)) -> Value {
    json!({ "command": name, "description": description })
}

fn wanted(routes: &Routes, default_locale: &str) -> Menu {
    // Nobody is shown a command that nobody answers.
    let plugins = routes.entries().iter().map(|entry| entry.newest()).filter(|plugin| plugin.may_see("message"));
    let sources = plugins.map(|plugin| {
        let commands = plugin.manifest.commands.iter();
        Source {
            commands: commands.map(|command| (command.name.as_str(), command.description_key.as_str())).collect(),
            locales: plugin.locales().collect(),
            translate: Box::new(|locale, key| plugin.translate(locale, key, Vec::new())),
        }
    });
    merged(&sources.collect::<Vec<_>>(), default_locale)
}

/// One list for each language; pure. Plugins that are asked first come first, and where two have the same command, the
/// first one's word counts: it will get it. A language's list is given only where it differs from everybody's.
fn merged(sources: &[Source<'_>], default_locale: &str) -> Menu {
    let languages = sources.iter().flat_map(|source| &source.locales).filter_map(|locale| language_code(locale));
    let mut menu = Menu::new();
    let everybody = list(sources, default_locale);
    for language in languages.collect::<BTreeSet<_>>() {
        let list = list(sources, &language);
        if list != everybody {
            menu.insert(language, list);
        }
    }
    if !everybody.is_empty() {
        menu.insert(String::new(), everybody);
    }
    menu
}

fn list(sources: &[Source<'_>], locale: &str) -> Vec<(String, String)> {
    let mut seen = BTreeSet::new();
    let all = sources.iter().flat_map(|source| source.commands.iter().map(move |command| (source, command)));
    all.filter(|(_, (name, _))| is_name(name) && seen.insert(*name))
        .map(|(source, (name, key))| {
            // A text that is no key describes itself.
            let text = (source.translate)(locale, key).unwrap_or_else(|| (*key).to_owned());
            ((*name).to_owned(), described(&text, name))
        })
        .take(MOST)
        .collect()
}

/// Telegram takes no other names in a menu; the command works all the same.
fn is_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(allowed)
}

fn described(text: &str, name: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.is_empty() { name.to_owned() } else { line.chars().take(LONGEST_DESCRIPTION).collect() }
}

/// The two letters that Telegram tells languages apart by.
fn language_code(locale: &str) -> Option<String> {
    let language = locale.split(['-', '_']).next().unwrap_or_default();
    (language.len() == 2 && language.bytes().all(|byte| byte.is_ascii_alphabetic()))
        .then(|| language.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source<'a>(commands: &[(&'a str, &'a str)], texts: &'a [(&'a str, &'a str, &'a str)]) -> Source<'a> {
        let translate = move |locale: &str, key: &str| {
            let text = |wanted: &str| texts.iter().find(|(of, name, _)| *of == wanted && *name == key);
            text(locale).or_else(|| text("en")).map(|(_, _, text)| (*text).to_owned())
        };
        let locales = texts.iter().map(|(locale, _, _)| (*locale).to_owned()).collect();
        Source { commands: commands.to_vec(), locales, translate: Box::new(translate) }
    }

    fn shown(menu: &Menu) -> Vec<String> {
        let line = |(language, list): (&String, &Vec<(String, String)>)| {
            let list: Vec<_> = list.iter().map(|(name, text)| format!("{name}: {text}")).collect();
            format!("{language} [{}]", list.join(", "))
        };
        menu.iter().map(line).collect()
    }

    #[test]
    fn the_first_plugin_that_has_a_command_describes_it() {
        let sources =
            [source(&[("start", "Begin"), ("help", "Help")], &[]), source(&[("start", "Other"), ("stop", "End")], &[])];
        assert_eq!(shown(&merged(&sources, "en")), [" [start: Begin, help: Help, stop: End]"]);
    }

    #[test]
    fn a_language_has_a_list_where_it_says_something_else() {
        let texts = [("en", "go", "Go on"), ("uz", "go", "Davom"), ("pt-BR", "go", "Go on"), ("zho", "go", "?")];
        let sources = [source(&[("go", "go")], &texts)];
        assert_eq!(shown(&merged(&sources, "en")), [" [go: Go on]", "uz [go: Davom]"]);
        assert_eq!(shown(&merged(&sources, "uz")), [" [go: Davom]", "en [go: Go on]", "pt [go: Go on]"]);
    }

    #[test]
    fn what_telegram_would_refuse_is_left_out_or_shortened() {
        let long = "x".repeat(300);
        let sources = [source(&[("Upper", "no"), ("a-b", "no"), ("", "no"), ("ok", &long), ("none", " \n ")], &[])];
        let menu = merged(&sources, "en");
        let list = &menu[""];
        assert_eq!(
            list.iter().map(|(name, text)| (name.as_str(), text.len())).collect::<Vec<_>>(),
            [("ok", 256), ("none", 4)]
        );
        let names: Vec<String> = (0..150).map(|n| format!("c{n}")).collect();
        let many: Vec<_> = names.iter().map(|name| (name.as_str(), "text")).collect();
        assert_eq!(merged(&[source(&many, &[])], "en")[""].len(), MOST);
        assert!(merged(&[source(&[], &[("en", "a", "b")])], "en").is_empty());
    }
}
