//! A stand-in for the host: one world per thread, held by [`crate::test::Bot`].

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::bindings::botyard::http::client as http;
use crate::bindings::botyard::i18n::catalogs::Value as Argument;
use crate::bindings::botyard::log::log::Level;
use crate::bindings::botyard::schedule::timers::{Entry, Misfire, Owner, Rule};
use crate::bindings::botyard::storage::key_value::Scope;
use crate::bindings::botyard::telegram::bot_api::{CallError, Options};
use crate::bindings::botyard::types::types::{State, StateKey};

/// All that a run can reach.
#[derive(Debug, Default, Clone)]
pub(crate) struct World {
    pub(crate) config: Option<String>,
    pub(crate) secrets: BTreeMap<String, String>,
    pub(crate) state: Option<State>,
    pub(crate) values: BTreeMap<(u8, i64, String), Vec<u8>>,
    pub(crate) calls: Vec<(String, String)>,
    /// What direct calls are answered with, oldest first; `true` when there are no more.
    pub(crate) answers: VecDeque<Result<String, CallError>>,
    pub(crate) timers: BTreeMap<u64, (Owner, Entry)>,
    pub(crate) requests: Vec<http::Request>,
    /// What HTTP requests are answered with, oldest first.
    pub(crate) responses: VecDeque<Result<http::Response, http::Error>>,
    pub(crate) timer_count: u64,
    pub(crate) log: Vec<String>,
    pub(crate) slept: Duration,
}

thread_local! {
    static WORLD: RefCell<World> = RefCell::default();
}

pub(crate) fn with<T>(act: impl FnOnce(&mut World) -> T) -> T {
    WORLD.with_borrow_mut(act)
}

fn row(scope: Scope, key: &str) -> (u8, i64, String) {
    let (kind, id) = match scope {
        Scope::Plugin => (0, 0),
        Scope::Chat(id) => (1, id),
        Scope::User(id) => (2, id),
    };
    (kind, id, key.to_owned())
}

pub(crate) fn call(method: &str, params: &str) -> Result<String, CallError> {
    with(|world| {
        world.calls.push((method.to_owned(), params.to_owned()));
        world.answers.pop_front().unwrap_or_else(|| Ok("true".to_owned()))
    })
}

#[expect(clippy::unnecessary_wraps, reason = "the host's signature")]
pub(crate) fn enqueue(method: &str, params: &str, _options: Options) -> Result<(), CallError> {
    with(|world| world.calls.push((method.to_owned(), params.to_owned())));
    Ok(())
}

pub(crate) fn state_get() -> Option<State> {
    with(|world| world.state.clone())
}

#[expect(clippy::unnecessary_wraps, reason = "the host's signature")]
pub(crate) fn state_set(state: &State, _ttl_seconds: Option<u64>) -> Result<(), String> {
    with(|world| world.state = Some(state.clone()));
    Ok(())
}

pub(crate) fn state_clear() {
    with(|world| world.state = None);
}

pub(crate) fn state_peek(_key: StateKey) -> Option<State> {
    None
}

pub(crate) fn get(scope: Scope, key: &str) -> Option<Vec<u8>> {
    with(|world| world.values.get(&row(scope, key)).cloned())
}

#[expect(clippy::unnecessary_wraps, reason = "the host's signature")]
pub(crate) fn set(scope: Scope, key: &str, value: &[u8], _ttl_seconds: Option<u64>) -> Result<(), String> {
    with(|world| world.values.insert(row(scope, key), value.to_vec()));
    Ok(())
}

pub(crate) fn delete(scope: Scope, key: &str) {
    with(|world| world.values.remove(&row(scope, key)));
}

pub(crate) fn increment(scope: Scope, key: &str, by: i64) -> Result<i64, String> {
    with(|world| {
        let value = world.values.entry(row(scope, key)).or_insert_with(|| b"0".to_vec());
        let number: i64 = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok()).ok_or("not a number")?;
        let sum = number.checked_add(by).ok_or("the sum overflows")?;
        *value = sum.to_string().into_bytes();
        Ok(sum)
    })
}

pub(crate) fn compare_and_set(
    scope: Scope,
    key: &str,
    expected: Option<&[u8]>,
    new: Option<&[u8]>,
) -> Result<bool, String> {
    if get(scope, key).as_deref() != expected {
        return Ok(false);
    }
    match new {
        Some(value) => set(scope, key, value, None)?,
        None => delete(scope, key),
    }
    Ok(true)
}

