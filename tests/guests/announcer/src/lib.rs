//! Writes to many chats: `/announce TEXT` to all known ones, `/tell ID,ID… TEXT` to some, `/paid TEXT` for Stars;
//! `/how ID`, `/hold ID`, `/go ID` and `/end ID` look after it.

use botyard_sdk::{Recipients, prelude::*};

#[plugin]
mod announcer {
    #[command("announce")]
    fn announce(ctx: &mut Ctx) -> Result<(), Error> {
        let begun = ctx.broadcast(Recipients::KnownChats, ctx.args()).name("announcement").start();
        say_id(ctx, begun);
        Ok(())
    }

    #[command("tell")]
    fn tell(ctx: &mut Ctx) -> Result<(), Error> {
        let (ids, text) = ctx.args().split_once(' ').unwrap_or((ctx.args(), "hello"));
        let ids = ids.split(',').map(str::parse::<i64>).collect::<Result<Vec<_>, _>>()?;
        let begun = ctx.broadcast(ids, text).html().start();
        say_id(ctx, begun);
        Ok(())
    }

    #[command("paid")]
    fn paid(ctx: &mut Ctx) {
        let begun = ctx.broadcast(Recipients::KnownChats, ctx.args()).paid(10).start();
        say_id(ctx, begun);
    }

    #[command("how")]
    fn how(ctx: &mut Ctx) -> Result<(), Error> {
        let said = match ctx.broadcast_status(ctx.args().parse()?)? {
            Some(status) => format!("{:?}: {} of {}", status.state, status.sent, status.total),
            None => "there is none".to_owned(),
        };
        ctx.reply(said);
        Ok(())
    }

    #[command("hold")]
    fn hold(ctx: &mut Ctx) -> Result<(), Error> {
        let done = ctx.pause_broadcast(ctx.args().parse()?)?;
        ctx.reply(done.to_string());
        Ok(())
    }

    #[command("go")]
    fn go(ctx: &mut Ctx) -> Result<(), Error> {
        let done = ctx.resume_broadcast(ctx.args().parse()?)?;
        ctx.reply(done.to_string());
        Ok(())
    }

    #[command("end")]
    fn end(ctx: &mut Ctx) -> Result<(), Error> {
        let done = ctx.cancel_broadcast(ctx.args().parse()?)?;
        ctx.reply(done.to_string());
        Ok(())
    }

    fn say_id(ctx: &Ctx, begun: Result<u64, CallError>) {
        match begun {
            Ok(id) => ctx.reply(id.to_string()),
            Err(error) => ctx.reply(error.to_string()),
        };
    }
}

#[cfg(test)]
mod tests {
    use botyard_sdk::{BroadcastState, Recipients, test::Bot};

    use super::announcer::Plugin;

    #[test]
    fn what_is_begun_can_be_seen_and_looked_after() {
        let mut bot = Bot::<Plugin>::new();
        let outcome = bot.text("/tell 7,8 <b>hi</b>");
        let begun = &outcome.broadcasts[0];
        assert_eq!(begun.to, Recipients::from(vec![7, 8]));
        assert_eq!((begun.method.as_str(), &begun.params["text"]), ("sendMessage", &"<b>hi</b>".into()));
        assert_eq!(begun.params["parse_mode"], "HTML");
        assert_eq!(outcome.texts(), [begun.id.to_string()]);
        assert_eq!(bot.text(&format!("/how {}", begun.id)).texts(), ["State::Running: 0 of 2"]);
        bot.broadcast(begun.id).unwrap().sent = 1;
        assert_eq!(bot.text(&format!("/hold {}", begun.id)).texts(), ["true"]);
        assert_eq!(bot.broadcast(begun.id).unwrap().state, BroadcastState::Paused);
        assert_eq!(bot.text("/end 99").texts(), ["false"]);
    }
}
