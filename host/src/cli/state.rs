//! `botyard state`: what plugins keep, and all that is kept of somebody.

use std::io::{self, BufRead as _, Read as _};
use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, Subcommand};

use super::exit::{Exit, WrongArgument};
use super::hand::{self, Hand};
use super::inspect::Inspector;
use super::table::{clean, table, utc};
use super::{BotConfig, say, tell};
use crate::config::{Config, LoadOptions};
use crate::domain::PluginName;
use crate::operate::{Entry, EntryList, Erase, Erased, Kind, Put, Wanted};

/// Rows that are asked for at once.
const PAGE: usize = 500;

/// See and change what plugins keep; give out or erase all that is kept of somebody
///
/// States are those of conversations; values stand in the space of a plugin, of a chat or of a user. What plugins
/// write with the SDK is JSON; anything else is shown and taken in hexadecimal.
///
/// Works through the host that runs with this configuration, and on the store itself when none runs.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct State {
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
    /// List states and values
    List {
        #[command(flatten)]
        whose: Whose,
        /// How many at most
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: usize,
    },
    /// Show one
    Get(Place),
    /// Put one; a value needs --key, a state --name and --version where there is none yet
    Set {
        #[command(flatten)]
        place: Place,
        /// The content as JSON; `-` reads it from stdin
        #[arg(value_name = "JSON", required_unless_present = "hex", conflicts_with = "hex")]
        content: Option<String>,
        /// The content in hexadecimal
        #[arg(long)]
        hex: Option<String>,
        /// The state's name
        #[arg(long)]
        name: Option<String>,
        /// The version of the plugin's state type
        #[arg(long)]
        version: Option<u32>,
        /// Put it also where the plugin, or this version of a state, is not there yet
        #[arg(long)]
        force: bool,
    },
    /// Remove one
    Delete(Place),
    /// Write what is kept of a plugin, a chat or a user as JSON lines
    ///
    /// With --user or --chat alone that is everything: also timers, jobs, waiting events and calls, dead letters,
    /// and what is known of the chat.
    #[command(verbatim_doc_comment)]
    Export {
        #[command(flatten)]
        whose: Whose,
    },
    /// Put the states and values of an export; what is there already is replaced, the rest stays
    Import {
        /// The file; `-` reads from stdin
        file: PathBuf,
        /// Also what is of plugins that are not configured
        #[arg(long)]
        force: bool,
    },
    /// Erase all that is kept of a person or a chat, of all plugins
    ///
    /// Which updates were handled is known by their numbers alone, and stays. Rows that a plugin keeps for itself or for
    /// others, and that have the id in them, are counted; --mentions erases them as well. A group that has become a
    /// supergroup goes with it, and is found by either id.
    #[command(verbatim_doc_comment)]
    Erase {
        /// A person, with their private chat
        #[arg(long, value_name = "ID", required_unless_present = "chat", conflicts_with = "chat")]
        user: Option<i64>,
        /// A chat
        #[arg(long, value_name = "ID", allow_hyphen_values = true)]
        chat: Option<i64>,
        /// Only count what would be erased
        #[arg(long)]
        dry_run: bool,
        /// Also rows of others that have the id in them
        #[arg(long)]
        mentions: bool,
        /// It is meant
        #[arg(long, short, required_unless_present = "dry_run")]
        yes: bool,
    },
}

#[derive(Debug, Args)]
struct Whose {
    /// Only this plugin's
    #[arg(long, value_name = "NAME")]
    plugin: Option<String>,
    /// Only of this chat
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    chat: Option<i64>,
    /// Only of this user
    #[arg(long, value_name = "ID")]
    user: Option<i64>,
}

#[derive(Debug, Args)]
struct Place {
    /// The plugin
    plugin: String,
    /// The chat
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    chat: Option<i64>,
    /// The user
    #[arg(long, value_name = "ID")]
    user: Option<i64>,
    /// The forum topic
    #[arg(long, value_name = "ID")]
    thread: Option<i64>,
    /// A value's key; without it, the state of the conversation is meant
    #[arg(long)]
    key: Option<String>,
    /// The state that was set aside because no version could take it over
    #[arg(long, conflicts_with = "key")]
    aside: bool,
}

impl Place {
    fn entry(&self) -> Entry {
        let kind = match (&self.key, self.aside) {
            (Some(_), _) => Kind::Value,
            (None, true) => Kind::Aside,
            (None, false) => Kind::State,
        };
        Entry {
            kind,
            plugin: self.plugin.clone(),
            chat: self.chat,
            user: self.user,
            thread: self.thread,
            key: self.key.clone(),
            name: None,
            version: None,
            expires: 0,
            json: None,
            hex: None,
        }
    }

    fn holds(&self, entry: &Entry) -> bool {
        let own = self.entry();
        (own.kind, &own.plugin, own.chat, own.user, own.thread, &own.key)
            == (entry.kind, &entry.plugin, entry.chat, entry.user, entry.thread, &entry.key)
    }
}

