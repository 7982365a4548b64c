//! A post office between people and those who look after the bot: what people write is forwarded to a chat of
//! administrators, and what is said there in reply to it goes back.
//!
//! What to look at here:
//!
//! - **Typed configuration.** `Config<Desk>` gives a handler the plugin's `config`; where the administrators' chat is missing,
//!   the error names the key. `config = { admin_chat = -1001234567890 }`; `botyard chats list` shows the chats.
//! - **Direct calls.** A forwarded message has to be remembered by the id that Telegram gives it, so it is forwarded with `ctx.ask`.
//!   When the run fails behind it, the next attempt is given the same answer: nothing is forwarded twice.
//! - **Albums.** `#[album]` gets an album whole, and forwards it as one.
//! - **A middleware** stands around all handlers, and keeps away who has been blocked.

use botyard_sdk::extract::Config;
use botyard_sdk::prelude::*;
use botyard_sdk::{Refusal, User};

/// So long an answer finds its way back.
const REMEMBERED: Duration = Duration::from_secs(90 * 86_400);
/// Who writes again after so long is told again that it has arrived.
const TOLD: Duration = Duration::from_secs(86_400);

#[plugin(methods = [
    api::SendMessage, api::ForwardMessage, api::ForwardMessages, api::CopyMessage, api::SetMessageReaction,
])]
mod feedback {
    /// What the operator decides, in `bot.toml`.
    #[derive(Deserialize)]
    struct Desk {
        /// A group, or one administrator's own chat with the bot.
        admin_chat: i64,
    }

    #[middleware]
    fn only_who_is_not_blocked(ctx: &mut Ctx, next: Next) -> Result<Handled, Error> {
        let is_blocked = ctx.user_id().is_some() && ctx.storage().user().get::<bool>("blocked")?.unwrap_or_default();
        if is_blocked && !at_the_desk(ctx)? { Ok(Done) } else { next.run(ctx) }
    }

    /// What this is for
    #[command("start")]
    fn start(ctx: &mut Ctx, user: User) {
        ctx.reply(format!("Hello {}, write to us here. Pictures and files arrive as well.", user.first_name));
    }

    // At the desk.

    /// No more of this person
    #[command("block", menu = "administrators", check = at_the_desk)]
    fn block(ctx: &mut Ctx) -> Result<(), Error> {
        set_blocked(ctx, true)
    }

    /// Listen to this person again
    #[command("unblock", menu = "administrators", check = at_the_desk)]
    fn unblock(ctx: &mut Ctx) -> Result<(), Error> {
        set_blocked(ctx, false)
    }

    fn set_blocked(ctx: &Run, blocked: bool) -> Result<(), Error> {
        match author(ctx)? {
            Some(person) => {
                ctx.storage().of_user(person).set("blocked", &blocked)?;
                ctx.reply(if blocked { "Blocked." } else { "Not blocked any more." })
            }
            None => ctx.reply("Reply with this to what they wrote."),
        };
        Ok(())
    }

    #[message(filter = reply(), check = at_the_desk)]
    fn answer(ctx: &mut Ctx, message: api::Message) -> Result<Handled, Error> {
        let Some(person) = author(ctx)? else { return Ok(Pass) };
        // Asked for directly: whether it has arrived is what the desk wants to know.
        match ctx.ask(api::CopyMessage::new(person, ctx.here(), message.message_id())) {
            Ok(_) => ctx.react("👍"),
            Err(CallError::Refused { kind: Refusal::ChatGone, .. }) => {
                ctx.reply("They have left: that can't be delivered.")
            }
            Err(error) => return Err(error.into()),
        };
        Ok(Done)
    }

    // What people write.

    #[message(filter = private(), check = elsewhere)]
    fn pass_on(ctx: &mut Ctx, message: api::Message, user: User, Config(desk): Config<Desk>) -> Result<(), Error> {
        let forwarded = ctx.ask(api::ForwardMessage::new(desk.admin_chat, user.id, message.message_id()))?;
        remember(ctx, &desk, &user, [forwarded.message_id()])
    }

