//! Keeps a group in order: a welcome, requests to join, warnings, silence, bans, and words that nobody should use.
//!
//! What to look at here:
//!
//! - **Who may.** `check = check::administrator` asks Telegram about whoever wrote. A second handler without the check
//!   stands behind the first: where the first one passes, the second says why nothing happens.
//! - **An extractor of one's own.** `Offender` is whom a command is about: who wrote the message that it replies to. The
//!   handlers simply take one, and are not called where there is none.
//! - **To whom it is said.** Everybody in the group reads the bot, so `t!(ctx.for_chat(), …)` speaks the group's language,
//!   not that of whoever has typed the command.
//! - **Counting.** `increment` is safe when two administrators warn at the same moment: the second run is made again.
//!
//! In the group the bot must be an administrator that may delete messages and restrict members; silence works in supergroups. It sees all
//! messages only when its privacy mode is off: @BotFather, /setprivacy. An operator can set `config`:
//! `{ warnings = 3, banned_words = ["casino"] }`.

use botyard_sdk::extract::{Config, Extract, Rejected};
use botyard_sdk::prelude::*;
use botyard_sdk::{Refusal, User};

#[plugin(
    key = "chat",
    methods = [
        api::SendMessage, api::EditMessageText, api::AnswerCallbackQuery, api::DeleteMessage, api::GetChatMember,
        api::RestrictChatMember, api::BanChatMember, api::ApproveChatJoinRequest, api::DeclineChatJoinRequest,
    ]
)]
mod moderation {
    /// What the operator decides, in `bot.toml`.
    #[derive(Deserialize)]
    #[serde(default)]
    struct Rules {
        /// With this one somebody is out.
        warnings: i64,
        banned_words: Vec<String>,
    }

    impl Default for Rules {
        fn default() -> Self {
            Self { warnings: 3, banned_words: Vec::new() }
        }
    }

    // Coming in.

    #[content("new_chat_members")]
    fn welcome(ctx: &mut Ctx, message: api::Message) {
        for newcomer in message.new_chat_members().into_iter().filter(|newcomer| !newcomer.is_bot()) {
            ctx.reply(t!(ctx.for_chat(), "welcome", name = newcomer.first_name()));
        }
    }

    /// The answer to a request; whom it is about is on the button, and nowhere else.
    #[derive(CallbackData)]
    enum Request {
        LetIn { user: i64, name: String },
        TurnAway { user: i64, name: String },
    }

    #[on("chat_join_request")]
    fn wants_in(ctx: &mut Ctx, request: api::ChatJoinRequest) {
        let (user, name) = (request.from().id(), request.from().first_name());
        let buttons = InlineKeyboard::new().row([
            Button::data(t!(ctx.for_chat(), "let-in"), Request::LetIn { user, name: name.clone() }),
            Button::data(t!(ctx.for_chat(), "turn-away"), Request::TurnAway { user, name: name.clone() }),
        ]);
        ctx.send(request.chat().id(), t!(ctx.for_chat(), "wants-in", name = name)).keyboard(buttons);
    }

    #[callback(Request, check = check::administrator)]
    fn decided(ctx: &mut Ctx, request: Request, by: User) {
        match request {
            Request::LetIn { user, name } => {
                ctx.queue(api::ApproveChatJoinRequest::new(ctx.here(), user));
                ctx.edit(t!(ctx.for_chat(), "is-in", name = name, by = by.first_name));
            }
            Request::TurnAway { user, name } => {
                ctx.queue(api::DeclineChatJoinRequest::new(ctx.here(), user));
                ctx.edit(t!(ctx.for_chat(), "turned-away", name = name, by = by.first_name));
            }
        }
    }

    #[callback(Request)]
    fn not_theirs_to_decide(ctx: &mut Ctx, _: Request) {
        ctx.answer_callback(t!(ctx, "admins-only"));
    }

    // Misbehaving.

    /// Who wrote the message that a command replies to, if it is somebody that can be dealt with.
    struct Offender {
        id: i64,
        name: String,
    }

