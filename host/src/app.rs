//! Puts the parts together and owns the order in which they start and stop.
//!
//! Start: configuration, admin port, store, plugins, Telegram's word on the token, then sender, dispatch and
//! intake; nothing is fetched before there is somebody to handle it. Stop is the reverse: intake first, then the
//! runs, then the sender, and the store last, so that nothing is cut off that could have finished. Whatever did not
//! finish stands in the store and goes on after the next start.

mod identity;
mod live;
mod plugins;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use secrecy::ExposeSecret as _;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use crate::admin::{self, Readiness};
use crate::config::{AllowedUpdates, Config};
use crate::dispatch::{self, Dispatcher, Routes};
use crate::domain::BotId;
use crate::intake::{PollStatus, Poller};
use crate::operate::Operator;
use crate::sender::{SendSettings, Sender};
use crate::simulator::{Simulator, SimulatorSettings};
use crate::store::Store;
use crate::telegram::{Client, Token};

pub use self::plugins::settings as plugin_settings;

/// How long runs may go on after the stop signal.
const GRACE: Duration = Duration::from_secs(10);
/// The token that the simulator is used with. Its number never changes, so that conversations go on.
pub const SIMULATED_TOKEN: &str = "777000:simulated-bot-without-any-secret";

/// Whose part of the store a host with this configuration works on.
///
/// # Errors
/// When the configuration has no token that tells, and it is not the simulator's bot that is meant.
pub fn bot_id(config: &Config, simulated: bool) -> anyhow::Result<BotId> {
    let token = match &config.bot.token {
        _ if simulated => SIMULATED_TOKEN,
        Some(token) => token.expose_secret(),
        None => anyhow::bail!("there is no token"),
    };
    Ok(Token::parse(token)?.bot_id())
}

/// What the command line adds to the configuration.
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// Talk to an embedded simulator at this address instead of to Telegram.
    pub simulator: Option<SocketAddr>,
}

/// The parts that live from start to stop.
struct Parts {
    store: Store,
    sender: Sender,
    dispatcher: Dispatcher,
    readiness: Readiness,
    allowed_updates: watch::Sender<Option<Vec<String>>>,
}

/// Runs the bot until `stop` turns true.
///
/// # Errors
/// When a part can't start, or the store fails while running.
pub async fn run(config: Config, options: RunOptions, stop: watch::Receiver<bool>) -> anyhow::Result<()> {
    // First of all: what is counted before there is a recorder is not counted.
    admin::install_metrics();
    let watch = live::Watch::begin(&config).await;
    let admin = admin::bind(config.admin.listen).await?;
    let simulator = match options.simulator {
        Some(listen) => Some(start_simulator(listen, &config).await?),
        None => None,
    };
    let ran = run_with(config, simulator.as_ref(), watch, admin, None, stop).await;
    let saved = match simulator {
        Some(simulator) => simulator.stop().await,
        None => Ok(()),
    };
    ran?;
    saved.context("could not save what the simulator holds")?;
    tracing::info!("stopped");
    Ok(())
}

/// Runs the bot on a simulator that the caller plays on, and hands out the store once it serves.
///
/// # Errors
/// As [`run`].
pub async fn run_on(
    config: Config,
    simulator: &Simulator,
    serving: oneshot::Sender<Store>,
    stop: watch::Receiver<bool>,
) -> anyhow::Result<()> {
    let watch = live::Watch::begin(&config).await;
    let admin = admin::bind(config.admin.listen).await?;
    run_with(config, Some(simulator), watch, admin, Some(serving), stop).await
}

