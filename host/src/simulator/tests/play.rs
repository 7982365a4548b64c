//! What people do through `/sim/do`, and what the bot hears of it.

use super::*;

/// A person's doings over HTTP.
async fn act(bot: &Bot, simulator: &Simulator, deed: Value) -> Result<Value, String> {
    let url = format!("{}/sim/do", simulator.api_base());
    let request = bot.http.post(url).header("content-type", "application/json").body(deed.to_string());
    let json: Value = serde_json::from_str(&request.send().await.unwrap().text().await.unwrap()).unwrap();
    json["error"].as_str().map_or(Ok(json.clone()), |error| Err(error.to_owned()))
}

/// The updates that wait, each with its kind; they are confirmed.
async fn heard(bot: &Bot) -> Vec<(String, Value)> {
    let updates = bot.poll(json!({})).await;
    if let Some(last) = updates.last() {
        bot.poll(json!({"offset": last["update_id"].as_i64().unwrap() + 1})).await;
    }
    let kind = |update: &Value| update.as_object().unwrap().keys().find(|name| *name != "update_id").unwrap().clone();
    updates.iter().map(|update| (kind(update), update[kind(update)].clone())).collect()
}

fn kinds(heard: &[(String, Value)]) -> Vec<&str> {
    heard.iter().map(|(kind, _)| kind.as_str()).collect()
}

async fn want_all(bot: &Bot) {
    let kinds = crate::domain::UPDATE_KINDS;
    bot.poll(json!({"allowed_updates": kinds})).await;
}

#[tokio::test]
async fn a_poll_counts_votes_and_tells_who_voted_unless_it_is_anonymous() {
    let (simulator, bot) = start().await;
    let poll =
        json!({"chat_id": GROUP, "question": "Lunch?", "options": ["Plov", {"text": "Manti"}], "is_anonymous": false});
    let sent = bot.ok("sendPoll", poll).await;
    let vote = async |user: i64, options: Value| {
        let deed =
            json!({"what": "vote", "chat": GROUP, "user": user, "message_id": sent["message_id"], "options": options});
        act(&bot, &simulator, deed).await
    };
    vote(ALICE, json!([1])).await.unwrap();
    vote(BOTIR, json!([1])).await.unwrap();
    assert_eq!(vote(ALICE, json!([0, 1])).await.unwrap_err(), "the poll takes one answer");
    assert_eq!(vote(ALICE, json!([2])).await.unwrap_err(), "the poll has no such option");
    let told = heard(&bot).await;
    assert_eq!(kinds(&told), ["poll", "poll_answer", "poll", "poll_answer"]);
    assert_eq!(told[2].1["options"][1]["voter_count"], 2);
    assert_eq!((&told[3].1["user"]["id"], &told[3].1["option_ids"]), (&json!(BOTIR), &json!([1])));
    vote(BOTIR, json!([])).await.unwrap();
    assert_eq!(heard(&bot).await[0].1["total_voter_count"], 1);
    let stopped = bot.ok("stopPoll", json!({"chat_id": GROUP, "message_id": sent["message_id"]})).await;
    assert_eq!((&stopped["is_closed"], &stopped["total_voter_count"]), (&json!(true), &json!(1)));
    let again = bot.refused("stopPoll", json!({"chat_id": GROUP, "message_id": sent["message_id"]})).await;
    assert_eq!(again.1, "Bad Request: poll has already been closed");
    assert_eq!(vote(CHIARA, json!([0])).await.unwrap_err(), "the poll is closed");
}

