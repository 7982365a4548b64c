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
//! Texts come from the plugin's catalogs, in the language of [`Bot::locale`], unless the user has chosen another one.
//!
//! What it does not do: keep the states of several conversations apart, or let time pass. Those are the host's.

mod filters;
mod keyboards;

use std::marker::PhantomData;

use botyard_catalogs::Catalogs;

use self::filters::{command, matches};
use crate::bindings::botyard::http::client as wit;
use crate::bindings::botyard::schedule::timers::{Entry, Owner, Rule};
use crate::bindings::botyard::types::types::{Command, Invocation, StateKey};
use crate::bindings::exports::botyard::plugin::handler::{Failure, Filter};
use crate::host::{Here, Made, Queued, World, with};
use crate::{Album, BroadcastStatus, Error, Event, Handled, Job, Plugin, Recipients, Timer, Update, Value, http, json};

/// When every run takes place, in unix milliseconds.
pub(crate) const NOW: u64 = 1_750_000_000_000;

/// A plugin with one user in one private chat. Its state and values last from one event to the next.
pub struct Bot<P> {
    world: World,
    /// The user's first name.
    pub first_name: String,
    /// The user's language, as Telegram tells it.
    pub locale: String,
    /// The next runs are the last attempt: `#[on_error]` is told that no other will follow.
    pub last_attempt: bool,
    events: u64,
    /// The inline keyboards that the user sees, the newest last; those that are gone are null.
    keyboards: Vec<Value>,
    /// The one whose button was pressed last: what an edit is about.
    pressed: usize,
    plugin: PhantomData<P>,
}

/// What one run did.
#[derive(Debug)]
pub struct Outcome {
    /// The verdict, or why the run failed.
    pub result: Result<Handled, Error>,
    /// Why a run failed in whose place `#[on_error]` has answered: the rest here is of its run.
    pub recovered: Option<Error>,
    /// The calls of the Bot API, queued and direct, in order: method and parameters.
    pub calls: Vec<(String, Value)>,
    /// The files it made, in order.
    pub files: Vec<MadeFile>,
    /// The broadcasts it began.
    pub broadcasts: Vec<Begun>,
    /// The HTTP requests it made.
    pub requests: Vec<Sent>,
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

/// An HTTP request that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// `GET`, `POST`, …
    pub method: String,
    /// The whole URL.
    pub url: String,
    /// Names and values, as they were given.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Sent {
    /// The body as JSON; null where it is none.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

impl Outcome {
    fn copy(&self) -> Self {
        Self {
            result: self.result.clone(),
            recovered: self.recovered.clone(),
            calls: self.calls.clone(),
            files: self.files.clone(),
            broadcasts: self.broadcasts.clone(),
            requests: self.requests.clone(),
            log: self.log.clone(),
        }
    }

    /// The `text` of every call that has one.
    #[must_use]
    pub fn texts(&self) -> Vec<&str> {
        self.calls.iter().filter_map(|(_, params)| params["text"].as_str()).collect()
    }
}

impl<P: Plugin> Bot<P> {
    const CHAT: i64 = 7;

    /// A plugin that nobody has written to yet.
    ///
    /// # Panics
    /// When its catalogs can't be read.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "a bot is begun by name")]
    pub fn new() -> Self {
        let catalogs = P::describe().catalogs.into_iter().map(|catalog| (catalog.locale, catalog.source));
        let catalogs = Catalogs::load(&catalogs.collect::<Vec<_>>(), None, "en");
        let catalogs = catalogs.unwrap_or_else(|error| panic!("{error}")).into();
        let (first_name, locale) = ("Alice".to_owned(), "en".to_owned());
        Self {
            world: World { catalogs, ..World::default() },
            first_name,
            locale,
            last_attempt: false,
            events: 0,
            keyboards: Vec::new(),
            pressed: 0,
            plugin: PhantomData,
        }
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
        let command = command(text);
        let message = json!({ "message_id": 1, "from": self.user(), "text": text });
        let update = self.update("message", &message);
        self.run(Event::Update(Update { text: Some(text.to_owned()), command, ..update }))
    }

