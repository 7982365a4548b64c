//! A real host on a simulated Telegram, for one conversation; and the moment when the bot has nothing left to do.
//!
//! Nothing is mocked: updates are polled over HTTP, pass the inbox, run in wasm, and answers leave through the outbox.
//! Only what would make a test slow or its result a matter of luck is set aside: sending limits, and further attempts at
//! what has failed.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::app::{self, Played, RunOptions};
use crate::clock::unix_millis;
use crate::config::Config;
use crate::dispatch::next_timer;
use crate::domain::BotId;
use crate::simulator::{Simulator, SimulatorSettings};
use crate::store::rows::broadcast::{self, ProgressRow, State, WishRow};
use crate::store::rows::dead::{self, DeadRow};
use crate::store::rows::{expiry, inbox, job, outbox, prefix_end};
use crate::store::{self, Store};

/// Between two looks at whether everything is done.
const LOOK: Duration = Duration::from_millis(2);
const START: Duration = Duration::from_secs(60);

/// A script that sets this wants a broadcast to be on its way for longer than a moment.
pub(super) const BULK_PACE: &str = "send.bulk_per_second";

/// How a conversation is played.
pub(super) struct Settings {
    /// Where the store is made, and removed afterwards.
    pub(super) store: PathBuf,
    pub(super) patience: Duration,
    /// The script has set [`BULK_PACE`]: a broadcast is not waited for once it has begun.
    pub(super) paced: bool,
}

/// What a conversation is played on.
pub(super) struct Stage {
    pub(super) simulator: Simulator,
    store: Store,
    bot: BotId,
    settings: Settings,
    n_dead: usize,
    /// Asks for a new host on the same store.
    restarts: mpsc::UnboundedSender<()>,
    /// The store of each host that serves.
    served: mpsc::UnboundedReceiver<Store>,
}

/// Plays `play` on a host of its own.
pub(super) async fn on_stage<T>(
    mut config: Config,
    settings: Settings,
    play: impl AsyncFnOnce(&mut Stage) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let folder = settings.store.clone();
    remove(&folder)?;
    config.store.path.clone_from(&folder);
    config.admin.listen = ([127, 0, 0, 1], 0).into();
    config.dispatch.max_attempts = 1;
    let send = &mut config.send;
    (send.overall_per_second, send.chat_per_second) = Default::default();
    (send.group_per_minute, send.paid_per_second) = Default::default();
    if !settings.paced {
        send.bulk_per_second = 0.0;
    }
    let bot = app::bot_id(&config, true)?;
    let simulator = Simulator::start(SimulatorSettings { moves_clock: true, ..SimulatorSettings::default() }).await?;
    let (serving, mut served) = mpsc::unbounded_channel();
    let options =
        RunOptions { played: Some(Played { simulator: simulator.clone(), serving }), ..RunOptions::default() };
    let (restarts, asked) = mpsc::unbounded_channel();
    let playing = async {
        let store = comes_up(&simulator, &mut served, 0).await?;
        let simulator = simulator.clone();
        let mut stage = Stage { simulator, store, bot, settings, n_dead: 0, restarts, served };
        play(&mut stage).await
    };
    let hosting = hosts(config, options, asked);
    tokio::pin!(hosting, playing);
    let result = tokio::select! {
        // First, since it says why nothing is played when it ends.
        biased;
        ended = &mut hosting => {
            ended?;
            bail!("the host has stopped by itself");
        }
        // The stage is gone by then, and the host ends with it.
        result = &mut playing => result,
    };
    hosting.await?;
    simulator.stop().await?;
    remove(&folder)?;
    result
}

/// One host after another, each when it is asked for, until nobody can ask any more.
async fn hosts(config: Config, options: RunOptions, mut asked: mpsc::UnboundedReceiver<()>) -> anyhow::Result<()> {
    loop {
        let (stop, stopping) = watch::channel(false);
        let host = app::run(config.clone(), options.clone(), stopping);
        tokio::pin!(host);
        let again = tokio::select! {
            ended = &mut host => return ended,
            asked = asked.recv() => asked.is_some(),
        };
        stop.send_replace(true);
        host.await?;
        if !again {
            return Ok(());
        }
    }
}

