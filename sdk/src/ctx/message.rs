//! A text message under construction.

use serde::Serialize;

use super::{Run, to_json};
use crate::bindings::botyard::telegram::bot_api::{BadMarkup, Delivery, LongText, Options};
use crate::json::{self, Object};
use crate::keyboard::Markup;
use crate::{CallError, Error, Priority, Value, host};

/// A message that [`Run::reply`], [`Run::send`] or [`Run::edit`] has begun. It is queued when it is dropped, so a
/// plain `ctx.reply("…");` is enough; if that is not possible, the run fails with the reason.
pub struct Message<'run> {
    run: &'run Run,
    method: &'static str,
    /// None once it is queued, and for a message that has nowhere to go.
    params: Option<Object>,
    options: Options,
    /// Why there is nothing to queue.
    problem: Option<Error>,
}

/// A reply that somebody waits for, and that must not be lost.
pub(super) fn usual() -> Options {
    Options {
        priority: Priority::Interactive,
        delivery: Delivery::AtLeastOnce,
        long_text: LongText::Split,
        bad_markup: BadMarkup::Refuse,
    }
}

impl<'run> Message<'run> {
    pub(super) fn new(run: &'run Run, method: &'static str, params: Object) -> Self {
        Self { run, method, params: Some(params), options: usual(), problem: None }
    }

    /// The run has failed already: there is nothing to queue.
    pub(super) fn nowhere(run: &'run Run) -> Self {
        Self { run, method: "", params: None, options: usual(), problem: None }
    }

    /// It can't be made. Whoever sends it is told; else the run fails.
    pub(super) fn broken(run: &'run Run, problem: Error) -> Self {
        let mut message = Self::nowhere(run);
        message.problem = Some(problem);
        message
    }

    /// Adds buttons: an [`InlineKeyboard`](crate::keyboard::InlineKeyboard), a
    /// [`ReplyKeyboard`](crate::keyboard::ReplyKeyboard) or a [`RemoveKeyboard`](crate::keyboard::RemoveKeyboard).
    pub fn keyboard(self, keyboard: impl Markup) -> Self {
        match keyboard.into_json() {
            Ok(json) => self.markup(&json),
            Err(error) => {
                self.run.fail(error);
                self
            }
        }
    }

    /// Adds buttons that are JSON already.
    pub(crate) fn markup(self, json: &str) -> Self {
        self.with(|params| params.raw("reply_markup", json))
    }

    /// The text is [HTML](https://core.telegram.org/bots/api#html-style).
    pub fn html(self) -> Self {
        self.with(|params| params.text("parse_mode", "HTML"))
    }

    /// The text is [MarkdownV2](https://core.telegram.org/bots/api#markdownv2-style).
    pub fn markdown(self) -> Self {
        self.with(|params| params.text("parse_mode", "MarkdownV2"))
    }

    /// Quotes a message of the chat; if it is gone, the text is sent all the same.
    ///
    /// ```
    /// # use botyard_sdk::prelude::*;
    /// fn quote(ctx: &Run) {
    ///     if let Some(message) = ctx.message_id() {
    ///         ctx.reply("This one?").reply_to(message);
    ///     }
    /// }
    /// ```
    pub fn reply_to(self, message_id: i64) -> Self {
        let mut quoted = Object::new();
        quoted.integer("message_id", message_id).raw("allow_sending_without_reply", "true");
        let quoted = quoted.finish();
        self.with(|params| params.raw("reply_parameters", &quoted))
    }

    /// Without a sound.
    pub fn silent(self) -> Self {
        self.with(|params| params.raw("disable_notification", "true"))
    }

    /// Any other parameter of the method.
    ///
    /// ```
    /// # use botyard_sdk::prelude::*;
    /// fn link(ctx: &Run) {
    ///     ctx.reply("https://example.org").set("link_preview_options", json!({ "is_disabled": true }));
    /// }
    /// ```
    pub fn set(self, name: &str, value: impl Serialize) -> Self {
        match to_json(&value) {
            Ok(json) => self.with(|params| params.raw(name, &json)),
            Err(error) => {
                self.run.fail(error.into());
                self
            }
        }
    }

    /// How urgent it is. Without it: a reply that somebody waits for.
    pub fn priority(mut self, priority: Priority) -> Self {
        self.options.priority = priority;
        self
    }

    /// Rather lost than said twice: if the message may or may not have gone out, because the answer got lost or the
    /// host was killed just then, it is not sent again. The operator can see it with `botyard unknown`. Without this,
    /// it is sent again.
    ///
    /// ```
    /// # use botyard_sdk::prelude::*;
    /// fn pay_out(ctx: &Run) {
    ///     ctx.reply("Your voucher: 7F3K").at_most_once();
    /// }
    /// ```
    pub fn at_most_once(mut self) -> Self {
        self.options.delivery = Delivery::AtMostOnce;
        self
    }

    /// Rather without its markup than not at all: if Telegram can't read the HTML or Markdown, the text is sent once
    /// more as a plain one. For texts that the plugin has not written itself.
    ///
    /// ```
    /// # use botyard_sdk::prelude::*;
    /// fn answer(ctx: &Run, written_by_a_model: &str) {
    ///     ctx.reply(written_by_a_model).markdown().plain_fallback();
    /// }
    /// ```
    pub fn plain_fallback(mut self) -> Self {
        self.options.bad_markup = BadMarkup::SendPlain;
        self
    }

    /// Rather not at all than in pieces: a text that is too long for one message is refused. Without this, it goes out
    /// in several, cut between paragraphs, lines, sentences or words.
    pub fn whole(mut self) -> Self {
        self.options.long_text = LongText::Whole;
        self
    }

    /// Queues the message here and now, for those who want to handle the error themselves.
    ///
    /// # Errors
    /// [`CallError::Denied`] when the plugin has no grant for it.
    pub fn send(mut self) -> Result<(), CallError> {
        self.sound()?;
        let Some(params) = self.params.take() else { return Ok(()) };
        Ok(host::enqueue(self.method, &params.finish(), self.options)?)
    }

    /// Sends it now, without waiting for the commit, and gives the message that Telegram made of it. See [`Run::call`]
    /// for what that means when the run fails.
    ///
    /// ```
    /// # use botyard_sdk::prelude::*;
    /// fn post(ctx: &Run) -> Result<Option<i64>, Error> {
    ///     let message = ctx.reply("Working …").call()?;
    ///     Ok(message["message_id"].as_i64())
    /// }
    /// ```
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn call(mut self) -> Result<Value, CallError> {
        self.sound()?;
        let params = self.params.take().ok_or_else(|| CallError::Invalid("there is no chat to send it to".into()))?;
        let answer = host::call(self.method, &params.finish())?;
        json::from_str(&answer).map_err(|error| CallError::UnknownOutcome(error.to_string()))
    }

    fn sound(&mut self) -> Result<(), CallError> {
        self.problem.take().map_or(Ok(()), |problem| Err(CallError::Invalid(problem.to_string())))
    }

    fn with(mut self, add: impl FnOnce(&mut Object) -> &mut Object) -> Self {
        if let Some(params) = &mut self.params {
            add(params);
        }
        self
    }
}

impl Drop for Message<'_> {
    fn drop(&mut self) {
        if let Some(params) = self.params.take() {
            self.run.push(self.method, &params.finish(), self.options);
        }
        if let Some(problem) = self.problem.take() {
            self.run.fail(problem);
        }
    }
}
