//! What handling an event brought about, in a form to be shown and compared.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value as Json;

use crate::cli::capture::Line;
use crate::clock::unix_millis;
use crate::dispatch::{Rehearsal, Routes, describe};
use crate::domain::{BotId, PluginName};
use crate::plugin::Verdict;
use crate::simulator;
use crate::store::rows::broadcast::{self, HeadRow, To};
use crate::store::rows::fsm::{self, StateRow};
use crate::store::rows::kv::{self, Scope, ValueRow};
use crate::store::rows::outbox::{self, OutboxRow};
use crate::store::rows::timer::{self, TimerRow};
use crate::store::{self, Op, Store};

/// See the module.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(in crate::cli) struct Effects {
    pub(in crate::cli) asked: Vec<Asked>,
    /// Why nothing came of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::cli) failed: Option<String>,
    pub(in crate::cli) calls: Vec<Call>,
    pub(in crate::cli) states: Vec<Change>,
    pub(in crate::cli) values: Vec<Change>,
    pub(in crate::cli) timers: Vec<Timer>,
    pub(in crate::cli) broadcasts: Vec<Broadcast>,
    pub(in crate::cli) log: Vec<Line>,
}

#[derive(Debug, PartialEq, Serialize)]
pub(in crate::cli) struct Asked {
    pub(in crate::cli) plugin: String,
    pub(in crate::cli) version: String,
    pub(in crate::cli) observes: bool,
    /// `took it`, `passed`, or why it failed.
    pub(in crate::cli) verdict: String,
    /// The filters that let the event through.
    pub(in crate::cli) filters: Vec<String>,
    pub(in crate::cli) cpu_ms: f64,
}

#[derive(Debug, PartialEq, Serialize)]
pub(in crate::cli) struct Call {
    pub(in crate::cli) method: String,
    pub(in crate::cli) params: Json,
    /// The plugin waited for its answer.
    pub(in crate::cli) direct: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::cli) refused: Option<String>,
}

#[derive(Debug, PartialEq, Serialize)]
pub(in crate::cli) struct Change {
    pub(in crate::cli) plugin: String,
    /// Of a value: whose it is.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(in crate::cli) scope: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(in crate::cli) key: String,
    pub(in crate::cli) before: Option<Json>,
    pub(in crate::cli) after: Option<Json>,
}

#[derive(Debug, PartialEq, Serialize)]
pub(in crate::cli) struct Timer {
    pub(in crate::cli) plugin: String,
    pub(in crate::cli) name: String,
    /// It was there, and is taken away.
    pub(in crate::cli) cancelled: bool,
    pub(in crate::cli) seconds: u64,
    /// How it recurs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::cli) repeats: Option<String>,
    pub(in crate::cli) payload: Json,
}

#[derive(Debug, PartialEq, Serialize)]
pub(in crate::cli) struct Broadcast {
    pub(in crate::cli) plugin: String,
    pub(in crate::cli) name: String,
    /// How many recipients there are; none where it goes to all chats that the bot knows.
    pub(in crate::cli) recipients: Option<u64>,
    pub(in crate::cli) method: String,
    pub(in crate::cli) params: Json,
}