impl State {
    pub(super) fn run(self) -> anyhow::Result<Exit> {
        // The running host knows the bot; only a stopped store needs the token.
        let config = self.file.load(LoadOptions { token_optional: true })?;
        hand::block_on(async {
            let hand = Hand::on(&config, self.simulator).await?;
            let done = act(&hand, &config, self.action, self.json).await;
            hand.finish().await?;
            done
        })
    }
}

async fn act(hand: &Hand, config: &Config, action: Action, json: bool) -> anyhow::Result<Exit> {
    match action {
        Action::List { whose: Whose { plugin, chat, user }, limit } => {
            let wanted = Wanted { plugin, chat, user, all: false };
            let mut list = EntryList { entries: Vec::new(), next: None };
            loop {
                let left = limit.saturating_sub(list.entries.len()).min(PAGE);
                let page = hand.entries(&wanted, list.next.as_deref(), left).await?;
                list.entries.extend(page.entries);
                list.next = page.next;
                if list.next.is_none() || list.entries.len() >= limit {
                    break;
                }
            }
            say(&if json { format!("{}\n", serde_json::to_string_pretty(&list)?) } else { clean(&listed(&list)) });
        }
        Action::Get(place) => {
            let entry =
                find(hand, &place).await?.with_context(|| format!("plugin `{}` keeps nothing there", place.plugin))?;
            say(&format!("{}\n", serde_json::to_string_pretty(&entry)?));
        }
        Action::Set { place, content, hex, name, version, force } => {
            let old = find(hand, &place).await?;
            let mut entry = place.entry();
            entry.name = name.or_else(|| old.as_ref().and_then(|old| old.name.clone()));
            entry.version = version.or_else(|| old.as_ref().and_then(|old| old.version));
            entry.expires = old.as_ref().map_or(0, |old| old.expires);
            entry.hex = hex;
            if let Some(text) = content {
                let text = if text == "-" { io::read_to_string(io::stdin().lock())? } else { text };
                entry.json =
                    Some(serde_json::from_str(&text).context("the content is not JSON; --hex takes anything")?);
            }
            check(config, &entry, force)?;
            if entry.kind == Kind::State && entry.chat.is_none() && entry.user.is_none() && !force {
                let why = "a state is of a chat, of a user, or of both (--force puts the one that is of neither)";
                return Err(WrongArgument(why.to_owned()).into());
            }
            hand.put_entry(&Put { entry, delete: false }).await?;
            tell("put");
        }
        Action::Delete(place) => {
            let entry = place.entry();
            anyhow::ensure!(hand.put_entry(&Put { entry, delete: true }).await?, "there is nothing there");
            tell("removed");
        }
        Action::Export { whose: Whose { plugin, chat, user } } => {
            let all = plugin.is_none() && (chat.is_some() || user.is_some());
            let wanted = Wanted { plugin, chat, user, all };
            let mut next = None;
            loop {
                let page = hand.entries(&wanted, next.as_deref(), PAGE).await?;
                for entry in &page.entries {
                    say(&format!("{}\n", serde_json::to_string(entry)?));
                }
                next = page.next;
                if next.is_none() {
                    break;
                }
            }
        }
        Action::Import { file, force } => import(hand, config, &file, force).await?,
        Action::Erase { user, chat, dry_run, mentions, yes: _ } => {
            let erased = hand.erase(&Erase { user, chat, dry_run, mentions }).await?;
            say(&if json { format!("{}\n", serde_json::to_string_pretty(&erased)?) } else { shown(&erased, dry_run)? });
            return Ok(if erased.done { Exit::Done } else { Exit::Failed });
        }
    }
    Ok(Exit::Done)
}

/// Looked for among those of its chat or user, which are few.
async fn find(hand: &Hand, place: &Place) -> anyhow::Result<Option<Entry>> {
    let wanted = Wanted { plugin: Some(place.plugin.clone()), chat: place.chat, user: place.user, all: false };
    let mut next = None;
    loop {
        let page = hand.entries(&wanted, next.as_deref(), PAGE).await?;
        if let Some(entry) = page.entries.into_iter().find(|entry| place.holds(entry)) {
            return Ok(Some(entry));
        }
        next = page.next;
        if next.is_none() {
            return Ok(None);
        }
    }
}

