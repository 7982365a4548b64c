//! What handlers answer to and what they are given: filters, checks, commands with arguments, links, middleware, errors.

use botyard_sdk::extract::{Payload, Start, Text};
use botyard_sdk::link::{self, Decoded};
use botyard_sdk::prelude::*;
use botyard_sdk::test::Bot;
use botyard_sdk::{Plugin as _, User};

#[plugin]
mod shop {
    use botyard_sdk::filter::Filter;

    #[derive(State, Serialize, Deserialize, Default)]
    pub(crate) enum Order {
        #[default]
        Idle,
        Cups {
            kind: String,
            milk: bool,
        },
        Done(u8),
    }

    #[derive(Command)]
    pub(crate) enum Cmd {
        /// What I can do.
        Help,
        /// cmd-note
        #[command("note {title} {text...?}", "n")]
        Note { title: String, text: Option<String> },
        #[command(hidden)]
        /// Never shown.
        Debug { level: Option<u8> },
    }

    #[command(Cmd)]
    fn commands(ctx: &mut Ctx<Order>, cmd: Cmd, user: User) {
        match cmd {
            Cmd::Help => ctx.reply(Cmd::help_for(ctx)),
            Cmd::Note { title, text } => ctx.reply(format!("{}: {title} / {text:?}", user.first_name)),
            Cmd::Debug { level } => ctx.reply(format!("{level:?}")),
        };
    }

    /// Orders tea
    #[command("order {kind} {cups?}", "o", filter = !channel())]
    fn order(ctx: &mut Ctx<Order>, cups: Option<u8>, kind: String, text: Text) -> Handled {
        let Text(text) = text;
        ctx.reply(format!("{kind} {cups:?} of {text}"));
        ctx.goto(Order::Cups { kind, milk: true })
    }

    #[state(Order::Cups { kind, .. })]
    fn cups(ctx: &mut Ctx<Order>, kind: String, Text(text): Text) -> Handled {
        let Ok(cups) = text.parse() else {
            ctx.reply(format!("How many of {kind}?"));
            return Done;
        };
        ctx.goto(Order::Done(cups))
    }

    #[command("again", state = Order::Done(cups))]
    fn again(ctx: &mut Ctx<Order>, cups: u8) {
        ctx.reply(format!("{cups} more"));
    }

    #[message(filter = private() & (photo() | document()) & !forwarded())]
    fn picture(ctx: &mut Ctx<Order>, message: api::Message) {
        ctx.reply(format!("picture {}", message.message_id()));
    }

    #[content("sticker", filter = staff())]
    fn sticker(ctx: &mut Ctx<Order>, album: Option<Album>) {
        ctx.reply(format!("staff {}", album.is_some()));
    }

    #[text("^hm", filter = text_matches("m$"))]
    fn hmm(ctx: &mut Ctx<Order>) {
        ctx.reply("hmm");
    }

    #[text(check = |ctx: &Run| ctx.text() == "secret")]
    fn secret(ctx: &mut Ctx<Order>) {
        ctx.reply("shh");
    }

    #[command("close", check = check::administrator)]
    fn close(ctx: &mut Ctx<Order>) {
        ctx.reply("closed");
    }

    #[start("ref-")]
    fn invited(ctx: &mut Ctx<Order>, Start(by): Start<i64>) {
        ctx.reply(format!("by {by}"));
    }

    #[start("ref-x")]
    fn special(ctx: &mut Ctx<Order>, start: Start) {
        ctx.reply(format!("special {:?}", start.0));
    }

    #[start]
    fn encoded(ctx: &mut Ctx<Order>, Start(Decoded(text)): Start<Decoded>) {
        ctx.reply(format!("encoded {text}"));
    }

    #[command("start")]
    fn start(ctx: &mut Ctx<Order>) {
        ctx.reply("start");
    }

    #[on("chat_member", "my_chat_member")]
    fn member(ctx: &mut Ctx<Order>, change: api::ChatMemberUpdated, chat: api::Chat) {
        ctx.send(chat.id(), format!("{} in {}", change.from().first_name(), chat.title().unwrap_or_default()));
    }

    #[callback("cups:")]
    fn pressed(ctx: &mut Ctx<Order>, query: api::CallbackQuery) {
        ctx.reply(query.data().unwrap_or_default());
    }

    #[timer("tea")]
    fn ready(ctx: &mut Ctx<Order>, Payload(kind): Payload<String>) {
        ctx.reply(kind);
    }

    fn staff() -> Filter {
        botyard_sdk::filter::user([8, 9]) & botyard_sdk::filter::group()
    }
}

fn bot() -> Bot<shop::Plugin> {
    Bot::new()
}

