//! `botyard plugin install`, `approve` and `remove`: what an operator lets in, written into `bot.toml` and `bot.lock`.
//!
//! Files are written beside and renamed, in an order in which a host that watches them never sees something that it
//! can't place. Whatever breaks off in between leaves rights that nobody has a use for yet, which does no harm.

use std::fs;
use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail, ensure};
use clap::{Args, Subcommand};
use serde::Serialize;

use super::edit;
use super::fetch::Source;
use super::sheet::{Compared, Sheet};
use crate::cli::exit::{Exit, WrongArgument};
use crate::cli::hand::Running;
use crate::cli::inspect::Inspector;
use crate::cli::table::clean;
use crate::cli::{say, tell};
use crate::config::{self, Config, Environment, LoadOptions};
use crate::domain::{BotName, PluginName};
use crate::plugin::{self, Approved, Lock, Plugin, Rights};

/// Beside bot.toml.
const FOLDER: &str = "plugins";
/// How often a running host is asked whether it has loaded what was installed, and how long it is given each time.
const LOOKS: u32 = 40;
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// What is written down for all bots at once.
#[derive(Debug, Subcommand)]
pub(super) enum Admission {
    /// Let a plugin in: fetch it, show what it wants, pin it in bot.lock and name it in bot.toml
    ///
    /// Also for another version of one that is installed. The host that runs loads it by itself. With --bot, a new plugin
    /// serves that bot only.
    #[command(verbatim_doc_comment)]
    Install(Install),
    /// Let in what waits for approval: a file that wants more than was approved
    Approve(Named),
    /// Take a plugin out of bot.toml and bot.lock, with its file where it lies in plugins/
    Remove(Named),
}

impl Admission {
    pub(super) async fn run(self, desk: Desk<'_>) -> anyhow::Result<Exit> {
        match self {
            Self::Install(install) => install.run(&desk).await,
            Self::Approve(named) => named.approve(&desk).await,
            Self::Remove(named) => named.remove(&desk),
        }
    }
}

/// Where it is written down, and for whom.
pub(super) struct Desk<'a> {
    /// That of all bots.
    pub(super) config: &'a Config,
    /// The one that was named.
    pub(super) bot: Option<BotName>,
    pub(super) json: bool,
}

impl Desk<'_> {
    /// The entry in `bot.toml`, if it is one of the bot's.
    fn entry(&self, name: &str) -> anyhow::Result<&config::Plugin> {
        let entry = self.config.plugins.get(&PluginName::new(name));
        let entry = entry.ok_or_else(|| WrongArgument(format!("there is no plugin `{name}` in the configuration")))?;
        match &self.bot {
            Some(bot) if !entry.serves(bot) => {
                Err(WrongArgument(format!("the plugin `{name}` does not serve the bot `{bot}`")).into())
            }
            _ => Ok(entry),
        }
    }
}

#[derive(Debug, Args)]
pub(super) struct Install {
    /// A .wasm file, or the https address of one
    #[arg(value_name = "FILE|URL")]
    source: String,
    /// Its name in bot.toml; what it calls itself, unless told otherwise
    #[arg(long)]
    name: Option<String>,
    /// The hash that the file must have
    #[arg(long, value_name = "HEX")]
    sha256: Option<String>,
    /// Approve without being asked
    #[arg(long)]
    yes: bool,
}

#[derive(Debug, Args)]
pub(super) struct Named {
    /// As it stands in bot.toml
    name: String,
    /// Without being asked
    #[arg(long)]
    yes: bool,
}

/// What was done, for `--json`.
#[derive(Serialize)]
struct Done<'a> {
    name: &'a str,
    action: &'static str,
    path: PathBuf,
    #[serde(skip_serializing_if = "Option::is_none")]
    plugin: Option<Sheet>,
}

/// A file that somebody may approve.
struct Offer<'a> {
    desk: &'a Desk<'a>,
    name: String,
    path: PathBuf,
    source: String,
    wasm: Vec<u8>,
    plugin: std::sync::Arc<Plugin>,
    lock: Lock,
    /// What was approved before, or what the installed file wants; `None` where nothing is installed.
    before: Option<Rights>,
}

