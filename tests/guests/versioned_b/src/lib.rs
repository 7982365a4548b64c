//! The second version of `versioned`: answers with `2: TEXT`, and carries states of the first one over.

use botyard_sdk::prelude::*;

#[plugin(name = "versioned", version = "2.0.0")]
mod versioned {
    #[derive(State, Serialize, Deserialize, Default)]
    #[state(version = 2)]
    enum Steps {
        #[default]
        Idle,
        Walking {
            steps: u32,
            carried_over: bool,
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
            StepsV1::Walking { steps } => Steps::Walking { steps, carried_over: true },
        })
    }

    #[command("step")]
    fn step(ctx: &mut Ctx<Steps>) -> Handled {
        let (steps, carried_over) = match ctx.state() {
            Steps::Idle => (1, false),
            Steps::Walking { steps, carried_over } => (steps + 1, *carried_over),
        };
        let mark = if carried_over { ", carried over" } else { "" };
        ctx.reply(format!("2: step {steps}{mark}"));
        ctx.goto(Steps::Walking { steps, carried_over })
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
        let Steps::Walking { steps, .. } = ctx.state() else { return Err(Error::permanent("it has no state")) };
        ctx.reply(format!("2: {steps} steps"));
        Ok(())
    }

    #[text]
    fn echo(ctx: &mut Ctx<Steps>) {
        ctx.reply(format!("2: {}", ctx.text()));
    }
}
