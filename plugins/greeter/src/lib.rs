//! Greets people by their first name, in their language, and lets them choose another one.
//!
//! The texts are in `locales/en.ftl` and `locales/uz.ftl`, which travel inside of the plugin; `t!` is checked against them
//! when it is built. Which one is used follows what the person has chosen here, else their language in Telegram; every
//! other language gets the host's default. What was chosen holds for all plugins of the bot.

use botyard_sdk::User;
use botyard_sdk::prelude::*;

#[plugin(methods = ["sendMessage", "editMessageText", "answerCallbackQuery"])]
mod greeter {
    #[command("start", "hello", help = "cmd-start")]
    fn hello(ctx: &mut Ctx, user: User) {
        ctx.reply(t!(ctx.html(), "hello", name = user.first_name)).keyboard(menu(ctx));
    }

    #[command("language", help = "cmd-language")]
    #[button("menu.language")]
    fn language(ctx: &mut Ctx) {
        let choices = ctx.locales().into_iter().map(|locale| {
            let name = t!(ctx.speaking(&locale), "language");
            Button::callback(name, format!("lang:{locale}"))
        });
        let choices =
            InlineKeyboard::new().row(choices).row([Button::callback(t!(ctx, "language.as-telegram"), "lang:")]);
        ctx.reply(t!(ctx, "language.which")).keyboard(choices);
    }

    #[callback("lang:")]
    fn chosen(ctx: &mut Ctx, user: User) {
        match ctx.callback_data().trim_start_matches("lang:").to_owned() {
            telegrams if telegrams.is_empty() => ctx.clear_locale(),
            locale => ctx.set_locale(&locale),
        }
        ctx.answer_callback("");
        ctx.edit(t!(ctx, "language.chosen"));
        // The keyboard speaks the new language, too.
        ctx.reply(t!(ctx.html(), "hello", name = user.first_name)).keyboard(menu(ctx));
    }

    fn menu(ctx: &Run) -> ReplyKeyboard {
        ReplyKeyboard::new().row([t!(ctx, "menu.language")])
    }
}

#[cfg(test)]
mod tests {
    use botyard_sdk::test::Bot;

    use super::greeter::Plugin;

    #[test]
    fn greets_by_first_name_whatever_it_is() {
        let mut bot = Bot::<Plugin>::new();
        bot.first_name = "<b>Élodie</b> 🙂".to_owned();
        let greeted = bot.text("/start");
        assert_eq!(greeted.texts(), ["Hello, &lt;b&gt;Élodie&lt;/b&gt; 🙂!"]);
        assert_eq!(greeted.calls[0].1["parse_mode"], "HTML");
        assert_eq!(bot.text("/hello@botyard_bot").texts(), ["Hello, &lt;b&gt;Élodie&lt;/b&gt; 🙂!"]);
    }

    #[test]
    fn speaks_what_was_chosen_until_that_is_forgotten() {
        let mut bot = Bot::<Plugin>::new();
        bot.locale = "pt-br".to_owned();
        let question = bot.text("🌐 Til");
        assert_eq!(question.texts(), ["Which language shall I speak?"]);
        let choices = &question.calls[0].1["reply_markup"]["inline_keyboard"];
        assert_eq!([&choices[0][0]["text"], &choices[0][1]["text"]], ["English", "Oʻzbekcha"]);
        assert_eq!([&choices[0][1]["callback_data"], &choices[1][0]["callback_data"]], ["lang:uz", "lang:"]);
        let chosen = bot.press("lang:uz");
        assert_eq!(chosen.texts(), ["Endi oʻzbekcha gapiraman.", "Salom, Alice!"]);
        assert_eq!(chosen.calls[2].1["reply_markup"]["keyboard"][0][0]["text"], "🌐 Til");
        assert_eq!(bot.text("/start").texts(), ["Salom, Alice!"]);
        // A keyboard from before is understood all the same.
        assert_eq!(bot.text("🌐 Language").texts(), ["Qaysi tilda gapiray?"]);
        assert_eq!(bot.press("lang:").texts()[0], "I speak English now.");
    }
}
