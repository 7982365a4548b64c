//! What the last runs did, for whoever develops a plugin and looks on: kept in memory, only where somebody has asked for
//! it, and only so many. Without that a run costs nothing more.
//!
//! It reads what a run has collected and changes nothing. Secrets are hidden as in the log; a token never reaches a run.
//!
//! It is no view of the recording (`note`, `record`), though both look at the same runs. Whoever develops wants to see
//! every run at once: also one that is made again, one whose event waits for its next attempt, and what it has logged and
//! how long it took by the clock. A recording has whole events once they are settled, with every row and every answer that
//! a replay needs, and none of that. Made of one another, each would carry what the other alone is for. What they share
//! is how writes are told: `effects`.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use tokio::time::Instant;

use super::{Dispatcher, Effects};
use crate::clock::unix_millis;
use crate::config::redaction::redact;
use crate::domain::PluginName;
use crate::plugin::{Event, Invocation, Plugin, RunReport, Verdict};
use crate::store::rows::fsm::{self, StateRow};
use crate::store::{Savepoint, Tx};

/// How many runs are kept.
const KEEP: usize = 300;
/// Bytes of one text that are kept.
const TEXT: usize = 16 << 10;
/// Writes of one run that are kept.
const WRITES: usize = 50;

/// Where a dispatcher notes its runs.
pub(super) type Traces = OnceLock<Arc<Ring>>;

/// The last runs, the newest at the end.
pub struct Ring {
    kept: Mutex<(u64, VecDeque<Run>)>,
    told: Box<dyn Fn() + Send + Sync>,
}

/// One run of one plugin for one event.
#[derive(Debug, Clone, Serialize)]
pub struct Run {
    /// Counts the runs.
    pub number: u64,
    /// When it began (Unix milliseconds).
    pub at: u64,
    /// The number of the event in the inbox.
    pub event: u64,
    /// 1 on the first attempt.
    pub attempt: u32,
    /// The plugin.
    pub plugin: PluginName,
    /// Its version.
    pub version: String,
    /// It only looks on.
    pub observes: bool,
    /// What happened: `update` and its id, or what the host itself made of a timer or a state's end.
    pub cause: Cause,
    /// Whose state it was: chat, user and topic.
    pub conversation: [Option<i64>; 3],
    /// `done`, `pass`, or why it failed.
    pub verdict: String,
    /// The calls that it asked for, in order; those made directly come with their answers.
    pub calls: Vec<Call>,
    /// The state before and after: name and content.
    pub before: Option<State>,
    /// The same afterwards.
    pub after: Option<State>,
    /// Values that it has set or removed, and timers.
    pub writes: Vec<String>,
    /// What it has logged.
    pub log: Vec<String>,
    /// Time on a processor, in microseconds.
    pub cpu_micros: u64,
    /// Time by the clock, in microseconds: waiting for direct calls too.
    pub wall_micros: u64,
}

/// What a run was for.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// An update, by its id.
    Update(i64),
    /// Several: an album.
    Album(Vec<i64>),
    /// A timer, by its name.
    Timer(String),
    /// A job, by its name.
    Job(String),
    /// The end of a state, by its name.
    Expired(String),
    /// Something else of the host's.
    Other,
}

/// A call of the Bot API.
#[derive(Debug, Clone, Serialize)]
pub struct Call {
    /// Its method.
    pub method: String,
    /// Its parameters, in JSON.
    pub params: Value,
    /// Made during the run, which waited for the answer.
    pub direct: bool,
    /// That answer, or why there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
}

/// A state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct State {
    /// Its name.
    pub name: String,
    /// What the plugin made of it; in hexadecimal if that is no text.
    pub content: String,
}

/// What is looked at before a run.
pub(super) struct Before {
    began: Instant,
    at: u64,
    state: Option<State>,
    save: Savepoint,
    n_direct: usize,
}

impl Ring {
    /// An empty one. `told` is called after every run, and must not wait.
    pub fn new(told: impl Fn() + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { kept: Mutex::default(), told: Box::new(told) })
    }

    /// The runs after this number, the oldest first.
    #[must_use]
    pub fn since(&self, number: u64) -> Vec<Run> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.1.iter().filter(|run| run.number > number).cloned().collect()
    }

    fn push(&self, mut run: Run) {
        {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.0 += 1;
            run.number = kept.0;
            kept.1.push_back(run);
            let surplus = kept.1.len().saturating_sub(KEEP);
            kept.1.drain(..surplus);
        }
        (self.told)();
    }
}

impl Dispatcher {
    /// From now on every run is noted there. Only the first one counts.
    pub fn trace_to(&self, ring: Arc<Ring>) {
        drop(self.context.traces.set(ring));
    }
}

/// Looks at what is before a run, if anybody wants to know.
pub(super) fn before(traces: &Traces, plugin: &Plugin, invocation: &Invocation, tx: &Tx) -> Option<Before> {
    traces.get()?;
    Some(Before {
        began: Instant::now(),
        at: unix_millis(),
        state: state(tx, plugin, invocation),
        save: tx.savepoint(),
        n_direct: invocation.journal.calls_told().len(),
    })
}

