//! A menu of two levels that edits its own message, and what comes of a choice.
//!
//! Which page a button leads to, and what it stands for, is on the button itself. So the plugin needs no state: an old
//! menu still works after a restart, and several can be open at once. The host answers each press.

use botyard_sdk::prelude::*;

#[plugin(methods = ["sendMessage", "editMessageText"])]
mod menu {
    /// What can be chosen. A button of an older menu that stands for something else is out of date, and the host says so.
    #[derive(CallbackData, Clone, Copy)]
    enum Pick {
        Tea,
        Coffee,
        Plov,
        Samsa,
    }

    impl Pick {
        fn name(self) -> &'static str {
            match self {
                Self::Tea => "Tea",
                Self::Coffee => "Coffee",
                Self::Plov => "Plov",
                Self::Samsa => "Samsa",
            }
        }
    }

    fn menu() -> Menu {
        let choices = |picks: [Pick; 2]| picks.map(|pick| Button::data(pick.name(), pick));
        Menu::new("menu", "What would you like?")
            .sub("Drinks", Menu::new("drinks", "Drinks:").buttons(choices([Pick::Tea, Pick::Coffee])))
            .sub("Food", Menu::new("food", "Food:").buttons(choices([Pick::Plov, Pick::Samsa])))
            .back("Back")
            .close("Close", "Closed.")
    }

    /// Show the menu.
    #[command("menu")]
    fn open(ctx: &mut Ctx) {
        menu().open(ctx);
    }

    #[callback("menu:")]
    fn turn(ctx: &mut Ctx) -> Handled {
        menu().pressed(ctx)
    }

    #[callback(Pick)]
    fn picked(ctx: &mut Ctx, pick: Pick) {
        ctx.edit(format!("{}, a good choice.", pick.name())).keyboard(InlineKeyboard::new().row(menu().ways_out("")));
    }
}

#[cfg(test)]
mod tests {
    use botyard_sdk::test::Bot;

    use super::menu::Plugin;

    #[test]
    fn a_choice_is_two_presses_away_and_the_way_back_is_there() {
        let mut bot = Bot::<Plugin>::new();
        assert_eq!(bot.text("/menu").texts(), ["What would you like?"]);
        assert_eq!(bot.labels(), ["Drinks", "Food", "Close"]);
        let pressed = bot.press_button("Drinks");
        assert_eq!((&*pressed.calls[0].0, pressed.texts()), ("editMessageText", vec!["Drinks:"]));
        assert_eq!(bot.labels(), ["Tea", "Coffee", "Back", "Close"]);
        assert_eq!(bot.press_button("Tea").texts(), ["Tea, a good choice."]);
        assert_eq!(bot.press_button("Back").texts(), ["What would you like?"]);
        assert_eq!(bot.press_button("Food").texts(), ["Food:"]);
    }

    #[test]
    fn a_closed_menu_has_no_buttons() {
        let mut bot = Bot::<Plugin>::new();
        bot.text("/menu");
        assert_eq!(bot.press_button("Close").texts(), ["Closed."]);
        assert!(bot.labels().is_empty());
    }
}