/// Waits until a host serves, and asks for updates for the first time after `n_polls`.
async fn comes_up(
    simulator: &Simulator,
    served: &mut mpsc::UnboundedReceiver<Store>,
    n_polls: u64,
) -> anyhow::Result<Store> {
    let store = tokio::time::timeout(START, served.recv()).await.ok().flatten();
    let store = store.context("the host does not come up")?;
    let polling = async {
        while simulator.call_count("getUpdates") <= n_polls {
            tokio::time::sleep(LOOK).await;
        }
    };
    tokio::time::timeout(START, polling).await.context("the host does not ask for updates")?;
    Ok(store)
}

fn remove(store: &Path) -> anyhow::Result<()> {
    match std::fs::remove_dir_all(store) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("could not remove {}", store.display()))
        }
        _ => Ok(()),
    }
}

impl Stage {
    /// Ends the host, and starts another one on the same store.
    pub(super) async fn restart(&mut self) -> anyhow::Result<()> {
        let n_polls = self.simulator.call_count("getUpdates");
        self.restarts.send(()).ok();
        self.store = comes_up(&self.simulator, &mut self.served, n_polls).await?;
        Ok(())
    }

    /// Waits until the bot has done all that it has to do; false when it does not end.
    pub(super) async fn settle(&self) -> Result<bool, store::Error> {
        let deadline = Instant::now() + self.settings.patience;
        let mut quiet = 0;
        while quiet < 2 {
            quiet = if self.is_quiet()? { quiet + 1 } else { 0 };
            if Instant::now() > deadline {
                return Ok(false);
            }
            tokio::time::sleep(LOOK).await;
        }
        Ok(true)
    }

    /// In the order in which things come after each other, so that nothing can slip by.
    fn is_quiet(&self) -> Result<bool, store::Error> {
        let first = |from: Vec<u8>| self.store.first_key(&from, &prefix_end(&from));
        let timer = next_timer(&self.store, self.bot)?;
        let end = first(expiry::bot_prefix(self.bot))?.and_then(|key| Some(expiry::parse_key(&key)?.0));
        Ok(timer.is_none_or(|due| due > unix_millis())
            && end.is_none_or(|due| due > unix_millis())
            && self.simulator.waiting_updates() == 0
            && first(inbox::bot_prefix(self.bot))?.is_none()
            && !self.works()?
            && !self.broadcasts()?
            && first(outbox::bot_prefix(self.bot))?.is_none())
    }

    /// Whether a job's time has come.
    fn works(&self) -> Result<bool, store::Error> {
        let jobs = self.store.scan_prefix(&job::bot_prefix(self.bot), usize::MAX)?;
        let is_due = |row: &[u8]| job::HeadRow::decode(row).is_ok_and(|head| head.due <= unix_millis());
        Ok(jobs.iter().any(|(key, row)| job::parse_head(key).is_some() && is_due(row)))
    }

    /// Whether one is on its way.
    fn broadcasts(&self) -> Result<bool, store::Error> {
        let mut from = broadcast::bot_prefix(self.bot);
        let end = prefix_end(&from);
        while let Some(id) = self.store.first_key(&from, &end)?.and_then(|key| broadcast::id_of(&key)) {
            let wish = self.store.get(&broadcast::wish_key(self.bot, id))?;
            let progress = self.store.get(&broadcast::progress_key(self.bot, id))?;
            let rows = wish.zip(progress).and_then(|(wish, progress)| {
                Some((WishRow::decode(&wish).ok()?, ProgressRow::decode(&progress).ok()?))
            });
            // One that takes its time has begun with its first recipient.
            let is_awaited = |(wish, progress): (WishRow, ProgressRow)| {
                State::of(&wish, &progress) == State::Running && !(self.settings.paced && progress.sent > 0)
            };
            if rows.is_some_and(is_awaited) {
                return Ok(true);
            }
            from = prefix_end(&broadcast::job_prefix(self.bot, id));
        }
        Ok(false)
    }

    /// What has failed since the last time, in words.
    pub(super) fn failures(&mut self) -> anyhow::Result<Vec<String>> {
        let rows = self.store.scan_prefix(&dead::bot_prefix(self.bot), usize::MAX)?;
        let new = rows.iter().skip(self.n_dead).map(|(_, value)| match DeadRow::decode(value) {
            Ok(row) if row.plugin.is_empty() => row.reason,
            Ok(row) => format!("plugin `{}`: {}\n{}", row.plugin, row.reason, row.backtrace).trim_end().to_owned(),
            Err(error) => error.to_string(),
        });
        let new = new.collect();
        self.n_dead = rows.len();
        Ok(new)
    }
}