#[tokio::test]
async fn a_quiz_has_a_right_answer_and_no_second_try_and_polls_end_by_the_clock() {
    let (simulator, bot) = start().await;
    let quiz = |right: i64| json!({"chat_id": ALICE, "question": "2+2", "options": ["3", "4"], "type": "quiz", "correct_option_id": right, "open_period": 60});
    let refused = bot.refused("sendPoll", quiz(2)).await.1;
    assert_eq!(refused, "Bad Request: wrong correct option ID specified");
    let sent = bot.ok("sendPoll", quiz(1)).await;
    assert_eq!(sent["poll"]["correct_option_ids"], json!([1]));
    let vote = json!({"what": "vote", "chat": ALICE, "user": ALICE, "message_id": sent["message_id"], "options": [0]});
    act(&bot, &simulator, vote.clone()).await.unwrap();
    assert_eq!(act(&bot, &simulator, vote).await.unwrap_err(), "a vote in this poll is final");
    assert_eq!(kinds(&heard(&bot).await), ["poll"], "it is anonymous");
    simulator.advance_clock(Duration::from_secs(61));
    let ended = heard(&bot).await;
    assert_eq!((kinds(&ended), &ended[0].1["is_closed"]), (vec!["poll"], &json!(true)));
}

#[tokio::test]
async fn a_flexible_invoice_is_shipped_paid_and_not_refunded_but_stars_are() {
    let (simulator, bot) = start().await;
    let invoice = json!({
        "chat_id": ALICE, "title": "Tea", "description": "Green", "payload": "tea", "currency": "EUR",
        "prices": [{"label": "Tea", "amount": 400}], "is_flexible": true, "need_name": true,
    });
    let sent = bot.ok("sendInvoice", invoice).await;
    assert!(
        sent["invoice"].get("prices").is_none() && sent.get("order").is_none(),
        "the bot sees what Telegram shows it"
    );
    let pay = |order: Value| json!({"what": "pay", "chat": ALICE, "user": ALICE, "message_id": sent["message_id"], "order": order});
    let begun = act(&bot, &simulator, pay(json!({}))).await.unwrap();
    let asked = heard(&bot).await;
    assert_eq!(kinds(&asked), ["shipping_query"]);
    assert_eq!((&asked[0].1["id"], &asked[0].1["shipping_address"]["city"]), (&begun["query_id"], &json!("London")));
    let options = json!([{"id": "post", "title": "Post", "prices": [{"label": "Post", "amount": 50}]}]);
    let id = &begun["query_id"];
    let none = bot.refused("answerShippingQuery", json!({"shipping_query_id": id, "ok": false})).await.1;
    assert_eq!(none, "Bad Request: error message must be non-empty");
    bot.ok("answerShippingQuery", json!({"shipping_query_id": id, "ok": true, "shipping_options": options})).await;
    let wrong = act(&bot, &simulator, pay(json!({"shipping": [id, "camel"]}))).await.unwrap_err();
    assert_eq!(wrong, "the bot has not offered that way of shipping");
    act(&bot, &simulator, pay(json!({"shipping": [id, "post"]}))).await.unwrap();
    let (_, query) = heard(&bot).await.remove(0);
    assert_eq!((&query["total_amount"], &query["shipping_option_id"]), (&json!(450), &json!("post")));
    bot.ok("answerPreCheckoutQuery", json!({"pre_checkout_query_id": query["id"], "ok": true})).await;
    let (_, paid) = heard(&bot).await.remove(0);
    let paid = &paid["successful_payment"];
    assert_eq!((&paid["total_amount"], &paid["order_info"]["name"]), (&json!(450), &json!("Alice")));
    let refund = |payment: &Value| json!({"user_id": ALICE, "telegram_payment_charge_id": payment["telegram_payment_charge_id"]});
    assert_eq!(bot.refused("refundStarPayment", refund(paid)).await.1, "Bad Request: CHARGE_NOT_FOUND");

    let stars = json!({
        "chat_id": ALICE, "title": "Month", "description": "All", "payload": "m", "currency": "XTR",
        "prices": [{"label": "Month", "amount": 50}],
    });
    bot.ok("sendInvoice", stars).await;
    simulator.user_presses(ALICE, ALICE, None, "Pay").unwrap();
    let (_, query) = heard(&bot).await.remove(0);
    bot.ok("answerPreCheckoutQuery", json!({"pre_checkout_query_id": query["id"], "ok": true})).await;
    let (_, paid) = heard(&bot).await.remove(0);
    assert_eq!(bot.ok("getMyStarBalance", json!({})).await["amount"], 50);
    bot.ok("refundStarPayment", refund(&paid["successful_payment"])).await;
    assert_eq!(heard(&bot).await[0].1["refunded_payment"]["total_amount"], 50);
    let again = bot.refused("refundStarPayment", refund(&paid["successful_payment"])).await;
    assert_eq!(again.1, "Bad Request: CHARGE_ALREADY_REFUNDED");
    assert_eq!(bot.ok("getMyStarBalance", json!({})).await["amount"], 0);
}

