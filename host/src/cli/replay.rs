//! `botyard replay`: gives recorded events to another build of a plugin, and shows what it does differently.

mod compare;

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;

use self::compare::{Difference, Mark, difference};
use super::bot::BotFile;
use super::call::room::Room;
use super::exit::{Exit, WrongArgument};
use super::hand::block_on;
use super::table::{clean, utc};
use super::{BotConfig, say};
use crate::config::{Config, LoadOptions};
use crate::dispatch::{FORM, Line, Note, What};
use crate::domain::{PluginName, UpdateView};

/// Give recorded events to another build of a plugin, and see what it would do differently
///
/// FILE is made by `botyard record`. Each run begins where it began then: the same event, the same state and
/// values, the same time, random numbers, and answers from outside; so differences don't pile up. What the new
/// build reads or asks for that the recording does not have is not there for it. Nothing is kept, and nothing
/// leaves the machine.
///
/// Configuration, grants and limits are those of the plugin in bot.toml, where there is one.
///
/// Exit code 0: it does the same; 1: it does something else; 2: the recording or the configuration is wrong.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Replay {
    /// The recording
    #[arg(value_name = "FILE")]
    recording: PathBuf,
    /// The build to try
    #[arg(long, value_name = "NEW.wasm")]
    against: PathBuf,
    /// Whose runs, where several plugins are in the recording
    #[arg(long, value_name = "NAME")]
    plugin: Option<String>,
    #[command(flatten)]
    config: BotConfig,
    /// The report as JSON
    #[arg(long)]
    json: bool,
}

/// What came of all runs.
#[derive(Debug, Default, Serialize)]
struct Report {
    plugin: String,
    runs: usize,
    different: usize,
    /// Runs that the recording has lost.
    lost: u64,
    /// Time on a processor, then and now.
    cpu_ms: [f64; 2],
    differences: Vec<Difference>,
}

impl Replay {
    pub(super) fn run(self) -> anyhow::Result<Exit> {
        if !self.against.is_file() {
            let message = format!("there is no file {}; `botyard build` makes one", self.against.display());
            return Err(WrongArgument(message).into());
        }
        let (notes, lost) = read(&self.recording)?;
        let plugin = self.whose(&notes)?;
        let notes: Vec<Note> = notes.into_iter().filter(|note| note.plugin == plugin).collect();
        let Some(first) = notes.first() else {
            let message = format!("{} has no runs of `{plugin}`", self.recording.display());
            return Err(WrongArgument(message).into());
        };
        let config = self.config_for(&plugin)?;
        let mut report = Report { plugin: plugin.to_string(), runs: notes.len(), lost, ..Report::default() };
        block_on(async {
            let room = Room::of_bot(&config, first.bot).await?;
            for old in &notes {
                let new = room.again(old).await?;
                report.cpu_ms[0] += old.cpu as f64 / 1000.0;
                report.cpu_ms[1] += new.as_ref().map_or(0, |new| new.cpu) as f64 / 1000.0;
                report.differences.extend(difference(old, new.as_ref()));
            }
            room.close().await
        })?;
        report.different = report.differences.len();
        let is_same = report.differences.is_empty();
        say(&if self.json {
            format!("{}\n", serde_json::to_string_pretty(&report)?)
        } else {
            report.text(super::is_coloured())
        });
        Ok(if is_same { Exit::Done } else { Exit::Failed })
    }

    fn whose(&self, notes: &[Note]) -> anyhow::Result<PluginName> {
        if let Some(plugin) = &self.plugin {
            return Ok(PluginName::new(plugin));
        }
        let mut names: Vec<&PluginName> = notes.iter().map(|note| &note.plugin).collect();
        names.sort();
        names.dedup();
        let listed = || names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        match names[..] {
            [name] => Ok(name.clone()),
            [] => Err(WrongArgument(format!("{} has no runs", self.recording.display())).into()),
            _ => Err(WrongArgument(format!("several plugins are recorded, {}: say --plugin NAME", listed())).into()),
        }
    }

