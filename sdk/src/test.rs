//! Runs a plugin natively: no wasm, no host, no network.
//!
//! ```
//! use botyard_sdk::prelude::*;
//!
//! #[plugin]
//! mod echo {
//!     #[text]
//!     fn echo(ctx: &mut Ctx) {
//!         ctx.reply(ctx.text());
//!     }
//! }
//!
//! # fn main() {
//! let mut bot = botyard_sdk::test::Bot::<echo::Plugin>::new();
//! assert_eq!(bot.text("hello").texts(), ["hello"]);
//! # }
//! ```
//!
//! What it does not do: read catalogs (texts are the fallbacks in the calls), keep the states of several conversations
//! apart, or let time pass. Those are the host's.

use std::marker::PhantomData;

use crate::bindings::botyard::types::types::{Command, Invocation, StateKey};
use crate::bindings::exports::botyard::plugin::handler::Filter;
use crate::host::{Made, Queued, World, with};
use crate::{BroadcastStatus, Error, Event, Handled, Job, Plugin, Recipients, Timer, Update, Value, json};

/// When every run takes place, in unix milliseconds.
pub(crate) const NOW: u64 = 1_750_000_000_000;

/// A plugin with one user in one private chat. Its state and values last from one event to the next.
pub struct Bot<P> {
    world: World,
    /// The user's first name.
    pub first_name: String,
    /// The user's language.
    pub locale: String,
    events: u64,
    plugin: PhantomData<P>,
}

/// What one run did.
#[derive(Debug)]
pub struct Outcome {
    /// The verdict, or why the run failed.
    pub result: Result<Handled, Error>,
    /// The calls of the Bot API, queued and direct, in order: method and parameters.
    pub calls: Vec<(String, Value)>,
    /// The files it made, in order.
    pub files: Vec<MadeFile>,
    /// The broadcasts it began.
    pub broadcasts: Vec<Begun>,
    /// The lines it logged.
    pub log: Vec<String>,
}

/// A file that a run made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MadeFile {
    /// What stands for it in the calls, `attach://…`.
    pub reference: String,
    /// Its name.
    pub name: String,
    /// Its MIME type, where the plugin gave one.
    pub content_type: String,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// A broadcast that a run began. Here it never gets further by itself.
#[derive(Debug, Clone)]
pub struct Begun {
    /// By which it is named.
    pub id: u64,
    /// To whom.
    pub to: Recipients,
    /// The method.
    pub method: String,
    /// Its parameters.
    pub params: Value,
}

impl Outcome {
    /// The `text` of every call that has one.
    #[must_use]
    pub fn texts(&self) -> Vec<&str> {
        self.calls.iter().filter_map(|(_, params)| params["text"].as_str()).collect()
    }
}

impl<P: Plugin> Bot<P> {
    const CHAT: i64 = 7;

    /// A plugin that nobody has written to yet.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "a bot is begun by name")]
    pub fn new() -> Self {
        let (first_name, locale) = ("Alice".to_owned(), "en".to_owned());
        Self { world: World::default(), first_name, locale, events: 0, plugin: PhantomData }
    }

    /// Gives the plugin a configuration.
    #[must_use]
    pub fn config(mut self, config: &Value) -> Self {
        self.world.config = Some(config.to_string());
        self
    }

    /// Lets the bot have met a chat, for [`Run::known_chat`](crate::Run::known_chat).
    #[must_use]
    pub fn knows(mut self, chat: crate::KnownChat) -> Self {
        self.world.chats.insert(chat.id, chat);
        self
    }

    /// The name of the conversation's state, if it has one.
    #[must_use]
    pub fn state(&self) -> Option<&str> {
        self.world.state.as_ref().map(|state| state.name.as_str())
    }

    /// How a broadcast that the plugin has begun stands, to be changed as a host would.
    pub fn broadcast(&mut self, id: u64) -> Option<&mut BroadcastStatus> {
        self.world.broadcasts.get_mut(&id).map(|broadcast| &mut broadcast.status)
    }