async fn run_with(
    config: Config,
    simulator: Option<&Simulator>,
    watch: live::Watch,
    admin: TcpListener,
    serving: Option<oneshot::Sender<Store>>,
    stop: watch::Receiver<bool>,
) -> anyhow::Result<()> {
    let (token, api_base) = match (simulator, &config.bot.token) {
        (Some(simulator), _) => (SIMULATED_TOKEN.to_owned(), simulator.api_base()),
        (None, Some(token)) => (token.expose_secret().to_owned(), config.bot.api_base.clone()),
        (None, None) => anyhow::bail!("there is no token"),
    };
    let token = Token::parse(&token)?;
    let bot = token.bot_id();
    let fingerprint = token.fingerprint(&api_base);
    let client = Arc::new(Client::new(&api_base, token)?);

    let path = config.store.path.clone();
    tracing::info!(path = %path.display(), "opening the store");
    let store = tokio::task::spawn_blocking(move || Store::open(&path)).await??;
    let token_optional = simulator.is_some();
    let start = Start { client, store: store.clone(), bot, fingerprint, token_optional, serving };
    let ran = start.run(config, watch, admin, stop).await;
    let closed = store.close().await;
    ran?;
    closed.context("could not close the store")
}

/// What is there before anything runs.
struct Start {
    client: Arc<Client>,
    store: Store,
    bot: BotId,
    fingerprint: [u8; 8],
    /// Whether `bot.toml` is fine without a token.
    token_optional: bool,
    /// Who waits for it to serve.
    serving: Option<oneshot::Sender<Store>>,
}

impl Start {
    async fn run(
        self,
        config: Config,
        watch: live::Watch,
        admin: TcpListener,
        mut stop: watch::Receiver<bool>,
    ) -> anyhow::Result<()> {
        let Self { client, store, bot, fingerprint, token_optional, serving } = self;
        let loader = Arc::new(plugins::Loader::new(&config)?);
        let (entries, username) = tokio::select! {
            biased;
            () = stopped(&mut stop) => return Ok(()),
            found = async { Ok::<_, anyhow::Error>((loader.load_all(&config).await?, identity::ask(&client).await?)) } => found?,
        };
        let routes = Routes::new(entries);

        let sender = Sender::new(store.clone(), client.clone(), bot, send_settings(&config));
        let (dispatcher, arrivals) = Dispatcher::new(
            store.clone(),
            bot,
            sender.clone(),
            Arc::new(sender.clone()),
            routes,
            dispatch::Settings {
                concurrency: config.dispatch.concurrency,
                max_attempts: config.dispatch.max_attempts,
                default_locale: config.i18n.default_locale.clone(),
                grace: GRACE,
            },
        );
        let (allowed_updates, allowed) = watch::channel(allowed_updates(&config, &dispatcher.routes()));
        let (status, polled) = watch::channel(PollStatus::default());
        let parts = Arc::new(Parts {
            store,
            sender,
            dispatcher,
            readiness: Readiness::new(config.intake.poll_timeout),
            allowed_updates,
        });

        let stages = Stages::default();
        let operator = Operator::on_running(parts.store.clone(), bot, parts.dispatcher.arrivals());
        live::apply_pauses(&parts, &operator)?;
        let (orders, ordered) = mpsc::channel(8);
        // The store is there by now, so the way to it can be told without links.
        let path = std::fs::canonicalize(&config.store.path)?;
        let api = admin::Api { store: path, operator: operator.clone(), orders };
        let admin = tokio::spawn(admin::serve(admin, parts.readiness.clone(), api, stages.last.subscribe()));
        let health = tokio::spawn(identity::follow_health(parts.clone(), polled));
        let naming = tokio::spawn(identity::learn(parts.clone(), client.clone(), username));
        let sending = tokio::spawn({
            let (sender, stop) = (parts.sender.clone(), stages.sending.subscribe());
            async move { sender.run(stop).await }
        });
        let mut dispatching = tokio::spawn({
            let (dispatcher, stop) = (parts.dispatcher.clone(), stages.dispatching.subscribe());
            async move { dispatcher.run(arrivals, stop).await }
        });
        let poller = Poller {
            store: parts.store.clone(),
            client,
            bot,
            fingerprint,
            poll_timeout: config.intake.poll_timeout,
            allowed_updates: allowed,
            arrivals: parts.dispatcher.arrivals(),
            status,
        };
        let mut polling = tokio::spawn(poller.run(stages.intake.subscribe()));
        let ordering = (operator, ordered);
        let stop_following = stages.intake.subscribe();
        let reloading =
            tokio::spawn(live::follow(parts.clone(), config, loader, token_optional, watch, ordering, stop_following));
        tracing::info!(%bot, "serving");
        if let Some(serving) = serving {
            // Whoever waited may have given up.
            serving.send(parts.store.clone()).ok();
        }

        let mut result = tokio::select! {
            () = stopped(&mut stop) => Ok(()),
            error = parts.store.failed() => Err(error.into()),
            ended = &mut dispatching => flatten(ended),
            // With a refused token polling ends well; what is in the inbox is handled all the same.
            Err(error) = async { flatten((&mut polling).await) } => Err(error),
        };
        tracing::info!("stopping");
        parts.readiness.stopping();
        if let Err(error) = &result {
            parts.readiness.store_failed(format!("{error:#}"));
        }
        stages.intake.send_replace(true);
        result = result.and(finish(polling).await).and(finish(reloading).await);
        stages.dispatching.send_replace(true);
        result = result.and(finish(dispatching).await);
        stages.sending.send_replace(true);
        result = result.and(sending.await.map_err(Into::into));
        stages.last.send_replace(true);
        health.abort();
        naming.abort();
        admin.abort();
        result
    }
}

