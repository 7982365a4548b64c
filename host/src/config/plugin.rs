//! `[plugins.NAME]`: which components run, with what settings, rights and limits.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use secrecy::SecretString;
use serde_json::Value as Json;

use super::problem;
use super::reader::Reader;
use super::tree::{Node, Table, Value};
use super::units;
use crate::domain::{BotName, ChatGrant, ChatId, NoOrigin, OriginPattern, PluginName, UPDATE_KINDS};

/// `getUpdates` and the like: a plugin that called them would take the bot from its host.
const NEVER_GRANTED: [&str; 5] = ["getUpdates", "setWebhook", "deleteWebhook", "logOut", "close"];

/// Long enough for a bot with little traffic to show what is wrong.
const PROBATION: Duration = Duration::from_secs(60);

/// `[plugins.NAME]`
#[derive(Debug, Clone)]
pub struct Plugin {
    /// `path`: the `.wasm` file. Whether it is there and loads is found out when it is loaded.
    pub path: PathBuf,
    /// `enabled`: `false` keeps the entry without running it; `true`.
    pub enabled: bool,
    /// `bots`: which bots it serves; all of them without it.
    pub bots: Option<Vec<BotName>>,
    /// `priority`: plugins with higher numbers are asked first; 0.
    pub priority: i32,
    /// `config`: whatever the plugin understands; always an object.
    pub config: Json,
    /// `secrets`: `{ pay = { env = "PAY_KEY" } }`. Empty while the plugin is disabled.
    pub secrets: BTreeMap<String, SecretString>,
    /// `on_crash`: what follows when a run traps, panics or exceeds a limit; `"retry"`.
    pub on_crash: OnCrash,
    /// `probation`: how long a new version is watched, and rolled back if it does worse; `"60s"`, `"0s"` for not at all.
    pub probation: Duration,
    /// `canary`: the share of conversations that a new version is given while it is watched, in percent; 100.
    pub canary: u8,
    /// `pin`: which files are loaded for an entry that `bot.lock` names; `"rights"`.
    pub pin: Pin,
    /// `grants`
    pub grants: Grants,
    /// `limits`
    pub limits: Limits,
    /// `jobs`
    pub jobs: Jobs,
}

/// `[plugins.NAME.jobs]`: how much heavy work it may queue, and what one piece of it may use up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Jobs {
    /// `waiting`: jobs that are queued and not done with; 100. The plugin is told when there is no room for another one.
    pub waiting: usize,
    /// `workers`: jobs that are worked on at once; 2.
    pub workers: usize,
    /// `attempts`: after so many failed runs a job is set aside as a dead letter; 5.
    pub attempts: u32,
    /// `cpu`: time that a run may spend computing; `"10s"`.
    pub cpu: Duration,
    /// `time`: from beginning to end, waiting included; `"5m"`.
    pub time: Duration,
    /// `memory`; `"64MiB"`.
    pub memory: u64,
}

impl Default for Jobs {
    fn default() -> Self {
        let (cpu, time) = (Duration::from_secs(10), Duration::from_secs(300));
        Self { waiting: 100, workers: 2, attempts: 5, cpu, time, memory: 64 << 20 }
    }
}

impl Jobs {
    fn read(mut section: Reader<'_>) -> Self {
        let default = Self::default();
        let mut number = |key, most| {
            let number = section.value(key, |node| units::integer(node, 1..=most));
            number.and_then(|number| usize::try_from(number).ok())
        };
        let (waiting, workers, attempts) =
            (number("waiting", 10_000), number("workers", 1_000), number("attempts", 1_000));
        let jobs = Self {
            waiting: waiting.unwrap_or(default.waiting),
            workers: workers.unwrap_or(default.workers),
            attempts: attempts.and_then(|n| n.try_into().ok()).unwrap_or(default.attempts),
            cpu: section.duration("cpu", Duration::from_millis(1)..=Duration::from_secs(3_600)).unwrap_or(default.cpu),
            time: section
                .duration("time", Duration::from_millis(1)..=Duration::from_secs(86_400))
                .unwrap_or(default.time),
            memory: section.bytes("memory", 128 << 10..=256 << 20).unwrap_or(default.memory),
        };
        section.finish();
        jobs
    }
}