#[test]
fn commands_are_given_their_arguments() {
    for (text, answer) in [
        ("/order green", "green None of /order green"),
        ("/o green 3", "green Some(3) of /o green 3"),
        ("/order", "Please write it like this: /order KIND [CUPS]"),
        ("/order green many", "Please write it like this: /order KIND [CUPS]"),
        ("/order green 3 4", "Please write it like this: /order KIND [CUPS]"),
        ("/note a  b c ", "Alice: a / Some(\"b c\")"),
        ("/n a", "Alice: a / None"),
        ("/note", "Please write it like this: /note TITLE [TEXT…]"),
        ("/debug 300", "Please write it like this: /debug [LEVEL]"),
        ("/debug", "None"),
        ("/help", "/help – What I can do\n/note TITLE [TEXT…] – cmd-note"),
    ] {
        let outcome = bot().text(text);
        assert_eq!((outcome.texts(), outcome.result.clone()), (vec![answer], Ok(Done)), "{text}");
    }
    assert_eq!(shop::Cmd::help(), "/help – What I can do\n/note TITLE [TEXT…] – cmd-note");
}

#[test]
fn the_manifest_has_the_commands_and_conditions() {
    let manifest = shop::Plugin::describe();
    let menu: Vec<_> = manifest.commands.iter().map(|help| (&*help.name, &*help.description_key)).collect();
    assert_eq!(menu, [("order", "Orders tea"), ("o", "Orders tea"), ("help", "What I can do"), ("note", "cmd-note")]);
    let of = |name: &'static str| {
        manifest.filters.iter().filter(move |filter| filter.commands.iter().any(|own| own == name))
    };
    assert_eq!(of("n").next().unwrap().commands, ["help", "note", "n", "debug"]);
    assert_eq!(of("o").next().unwrap().condition.as_deref(), Some("!channel"));
    let starts: Vec<_> = of("start").map(|filter| filter.condition.as_deref()).collect();
    // The longest beginning comes first.
    assert_eq!(
        starts,
        [Some(r#"args_begin("ref-x")"#), Some(r#"args_begin("ref-")"#), Some(r#"args_begin("")"#), None]
    );
    let conditions: Vec<_> = manifest.filters.iter().filter_map(|filter| filter.condition.as_deref()).collect();
    assert!(conditions.contains(&r#"private & (has("photo") | has("document")) & !has("forward_origin")"#));
    assert!(conditions.contains(&r#"has("sticker") & user(8, 9) & group"#));
}

#[test]
fn states_hand_over_what_they_hold() {
    let mut bot = bot();
    bot.text("/order green");
    assert_eq!(bot.text("few").texts(), ["How many of green?"]);
    bot.text("3");
    assert_eq!(bot.state(), Some("done"));
    assert_eq!(bot.text("/again").texts(), ["3 more"]);
}

#[test]
fn filters_and_checks_decide_who_is_asked() {
    let photo = json!({ "photo": [{ "file_id": "x" }] });
    assert_eq!(bot().message(&photo).texts(), ["picture 1"]);
    let forwarded = json!({ "photo": [], "forward_origin": { "type": "user" } });
    assert_eq!(bot().message(&forwarded).result, Ok(Pass));
    let sticker = |user: i64, kind: &str| {
        let chat = json!({ "id": -1, "type": kind });
        bot().receive("message", json!({ "chat": chat, "from": { "id": user, "first_name": "B" }, "sticker": {} }))
    };
    assert_eq!(sticker(9, "supergroup").texts(), ["staff false"]);
    assert_eq!(sticker(10, "group").result, Ok(Pass));
    assert_eq!(sticker(9, "private").result, Ok(Pass));
    assert_eq!(bot().text("hmmm").texts(), ["hmm"]);
    assert_eq!(bot().text("hmm?").result, Ok(Pass));
    assert_eq!(bot().text("secret").texts(), ["shh"]);
    assert_eq!(bot().text("open").result, Ok(Pass));
}

#[test]
fn administrators_are_known() {
    let close = |kind: &str, more: Value| {
        let mut message =
            json!({ "chat": { "id": -1, "type": kind }, "from": { "id": 8, "first_name": "B" }, "text": "/close" });
        message.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        message
    };
    let member = |status: &str| bot().answer(&json!({ "status": status, "user": { "id": 8, "first_name": "B" } }));
    for status in ["creator", "administrator"] {
        let outcome = member(status).receive("message", close("supergroup", json!({})));
        assert_eq!((outcome.texts(), outcome.calls[0].0.as_str()), (vec!["closed"], "getChatMember"), "{status}");
        assert_eq!(outcome.calls[0].1, json!({ "chat_id": -1, "user_id": 8 }));
    }
    assert_eq!(member("member").receive("message", close("group", json!({}))).result, Ok(Pass));
    let as_chat = |id: i64| close("supergroup", json!({ "sender_chat": { "id": id, "type": "supergroup" } }));
    let anonymous = bot().receive("message", as_chat(-1));
    assert_eq!((anonymous.texts(), anonymous.calls.len()), (vec!["closed"], 1), "it is the group itself that speaks");
    assert_eq!(bot().receive("message", as_chat(-5)).result, Ok(Pass), "of another chat");
    assert_eq!(bot().text("/close").texts(), ["closed"], "at home");
}

#[test]
fn links_reach_who_waits_for_them() {
    let encoded = link::encode("Günter");
    for (text, answer) in [
        ("/start", "start"),
        ("/start ref-42", "by 42"),
        ("/start ref-x7", "special \"7\""),
        ("/start ref-me", "start"),
        (&*format!("/start {encoded}"), "encoded Günter"),
    ] {
        assert_eq!(bot().text(text).texts(), [answer], "{text}");
    }
}

#[test]
fn parts_of_updates_are_taken_by_their_type() {
    let change = json!({
        "chat": { "id": -9, "type": "group", "title": "Tea" }, "from": { "id": 3, "first_name": "C" }, "date": 1,
        "old_chat_member": {}, "new_chat_member": {},
    });
    assert_eq!(bot().receive("chat_member", change.clone()).texts(), ["C in Tea"]);
    assert_eq!(bot().receive("my_chat_member", change).texts(), ["C in Tea"]);
    assert_eq!(bot().press("cups:3").texts(), ["cups:3"]);
}

#[plugin]
mod careful {
    #[middleware]
    fn outer(ctx: &mut Ctx, next: Next) -> Result<Handled, Error> {
        info!("before");
        let handled = next.run(ctx)?;
        info!("after", handled = format!("{handled:?}"));
        Ok(handled)
    }

    #[middleware]
    fn gate(ctx: &mut Ctx, next: Next) -> Result<Handled, Error> {
        if ctx.text() == "closed" {
            ctx.reply("We are closed.");
            return Ok(Done);
        }
        next.run(ctx)
    }

    #[text("^fail")]
    fn fail(ctx: &mut Ctx) -> Result<(), Error> {
        ctx.storage().plugin().set("left", &1)?;
        ctx.reply("This is dropped.");
        Err(if ctx.text() == "fail for good" { Error::permanent("broken") } else { Error::new("busy") })
    }

    #[text("^refuse")]
    fn refuse(ctx: &mut Ctx) {
        ctx.reply("?").keyboard(InlineKeyboard::new().row([Button::callback("x", "y".repeat(1025))]));
    }

    #[text]
    fn other(ctx: &mut Ctx) -> Result<(), Error> {
        ctx.reply(format!("{:?}", ctx.storage().plugin().get::<u8>("left")?));
        Ok(())
    }

    #[on_error]
    fn failed(ctx: &mut Ctx, error: Error) -> Handled {
        if error.retries() {
            return Pass;
        }
        ctx.reply(format!("Sorry: {error}"));
        Done
    }
}

#[test]
fn middleware_stands_around_the_handlers() {
    let mut bot = Bot::<careful::Plugin>::new();
    let other = bot.text("hello");
    assert_eq!(
        (other.texts(), &*other.log),
        (vec!["None"], &["Level::Info before", "Level::Info after handled=Done"].map(str::to_owned)[..])
    );
    let closed = bot.text("closed");
    assert_eq!((closed.texts(), closed.log.len()), (vec!["We are closed."], 2));
    assert_eq!(bot.text("fail").log, ["Level::Info before"], "an error goes through");
}

#[test]
fn an_error_may_be_answered_in_place_of_what_failed() {
    assert!(careful::Plugin::describe().recovers && !shop::Plugin::describe().recovers);
    let mut bot = Bot::<careful::Plugin>::new();
    let tried_again = bot.text("fail");
    assert_eq!((tried_again.result, tried_again.recovered), (Err(Error::new("busy")), None));
    let answered = bot.text("fail for good");
    assert_eq!((answered.texts(), answered.result.clone()), (vec!["Sorry: broken"], Ok(Done)));
    assert_eq!(answered.recovered, Some(Error::permanent("broken")));
    assert_eq!(bot.text("hello").texts(), ["None"], "what the failed run asked for is dropped");
    bot.last_attempt = true;
    assert_eq!(bot.text("fail").texts(), ["Sorry: busy"]);
    assert!(bot.text("refuse").texts()[0].contains("1025 bytes"), "an effect that can't be asked for is an error, too");
}
