//! Where updates are tried: the plugins of a configuration, a store of their own, and a simulated Telegram that answers
//! direct calls. Nothing of it outlives the command.

use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use serde_json::Value as Json;
use tokio::sync::{mpsc, watch};

use super::show::Shown;
use crate::app;
use crate::chats::Chats;
use crate::cli::capture::Capture;
use crate::cli::exit::WrongArgument;
use crate::cli::inspect::Inspector;
use crate::cli::scratch::Scratch;
use crate::clock::unix_millis;
use crate::config::Config;
use crate::dispatch::{DeadLetters, Dispatcher, Entry, Note, Played, Routes, Scene, Settings};
use crate::domain::{BotId, Conversation, UpdateView};
use crate::files::{Files, ServerLimits};
use crate::sender::{SendSettings, Sender};
use crate::simulator::{Simulator, SimulatorSettings};
use crate::store::rows::fsm::{self, StateRow};
use crate::store::rows::inbox::StoredEvent;
use crate::store::{Commit, Op, Store};
use crate::telegram::{Client, Token};

const UNLIMITED: SendSettings = SendSettings {
    overall_per_second: 0.0,
    chat_per_second: 0.0,
    group_per_minute: 0.0,
    bulk_per_second: 0.0,
    paid_per_second: 0.0,
};

/// See the module.
pub(in crate::cli) struct Room {
    simulator: Simulator,
    store: Store,
    bot: BotId,
    dispatcher: Dispatcher,
    stop: watch::Sender<bool>,
    /// Last, so that the store is closed before it goes.
    folder: Scratch,
}

/// Loads the enabled plugins of a configuration.
pub(in crate::cli) fn load(config: &Config) -> anyhow::Result<Routes> {
    let mut inspector = Inspector::default();
    let entry = |(name, plugin)| {
        let loaded = inspector.load(name, plugin, &config.i18n).map_err(|why| anyhow!("plugin `{name}`: {why}"))?;
        Ok(Entry { plugin: loaded, trial: None, priority: plugin.priority, on_crash: plugin.on_crash })
    };
    let entries = config.enabled().map(entry).collect::<anyhow::Result<Vec<_>>>()?;
    if entries.is_empty() {
        return Err(WrongArgument(format!("{} has no plugins to ask", config.file.display())).into());
    }
    Ok(Routes::new(entries))
}

impl Room {
    pub(in crate::cli) async fn open(config: &Config) -> anyhow::Result<Self> {
        let token = Token::parse(&app::simulated_token(&config.name))?;
        let room = Self::of(config, token).await?;
        room.dispatcher.set_username(SimulatorSettings::default().bot_username);
        Ok(room)
    }

    /// Where a bot of that number has been, whose name is not known.
    pub(in crate::cli) async fn of_bot(config: &Config, bot: BotId) -> anyhow::Result<Self> {
        Self::of(config, Token::parse(&format!("{bot}:a-bot-that-is-played-again"))?).await
    }

    async fn of(config: &Config, token: Token) -> anyhow::Result<Self> {
        let routes = load(config)?;
        let folder = Scratch::new("call")?;
        let store = Store::open(&folder.0.join("data"))?;
        let simulator = Simulator::start(SimulatorSettings::default()).await?;
        let bot = token.bot_id();
        let client = Arc::new(Client::new(&simulator.api_base(), token)?);
        let files = Files::open(&app::files_dir(&folder.0.join("data")), &store, ServerLimits::default())?;
        let chats = Chats::open(store.clone(), bot)?;
        let sender = Sender::new(store.clone(), client, bot, chats, UNLIMITED, Some(files));
        let settings = Settings {
            concurrency: 1,
            max_attempts: config.dispatch.max_attempts,
            jobs: 1,
            dead: DeadLetters { letters: 0, bytes: 0, age: Duration::ZERO },
            default_locale: config.i18n.default_locale.clone(),
            grace: Duration::ZERO,
            // Nobody is there to be told.
            notices: mpsc::unbounded_channel().0,
            cancel_command: config.dispatch.cancel_command.clone(),
            cancel_reply: config.dispatch.cancel_reply.clone(),
            stale_button_reply: config.dispatch.stale_button_reply.clone(),
            // An update that somebody wrote has nothing to take a seal from.
            unsealed_buttons: true,
            album_quiet: Duration::ZERO,
            album_wait: Duration::ZERO,
        };
        let outbound = Arc::new(sender.clone());
        let (dispatcher, _) = Dispatcher::new(store.clone(), bot, sender.clone(), outbound, routes, settings);
        let (stop, stopping) = watch::channel(false);
        tokio::spawn(async move { sender.run(stopping).await });
        Ok(Self { simulator, store, bot, dispatcher, stop, folder })
    }

