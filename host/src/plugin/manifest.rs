//! What a plugin says of itself, checked and made ready for use.

mod shown;

use std::time::Duration;

use botyard_filter::{Condition, REGEX_TEST};
use regex::{Regex, RegexBuilder};

use super::api::shorten;
use super::bindings::exports::botyard::plugin::handler as wire;
use super::grants;
use crate::domain::{KeyStrategy, OriginPattern, UPDATE_KINDS};
use crate::recurrence::{Misfire, Rule};

/// A compiled regular expression may not be larger than this. At its worst one of this size takes 30 ms for the
/// longest text, on the host's time.
const REGEX_BYTES: usize = 512 << 10;
/// Nor may all of a plugin's together.
const ALL_REGEX_BYTES: usize = 2 << 20;
/// Bytes of all conditions of a plugin together: an event goes through each of them.
const CONDITION_BYTES: usize = 64 << 10;
/// Ways in which events reach a plugin.
const MOST_FILTERS: usize = 256;
/// Names in one list.
const MOST_NAMES: usize = 1_000;
/// Bytes of a text.
const TEXT_BYTES: usize = 1_000;
/// Callback data has at most 64 bytes.
const CALLBACK_BYTES: usize = 64;
/// Problems that are told, and bytes of each: the names in them are the plugin's.
const MOST_PROBLEMS: usize = 30;
const PROBLEM_BYTES: usize = 1_000;
const SCHEDULE_NAME_BYTES: usize = 64;
const CHAT_TYPES: [&str; 4] = ["private", "group", "supergroup", "channel"];

/// What a plugin says of itself.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// The name that its author gave it; the operator's name for it is the plugin's.
    pub name: String,
    /// The author's version.
    pub version: String,
    /// What it does, in a sentence.
    pub description: String,
    /// Which events reach it: those that one of these matches.
    pub filters: Vec<Filter>,
    /// The commands to show in Telegram's menu.
    pub commands: Vec<CommandHelp>,
    /// What a conversation is.
    pub key: KeyStrategy,
    /// The version of its states; 0 when it keeps none.
    pub state_version: u32,
    /// The Bot API methods it calls; `*` at the end stands for any ending.
    pub methods: Vec<String>,
    /// Where it sends HTTP requests to.
    pub http: Vec<OriginPattern>,
    /// The recurring timers that the host keeps for it.
    pub schedules: Vec<Schedule>,
    /// Whether it wants to hear of the end of a state's time to live.
    pub expired: bool,
    /// Whether it wants to be told of a run that has failed.
    pub recovers: bool,
}

/// A recurring timer that a manifest declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// The name that its events carry.
    pub name: String,
    /// When; a rule that was checked.
    pub rule: Rule,
    /// What becomes of missed times.
    pub misfire: Misfire,
}

/// One way in which events reach a plugin. Every part that is given must match; an empty list matches all.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Kinds of update.
    pub kinds: Vec<String>,
    /// Types of chat.
    pub chat_types: Vec<String>,
    /// Commands, without the slash, lower case.
    pub commands: Vec<String>,
    /// What callback data begins with.
    pub callback_prefix: Option<String>,
    /// What text or caption must match somewhere.
    pub text_regex: Option<Regex>,
    /// Only text or captions that are not a command of any plugin.
    pub plain_text: bool,
    /// Only texts that one of these messages of the catalogs says.
    pub text_keys: Vec<String>,
    /// Only in one of these states.
    pub states: Vec<String>,
    /// What else must be true of the update.
    pub condition: Option<Condition>,
    /// Sees the event whoever takes it, and never takes it.
    pub observe: bool,
}

/// The kind under which filters ask for albums.
const ALBUM: &str = "album";

impl Filter {
    /// Only where it says so: other filters see an album's messages.
    #[must_use]
    pub fn asks_for_albums(&self) -> bool {
        self.kinds.iter().any(|kind| kind == ALBUM)
    }

