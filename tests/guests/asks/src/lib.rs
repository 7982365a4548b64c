//! `/ask` asks for a name, and every text after that is taken for one.

use botyard_sdk::prelude::*;

#[plugin]
mod asks {
    #[derive(State, Serialize, Deserialize, Default)]
    enum Asks {
        #[default]
        Idle,
        Name,
    }

    #[command("ask")]
    fn ask(ctx: &mut Ctx<Asks>) -> Handled {
        ctx.reply("What is your name?");
        ctx.goto(Asks::Name)
    }

    #[state(Asks::Name)]
    fn name(ctx: &mut Ctx<Asks>) -> Handled {
        ctx.reply(format!("Hello, {}!", ctx.text()));
        ctx.exit()
    }
}