/// What a plugin itself could not have put, nobody puts for it.
fn check(config: &Config, entry: &Entry, force: bool) -> anyhow::Result<()> {
    let wrong = |message: String| Err(WrongArgument(message).into());
    entry.fits().map_err(WrongArgument)?;
    let size = entry.content().map_err(WrongArgument)?.len() as u64 + entry.name.as_ref().map_or(0, String::len) as u64;
    let plugin = config.plugins.iter().find(|(name, _)| name.as_str() == entry.plugin).map(|(_, plugin)| plugin);
    let Some(plugin) = plugin else {
        if force {
            return Ok(());
        }
        return wrong(format!("plugin `{}` is not configured (--force puts it all the same)", entry.plugin));
    };
    let (limit, name) = match entry.kind {
        Kind::Value => (plugin.limits.value, "limits.value"),
        _ => (plugin.limits.state, "limits.state"),
    };
    if size > limit {
        return wrong(format!("the content has {size} bytes; at most {limit} are kept (`{name}`)"));
    }
    if entry.kind != Kind::State || force {
        return Ok(());
    }
    let loaded = Inspector::default().inspect(&PluginName::new(&entry.plugin), plugin, config);
    let serving =
        loaded.map_err(|error| anyhow::anyhow!("which states the plugin keeps can't be seen: {error}"))?.state_version;
    if entry.version != Some(serving) {
        let given = entry.version.map_or("none".to_owned(), |version| version.to_string());
        return wrong(format!(
            "plugin `{}` keeps states of version {serving}, not {given} (--force puts it all the same)",
            entry.plugin
        ));
    }
    Ok(())
}

/// All lines are read and checked before the first is put.
async fn import(hand: &Hand, config: &Config, file: &std::path::Path, force: bool) -> anyhow::Result<()> {
    let mut text = String::new();
    if file.as_os_str() == "-" {
        io::stdin().lock().read_to_string(&mut text)?;
    } else {
        text = std::fs::read_to_string(file).with_context(|| format!("could not read {}", file.display()))?;
    }
    let (mut entries, mut left) = (Vec::new(), 0);
    for (line, number) in text.as_bytes().lines().zip(1..) {
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        let entry: Entry =
            serde_json::from_str(&line).with_context(|| format!("line {number} is not a line of an export"))?;
        if matches!(entry.kind, Kind::State | Kind::Aside | Kind::Before | Kind::Value) {
            // Versions of states may be older: the plugin takes those over.
            let is_state = entry.kind == Kind::State;
            let as_old = Entry { kind: if is_state { Kind::Aside } else { entry.kind }, ..entry.clone() };
            check(config, &as_old, force).with_context(|| format!("line {number}"))?;
            entries.push((number, entry));
        } else {
            left += 1;
        }
    }
    let n = entries.len();
    for (done, (line, entry)) in entries.into_iter().enumerate() {
        let put = hand.put_entry(&Put { entry, delete: false }).await;
        // Importing the whole again does no harm: what is there is replaced by the same.
        put.with_context(|| format!("line {line} could not be put; {done} of {n} states and values before it are"))?;
    }
    tell(&format!("put {n} states and values"));
    if left > 0 {
        tell(&format!("{left} lines are of other kinds, which can't be put, and were left out"));
    }
    Ok(())
}

fn listed(list: &EntryList) -> String {
    if list.entries.is_empty() {
        return "nothing is kept\n".to_owned();
    }
    let or_dash = |id: Option<i64>| id.map_or_else(|| "-".to_owned(), |id| id.to_string());
    let row = |entry: &Entry| {
        let kind = serde_json::to_value(entry.kind).ok().and_then(|kind| kind.as_str().map(str::to_owned));
        let name = entry.key.clone().or_else(|| entry.name.clone()).unwrap_or_default().replace(['\n', '\t'], " ");
        let version = entry.version.map_or_else(|| "-".to_owned(), |version| version.to_string());
        let expires = if entry.expires == 0 { "-".to_owned() } else { utc(entry.expires) };
        let mut content = match (&entry.json, &entry.hex) {
            (Some(json), _) => json.to_string(),
            (None, hex) => format!("0x{}", hex.as_deref().unwrap_or_default()),
        };
        if let Some((at, _)) = content.char_indices().nth(60) {
            content.truncate(at);
            content.push('…');
        }
        let (chat, user) = (or_dash(entry.chat), or_dash(entry.user));
        [entry.plugin.clone(), kind.unwrap_or_default(), chat, user, name, version, expires, content]
    };
    let rows: Vec<[String; 8]> = list.entries.iter().map(row).collect();
    let more = if list.next.is_some() { "… and more; --limit shows them\n" } else { "" };
    table(["PLUGIN", "KIND", "CHAT", "USER", "KEY OR NAME", "VERSION", "EXPIRES (UTC)", "CONTENT"], &rows) + more
}

fn shown(erased: &Erased, dry_run: bool) -> anyhow::Result<String> {
    let mut text = if dry_run { "would be erased:\n".to_owned() } else { "erased:\n".to_owned() };
    for (kind, n) in &erased.rows {
        text.push_str(&format!("  {} {n}\n", serde_json::to_value(kind)?.as_str().unwrap_or_default()));
    }
    if erased.rows.is_empty() {
        text.push_str("  nothing\n");
    }
    if erased.mentioned > 0 {
        let n = erased.mentioned;
        text.push_str(&format!("{n} rows of others have the id in them and stay (--mentions erases them)\n"));
    }
    if !erased.done {
        text.push_str("events keep coming that bring new rows: run it again\n");
    }
    Ok(text)
}
