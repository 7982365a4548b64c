//! `botyard plugin`: what serves, and orders to the host that runs.

mod edit;
mod fetch;
mod install;
mod left;
mod sheet;

use std::path::PathBuf;

use anyhow::anyhow;
use clap::{Args, Subcommand};
use serde::Serialize;

use super::exit::{Exit, WrongArgument};
use super::hand::{self, Hand, Running};
use super::inspect::Inspector;
use super::table::{clean, table, utc};
use super::{BotConfig, ConfigFile, say};
use crate::admin::{KeptVersion, PluginState, PluginStatus};
use crate::config::{Config, LoadOptions};
use crate::domain::PluginName;
use sheet::Sheet;

/// See which plugins serve, load one again, let one wait
///
/// Works through the host that runs with this configuration; `pause` and `resume` also on the store when
/// none runs.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Plugin {
    #[command(flatten)]
    file: BotConfig,
    /// The simulator's bot, where no host runs that would know whose bot it is
    #[arg(long, global = true)]
    simulator: bool,
    /// The answer as JSON
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List them in the order in which they are asked
    List {
        /// Their limits instead
        #[arg(long)]
        limits: bool,
    },
    /// Tell what a plugin's file is and wants, and what would change against the installed one
    Inspect {
        /// A .wasm file
        file: PathBuf,
        /// The entry in bot.toml to compare it with; the one of its own name, unless told otherwise
        #[arg(long)]
        name: Option<String>,
    },
    #[command(flatten)]
    Admission(install::Admission),
    /// Load a plugin's file again, changed or not
    ///
    /// What does not load changes nothing: the version that serves goes on.
    Reload {
        /// As it stands in bot.toml
        name: String,
        /// Have it serve though it crashes over states, or keeps its conversations by another key
        #[arg(long)]
        force: bool,
    },
    /// Let a plugin's events wait in the store until it is resumed, over restarts too
    ///
    /// Each chat in which an event waits rests as a whole, since its order must be kept; other chats go on.
    /// What only looks on (an observer) misses what happens meanwhile.
    #[command(verbatim_doc_comment)]
    Pause {
        /// As it stands in bot.toml
        name: String,
    },
    /// List a plugin's versions: the one that serves, those to go back to, those that were rolled back
    Versions {
        /// As it stands in bot.toml
        name: String,
    },
    /// Go back to a version that has served
    ///
    /// The one that serves now does not serve again by itself, also not after a restart, until its file
    /// changes or `botyard plugin reload` has it tried again.
    #[command(verbatim_doc_comment)]
    Rollback {
        /// As it stands in bot.toml
        name: String,
        /// The version, or its first digits; the last one before, unless told otherwise
        #[arg(long, value_name = "VERSION")]
        to: Option<String>,
    },
    /// Give a plugin no more events, over restarts too: others may take them
    Disable {
        /// As it stands in bot.toml
        name: String,
    },
    /// Let a plugin that was switched off have events again
    Enable {
        /// As it stands in bot.toml
        name: String,
    },
    /// List what plugins have left that are not configured any more: states, values, timers, jobs, events that wait
    Left,
    /// Drop all that a plugin has left that is not configured any more
    ///
    /// Its calls that wait are still sent, and its dead letters stay: `botyard outbox` and `botyard dead` see to those.
    #[command(verbatim_doc_comment)]
    Forget {
        /// As it stood in bot.toml
        name: String,
        /// Don't ask
        #[arg(long)]
        yes: bool,
    },
    /// Let a paused plugin go on with what has waited, in order
    Resume {
        /// As it stands in bot.toml
        name: String,
    },
}