    /// Puts the conversation of an update into a state.
    pub(in crate::cli) async fn set_state(
        &mut self,
        plugin: Option<&str>,
        name: &str,
        value: &Json,
        update: &Json,
    ) -> anyhow::Result<()> {
        let routes = self.dispatcher.routes();
        let keeps_it = |entry: &&Entry| {
            let states = entry.plugin.manifest.filters.iter().flat_map(|filter| &filter.states);
            plugin.map_or_else(
                || states.into_iter().any(|state| state == name),
                |plugin| entry.plugin.name.as_str() == plugin,
            )
        };
        let entry = routes.entries().iter().find(keeps_it).ok_or_else(|| {
            let mut states: Vec<&str> = Vec::new();
            for entry in routes.entries() {
                states
                    .extend(entry.plugin.manifest.filters.iter().flat_map(|filter| &filter.states).map(String::as_str));
            }
            states.sort_unstable();
            states.dedup();
            let known = match &states[..] {
                [] => String::new(),
                states => format!(" (but in {})", states.join(", ")),
            };
            WrongArgument(format!(
                "no plugin waits in a state {name}{known}; one that keeps it is named: --state PLUGIN:{name}=…"
            ))
        })?;
        let text = update.to_string();
        let view = UpdateView::parse(&text)?;
        let manifest = &entry.plugin.manifest;
        let conversation = Conversation::of(manifest.key, view.chat, view.user, view.thread);
        let row = StateRow {
            name: name.to_owned(),
            version: manifest.state_version,
            expires: 0,
            bytes: value.to_string().into_bytes(),
        };
        let key = fsm::key(self.bot, &entry.plugin.name, &conversation);
        self.write(vec![Op::Put { key, value: row.encode() }]).await
    }

    /// What handling an update would bring about.
    pub(in crate::cli) async fn handle(&mut self, update: &Json, number: u64) -> anyhow::Result<Shown> {
        // So that the chats and people that it names are there to be asked about.
        self.simulator.raw_update(update.clone()).map(|_| ()).or_else(|error| match error {
            crate::simulator::Error::Unwanted => Ok(()),
            error => Err(error),
        })?;
        let capture = Capture::default();
        let guard = capture.begin();
        let raw = update.to_string();
        let lane = UpdateView::parse(&raw)?.lane(self.dispatcher.routes().key());
        let event = StoredEvent::Update(raw.into_bytes());
        let (rest, attempt, now, played) = (Vec::new(), 1, unix_millis(), None);
        let scene = Scene { event, rest, lane, number, attempt, now, played };
        let rehearsed = self.dispatcher.rehearse(scene).await;
        drop(guard);
        Ok(Shown::of(rehearsed?, &self.dispatcher.routes(), capture.take()))
    }

    /// Makes a run again. Answers with what it does now; with nothing where the plugin is not given the event any more.
    pub(in crate::cli) async fn again(&self, note: &Note) -> anyhow::Result<Option<Note>> {
        let rows = note.before.iter().map(|row| row.stored(note.bot, &note.plugin, &note.conversation));
        let (keys, puts): (Vec<_>, Vec<_>) = rows.map(|(key, value)| (key.clone(), Op::Put { key, value })).unzip();
        self.write(puts).await?;
        let (event, rest) = note.what.stored(&note.plugin, note.conversation);
        let played = Some(Played { observes: note.observes, asked: note.asked.clone() });
        let (lane, number, attempt, now) = (note.lane, note.event, note.attempt, note.now);
        let scene = Scene { event, rest, lane, number, attempt, now, played };
        let rehearsed = self.dispatcher.rehearse(scene).await?;
        self.write(keys.into_iter().map(|key| Op::Delete { key }).collect()).await?;
        let is_it = |new: &Note| new.observes == note.observes && new.what == note.what;
        Ok(rehearsed.notes.into_iter().find(is_it))
    }

    async fn write(&self, ops: Vec<Op>) -> anyhow::Result<()> {
        let commit = Commit { ops, ..Commit::default() };
        drop(self.store.commit(commit).await.map_err(|error| anyhow!("{error:?}"))?);
        Ok(())
    }

    pub(in crate::cli) async fn close(self) -> anyhow::Result<()> {
        self.stop.send_replace(true);
        self.simulator.stop().await?;
        self.store.close().await?;
        drop(self.folder);
        Ok(())
    }
}