/// Notes a run that has ended.
pub(super) fn note(
    traces: &Traces,
    before: Option<Before>,
    plugin: &Plugin,
    invocation: &Invocation,
    observes: bool,
    report: &RunReport,
) {
    let (Some(ring), Some(before)) = (traces.get(), before) else { return };
    let bot = invocation.bot;
    let made = invocation.journal.calls_told().into_iter().skip(before.n_direct);
    let direct = made.map(|(method, params, answer)| {
        let answer = answer.map(|answer| answer.unwrap_or_else(|error| error));
        Call { method, params: json(&params), direct: true, answer: answer.map(|answer| clean(&answer)) }
    });
    let rows: BTreeMap<&[u8], &[u8]> = report.tx.seen().collect();
    let ops = report.tx.written_since(before.save);
    let known = |key: &[u8]| rows.get(key).map(|row| row.to_vec());
    let effects = Effects::of(&ops, bot, &plugin.name, &invocation.conversation, invocation.now, known);
    let writes = writes(&effects);
    let queued = effects.calls.into_iter().map(|call| {
        let params = json(&call.params.to_string());
        Call { method: call.method, params, direct: false, answer: None }
    });
    ring.push(Run {
        number: 0,
        at: before.at,
        event: invocation.id,
        attempt: invocation.attempt,
        plugin: plugin.name.clone(),
        version: plugin.version.to_string(),
        observes,
        cause: cause(&invocation.event),
        conversation: {
            let whose = &invocation.conversation;
            [whose.chat.map(|id| id.0), whose.user.map(|id| id.0), whose.thread.map(|id| id.0)]
        },
        verdict: match &report.result {
            Ok(Verdict::Done) => "done".to_owned(),
            Ok(Verdict::Pass) => "pass".to_owned(),
            Err(error) => clean(&error.to_string()),
        },
        calls: direct.chain(queued).collect(),
        before: before.state,
        after: state(&report.tx, plugin, invocation),
        writes,
        log: report.lines.iter().map(|line| clean(line)).collect(),
        cpu_micros: micros(report.cpu),
        wall_micros: micros(before.began.elapsed()),
    });
}

fn cause(event: &Event) -> Cause {
    match event {
        Event::Update(update) => Cause::Update(update.id),
        Event::Album(album) => Cause::Album(album.updates.iter().map(|update| update.id).collect()),
        Event::Timer(timer) => Cause::Timer(timer.name.clone()),
        Event::Job(job) => Cause::Job(job.name.clone()),
        Event::Expired(state) => Cause::Expired(state.name.clone()),
        _ => Cause::Other,
    }
}

fn state(tx: &Tx, plugin: &Plugin, invocation: &Invocation) -> Option<State> {
    let key = fsm::key(invocation.bot, &plugin.name, &invocation.conversation);
    let row = StateRow::decode(&tx.peek(&key).ok()??).ok()?;
    (!row.is_expired(invocation.now)).then(|| State { name: row.name, content: text(&row.bytes) })
}

/// What it writes beside its state and its calls, in words.
fn writes(effects: &Effects) -> Vec<String> {
    let values = effects.values.iter().map(|change| match &change.after {
        Some(value) => format!("{} {} = {value}", change.key, change.scope),
        None => format!("{} {} is removed", change.key, change.scope),
    });
    let languages = effects.languages.iter().map(|change| match &change.after {
        Some(language) => format!("language {} = {language}", change.scope),
        None => format!("language {} is forgotten", change.scope),
    });
    let in_time = |what: &str, name: &str, cancelled: bool, seconds: u64| {
        if cancelled { format!("{what} `{name}` is cancelled") } else { format!("{what} `{name}` in {seconds} s") }
    };
    let timers = effects.timers.iter().map(|timer| in_time("timer", &timer.name, timer.cancelled, timer.seconds));
    let jobs = effects.jobs.iter().map(|job| in_time("job", &job.name, job.cancelled, job.seconds));
    let broadcasts = effects.broadcasts.iter().map(|broadcast| format!("broadcast `{}` is begun", broadcast.name));
    values.chain(languages).chain(timers).chain(jobs).chain(broadcasts).map(|line| clean(&line)).take(WRITES).collect()
}

fn json(params: &str) -> Value {
    let clean = clean(params);
    serde_json::from_str(&clean).unwrap_or(Value::String(clean))
}

fn text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => clean(text),
        Err(_) => bytes.iter().take(TEXT / 2).map(|byte| format!("{byte:02x}")).collect(),
    }
}

/// Without secrets, and not too long.
fn clean(text: &str) -> String {
    let mut text = redact(text).into_owned();
    if text.len() > TEXT {
        let end = (0..=TEXT).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    text
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_hidden_and_long_texts_end() {
        crate::config::redaction::hide("the-secret-of-the-shop");
        assert_eq!(clean("x the-secret-of-the-shop y"), "x [hidden] y");
        assert_eq!(clean("777000123:AAaaBBbbCCccDDddEEeeFFff"), "[hidden]");
        let long = clean(&"é".repeat(TEXT));
        assert!(long.ends_with('…') && long.len() <= TEXT + 3, "{}", long.len());
        assert_eq!(text(&[0xff, 0x01]), "ff01");
        assert_eq!(json(r#"{"a":[1]}"#), serde_json::json!({"a": [1]}));
    }
}
