//! Echoes, many chats at once: what mojogram's example `parallel_bot` does. That it is parallel stands nowhere: the host
//! handles different chats on all cores, and the messages of one in order. `[dispatch] concurrency` in `bot.toml` is how many.

use botyard_sdk::prelude::*;

#[plugin]
pub(crate) mod parallel_bot {
    #[command("start")]
    fn start(ctx: &mut Ctx) {
        ctx.reply("Parallel bot ready.");
    }

    #[text]
    fn echo(ctx: &mut Ctx) {
        ctx.reply(ctx.text());
    }
}