/// What a file that is inspected is compared with: the entry of this name, if there is one.
pub(super) fn compare(config: &Config, name: &str, wasm: &[u8], plugin: &Plugin) -> anyhow::Result<Option<Compared>> {
    let Some(entry) = config.plugins.get(&PluginName::new(name)) else { return Ok(None) };
    let lock = Lock::read(&config.file)?;
    let installed = plugin::read_file(&entry.path).ok();
    let same = installed.as_deref() == Some(wasm);
    let before = installed_rights(&lock, name, installed.as_deref());
    Ok(before.map(|before| Compared::new(name, same, &plugin.rights, &before)))
}

fn installed_rights(lock: &Lock, name: &str, wasm: Option<&[u8]>) -> Option<Rights> {
    if let Some(approved) = lock.plugins.get(name) {
        return Some(approved.rights.clone());
    }
    Some(Inspector::default().plugin(wasm?).ok()?.rights.clone())
}

impl Install {
    async fn run(self, desk: &Desk<'_>) -> anyhow::Result<Exit> {
        let config = desk.config;
        let source = Source::parse(&self.source)?;
        let wasm = source.read().await?;
        let hash = plugin::file_hash(&wasm);
        if let Some(expected) = &self.sha256
            && !expected.trim().eq_ignore_ascii_case(&hash)
        {
            bail!("the file has another hash than it should: {hash}");
        }
        let plugin = Inspector::default().plugin(&wasm).map_err(|error| anyhow!("{}: {error}", source.shown()))?;
        let name = match &self.name {
            Some(name) => name.clone(),
            None => name_of(&plugin.manifest.name).or_else(|| name_of(&source.stem())).ok_or_else(|| {
                WrongArgument("the plugin has no name that bot.toml could have; give it one with --name".to_owned())
            })?,
        };
        let entry = config.plugins.get(&PluginName::new(&name));
        let new_path = config.file.parent().unwrap_or(Path::new(".")).join(FOLDER).join(format!("{name}.wasm"));
        let path = entry.map_or(new_path, |entry| entry.path.clone());
        let installed = plugin::read_file(&path).ok();
        let is_own =
            matches!(&source, Source::File(file) if fs::canonicalize(file).ok() == fs::canonicalize(&path).ok());
        if entry.is_none() && !is_own && installed.as_ref().is_some_and(|installed| *installed != wasm) {
            let why = format!("{} is there already and belongs to no plugin: remove it, or use --name", path.display());
            return Err(WrongArgument(why).into());
        }
        let lock = Lock::read(&config.file)?;
        let from = lock.plugins.get(&name).map(|approved| approved.source.as_str());
        let is_known = is_own || self.name.is_some() || installed.as_ref() == Some(&wasm);
        if entry.is_some() && !is_known && from != Some(&source.shown()) {
            let from = from.map_or_else(|| path.display().to_string(), str::to_owned);
            let why = format!(
                "the file calls itself `{name}`, and [plugins.{name}] is another one, from {from}: say `--name {name}` if this \
                 is to take its place, with its secrets and what it keeps, or choose another name with --name"
            );
            return Err(WrongArgument(why).into());
        }
        let before = entry.and_then(|_| installed_rights(&lock, &name, installed.as_deref()));
        let offer = Offer { desk, name, path, source: source.shown(), wasm, plugin, lock, before };
        offer.take(self.yes, "installed").await
    }
}

impl Named {
    /// Takes the file that waits in a plugin's place.
    async fn approve(self, desk: &Desk<'_>) -> anyhow::Result<Exit> {
        let entry = desk.entry(&self.name)?;
        let wasm =
            plugin::read_file(&entry.path).with_context(|| format!("could not read {}", entry.path.display()))?;
        let plugin =
            Inspector::default().plugin(&wasm).map_err(|error| anyhow!("{}: {error}", entry.path.display()))?;
        let lock = Lock::read(&desk.config.file)?;
        let approved = lock.plugins.get(&self.name);
        // Another file has come another way.
        let known = approved.filter(|approved| approved.sha256 == plugin::file_hash(&wasm));
        let source = known.map_or_else(|| entry.path.display().to_string(), |approved| approved.source.clone());
        let before = approved.map(|approved| approved.rights.clone());
        let path = entry.path.clone();
        let offer = Offer { desk, name: self.name, path, source, wasm, plugin, lock, before };
        offer.take(self.yes, "approved").await
    }