    /// The user sends an album: the fields of each message, `json!({ "photo": […] })` for example, and a caption.
    pub fn album(&mut self, caption: &str, messages: &[Value]) -> Outcome {
        let id = "album".to_owned();
        let updates = messages.iter().zip(1..).map(|(fields, message_id)| {
            let mut message = json!({ "message_id": message_id, "from": self.user(), "media_group_id": id });
            if let (Some(message), Some(fields)) = (message.as_object_mut(), fields.as_object()) {
                message.extend(fields.clone());
            }
            Update { id: message_id, message_id: Some(message_id), ..self.update("message", &message) }
        });
        let mut updates: Vec<_> = updates.collect();
        let text = (!caption.is_empty()).then(|| caption.to_owned());
        if let Some(first) = updates.first_mut() {
            first.text.clone_from(&text);
        }
        self.run(Event::Album(Album { id, updates, text, late: false }))
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

    /// Any update: its kind, and its object as Telegram sends it. What the host reads of it is read here, too.
    ///
    /// ```
    /// # use botyard_sdk::prelude::*;
    /// # #[plugin]
    /// # mod members {
    /// #     #[on("chat_join_request")]
    /// #     fn join(ctx: &mut Ctx) {
    /// #         ctx.approve_join();
    /// #     }
    /// # }
    /// # fn main() {
    /// let mut bot = botyard_sdk::test::Bot::<members::Plugin>::new();
    /// let request = json!({ "chat": { "id": -100, "type": "supergroup" }, "from": { "id": 8, "first_name": "Bob" } });
    /// assert_eq!(bot.receive("chat_join_request", request).calls[0].0, "approveChatJoinRequest");
    /// # }
    /// ```
    #[expect(clippy::needless_pass_by_value, reason = "what is made for it with `json!` is given away")]
    pub fn receive(&mut self, kind: &str, body: Value) -> Outcome {
        self.run(Event::Update(self.received(kind, &body)))
    }

    fn received(&self, kind: &str, body: &Value) -> Update {
        let message = if body["message"].is_object() { &body["message"] } else { body };
        let user = [&body["from"], &body["user"]].into_iter().find_map(|user| user["id"].as_i64());
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let said = text(&body["text"]).or_else(|| text(&body["caption"]));
        let parts = Update {
            chat_id: message["chat"]["id"].as_i64(),
            chat_type: text(&message["chat"]["type"]),
            thread_id: message["message_thread_id"].as_i64(),
            message_id: message["message_id"].as_i64(),
            user_id: user,
            callback_data: text(&body["data"]),
            locale: text(&body["from"]["language_code"]).unwrap_or_else(|| self.locale.clone()),
            ..self.update(kind, body)
        };
        Update { command: said.as_deref().and_then(command), text: said, ..parts }
    }

    /// What the next direct call is answered with: calls that find no answer get `true`.
    #[must_use]
    pub fn answer(mut self, result: &Value) -> Self {
        self.world.answers.push_back(Ok(result.to_string()));
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
            let outcome = self.attempt(true, Event::Job(Job { id, name, payload, queued: NOW }), attempts + 1);
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

    /// The timer that is due next comes due; `None` if there is none. A recurring one stays.
    pub fn timer(&mut self) -> Option<Outcome> {
        let (&id, _) = self.world.timers.iter().min_by_key(|(id, (_, entry))| (entry.due, **id))?;
        let (owner, entry) = self.world.timers.get(&id)?.clone();
        if matches!(entry.rule, Rule::Once) {
            self.world.timers.remove(&id);
        }
        let Entry { name, payload, due, .. } = entry;
        Some(self.run_in(owner == Owner::Conversation, Event::Timer(Timer { id, name, payload, due })))
    }

    /// A timer that the manifest declares (`#[cron]`, `#[every]`) comes due: by its name, which is the handler's.
    ///
    /// # Panics
    /// When the manifest declares none of this name.
    pub fn scheduled(&mut self, name: &str) -> Outcome {
        let declared = P::describe().schedules.into_iter().any(|schedule| schedule.name == name);
        assert!(declared, "the plugin declares no schedule `{name}`");
        let timer = Timer { id: u64::MAX, name: name.to_owned(), payload: Vec::new(), due: NOW };
        self.run_in(false, Event::Timer(timer))
    }

    /// The conversation's state lives out its time; `None` if it has none, or the plugin does not want to hear of it.
    pub fn expire(&mut self) -> Option<Outcome> {
        let state = self.world.state.take()?;
        P::describe().expired.then(|| self.run(Event::Expired(state)))
    }

    /// Answers the next HTTP request that has no answer yet.
    #[must_use]
    pub fn respond(mut self, answer: Result<http::Response, http::HttpError>) -> Self {
        self.give(answer);
        self
    }

    /// As [`respond`](Self::respond), later.
    pub fn give(&mut self, answer: Result<http::Response, http::HttpError>) {
        use http::HttpError as E;
        let answer = answer.map_err(|error| match error {
            E::Denied(text) => wit::Error::Denied(text),
            E::Invalid(text) => wit::Error::Invalid(text),
            E::Limited(text) => wit::Error::Limited(text),
            E::Unreachable(text) => wit::Error::Unreachable(text),
            E::UnknownOutcome(text) => wit::Error::UnknownOutcome(text),
            E::Status(status) => panic!("status {status} is an answer: `Ok(Response::new({status}, \"\"))`"),
        });
        let response = |http::Response { status, headers, body, url }| wit::Response { status, headers, body, url };
        self.world.responses.push_back(answer.map(response));
    }

    /// Gives the plugin a secret.
    #[must_use]
    pub fn secret(mut self, name: &str, secret: &str) -> Self {
        self.world.secrets.insert(name.to_owned(), secret.to_owned());
        self
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
        self.run_in(true, event)
    }

    fn run_in(&mut self, conversation: bool, event: Event) -> Outcome {
        self.attempt(conversation, event, 1)
    }

    fn attempt(&mut self, conversation: bool, event: Event, attempt: u32) -> Outcome {
        self.events += 1;
        let (observing, taking) = self.matched(&event);
        let mut outcome = Outcome {
            result: Ok(Handled::Pass),
            recovered: None,
            calls: Vec::new(),
            files: Vec::new(),
            broadcasts: Vec::new(),
            requests: Vec::new(),
            log: Vec::new(),
        };
        if !observing.is_empty() {
            self.run_once(conversation, event.clone(), (attempt, None), observing, &mut outcome);
        }
        let is_own = matches!(event, Event::Timer(_) | Event::Job(_) | Event::Expired(_));
        if outcome.result.is_err() {
            return outcome;
        }
        if taking.is_empty() && !is_own {
            self.look_at_keyboards(&outcome);
            return outcome;
        }
        let observed = outcome.copy();
        self.run_once(conversation, event.clone(), (attempt, None), taking.clone(), &mut outcome);
        let Some(error) = outcome.result.clone().err().filter(|_| P::describe().recovers) else {
            if outcome.result.is_ok() {
                self.look_at_keyboards(&outcome);
            }
            return outcome;
        };
        // What the failed run asked for is dropped.
        let mut recovered = Outcome { recovered: Some(error.clone()), ..observed };
        let failed = Failure { message: error.to_string(), retry: error.retries() && !self.last_attempt };
        self.run_once(conversation, event, (attempt, Some(failed)), taking, &mut recovered);
        if recovered.result != Ok(Handled::Done) {
            return outcome;
        }
        self.look_at_keyboards(&recovered);
        recovered
    }

    /// `attempt` is its number, and the failure of it that the run is told of.
    fn run_once(
        &mut self,
        conversation: bool,
        event: Event,
        attempt: (u32, Option<Failure>),
        matched: Vec<u32>,
        outcome: &mut Outcome,
    ) {
        let about = match &event {
            Event::Update(update) => Some(update),
            Event::Album(album) => album.updates.first(),
            _ => None,
        };
        self.world.here = Here {
            user: about.map_or(Some(Self::CHAT), |update| update.user_id),
            chat: about.map_or(Some(Self::CHAT), |update| update.chat_id),
            told: about.map_or(&self.locale, |update| &update.locale).clone(),
        };
        let locale = self.world.spoken();
        let before = std::mem::take(&mut self.world);
        with(|world| *world = before.clone());
        let of = conversation.then_some(Self::CHAT);
        let key = StateKey { chat_id: of, user_id: of, thread_id: None };
        let seed = self.events;
        let (id, (attempt, failed)) = (self.events, attempt);
        let run = Invocation { id, attempt, now: NOW, seed, key, locale, matched, event, failed };
        outcome.result = P::handle(run.clone());
        let mut before = before;
        if with(|world| std::mem::take(&mut world.unreadable)) {
            // As in the host: the state is set aside, and the event comes again without it.
            before.lost = before.state.take();
            with(|world| *world = before.clone());
            outcome.result = P::handle(run);
        }
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
        let sent = |wit::Request { method, url, headers, body, .. }| Sent { method, url, headers, body };
        outcome.requests.extend(std::mem::take(&mut after.requests).into_iter().map(sent));
        outcome.log.append(&mut after.log);
        let unused = std::mem::take(&mut after.responses);
        // As in the host: a run that failed or passed leaves nothing behind.
        self.world = if outcome.result == Ok(Handled::Done) { after } else { before };
        // What was requested stays requested.
        self.world.responses = unused;
    }

    /// Whether the text is that of one of the filter's buttons, in whichever language.
    fn is_button(&self, filter: &Filter, update: &Update) -> bool {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let said = update.text.as_deref().map(words);
        let mut texts = filter.text_keys.iter().flat_map(|key| self.world.catalogs.texts(key));
        texts.any(|text| Some(words(&text)) == said)
    }

    /// The filters that the event matches: those that observe, and the others.
    fn matched(&self, event: &Event) -> (Vec<u32>, Vec<u32>) {
        let album = match event {
            Event::Album(album) => album.updates.first().map(|first| Update {
                kind: "album".to_owned(),
                text: album.text.clone(),
                ..first.clone()
            }),
            _ => None,
        };
        let update = match (event, &album) {
            (Event::Update(update), _) | (_, Some(update)) => update,
            _ => return (Vec::new(), Vec::new()),
        };
        let filters = P::describe().filters;
        let is_known = |command: &Command| filters.iter().any(|filter| filter.commands.contains(&command.name));
        let is_plain = update.text.is_some() && !update.command.as_ref().is_some_and(is_known);
        let matching = (0..).zip(&filters).filter(|(_, filter)| {
            matches(filter, update)
                && (filter.text_keys.is_empty() || self.is_button(filter, update))
                && (is_plain || !filter.plain_text)
                && (filter.states.is_empty() || filter.states.iter().any(|name| self.state() == Some(name)))
        });
        let (observing, taking): (Vec<_>, Vec<_>) = matching.partition(|(_, filter)| filter.observe);
        let places = |filters: Vec<(u32, _)>| filters.into_iter().map(|(place, _)| place).collect();
        (places(observing), places(taking))
    }
}
