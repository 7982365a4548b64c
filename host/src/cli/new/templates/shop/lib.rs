//! A small shop: goods behind buttons, a basket for each user, an order.
//!
//! The basket is kept in the user's part of the storage, so it is there in every chat and after every restart. The
//! currency is the operator's choice, in `bot.toml`: `config = { currency = "UZS" }`.

use botyard_sdk::prelude::*;

#[plugin(catalogs = "locales", methods = [api::SendMessage, api::EditMessageText, api::AnswerCallbackQuery])]
mod plugin_name {
    const GOODS: [(&str, u32); 3] = [("tea", 4), ("coffee", 6), ("honey", 9)];

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
        ctx.reply(t!(ctx, "welcome"; "What may it be?")).keyboard(keyboard);
        Ok(())
    }

    #[callback("buy:")]
    fn buy(ctx: &mut Ctx) -> Result<(), Error> {
        let name = ctx.callback_data().trim_start_matches("buy:").to_owned();
        let mut basket = basket(ctx)?;
        match basket.iter_mut().find(|line| line.name == name) {
            Some(line) => line.pieces += 1,
            None => basket.push(Line { name: name.clone(), pieces: 1 }),
        }
        ctx.storage().user().set("basket", &basket)?;
        ctx.answer_callback(t!(ctx, "added", name = &name; "{$name} is in the basket."));
        Ok(())
    }

    #[callback("basket")]
    fn look(ctx: &mut Ctx) -> Result<(), Error> {
        let basket = basket(ctx)?;
        if basket.is_empty() {
            ctx.reply(t!(ctx, "empty"; "The basket is empty."));
            return Ok(());
        }
        let lines: Vec<String> = basket.iter().map(|line| format!("{} × {}", line.pieces, line.name)).collect();
        let Config { currency } = ctx.config()?;
        let order = Button::callback(t!(ctx, "order"; "Order"), "order");
        ctx.reply(format!("{}\n{} {currency}", lines.join("\n"), total(&basket)))
            .keyboard(InlineKeyboard::new().row([order]));
        Ok(())
    }

    #[callback("order")]
    fn order(ctx: &mut Ctx) -> Result<(), Error> {
        let basket = basket(ctx)?;
        // A second press finds nothing to order any more.
        if !basket.is_empty() {
            let number = ctx.storage().plugin().increment("orders", 1)?;
            ctx.storage().user().delete("basket")?;
            ctx.edit(t!(ctx, "ordered", number = number; "Order {$number} is on its way. Thank you!"));
        }
        Ok(())
    }

    fn basket(ctx: &Ctx) -> Result<Vec<Line>, Error> {
        Ok(ctx.storage().user().get("basket")?.unwrap_or_default())
    }

    fn price(name: &str) -> u32 {
        GOODS.iter().find(|(good, _)| *good == name).map_or(0, |(_, price)| *price)
    }

    fn total(basket: &[Line]) -> u32 {
        basket.iter().map(|line| line.pieces * price(&line.name)).sum()
    }

    fn shelf(ctx: &Ctx) -> Result<InlineKeyboard, Error> {
        let Config { currency } = ctx.config()?;
        let goods =
            GOODS.iter().map(|(name, price)| Button::callback(format!("{name}, {price} {currency}"), format!("buy:{name}")));
        Ok(InlineKeyboard::new().row(goods).row([Button::callback(t!(ctx, "basket"; "Basket"), "basket")]))
    }
}

#[cfg(test)]
mod tests {
    use botyard_sdk::test::Bot;

    use super::plugin_name::Plugin;

    #[test]
    fn an_order_empties_the_basket() {
        let mut bot = Bot::<Plugin>::new();
        bot.press("buy:tea");
        bot.press("buy:tea");
        assert_eq!(bot.press("basket").texts(), ["2 × tea\n8 EUR"]);
        bot.press("order");
        assert_eq!(bot.press("basket").texts(), ["The basket is empty."]);
    }
}
