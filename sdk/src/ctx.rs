//! What a handler is given: the event, and everything it can ask of the host.

mod action;
mod broadcast;
mod chats;
mod files;
mod jobs;
mod kinds;
mod message;
mod storage;
mod surroundings;
mod target;
mod timers;
mod typed;

use std::cell::{Cell, OnceCell, RefCell};
use std::ops::Deref;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::api::Json;
use crate::bindings::botyard::telegram::bot_api::Options;
use crate::bindings::botyard::types::types::Invocation;
use crate::format::{self, IntoText};
use crate::json::{self, Object};
use crate::{CallError, CallbackData, Error, Event, Handled, NoState, State, Update, User, Value, host, state};

pub use broadcast::{Broadcast, BroadcastState, BroadcastStatus, Recipients};
pub use jobs::{JobError, JobStatus, QueuedJob};
pub use message::Message;
pub use storage::{Scope, Storage};
pub use target::ChatTarget;
pub use timers::{Recurring, SetTimer};

/// A handler's context: a [`Run`], and the state of the conversation that the event belongs to.
///
/// ```
/// use botyard_sdk::prelude::*;
///
/// #[plugin]
/// mod lamp {
///     #[derive(State, Serialize, Deserialize, Default)]
///     enum Lamp {
///         #[default]
///         Off,
///         On { times: u32 },
///     }
///
///     #[command("switch")]
///     fn switch(ctx: &mut Ctx<Lamp>) -> Handled {
///         match ctx.state() {
///             Lamp::Off => ctx.goto(Lamp::On { times: 1 }),
///             Lamp::On { times } if *times < 3 => ctx.goto(Lamp::On { times: times + 1 }),
///             Lamp::On { .. } => ctx.exit(),
///         }
///     }
/// }
/// # fn main() {}
/// ```
pub struct Ctx<S: State = NoState> {
    run: Run,
    /// Of a job, empty until it asks: whatever it has read must still hold at its end.
    state: OnceCell<S>,
}

impl<S: State> Ctx<S> {
    pub(crate) fn new(invocation: Invocation) -> Result<Self, Error> {
        let state = match &invocation.event {
            Event::Expired(state) if S::KEPT => OnceCell::from(state::own::<S>(state.clone())?),
            Event::Job(_) => OnceCell::new(),
            _ => OnceCell::from(state::load::<S>()?),
        };
        Ok(Self { run: Run::new(invocation), state })
    }

    pub(crate) fn run_mut(&mut self) -> &mut Run {
        &mut self.run
    }

    pub(crate) fn into_run(self) -> Run {
        self.run
    }

    /// The state of this conversation: the default one where there is none. In an `#[expired]` handler, the state that
    /// has lived out its time. A job reads it when it first asks; one that can't be read fails the job.
    #[must_use]
    pub fn state(&self) -> &S {
        self.state.get_or_init(|| {
            state::load().unwrap_or_else(|error| {
                self.run.fail(error);
                S::default()
            })
        })
    }

    /// Makes `state` the conversation's.
    pub fn goto(&mut self, state: S) -> Handled {
        if let Err(error) = state::store(&state) {
            self.run.fail(error);
        }
        self.state = state.into();
        Handled::Done
    }

    /// Ends the conversation: its state is the default one again.
    pub fn exit(&mut self) -> Handled {
        self.goto(S::default())
    }
}

impl<S: State> Deref for Ctx<S> {
    type Target = Run;

    fn deref(&self) -> &Run {
        &self.run
    }
}

/// One run: the event that it handles, and everything that a plugin can ask of the host besides its state.
///
/// [`Ctx`] derefs to it, so helper functions that don't need the state take `&Run`:
///
/// ```
/// # use botyard_sdk::prelude::*;
/// fn apologize(ctx: &Run) {
///     ctx.reply(t!(ctx, "sorry"; "Sorry, that went wrong."));
/// }
/// ```
pub struct Run {
    invocation: Invocation,
    /// The first effect that could not be asked for, where its caller could not be told.
    failure: RefCell<Option<Error>>,
    random: Cell<u64>,
    /// What the payload begins with that the handler under way answers to.
    start_prefix: Cell<&'static str>,
}

/// The event.
impl Run {
    fn new(invocation: Invocation) -> Self {
        let random = Cell::new(invocation.seed);
        Self { invocation, failure: RefCell::new(None), random, start_prefix: Cell::new("") }
    }

    /// What happened.
    #[must_use]
    pub fn event(&self) -> &Event {
        &self.invocation.event
    }

