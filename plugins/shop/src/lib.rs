//! A shop that is paid in Telegram Stars: a catalogue with pages, invoices, a stock, and a way to get the money back.
//!
//! A payment goes through four hands, and each of them is one handler here:
//!
//! 1. A pressed `Buy` sends the invoice. Its payload, which nobody but the bot sees, says what is sold.
//! 2. When somebody pays, Telegram asks first (`pre_checkout_query`), and waits ten seconds for the answer. That is the
//!    last moment to say no, so the stock is looked at here, not when the invoice is sent.
//! 3. The money has moved (`successful_payment`). The piece is taken from the stock, and what was paid is kept under the
//!    number of the payment.
//! 4. `/refund` gives the Stars back. Only those whom the operator has named may say it:
//!    `config = { admins = [1001] }` in `bot.toml`.
//!
//! What a handler changes is committed whole or not at all, and an update that arrives twice is handled once: no piece
//! leaves the stock twice, and no payment is kept without its piece.

use botyard_sdk::prelude::*;

#[plugin(methods = [api::SendMessage, api::EditMessageText, api::SendInvoice, api::AnswerPreCheckoutQuery, api::RefundStarPayment])]
mod shop {
    struct Tea {
        name: &'static str,
        about: &'static str,
        stars: i64,
        /// How many there are when the shop opens.
        stock: i64,
    }

    const TEAS: [Tea; 5] = [
        Tea { name: "Assam", about: "Strong and malty, for the morning", stars: 40, stock: 20 },
        Tea { name: "Darjeeling", about: "Light, with a scent of muscatel", stars: 60, stock: 10 },
        Tea { name: "Sencha", about: "Green, fresh as cut grass", stars: 50, stock: 10 },
        Tea { name: "Oolong", about: "Half way between green and black", stars: 70, stock: 5 },
        Tea { name: "Pu-erh", about: "A cake of 1998, the last one", stars: 900, stock: 1 },
    ];
    const PER_PAGE: usize = 3;

    /// What the buttons stand for. A tea is its name: people press old buttons, and numbers would have moved.
    #[derive(CallbackData)]
    enum Shop {
        Page(u32),
        Look { tea: String },
        Buy { tea: String },
    }

    /// What the operator decides.
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Settings {
        admins: Vec<i64>,
    }

    /// What is kept of a payment, under its number.
    #[derive(Serialize, Deserialize, PartialEq)]
    struct Sale {
        tea: String,
        stars: i64,
        buyer: i64,
        refunded: bool,
    }

    /// Look at what there is.
    #[command("shop")]
    fn open(ctx: &mut Ctx) {
        shelf(ctx, 0);
    }

    #[callback(Shop)]
    fn pressed(ctx: &mut Ctx, shop: Shop) -> Result<Handled, Error> {
        match shop {
            Shop::Page(page) => shelf(ctx, page),
            Shop::Look { tea } => return look(ctx, &tea),
            Shop::Buy { tea } => return buy(ctx, &tea),
        }
        Ok(Done)
    }

    fn shelf(ctx: &Run, page: u32) {
        let pager = Pager::new(TEAS.len(), PER_PAGE).at(page);
        let look = |tea: &Tea| Button::data(price_tag(tea), Shop::Look { tea: tea.name.to_owned() });
        let teas = pager.of(&TEAS).iter().map(|tea| [look(tea)]);
        ctx.show("Our teas:").keyboard(InlineKeyboard::new().rows(teas).row(pager.buttons(Shop::Page)));
    }

    /// A tea that is sold no more makes the button one that is out of date: `Pass`, and the host says so.
    fn look(ctx: &Run, name: &str) -> Result<Handled, Error> {
        let Some((at, tea)) = find(name) else { return Ok(Pass) };
        let back = Button::data("Back", Shop::Page((at / PER_PAGE) as u32));
        let (left, buttons) = match left(ctx, tea)? {
            0 => ("Sold out.".to_owned(), vec![back]),
            left => (format!("{left} left."), vec![Button::data("Buy", Shop::Buy { tea: name.to_owned() }), back]),
        };
        ctx.show(format!("{}\n{}. {left}", price_tag(tea), tea.about)).keyboard(InlineKeyboard::new().row(buttons));
        Ok(Done)
    }

