//! A menu of two levels that edits its own message.
//!
//! Where a button leads, and what it stands for, is on the button, so no state is needed: an old menu still works after a
//! restart, and several can be open at once. The host answers each press.

use botyard_sdk::prelude::*;

#[plugin(catalogs = "locales", methods = [api::SendMessage, api::EditMessageText])]
mod plugin_name {
    /// What a button stands for. The names count: a button of an older menu that has another one is out of date.
    #[derive(CallbackData)]
    enum Pick {
        Tea,
        Coffee,
    }

    fn menu(ctx: &Run) -> Menu {
        let drinks = Menu::new("drinks", t!(ctx, "drinks-page")).buttons([
            Button::data(t!(ctx, "tea"), Pick::Tea),
            Button::data(t!(ctx, "coffee"), Pick::Coffee),
        ]);
        Menu::new("menu", t!(ctx, "question"))
            .sub(t!(ctx, "drinks"), drinks)
            .back(t!(ctx, "back"))
            .close(t!(ctx, "close"), t!(ctx, "closed"))
    }

    #[command("start", "menu", help = "help-menu")]
    fn open(ctx: &mut Ctx) {
        menu(ctx).open(ctx);
    }

    #[callback("menu:")]
    fn turn(ctx: &mut Ctx) -> Handled {
        menu(ctx).pressed(ctx)
    }

    #[callback(Pick)]
    fn picked(ctx: &mut Ctx, pick: Pick) {
        let text = match pick {
            Pick::Tea => t!(ctx, "picked-tea"),
            Pick::Coffee => t!(ctx, "picked-coffee"),
        };
        let ways_out = menu(ctx).ways_out("");
        ctx.edit(text).keyboard(InlineKeyboard::new().row(ways_out));
    }
}

#[cfg(test)]
mod tests {
    use botyard_sdk::test::Bot;

    use super::plugin_name::Plugin;

    #[test]
    fn a_choice_is_two_presses_away_and_the_way_back_is_there() {
        let mut bot = Bot::<Plugin>::new();
        bot.text("/menu");
        bot.press_button("Drinks");
        assert_eq!(bot.labels(), ["Tea", "Coffee", "Back", "Close"]);
        assert_eq!(bot.press_button("Tea").texts(), ["Tea, a good choice."]);
        assert_eq!(bot.press_button("Back").texts(), ["What would you like?"]);
    }
}
