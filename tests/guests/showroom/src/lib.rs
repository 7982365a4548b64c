//! Something of everything that a chat can show: polls, invoices, keyboards, inline results, a timer.

use botyard_sdk::prelude::*;

#[plugin]
mod showroom {
    #[command("poll")]
    fn poll(ctx: &mut Ctx) -> Result<(), Error> {
        let options = ["Plov", "Manti"];
        let poll = json!({ "chat_id": ctx.chat_id(), "question": "Lunch?", "options": options, "is_anonymous": false });
        ctx.enqueue("sendPoll", poll)?;
        Ok(())
    }

    #[on("poll_answer")]
    fn voted(ctx: &mut Ctx) -> Result<(), Error> {
        let answer = &ctx.update()["poll_answer"];
        let text = format!("Voted: {}", answer["option_ids"]);
        let chat = answer["user"]["id"].clone();
        ctx.enqueue("sendMessage", json!({ "chat_id": chat, "text": text }))?;
        Ok(())
    }

    #[command("buy")]
    fn buy(ctx: &mut Ctx) -> Result<(), Error> {
        let invoice = json!({
            "chat_id": ctx.chat_id(), "title": "Tea", "description": "Green", "payload": "tea", "currency": "EUR",
            "prices": [{ "label": "Tea", "amount": 400 }], "need_name": true, "is_flexible": true,
        });
        ctx.enqueue("sendInvoice", invoice)?;
        Ok(())
    }

    #[on("shipping_query")]
    fn ships(ctx: &mut Ctx) -> Result<(), Error> {
        let option =
            |id: &str, amount: i64| json!({ "id": id, "title": id, "prices": [{ "label": id, "amount": amount }] });
        let query = ctx.update()["shipping_query"]["id"].clone();
        let options = [option("Post", 50), option("Courier", 150)];
        ctx.enqueue(
            "answerShippingQuery",
            json!({ "shipping_query_id": query, "ok": true, "shipping_options": options }),
        )?;
        Ok(())
    }

    #[on("pre_checkout_query")]
    fn takes_money(ctx: &mut Ctx) -> Result<(), Error> {
        let query = ctx.update()["pre_checkout_query"]["id"].clone();
        ctx.enqueue("answerPreCheckoutQuery", json!({ "pre_checkout_query_id": query, "ok": true }))?;
        Ok(())
    }

    #[command("ask")]
    fn ask(ctx: &mut Ctx) -> Result<(), Error> {
        let keyboard = json!({
            "keyboard": [[{ "text": "My number", "request_contact": true }]], "resize_keyboard": true,
            "one_time_keyboard": true, "input_field_placeholder": "Your number",
        });
        let ask = json!({ "chat_id": ctx.chat_id(), "text": "Your number?", "reply_markup": keyboard });
        ctx.enqueue("sendMessage", ask)?;
        Ok(())
    }

    #[command("reply")]
    fn force(ctx: &mut Ctx) -> Result<(), Error> {
        let force = json!({ "chat_id": ctx.chat_id(), "text": "Say it", "reply_markup": { "force_reply": true } });
        ctx.enqueue("sendMessage", force)?;
        Ok(())
    }

    #[command("alert")]
    fn alert(ctx: &mut Ctx) {
        ctx.reply("Press").keyboard(
            InlineKeyboard::new().row([Button::callback("Alert", "alert"), Button::callback("Toast", "toast")]),
        );
    }

    #[callback("")]
    fn pressed(ctx: &mut Ctx) -> Result<(), Error> {
        let query = ctx.update()["callback_query"]["id"].clone();
        let alert = ctx.callback_data() == "alert";
        ctx.enqueue(
            "answerCallbackQuery",
            json!({ "callback_query_id": query, "text": "Heard", "show_alert": alert }),
        )?;
        ctx.edit("Pressed");
        Ok(())
    }

    #[command("doors")]
    fn doors(ctx: &mut Ctx) -> Result<(), Error> {
        let rows = json!([
            [{ "text": "Log in", "login_url": { "url": "https://login.example/here", "request_write_access": true } }],
            [{ "text": "Shop", "web_app": { "url": "https://shop.example" } }, { "text": "Code", "copy_text": { "text": "TEA-42" } }],
            [{ "text": "Tell others", "switch_inline_query": "tea" }, { "text": "Look here", "switch_inline_query_current_chat": "manti" }],
        ]);
        let keyboard =
            json!({ "keyboard": [[{ "text": "Order", "web_app": { "url": "https://shop.example/order" } }]] });
        let chat = ctx.chat_id();
        ctx.enqueue("sendMessage", json!({ "chat_id": chat, "text": "An app below", "reply_markup": keyboard }))?;
        let markup = json!({ "inline_keyboard": rows });
        ctx.enqueue("sendMessage", json!({ "chat_id": chat, "text": "Doors", "reply_markup": markup }))?;
        Ok(())
    }

    #[command("quiz")]
    fn quiz(ctx: &mut Ctx) -> Result<(), Error> {
        let quiz = json!({
            "chat_id": ctx.chat_id(), "question": "What boils?", "options": ["Ice", "Water"], "type": "quiz",
            "correct_option_ids": [1], "explanation": "At a hundred degrees.", "is_anonymous": false,
        });
        ctx.enqueue("sendPoll", quiz)?;
        Ok(())
    }

    #[command("later")]
    fn later(ctx: &mut Ctx) -> Result<(), Error> {
        ctx.after("bell", Duration::from_secs(3600), "tea")?;
        info!("a timer is set");
        ctx.reply("In an hour");
        Ok(())
    }

    #[timer("bell")]
    fn rings(ctx: &mut Ctx) {
        ctx.reply("It is time");
    }

    #[on("inline_query")]
    fn finds(ctx: &mut Ctx) -> Result<(), Error> {
        let query = &ctx.update()["inline_query"];
        let text = query["query"].as_str().unwrap_or_default();
        let article = json!({
            "type": "article", "id": "1", "title": format!("Found {text}"), "description": "one of one",
            "input_message_content": { "message_text": format!("<b>{text}</b>"), "parse_mode": "HTML" },
        });
        let answer = json!({ "inline_query_id": query["id"], "results": [article] });
        ctx.enqueue("answerInlineQuery", answer)?;
        Ok(())
    }

    #[on("message")]
    fn others(ctx: &mut Ctx) -> Handled {
        let message = &ctx.update()["message"];
        let text = if let Some(amount) = message["successful_payment"]["total_amount"].as_i64() {
            format!("Thank you for {amount}")
        } else if let Some(number) = message["contact"]["phone_number"].as_str() {
            format!("Your number is {number}")
        } else if let Some(data) = message["web_app_data"]["data"].as_str() {
            format!("The app says {data}")
        } else if message["photo"].is_array() {
            "A picture".to_owned()
        } else if let Some(to) = message["reply_to_message"]["text"].as_str() {
            format!("You answer {to}")
        } else {
            return Pass;
        };
        ctx.reply(text);
        Done
    }
}

#[cfg(test)]
mod tests {
    use botyard_sdk::test::Bot;

    use super::showroom::Plugin;

    #[test]
    fn an_hour_passes() {
        let mut bot = Bot::<Plugin>::new();
        assert_eq!(bot.text("/later").texts(), ["In an hour"]);
        assert_eq!(bot.timer().unwrap().texts(), ["It is time"]);
    }
}
