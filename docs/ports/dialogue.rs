//! Asks for a full name, an age and a place, and repeats them: what teloxide's example `dialogue` does.

use botyard_sdk::prelude::*;

#[plugin]
pub(crate) mod dialogue {
    #[derive(State, Serialize, Deserialize, Default)]
    #[state(key = "chat")]
    enum Quiz {
        #[default]
        Start,
        Name,
        Age {
            name: String,
        },
        Place {
            name: String,
            age: u8,
        },
    }

    #[state(Quiz::Name)]
    fn name(ctx: &mut Ctx<Quiz>) -> Handled {
        let name = ctx.text().to_owned();
        ctx.reply("How old are you?");
        ctx.goto(Quiz::Age { name })
    }

    #[state(Quiz::Age { name })]
    fn age(ctx: &mut Ctx<Quiz>, name: String) -> Handled {
        let Ok(age) = ctx.text().parse() else {
            ctx.reply("Send me a number.");
            return Done;
        };
        ctx.reply("What's your location?");
        ctx.goto(Quiz::Place { name, age })
    }

    #[state(Quiz::Place { name, age })]
    fn place(ctx: &mut Ctx<Quiz>, name: String, age: u8) -> Handled {
        ctx.reply(format!("Full name: {name}\nAge: {age}\nLocation: {}", ctx.text()));
        ctx.exit()
    }

    #[message]
    fn other(ctx: &mut Ctx<Quiz>) -> Handled {
        match ctx.state() {
            Quiz::Start => {
                ctx.reply("Let's start! What's your full name?");
                return ctx.goto(Quiz::Name);
            }
            Quiz::Age { .. } => ctx.reply("Send me a number."),
            Quiz::Name | Quiz::Place { .. } => ctx.reply("Send me plain text."),
        };
        Done
    }
}
