//! Every person in a chat is a conversation of their own. `slow` never ends, other texts come back; `/cancel` is a command
//! of its own, too.

use botyard_sdk::prelude::*;

#[plugin(key = "user_in_chat")]
mod by_user {
    #[command("cancel")]
    fn cancel(ctx: &mut Ctx) {
        ctx.reply("the plugin's own");
    }

    #[text]
    fn echo(ctx: &mut Ctx) {
        while ctx.text().starts_with("slow") {
            ctx.sleep(Duration::from_secs(3600));
        }
        ctx.reply(ctx.text());
    }
}
