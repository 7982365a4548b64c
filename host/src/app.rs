//! Puts the parts together and owns the order in which they start and stop.
//!
//! Start: configuration, the lease on the store, admin port, store, and then the bots, each by itself: plugins, Telegram's
//! word on the token, sender, dispatch and intake; nothing is fetched before there is somebody to handle it. Stop is the
//! reverse: of each bot intake first, then the runs, then the sender; and the store last, so that nothing is cut off that
//! could have finished. Whatever did not finish stands in the store and goes on after the next start.

mod admission;
mod bot;
mod bots;
mod identity;
mod inside;
mod intake;
mod lease;
mod live;
mod menu;
mod plugins;
mod replace;
mod shelf;
mod versions;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use secrecy::ExposeSecret as _;
use tokio::sync::{mpsc, watch};

use self::bot::{Parts, allowed_updates, bulk_limits, send_settings};
use self::bots::Bots;
use self::lease::Lease;
use self::live::Watch;
use self::replace::Replaced;
use crate::admin;
use crate::config::Config;
use crate::domain::{BotId, BotName};
use crate::files::{Files, ServerLimits};
use crate::simulator::Simulator;
use crate::store::{self, Store};
use crate::telegram::Token;

pub use self::lease::{Error as LeaseError, Holder};
pub use self::plugins::settings as plugin_settings;

/// How long whoever looks into the store between two hosts may keep it from the second.
const STORE_PATIENCE: Duration = Duration::from_secs(10);

/// Whose part of the store a host with this configuration works on.
///
/// # Errors
/// When the configuration has no token that tells, and it is not the simulator's bot that is meant.
pub fn bot_id(config: &Config, simulated: bool) -> anyhow::Result<BotId> {
    Ok(token(config, simulated)?.bot_id())
}

fn token(config: &Config, simulated: bool) -> anyhow::Result<Token> {
    let token = match &config.bot.token {
        _ if simulated => simulated_token(&config.name),
        Some(token) => token.expose_secret().to_owned(),
        None => anyhow::bail!("there is no token in {}", config.section()),
    };
    Token::parse(&token).with_context(|| format!("`token` in {}", config.section()))
}

/// The token that the simulator is used with. A bot's number never changes, so that conversations go on.
#[must_use]
pub fn simulated_token(name: &BotName) -> String {
    let number = match name.as_str() {
        BotName::OF_THE_ONE => 777_000,
        // FNV-1a: the same in every version of this host.
        other => {
            let hash =
                other.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
            1_000_000_000 + hash % 1_000_000_000
        }
    };
    format!("{number}:simulated-bot-without-any-secret")
}

/// What the command line adds to the configuration.
#[derive(Clone, Default)]
pub struct RunOptions {
    /// Talk to an embedded simulator at this address instead of to Telegram.
    pub simulator: Option<SocketAddr>,
    /// Remove a webhook that somebody else has set, where the configuration says polling.
    pub take_over: bool,
    /// Take the place of the host that runs on the store.
    pub replace: bool,
    /// Talk to a simulator that the caller plays on.
    pub played: Option<Played>,
    /// Let each new version serve at once and for good: for whoever is writing it.
    pub without_trials: bool,
}

impl RunOptions {
    /// Whether somebody else answers in Telegram's place, so that `bot.toml` is fine without a token.
    fn is_simulated(&self) -> bool {
        self.simulator.is_some() || self.played.is_some()
    }

    /// A configuration that was just read, as it is to be followed.
    fn adapt(&self, config: Config) -> Config {
        if self.without_trials { config.without_trials() } else { config }
    }
}

/// A simulator that the caller plays on: with the only bot of a configuration.
#[derive(Clone)]
pub struct Played {
    /// It.
    pub simulator: Simulator,
    /// Told the store once the bot serves.
    pub serving: mpsc::UnboundedSender<Store>,
}

/// What the bots of a host share.
#[derive(Clone)]
struct Shared {
    store: Store,
    files: Files,
    loader: Arc<plugins::Loader>,
    bots: admin::Bots,
    options: RunOptions,
}

