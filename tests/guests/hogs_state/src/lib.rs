//! Each command takes a number of bytes, lines or messages and asks for that much: `/state 100000`, `/value 2000000`,
//! `/log 100000`, `/flood 10000`. `/pile 100000` keeps that much more each time, until `/clear`.

use botyard_sdk::prelude::*;

#[plugin]
mod hogs_state {
    #[derive(State, Serialize, Deserialize, Default)]
    enum Hog {
        #[default]
        Idle,
        Full {
            text: String,
        },
    }

    #[command("state")]
    fn state(ctx: &mut Ctx<Hog>) -> Handled {
        ctx.reply("kept");
        ctx.goto(Hog::Full { text: "x".repeat(amount(ctx)) })
    }

    #[command("value")]
    fn value(ctx: &mut Ctx<Hog>) -> Result<(), Error> {
        ctx.storage().plugin().set("hoard", &"x".repeat(amount(ctx)))?;
        ctx.reply("kept");
        Ok(())
    }

    #[command("pile")]
    fn pile(ctx: &mut Ctx<Hog>) -> Result<(), Error> {
        let key = format!("pile-{}", ctx.event_id());
        ctx.storage().chat().set(&key, &"x".repeat(amount(ctx)))?;
        ctx.reply("kept");
        Ok(())
    }

    #[command("clear")]
    fn clear(ctx: &mut Ctx<Hog>) -> Result<(), Error> {
        for (key, _) in ctx.storage().chat().scan::<String>("pile-", None, 100)? {
            ctx.storage().chat().delete(&key)?;
        }
        ctx.reply("cleared");
        Ok(())
    }

    #[command("log")]
    fn log(ctx: &mut Ctx<Hog>) {
        for line in 0..amount(ctx) {
            info!("a line of the hog", line = line);
        }
        ctx.reply("logged");
    }

    #[command("flood")]
    fn flood(ctx: &mut Ctx<Hog>) {
        for number in 0..amount(ctx) {
            ctx.reply(number.to_string());
        }
    }

    fn amount(ctx: &Run) -> usize {
        ctx.args().parse().unwrap_or(1 << 20)
    }
}
