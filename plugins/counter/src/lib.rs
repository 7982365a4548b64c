//! Counts how often it was asked: in this chat, and in all chats together.
//!
//! The counts are values in the plugin's storage, one in the space of the chat, one in the space of the whole plugin.
//! Chats are handled in parallel, and still no count is lost: a run whose values have changed under it before it
//! commits is made again by the host.

use botyard_sdk::prelude::*;

#[plugin(methods = ["sendMessage"])]
mod counter {
    /// Count one more.
    #[command("count")]
    fn count(ctx: &mut Ctx) -> Result<(), Error> {
        let here = ctx.storage().chat().increment("count", 1)?;
        let all = ctx.storage().plugin().increment("count", 1)?;
        ctx.reply(format!("This chat: {here}. All chats: {all}."));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use botyard_sdk::test::Bot;

    use super::counter::Plugin;

    #[test]
    fn counts_on() {
        let mut bot = Bot::<Plugin>::new();
        assert_eq!(bot.text("/count").texts(), ["This chat: 1. All chats: 1."]);
        assert_eq!(bot.text("/count@botyard_bot").texts(), ["This chat: 2. All chats: 2."]);
    }
}
