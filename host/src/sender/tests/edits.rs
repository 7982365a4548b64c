//! Edits that a later one makes pointless, and chat actions.

use super::*;

fn edit(message: i64, text: &str) -> (&'static str, Value, Priority) {
    ("editMessageText", json!({ "chat_id": 1, "message_id": message, "text": text }), Priority::Interactive)
}

fn typing(chat: i64) -> String {
    json!({ "chat_id": chat, "action": "typing" }).to_string()
}

impl Bench {
    fn actions(&self) -> usize {
        self.seen().iter().filter(|seen| seen.method == "sendChatAction").count()
    }
}

#[tokio::test(start_paused = true)]
async fn of_edits_that_wait_only_the_last_is_made_and_it_is_always_made() {
    let bench = bench(UNLIMITED, |_, params, times| match params["text"].as_str() {
        Some("flooded") if times == 0 => flood(30),
        _ => ok(),
    });
    bench.start();
    bench.say(1, &["flooded"]);
    sleep(SECOND).await;
    let texts: Vec<_> = (0..60).map(|n| n.to_string()).collect();
    let edits: Vec<_> = texts.iter().map(|text| edit(7, text)).collect();
    bench.queue(&edits);
    sleep(60 * SECOND).await;
    assert_eq!(bench.texts(1), ["flooded", "flooded", "59"]);
    assert_eq!(bench.left(), []);
}

#[tokio::test(start_paused = true)]
async fn an_edit_overtakes_nothing_and_stands_for_no_other_message_or_method() {
    let bench = bench(UNLIMITED, |_, _, _| ok());
    let markup = json!({ "chat_id": 1, "message_id": 7, "text": "markup" });
    bench.queue(&[
        edit(7, "a"),
        edit(8, "b"),
        message(1, "c", Priority::Interactive),
        edit(7, "d"),
        ("editMessageReplyMarkup", markup, Priority::Interactive),
        message(1, "e", Priority::Interactive),
        edit(7, "f"),
        edit(9, "g"),
    ]);
    bench.start();
    sleep(SECOND).await;
    assert_eq!(bench.texts(1), ["b", "c", "markup", "e", "f", "g"]);
    assert_eq!(bench.left(), []);
}

#[tokio::test(start_paused = true)]
async fn edits_that_come_one_by_one_are_all_made() {
    let bench = bench(UNLIMITED, |_, _, _| ok());
    bench.start();
    for text in ["a", "b", "c"] {
        bench.queue(&[edit(7, text)]);
        sleep(SECOND).await;
    }
    assert_eq!(bench.texts(1), ["a", "b", "c"]);
}

#[tokio::test(start_paused = true)]
async fn a_chat_action_is_made_at_once_or_not_at_all() {
    let bench = bench(UNLIMITED, |method, params, times| match (method, params["text"].as_str()) {
        ("sendChatAction", _) => after(SECOND, ok()),
        (_, Some("flooded")) if times == 0 => flood(100),
        _ => ok(),
    });
    bench.start();
    bench.sender.act((0..5).map(|_| typing(1)));
    sleep(500 * MS).await;
    bench.sender.act([typing(1), typing(2)]);
    sleep(10 * SECOND).await;
    assert_eq!(bench.actions(), 2, "one of a chat at a time");
    // A chat that has to wait, or is about to be sent to, gets none.
    bench.say(1, &["flooded"]);
    sleep(SECOND).await;
    bench.sender.act([typing(1)]);
    bench.say(2, &["answer"]);
    bench.sender.act([typing(2)]);
    sleep(200 * SECOND).await;
    assert_eq!(bench.actions(), 2);
    assert_eq!(bench.texts(2).last().unwrap(), "answer");
}

#[tokio::test(start_paused = true)]
async fn chat_actions_that_fail_are_not_repeated_and_are_in_nobodys_way() {
    for trouble in [|| error(500, "Internal Server Error"), || flood(60), || after(60 * SECOND, ok())] {
        let bench = bench(UNLIMITED, move |method, _, _| if method == "sendChatAction" { trouble() } else { ok() });
        bench.start();
        for _ in 0..20 {
            bench.sender.act([typing(1)]);
            sleep(400 * MS).await;
        }
        assert_eq!(bench.actions(), 1);
        bench.say(1, &["a"]);
        sleep(50 * MS).await;
        assert_eq!(bench.texts(1).last().unwrap(), "a");
        assert_eq!(bench.ledger(), []);
    }
}

#[tokio::test(start_paused = true)]
async fn a_plugin_that_waits_for_its_chat_action_is_answered() {
    let bench = bench(UNLIMITED, |_, _, _| after(SECOND, ok()));
    bench.start();
    let plugin = PluginName::new("test");
    let call = || bench.sender.call(&plugin, "sendChatAction", typing(1), 10 * SECOND);
    let (first, second) = tokio::join!(call(), call());
    assert!(first.is_ok(), "{first:?}");
    assert!(matches!(second, Err(crate::telegram::Error::Flooded { .. })), "{second:?}");
}
