//! Sends in every way there is; each command says how, each button how it is answered.

use botyard_sdk::prelude::*;

#[plugin]
mod sends {
    #[command("buttons")]
    fn buttons(ctx: &mut Ctx) {
        let button = |name| Button::callback(name, format!("b:{name}"));
        ctx.reply("press").keyboard(
            InlineKeyboard::new()
                .row(["answered", "directly", "silent", "fails", "edits"].map(button))
                .row(["slow", "slow-answered"].map(button))
                .row([Button::callback("nobody", "unknown:x")]),
        );
    }

    #[callback("b:")]
    fn pressed(ctx: &mut Ctx) -> Result<(), Error> {
        let query = ctx.update()["callback_query"]["id"].clone();
        match ctx.callback_data().trim_start_matches("b:") {
            "answered" => ctx.answer_callback("noticed"),
            "directly" => {
                ctx.call("answerCallbackQuery", json!({ "callback_query_id": query, "text": "at once" }))?;
            }
            "fails" => return Err(Error::permanent("as it should")),
            "edits" => drop(ctx.edit("edited")),
            "slow" => {
                ctx.sleep(Duration::from_secs(3));
                ctx.reply("slow is done");
            }
            "slow-answered" => {
                ctx.sleep(Duration::from_secs(3));
                ctx.answer_callback("late");
                ctx.reply("slow is done");
            }
            _ => {}
        }
        Ok(())
    }

    /// Seconds.
    #[command("slow")]
    fn slow(ctx: &mut Ctx) {
        ctx.sleep(seconds(ctx));
        ctx.reply("slow is done");
    }

    /// Seconds.
    #[command("type")]
    fn types(ctx: &mut Ctx) {
        ctx.typing();
        ctx.sleep(seconds(ctx));
        ctx.reply("typed");
    }

    #[command("invoice")]
    fn invoice(ctx: &mut Ctx) -> Result<(), Error> {
        let invoice = json!({
            "chat_id": ctx.chat_id(), "title": "Tea", "description": "Green", "payload": "tea", "currency": "XTR",
            "prices": [{ "label": "Tea", "amount": 5 }],
            "reply_markup": { "inline_keyboard": [[{ "text": "Pay", "pay": true }]] },
        });
        ctx.enqueue("sendInvoice", invoice)?;
        Ok(())
    }

    #[on("pre_checkout_query")]
    fn pre_checkout(ctx: &mut Ctx) -> Result<(), Error> {
        let query = ctx.update()["pre_checkout_query"]["id"].clone();
        ctx.enqueue("answerPreCheckoutQuery", json!({ "pre_checkout_query_id": query, "ok": true }))?;
        Ok(())
    }

    /// How many edits of one message.
    #[command("edits")]
    fn edits(ctx: &mut Ctx) -> Result<(), Error> {
        let message = ctx.reply("edit 0").call()?;
        for n in 1..=ctx.args().parse::<u32>().unwrap_or(1) {
            let text = format!("edit {n}");
            let edit = json!({ "chat_id": ctx.chat_id(), "message_id": message["message_id"], "text": text });
            ctx.enqueue("editMessageText", edit)?;
        }
        Ok(())
    }

    /// `once` or not, and a text.
    #[command("say")]
    fn say(ctx: &mut Ctx) {
        match ctx.args().strip_prefix("once ") {
            Some(text) => ctx.reply(text).at_most_once(),
            None => ctx.reply(ctx.args()),
        };
    }

    /// `plain`, `html`, `markdown`, `photo`, `edit`, `whole` or `call`.
    #[command("long")]
    fn long(ctx: &mut Ctx) -> Result<(), Error> {
        let words: String = (0..1500).map(|n| format!("word{n} ")).collect();
        let keyboard = InlineKeyboard::new().row([Button::callback("end", "b:silent")]);
        let message_id = ctx.message_id().unwrap_or_default();
        match ctx.args() {
            "html" => drop(ctx.reply(format!("<b>{words}<i>end</i></b> &lt;")).html()),
            "markdown" => drop(ctx.reply(format!("*{words}_end_* \\!")).markdown()),
            "photo" => {
                let photo = json!({
                    "chat_id": ctx.chat_id(), "photo": "https://a.example/a.png", "caption": words,
                    "reply_markup": { "inline_keyboard": [[{ "text": "end", "callback_data": "b:silent" }]] },
                });
                ctx.enqueue("sendPhoto", photo)?;
            }
            "edit" => {
                let message = ctx.reply("short").call()?;
                let edit = json!({ "chat_id": ctx.chat_id(), "message_id": message["message_id"], "text": words });
                ctx.enqueue("editMessageText", edit)?;
            }
            "whole" => drop(ctx.reply(words).whole()),
            "call" => {
                let answer = ctx.reply(words).call();
                ctx.reply(format!("{:?}", answer.err()));
            }
            _ => drop(ctx.reply(words).keyboard(keyboard).reply_to(message_id)),
        }
        Ok(())
    }

    /// HTML, or `plain` and HTML.
    #[command("html")]
    fn html(ctx: &mut Ctx) {
        match ctx.args().strip_prefix("plain ") {
            Some(text) => ctx.reply(text).html().plain_fallback(),
            None => ctx.reply(ctx.args()).html(),
        };
    }

    fn seconds(ctx: &Run) -> Duration {
        Duration::from_secs(ctx.args().parse().unwrap_or(1))
    }
}