/// What follows when a run traps, panics or exceeds a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnCrash {
    /// The event is tried again, `max_attempts` times in all.
    #[default]
    Retry,
    /// The event is set aside at once.
    Skip,
    /// The plugin is paused until an operator resumes it; the event waits.
    Pause,
}

impl OnCrash {
    const ALL: [(&'static str, Self); 3] = [("retry", Self::Retry), ("skip", Self::Skip), ("pause", Self::Pause)];

    /// As it stands in `bot.toml`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Skip => "skip",
            Self::Pause => "pause",
        }
    }

    fn read(node: &Node) -> Result<Self, String> {
        let text = units::text(node)?;
        let found = Self::ALL.iter().find(|(name, _)| *name == text);
        found.map(|(_, value)| *value).ok_or_else(|| format!("{text:?}: expected \"retry\", \"skip\" or \"pause\""))
    }
}

/// Which files are loaded for a plugin that `bot.lock` names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pin {
    /// Those that want no more than what was approved.
    #[default]
    Rights,
    /// The one that was approved.
    Hash,
}

impl Pin {
    /// As it stands in `bot.toml`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Rights => "rights",
            Self::Hash => "hash",
        }
    }

    fn read(node: &Node) -> Result<Self, String> {
        match units::text(node)?.as_str() {
            "rights" => Ok(Self::Rights),
            "hash" => Ok(Self::Hash),
            text => Err(format!("{text:?}: expected \"rights\" or \"hash\"")),
        }
    }
}

/// `[plugins.NAME.grants]`: rights that go beyond, or stay below, what every plugin has.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Grants {
    /// `methods`: the only Bot API methods it may call, `answer*` for all that begin so. None: all that it declares.
    pub methods: Option<Vec<String>>,
    /// `kinds`: the only kinds of update that it is offered. None: all that it asks for.
    pub kinds: Option<Vec<String>>,
    /// `chats`: the only chats whose events it is offered and that its calls may go to. None: all.
    pub chats: Option<Vec<ChatGrant>>,
    /// `broadcast`: whether it may send one call to many chats, `"paid"` also for the bot's Stars; no.
    pub broadcast: Broadcasting,
    /// `http`: origins it may reach, such as `https://api.pay.example`; none.
    pub http: Vec<OriginPattern>,
}

/// `broadcast`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Broadcasting {
    /// `false`
    #[default]
    Denied,
    /// `true`
    Free,
    /// `"paid"`
    Paid,
}

/// `[plugins.NAME.limits]`: what one run may use up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// `memory`; `"32MiB"`.
    pub memory: u64,
    /// `cpu`: time spent computing; `"200ms"`.
    pub cpu: Duration,
    /// `time`: from beginning to end, waiting included; `"30s"`.
    pub time: Duration,
    /// `state`: size of one conversation's state; `"64KiB"`.
    pub state: u64,
    /// `value`: size of one stored value; `"1MiB"`.
    pub value: u64,
    /// `stored`: all its states, values, timers and jobs together, keys included, for each bot; `"256MiB"`, and 0 for no
    /// limit.
    pub stored: u64,
    /// `timers`: those that are set, or have rung and are not handled, for each bot; 10,000, and 0 for no limit.
    pub timers: u32,
    /// `queued`: its calls that wait to be sent, and the files that they carry, for each bot; `"256MiB"`, and 0 for no
    /// limit.
    pub queued: u64,
    /// `calls`: Bot API calls whose answer the run waits for; 32.
    pub calls: u32,
    /// `calls_per_minute`: Bot API calls of all runs together, queued ones too; 60,000, and 0 for no limit, as for the
    /// other three below.
    pub calls_per_minute: u32,
    /// `bulk_per_minute`: recipients of its broadcasts; 60,000.
    pub bulk_per_minute: u32,
    /// `log`: text written to the log; `"64KiB"`.
    pub log: u64,
    /// `log_per_minute`: that of all runs together; `"4MiB"`.
    pub log_per_minute: u64,
    /// `upload`: files that the run makes to send them, all together; `"50MiB"`.
    pub upload: u64,
    /// `download`: files that the run fetches from Telegram, all together; `"20MiB"`.
    pub download: u64,
    /// `http_bytes`: the body of one HTTP request, and that of its answer; `"1MiB"`.
    pub http_bytes: u64,
    /// `http_calls`: HTTP requests; 16.
    pub http_calls: u32,
    /// `http_per_minute`: HTTP requests of all runs together; 300.
    pub http_per_minute: u32,
    /// `http_bytes_per_minute`: what the HTTP requests of all runs together send and get; `"64MiB"`.
    pub http_bytes_per_minute: u64,
    /// `effects`: writes, timers, jobs and queued calls; 1,000.
    pub effects: u32,
    /// `data`: what the run reads from the store and what it writes, held in memory until it ends; `"16MiB"`.
    pub data: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory: 32 << 20,
            cpu: Duration::from_millis(200),
            time: Duration::from_secs(30),
            state: 64 << 10,
            value: 1 << 20,
            stored: 256 << 20,
            timers: 10_000,
            queued: 256 << 20,
            calls: 32,
            calls_per_minute: 60_000,
            bulk_per_minute: 60_000,
            log: 64 << 10,
            log_per_minute: 4 << 20,
            upload: 50 << 20,
            download: 20 << 20,
            http_bytes: 1 << 20,
            http_calls: 16,
            http_per_minute: 300,
            http_bytes_per_minute: 64 << 20,
            effects: 1_000,
            data: 16 << 20,
        }
    }
}

