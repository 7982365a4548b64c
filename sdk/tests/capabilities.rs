//! What a bot can do, item by item: each handler does one thing, each test looks at the calls that come of it.

use botyard_sdk::Plugin as _;
use botyard_sdk::format::{Text, escape_html, escape_markdown};
use botyard_sdk::prelude::*;
use botyard_sdk::test::{Bot, Outcome};

#[plugin(methods = [api::SendPoll, api::GetChat, "send*", "answer*"], catalogs = "tests/locales")]
mod all {
    use api::*;

    fn file() -> InputFile {
        InputFile::id("F1")
    }

    #[command("keyboards")]
    fn keyboards(ctx: &mut Ctx) {
        let inline = InlineKeyboard::new()
            .row([Button::callback("A", "a").style(Style::Danger).icon("55"), Button::url("B", "https://b.example")])
            .row([Button::web_app("C", "https://c.example"), Button::copy("D", "code"), Button::pay("E")])
            .row([Button::switch_inline("F", "q"), Button::switch_inline_here("G", "")]);
        ctx.reply("inline").keyboard(inline);
        let reply = ReplyKeyboard::new()
            .row([ReplyButton::text("A").style(Style::Success), ReplyButton::contact("B"), ReplyButton::location("C")])
            .row([ReplyButton::web_app("D", "https://d.example"), ReplyButton::poll("E").icon("55")])
            .one_time()
            .placeholder("choose");
        ctx.reply("reply").keyboard(reply);
        ctx.reply("remove").keyboard(RemoveKeyboard);
        ctx.reply("force").keyboard(AskReply::new().selective().placeholder("name"));
        let typed = InlineKeyboardMarkup::new([[InlineKeyboardButton::new("T").with_callback_data("t")]]);
        ctx.queue(SendDice::new(ctx.here()).reply_markup(typed));
    }

    #[command("oversized")]
    fn oversized(ctx: &mut Ctx) {
        let keyboard = InlineKeyboard::new().row([Button::callback("x", "y".repeat(1025))]);
        ctx.queue(SendDice::new(ctx.here()).reply_markup(keyboard));
    }

    #[command("media")]
    fn media(ctx: &mut Ctx) {
        let here = ctx.here();
        ctx.queue(
            SendPhoto::new(here.clone(), file()).caption("<b>a</b>").parse_mode(ParseMode::Html).has_spoiler(true),
        );
        ctx.queue(SendDocument::new(here.clone(), "https://d.example/a.pdf"));
        ctx.queue(SendVideo::new(here.clone(), file()).duration(5).supports_streaming(true));
        ctx.queue(SendAudio::new(here.clone(), file()).title("t"));
        ctx.queue(SendVoice::new(here.clone(), file()));
        ctx.queue(SendAnimation::new(here.clone(), file()));
        ctx.queue(SendVideoNote::new(here.clone(), InputFile::attached("v")));
        ctx.queue(SendSticker::new(here.clone(), file()));
        ctx.queue(SendLocation::new(here.clone(), 41.311_081, 69.240_562).live_period(60));
        ctx.queue(SendVenue::new(here.clone(), 41.5, 69.0, "Chorsu", "Tashkent"));
        ctx.queue(SendContact::new(here.clone(), "+998", "Ali"));
        ctx.queue(SendDice::new(here.clone()).emoji("🎯"));
        ctx.queue(SendChatAction::new(here.clone(), ChatAction::Typing));
        let album: [InputAlbumMedia; 2] =
            [InputMediaPhoto::new(file()).caption("one").into(), InputMediaVideo::new("https://v.example").into()];
        ctx.queue(SendMediaGroup::new(here.clone(), album));
        ctx.queue(ForwardMessage::new(here.clone(), "@news", 5)).silent();
        ctx.queue(CopyMessages::new(here, 9, [1, 2]));
    }

    #[command("edit")]
    fn edit(ctx: &mut Ctx) {
        ctx.queue(EditMessageText::new().text("new").chat_id(7).message_id(1));
        ctx.queue(EditMessageCaption::new().chat_id(7).message_id(1).caption("c"));
        ctx.queue(EditMessageMedia::new(InputMediaPhoto::new(file())).chat_id(7).message_id(1));
        ctx.queue(EditMessageReplyMarkup::new().inline_message_id("i").reply_markup(InlineKeyboard::new()));
        ctx.queue(DeleteMessage::new(7, 1));
        ctx.queue(DeleteMessages::new(7, [1, 2, 3]));
        ctx.react("👍");
        ctx.react("");
    }

