//! teloxide's example `purchase`: a dialogue of a name and a product, with messages and a button.

use botyard_sdk::prelude::*;

#[plugin(methods = [api::SendMessage])]
pub(crate) mod purchase {
    #[derive(State, Serialize, Deserialize, Default)]
    enum Purchase {
        #[default]
        Start,
        FullName,
        Product {
            full_name: String,
        },
    }

    #[derive(Command)]
    enum Cmd {
        /// Display this text.
        Help,
        /// Start the purchase procedure.
        Start,
        /// Cancel the purchase procedure.
        Cancel,
    }

    #[derive(CallbackData, Debug, Clone, Copy)]
    enum Product {
        Apple,
        Banana,
        Orange,
        Potato,
    }

    #[command(Cmd)]
    fn command(ctx: &mut Ctx<Purchase>, cmd: Cmd) -> Handled {
        match (cmd, ctx.state()) {
            (Cmd::Help, Purchase::Start) => ctx.reply(Cmd::help()),
            (Cmd::Start, Purchase::Start) => {
                ctx.reply("Let's start! What's your full name?");
                return ctx.goto(Purchase::FullName);
            }
            (Cmd::Cancel, _) => {
                ctx.reply("Cancelling the dialogue.");
                return ctx.exit();
            }
            _ => return Pass,
        };
        Done
    }

    #[message(state = Purchase::FullName)]
    fn name(ctx: &mut Ctx<Purchase>, message: api::Message) -> Handled {
        let Some(full_name) = message.text() else {
            ctx.reply("Please, send me your full name.");
            return Done;
        };
        let products = [Product::Apple, Product::Banana, Product::Orange, Product::Potato];
        let products = products.map(|product| Button::data(format!("{product:?}"), product));
        ctx.reply("Select a product:").keyboard(InlineKeyboard::new().row(products));
        ctx.goto(Purchase::Product { full_name })
    }

    #[callback(Product, state = Purchase::Product { full_name })]
    fn product(ctx: &mut Ctx<Purchase>, product: Product, full_name: String) -> Handled {
        ctx.reply(format!("{full_name}, product '{product:?}' has been purchased successfully!"));
        ctx.exit()
    }

    #[message]
    fn other(ctx: &mut Ctx<Purchase>) {
        ctx.reply("Unable to handle the message. Type /help to see the usage.");
    }
}