impl Limits {
    /// By their keys, as they could stand in `bot.toml`.
    #[must_use]
    pub fn shown(&self) -> BTreeMap<&'static str, String> {
        let (time, bytes) = (units::show_duration, units::show_bytes);
        BTreeMap::from([
            ("memory", bytes(self.memory)),
            ("cpu", time(self.cpu)),
            ("time", time(self.time)),
            ("state", bytes(self.state)),
            ("value", bytes(self.value)),
            ("stored", bytes(self.stored)),
            ("timers", self.timers.to_string()),
            ("queued", bytes(self.queued)),
            ("calls", self.calls.to_string()),
            ("calls_per_minute", self.calls_per_minute.to_string()),
            ("bulk_per_minute", self.bulk_per_minute.to_string()),
            ("log", bytes(self.log)),
            ("log_per_minute", bytes(self.log_per_minute)),
            ("upload", bytes(self.upload)),
            ("download", bytes(self.download)),
            ("http_bytes", bytes(self.http_bytes)),
            ("http_calls", self.http_calls.to_string()),
            ("http_per_minute", self.http_per_minute.to_string()),
            ("http_bytes_per_minute", bytes(self.http_bytes_per_minute)),
            ("effects", self.effects.to_string()),
            ("data", bytes(self.data)),
        ])
    }
}

pub(super) fn read_all(mut section: Reader<'_>, bots: &[BotName]) -> BTreeMap<PluginName, Plugin> {
    let mut plugins = BTreeMap::new();
    for (name, origin, node) in section.entries() {
        if !is_name(&name) {
            section.problem(&origin, format!("plugin name {name:?}: use 1 to 64 of a-z, 0-9, `_` and `-`"));
        }
        if let Some(plugin) = Plugin::read(section.child(&name, origin, node), bots) {
            plugins.insert(PluginName::new(&name), plugin);
        }
    }
    plugins
}

pub(super) fn is_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_' || byte == b'-';
    (1..=64).contains(&name.len()) && name.bytes().all(allowed)
}

impl Plugin {
    /// Whether it is one of the bot's.
    #[must_use]
    pub fn serves(&self, bot: &BotName) -> bool {
        self.bots.as_ref().is_none_or(|bots| bots.contains(bot))
    }

