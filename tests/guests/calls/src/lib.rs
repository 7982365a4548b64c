//! `/me` asks Telegram who the bot is; `/call METHOD` calls any method for this chat and answers with what came of it;
//! `/tell CHAT` sends to another chat; `/edit` sends a message at once and edits it.

use botyard_sdk::prelude::*;

#[plugin]
mod calls {
    #[command("me")]
    fn me(ctx: &mut Ctx) -> Result<(), Error> {
        let me = ctx.call("getMe", json!({}))?;
        ctx.reply(format!("I am {}", me["username"].as_str().unwrap_or("nobody")));
        Ok(())
    }

    #[command("call")]
    fn call(ctx: &mut Ctx) {
        match ctx.call(ctx.args(), json!({ "chat_id": ctx.chat_id(), "text": "called" })) {
            Ok(answer) => ctx.reply(format!("ok: {answer}")),
            Err(error) => ctx.reply(format!("error: {error}")),
        };
    }

    /// Another chat: a number or an `@name`.
    #[command("tell")]
    fn tell(ctx: &mut Ctx) {
        let told = ctx.call("sendMessage", json!({ "chat_id": ctx.args(), "text": "told" }));
        let queued = ctx.enqueue("sendMessage", json!({ "chat_id": ctx.args(), "text": "queued" }));
        let error = told.err().or(queued.err());
        ctx.reply(error.map_or_else(|| "ok".to_owned(), |error| format!("error: {error}")));
    }

    #[command("edit")]
    fn edit(ctx: &mut Ctx) -> Result<(), Error> {
        let message = ctx.reply("one moment").call()?;
        let edited = json!({ "chat_id": ctx.chat_id(), "message_id": message["message_id"], "text": "done" });
        ctx.enqueue("editMessageText", edited)?;
        Ok(())
    }
}
