//! Methods: what they answer, how they refuse, and what people see of it.

use super::*;

#[tokio::test]
async fn refusals_are_worded_as_telegram_words_them() {
    let (simulator, bot) = start().await;
    let sent = bot.ok("sendMessage", json!({"chat_id": ALICE, "text": "same"})).await["message_id"].clone();
    simulator.user_says(ALICE, ALICE, "mine").unwrap();
    simulator.set_blocked(BOTIR, BOTIR, true).unwrap();
    let button =
        |button: Value| json!({"chat_id": ALICE, "text": "x", "reply_markup": {"inline_keyboard": [[button]]}});
    let to = |more: Value| {
        let mut params = json!({"chat_id": ALICE, "text": "x"});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        params
    };
    let same = "Bad Request: message is not modified: specified new message content and reply markup are exactly the \
                same as a current content and reply markup of the message";
    for (method, params, code, description) in [
        ("sendMessage", json!({"chat_id": 42, "text": "x"}), 400, "Bad Request: chat not found"),
        ("sendMessage", json!({"chat_id": "@nobody", "text": "x"}), 400, "Bad Request: chat not found"),
        ("sendMessage", json!({"text": "x"}), 400, "Bad Request: chat_id is empty"),
        ("sendMessage", json!({"chat_id": ALICE}), 400, "Bad Request: message text is empty"),
        ("sendMessage", to(json!({"text": " \n"})), 400, "Bad Request: message text is empty"),
        ("sendMessage", to(json!({"text": "y".repeat(4097)})), 400, "Bad Request: message is too long"),
        (
            "sendMessage",
            to(json!({"text": "<b>y", "parse_mode": "HTML"})),
            400,
            "Bad Request: can't parse entities: Can't find end tag corresponding to start tag \"b\"",
        ),
        (
            "sendMessage",
            to(json!({"text": "1.", "parse_mode": "MarkdownV2"})),
            400,
            "Bad Request: can't parse entities: Character '.' is reserved and must be escaped with the preceding '\\'",
        ),
        ("sendMessage", to(json!({"parse_mode": "rtf"})), 400, "Bad Request: unsupported parse_mode"),
        (
            "sendMessage",
            to(json!({"reply_markup": "x"})),
            400,
            "Bad Request: can't parse reply keyboard markup JSON object",
        ),
        ("sendMessage", to(json!({"reply_markup": [1]})), 400, "Bad Request: object expected as reply markup"),
        (
            "sendMessage",
            to(json!({"reply_parameters": {"message_id": 99}})),
            400,
            "Bad Request: message to be replied not found",
        ),
        ("sendMessage", to(json!({"message_thread_id": 9})), 400, "Bad Request: message thread not found"),
        (
            "sendMessage",
            button(json!({"text": "b", "callback_data": "é".repeat(33)})),
            400,
            "Bad Request: BUTTON_DATA_INVALID",
        ),
        (
            "sendMessage",
            button(json!({"text": "b"})),
            400,
            "Bad Request: can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard",
        ),
        ("sendMessage", json!({"chat_id": BOTIR, "text": "x"}), 403, "Forbidden: bot was blocked by the user"),
        ("editMessageText", to(json!({"message_id": sent, "text": "same"})), 400, same),
        ("editMessageText", to(json!({"message_id": 77})), 400, "Bad Request: message to edit not found"),
        ("editMessageText", to(json!({"message_id": 2})), 400, "Bad Request: message can't be edited"),
        ("editMessageText", to(json!({})), 400, "Bad Request: message identifier is not specified"),
        ("deleteMessage", json!({"chat_id": ALICE, "message_id": 77}), 400, "Bad Request: message to delete not found"),
        (
            "forwardMessage",
            json!({"chat_id": ALICE, "from_chat_id": GROUP, "message_id": 1}),
            400,
            "Bad Request: message to forward not found",
        ),
        (
            "answerCallbackQuery",
            json!({"callback_query_id": "1"}),
            400,
            "Bad Request: query is too old and response timeout expired or query ID is invalid",
        ),
        (
            "sendChatAction",
            json!({"chat_id": ALICE, "action": "yawn"}),
            400,
            "Bad Request: wrong parameter action in request",
        ),
        (
            "sendPhoto",
            json!({"chat_id": ALICE, "photo": "nonsense"}),
            400,
            "Bad Request: wrong file identifier/HTTP URL specified",
        ),
        (
            "setMyCommands",
            json!({"commands": [{"command": "Up", "description": "x"}]}),
            400,
            "Bad Request: BOT_COMMAND_INVALID",
        ),
        (
            "getChatAdministrators",
            json!({"chat_id": ALICE}),
            400,
            "Bad Request: there are no administrators in the private chat",
        ),
        ("logOut", json!({}), 404, "Not Found: method not found"),
    ] {
        assert_eq!(bot.refused(method, params.clone()).await, (code, description.to_owned()), "{method} {params}");
    }
}

