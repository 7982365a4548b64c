//! The simulated Telegram's state: the bot, the people, the chats and the queue of updates.
//!
//! One `std` mutex guards it (see `hub.rs`); nothing here waits. Whatever changes it goes through a method that
//! also tells those who wait: parked polls, tests, chat pages.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::{Notify, broadcast};

use super::calls::Calls;
use super::files::Files;
use super::model::{Chat, Message, Sender, User};
use super::queries::Queries;
use super::render::{self, View};
use super::updates::{Allowed, Body, Queue, retention};
use super::webhook::Webhook;

/// The bot.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Bot {
    pub(super) id: i64,
    pub(super) name: String,
    pub(super) username: String,
}

/// A list set by `setMyCommands`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct CommandList {
    pub(super) scope: Value,
    pub(super) language: String,
    pub(super) commands: Value,
}

/// Money that the bot has got.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Charge {
    pub(super) user: i64,
    pub(super) chat: i64,
    /// The `SuccessfulPayment`.
    pub(super) payment: Value,
    pub(super) refunded: bool,
}

/// An update as it went to the bot, for the page.
#[derive(Debug, Clone)]
pub(super) struct Recent {
    pub(super) id: i64,
    pub(super) at: i64,
    /// What `Queue` has of it.
    pub(super) rest: Box<str>,
}

/// How many of them are kept.
const RECENT: usize = 300;

/// How much is kept. Settings, not state.
#[derive(Debug, Clone)]
pub(super) struct Limits {
    pub(super) messages_per_chat: usize,
    pub(super) queue: usize,
    pub(super) throttle_polls: bool,
    /// Where a local server keeps files.
    pub(super) local_files: Option<PathBuf>,
    /// How long a second of the pauses between deliveries to the webhook takes.
    pub(super) webhook_second: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            messages_per_chat: 10_000,
            queue: 100_000,
            throttle_polls: false,
            local_files: None,
            webhook_second: Duration::from_secs(1),
        }
    }
}

/// While it lasts, messages and calls are counted but not kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct LoadMode {
    /// Keep the texts of the bot, per chat, in order of arrival.
    pub(super) sequences: bool,
}

/// Those who wait for something to happen.
#[derive(Debug, Clone)]
pub(super) struct Signals {
    /// An update was queued, or another poll took over.
    pub(super) polls: Arc<Notify>,
    /// The bot did something.
    pub(super) activity: Arc<Notify>,
    /// What chat pages see, as JSON.
    pub(super) events: broadcast::Sender<Arc<str>>,
}

impl Default for Signals {
    fn default() -> Self {
        Self { polls: Arc::default(), activity: Arc::default(), events: broadcast::channel(1024).0 }
    }
}

/// The bot's poll that is under way.
#[derive(Debug, Default)]
pub(super) struct PollState {
    /// Counts the polls; a parked one that is not the newest is told of a conflict.
    pub(super) newest: u64,
    pub(super) last_offset: Option<i64>,
    pub(super) last_start: Option<tokio::time::Instant>,
}

/// Everything.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct World {
    pub(super) bot: Bot,
    pub(super) users: BTreeMap<i64, User>,
    pub(super) chats: HashMap<i64, Chat>,
    pub(super) queue: Queue,
    pub(super) allowed: Allowed,
    pub(super) webhook: Option<Webhook>,
    pub(super) commands: Vec<CommandList>,
    pub(super) queries: Queries,
    pub(super) files: Files,
    /// Seconds by which the simulated clock is ahead.
    pub(super) clock_ahead: i64,
    #[serde(default)]
    pub(super) charges: Vec<Charge>,
    /// `MenuButton` of the private chats without one of their own.
    #[serde(default)]
    pub(super) menu_button: Option<Value>,
    #[serde(skip)]
    pub(super) recent: VecDeque<Recent>,
    #[serde(skip)]
    pub(super) limits: Limits,
    #[serde(skip)]
    pub(super) load: Option<LoadMode>,
    #[serde(skip)]
    pub(super) calls: Calls,
    #[serde(skip)]
    pub(super) poll: PollState,
    #[serde(skip)]
    pub(super) signals: Signals,
    /// Counts the changes of the webhook.
    #[serde(skip)]
    pub(super) webhook_generation: u64,
}

/// What happened to an update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Enqueued {
    Id(i64),
    /// The bot did not ask for this kind.
    Unwanted,
    QueueFull,
}