    /// The plugin alone, with the new build, as it is configured.
    fn config_for(&self, plugin: &PluginName) -> anyhow::Result<Config> {
        let path = &self.config.file.config;
        if !path.exists() {
            return BotFile::find(path, &[format!("{plugin}={}", self.against.display())])?.config();
        }
        let mut config = self.config.load(LoadOptions { token_optional: true })?;
        let unknown = || WrongArgument(format!("{} has no plugin `{plugin}`", path.display()));
        let mut entry = config.plugins.remove(plugin).ok_or_else(unknown)?;
        (entry.path, entry.enabled) = (self.against.clone(), true);
        config.plugins.clear();
        config.plugins.insert(plugin.clone(), entry);
        Ok(config)
    }
}

/// The runs of a recording, and how many are missing.
fn read(path: &Path) -> anyhow::Result<(Vec<Note>, u64)> {
    let unreadable = |error| WrongArgument(format!("{}: can't be read: {error}", path.display()));
    let file = BufReader::new(File::open(path).map_err(unreadable)?);
    let (mut notes, mut lost) = (Vec::new(), 0);
    for (number, line) in (1..).zip(file.lines()) {
        let line = line.map_err(unreadable)?;
        let wrong = |why| WrongArgument(format!("{}:{number}: is no line of a recording: {why}", path.display()));
        match serde_json::from_str(&line).map_err(wrong)? {
            Line::Recording { form: FORM, .. } => {}
            Line::Recording { host, .. } => {
                let message = format!("{} was made by botyard {host}, in another form", path.display());
                return Err(WrongArgument(message).into());
            }
            Line::Note(note) => notes.push(*note),
            Line::Lost(more) => lost += more,
        }
    }
    Ok((notes, lost))
}

impl Report {
    fn text(&self, coloured: bool) -> String {
        let paint = |code: &str, text: String| {
            if coloured && !code.is_empty() { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text }
        };
        let mut text = String::new();
        for difference in &self.differences {
            text += &clean(&difference.title());
            text.push('\n');
            for (mark, line) in &difference.lines {
                let (sign, code) = match mark {
                    Mark::Same => (' ', ""),
                    Mark::Gone => ('-', "31"),
                    Mark::New => ('+', "32"),
                };
                let line = clean(line).replace('\n', "\n      ");
                text += &format!("{}\n", paint(code, format!("  {sign} {line}")));
            }
        }
        if !self.differences.is_empty() {
            text += "\n(- is what was recorded, + what the new build does)\n";
        }
        let different = match self.different {
            0 => "all as recorded".to_owned(),
            different => format!("{different} different"),
        };
        let [then, now] = self.cpu_ms;
        text += &format!(
            "{} runs of {}, {different}; processor {then:.1} ms then, {now:.1} ms now\n",
            self.runs, self.plugin
        );
        if self.lost > 0 {
            text += &format!("{} runs are missing in the recording\n", self.lost);
        }
        text
    }
}

/// When it was, and what.
fn headline(note: &Note) -> String {
    let what = match &note.what {
        What::Update(raw) => told(raw.text()),
        What::Album(updates) => {
            let first = updates.first().map(|raw| told(raw.text())).unwrap_or_default();
            format!("album of {}: {first}", updates.len())
        }
        What::Timer { name, .. } => format!("timer {name:?}"),
        What::Job { name, .. } => format!("job {name:?}"),
        What::Expired { name, .. } => format!("end of the state {name}"),
    };
    let looks = if note.observes { ", looking on" } else { "" };
    let again = if note.attempt > 1 { format!(", attempt {}", note.attempt) } else { String::new() };
    format!("event {} at {} UTC{again}{looks}: {what}", note.event, utc(note.now))
}

fn told(raw: &str) -> String {
    let Ok(view) = UpdateView::parse(raw) else { return "an update that can't be read".to_owned() };
    let said = view.text.as_deref().or(view.callback_data.as_deref()).map(|text| format!(": {text:?}"));
    let chat = view.chat.map(|chat| format!(" in chat {chat}")).unwrap_or_default();
    let user = view.user.map(|user| format!(" of user {user}")).unwrap_or_default();
    format!("{}{user}{chat}{}", view.kind, said.unwrap_or_default())
}