    /// The user writes; a text that begins with a slash is a command.
    pub fn text(&mut self, text: &str) -> Outcome {
        let command = text.strip_prefix('/').map(|rest| {
            let (name, args) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            let name = name.split('@').next().unwrap_or_default().to_lowercase();
            Command { name, args: args.trim().to_owned() }
        });
        let message = json!({ "message_id": 1, "from": self.user(), "text": text });
        let update = self.update("message", &message);
        self.run(Event::Update(Update { text: Some(text.to_owned()), command, ..update }))
    }

    /// The user presses a button with this data.
    pub fn press(&mut self, data: &str) -> Outcome {
        let query = json!({ "id": "q", "from": self.user(), "data": data });
        let update = self.update("callback_query", &query);
        self.run(Event::Update(Update { callback_data: Some(data.to_owned()), ..update }))
    }

    /// The user sends a message that is no text: `{ "document": { "file_id": "…", … } }`, say.
    pub fn message(&mut self, content: &Value) -> Outcome {
        let mut message = json!({ "message_id": 1, "from": self.user() });
        if let (Some(message), Some(content)) = (message.as_object_mut(), content.as_object()) {
            message.extend(content.clone());
        }
        let text = message["caption"].as_str().map(str::to_owned);
        let update = self.update("message", &message);
        self.run(Event::Update(Update { text, ..update }))
    }

    /// A file that the plugin can fetch by this `file_id`.
    #[must_use]
    pub fn at_telegram(mut self, file_id: &str, name: &str, bytes: impl Into<Vec<u8>>) -> Self {
        self.world.at_telegram.insert(file_id.to_owned(), (name.to_owned(), bytes.into()));
        self
    }

    /// Lets no more than so many jobs wait; more are answered as a full queue is.
    #[must_use]
    pub fn most_jobs(mut self, most: usize) -> Self {
        self.world.most_jobs = Some(most);
        self
    }

    /// The host has set a state aside that the plugin could not take over, for [`Run::lost_state`](crate::Run::lost_state).
    #[must_use]
    pub fn lost_state(mut self, name: &str, version: u32, value: &Value) -> Self {
        let (name, bytes) = (name.to_owned(), value.to_string().into_bytes());
        self.world.lost = Some(crate::bindings::botyard::types::types::State { name, version, bytes });
        self
    }

    /// How many jobs wait.
    #[must_use]
    pub fn waiting_jobs(&self) -> usize {
        self.world.jobs.len()
    }

    /// Works on all jobs that wait, the oldest first, and on those that they queue; delays are over at once. One that
    /// fails stays where it is, with its attempt counted, unless it could never go well.
    pub fn run_jobs(&mut self) -> Vec<Outcome> {
        let (mut outcomes, mut last) = (Vec::new(), 0);
        while let Some((id, job)) = self.world.jobs.range(last + 1..).next().map(|(id, job)| (*id, job.clone())) {
            last = id;
            let Queued { name, payload, attempts, .. } = job;
            let outcome = self.attempt(Event::Job(Job { id, name, payload, queued: NOW }), attempts + 1);
            match &outcome.result {
                Err(error) if error.retries() => {
                    if let Some(job) = self.world.jobs.get_mut(&id) {
                        (job.attempts, job.reason) = (attempts + 1, Some(error.to_string()));
                    }
                }
                _ => drop(self.world.jobs.remove(&id)),
            }
            outcomes.push(outcome);
        }
        outcomes
    }

    /// The oldest timer that the plugin has set comes due; `None` if there is none.
    pub fn timer(&mut self) -> Option<Outcome> {
        let (id, (name, due, payload)) = self.world.timers.pop_first()?;
        Some(self.run(Event::Timer(Timer { id, name, payload, due })))
    }

    fn user(&self) -> Value {
        json!({ "id": Self::CHAT, "first_name": self.first_name, "language_code": self.locale })
    }

    fn update(&self, kind: &str, body: &Value) -> Update {
        Update {
            id: 1,
            kind: kind.to_owned(),
            chat_id: Some(Self::CHAT),
            chat_type: Some("private".to_owned()),
            thread_id: None,
            message_id: Some(1),
            user_id: Some(Self::CHAT),
            locale: self.locale.clone(),
            text: None,
            command: None,
            callback_data: None,
            raw: json!({ "update_id": 1, kind: body }).to_string(),
        }
    }

