//! What a handler can take besides its context.
//!
//! A parameter after `ctx` gets its value in one of three ways, all of them known when the plugin is compiled:
//!
//! - it is named in the attribute's command: `#[command("remind {minutes} {what...}")]`;
//! - it is bound by the attribute's state: `#[state(Form::Age { name })]`;
//! - its type implements [`Extract`]: the parts of an update, and what is below.
//!
//! ```
//! use botyard_sdk::extract::{Config, Start};
//! use botyard_sdk::{User, prelude::*};
//!
//! #[plugin]
//! mod welcome {
//!     #[derive(Deserialize, Default)]
//!     #[serde(default)]
//!     struct Words {
//!         hello: String,
//!     }
//!
//!     #[on("chat_member")]
//!     fn joined(ctx: &mut Ctx, change: api::ChatMemberUpdated, Config(words): Config<Words>) {
//!         ctx.send(change.chat().id(), words.hello);
//!     }
//!
//!     #[start("ref-")]
//!     fn invited(ctx: &mut Ctx, user: User, Start(by): Start<i64>) {
//!         ctx.reply(format!("Hello {}, {by} has sent you.", user.first_name));
//!     }
//! }
//! # fn main() {}
//! ```
//!
//! Where there is no such value, the handler passes; `Option<…>` takes either.

use std::str::FromStr;

use serde::de::DeserializeOwned;

use crate::api::{self, FromJson as _};
use crate::{Album, Error, Handled, Run, Timer, User};

/// What can be taken from an event.
#[diagnostic::on_unimplemented(
    message = "a handler can't take a `{Self}`",
    label = "not something that an event holds",
    note = "an argument of a command is named in the attribute: `#[command(\"remind {{minutes}}\")]`",
    note = "a part of the state is bound there: `#[state(Form::Age {{ name }})]`",
    note = "everything else implements `Extract`: see `botyard_sdk::extract`"
)]
pub trait Extract: Sized {
    /// The value.
    ///
    /// # Errors
    /// What becomes of the event where there is none.
    fn extract(ctx: &Run) -> Result<Self, Rejected>;
}

/// Why a handler is not called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rejected {
    /// The event has no such thing: somebody else is asked.
    Pass,
    /// It has been answered.
    Answered,
    /// The run fails.
    Failed(Error),
}

impl Rejected {
    #[doc(hidden)]
    pub fn verdict(self) -> Result<Handled, Error> {
        match self {
            Self::Pass => Ok(Handled::Pass),
            Self::Answered => Ok(Handled::Done),
            Self::Failed(error) => Err(error),
        }
    }
}

impl<T: Extract> Extract for Option<T> {
    fn extract(ctx: &Run) -> Result<Self, Rejected> {
        match T::extract(ctx) {
            Ok(value) => Ok(Some(value)),
            Err(Rejected::Pass) => Ok(None),
            Err(rejected) => Err(rejected),
        }
    }
}

fn or_pass<T>(value: Option<T>) -> Result<T, Rejected> {
    value.ok_or(Rejected::Pass)
}

/// Who caused the event.
impl Extract for User {
    fn extract(ctx: &Run) -> Result<Self, Rejected> {
        or_pass(Some(ctx.user()).filter(|user| user.id != 0))
    }
}

/// The message that the event is or is about.
impl Extract for api::Message {
    fn extract(ctx: &Run) -> Result<Self, Rejected> {
        or_pass(ctx.message())
    }
}

/// The whole update.
impl Extract for api::Update {
    fn extract(ctx: &Run) -> Result<Self, Rejected> {
        or_pass(ctx.update_parts().map(|_| ctx.telegram()))
    }
}

/// The chat that the event happened in.
impl Extract for api::Chat {
    fn extract(ctx: &Run) -> Result<Self, Rejected> {
        let event = ctx.object().ok_or(Rejected::Pass)?;
        let chat = event.get("chat").or_else(|| event.get("message")?.get("chat"));
        or_pass(chat.as_ref().and_then(api::Chat::read))
    }
}

/// Of the bot itself, or of somebody else.
impl Extract for api::ChatMemberUpdated {
    fn extract(ctx: &Run) -> Result<Self, Rejected> {
        let update = ctx.telegram();
        or_pass(update.chat_member().or_else(|| update.my_chat_member()))
    }
}

impl Extract for Album {
    fn extract(ctx: &Run) -> Result<Self, Rejected> {
        or_pass(ctx.album().cloned())
    }
}

impl Extract for Timer {
    fn extract(ctx: &Run) -> Result<Self, Rejected> {
        or_pass(ctx.timer().cloned())
    }
}

macro_rules! parts {
    ($($object:ident $field:ident;)*) => {
        $(impl Extract for api::$object {
            fn extract(ctx: &Run) -> Result<Self, Rejected> {
                or_pass(ctx.telegram().$field())
            }
        })*
    };
}

parts! {
    CallbackQuery callback_query;
    InlineQuery inline_query;
    ChosenInlineResult chosen_inline_result;
    PreCheckoutQuery pre_checkout_query;
    ShippingQuery shipping_query;
    Poll poll;
    PollAnswer poll_answer;
    ChatJoinRequest chat_join_request;
    MessageReactionUpdated message_reaction;
    MessageReactionCountUpdated message_reaction_count;
    ChatBoostUpdated chat_boost;
    ChatBoostRemoved removed_chat_boost;
    BusinessConnection business_connection;
    BusinessMessagesDeleted deleted_business_messages;
}

/// The text or caption, where there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text(pub String);

impl Extract for Text {
    fn extract(ctx: &Run) -> Result<Self, Rejected> {
        or_pass(Some(ctx.text()).filter(|text| !text.is_empty()).map(|text| Self(text.to_owned())))
    }
}

/// The plugin's `config` in `bot.toml`: see [`Run::config`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config<T>(pub T);

impl<T: DeserializeOwned> Extract for Config<T> {
    fn extract(ctx: &Run) -> Result<Self, Rejected> {
        ctx.config().map(Self).map_err(Rejected::Failed)
    }
}

/// What a timer was given when it was set: see [`Run::payload`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payload<T>(pub T);

impl<T: DeserializeOwned> Extract for Payload<T> {
    fn extract(ctx: &Run) -> Result<Self, Rejected> {
        ctx.timer().ok_or(Rejected::Pass)?;
        ctx.payload().map(Self).map_err(Rejected::Failed)
    }
}

/// What came with `/start` by a link, without the beginning that the attribute names: `#[start("ref-")]`. Without a `T`
/// it is a text; [`Decoded`](crate::link::Decoded) is one that was encoded. Where it is no `T`, the handler passes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start<T = String>(pub T);

impl<T: FromStr> Start<T> {
    pub(crate) fn after(prefix: &str, ctx: &Run) -> Result<Self, Rejected> {
        let payload = or_pass(Some(ctx.args()).filter(|args| !args.is_empty() && ctx.command() == Some("start")))?;
        let rest = or_pass(payload.strip_prefix(prefix))?;
        or_pass(rest.parse().ok().map(Self))
    }
}

impl<T: FromStr> Extract for Start<T> {
    fn extract(ctx: &Run) -> Result<Self, Rejected> {
        Self::after(ctx.start_prefix(), ctx)
    }
}
