//! The parameters of a call, as a hostile guest may write them: whatever the host reads in them and changes about them
//! must leave JSON behind, and within Telegram's limits.
#![no_main]

use std::convert::Infallible;

use botyard::domain::ChatId;
use botyard::domain::button::markup::{may_have_buttons, rewrite};
use botyard::telegram::{chats_of, lane_of, plain, redirect, split};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

const METHODS: [&str; 6] =
    ["sendMessage", "editMessageText", "sendPhoto", "sendMediaGroup", "answerInlineQuery", "copyMessage"];

fuzz_target!(|params: &str| {
    if is_object(params) {
        for method in METHODS {
            read(method, params);
        }
    }
});

fn is_object(text: &str) -> bool {
    serde_json::from_str::<Value>(text).is_ok_and(|value| value.is_object())
}

fn read(method: &str, params: &str) {
    std::hint::black_box(lane_of(method, params));
    let named = chats_of(params);
    let redirected = redirect(params, |chat| Some(ChatId(chat.0.wrapping_add(1))));
    assert_eq!(redirected.is_some(), !named.is_empty());
    if let Some(redirected) = redirected {
        let moved: Vec<_> = named.iter().map(|chat| ChatId(chat.0.wrapping_add(1))).collect();
        assert_eq!(chats_of(&redirected), moved);
    }
    let sealed = rewrite(params, &mut |data| Ok::<_, Infallible>(Some(format!("<{data}>"))));
    let Ok(sealed) = sealed;
    if let Some(sealed) = &sealed {
        assert!(may_have_buttons(params) && is_object(sealed), "{sealed}");
    }
    if let Some(plain) = plain(params) {
        assert!(is_object(&plain), "{plain}");
    }
    for (method, params) in split(method, params, true).unwrap_or_default() {
        assert!(!method.is_empty() && is_object(&params), "{params}");
        assert!(split(&method, &params, true).is_none(), "a part is split once more: {params}");
    }
}