impl Effects {
    /// Reads them off a rehearsal. `store` is as it was before.
    pub(super) fn of(
        rehearsal: Rehearsal,
        routes: &Routes,
        store: &Store,
        bot: BotId,
        direct: &[simulator::Call],
        log: Vec<Line>,
    ) -> Result<Self, store::Error> {
        let Rehearsal { asked, outcome } = rehearsal;
        let direct = direct.iter().map(|call| Call {
            method: call.method.clone(),
            params: Json::Object(call.params.as_ref().clone()),
            direct: true,
            refused: call.refused.clone(),
        });
        let mut effects = Self { calls: direct.collect(), log, ..Self::default() };
        let mut states = BTreeMap::new();
        let mut spaces = BTreeMap::new();
        for one in &asked {
            states.insert(fsm::key(bot, &one.plugin, &one.conversation), &one.plugin);
            spaces.insert(space(bot, &one.plugin), &one.plugin);
            let entry = routes.entries().iter().find(|entry| entry.plugin.name == one.plugin);
            let filters = entry.map(|entry| entry.plugin.manifest.filters.as_slice()).unwrap_or_default();
            let matched = one.matched.iter().filter_map(|place| filters.get(usize::try_from(*place).ok()?));
            effects.asked.push(Asked {
                plugin: one.plugin.to_string(),
                version: one.version.clone(),
                observes: one.observes,
                verdict: match &one.verdict {
                    Ok(Verdict::Done) => "took it".to_owned(),
                    Ok(Verdict::Pass) => "passed".to_owned(),
                    Err(error) => error.to_string(),
                },
                filters: matched.map(describe).collect(),
                cpu_ms: one.cpu.as_secs_f64() * 1000.0,
            });
        }
        let ops = match outcome {
            Ok(commit) => commit.ops,
            Err(reason) => {
                effects.failed = Some(reason);
                return Ok(effects);
            }
        };
        let now = unix_millis();
        for op in ops {
            let (key, value) = match op {
                Op::Append { prefix, value } => {
                    if outbox::parse_lane_prefix(&prefix).is_some()
                        && let Ok(row) = OutboxRow::decode(&value)
                    {
                        let params = serde_json::from_str(&row.params).unwrap_or(Json::String(row.params));
                        effects.calls.push(Call { method: row.method, params, direct: false, refused: None });
                    }
                    continue;
                }
                Op::Put { key, value } => (key, Some(value)),
                Op::Delete { key } => (key, None),
            };
            if let Some(plugin) = states.get(&key) {
                let (before, after) = (store.get(&key)?.and_then(|row| state(&row)), value.and_then(|row| state(&row)));
                let (scope, name) = Default::default();
                effects.states.push(Change { plugin: plugin.to_string(), scope, key: name, before, after });
            } else if let Some((due, _)) = timer::parse_key(&key) {
                let cancelled = value.is_none();
                let row = value.or(store.get(&key)?.map(|row| row.to_vec()));
                if let Some(row) = row.and_then(|row| TimerRow::decode(&row).ok()) {
                    let seconds = due.saturating_sub(now).div_ceil(1000);
                    let (plugin, payload) = (row.plugin.to_string(), shown(&row.payload));
                    let repeats = row.repeat.map(|repeat| repeat.rule.to_string());
                    effects.timers.push(Timer { plugin, name: row.name, cancelled, seconds, repeats, payload });
                }
            } else if broadcast::is_head(&key) {
                if let Some(row) = value.and_then(|row| HeadRow::decode(&row).ok()) {
                    effects.broadcasts.push(Broadcast {
                        plugin: row.owner,
                        name: row.name,
                        recipients: match row.to {
                            To::Listed { total, .. } => Some(total),
                            To::KnownChats => None,
                        },
                        method: row.method,
                        params: serde_json::from_str(&row.params).unwrap_or(Json::String(row.params)),
                    });
                }
            } else if let Some((plugin, (scope, name))) = spaces
                .iter()
                .find_map(|(space, plugin)| Some((plugin, scope_and_name(key.strip_prefix(space.as_slice())?)?)))
            {
                let (before, after) = (store.get(&key)?.and_then(|row| kept(&row)), value.and_then(|row| kept(&row)));
                effects.values.push(Change { plugin: plugin.to_string(), scope, key: name, before, after });
            }
        }
        Ok(effects)
    }
}

/// What the keys of all values of a plugin begin with.
fn space(bot: BotId, plugin: &PluginName) -> Vec<u8> {
    let mut space = kv::scope_prefix(bot, plugin, Scope::Plugin);
    space.truncate(space.len() - 9);
    space
}

fn scope_and_name(rest: &[u8]) -> Option<(String, String)> {
    let (scope, name) = rest.split_at_checked(9)?;
    let id = i64::from_be_bytes(scope.get(1..)?.try_into().ok()?) ^ i64::MIN;
    let scope = match scope.first()? {
        0 => "of the plugin".to_owned(),
        1 => format!("of chat {id}"),
        _ => format!("of user {id}"),
    };
    Some((scope, String::from_utf8_lossy(name).into_owned()))
}

/// `{"name": …, "value": …}`, as `--state NAME=VALUE` takes it.
fn state(row: &[u8]) -> Option<Json> {
    let row = StateRow::decode(row).ok()?;
    Some(serde_json::json!({ "name": row.name, "value": shown(&row.bytes) }))
}

fn kept(row: &[u8]) -> Option<Json> {
    ValueRow::decode(row).ok().map(|row| shown(&row.bytes))
}

/// The SDK keeps JSON; what is something else is shown as hexadecimal digits.
fn shown(bytes: &[u8]) -> Json {
    serde_json::from_slice(bytes)
        .unwrap_or_else(|_| Json::String(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
}
