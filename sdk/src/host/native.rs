//! A stand-in for the host: one world per thread, held by [`crate::test::Bot`].

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::bindings::botyard::broadcast::broadcasts::{self as broadcast, BroadcastError};
use crate::bindings::botyard::files::files::Info;
use crate::bindings::botyard::http::client as http;
use crate::bindings::botyard::i18n::catalogs::{Markup, Value as Argument};
use crate::bindings::botyard::i18n::languages::Whose;
use crate::bindings::botyard::jobs::jobs::{JobError, Options as JobOptions, Report as JobReport};
use crate::bindings::botyard::log::log::Level;
use crate::bindings::botyard::schedule::timers::{Entry, Misfire, Owner, Rule};
use crate::bindings::botyard::storage::key_value::Scope;
use crate::bindings::botyard::telegram::bot_api::{CallError, Options, Refusal, RefusalKind};
use crate::bindings::botyard::telegram::chats::KnownChat;
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
    pub(crate) chats: BTreeMap<i64, KnownChat>,
    /// By id, all that were begun.
    pub(crate) broadcasts: BTreeMap<u64, Broadcast>,
    pub(crate) timers: BTreeMap<u64, (Owner, Entry)>,
    pub(crate) requests: Vec<http::Request>,
    /// What HTTP requests are answered with, oldest first.
    pub(crate) responses: VecDeque<Result<http::Response, http::Error>>,
    pub(crate) timer_count: u64,
    /// By id, all that wait.
    pub(crate) jobs: BTreeMap<u64, Queued>,
    pub(crate) job_count: u64,
    /// How many jobs may wait; no bound where there is none.
    pub(crate) most_jobs: Option<usize>,
    /// What was set aside.
    pub(crate) lost: Option<State>,
    /// The run could not read its state.
    pub(crate) unreadable: bool,
    pub(crate) log: Vec<String>,
    pub(crate) slept: Duration,
    /// Files that the plugin makes.
    pub(crate) made: Vec<Made>,
    /// Files that it can fetch, by `file_id`.
    pub(crate) at_telegram: BTreeMap<String, (String, Vec<u8>)>,
    pub(crate) fetched: Vec<Vec<u8>>,
    pub(crate) catalogs: Arc<botyard_catalogs::Catalogs>,
    /// What users (false) and chats (true) have chosen.
    pub(crate) languages: BTreeMap<(bool, i64), String>,
    pub(crate) here: Here,
}

/// A file that the plugin made.
#[derive(Debug, Clone, Default)]
pub(crate) struct Made {
    pub(crate) name: String,
    pub(crate) content_type: String,
    pub(crate) bytes: Vec<u8>,
    /// Once it is finished.
    pub(crate) reference: Option<String>,
}

/// A broadcast that was begun, and never gets further by itself.
#[derive(Debug, Clone)]
pub(crate) struct Broadcast {
    pub(crate) to: broadcast::Recipients,
    pub(crate) method: String,
    pub(crate) params: String,
    pub(crate) status: broadcast::Report,
}

