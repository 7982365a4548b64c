//! The list of bots: who runs, and what becomes of one that can't.
//!
//! It follows `bot.toml`: a bot that is added starts, one that is taken out stops, and each is given what is new for it.
//! What ends one of several bots (a dead token, a plugin that does not load, a port that is taken) ends that one only: it
//! is reported, and begun anew after a while or when the configuration changes. The only bot's end is the host's.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use super::bot::Bot;
use super::live::Watch;
use super::{Replaced, Shared, bot_id, stopped};
use crate::config::{Config, LoadOptions};
use crate::domain::{BotId, BotName};
use crate::plugin::Lock;
use crate::whose::Whose;

/// Telegram's servers load bots that they have not met at a limited rate.
const APART: Duration = Duration::from_millis(50);
/// How long a bot that could not run rests, twice as long each time.
const REST: Duration = Duration::from_secs(15);
const LONGEST_REST: Duration = Duration::from_secs(600);

/// `bot.toml`, the files with secrets, and `bot.lock`: what is approved comes with grants.
pub(super) fn watched_paths(config: &Config) -> Vec<PathBuf> {
    [config.file.clone(), Lock::path(&config.file)].into_iter().chain(config.files.iter().cloned()).collect()
}

/// All bots of a host.
pub(super) struct Bots {
    shared: Shared,
    replaced: Option<Replaced>,
    running: BTreeMap<BotName, Running>,
    ended: JoinSet<anyhow::Result<()>>,
    crowd: Arc<Crowd>,
}

/// What a bot knows of the others.
#[derive(Default)]
struct Crowd {
    /// How many are configured now.
    bots: AtomicUsize,
    /// How many have failed without having run.
    failed: AtomicUsize,
}

struct Running {
    id: Option<BotId>,
    configs: watch::Sender<Config>,
    stop: watch::Sender<bool>,
    gone: watch::Receiver<bool>,
}

impl Bots {
    pub(super) fn new(shared: Shared, replaced: Option<Replaced>) -> Self {
        Self { shared, replaced, running: BTreeMap::new(), ended: JoinSet::new(), crowd: Arc::default() }
    }

    /// Runs them until told to stop, or until what ends the host has happened to one of them.
    pub(super) async fn run(
        mut self,
        mut config: Config,
        watch: Watch,
        mut stop: watch::Receiver<bool>,
    ) -> anyhow::Result<()> {
        let Watch { paths, mut changes, watcher } = watch;
        let watcher: JoinHandle<()> = tokio::spawn(watcher.run(stop.clone()));
        if config.bots.len() > 1 {
            // Once for all, rather than by each at the same time; whose they are finds out what is wrong with them.
            tokio::select! {
                () = stopped(&mut stop) => return Ok(()),
                warm = self.shared.loader.warm(&config) => warm.unwrap_or_default(),
            }
        }
        self.adopt(&config).await;
        let result = loop {
            tokio::select! {
                () = stopped(&mut stop) => break Ok(()),
                Some(ended) = self.ended.join_next() => {
                    if let Err(error) = ended.map_err(Into::into).flatten() {
                        break Err(error);
                    }
                }
                Some(_) = changes.recv() => {
                    if let Some(new) = self.reload(&config) {
                        config = new;
                        paths.send_replace(watched_paths(&config));
                        self.adopt(&config).await;
                    }
                }
            }
        };
        for running in self.running.values() {
            running.stop.send_replace(true);
        }
        let mut result = result;
        while let Some(ended) = self.ended.join_next().await {
            result = result.and(ended.map_err(Into::into).flatten());
        }
        watcher.abort();
        result
    }

    fn reload(&self, old: &Config) -> Option<Config> {
        let options = LoadOptions { token_optional: self.shared.options.is_simulated() };
        match Config::load(&old.file, options) {
            Ok(new) => {
                self.shared.bots.tell(|readiness| readiness.config_ok());
                Some(self.shared.options.adapt(new))
            }
            Err(error) => {
                tracing::error!(%error, "bot.toml has changed but can't be used; the old configuration stays");
                self.shared.bots.tell(|readiness| readiness.config_failed(error.to_string()));
                None
            }
        }
    }

