//! Chats of business accounts, in which the bot speaks for somebody else.

use botyard_sdk::prelude::*;
use botyard_sdk::test::Bot;

#[plugin]
mod clerk {
    #[derive(CallbackData)]
    enum Desk {
        Close,
    }

    #[on("business_message")]
    fn serve(ctx: &mut Ctx) {
        ctx.reply("at your service").keyboard(InlineKeyboard::new().row([Button::data("Close", Desk::Close)]));
    }

    #[callback(Desk)]
    fn close(ctx: &mut Ctx, _: Desk) {
        ctx.edit("closed");
    }

    #[text]
    fn echo(ctx: &mut Ctx) {
        ctx.reply(ctx.text());
    }
}

#[test]
fn a_business_chat_is_answered_through_its_connection() {
    let mut bot = Bot::<clerk::Plugin>::new();
    let message = json!({
        "business_connection_id": "b\"1", "message_id": 4, "chat": { "id": 7, "type": "private" }, "from": { "id": 7 },
        "text": "is this a business_connection_id?",
    });
    let said = bot.receive("business_message", message.clone());
    assert_eq!((said.texts(), &said.calls[0].1["business_connection_id"]), (vec!["at your service"], &json!("b\"1")));
    let data = said.calls[0].1["reply_markup"]["inline_keyboard"][0][0]["callback_data"].clone();
    let query = json!({ "id": "q", "from": { "id": 7 }, "data": data, "message": message });
    let edited = bot.receive("callback_query", query);
    let edit = json!({ "chat_id": 7, "message_id": 4, "business_connection_id": "b\"1", "text": "closed" });
    assert_eq!((edited.calls[0].0.as_str(), &edited.calls[0].1), ("editMessageText", &edit));
    let elsewhere = bot.text("what is a business_connection_id?");
    assert_eq!(elsewhere.calls[0].1.get("business_connection_id"), None, "{:?}", elsewhere.calls);
}