/// Without an answer that the test has given, the network is down.
pub(crate) fn http_send(request: &http::Request) -> Result<http::Response, http::Error> {
    with(|world| {
        world.requests.push(request.clone());
        let down = || Err(http::Error::Unreachable("the test has given no answer: `Bot::answer`".to_owned()));
        world.responses.pop_front().unwrap_or_else(down)
    })
}

pub(crate) fn scan(scope: Scope, prefix: &str, after: Option<&str>, limit: u32) -> Vec<(String, Vec<u8>)> {
    let (kind, id, prefix) = row(scope, prefix);
    with(|world| {
        let rows = world.values.iter().filter(|((k, i, key), _)| (*k, *i) == (kind, id) && key.starts_with(&prefix));
        let rows = rows.filter(|((_, _, key), _)| after.is_none_or(|after| key.as_str() > after));
        rows.take(limit as usize).map(|((_, _, key), value)| (key.clone(), value.clone())).collect()
    })
}

/// There are no catalogs natively: every text is the fallback in the call.
pub(crate) fn translate(_locale: &str, _key: &str, _args: &[(String, Argument)]) -> Option<String> {
    None
}

pub(crate) fn timer_after(name: &str, delay_ms: u64, payload: &[u8]) -> Result<u64, String> {
    timer_at(name, crate::test::NOW + delay_ms, payload)
}

pub(crate) fn timer_at(name: &str, unix_ms: u64, payload: &[u8]) -> Result<u64, String> {
    set_timer(name, unix_ms, Rule::Once, Owner::Conversation, payload)
}

fn set_timer(name: &str, due: u64, rule: Rule, owner: Owner, payload: &[u8]) -> Result<u64, String> {
    with(|world| {
        if !matches!(rule, Rule::Once) {
            let is_same = |(other, entry): &(Owner, Entry)| *other == owner && entry.name == name;
            world.timers.retain(|_, timer| matches!(timer.1.rule, Rule::Once) || !is_same(timer));
        }
        world.timer_count += 1;
        let id = world.timer_count;
        let entry = Entry { id, name: name.to_owned(), due, rule, payload: payload.to_vec() };
        world.timers.insert(id, (owner, entry));
        Ok(id)
    })
}

/// No time passes here, so when it is due does not matter; nor is the expression read.
pub(crate) fn timer_cron(
    name: &str,
    expression: &str,
    zone: &str,
    _misfire: Misfire,
    owner: Owner,
    payload: &[u8],
) -> Result<u64, String> {
    let rule = Rule::Cron((expression.to_owned(), zone.to_owned()));
    set_timer(name, crate::test::NOW, rule, owner, payload)
}

pub(crate) fn timer_every(
    name: &str,
    interval_ms: u64,
    _misfire: Misfire,
    owner: Owner,
    payload: &[u8],
) -> Result<u64, String> {
    set_timer(name, crate::test::NOW + interval_ms, Rule::EveryMs(interval_ms), owner, payload)
}

pub(crate) fn timer_cancel_by_name(name: &str, owner: Owner) -> u32 {
    with(|world| {
        let before = world.timers.len();
        world.timers.retain(|_, (other, entry)| *other != owner || entry.name != name);
        u32::try_from(before - world.timers.len()).unwrap_or(u32::MAX)
    })
}

pub(crate) fn timer_list(owner: Owner) -> Vec<Entry> {
    with(|world| world.timers.values().filter(|(other, _)| *other == owner).map(|(_, entry)| entry.clone()).collect())
}

pub(crate) fn timer_cancel(id: u64) -> bool {
    with(|world| world.timers.remove(&id).is_some())
}

pub(crate) fn sleep(milliseconds: u64) {
    with(|world| world.slept += Duration::from_millis(milliseconds));
}

pub(crate) fn random_bytes(length: u32) -> Vec<u8> {
    (0..length).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

pub(crate) fn config() -> String {
    with(|world| world.config.clone().unwrap_or_else(|| "{}".to_owned()))
}

pub(crate) fn secret(name: &str) -> Option<String> {
    with(|world| world.secrets.get(name).cloned())
}

pub(crate) fn emit(level: Level, message: &str, fields: &[(String, String)]) {
    let fields: String = fields.iter().map(|(name, value)| format!(" {name}={value}")).collect();
    with(|world| world.log.push(format!("{level:?} {message}{fields}")));
}
