//! Keeps all that can belong to a chat: `/count` counts in the chat's state and in its values, `/later MILLISECONDS` counts
//! when that time is over. `/say CHAT TEXT` writes anywhere, `/known CHAT` tells what is known of a chat, `/title CHAT`
//! asks Telegram for it.

use botyard_sdk::prelude::*;

#[plugin]
mod tally {
    #[derive(State, Serialize, Deserialize, Default)]
    #[state(version = 1, key = "chat")]
    enum Tally {
        #[default]
        None,
        Counted(u32),
    }

    #[command("count")]
    fn count(ctx: &mut Ctx<Tally>) -> Result<Handled, Error> {
        let state = match ctx.state() {
            Tally::None => 1,
            Tally::Counted(before) => before + 1,
        };
        let value = ctx.storage().chat().increment("count", 1)?;
        ctx.reply(format!("{state} {value}"));
        Ok(ctx.goto(Tally::Counted(state)))
    }

    #[command("later")]
    fn later(ctx: &mut Ctx<Tally>) -> Result<(), Error> {
        ctx.after("later", Duration::from_millis(ctx.args().parse()?), "")?;
        ctx.reply("set");
        Ok(())
    }

    #[timer("later")]
    fn ring(ctx: &mut Ctx<Tally>) -> Result<(), Error> {
        let value: i64 = ctx.storage().chat().get("count")?.unwrap_or(0);
        ctx.reply(format!("later {value}"));
        Ok(())
    }

    #[command("say")]
    fn say(ctx: &mut Ctx<Tally>) -> Result<(), Error> {
        let (chat, text) = ctx.args().split_once(' ').unwrap_or((ctx.args(), "hello"));
        Ok(ctx.enqueue("sendMessage", json!({ "chat_id": chat, "text": text }))?)
    }

    #[command("known")]
    fn known(ctx: &mut Ctx<Tally>) -> Result<(), Error> {
        let text = match ctx.known_chat(ctx.args().parse()?)? {
            Some(chat) => format!("{} {} {}", chat.id, chat.title, chat.gone.unwrap_or_else(|| "here".to_owned())),
            None => "unknown".to_owned(),
        };
        ctx.reply(text);
        Ok(())
    }

    #[command("title")]
    fn title(ctx: &mut Ctx<Tally>) -> Result<(), Error> {
        let chat = ctx.call("getChat", json!({ "chat_id": ctx.args() }))?;
        ctx.reply(chat["title"].as_str().unwrap_or("none"));
        Ok(())
    }
}
