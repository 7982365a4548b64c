//! Calls that a handler waits for.

use super::*;

#[tokio::test(start_paused = true)]
async fn whoever_waits_hears_of_a_sender_that_has_broken() {
    let bench = bench(UNLIMITED, |_, params, _| if params["text"] == "boom" { panic!("boom") } else { ok() });
    let run = bench.start();
    bench.say(1, &["a"]);
    sleep(SECOND).await;
    let plugin = PluginName::new("p");
    let call = |text: &str| {
        let params = json!({ "chat_id": 2, "text": text }).to_string();
        bench.sender.call(&plugin, "sendMessage", params, 60 * SECOND)
    };
    let begun = Instant::now();
    call("boom").await.unwrap_err();
    assert!(run.await.unwrap_err().is_panic());
    call("later").await.unwrap_err();
    assert!(begun.elapsed() < SECOND, "{:?}", begun.elapsed());
}
use crate::telegram::Error;

impl Bench {
    async fn call(&self, chat: i64, text: &str, deadline: Duration) -> Result<String, Error> {
        let params = json!({ "chat_id": chat, "text": text }).to_string();
        self.sender.call(&PluginName::new("test"), "sendMessage", params, deadline).await
    }
}

#[tokio::test(start_paused = true)]
async fn the_result_comes_back() {
    let bench = bench(SendSettings::default(), |_, params, _| match params["text"].as_str() {
        Some("bad") => error(400, "Bad Request: message text is empty"),
        _ => ok(),
    });
    bench.start();
    assert_eq!(bench.call(1, "a", SECOND).await.unwrap(), r#"{"message_id":1}"#);
    let refused = bench.call(1, "bad", SECOND).await.unwrap_err();
    assert_eq!(refused.to_string(), "Telegram API error [400] on sendMessage: message text is empty");
}

#[tokio::test(start_paused = true)]
async fn it_goes_after_the_replies_that_were_queued_and_before_bulk() {
    let bench = bench(UNLIMITED, |_, _, _| after(100 * MS, ok()));
    bench.start();
    bench.say(1, &["a", "b"]);
    bench.call(1, "now", SECOND).await.unwrap();
    assert_eq!(bench.texts(1), ["a", "b", "now"]);
    let bulk: Vec<_> = (0..20).map(|_| message(2, "bulk", Priority::Bulk)).collect();
    bench.queue(&bulk);
    sleep(50 * MS).await;
    bench.call(2, "now", SECOND).await.unwrap();
    assert_eq!(bench.texts(2)[..2], ["bulk", "now"]);
}

#[tokio::test(start_paused = true)]
async fn it_is_flooded_at_once_where_the_wait_would_be_too_long() {
    let bench =
        bench(UNLIMITED, |_, params, times| if params["text"] == "a" && times == 0 { flood(100) } else { ok() });
    bench.start();
    bench.say(1, &["a"]);
    sleep(SECOND).await;
    let asked = Instant::now();
    let Err(Error::Flooded { retry_after, .. }) = bench.call(1, "b", 30 * SECOND).await else { panic!() };
    assert_eq!(asked.elapsed(), Duration::ZERO);
    assert!(retry_after > 98 * SECOND && retry_after < 105 * SECOND, "{retry_after:?}");
    assert_eq!(bench.call(1, "b", 200 * SECOND).await.unwrap(), r#"{"message_id":1}"#);
    assert_eq!(bench.texts(1), ["a", "a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn its_own_flood_is_waited_out_if_there_is_time_and_told_if_not() {
    let bench = bench(UNLIMITED, |_, params, times| match (params["chat_id"].as_i64(), times) {
        (Some(1), 0) => flood(5),
        (Some(2), _) => flood(50),
        _ => ok(),
    });
    bench.start();
    let asked = Instant::now();
    bench.call(1, "a", 30 * SECOND).await.unwrap();
    assert!(asked.elapsed() > 5 * SECOND && asked.elapsed() < 6 * SECOND, "{:?}", asked.elapsed());
    let asked = Instant::now();
    let told = bench.call(2, "a", 30 * SECOND).await.unwrap_err();
    assert!(matches!(told, Error::Flooded { retry_after, .. } if retry_after == 50 * SECOND), "{told}");
    assert!(asked.elapsed() < SECOND);
    // The chat's queued calls keep to it as well.
    bench.say(2, &["b"]);
    sleep(40 * SECOND).await;
    assert_eq!(bench.texts(2), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn it_is_answered_at_the_deadline_whatever_happens() {
    let bench =
        bench(SendSettings { chat_per_second: 0.01, ..UNLIMITED }, |_, params, _| match params["chat_id"].as_i64() {
            Some(1) => after(3600 * SECOND, ok()),
            Some(2) => answer(502, json!("")),
            _ => ok(),
        });
    bench.start();
    let slow = async {
        let asked = Instant::now();
        let told = bench.call(1, "a", 5 * SECOND).await.unwrap_err();
        assert!(matches!(told, Error::UnknownOutcome { .. }), "{told}");
        assert!(asked.elapsed() <= 5 * SECOND + MS, "{:?}", asked.elapsed());
    };
    let failing = async {
        let asked = Instant::now();
        let told = bench.call(2, "a", 5 * SECOND).await.unwrap_err();
        assert!(matches!(told, Error::ServerError { status: 502, .. } | Error::UnknownOutcome { .. }), "{told}");
        assert!(asked.elapsed() <= 5 * SECOND + MS, "{:?}", asked.elapsed());
    };
    tokio::join!(slow, failing);
    // Behind three replies, which use up the burst of a slow chat.
    bench.say(3, &["a", "b", "c", "d"]);
    let asked = Instant::now();
    let told = bench.call(3, "e", 5 * SECOND).await.unwrap_err();
    assert!(matches!(told, Error::Flooded { retry_after, .. } if retry_after > 60 * SECOND), "{told}");
    assert!(asked.elapsed() <= 5 * SECOND + MS, "{:?}", asked.elapsed());
}

#[tokio::test(start_paused = true)]
async fn trouble_is_tried_again_while_there_is_time() {
    let bench = bench(UNLIMITED, |_, _, times| match times {
        0 => Answer(MS, Err(TransportError::BeforeSend("refused".to_owned()))),
        1 => answer(502, json!("<html>")),
        2 => Answer(MS, Ok(Response { status: 200, cut: Some("cut".into()), ..Response::default() })),
        _ => ok(),
    });
    bench.start();
    bench.call(1, "a", 30 * SECOND).await.unwrap();
    assert_eq!(bench.texts(1).len(), 4);
}

#[tokio::test(start_paused = true)]
async fn of_a_success_that_is_cut_off_a_read_is_repeated_and_nothing_else() {
    let bench = bench(UNLIMITED, |_, _, times| if times == 0 { cut() } else { ok() });
    bench.start();
    let told = bench.call(1, "a", 30 * SECOND).await.unwrap_err();
    assert!(matches!(told, Error::ResultLost { .. }), "{told}");
    let plugin = PluginName::new("test");
    bench.sender.call(&plugin, "getChat", r#"{"chat_id":1}"#.into(), 30 * SECOND).await.unwrap();
    let answer = r#"{"callback_query_id":"1"}"#;
    let told = bench.sender.call(&plugin, "answerCallbackQuery", answer.into(), 30 * SECOND).await.unwrap_err();
    assert!(matches!(told, Error::ResultLost { .. }), "{told}");
    let methods: Vec<_> = bench.seen().into_iter().map(|seen| seen.method).collect();
    assert_eq!(methods, ["sendMessage", "getChat", "getChat", "answerCallbackQuery"]);
}

#[tokio::test(start_paused = true)]
async fn what_a_plugin_is_told_of_a_refusal_says_its_kind() {
    use crate::plugin::{CallError, Outbound};
    use crate::telegram::Refusal;
    let bench = bench(UNLIMITED, |_, params, _| match params["text"].as_str() {
        Some("same") => error(400, "Bad Request: message is not modified"),
        Some("gone") => error(403, "Forbidden: bot was blocked by the user"),
        _ => error(400, "Bad Request: message text is empty"),
    });
    bench.start();
    for (text, expect) in [("same", Refusal::NoOp), ("gone", Refusal::ChatGone), ("", Refusal::Call)] {
        let params = json!({ "chat_id": 1, "text": text }).to_string();
        let told = Outbound::call(&bench.sender, &PluginName::new("test"), "editMessageText", params, SECOND).await;
        assert!(matches!(told, Err(CallError::Refused { kind, .. }) if kind == expect), "{told:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn reads_do_not_queue() {
    let bench = bench(SendSettings { overall_per_second: 0.001, ..SendSettings::default() }, |_, _, times| {
        if times == 0 { flood(3) } else { ok() }
    });
    bench.start();
    bench.say(1, &["a", "b"]);
    sleep(SECOND).await;
    let plugin = PluginName::new("test");
    let asked = Instant::now();
    bench.sender.call(&plugin, "getChat", r#"{"chat_id":1}"#.into(), 30 * SECOND).await.unwrap();
    assert!(asked.elapsed() > 3 * SECOND && asked.elapsed() < 4 * SECOND, "{:?}", asked.elapsed());
    let told = bench.sender.call(&plugin, "getFile", r#"{"file_id":"x"}"#.into(), 2 * SECOND).await.unwrap_err();
    assert!(matches!(told, Error::Flooded { .. }), "{told}");
}

#[tokio::test(start_paused = true)]
async fn callers_that_vanish_leave_nothing_behind() {
    let bench = bench(SendSettings::default(), |_, _, _| ok());
    bench.start();
    let mut calls: Vec<_> = (0..1000).map(|_| Box::pin(bench.call(1, "a", 30 * SECOND))).collect();
    for call in &mut calls {
        assert!(futures_util::FutureExt::now_or_never(call.as_mut()).is_none());
    }
    let last = calls.pop().unwrap();
    drop(calls);
    last.await.unwrap();
    sleep(60 * SECOND).await;
    assert!(bench.seen().len() <= 2, "{}", bench.seen().len());
    bench.call(1, "b", SECOND).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_sender_that_has_stopped_answers_all_the_same() {
    let bench = bench(SendSettings::default(), |_, _, _| flood(20));
    let run = bench.start();
    let waiting = tokio::spawn({
        let sender = bench.sender.clone();
        async move { sender.call(&PluginName::new("test"), "sendMessage", r#"{"chat_id":1}"#.into(), 30 * SECOND).await }
    });
    sleep(SECOND).await;
    bench.stop.send_replace(true);
    run.await.unwrap();
    let asked = Instant::now();
    assert!(waiting.await.unwrap().is_err());
    assert!(bench.call(2, "a", 30 * SECOND).await.is_err());
    assert_eq!(asked.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_kept_of_calls_of_somebody_who_was_erased_while_they_were_made() {
    let bench = bench(UNLIMITED, |_, _, _| after(3600 * SECOND, ok()));
    bench.start();
    let erase = async {
        sleep(SECOND).await;
        bench.sender.forget(|row| row.lane == Lane::Chat(ChatId(1)) && row.params.contains("a secret"));
    };
    let (first, second, ()) =
        tokio::join!(bench.call(1, "a secret", 5 * SECOND), bench.call(2, "b", 5 * SECOND), erase);
    for told in [first, second] {
        assert!(matches!(told, Err(Error::UnknownOutcome { .. })), "{told:?}");
    }
    // It was begun later.
    bench.call(1, "c", 5 * SECOND).await.unwrap_err();
    bench.until(|bench| bench.ledger().len() >= 2).await;
    let lanes: Vec<_> = bench.ledger().into_iter().map(|row| (row.lane, row.params.contains("a secret"))).collect();
    assert_eq!(lanes, [(Lane::Chat(ChatId(2)), false), (Lane::Chat(ChatId(1)), false)]);
}
