use super::*;

/// The facts of the Bot API, of all methods: those that it has, and their parameters with their types.
fn methods() -> Vec<(String, Vec<(String, String)>)> {
    let mut methods = Vec::new();
    let spec: Value = serde_json::from_str(include_str!("../../../../../sdk/bot-api.json")).unwrap();
    for area in spec["areas"].as_object().unwrap().values() {
        for (name, method) in area["methods"].as_object().into_iter().flatten() {
            let params = method["params"].as_array().unwrap().iter().map(|param| {
                let (name, kind) = param.as_str().unwrap().split_once(": ").unwrap();
                (name.to_owned(), kind.trim_end_matches('?').to_owned())
            });
            methods.push((name.clone(), params.collect()));
        }
    }
    assert!(methods.len() > 180);
    methods
}

fn show(method: &str, params: &str) -> String {
    let show = |chat: &Named| match chat {
        Named::Number(id) => id.to_string(),
        Named::Name(name) => format!("@{name}"),
        Named::Odd(_) => "?".to_owned(),
        Named::Account => "account".to_owned(),
    };
    match named_in(method, params) {
        Ok(chats) => chats.iter().map(show).collect::<Vec<_>>().join(" "),
        Err(Unfit::OnDisk) => "on disk".to_owned(),
        Err(Unfit::Unreadable(_)) => "unreadable".to_owned(),
    }
}

