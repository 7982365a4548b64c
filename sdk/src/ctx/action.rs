//! Showing that the bot is at work.

use super::Run;
use crate::json::Object;
use crate::{CallError, Error, host};

/// Being seen at work.
impl Run {
    /// Shows “typing …” in the event's chat, now and for as long as this run lasts, also while it waits or calls.
    ///
    /// ```
    /// # use botyard_sdk::prelude::*;
    /// fn think(ctx: &Run) {
    ///     ctx.typing();
    ///     ctx.sleep(Duration::from_secs(12));
    ///     ctx.reply("42");
    /// }
    /// ```
    pub fn typing(&self) {
        self.acting("typing");
    }

    /// As [`typing`](Self::typing), with any action of
    /// [`sendChatAction`](https://core.telegram.org/bots/api#sendchataction), `upload_photo` say, in place of the one
    /// before.
    pub fn acting(&self, action: &str) {
        let Some(chat) = self.chat_id() else {
            return self.fail(Error::permanent("this event has no chat to show an action in"));
        };
        let mut params = Object::new();
        params.integer("chat_id", chat);
        if let Some(thread) = self.thread_id() {
            params.integer("message_thread_id", thread);
        }
        self.put_business(&mut params);
        params.text("action", action);
        if let Err(error) = host::keep_action(&params.finish()) {
            self.fail(CallError::from(error).into());
        }
    }
}