    #[command("polls")]
    fn polls(ctx: &mut Ctx) {
        let here = ctx.here();
        ctx.queue(SendPoll::new(here.clone(), "Tea?", ["Yes", "No"]).is_anonymous(false).allows_multiple_answers(true));
        let quiz = SendPoll::new(here, "2+2", [InputPollOption::new("3"), InputPollOption::new("4")]);
        ctx.queue(quiz.kind(PollType::Quiz).correct_option_ids([1]).explanation("count").open_period(30));
        ctx.queue(StopPoll::new(7, 1));
    }

    #[on("poll_answer")]
    fn vote(ctx: &mut Ctx) -> Handled {
        let Some(answer) = ctx.telegram().poll_answer() else { return Pass };
        ctx.send(answer.user().map_or(0, |user| user.id()), format!("{:?}", answer.option_ids()));
        Done
    }

    #[on("message_reaction")]
    fn reaction(ctx: &mut Ctx) -> Handled {
        let Some(update) = ctx.telegram().message_reaction() else { return Pass };
        let shown = |reaction| match reaction {
            ReactionType::Emoji(emoji) => emoji.emoji(),
            ReactionType::Paid(_) => "paid".to_owned(),
            other => format!("unknown {:?}", other.json()),
        };
        let shown: Vec<String> = update.new_reaction().into_iter().map(shown).collect();
        ctx.reply(shown.join(","));
        Done
    }

    #[on("inline_query")]
    fn inline(ctx: &mut Ctx) {
        let query = ctx.telegram().inline_query().map(|query| query.query()).unwrap_or_default();
        let article = InlineQueryResultArticle::new("1", &query, query.as_str()).description("d");
        let photo = InlineQueryResultPhoto::new("2", "https://p.example", "https://t.example");
        let results: [InlineQueryResult; 3] =
            [article.into(), photo.into(), InlineQueryResultCachedSticker::new("3", "F1").into()];
        ctx.answer_inline(results);
        let more = InlineQueryResultsButton::new("More").start_parameter("more");
        ctx.queue(AnswerInlineQuery::new("q", [InlineQueryResultGame::new("4", "g")]).button(more).is_personal(true));
    }

    #[on("chosen_inline_result")]
    fn chosen(ctx: &mut Ctx) {
        info!(
            "chosen",
            id = ctx.telegram().chosen_inline_result().map(|result| result.result_id()).unwrap_or_default()
        );
    }

    #[callback]
    fn pressed(ctx: &mut Ctx) {
        match ctx.callback_data() {
            "alert" => ctx.alert_callback("Sure?"),
            _ => ctx.answer_callback("ok"),
        }
    }

    #[command("payments")]
    fn payments(ctx: &mut Ctx) -> Result<(), Error> {
        ctx.queue(SendInvoice::new(ctx.here(), "Tea", "Green", "p1", "XTR", [("Tea", 5)]).start_parameter("tea"));
        let link = ctx.ask(CreateInvoiceLink::new("Tea", "Green", "p2", "UZS", [LabeledPrice::new("Tea", 900)]))?;
        let stars = ctx.ask(GetMyStarBalance::new())?.amount();
        ctx.queue(RefundStarPayment::new(7, "charge"));
        ctx.reply(format!("{link} {stars}"));
        Ok(())
    }

    #[on("pre_checkout_query")]
    fn checkout(ctx: &mut Ctx) {
        let amount = ctx.telegram().pre_checkout_query().map_or(0, |query| query.total_amount());
        ctx.answer_pre_checkout(if amount < 100 { Ok(()) } else { Err("too much") });
    }

    #[on("shipping_query")]
    fn shipping(ctx: &mut Ctx) {
        let query = ctx.telegram().shipping_query();
        let country = query.map(|query| query.shipping_address().country_code()).unwrap_or_default();
        let post = || vec![ShippingOption::new("post", "By post", [("Stamp", 300), ("Box", 100)])];
        ctx.answer_shipping(if country == "UZ" { Ok(post()) } else { Err("too far") });
    }

