//! Queued calls.

use super::*;

#[tokio::test(start_paused = true)]
async fn each_chat_gets_its_messages_in_order_and_the_outbox_is_empty_after() {
    let bench = bench(UNLIMITED, |_, params, _| after((params["text"].as_str().unwrap().len() as u32) * MS, ok()));
    bench.start();
    let texts: Vec<String> = (0..40).map(|n| format!("{n}{}", "x".repeat(n * 7 % 30))).collect();
    let calls: Vec<_> =
        texts.iter().flat_map(|text| [1, 2, -3].map(|chat| message(chat, text, Priority::Interactive))).collect();
    bench.queue(&calls[..60]);
    sleep(100 * MS).await;
    bench.queue(&calls[60..]);
    sleep(60 * SECOND).await;
    for chat in [1, 2, -3] {
        assert_eq!(bench.texts(chat), texts);
    }
    assert_eq!(bench.left(), []);
}

#[tokio::test(start_paused = true)]
async fn a_flooded_chat_waits_as_long_as_it_is_told_and_delays_nobody() {
    let bench = bench(UNLIMITED, |_, params, times| if params["text"] == "a" && times < 2 { flood(40) } else { ok() });
    bench.start();
    bench.say(1, &["a", "b"]);
    bench.say(2, &["c", "d"]);
    sleep(30 * SECOND).await;
    assert_eq!(bench.texts(1), ["a"]);
    assert!(bench.times(2).iter().all(|at| *at < SECOND), "{:?}", bench.times(2));
    sleep(90 * SECOND).await;
    assert_eq!(bench.texts(1), ["a", "a", "a", "b"]);
    let times = bench.times(1);
    for pair in times[..3].windows(2) {
        let waited = pair[1] - pair[0];
        assert!(waited > 40 * SECOND && waited < 45 * SECOND, "{waited:?}");
    }
    assert_eq!(bench.left(), []);
}

