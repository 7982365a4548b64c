//! The second version of `order`: it calls its state otherwise, does not take over orders of `odd`, and panics at `/boom`.
//! `/tick` takes long on a processor, `/wait` takes long without one.

use botyard_sdk::prelude::*;

#[plugin(name = "order", version = "2.0.0")]
mod order {
    #[derive(State, Serialize, Deserialize, Default)]
    #[state(version = 2)]
    enum Order {
        #[default]
        Idle,
        Amount {
            tea: String,
        },
    }

    #[derive(Deserialize)]
    enum OrderV1 {
        Idle,
        Cups { kind: String },
    }

    #[migrate]
    fn migrate(old: OldState) -> Result<Order, Error> {
        match old.read()? {
            OrderV1::Idle => Ok(Order::Idle),
            OrderV1::Cups { kind } if kind == "odd" => Err(Error::permanent("that is no tea any more")),
            OrderV1::Cups { kind } => Ok(Order::Amount { tea: kind }),
        }
    }

    #[command("order {tea}")]
    fn order(ctx: &mut Ctx<Order>, tea: String) -> Handled {
        ctx.reply("2: how many?");
        ctx.goto(Order::Amount { tea })
    }

    #[text(state = Order::Amount { .. })]
    fn amount(ctx: &mut Ctx<Order>) -> Handled {
        let Order::Amount { tea } = ctx.state() else { return Pass };
        if ctx.text().parse::<u32>().is_err() {
            ctx.reply("2: a number, please");
            return Done;
        }
        ctx.reply(format!("2: {} cups of {tea}", ctx.text()));
        ctx.exit()
    }

    #[command("lost")]
    fn lost(ctx: &mut Ctx<Order>) {
        ctx.reply(match ctx.lost_state() {
            Some(state) => format!("2: {} is lost", state.name),
            None => "2: nothing is lost".to_owned(),
        });
    }

    #[command("boom")]
    fn boom(ctx: &mut Ctx<Order>) {
        ctx.reply("this is never sent");
        panic!("it is no tea");
    }

    #[command("tick")]
    fn tick(ctx: &mut Ctx<Order>) {
        let mut sum = ctx.event_id();
        for n in 0..100_000_000_u64 {
            sum = std::hint::black_box(sum ^ n);
        }
        ctx.reply(format!("2: {sum}"));
    }

    #[command("wait")]
    fn wait(ctx: &mut Ctx<Order>) {
        ctx.sleep(Duration::from_millis(1_200));
        ctx.reply("2: at last");
    }
}
