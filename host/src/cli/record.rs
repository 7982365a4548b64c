//! `botyard record`: writes down what a running bot's plugins are given and what they do, for `botyard replay`.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use clap::Args;

use super::exit::{Exit, WrongArgument};
use super::hand::{self, Running};
use super::{BotConfig, tell};
use crate::config::{LoadOptions, show_bytes};
use crate::dispatch::{FORM, Line};
use crate::domain::PluginName;

/// Longer lines are none of a host's.
const LONGEST_LINE: usize = 8 << 20;
/// A host that lives says so more often.
const SILENCE: Duration = Duration::from_secs(30);

/// Write down what a running bot's plugins are given, and what they do
///
/// Each line of FILE is one run, as JSON: the event, what was read of the store, the answers to what was asked
/// outside, and what came of it. `botyard replay` gives the same events to another build of the plugin and
/// shows what it would do differently.
///
/// It goes on until Ctrl-C, or until one of the bounds. The bot is not slowed down: what can't be written
/// down in time is left out, and told. Secrets and the token are never in the file; what people have written
/// is, so only its owner may read it.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Record {
    #[command(flatten)]
    file: BotConfig,
    /// Of this plugin alone, as it stands in bot.toml
    #[arg(long, value_name = "NAME")]
    plugin: Option<String>,
    /// Where to; it must not be there yet
    #[arg(long, short, value_name = "FILE")]
    out: PathBuf,
    /// How large the file may become
    #[arg(long, value_name = "MIB", default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=65_536))]
    max_size: u64,
    /// End after so many runs
    #[arg(long, value_name = "N")]
    runs: Option<u64>,
    /// End after so many seconds
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<u64>,
}

impl Record {
    pub(super) fn run(self) -> anyhow::Result<Exit> {
        let config = self.file.load(LoadOptions { token_optional: true })?;
        if let Some(plugin) = &self.plugin
            && !config.plugins.contains_key(&PluginName::new(plugin))
        {
            let names = config.plugins.keys().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            return Err(
                WrongArgument(format!("there is no plugin `{plugin}` in the configuration, but {names}")).into()
            );
        }
        hand::block_on(async {
            let running = Running::on(&config).await?;
            let answer = running.record(self.plugin.as_deref()).await?;
            let mut tape = Tape::create(&self.out, self.max_size << 20, self.runs)?;
            let of = self.plugin.as_deref().map_or_else(|| "all plugins".to_owned(), |plugin| format!("`{plugin}`"));
            tell(&format!("recording {of} to {}; Ctrl-C ends it", self.out.display()));
            let time = self.seconds.map_or(Duration::MAX, Duration::from_secs);
            let ended = tokio::select! {
                ended = tape.take(answer) => ended,
                done = tokio::signal::ctrl_c() => done.map(|()| "by Ctrl-C").map_err(Into::into),
                () = tokio::time::sleep(time) => Ok("the time is over"),
            };
            tape.file.sync_all().with_context(|| format!("could not write {}", self.out.display()))?;
            let Tape { runs, lost, size, .. } = tape;
            let lost =
                if lost == 0 { String::new() } else { format!(", {lost} left out (too many at once, or too large)") };
            let ended = ended?;
            tell(&format!("{runs} runs in {}{lost}; it ended: {ended}", show_bytes(size)));
            Ok(Exit::Done)
        })
    }
}

/// The file, and what is in it.
struct Tape {
    file: File,
    size: u64,
    most: u64,
    runs: u64,
    most_runs: u64,
    lost: u64,
}

impl Tape {
    fn create(path: &Path, most: u64, runs: Option<u64>) -> anyhow::Result<Self> {
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        let file = made.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => {
                anyhow!(WrongArgument(format!("{} is there already, and stays as it is", path.display())))
            }
            _ => anyhow!(error).context(format!("could not make {}", path.display())),
        })?;
        Ok(Self { file, size: 0, most, runs: 0, most_runs: runs.unwrap_or(u64::MAX), lost: 0 })
    }

    /// Writes what comes, until a bound. Answers with the reason for the end.
    async fn take(&mut self, mut answer: reqwest::Response) -> anyhow::Result<&'static str> {
        let mut waiting = Vec::new();
        loop {
            let chunk = tokio::time::timeout(SILENCE, answer.chunk()).await.context("the host is silent")?;
            let Some(chunk) = chunk.context("the host's answer breaks off")? else { return Ok("the host stops") };
            waiting.extend_from_slice(&chunk);
            let mut from = 0;
            while let Some(length) = waiting.iter().skip(from).position(|&byte| byte == b'\n') {
                let line = waiting.get(from..from + length).unwrap_or_default();
                from += length + 1;
                if let Some(why) = self.line(line)? {
                    return Ok(why);
                }
            }
            waiting.drain(..from);
            anyhow::ensure!(waiting.len() <= LONGEST_LINE, "the host is of another version: its lines are too long");
        }
    }

    fn line(&mut self, line: &[u8]) -> anyhow::Result<Option<&'static str>> {
        if line.is_empty() {
            return Ok(None);
        }
        let (runs, lost) = match serde_json::from_slice(line).context("the host's answer can't be read")? {
            Line::Recording { form: FORM, .. } => (0, 0),
            Line::Recording { .. } => anyhow::bail!("the host is of another version: it records in another form"),
            Line::Note(_) => (1, 0),
            Line::Lost(lost) => (0, lost),
        };
        let length = line.len() as u64 + 1;
        if self.size + length > self.most {
            return Ok(Some("the file is as large as it may become (--max-size)"));
        }
        (self.runs, self.lost) = (self.runs + runs, self.lost + lost);
        // In one, so that no half a line is ever there.
        self.file.write_all(&[line, b"\n"].concat()).context("could not write the file")?;
        self.size += length;
        Ok((self.runs >= self.most_runs).then_some("as many runs as were asked for"))
    }
}
