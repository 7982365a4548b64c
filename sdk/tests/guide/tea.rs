use botyard_sdk::prelude::*;

#[plugin]
mod tea {
    /// What there is
    #[command("menu")]
    fn menu(ctx: &mut Ctx) {
        ctx.reply("Black or green. /order one.");
    }

    /// Order a tea
    #[command("order {kind} {cups?}")]
    fn order(ctx: &mut Ctx, kind: String, cups: Option<u8>) {
        ctx.reply(format!("{} × {kind} tea, coming.", cups.unwrap_or(1)));
    }
}