/// A job that waits.
#[derive(Debug, Clone)]
pub(crate) struct Queued {
    pub(crate) name: String,
    pub(crate) payload: Vec<u8>,
    pub(crate) due: u64,
    pub(crate) key: Option<String>,
    pub(crate) attempts: u32,
    pub(crate) reason: Option<String>,
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

pub(crate) fn file_create(name: &str, content_type: &str) -> Result<u32, String> {
    if name.is_empty() {
        return Err("a file needs a name".to_owned());
    }
    with(|world| {
        let made = Made { name: name.to_owned(), content_type: content_type.to_owned(), ..Made::default() };
        world.made.push(made);
        Ok(u32::try_from(world.made.len() - 1).expect("few"))
    })
}

fn begun(world: &mut World, file: u32) -> Result<&mut Made, String> {
    let made = world.made.get_mut(file as usize).filter(|made| made.reference.is_none());
    made.ok_or_else(|| "there is no such file, or it is finished".to_owned())
}

pub(crate) fn file_append(file: u32, bytes: &[u8]) -> Result<(), String> {
    with(|world| {
        begun(world, file)?.bytes.extend_from_slice(bytes);
        Ok(())
    })
}

pub(crate) fn file_finish(file: u32) -> Result<String, String> {
    with(|world| {
        let made = begun(world, file)?;
        if made.bytes.is_empty() {
            return Err(format!("the file `{}` is empty, and Telegram takes no empty files", made.name));
        }
        let reference = format!("attach://{file}");
        made.reference = Some(reference.clone());
        Ok(reference)
    })
}

pub(crate) fn file_open(file_id: &str) -> Result<Info, CallError> {
    with(|world| {
        let Some((name, bytes)) = world.at_telegram.get(file_id).cloned() else {
            let description = "wrong file_id or the file is temporarily unavailable".to_owned();
            return Err(CallError::Refused(Refusal { code: 400, description, kind: RefusalKind::Call }));
        };
        let file = u32::try_from(world.fetched.len()).expect("few");
        let info = Info { file, size: bytes.len() as u64, unique_id: format!("unique-{file_id}"), name };
        world.fetched.push(bytes);
        Ok(info)
    })
}

pub(crate) fn file_read(file: u32, offset: u64, length: u32) -> Result<Vec<u8>, String> {
    with(|world| {
        let bytes = world.fetched.get(file as usize).ok_or("there is no such file in this run")?;
        let rest = usize::try_from(offset).ok().and_then(|offset| bytes.get(offset..)).unwrap_or_default();
        Ok(rest.get(..length as usize).unwrap_or(rest).to_vec())
    })
}

pub(crate) fn file_attach(file: u32, name: &str, content_type: &str) -> Result<String, String> {
    let bytes = file_read(file, 0, u32::MAX)?;
    let new = file_create(name, content_type)?;
    file_append(new, &bytes)?;
    file_finish(new)
}

#[expect(clippy::unnecessary_wraps, reason = "the host's signature")]
pub(crate) fn keep_action(params: &str) -> Result<(), CallError> {
    with(|world| world.calls.push(("sendChatAction".to_owned(), params.to_owned())));
    Ok(())
}

#[expect(clippy::unnecessary_wraps, reason = "the host's signature")]
pub(crate) fn known_chat(id: i64) -> Result<Option<KnownChat>, String> {
    Ok(with(|world| world.chats.get(&id).cloned()))
}

pub(crate) fn broadcast_start(
    to: &broadcast::Recipients,
    method: &str,
    params: &str,
    _options: &broadcast::Options,
) -> Result<u64, BroadcastError> {
    with(|world| {
        let id = 4 * (1 + world.broadcasts.len() as u64);
        let total = match to {
            broadcast::Recipients::Listed(listed) => listed.len() as u64,
            broadcast::Recipients::KnownChats => 0,
        };
        let status = broadcast::Report {
            state: broadcast::State::Running,
            reason: None,
            total,
            sent: 0,
            gone: 0,
            refused: 0,
            unknown: 0,
            waiting: total,
            spent: 0,
            started: 0,
            ended: 0,
        };
        let (method, params) = (method.to_owned(), params.to_owned());
        world.broadcasts.insert(id, Broadcast { to: to.clone(), method, params, status });
        Ok(id)
    })
}

pub(crate) fn broadcast_status(id: u64) -> Result<Option<broadcast::Report>, BroadcastError> {
    with(|world| Ok(world.broadcasts.get(&id).map(|broadcast| broadcast.status.clone())))
}

fn change_broadcast(id: u64, state: broadcast::State) -> Result<bool, BroadcastError> {
    with(|world| {
        let running = |status: &&mut broadcast::Report| {
            !matches!(status.state, broadcast::State::Done | broadcast::State::Cancelled)
        };
        let status = world.broadcasts.get_mut(&id).map(|broadcast| &mut broadcast.status).filter(running);
        Ok(status.map(|status| status.state = state).is_some())
    })
}

pub(crate) fn broadcast_pause(id: u64) -> Result<bool, BroadcastError> {
    change_broadcast(id, broadcast::State::Paused)
}

pub(crate) fn broadcast_resume(id: u64) -> Result<bool, BroadcastError> {
    change_broadcast(id, broadcast::State::Running)
}

pub(crate) fn broadcast_cancel(id: u64) -> Result<bool, BroadcastError> {
    change_broadcast(id, broadcast::State::Cancelled)
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

pub(crate) fn state_unreadable(_problem: &str) {
    with(|world| world.unreadable = true);
}

pub(crate) fn lost() -> Option<State> {
    with(|world| world.lost.clone())
}

pub(crate) fn drop_lost() {
    with(|world| world.lost = None);
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

pub(crate) fn translate(locale: &str, key: &str, args: &[(String, Argument)]) -> Option<String> {
    translate_markup(locale, key, args, Markup::Plain)
}

pub(crate) fn translate_markup(locale: &str, key: &str, args: &[(String, Argument)], markup: Markup) -> Option<String> {
    let value = |value: &Argument| match value {
        Argument::Text(text) => botyard_catalogs::Value::Text(text.clone()),
        Argument::Integer(number) => botyard_catalogs::Value::Integer(*number),
        Argument::Number(number) => botyard_catalogs::Value::Number(*number),
    };
    let args: Vec<_> = args.iter().map(|(name, argument)| (name.clone(), value(argument))).collect();
    let markup = match markup {
        Markup::Plain => botyard_catalogs::Markup::Plain,
        Markup::Html => botyard_catalogs::Markup::Html,
        Markup::MarkdownV2 => botyard_catalogs::Markup::MarkdownV2,
    };
    with(|world| world.catalogs.translate(locale, key, &args, markup))
}

pub(crate) fn catalogs_available() -> Vec<String> {
    with(|world| world.catalogs.locales().collect())
}

pub(crate) fn language_chosen(whose: Whose) -> Option<String> {
    with(|world| world.languages.get(&world.here.whose(whose)?).cloned())
}

pub(crate) fn language_of_user(user: i64) -> Option<String> {
    with(|world| world.languages.get(&(false, user)).cloned())
}

pub(crate) fn language_choose(whose: Whose, locale: Option<&str>) -> Result<String, String> {
    with(|world| {
        let of = world.here.whose(whose).ok_or("the event has none whose language it could be")?;
        match locale {
            Some(locale) => {
                let locale = botyard_catalogs::normal_locale(locale);
                world.languages.insert(of, locale.ok_or("that is no language tag such as `en` or `pt-BR`")?);
            }
            None => drop(world.languages.remove(&of)),
        }
        Ok(world.spoken())
    })
}

impl World {
    /// The language of the run, as the host would choose it.
    pub(crate) fn spoken(&self) -> String {
        let chosen = |whose| self.languages.get(&self.here.whose(whose)?);
        chosen(Whose::User).or_else(|| chosen(Whose::Chat)).unwrap_or(&self.here.told).clone()
    }
}

/// Who and where an event is of.
#[derive(Debug, Default, Clone)]
pub(crate) struct Here {
    pub(crate) user: Option<i64>,
    pub(crate) chat: Option<i64>,
    /// The user's language as Telegram tells it.
    pub(crate) told: String,
}

impl Here {
    fn whose(&self, whose: Whose) -> Option<(bool, i64)> {
        match whose {
            Whose::User => Some((false, self.user?)),
            Whose::Chat => Some((true, self.chat?)),
        }
    }
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

pub(crate) fn job_enqueue(name: &str, payload: &[u8], options: &JobOptions) -> Result<u64, JobError> {
    with(|world| {
        let key = options.unique_key.clone();
        let same = world.jobs.iter().find(|(_, job)| key.is_some() && job.key == key);
        if let Some((&id, _)) = same {
            return Ok(id);
        }
        if let Some(most) = world.most_jobs.filter(|&most| world.jobs.len() >= most) {
            return Err(JobError::Full(format!("{most} jobs wait already")));
        }
        world.job_count += 1;
        let due = crate::test::NOW + options.delay_ms;
        let (name, payload) = (name.to_owned(), payload.to_vec());
        world.jobs.insert(world.job_count, Queued { name, payload, due, key, attempts: 0, reason: None });
        Ok(world.job_count)
    })
}

pub(crate) fn job_status(id: u64) -> Option<JobReport> {
    with(|world| {
        world.jobs.get(&id).cloned().map(|Queued { name, due, attempts, reason, .. }| JobReport {
            name,
            running: false,
            attempts,
            queued: crate::test::NOW,
            due,
            reason,
        })
    })
}

pub(crate) fn job_cancel(id: u64) -> bool {
    with(|world| world.jobs.remove(&id).is_some())
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