    fn run(&mut self, event: Event) -> Outcome {
        self.attempt(event, 1)
    }

    fn attempt(&mut self, event: Event, attempt: u32) -> Outcome {
        self.events += 1;
        let (observing, taking) = self.matched(&event);
        let (calls, files, broadcasts, log) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut outcome = Outcome { result: Ok(Handled::Pass), calls, files, broadcasts, log };
        if !observing.is_empty() {
            self.run_once(event.clone(), attempt, observing, &mut outcome);
        }
        if outcome.result.is_ok() && (!taking.is_empty() || matches!(event, Event::Timer(_) | Event::Job(_))) {
            self.run_once(event, attempt, taking, &mut outcome);
        }
        outcome
    }

    fn run_once(&mut self, event: Event, attempt: u32, matched: Vec<u32>, outcome: &mut Outcome) {
        let before = std::mem::take(&mut self.world);
        with(|world| *world = before.clone());
        let key = StateKey { chat_id: Some(Self::CHAT), user_id: Some(Self::CHAT), thread_id: None };
        let seed = self.events;
        outcome.result = P::handle(Invocation { id: self.events, attempt, now: NOW, seed, key, matched, event });
        let mut after = with(std::mem::take);
        let calls = std::mem::take(&mut after.calls).into_iter();
        let begun = after.broadcasts.iter().filter(|(id, _)| !before.broadcasts.contains_key(id));
        outcome.broadcasts.extend(begun.map(|(&id, broadcast)| Begun {
            id,
            to: Recipients::from_wire(&broadcast.to),
            method: broadcast.method.clone(),
            params: serde_json::from_str(&broadcast.params).unwrap_or_default(),
        }));
        outcome.calls.extend(calls.map(|(method, params)| (method, serde_json::from_str(&params).unwrap_or_default())));
        let made = std::mem::take(&mut after.made).into_iter();
        outcome.files.extend(made.filter_map(|file| {
            let Made { name, content_type, bytes, reference } = file;
            Some(MadeFile { reference: reference?, name, content_type, bytes })
        }));
        after.fetched.clear();
        outcome.log.append(&mut after.log);
        // As in the host: a run that failed or passed leaves nothing behind.
        self.world = if outcome.result == Ok(Handled::Done) { after } else { before };
    }

    /// The filters that the event matches: those that observe, and the others.
    fn matched(&self, event: &Event) -> (Vec<u32>, Vec<u32>) {
        let Event::Update(update) = event else { return (Vec::new(), Vec::new()) };
        let filters = P::describe().filters;
        let is_known = |command: &Command| filters.iter().any(|filter| filter.commands.contains(&command.name));
        let is_plain = update.text.is_some() && !update.command.as_ref().is_some_and(is_known);
        let matching = (0..).zip(&filters).filter(|(_, filter)| {
            matches(filter, update)
                && (is_plain || !filter.plain_text)
                && (filter.states.is_empty() || filter.states.iter().any(|name| self.state() == Some(name)))
        });
        let (observing, taking): (Vec<_>, Vec<_>) = matching.partition(|(_, filter)| filter.observe);
        let places = |filters: Vec<(u32, _)>| filters.into_iter().map(|(place, _)| place).collect();
        (places(observing), places(taking))
    }
}

/// Everything that the update alone decides.
fn matches(filter: &Filter, update: &Update) -> bool {
    let any_or = |list: &[String], value: Option<&String>| list.is_empty() || value.is_some_and(|v| list.contains(v));
    let text = update.text.as_deref();
    let regex = filter.text_regex.as_deref().map(|regex| regex::Regex::new(regex).expect("the pattern is valid"));
    any_or(&filter.kinds, Some(&update.kind))
        && any_or(&filter.chat_types, update.chat_type.as_ref())
        && any_or(&filter.commands, update.command.as_ref().map(|command| &command.name))
        && regex.is_none_or(|regex| text.is_some_and(|text| regex.is_match(text)))
        && filter
            .callback_prefix
            .as_deref()
            .is_none_or(|prefix| update.callback_data.as_deref().is_some_and(|data| data.starts_with(prefix)))
}