    #[on("chat_join_request")]
    fn join(ctx: &mut Ctx) {
        match ctx.telegram().chat_join_request().and_then(|request| request.bio()) {
            Some(_) => ctx.approve_join(),
            None => ctx.decline_join(),
        };
    }

    #[on("my_chat_member")]
    fn member(ctx: &mut Ctx) -> Handled {
        let Some(change) = ctx.telegram().my_chat_member() else { return Pass };
        let became = match change.new_chat_member() {
            ChatMember::Administrator(admin) => format!("admin {}", admin.can_pin_messages().unwrap_or_default()),
            ChatMember::Banned(banned) => format!("banned until {}", banned.until_date()),
            ChatMember::Unknown(json) => {
                format!("unknown {}", json.get("status").and_then(|s| s.as_text()).unwrap_or_default())
            }
            other => format!("other {}", other.user().id()),
        };
        ctx.send(change.from().id(), became);
        Done
    }

    #[command("admin")]
    fn administration(ctx: &mut Ctx) -> Result<(), Error> {
        ctx.queue(BanChatMember::new(-100, 8).until_date(1_800_000_000).revoke_messages(true));
        ctx.queue(UnbanChatMember::new(-100, 8).only_if_banned(true));
        let quiet = ChatPermissions::new().with_can_send_messages(false).with_can_send_polls(true);
        ctx.queue(RestrictChatMember::new(-100, 8, quiet));
        ctx.queue(PromoteChatMember::new(-100, 8).can_pin_messages(true));
        ctx.queue(PinChatMessage::new(-100, 5));
        ctx.queue(UnpinChatMessage::new(-100));
        ctx.queue(CreateForumTopic::new(-100, "Topic").icon_color(7_322_096));
        ctx.queue(DeleteForumTopic::new(-100, 3));
        ctx.queue(SetMyCommands::new([("start", "Begin"), ("stop", "End")]).scope(BotCommandScopeChat::new(-100)));
        ctx.queue(DeleteMyCommands::new().language_code("uz"));
        ctx.queue(
            SetChatMenuButton::new().menu_button(MenuButtonWebApp::new("Open", WebAppInfo::new("https://a.example"))),
        );
        ctx.queue(LeaveChat::new("@news"));
        let chat = ctx.ask(GetChat::new(-100))?;
        let count = ctx.ask(GetChatMemberCount::new(-100))?;
        let member = ctx.ask(GetChatMember::new(-100, 8))?;
        let file = ctx.ask(GetFile::new("F1"))?;
        let set = ctx.ask(GetStickerSet::new("animals"))?;
        let edited = ctx.ask(EditMessageText::new().text("x").inline_message_id("i"))?;
        let (title, path) = (chat.title().unwrap_or_default(), file.file_path().unwrap_or_default());
        let stickers = set.stickers().len();
        let (new, sent) = (chat.get::<i64>("brand_new"), edited.is_some());
        ctx.reply(format!("{title} {count} {} {path} {stickers} {new} {sent}", member.user().first_name()));
        Ok(())
    }

    #[command("format")]
    fn format(ctx: &mut Ctx) {
        ctx.reply(Text::new().plain("🙂 ").bold("b").plain(" ").link("l", "https://l.example").mention("m", 9));
        ctx.reply(format!("<b>{}</b>", escape_html("a<b"))).html();
        ctx.reply(format!("*{}*", escape_markdown("a.b"))).markdown();
        let caption = Text::new().italic("i");
        ctx.queue(SendPhoto::new(ctx.here(), "F1").caption(caption.as_str()).caption_entities(caption.entities()));
        ctx.queue(SendRichMessage::new(ctx.here(), InputRichMessage::new().html("<h1>x</h1>")));
    }

    #[command("translate")]
    fn translate(ctx: &mut Ctx) {
        ctx.reply(t!(ctx, "hello"; "Hello"));
    }

    #[command("later")]
    fn newer_than_the_sdk(ctx: &mut Ctx) -> Result<(), Error> {
        ctx.queue(SendDice::new(ctx.here()).set("brand_new", json!({ "a": 1 })));
        ctx.enqueue("brandNewMethod", json!({ "chat_id": 7 }))?;
        ctx.queue(SendDice::new(ChatTarget::Topic(-100, 3))).priority(Priority::Bulk).at_most_once();
        Ok(())
    }