#[tokio::test]
async fn who_comes_and_goes_is_told_in_notes_and_to_those_who_asked() {
    let (simulator, bot) = start().await;
    let member = |of: i64, standing: &str| json!({"what": "member", "chat": GROUP, "user": ALICE, "of": of, "standing": standing});
    act(&bot, &simulator, member(DIEGO, "member")).await.unwrap();
    let told = heard(&bot).await;
    assert_eq!(kinds(&told), ["message"], "`chat_member` has to be asked for");
    assert_eq!(told[0].1["new_chat_members"][0]["id"], DIEGO);
    want_all(&bot).await;
    act(&bot, &simulator, member(DIEGO, "administrator")).await.unwrap();
    let told = heard(&bot).await;
    let statuses =
        |update: &Value| (update["old_chat_member"]["status"].clone(), update["new_chat_member"]["status"].clone());
    assert_eq!((kinds(&told), statuses(&told[0].1)), (vec!["chat_member"], (json!("member"), json!("administrator"))));
    let ban = |user: i64| json!({"chat_id": GROUP, "user_id": user});
    assert_eq!(bot.refused("banChatMember", ban(ALICE)).await.1, "Bad Request: can't remove chat owner");
    assert_eq!(bot.refused("banChatMember", ban(DIEGO)).await.1, "Bad Request: user is an administrator of the chat");
    assert_eq!(bot.refused("banChatMember", ban(999)).await.1, "Bad Request: PARTICIPANT_ID_INVALID");
    bot.ok("banChatMember", ban(BOTIR)).await;
    assert_eq!(bot.ok("getChatMember", ban(BOTIR)).await["status"], "kicked");
    let told = heard(&bot).await;
    assert_eq!((kinds(&told), told[0].1["from"]["is_bot"].clone()), (vec!["chat_member"], json!(true)));
    let silent = simulator.user_says(GROUP, BOTIR, "hello?");
    assert!(matches!(silent, Err(Error::NotAMember { .. })));
    bot.ok("unbanChatMember", ban(BOTIR)).await;
    assert_eq!(bot.ok("getChatMember", ban(BOTIR)).await["status"], "left");
    let owner = act(
        &bot,
        &simulator,
        json!({"what": "member", "chat": GROUP, "user": DIEGO, "of": ALICE, "standing": "kicked"}),
    )
    .await;
    assert_eq!(owner.unwrap_err(), "the owner of a chat can only leave it");
}

