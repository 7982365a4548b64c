//! `botyard test`: plays conversation scripts with the real host, on a simulated Telegram.

mod compare;
mod known;
mod play;
mod script;
mod stage;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use serde::Serialize;
use tokio::time::Instant;

use self::compare::Diff;
use self::play::Failure;
use self::script::{Conversation, Script, Setup};
use super::bot::BotFile;
use super::capture::Capture;
use super::exit::{Exit, WrongArgument};
use super::scratch::Scratch;
use super::table::clean;
use super::{BotConfig, say};
use crate::config::{Config, Environment, LoadOptions};

/// Play conversation scripts: who says what, and what the bot must answer
///
/// A script (*.chat) is a text that reads like the chat itself:
///
///   Alice: /order
///   Bot: Which tea?
///     [Black] [Green]
///   Alice presses [Green]
///   Bot edits: A green tea. How many cups?
///
/// Each conversation gets a bot that nobody has written to yet: the real host with the plugins of
/// bot.toml, a store of its own, and a simulated Telegram. No token, no network. In the folder of a
/// plugin's crate the plugin is built first. docs/testing.md has the whole syntax.
///
/// Exit code 0: all went as written; 1: something did not; 2: a script or the configuration is wrong.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Test {
    /// Scripts, or folders with scripts; by default all *.chat files in and below this folder
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    config: BotConfig,
    /// Test this plugin alone instead of those in bot.toml; several are asked in this order
    #[arg(long, value_name = "[NAME=]FILE.wasm")]
    plugin: Vec<String>,
    /// Take the .wasm file that is there, even if the source has changed
    #[arg(long)]
    no_build: bool,
    /// How many seconds the bot may take for one turn
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3600))]
    timeout: u64,
    /// The report as JSON
    #[arg(long)]
    json: bool,
}

/// How one conversation went.
#[derive(Debug, Serialize)]
struct Report {
    file: String,
    title: String,
    line: usize,
    ok: bool,
    seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<Failed>,
}

#[derive(Debug, Serialize)]
struct Failed {
    /// The line after which it went wrong.
    line: usize,
    after: String,
    missing: Vec<String>,
    unexpected: Vec<String>,
    notes: Vec<String>,
    log: Vec<super::capture::Line>,
    #[serde(skip)]
    diff: Vec<Diff>,
}

struct File {
    path: PathBuf,
    text: String,
    script: Script,
}

impl Test {
    pub(super) fn run(self) -> anyhow::Result<Exit> {
        let scripts = read_all(&self.files)?;
        let bot = BotFile::find(&self.config.file.config, &self.plugin)?;
        if !self.no_build {
            bot.build_here()?;
        }
        let folder = Scratch::new("test")?;
        let mut reports = Vec::new();
        for file in &scripts {
            if !self.json {
                say(&format!("{}\n", file.path.display()));
            }
            for conversation in &file.script.conversations {
                let report = self.play(&bot, file, conversation, &folder.0)?;
                if !self.json {
                    say(&report.text(super::is_coloured()));
                }
                reports.push(report);
            }
        }
        let n_failed = reports.iter().filter(|report| !report.ok).count();
        if self.json {
            say(&format!("{}\n", serde_json::to_string_pretty(&reports)?));
        } else {
            let plural = if reports.len() == 1 { "" } else { "s" };
            let failed = if n_failed == 0 { "all as written".to_owned() } else { format!("{n_failed} failed") };
            say(&format!("\n{} conversation{plural}, {failed}\n", reports.len()));
        }
        Ok(if n_failed == 0 { Exit::Done } else { Exit::Failed })
    }

    fn play(&self, bot: &BotFile, file: &File, conversation: &Conversation, folder: &Path) -> anyhow::Result<Report> {
        let place = || format!("{}:{}", file.path.display(), conversation.line);
        let setup = || file.script.setup.iter().chain(&conversation.setup);
        let config = configure(bot, setup()).and_then(|config| self.config.choose(&config));
        let config = playable(config.with_context(place)?)?;
        let (capture, start) = (Capture::default(), Instant::now());
        let guard = capture.begin();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let patience = Duration::from_secs(self.timeout);
        let is_paced = |(_, setup): &(usize, Setup)| matches!(setup, Setup::Set { key, .. } if key == stage::BULK_PACE);
        let stage = stage::Settings { store: folder.join("data"), patience, paced: setup().any(is_paced) };
        // Runs on this thread, so that all that plugins log is caught.
        let played = runtime.block_on(stage::on_stage(config, stage, async |stage| {
            play::play(stage, setup(), conversation, &capture).await
        }));
        runtime.shutdown_background();
        drop(guard);
        let failure = played.with_context(place)?.map(|failure| Failed::new(failure, &file.text));
        Ok(Report {
            file: file.path.display().to_string(),
            title: conversation.title.clone(),
            line: conversation.line,
            ok: failure.is_none(),
            seconds: start.elapsed().as_secs_f64(),
            failure,
        })
    }
}