    #[content("photo", "video")]
    fn picture(ctx: &mut Ctx) {
        let message = ctx.message().expect("it holds a picture");
        ctx.reply(format!("{:?} {}", message.content(), message.file_id().unwrap_or_default()));
    }

    #[content("successful_payment")]
    fn paid(ctx: &mut Ctx) {
        let paid = ctx.message().and_then(|message| message.successful_payment());
        ctx.reply(paid.map(|paid| paid.telegram_payment_charge_id()).unwrap_or_default());
    }

    #[text("(?i)^hi$")]
    fn hi(ctx: &mut Ctx) {
        ctx.reply("hi");
    }

    #[text]
    fn text(ctx: &mut Ctx) {
        ctx.reply("text");
    }
}

fn bot() -> Bot<all::Plugin> {
    Bot::new()
}

/// Method and parameters of every call; the chat is the bot's own.
#[track_caller]
fn calls(outcome: Outcome, expected: &[(&str, Value)]) {
    assert_eq!(outcome.result, Ok(Handled::Done));
    for (at, (call, (method, params))) in outcome.calls.iter().zip(expected).enumerate() {
        let mut given = call.1.clone();
        if given["chat_id"] == 7 && params.get("chat_id").is_none() {
            given.as_object_mut().map(|given| given.remove("chat_id"));
        }
        assert_eq!((call.0.as_str(), &given), (*method, params), "call {at}");
    }
    assert_eq!(outcome.calls.len(), expected.len());
}

fn message(part: &str, value: Value) -> Value {
    let mut message =
        json!({ "message_id": 4, "date": 1, "chat": { "id": 7, "type": "private" }, "from": { "id": 7 } });
    message[part] = value;
    message
}

#[test]
fn methods_are_declared_by_name_and_by_type() {
    assert_eq!(all::Plugin::describe().methods, ["sendPoll", "getChat", "send*", "answer*"]);
}

#[test]
fn keyboards() {
    let outcome = bot().text("/keyboards");
    let markups: Vec<_> = outcome.calls.iter().map(|(_, params)| params["reply_markup"].clone()).collect();
    let expected = [
        json!({ "inline_keyboard": [
            [
                { "text": "A", "callback_data": "a", "style": "danger", "icon_custom_emoji_id": "55" },
                { "text": "B", "url": "https://b.example" },
            ],
            [
                { "text": "C", "web_app": { "url": "https://c.example" } },
                { "text": "D", "copy_text": { "text": "code" } },
                { "text": "E", "pay": true },
            ],
            [{ "text": "F", "switch_inline_query": "q" }, { "text": "G", "switch_inline_query_current_chat": "" }],
        ] }),
        json!({ "keyboard": [
            [
                { "text": "A", "style": "success" },
                { "text": "B", "request_contact": true },
                { "text": "C", "request_location": true },
            ],
            [
                { "text": "D", "web_app": { "url": "https://d.example" } },
                { "text": "E", "request_poll": {}, "icon_custom_emoji_id": "55" },
            ],
        ], "resize_keyboard": true, "one_time_keyboard": true, "input_field_placeholder": "choose" }),
        json!({ "remove_keyboard": true }),
        json!({ "force_reply": true, "selective": true, "input_field_placeholder": "name" }),
        json!({ "inline_keyboard": [[{ "text": "T", "callback_data": "t" }]] }),
    ];
    assert_eq!(markups, expected);
}

#[test]
fn a_keyboard_that_cannot_be_sent_fails_the_run() {
    let error = bot().text("/oversized").result.unwrap_err();
    assert!(error.to_string().contains("1025 bytes") && !error.retries(), "{error}");
}