#[tokio::test]
async fn who_is_restricted_is_silent_until_it_ends() {
    let (simulator, bot) = start().await;
    want_all(&bot).await;
    let restrict = |chat: i64, user: i64, may: bool, seconds: i64| {
        let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
        let until = i64::try_from(now).unwrap() + seconds;
        json!({"chat_id": chat, "user_id": user, "permissions": {"can_send_messages": may}, "until_date": until})
    };
    let method = "restrictChatMember";
    for (chat, user, words) in [
        (GROUP, BOTIR, "method is available only for supergroups"),
        (FORUM, BOTIR, "can't remove chat owner"),
        (FORUM, 999, "PARTICIPANT_ID_INVALID"),
    ] {
        let refused = bot.refused(method, restrict(chat, user, false, 60)).await.1;
        assert_eq!(refused, format!("Bad Request: {words}"));
    }
    let refused = bot.refused(method, json!({"chat_id": FORUM, "user_id": NOOR})).await.1;
    assert_eq!(refused, "Bad Request: can't parse permissions: object expected");
    bot.ok(method, restrict(FORUM, NOOR, false, 60)).await;
    let told = heard(&bot).await;
    assert_eq!((kinds(&told), &told[0].1["new_chat_member"]["status"]), (vec!["chat_member"], &json!("restricted")));
    assert!(matches!(simulator.user_says(FORUM, NOOR, "hm"), Err(Error::Cannot(_))));
    let who = json!({"chat_id": FORUM, "user_id": NOOR});
    assert_eq!(bot.ok("getChatMember", who.clone()).await["can_send_messages"], false);
    bot.ok(method, restrict(FORUM, NOOR, true, 10)).await;
    let member = bot.ok("getChatMember", who).await;
    assert_eq!((&member["until_date"], &member["can_send_polls"]), (&json!(0), &json!(false)), "too short is for ever");
    simulator.user_says(FORUM, NOOR, "thanks").unwrap();
}

#[tokio::test]
async fn who_asks_to_join_is_let_in_by_the_bot() {
    let (simulator, bot) = start().await;
    let made = act(
        &bot,
        &simulator,
        json!({"what": "chat", "type": "supergroup", "title": "Club", "members": [ALICE], "by": ALICE}),
    );
    let club = made.await.unwrap()["id"].as_i64().unwrap();
    let told = heard(&bot).await;
    assert_eq!(
        (kinds(&told), &told[0].1["new_chat_member"]["status"]),
        (vec!["my_chat_member"], &json!("administrator"))
    );
    let ask = json!({"what": "ask_to_join", "chat": club, "user": NOOR, "bio": "I play chess"});
    act(&bot, &simulator, ask.clone()).await.unwrap();
    assert_eq!(act(&bot, &simulator, ask).await.unwrap_err(), "they have asked already");
    let told = heard(&bot).await;
    assert_eq!(
        (kinds(&told), &told[0].1["bio"], &told[0].1["user_chat_id"]),
        (vec!["chat_join_request"], &json!("I play chess"), &json!(NOOR))
    );
    let who = |user: i64| json!({"chat_id": club, "user_id": user});
    assert_eq!(bot.refused("approveChatJoinRequest", who(BOTIR)).await.1, "Bad Request: HIDE_REQUESTER_MISSING");
    bot.ok("approveChatJoinRequest", who(NOOR)).await;
    assert_eq!(bot.refused("declineChatJoinRequest", who(NOOR)).await.1, "Bad Request: USER_ALREADY_PARTICIPANT");
    assert_eq!(bot.ok("getChatMember", who(NOOR)).await["status"], "member");
}

