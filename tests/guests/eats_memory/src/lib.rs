//! `/eat` fills memory until there is no more; `/eat 8` fills 8 MiB and says so.

use botyard_sdk::prelude::*;

#[plugin]
mod eats_memory {
    #[command("eat")]
    fn eat(ctx: &mut Ctx) {
        let wanted = ctx.args().parse().unwrap_or(u32::MAX);
        for megabyte in 0..wanted {
            // Every page is written to, so that it is really there.
            std::hint::black_box(vec![megabyte as u8 | 1; 1 << 20].leak());
        }
        ctx.reply(format!("ate {wanted} MiB"));
    }
}