    /// Ends those that are no longer wanted, tells the others what is new, and begins those that are new.
    async fn adopt(&mut self, config: &Config) {
        self.crowd.bots.store(config.bots.len(), Ordering::Relaxed);
        let unwanted: Vec<BotName> =
            self.running.keys().filter(|name| !config.bots.contains_key(*name)).cloned().collect();
        for name in unwanted {
            let Some(mut running) = self.running.remove(&name) else { continue };
            tracing::info!(bot = %name, "the bot is no longer configured, and stops");
            running.stop.send_replace(true);
            stopped(&mut running.gone).await;
            self.shared.bots.gone(&name);
        }
        let mut begun = 0;
        for name in config.bots.keys() {
            let Some(own) = config.of(name) else { continue };
            if let Some(running) = self.running.get(name) {
                running.configs.send_replace(own);
                continue;
            }
            let id = bot_id(&own, self.shared.options.is_simulated()).ok();
            if let Some((other, _)) = self.running.iter().find(|(_, other)| id.is_some() && other.id == id) {
                tracing::error!(bot = %name, %other, "another bot still runs with this token; it starts when the host does");
                continue;
            }
            self.begin(own, id, APART * begun);
            begun += 1;
        }
    }

    fn begin(&mut self, config: Config, id: Option<BotId>, after: Duration) {
        let name = config.name.clone();
        let is_named = config.bots.len() > 1 || name.as_str() != BotName::OF_THE_ONE;
        let (configs, new) = watch::channel(config);
        let (stop, stopping) = watch::channel(false);
        let (going, gone) = watch::channel(false);
        let keeper = Keeper { shared: self.shared.clone(), crowd: self.crowd.clone(), name: name.clone() };
        self.shared.bots.expect(&name);
        let replaced = self.replaced.take();
        self.ended.spawn(Whose::new(&name, is_named).does(async move {
            let kept = keeper.keep(new, replaced, after, stopping).await;
            going.send_replace(true);
            kept
        }));
        self.running.insert(name, Running { id, configs, stop, gone });
    }
}

/// Keeps one bot going.
struct Keeper {
    shared: Shared,
    crowd: Arc<Crowd>,
    name: BotName,
}

impl Keeper {
    async fn keep(
        self,
        mut configs: watch::Receiver<Config>,
        mut replaced: Option<Replaced>,
        after: Duration,
        mut stop: watch::Receiver<bool>,
    ) -> anyhow::Result<()> {
        tokio::select! {
            () = tokio::time::sleep(after) => {}
            () = stopped(&mut stop) => return Ok(()),
        }
        let mut rest = REST;
        loop {
            let bot = Bot { shared: self.shared.clone(), replaced: replaced.take() };
            let config = configs.borrow_and_update().clone();
            let Err(error) = bot.run(config, configs.clone(), stop.clone()).await else { return Ok(()) };
            let was_served = self.shared.bots.was_served(&self.name);
            let failed = if was_served { 0 } else { self.crowd.failed.fetch_add(1, Ordering::Relaxed) + 1 };
            // When none of them can start, it is the start that has failed.
            if self.crowd.bots.load(Ordering::Relaxed) <= failed.max(1) || *stop.borrow() {
                return Err(error);
            }
            let why = format!("{error:#}");
            tracing::error!(error = why, again_in = ?rest, "the bot has stopped, and is begun anew; the others go on");
            self.shared.bots.failed(&self.name, &why);
            tokio::select! {
                () = tokio::time::sleep(rest) => {}
                _ = configs.changed() => {}
                () = stopped(&mut stop) => return Ok(()),
            }
            if !was_served {
                self.crowd.failed.fetch_sub(1, Ordering::Relaxed);
            }
            rest = (rest * 2).min(LONGEST_REST);
        }
    }
}
