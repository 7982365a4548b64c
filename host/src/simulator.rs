//! The simulated Telegram: a real HTTP server that plays the Bot API, with people, chats and a chat page.
//!
//! A bot can't tell it from Telegram by its answers: `getUpdates` has Telegram's offsets and conflicts, messages
//! their ids and entities, refusals their words. Tests and people play the other side, through [`Simulator`],
//! through `/sim/…` or on the page at `/`. Faults ([`Fault`]) happen on the real socket.
//!
//! It knows no other part of the host. It reaches no network: addresses that a bot sends are never fetched, and a
//! webhook is called only on this machine. By default it should listen on 127.0.0.1 only; it has no passwords.

mod api;
mod bulk;
mod calls;
mod cast;
mod entities;
mod error;
mod events;
mod faults;
mod files;
mod http;
mod hub;
mod insight;
mod model;
mod page;
mod params;
mod people;
mod persist;
mod poll;
mod queries;
mod render;
mod sim_api;
mod socket;
#[cfg(test)]
mod tests;
mod updates;
mod webhook;
mod world;

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub use bulk::Bulk;
pub use calls::Call;
pub use cast::{ALICE, BOTIR, CHANNEL, CHIARA, DIEGO, FORUM, GROUP, NOOR};
pub use error::Error;
pub use faults::{Action, Fault, Rule};
pub use files::Uploaded;
pub use insight::Insight;
pub use model::{Chat, ChatKind, Entity, Message, Sender, Topic, User};
pub use people::{Done, MoveNote, Say};
pub use queries::Query;

use hub::Hub;
use webhook::Webhook;
use world::{Bot, LoadMode, World};

/// How to start one.
#[derive(Clone)]
pub struct SimulatorSettings {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The only token that is accepted; without it every well-formed one is, and all are the same bot.
    pub token: Option<String>,
    /// Where the chats are kept over restarts.
    pub state_file: Option<PathBuf>,
    /// The bot's name.
    pub bot_name: String,
    /// The bot's username.
    pub bot_username: String,
    /// How many updates may wait; Telegram keeps 100,000 and drops what comes then.
    pub queue_limit: usize,
    /// How many messages of a chat are kept.
    pub messages_per_chat: usize,
    /// Slow down polls that repeat an offset within three seconds, as Telegram does.
    pub throttle_polls: bool,
    /// Play a local server, run with `--local`: it takes files of up to 2,000 MB, and `getFile` puts them here and answers
    /// with their paths.
    pub local_files: Option<PathBuf>,
    /// How long a second takes in the pauses between deliveries to a webhook: less, for tests.
    pub webhook_second: Duration,
    /// Whoever puts the simulated clock ahead moves this process's clock along: for the bot that runs in it.
    pub moves_clock: bool,
}

impl fmt::Debug for SimulatorSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the token: it may be a real one.
        let Self { listen, state_file, bot_username, .. } = self;
        f.debug_struct("SimulatorSettings")
            .field("listen", listen)
            .field("state_file", state_file)
            .field("bot_username", bot_username)
            .finish_non_exhaustive()
    }
}

impl Default for SimulatorSettings {
    fn default() -> Self {
        let limits = world::Limits::default();
        Self {
            listen: (Ipv4Addr::LOCALHOST, 0).into(),
            token: None,
            state_file: None,
            bot_name: "Botyard".to_owned(),
            bot_username: "botyard_bot".to_owned(),
            queue_limit: limits.queue,
            messages_per_chat: limits.messages_per_chat,
            throttle_polls: limits.throttle_polls,
            local_files: limits.local_files,
            webhook_second: limits.webhook_second,
            moves_clock: false,
        }
    }
}

/// A running simulator. Clones are handles on the same one; it stops with [`Simulator::stop`], or when the last of
/// them is dropped (then without a last save).
#[derive(Clone)]
pub struct Simulator {
    running: Arc<Running>,
}

struct Running {
    hub: Arc<Hub>,
    addr: SocketAddr,
    stop: watch::Sender<bool>,
    server: Mutex<Option<JoinHandle<()>>>,
    saver: Mutex<Option<JoinHandle<Result<(), Error>>>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}