#[test]
fn media_albums_places_and_dice() {
    calls(
        bot().text("/media"),
        &[
            ("sendPhoto", json!({ "photo": "F1", "caption": "<b>a</b>", "parse_mode": "HTML", "has_spoiler": true })),
            ("sendDocument", json!({ "document": "https://d.example/a.pdf" })),
            ("sendVideo", json!({ "video": "F1", "duration": 5, "supports_streaming": true })),
            ("sendAudio", json!({ "audio": "F1", "title": "t" })),
            ("sendVoice", json!({ "voice": "F1" })),
            ("sendAnimation", json!({ "animation": "F1" })),
            ("sendVideoNote", json!({ "video_note": "attach://v" })),
            ("sendSticker", json!({ "sticker": "F1" })),
            ("sendLocation", json!({ "latitude": 41.311_081, "longitude": 69.240_562, "live_period": 60 })),
            ("sendVenue", json!({ "latitude": 41.5, "longitude": 69, "title": "Chorsu", "address": "Tashkent" })),
            ("sendContact", json!({ "phone_number": "+998", "first_name": "Ali" })),
            ("sendDice", json!({ "emoji": "🎯" })),
            ("sendChatAction", json!({ "action": "typing" })),
            (
                "sendMediaGroup",
                json!({ "media": [
                { "type": "photo", "media": "F1", "caption": "one" },
                { "type": "video", "media": "https://v.example" },
            ] }),
            ),
            ("forwardMessage", json!({ "from_chat_id": "@news", "message_id": 5, "disable_notification": true })),
            ("copyMessages", json!({ "from_chat_id": 9, "message_ids": [1, 2] })),
        ],
    );
}

#[test]
fn edits_deletions_and_reactions() {
    calls(
        bot().text("/edit"),
        &[
            ("editMessageText", json!({ "text": "new", "message_id": 1 })),
            ("editMessageCaption", json!({ "message_id": 1, "caption": "c" })),
            ("editMessageMedia", json!({ "media": { "type": "photo", "media": "F1" }, "message_id": 1 })),
            ("editMessageReplyMarkup", json!({ "inline_message_id": "i", "reply_markup": { "inline_keyboard": [] } })),
            ("deleteMessage", json!({ "message_id": 1 })),
            ("deleteMessages", json!({ "message_ids": [1, 2, 3] })),
            ("setMessageReaction", json!({ "message_id": 1, "reaction": [{ "type": "emoji", "emoji": "👍" }] })),
            ("setMessageReaction", json!({ "message_id": 1, "reaction": [] })),
        ],
    );
    let reactions = json!([{ "type": "emoji", "emoji": "🔥" }, { "type": "paid" }, { "type": "smell", "note": 3 }]);
    let update = json!({ "chat": { "id": 7 }, "message_id": 1, "user": { "id": 7 }, "new_reaction": reactions });
    let outcome = bot().receive("message_reaction", update);
    assert_eq!(outcome.texts(), ["🔥,paid,unknown {\"note\":3,\"type\":\"smell\"}"]);
}

#[test]
fn polls_and_quizzes() {
    let yes_no = json!([{ "text": "Yes" }, { "text": "No" }]);
    calls(
        bot().text("/polls"),
        &[
            (
                "sendPoll",
                json!({
                    "question": "Tea?", "options": yes_no, "is_anonymous": false, "allows_multiple_answers": true
                }),
            ),
            (
                "sendPoll",
                json!({
                    "question": "2+2", "options": [{ "text": "3" }, { "text": "4" }], "type": "quiz",
                    "correct_option_ids": [1], "explanation": "count", "open_period": 30,
                }),
            ),
            ("stopPoll", json!({ "message_id": 1 })),
        ],
    );
    let answer = json!({ "poll_id": "1", "user": { "id": 8 }, "option_ids": [0, 2] });
    let outcome = bot().receive("poll_answer", answer);
    assert_eq!((outcome.texts(), &outcome.calls[0].1["chat_id"]), (vec!["[0, 2]"], &json!(8)));
}

#[test]
fn inline_mode() {
    let outcome =
        bot().receive("inline_query", json!({ "id": "q9", "from": { "id": 7 }, "query": "tea \"x\"", "offset": "" }));
    calls(
        outcome,
        &[
            (
                "answerInlineQuery",
                json!({ "inline_query_id": "q9", "results": [
                {
                    "type": "article", "id": "1", "title": "tea \"x\"", "description": "d",
                    "input_message_content": { "message_text": "tea \"x\"" },
                },
                { "type": "photo", "id": "2", "photo_url": "https://p.example", "thumbnail_url": "https://t.example" },
                { "type": "sticker", "id": "3", "sticker_file_id": "F1" },
            ] }),
            ),
            (
                "answerInlineQuery",
                json!({
                    "inline_query_id": "q", "results": [{ "type": "game", "id": "4", "game_short_name": "g" }],
                    "button": { "text": "More", "start_parameter": "more" }, "is_personal": true,
                }),
            ),
        ],
    );
    let chosen = bot().receive("chosen_inline_result", json!({ "result_id": "2", "from": { "id": 7 }, "query": "" }));
    assert_eq!(chosen.log, ["Level::Info chosen id=2"]);
}

