//! Asks for a name and an age: what mojogram's example `fsm_form_bot` does.

use botyard_sdk::prelude::*;

#[plugin]
pub(crate) mod fsm_form_bot {
    #[derive(State, Serialize, Deserialize, Default)]
    enum Form {
        #[default]
        Idle,
        Name,
        Age(String),
    }

    #[command("start")]
    fn start(ctx: &mut Ctx<Form>) -> Handled {
        ctx.reply("What's your name?");
        ctx.goto(Form::Name)
    }

    #[message]
    fn answer(ctx: &mut Ctx<Form>) -> Handled {
        let next = match ctx.state() {
            Form::Idle => (Form::Idle, "Send /start to begin.".into()),
            Form::Name => (Form::Age(ctx.text().into()), "Great. How old are you?".into()),
            Form::Age(name) => (Form::Idle, format!("Got it, {name} ({}). Send /start to go again.", ctx.text())),
        };
        ctx.reply(next.1);
        ctx.goto(next.0)
    }
}
