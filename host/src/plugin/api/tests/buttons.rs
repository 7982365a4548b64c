//! What goes out in place of a plugin's callback data, and what is kept of it.

use std::collections::BTreeSet;

use super::*;
use crate::domain::ChatId;
use crate::store::rows::kv::{self as rows, Scope, ValueRow};
use crate::store::rows::outbox::OutboxRow;
use crate::store::rows::{expiry, prefix_end, seal};
use crate::store::{Commit, Op};

const DAY: u64 = 24 * 3600 * 1000;

fn shop() -> PluginName {
    PluginName::new("shop")
}

/// Queues a message with a button that stands for each of these.
fn offer(host: &mut Host, chat: &str, data: &[&str]) -> Result<(), bot_api::CallError> {
    let buttons: Vec<_> = data.iter().map(|data| serde_json::json!({ "text": "x", "callback_data": data })).collect();
    let params = serde_json::json!({ "chat_id": chat, "text": "?", "reply_markup": { "inline_keyboard": [buttons] } });
    let options = bot_api::Options {
        priority: bot_api::Priority::Interactive,
        delivery: bot_api::Delivery::AtLeastOnce,
        long_text: bot_api::LongText::Split,
        bad_markup: bot_api::BadMarkup::Refuse,
    };
    host.enqueue("sendMessage".into(), params.to_string(), options).unwrap()
}

/// What the buttons of the queued messages stand for on the wire.
fn wires(commit: &Commit) -> Vec<String> {
    let queued = commit.ops.iter().filter_map(|op| match op {
        Op::Append { value, .. } => Some(serde_json::from_str(&OutboxRow::decode(value).unwrap().params).unwrap()),
        _ => None,
    });
    let of_one = |params: serde_json::Value| {
        let row = params["reply_markup"]["inline_keyboard"][0].as_array().unwrap().clone();
        row.into_iter().map(|button| button["callback_data"].as_str().unwrap().to_owned())
    };
    queued.flat_map(of_one).collect()
}

fn kept(store: &Store, chat: Option<ChatId>) -> usize {
    let prefix = rows::scope_prefix(BotId(1), &shop(), Scope::Buttons(chat));
    store.range(&prefix, &prefix_end(&prefix), usize::MAX).unwrap().len()
}

fn ends(store: &Store) -> usize {
    let prefix = expiry::bot_prefix(BotId(1));
    store.range(&prefix, &prefix_end(&prefix), usize::MAX).unwrap().len()
}

#[tokio::test]
async fn what_goes_out_comes_back_to_the_same_plugin_in_the_same_chat() {
    let bench = Bench::new();
    let (long, at_most) = ("l".repeat(56), "m".repeat(1024));
    for (chat, id) in [("7", Some(ChatId(7))), ("@shop", None)] {
        let mut host = bench.run(DAY);
        let data = ["pick:3", &long, &at_most, "pick:3"];
        offer(&mut host, chat, &data).unwrap();
        let commit = tx(host).into_commit();
        let wires = wires(&commit);
        bench.store.commit(commit).await.unwrap();
        assert_eq!(wires[0], wires[3], "the same stands for the same");
        assert_eq!(kept(&bench.store, id), 2);

        let mut tx = Tx::new(&bench.store);
        let seal = seal::of(&mut tx, BotId(1)).unwrap();
        let (shop, other) = (shop(), PluginName::new("other"));
        for (wire, data) in wires.iter().zip(data) {
            let open = |plugin: &PluginName, places: &[ChatId], now| {
                seal::open(&seal, &tx, (BotId(1), plugin), places, wire, now).unwrap()
            };
            assert_eq!(open(&shop, &[ChatId(7)], DAY).as_deref(), Some(data));
            assert_eq!(open(&other, &[ChatId(7)], DAY), None);
            let elsewhere = open(&shop, &[ChatId(8)], DAY);
            assert_eq!(elsewhere.as_deref(), (id.is_none()).then_some(data), "in another chat");
            assert_eq!(open(&shop, &[], DAY).as_deref(), (id.is_none()).then_some(data), "inline");
            let is_carried = data.len() < 56;
            assert_eq!(open(&shop, &[ChatId(7)], 92 * DAY).is_some(), is_carried, "after three months");
        }
    }
}

#[test]
fn data_beyond_all_bounds_is_refused_with_the_call() {
    let bench = Bench::new();
    let mut host = bench.run(0);
    let error = offer(&mut host, "7", &["a", &"x".repeat(1025)]).unwrap_err();
    assert!(matches!(error, bot_api::CallError::Invalid(text) if text.contains("1025 bytes; at most 1024")));
    assert!(wires(&tx(host).into_commit()).is_empty());
}

#[tokio::test]
async fn the_same_is_kept_once_and_lives_on_while_it_is_sent() {
    let bench = Bench::new();
    let long = "l".repeat(100);
    for (now, lives_until) in [(0, 90), (30, 90), (60, 150), (61, 150)] {
        let mut host = bench.run(now * DAY);
        offer(&mut host, "7", &[&long]).unwrap();
        bench.store.commit(tx(host).into_commit()).await.unwrap();
        let prefix = rows::scope_prefix(BotId(1), &shop(), Scope::Buttons(Some(ChatId(7))));
        let found = bench.store.range(&prefix, &prefix_end(&prefix), usize::MAX).unwrap();
        let ends_at: Vec<_> = found.iter().map(|(_, row)| ValueRow::decode(row).unwrap().expires).collect();
        assert_eq!((ends_at, ends(&bench.store)), (vec![lives_until * DAY], 1), "day {now}");
    }
}

#[tokio::test]
async fn what_is_kept_is_bounded_and_the_newest_stays() {
    let bench = Bench::new();
    let data = |round: usize, n: usize| format!("{round}:{n}:{}", "x".repeat(60));
    let mut last = Vec::new();
    for round in 0..30 {
        let mut host = bench.run(round as u64);
        let all: Vec<_> = (0..100).map(|n| data(round, n)).collect();
        offer(&mut host, "7", &all.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
        let commit = tx(host).into_commit();
        last = wires(&commit).into_iter().zip(all).collect();
        bench.store.commit(commit).await.unwrap();
        assert!(kept(&bench.store, Some(ChatId(7))) <= 1024);
    }
    assert!(kept(&bench.store, Some(ChatId(7))) > 900, "{}", kept(&bench.store, Some(ChatId(7))));
    assert_eq!(kept(&bench.store, Some(ChatId(7))), ends(&bench.store), "nothing is left of what had to go");
    let mut tx = Tx::new(&bench.store);
    let seal = seal::of(&mut tx, BotId(1)).unwrap();
    for (wire, data) in last {
        let found = seal::open(&seal, &tx, (BotId(1), &shop()), &[ChatId(7)], &wire, 30).unwrap();
        assert_eq!(found, Some(data));
    }
}

#[tokio::test]
async fn the_secret_is_made_once() {
    let bench = Bench::new();
    let mut sealed = BTreeSet::new();
    for _ in 0..2 {
        let mut host = bench.run(0);
        offer(&mut host, "7", &["a"]).unwrap();
        let commit = tx(host).into_commit();
        sealed.extend(wires(&commit));
        bench.store.commit(commit).await.unwrap();
    }
    assert_eq!(sealed.len(), 1);
    let another = Bench::new();
    let mut host = another.run(0);
    offer(&mut host, "7", &["a"]).unwrap();
    sealed.extend(wires(&tx(host).into_commit()));
    assert_eq!(sealed.len(), 2, "every store has its own");
}