async fn stopped(stop: &mut watch::Receiver<bool>) {
    // The other end is gone only when the process ends.
    stop.wait_for(|stop| *stop).await.ok();
}

/// The stop signals, one per stage.
struct Stages {
    intake: watch::Sender<bool>,
    dispatching: watch::Sender<bool>,
    sending: watch::Sender<bool>,
    last: watch::Sender<bool>,
}

impl Default for Stages {
    fn default() -> Self {
        let stage = || watch::channel(false).0;
        Self { intake: stage(), dispatching: stage(), sending: stage(), last: stage() }
    }
}

type Ended<E> = Result<Result<(), E>, tokio::task::JoinError>;

fn flatten<E: Into<anyhow::Error>>(ended: Ended<E>) -> anyhow::Result<()> {
    ended?.map_err(Into::into)
}

/// The result of a part that is still to end; one that has been seen to end already has been heard.
async fn finish<E: Into<anyhow::Error>>(part: JoinHandle<Result<(), E>>) -> anyhow::Result<()> {
    if part.is_finished() { Ok(()) } else { flatten(part.await) }
}

async fn start_simulator(listen: SocketAddr, config: &Config) -> anyhow::Result<Simulator> {
    let settings = SimulatorSettings {
        listen,
        state_file: Some(simulator_file(&config.store.path)),
        moves_clock: true,
        ..SimulatorSettings::default()
    };
    let simulator = Simulator::start(settings).await?;
    tracing::info!(page = simulator.page_url(), "the simulator answers in Telegram's place");
    Ok(simulator)
}

/// Beside the store, not in it: the store's folder is the database's alone.
fn simulator_file(store: &std::path::Path) -> PathBuf {
    let mut name = store.file_name().unwrap_or_default().to_owned();
    name.push(".simulator.json");
    store.with_file_name(name)
}

fn send_settings(config: &Config) -> SendSettings {
    SendSettings {
        overall_per_second: config.send.overall_per_second,
        chat_per_second: config.send.chat_per_second,
        group_per_minute: config.send.group_per_minute,
        bulk_per_second: config.send.bulk_per_second,
    }
}

fn allowed_updates(config: &Config, routes: &Routes) -> Option<Vec<String>> {
    match &config.intake.allowed_updates {
        AllowedUpdates::Auto => Some(routes.kinds()),
        AllowedUpdates::Only(kinds) => Some(kinds.clone()),
    }
}