#[test]
fn callbacks() {
    let alert = json!({ "callback_query_id": "q", "text": "Sure?", "show_alert": true });
    calls(bot().press("alert"), &[("answerCallbackQuery", alert)]);
    calls(bot().press("x"), &[("answerCallbackQuery", json!({ "callback_query_id": "q", "text": "ok" }))]);
}

#[test]
fn payments_stars_and_refunds() {
    let mut bot = bot().answer(&json!("https://t.me/$1")).answer(&json!({ "amount": 12 }));
    let prices = json!([{ "label": "Tea", "amount": 5 }]);
    calls(
        bot.text("/payments"),
        &[
            (
                "sendInvoice",
                json!({
                    "title": "Tea", "description": "Green", "payload": "p1", "currency": "XTR", "prices": prices,
                    "start_parameter": "tea",
                }),
            ),
            (
                "createInvoiceLink",
                json!({
                    "title": "Tea", "description": "Green", "payload": "p2", "currency": "UZS",
                    "prices": [{ "label": "Tea", "amount": 900 }],
                }),
            ),
            ("getMyStarBalance", json!({})),
            ("refundStarPayment", json!({ "user_id": 7, "telegram_payment_charge_id": "charge" })),
            ("sendMessage", json!({ "text": "https://t.me/$1 12" })),
        ],
    );
    let query = |amount| json!({ "id": "c", "from": { "id": 7 }, "currency": "XTR", "total_amount": amount });
    let ok = json!({ "pre_checkout_query_id": "c", "ok": true });
    calls(bot.receive("pre_checkout_query", query(5)), &[("answerPreCheckoutQuery", ok)]);
    let no = json!({ "pre_checkout_query_id": "c", "ok": false, "error_message": "too much" });
    calls(bot.receive("pre_checkout_query", query(500)), &[("answerPreCheckoutQuery", no)]);
    let query = |country| json!({ "id": "s", "from": { "id": 7 }, "shipping_address": { "country_code": country } });
    let prices = json!([{ "label": "Stamp", "amount": 300 }, { "label": "Box", "amount": 100 }]);
    let post = json!([{ "id": "post", "title": "By post", "prices": prices }]);
    let ok = json!({ "shipping_query_id": "s", "ok": true, "shipping_options": post });
    calls(bot.receive("shipping_query", query("UZ")), &[("answerShippingQuery", ok)]);
    let no = json!({ "shipping_query_id": "s", "ok": false, "error_message": "too far" });
    calls(bot.receive("shipping_query", query("")), &[("answerShippingQuery", no)]);
    let paid = message("successful_payment", json!({ "telegram_payment_charge_id": "ch-1" }));
    assert_eq!(bot.receive("message", paid).texts(), ["ch-1"]);
}

#[test]
fn administration_topics_commands_and_answers() {
    let mut bot = bot()
        .answer(&json!({ "id": -100, "title": "Tea", "brand_new": 5 }))
        .answer(&json!(42))
        .answer(&json!({ "status": "sorcerer", "user": { "id": 8, "first_name": "Bob" } }))
        .answer(&json!({ "file_id": "F1", "file_path": "a/b.jpg" }))
        .answer(&json!({ "name": "animals", "stickers": [{}, {}] }));
    let outcome = bot.text("/admin");
    assert_eq!(outcome.texts(), ["x", "Tea 42 Bob a/b.jpg 2 5 false"]);
    let (queued, _) = outcome.calls.split_at(12);
    let expected = [
        ("banChatMember", json!({ "user_id": 8, "until_date": 1_800_000_000, "revoke_messages": true })),
        ("unbanChatMember", json!({ "user_id": 8, "only_if_banned": true })),
        (
            "restrictChatMember",
            json!({ "user_id": 8, "permissions": { "can_send_messages": false, "can_send_polls": true } }),
        ),
        ("promoteChatMember", json!({ "user_id": 8, "can_pin_messages": true })),
        ("pinChatMessage", json!({ "message_id": 5 })),
        ("unpinChatMessage", json!({})),
        ("createForumTopic", json!({ "name": "Topic", "icon_color": 7_322_096 })),
        ("deleteForumTopic", json!({ "message_thread_id": 3 })),
        (
            "setMyCommands",
            json!({
                "commands": [
                    { "command": "start", "description": "Begin" },
                    { "command": "stop", "description": "End" },
                ],
                "scope": { "type": "chat", "chat_id": -100 },
            }),
        ),
        ("deleteMyCommands", json!({ "language_code": "uz" })),
        (
            "setChatMenuButton",
            json!({
                "menu_button": { "type": "web_app", "text": "Open", "web_app": { "url": "https://a.example" } }
            }),
        ),
        ("leaveChat", json!({})),
    ];
    for ((method, params), (name, wanted)) in queued.iter().zip(&expected) {
        let mut given = params.clone();
        given.as_object_mut().unwrap().remove("chat_id");
        assert_eq!((method.as_str(), &given), (*name, wanted));
    }
}