    /// Unique for the event, and the same on every attempt.
    #[must_use]
    pub fn event_id(&self) -> u64 {
        self.invocation.id
    }

    /// 1 on the first attempt.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.invocation.attempt
    }

    /// The kind of the event as the Bot API names it: `message`, `callback_query`, …; `album` for an album, `timer` for
    /// a timer, `job` for a job, `expired` for a state that has lived out its time.
    #[must_use]
    pub fn kind(&self) -> &str {
        match self.event() {
            Event::Update(update) => &update.kind,
            Event::Album(_) => "album",
            Event::Timer(_) => "timer",
            Event::Job(_) => "job",
            Event::Expired(_) => "expired",
            Event::Other((kind, _)) => kind,
        }
    }

    /// The message's text or caption, of an album the caption that one of its messages has; empty where there is none.
    #[must_use]
    pub fn text(&self) -> &str {
        if let Some(album) = self.album() {
            return album.text.as_deref().unwrap_or_default();
        }
        self.update_parts().and_then(|update| update.text.as_deref()).unwrap_or_default()
    }

    /// What follows the command, without surrounding white space.
    #[must_use]
    pub fn args(&self) -> &str {
        self.update_parts().and_then(|update| update.command.as_ref()).map_or("", |command| &command.args)
    }

    /// The command's name, without the slash.
    #[must_use]
    pub fn command(&self) -> Option<&str> {
        self.update_parts().and_then(|update| update.command.as_ref()).map(|command| command.name.as_str())
    }

    /// The data of the pressed button; empty where none was pressed.
    #[must_use]
    pub fn callback_data(&self) -> &str {
        self.update_parts().and_then(|update| update.callback_data.as_deref()).unwrap_or_default()
    }

    /// What the pressed button stands for: none where no button was pressed, or one that stands for something else.
    #[must_use]
    pub fn pressed<T: CallbackData>(&self) -> Option<T> {
        T::from_data(self.callback_data())
    }

    /// The chat, where there is one. For a timer or a job, the chat of the conversation that set it (the user's own, where
    /// states follow the user).
    #[must_use]
    pub fn chat_id(&self) -> Option<i64> {
        match self.event() {
            Event::Update(_) | Event::Album(_) => self.update_parts()?.chat_id,
            _ => self.invocation.key.chat_id.or(self.invocation.key.user_id),
        }
    }

    /// `private`, `group`, `supergroup` or `channel`; empty where there is no chat.
    #[must_use]
    pub fn chat_type(&self) -> &str {
        self.update_parts().and_then(|update| update.chat_type.as_deref()).unwrap_or_default()
    }

    /// The user, where there is one.
    #[must_use]
    pub fn user_id(&self) -> Option<i64> {
        match self.event() {
            Event::Update(_) | Event::Album(_) => self.update_parts()?.user_id,
            _ => self.invocation.key.user_id,
        }
    }

    /// The forum topic.
    #[must_use]
    pub fn thread_id(&self) -> Option<i64> {
        match self.event() {
            Event::Update(_) | Event::Album(_) => self.update_parts()?.thread_id,
            _ => self.invocation.key.thread_id,
        }
    }

    /// The message; for a pressed button the message below which it was.
    #[must_use]
    pub fn message_id(&self) -> Option<i64> {
        self.update_parts().and_then(|update| update.message_id)
    }

    pub(crate) fn own_locale(&self) -> &str {
        &self.invocation.locale
    }

    /// The rest of the run speaks this.
    pub(crate) fn speak(&mut self, locale: String) {
        self.invocation.locale = locale;
    }

    /// Who caused the event. Read from the update's JSON on each call.
    #[must_use]
    pub fn user(&self) -> User {
        self.object().map_or_else(User::default, |body| User::of(&body))
    }

    /// The event's JSON, as Telegram sent it; of an album its first message's; empty for a timer or a job.
    #[must_use]
    pub fn raw(&self) -> &str {
        match self.event() {
            Event::Update(update) => &update.raw,
            Event::Album(album) => album.updates.first().map_or("", |update| &update.raw),
            Event::Other((_, json)) => json,
            Event::Timer(_) | Event::Job(_) | Event::Expired(_) => "",
        }
    }

    /// The whole update, parsed. Costs far more than the methods above: ask for it when none of them will do.
    ///
    /// ```
    /// # use botyard_sdk::prelude::*;
    /// fn title(ctx: &Run) -> Option<String> {
    ///     ctx.update()["message"]["chat"]["title"].as_str().map(str::to_owned)
    /// }
    /// ```
    #[must_use]
    pub fn update(&self) -> Value {
        json::from_str(self.raw()).unwrap_or_default()
    }

    /// The update's own object (its `message`, its `callback_query`, …) as a type of yours, which names only the
    /// fields it wants. `None` where it doesn't fit.
    ///
    /// ```
    /// # use botyard_sdk::prelude::*;
    /// # use botyard_sdk::__private::serde;
    /// #[derive(Deserialize)]
    /// # #[serde(crate = "serde")]
    /// struct Dice {
    ///     dice: Rolled,
    /// }
    /// #[derive(Deserialize)]
    /// # #[serde(crate = "serde")]
    /// struct Rolled {
    ///     value: u8,
    /// }
    /// fn rolled(ctx: &Run) -> Option<u8> {
    ///     ctx.part::<Dice>().map(|message| message.dice.value)
    /// }
    /// ```
    #[must_use]
    pub fn part<T: DeserializeOwned>(&self) -> Option<T> {
        self.object()?.parse()
    }

    /// The update's own object, read where it lies.
    pub(crate) fn object(&self) -> Option<Json> {
        Json::from(self.raw()).get(self.update_parts().map_or(self.kind(), |update| &update.kind))
    }

    pub(crate) fn start_prefix(&self) -> &'static str {
        self.start_prefix.get()
    }

    pub(crate) fn set_start_prefix(&self, prefix: &'static str) {
        self.start_prefix.set(prefix);
    }

    /// The filters of the manifest that the event matches.
    pub(crate) fn matched(&self) -> &[u32] {
        &self.invocation.matched
    }

    pub(crate) fn update_parts(&self) -> Option<&Update> {
        match self.event() {
            Event::Update(update) => Some(update),
            Event::Album(album) => album.updates.first(),
            _ => None,
        }
    }
}

