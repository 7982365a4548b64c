//! Flood control: in one chat, and in many.

use super::*;
use crate::telegram::Error;

/// The times between the messages of a chat, in seconds.
fn gaps(times: &[Duration]) -> Vec<f64> {
    times.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64().round()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_flooded_chat_goes_on_at_half_its_rate_and_recovers() {
    let bench = bench(SendSettings::default(), |_, params, times| {
        if params["text"] == "0" && times == 0 { flood(10) } else { after(Duration::ZERO, ok()) }
    });
    bench.start();
    let texts: Vec<String> = (0..500).map(|n| n.to_string()).collect();
    bench.say(1, &texts.iter().map(String::as_str).collect::<Vec<_>>());
    sleep(900 * SECOND).await;
    let times = bench.times(1);
    assert_eq!(bench.texts(1)[1..], texts);
    assert!(times[1] >= 10 * SECOND);
    let rate = |from: u32, to: u32| {
        times.iter().filter(|at| **at >= (11 + from) * SECOND && **at < (11 + to) * SECOND).count()
    };
    assert!((28..=33).contains(&rate(0, 60)), "{}", rate(0, 60));
    assert!((38..=46).contains(&rate(120, 180)), "{}", rate(120, 180));
    assert!((58..=61).contains(&rate(320, 380)), "{}", rate(320, 380));
}

#[tokio::test(start_paused = true)]
async fn twelve_flooded_chats_change_nothing_for_two_hundred_others() {
    let bench = bench(SendSettings { overall_per_second: 0.0, ..SendSettings::default() }, |_, params, times| {
        if params["chat_id"].as_i64() <= Some(12) && times == 0 { flood(40) } else { ok() }
    });
    bench.start();
    for second in 0..60_i64 {
        if (10..22).contains(&second) {
            bench.say(second - 9, &["flooded"]);
        }
        for other in 0..4 {
            bench.say(1000 + (second * 4 + other) % 200, &[second.to_string().as_str()]);
        }
        sleep(SECOND).await;
    }
    for seen in bench.seen().iter().filter(|seen| seen.chat >= 1000) {
        let asked = Duration::from_secs(seen.text.parse().unwrap());
        assert!(seen.at - asked < SECOND, "{seen:?}");
    }
    sleep(60 * SECOND).await;
    assert_eq!(bench.left(), []);
}

#[tokio::test(start_paused = true)]
async fn floods_everywhere_stop_everything_and_one_call_tries_first() {
    let begun = Instant::now();
    let bench = bench(SendSettings { overall_per_second: 0.0, ..SendSettings::default() }, move |_, _, _| {
        if begun.elapsed() < 15 * SECOND { flood(20) } else { after(SECOND, ok()) }
    });
    bench.start();
    let calls: Vec<_> = (1..=6).map(|chat| message(chat, "x", Priority::Interactive)).collect();
    bench.queue(&calls);
    sleep(SECOND).await;
    assert_eq!(bench.seen().len(), 6);
    bench.say(50, &["a"]);
    bench.say(51, &["a"]);
    bench.queue(&[message(52, "bulk", Priority::Bulk)]);
    sleep(18 * SECOND).await;
    assert_eq!(bench.seen().len(), 6, "nobody else is sent to meanwhile");
    bench.queue(&[("answerCallbackQuery", json!({ "callback_query_id": "7" }), Priority::Interactive)]);
    sleep(500 * MS).await;
    assert_eq!(bench.seen().len(), 7, "but answers to queries");
    sleep(60 * SECOND).await;
    assert_eq!(bench.left(), []);
    let after: Vec<_> = bench.seen().iter().skip(7).map(|seen| seen.at).collect();
    assert!(after[1] - after[0] >= SECOND, "one tries, the others follow: {after:?}");
}

#[tokio::test(start_paused = true)]
async fn a_deadline_is_shortened_neither_by_a_smaller_flood_nor_by_a_restart() {
    let first = bench(UNLIMITED, |_, _, _| flood(300));
    let run = first.start();
    // The flood meets a direct call; the rows come after it.
    let params = r#"{"chat_id":1,"text":"direct"}"#.to_owned();
    let told = first.sender.call(&PluginName::new("p"), "sendMessage", params, SECOND).await;
    assert!(matches!(told, Err(Error::Flooded { .. })), "{told:?}");
    first.say(1, &["a", "b"]);
    sleep(SECOND).await;
    first.stop.send_replace(true);
    run.await.unwrap();

    let second = first.restarted(UNLIMITED, |_, _, _| ok());
    second.start();
    second.say(2, &["begun"]);
    second.until(|bench| bench.texts(2).len() == 1).await;
    sleep(290 * SECOND).await;
    assert_eq!(second.texts(1), [""; 0]);
    sleep(30 * SECOND).await;
    assert_eq!(second.texts(1), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn an_album_weighs_its_items() {
    let bench = bench(SendSettings::default(), |_, _, _| ok());
    bench.start();
    let media: Vec<_> = (0..10).map(|n| json!({ "type": "photo", "media": n.to_string() })).collect();
    let album = ("sendMediaGroup", json!({ "chat_id": -1, "media": media }), Priority::Interactive);
    bench.queue(&[album.clone(), album.clone(), album, message(-1, "x", Priority::Interactive)]);
    sleep(300 * SECOND).await;
    let times = bench.times(-1);
    assert_eq!(gaps(&times)[0], 18.0, "{times:?}");
    for window in times.windows(3) {
        assert!(window[2] - window[0] >= 45 * SECOND, "no more than twenty in a minute but for the last: {times:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_flood_holds_over_a_restart_where_nothing_was_queued() {
    let group = ChatId(-5);
    let to = ChatId(-1_000_000_000_005);
    let first = bench(UNLIMITED, |_, _, _| flood(300));
    let run = first.start();
    for chat in [1, group.0] {
        let params = json!({ "chat_id": chat, "text": "direct" }).to_string();
        let told = first.sender.call(&PluginName::new("p"), "sendMessage", params, SECOND).await;
        assert!(matches!(told, Err(Error::Flooded { .. })), "{told:?}");
    }
    let chats = first.sender.chats().clone();
    first.blocking(|_| async move { chats.moved(group, to).await.unwrap() });
    first.stop.send_replace(true);
    run.await.unwrap();

    let second = first.restarted(UNLIMITED, |_, _, _| ok());
    second.start();
    for chat in [1, 2, to.0] {
        second.say(chat, &["x"]);
    }
    second.until(|bench| bench.texts(2).len() == 1).await;
    sleep(250 * SECOND).await;
    assert_eq!(second.seen().len(), 1, "the flooded chats wait, whatever their names are by now");
    sleep(60 * SECOND).await;
    assert_eq!((second.texts(1), second.texts(to.0)), (vec!["x".to_owned()], vec!["x".to_owned()]));
    let waits = || second.store.scan_prefix(&crate::store::rows::flood::bot_prefix(BOT), usize::MAX).unwrap();
    second.say(2, &["y"]);
    second.until(|_| waits().is_empty()).await;
}