#[test]
fn every_chat_of_a_call_is_found_however_it_is_written() {
    for (method, params, expected) in [
        ("sendMessage", r#"{"chat_id":7,"text":"\"chat_id\":8"}"#, "7"),
        ("sendMessage", r#"{"chat_id":7,"text":"{\"chat_id\":8}"}"#, "7"),
        ("sendMessage", r#"{"chat_id":" -7 "}"#, "-7"),
        ("sendMessage", r#"{"chat_id":"\u0040news"}"#, "@news"),
        ("sendMessage", r#"{"chat_id":7,"chat_id":8}"#, "7 8"),
        ("sendMessage", r#"{"chat\u005fid":7,"Chat_Id":8}"#, "7 8"),
        ("sendMessage", r#"{"chat_id":7,"reply_parameters":{"message_id":1,"chat_id":-5}}"#, "7 -5"),
        ("sendMessage", r#"{"chat_id":7,"reply_parameters":"{\"message_id\":1,\"chat_id\":\"@a\"}"}"#, "7 @a"),
        ("forwardMessage", r#"{"from_chat_id":-5,"chat_id":7,"message_id":1}"#, "-5 7"),
        ("setMyCommands", r#"{"commands":[],"scope":{"type":"chat","chat_id":-5}}"#, "-5"),
        ("setMyCommands", r#"{"commands":[],"scope":"{\"type\":\"chat\",\"chat_id\":-5}"}"#, "-5"),
        ("sendMessage", r#"{"chat_id":7.5}"#, "?"),
        ("sendMessage", r#"{"chat_id":"7abc"}"#, "?"),
        ("sendMessage", r#"{"chat_id":[7]}"#, "?"),
        ("sendMessage", r#"{"chat_id":18446744073709551615}"#, "?"),
        ("sendMessage", r#"{"chat_id":null}"#, ""),
        // What stands behind them must not be overlooked.
        ("sendMessage", r#"{"a":1e999,"chat_id":7}"#, "unreadable"),
        ("sendMessage", r#"{"a":"\ud800","chat_id":7}"#, "unreadable"),
        ("sendMessage", r#"{"\udc00":1,"chat_id":7}"#, "unreadable"),
        ("sendMessage", r#"{"chat_id":8,"reply_parameters":"{\"a\":1e999,\"chat_id\":7}"}"#, "unreadable"),
        ("sendMessage", r#"{"chat_id":8} {"chat_id":7}"#, "unreadable"),
        ("setChatTitle", r#"{"chat_id":8,"scope":"a word"}"#, "8"),
        ("sendGift", r#"{"user_id":9,"gift_id":"1"}"#, "9"),
        ("sendGift", r#"{"user_id":9,"chat_id":7,"gift_id":"1"}"#, "7"),
        // What Telegram may not take for the chat that the call is for.
        ("sendGift", r#"{"user_id":9,"Chat_Id":7,"gift_id":"1"}"#, "7 9"),
        ("sendGift", r#"{"user_id":9,"chat_id":7,"chat_id":null,"gift_id":"1"}"#, "7 9"),
        ("sendGift", r#"{"user_id":9,"reply_parameters":{"chat_id":7},"gift_id":"1"}"#, "7 9"),
        ("sendGift", r#"{"user_id":9,"reply_parameters":"{\"chat_id\":7}","gift_id":"1"}"#, "7 9"),
        ("banChatMember", r#"{"chat_id":-5,"user_id":9}"#, "-5"),
        ("banChatSenderChat", r#"{"chat_id":-5,"sender_chat_id":-9}"#, "-5"),
        ("getUserProfilePhotos", r#"{"user_id":9}"#, ""),
        ("answerCallbackQuery", r#"{"callback_query_id":"12"}"#, ""),
        ("editMessageText", r#"{"inline_message_id":"AQ","text":"x"}"#, ""),
        // Whom a method reaches that acts in no chat; a chat that it does not take changes nothing.
        ("transferGift", r#"{"business_connection_id":"b","owned_gift_id":"1","new_owner_chat_id":9}"#, "9 account"),
        ("transferGift", r#"{"business_connection_id":"b","new_owner_chat_id":9,"chat_id":7}"#, "9 7 account"),
        ("giftPremiumSubscription", r#"{"user_id":9,"chat_id":7}"#, "7 9"),
        ("refundStarPayment", r#"{"user_id":9,"telegram_payment_charge_id":"1"}"#, "9"),
        ("VERIFYUSER", r#"{"user_id":"9"}"#, "9"),
        ("deleteBusinessMessages", r#"{"business_connection_id":"b","message_ids":[1]}"#, "account"),
        ("repostStory", r#"{"business_connection_id":"b","from_chat_id":9}"#, "9 account"),
        ("sendMessage", r#"{"business_connection_id":"b","chat_id":7,"text":"x"}"#, "7"),
        ("sendMessage", r#"{"business_connection_id":"","chat_id":7,"text":"x"}"#, "7"),
        ("getBusinessConnection", r#"{"business_connection_id":"b"}"#, ""),
        // Of a Bot API to come.
        ("greetEverybody", r#"{"chat_ids":[7,"@a"],"user_ids":[9]}"#, "7 @a 9"),
        ("greetEverybody", r#"{"whom":"[{\"guest_chat_id\":7}]","chat_id":8}"#, "7 8"),
        ("greetEverybody", r#"{"chat_id":8,"sender_chat_id":-9}"#, "8 -9"),
        ("greetEverybody", r#"{"chat_id":8,"words":"[draft] {name}, hi"}"#, "8"),
    ] {
        assert_eq!(show(method, params), expected, "{method} {params}");
    }
    let deep = format!("{}{}{}", r#"{"a":"#.repeat(100), r#"{"chat_id":7}"#, "}".repeat(100));
    assert_eq!(show("sendMessage", &deep), "unreadable");
    let deep = format!("{{\"a\":{}{},\"chat_id\":7}}", "[".repeat(1_000), "]".repeat(1_000));
    assert_eq!(show("sendMessage", &deep), "unreadable");
}

#[test]
fn no_method_reaches_somebody_unseen() {
    let methods = methods();
    for nobody in REACH_NOBODY {
        assert!(methods.iter().any(|(name, _)| name.to_ascii_lowercase() == nobody), "{nobody} is no method");
        assert!(REACH_NOBODY.binary_search(&nobody).is_ok(), "{nobody} stands in the wrong place");
    }
    let mut silent = Vec::new();
    for (method, params) in methods {
        // As many as it can name, each in its own way.
        let mut call = serde_json::Map::new();
        for (number, (name, kind)) in (1..).zip(&params) {
            let named = kind == "chat" || name.contains("chat_id") || name.contains("user_id");
            if named {
                call.insert(name.clone(), Value::from(number));
            } else if name == "business_connection_id" {
                call.insert(name.clone(), Value::from("b"));
            }
        }
        let found = show(&method, &Value::Object(call.clone()).to_string());
        let found: Vec<_> = found.split(' ').collect();
        let has_chat = call.contains_key("chat_id");
        for (name, value) in &call {
            let seen = found.contains(&value.to_string().as_str()) || (value == "b" && found.contains(&"account"));
            let of_chat = has_chat && (name.ends_with("user_id") || MEMBERS.contains(&&**name) || value == "b");
            if !seen && !of_chat {
                silent.push(method.clone());
            }
        }
    }
    // Look hard before you let another one in.
    let expected = ["getBusinessConnection", "getUserGifts", "getUserProfilePhotos", "getUserProfileAudios"];
    silent.sort_unstable();
    silent.dedup();
    assert!(silent.iter().all(|name| expected.contains(&name.as_str())), "{silent:?} reach somebody unseen");
}

#[test]
fn no_file_of_a_disk_is_sent_and_what_people_write_is() {
    for (method, params, refused) in [
        ("sendDocument", r#"{"chat_id":7,"document":"file:///etc/passwd"}"#, true),
        ("sendDocument", r#"{"chat_id":7,"document":" \u0046\u0069le:/etc/passwd"}"#, true),
        ("sendDocument", r#"{"chat_id":7,"document":"/etc/passwd"}"#, true),
        ("sendDocument", r#"{"chat_id":7,"d\u006fcument":"file:///etc/passwd","document":"AgAD"}"#, true),
        ("sendDocument", r#"{"chat_id":7,"thumb":"file:///etc/passwd","document":"AgAD"}"#, true),
        ("sendMediaGroup", r#"{"chat_id":7,"media":[{"type":"photo","media":"file:///a"}]}"#, true),
        ("sendMediaGroup", r#"{"chat_id":7,"media":"[{\"type\":\"photo\",\"media\":\"\\u0066ile:///a\"}]"}"#, true),
        ("editMessageMedia", r#"{"chat_id":7,"media":{"type":"video","media":"AgAD","cover":"file:/a"}}"#, true),
        ("createNewStickerSet", r#"{"user_id":7,"stickers":[{"sticker":"file:/a","emoji_list":["x"]}]}"#, true),
        ("sendRichMessage", r#"{"chat_id":7,"rich_message":{"html":"<img src=\"FILE:///a\">"}}"#, true),
        ("sendRichMessage", r#"{"chat_id":7,"rich_message":{"markdown":"![](file:///a)"}}"#, true),
        ("sendRichMessage", r#"{"chat_id":7,"rich_message":{"html":"see file: it is there"}}"#, false),
        ("sendNewThing", r#"{"chat_id":7,"thing":"file:///a"}"#, true),
        ("sendNewThing", r#"{"chat_id":7,"thing":{"deep":[["file:///a"]]}}"#, true),
        ("sendMessage", r#"{"chat_id":7,"text":"file:///a is there"}"#, false),
        ("sendMessage", r#"{"chat_id":7,"text":"/start"}"#, false),
        ("sendPhoto", r#"{"chat_id":7,"photo":"https://a.example/file:/x.png","caption":"file: 1"}"#, false),
        ("sendPhoto", r#"{"chat_id":7,"photo":"attach://0123","caption":"[{\"media\":\"file:/a\"}]"}"#, false),
        (
            "sendMessage",
            r#"{"chat_id":7,"text":"x","reply_markup":{"inline_keyboard":[[{"text":"file:","callback_data":"file:7"}]]}}"#,
            false,
        ),
        (
            "sendMessage",
            r#"{"chat_id":7,"text":"x","reply_markup":"{\"inline_keyboard\":[[{\"text\":\"/a\",\"callback_data\":\"file:7\"}]]}"}"#,
            false,
        ),
        ("sendPoll", r#"{"chat_id":7,"question":"file:?","options":[{"text":"file:///a"}]}"#, false),
        ("setMyCommands", r#"{"commands":[{"command":"start","description":"file: a"}]}"#, false),
    ] {
        assert_eq!(named_in(method, params) == Err(Unfit::OnDisk), refused, "{method} {params}");
    }
    let odd = r#"{"chat_id":7,"media":"\u0000 [{\"media\":\"file:///a\"}]"}"#;
    assert!(named_in("sendMediaGroup", odd).is_err(), "others may skip what this host does not");
    for (method, params) in methods() {
        for (name, kind) in params {
            let call = |value: &str| format!(r#"{{"{name}":{}}}"#, Value::from(value));
            let refused = named_in(&method, &call("file:///a")) == Err(Unfit::OnDisk);
            if kind == "file" {
                assert!(refused, "{method} {name}");
            } else if kind == "string" && !name.ends_with("_id") && name != "sticker" {
                assert!(!refused, "{method} {name}");
            }
        }
    }
}
