//! The typed Bot API from within a run: the event as objects, methods queued and called, and answers to what waits for
//! one.

use super::{ChatTarget, Message, Run};
use crate::api::{self, FromJson, Json, Method, Object as _};
use crate::{CallError, Error, host};

/// The typed Bot API: see [`api`].
impl Run {
    /// The update as an object. Empty for a timer.
    ///
    /// ```
    /// # use botyard_sdk::prelude::*;
    /// fn vote(ctx: &Run) -> Vec<i64> {
    ///     ctx.telegram().poll_answer().map(|answer| answer.option_ids()).unwrap_or_default()
    /// }
    /// ```
    #[must_use]
    pub fn telegram(&self) -> api::Update {
        api::Update::parse(self.raw())
    }

    /// The message that the event is or is about; for a pressed button the one below which it was.
    ///
    /// ```
    /// # use botyard_sdk::prelude::*;
    /// fn title(ctx: &Run) -> Option<String> {
    ///     ctx.message()?.chat().title()
    /// }
    /// ```
    #[must_use]
    pub fn message(&self) -> Option<api::Message> {
        self.telegram().any_message()
    }

    /// True where the event's message has one of these fields: what `#[content(…)]` looks for.
    #[must_use]
    pub fn holds(&self, fields: &[&str]) -> bool {
        self.message().is_some_and(|message| fields.iter().any(|field| message.has(field)))
    }

    /// The event's chat, and its topic: where [`reply`](Self::reply) answers. Without a chat the run fails.
    ///
    /// ```
    /// # use botyard_sdk::prelude::*;
    /// fn roll(ctx: &Run) {
    ///     ctx.queue(api::SendDice::new(ctx.here()).emoji("🎯"));
    /// }
    /// ```
    #[must_use]
    pub fn here(&self) -> ChatTarget {
        match (self.chat_id(), self.thread_id()) {
            (Some(chat), Some(thread)) => ChatTarget::Topic(chat, thread),
            (Some(chat), None) => ChatTarget::Id(chat),
            (None, _) => {
                self.fail(Error::permanent("this event has no chat: name one"));
                ChatTarget::Id(0)
            }
        }
    }

    /// Queues a method, to be called once the run has committed. Options of the sending follow, as for a message.
    ///
    /// ```
    /// # use botyard_sdk::prelude::*;
    /// fn ask(ctx: &Run) {
    ///     ctx.queue(api::SendPoll::new(ctx.here(), "Tea?", ["Yes", "No"]).is_anonymous(false)).at_most_once();
    /// }
    /// ```
    pub fn queue<M: Method>(&self, method: M) -> Message<'_> {
        match api::params(&method) {
            Ok(params) => Message::new(self, M::NAME, params),
            Err(error) => {
                self.fail(error);
                Message::nowhere(self)
            }
        }
    }

    /// Calls a method now and gives its answer. What a call has done stays done, also when the run fails later: prefer
    /// [`queue`](Self::queue) where the answer isn't needed.
    ///
    /// ```
    /// # use botyard_sdk::prelude::*;
    /// fn members(ctx: &Run) -> Result<i64, Error> {
    ///     Ok(ctx.ask(api::GetChatMemberCount::new(ctx.here()))?)
    /// }
    /// ```
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn ask<M: Method>(&self, method: M) -> Result<M::Answer, CallError> {
        let params = api::params(&method).map_err(|error| CallError::Invalid(error.to_string()))?;
        let answer = host::call(M::NAME, &params.finish())?;
        M::Answer::read(&Json::from(answer))
            .ok_or_else(|| CallError::UnknownOutcome(format!("the answer of {} has another form", M::NAME)))
    }

    /// Answers an inline query with results. More about the answer is said with
    /// [`AnswerInlineQuery`](api::AnswerInlineQuery).
    ///
    /// ```
    /// # use botyard_sdk::prelude::*;
    /// fn suggest(ctx: &Run) {
    ///     ctx.answer_inline([api::InlineQueryResultArticle::new("1", "Hello", "Hello to you")]);
    /// }
    /// ```
    pub fn answer_inline<R: Into<api::InlineQueryResult>>(&self, results: impl IntoIterator<Item = R>) -> Message<'_> {
        match self.telegram().inline_query() {
            Some(query) => self.queue(api::AnswerInlineQuery::new(query.id(), results)),
            None => self.no("inline query"),
        }
    }

    /// Lets a payment go on, or says why it can't.
    ///
    /// ```
    /// # use botyard_sdk::prelude::*;
    /// fn checkout(ctx: &Run, in_stock: bool) {
    ///     ctx.answer_pre_checkout(if in_stock { Ok(()) } else { Err("Sold out, sorry.") });
    /// }
    /// ```
    pub fn answer_pre_checkout(&self, verdict: Result<(), &str>) -> Message<'_> {
        let Some(query) = self.telegram().pre_checkout_query() else { return self.no("pre-checkout query") };
        let answer = api::AnswerPreCheckoutQuery::new(query.id(), verdict.is_ok());
        self.queue(match verdict {
            Ok(()) => answer,
            Err(why) => answer.error_message(why),
        })
    }

    /// Offers ways of shipping, or says why nothing can be shipped there.
    ///
    /// ```
    /// # use botyard_sdk::prelude::*;
    /// fn ship(ctx: &Run) {
    ///     ctx.answer_shipping(Ok(vec![api::ShippingOption::new("post", "By post", [("Stamp", 300)])]));
    /// }
    /// ```
    pub fn answer_shipping(&self, verdict: Result<Vec<api::ShippingOption>, &str>) -> Message<'_> {
        let Some(query) = self.telegram().shipping_query() else { return self.no("shipping query") };
        let answer = api::AnswerShippingQuery::new(query.id(), verdict.is_ok());
        self.queue(match verdict {
            Ok(options) => answer.shipping_options(options),
            Err(why) => answer.error_message(why),
        })
    }

    /// Lets in whoever asked to join.
    pub fn approve_join(&self) -> Message<'_> {
        match self.telegram().chat_join_request() {
            Some(request) => self.queue(api::ApproveChatJoinRequest::new(request.chat().id(), request.from().id())),
            None => self.no("request to join"),
        }
    }

    /// Turns away whoever asked to join.
    pub fn decline_join(&self) -> Message<'_> {
        match self.telegram().chat_join_request() {
            Some(request) => self.queue(api::DeclineChatJoinRequest::new(request.chat().id(), request.from().id())),
            None => self.no("request to join"),
        }
    }

    /// Puts a reaction on the event's message, in place of the bot's former one; without an emoji it goes.
    ///
    /// ```
    /// # use botyard_sdk::prelude::*;
    /// fn like(ctx: &Run) {
    ///     ctx.react("👍");
    /// }
    /// ```
    pub fn react(&self, emoji: &str) -> Message<'_> {
        let (Some(chat), Some(message)) = (self.chat_id(), self.message_id()) else { return self.no("message") };
        let reactions = Some(emoji).filter(|emoji| !emoji.is_empty()).map(api::ReactionType::from);
        self.queue(api::SetMessageReaction::new(chat, message).reaction(reactions))
    }

    fn no(&self, what: &str) -> Message<'_> {
        self.fail(Error::permanent(format!("this event has no {what}")));
        Message::nowhere(self)
    }
}