#[tokio::test]
async fn an_inline_result_becomes_a_message_that_the_bot_can_change() {
    let (simulator, bot) = start().await;
    let asked = simulator.user_asks_inline(ALICE, "tea").unwrap();
    let id = asked.query_id.unwrap();
    let article = |id: &str| {
        json!({"type": "article", "id": id, "title": "Tea", "input_message_content": {"message_text": "<b>Tea</b>", "parse_mode": "HTML"},
            "reply_markup": {"inline_keyboard": [[{"text": "More", "callback_data": "more"}]]}})
    };
    let answer = |results: Value| json!({"inline_query_id": id, "results": results});
    for (results, words) in [
        (json!([article("1"), article("1")]), "RESULT_ID_DUPLICATE"),
        (json!([article("")]), "RESULT_ID_INVALID"),
        (
            json!([{"type": "article", "id": "1", "title": "x", "input_message_content": {"message_text": "<b>", "parse_mode": "HTML"}}]),
            "can't parse entities: Can't find end tag corresponding to start tag \"b\"",
        ),
    ] {
        let refused = bot.refused("answerInlineQuery", answer(results)).await.1;
        assert_eq!(refused, format!("Bad Request: {words}"));
    }
    bot.ok("answerInlineQuery", answer(json!([article("1")]))).await;
    heard(&bot).await;
    let choose = |result: &str| json!({"what": "choose", "query_id": id, "result": result, "chat": GROUP});
    assert_eq!(act(&bot, &simulator, choose("2")).await.unwrap_err(), "the bot has not offered that result");
    act(&bot, &simulator, choose("1")).await.unwrap();
    let told = heard(&bot).await;
    assert_eq!(kinds(&told), ["message", "chosen_inline_result"]);
    assert_eq!((&told[0].1["text"], &told[0].1["via_bot"]["is_bot"]), (&json!("Tea"), &json!(true)));
    assert_eq!((&told[1].1["query"], &told[1].1["result_id"]), (&json!("tea"), &json!("1")));
    let inline = told[1].1["inline_message_id"].clone();
    simulator.user_presses(GROUP, BOTIR, None, "more").unwrap();
    let (_, pressed) = heard(&bot).await.remove(0);
    assert!(pressed["inline_message_id"] == inline && pressed.get("message").is_none(), "{pressed}");
    let edited = bot.ok("editMessageText", json!({"inline_message_id": inline, "text": "No tea"})).await;
    assert_eq!(edited, json!(true));
    assert_eq!(simulator.messages(GROUP)[0].text(), "No tea");
}

#[tokio::test]
async fn files_that_people_send_can_be_fetched_and_several_are_an_album() {
    let (simulator, bot) = start().await;
    let upload = async |name: &str, kind: &str, bytes: &'static [u8]| {
        let url = format!("{}/sim/upload?kind={kind}&name={name}", simulator.api_base());
        let sent = bot.http.post(url).header("content-type", "image/png").body(bytes).send().await.unwrap();
        let json: Value = serde_json::from_str(&sent.text().await.unwrap()).unwrap();
        json["file_id"].clone()
    };
    let ids = [upload("a.png", "photo", b"\x89PNG one").await, upload("b.png", "photo", b"\x89PNG two").await];
    let parcel =
        json!({"what": "send", "chat": ALICE, "user": ALICE, "kind": "photo", "files": ids, "caption": "look /here"});
    act(&bot, &simulator, parcel).await.unwrap();
    let told = heard(&bot).await;
    assert_eq!(kinds(&told), ["message", "message"]);
    assert_eq!(told[0].1["media_group_id"], told[1].1["media_group_id"]);
    assert_eq!((&told[0].1["caption"], told[1].1.get("caption")), (&json!("look /here"), None));
    let file = bot.ok("getFile", json!({"file_id": told[1].1["photo"][0]["file_id"]})).await;
    let url = format!("{}/file/bot123456:TEST/{}", simulator.api_base(), file["file_path"].as_str().unwrap());
    assert_eq!(bot.http.get(url).send().await.unwrap().bytes().await.unwrap(), &b"\x89PNG two"[..]);
    for (kind, fields, content) in [
        ("contact", json!({}), json!({"phone_number": "+99900001001", "first_name": "Alice", "user_id": ALICE})),
        ("location", json!({"latitude": 41.5, "longitude": -3.0}), json!({"latitude": 41.5, "longitude": -3.0})),
    ] {
        let parcel = json!({"what": "send", "chat": ALICE, "user": ALICE, "kind": kind, "fields": fields});
        act(&bot, &simulator, parcel).await.unwrap();
        assert_eq!(heard(&bot).await[0].1[kind], content);
    }
    let nowhere = json!({"what": "send", "chat": ALICE, "user": ALICE, "kind": "location", "fields": {"latitude": 91, "longitude": 0}});
    assert_eq!(act(&bot, &simulator, nowhere).await.unwrap_err(), "there is no such place on Earth");
}