    /// The kinds of update that can match. A filter that names none but looks at callback data can only match those that
    /// have such data, and so on.
    #[must_use]
    pub fn wanted_kinds(&self) -> Vec<&str> {
        const NEW_MESSAGES: [&str; 3] = ["message", "channel_post", "business_message"];
        if !self.kinds.is_empty() {
            let of = |kind| if kind == ALBUM { NEW_MESSAGES.to_vec() } else { vec![kind] };
            self.kinds.iter().flat_map(|kind| of(kind.as_str())).collect()
        } else if self.callback_prefix.is_some() {
            vec!["callback_query"]
        } else if !self.commands.is_empty() {
            NEW_MESSAGES.to_vec()
        } else {
            UPDATE_KINDS.to_vec()
        }
    }
}

/// A command in Telegram's menu.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandHelp {
    /// Without the slash.
    pub name: String,
    /// The message in the catalogs that describes it.
    pub description_key: String,
    /// In whose menu it is; everybody's where empty.
    pub menus: Vec<Menu>,
}

/// One of Telegram's menus of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Menu {
    /// That of private chats.
    Private,
    /// That of groups.
    Groups,
    /// That of the administrators of groups.
    Administrators,
}

impl Menu {
    fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "private" => Self::Private,
            "groups" => Self::Groups,
            "administrators" => Self::Administrators,
            _ => return None,
        })
    }
}

impl Manifest {
    /// Checks everything and says all that is wrong at once.
    pub(super) fn check(manifest: wire::Manifest) -> Result<Self, String> {
        let mut problems = Vec::new();
        let key = manifest.key.parse::<KeyStrategy>().unwrap_or_else(|error| {
            problems.push(error.to_string());
            KeyStrategy::default()
        });
        let (name, version) = (&manifest.name, &manifest.version);
        if key == KeyStrategy::Unordered && manifest.state_version > 0 {
            problems.push("with the key `none` there are no conversations, so it can't keep states".to_owned());
        }
        for (what, text) in [("name", name), ("version", version), ("description", &manifest.description)] {
            if text.len() > TEXT_BYTES || text.contains(char::is_control) {
                problems.push(format!("its {what} has control characters, or more than {TEXT_BYTES} bytes"));
            }
        }
        if manifest.filters.len() > MOST_FILTERS {
            return Err(format!("{} filters; at most {MOST_FILTERS} are possible", manifest.filters.len()));
        }
        let lists = manifest
            .filters
            .iter()
            .flat_map(|filter| [&filter.kinds, &filter.commands, &filter.states, &filter.text_keys]);
        let lengths = lists.map(Vec::len).chain([
            manifest.methods.len(),
            manifest.commands.len(),
            manifest.http.len(),
            manifest.schedules.len(),
        ]);
        if let Some(length) = lengths.max().filter(|length| *length > MOST_NAMES) {
            return Err(format!("{length} names in one list; at most {MOST_NAMES} are possible"));
        }
        let regex_bytes = REGEX_BYTES.min(ALL_REGEX_BYTES / n_patterns(&manifest.filters).max(1));
        let condition_bytes: usize =
            manifest.filters.iter().flat_map(|filter| &filter.condition).map(String::len).sum();
        if condition_bytes > CONDITION_BYTES {
            return Err(format!("its conditions have {condition_bytes} bytes; at most {CONDITION_BYTES} are possible"));
        }
        for method in manifest.methods.iter().filter(|method| !grants::is_method_pattern(method)) {
            problems.push(format!("`{method}` is not the name of a Bot API method"));
        }
        for command in &manifest.commands {
            if !is_command(&command.name) {
                problems.push(not_a_command(&command.name));
            }
            for menu in command.menus.iter().filter(|menu| Menu::parse(menu).is_none()) {
                problems.push(format!("there is no menu `{menu:.64}`: one of private, groups, administrators"));
            }
        }
        let http = manifest.http.iter().filter_map(|origin| match origin.parse() {
            Ok(origin) => Some(origin),
            Err(error) => {
                problems.push(format!("{error}"));
                None
            }
        });
        let http = http.collect();
        let schedules = check_schedules(manifest.schedules, &mut problems);
        let filters = manifest
            .filters
            .into_iter()
            .enumerate()
            .map(|(index, filter)| {
                check_filter(filter, regex_bytes, &mut |problem| {
                    problems.push(format!("filter {}: {problem}", index + 1))
                })
            })
            .collect();
        if !problems.is_empty() {
            return Err(told(problems));
        }
        let help = |command: wire::CommandHelp| CommandHelp {
            name: command.name,
            description_key: command.description_key,
            menus: command.menus.iter().filter_map(|menu| Menu::parse(menu)).collect(),
        };
        Ok(Self {
            name: manifest.name,
            version: manifest.version,
            description: manifest.description,
            filters,
            commands: manifest.commands.into_iter().map(help).collect(),
            key,
            state_version: manifest.state_version,
            methods: manifest.methods,
            http,
            schedules,
            expired: manifest.expired,
            recovers: manifest.recovers,
        })
    }
}

