//! `/loop` computes for ever; `/wait` waits for ever, which costs no CPU; `/well` does neither.

use botyard_sdk::prelude::*;

#[plugin]
mod loops {
    #[command("loop")]
    fn compute(ctx: &mut Ctx) {
        ctx.reply("this is never sent");
        loop {
            std::hint::black_box(ctx.random());
        }
    }

    #[command("well")]
    fn well(ctx: &mut Ctx) {
        ctx.reply("well behaved");
    }

    #[command("wait")]
    fn wait(ctx: &mut Ctx) {
        ctx.reply("this is never sent");
        loop {
            ctx.sleep(Duration::from_secs(3600));
        }
    }
}
