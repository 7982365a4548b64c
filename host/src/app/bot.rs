//! One bot: everything that belongs to it, from start to stop.
//!
//! It shares store, engine and folder of files with the other bots of the host, and nothing else: what goes wrong here ends
//! this bot with an error and leaves the others as they are. What it has in the store stays.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinHandle;

use super::intake::Origin;
use super::live::{self, Live, Watch};
use super::versions::Versions;
use super::{Replaced, Shared, identity, inside, menu, simulated_token, stopped, token};
use crate::admin::{Readiness, Served};
use crate::chats::Chats;
use crate::config::{AllowedUpdates, Config};
use crate::dispatch::{self, Dispatcher, Routes};
use crate::domain::{BotName, PluginName};
use crate::files::ServerLimits;
use crate::intake::{self, Access, Intake, SetNow, Status};
use crate::operate::Operator;
use crate::plugin::Lock;
use crate::sender::{SendSettings, Sender};
use crate::simulator::{Simulator, SimulatorSettings};
use crate::store::Store;
use crate::telegram::Client;
use crate::whose;

/// How long runs may go on after the stop signal.
const GRACE: Duration = Duration::from_secs(10);

/// The parts that live from start to stop.
pub(super) struct Parts {
    pub(super) store: Store,
    pub(super) sender: Sender,
    pub(super) dispatcher: Dispatcher,
    pub(super) readiness: Readiness,
    pub(super) allowed_updates: watch::Sender<Option<Vec<String>>>,
    pub(super) intake: watch::Sender<intake::Settings>,
    pub(super) set_webhook: mpsc::Sender<SetNow>,
    /// Told when the plugins may offer other commands.
    pub(super) menu: Notify,
}

/// One bot that is to run.
pub(super) struct Bot {
    pub(super) shared: Shared,
    /// The host whose place this one has taken, for the bot that tells of it.
    pub(super) replaced: Option<Replaced>,
}

impl Bot {
    /// Runs it until told to stop. `configs` tells what is new for it.
    ///
    /// # Errors
    /// When it can't start, or a part of it can't go on.
    pub(super) async fn run(
        self,
        config: Config,
        configs: watch::Receiver<Config>,
        stop: watch::Receiver<bool>,
    ) -> anyhow::Result<()> {
        if let Some(played) = &self.shared.options.played {
            let simulator = played.simulator.clone();
            return self.run_at(Some(&simulator), config, configs, stop).await;
        }
        let Some(listen) = self.shared.options.simulator else {
            return self.run_at(None, config, configs, stop).await;
        };
        let simulator = start_simulator(listen, &config).await?;
        let ran = self.run_at(Some(&simulator), config, configs, stop).await;
        let saved = simulator.stop().await;
        ran?;
        saved.context("could not save what the simulator holds")
    }

