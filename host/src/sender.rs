//! Drains the outbox: calls that are committed go to Telegram in order per chat, as fast as the limits allow.
//!
//! - One task ([`Sender::run`]) owns the order: a lane per chat, one call of a lane in flight, lanes taking
//!   turns, interactive before normal before bulk. `schedule` decides, given the time; `run` does.
//! - Answers to queries, which expire within seconds, keep to no limit; reads that a plugin waits for neither.
//! - A flood in one chat stops that chat alone, until the time that Telegram gave; the row remembers it over a
//!   restart. After it the chat has half its rate, and a tenth more with every minute that goes well. Trouble of the network or the server is tried again, with the lane waiting.
//! - A row leaves the store once Telegram has answered it. A crash in between sends it again: the Bot API has
//!   no way to tell that a call was made before. Only a call that is to be made at most once is marked on disk
//!   before it begins, and not made again.
//! - Of the edits of one message that wait together, only the last is made. Chat actions are made at once or not at
//!   all; they have no rows.
//! - A pressed button that has no answer after a while is acknowledged; a chat action is kept up for as long as
//!   somebody works.
//! - A text whose markup Telegram can't read is sent once more without it, where that is wanted.
//! - Every row ends as delivered, refused, expired or unknown. The last two are kept in a ledger for the operator.
//! - Memory holds the lanes, not the rows: these are read when it is their turn.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::chats::Chats;
use crate::domain::{BotId, Lane, PluginName};
use crate::files::Files;
use crate::store::rows::file::Hash;
use crate::store::rows::outbox::Priority;
use crate::store::rows::unknown::UnknownRow;
use crate::store::{self, Store};
use crate::telegram::{Client, lane_of};

mod acknowledge;
mod acting;
mod action;
mod attempt;
mod backlog;
pub(crate) mod broadcast;
mod decide;
mod direct;
mod downloads;
mod edits;
mod floods;
mod ledger;
mod outbound;
mod outbox;
mod run;
mod schedule;
#[cfg(test)]
mod tests;
mod underway;
mod uploads;
mod weight;

pub use acknowledge::{METHOD, acknowledgement};
pub use action::is_chat_action;
use action::{Action, Reply};
use backlog::Waiting;
use direct::Direct;
use downloads::Downloads;
pub use outbox::{Cancelled, LaneView};
use uploads::Uploads;

/// How long one attempt may take, from connecting to the answer's last byte. Slower than Telegram gets in a
/// busy channel.
const CALL_DEADLINE: Duration = Duration::from_secs(35);

/// The rates to keep to; 0 lifts a limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SendSettings {
    /// All calls together, answers to queries excepted.
    pub overall_per_second: f64,
    /// One private chat.
    pub chat_per_second: f64,
    /// One group or channel.
    pub group_per_minute: f64,
    /// All bulk calls together.
    pub bulk_per_second: f64,
    /// All paid calls of broadcasts together.
    pub paid_per_second: f64,
}

impl Default for SendSettings {
    fn default() -> Self {
        Self {
            overall_per_second: 30.0,
            chat_per_second: 1.0,
            group_per_minute: 20.0,
            bulk_per_second: 25.0,
            paid_per_second: 1000.0,
        }
    }
}

/// The one who sends. Clones are cheap and share the state.
#[derive(Clone)]
pub struct Sender {
    shared: Arc<Shared>,
}

struct Shared {
    store: Store,
    client: Arc<Client>,
    bot: BotId,
    inbox: Mutex<Inbox>,
    /// Wakes the task when something lies in the inbox.
    wake: Notify,
    token_refused: watch::Sender<bool>,
    /// Pressed buttons without an answer.
    queries: acknowledge::Queries,
    /// Tells the marks of this process from those of an earlier one; never 0.
    process: u64,
    /// None where no files are sent or fetched.
    uploads: Option<Uploads>,
    downloads: Downloads,
    /// Calls in flight that don't count as such: they wait for an upload.
    aside: Arc<AtomicUsize>,
    chats: Chats,
    /// Chats that have to wait for long, and until when.
    long_floods: watch::Sender<BTreeMap<Lane, Instant>>,
    under_way: underway::UnderWay,
}

/// What waits for the task.
struct Inbox {
    /// What was in the outbox before anything of this process was; taken once.
    backlog: Option<Result<Vec<Waiting>, store::Error>>,
    committed: Vec<(Lane, u64, Priority)>,
    direct: VecDeque<(Lane, Direct)>,
    actions: Vec<Action>,
    /// Calls with an unknown outcome that were not the task's own.
    unknown: Vec<UnknownRow>,
    /// Something else is wanted of broadcasts.
    broadcasts: bool,
    /// What an operator asks of calls that wait.
    questions: Vec<outbox::Question>,
    /// New limits for plugins' broadcasts.
    shares: Option<BTreeMap<PluginName, u32>>,
    /// How many calls with an unknown outcome the operator has removed.
    unknown_dropped: u64,
    settings: SendSettings,
    /// The task has ended, or was never to begin: nobody will take anything any more.
    closed: bool,
}

/// Whoever waits for an answer, or asks from now on, gets none: also where the task that sends ends by a panic.
struct Closed<'a>(&'a Sender);

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        let mut inbox = self.0.shared.inbox();
        inbox.closed = true;
        inbox.direct.clear();
        inbox.actions.clear();
        inbox.questions.clear();
    }
}