    /// None without a path, which has been noted.
    fn read(mut section: Reader<'_>, known: &[BotName]) -> Option<Self> {
        let enabled = section.value("enabled", units::boolean).unwrap_or(true);
        if !section.has("path") {
            section.missing("path", "add `path = \"plugins/NAME.wasm\"`, the file that `botyard build` makes");
        }
        let path = section.path("path");
        let bots = section.value("bots", |node| {
            let names = units::texts(node)?;
            let is_unknown = |name: &&String| known.iter().all(|known| known.as_str() != **name);
            match names.iter().find(is_unknown) {
                Some(name) => {
                    let suggestion = problem::suggest(name, known.iter().map(BotName::as_str));
                    Err(format!("there is no bot `{name}`; {suggestion}"))
                }
                None => Ok(names.iter().map(|name| BotName::new(name)).collect()),
            }
        });
        let priority = section.value("priority", |node| units::integer(node, -1_000_000..=1_000_000));
        let config = section.value("config", free_form);
        let secrets = secrets(section.table("secrets"), enabled);
        let on_crash = section.value("on_crash", OnCrash::read).unwrap_or_default();
        let probation = section.duration("probation", Duration::ZERO..=Duration::from_secs(7 * 86_400));
        let canary = section.value("canary", |node| units::integer(node, 1..=100));
        let pin = section.value("pin", Pin::read).unwrap_or_default();
        let grants = Grants::read(section.table("grants"));
        let limits = Limits::read(section.table("limits"));
        let jobs = Jobs::read(section.table("jobs"));
        section.finish();
        Some(Self {
            path: path?,
            enabled,
            bots,
            priority: priority.and_then(|priority| priority.try_into().ok()).unwrap_or_default(),
            config: config.unwrap_or_else(|| Json::Object(serde_json::Map::new())),
            secrets,
            on_crash,
            probation: probation.unwrap_or(PROBATION),
            canary: canary.and_then(|share| share.try_into().ok()).unwrap_or(100),
            pin,
            grants,
            limits,
            jobs,
        })
    }
}

fn secrets(mut section: Reader<'_>, needed: bool) -> BTreeMap<String, SecretString> {
    let entries = section.entries();
    let read = |(name, origin, node): (String, _, _)| {
        let secret = section.secret_in(&name, origin, node, needed)?;
        Some((name, secret))
    };
    entries.into_iter().filter_map(read).collect()
}

impl Grants {
    fn read(mut section: Reader<'_>) -> Self {
        let methods = section.value("methods", |node| {
            let methods = units::texts(node)?;
            methods.iter().try_for_each(|method| check_method(method))?;
            Ok(methods)
        });
        let mut unknown = None;
        let kinds = section.value("kinds", |node| {
            let kinds = units::texts(node)?;
            let is_unknown = |kind: &&String| !UPDATE_KINDS.contains(&kind.as_str());
            unknown = kinds.iter().find(is_unknown).map(|kind| (node.origin.clone(), kind.clone()));
            Ok(kinds)
        });
        if let Some((origin, kind)) = unknown {
            let suggestion = problem::suggest(&kind, UPDATE_KINDS);
            section.warn(&origin, format!("`{kind}` is no kind of update that this version knows; {suggestion}"));
        }
        let chats = section.value("chats", chats);
        let http = section.value("http", |node| {
            let origins = units::texts(node)?;
            origins.iter().map(|origin| origin.parse().map_err(|error: NoOrigin| error.to_string())).collect()
        });
        let broadcast = section.value("broadcast", broadcasting).unwrap_or_default();
        section.finish();
        Self { methods, kinds, chats, broadcast, http: http.unwrap_or_default() }
    }
}

fn broadcasting(node: &Node) -> Result<Broadcasting, String> {
    match &node.value {
        Value::Boolean(true) => Ok(Broadcasting::Free),
        Value::Boolean(false) => Ok(Broadcasting::Denied),
        Value::Text(text) if text == "paid" => Ok(Broadcasting::Paid),
        _ => units::expected("true, false or \"paid\"", node),
    }
}

fn check_method(pattern: &str) -> Result<(), String> {
    let name = pattern.strip_suffix('*').unwrap_or(pattern);
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Err(format!("{pattern:?} is no method; expected names such as \"sendMessage\" or \"answer*\""));
    }
    if NEVER_GRANTED.iter().any(|never| never.eq_ignore_ascii_case(pattern)) {
        return Err(format!("`{pattern}` is the host's alone and can't be granted"));
    }
    Ok(())
}

fn chats(node: &Node) -> Result<Vec<ChatGrant>, String> {
    let Value::Array(items) = &node.value else {
        return units::expected("a list such as [\"private\", -1001557912345, \"@name\"]", node);
    };
    let grant = |item: &Node| match item.value {
        Value::Integer(0) => Err("0 is no chat".to_owned()),
        Value::Integer(id) => Ok(ChatGrant::Id(ChatId(id))),
        _ => ChatGrant::parse(&units::text(item)?),
    };
    items.iter().map(grant).collect()
}

