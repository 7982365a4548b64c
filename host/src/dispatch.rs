//! From the inbox to the plugins and back: lanes, router, runs, commit.
//!
//! One loop owns the lanes and decides who is next; every run is a task of its own. The loop never waits for a
//! handler, and intake never waits for the loop: what has no turn yet lies in the inbox on disk. Nothing here
//! sends anything; a run's calls stand in the outbox once it is committed.
//!
//! When the store fails, the loop ends: nothing could be made true any more.

mod age;
mod album;
mod answers;
mod breaker;
mod buttons;
mod chats;
mod claims;
mod control;
mod dead;
mod effects;
mod expiry;
mod explain;
mod failure;
mod health;
mod hot;
mod jobs;
mod journals;
mod lanes;
mod note;
mod offer;
mod open;
mod own;
mod parked;
mod record;
mod recover;
mod rehearse;
mod routes;
mod run;
mod shares;
#[cfg(test)]
mod tests;
mod timers;
mod trace;
mod trial;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior};

use self::claims::{Overdue, Why};
use self::lanes::{Lanes, Turn};
use self::run::{Context, Outcome};
use crate::clock::unix_millis;
use crate::domain::{BotId, EventLane, LaneRule, Part, PluginName};
use crate::plugin::Outbound;
use crate::sender::Sender;
use crate::store::rows::{inbox, prefix_end};
use crate::store::{self, Store};
use crate::whose;

pub use self::dead::DeadLetters;
pub use self::effects::{Broadcast, Call, Change, Effects, Job, Timer};
pub use self::explain::Explained;
pub use self::note::{Note, Row, Said, What};
pub use self::record::{FORM, Line, Notes, Recorder, write};
pub use self::rehearse::{Played, Rehearsal, Scene};
pub use self::routes::{Entry, Routes};
pub use self::timers::next_due as next_timer;
pub use self::trace::Ring as TraceRing;
pub use self::trial::{End, Trial};

/// What whoever owns the plugins should know, or see to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// A version on trial does worse than the one before it.
    Worse {
        /// The plugin.
        plugin: PluginName,
        /// The version on trial.
        version: String,
        /// In which way.
        reason: String,
    },
    /// A run has crashed, and the plugin is paused for it (`on_crash = "pause"`).
    Crashed {
        /// The plugin.
        plugin: PluginName,
    },
    /// One event after another fails: the plugin's events wait for a while.
    Rests {
        /// The plugin.
        plugin: PluginName,
        /// For how long.
        rest: Duration,
        /// Why the last event failed.
        reason: String,
    },
    /// It handles events again.
    Recovered {
        /// The plugin.
        plugin: PluginName,
    },
    /// As many jobs wait as may, and have for long.
    JobsFull {
        /// The plugin.
        plugin: PluginName,
        /// How many.
        waiting: usize,
    },
    /// There is room for more again.
    JobsHaveRoom {
        /// The plugin.
        plugin: PluginName,
    },
}

/// What dispatch is built from.
pub struct Settings {
    /// Runs at the same time.
    pub concurrency: usize,
    /// After so many failed attempts an event becomes a dead letter.
    pub max_attempts: u32,
    /// Jobs that are worked on at the same time.
    pub jobs: usize,
    /// How many dead letters are kept.
    pub dead: DeadLetters,
    /// The locale of users whose language Telegram does not tell.
    pub default_locale: String,
    /// How long runs may go on after the stop signal before they are rolled back.
    pub grace: Duration,
    /// Whoever owns the plugins.
    pub notices: mpsc::UnboundedSender<Notice>,
    /// The command that ends a conversation whatever its handler does.
    pub cancel_command: Option<String>,
    /// What the user is told then, where the plugin has no words for it.
    pub cancel_reply: String,
    /// What somebody is told who presses a button that leads nowhere, where the plugin has no words for it.
    pub stale_button_reply: String,
    /// Plugins are given presses of buttons that this host has not made.
    pub unsealed_buttons: bool,
    /// An album is complete when no message has joined it for so long.
    pub album_quiet: Duration,
    /// An album is waited for no longer than this.
    pub album_wait: Duration,
}

/// How often it is looked for runs that hang.
const LOOK_FOR_HANGING: Duration = Duration::from_secs(1);
/// How often what is remembered of albums is tidied up.
const SWEEP: Duration = Duration::from_secs(3600);

