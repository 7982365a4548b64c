//! A menu of buttons that edits its own message.
//!
//! Every button carries its meaning in its callback data, so no state is needed: an old menu still works after a
//! restart, and several can be open at once.

use botyard_sdk::prelude::*;

#[plugin(catalogs = "locales", methods = [api::SendMessage, api::EditMessageText])]
mod plugin_name {
    #[command("start", "menu", help = "help-menu")]
    fn open(ctx: &mut Ctx) {
        let keyboard = main_page(ctx);
        ctx.reply(t!(ctx, "question"; "What would you like?")).keyboard(keyboard);
    }

    /// The press itself is answered by the host; `ctx.answer_callback` would show a text with it.
    #[callback("menu:")]
    fn press(ctx: &mut Ctx) {
        match ctx.callback_data().trim_start_matches("menu:") {
            "main" => {
                let keyboard = main_page(ctx);
                ctx.edit(t!(ctx, "question"; "What would you like?")).keyboard(keyboard);
            }
            "about" => {
                let back = InlineKeyboard::new().row([Button::callback(t!(ctx, "back"; "Back"), "menu:main")]);
                ctx.edit(t!(ctx, "about"; "I am a bot with a menu.")).keyboard(back);
            }
            _ => {
                ctx.edit(t!(ctx, "closed"; "Closed."));
            }
        }
    }

    fn main_page(ctx: &Ctx) -> InlineKeyboard {
        InlineKeyboard::new().row([
            Button::callback(t!(ctx, "about-button"; "About"), "menu:about"),
            Button::callback(t!(ctx, "close"; "Close"), "menu:close"),
        ])
    }
}

#[cfg(test)]
mod tests {
    use botyard_sdk::test::Bot;

    use super::plugin_name::Plugin;

    #[test]
    fn a_press_edits_the_message() {
        let pressed = Bot::<Plugin>::new().press("menu:about");
        let methods: Vec<_> = pressed.calls.iter().map(|(method, _)| method.as_str()).collect();
        assert_eq!(methods, ["editMessageText"]);
    }
}
