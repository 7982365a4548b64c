//! What is known of chats without a call.

use super::Run;
use crate::bindings::botyard::telegram::chats::KnownChat;
use crate::{Error, host};

impl Run {
    /// What the bot has last seen of a chat, and whether it can still be reached; none for a chat that it has not met.
    /// Costs no call, and tells less than `getChat`, which the plugin must be allowed to call.
    ///
    /// ```
    /// # use botyard_sdk::prelude::*;
    /// fn greet(ctx: &Run, friend: i64) -> Result<(), Error> {
    ///     if let Some(chat) = ctx.known_chat(friend)?.filter(|chat| chat.gone.is_none()) {
    ///         ctx.enqueue("sendMessage", json!({ "chat_id": chat.id, "text": "hi" }))?;
    ///     }
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// Permanently, when `getChat` is not granted; says what to add.
    pub fn known_chat(&self, id: i64) -> Result<Option<KnownChat>, Error> {
        host::known_chat(id).map_err(Error::permanent)
    }
}