impl Shared {
    fn inbox(&self) -> std::sync::MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn refuse_token(&self, refused: bool) {
        self.token_refused.send_if_modified(|now| std::mem::replace(now, refused) != refused);
    }
}

impl Sender {
    /// A sender for the outbox of a bot.
    ///
    /// To be made before anything commits calls: it looks here for what an earlier process left (a second or
    /// less for 100,000 chats); what comes later, [`Sender::committed`] tells.
    #[must_use]
    pub fn new(
        store: Store,
        client: Arc<Client>,
        bot: BotId,
        chats: Chats,
        settings: SendSettings,
        files: Option<Files>,
    ) -> Self {
        let inbox = Inbox {
            backlog: Some(backlog::read(&store, bot)),
            committed: Vec::new(),
            direct: VecDeque::new(),
            actions: Vec::new(),
            unknown: Vec::new(),
            broadcasts: false,
            questions: Vec::new(),
            shares: None,
            unknown_dropped: 0,
            settings,
            closed: false,
        };
        let (token_refused, _) = watch::channel(false);
        let (inbox, process) = (Mutex::new(inbox), rand::random::<u64>().max(1));
        let shared = Shared {
            store,
            client,
            bot,
            inbox,
            wake: Notify::new(),
            token_refused,
            queries: acknowledge::Queries::default(),
            process,
            uploads: files.map(Uploads::new),
            downloads: Downloads::default(),
            aside: Arc::default(),
            chats,
            long_floods: watch::channel(BTreeMap::new()).0,
            under_way: underway::UnderWay::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Sends until told to stop: then begins nothing new, gives what is in flight a short time to end, and
    /// answers direct calls that wait. To be called once.
    ///
    /// # Errors
    /// When the store can't be read at the start: then nothing is sent. A panic of a call is passed on.
    pub async fn run(&self, stop: watch::Receiver<bool>) -> Result<(), store::Error> {
        let _closed = Closed(self);
        tokio::select! {
            ended = run::run(&self.shared, stop.clone()) => ended,
            () = async {
                acknowledge::run(&self.shared, stop).await;
                std::future::pending().await
            } => Ok(()),
        }
    }

    /// What queued calls needed of files that are gone from the store, durably, by whoever took them out.
    pub fn let_go(&self, hashes: impl IntoIterator<Item = Hash>) {
        if let Some(uploads) = &self.shared.uploads {
            uploads.files.let_go(hashes);
        }
    }

    /// Nothing is to be kept of direct calls of which this is true, those under way as well as those that ended just now.
    pub fn forget(&self, is_of: impl Fn(&UnknownRow) -> bool) {
        self.shared.inbox().unknown.retain(|row| !is_of(row));
        self.shared.under_way.forget(is_of);
    }

    /// Tells of rows that are durable now, those of a lane in order. Never blocks.
    pub fn committed(&self, rows: impl IntoIterator<Item = (Lane, u64, Priority)>) {
        self.shared.inbox().committed.extend(rows);
        self.shared.wake.notify_one();
    }

    /// Tells that something else is wanted of broadcasts, and durable. Never blocks.
    pub fn broadcasts_changed(&self) {
        self.shared.inbox().broadcasts = true;
        self.shared.wake.notify_one();
    }

    /// Tells that so many calls with an unknown outcome were looked after and removed. Never blocks.
    pub fn unknown_dropped(&self, count: u64) {
        self.shared.inbox().unknown_dropped += count;
        self.shared.wake.notify_one();
    }

    /// How many recipients the broadcasts of each of these plugins may reach in a minute; 0 for no limit.
    pub fn limit_bulk(&self, most: BTreeMap<PluginName, u32>) {
        self.shared.inbox().shares = Some(most);
        self.shared.wake.notify_one();
    }

    /// Makes chat actions with these parameters, at once or not at all. Never blocks.
    pub fn act(&self, actions: impl IntoIterator<Item = String>) {
        for params in actions {
            self.act_now(lane_of(action::METHOD, &params), params.into(), None);
        }
    }

    /// False if nobody makes any actions any more.
    fn act_now(&self, lane: Lane, params: Bytes, reply: Option<Reply>) -> bool {
        let mut inbox = self.shared.inbox();
        if !inbox.closed {
            inbox.actions.push(Action { lane, params, reply });
            self.shared.wake.notify_one();
        }
        !inbox.closed
    }

    /// Keeps to other rates from now on.
    pub fn reconfigure(&self, settings: SendSettings) {
        self.shared.inbox().settings = settings;
        self.shared.wake.notify_one();
    }

    /// What is known of chats.
    #[must_use]
    pub fn chats(&self) -> &Chats {
        &self.shared.chats
    }

    /// Chats that Telegram makes wait for longer than five minutes, and until when.
    #[must_use]
    pub fn long_floods(&self) -> watch::Receiver<BTreeMap<Lane, Instant>> {
        self.shared.long_floods.subscribe()
    }

    /// True while Telegram refuses the token: all calls wait then, but for one now and then that tries.
    #[must_use]
    pub fn token_refused(&self) -> watch::Receiver<bool> {
        self.shared.token_refused.subscribe()
    }
}
