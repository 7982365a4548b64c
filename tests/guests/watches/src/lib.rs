//! Says which messages it has seen, whoever takes them.

use botyard_sdk::prelude::*;

#[plugin]
mod watches {
    #[on("message", observe)]
    fn watch(ctx: &mut Ctx) {
        ctx.reply(format!("saw {}", ctx.message_id().unwrap_or_default()));
    }
}
