//! `/remind MILLISECONDS TEXT` writes the text when that time is over; `/forget` cancels the last one that was set. `/flood`
//! sets as many as it may, each of which does the same.

use botyard_sdk::prelude::*;

#[plugin]
mod timers {
    use std::time::SystemTime;

    #[command("remind")]
    fn remind(ctx: &mut Ctx) -> Result<(), Error> {
        let (delay, text) = ctx.args().split_once(' ').unwrap_or((ctx.args(), "now"));
        let delay = Duration::from_millis(delay.parse()?);
        let timer = ctx.after("reminder", delay, text)?;
        ctx.storage().chat().set("last", &timer)?;
        ctx.reply("set");
        Ok(())
    }

    #[command("forget")]
    fn forget(ctx: &mut Ctx) -> Result<(), Error> {
        let last = ctx.storage().chat().get("last")?;
        let cancelled = last.is_some_and(|timer| ctx.cancel(timer));
        ctx.reply(if cancelled { "forgotten" } else { "nothing to forget" });
        Ok(())
    }

    #[command("flood")]
    fn flood(ctx: &mut Ctx) {
        more(ctx);
        ctx.reply("flooding");
    }

    #[timer("flood")]
    fn more(ctx: &mut Ctx) {
        // Refusals are no reason to stop.
        while ctx.at("flood", SystemTime::UNIX_EPOCH, "x".repeat(500)).is_ok() {}
    }

    #[timer("reminder")]
    fn ring(ctx: &mut Ctx) -> Result<(), Error> {
        let text: String = ctx.payload()?;
        ctx.reply(format!("reminder: {text}"));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use botyard_sdk::test::Bot;

    use super::timers::Plugin;

    #[test]
    fn a_timer_carries_its_text() {
        let mut bot = Bot::<Plugin>::new();
        bot.text("/remind 10 tea 🍵");
        assert_eq!(bot.timer().unwrap().texts(), ["reminder: tea 🍵"]);
        bot.text("/remind 10 tea");
        assert_eq!(bot.text("/forget").texts(), ["forgotten"]);
        assert!(bot.timer().is_none());
    }
}
