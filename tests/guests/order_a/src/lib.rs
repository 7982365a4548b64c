//! The first version of `order`: `/order KIND` asks how many cups, and nothing but that state takes the answer. `/tick` and
//! `/wait` are quick.

use botyard_sdk::prelude::*;

#[plugin(name = "order", version = "1.0.0")]
mod order {
    #[derive(State, Serialize, Deserialize, Default)]
    #[state(version = 1)]
    enum Order {
        #[default]
        Idle,
        Cups {
            kind: String,
        },
    }

    #[command("order {kind}")]
    fn order(ctx: &mut Ctx<Order>, kind: String) -> Handled {
        ctx.reply("1: how many?");
        ctx.goto(Order::Cups { kind })
    }

    #[text(state = Order::Cups { .. })]
    fn cups(ctx: &mut Ctx<Order>) -> Handled {
        let Order::Cups { kind } = ctx.state() else { return Pass };
        ctx.reply(format!("1: {} cups of {kind}", ctx.text()));
        ctx.exit()
    }

    #[command("lost")]
    fn lost(ctx: &mut Ctx<Order>) {
        ctx.reply(match ctx.lost_state() {
            Some(state) => format!("1: {} is lost", state.name),
            None => "1: nothing is lost".to_owned(),
        });
    }

    #[command("boom", "tick", "wait")]
    fn quick(ctx: &mut Ctx<Order>) {
        ctx.reply("1: fine");
    }
}