#[tokio::test]
async fn a_mini_app_of_a_keyboard_sends_its_data() {
    let (simulator, bot) = start().await;
    let keyboard = json!({"keyboard": [["Plain", {"text": "Order", "web_app": {"url": "https://app.example"}}]]});
    bot.ok("sendMessage", json!({"chat_id": ALICE, "text": "Here", "reply_markup": keyboard})).await;
    let data = |chat: i64, button: &str, data: &str| {
        let fields = json!({"data": data, "button_text": button});
        json!({"what": "send", "chat": chat, "user": ALICE, "kind": "web_app_data", "fields": fields})
    };
    act(&bot, &simulator, data(ALICE, "Order", "{\"cups\":2}")).await.unwrap();
    let told = heard(&bot).await;
    assert_eq!(told[0].1["web_app_data"], json!({"data": "{\"cups\":2}", "button_text": "Order"}));
    assert_eq!(told[0].1.get("text"), None);
    for wrong in [data(ALICE, "Plain", "x"), data(ALICE, "Other", "x"), data(GROUP, "Order", "x")] {
        let refused = act(&bot, &simulator, wrong).await.unwrap_err();
        assert_eq!(refused, "no keyboard in this chat has such a button that opens a mini app");
    }
    for wrong in [String::new(), "é".repeat(2049)] {
        let refused = act(&bot, &simulator, data(ALICE, "Order", &wrong)).await.unwrap_err();
        assert_eq!(refused, "what a mini app sends has 1 to 4096 bytes");
    }
}

#[tokio::test]
async fn pictures_are_shown_and_nothing_that_could_be_a_page_is() {
    let (simulator, bot) = start().await;
    for (bytes, content_type, shown) in [
        (&b"\x89PNG\r\n"[..], "application/octet-stream", "image/png"),
        (b"<script>alert(1)</script>", "text/html", "application/octet-stream"),
        (b"<svg onload='alert(1)'/>", "image/svg+xml", "application/octet-stream"),
        (b"RIFF....WAVEfmt ", "audio/wav", "audio/wav"),
    ] {
        let url = format!("{}/sim/upload?kind=document&name=x", simulator.api_base());
        let sent = bot.http.post(url).header("content-type", content_type).body(bytes).send().await.unwrap();
        let json: Value = serde_json::from_str(&sent.text().await.unwrap()).unwrap();
        let url = format!("{}/sim/file/{}", simulator.api_base(), json["file_id"].as_str().unwrap());
        let answer = bot.http.get(url).send().await.unwrap();
        let header = |name: &str| answer.headers()[name].to_str().unwrap().to_owned();
        assert_eq!(header("content-type"), shown, "{content_type}");
        assert_eq!(
            (header("x-content-type-options"), header("content-security-policy").contains("sandbox")),
            ("nosniff".to_owned(), true)
        );
    }
}

