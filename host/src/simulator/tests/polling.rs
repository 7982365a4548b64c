//! `getUpdates` from outside; the offsets themselves are tested in `updates.rs`.

use super::*;

fn ids(updates: &[Value]) -> Vec<i64> {
    updates.iter().map(|update| update["update_id"].as_i64().unwrap()).collect()
}

/// Waits for the first poll.
async fn arrived(simulator: &Simulator) {
    while simulator.call_count("getUpdates") == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn an_update_stays_until_it_is_confirmed() {
    let (simulator, bot) = start().await;
    let first = simulator.user_says(ALICE, ALICE, "one").unwrap();
    let second = simulator.user_says(BOTIR, BOTIR, "two").unwrap();
    assert_eq!(second, first + 1);
    for _ in 0..2 {
        assert_eq!(ids(&bot.poll(json!({})).await), [first, second]);
    }
    assert_eq!(ids(&bot.poll(json!({"offset": second, "limit": "1"})).await), [second]);
    assert_eq!(ids(&bot.poll(json!({"offset": -5})).await), [second]);
    assert_eq!(ids(&bot.poll(json!({"offset": second + 1})).await), [0; 0]);
    assert_eq!(simulator.waiting_updates(), 0);
}

#[tokio::test]
async fn a_parked_poll_wakes_for_an_update() {
    let (simulator, bot) = start().await;
    let poll = bot.poll(json!({"timeout": 50}));
    let says = async {
        arrived(&simulator).await;
        simulator.user_says(ALICE, ALICE, "hi").unwrap()
    };
    let (updates, id) = tokio::time::timeout(SOON, async { tokio::join!(poll, says) }).await.unwrap();
    assert_eq!(ids(&updates), [id]);
    assert_eq!(updates[0]["message"]["text"], "hi");
    assert_eq!(updates[0]["message"]["from"]["language_code"], "en");
}

#[tokio::test]
async fn the_newest_poll_wins() {
    let (simulator, bot) = start().await;
    let older = bot.call("getUpdates", json!({"timeout": 50}));
    let newer = async {
        arrived(&simulator).await;
        bot.call("getUpdates", json!({"timeout": 0})).await
    };
    let (older, newer) = tokio::time::timeout(SOON, async { tokio::join!(older, newer) }).await.unwrap();
    assert_eq!(newer["result"], json!([]));
    assert_eq!(older["error_code"], 409);
    assert_eq!(
        older["description"],
        "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
    );
}

#[tokio::test]
async fn no_polling_while_a_webhook_is_set() {
    let (simulator, bot) = start().await;
    let parked = bot.call("getUpdates", json!({"timeout": 50}));
    let set = async {
        arrived(&simulator).await;
        bot.call("setWebhook", json!({"url": "https://bot.example/hook"})).await
    };
    let (parked, set) = tokio::join!(parked, set);
    assert_eq!(set["description"], "Webhook was set");
    assert_eq!(parked["description"], "Conflict: terminated by setWebhook request");
    let refused = bot.refused("getUpdates", json!({})).await;
    let text =
        "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first";
    assert_eq!(refused, (409, text.to_owned()));
    assert_eq!(bot.ok("getWebhookInfo", json!({})).await["url"], "https://bot.example/hook");
    bot.ok("deleteWebhook", json!({})).await;
    assert_eq!(bot.poll(json!({})).await.len(), 0);
}

#[tokio::test]
async fn allowed_updates_are_kept_until_changed() {
    let (simulator, bot) = start().await;
    bot.poll(json!({"allowed_updates": ["callback_query"]})).await;
    assert!(matches!(simulator.user_says(ALICE, ALICE, "lost"), Err(Error::Unwanted)));
    bot.poll(json!({})).await;
    assert!(matches!(simulator.user_says(ALICE, ALICE, "lost too"), Err(Error::Unwanted)));
    bot.poll(json!({"allowed_updates": "not a list"})).await;
    assert!(simulator.user_says(ALICE, ALICE, "and this").is_err());
    bot.poll(json!({"allowed_updates": "[]"})).await;
    let id = simulator.user_says(ALICE, ALICE, "heard").unwrap();
    assert_eq!(ids(&bot.poll(json!({})).await), [id], "the lost ones took no id");
}

#[tokio::test]
async fn updates_get_too_old() {
    let (simulator, bot) = start().await;
    bot.ok("sendMessage", json!({
        "chat_id": ALICE, "text": "?", "reply_markup": {"inline_keyboard": [[{"text": "Yes", "callback_data": "y"}]]}
    })).await;
    simulator.user_says(ALICE, ALICE, "stays").unwrap();
    let pressed = simulator.user_presses(ALICE, ALICE, None, "Yes").unwrap();
    simulator.advance_clock(Duration::from_secs(150));
    let updates = bot.poll(json!({})).await;
    assert_eq!(updates.len(), 1);
    assert_eq!(updates[0]["message"]["text"], "stays");
    let refused = bot.refused("answerCallbackQuery", json!({"callback_query_id": pressed.query_id})).await;
    let text = "Bad Request: query is too old and response timeout expired or query ID is invalid";
    assert_eq!(refused, (400, text.to_owned()));
    simulator.advance_clock(Duration::from_secs(24 * 60 * 60));
    assert_eq!(bot.poll(json!({})).await.len(), 0);
}

#[tokio::test]
async fn repeated_offsets_are_slowed_down_if_wanted() {
    let settings = SimulatorSettings { throttle_polls: true, ..Default::default() };
    let simulator = Simulator::start(settings).await.unwrap();
    let bot = Bot::of(&simulator);
    for text in ["a", "b", "c"] {
        simulator.user_says(ALICE, ALICE, text).unwrap();
    }
    assert_eq!(bot.poll(json!({})).await.len(), 3);
    assert_eq!(bot.poll(json!({})).await.len(), 1, "the same offset within half a second");
}

#[tokio::test]
async fn many_updates_are_pushed_and_read_in_order() {
    let (simulator, bot) = start().await;
    let (first, end) = simulator.push_updates(&Bulk { text: "n{n} i{i}".into(), ..Bulk::new(250, 3) });
    assert_eq!(end - first, 250);
    let mut offset = 0;
    let mut texts = Vec::new();
    loop {
        let updates = bot.poll(json!({"offset": offset})).await;
        let Some(last) = updates.last() else { break };
        offset = last["update_id"].as_i64().unwrap() + 1;
        texts.extend(updates.iter().map(|update| update["message"]["text"].as_str().unwrap().to_owned()));
    }
    assert_eq!(texts.len(), 250);
    assert_eq!((texts[0].as_str(), texts[249].as_str()), ("n0 i0", "n83 i249"));
}

#[tokio::test]
async fn load_mode_counts_and_keeps_nothing() {
    let (simulator, bot) = start().await;
    simulator.start_load_mode(true);
    for n in 0..3 {
        let sent = bot.ok("sendMessage", json!({"chat_id": ALICE, "text": format!("no {n}")})).await;
        assert_eq!(sent["message_id"], n + 1);
    }
    bot.ok("editMessageText", json!({"chat_id": ALICE, "message_id": 2, "text": "edited"})).await;
    assert_eq!(simulator.messages(ALICE).len(), 0);
    assert_eq!(simulator.calls().len(), 0);
    assert_eq!(simulator.call_count("sendMessage"), 3);
    assert_eq!(simulator.delivered(ALICE), 3);
    assert_eq!(simulator.sequence(ALICE), ["no 0", "no 1", "no 2"]);
    assert_eq!(simulator.last_text(ALICE).as_deref(), Some("no 2"));
}