#[tokio::test]
async fn tokens_are_checked() {
    let settings = SimulatorSettings { token: Some("77:right".into()), ..Default::default() };
    let simulator = Simulator::start(settings).await.unwrap();
    let mut bot = Bot::of(&simulator);
    assert_eq!(bot.refused("getMe", json!({})).await, (401, "Unauthorized".to_owned()));
    bot.base = format!("{}/bot77:right", simulator.api_base());
    assert_eq!(bot.ok("getMe", json!({})).await["id"], 77);
    bot.base = format!("{}/botnonsense", simulator.api_base());
    assert_eq!(bot.refused("getMe", json!({})).await, (404, "Not Found".to_owned()));
    let nonsense = SimulatorSettings { token: Some("nonsense".into()), ..Default::default() };
    assert!(matches!(Simulator::start(nonsense).await, Err(Error::Token)));
}

#[tokio::test]
async fn a_sent_message_comes_back_whole() {
    let (simulator, bot) = start().await;
    let asked = simulator
        .say(&Say { chat: GROUP, user: CHIARA, text: "👍 /ask@botyard_bot".into(), ..Say::default() })
        .unwrap();
    let update = &bot.poll(json!({})).await[0]["message"];
    assert_eq!(update["entities"], json!([{"type": "bot_command", "offset": 3, "length": 16}]));
    assert_eq!(update["chat"], json!({"id": GROUP, "title": "Friday football", "type": "group"}));
    let sent = bot.ok("SENDMESSAGE", json!({
        "chat_id": GROUP.to_string(), "text": "<b>Ciao</b> 😀 <a href=\"https://a.example\">x</a>", "parse_mode": "html",
        "reply_parameters": {"message_id": asked.message_id},
        "reply_markup": "{\"inline_keyboard\":[[{\"text\":\"Go\",\"callback_data\":\"go\"}],[]]}",
    })).await;
    assert_eq!(sent["message_id"], 2);
    assert_eq!(
        sent["from"],
        json!({"id": 123_456, "is_bot": true, "first_name": "Botyard", "username": "botyard_bot"})
    );
    assert_eq!(sent["text"], "Ciao 😀 x");
    assert_eq!(
        sent["entities"],
        json!([
            {"type": "bold", "offset": 0, "length": 4}, {"type": "text_link", "offset": 8, "length": 1, "url": "https://a.example"}
        ])
    );
    assert_eq!(sent["reply_to_message"]["from"]["first_name"], "Chiara");
    assert_eq!(sent["reply_markup"], json!({"inline_keyboard": [[{"text": "Go", "callback_data": "go"}]]}));
    let messages = simulator.wait_for_messages(GROUP, 1, SOON).await.unwrap();
    assert_eq!((messages[0].text(), messages[0].buttons()), ("Ciao 😀 x", vec![vec!["Go".to_owned()]]));
}