#[test]
fn requests_to_join_and_members() {
    let request = |bio: Value| json!({ "chat": { "id": -100 }, "from": { "id": 8 }, "user_chat_id": 8, "bio": bio });
    let who = json!({ "chat_id": -100, "user_id": 8 });
    calls(bot().receive("chat_join_request", request(json!("x"))), &[("approveChatJoinRequest", who.clone())]);
    calls(bot().receive("chat_join_request", request(Value::Null)), &[("declineChatJoinRequest", who)]);
    for (member, text) in [
        (json!({ "status": "administrator", "user": { "id": 1 }, "can_pin_messages": true }), "admin true"),
        (json!({ "status": "kicked", "until_date": 1_800_000_000 }), "banned until 1800000000"),
        (json!({ "status": "left", "user": { "id": 1 } }), "other 1"),
        (json!({ "status": "sorcerer" }), "unknown sorcerer"),
        (json!(null), "unknown "),
    ] {
        let update = json!({ "chat": { "id": -100 }, "from": { "id": 8 }, "date": 1, "new_chat_member": member });
        assert_eq!(bot().receive("my_chat_member", update).texts(), [text]);
    }
}

#[test]
fn formatting() {
    let outcome = bot().text("/format");
    let params: Vec<_> = outcome.calls.iter().map(|(_, params)| params).collect();
    let entities = json!([
        { "type": "bold", "offset": 3, "length": 1 },
        { "type": "text_link", "offset": 5, "length": 1, "url": "https://l.example" },
        { "type": "text_link", "offset": 6, "length": 1, "url": "tg://user?id=9" },
    ]);
    assert_eq!((&params[0]["text"], &params[0]["entities"]), (&json!("🙂 b lm"), &entities));
    assert_eq!((&params[1]["text"], &params[1]["parse_mode"]), (&json!("<b>a&lt;b</b>"), &json!("HTML")));
    assert_eq!((&params[2]["text"], &params[2]["parse_mode"]), (&json!("*a\\.b*"), &json!("MarkdownV2")));
    assert_eq!(params[3]["caption_entities"], json!([{ "type": "italic", "offset": 0, "length": 1 }]));
    assert_eq!(params[4]["rich_message"], json!({ "html": "<h1>x</h1>" }));
}

#[test]
fn texts_contents_and_translations() {
    let mut bot = bot();
    assert_eq!(bot.text("HI").texts(), ["hi"]);
    assert_eq!(bot.text("hello").texts(), ["text"]);
    assert_eq!(bot.text("/translate").texts(), ["Hello"]);
    let mut photo = message("photo", json!([{ "file_id": "small" }, { "file_id": "large" }]));
    photo["caption"] = json!("hi");
    assert_eq!(bot.receive("message", photo).texts(), ["Some(Photo) large"]);
    let video = message("video", json!({ "file_id": "v" }));
    assert_eq!(bot.receive("message", video).texts(), ["Some(Video) v"]);
    assert!(bot.receive("message", message("sticker", json!({ "file_id": "s" }))).calls.is_empty());
}

#[test]
fn what_is_newer_than_the_sdk_works_by_name() {
    let outcome = bot().text("/later");
    assert_eq!(outcome.calls[0], ("sendDice".to_owned(), json!({ "chat_id": 7, "brand_new": { "a": 1 } })));
    assert_eq!(outcome.calls[1].0, "brandNewMethod");
    assert_eq!(outcome.calls[2].1, json!({ "chat_id": -100, "message_thread_id": 3 }));
}