/// Runs the bots until `stop` turns true.
///
/// # Errors
/// When a part can't start, or the store fails while running.
pub async fn run(config: Config, options: RunOptions, mut stop: watch::Receiver<bool>) -> anyhow::Result<()> {
    // First of all: what is counted before there is a recorder is not counted.
    admin::install_metrics();
    let config = options.adapt(config);
    let watch = Watch::begin(bots::watched_paths(&config)).await;
    let loader = Arc::new(plugins::Loader::new(&config)?);
    let path = config.store.path.clone();
    let (mut lease, admin, replaced) = if options.replace {
        tokio::select! {
            () = stopped(&mut stop) => return Ok(()),
            taken = replace::take_place(&config, &loader) => taken?,
        }
    } else {
        (Lease::take(&path)?, admin::bind(config.admin.listen).await?, None)
    };
    lease.answers_at(admin.local_addr()?)?;

    tracing::info!(path = %path.display(), "opening the store");
    let (store, files) = open(&path, replaced.is_some()).await?;
    let bots = admin::Bots::default();
    let shared = Shared { store: store.clone(), files, loader, bots: bots.clone(), options };
    let (hand_over, mut handing_over) = watch::channel(false);
    // The store is there by now, so the way to it can be told without links.
    let api = admin::Shared { store: std::fs::canonicalize(&path)?, bots, hand_over };
    let (ended, last) = watch::channel(false);
    let admin = tokio::spawn(admin::serve(admin, api, last));
    let (end_bots, ending) = watch::channel(false);
    let follow = tokio::spawn(Bots::new(shared.clone(), replaced).run(config, watch, ending));
    tokio::pin!(follow);

    let mut heard = false;
    let mut result = tokio::select! {
        () = stopped(&mut stop) => Ok(()),
        () = stopped(&mut handing_over) => {
            tracing::info!("another host takes this one's place");
            Ok(())
        }
        error = store.failed() => Err(error.into()),
        ended = &mut follow => {
            heard = true;
            ended.map_err(Into::into).flatten()
        }
    };
    tracing::info!("stopping");
    shared.bots.tell(|readiness| {
        readiness.stopping();
        if let Err(error) = &result {
            readiness.store_failed(format!("{error:#}"));
        }
    });
    end_bots.send_replace(true);
    if !heard {
        result = result.and(follow.await.map_err(Into::into).flatten());
    }
    ended.send_replace(true);
    admin.abort();
    // Whoever takes this one's place has its address as well.
    drop(admin.await);
    drop(shared);
    let closed = store.close().await;
    // Whoever waits for it finds the store closed.
    drop(lease);
    result?;
    closed.context("could not close the store")?;
    tracing::info!("stopped");
    Ok(())
}

async fn open(path: &Path, is_contended: bool) -> anyhow::Result<(Store, Files)> {
    let deadline = tokio::time::Instant::now() + STORE_PATIENCE;
    loop {
        let path = path.to_owned();
        let opened = tokio::task::spawn_blocking(move || {
            let store = Store::open(&path)?;
            Ok::<_, store::Error>((store.clone(), Files::open(&files_dir(&path), &store, ServerLimits::default())))
        });
        match opened.await? {
            Ok((store, files)) => return Ok((store, files?)),
            Err(store::Error::Locked { .. }) if is_contended && tokio::time::Instant::now() < deadline => {}
            Err(error) => return Err(error.into()),
        }
    }
}

async fn stopped(stop: &mut watch::Receiver<bool>) {
    // The other end is gone only when the process ends.
    stop.wait_for(|stop| *stop).await.ok();
}

/// Beside the store, not in it: the store's folder is the database's alone.
#[must_use]
pub fn files_dir(store: &Path) -> PathBuf {
    let mut name = store.file_name().unwrap_or_default().to_owned();
    name.push(".files");
    store.with_file_name(name)
}
