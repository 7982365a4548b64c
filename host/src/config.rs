//! `bot.toml`: read, overridden from the environment, checked and typed.
//!
//! Each section is one file under `config/` and owns its keys, defaults and rules; a part of the host is given its
//! section, never the whole [`Config`]. Reading collects every problem before it gives up, each with its file, line
//! and column (or the variable it came from). Nothing here starts anything, opens the store or looks into a plugin;
//! the only files read are `bot.toml` and those that hold secrets. A [`Config`] is plain data that never shows a
//! secret when it is printed.

mod admin;
mod bot;
mod bots;
mod changes;
mod dispatch;
mod environment;
mod i18n;
mod intake;
mod plugin;
mod problem;
mod reader;
mod redacted;
pub mod redaction;
mod send;
mod store;
#[cfg(test)]
mod tests;
mod tree;
mod units;
mod webhook;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use admin::Admin;
pub use bot::Bot;
pub use bots::OneBot;
pub use changes::Changes;
pub use dispatch::Dispatch;
pub use environment::Environment;
pub use i18n::I18n;
pub use intake::{AllowedUpdates, Intake, Mode};
pub use plugin::{Broadcasting, Grants, Jobs, Limits, OnCrash, Pin, Plugin};
pub use problem::{Origin, Problem, Problems};
pub use send::Send;
pub use store::Store;
pub use units::{show_bytes, show_duration};
pub use webhook::{Tls, Webhook};

use crate::domain::{BotName, PluginName};
use reader::{Context, Reader};
use tree::Table;

/// The file that is read when none is named.
pub const DEFAULT_FILE: &str = "bot.toml";

/// The smallest configuration that does something, shown to whoever has none.
pub const SMALLEST: &str = r#"[bot]
token = { env = "BOT_TOKEN" }

[plugins.echo]
path = "plugins/echo.wasm""#;

/// Everything that `bot.toml` and the environment say, checked. It is one bot's: `bot`, `intake` and `send` are of the bot
/// `name`, the first one as it is read; [`Config::of`] makes another one's of it.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where it was read from, absolute. Relative paths in it start at its folder.
    pub file: PathBuf,
    /// Whose it is.
    pub name: BotName,
    /// All the bots.
    pub bots: BTreeMap<BotName, OneBot>,
    /// Who the bot is.
    pub bot: Bot,
    /// How updates are fetched.
    pub intake: Intake,
    /// How they are handled.
    pub dispatch: Dispatch,
    /// How fast calls go out.
    pub send: Send,
    /// Where state lives.
    pub store: Store,
    /// Translations.
    pub i18n: I18n,
    /// Health and metrics.
    pub admin: Admin,
    /// Every entry under `[plugins]`, disabled ones too: see [`Config::enabled`].
    pub plugins: BTreeMap<PluginName, Plugin>,
    /// What is allowed but probably not meant.
    pub warnings: Vec<Problem>,
    /// The files beside `bot.toml` that were read, absolute: those with secrets.
    pub files: Vec<PathBuf>,
}

/// What the command line changes about loading.
#[derive(Debug, Clone, Copy, Default)]
pub struct LoadOptions {
    /// A bot that talks to the simulator needs no token: a missing one, or one that can't be had, is fine.
    pub token_optional: bool,
}

/// A configuration and all that is wrong with it.
#[derive(Debug, Clone)]
pub struct Examined {
    /// With defaults in the place of what is wrong, and without plugins that lack a path: to look at, not to run.
    pub config: Config,
    /// Perhaps none.
    pub problems: Problems,
}

impl Examined {
    fn accept(self) -> Result<Config, Error> {
        if self.problems.list.is_empty() { Ok(self.config) } else { Err(self.problems.into()) }
    }
}

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such file.
    #[error(
        "{}: there is no such file; name another one with --config FILE, or create it, beginning with:\n\n{SMALLEST}",
        .0.display()
    )]
    Missing(PathBuf),
    /// The path is something else than a file.
    #[error("{}: this is a directory; name the file in it, such as {}", .0.display(), .0.join(DEFAULT_FILE).display())]
    Directory(PathBuf),
    /// It can't be read.
    #[error("{}: could not read the file: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is there and says nothing.
    #[error(
        "{}: the file is empty: it must name the bot's token and at least one plugin, such as:\n\n{SMALLEST}",
        .0.display()
    )]
    Empty(PathBuf),
    /// It was read, and these are all its problems.
    #[error(transparent)]
    Invalid(#[from] Problems),
}

impl Config {
    /// Reads `path` and the process's environment. Secrets that are found are hidden from logs from now on.
    pub fn load(path: &Path, options: LoadOptions) -> Result<Config, Error> {
        Self::examine(path, options)?.accept()
    }

    /// Like [`Config::load`], going on after a problem: for a report on everything at once.
    pub fn examine(path: &Path, options: LoadOptions) -> Result<Examined, Error> {
        Self::examine_text(path, &read(path)?, &Environment::of_process(), options)
    }

    /// Like [`Config::load`], with the file's text and the environment given.
    pub fn parse(path: &Path, text: &str, environment: &Environment, options: LoadOptions) -> Result<Config, Error> {
        Self::examine_text(path, text, environment, options)?.accept()
    }