fn told(mut problems: Vec<String>) -> String {
    let more = problems.len().saturating_sub(MOST_PROBLEMS);
    problems.truncate(MOST_PROBLEMS);
    for problem in &mut problems {
        shorten(problem, PROBLEM_BYTES);
    }
    if more > 0 {
        problems.push(format!("and {more} more"));
    }
    problems.join("; ")
}

/// Regular expressions in all filters: as many, or fewer.
fn n_patterns(filters: &[wire::Filter]) -> usize {
    let in_condition =
        |filter: &wire::Filter| filter.condition.as_ref().map_or(0, |text| text.matches(REGEX_TEST).count());
    filters.iter().map(|filter| usize::from(filter.text_regex.is_some()) + in_condition(filter)).sum()
}

fn check_schedules(schedules: Vec<wire::Schedule>, problems: &mut Vec<String>) -> Vec<Schedule> {
    let mut checked: Vec<Schedule> = Vec::new();
    for wire::Schedule { name, rule, make_up } in schedules {
        let rule = match rule {
            wire::ScheduleRule::Cron((expression, zone)) => Rule::Cron { expression, zone },
            wire::ScheduleRule::EveryMs(interval) => Rule::Every(Duration::from_millis(interval)),
        };
        if let Err(problem) = rule.parse() {
            problems.push(format!("schedule `{name:.64}`: {problem}"));
        }
        if name.is_empty() || name.len() > SCHEDULE_NAME_BYTES || name.contains(char::is_control) {
            problems.push(format!("schedule `{name:.64}`: its name must have 1 to {SCHEDULE_NAME_BYTES} bytes"));
        }
        if checked.iter().any(|other| other.name == name) {
            problems.push(format!("there are two schedules named `{name:.64}`"));
        }
        let misfire = if make_up { Misfire::Once } else { Misfire::Skip };
        checked.push(Schedule { name, rule, misfire });
    }
    checked
}