#[tokio::test]
async fn message_ids_count_per_chat_and_posts_have_no_sender() {
    let (simulator, bot) = start().await;
    for (chat, id) in [(ALICE, 1), (BOTIR, 1), (ALICE, 2)] {
        assert_eq!(bot.ok("sendMessage", json!({"chat_id": chat, "text": "x"})).await["message_id"], id);
    }
    let post = bot.ok("sendMessage", json!({"chat_id": "@NEWS", "text": "x"})).await;
    assert_eq!((&post["from"], &post["sender_chat"]["id"]), (&Value::Null, &json!(CHANNEL)));
    simulator.user_says(CHANNEL, 0, "news").unwrap();
    let updates = bot.poll(json!({})).await;
    assert_eq!(updates[0]["channel_post"]["text"], "news");
    let topic = bot.ok("sendMessage", json!({"chat_id": FORUM, "text": "x", "message_thread_id": 2})).await;
    assert_eq!((&topic["message_thread_id"], &topic["is_topic_message"]), (&json!(2), &json!(true)));
}

#[tokio::test]
async fn a_pressed_button_is_answered_and_its_message_edited() {
    let (simulator, bot) = start().await;
    let keyboard =
        json!({"inline_keyboard": [[{"text": "Red", "callback_data": "c:red"}, {"text": "Site", "url": "a.example"}]]});
    bot.ok("sendMessage", json!({"chat_id": DIEGO, "text": "Colour?", "reply_markup": keyboard})).await;
    assert!(matches!(simulator.user_presses(DIEGO, DIEGO, None, "Blue"), Err(Error::NoSuchButton { .. })));
    assert!(matches!(simulator.user_presses(DIEGO, DIEGO, None, "Site"), Err(Error::NotACallback(_))));
    assert!(matches!(simulator.user_presses(DIEGO, ALICE, None, "Red"), Err(Error::NotAMember { .. })));
    let pressed = simulator.user_presses(DIEGO, DIEGO, None, "Red").unwrap();
    let query = bot.poll(json!({})).await[0]["callback_query"].clone();
    assert_eq!((&query["data"], &query["from"]["id"]), (&json!("c:red"), &json!(5_012_338_965_i64)));
    assert_eq!(query["message"]["reply_markup"], keyboard);
    bot.ok(
        "editMessageText",
        json!({"chat_id": DIEGO, "message_id": query["message"]["message_id"], "text": "Red it is"}),
    )
    .await;
    bot.ok("answerCallbackQuery", json!({"callback_query_id": query["id"], "text": "Done"})).await;
    assert_eq!(simulator.query(&pressed.query_id.unwrap()).unwrap().answer.unwrap()["text"], "Done");
    let message = &simulator.messages(DIEGO)[0];
    assert_eq!((message.text(), message.buttons().len(), message.edit_date.is_some()), ("Red it is", 0, true));
    let again = bot.refused("answerCallbackQuery", json!({"callback_query_id": query["id"]})).await;
    assert_eq!(again.0, 400, "a query is answered once");
}

#[tokio::test]
async fn a_photo_is_uploaded_resent_and_downloaded() {
    let (simulator, bot) = start().await;
    let part =
        reqwest::multipart::Part::bytes(b"\x89PNG...".as_slice()).file_name("cat.png").mime_str("image/png").unwrap();
    let form = reqwest::multipart::Form::new()
        .text("chat_id", ALICE.to_string())
        .text("caption", "my *cat*")
        .text("parse_mode", "MarkdownV2")
        .part("photo", part);
    let response = bot.http.post(format!("{}/sendPhoto", bot.base)).multipart(form).send().await.unwrap();
    let sent: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
    let sent = &sent["result"];
    assert_eq!((&sent["caption"], &sent["caption_entities"][0]["type"]), (&json!("my cat"), &json!("bold")));
    let id = &sent["photo"][0]["file_id"];
    let refused = bot.refused("editMessageText", json!({"chat_id": ALICE, "message_id": 1, "text": "x"})).await;
    assert_eq!(refused.1, "Bad Request: there is no text in the message to edit");
    bot.ok("editMessageCaption", json!({"chat_id": ALICE, "message_id": 1, "caption": "our cat"})).await;
    assert_eq!(bot.ok("sendPhoto", json!({"chat_id": BOTIR, "photo": id})).await["photo"][0]["file_id"], *id);
    let path = bot.ok("getFile", json!({"file_id": id})).await["file_path"].as_str().unwrap().to_owned();
    let url = format!("{}/file/bot123456:TEST/{path}", simulator.api_base());
    assert_eq!(bot.http.get(url).send().await.unwrap().bytes().await.unwrap(), b"\x89PNG...".as_slice());
    assert_eq!(
        simulator.calls_of("sendPhoto")[0].text("photo"),
        Some("attach://photo"),
        "files are recorded by name only"
    );
}