/// The bot's configuration, and what the script sets over it.
fn configure<'a>(bot: &BotFile, setup: impl Iterator<Item = &'a (usize, Setup)>) -> anyhow::Result<Config> {
    let mut variables: Vec<(String, OsString)> =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value))).collect();
    for (_, setup) in setup {
        if let Setup::Set { key, value } = setup {
            variables.push((format!("BOTYARD__{}", key.replace('.', "__").to_uppercase()), value.into()));
        }
    }
    let environment: Environment = variables.into_iter().collect();
    Ok(Config::parse(&bot.path, &bot.text, &environment, LoadOptions { token_optional: true })?)
}

/// The bot alone, if there is anybody to talk to.
fn playable(mut config: Config) -> anyhow::Result<Config> {
    if config.enabled().next().is_none() {
        let message = format!("{} in {} has no plugins to talk to", config.section(), config.file.display());
        return Err(WrongArgument(message).into());
    }
    config.bots.retain(|name, _| *name == config.name);
    Ok(config)
}

fn read_all(files: &[PathBuf]) -> anyhow::Result<Vec<File>> {
    let mut paths = Vec::new();
    if files.is_empty() {
        find(Path::new("."), &mut paths)?;
        paths = paths.iter().map(|path| path.strip_prefix(".").unwrap_or(path).to_owned()).collect();
    }
    for file in files {
        if file.is_dir() { find(file, &mut paths)? } else { paths.push(file.clone()) }
    }
    if paths.is_empty() {
        let message = "there are no conversation scripts (*.chat) here; docs/testing.md says how to write one, and \
                       `botyard new` makes a plugin that has one";
        return Err(WrongArgument(message.to_owned()).into());
    }
    let mut scripts = Vec::new();
    let mut problems = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(&path)
            .map_err(|error| WrongArgument(format!("{}: can't be read: {error}", path.display())))?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        match script::parse(&text, &name) {
            Ok(script) => scripts.push(File { path, text, script }),
            Err(found) => problems.extend(
                found.into_iter().map(|problem| format!("{}:{}: {}", path.display(), problem.line, problem.message)),
            ),
        }
    }
    if problems.is_empty() { Ok(scripts) } else { Err(WrongArgument(problems.join("\n")).into()) }
}

/// All scripts below a folder, in the order of their names. What cargo builds and what is hidden is left out.
fn find(folder: &Path, found: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let unreadable = || format!("could not look into {}", folder.display());
    let entries = std::fs::read_dir(folder).with_context(unreadable)?;
    let mut paths =
        entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>().with_context(unreadable)?;
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() && !path.is_symlink() {
            if !name.starts_with('.') && !matches!(&*name, "target" | "node_modules") {
                find(&path, found)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "chat") {
            found.push(path);
        }
    }
    Ok(())
}

impl Failed {
    fn new(Failure { line, diff, notes, log }: Failure, text: &str) -> Self {
        let after = text.lines().nth(line.saturating_sub(1)).unwrap_or_default().trim_end().to_owned();
        let (mut missing, mut unexpected) = (Vec::new(), Vec::new());
        for line in &diff {
            match line {
                Diff::Same(_) => {}
                Diff::Missing(text) => missing.push(text.clone()),
                Diff::Unexpected(text) => unexpected.push(text.clone()),
            }
        }
        Self { line, after, missing, unexpected, notes, log, diff }
    }
}

impl Report {
    /// For people; red is what was missing, green what was there instead.
    fn text(&self, coloured: bool) -> String {
        let paint = |code: &str, text: &str| {
            if coloured { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
        };
        let Some(failed) = &self.failure else {
            return format!("  {}    {} ({:.1} s)\n", paint("32", "ok"), self.title, self.seconds);
        };
        let mut text = format!("  {}  {}\n", paint("1;31", "FAIL"), self.title);
        text += &format!("    {}:{}: after `{}`\n", self.file, failed.line, clean(&failed.after));
        for line in &failed.diff {
            let (mark, code, line) = match line {
                Diff::Same(line) => (' ', "", line),
                Diff::Missing(line) => ('-', "31", line),
                Diff::Unexpected(line) => ('+', "32", line),
            };
            for part in clean(line).lines() {
                let part = format!("{mark} {part}");
                text += &format!("      {}\n", if code.is_empty() { part } else { paint(code, &part) });
            }
        }
        if failed.diff.iter().any(|line| !matches!(line, Diff::Same(_))) {
            text += "      (- is what the script says, + what the bot did)\n";
        }
        for note in &failed.notes {
            text += &format!("    {}\n", clean(note).replace('\n', "\n      "));
        }
        for line in &failed.log {
            text += &format!("    log: {}\n", clean(&line.to_string()));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_found_below_a_folder_but_not_in_what_cargo_builds() {
        let folder = tempfile::tempdir().unwrap();
        for file in ["b.chat", "a/c.chat", "target/d.chat", ".git/e.chat", "a/notes.txt"] {
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "Alice: hi\n").unwrap();
        }
        let found = read_all(&[folder.path().to_owned()]).unwrap();
        let names: Vec<_> = found.iter().map(|file| file.path.strip_prefix(folder.path()).unwrap()).collect();
        assert_eq!(names, [Path::new("a/c.chat"), Path::new("b.chat")]);
        std::fs::write(folder.path().join("b.chat"), "Alice shrugs\n").unwrap();
        let error = read_all(&[folder.path().to_owned()]).err().unwrap();
        assert_eq!(Exit::of(&error), Exit::Usage);
        assert!(error.to_string().contains("b.chat:1: "), "{error}");
    }
}