fn check_filter(filter: wire::Filter, regex_bytes: usize, problem: &mut dyn FnMut(String)) -> Filter {
    for kind in filter.kinds.iter().filter(|kind| !is_word(kind)) {
        problem(format!("`{kind}` is not a kind of update"));
    }
    for chat_type in filter.chat_types.iter().filter(|chat_type| !CHAT_TYPES.contains(&chat_type.as_str())) {
        problem(format!("unknown chat type `{chat_type}`: one of {}", CHAT_TYPES.join(", ")));
    }
    for command in filter.commands.iter().filter(|command| !is_command(command)) {
        problem(not_a_command(command));
    }
    if filter.callback_prefix.as_ref().is_some_and(|prefix| prefix.len() > CALLBACK_BYTES) {
        problem(format!("a callback prefix of more than {CALLBACK_BYTES} bytes never matches"));
    }
    let text_regex = filter.text_regex.and_then(|pattern| {
        let regex = RegexBuilder::new(&pattern).size_limit(regex_bytes).build();
        // The error's text holds the pattern once more.
        regex
            .map_err(|error| {
                problem(format!("`{pattern:.80}` is not a regular expression: {:.400}", error.to_string()))
            })
            .ok()
    });
    let condition = filter.condition.and_then(|text| {
        Condition::parse(&text, regex_bytes).map_err(|error| problem(format!("`{text:.80}`: {error}"))).ok()
    });
    Filter {
        kinds: filter.kinds,
        chat_types: filter.chat_types,
        commands: filter.commands,
        callback_prefix: filter.callback_prefix,
        text_regex,
        plain_text: filter.plain_text,
        text_keys: filter.text_keys,
        states: filter.states,
        condition,
        observe: filter.observe,
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

fn is_command(name: &str) -> bool {
    name.len() <= 32 && is_word(name)
}

fn not_a_command(name: &str) -> String {
    format!("`{name}` is not a command: 1 to 32 of a-z, 0-9 and _, without the slash")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter() -> wire::Filter {
        wire::Filter {
            kinds: vec!["message".into()],
            chat_types: vec!["private".into()],
            commands: vec!["start".into()],
            callback_prefix: None,
            text_regex: Some("(?i)hello".into()),
            plain_text: false,
            text_keys: vec![],
            states: vec![],
            condition: Some("private | group".into()),
            observe: false,
        }
    }

    fn manifest(filter: wire::Filter) -> wire::Manifest {
        wire::Manifest {
            name: "shop".into(),
            version: "1.0.0".into(),
            description: String::new(),
            filters: vec![filter],
            commands: vec![],
            key: "user_in_chat".into(),
            state_version: 1,
            catalogs: vec![],
            methods: vec!["send*".into()],
            http: vec![],
            schedules: vec![],
            expired: false,
            recovers: false,
        }
    }

    #[test]
    fn a_sound_manifest_is_ready_for_use() {
        let manifest = Manifest::check(manifest(filter())).unwrap();
        assert_eq!(manifest.key, KeyStrategy::UserInChat);
        assert!(manifest.filters[0].text_regex.as_ref().unwrap().is_match("well, HELLO"));
    }

    #[test]
    fn lists_and_patterns_have_an_end() {
        let refusal = |manifest| Manifest::check(manifest).unwrap_err();
        let many = wire::Manifest { filters: vec![filter(); 300], ..manifest(filter()) };
        assert!(refusal(many).contains("300 filters"));
        let long = wire::Filter { commands: (0..2_000).map(|n| format!("c{n}")).collect(), ..filter() };
        assert!(refusal(manifest(long)).contains("2000"));
        // Each of them costs every text time and memory.
        for pattern in [r"\w{100}", "(a{100}){1000}", &"x".repeat(100_000)] {
            let heavy = wire::Filter { text_regex: Some(pattern.to_owned()), ..filter() };
            let text = refusal(manifest(heavy));
            assert!(text.contains("regular expression") && text.len() < 1_000, "{text:.2000}");
        }
        let pattern = |n: usize| format!("text_matches(\"{}\")", "a".repeat(n));
        let heavy = wire::Filter { text_regex: None, condition: Some(pattern(3_000)), ..filter() };
        let many = wire::Manifest { filters: vec![heavy; 20], ..manifest(filter()) };
        assert!(Manifest::check(many).is_ok());
        let all = wire::Filter { condition: Some([r#"text_matches("\\w{40}")"#; 60].join("|")), ..filter() };
        assert!(refusal(manifest(all)).contains("regular expression"), "together they are too large");
        let long = wire::Filter { condition: Some(" ".repeat(4_000) + "private"), ..filter() };
        assert!(refusal(wire::Manifest { filters: vec![long; 20], ..manifest(filter()) }).contains("80140 bytes"));
        let nameless = wire::Manifest { name: "a\nb".into(), ..manifest(filter()) };
        assert!(refusal(nameless).contains("name"));
    }

    #[test]
    fn what_is_wrong_is_told_within_bounds() {
        let names: Vec<String> = (0..900).map(|n| format!("/{n}{}", "é".repeat(2_000))).collect();
        let hostile = wire::Filter { commands: names.clone(), kinds: names, ..filter() };
        let text = Manifest::check(wire::Manifest { filters: vec![hostile; 3], ..manifest(filter()) }).unwrap_err();
        assert!(text.len() < 40_000 && text.contains("more"), "{} bytes", text.len());
    }

    #[test]
    fn without_conversations_there_are_no_states() {
        let unordered = |state_version| wire::Manifest { key: "none".into(), state_version, ..manifest(filter()) };
        assert_eq!(Manifest::check(unordered(0)).unwrap().key, KeyStrategy::Unordered);
        assert!(Manifest::check(unordered(1)).unwrap_err().contains("can't keep states"));
    }

    #[test]
    fn says_all_that_is_wrong_at_once() {
        let broken = wire::Filter {
            kinds: vec!["Message".into()],
            chat_types: vec!["privat".into()],
            commands: vec!["/start".into()],
            callback_prefix: Some("x".repeat(65)),
            text_regex: Some("(".into()),
            condition: Some("privat".into()),
            ..filter()
        };
        let mut broken = manifest(broken);
        broken.key = "person".into();
        broken.methods = vec!["../getMe".into()];
        broken.commands = vec![wire::CommandHelp {
            name: "Start".into(),
            description_key: String::new(),
            menus: vec!["grups".into()],
        }];
        broken.http = vec!["api.pay.example".into()];
        let daily = |rule| wire::Schedule { name: "daily".into(), rule, make_up: true };
        broken.schedules = vec![
            daily(wire::ScheduleRule::Cron(("0 25 * * *".into(), "UTC".into()))),
            daily(wire::ScheduleRule::EveryMs(5)),
        ];
        let text = Manifest::check(broken).unwrap_err();
        for part in [
            "`25` as hour",
            "5ms",
            "two schedules",
            "`api.pay.example`",
            "`Message`",
            "`privat`",
            "`/start`",
            "`(`",
            "`privat`: unknown test",
            "`person`",
            "`../getMe`",
            "`Start`",
            "no menu `grups`",
            "filter 1",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_manifest_makes_it_panic(
            texts in proptest::collection::vec("(?s).{0,12}", 8),
            pattern in "(\\(|\\)|\\[|\\]|\\\\[wpxQbB]|\\{[0-9]{0,9},?\\}|\\*|\\+|\\?[imsx<]?|\\||[a-zé^$.-]){0,20}",
            numbers in proptest::prelude::any::<(u64, u32)>(),
            many in 0..300_usize,
        ) {
            let [name, version, key, kind, command, method, http, cron] = &texts[..] else { unreachable!() };
            let filter = wire::Filter {
                kinds: vec![kind.clone()],
                chat_types: vec![kind.clone()],
                commands: vec![command.clone()],
                callback_prefix: Some(cron.clone()),
                text_regex: Some(pattern),
                states: vec![command.clone()],
                ..filter()
            };
            let schedule = |rule| wire::Schedule { name: name.clone(), rule, make_up: true };
            let hostile = wire::Manifest {
                name: name.clone(),
                version: version.clone(),
                description: command.clone(),
                commands: vec![wire::CommandHelp { name: command.clone(), description_key: key.clone(), menus: vec![] }],
                key: key.clone(),
                state_version: numbers.1,
                methods: vec![method.clone(); many],
                http: vec![http.clone()],
                schedules: vec![
                    schedule(wire::ScheduleRule::Cron((cron.clone(), key.clone()))),
                    schedule(wire::ScheduleRule::EveryMs(numbers.0)),
                ],
                filters: vec![filter; many],
                ..manifest(self::filter())
            };
            if let Err(error) = Manifest::check(hostile) {
                proptest::prop_assert!(!error.is_empty() && error.len() < 40_000);
            }
        }
    }
}
