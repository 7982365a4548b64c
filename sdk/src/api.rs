//! The whole Bot API, typed.
//!
//! - [`Method`]s are built with what Telegram requires and take the rest by name. [`Run::queue`](crate::Run::queue)
//!   queues one, [`Run::ask`](crate::Run::ask) makes the call at once and gives the typed answer.
//! - [`Object`]s are views of JSON: every field is a function. What Telegram left out reads as none, empty or 0, and never
//!   fails. A field that is newer than this SDK is read with [`Object::get`] and written with [`Object::set`].
//! - Where one of several objects may stand, and where a text is one of several names, there is an enum, whose `Unknown`
//!   keeps what this SDK does not know.
//!
//! ```
//! use botyard_sdk::api::{ChatMember, GetChatMember, SendPoll};
//! use botyard_sdk::prelude::*;
//!
//! fn ask(ctx: &Run) {
//!     ctx.queue(SendPoll::new(ctx.here(), "Tea?", ["Yes", "No"]).is_anonymous(false));
//! }
//! fn is_admin(ctx: &Run, user: i64) -> Result<bool, Error> {
//!     let member = ctx.ask(GetChatMember::new(ctx.here(), user))?;
//!     Ok(matches!(member, ChatMember::Owner(_) | ChatMember::Administrator(_)))
//! }
//! fn title(ctx: &Run) -> Option<String> {
//!     ctx.message()?.chat().title()
//! }
//! ```
//!
//! A plugin is as large as what it uses of this: unused methods, objects and fields are not in it.
//!
//! Most of this is generated from `sdk/bot-api.json` by `cargo xtask bot-api`. The names are those of
//! [the Bot API](https://core.telegram.org/bots/api), which explains them; a field called `type` is read with `kind()`.
//! Objects that are both read and written have setters that begin with `with_`, as in
//! [`ChatPermissions::with_can_send_messages`].

use serde::Serialize;

use crate::Error;
use crate::json::Object as Params;

#[macro_use]
mod macros;
mod by_hand;
mod generated;
mod json;
mod read;
mod write;

pub use by_hand::{Content, InputFile};
pub use generated::*;
pub use json::Json;
#[cfg(test)]
pub(crate) use json::tests::value as any_json;
pub use read::FromJson;

/// A method of the Bot API with its parameters.
pub trait Method: Sized {
    /// As the Bot API writes it: for `#[plugin(methods = […])]` a method can be named by its type, which is the same.
    const NAME: &'static str;
    /// What it answers with.
    type Answer: FromJson;

    /// The parameters so far.
    fn params(&self) -> &Json;

    /// Sets a parameter by its name: for one that is newer than this SDK.
    ///
    /// ```
    /// use botyard_sdk::api::SendDice;
    /// use botyard_sdk::prelude::*;
    ///
    /// fn roll(ctx: &Run) {
    ///     ctx.queue(SendDice::new(ctx.here()).set("brand_new", 1));
    /// }
    /// ```
    #[must_use]
    fn set(self, key: &str, value: impl Serialize) -> Self;
}

/// The parameters, unless something in them can't be sent.
pub(crate) fn params(method: &impl Method) -> Result<Params, Error> {
    let params = method.params();
    params.failure().map_or_else(|| Ok(Params::open(params.as_json())), |error| Err(error.clone()))
}

/// An object of the Bot API: a view of its JSON.
pub trait Object: FromJson + Into<Json> {
    /// Its JSON.
    fn json(&self) -> &Json;

    /// Sets a field by its name: for one that is newer than this SDK.
    #[must_use]
    fn set(self, key: &str, value: impl Serialize) -> Self;

    /// Reads a field by its name.
    ///
    /// ```
    /// use botyard_sdk::prelude::*;
    ///
    /// fn stars(ctx: &Run) -> Option<i64> {
    ///     ctx.message()?.get("brand_new_star_count")
    /// }
    /// ```
    fn get<T: FromJson>(&self, key: &str) -> T {
        read::field(self.json(), key)
    }

    /// True where the field is there.
    fn has(&self, key: &str) -> bool {
        self.json().get(key).is_some_and(|value| !value.is_null())
    }
}