    #[album(filter = private(), check = elsewhere)]
    fn pass_on_album(ctx: &mut Ctx, album: Album, user: User, Config(desk): Config<Desk>) -> Result<(), Error> {
        let messages: Vec<i64> = album.updates.iter().filter_map(|update| update.message_id).collect();
        let forwarded = ctx.ask(api::ForwardMessages::new(desk.admin_chat, user.id, messages))?;
        remember(ctx, &desk, &user, forwarded.iter().map(|message| message.message_id()))
    }

    fn remember(ctx: &Run, desk: &Desk, from: &User, forwarded: impl IntoIterator<Item = i64>) -> Result<(), Error> {
        for message in forwarded {
            ctx.storage().of_chat(desk.admin_chat).set_for(&author_of(message), &from.id, REMEMBERED)?;
        }
        if ctx.storage().user().get::<bool>("told")?.is_none() {
            ctx.storage().user().set_for("told", &true, TOLD)?;
            ctx.reply("Thank you, it has arrived. The answer comes here.");
        }
        Ok(())
    }

    /// Whose message the event's message replies to.
    fn author(ctx: &Run) -> Result<Option<i64>, Error> {
        let replied = ctx.message().and_then(|message| message.reply_to_message());
        replied.map_or(Ok(None), |replied| ctx.storage().chat().get(&author_of(replied.message_id())))
    }

    fn author_of(message: i64) -> String {
        format!("author/{message}")
    }

    fn at_the_desk(ctx: &Run) -> Result<bool, Error> {
        Ok(ctx.chat_id() == Some(ctx.config::<Desk>()?.admin_chat))
    }

    fn elsewhere(ctx: &Run) -> Result<bool, Error> {
        Ok(!at_the_desk(ctx)?)
    }
}

#[cfg(test)]
mod tests {
    use botyard_sdk::json;
    use botyard_sdk::test::Bot;

    use super::feedback::Plugin;

    fn bot() -> Bot<Plugin> {
        Bot::new().config(&json!({ "admin_chat": -100 }))
    }

    fn at_the_desk(bot: &mut Bot<Plugin>, text: &str, replied: i64) -> botyard_sdk::test::Outcome {
        bot.receive(
            "message",
            json!({
                "message_id": 60, "from": { "id": 99, "is_bot": false, "first_name": "Ann" }, "text": text,
                "chat": { "id": -100, "type": "supergroup" }, "reply_to_message": { "message_id": replied },
            }),
        )
    }

    #[test]
    fn an_album_is_forwarded_as_one_and_each_of_it_can_be_answered() {
        let mut bot =
            bot().answer(&json!([{ "message_id": 51 }, { "message_id": 52 }])).answer(&json!({ "message_id": 9 }));
        let sent = bot.album("Look", &[json!({ "photo": [] }), json!({ "photo": [] })]);
        assert_eq!(sent.calls[0].0, "forwardMessages");
        assert_eq!(sent.calls[0].1["message_ids"], json!([1, 2]));
        let answered = at_the_desk(&mut bot, "Nice", 52);
        assert_eq!((&*answered.calls[0].0, &answered.calls[0].1["chat_id"]), ("copyMessage", &json!(7)));
    }

    #[test]
    fn who_is_blocked_is_not_heard_until_unblocked() {
        let mut bot = bot().answer(&json!({ "message_id": 51 }));
        bot.text("spam");
        assert_eq!(at_the_desk(&mut bot, "/block", 51).texts(), ["Blocked."]);
        assert!(bot.text("more spam").calls.is_empty());
        assert_eq!(at_the_desk(&mut bot, "/unblock", 51).texts(), ["Not blocked any more."]);
        let mut bot = bot.answer(&json!({ "message_id": 53 }));
        assert_eq!(bot.text("sorry").calls[0].0, "forwardMessage");
    }

    #[test]
    fn without_a_chat_of_administrators_the_key_is_named() {
        let failed = Bot::<Plugin>::new().text("hi").result.unwrap_err();
        assert!(failed.to_string().contains("admin_chat") && !failed.retries(), "{failed}");
    }
}