#[tokio::test]
async fn reactions_edits_deletions_pins_and_forwards() {
    let (simulator, bot) = start().await;
    want_all(&bot).await;
    simulator.user_says(GROUP, BOTIR, "first").unwrap();
    bot.ok("sendMessage", json!({"chat_id": GROUP, "text": "second"})).await;
    heard(&bot).await;
    let deed = |what: &str, user: i64, id: i64, more: Value| {
        let mut deed = json!({"what": what, "chat": GROUP, "user": user, "message_id": id});
        deed.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        deed
    };
    act(&bot, &simulator, deed("react", ALICE, 2, json!({"emoji": ["👍"]}))).await.unwrap();
    act(&bot, &simulator, deed("react", ALICE, 2, json!({"emoji": ["🔥"]}))).await.unwrap();
    let told = heard(&bot).await;
    assert_eq!(kinds(&told), ["message_reaction", "message_reaction"]);
    assert_eq!(
        (&told[1].1["old_reaction"][0]["emoji"], &told[1].1["new_reaction"][0]["emoji"]),
        (&json!("👍"), &json!("🔥"))
    );
    let unknown = act(&bot, &simulator, deed("react", ALICE, 2, json!({"emoji": ["🪿"]}))).await;
    assert_eq!(unknown.unwrap_err(), "Telegram has no such reaction");
    let react = |emoji: Value| json!({"chat_id": GROUP, "message_id": 1, "reaction": emoji});
    let kind = |emoji: &str| json!({"type": "emoji", "emoji": emoji});
    assert_eq!(bot.refused("setMessageReaction", react(json!([kind("🪿")]))).await.1, "Bad Request: REACTION_INVALID");
    assert_eq!(
        bot.refused("setMessageReaction", react(json!([kind("👍"), kind("🔥")]))).await.1,
        "Bad Request: REACTIONS_TOO_MANY"
    );

    let foreign = simulator.edit_message(GROUP, ALICE, 1, "not mine").unwrap_err().to_string();
    assert_eq!(foreign, "people edit only what they have written themselves");
    assert_eq!(
        act(&bot, &simulator, deed("delete", BOTIR, 2, json!({}))).await.unwrap_err(),
        "only administrators delete what others have written"
    );
    assert_eq!(
        act(&bot, &simulator, deed("pin", BOTIR, 1, json!({"pinned": true}))).await.unwrap_err(),
        "only administrators pin messages"
    );
    act(&bot, &simulator, deed("pin", ALICE, 1, json!({"pinned": true}))).await.unwrap();
    assert_eq!(heard(&bot).await[0].1["pinned_message"]["text"], "first");
    let forward = json!({"what": "forward", "chat": BOTIR, "user": BOTIR, "from_chat": GROUP, "message_id": 1});
    act(&bot, &simulator, forward).await.unwrap();
    let (_, forwarded) = heard(&bot).await.remove(0);
    assert_eq!(
        (&forwarded["text"], &forwarded["forward_origin"]["sender_user"]["id"]),
        (&json!("first"), &json!(BOTIR))
    );
    act(&bot, &simulator, deed("delete", BOTIR, 1, json!({}))).await.unwrap();
    assert!(heard(&bot).await.is_empty(), "no bot hears of deletions");
    assert!(simulator.messages(GROUP).iter().all(|message| message.id != 1));
    let many = json!({"chat_id": ALICE, "from_chat_id": GROUP, "message_ids": [1, 2]});
    assert_eq!(bot.ok("copyMessages", many).await.as_array().unwrap().len(), 1, "those that are gone are left out");
}

#[tokio::test]
async fn topics_and_titles_change_from_both_sides() {
    let (simulator, bot) = start().await;
    let topic = bot.ok("createForumTopic", json!({"chat_id": FORUM, "name": "Bikes"})).await;
    let id = topic["message_thread_id"].as_i64().unwrap();
    let at = |id: i64| json!({"chat_id": FORUM, "message_thread_id": id});
    bot.ok("closeForumTopic", at(id)).await;
    assert_eq!(bot.refused("closeForumTopic", at(id)).await.1, "Bad Request: TOPIC_NOT_MODIFIED");
    assert_eq!(bot.refused("closeForumTopic", at(99)).await.1, "Bad Request: message thread not found");
    assert_eq!(
        bot.refused("createForumTopic", json!({"chat_id": GROUP, "name": "x"})).await.1,
        "Bad Request: the chat is not a forum"
    );
    let closed = simulator.say(&Say { chat: FORUM, user: ALICE, text: "x".into(), thread: Some(id), ..Say::default() });
    assert!(matches!(closed, Err(Error::Cannot(_))), "{closed:?}");
    simulator.say(&Say { chat: FORUM, user: BOTIR, text: "x".into(), thread: Some(id), ..Say::default() }).unwrap();
    let change = json!({"what": "change_topic", "chat": FORUM, "user": BOTIR, "thread": id, "change": "reopen"});
    act(&bot, &simulator, change).await.unwrap();
    let told = heard(&bot).await;
    assert_eq!(told.last().unwrap().1["forum_topic_reopened"], json!({}));
    act(&bot, &simulator, json!({"what": "rename", "chat": GROUP, "user": ALICE, "title": "Football"})).await.unwrap();
    assert_eq!(heard(&bot).await[0].1["new_chat_title"], "Football");
    assert_eq!(bot.ok("getChat", json!({"chat_id": GROUP})).await["title"], "Football");
    let person = json!({"what": "person", "first_name": "Gulnora", "language_code": "uz"});
    let person = act(&bot, &simulator, person).await.unwrap()["id"].as_i64().unwrap();
    simulator.user_says(person, person, "hi").unwrap();
    assert_eq!(heard(&bot).await[0].1["from"]["first_name"], "Gulnora");
}

