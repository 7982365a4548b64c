//! The command line: arguments, logging, what is printed, and the exit code. Nothing is decided here that a bot's
//! work depends on.
//!
//! Results go to stdout, progress and logs to stderr. Whatever fails is told in one message that names the mend; the
//! exit code says which kind of failure it was. Nothing that is printed shows a secret.
#![allow(clippy::print_stderr, reason = "the last words of a command go to the terminal, not to the log")]

mod bot;
mod broadcast;
mod build;
mod call;
mod capture;
mod chats;
mod check;
mod completions;
mod dead;
mod dev;
mod doctor;
mod exit;
mod hand;
mod inspect;
mod logging;
mod new;
mod plugin;
mod routes;
mod run;
mod scratch;
mod store;
mod table;
mod test;
#[cfg(test)]
mod tests;
mod unknown;
mod webhook;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use crate::config::redaction::redact;
use crate::config::{Config, DEFAULT_FILE, LoadOptions};
use crate::domain::BotName;
use exit::{Exit, WrongArgument};

const ABOUT: &str = "Runs Telegram bots whose handlers are sandboxed WebAssembly plugins.

botyard fetches a bot's updates and hands each one to a plugin: a small .wasm file that answers commands, holds
conversations and presses buttons. It keeps every update on disk until it is handled, repeats what failed, keeps to
Telegram's limits, and swaps plugins while the bot runs.";

const MORE: &str = "To begin with a plugin:
  botyard new tea           Make a folder with a plugin that works, its tests, and a bot.toml; then, in that folder:
  botyard dev               Chat with it in a browser, without a token and without a network; every change of the source
                            is live as soon as it is saved.

To run a bot:
  botyard run --simulator   Run the bot without a token and without a network: the host plays Telegram itself and
                            prints the address of a page in which you chat with the bot.
  botyard run               Run it on Telegram, with a token from @BotFather in the variable BOT_TOKEN.

Files:
  bot.toml                  The configuration: which bots, which plugins, which limits. Another one: --config FILE.
  *.wasm                    The plugins that bot.toml names; `botyard build` makes them. Both are watched while the
                            bot runs: save a new version, and it serves the next message.
  data/                     The store: waiting updates, conversations, unsent messages (`path` in [store]).

Environment:
  BOT_TOKEN                 The token, if bot.toml says `token = { env = \"BOT_TOKEN\" }`.
  BOTYARD__SECTION__KEY     Overrides that key of bot.toml, such as BOTYARD__ADMIN__LISTEN=127.0.0.1:9000 or
                            BOTYARD__PLUGINS__ECHO__CONFIG__SLOW_MS=200.
  BOTYARD_LOG               What is logged, such as `debug` or `warn,botyard::sender=debug`; --log goes before it.

Exit codes:
  0  all went well          2  wrong configuration or arguments    130  interrupted twice
  1  it failed while at it  3  the store can't be used";

#[derive(Debug, Parser)]
#[command(name = "botyard", version, about = "Runs Telegram bots whose handlers are sandboxed WebAssembly plugins")]
#[command(long_about = ABOUT, after_long_help = MORE, after_help = "More with --help: how to begin, files, variables, exit codes.")]
#[command(arg_required_else_help = true)]
struct Cli {
    #[command(flatten)]
    logging: logging::Options,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::Run),
    Check(check::Check),
    New(new::New),
    Dev(dev::Dev),
    Test(test::Test),
    Call(call::Call),
    Routes(routes::Show),
    Build(build::Build),
    Plugin(plugin::Plugin),
    Broadcast(broadcast::Broadcast),
    Dead(dead::Dead),
    Chats(chats::Chats),
    Store(store::Store),
    Unknown(unknown::Unknown),
    Webhook(webhook::Webhook),
    Doctor(doctor::Doctor),
    Completions(completions::Completions),
}

impl Command {
    /// What is logged unless somebody says otherwise: those who tell all that matters themselves log no more than the
    /// panics of the host.
    fn log(&self) -> &'static str {
        match self {
            Self::Test(_) | Self::Call(_) | Self::Routes(_) | Self::Doctor(_) => "off,botyard::cli=error",
            Self::Dev(_) => "warn,plugin=debug,botyard::app=info",
            _ => "info",
        }
    }
}

/// Which configuration.
#[derive(Debug, Args)]
struct ConfigFile {
    /// The configuration; relative paths in it start at its folder
    #[arg(long, short, value_name = "FILE", default_value = DEFAULT_FILE, global = true)]
    config: PathBuf,
}

impl ConfigFile {
    fn load(&self, options: LoadOptions) -> anyhow::Result<Config> {
        Ok(Config::load(&self.config, options)?)
    }
}

/// Which configuration, and which of its bots.
#[derive(Debug, Args)]
struct BotConfig {
    #[command(flatten)]
    file: ConfigFile,
    /// Which bot, where the configuration has several: NAME of [bots.NAME], or `bot` for the one in [bot]
    #[arg(long, value_name = "NAME", global = true)]
    bot: Option<String>,
}

impl BotConfig {
    /// The configuration as it concerns the bot.
    fn load(&self, options: LoadOptions) -> anyhow::Result<Config> {
        self.choose(&self.file.load(options)?)
    }

    fn choose(&self, config: &Config) -> anyhow::Result<Config> {
        let names = || config.bots.keys().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let name = match &self.bot {
            Some(name) => BotName::new(name),
            None if config.bots.len() > 1 => {
                let message = format!("there are several bots, {}: say which one with --bot NAME", names());
                return Err(WrongArgument(message).into());
            }
            None => config.name.clone(),
        };
        let unknown = || WrongArgument(format!("there is no bot `{name}` in the configuration, but {}", names()));
        Ok(config.of(&name).ok_or_else(unknown)?)
    }
}

/// Parses the arguments, does what they say, and answers with the exit code.
#[must_use]
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = logging::start(&cli.logging, cli.command.log()).and_then(|()| match cli.command {
        Command::Run(run) => run.run(),
        Command::Check(check) => check.run(),
        Command::New(new) => new.run(),
        Command::Dev(dev) => dev.run(),
        Command::Test(test) => test.run(),
        Command::Call(call) => call.run(),
        Command::Routes(routes) => routes.run(),
        Command::Build(build) => build.run(),
        Command::Plugin(plugin) => plugin.run(),
        Command::Broadcast(broadcast) => broadcast.run(),
        Command::Dead(dead) => dead.run(),
        Command::Chats(chats) => chats.run(),
        Command::Store(store) => store.run(),
        Command::Unknown(unknown) => unknown.run(),
        Command::Webhook(webhook) => webhook.run(),
        Command::Doctor(doctor) => doctor.run(),
        Command::Completions(completions) => completions.run(),
    });
    let exit = done.unwrap_or_else(|error| {
        eprintln!("error: {}", redact(&exit::explain(&error)));
        Exit::of(&error)
    });
    exit.into()
}

/// Prints a result. That nobody reads it to its end (`| head`) is no failure.
fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(redact(text).as_bytes()).and_then(|()| out.flush()).unwrap_or_default();
}

/// Tells of progress.
fn tell(text: &str) {
    eprintln!("{}", redact(text));
}

/// Whether results may be coloured.
fn is_coloured() -> bool {
    use std::io::IsTerminal as _;
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
