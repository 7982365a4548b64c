//! `/panic TEXT` panics with that text; `/fail` fails in a way that another attempt may mend, `/fail 3` succeeds at the
//! third; `/refuse` fails for good.

use botyard_sdk::prelude::*;

#[plugin]
mod panics {
    #[command("panic")]
    fn panic(ctx: &mut Ctx) {
        ctx.reply("this is never sent");
        panic!("deliberate: {}", ctx.args());
    }

    #[command("fail")]
    fn fail(ctx: &mut Ctx) -> Result<(), Error> {
        let succeeds_at = ctx.args().parse().unwrap_or(u32::MAX);
        ctx.reply(format!("attempt {}", ctx.attempt()));
        if ctx.attempt() < succeeds_at {
            return Err(Error::new(format!("attempt {} failed", ctx.attempt())));
        }
        Ok(())
    }

    #[command("refuse")]
    fn refuse(ctx: &mut Ctx) -> Result<(), Error> {
        ctx.reply("this is never sent");
        Err(Error::permanent("refused for good"))
    }
}
