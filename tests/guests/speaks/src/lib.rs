//! `/who` says a text to the user, `/all` to the chat, `/later` after a moment, `/job` as a job; `/chat LOCALE` chooses the chat's language,
//! and `/undo LOCALE` chooses the user's and fails.

use botyard_sdk::prelude::*;

#[plugin(methods = ["sendMessage"])]
mod speaks {
    #[command("who")]
    fn who(ctx: &mut Ctx) {
        ctx.reply(t!(ctx, "said", count = 3));
    }

    #[command("all")]
    fn all(ctx: &mut Ctx) {
        ctx.reply(t!(ctx.for_chat(), "said", count = 1));
    }

    #[command("later")]
    fn later(ctx: &mut Ctx) -> Result<(), Error> {
        ctx.after("later", Duration::from_millis(50), "")?;
        Ok(())
    }

    #[timer("later")]
    fn rings(ctx: &mut Ctx) {
        ctx.reply(t!(ctx, "said", count = 5));
    }

    #[command("job")]
    fn job(ctx: &mut Ctx) -> Result<(), Error> {
        ctx.job("speak", ()).enqueue()?;
        Ok(())
    }

    #[job("speak")]
    fn works(ctx: &mut Ctx) {
        ctx.reply(t!(ctx, "said", count = 5));
    }

    #[command("chat")]
    fn chat(ctx: &mut Ctx) {
        match ctx.args().to_owned() {
            none if none.is_empty() => ctx.clear_chat_locale(),
            locale => ctx.set_chat_locale(&locale),
        }
        ctx.reply(t!(ctx.for_chat(), "said", count = 1));
    }

    #[command("undo")]
    fn undo(ctx: &mut Ctx) -> Result<(), Error> {
        let locale = ctx.args().to_owned();
        ctx.set_locale(&locale);
        Err(Error::permanent("nothing of it is kept"))
    }
}

#[cfg(test)]
mod tests {
    use botyard_sdk::test::Bot;

    use super::speaks::Plugin;

    #[test]
    fn a_timer_speaks_as_its_user_does() {
        let mut bot = Bot::<Plugin>::new();
        bot.locale = "ru".to_owned();
        bot.text("/later");
        assert_eq!(bot.timer().unwrap().texts(), ["ru 5 many"]);
        assert_eq!(bot.text("/chat uz").texts(), ["uz 1 one"]);
        assert_eq!(bot.text("/who").texts(), ["uz 3 other"], "before what Telegram tells, behind what was chosen");
        assert!(bot.text("/undo en").result.is_err());
        assert!(bot.text("/chat nothing").result.is_ok());
        assert!(bot.text("/chat ???").result.unwrap_err().to_string().contains("no language tag"));
    }
}