impl World {
    pub(super) fn new(bot: Bot) -> Self {
        // Higher at each start, ten per second, and within the 31 bits that Telegram uses.
        let first_update = 1_000_000 + unix_millis() / 100 % 1_900_000_000;
        Self {
            bot,
            users: BTreeMap::new(),
            chats: HashMap::new(),
            queue: Queue::new(first_update),
            allowed: Allowed::default(),
            webhook: None,
            commands: Vec::new(),
            queries: Queries::new(unix_millis()),
            files: Files::default(),
            clock_ahead: 0,
            charges: Vec::new(),
            menu_button: None,
            recent: VecDeque::new(),
            limits: Limits::default(),
            load: None,
            calls: Calls::default(),
            poll: PollState::default(),
            signals: Signals::default(),
            webhook_generation: 0,
        }
    }

    /// Sets the webhook, or removes it. A parked poll ends, and what was under way to the old one counts no more.
    pub(super) fn change_webhook(&mut self, webhook: Option<Webhook>) {
        self.webhook = webhook;
        self.webhook_generation += 1;
        self.signals.polls.notify_waiters();
    }

    /// The simulated time, in Unix seconds.
    pub(super) fn now(&self) -> i64 {
        unix_millis() / 1000 + self.clock_ahead
    }

    /// The same in milliseconds.
    pub(super) fn now_millis(&self) -> i64 {
        unix_millis() + self.clock_ahead.saturating_mul(1000)
    }

    /// Queues an update of a kind; `object` is what stands under that name.
    pub(super) fn enqueue(&mut self, kind: &str, object: &[u8]) -> Enqueued {
        if !self.allowed.wants(kind) {
            return Enqueued::Unwanted;
        }
        let object = std::str::from_utf8(object).expect("what is written is JSON, and so UTF-8");
        let body = Body::Json(format!("\"{kind}\":{object}}}").into());
        match self.queue.push(body, self.now() + retention(kind), self.limits.queue) {
            Some(id) => {
                if self.load.is_none() {
                    let rest = format!("\"{kind}\":{object}}}").into();
                    let at = self.now_millis();
                    self.recent.push_back(Recent { id, at, rest });
                    let surplus = self.recent.len().saturating_sub(RECENT);
                    self.recent.drain(..surplus);
                    self.emit(&serde_json::json!({ "event": "activity" }));
                }
                self.signals.polls.notify_waiters();
                Enqueued::Id(id)
            }
            None => Enqueued::QueueFull,
        }
    }

    /// Gives a message its id and date, writes it to `out` as the bot sees it, counts and keeps it.
    ///
    /// The chat exists: the caller has looked it up.
    pub(super) fn deliver(&mut self, chat_id: i64, mut message: Message, out: &mut Vec<u8>) -> i64 {
        let chat = self.chats.get_mut(&chat_id).expect("the caller looked it up");
        message.id = chat.next_message_id();
        message.date = unix_millis() / 1000 + self.clock_ahead;
        if message.from == Sender::Bot {
            chat.delivered += 1;
            chat.last_text = message.text.as_deref().map(Into::into);
            if self.load.is_some_and(|load| load.sequences) {
                chat.sequence.push(message.text().into());
            }
        }
        render::message(self, &self.chats[&chat_id], &message, View::Bot, out);
        let id = message.id;
        if self.load.is_none() {
            self.emit_message("message", chat_id, &message);
            let keep = self.limits.messages_per_chat;
            self.chats.get_mut(&chat_id).expect("it was there above").keep_message(message, keep);
        }
        self.signals.activity.notify_waiters();
        id
    }

    /// Writes a kept message as the bot sees it.
    pub(super) fn write_message(&self, chat: i64, id: i64, out: &mut Vec<u8>) {
        let chat = &self.chats[&chat];
        if let Some(message) = chat.message(id) {
            render::message(self, chat, message, View::Bot, out);
        }
    }

    /// Tells the pages of a new or changed message.
    pub(super) fn emit_message(&self, event: &str, chat_id: i64, message: &Message) {
        if self.signals.events.receiver_count() == 0 {
            return;
        }
        let mut out = format!("{{\"event\":\"{event}\",\"chat\":{chat_id},\"message\":").into_bytes();
        render::message(self, &self.chats[&chat_id], message, View::Page, &mut out);
        out.push(b'}');
        self.emit_bytes(out);
    }

    /// Tells the pages of anything else.
    pub(super) fn emit(&self, event: &Value) {
        if self.signals.events.receiver_count() > 0 {
            self.emit_bytes(event.to_string().into_bytes());
        }
    }

    fn emit_bytes(&self, json: Vec<u8>) {
        let json = String::from_utf8(json).expect("what is written is JSON, and so UTF-8");
        // Nobody listening is no failure.
        drop(self.signals.events.send(json.into()));
    }

    /// Adds or replaces a user, with the private chat.
    pub(super) fn add_user(&mut self, user: User) {
        let id = user.id;
        self.users.insert(id, user);
        self.chats.entry(id).or_insert_with(|| Chat::new(id, super::model::ChatKind::Private, "", &[id]));
    }
}

pub(super) fn unix_millis() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}
