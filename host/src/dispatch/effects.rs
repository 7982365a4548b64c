//! What a run asks for, in a form that people read and programs compare. Read off the rows that it would write; rows that
//! are the host's own affair (what finds a timer, say) are left out.

use std::convert::Infallible;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::domain::button::{self, Wire};
use crate::domain::{BotId, Conversation, PluginName};
use crate::store::Op;
use crate::store::rows::broadcast::{self, HeadRow, To};
use crate::store::rows::fsm::{self, StateRow};
use crate::store::rows::job;
use crate::store::rows::kv::{self, Scope, ValueRow};
use crate::store::rows::language::{self, LanguageRow, Whose};
use crate::store::rows::outbox::{self, Delivery, OutboxRow};
use crate::store::rows::timer::{self, TimerRow};

/// See the module.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Effects {
    /// Calls of the Bot API, to be made when it is committed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<Call>,
    /// States of conversations.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<Change>,
    /// Values in storage.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<Change>,
    /// Languages that people and chats choose.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub languages: Vec<Change>,
    /// Timers that are set or cancelled.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub timers: Vec<Timer>,
    /// Jobs that are queued or cancelled.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<Job>,
    /// Broadcasts that begin.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub broadcasts: Vec<Broadcast>,
}

/// A queued call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// The method.
    pub method: String,
    /// Its parameters.
    pub params: Json,
    /// It is rather not made than made twice.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_most_once: bool,
    /// The files that it carries: their names, and the hashes of their contents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
}

/// A state or value, before and after.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Whose it is: `of chat 5`, say. Of the event's own conversation where it is a state and says nothing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub scope: String,
    /// The value's key; empty for a state.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub key: String,
    /// As far as the run knew it.
    pub before: Option<Json>,
    /// None where it is removed.
    pub after: Option<Json>,
}

/// A timer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timer {
    /// Its name.
    pub name: String,
    /// It was there, and is taken away.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancelled: bool,
    /// Seconds until it is due, rounded up.
    pub seconds: u64,
    /// How it recurs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<String>,
    /// What it carries.
    pub payload: Json,
}

/// A job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Its name.
    pub name: String,
    /// It was there, and is taken away.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancelled: bool,
    /// Seconds until it is begun at the earliest, rounded up.
    pub seconds: u64,
    /// While it waits, no other with this key is queued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// What it carries; none where it is cancelled.
    pub payload: Option<Json>,
}

/// A broadcast.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Broadcast {
    /// Its name.
    pub name: String,
    /// How many recipients there are; none where it goes to all chats that the bot knows.
    pub recipients: Option<u64>,
    /// What is sent.
    pub method: String,
    /// Its parameters.
    pub params: Json,
}

impl Effects {
    /// Of one run, at `now`. `before` answers with the rows as they were.
    pub(super) fn of<'a>(
        ops: impl IntoIterator<Item = &'a Op> + Clone,
        bot: BotId,
        plugin: &PluginName,
        conversation: &Conversation,
        now: u64,
        before: impl Fn(&[u8]) -> Option<Vec<u8>>,
    ) -> Self {
        let mut effects = Self::default();
        let (own, states, values) =
            (fsm::key(bot, plugin, conversation), fsm::plugin_prefix(bot, plugin), kv::plugin_prefix(bot, plugin));
        let payload_of = |id| {
            let wanted = job::payload_key(bot, plugin, id);
            let is_it = |op: &&Op| matches!(op, Op::Put { key, .. } if *key == wanted);
            match ops.clone().into_iter().find(is_it) {
                Some(Op::Put { value, .. }) => Some(shown(value)),
                _ => None,
            }
        };
        let kept = |id: &str| {
            let data = |row: &[u8]| String::from_utf8(ValueRow::decode(row).ok()?.bytes).ok();
            let new = ops.clone().into_iter().find_map(|op| {
                let Op::Put { key, value } = op else { return None };
                let (_, Scope::Buttons(_), name) = kv::parse_key(key)? else { return None };
                data(value).filter(|_| name == id)
            });
            // What was kept already.
            let mut places = [conversation.chat, None].into_iter();
            new.or_else(|| places.find_map(|chat| data(&before(&kv::key(bot, plugin, Scope::Buttons(chat), id))?)))
        };
        for op in ops.clone() {
            let (key, value) = match op {
                Op::Append { prefix, value } => {
                    effects.calls.extend(call(prefix, value, &kept));
                    continue;
                }
                Op::Put { key, value } => (key, Some(&value[..])),
                Op::Delete { key } => (key, None),
            };
            if key.starts_with(&states) {
                let change = |row: &[u8]| state(row);
                let (before, after) = (before(key).and_then(|row| change(&row)), value.and_then(change));
                let scope = if *key == own { String::new() } else { "of another conversation".to_owned() };
                effects.states.push(Change { scope, key: String::new(), before, after });
            } else if key.starts_with(&values)
                && let Some((_, scope, key_of)) = kv::parse_key(key)
            {
                // Those of its buttons are seen in the calls.
                let Some(scope) = whose(scope) else { continue };
                let change = |row: &[u8]| ValueRow::decode(row).ok().map(|row| shown(&row.bytes));
                let (before, after) = (before(key).and_then(|row| change(&row)), value.and_then(change));
                effects.values.push(Change { scope, key: key_of, before, after });
            } else if let Some(whose) = language::parse_key(key) {
                let chosen = |row: &[u8]| LanguageRow::decode(row).ok()?.chosen.map(Json::from);
                let (before, after) = (before(key).and_then(|row| chosen(&row)), value.and_then(chosen));
                if before != after {
                    let scope = match whose {
                        Whose::User(user) => format!("of user {user}"),
                        Whose::Chat(chat) => format!("of chat {chat}"),
                    };
                    effects.languages.push(Change { scope, key: String::new(), before, after });
                }
            } else if let Some((_, due, _)) = timer::parse_key(key) {
                effects.timers.extend(timer(due, value, before(key), now));
            } else if let Some((_, id)) = job::parse_head(key) {
                effects.jobs.extend(queued(value, before(key), payload_of(id), now));
            } else if broadcast::is_head(key) {
                effects.broadcasts.extend(value.and_then(|value| begun(value, &kept)));
            }
        }
        effects
    }
}

