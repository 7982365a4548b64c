//! At least once, at most once, and what is written down where nobody knows.

use super::super::ledger::Ledger;
use super::*;

fn once(row: &mut OutboxRow) {
    row.delivery = Delivery::AtMostOnce;
}

fn reset() -> Answer {
    Answer(10 * MS, Err(TransportError::Unknown("connection reset".to_owned())))
}

fn refused() -> Answer {
    Answer(10 * MS, Err(TransportError::BeforeSend("connection refused".to_owned())))
}

#[tokio::test(start_paused = true)]
async fn what_may_have_been_sent_is_repeated_only_if_that_is_wanted() {
    for trouble in [reset, || error(500, "Internal Server Error: restart"), || answer(200, json!("<html>"))] {
        let bench = bench(
            UNLIMITED,
            move |_, params, times| if params["text"] == "a" && times == 0 { trouble() } else { ok() },
        );
        bench.start();
        bench.say(1, &["a", "b"]);
        bench.sender.committed(bench.put_as(&[message(2, "a", Priority::Interactive)], once));
        bench.say(2, &["b"]);
        bench.until(|bench| bench.texts(1).len() == 3 && bench.texts(2).len() == 2).await;
        assert_eq!(bench.texts(1), ["a", "a", "b"]);
        assert_eq!(bench.texts(2), ["a", "b"]);
        sleep(SECOND).await;
        assert_eq!(bench.left(), []);
        let [row] = bench.ledger().try_into().unwrap();
        assert_eq!((row.plugin.as_str(), row.event, row.method.as_str()), ("test", 1, "sendMessage"));
        assert_eq!((row.lane, row.maybe_sent), (Lane::Chat(ChatId(2)), true));
        assert!(row.params.contains("\"a\"") && !row.reason.is_empty(), "{row:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_stays_without_an_answer_is_said_three_times_at_most_and_written_down() {
    for others in [false, true] {
        let bench = bench(UNLIMITED, |method, params, _| match (method, params["chat_id"].as_i64()) {
            ("sendMessage", Some(1)) => after(60 * SECOND, ok()),
            _ => ok(),
        });
        bench.start();
        bench.say(1, &["a", "b"]);
        for _ in 0..60 {
            if others {
                bench.say(2, &["x"]);
            }
            sleep(10 * SECOND).await;
        }
        assert_eq!(bench.texts(1), ["a", "a", "a", "b", "b", "b"]);
        assert_eq!(bench.left(), []);
        let ledger = bench.ledger();
        assert_eq!(ledger.len(), 2);
        assert!(ledger.iter().all(|row| row.maybe_sent), "{ledger:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn while_nobody_answers_anything_each_call_is_made_once_and_none_is_lost() {
    let begun = Instant::now();
    let bench =
        bench(UNLIMITED, move |_, _, _| if begun.elapsed() < 3600 * SECOND { after(60 * SECOND, ok()) } else { ok() });
    bench.start();
    for chat in 1..=3 {
        bench.say(chat, &["a", "b"]);
    }
    sleep(3500 * SECOND).await;
    assert!((1..=3).all(|chat| bench.texts(chat) == ["a"]), "{:?}", bench.seen());
    sleep(200 * SECOND).await;
    bench.until(|bench| bench.left().is_empty()).await;
    let texts = [1, 2, 3].map(|chat| bench.texts(chat));
    assert!(texts.iter().all(|texts| *texts == ["a", "a", "b"]), "{texts:?}");
    assert_eq!(bench.ledger(), []);
}

#[tokio::test(start_paused = true)]
async fn what_can_be_done_again_is_until_there_is_an_answer() {
    let bench = bench(UNLIMITED, |_, _, times| if times < 6 { reset() } else { ok() });
    bench.start();
    bench.queue(&[
        ("editMessageText", json!({ "chat_id": 1, "message_id": 2, "text": "a" }), Priority::Interactive),
        ("deleteMessage", json!({ "chat_id": 2, "message_id": 2 }), Priority::Interactive),
    ]);
    sleep(120 * SECOND).await;
    assert_eq!((bench.seen().len(), bench.left(), bench.ledger()), (14, vec![], vec![]));
}

#[tokio::test(start_paused = true)]
async fn a_direct_call_is_not_repeated_without_bound_either() {
    let bench = bench(UNLIMITED, |_, _, _| reset());
    bench.start();
    let params = r#"{"chat_id":1,"text":"a"}"#.to_owned();
    let told = bench.sender.call(&PluginName::new("p"), "sendMessage", params, 30 * SECOND).await.unwrap_err();
    assert!(matches!(told, crate::telegram::Error::UnknownOutcome { .. }), "{told}");
    assert_eq!(bench.texts(1), ["a"; 3]);
}

#[tokio::test(start_paused = true)]
async fn what_was_certainly_not_sent_is_repeated_in_any_case() {
    let bench = bench(UNLIMITED, |_, _, times| match times {
        0 => refused(),
        1 => flood(3),
        _ => ok(),
    });
    bench.start();
    bench.sender.committed(bench.put_as(&[message(1, "a", Priority::Interactive)], once));
    bench.until(|bench| bench.texts(1).len() == 3).await;
    sleep(SECOND).await;
    assert_eq!((bench.left(), bench.ledger()), (vec![], vec![]));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_under_way_when_the_host_ended_is_made_once_at_most() {
    let first = bench(UNLIMITED, |_, _, _| after(34 * SECOND, ok()));
    let run = first.start();
    first.sender.committed(first.put_as(&[message(1, "a", Priority::Interactive)], once));
    first.say(1, &["b"]);
    first.say(2, &["c"]);
    first.until(|bench| bench.seen().len() == 2).await;
    run.abort();
    let second = first.restarted(UNLIMITED, |_, _, _| ok());
    second.start();
    second.until(|bench| bench.seen().len() == 2).await;
    assert_eq!((second.texts(1), second.texts(2)), (vec!["b".to_owned()], vec!["c".to_owned()]));
    sleep(SECOND).await;
    assert_eq!(second.left(), []);
    let [row] = second.ledger().try_into().unwrap();
    assert!(row.reason.contains("the host ended"), "{row:?}");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_never_began_is_made_by_the_next_process() {
    let first = bench(UNLIMITED, |_, _, _| refused());
    let run = first.start();
    first.sender.committed(first.put_as(&[message(1, "a", Priority::Interactive)], once));
    first.until(|bench| bench.seen().len() == 2).await;
    first.stop.send_replace(true);
    run.await.unwrap();
    let second = first.restarted(UNLIMITED, |_, _, _| ok());
    second.start();
    second.until(|bench| bench.texts(1) == ["a"]).await;
    assert_eq!(second.ledger(), []);
}

#[tokio::test(start_paused = true)]
async fn what_a_refused_token_turned_away_is_made_by_the_next_process() {
    let first = bench(UNLIMITED, |_, _, _| error(401, "Unauthorized"));
    let run = first.start();
    for chat in 1..=3 {
        first.sender.committed(first.put_as(&[message(chat, "a", Priority::Interactive)], once));
    }
    first.until(|bench| (1..=3).all(|chat| !bench.texts(chat).is_empty())).await;
    first.stop.send_replace(true);
    run.await.unwrap();
    let second = first.restarted(UNLIMITED, |_, _, _| ok());
    second.start();
    second.until(|bench| (1..=3).all(|chat| bench.texts(chat) == ["a"])).await;
    assert_eq!(second.ledger(), []);
}

#[tokio::test(start_paused = true)]
async fn an_old_reply_is_sent_after_an_outage_and_ends_when_it_alone_fails() {
    let begun = Instant::now();
    let bench = bench(UNLIMITED, move |_, params, _| match params["text"].as_str() {
        _ if begun.elapsed() < 300 * SECOND => refused(),
        Some("poison") => refused(),
        _ => ok(),
    });
    let an_hour_old = |row: &mut OutboxRow| row.queued -= 3_600_000;
    bench.sender.committed(bench.put_as(&[message(1, "a", Priority::Interactive)], an_hour_old));
    bench.sender.committed(bench.put_as(&[message(2, "poison", Priority::Interactive)], an_hour_old));
    bench.start();
    sleep(300 * SECOND).await;
    assert_eq!(bench.left().len(), 2, "an outage ends nothing");
    for _ in 0..10 {
        bench.say(3, &["x"]);
        sleep(10 * SECOND).await;
    }
    assert_eq!(bench.left(), []);
    let [row] = bench.ledger().try_into().unwrap();
    assert_eq!((row.lane, row.maybe_sent), (Lane::Chat(ChatId(2)), false));
}

#[tokio::test(start_paused = true)]
async fn a_direct_call_without_an_answer_is_written_down_and_a_read_is_not() {
    let bench = bench(UNLIMITED, |method, _, _| if method == "getChat" { reset() } else { after(60 * SECOND, ok()) });
    bench.start();
    let plugin = PluginName::new("shop");
    for (method, params) in [
        ("sendMessage", r#"{"chat_id":1}"#),
        ("answerCallbackQuery", r#"{"callback_query_id":"1"}"#),
        ("getChat", r#"{"chat_id":1}"#),
    ] {
        bench.sender.call(&plugin, method, params.to_owned(), SECOND).await.unwrap_err();
    }
    sleep(SECOND).await;
    let rows: Vec<_> = bench.ledger().into_iter().map(|row| (row.plugin, row.method, row.params)).collect();
    let row = |method: &str, params: &str| ("shop".to_owned(), method.to_owned(), params.to_owned());
    assert_eq!(
        rows,
        [row("sendMessage", r#"{"chat_id":1}"#), row("answerCallbackQuery", r#"{"callback_query_id":"1"}"#)]
    );
}

#[tokio::test(start_paused = true)]
async fn a_flood_after_an_attempt_without_an_answer_does_not_say_that_nothing_was_sent() {
    let bench = bench(UNLIMITED, |_, _, times| if times == 0 { reset() } else { flood(100) });
    bench.start();
    let told = bench
        .sender
        .call(&PluginName::new("p"), "sendMessage", r#"{"chat_id":1}"#.into(), 30 * SECOND)
        .await
        .unwrap_err();
    assert!(matches!(told, crate::telegram::Error::UnknownOutcome { .. }), "{told}");
    sleep(SECOND).await;
    assert_eq!(bench.ledger().len(), 1);
}

#[test]
fn the_ledger_keeps_the_newest() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let row = |number: u64| UnknownRow {
        plugin: "p".to_owned(),
        event: number,
        method: "sendMessage".to_owned(),
        lane: Lane::Other,
        at: 0,
        maybe_sent: true,
        reason: String::new(),
        params: "{}".to_owned(),
    };
    let mut next = 0;
    for round in [3_u64, 4, 13] {
        let mut ledger = Ledger::of_at_most(BOT, 5);
        ledger.count(&store).unwrap();
        for _ in 0..round {
            next += 1;
            let mut ops = Vec::new();
            ledger.keep(&store, &row(next), &mut ops);
            drop(store.commit_blocking(Commit { ops, ..Commit::default() }).unwrap());
        }
        let rows = store.scan_prefix(&unknown::bot_prefix(BOT), 100).unwrap();
        let events: Vec<_> = rows.iter().map(|(_, value)| UnknownRow::decode(value).unwrap().event).collect();
        let expect: Vec<_> = (next.saturating_sub(5) + 1..=next).collect();
        assert_eq!(events, expect);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_erased_while_it_is_sent_does_not_come_back() {
    const BAD: &str = "Bad Request: can't parse entities: Unsupported start tag";
    type Case = (fn() -> Answer, fn(&mut OutboxRow));
    let plain = |row: &mut OutboxRow| row.fallback = Fallback::Plain;
    let cases: [Case; 4] = [(reset, once), (|| flood(3), once), (refused, once), (|| error(400, BAD), plain)];
    for (trouble, change) in cases {
        let bench = bench(UNLIMITED, move |_, _, _| after(10 * SECOND, trouble()));
        bench.start();
        let params = json!({ "chat_id": 1, "text": "<b>a", "parse_mode": "HTML" });
        let rows = bench.put_as(&[("sendMessage", params, Priority::Interactive)], change);
        bench.sender.committed(rows.clone());
        bench.until(|bench| bench.seen().len() == 1).await;
        let ops = rows.iter().map(|&(lane, number, _)| Op::Delete { key: outbox::key(BOT, lane, number) }).collect();
        bench.blocking(|store| async move { drop(store.commit(Commit { ops, ..Commit::default() }).await) });
        sleep(60 * SECOND).await;
        assert_eq!((bench.left(), bench.ledger(), bench.seen().len()), (vec![], vec![], 1));
    }
}
