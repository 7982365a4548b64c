//! Echoes what a webhook brings, and logs it: what mojogram's example `webhook_bot` does. Which way updates come is the
//! operator's affair, four lines in `bot.toml`; the plugin is the same for both:
//!
//! ```toml
//! [intake]
//! mode = "webhook"
//! [intake.webhook]
//! url = "https://bot.example/telegram"
//! listen = "127.0.0.1:8080"
//! ```

use botyard_sdk::prelude::*;

#[plugin]
pub(crate) mod webhook_bot {
    #[command("start")]
    fn start(ctx: &mut Ctx) {
        ctx.reply("Webhook bot ready.");
    }

    #[text]
    fn echo(ctx: &mut Ctx) {
        info!("webhook", chat = ctx.chat_id().unwrap_or_default(), length = ctx.text().len());
        ctx.reply(ctx.text());
    }
}