impl Simulator {
    /// Starts one on the current runtime.
    pub async fn start(settings: SimulatorSettings) -> Result<Self, Error> {
        let bot_id = match &settings.token {
            Some(token) => hub::bot_id(token).ok_or(Error::Token)?,
            None => 123_456,
        };
        let path = settings.state_file.clone();
        let loaded = path.as_deref().map(persist::load).transpose()?.flatten();
        let mut world = loaded.unwrap_or_else(|| {
            let mut world = World::new(Bot { id: bot_id, name: String::new(), username: String::new() });
            cast::enter(&mut world);
            world
        });
        world.bot = Bot { id: bot_id, name: settings.bot_name, username: settings.bot_username };
        world.limits.queue = settings.queue_limit;
        world.limits.messages_per_chat = settings.messages_per_chat;
        world.limits.throttle_polls = settings.throttle_polls;
        world.limits.local_files = settings.local_files;
        world.limits.webhook_second = settings.webhook_second;
        if let Some(path) = &path {
            persist::save(path, &world, false)?;
        }
        let refused = |source| Error::Listen { addr: settings.listen, source };
        let listener = TcpListener::bind(settings.listen).await.map_err(refused)?;
        let addr = listener.local_addr().map_err(refused)?;
        let hub = Hub::new(world, settings.token, settings.moves_clock);
        let (stop, stopped) = watch::channel(false);
        let saver = path.map(|path| tokio::spawn(persist::keep_saved(hub.clone(), path, stopped.clone())));
        tokio::spawn(webhook::deliver(hub.clone(), stopped.clone()));
        let server = tokio::spawn(http::serve(listener, hub.clone(), stopped));
        let (server, saver) = (Mutex::new(Some(server)), Mutex::new(saver));
        Ok(Self { running: Arc::new(Running { hub, addr, stop, server, saver }) })
    }

    /// Closes every connection and saves the state. Once it returns, the port is free.
    pub async fn stop(&self) -> Result<(), Error> {
        let take =
            |handle: &Mutex<Option<JoinHandle<()>>>| handle.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.running.stop.send_replace(true);
        if let Some(server) = take(&self.running.server) {
            drop(server.await);
        }
        let saver = self.running.saver.lock().unwrap_or_else(PoisonError::into_inner).take();
        match saver {
            Some(saver) => saver.await.expect("saving does not panic"),
            None => Ok(()),
        }
    }