impl Plugin {
    pub(super) fn run(self) -> anyhow::Result<Exit> {
        // The running host knows the bot; only a stopped store needs the token.
        let (options, json) = (LoadOptions { token_optional: true }, self.json);
        let action = match self.action {
            Action::Inspect { file, name } => return inspect(&self.file.file, json, &file, name),
            Action::Admission(wish) => {
                let (config, bot) = self.file.load_all(options)?;
                return hand::block_on(wish.run(install::Desk { config: &config, bot, json }));
            }
            action => action,
        };
        let config = self.file.load(options)?;
        hand::block_on(async {
            match action {
                Action::Inspect { .. } | Action::Admission(_) => unreachable!("it is done already"),
                Action::List { limits } => {
                    let host = Running::on(&config).await?;
                    let list = host.plugins().await?;
                    let gone = left::of_gone(&config, Hand::Running(host).left().await?);
                    let shown = |list: &[PluginStatus]| match limits {
                        true => limited(list),
                        false => format!("{}{}", listed(list), left::hint(&gone)),
                    };
                    print(json, &list, |list| shown(list))
                }
                Action::Reload { name, force } => {
                    let action = format!("reload?force={force}");
                    let status = Running::on(&config).await?.change_plugin(&name, &action).await?;
                    print(json, &status, |status| format!("`{name}` is loaded: version {}\n", status.version))
                }
                Action::Versions { name } => {
                    print(json, &Running::on(&config).await?.plugin_versions(&name).await?, |list| kept(list))
                }
                Action::Rollback { name, to } => {
                    let to = to.map(|to| format!("?to={}", hex_only(&to))).unwrap_or_default();
                    let status = Running::on(&config).await?.change_plugin(&name, &format!("rollback{to}")).await?;
                    let why = |status: &PluginStatus| {
                        status.reason.as_ref().map(|why| format!("  {why}\n")).unwrap_or_default()
                    };
                    print(json, &status, |status| {
                        format!("`{name}` serves version {} again\n{}", status.version, why(status))
                    })
                }
                Action::Disable { name } => {
                    let status = Running::on(&config).await?.change_plugin(&name, "disable").await?;
                    print(json, &status, |_| format!("`{name}` is switched off: it is given no events\n"))
                }
                Action::Enable { name } => {
                    let status = Running::on(&config).await?.change_plugin(&name, "enable").await?;
                    print(json, &status, |status| format!("`{name}` serves: version {}\n", status.version))
                }
                Action::Left => left::list(&config, self.simulator, json).await,
                Action::Forget { name, yes } => {
                    if !yes && !install::asked(&format!("drop everything that `{name}` has left, for good?"))? {
                        return Ok(Exit::Failed);
                    }
                    left::forget(&config, self.simulator, json, &name).await
                }
                Action::Pause { name } => pause(&config, self.simulator, json, &name, true).await,
                Action::Resume { name } => pause(&config, self.simulator, json, &name, false).await,
            }
        })
    }
}

/// Needs no configuration; where there is one, the file is compared with what is installed.
fn inspect(file: &ConfigFile, json: bool, path: &std::path::Path, name: Option<String>) -> anyhow::Result<Exit> {
    let (wasm, plugin) = Inspector::default().open(path).map_err(|error| anyhow!("{}: {error}", path.display()))?;
    let compared = match (file.config.exists(), &name) {
        (false, None) => None,
        _ => {
            let config = file.load(LoadOptions { token_optional: true })?;
            let with = name.clone().unwrap_or_else(|| plugin.manifest.name.clone());
            if name.is_some() && !config.plugins.contains_key(&PluginName::new(&with)) {
                return Err(WrongArgument(format!("there is no plugin `{with}` in the configuration")).into());
            }
            install::compare(&config, &with, &wasm, &plugin)?
        }
    };
    let sheet = Sheet::of(&path.display().to_string(), &wasm, &plugin, compared);
    print(json, &sheet, Sheet::text)
}

/// What is said of a stopped store.
#[derive(Serialize)]
struct Stopped<'a> {
    name: &'a str,
    paused: bool,
}

