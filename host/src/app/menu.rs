//! The menus behind `/`: the commands of all plugins, in every language that one of them speaks, told to Telegram when
//! something has changed, and only then.
//!
//! Telegram shows one list: the one of the most particular scope that has any, in the user's language if that scope has
//! it, and nothing of the others. So what everybody sees is the list without a scope, and the list of a scope, where a
//! plugin has something for it, is that and what comes on top. A plugin that is granted only some chats is in the menus of
//! these alone: of the kinds of chats that it is granted, and in a list of its own for each single one.
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
use crate::domain::{BotId, ChatGrant, ChatId, Lane};
use crate::plugin::Menu;
use crate::store::rows::menu::{self, MenuList, MenuRow};
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

/// Scopes (empty: everybody) and language codes (empty: everybody else), each with its commands in order.
type Menus = BTreeMap<(String, String), List>;
type List = Vec<(String, String)>;

/// Telegram's names for the scopes of one chat and of its administrators; which chat it is stands behind a colon.
const CHAT: &str = "chat";
const CHAT_ADMINISTRATORS: &str = "chat_administrators";

/// Telegram's names for the scopes, what stands in them, and which of them is shown where there is no list.
const SCOPES: [(Menu, &str); 3] = [
    (Menu::Private, "all_private_chats"),
    (Menu::Groups, "all_group_chats"),
    (Menu::Administrators, "all_chat_administrators"),
];

/// What a plugin adds to the menu.
struct Source<'a> {
    /// Names, what describes them, and the menus that they are in.
    commands: Vec<(&'a str, &'a str, &'a [Menu])>,
    locales: Vec<String>,
    translate: Translate<'a>,
    /// The only chats that it is offered events of; `None` for all.
    chats: Option<Vec<ChatGrant>>,
}

/// A list that somebody may be shown.
#[derive(Clone, Copy)]
struct View<'a> {
    /// Without one, what stands in all of them.
    menu: Option<Menu>,
    /// The one chat whose list it is.
    chat: Option<&'a ChatGrant>,
}

impl Source<'_> {
    /// Whether its commands are answered in the chats whose list it is.
    fn is_in(&self, View { menu, chat }: View<'_>) -> bool {
        let is_granted = |kinds: &[&str]| {
            self.chats.as_ref().is_none_or(|granted| {
                granted.iter().any(|one| match one {
                    ChatGrant::Kind(kind) => kinds.contains(kind),
                    ChatGrant::Id(_) | ChatGrant::Name(_) => chat == Some(one),
                })
            })
        };
        let (in_private, in_groups) = (is_granted(&["private"]), is_granted(&["group", "supergroup"]));
        match menu {
            None => in_private && in_groups,
            Some(Menu::Private) => in_private,
            Some(Menu::Groups | Menu::Administrators) => in_groups,
        }
    }
}

/// From a locale and a key to a text.
type Translate<'a> = Box<dyn Fn(&str, &str) -> Option<String> + 'a>;

