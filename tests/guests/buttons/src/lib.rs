//! Offers buttons of several kinds, and tells what comes back. Configured twice, each says its name.

use botyard_sdk::prelude::*;

#[plugin(methods = ["sendMessage", "editMessageText", "answerCallbackQuery", "answerInlineQuery"])]
mod buttons {
    #[derive(CallbackData)]
    enum Order {
        Pick { item: u32 },
        Note(String),
    }

    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Config {
        name: String,
    }

    fn name(ctx: &Run) -> Result<String, Error> {
        ctx.config::<Config>().map(|config| config.name)
    }

    #[command("offer")]
    fn offer(ctx: &mut Ctx) -> Result<Handled, Error> {
        if ctx.args() != name(ctx)? {
            return Ok(Pass);
        }
        let keyboard = InlineKeyboard::new()
            .row([Button::data("Pick", Order::Pick { item: 3 }), Button::data("Note", Order::Note("n".repeat(600)))])
            // As an older version may have sent them.
            .row([Button::callback("Gone", "order:gone:1"), Button::callback("Elsewhere", "elsewhere")])
            .row([Button::callback("Raw", "raw:x")]);
        ctx.reply("offered").keyboard(keyboard);
        Ok(Done)
    }

    #[command("directly")]
    fn directly(ctx: &mut Ctx) -> Result<(), Error> {
        let keyboard = InlineKeyboard::new().row([Button::data("Now", Order::Note("d".repeat(100)))]);
        let message = ctx.reply("now").keyboard(keyboard).call()?;
        let data = message["reply_markup"]["inline_keyboard"][0][0]["callback_data"].as_str().unwrap_or_default();
        ctx.reply(format!("{}", data.len()));
        Ok(())
    }

    #[callback(Order)]
    fn pressed(ctx: &mut Ctx, order: Order) -> Result<(), Error> {
        let name = name(ctx)?;
        match order {
            Order::Note(note) if ctx.chat_id().is_none() => ctx.edit(format!("{name} noted {} inline", note.len())),
            Order::Pick { item } => ctx.reply(format!("{name} picked {item}")),
            Order::Note(note) => ctx.reply(format!("{name} noted {}", note.len())),
        };
        Ok(())
    }

    #[command("spread")]
    fn spread(ctx: &mut Ctx) -> Result<(), Error> {
        let keyboard = InlineKeyboard::new().row([Button::data("Spread", Order::Pick { item: 9 })]);
        let to: Vec<i64> = ctx.args().split(',').map(str::parse).collect::<Result<_, _>>()?;
        ctx.broadcast(to, "to many").keyboard(keyboard).start()?;
        Ok(())
    }

    #[on("inline_query")]
    fn suggest(ctx: &mut Ctx) {
        let button = api::InlineKeyboardButton::new("Note").with_callback_data(Order::Note("i".repeat(70)).to_data());
        let result = api::InlineQueryResultArticle::new("1", "Note", "A note");
        ctx.answer_inline([result.reply_markup(api::InlineKeyboardMarkup::new([[button]]))]);
    }

    #[callback("raw:")]
    fn raw(ctx: &mut Ctx) {
        let told = ctx.telegram().callback_query().and_then(|query| query.data()).unwrap_or_default();
        let on_button = &ctx.update()["callback_query"]["message"]["reply_markup"]["inline_keyboard"][2][0];
        ctx.reply(format!("{} {told} {}", ctx.callback_data(), on_button["callback_data"]));
    }

    #[on("callback_query", observe)]
    fn watch(ctx: &mut Ctx) -> Result<(), Error> {
        let sees = [ctx.callback_data(), ctx.raw()].iter().any(|text| text.contains("pick"));
        ctx.storage().plugin().set("seen", &if sees { "all" } else { "a press" })
    }

    #[command("seen")]
    fn seen(ctx: &mut Ctx) -> Result<Handled, Error> {
        if ctx.args() != name(ctx)? {
            return Ok(Pass);
        }
        let seen: Option<String> = ctx.storage().plugin().get("seen")?;
        ctx.reply(seen.unwrap_or_else(|| "nothing".to_owned()));
        Ok(Done)
    }
}
