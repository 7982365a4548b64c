//! A menu of inline buttons that edits its own message.
//!
//! Every button carries its meaning in its callback data, `menu:` and a page, so the plugin needs no state: an old menu
//! still works after a restart, and several can be open at once. Each press is answered, so that Telegram stops showing
//! it as under way.

use botyard_sdk::prelude::*;

#[plugin(methods = ["sendMessage", "editMessageText", "answerCallbackQuery"])]
mod menu {
    /// Show the menu.
    #[command("menu")]
    fn open(ctx: &mut Ctx) {
        ctx.reply("What would you like?").keyboard(main_page());
    }

    #[callback("menu:")]
    fn press(ctx: &mut Ctx) {
        match ctx.callback_data() {
            "menu:main" => ctx.edit("What would you like?").keyboard(main_page()),
            "menu:drinks" => ctx.edit("Drinks:").keyboard(page(&["Tea", "Coffee"])),
            "menu:food" => ctx.edit("Food:").keyboard(page(&["Plov", "Samsa"])),
            "menu:close" => ctx.edit("Closed."),
            data => {
                let choice = data.trim_start_matches("menu:pick:");
                ctx.edit(format!("{choice}, a good choice.")).keyboard(page(&[]))
            }
        };
        ctx.answer_callback("");
    }

    fn main_page() -> InlineKeyboard {
        InlineKeyboard::new()
            .row([Button::callback("Drinks", "menu:drinks"), Button::callback("Food", "menu:food")])
            .row([Button::callback("Close", "menu:close")])
    }

    fn page(choices: &[&str]) -> InlineKeyboard {
        let choices = choices.iter().map(|choice| Button::callback(choice, format!("menu:pick:{choice}")));
        InlineKeyboard::new()
            .row(choices)
            .row([Button::callback("Back", "menu:main"), Button::callback("Close", "menu:close")])
    }
}

#[cfg(test)]
mod tests {
    use botyard_sdk::test::Bot;

    use super::menu::Plugin;

    #[test]
    fn a_press_edits_the_message_and_is_answered() {
        let mut bot = Bot::<Plugin>::new();
        let opened = bot.text("/menu");
        let button = &opened.calls[0].1["reply_markup"]["inline_keyboard"][0][0];
        let pressed = bot.press(button["callback_data"].as_str().unwrap());
        let methods: Vec<_> = pressed.calls.iter().map(|(method, _)| method.as_str()).collect();
        assert_eq!(methods, ["editMessageText", "answerCallbackQuery"]);
        assert_eq!(pressed.texts(), ["Drinks:"]);
        assert_eq!(bot.press("menu:pick:Tea").texts(), ["Tea, a good choice."]);
    }

    #[test]
    fn a_closed_menu_has_no_buttons() {
        let closed = Bot::<Plugin>::new().press("menu:close");
        assert!(closed.calls[0].1.get("reply_markup").is_none());
    }
}
