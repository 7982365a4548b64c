//! Reminds people: `/remind 10m the tea`, or `/daily the plants` at nine every morning.
//!
//! A timer survives restarts and new versions of this plugin, and comes back to its own chat.

use botyard_sdk::prelude::*;

#[plugin(catalogs = "locales", methods = [api::SendMessage])]
mod plugin_name {
    #[derive(Deserialize)]
    #[serde(default)]
    struct Config {
        zone: String,
    }

    impl Default for Config {
        fn default() -> Self {
            Self { zone: "UTC".to_owned() }
        }
    }

    #[command("start", help = "help-start")]
    fn start(ctx: &mut Ctx) {
        ctx.reply(t!(ctx, "usage"));
    }

    #[command("remind", help = "help-remind")]
    fn remind(ctx: &mut Ctx) -> Result<(), Error> {
        let (time, what) = ctx.args().split_once(' ').unwrap_or((ctx.args(), ""));
        let (Some(delay), what) = (parse(time), what.trim()) else {
            ctx.reply(t!(ctx, "usage"));
            return Ok(());
        };
        ctx.after("reminder", delay, what)?;
        ctx.reply(t!(ctx, "set", time = time));
        Ok(())
    }

    /// The time zone is the operator's choice, in `bot.toml`: `config = { zone = "Asia/Tashkent" }`.
    #[command("daily", help = "help-daily")]
    fn daily(ctx: &mut Ctx) -> Result<(), Error> {
        let Config { zone } = ctx.config()?;
        ctx.cron("reminder", "0 9 * * *", &zone).payload(ctx.args()).set()?;
        ctx.reply(t!(ctx, "daily"));
        Ok(())
    }

    #[command("forget", help = "help-forget")]
    fn forget(ctx: &mut Ctx) {
        match ctx.cancel_named("reminder") {
            0 => ctx.reply(t!(ctx, "nothing")),
            _ => ctx.reply(t!(ctx, "forgotten")),
        };
    }

    #[timer("reminder")]
    fn ring(ctx: &mut Ctx) -> Result<(), Error> {
        let what: String = ctx.payload()?;
        ctx.reply(t!(ctx, "ring", what = what));
        Ok(())
    }

    /// `90s`, `10m`, `2h` or `1d`; at most a year.
    pub(crate) fn parse(time: &str) -> Option<Duration> {
        let (end, unit) = time.char_indices().last()?;
        let number: u64 = time.get(..end)?.parse().ok()?;
        let seconds = number.checked_mul(match unit {
            's' => 1,
            'm' => 60,
            'h' => 3_600,
            'd' => 86_400,
            _ => return None,
        })?;
        (1..=366 * 86_400).contains(&seconds).then(|| Duration::from_secs(seconds))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use botyard_sdk::test::Bot;

    use super::plugin_name::{Plugin, parse};

    #[test]
    fn times_have_a_number_and_a_unit() {
        for (text, seconds) in [("90s", Some(90)), ("2h", Some(7200)), ("soon", None), ("", None), ("0s", None), ("5é", None)] {
            assert_eq!(parse(text), seconds.map(Duration::from_secs), "{text}");
        }
    }

    #[test]
    fn a_timer_carries_its_text() {
        let mut bot = Bot::<Plugin>::new();
        bot.text("/remind 10m the tea");
        assert_eq!(bot.timer().unwrap().texts(), ["⏰ the tea"]);
    }
}