async fn pause(config: &Config, simulated: bool, json: bool, name: &str, pause: bool) -> anyhow::Result<Exit> {
    let said = match pause {
        true => format!("`{name}` is paused: its events wait\n"),
        false => format!("`{name}` goes on\n"),
    };
    match Hand::on(config, simulated).await? {
        Hand::Running(host) => {
            let status = host.change_plugin(name, if pause { "pause" } else { "resume" }).await?;
            print(json, &status, |_| said)
        }
        Hand::Stopped { store, operator, .. } => {
            let plugin = PluginName::new(name);
            let is_known = config.plugins.contains_key(&plugin);
            let done = match pause {
                true if is_known => operator.pause(&plugin).await.map(|()| true),
                true => Ok(false),
                false => operator.resume(&plugin).await.map(|was_paused| was_paused || is_known),
            };
            store.close().await?;
            if !done? {
                return Err(WrongArgument(format!("there is no plugin `{name}` in the configuration")).into());
            }
            print(json, &Stopped { name, paused: pause }, |_| format!("{} (no host runs)\n", said.trim_end()))
        }
    }
}

fn print<T: Serialize>(json: bool, answer: &T, text: impl FnOnce(&T) -> String) -> anyhow::Result<Exit> {
    say(&if json { format!("{}\n", serde_json::to_string_pretty(answer)?) } else { clean(&text(answer)) });
    Ok(Exit::Done)
}

fn listed(list: &[PluginStatus]) -> String {
    if list.is_empty() {
        return "no plugins\n".to_owned();
    }
    let rows: Vec<[String; 6]> = list
        .iter()
        .map(|plugin| {
            let state = match plugin.state {
                PluginState::Serving => "serving",
                PluginState::Trial => "on trial",
                PluginState::Resting => "resting",
                PluginState::Disabled => "switched off",
                PluginState::Paused => "paused",
                PluginState::Stale => "stale",
                PluginState::Failed => "failed",
            };
            let before = plugin.before.as_ref().map(|before| format!(", measured by {before}")).unwrap_or_default();
            let why =
                plugin.reason.as_ref().map(|reason| format!(": {}", reason.replace('\n', " "))).unwrap_or_default();
            [
                plugin.name.clone(),
                plugin.version.clone(),
                plugin.manifest_version.clone(),
                plugin.priority.to_string(),
                utc(plugin.since),
                format!("{state}{before}{why}"),
            ]
        })
        .collect();
    table(["NAME", "VERSION", "ITS OWN", "PRIORITY", "SINCE (UTC)", "STATE"], &rows)
}

fn limited(list: &[PluginStatus]) -> String {
    let of = |plugin: &PluginStatus| {
        let row = |(key, limit): (&String, &String)| {
            let used = if key == "stored" { plugin.stored.to_string() } else { String::new() };
            [plugin.name.clone(), key.clone(), limit.clone(), used]
        };
        plugin.limits.iter().map(row).collect::<Vec<_>>()
    };
    let rows: Vec<[String; 4]> = list.iter().flat_map(of).collect();
    table(["NAME", "LIMIT", "VALUE", "IN USE (BYTES)"], &rows)
}

fn kept(list: &[KeptVersion]) -> String {
    if list.is_empty() {
        return "no version is kept yet\n".to_owned();
    }
    let rows: Vec<[String; 4]> = list
        .iter()
        .map(|kept| {
            let why = kept.reason.as_ref().map(|why| format!(": {}", why.replace('\n', " "))).unwrap_or_default();
            [kept.version.clone(), kept.manifest_version.clone(), utc(kept.since), format!("{}{why}", kept.state)]
        })
        .collect();
    table(["VERSION", "ITS OWN", "SINCE (UTC)", "STATE"], &rows)
}

/// Versions are hexadecimal; anything else names none.
fn hex_only(version: &str) -> String {
    let is_version = !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_version { version.to_ascii_lowercase() } else { "none".to_owned() }
}
