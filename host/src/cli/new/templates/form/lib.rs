//! Asks for a name and an age, one after the other.
//!
//! Where a conversation is, and what was said so far, is the `Form` enum. The host keeps its value between the messages,
//! through restarts and new versions of this plugin. /cancel ends a conversation by itself, with the text `cancelled` from
//! the catalog.

use botyard_sdk::prelude::*;

#[plugin(catalogs = "locales", methods = [api::SendMessage])]
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

    #[command("start", help = "help-start")]
    fn start(ctx: &mut Ctx<Form>) -> Handled {
        ctx.reply(t!(ctx, "ask-name"; "What is your name?"));
        ctx.goto(Form::Name)
    }

    /// The time to live is over, and the last question was not answered.
    #[expired(state = Form::Age { .. })]
    fn too_late(ctx: &mut Ctx<Form>) {
        ctx.reply(t!(ctx, "too-late"; "You did not say how old you are. /start begins anew."));
    }

    #[state(Form::Name)]
    fn name(ctx: &mut Ctx<Form>) -> Handled {
        let name = ctx.text().trim().to_owned();
        ctx.reply(t!(ctx, "ask-age", name = &name; "How old are you, {$name}?"));
        ctx.goto(Form::Age { name })
    }

    #[state(Form::Age { .. })]
    fn age(ctx: &mut Ctx<Form>) -> Handled {
        let Form::Age { name } = ctx.state() else { return Pass };
        let Some(age) = ctx.text().trim().parse::<u8>().ok().filter(|age| (1..=150).contains(age)) else {
            ctx.reply(t!(ctx, "no-age"; "A whole number from 1 to 150, please."));
            return Done;
        };
        ctx.reply(t!(ctx, "thanks", name = name, age = i64::from(age); "{$name}, {$age}. Thank you!"));
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
}
