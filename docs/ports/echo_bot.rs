//! mojogram's example `echo_bot`: says what it hears.

use botyard_sdk::prelude::*;

#[plugin(methods = [api::SendMessage])]
pub(crate) mod echo_bot {
    #[command("start")]
    fn start(ctx: &mut Ctx) {
        ctx.reply("Hello! I'm a plugin in Rust. Send me anything and I'll echo it.");
    }

    #[message(filter = filter::has("text"))]
    fn echo(ctx: &mut Ctx) {
        ctx.reply(ctx.text());
    }
}