    fn examine_text(
        path: &Path,
        text: &str,
        environment: &Environment,
        options: LoadOptions,
    ) -> Result<Examined, Error> {
        let mut problems = Vec::new();
        let mut root = tree::parse(text, &mut problems);
        if !problems.is_empty() {
            return Err(Problems::new(path, problems).into());
        }
        environment.apply(&mut root, &mut problems);
        if root.is_empty() && problems.is_empty() {
            return Err(Error::Empty(path.to_owned()));
        }

        let file = std::path::absolute(path).map_err(|source| Error::Unreadable { path: path.to_owned(), source })?;
        let folder = file.parent().unwrap_or(Path::new("/"));
        let context = Context::new(folder, environment, options);
        let mut config = Self::read(&context, file.clone(), root);
        let (of_values, mut warnings, files) = context.into_findings();
        problems.extend(of_values);
        bots::once(&mut problems);
        bots::once(&mut warnings);
        (config.warnings, config.files) = (warnings, files);
        config.secrets().for_each(redaction::hide);
        Ok(Examined { config, problems: Problems::new(path, problems) })
    }

    fn read(context: &Context<'_>, file: PathBuf, root: Table) -> Config {
        let mut root = Reader::root(context, root);
        let bots = bots::read_all(&mut root);
        let names: Vec<BotName> = bots.keys().cloned().collect();
        let the_one = BotName::new(BotName::OF_THE_ONE);
        let name = if bots.contains_key(&the_one) { the_one } else { names[0].clone() };
        let OneBot { bot, intake, send } = bots[&name].clone();
        let config = Config {
            file,
            name,
            bots,
            bot,
            intake,
            dispatch: Dispatch::read(root.table("dispatch")),
            send,
            store: Store::read(root.table("store")),
            i18n: I18n::read(root.table("i18n")),
            admin: Admin::read(root.table("admin")),
            plugins: plugin::read_all(root.table("plugins"), &names),
            warnings: Vec::new(),
            files: Vec::new(),
        };
        if config.enabled().next().is_none() {
            let message = "there is no plugin to run: every update will pass unanswered; add a [plugins.NAME] section";
            root.warn(&Origin::Whole, message);
        } else {
            for name in names.iter().filter(|name| !config.enabled().any(|(_, plugin)| plugin.serves(name))) {
                root.warn(&Origin::Whole, format!("no plugin serves the bot `{name}`: its updates pass unanswered"));
            }
        }
        root.finish();
        config
    }

    /// The same as it concerns one bot: its sections, and the plugins that serve it.
    #[must_use]
    pub fn of(&self, name: &BotName) -> Option<Config> {
        let OneBot { bot, intake, send } = self.bots.get(name)?.clone();
        let mut config = Config { name: name.clone(), bot, intake, send, ..self.clone() };
        config.plugins.retain(|_, plugin| plugin.serves(name));
        Some(config)
    }

    /// The same, with no version on trial: each serves at once, whatever `probation` and `canary` say.
    #[must_use]
    pub fn without_trials(mut self) -> Config {
        for plugin in self.plugins.values_mut() {
            plugin.probation = Duration::ZERO;
        }
        self
    }

    /// Where the bot stands in `bot.toml`, for people.
    #[must_use]
    pub fn section(&self) -> String {
        let name = self.name.as_str();
        if name == BotName::OF_THE_ONE { "[bot]".to_owned() } else { format!("[bots.{name}]") }
    }

    /// The plugins that serve.
    pub fn enabled(&self) -> impl Iterator<Item = (&PluginName, &Plugin)> {
        self.plugins.iter().filter(|(_, plugin)| plugin.enabled)
    }

    /// What differs between the configuration that runs and one that was just read.
    #[must_use]
    pub fn live_changes(old: &Config, new: &Config) -> Changes {
        changes::between(old, new)
    }

    /// The effective configuration in the words of `bot.toml`, its secrets masked.
    #[must_use]
    pub fn redacted(&self) -> String {
        redacted::print(self)
    }

    fn secrets(&self) -> impl Iterator<Item = &str> {
        use secrecy::ExposeSecret as _;
        let of_plugins = self.plugins.values().flat_map(|plugin| plugin.secrets.values());
        let of_bots = self.bots.values().flat_map(|bot| {
            let of_webhook = bot.intake.webhook.iter().filter_map(|webhook| webhook.secret.as_ref());
            bot.bot.token.iter().chain(of_webhook)
        });
        of_bots.chain(of_plugins).map(|secret| secret.expose_secret())
    }
}

fn read(path: &Path) -> Result<String, Error> {
    let failed = |source| Error::Unreadable { path: path.to_owned(), source };
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => return Err(Error::Directory(path.to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(Error::Missing(path.to_owned())),
        Ok(_) | Err(_) => {}
    }
    let bytes = std::fs::read(path).map_err(failed)?;
    String::from_utf8(bytes).map_err(|error| {
        let line =
            error.as_bytes().iter().take(error.utf8_error().valid_up_to()).filter(|&&byte| byte == b'\n').count();
        failed(io::Error::new(io::ErrorKind::InvalidData, format!("line {} is not UTF-8 text", line + 1)))
    })
}