#[tokio::test]
async fn the_page_sees_updates_calls_and_answers_and_the_clock_goes_to_the_next_timer() {
    struct Told;
    impl Insight for Told {
        fn runs(&self, after: u64) -> Vec<Value> {
            vec![json!({"number": after + 1})]
        }
        fn next_timer(&self) -> Option<u64> {
            Some(4_000_000_000_000)
        }
    }
    let (simulator, bot) = start().await;
    let get = async |path: &str| -> Value {
        let answer = bot.http.get(format!("{}{path}", simulator.api_base())).send().await.unwrap();
        serde_json::from_str(&answer.text().await.unwrap()).unwrap()
    };
    let id = simulator.user_says(ALICE, ALICE, "hi").unwrap();
    bot.ok("sendMessage", json!({"chat_id": ALICE, "text": "hello"})).await;
    bot.refused("sendMessage", json!({"chat_id": ALICE, "text": ""})).await;
    let seen = get("/sim/activity").await;
    assert_eq!((&seen["updates"][0]["id"], &seen["runs"]), (&json!(id), &Value::Null));
    assert!(seen["updates"][0]["json"].as_str().unwrap().contains("\"text\":\"hi\""));
    assert!(seen["calls"][0]["answer"].as_str().unwrap().starts_with("{\"message_id\":2"), "{seen}");
    assert_eq!(seen["calls"][1]["refused"], "Bad Request: message text is empty");
    assert_eq!(
        get(&format!("/sim/activity?updates={id}&calls=2")).await,
        json!({"updates": [], "runs": null, "calls": []})
    );
    simulator.show_inside(Arc::new(Told));
    assert_eq!(get("/sim/activity?runs=7").await["runs"], json!([{"number": 8}]));
    let clock = bot.http.post(format!("{}/sim/clock", simulator.api_base())).header("content-type", "application/json");
    let moved = clock.body(json!({"to_next_timer": true}).to_string()).send().await.unwrap().text().await.unwrap();
    let moved: Value = serde_json::from_str(&moved).unwrap();
    assert!((4_000_000_000..4_000_000_002).contains(&moved["now"].as_i64().unwrap()), "{moved}");
    assert_eq!(moved["moves_host"], false);
}

#[tokio::test]
async fn the_menu_button_is_kept_for_a_chat_or_for_all() {
    let (_simulator, bot) = start().await;
    let app = json!({"type": "web_app", "text": "Shop", "web_app": {"url": "https://shop.example"}});
    bot.ok("setChatMenuButton", json!({"menu_button": app})).await;
    assert_eq!(bot.ok("getChatMenuButton", json!({"chat_id": ALICE})).await, app);
    bot.ok("setChatMenuButton", json!({"chat_id": ALICE, "menu_button": {"type": "commands"}})).await;
    assert_eq!(bot.ok("getChatMenuButton", json!({"chat_id": ALICE})).await, json!({"type": "commands"}));
    assert_eq!(bot.ok("getChatMenuButton", json!({})).await, app);
    assert_eq!(bot.refused("setChatMenuButton", json!({"menu_button": {"type": "x"}})).await.0, 400);
}