#[tokio::test(start_paused = true)]
async fn a_flood_holds_over_a_restart() {
    let first = bench(UNLIMITED, |_, _, _| flood(6775));
    let run = first.start();
    first.say(1, &["a"]);
    sleep(10 * SECOND).await;
    first.stop.send_replace(true);
    run.await.unwrap();
    assert_eq!(first.left()[0].attempts, 0, "a flood is no attempt");

    let second = first.restarted(UNLIMITED, |_, _, _| ok());
    second.start();
    second.say(2, &["b"]);
    sleep(6770 * SECOND).await;
    assert_eq!(second.texts(1), [""; 0]);
    assert_eq!(second.texts(2), ["b"]);
    sleep(30 * SECOND).await;
    assert_eq!(second.texts(1), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn what_an_earlier_process_left_is_sent_in_order_before_what_is_new() {
    let first = bench(UNLIMITED, |_, _, _| ok());
    first.put(&[
        message(1, "a", Priority::Bulk),
        message(2, "b", Priority::Normal),
        message(1, "c", Priority::Interactive),
    ]);
    first.put(&[message(-1_001_557_912_345, "d", Priority::Interactive)]);
    let second = first.restarted(UNLIMITED, |_, _, _| ok());
    second.say(1, &["e"]);
    second.start();
    sleep(SECOND).await;
    assert_eq!(second.texts(1), ["a", "c", "e"]);
    assert_eq!(second.texts(2), ["b"]);
    assert_eq!(second.texts(-1_001_557_912_345), ["d"]);
    assert_eq!(second.left(), []);
}

#[tokio::test(start_paused = true)]
async fn a_refused_call_is_over_and_its_chat_goes_on() {
    let bench = bench(UNLIMITED, |_, params, _| match params["text"].as_str().unwrap() {
        "a" => error(400, "Bad Request: chat not found"),
        "b" => error(403, "Forbidden: bot was blocked by the user"),
        "c" => error(404, "Not Found: method not found"),
        _ => ok(),
    });
    bench.start();
    bench.say(1, &["a", "b", "c", "d"]);
    sleep(SECOND).await;
    assert_eq!(bench.texts(1), ["a", "b", "c", "d"]);
    assert_eq!(bench.left(), []);
}

#[tokio::test(start_paused = true)]
async fn a_success_that_is_cut_off_is_done_and_never_repeated() {
    let bench = bench(UNLIMITED, |_, params, _| if params["text"] == "cut" { cut() } else { ok() });
    bench.start();
    bench.say(1, &["cut", "b"]);
    sleep(60 * SECOND).await;
    assert_eq!(bench.texts(1), ["cut", "b"]);
    assert_eq!(bench.left(), []);
}

#[tokio::test(start_paused = true)]
async fn what_is_so_already_is_no_failure() {
    let bench = bench(UNLIMITED, |method, _, _| match method {
        "editMessageText" => error(400, "Bad Request: message is not modified: specified new message content"),
        "deleteMessage" => error(400, "Bad Request: message to delete not found"),
        "answerCallbackQuery" => {
            error(400, "Bad Request: query is too old and response timeout expired or query ID is invalid")
        }
        _ => ok(),
    });
    bench.start();
    bench.queue(&[
        ("editMessageText", json!({ "chat_id": 1, "message_id": 2, "text": "a" }), Priority::Interactive),
        ("deleteMessage", json!({ "chat_id": 1, "message_id": 2 }), Priority::Interactive),
        ("answerCallbackQuery", json!({ "callback_query_id": "7" }), Priority::Interactive),
        message(1, "b", Priority::Interactive),
    ]);
    sleep(SECOND).await;
    assert_eq!(bench.seen().len(), 4);
    assert_eq!(bench.left(), []);
}

#[tokio::test(start_paused = true)]
async fn trouble_is_tried_again_with_the_chat_waiting_in_order() {
    let bench = bench(UNLIMITED, |_, params, times| match (params["text"].as_str().unwrap_or_default(), times) {
        ("a", 0) => Answer(MS, Err(TransportError::BeforeSend("connection refused".to_owned()))),
        ("a", 1) => answer(502, json!("<html>")),
        ("a", 2) => Answer(MS, Ok(Response { status: 200, cut: Some("cut".into()), ..Response::default() })),
        ("a", 3) => answer(503, json!("<html>")),
        ("a", 4) => after(3600 * SECOND, ok()),
        _ => ok(),
    });
    bench.start();
    bench.say(1, &["a", "b"]);
    sleep(120 * SECOND).await;
    assert_eq!(bench.texts(1), ["a", "a", "a", "a", "a", "a", "b"]);
    assert_eq!(bench.left(), []);
}

#[tokio::test(start_paused = true)]
async fn an_outage_costs_few_calls_and_loses_nothing() {
    let begun = Instant::now();
    let bench = bench(UNLIMITED, move |_, _, _| {
        if begun.elapsed() < 600 * SECOND { error(500, "Internal Server Error: restart") } else { ok() }
    });
    bench.start();
    for chat in 1..=5 {
        bench.say(chat, &["a"]);
    }
    sleep(600 * SECOND).await;
    let calls = bench.seen().len();
    assert!((5 * 20..5 * 120).contains(&calls), "{calls} calls of 5 chats in 10 minutes");
    sleep(60 * SECOND).await;
    assert_eq!(bench.left(), []);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_alone_fails_does_not_hold_its_chat_for_ever() {
    let bench = bench(
        UNLIMITED,
        |_, params, _| {
            if params["text"] == "poison" { error(500, "Internal Server Error") } else { ok() }
        },
    );
    bench.start();
    bench.say(1, &["poison", "after"]);
    for _ in 0..90 {
        bench.say(2, &["x"]);
        sleep(10 * SECOND).await;
    }
    // Only what fails while others succeed is its own trouble.
    assert!((4..20).contains(&bench.texts(1).len()), "{:?}", bench.times(1));
    assert_eq!(bench.texts(1).last().unwrap(), "after");
    assert_eq!(bench.left(), []);
    assert_eq!(bench.ledger().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn polls_that_succeed_do_not_make_an_outage_of_sending_a_chats_own_trouble() {
    let begun = Instant::now();
    let bench = bench(UNLIMITED, move |method, _, _| match method {
        "getUpdates" => answer(200, json!({ "ok": true, "result": [] })),
        _ if begun.elapsed() < 3600 * SECOND => error(500, "Internal Server Error"),
        _ => ok(),
    });
    bench.start();
    for chat in 1..=5 {
        bench.say(chat, &["a", "b"]);
    }
    for _ in 0..370 {
        sleep(10 * SECOND).await;
        bench.sender.shared.client.get_updates(None, Duration::ZERO, 1, None).await.unwrap();
    }
    for chat in 1..=5 {
        assert_eq!(bench.texts(chat).last().map(String::as_str), Some("b"), "chat {chat}");
        let good = bench.seen().into_iter().filter(|seen| seen.chat == chat && seen.at >= 3600 * SECOND);
        assert_eq!(good.map(|seen| seen.text).collect::<Vec<_>>(), ["a", "b"], "nothing is given up");
    }
    assert_eq!(bench.left(), []);
}

#[tokio::test(start_paused = true)]
async fn a_private_chat_gets_three_at_once_and_then_one_a_second() {
    let bench = bench(SendSettings::default(), |_, _, _| after(Duration::ZERO, ok()));
    bench.start();
    bench.say(1, &["a", "b", "c", "d", "e", "f"]);
    sleep(60 * SECOND).await;
    let seconds: Vec<_> = bench.times(1).iter().map(|at| (at.as_secs_f64() * 10.0).round()).collect();
    assert_eq!(seconds[3..], [10.0, 20.0, 30.0]);
    assert!(seconds[2] < 2.0, "{seconds:?}");
}

#[tokio::test(start_paused = true)]
async fn no_minute_holds_more_than_twenty_messages_of_a_group() {
    let bench = bench(SendSettings::default(), |_, _, _| ok());
    bench.start();
    let texts = vec!["x"; 60];
    bench.say(-1, &texts);
    sleep(300 * SECOND).await;
    let times = bench.times(-1);
    assert_eq!(times.len(), 60);
    for window in times.windows(21) {
        assert!(window[20] - window[0] >= 60 * SECOND, "{window:?}");
    }
    assert!(times[59] - times[0] < 170 * SECOND, "the rate is used");
}

#[tokio::test(start_paused = true)]
async fn no_second_holds_more_than_the_overall_rate_and_the_rate_is_used() {
    let bench = bench(SendSettings::default(), |_, _, _| after(200 * MS, ok()));
    bench.start();
    let calls: Vec<_> = (1..=300).map(|chat| message(chat, "x", Priority::Interactive)).collect();
    bench.queue(&calls);
    sleep(60 * SECOND).await;
    let times: Vec<_> = bench.seen().iter().map(|seen| seen.at).collect();
    assert_eq!(times.len(), 300);
    assert!(most_in_a_second(&times) <= 30, "{}", most_in_a_second(&times));
    assert!(times[299] < Duration::from_millis(10_800), "{:?}", times[299]);
}

#[tokio::test(start_paused = true)]
async fn replies_go_before_bulk_and_bulk_has_a_rate_of_its_own() {
    let bench = bench(SendSettings { overall_per_second: 0.0, ..SendSettings::default() }, |_, _, _| ok());
    bench.start();
    let bulk: Vec<_> = (1..=200).map(|chat| message(chat, "bulk", Priority::Bulk)).collect();
    bench.queue(&bulk);
    sleep(SECOND).await;
    bench.say(1000, &["reply"]);
    // This chat's own turn of the bulk comes late; a reply does not wait for it.
    bench.say(200, &["reply"]);
    sleep(30 * SECOND).await;
    let late = |chat: i64| *bench.times(chat).last().unwrap() - SECOND;
    assert!(late(1000) < 50 * MS, "{:?}", late(1000));
    assert!(late(200) < 50 * MS, "{:?}", late(200));
    assert_eq!(bench.texts(200), ["bulk", "reply"]);
    let times: Vec<_> =
        bench.seen().iter().filter(|seen| seen.text == "bulk" && seen.chat != 200).map(|seen| seen.at).collect();
    assert_eq!(times.len(), 199);
    assert!(most_in_a_second(&times) <= 25);
    assert!(times[198] < Duration::from_millis(8_500), "{:?}", times[198]);
}

#[tokio::test(start_paused = true)]
async fn answers_to_queries_keep_to_no_limit_and_wait_for_nobody() {
    let settings = SendSettings { overall_per_second: 1.0, ..SendSettings::default() };
    let bench = bench(settings, |_, _, _| after(30 * SECOND, ok()));
    bench.start();
    let calls: Vec<_> = (1..=50).map(|chat| message(chat, "x", Priority::Interactive)).collect();
    bench.queue(&calls);
    sleep(SECOND).await;
    let answers: Vec<_> = (0..20)
        .map(|id| ("answerCallbackQuery", json!({ "callback_query_id": id.to_string() }), Priority::Bulk))
        .collect();
    bench.queue(&answers);
    sleep(MS).await;
    let answered = bench.seen().iter().filter(|seen| seen.method == "answerCallbackQuery").count();
    assert_eq!(answered, 20);
}

#[tokio::test(start_paused = true)]
async fn slow_calls_fill_their_slots_and_leave_those_of_answers_free() {
    let bench = bench(UNLIMITED, |method, _, _| if method == "sendMessage" { after(34 * SECOND, ok()) } else { ok() });
    bench.start();
    let calls: Vec<_> = (1..=150).map(|chat| message(chat, "x", Priority::Interactive)).collect();
    bench.queue(&calls);
    sleep(SECOND).await;
    assert_eq!(bench.seen().len(), 100);
    bench.queue(&[("answerCallbackQuery", json!({ "callback_query_id": "7" }), Priority::Interactive)]);
    sleep(MS).await;
    assert_eq!(bench.seen().len(), 101);
    sleep(70 * SECOND).await;
    assert_eq!(bench.seen().len(), 151);
}

#[tokio::test(start_paused = true)]
async fn a_refused_token_stops_everything_and_loses_nothing() {
    for (code, description) in
        [(401, "Unauthorized"), (404, "Not Found"), (421, "Misdirected Request: unallowed token"), (400, "Logged out")]
    {
        a_token_is_refused(code, description).await;
    }
}

async fn a_token_is_refused(code: u16, description: &'static str) {
    let valid = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let tells = valid.clone();
    let bench = bench(UNLIMITED, move |_, _, _| {
        if tells.load(std::sync::atomic::Ordering::Relaxed) { ok() } else { error(code, description) }
    });
    let refused = bench.sender.token_refused();
    bench.start();
    for chat in 1..=10 {
        bench.say(chat, &["a", "b"]);
    }
    sleep(SECOND).await;
    assert!(*refused.borrow());
    let first = bench.seen().len();
    assert!(first <= 10);
    sleep(300 * SECOND).await;
    assert!((8..=11).contains(&(bench.seen().len() - first)), "one try every half minute");
    assert_eq!(bench.left().len(), 20);
    let direct = bench.sender.call(&PluginName::new("p"), "sendMessage", r#"{"chat_id":5}"#.into(), SECOND).await;
    assert!(matches!(direct, Err(crate::telegram::Error::Unauthorized { .. })), "{direct:?}");
    valid.store(true, std::sync::atomic::Ordering::Relaxed);
    sleep(60 * SECOND).await;
    assert!(!*refused.borrow());
    assert_eq!(bench.left(), []);
}

#[tokio::test(start_paused = true)]
async fn a_method_that_is_not_there_does_not_hold_the_others_for_ever() {
    let bench = bench(UNLIMITED, |method, _, _| if method == "sendMassage" { error(404, "Not Found") } else { ok() });
    bench.start();
    bench.queue(&[
        ("sendMassage", json!({ "chat_id": 1, "text": "a" }), Priority::Interactive),
        message(1, "b", Priority::Interactive),
    ]);
    for _ in 0..12 {
        bench.say(2, &["x"]);
        sleep(10 * SECOND).await;
    }
    assert_eq!(bench.texts(1).last().unwrap(), "b");
    assert_eq!(bench.left(), []);
}

#[tokio::test(start_paused = true)]
async fn a_gateway_that_turns_calls_away_in_json_loses_nothing() {
    let bench = bench(UNLIMITED, move |_, _, times| match times {
        0..4 => answer(403, json!({ "message": "Forbidden" })),
        _ => ok(),
    });
    bench.start();
    bench.say(1, &["a", "b"]);
    let once = |row: &mut OutboxRow| row.delivery = Delivery::AtMostOnce;
    bench.sender.committed(bench.put_as(&[message(2, "c", Priority::Interactive)], once));
    bench.until(|bench| bench.left().is_empty()).await;
    assert_eq!(bench.texts(1), ["a", "a", "a", "a", "a", "b", "b", "b", "b", "b"]);
    assert_eq!(bench.texts(2), ["c"; 5]);
    assert_eq!(bench.ledger(), []);
}

#[tokio::test(start_paused = true)]
async fn other_rates_hold_at_once() {
    let slow = SendSettings { chat_per_second: 0.001, ..UNLIMITED };
    let bench = bench(slow, |_, _, _| ok());
    bench.start();
    bench.say(1, &["a", "b", "c", "d", "e"]);
    sleep(10 * SECOND).await;
    assert_eq!(bench.texts(1).len(), 3);
    bench.sender.reconfigure(UNLIMITED);
    sleep(SECOND).await;
    assert_eq!(bench.texts(1).len(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_every_wait_and_lets_what_is_in_flight_end() {
    let bench = bench(UNLIMITED, |_, params, _| match params["chat_id"].as_i64() {
        Some(1) => flood(4000),
        Some(2) => after(2 * SECOND, ok()),
        _ => after(30 * SECOND, ok()),
    });
    let run = bench.start();
    for chat in [1, 2, 3] {
        bench.say(chat, &["a", "b"]);
    }
    sleep(SECOND).await;
    bench.stop.send_replace(true);
    let told = Instant::now();
    run.await.unwrap();
    assert!(told.elapsed() <= 5 * SECOND, "{:?}", told.elapsed());
    assert_eq!(bench.texts(2), ["a"], "nothing new begins");
    assert_eq!(bench.left().len(), 5, "what has ended is written down, the rest stays");
}

#[tokio::test(start_paused = true)]
async fn a_row_that_vanished_or_can_not_be_read_does_not_hold_its_chat() {
    let bench = bench(UNLIMITED, |_, _, _| ok());
    let rows = bench.put(&["a", "b", "c"].map(|text| message(1, text, Priority::Interactive)));
    let ops = vec![
        Op::Delete { key: outbox::key(BOT, rows[0].0, rows[0].1) },
        Op::Put { key: outbox::key(BOT, rows[1].0, rows[1].1), value: vec![0xff; 3] },
    ];
    bench.blocking(|store| async move {
        store.commit(Commit { ops, ..Commit::default() }).await.unwrap().durable().await.unwrap()
    });
    bench.sender.committed(rows);
    bench.start();
    sleep(SECOND).await;
    assert_eq!(bench.texts(1), ["c"]);
}

/// A text in three calls, as dispatch writes them.
fn long(chat: i64, method: &'static str) -> [(&'static str, Value, Priority); 3] {
    let call =
        |method, text| (method, json!({ "chat_id": chat, "message_id": 5, "text": text }), Priority::Interactive);
    [call(method, "begins"), call("sendMessage", "goes on"), call("sendMessage", "ends")]
}

fn put_long(bench: &Bench, chat: i64, method: &'static str) -> Vec<(Lane, u64, Priority)> {
    bench.put_as(&long(chat, method), |row| row.follows = row.method == "sendMessage" && !row.params.contains("begins"))
}

#[tokio::test(start_paused = true)]
async fn the_rest_of_a_text_goes_with_its_beginning() {
    let play = |_: &str, params: &Value, _: usize| match (params["chat_id"].as_i64(), params["text"].as_str()) {
        (Some(1), Some("begins")) | (Some(2), Some("goes on")) => error(400, "Bad Request: not enough rights"),
        _ => ok(),
    };
    let bench = bench(UNLIMITED, play);
    let mut rows = Vec::new();
    for chat in [1, 2, 3] {
        rows.extend(put_long(&bench, chat, "sendMessage"));
        rows.extend(bench.put(&[message(chat, "next", Priority::Interactive)]));
    }
    bench.sender.committed(rows);
    bench.start();
    bench.until(|bench| bench.left().is_empty()).await;
    assert_eq!(bench.texts(1), ["begins", "next"]);
    assert_eq!(bench.texts(2), ["begins", "goes on", "next"]);
    assert_eq!(bench.texts(3), ["begins", "goes on", "ends", "next"]);
}

#[tokio::test(start_paused = true)]
async fn an_edit_that_is_left_out_leaves_nothing_behind() {
    let first = bench(UNLIMITED, |_, _, _| ok());
    put_long(&first, 1, "editMessageText");
    put_long(&first, 1, "editMessageText");
    let second = first.restarted(UNLIMITED, |_, _, _| ok());
    second.start();
    second.until(|bench| bench.left().is_empty()).await;
    assert_eq!(second.texts(1), ["begins", "goes on", "ends"]);
}
