//! What handling an event would bring about, to be shown.

use serde::Serialize;
use serde_json::Value as Json;

use crate::cli::capture::Line;
use crate::cli::table::clean;
use crate::dispatch::{Broadcast, Call, Change, Effects, Job, Note, Rehearsal, Routes, Said, Timer};
use crate::plugin::{Answer, Asked};

/// See the module.
#[derive(Debug, Serialize)]
pub(in crate::cli) struct Shown {
    /// The plugins that were given it, in order.
    pub(in crate::cli) runs: Vec<Run>,
    /// Why nothing came of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::cli) failed: Option<String>,
    pub(in crate::cli) log: Vec<Line>,
}

#[derive(Debug, Serialize)]
pub(in crate::cli) struct Run {
    plugin: String,
    version: String,
    observes: bool,
    /// `took it` (and how), `passed`, or why it failed.
    verdict: String,
    /// The filters that let the event through.
    filters: Vec<String>,
    cpu_ms: f64,
    /// What it has asked outside.
    asked: Vec<Asked>,
    effects: Effects,
}

impl Shown {
    pub(super) fn of(rehearsal: Rehearsal, routes: &Routes, log: Vec<Line>) -> Self {
        let run = |note: Note| {
            let entry = routes.entries().iter().find(|entry| entry.plugin.name == note.plugin);
            let filters = entry.map(|entry| entry.plugin.manifest.filters.as_slice()).unwrap_or_default();
            let matched = note.matched.iter().filter_map(|place| filters.get(usize::try_from(*place).ok()?));
            Run {
                plugin: note.plugin.to_string(),
                verdict: said(&note),
                version: note.version,
                observes: note.observes,
                filters: matched.map(ToString::to_string).collect(),
                cpu_ms: note.cpu as f64 / 1000.0,
                asked: note.asked,
                effects: note.effects,
            }
        };
        Self { runs: rehearsal.notes.into_iter().map(run).collect(), failed: rehearsal.failed, log }
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        let mut lines = Vec::new();
        if self.runs.is_empty() && self.failed.is_none() {
            lines.push("no plugin wants this update; `botyard routes` with the same file says why".to_owned());
        }
        for Run { plugin, version, observes, verdict, filters, cpu_ms, asked, effects } in &self.runs {
            let looks = if *observes { ", looking on" } else { "" };
            let filters = filters.join("; ");
            lines.push(format!("{plugin} {version}{looks}: {verdict} ({cpu_ms:.1} ms), because of {filters}"));
            lines.extend(asked.iter().map(|asked| format!("  asked  {}", asked_line(asked))));
            lines.extend(effect_lines(effects, true).map(|line| format!("  {line}")));
        }
        lines.extend(self.failed.iter().map(|why| format!("nothing comes of it: {why}")));
        lines.extend(self.log.iter().map(|line| format!("  log    {line}")));
        lines.iter().map(|line| format!("{}\n", clean(line).replace('\n', "\n    "))).collect()
    }
}

pub(in crate::cli) fn said(note: &Note) -> String {
    match (&note.verdict, &note.recovered) {
        (Said::Done, None) => "took it".to_owned(),
        (Said::Done, Some(why)) => format!("took it in its `#[on_error]`, after {why}"),
        (Said::Passed, _) => "passed".to_owned(),
        (Said::Failed(why), _) => why.clone(),
    }
}

/// What was asked outside, and what came back.
pub(in crate::cli) fn asked_line(asked: &Asked) -> String {
    let answer = match &asked.answer {
        Answer::Result(result) => result.text().to_owned(),
        Answer::Refused(error) => error.to_string(),
        Answer::Response { status, body, .. } => format!("{status} {}", body.text()),
        Answer::Failed(error) => error.to_string(),
    };
    format!("{} -> {answer}", question(asked))
}

/// Without the answer. Of a request's headers and body only a hash is known.
pub(in crate::cli) fn question(asked: &Asked) -> String {
    match &asked.answer {
        Answer::Result(_) | Answer::Refused(_) => format!("{} {}", asked.what, asked.how.text()),
        Answer::Response { .. } | Answer::Failed(_) => {
            format!("{} #{}", asked.what, asked.how.text().chars().take(8).collect::<String>())
        }
    }
}

/// Each effect in a line. `before`: also of what was before.
pub(in crate::cli) fn effect_lines(effects: &Effects, before: bool) -> impl Iterator<Item = String> {
    let value = |value: &Option<Json>| value.as_ref().map_or_else(|| "nothing".to_owned(), ToString::to_string);
    let change = move |change: &Change| {
        let before = if before { format!("{} ", value(&change.before)) } else { String::new() };
        format!("{before}-> {}", value(&change.after))
    };
    let calls = effects.calls.iter().map(|Call { method, params, at_most_once, files }| {
        let once = if *at_most_once { ", at most once" } else { "" };
        let files = if files.is_empty() { String::new() } else { format!(", with {}", files.join(", ")) };
        format!("call   {method} {params}{once}{files}")
    });
    let states = effects.states.iter().map(|one| {
        let scope = if one.scope.is_empty() { String::new() } else { format!("{}: ", one.scope) };
        format!("state  {scope}{}", change(one))
    });
    let values = effects.values.iter().map(|one| format!("value  {} {:?}: {}", one.scope, one.key, change(one)));
    let languages = effects.languages.iter().map(|one| format!("language  {}: {}", one.scope, change(one)));
    let timers = effects.timers.iter().map(|Timer { name, cancelled, seconds, repeats, payload }| {
        let repeats = repeats.as_ref().map(|rule| format!(", {rule}")).unwrap_or_default();
        let when = if *cancelled { "cancelled, was due" } else { "due" };
        format!("timer  {name:?} {when} in {seconds} s{repeats}: {payload}")
    });
    let jobs = effects.jobs.iter().map(move |Job { name, cancelled, seconds, key, payload }| {
        let key = key.as_ref().map(|key| format!(", one {key:?}")).unwrap_or_default();
        let when = if *cancelled {
            "cancelled".to_owned()
        } else {
            format!("queued, in {seconds} s{key}: {}", value(payload))
        };
        format!("job    {name:?} {when}")
    });
    let broadcasts = effects.broadcasts.iter().map(|Broadcast { name, recipients, method, params }| {
        let to = recipients.map_or_else(|| "all known chats".to_owned(), |n| format!("{n} chats"));
        format!("broadcast  {name:?} to {to}: {method} {params}")
    });
    calls
        .chain(states)
        .chain(values)
        .chain(languages)
        .chain(timers)
        .chain(jobs)
        .chain(broadcasts)
        .collect::<Vec<_>>()
        .into_iter()
}
