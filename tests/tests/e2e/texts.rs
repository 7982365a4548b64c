//! Texts that Telegram would refuse: too long, or marked up badly.

use std::time::Duration;

use botyard::simulator::{ALICE, Message, Simulator};
use botyard_tests::{Host, guest, plugin};

use super::support::{ask, builder, simulator};

fn host(simulator: &Simulator) -> Host {
    builder(simulator).plugin("sends", &guest("sends"), "priority = 1").plugin("echo", &plugin("echo"), "").start()
}

/// What the bot sends until it has answered another text.
async fn sent(simulator: &Simulator, text: &str) -> Vec<Message> {
    let before = simulator.bot_messages(ALICE).len();
    simulator.user_says(ALICE, ALICE, text).expect("a chat");
    let last = format!("that was all, after {before}");
    simulator.user_says(ALICE, ALICE, &last).expect("a chat");
    let handle = simulator.clone();
    let is_last = move || handle.last_text(ALICE).as_ref() == Some(&last);
    assert!(simulator.wait_until(Duration::from_secs(30), is_last).await);
    let mut messages = simulator.bot_messages(ALICE).split_off(before);
    messages.pop();
    messages
}

fn words() -> Vec<String> {
    (0..1500).map(|n| format!("word{n}")).collect()
}

fn read(messages: &[Message]) -> Vec<String> {
    messages.iter().flat_map(|message| message.text().split_whitespace()).map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_text_arrives_whole_in_several_messages() {
    let simulator = simulator().await;
    let _host = host(&simulator);
    let messages = sent(&simulator, "/long plain").await;
    assert!(read(&messages) == words(), "{} messages", messages.len());
    assert_eq!(messages.len(), 4);
    assert!(messages[0].reply_to.is_some() && messages[1..].iter().all(|message| message.reply_to.is_none()));
    let buttons: Vec<usize> = messages.iter().map(|message| message.buttons().len()).collect();
    assert_eq!(buttons, [0, 0, 0, 1]);

    let messages = sent(&simulator, "/long photo").await;
    assert!(read(&messages) == words(), "{} messages", messages.len());
    assert!(messages[0].content.is_some() && messages[0].text().len() <= 1024);
    assert!(messages[1..].iter().all(|message| message.content.is_none()));
    assert_eq!((messages[0].buttons().len(), messages.last().map(|message| message.buttons().len())), (0, Some(1)));

    let messages = sent(&simulator, "/long edit").await;
    assert!(read(&messages) == words(), "{} messages", messages.len());
    assert!(messages[0].edit_date.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn its_markup_goes_on_over_the_cuts() {
    let simulator = simulator().await;
    let _host = host(&simulator);
    for (mode, sign) in [("html", "<"), ("markdown", "!")] {
        let messages = sent(&simulator, &format!("/long {mode}")).await;
        assert!(read(&messages) == [words(), vec!["end".to_owned(), sign.to_owned()]].concat(), "{mode}");
        for message in &messages {
            let bold = message.entities.iter().find(|entity| entity.kind == "bold").expect("all is bold");
            assert_eq!(bold.offset, 0);
            assert!(bold.length + 2 >= message.text().trim().len(), "{mode}: {bold:?}");
        }
        let last = &messages.last().expect("there are some").entities;
        assert!(last.iter().any(|entity| entity.kind == "italic" && entity.length == 3), "{mode}: {last:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_wants_it_whole_or_an_answer_hears_telegrams_refusal() {
    let simulator = simulator().await;
    let host = host(&simulator);
    assert!(sent(&simulator, "/long whole").await.is_empty());
    assert!(host.log().contains("message is too long"));
    let [told] = &sent(&simulator, "/long call").await[..] else { panic!("one answer") };
    assert!(told.text().contains("message is too long"), "{}", told.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_not_be_read_arrives_without_markup_where_that_is_wanted() {
    let simulator = simulator().await;
    let host = host(&simulator);
    assert!(sent(&simulator, "/html <b>1 < 2").await.is_empty());
    let [message] = &sent(&simulator, "/html plain <b>1 < 2 &amp; 3").await[..] else { panic!("one message") };
    assert_eq!((message.text(), message.entities.len()), ("1 < 2 & 3", 0));
    let [message] = &sent(&simulator, "/html plain <b>fine</b>").await[..] else { panic!("one message") };
    assert_eq!((message.text(), message.entities.len()), ("fine", 1));
    assert_eq!(host.metrics().sum("botyard_send_plain_total", &["method=\"sendMessage\""]), 1.0);
    // Too long and not to be read.
    let long = format!("/html plain <i>{}", "word ".repeat(810));
    let messages = sent(&simulator, &long).await;
    assert_eq!(read(&messages), vec!["word"; 810]);
    assert_eq!(ask(&simulator, ALICE, "still there").await, "still there");
}