/// Follows what the plugins offer.
pub(super) async fn follow(parts: Arc<Parts>, client: Arc<Client>, bot: BotId, default_locale: String) {
    let mut failures = 0;
    loop {
        let current = |chat| match parts.sender.chats().lane(Lane::Chat(chat)) {
            Lane::Chat(current) => current,
            _ => chat,
        };
        let wanted = wanted(&parts.dispatcher.routes(), &default_locale, current);
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
async fn tell(parts: &Parts, client: &Client, bot: BotId, wanted: Menus) -> Result<(), Trouble> {
    let stored = parts.store.get(&menu::key(bot))?;
    // One that can't be read is as good as none: all is told again.
    let told = stored.and_then(|row| MenuRow::decode(&row).ok()).unwrap_or_default().lists;
    let mut told: Menus = told.into_iter().map(|list| ((list.scope, list.language), list.commands)).collect();
    let places: BTreeSet<_> = wanted.keys().chain(told.keys()).cloned().collect();
    for place in places {
        let (scope, language) = &place;
        let list = wanted.get(&place);
        if list == told.get(&place) {
            continue;
        }
        let mut params = json!({});
        if !scope.is_empty() {
            params["scope"] = scope_of(scope);
        }
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
        match client.call(method, Bytes::from(params.to_string()), DEADLINE).await {
            // The bot is not in that chat: the others' lists don't depend on it.
            Err(error @ Error::Refused { .. }) if scope.contains(':') => {
                tracing::warn!(scope, %error, "Telegram refuses a chat's menu of commands");
                if list.is_some() {
                    continue;
                }
            }
            answer => drop(answer?),
        }
        tracing::info!(scope, language, commands = list.map_or(0, Vec::len), "Telegram knows the menu of commands");
        match list {
            Some(list) => told.insert(place, list.clone()),
            None => told.remove(&place),
        };
        let lists = told.iter().map(|((scope, language), commands)| MenuList {
            scope: scope.clone(),
            language: language.clone(),
            commands: commands.clone(),
        });
        let row = MenuRow { lists: lists.collect() };
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

/// A scope as Telegram wants it.
fn scope_of(scope: &str) -> Value {
    match scope.split_once(':') {
        Some((scope, chat)) => {
            let chat = chat.parse::<i64>().map_or_else(|_| chat.into(), Value::from);
            json!({ "type": scope, "chat_id": chat })
        }
        None => json!({ "type": scope }),
    }
}

/// `current` tells which supergroup a group has become.
fn wanted(routes: &Routes, default_locale: &str, current: impl Fn(ChatId) -> ChatId) -> Menus {
    // Nobody is shown a command that nobody answers.
    let plugins = routes.entries().iter().map(|entry| entry.newest()).filter(|plugin| plugin.may_see("message"));
    let sources = plugins.map(|plugin| {
        let commands = plugin.manifest.commands.iter();
        Source {
            commands: commands
                .map(|command| (command.name.as_str(), command.description_key.as_str(), command.menus.as_slice()))
                .collect(),
            locales: plugin.locales().collect(),
            translate: Box::new(|locale, key| plugin.translate(locale, key, &[])),
            chats: plugin.chats().map(|chats| {
                let now = |chat: &ChatGrant| match chat {
                    ChatGrant::Id(id) => ChatGrant::Id(current(*id)),
                    other => other.clone(),
                };
                chats.iter().map(now).collect()
            }),
        }
    });
    merged(&sources.collect::<Vec<_>>(), default_locale)
}

/// The lists of each scope and language; pure. Plugins that are asked first come first, and where two have the same
/// command, the first one's word counts: it will get it. A scope has lists only where it has other commands than what
/// would be shown in its place, and a language only where it says something else than everybody's.
fn merged(sources: &[Source<'_>], default_locale: &str) -> Menus {
    let languages = sources.iter().flat_map(|source| &source.locales).filter_map(|locale| language_code(locale));
    let languages: BTreeSet<String> = languages.collect();
    let mut menus = Menus::new();
    let mut add = |scope: &str, view: View<'_>| {
        let everybody = list(sources, default_locale, view);
        for language in &languages {
            let list = list(sources, language, view);
            if list != everybody {
                menus.insert((scope.to_owned(), language.clone()), list);
            }
        }
        if !everybody.is_empty() {
            menus.insert((scope.to_owned(), String::new()), everybody);
        }
    };
    let names = |view| list(sources, default_locale, view).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    let general = |menu| View { menu, chat: None };
    add("", general(None));
    for (menu, scope) in SCOPES {
        let otherwise = match menu {
            Menu::Private | Menu::Groups => None,
            Menu::Administrators => Some(Menu::Groups),
        };
        if names(general(Some(menu))) != names(general(otherwise)) {
            add(scope, general(Some(menu)));
        }
    }
    for chat in chats(sources) {
        let of_chat = |menu| View { menu: Some(menu), chat: Some(chat) };
        let (place, own) = match chat {
            ChatGrant::Id(ChatId(id)) if *id > 0 => (id.to_string(), Menu::Private),
            ChatGrant::Id(id) => (id.to_string(), Menu::Groups),
            ChatGrant::Name(name) => (format!("@{name}"), Menu::Groups),
            ChatGrant::Kind(_) => continue,
        };
        let is_own = names(of_chat(own)) != names(general(Some(own)));
        if is_own {
            add(&format!("{CHAT}:{place}"), of_chat(own));
        }
        // The list of a chat goes before that of all administrators.
        let otherwise = if is_own { of_chat(own) } else { general(Some(Menu::Administrators)) };
        if own == Menu::Groups && names(of_chat(Menu::Administrators)) != names(otherwise) {
            add(&format!("{CHAT_ADMINISTRATORS}:{place}"), of_chat(Menu::Administrators));
        }
    }
    menus
}

/// Those that a plugin is granted by themselves, each once.
fn chats<'a>(sources: &'a [Source<'_>]) -> Vec<&'a ChatGrant> {
    let mut found: Vec<&ChatGrant> = Vec::new();
    for chat in sources.iter().filter_map(|source| source.chats.as_ref()).flatten() {
        if !matches!(chat, ChatGrant::Kind(_)) && !found.contains(&chat) {
            found.push(chat);
        }
    }
    found
}

/// What stands in a menu; without one, what stands in all of them.
fn is_shown(menus: &[Menu], shown: Option<Menu>) -> bool {
    let everywhere = menus.is_empty() || (menus.contains(&Menu::Private) && menus.contains(&Menu::Groups));
    everywhere
        || match shown {
            None => false,
            // What a group's members see, its administrators see as well.
            Some(Menu::Administrators) => menus.contains(&Menu::Administrators) || menus.contains(&Menu::Groups),
            Some(menu) => menus.contains(&menu),
        }
}

fn list(sources: &[Source<'_>], locale: &str, view: View<'_>) -> List {
    let mut seen = BTreeSet::new();
    let all = sources.iter().flat_map(|source| source.commands.iter().map(move |command| (source, command)));
    all.filter(|(source, (name, _, menus))| {
        is_name(name) && source.is_in(view) && seen.insert(*name) && is_shown(menus, view.menu)
    })
    .map(|(source, (name, key, _))| {
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
        scoped(&commands.iter().map(|(name, key)| (*name, *key, &[][..])).collect::<Vec<_>>(), texts)
    }

    fn scoped<'a>(commands: &[(&'a str, &'a str, &'a [Menu])], texts: &'a [(&'a str, &'a str, &'a str)]) -> Source<'a> {
        let translate = move |locale: &str, key: &str| {
            let text = |wanted: &str| texts.iter().find(|(of, name, _)| *of == wanted && *name == key);
            text(locale).or_else(|| text("en")).map(|(_, _, text)| (*text).to_owned())
        };
        let locales = texts.iter().map(|(locale, _, _)| (*locale).to_owned()).collect();
        Source { commands: commands.to_vec(), locales, translate: Box::new(translate), chats: None }
    }

    fn shown(menus: &Menus) -> Vec<String> {
        let line = |((scope, language), list): (&(String, String), &List)| {
            let list: Vec<_> = list.iter().map(|(name, text)| format!("{name}: {text}")).collect();
            let scope = if scope.is_empty() { String::new() } else { format!("{scope} ") };
            format!("{scope}{language} [{}]", list.join(", "))
        };
        menus.iter().map(line).collect()
    }

    #[test]
    fn a_scope_has_lists_where_it_has_commands_of_its_own() {
        use Menu::{Administrators, Groups, Private};
        let texts = [("en", "a", "A"), ("uz", "a", "O"), ("en", "ban", "Ban")];
        let first = [("a", "a", &[][..]), ("pay", "Pay", &[Private][..]), ("ban", "ban", &[Administrators][..])];
        assert_eq!(
            shown(&merged(&[scoped(&first, &texts)], "en")),
            [
                " [a: A]",
                "uz [a: O]",
                "all_chat_administrators  [a: A, ban: Ban]",
                "all_chat_administrators uz [a: O, ban: Ban]",
                "all_private_chats  [a: A, pay: Pay]",
                "all_private_chats uz [a: O, pay: Pay]",
            ]
        );
        // Administrators see what groups see; and what is for both kinds of chats is for everybody.
        let groups = [("poll", "Poll", &[Groups][..]), ("all", "All", &[Groups, Private][..])];
        assert_eq!(
            shown(&merged(&[scoped(&groups, &[])], "en")),
            [" [all: All]", "all_group_chats  [poll: Poll, all: All]",]
        );
        // A command that another plugin takes first is that plugin's, in every menu.
        let (private, everywhere) = ([("go", "Private", &[Private][..])], [("go", "Everywhere", &[][..])]);
        let both = [scoped(&private, &[]), scoped(&everywhere, &[])];
        assert_eq!(shown(&merged(&both, "en")), ["all_private_chats  [go: Private]"]);
    }

    #[test]
    fn a_plugin_is_in_the_menus_of_those_chats_that_it_is_granted() {
        let chats = |names: &[&str]| -> Option<Vec<ChatGrant>> {
            let grant = |name: &&str| match name.parse() {
                Ok(id) => ChatGrant::Id(ChatId(id)),
                Err(_) => ChatGrant::parse(name).unwrap(),
            };
            Some(names.iter().map(grant).collect())
        };
        let of = |granted: &[&str], commands: &[(&'static str, &'static str, &'static [Menu])]| {
            let only = Source { chats: chats(granted), ..scoped(commands, &[]) };
            shown(&merged(&[only, source(&[("all", "All")], &[])], "en"))
        };
        let go: &[(&'static str, &'static str, &'static [Menu])] = &[("go", "Go", &[])];
        assert_eq!(of(&["private"], go), [" [all: All]", "all_private_chats  [go: Go, all: All]"]);
        assert_eq!(of(&["supergroup"], go), [" [all: All]", "all_group_chats  [go: Go, all: All]"]);
        assert_eq!(of(&["private", "group"], go), [" [go: Go, all: All]"]);
        assert_eq!(of(&["channel"], go), [" [all: All]"]);
        assert_eq!(
            of(&["7", "-1005", "@news"], go),
            [
                " [all: All]",
                "chat:-1005  [go: Go, all: All]",
                "chat:7  [go: Go, all: All]",
                "chat:@news  [go: Go, all: All]",
            ]
        );
        // A chat's list goes before that of administrators, who must not lose theirs by it.
        let ban: &[(&'static str, &'static str, &'static [Menu])] = &[("ban", "Ban", &[Menu::Administrators])];
        assert_eq!(of(&["-1005"], ban), [" [all: All]", "chat_administrators:-1005  [ban: Ban, all: All]"]);
        let other = scoped(ban, &[]);
        let only = Source { chats: chats(&["-1005"]), ..scoped(go, &[]) };
        assert_eq!(
            shown(&merged(&[only, other], "en")),
            [
                "all_chat_administrators  [ban: Ban]",
                "chat:-1005  [go: Go]",
                "chat_administrators:-1005  [go: Go, ban: Ban]",
            ]
        );
        // Where the one that has a command first is not asked, it is the other one's.
        let only = Source { chats: chats(&["private"]), ..scoped(&[("all", "Mine", &[])], &[]) };
        assert_eq!(shown(&merged(&[only, source(&[("all", "All")], &[])], "en")), [" [all: All]"]);
        assert_eq!(scope_of("chat:-1005"), json!({ "type": "chat", "chat_id": -1005 }));
        assert_eq!(scope_of("chat_administrators:@news"), json!({ "type": "chat_administrators", "chat_id": "@news" }));
        assert_eq!(scope_of("all_group_chats"), json!({ "type": "all_group_chats" }));
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
        let list = &menu[&(String::new(), String::new())];
        assert_eq!(
            list.iter().map(|(name, text)| (name.as_str(), text.len())).collect::<Vec<_>>(),
            [("ok", 256), ("none", 4)]
        );
        let names: Vec<String> = (0..150).map(|n| format!("c{n}")).collect();
        let many: Vec<_> = names.iter().map(|name| (name.as_str(), "text")).collect();
        assert_eq!(merged(&[source(&many, &[])], "en")[&(String::new(), String::new())].len(), MOST);
        assert!(merged(&[source(&[], &[("en", "a", "b")])], "en").is_empty());
    }
}
