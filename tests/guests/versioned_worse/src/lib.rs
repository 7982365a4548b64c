//! A version of `versioned` that reads and writes the states of the first one, and panics at every text.

use botyard_sdk::prelude::*;

#[plugin(name = "versioned", version = "1.0.1")]
mod versioned {
    #[derive(State, Serialize, Deserialize, Default)]
    #[state(version = 1)]
    enum Steps {
        #[default]
        Idle,
        Walking {
            steps: u32,
        },
    }

    #[command("step")]
    fn step(ctx: &mut Ctx<Steps>) -> Handled {
        let steps = match ctx.state() {
            Steps::Idle => 1,
            Steps::Walking { steps } => steps + 1,
        };
        ctx.reply(format!("1.0.1: step {steps}"));
        ctx.goto(Steps::Walking { steps })
    }

    #[text]
    fn echo(ctx: &mut Ctx<Steps>) {
        ctx.reply("this is never sent");
        panic!("worse than before");
    }
}
