//! Logging to stderr, in text or JSON. The last filter before a line goes out takes secrets from it, whoever wrote
//! them; panics pass through it too.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::{self, IsTerminal as _, Write};

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

use super::exit::WrongArgument;
use crate::config::redaction::redact;

const VARIABLE: &str = "BOTYARD_LOG";

/// What is logged, and how.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// What is logged, such as `debug` or `info,botyard::sender=trace` [default: BOTYARD_LOG, else as it fits]
    #[arg(long, global = true, value_name = "FILTER", help_heading = "Logging")]
    log: Option<String>,
    /// Lines for people, or a JSON object a line
    #[arg(long, global = true, value_name = "FORMAT", default_value = "text", help_heading = "Logging")]
    log_format: Format,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    Text,
    Json,
}

/// Sets up logging for the process; `default` is what is logged when nobody says.
pub(super) fn start(options: &Options, default: &str) -> anyhow::Result<()> {
    let variable = std::env::var(VARIABLE).ok().filter(|filter| !filter.trim().is_empty());
    let (source, filter) = match (&options.log, variable) {
        (Some(filter), _) => ("--log", filter.clone()),
        (None, Some(filter)) => (VARIABLE, filter),
        (None, None) => ("", default.to_owned()),
    };
    let filter = EnvFilter::try_new(&filter).map_err(|error| {
        WrongArgument(format!("{source}: {filter:?} is no log filter ({error}); expected something like `debug`"))
    })?;
    let is_terminal = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(Stderr).with_ansi(is_terminal);
    let started = match options.log_format {
        Format::Text => lines.try_init(),
        Format::Json => lines.json().with_ansi(false).try_init(),
    };
    started.map_err(|error| anyhow::anyhow!(error)).context("could not set up logging")?;
    std::panic::set_hook(Box::new(log_panic));
    Ok(())
}

fn log_panic(panic: &std::panic::PanicHookInfo<'_>) {
    let message = panic.payload_as_str().unwrap_or("no message");
    let location = panic.location().map(ToString::to_string).unwrap_or_default();
    let thread = std::thread::current().name().unwrap_or("unnamed").to_owned();
    let backtrace = Backtrace::capture();
    // With RUST_BACKTRACE=1 only.
    let backtrace = (backtrace.status() == BacktraceStatus::Captured).then(|| backtrace.to_string());
    tracing::error!(panic = message, location, thread, backtrace, "the host has panicked");
}

/// Stderr, each whole line without secrets.
struct Stderr;

impl<'a> MakeWriter<'a> for Stderr {
    type Writer = Redacting<io::Stderr>;

    fn make_writer(&'a self) -> Self::Writer {
        Redacting(io::stderr())
    }
}

/// The subscriber writes each event at once, so that no secret is torn apart between two writes.
pub(super) struct Redacting<W>(pub(super) W);

impl<W: Write> Write for Redacting<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write_all(redact(&String::from_utf8_lossy(bytes)).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
