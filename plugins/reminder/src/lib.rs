//! Reminders: `/remind 10 the tea`, `/daily 9:30 the plants`, and `/reminders` to look at them and take them back.
//!
//! The plugin keeps no list. A timer is the list: `ctx.after` and `ctx.cron` hand it to the host, with what is to be said
//! as its payload, and `ctx.timers()` reads them back. They are stored with everything else, so they survive restarts and
//! new versions of the plugin, and come back to the conversation that has set them; what came due while the host was down
//! comes when it is up again.
//!
//! In a group the reminders are the chat's, so everybody sees the same list: `key = "chat"`.

use botyard_sdk::extract::{Config, Payload};
use botyard_sdk::prelude::*;

#[plugin(key = "chat", methods = [api::SendMessage, api::EditMessageText, api::AnswerCallbackQuery])]
mod reminder {
    use std::str::FromStr;

    /// A year.
    const MOST: u64 = 366 * 24 * 60;
    const PER_PAGE: usize = 5;

    #[derive(Deserialize)]
    #[serde(default)]
    struct Settings {
        /// Whose nine o'clock it is: `config = { zone = "Asia/Tashkent" }` in `bot.toml`.
        zone: String,
    }

    impl Default for Settings {
        fn default() -> Self {
            Self { zone: "UTC".to_owned() }
        }
    }

    /// A time of the day. A command's argument can be of any type that is read from a text; what does not fit is
    /// answered with how the command is written.
    #[derive(Debug, PartialEq)]
    pub(crate) struct Clock {
        hour: u8,
        minute: u8,
    }

    impl FromStr for Clock {
        type Err = ();

        fn from_str(text: &str) -> Result<Self, ()> {
            let (hour, minute) = text.split_once(':').ok_or(())?;
            let number = |text: &str, below: u8| text.parse().ok().filter(|number| *number < below).ok_or(());
            Ok(Self { hour: number(hour, 24)?, minute: number(minute, 60)? })
        }
    }

    #[derive(CallbackData)]
    enum List {
        Page(u32),
        Cancel { id: u64, page: u32 },
    }

    #[command("remind {minutes} {what...}", help = "cmd-remind")]
    fn remind(ctx: &mut Ctx, minutes: u64, what: String) -> Result<(), Error> {
        if !(1..=MOST).contains(&minutes) {
            ctx.reply(t!(ctx, "too-far", most = MOST));
            return Ok(());
        }
        ctx.after("reminder", Duration::from_secs(60 * minutes), &what)?;
        ctx.reply(t!(ctx, "set", minutes = minutes));
        Ok(())
    }

    /// There is one recurring timer of a name in a conversation: another `/daily` takes the place of the first.
    #[command("daily {time} {what...}", help = "cmd-daily")]
    fn daily(ctx: &mut Ctx, time: Clock, what: String, Config(settings): Config<Settings>) -> Result<(), Error> {
        let Clock { hour, minute } = time;
        ctx.cron("reminder", &format!("{minute} {hour} * * *"), &settings.zone).payload(&what).set()?;
        ctx.reply(t!(ctx, "daily", time = format!("{hour}:{minute:02}"), zone = settings.zone));
        Ok(())
    }

    #[timer("reminder")]
    fn ring(ctx: &mut Ctx, Payload(what): Payload<String>) {
        ctx.reply(t!(ctx, "ring", what = what));
    }

    #[command("reminders", help = "cmd-reminders")]
    fn reminders(ctx: &mut Ctx) -> Result<(), Error> {
        list(ctx, 0)
    }

    /// The button knows the timer by its id. If it has come due meanwhile, there is nothing to cancel, and the list is
    /// shown as it is now.
    #[callback(List)]
    fn pressed(ctx: &mut Ctx, pressed: List) -> Result<(), Error> {
        match pressed {
            List::Page(page) => list(ctx, page),
            List::Cancel { id, page } => {
                if ctx.cancel(id) {
                    ctx.answer_callback(t!(ctx, "gone"));
                }
                list(ctx, page)
            }
        }
    }

    fn list(ctx: &Run, page: u32) -> Result<(), Error> {
        let mut timers = ctx.timers();
        if timers.is_empty() {
            ctx.show(t!(ctx, "none"));
            return Ok(());
        }
        timers.sort_by_key(|timer| timer.due);
        let pager = Pager::new(timers.len(), PER_PAGE).at(page);
        let mut rows = Vec::new();
        for timer in pager.of(&timers) {
            let what: String = timer.read()?;
            let label = if timer.recurs {
                t!(ctx, "every-day", what = what)
            } else {
                let left = timer.due.duration_since(ctx.now()).unwrap_or_default();
                t!(ctx, "once", what = what, minutes = left.as_secs().div_ceil(60))
            };
            rows.push([Button::data(label, List::Cancel { id: timer.id, page: pager.page() })]);
        }
        ctx.show(t!(ctx, "list")).keyboard(InlineKeyboard::new().rows(rows).row(pager.buttons(List::Page)));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use botyard_sdk::test::Bot;

    use super::reminder::{Clock, Plugin};

    #[test]
    fn times_are_of_a_day() {
        for text in ["0:00", "9:30", "09:05", "23:59"] {
            assert!(text.parse::<Clock>().is_ok(), "{text}");
        }
        for text in ["", "9", "24:00", "9:60", "9:30:00", "nine", "-1:00"] {
            assert!(text.parse::<Clock>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_reminder_says_what_it_was_given() {
        let mut bot = Bot::<Plugin>::new();
        assert_eq!(bot.text("/remind 10 the  tea").texts(), ["In 10 minutes, then."]);
        assert_eq!(bot.timer().unwrap().texts(), ["⏰ the  tea"]);
        assert!(bot.timer().is_none());
        for far in ["0", "527041"] {
            assert_eq!(bot.text(&format!("/remind {far} x")).texts(), ["From 1 to 527,040 minutes, please."]);
        }
        assert_eq!(bot.text("/daily 9 x").texts(), ["Please write it like this: /daily TIME WHAT…"]);
    }

    #[test]
    fn one_is_taken_back_and_the_others_stay() {
        let mut bot = Bot::<Plugin>::new();
        for minutes in 1..=6 {
            bot.text(&format!("/remind {minutes} tea {minutes}"));
        }
        bot.text("/reminders");
        assert_eq!(bot.labels().len(), 7);
        bot.press_button("2 ›");
        assert_eq!(bot.labels(), ["tea 6, in 6 min", "‹ 1", "2 / 2"]);
        assert_eq!(bot.press_button("tea 6, in 6 min").texts()[0], "Taken back.");
        assert_eq!(bot.labels().len(), 5, "one page is left");
    }
}
