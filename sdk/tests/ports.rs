//! The examples of other frameworks, written anew for this one (`docs/ports/`): they compile, and do what those do.

#[path = "../../docs/ports/echo_bot.rs"]
mod mojogram_echo_bot;
#[path = "../../docs/ports/inline_keyboard_bot.rs"]
mod mojogram_inline_keyboard_bot;
#[path = "../../docs/ports/buttons.rs"]
mod teloxide_buttons;
#[path = "../../docs/ports/inline.rs"]
mod teloxide_inline;
#[path = "../../docs/ports/purchase.rs"]
mod teloxide_purchase;

use botyard_sdk::json;
use botyard_sdk::test::Bot;

fn inline_query(text: &str) -> botyard_sdk::Value {
    json!({ "id": "q", "from": { "id": 7, "first_name": "Alice" }, "query": text, "offset": "" })
}

#[test]
fn buttons_are_offered_and_chosen() {
    let mut bot = Bot::<teloxide_buttons::buttons::Plugin>::new();
    assert_eq!(bot.text("/help").texts(), ["/help – Display this text\n/start – Start"]);
    assert_eq!(bot.text("hello").texts(), ["Command not found!"]);
    assert_eq!(bot.text("/hello").texts(), ["Command not found!"]);
    assert!(bot.message(&json!({ "sticker": {} })).calls.is_empty());
    let started = bot.text("/start");
    let rows = started.calls[0].1["reply_markup"]["inline_keyboard"].clone();
    assert_eq!(rows.as_array().map(Vec::len), Some(6));
    let answer = bot.receive("inline_query", inline_query("")).calls[0].1.clone();
    assert_eq!(answer["results"][0]["reply_markup"]["inline_keyboard"], rows);
    bot.text("/start");
    let chosen = bot.press_button("Squeeze");
    assert_eq!((&*chosen.calls[0].0, chosen.texts()), ("editMessageText", vec!["You chose: Squeeze"]));
    let inline = json!({ "id": "q", "from": { "id": 7 }, "inline_message_id": "i", "data": "version:Bo" });
    assert_eq!(bot.receive("callback_query", inline).texts(), ["You chose: Bo"]);
}

#[test]
fn an_inline_query_has_two_answers() {
    let mut bot = Bot::<teloxide_inline::inline::Plugin>::new();
    let answer = bot.receive("inline_query", inline_query("tea")).calls[0].1.clone();
    let text = |at: usize| answer["results"][at]["input_message_content"]["message_text"].clone();
    assert_eq!([text(0), text(1)], ["https://www.google.com/search?q=tea", "https://duckduckgo.com/?q=tea"]);
    assert_eq!(answer["results"][1]["url"], "https://duckduckgo.com/about");
}

#[test]
fn a_purchase_is_a_name_and_a_product() {
    let mut bot = Bot::<teloxide_purchase::purchase::Plugin>::new();
    let unable = ["Unable to handle the message. Type /help to see the usage."];
    assert_eq!(bot.text("hello").texts(), unable);
    assert!(bot.text("/help").texts()[0].starts_with("/help – Display this text"));
    assert_eq!(bot.text("/start").texts(), ["Let's start! What's your full name?"]);
    assert_eq!(bot.message(&json!({ "sticker": {} })).texts(), ["Please, send me your full name."]);
    assert_eq!(bot.text("John Doe").texts(), ["Select a product:"]);
    assert_eq!(bot.text("Banana").texts(), unable);
    assert_eq!(bot.press_button("Banana").texts(), ["John Doe, product 'Banana' has been purchased successfully!"]);
    assert_eq!(bot.state(), None);
    bot.text("/start");
    assert_eq!(bot.text("/cancel").texts(), ["Cancelling the dialogue."]);
    assert_eq!(bot.state(), None);
}

#[test]
fn an_echo_greets_and_repeats() {
    let mut bot = Bot::<mojogram_echo_bot::echo_bot::Plugin>::new();
    assert!(bot.text("/start").texts()[0].starts_with("Hello!"));
    assert_eq!(bot.text("hello").texts(), ["hello"]);
    assert_eq!(bot.text("/hello").texts(), ["/hello"]);
}

#[test]
fn a_vote_takes_the_place_of_the_question() {
    let mut bot = Bot::<mojogram_inline_keyboard_bot::inline_keyboard_bot::Plugin>::new();
    bot.text("/start");
    let voted = bot.press_button("👎 Dislike");
    assert_eq!(voted.texts(), ["Thanks for voting!", "You disliked it 😢"]);
}