impl Limits {
    fn read(mut section: Reader<'_>) -> Self {
        const KIB: u64 = 1 << 10;
        const MIB: u64 = 1 << 20;
        // More than one file of the largest that there are.
        const FILES: u64 = 16 << 30;
        const RATES: u64 = 1 << 40;
        let default = Self::default();
        let millis = Duration::from_millis;
        let limits = Self {
            // From what the smallest guest begins with to what the engine's pool reserves for each run.
            memory: section.bytes("memory", 128 * KIB..=256 * MIB).unwrap_or(default.memory),
            cpu: section.duration("cpu", millis(1)..=Duration::from_secs(60)).unwrap_or(default.cpu),
            time: section.duration("time", millis(1)..=Duration::from_secs(3_600)).unwrap_or(default.time),
            state: section.bytes("state", 1..=16 * MIB).unwrap_or(default.state),
            value: section.bytes("value", 1..=64 * MIB).unwrap_or(default.value),
            stored: section.bytes("stored", 0..=RATES).unwrap_or(default.stored),
            timers: rate(&mut section, "timers").unwrap_or(default.timers),
            queued: section.bytes("queued", 0..=RATES).unwrap_or(default.queued),
            calls: count(&mut section, "calls", 0).unwrap_or(default.calls),
            calls_per_minute: rate(&mut section, "calls_per_minute").unwrap_or(default.calls_per_minute),
            bulk_per_minute: rate(&mut section, "bulk_per_minute").unwrap_or(default.bulk_per_minute),
            log: section.bytes("log", 0..=16 * MIB).unwrap_or(default.log),
            log_per_minute: section.bytes("log_per_minute", 0..=RATES).unwrap_or(default.log_per_minute),
            upload: section.bytes("upload", 0..=FILES).unwrap_or(default.upload),
            download: section.bytes("download", 0..=FILES).unwrap_or(default.download),
            // What one call may hand over to the host, and get from it, has an end too.
            http_bytes: section.bytes("http_bytes", 1..=8 * MIB).unwrap_or(default.http_bytes),
            http_calls: count(&mut section, "http_calls", 0).unwrap_or(default.http_calls),
            http_per_minute: count(&mut section, "http_per_minute", 1).unwrap_or(default.http_per_minute),
            http_bytes_per_minute: section
                .bytes("http_bytes_per_minute", 0..=RATES)
                .unwrap_or(default.http_bytes_per_minute),
            effects: count(&mut section, "effects", 1).unwrap_or(default.effects),
            // Less than this, no run that reads anything gets by with; more, and a few runs at once take all memory.
            data: section.bytes("data", 64 * KIB..=256 * MIB).unwrap_or(default.data),
        };
        section.finish();
        limits
    }
}

fn count(section: &mut Reader<'_>, key: &'static str, least: i64) -> Option<u32> {
    section.value(key, |node| units::integer(node, least..=100_000)).and_then(|count| count.try_into().ok())
}

/// 0 lifts it.
fn rate(section: &mut Reader<'_>, key: &'static str) -> Option<u32> {
    section.value(key, |node| units::integer(node, 0..=1_000_000_000)).and_then(|rate| rate.try_into().ok())
}

fn free_form(node: &Node) -> Result<Json, String> {
    match &node.value {
        Value::Table(table) => object(table),
        _ => units::expected("a table such as { currency = \"UZS\" }", node),
    }
}

fn object(table: &Table) -> Result<Json, String> {
    let entry = |(key, (_, node)): (&String, &(_, Node))| Ok((key.clone(), json(node)?));
    table.iter().map(entry).collect::<Result<_, String>>().map(Json::Object)
}

fn json(node: &Node) -> Result<Json, String> {
    Ok(match &node.value {
        Value::Text(text) => text.as_str().into(),
        Value::Integer(number) => (*number).into(),
        Value::Float(number) => serde_json::Number::from_f64(*number)
            .map(Json::Number)
            .ok_or_else(|| format!("a plugin can't be given the number {number}"))?,
        Value::Boolean(value) => (*value).into(),
        Value::Datetime(datetime) => datetime.as_str().into(),
        Value::Array(items) => Json::Array(items.iter().map(json).collect::<Result<_, _>>()?),
        Value::Table(table) => object(table)?,
    })
}
