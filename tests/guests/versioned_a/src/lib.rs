//! The first version of `versioned`: answers every text with `1: TEXT`, and counts steps in its state (`/step`).

use botyard_sdk::prelude::*;

#[plugin(name = "versioned", version = "1.0.0")]
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
        ctx.reply(format!("1: step {steps}"));
        ctx.goto(Steps::Walking { steps })
    }

    /// `/later early MILLISECONDS` reads the state before the job waits, with `late` it does afterwards.
    #[command("later")]
    fn later(ctx: &mut Ctx<Steps>) -> Result<(), Error> {
        let (when, time) = ctx.args().split_once(' ').unwrap_or_default();
        ctx.job("count", (when, time.parse::<u64>()?)).enqueue()?;
        Ok(())
    }

    #[job("count")]
    fn count(ctx: &mut Ctx<Steps>) -> Result<(), Error> {
        let (when, time): (String, u64) = ctx.payload()?;
        if when == "early" {
            assert!(!ctx.state().name().is_empty());
        }
        ctx.sleep(Duration::from_millis(time));
        let Steps::Walking { steps } = ctx.state() else { return Err(Error::permanent("it has no state")) };
        ctx.reply(format!("1: {steps} steps"));
        Ok(())
    }

    #[text]
    fn echo(ctx: &mut Ctx<Steps>) {
        ctx.reply(format!("1: {}", ctx.text()));
    }
}