    async fn run_at(
        self,
        simulator: Option<&Simulator>,
        config: Config,
        configs: watch::Receiver<Config>,
        mut stop: watch::Receiver<bool>,
    ) -> anyhow::Result<()> {
        let Self { shared, replaced } = self;
        let watch = Watch::begin(live::watched_paths(&config)).await;
        let lock = Lock::read(&config.file);
        let is_simulated = simulator.is_some();
        let api_base = simulator.map_or_else(|| config.bot.api_base.clone(), Simulator::api_base);
        let token = token(&config, is_simulated)?;
        let client = Arc::new(Client::new(&api_base, token.clone())?);
        let origin = Origin { access: Access { api_base, token }, is_simulated, take_over: shared.options.take_over };
        let store = shared.store.clone();
        let server = ServerLimits { local: config.bot.local_server };
        let files = shared.files.clone().at(server, config.bot.local_files.as_deref());
        let bot = origin.access.token.bot_id();
        let versions = Versions::new(shared.loader.clone(), &config, store.clone(), bot);
        let (loaded, me) = tokio::select! {
            biased;
            () = stopped(&mut stop) => return Ok(()),
            found = async {
                let found = (versions.load_all(&config).await?, identity::ask(&client, &config.section()).await?);
                origin.look_for_webhook(&config, &client, &store).await?;
                Ok::<_, anyhow::Error>(found)
            } => found?,
        };
        let routes = Routes::new(loaded.iter().map(|(_, loaded)| loaded.entry.clone()).collect());
        let (notices, noticed) = mpsc::unbounded_channel();

        let chats = Chats::open(store.clone(), bot)?;
        chats.keep_answers_for(config.send.cache_ttl);
        chats.finish_moves().await?;
        let sender = Sender::new(store.clone(), client.clone(), bot, chats, send_settings(&config), Some(files));
        sender.limit_bulk(bulk_limits(&config));
        sender.acknowledge_after(config.dispatch.acknowledge_callbacks);
        let (dispatcher, arrivals) = Dispatcher::new(
            store.clone(),
            bot,
            sender.clone(),
            Arc::new(sender.clone()),
            routes,
            dispatch::Settings {
                concurrency: config.dispatch.concurrency,
                max_attempts: config.dispatch.max_attempts,
                jobs: config.dispatch.jobs,
                dead: dispatch::DeadLetters {
                    letters: config.dispatch.dead_letters as u64,
                    bytes: config.dispatch.dead_letter_bytes,
                    age: config.dispatch.dead_letter_age,
                },
                default_locale: config.i18n.default_locale.clone(),
                grace: GRACE,
                notices,
                cancel_command: config.dispatch.cancel_command.clone(),
                cancel_reply: config.dispatch.cancel_reply.clone(),
                stale_button_reply: config.dispatch.stale_button_reply.clone(),
                unsealed_buttons: config.dispatch.unsealed_buttons,
                album_quiet: config.dispatch.album_quiet,
                album_wait: config.dispatch.album_wait,
            },
        );
        if let Some(simulator) = simulator {
            inside::show(simulator, &dispatcher, &store, bot);
        }
        let (allowed_updates, allowed) = watch::channel(allowed_updates(&config, &dispatcher.routes()));
        let (status, heard) = watch::channel(Status::default());
        let (intake, settings) = watch::channel(origin.settings(&config));
        let (set_webhook, setting_webhook) = mpsc::channel(8);
        let parts = Arc::new(Parts {
            store,
            sender,
            dispatcher,
            readiness: shared.bots.expect(&config.name),
            allowed_updates,
            intake,
            set_webhook,
            menu: Notify::new(),
        });

        let stages = Stages::default();
        let operator = Operator::on_running(parts.store.clone(), bot, parts.dispatcher.arrivals())
            .telling(parts.sender.clone())
            .telling_workers(parts.dispatcher.jobs_changed());
        live::apply_pauses(&parts, &operator)?;
        operator.finish_erasures().await?;
        let (orders, ordered) = mpsc::channel(8);
        shared
            .bots
            .serves(&config.name, Served { operator: operator.clone(), orders, recorder: parts.dispatcher.recorder() });
        let health = tokio::spawn(whose::same(identity::follow_health(parts.clone(), heard)));
        let floods = tokio::spawn(whose::same(identity::follow_floods(parts.clone())));
        let naming = tokio::spawn(whose::same(identity::learn(parts.clone(), client.clone(), me)));
        let menu = config.bot.commands.then(|| {
            let told = menu::follow(parts.clone(), client.clone(), bot, config.i18n.default_locale.clone());
            tokio::spawn(whose::same(told))
        });
        let mut sending = tokio::spawn({
            let (sender, stop) = (parts.sender.clone(), stages.sending.subscribe());
            whose::same(async move { sender.run(stop).await })
        });
        let mut dispatching = tokio::spawn({
            let (dispatcher, stop) = (parts.dispatcher.clone(), stages.dispatching.subscribe());
            whose::same(async move { dispatcher.run(arrivals, stop).await })
        });
        let intake = Intake {
            parts: intake::Parts {
                store: parts.store.clone(),
                client,
                bot,
                allowed_updates: allowed,
                arrivals: parts.dispatcher.arrivals(),
                lanes: parts.dispatcher.lanes(),
                sender: parts.sender.clone(),
                status,
            },
            settings,
            orders: setting_webhook,
        };
        let mut taking_in = tokio::spawn(whose::same(intake.run(stages.intake.subscribe())));
        let live = Live::new(parts.clone(), config, lock, versions, origin, operator, loaded);
        let mut reloading =
            tokio::spawn(whose::same(live.run(watch, configs, ordered, noticed, stages.intake.subscribe())));
        tracing::info!(%bot, "serving");
        if let Some(played) = &shared.options.played {
            // Whoever plays may have given up.
            played.serving.send(parts.store.clone()).ok();
        }
        if let Some(Replaced { pid, asked }) = replaced {
            tracing::info!(pid, gap = ?asked.elapsed(), "has taken the place of the host that ran before");
        }

        let mut result = tokio::select! {
            () = stopped(&mut stop) => Ok(()),
            ended = &mut dispatching => flatten(ended),
            ended = &mut taking_in => flatten(ended),
            // Updates would be handled, and nobody be answered.
            ended = &mut sending => flatten(ended).context("the part that sends has broken"),
            Err(error) = async { flatten((&mut reloading).await) } => {
                Err(error.context("the part that takes orders and new configurations has broken"))
            }
        };
        stages.intake.send_replace(true);
        result = result.and(finish(taking_in).await).and(finish(reloading).await);
        stages.dispatching.send_replace(true);
        result = result.and(finish(dispatching).await);
        stages.sending.send_replace(true);
        result = result.and(finish(sending).await);
        health.abort();
        floods.abort();
        naming.abort();
        if let Some(menu) = menu {
            menu.abort();
        }
        result
    }
}