fn call(prefix: &[u8], value: &[u8], kept: Kept<'_>) -> Option<Call> {
    outbox::parse_lane_prefix(prefix)?;
    let row = OutboxRow::decode(value).ok()?;
    let file = |file: &crate::store::rows::file::Attached| format!("{} {}", file.name, hex(&file.hash));
    Some(Call {
        files: row.files.iter().map(file).collect(),
        method: row.method,
        params: parameters(row.params, kept),
        at_most_once: row.delivery == Delivery::AtMostOnce,
    })
}

fn timer(due: u64, value: Option<&[u8]>, before: Option<Vec<u8>>, now: u64) -> Option<Timer> {
    let row = TimerRow::decode(value.or(before.as_deref())?).ok()?;
    Some(Timer {
        cancelled: value.is_none(),
        seconds: due.saturating_sub(now).div_ceil(1000),
        repeats: row.repeat.map(|repeat| repeat.rule.to_string()),
        payload: shown(&row.payload),
        name: row.name,
    })
}

fn queued(value: Option<&[u8]>, before: Option<Vec<u8>>, payload: Option<Json>, now: u64) -> Option<Job> {
    let row = job::HeadRow::decode(value.or(before.as_deref())?).ok()?;
    let seconds = row.due.saturating_sub(now).div_ceil(1000);
    Some(Job { name: row.name, cancelled: value.is_none(), seconds, key: row.key, payload })
}

fn begun(value: &[u8], kept: Kept<'_>) -> Option<Broadcast> {
    let row = HeadRow::decode(value).ok()?;
    let recipients = match row.to {
        To::Listed { total, .. } => Some(total),
        To::KnownChats => None,
    };
    Some(Broadcast { name: row.name, recipients, method: row.method, params: parameters(row.params, kept) })
}

/// What a button's id stands for.
type Kept<'a> = &'a dyn Fn(&str) -> Option<String>;

/// With the buttons as the plugin made them: how they are sealed is the store's affair, and differs from one to the next.
fn parameters(params: String, kept: Kept<'_>) -> Json {
    let unsealed = button::markup::rewrite(&params, &mut |wire| {
        Ok::<_, Infallible>(match button::read(wire) {
            Wire::Carried { data, .. } => Some(data.to_owned()),
            Wire::Kept { id, .. } => kept(id),
            Wire::Foreign => None,
        })
    });
    let params = unsealed.ok().flatten().unwrap_or(params);
    serde_json::from_str(&params).unwrap_or(Json::String(params))
}

fn whose(scope: Scope) -> Option<String> {
    match scope {
        Scope::Plugin => Some("of the plugin".to_owned()),
        Scope::Chat(chat) => Some(format!("of chat {chat}")),
        Scope::User(user) => Some(format!("of user {user}")),
        Scope::Buttons(_) => None,
    }
}

/// `{"name": …, "value": …}`, as `botyard call --state NAME=VALUE` takes it.
fn state(row: &[u8]) -> Option<Json> {
    let row = StateRow::decode(row).ok()?;
    Some(serde_json::json!({ "name": row.name, "value": shown(&row.bytes) }))
}

/// The SDK keeps JSON; what is something else is shown as hexadecimal digits.
pub(super) fn shown(bytes: &[u8]) -> Json {
    serde_json::from_slice(bytes).unwrap_or_else(|_| Json::String(hex(bytes)))
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
