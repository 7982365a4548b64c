//! `/trap` ends in a trap that no panic hook has seen, after an effect that must not come true.

use botyard_sdk::prelude::*;

#[plugin]
mod traps {
    #[command("trap")]
    fn trap(ctx: &mut Ctx) {
        ctx.reply("this is never sent");
        std::process::abort();
    }
}
