//! mojogram's example `inline_keyboard_bot`: a question with two buttons, and the verdict in its place.

use botyard_sdk::prelude::*;

#[plugin(methods = [api::SendMessage, api::EditMessageText, api::AnswerCallbackQuery])]
pub(crate) mod inline_keyboard_bot {
    #[derive(CallbackData)]
    enum Vote {
        Up,
        Down,
    }

    #[command("start")]
    fn start(ctx: &mut Ctx) {
        let buttons = [Button::data("👍 Like", Vote::Up), Button::data("👎 Dislike", Vote::Down)];
        ctx.reply("How do you like botyard?").keyboard(InlineKeyboard::new().row(buttons));
    }

    #[callback(Vote)]
    fn voted(ctx: &mut Ctx, vote: Vote) {
        ctx.answer_callback("Thanks for voting!");
        ctx.edit(if matches!(vote, Vote::Up) { "You liked it 🎉" } else { "You disliked it 😢" });
    }
}
