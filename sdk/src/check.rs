//! What only a run can find out before a handler is asked: who is an administrator, and whatever a plugin wants to know.
//!
//! A check stands behind `check =` in a handler's attribute. It is any function of a `&Run` (or of the `&Ctx<…>`) that
//! gives a `bool`, or a `Result` of one. Where it is false, the handler passes:
//!
//! ```
//! use botyard_sdk::prelude::*;
//!
//! #[plugin(methods = ["sendMessage", "banChatMember", "getChatMember"])]
//! mod moderator {
//!     #[command("ban {user}", filter = group(), check = check::administrator)]
//!     fn ban(ctx: &mut Ctx, user: i64) {
//!         ctx.queue(api::BanChatMember::new(ctx.here(), user));
//!     }
//!
//!     #[command("night", check = is_night)]
//!     fn night(ctx: &mut Ctx) {
//!         ctx.reply("Good night.");
//!     }
//!
//!     fn is_night(ctx: &Run) -> Result<bool, Error> {
//!         Ok(ctx.storage().plugin().get::<bool>("night")?.unwrap_or_default())
//!     }
//! }
//! # fn main() {}
//! ```
//!
//! The host begins a run for everything that the handler's [`filter`](crate::filter) lets through, so leave to a check only
//! what a filter can't say.

use crate::api::{ChatMember, GetChatMember};
use crate::{CallError, Error, Run};

/// What a check may return.
#[diagnostic::on_unimplemented(
    message = "a check can't return `{Self}`",
    label = "return `bool` or `Result<bool, Error>`"
)]
pub trait Checked {
    /// Whether the handler may be asked.
    ///
    /// # Errors
    /// What the check returned.
    #[doc(hidden)]
    fn checked(self) -> Result<bool, Error>;
}

impl Checked for bool {
    fn checked(self) -> Result<bool, Error> {
        Ok(self)
    }
}

impl<E: Into<Error>> Checked for Result<bool, E> {
    fn checked(self) -> Result<bool, Error> {
        self.map_err(Into::into)
    }
}

/// Whether the event is by an administrator of its chat, or the owner. In a private chat everybody is their own; what
/// is posted in a channel is by one of its administrators.
///
/// Asks Telegram, once for each handler of a run that comes to it: grant `getChatMember`. An anonymous administrator is known without asking.
///
/// # Errors
/// When Telegram could not be asked.
pub fn administrator(ctx: &Run) -> Result<bool, Error> {
    // The chat itself speaks where an administrator is anonymous; whoever has a channel may speak as that.
    match on_behalf_of(ctx) {
        Some(sender) if ctx.chat_type() != "channel" => Ok(Some(sender) == ctx.chat_id()),
        _ => is_one(ctx, |member| matches!(member, ChatMember::Owner(_) | ChatMember::Administrator(_))),
    }
}

/// Whether the event is by the owner of its chat. As [`administrator`], but whoever is anonymous is not known as one.
///
/// # Errors
/// When Telegram could not be asked.
pub fn owner(ctx: &Run) -> Result<bool, Error> {
    match on_behalf_of(ctx) {
        Some(_) => Ok(false),
        None => is_one(ctx, |member| matches!(member, ChatMember::Owner(_))),
    }
}

/// The chat that a message is from in place of a person.
fn on_behalf_of(ctx: &Run) -> Option<i64> {
    let own = ctx.kind() != "callback_query";
    ctx.message().filter(|_| own)?.sender_chat().map(|sender| sender.id())
}

fn is_one(ctx: &Run, is: fn(&ChatMember) -> bool) -> Result<bool, Error> {
    match (ctx.chat_type(), ctx.chat_id(), ctx.user_id()) {
        ("private", ..) => Ok(true),
        ("channel", _, None) => Ok(true),
        (_, Some(chat), Some(user)) => match ctx.ask(GetChatMember::new(chat, user)) {
            Ok(member) => Ok(is(&member)),
            // Nobody of this chat.
            Err(CallError::Refused { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        },
        _ => Ok(false),
    }
}
