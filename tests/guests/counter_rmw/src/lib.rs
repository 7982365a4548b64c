//! `/add` reads a number that all chats share, adds one and writes it back, in two calls of the host. `/sum` tells it.

use botyard_sdk::prelude::*;

#[plugin]
mod counter_rmw {
    #[command("add")]
    fn add(ctx: &mut Ctx) -> Result<(), Error> {
        let all = ctx.storage().plugin();
        let sum = all.get::<u64>("sum")?.unwrap_or(0) + 1;
        all.set("sum", &sum)?;
        ctx.reply(sum.to_string());
        Ok(())
    }

    #[command("sum")]
    fn sum(ctx: &mut Ctx) -> Result<(), Error> {
        let sum = ctx.storage().plugin().get::<u64>("sum")?.unwrap_or(0);
        ctx.reply(sum.to_string());
        Ok(())
    }
}
