//! From the inbox to the plugins and back: lanes, router, runs, commit.
//!
//! One loop owns the lanes and decides who is next; every run is a task of its own. The loop never waits for a
//! handler, and intake never waits for the loop: what has no turn yet lies in the inbox on disk. Nothing here
//! sends anything; a run's calls stand in the outbox once it is committed.
//!
//! When the store fails, the loop ends: nothing could be made true any more.

mod age;
mod explain;
mod hot;
mod lanes;
mod rehearse;
mod routes;
mod run;
mod timers;

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use self::lanes::{Lanes, Turn};
use self::run::{Context, Outcome};
use crate::domain::{BotId, Lane, PluginName};
use crate::plugin::Outbound;
use crate::sender::Sender;
use crate::store::rows::{inbox, prefix_end};
use crate::store::{self, Store};

pub use self::explain::{Explained, describe};
pub use self::rehearse::{Asked, Rehearsal};
pub use self::routes::{Entry, Routes};

/// What dispatch is built from.
pub struct Settings {
    /// Runs at the same time.
    pub concurrency: usize,
    /// After so many failed attempts an event becomes a dead letter.
    pub max_attempts: u32,
    /// The locale of users whose language Telegram does not tell.
    pub default_locale: String,
    /// How long runs may go on after the stop signal before they are rolled back.
    pub grace: Duration,
}

/// Hands events to plugins. Cheap to clone; [`Dispatcher::run`] does the work.
#[derive(Clone)]
pub struct Dispatcher {
    context: Arc<Context>,
    concurrency: usize,
    grace: Duration,
    arrivals: mpsc::UnboundedSender<Vec<Lane>>,
    /// Told when what paused plugins made wait is to be looked at again.
    resumed: Arc<Notify>,
}

/// The receiving end of [`Dispatcher::arrivals`]; goes into [`Dispatcher::run`].
pub struct Arrivals(mpsc::UnboundedReceiver<Vec<Lane>>);

impl Dispatcher {
    /// Puts the parts together; nothing runs yet.
    pub fn new(
        store: Store,
        bot: BotId,
        sender: Sender,
        outbound: Arc<dyn Outbound>,
        routes: Routes,
        settings: Settings,
    ) -> (Self, Arrivals) {
        let (arrivals, receiver) = mpsc::unbounded_channel();
        let context = Context {
            store,
            bot,
            routes: arc_swap::ArcSwap::from_pointee(routes),
            sender,
            outbound,
            username: arc_swap::ArcSwapOption::empty(),
            default_locale: settings.default_locale,
            max_attempts: settings.max_attempts,
            hot: hot::HotKeys::default(),
            paused: arc_swap::ArcSwap::default(),
            journals: std::sync::Mutex::default(),
            timer_set: Arc::default(),
            witness: rehearse::Witness::default(),
        };
        let dispatcher = Self {
            context: Arc::new(context),
            concurrency: settings.concurrency.max(1),
            grace: settings.grace,
            arrivals,
            resumed: Arc::default(),
        };
        (dispatcher, Arrivals(receiver))
    }

    /// Where intake announces lanes in which something durable has come.
    #[must_use]
    pub fn arrivals(&self) -> mpsc::UnboundedSender<Vec<Lane>> {
        self.arrivals.clone()
    }

    /// The plugins that serve.
    #[must_use]
    pub fn routes(&self) -> Arc<Routes> {
        self.context.routes.load_full()
    }

    /// Lets other plugins, or other versions, serve. Events under way end with the ones they began with.
    pub fn set_routes(&self, routes: Routes) {
        self.context.routes.store(Arc::new(routes));
        if !self.context.paused.load().is_empty() {
            // A paused plugin may be among those that have gone.
            self.resumed.notify_one();
        }
    }

    /// Lets the events of these plugins wait, and no others. What they handle just now they finish.
    pub fn set_paused(&self, plugins: BTreeSet<PluginName>) {
        let before = self.context.paused.swap(Arc::new(plugins));
        if !before.is_empty() {
            self.resumed.notify_one();
        }
    }

    /// The bot's own name, to tell its commands from another bot's.
    pub fn set_username(&self, username: String) {
        self.context.username.store(Some(Arc::new(username)));
    }