    impl Extract for Offender {
        fn extract(ctx: &Run) -> Result<Self, Rejected> {
            let replied = ctx.message().and_then(|message| message.reply_to_message());
            let Some(author) = replied.and_then(|message| message.from()) else {
                ctx.reply(t!(ctx.for_chat(), "reply-to-them"));
                return Err(Rejected::Answered);
            };
            let failed = |error: CallError| Rejected::Failed(error.into());
            if is_administrator(ctx, author.id()).map_err(failed)? {
                ctx.reply(t!(ctx.for_chat(), "not-them"));
                return Err(Rejected::Answered);
            }
            Ok(Self { id: author.id(), name: author.first_name() })
        }
    }

    fn is_administrator(ctx: &Run, user: i64) -> Result<bool, CallError> {
        match ctx.ask(api::GetChatMember::new(ctx.here(), user)) {
            Ok(member) => Ok(matches!(member, api::ChatMember::Owner(_) | api::ChatMember::Administrator(_))),
            // Whoever has left long ago is none.
            Err(CallError::Refused { kind: Refusal::Call, .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    #[command("warn {reason...?}", help = "cmd-warn", menu = "administrators", filter = group(), check = check::administrator)]
    fn warn(
        ctx: &mut Ctx,
        reason: Option<String>,
        offender: Offender,
        Config(rules): Config<Rules>,
    ) -> Result<(), Error> {
        count_warning(ctx, &offender, reason.as_deref(), &rules)
    }

    #[command("mute {minutes}", help = "cmd-mute", menu = "administrators", filter = group(), check = check::administrator)]
    fn mute(ctx: &mut Ctx, minutes: u32, offender: Offender) {
        let minutes = minutes.max(1);
        let now = ctx.now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let until = now + Duration::from_secs(60 * u64::from(minutes));
        let silence = api::ChatPermissions::new().with_can_send_messages(false);
        ctx.queue(
            api::RestrictChatMember::new(ctx.here(), offender.id, silence)
                .until_date(i64::try_from(until.as_secs()).unwrap_or(i64::MAX)),
        );
        ctx.reply(t!(ctx.for_chat(), "muted", name = offender.name, minutes = minutes));
    }

    #[command("ban", help = "cmd-ban", menu = "administrators", filter = group(), check = check::administrator)]
    fn ban(ctx: &mut Ctx, offender: Offender) -> Result<(), Error> {
        throw_out(ctx, &offender)
    }

    #[command("warn", "mute", "ban", filter = group())]
    fn not_theirs_to_order(ctx: &mut Ctx) {
        ctx.reply(t!(ctx, "admins-only"));
    }

    /// Asked of every text in a group, and so it comes last, and asks Telegram only when such a word is there.
    #[text(filter = group(), check = has_banned_word)]
    fn banned_word(ctx: &mut Ctx, message: api::Message, Config(rules): Config<Rules>) -> Result<Handled, Error> {
        let Some(author) = message.from() else { return Ok(Pass) };
        if is_administrator(ctx, author.id())? {
            return Ok(Pass);
        }
        ctx.queue(api::DeleteMessage::new(ctx.here(), message.message_id()));
        let offender = Offender { id: author.id(), name: author.first_name() };
        count_warning(ctx, &offender, Some(&t!(ctx.for_chat(), "banned-word")), &rules)?;
        Ok(Done)
    }

    fn has_banned_word(ctx: &Run) -> Result<bool, Error> {
        let rules: Rules = ctx.config()?;
        Ok(contains_word(ctx.text(), &rules.banned_words))
    }

    fn count_warning(ctx: &Run, offender: &Offender, reason: Option<&str>, rules: &Rules) -> Result<(), Error> {
        let count = ctx.storage().chat().increment(&warnings_of(offender.id), 1)?;
        let (name, most) = (&offender.name, rules.warnings);
        match reason {
            Some(reason) => ctx.reply(t!(
                ctx.for_chat(),
                "warned-because",
                name = name,
                count = count,
                most = most,
                reason = reason
            )),
            None => ctx.reply(t!(ctx.for_chat(), "warned", name = name, count = count, most = most)),
        };
        if count >= most { throw_out(ctx, offender) } else { Ok(()) }
    }

    fn throw_out(ctx: &Run, offender: &Offender) -> Result<(), Error> {
        ctx.queue(api::BanChatMember::new(ctx.here(), offender.id));
        // Whoever is let in again begins anew.
        ctx.storage().chat().delete(&warnings_of(offender.id))?;
        ctx.reply(t!(ctx.for_chat(), "banned", name = &offender.name));
        Ok(())
    }

    fn warnings_of(user: i64) -> String {
        format!("warnings/{user}")
    }
}

/// Whether one of the words is there, as a whole word and in whatever case.
fn contains_word(text: &str, words: &[String]) -> bool {
    let text = text.to_lowercase();
    let mut parts = text.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty());
    parts.any(|part| words.iter().any(|word| word.to_lowercase() == part))
}

#[cfg(test)]
mod tests {
    use botyard_sdk::json;
    use botyard_sdk::test::{Bot, Outcome};

    use super::moderation::Plugin;
    use super::*;

    const MEMBER: &str = r#"{"status":"member","user":{"id":8,"is_bot":false,"first_name":"Bob"}}"#;
    const OWNER: &str =
        r#"{"status":"creator","is_anonymous":false,"user":{"id":7,"is_bot":false,"first_name":"Ann"}}"#;

    /// A bot that is told, in turn, what these are in the group.
    fn asked(members: &[&str]) -> Bot<Plugin> {
        let answer = |member: &&str| member.parse::<Value>().unwrap();
        members.iter().fold(Bot::new(), |bot, member| bot.answer(&answer(member)))
    }

    fn in_group(bot: &mut Bot<Plugin>, text: &str) -> Outcome {
        let replied =
            json!({ "message_id": 4, "from": { "id": 8, "is_bot": false, "first_name": "Bob" }, "text": "!" });
        bot.receive(
            "message",
            json!({
                "message_id": 5, "from": { "id": 7, "is_bot": false, "first_name": "Ann" },
                "chat": { "id": -100, "type": "supergroup" }, "text": text, "reply_to_message": replied,
            }),
        )
    }

    #[test]
    fn words_are_whole_words() {
        let words = ["casino".to_owned(), "Ёж".to_owned()];
        for text in ["casino", "a CASINO!", "casino,casino", "ёж."] {
            assert!(contains_word(text, &words), "{text}");
        }
        for text in ["", "casinos", "occasinonal", "ёжик", "!!!"] {
            assert!(!contains_word(text, &words), "{text}");
        }
    }

    #[test]
    fn the_last_warning_is_a_ban() {
        let mut bot = asked(&[OWNER, MEMBER, OWNER, MEMBER, OWNER, MEMBER]).config(&json!({ "warnings": 2 }));
        assert_eq!(in_group(&mut bot, "/warn").texts(), ["Bob, this is warning 1 of 2."]);
        let second = in_group(&mut bot, "/warn spam");
        assert_eq!(second.texts(), ["Bob, this is warning 2 of 2: spam", "Bob is out."]);
        assert!(second.calls.iter().any(|(method, params)| method == "banChatMember" && params["user_id"] == 8));
        assert_eq!(in_group(&mut bot, "/warn").texts(), ["Bob, this is warning 1 of 2."], "a new beginning");
    }

    #[test]
    fn silence_has_an_end() {
        let muted = in_group(&mut asked(&[OWNER, MEMBER]), "/mute 5");
        let (_, params) = muted.calls.iter().find(|(method, _)| method == "restrictChatMember").unwrap();
        assert_eq!(params["permissions"], json!({ "can_send_messages": false }));
        assert_eq!(params["until_date"], 1_750_000_000 + 300);
        assert_eq!(muted.texts(), ["Bob is silent for 5 minutes."]);
    }

    #[test]
    fn members_order_nothing_and_administrators_are_safe() {
        assert_eq!(in_group(&mut asked(&[MEMBER]), "/ban").texts(), ["That is for administrators."]);
        let safe = in_group(&mut asked(&[OWNER, OWNER]), "/ban");
        assert_eq!(safe.texts(), ["Administrators settle this among themselves."]);
    }
}