    /// Takes a plugin out of the configuration. What it keeps in the store stays.
    fn remove(self, desk: &Desk<'_>) -> anyhow::Result<Exit> {
        let (config, entry) = (desk.config, desk.entry(&self.name)?);
        if let Some(bot) = &desk.bot
            && config.bots.keys().any(|other| other != bot && entry.serves(other))
        {
            let why = format!(
                "the plugin `{}` serves other bots as well: take `{bot}` out of `bots` of [plugins.{}], or leave out --bot \
                 to remove it from all",
                self.name, self.name
            );
            return Err(WrongArgument(why).into());
        }
        let ours = config.file.parent().unwrap_or(Path::new(".")).join(FOLDER);
        let is_shared =
            config.plugins.iter().any(|(name, other)| name.as_str() != self.name && other.path == entry.path);
        let goes = entry.path.parent() == Some(&ours) && !is_shared && entry.path.exists();
        let file = if goes { format!(" and {}", entry.path.display()) } else { String::new() };
        if !self.yes && !asked(&format!("remove [plugins.{}]{file}?", self.name))? {
            return Ok(Exit::Failed);
        }
        let text = fs::read_to_string(&config.file)?;
        let text = edit::remove(&text, &self.name).map_err(|error| anyhow!("{}: {error}", config.file.display()))?;
        let text = text.with_context(|| {
            format!("[plugins.{}] is not in {} but in the environment", self.name, config.file.display())
        })?;
        write_config(config, &text)?;
        let mut lock = Lock::read(&config.file)?;
        if lock.plugins.remove(&self.name).is_some() {
            write(&Lock::path(&config.file), lock.text().as_bytes())?;
        }
        if goes {
            fs::remove_file(&entry.path).with_context(|| format!("could not remove {}", entry.path.display()))?;
        }
        let done = Done { name: &self.name, action: "removed", path: entry.path.clone(), plugin: None };
        let said = format!("`{}` is removed; its states and values stay in the store\n", self.name);
        show(desk.json, &done, &said)
    }
}

impl Offer<'_> {
    /// Shows what the plugin wants, asks, and writes everything down.
    async fn take(self, yes: bool, action: &'static str) -> anyhow::Result<Exit> {
        let Self { desk, name, path, source, wasm, plugin, mut lock, before } = self;
        let config = desk.config;
        let same = fs::read(&path).is_ok_and(|installed| installed == wasm) && action == "installed";
        let compared = before.as_ref().map(|before| Compared::new(&name, same, &plugin.rights, before));
        let entry = config.plugins.get(&PluginName::new(&name));
        let mut sheet = Sheet::of(&source, &wasm, &plugin, compared);
        sheet.secrets = entry.map(|entry| entry.secrets.keys().cloned().collect()).unwrap_or_default();
        tell(clean(&sheet.text()).trim_end());
        // What was granted before anything was approved is the operator's word, and stays.
        let is_unasked = entry.is_some() && before.is_none();
        let new = if is_unasked { Rights::default() } else { plugin.rights.beyond(&before.unwrap_or_default()) };
        let old_text = fs::read_to_string(&config.file)?;
        let in_toml = path.strip_prefix(config.file.parent().unwrap_or(Path::new("."))).unwrap_or(&path);
        // Where there is one bot only, nobody else could be meant.
        let bot = desk.bot.as_ref().filter(|_| config.bots.len() > 1).map(BotName::as_str);
        let text = edit::put(&old_text, &name, &in_toml.to_string_lossy(), bot, &plugin.rights, &new)
            .map_err(|error| anyhow!("{}: {error}", config.file.display()))?;
        match edit::difference(&old_text, &text) {
            none if none.is_empty() => tell(&format!("\n{} stays as it is", config.file.display())),
            lines => tell(&format!("\n{} changes:\n{}", config.file.display(), lines.trim_end())),
        }
        if !yes && !asked(&format!("\nlet it in as [plugins.{name}]?"))? {
            tell("nothing is changed");
            return Ok(Exit::Failed);
        }
        // Before anything is written.
        let written = check_config(config, &text)?;
        let approved = Approved {
            sha256: plugin::file_hash(&wasm),
            version: plugin.manifest.version.clone(),
            source,
            rights: plugin.rights.clone(),
            earlier: Vec::new(),
        };
        lock.approve(&name, approved);
        let is_new = entry.is_none();
        // A plugin that is there has its grants before it is let in with them, a new one its file before it is named.
        if !is_new {
            write_config(config, &text)?;
        }
        write(&Lock::path(&config.file), lock.text().as_bytes())?;
        if !fs::read(&path).is_ok_and(|installed| installed == wasm) {
            fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
            write(&path, &wasm)?;
        }
        if is_new {
            write_config(config, &text)?;
        }
        let goes_on = heard(&written, &PluginName::new(&name), plugin.version.as_str()).await;
        let said = format!("`{name}` is {action}: version {}{goes_on}\n", plugin.version);
        show(desk.json, &Done { name: &name, action, path, plugin: Some(sheet) }, &said)
    }
}