/// Hands events to plugins. Cheap to clone; [`Dispatcher::run`] does the work.
#[derive(Clone)]
pub struct Dispatcher {
    context: Arc<Context>,
    concurrency: usize,
    jobs: usize,
    grace: Duration,
    arrivals: mpsc::UnboundedSender<Vec<EventLane>>,
    lanes: watch::Sender<LaneRule>,
}

/// The receiving end of [`Dispatcher::arrivals`]; goes into [`Dispatcher::run`].
pub struct Arrivals(mpsc::UnboundedReceiver<Vec<EventLane>>);

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
        let shares = shares::Shares::new(settings.concurrency.max(1));
        shares.set_plugins(routes.entries().len());
        let lanes = watch::Sender::new(LaneRule { key: routes.key(), cancel: settings.cancel_command });
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
            breakers: std::sync::Mutex::default(),
            notices: settings.notices,
            resumed: Arc::default(),
            journals: std::sync::Mutex::default(),
            timer_set: Arc::default(),
            recorder: Recorder::default(),
            played: arc_swap::ArcSwapOption::empty(),
            jobs_changed: Arc::default(),
            dead_letters: settings.dead,
            dead_added: Arc::default(),
            claims: claims::Claims::default(),
            shares,
            patience: album::Patience { quiet: settings.album_quiet, wait: settings.album_wait, since: unix_millis() },
            cancel_reply: settings.cancel_reply,
            stale_button_reply: settings.stale_button_reply,
            unsealed_buttons: settings.unsealed_buttons,
            expiry: Arc::default(),
            traces: trace::Traces::default(),
        };
        let dispatcher = Self {
            context: Arc::new(context),
            concurrency: settings.concurrency.max(1),
            jobs: settings.jobs.max(1),
            grace: settings.grace,
            arrivals,
            lanes,
        };
        (dispatcher, Arrivals(receiver))
    }

    /// Where intake announces lanes in which something durable has come.
    #[must_use]
    pub fn arrivals(&self) -> mpsc::UnboundedSender<Vec<EventLane>> {
        self.arrivals.clone()
    }

    /// How intake is to choose lanes: follows the plugins.
    #[must_use]
    pub fn lanes(&self) -> watch::Receiver<LaneRule> {
        self.lanes.subscribe()
    }

    /// To be told where jobs were queued, cancelled or changed from outside.
    #[must_use]
    pub fn jobs_changed(&self) -> Arc<Notify> {
        self.context.jobs_changed.clone()
    }

    /// The plugins that serve.
    #[must_use]
    pub fn routes(&self) -> Arc<Routes> {
        self.context.routes.load_full()
    }

    /// Lets other plugins, or other versions, serve. Events under way end with the ones they began with. Answers with the
    /// plugins whose rest is over, since another version of them, or none, serves from now on.
    pub fn set_routes(&self, routes: Routes) -> Vec<PluginName> {
        let (key, routes) = (routes.key(), Arc::new(routes));
        let versions = |routes: &Routes| routes.entries().iter().flat_map(Entry::versions).cloned().collect::<Vec<_>>();
        // First of all: where one of these meets a state of those that come, it must not make it its own.
        versions(&self.context.routes.load()).iter().for_each(|plugin| plugin.set_retired(true));
        versions(&routes).iter().for_each(|plugin| plugin.set_retired(false));
        self.context.shares.set_plugins(routes.entries().len());
        let before = self.context.routes.swap(routes.clone());
        self.lanes.send_modify(|rule| rule.key = key);
        self.context.timer_set.notify_one();
        // Another version begins anew.
        self.context.jobs_changed.notify_one();
        let rested = self.context.end_rests(&before, &routes);
        if !rested.is_empty() || !self.context.paused.load().is_empty() {
            // A paused plugin may be among those that have gone.
            self.context.resumed.notify_one();
        }
        rested
    }

    /// Whether the plugin has been given a rest for its failures, and has handled nothing since.
    #[must_use]
    pub fn has_rest(&self, plugin: &PluginName) -> bool {
        self.context.has_rest(plugin)
    }

    /// Lets the events of these plugins wait, and no others. What they handle just now they finish.
    pub fn set_paused(&self, plugins: BTreeSet<PluginName>) {
        let before = self.context.paused.swap(Arc::new(plugins));
        if !before.is_empty() {
            self.context.jobs_changed.notify_one();
            self.context.resumed.notify_one();
        }
    }

    /// Whether the plugin's events wait for an operator.
    #[must_use]
    pub fn is_paused(&self, plugin: &PluginName) -> bool {
        self.context.paused.load().contains(plugin)
    }

    /// Whoever takes notes of the runs.
    #[must_use]
    pub fn recorder(&self) -> Recorder {
        self.context.recorder.clone()
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
        self.context.have_seal().await?;
        let mut helpers = JoinSet::new();
        helpers.spawn(whose::same(timers::run(self.context.clone(), self.arrivals.clone(), stop.clone())));
        helpers.spawn(whose::same(expiry::run(self.context.clone(), self.arrivals.clone(), stop.clone())));
        helpers.spawn({
            let context = self.context.clone();
            whose::same(async move {
                loop {
                    if let Err(error) = album::sweep(&context.store, context.bot).await {
                        tracing::error!(%error, "what is remembered of albums can't be tidied up");
                    }
                    tokio::time::sleep(SWEEP).await;
                }
            })
        });
        helpers.spawn(whose::same(dead::run(self.context.clone())));
        // Ended by itself when everything stops; a failure of the store ends the turns as well.
        let mut jobs = tokio::spawn(whose::same(jobs::run(self.context.clone(), self.jobs, self.grace, stop.clone())));
        let mut running = JoinSet::new();
        let (result, jobs_ended) = {
            let turns = self.turns(arrivals, &mut running, &mut stop);
            tokio::pin!(turns);
            tokio::select! {
                result = &mut turns => (result, false),
                ended = &mut jobs => match ended {
                    Ok(Ok(())) => (turns.await, true),
                    Ok(Err(error)) => (Err(error), true),
                    // Whatever waits would wait for ever.
                    Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
                    Err(_) => (turns.await, true),
                },
                never = broken(&mut helpers) => match never {},
            }
        };
        if result.is_ok() && !running.is_empty() {
            tracing::info!(runs = running.len(), grace = ?self.grace, "waiting for runs to finish");
            let all = async { while running.join_next().await.is_some() {} };
            if tokio::time::timeout(self.grace, all).await.is_err() {
                tracing::warn!(runs = running.len(), "rolled back; these events are handled after the next start");
            }
        }
        // One whose thread hangs never ends, and must not keep the host from it.
        tokio::time::timeout(claims::SLACK, running.shutdown()).await.ok();
        helpers.abort_all();
        let result = if result.is_err() || jobs_ended {
            jobs.abort();
            result
        } else {
            jobs.await.unwrap_or(result)
        };
        self.context.recorder.close();
        result
    }

    async fn turns(
        &self,
        Arrivals(mut arrivals): Arrivals,
        running: &mut JoinSet<Ended>,
        stop: &mut watch::Receiver<bool>,
    ) -> Result<(), store::Error> {
        let mut lanes = Lanes::default();
        let mut resting = BinaryHeap::new();
        let mut crowds = BTreeMap::<PluginName, VecDeque<Turn>>::new();
        let mut announced = Vec::new();
        let mut turns = Turns::default();
        let mut look = tokio::time::interval(LOOK_FOR_HANGING);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        self.find_waiting(&mut lanes).await?;
        loop {
            // What users order the host itself to do takes no place: it is for when all of them are taken.
            while let Some(turn) = lanes.next_control() {
                self.begin(turn, &mut turns, running);
            }
            while running.len() - turns.control < self.concurrency {
                // Whoever has waited for a place first.
                let Some(turn) = self.next_of_crowd(&mut crowds).or_else(|| lanes.next()) else { break };
                self.begin(turn, &mut turns, running);
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
                        let (number, outcome) = ended.expect("a turn catches its panics and is never aborted here");
                        next = running.try_join_next();
                        // One that was given up has come back after all.
                        let Some(turn) = turns.ended(number) else { continue };
                        self.context.shares.release(turn.lane);
                        match outcome? {
                            Outcome::Empty => lanes.finished(turn, false),
                            Outcome::Done { more } => lanes.finished(turn, more),
                            // Forgotten here, so that any number of them can wait; it is found again afterwards.
                            Outcome::Paused => lanes.finished(turn, false),
                            Outcome::Crowded(plugin) => {
                                let crowd = crowds.entry(plugin.clone()).or_default();
                                crowd.push_back(turn);
                                tell_crowd(&plugin, crowd.len());
                            }
                            Outcome::Rest(rest) => {
                                resting.push(Reverse(Resting { until: Instant::now() + rest, turn }));
                            }
                            Outcome::Freed { more, lanes: freed } => {
                                lanes.finished(turn, more);
                                resting.retain(|Reverse(Resting { turn, .. })| {
                                    let stays = !freed.contains(&turn.lane);
                                    if !stays {
                                        lanes.finished(*turn, true);
                                    }
                                    stays
                                });
                                for crowd in crowds.values_mut() {
                                    crowd.retain(|turn| {
                                        let stays = !freed.contains(&turn.lane);
                                        if !stays {
                                            lanes.finished(*turn, true);
                                        }
                                        stays
                                    });
                                }
                            }
                        }
                    }
                    if lanes.take_overflow() {
                        self.find_waiting(&mut lanes).await?;
                    }
                }
                _ = look.tick() => self.look_for_hanging(&mut turns, running),
                () = self.context.resumed.notified() => self.find_waiting(&mut lanes).await?,
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

    /// A turn for a plugin that had its share of the places before, and may have another one now; it has it already.
    fn next_of_crowd(&self, crowds: &mut BTreeMap<PluginName, VecDeque<Turn>>) -> Option<Turn> {
        let mut found = crowds.iter_mut().filter_map(|(plugin, crowd)| {
            let turn = crowd.pop_front_if(|turn| self.context.shares.take(turn.lane, plugin))?;
            Some((plugin.clone(), crowd.len(), turn))
        });
        let (plugin, left, turn) = found.next()?;
        tell_crowd(&plugin, left);
        if left == 0 {
            crowds.remove(&plugin);
        }
        Some(turn)
    }

    fn begin(&self, turn: Turn, turns: &mut Turns, running: &mut JoinSet<Ended>) {
        let (number, context) = (turns.begun(turn), self.context.clone());
        running.spawn(whose::same(async move { (number, context.turn(number, turn.lane).await) }));
    }

    /// Ends runs that are beyond all limits, and gives up those that don't even end then, so that their lanes go on.
    fn look_for_hanging(&self, turns: &mut Turns, running: &mut JoinSet<Ended>) {
        for Overdue { turn, lane, event, run, is_deaf } in self.context.claims.overdue(Instant::now()) {
            let plugin = &run.plugin;
            metrics::counter!("botyard_watchdog_total", "outcome" => if is_deaf { "given_up" } else { "ended" })
                .increment(1);
            if !is_deaf {
                tracing::error!(%plugin, event, %lane, "a run hangs far beyond its time limit, and is ended");
                self.context.claims.end(turn, Why::Wedged);
                continue;
            }
            tracing::error!(%plugin, event, %lane, "a run hangs and can't be ended; its lane goes on without it");
            self.context.claims.forget(turn);
            let Some(given_up) = turns.ended(turn) else { continue };
            let (number, context) = (turns.begun(given_up), self.context.clone());
            running.spawn(whose::same(async move { (number, context.give_up(lane, event, run).await) }));
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

fn tell_crowd(plugin: &PluginName, lanes: usize) {
    metrics::gauge!("botyard_crowd", "plugin" => plugin.to_string()).set(lanes as f64);
}

/// Without what `wait_for` hands out, which must not be held while other branches wait.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    // The other end is gone only when everything stops.
    stop.wait_for(|stop| *stop).await.ok();
}

/// A turn's number, and what came of it.
type Ended = (u64, Result<Outcome, store::Error>);

/// The turns under way.
#[derive(Default)]
struct Turns {
    next: u64,
    turns: HashMap<u64, Turn>,
    /// Those that no plugin runs in.
    control: usize,
}

impl Turns {
    fn begun(&mut self, turn: Turn) -> u64 {
        self.next += 1;
        self.turns.insert(self.next, turn);
        self.control += usize::from(matches!(turn.lane.part, Part::Control(_)));
        self.next
    }

    /// None for one that was given up.
    fn ended(&mut self, number: u64) -> Option<Turn> {
        let turn = self.turns.remove(&number)?;
        self.control -= usize::from(matches!(turn.lane.part, Part::Control(_)));
        Some(turn)
    }
}

/// Passes the panic of one of the tasks on: a bot whose timers stand still must be seen failing. That they end is the stop.
async fn broken(helpers: &mut JoinSet<()>) -> Infallible {
    while let Some(ended) = helpers.join_next().await {
        if let Err(error) = ended
            && error.is_panic()
        {
            std::panic::resume_unwind(error.into_panic());
        }
    }
    std::future::pending().await
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
