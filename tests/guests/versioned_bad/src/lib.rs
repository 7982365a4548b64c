//! A bad version of `versioned`: it carries states of the first one over into its own, and panics at every text.

use botyard_sdk::prelude::*;

#[plugin(name = "versioned", version = "3.0.0")]
mod versioned {
    #[derive(State, Serialize, Deserialize, Default)]
    #[state(version = 2)]
    enum Steps {
        #[default]
        Idle,
        Walking {
            steps: u32,
            strange: bool,
        },
    }

    #[derive(Deserialize)]
    enum StepsV1 {
        Idle,
        Walking { steps: u32 },
    }

    #[migrate]
    fn migrate(old: OldState) -> Result<Steps, Error> {
        Ok(match old.read()? {
            StepsV1::Idle => Steps::Idle,
            StepsV1::Walking { steps } => Steps::Walking { steps, strange: true },
        })
    }

    #[command("step")]
    fn step(ctx: &mut Ctx<Steps>) -> Handled {
        let steps = match ctx.state() {
            Steps::Idle => 1,
            Steps::Walking { steps, .. } => steps + 1,
        };
        ctx.reply(format!("3: step {steps}"));
        ctx.goto(Steps::Walking { steps, strange: true })
    }

    #[text]
    fn echo(ctx: &mut Ctx<Steps>) {
        ctx.reply("this is never sent");
        panic!("a bad version");
    }
}