/// What the running host, which looks at the files by itself, makes of it, for each of the plugin's bots.
async fn heard(config: &Config, name: &PluginName, version: &str) -> String {
    let mut said = String::new();
    for bot in config.bots.keys() {
        let Some(own) = config.of(bot).filter(|own| own.enabled().any(|(other, _)| other == name)) else { continue };
        let Ok(host) = Running::on(&own).await else { return String::new() };
        if let Some(why) = not_served(&host, name, version).await {
            let bot = if config.bots.len() > 1 { format!(" for the bot `{bot}`") } else { String::new() };
            return format!("; the host does not serve it{bot}: {why}");
        }
        "; the host has loaded it".clone_into(&mut said);
    }
    said
}

/// Why the version does not serve after a while; `None` once it does.
async fn not_served(host: &Running, name: &PluginName, version: &str) -> Option<String> {
    let mut why = "it has not looked at it yet (`botyard plugin list`)".to_owned();
    for _ in 0..LOOKS {
        match host.plugins().await {
            Ok(plugins) => match plugins.into_iter().find(|status| status.name == name.as_str()) {
                Some(status) if status.version == version => return None,
                Some(status) => why = status.reason.unwrap_or(why),
                None => {}
            },
            Err(error) => why = format!("{error:#}"),
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    Some(why)
}

fn show(json: bool, done: &Done<'_>, said: &str) -> anyhow::Result<Exit> {
    say(&if json { format!("{}\n", serde_json::to_string_pretty(done)?) } else { clean(said) });
    Ok(Exit::Done)
}

/// A name for bot.toml made of what others call it.
fn name_of(text: &str) -> Option<String> {
    let lower = text.trim().to_ascii_lowercase();
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    let name: String = lower.chars().map(|c| if fits(c) { c } else { '-' }).take(64).collect();
    let name = name.trim_matches('-');
    (!name.is_empty()).then(|| name.to_owned())
}

pub(super) fn asked(question: &str) -> anyhow::Result<bool> {
    if !io::stdin().is_terminal() {
        return Err(WrongArgument("there is no terminal to ask on; say --yes if you mean it".to_owned()).into());
    }
    let mut out = io::stderr().lock();
    out.write_all(format!("{question} [y/N] ").as_bytes()).and_then(|()| out.flush())?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

fn check_config(config: &Config, text: &str) -> anyhow::Result<Config> {
    let options = LoadOptions { token_optional: true };
    Ok(Config::parse(&config.file, text, &Environment::of_process(), options)?)
}

fn write_config(config: &Config, text: &str) -> anyhow::Result<()> {
    check_config(config, text)?;
    write(&config.file, text.as_bytes())
}

/// Whole or not at all, with the rights of the file that was there; a link is followed, not replaced.
fn write(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let context = || format!("could not write {}", path.display());
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".new");
    let fresh = path.with_file_name(name);
    let written = (|| {
        let mut file = fs::File::create(&fresh)?;
        if let Ok(before) = fs::metadata(&path) {
            file.set_permissions(before.permissions())?;
        }
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(&fresh, &path)
    })();
    if written.is_err() {
        fs::remove_file(&fresh).unwrap_or_default();
    }
    written.with_context(context)?;
    ensure!(fs::read(&path).with_context(context)? == content, "{} was changed by somebody else", path.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_fit_for_bot_toml() {
        for (text, name) in
            [("echo", Some("echo")), ("My Shop!", Some("my-shop")), ("a_b-c9", Some("a_b-c9")), ("…", None), ("", None)]
        {
            assert_eq!(name_of(text).as_deref(), name, "{text}");
        }
        assert_eq!(name_of(&"x".repeat(100)).unwrap().len(), 64);
    }
}