/// The stop signals, one per stage.
struct Stages {
    intake: watch::Sender<bool>,
    dispatching: watch::Sender<bool>,
    sending: watch::Sender<bool>,
}

impl Default for Stages {
    fn default() -> Self {
        let stage = || watch::channel(false).0;
        Self { intake: stage(), dispatching: stage(), sending: stage() }
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

/// Each bot has one of its own: the only one at the address that was named, the others behind it.
async fn start_simulator(listen: SocketAddr, config: &Config) -> anyhow::Result<Simulator> {
    let mut settings = SimulatorSettings {
        listen,
        state_file: Some(simulator_file(&config.store.path, &config.name)),
        // The process has one clock: with several bots each simulator keeps its own time.
        moves_clock: config.bots.len() == 1,
        ..SimulatorSettings::default()
    };
    if config.name.as_str() != BotName::OF_THE_ONE {
        settings.token = Some(simulated_token(&config.name));
        settings.bot_name = config.name.to_string();
        settings.bot_username = format!("{}_bot", config.name.as_str().replace('-', "_"));
    }
    if listen.port() != 0 {
        let the_one = BotName::new(BotName::OF_THE_ONE);
        let mut order: Vec<&BotName> = config.bots.keys().collect();
        order.sort_by_key(|name| **name != the_one);
        let place = order.iter().position(|name| **name == config.name).unwrap_or_default();
        let port = u16::try_from(place).ok().and_then(|place| listen.port().checked_add(place));
        settings.listen.set_port(port.context("there are not as many ports as bots behind the simulator's")?);
    }
    let simulator = Simulator::start(settings).await?;
    tracing::info!(page = simulator.page_url(), "the simulator answers in Telegram's place");
    Ok(simulator)
}

/// Beside the store, not in it: the store's folder is the database's alone.
fn simulator_file(store: &Path, bot: &BotName) -> PathBuf {
    let mut name = store.file_name().unwrap_or_default().to_owned();
    if bot.as_str() == BotName::OF_THE_ONE {
        name.push(".simulator.json");
    } else {
        name.push(format!(".simulator-{bot}.json"));
    }
    store.with_file_name(name)
}

pub(super) fn send_settings(config: &Config) -> SendSettings {
    SendSettings {
        overall_per_second: config.send.overall_per_second,
        chat_per_second: config.send.chat_per_second,
        group_per_minute: config.send.group_per_minute,
        bulk_per_second: config.send.bulk_per_second,
        paid_per_second: config.send.paid_per_second,
    }
}

/// Recipients in a minute, for the broadcasts of each plugin.
pub(super) fn bulk_limits(config: &Config) -> BTreeMap<PluginName, u32> {
    config.plugins.iter().map(|(name, plugin)| (name.clone(), plugin.limits.bulk_per_minute)).collect()
}

pub(super) fn allowed_updates(config: &Config, routes: &Routes) -> Option<Vec<String>> {
    match &config.intake.allowed_updates {
        AllowedUpdates::Auto => {
            let mut kinds = routes.kinds();
            // Who has blocked the bot is for the host to know too. No kind at all would mean most of them.
            if !kinds.is_empty() && !kinds.iter().any(|kind| kind == "my_chat_member") {
                kinds.push("my_chat_member".to_owned());
            }
            Some(kinds)
        }
        AllowedUpdates::Only(kinds) => Some(kinds.clone()),
    }
}