    /// Where it listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.running.addr
    }

    /// For `api_base`: what comes before `/bot<token>/…`.
    #[must_use]
    pub fn api_base(&self) -> String {
        format!("http://{}", self.addr())
    }

    /// The chat page.
    #[must_use]
    pub fn page_url(&self) -> String {
        format!("http://{}/", self.addr())
    }

    fn hub(&self) -> &Hub {
        &self.running.hub
    }

    // What people do.

    /// A user writes in a chat; answers the update's id.
    ///
    /// The text is trimmed as clients do. A kind of update that the bot has not asked for (`allowed_updates`) is
    /// [`Error::Unwanted`]; the message is there all the same.
    pub fn user_says(&self, chat: i64, user: i64, text: &str) -> Result<i64, Error> {
        let text = text.to_owned();
        self.say(&Say { chat, user, text, ..Say::default() })?.wanted()
    }

    /// The same with topic or reply, and with all that came of it.
    pub fn say(&self, say: &Say) -> Result<Done, Error> {
        people::say(&mut self.hub().world(), say)
    }

    /// A user presses an inline button, given by its callback data or label; without a message, on the newest that
    /// has it. The answer's `query_id` is for [`Simulator::query`].
    pub fn user_presses(&self, chat: i64, user: i64, message: Option<i64>, button: &str) -> Result<Done, Error> {
        people::press(&mut self.hub().world(), chat, user, message, button)
    }

    /// A user with a client that was made for it presses a button of a message, with any callback data.
    pub fn user_forges(&self, chat: i64, user: i64, message: i64, data: &str) -> Result<Done, Error> {
        people::forge(&mut self.hub().world(), chat, user, message, data)
    }

    /// A user edits a message.
    pub fn edit_message(&self, chat: i64, user: i64, message: i64, text: &str) -> Result<i64, Error> {
        people::edit(&mut self.hub().world(), chat, user, message, text)?.wanted()
    }

    /// A user types an inline query.
    pub fn user_asks_inline(&self, user: i64, query: &str) -> Result<Done, Error> {
        people::inline::ask(&mut self.hub().world(), user, query, None)
    }

    /// A user votes in the newest poll of a chat that has this option.
    pub fn user_votes(&self, chat: i64, user: i64, option: &str) -> Result<Done, Error> {
        people::polls::vote_for(&mut self.hub().world(), chat, user, option)
    }

    /// A user blocks the bot, or throws it out of a group; or takes it back.
    pub fn set_blocked(&self, chat: i64, user: i64, blocked: bool) -> Result<Done, Error> {
        people::set_blocked(&mut self.hub().world(), chat, user, blocked)
    }

    /// Somebody joins a supergroup or channel by a link that asks first.
    pub fn user_asks_to_join(&self, chat: i64, user: i64) -> Result<Done, Error> {
        people::members::ask_to_join(&mut self.hub().world(), chat, user, None)
    }

    /// Somebody joins a group by a link, or leaves it.
    pub fn user_joins(&self, chat: i64, user: i64, is_in: bool) -> Result<Done, Error> {
        let standing = if is_in { people::members::Standing::Member } else { people::members::Standing::Left };
        people::members::set(&mut self.hub().world(), chat, user, user, standing, false)
    }

    /// Makes a supergroup of a group; answers its id.
    pub fn upgrade_group(&self, group: i64) -> Result<i64, Error> {
        self.move_group(group, &[MoveNote::To, MoveNote::From])
    }

    /// The same with these words about it, each as often and in the order as given.
    ///
    /// # Errors
    /// When there is no such group.
    pub fn move_group(&self, group: i64, notes: &[MoveNote]) -> Result<i64, Error> {
        people::upgrade(&mut self.hub().world(), group, notes)
    }

    /// Any update, as it is, but for its `update_id`. It may be one that no client could read.
    pub fn raw_update(&self, update: Value) -> Result<i64, Error> {
        people::raw_update(&mut self.hub().world(), update)?.wanted()
    }

    /// Adds a user, with a private chat.
    pub fn add_user(&self, user: User) {
        self.hub().world().add_user(user);
    }

    /// Adds a chat that the bot is in.
    pub fn add_chat(&self, chat: Chat) {
        self.hub().world().chats.insert(chat.id, chat);
    }

    // What the bot did.

    /// Everybody.
    #[must_use]
    pub fn users(&self) -> Vec<User> {
        self.hub().look().users.values().cloned().collect()
    }

    /// All chats, without their messages.
    #[must_use]
    pub fn chats(&self) -> Vec<Chat> {
        let world = self.hub().look();
        let without_messages = |chat: &Chat| Chat {
            username: chat.username.clone(),
            admins: chat.admins.clone(),
            topics: chat.topics.clone(),
            ..Chat::new(chat.id, chat.kind, &chat.title, &chat.members)
        };
        world.chats.values().map(without_messages).collect()
    }

    /// The messages of a chat, the oldest first.
    #[must_use]
    pub fn messages(&self, chat: i64) -> Vec<Message> {
        let world = self.hub().look();
        world.chats.get(&chat).map(|chat| chat.messages.iter().cloned().collect()).unwrap_or_default()
    }

    /// Those of the bot.
    #[must_use]
    pub fn bot_messages(&self, chat: i64) -> Vec<Message> {
        let mut messages = self.messages(chat);
        messages.retain(Message::is_from_bot);
        messages
    }

    /// Waits until the bot has sent `n` messages to a chat, counted from the beginning; answers those that are kept.
    pub async fn wait_for_messages(&self, chat: i64, n: u64, timeout: Duration) -> Result<Vec<Message>, Error> {
        let enough = self.wait_until(timeout, || self.delivered(chat) >= n).await;
        let got = self.delivered(chat);
        if enough { Ok(self.bot_messages(chat)) } else { Err(Error::TooFew { chat, got, wanted: n }) }
    }

    /// Waits until something is so; looks again whenever the bot has done something. False if time ran out.
    pub async fn wait_until(&self, timeout: Duration, mut so: impl FnMut() -> bool) -> bool {
        let deadline = tokio::time::Instant::now() + timeout;
        loop {
            let changed = self.hub().signals.activity.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if so() {
                return true;
            }
            if tokio::time::timeout_at(deadline, changed).await.is_err() {
                return so();
            }
        }
    }

    /// How many messages the bot has sent to a chat, deleted ones too.
    #[must_use]
    pub fn delivered(&self, chat: i64) -> u64 {
        self.hub().look().chats.get(&chat).map_or(0, |chat| chat.delivered)
    }

    /// How many to all chats.
    #[must_use]
    pub fn delivered_in_all(&self) -> u64 {
        self.hub().look().chats.values().map(|chat| chat.delivered).sum()
    }

    /// The text that the bot sent last to a chat.
    #[must_use]
    pub fn last_text(&self, chat: i64) -> Option<String> {
        self.hub().look().chats.get(&chat)?.last_text.as_deref().map(str::to_owned)
    }

    /// All texts of the bot in a chat in order of arrival, while load mode keeps them.
    #[must_use]
    pub fn sequence(&self, chat: i64) -> Vec<String> {
        let world = self.hub().look();
        world
            .chats
            .get(&chat)
            .map(|chat| chat.sequence.iter().map(|text| text.to_string()).collect())
            .unwrap_or_default()
    }

    /// The calls that are kept (the newest 20,000, none in load mode), in order of arrival.
    #[must_use]
    pub fn calls(&self) -> Vec<Call> {
        self.hub().look().calls.since(0)
    }

    /// Those of one method, in any case.
    #[must_use]
    pub fn calls_of(&self, method: &str) -> Vec<Call> {
        let mut calls = self.calls();
        calls.retain(|call| call.method.eq_ignore_ascii_case(method));
        calls
    }

    /// How often a method was called, as the bot spells it; counted in load mode too.
    #[must_use]
    pub fn call_count(&self, method: &str) -> u64 {
        self.hub().look().calls.counts().get(method).copied().unwrap_or(0)
    }

    /// The files that came with calls (the newest 10,000), in order of arrival.
    #[must_use]
    pub fn uploads(&self) -> Vec<Uploaded> {
        self.hub().look().files.uploaded.iter().cloned().collect()
    }

    /// What became of a pressed button or another query.
    #[must_use]
    pub fn query(&self, id: &str) -> Option<Query> {
        self.hub().look().queries.get(id).cloned()
    }

    /// How many updates wait.
    #[must_use]
    pub fn waiting_updates(&self) -> usize {
        self.hub().look().queue.len()
    }

    /// Where the bot's webhook leads, if one is set.
    #[must_use]
    pub fn webhook(&self) -> Option<String> {
        self.hub().look().webhook.as_ref().map(|webhook| webhook.url.clone())
    }

    /// Sets a webhook in the bot's name, or removes it, as another program would.
    pub fn set_webhook(&self, url: Option<&str>) {
        let webhook = url.map(|url| Webhook { url: url.to_owned(), max_connections: 40, ..Webhook::default() });
        self.hub().world().change_webhook(webhook);
    }

    // What goes wrong, and how much of it.

    /// Adds a rule.
    pub fn add_fault(&self, fault: Fault) {
        self.hub().add_fault(fault);
    }

    /// Ends all faults.
    pub fn clear_faults(&self) {
        self.hub().set_faults(Vec::new());
    }

    /// The rules and what they have hit.
    #[must_use]
    pub fn fault_rules(&self) -> Vec<Rule> {
        self.hub().fault_rules()
    }

    /// Queues many messages at once, whatever the queue's limit; answers the first id and the one after the last.
    pub fn push_updates(&self, bulk: &Bulk) -> (i64, i64) {
        bulk::push(&mut self.hub().world(), bulk)
    }

    /// From now on messages and calls are counted and not kept; with `sequences` the bot's texts are, per chat.
    pub fn start_load_mode(&self, sequences: bool) {
        let mut world = self.hub().world();
        world.load = Some(LoadMode { sequences });
        world.calls.clear();
    }

    /// Keeps everything again.
    pub fn end_load_mode(&self) {
        self.hub().world().load = None;
    }

    /// Puts the simulated clock ahead: updates and queries get old.
    pub fn advance_clock(&self, by: Duration) {
        self.hub().advance_clock(i64::try_from(by.as_secs()).unwrap_or(i64::MAX));
    }

    /// Lets update ids go on at another number, lower ones too, as Telegram does after a quiet week.
    pub fn jump_update_id(&self, next: i64) -> Result<(), Error> {
        let jumped = self.hub().world().queue.jump_to(next);
        if jumped { Ok(()) } else { Err(Error::UpdatesWaiting) }
    }
}