    fn buy(ctx: &Run, name: &str) -> Result<Handled, Error> {
        let Some((_, tea)) = find(name) else { return Ok(Pass) };
        if left(ctx, tea)? == 0 {
            ctx.answer_callback("Somebody was faster, sorry.");
            return Ok(Done);
        }
        // Stars are the currency XTR, and need one price, and no token of a payment provider.
        let invoice = api::SendInvoice::new(ctx.here(), name, tea.about, name, "XTR", [(name, tea.stars)]);
        let pay = Button::pay(format!("Pay ⭐ {}", tea.stars));
        ctx.queue(invoice.reply_markup(InlineKeyboard::new().row([pay])));
        Ok(Done)
    }

    /// An invoice can lie in the chat for months, and be paid by everybody who sees it.
    #[on("pre_checkout_query")]
    fn checkout(ctx: &mut Ctx, query: api::PreCheckoutQuery) -> Result<(), Error> {
        let verdict = match find(&query.invoice_payload()) {
            Some((_, tea)) if query.total_amount() != tea.stars => Err("The price has changed: ask for a new invoice."),
            Some((_, tea)) if left(ctx, tea)? > 0 => Ok(()),
            _ => Err("Sold out, sorry."),
        };
        ctx.answer_pre_checkout(verdict);
        Ok(())
    }

    /// Two people may have been told “yes” for the last piece. Then the later one gets the money back at once.
    #[content("successful_payment")]
    fn paid(ctx: &mut Ctx, message: api::Message) -> Result<Handled, Error> {
        let Some(payment) = message.successful_payment() else { return Ok(Pass) };
        let (name, charge) = (payment.invoice_payload(), payment.telegram_payment_charge_id());
        let Some((_, tea)) = find(&name) else { return Ok(Pass) };
        let buyer = ctx.user().id;
        let refunded = left(ctx, tea)? == 0;
        if refunded {
            ctx.queue(api::RefundStarPayment::new(buyer, &charge));
            ctx.reply(format!("Somebody was faster. You get your ⭐ {} back.", tea.stars));
        } else {
            ctx.storage().plugin().increment(&sold(tea), 1)?;
            ctx.reply(format!("Thank you! {} is on its way.\nYour payment: {charge}", tea.name));
        }
        let sale = Sale { tea: name, stars: payment.total_amount(), buyer, refunded };
        ctx.storage().plugin().set(&format!("sale/{charge}"), &sale)?;
        Ok(Done)
    }

    // Not a line of documentation, and no `help`: so the command is in nobody's menu. To everybody else the check makes
    // it a command that there is not.
    #[command("refund {charge}", check = is_admin)]
    fn refund(ctx: &mut Ctx, charge: String) -> Result<(), Error> {
        let (key, shelf) = (format!("sale/{charge}"), ctx.storage().plugin());
        match shelf.get::<Sale>(&key)? {
            None => ctx.reply("There is no such payment."),
            Some(Sale { refunded: true, .. }) => ctx.reply("That was given back already."),
            Some(sale) => {
                ctx.queue(api::RefundStarPayment::new(sale.buyer, &charge));
                if let Some((_, tea)) = find(&sale.tea) {
                    shelf.increment(&sold(tea), -1)?;
                }
                let text = format!("⭐ {} given back.", sale.stars);
                shelf.set(&key, &Sale { refunded: true, ..sale })?;
                ctx.reply(text)
            }
        };
        Ok(())
    }

    fn is_admin(ctx: &Run) -> Result<bool, Error> {
        let settings: Settings = ctx.config()?;
        Ok(ctx.user_id().is_some_and(|user| settings.admins.contains(&user)))
    }