#[tokio::test]
async fn a_large_file_is_taken_in_piece_by_piece_and_an_edit_may_bring_another() {
    let (simulator, bot) = start().await;
    let send = async |method: &str, field: &'static str, size: usize, text: (&'static str, String)| {
        let part = reqwest::multipart::Part::bytes(vec![7; size]).file_name("large.bin");
        let form = reqwest::multipart::Form::new().text("chat_id", ALICE.to_string()).text(text.0, text.1);
        let sent = bot.http.post(format!("{}/{method}", bot.base)).multipart(form.part(field, part)).send().await;
        serde_json::from_str::<Value>(&sent.unwrap().text().await.unwrap()).unwrap()
    };
    let large = send("sendDocument", "document", 30 << 20, ("caption", "x".into())).await;
    let id = &large["result"]["document"]["file_id"];
    assert_eq!(large["result"]["document"]["file_size"], 30 << 20);
    assert_eq!(bot.refused("getFile", json!({ "file_id": id })).await.1, "Bad Request: file is too big");
    let too_large = send("sendDocument", "document", (50 << 20) + (128 << 10), ("caption", "x".into())).await;
    assert_eq!(too_large["error_code"], 413);
    let number = large["result"]["message_id"].to_string();
    let form = reqwest::multipart::Form::new()
        .text("chat_id", ALICE.to_string())
        .text("message_id", number)
        .text("media", r#"{"type":"photo","media":"attach://new","caption":"now"}"#)
        .part("new", reqwest::multipart::Part::bytes(b"abc".as_slice()).file_name("a.png"));
    bot.http.post(format!("{}/editMessageMedia", bot.base)).multipart(form).send().await.unwrap();
    let message = &simulator.messages(ALICE)[0];
    assert_eq!(message.text(), "now");
    assert!(message.content.as_ref().is_some_and(|content| content["photo"].is_array()), "{:?}", message.content);
    let uploads = simulator.uploads();
    assert_eq!(uploads.iter().map(|upload| upload.size).collect::<Vec<_>>(), [30 << 20, 3]);
    assert_eq!(uploads[1].hash, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

#[tokio::test]
async fn an_invoice_is_paid() {
    let (simulator, bot) = start().await;
    bot.ok(
        "sendInvoice",
        json!({
            "chat_id": ALICE, "title": "Pizza", "description": "Hot", "payload": "order-7", "currency": "UZS",
            "prices": [{"label": "Pizza", "amount": 5000}, {"label": "Box", "amount": 100}],
        }),
    )
    .await;
    simulator.user_presses(ALICE, ALICE, None, "Pay").unwrap();
    let query = bot.poll(json!({})).await[0].clone();
    assert_eq!(query["pre_checkout_query"]["total_amount"], 5100);
    let id = &query["pre_checkout_query"]["id"];
    bot.ok("answerPreCheckoutQuery", json!({"pre_checkout_query_id": id, "ok": true})).await;
    let offset = query["update_id"].as_i64().unwrap() + 1;
    let paid = bot.poll(json!({"offset": offset})).await[0]["message"]["successful_payment"].clone();
    assert_eq!((&paid["invoice_payload"], &paid["total_amount"]), (&json!("order-7"), &json!(5100)));
}

#[tokio::test]
async fn blocking_ends_when_the_user_writes_and_a_group_without_the_bot_is_silent() {
    let (simulator, bot) = start().await;
    simulator.set_blocked(ALICE, ALICE, true).unwrap();
    simulator.set_blocked(GROUP, BOTIR, true).unwrap();
    simulator.user_says(ALICE, ALICE, "sorry").unwrap();
    let unheard = simulator.user_says(GROUP, BOTIR, "at last");
    assert!(matches!(unheard, Err(Error::Unwanted)));
    bot.ok("sendMessage", json!({"chat_id": ALICE, "text": "welcome back"})).await;
    let refused = bot.refused("sendMessage", json!({"chat_id": GROUP, "text": "x"})).await;
    assert_eq!(refused, (403, "Forbidden: bot was kicked from the group chat".to_owned()));
    let statuses: Vec<_> = bot
        .poll(json!({}))
        .await
        .iter()
        .map(|update| update["my_chat_member"]["new_chat_member"]["status"].clone())
        .collect();
    assert_eq!(statuses, [json!("kicked"), json!("kicked"), json!("member"), json!(null)]);
}

#[tokio::test]
async fn an_upgraded_group_names_its_new_id() {
    let (simulator, bot) = start().await;
    let new = simulator.upgrade_group(GROUP).unwrap();
    let refused = bot.call("sendMessage", json!({"chat_id": GROUP, "text": "x"})).await;
    assert_eq!(refused["description"], "Bad Request: group chat was upgraded to a supergroup chat");
    assert_eq!(refused["parameters"], json!({"migrate_to_chat_id": new}));
    bot.ok("sendMessage", json!({"chat_id": new, "text": "x"})).await;
}

#[tokio::test]
async fn raw_updates_arrive_as_they_are_and_can_be_answered() {
    let (simulator, bot) = start().await;
    let user = 7_999_999_999_999_i64;
    let id = simulator
        .raw_update(json!({"update_id": 5, "message": {
            "message_id": 9, "date": 1, "from": {"id": user, "first_name": "Zed", "is_bot": false},
            "chat": {"id": user, "type": "private", "first_name": "Zed"}, "new_kind_of_thing": {"a": [1, null]},
        }}))
        .unwrap();
    simulator.raw_update(json!({"message": "not even an object"})).unwrap();
    let updates = bot.poll(json!({})).await;
    assert_eq!(updates[0]["update_id"], id);
    assert_eq!(updates[0]["message"]["new_kind_of_thing"], json!({"a": [1, null]}));
    assert_eq!(updates[1]["message"], "not even an object");
    bot.ok("sendMessage", json!({"chat_id": user, "text": "hello"})).await;
    assert!(matches!(simulator.raw_update(json!([])), Err(Error::NotAnUpdate)));
}

#[tokio::test]
async fn commands_are_kept_by_scope_and_language() {
    let (_simulator, bot) = start().await;
    let commands = json!([{"command": "start", "description": "Boshlash"}]);
    bot.ok("setMyCommands", json!({"commands": commands, "language_code": "uz"})).await;
    assert_eq!(bot.ok("getMyCommands", json!({"language_code": "uz"})).await, commands);
    assert_eq!(bot.ok("getMyCommands", json!({})).await, json!([]));
    bot.ok("deleteMyCommands", json!({"language_code": "uz"})).await;
    assert_eq!(bot.ok("getMyCommands", json!({"language_code": "uz"})).await, json!([]));
}

#[tokio::test]
async fn members_and_chats_are_described() {
    let (_simulator, bot) = start().await;
    let member = |user: i64| json!({"chat_id": GROUP, "user_id": user});
    for (user, status) in [(ALICE, "creator"), (BOTIR, "member"), (NOOR, "left"), (123_456, "administrator")] {
        assert_eq!(bot.ok("getChatMember", member(user)).await["status"], status);
    }
    assert_eq!(bot.refused("getChatMember", member(5)).await.1, "Bad Request: member not found");
    bot.ok("sendMessage", json!({"chat_id": GROUP, "text": "pin me"})).await;
    bot.ok("pinChatMessage", json!({"chat_id": GROUP, "message_id": 1})).await;
    assert_eq!(bot.ok("getChat", json!({"chat_id": GROUP})).await["pinned_message"]["text"], "pin me");
}
