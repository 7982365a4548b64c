//! A small shop: goods behind buttons, a basket for each user, an order.
//!
//! The basket is kept in the user's part of the storage, so it is there in every chat and after every restart. The
//! currency is the operator's choice, in `bot.toml`: `config = { currency = "UZS" }`.

use botyard_sdk::prelude::*;

#[plugin(catalogs = "locales", methods = [api::SendMessage, api::EditMessageText, api::AnswerCallbackQuery])]
mod plugin_name {
    const GOODS: [(&str, u32); 3] = [("tea", 4), ("coffee", 6), ("honey", 9)];

    /// What the buttons stand for.
    #[derive(CallbackData)]
    enum Shop {
        Buy { name: String },
        Basket,
        Order,
    }

    #[derive(Deserialize)]
    #[serde(default)]
    struct Config {
        currency: String,
    }

    impl Default for Config {
        fn default() -> Self {
            Self { currency: "EUR".to_owned() }
        }
    }

    #[derive(Serialize, Deserialize)]
    struct Line {
        name: String,
        pieces: u32,
    }

    #[command("start", "shop", help = "help-shop")]
    fn open(ctx: &mut Ctx) -> Result<(), Error> {
        let keyboard = shelf(ctx)?;
        ctx.reply(t!(ctx, "welcome")).keyboard(keyboard);
        Ok(())
    }

    #[callback(Shop)]
    fn press(ctx: &mut Ctx, pressed: Shop) -> Result<(), Error> {
        match pressed {
            Shop::Buy { name } => buy(ctx, name),
            Shop::Basket => look(ctx),
            Shop::Order => order(ctx),
        }
    }

    fn buy(ctx: &Run, name: String) -> Result<(), Error> {
        let mut basket = basket(ctx)?;
        match basket.iter_mut().find(|line| line.name == name) {
            Some(line) => line.pieces += 1,
            None => basket.push(Line { name: name.clone(), pieces: 1 }),
        }
        ctx.storage().user().set("basket", &basket)?;
        ctx.answer_callback(t!(ctx, "added", name = &name));
        Ok(())
    }

    fn look(ctx: &Run) -> Result<(), Error> {
        let basket = basket(ctx)?;
        if basket.is_empty() {
            ctx.reply(t!(ctx, "empty"));
            return Ok(());
        }
        let lines: Vec<String> = basket.iter().map(|line| format!("{} × {}", line.pieces, line.name)).collect();
        let Config { currency } = ctx.config()?;
        let order = Button::data(t!(ctx, "order"), Shop::Order);
        ctx.reply(format!("{}\n{} {currency}", lines.join("\n"), total(&basket)))
            .keyboard(InlineKeyboard::new().row([order]));
        Ok(())
    }

    fn order(ctx: &Run) -> Result<(), Error> {
        let basket = basket(ctx)?;
        // A second press finds nothing to order any more.
        if !basket.is_empty() {
            let number = ctx.storage().plugin().increment("orders", 1)?;
            ctx.storage().user().delete("basket")?;
            ctx.edit(t!(ctx, "ordered", number = number));
        }
        Ok(())
    }

    fn basket(ctx: &Run) -> Result<Vec<Line>, Error> {
        Ok(ctx.storage().user().get("basket")?.unwrap_or_default())
    }

    fn price(name: &str) -> u32 {
        GOODS.iter().find(|(good, _)| *good == name).map_or(0, |(_, price)| *price)
    }

    fn total(basket: &[Line]) -> u32 {
        basket.iter().map(|line| line.pieces * price(&line.name)).sum()
    }

    fn shelf(ctx: &Run) -> Result<InlineKeyboard, Error> {
        let Config { currency } = ctx.config()?;
        let goods = GOODS.iter().map(|(name, price)| {
            let buy = Shop::Buy { name: (*name).to_owned() };
            Button::data(format!("{name}, {price} {currency}"), buy)
        });
        let basket = Button::data(t!(ctx, "basket"), Shop::Basket);
        Ok(InlineKeyboard::new().row(goods).row([basket]))
    }
}

#[cfg(test)]
mod tests {
    use botyard_sdk::test::Bot;

    use super::plugin_name::Plugin;

    #[test]
    fn an_order_empties_the_basket() {
        let mut bot = Bot::<Plugin>::new();
        bot.text("/shop");
        bot.press_button("tea, 4 EUR");
        bot.press_button("tea, 4 EUR");
        assert_eq!(bot.press_button("Basket").texts(), ["2 × tea\n8 EUR"]);
        bot.press_button("Order");
        bot.text("/shop");
        assert_eq!(bot.press_button("Basket").texts(), ["The basket is empty."]);
    }
}