/// Sending. Messages and queued calls go out once the run has committed, in order within a chat.
impl Run {
    /// Answers in the event's chat, and in its topic.
    ///
    /// ```
    /// # use botyard_sdk::prelude::*;
    /// fn ask(ctx: &Run) {
    ///     ctx.reply("<b>Sure?</b>").html().keyboard(InlineKeyboard::new().row([Button::callback("Yes", "yes")]));
    /// }
    /// ```
    pub fn reply(&self, text: impl IntoText) -> Message<'_> {
        let Some(mut params) = self.reply_params() else { return Message::nowhere(self) };
        format::put(&mut params, &text);
        Message::new(self, "sendMessage", params)
    }

    /// Sends a text to any chat: an id, or a public `@name`.
    ///
    /// ```
    /// # use botyard_sdk::prelude::*;
    /// fn announce(ctx: &Run, admin: i64) {
    ///     ctx.send(admin, "A new order");
    ///     ctx.send("@news", "Open again").priority(Priority::Bulk);
    /// }
    /// ```
    pub fn send(&self, chat: impl Into<ChatTarget>, text: impl IntoText) -> Message<'_> {
        let mut params = Object::new();
        chat.into().write(&mut params);
        format::put(&mut params, &text);
        Message::new(self, "sendMessage", params)
    }

    /// Puts another text in place of the message below which a button was pressed. Its keyboard goes, unless the
    /// builder is given one.
    ///
    /// ```
    /// # use botyard_sdk::prelude::*;
    /// fn close(ctx: &Run) {
    ///     ctx.edit("Closed.");
    ///     ctx.answer_callback("");
    /// }
    /// ```
    pub fn edit(&self, text: impl IntoText) -> Message<'_> {
        let Some(mut params) = self.edit_params() else { return Message::nowhere(self) };
        format::put(&mut params, &text);
        Message::new(self, "editMessageText", params)
    }

    /// Puts a text in place of the message below which a button was pressed, or replies where none was: for what can be
    /// asked for both ways.
    ///
    /// ```
    /// # use botyard_sdk::prelude::*;
    /// fn menu(ctx: &Run) {
    ///     ctx.show("What would you like?").keyboard(InlineKeyboard::new().row([Button::callback("Tea", "tea")]));
    /// }
    /// ```
    pub fn show(&self, text: impl IntoText) -> Message<'_> {
        if self.kind() == "callback_query" { self.edit(text) } else { self.reply(text) }
    }

    /// Where a reply goes; without a chat the run fails.
    fn reply_params(&self) -> Option<Object> {
        let Some(chat) = self.chat_id() else {
            self.fail(Error::permanent("this event has no chat to reply in: use `send`"));
            return None;
        };
        let mut params = Object::new();
        params.integer("chat_id", chat);
        if let Some(thread) = self.thread_id() {
            params.integer("message_thread_id", thread);
        }
        self.put_business(&mut params);
        Some(params)
    }

    /// What is said in a business account's chat goes through the connection with that account: without it, it would go
    /// to the bot's own chat with the same person.
    fn put_business(&self, params: &mut Object) {
        const CONNECTION: &str = "business_connection_id";
        let object = self.object();
        // Of a pressed button, the message below which it is.
        let place = object.as_ref().and_then(|object| object.get("message")).or(object);
        if let Some(connection) = place.and_then(|place| place.get(CONNECTION)?.as_text()) {
            params.text(CONNECTION, &connection);
        }
    }

    /// Which message an edit is for; without one the run fails.
    fn edit_params(&self) -> Option<Object> {
        let mut params = Object::new();
        if let (Some(chat), Some(message)) = (self.chat_id(), self.message_id()) {
            params.integer("chat_id", chat).integer("message_id", message);
            self.put_business(&mut params);
        } else if let Some(message) = self.object().and_then(|query| query.get("inline_message_id")?.as_text()) {
            params.text("inline_message_id", &message);
        } else {
            self.fail(Error::permanent("this event has no message to edit"));
            return None;
        }
        Some(params)
    }

    /// Tells Telegram that the pressed button was noticed; a text is shown for a moment at the top of the chat.
    pub fn answer_callback(&self, text: impl AsRef<str>) {
        self.answer(text.as_ref(), false);
    }

    /// As [`answer_callback`](Self::answer_callback), but the text must be dismissed.
    pub fn alert_callback(&self, text: impl AsRef<str>) {
        self.answer(text.as_ref(), true);
    }

    fn answer(&self, text: &str, alert: bool) {
        let Some(query) = self.object().and_then(|query| query.get("id")?.as_text()) else {
            return self.fail(Error::permanent("this event has no callback query to answer"));
        };
        let mut params = Object::new();
        params.text("callback_query_id", &query);
        if !text.is_empty() {
            params.text("text", text);
        }
        if alert {
            params.raw("show_alert", "true");
        }
        self.push("answerCallbackQuery", &params.finish(), message::usual());
    }

    /// Calls any method of the Bot API now, waits for its answer, and gives the `result`. What a call has done stays
    /// done, also when the run fails later: prefer [`enqueue`](Self::enqueue) where the answer isn't needed.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn call(&self, method: &str, params: impl Serialize) -> Result<Value, CallError> {
        let answer = host::call(method, &to_json(&params)?)?;
        json::from_str(&answer).map_err(|error| CallError::UnknownOutcome(error.to_string()))
    }

    /// Queues a call of any method, to be made once the run has committed.
    ///
    /// ```
    /// # use botyard_sdk::prelude::*;
    /// fn roll(ctx: &Run) -> Result<(), Error> {
    ///     ctx.enqueue("sendDice", json!({ "chat_id": ctx.chat_id(), "emoji": "🎯" }))?;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// [`CallError::Denied`] without a grant, [`CallError::Invalid`] when the parameters are no object.
    pub fn enqueue(&self, method: &str, params: impl Serialize) -> Result<(), CallError> {
        Ok(host::enqueue(method, &to_json(&params)?, message::usual())?)
    }

    pub(crate) fn push(&self, method: &str, params: &str, options: Options) {
        if let Err(error) = host::enqueue(method, params, options) {
            self.fail(CallError::from(error).into());
        }
    }
}

/// Everything else.
impl Run {
    /// Values that outlive conversations.
    #[must_use]
    pub fn storage(&self) -> Storage<'_> {
        Storage::new(self)
    }

    /// Makes the run fail once its handler has returned: for effects that nobody waits for.
    pub(crate) fn fail(&self, error: Error) {
        self.failure.borrow_mut().get_or_insert(error);
    }

    pub(crate) fn finish(self) -> Result<(), Error> {
        self.failure.into_inner().map_or(Ok(()), Err)
    }
}

fn to_json(params: &impl Serialize) -> Result<String, CallError> {
    json::to_string(params).map_err(|error| CallError::Invalid(error.to_string()))
}

fn payload_bytes(name: &str, payload: &impl Serialize) -> Result<Vec<u8>, Error> {
    json::to_string(payload)
        .map(String::into_bytes)
        .map_err(|error| Error::permanent(format!("the payload of `{name}` can't be written: {error}")))
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
