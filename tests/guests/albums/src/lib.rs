//! Tells what it was given: an album as one event, or single messages. A caption `pass` leaves the album to others, `slow`
//! takes two seconds.

use botyard_sdk::prelude::*;

#[plugin]
mod albums {
    #[album]
    fn album(ctx: &mut Ctx) -> Handled {
        let Some(album) = ctx.album() else { return Pass };
        if ctx.text() == "pass" {
            return Pass;
        }
        if ctx.text() == "slow" {
            ctx.sleep(Duration::from_secs(2));
        }
        let ids = album.updates.iter().filter_map(|update| update.message_id).map(|id| id.to_string());
        let ids = ids.collect::<Vec<_>>().join(" ");
        let late = if album.late { " late" } else { "" };
        ctx.reply(format!("album {ids} \"{}\"{late}", ctx.text()));
        Done
    }

    #[on("message")]
    fn single(ctx: &mut Ctx) {
        ctx.reply(format!("message {} \"{}\"", ctx.message_id().unwrap_or_default(), ctx.text()));
    }
}