    fn find(name: &str) -> Option<(usize, &'static Tea)> {
        TEAS.iter().enumerate().find(|(_, tea)| tea.name == name)
    }

    fn price_tag(tea: &Tea) -> String {
        format!("{}, ⭐ {}", tea.name, tea.stars)
    }

    /// What is counted is what was sold: so the stock can be raised above, in a new version.
    fn left(ctx: &Run, tea: &Tea) -> Result<i64, Error> {
        let sold = ctx.storage().plugin().get::<i64>(&sold(tea))?.unwrap_or_default();
        Ok((tea.stock - sold).max(0))
    }

    fn sold(tea: &Tea) -> String {
        format!("sold/{}", tea.name)
    }
}

#[cfg(test)]
mod tests {
    use botyard_sdk::prelude::*;
    use botyard_sdk::test::{Bot, Outcome};

    use super::shop::Plugin;

    fn bot() -> Bot<Plugin> {
        Bot::new().config(&json!({ "admins": [7] }))
    }

    fn asks(bot: &mut Bot<Plugin>, tea: &str, stars: i64) -> Value {
        let query =
            json!({ "id": "q", "from": { "id": 7 }, "currency": "XTR", "total_amount": stars, "invoice_payload": tea });
        bot.receive("pre_checkout_query", query).calls[0].1.clone()
    }

    fn pays(bot: &mut Bot<Plugin>, tea: &str, stars: i64, charge: &str) -> Outcome {
        let payment = json!({ "total_amount": stars, "invoice_payload": tea, "telegram_payment_charge_id": charge });
        bot.message(&json!({ "successful_payment": payment }))
    }

    #[test]
    fn the_invoice_is_of_what_was_chosen() {
        let mut bot = bot();
        bot.text("/shop");
        bot.press_button("2 ›");
        assert_eq!(
            bot.press_button("Oolong, ⭐ 70").texts(),
            ["Oolong, ⭐ 70\nHalf way between green and black. 5 left."]
        );
        let invoice = &bot.press_button("Buy").calls[0];
        assert_eq!((&*invoice.0, &invoice.1["payload"]), ("sendInvoice", &json!("Oolong")));
        assert_eq!(invoice.1["prices"], json!([{ "label": "Oolong", "amount": 70 }]));
    }

    #[test]
    fn what_is_not_there_is_not_sold() {
        let mut bot = bot();
        assert_eq!(asks(&mut bot, "Pu-erh", 900)["ok"], true);
        assert_eq!(asks(&mut bot, "Pu-erh", 1)["ok"], false, "an invoice of before");
        assert_eq!(asks(&mut bot, "Coffee", 10)["ok"], false);
        assert!(pays(&mut bot, "Pu-erh", 900, "one").texts()[0].starts_with("Thank you!"));
        assert_eq!(asks(&mut bot, "Pu-erh", 900)["error_message"], "Sold out, sorry.");
        // Told “yes” before the other had paid.
        let late = pays(&mut bot, "Pu-erh", 900, "two");
        assert_eq!(
            late.calls[0],
            ("refundStarPayment".to_owned(), json!({ "user_id": 7, "telegram_payment_charge_id": "two" }))
        );
        assert_eq!(bot.text("/refund two").texts(), ["That was given back already."]);
    }

    #[test]
    fn a_refund_is_made_once_and_puts_the_piece_back() {
        let mut bot = bot();
        pays(&mut bot, "Pu-erh", 900, "one");
        assert_eq!(bot.text("/refund two").texts(), ["There is no such payment."]);
        assert_eq!(bot.text("/refund one").calls[0].0, "refundStarPayment");
        assert_eq!(bot.text("/refund one").texts(), ["That was given back already."]);
        assert_eq!(asks(&mut bot, "Pu-erh", 900)["ok"], true);
        assert_eq!(Bot::<Plugin>::new().text("/refund one").result, Ok(Pass), "not an admin");
    }
}