    /// Runs until told to stop; then lets what is under way finish within the grace time.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn run(&self, arrivals: Arrivals, mut stop: watch::Receiver<bool>) -> Result<(), store::Error> {
        let timers = tokio::spawn({
            let (context, arrivals, stop) = (self.context.clone(), self.arrivals.clone(), stop.clone());
            async move {
                timers::run(context.store.clone(), context.bot, arrivals, &context.timer_set, stop).await;
            }
        });
        let mut running = JoinSet::new();
        let result = self.turns(arrivals, &mut running, &mut stop).await;
        if result.is_ok() && !running.is_empty() {
            tracing::info!(runs = running.len(), grace = ?self.grace, "waiting for runs to finish");
            let all = async { while running.join_next().await.is_some() {} };
            if tokio::time::timeout(self.grace, all).await.is_err() {
                tracing::warn!(runs = running.len(), "rolled back; these events are handled after the next start");
            }
        }
        running.shutdown().await;
        timers.abort();
        result
    }

    async fn turns(
        &self,
        Arrivals(mut arrivals): Arrivals,
        running: &mut JoinSet<(Turn, Result<Outcome, store::Error>)>,
        stop: &mut watch::Receiver<bool>,
    ) -> Result<(), store::Error> {
        let mut lanes = Lanes::default();
        let mut resting = BinaryHeap::new();
        let mut announced = Vec::new();
        self.find_waiting(&mut lanes).await?;
        loop {
            while running.len() < self.concurrency {
                let Some(turn) = lanes.next() else { break };
                let context = self.context.clone();
                running.spawn(async move { (turn, context.turn(turn.lane).await) });
            }
            metrics::gauge!("botyard_lanes").set(lanes.len() as f64);
            let wake = resting
                .peek()
                .map_or_else(|| Instant::now() + Duration::from_secs(3600), |Reverse(Resting { until, .. })| *until);
            tokio::select! {
                biased;
                () = stopped(stop) => return Ok(()),
                Some(ended) = running.join_next(), if !running.is_empty() => {
                    let mut next = Some(ended);
                    // Whatever else has ended meanwhile, so that the queues are filled once for all of it.
                    while let Some(ended) = next {
                        let (turn, outcome) = ended.expect("a turn catches its panics and is never aborted here");
                        match outcome? {
                            Outcome::Empty => lanes.finished(turn, false),
                            Outcome::Done { more } => lanes.finished(turn, more),
                            // Forgotten here, so that any number of them can wait; it is found again afterwards.
                            Outcome::Paused => lanes.finished(turn, false),
                            Outcome::Rest(rest) => {
                                resting.push(Reverse(Resting { until: Instant::now() + rest, turn }));
                            }
                        }
                        next = running.try_join_next();
                    }
                    if lanes.take_overflow() {
                        self.find_waiting(&mut lanes).await?;
                    }
                }
                () = self.resumed.notified() => self.find_waiting(&mut lanes).await?,
                received = arrivals.recv_many(&mut announced, 256) => {
                    if received == 0 {
                        return Ok(());
                    }
                    for lane in announced.drain(..).flatten() {
                        lanes.arrived(lane);
                    }
                }
                () = tokio::time::sleep_until(wake) => {
                    while resting.peek().is_some_and(|Reverse(resting)| resting.until <= Instant::now()) {
                        if let Some(Reverse(Resting { turn, .. })) = resting.pop() {
                            lanes.finished(turn, true);
                        }
                    }
                }
            }
        }
    }

    /// Looks for lanes in the inbox: at the start, when there were too many to hold, and when a plugin goes on.
    async fn find_waiting(&self, lanes: &mut Lanes) -> Result<(), store::Error> {
        let bot_prefix = inbox::bot_prefix(self.context.bot);
        let end = prefix_end(&bot_prefix);
        let mut from = bot_prefix;
        while let Some(key) = self.context.store.first_key(&from, &end)? {
            let Some((lane, _)) = inbox::parse_key(&key) else {
                from = [&key[..], &[0]].concat();
                continue;
            };
            if !lanes.has_room() {
                lanes.set_overflowed();
                break;
            }
            lanes.arrived(lane);
            from = prefix_end(&inbox::lane_prefix(self.context.bot, lane));
            tokio::task::yield_now().await;
        }
        Ok(())
    }
}

/// Without what `wait_for` hands out, which must not be held while other branches wait.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    // The other end is gone only when everything stops.
    stop.wait_for(|stop| *stop).await.ok();
}

/// A lane whose event is to be tried again later.
#[derive(PartialEq, Eq)]
struct Resting {
    until: Instant,
    turn: Turn,
}

impl Ord for Resting {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.until.cmp(&other.until)
    }
}

impl PartialOrd for Resting {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
