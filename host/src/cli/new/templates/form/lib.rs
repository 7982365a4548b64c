//! Asks for a name and an age, one after the other.
//!
//! Where a conversation is, and what was said so far, is the `Form` enum. The host keeps its value between the messages,
//! through restarts and new versions of this plugin. /cancel ends a conversation by itself, with the text `cancelled` from
//! the catalog.

use botyard_sdk::prelude::*;

#[plugin(catalogs = "locales", methods = [api::SendMessage, api::EditMessageText])]
mod plugin_name {
    #[derive(State, Serialize, Deserialize, Default)]
    #[state(version = 1, key = "user_in_chat", ttl = "7d")]
    enum Form {
        #[default]
        Idle,
        Name,
        Age {
            name: String,
        },
    }

    impl Dialog for Form {
        /// What is asked in each state, again after a step back.
        fn question(&self, ctx: &Run) -> Question {
            match self {
                Form::Idle | Form::Name => t!(ctx, "ask-name").into(),
                Form::Age { name } => {
                    let back = Button::data(t!(ctx, "back"), Way::Back);
                    Question::new(t!(ctx, "ask-age", name = name)).keyboard(InlineKeyboard::new().row([back]))
                }
            }
        }

        fn before(&self) -> Option<Self> {
            matches!(self, Form::Age { .. }).then_some(Form::Name)
        }
    }

    /// What a button below a question stands for.
    #[derive(CallbackData)]
    enum Way {
        Back,
    }

    #[command("start", help = "help-start")]
    fn start(ctx: &mut Ctx<Form>) -> Handled {
        ctx.step(Form::Name)
    }

    #[command("back", help = "help-back")]
    fn back(ctx: &mut Ctx<Form>) -> Handled {
        ctx.back()
    }

    #[callback(Way)]
    fn back_pressed(ctx: &mut Ctx<Form>, _: Way) -> Handled {
        ctx.back()
    }

    /// The time to live is over, and the last question was not answered.
    #[expired(state = Form::Age { .. })]
    fn too_late(ctx: &mut Ctx<Form>) {
        ctx.reply(t!(ctx, "too-late"));
    }

    #[state(Form::Name)]
    fn name(ctx: &mut Ctx<Form>) -> Handled {
        let name = ctx.text().trim().to_owned();
        ctx.step(Form::Age { name })
    }

    #[state(Form::Age { name })]
    fn age(ctx: &mut Ctx<Form>, name: String) -> Handled {
        let Some(age) = ctx.text().trim().parse::<u8>().ok().filter(|age| (1..=150).contains(age)) else {
            return ctx.again(t!(ctx, "no-age"));
        };
        ctx.reply(t!(ctx, "thanks", name = name, age = age));
        ctx.exit()
    }
}

#[cfg(test)]
mod tests {
    use botyard_sdk::test::Bot;

    use super::plugin_name::Plugin;

    #[test]
    fn asks_until_the_answer_fits() {
        let mut bot = Bot::<Plugin>::new();
        bot.text("/start");
        bot.text("Alice");
        assert_eq!(bot.state(), Some("age"));
        assert_eq!(bot.text("old").texts(), ["A whole number from 1 to 150, please."]);
        assert_eq!(bot.text("30").texts(), ["Alice, 30. Thank you!"]);
        assert_eq!(bot.state(), None);
    }

    #[test]
    fn there_is_a_way_back() {
        let mut bot = Bot::<Plugin>::new();
        assert!(bot.text("/back").calls.is_empty(), "there is no form");
        bot.text("/start");
        bot.text("Alcie");
        assert_eq!(bot.press_button("Back").texts(), ["What is your name?"]);
        assert_eq!(bot.text("Alice").texts(), ["How old are you, Alice?"]);
    }
}
