//! One call to many chats.

use std::collections::BTreeMap;

use super::*;
use crate::store::rows::broadcast::{
    self as rows, Failure, FailureKind, HeadRow, OpenRow, ProgressRow, Recipient, To, Wanted, WishRow,
};

const JOB: u64 = 40;

fn head(total: u64) -> HeadRow {
    HeadRow {
        name: "news".to_owned(),
        owner: String::new(),
        method: "sendMessage".to_owned(),
        params: r#"{"text":"news"}"#.to_owned(),
        to: To::Listed { total, pieces: u32::try_from(total.div_ceil(rows::PIECE as u64)).unwrap() },
        delivery: Delivery::AtMostOnce,
        paid: false,
        created: 1,
    }
}

impl Bench {
    /// Begins a broadcast to these chats.
    fn broadcast(&self, chats: impl IntoIterator<Item = i64>, change: impl FnOnce(&mut HeadRow)) {
        let recipients: Vec<_> = chats.into_iter().map(|chat| Recipient::Chat(ChatId(chat))).collect();
        let mut head = head(recipients.len() as u64);
        change(&mut head);
        let mut ops: Vec<Op> = rows::pieces(BOT, JOB, 0, &recipients).collect();
        ops.push(Op::Put { key: rows::head_key(BOT, JOB), value: head.encode() });
        self.blocking(|store| async move {
            drop(store.commit(Commit { ops, ..Commit::default() }).await.unwrap());
        });
        self.wish(Wanted::Run, 0);
    }

    fn wish(&self, wanted: Wanted, most: u64) {
        let key = rows::wish_key(BOT, JOB);
        let number = self.store.get(&key).unwrap().map_or(0, |row| WishRow::decode(&row).unwrap().number + 1);
        let ops = vec![Op::Put { key, value: WishRow { wanted, number, most }.encode() }];
        self.blocking(|store| async move {
            store.commit(Commit { ops, ..Commit::default() }).await.unwrap().durable().await.unwrap();
        });
        self.sender.broadcasts_changed();
    }

    fn progress(&self) -> ProgressRow {
        let row = self.store.get(&rows::progress_key(BOT, JOB)).unwrap();
        row.map_or_else(|| ProgressRow::begun(head(0).to), |row| ProgressRow::decode(&row).unwrap())
    }

    fn failures(&self) -> Vec<Failure> {
        let pages = self.store.scan_prefix(&rows::failures_prefix(BOT, JOB), usize::MAX).unwrap();
        pages.iter().flat_map(|(_, page)| rows::decode_failures(page).unwrap()).collect()
    }

    fn open(&self) -> Vec<OpenRow> {
        let open = self.store.scan_prefix(&rows::open_prefix(BOT, JOB), usize::MAX).unwrap();
        open.iter().map(|(_, row)| OpenRow::decode(row).unwrap()).collect()
    }

    /// How often each chat got it, as far as Telegram took it up.
    fn news(&self) -> BTreeMap<i64, usize> {
        let mut news = BTreeMap::new();
        for seen in self.seen().iter().filter(|seen| seen.text == "news") {
            *news.entry(seen.chat).or_default() += 1;
        }
        news
    }

    /// Waits, in broadcasts' time, for something that the store has a part in.
    #[expect(clippy::disallowed_methods, reason = "the store's thread knows nothing of the paused clock")]
    async fn till(&self, is_so: impl Fn(&Self) -> bool) {
        for _ in 0..10_000 {
            if is_so(self) {
                return;
            }
            std::thread::sleep(MS);
            sleep(SECOND).await;
        }
        panic!("it did not happen: {:?}", self.progress());
    }

    /// Until nothing is under way.
    async fn quiet(&self) {
        sleep(SECOND).await;
        self.till(|bench| bench.open().iter().all(|open| open.begun == 0)).await;
        self.blocking(|store| async move { drop(store.commit(Commit::default()).await) });
    }

    /// Until the host has paused it, and nothing is under way.
    async fn stopped(&self) {
        self.till(|bench| bench.progress().stopped.is_some()).await;
        self.quiet().await;
    }

    async fn ended(&self) -> ProgressRow {
        self.till(|bench| bench.progress().ended != 0).await;
        self.blocking(|store| async move { drop(store.commit(Commit::default()).await) });
        self.progress()
    }
}

fn blocked() -> Answer {
    error(403, "Forbidden: bot was blocked by the user")
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_chats_get_it_once_each_and_replies_do_not_wait() {
    let bench = bench(SendSettings { overall_per_second: 0.0, ..SendSettings::default() }, |_, params, times| {
        match params["chat_id"].as_i64().unwrap() {
            chat if chat % 20 == 7 => blocked(),
            // Never three in ten seconds, which would pause all bulk.
            chat if chat % 33 == 5 && times == 0 => flood(if chat % 5 == 0 { 600 } else { 3 }),
            _ => ok(),
        }
    });
    bench.start();
    bench.broadcast(1..=10_000, |_| ());
    let mut asked = Vec::new();
    for n in 0..40_i64 {
        sleep(2 * SECOND).await;
        asked.push((20_000 + n, bench.telegram.begun.elapsed()));
        bench.say(20_000 + n, &["reply"]);
        assert!(bench.open().len() < 350, "only a few are in hand: {}", bench.open().len());
    }
    let progress = bench.ended().await;
    assert_eq!((progress.sent, progress.gone, progress.refused, progress.unknown), (9_500, 500, 0, 0));
    assert_eq!((progress.total, progress.taken), (10_000, 10_000));

    let news = bench.news();
    assert_eq!(news.len(), 10_000);
    for (chat, times) in news {
        let flooded = chat % 20 != 7 && chat % 33 == 5;
        assert_eq!(times, if flooded { 2 } else { 1 }, "chat {chat}");
    }
    let failures = bench.failures();
    assert_eq!(failures.len(), 500);
    assert!(failures.iter().all(|failure| failure.kind == FailureKind::Gone && failure.reason.contains("blocked")));
    for (chat, at) in asked {
        let waited = bench.times(chat)[0] - at;
        assert!(waited < 100 * MS, "the reply in {chat} waited for {waited:?}");
    }
    let times: Vec<_> = bench.seen().iter().filter(|seen| seen.text == "news").map(|seen| seen.at).collect();
    assert!(times.windows(26).all(|window| window[25] - window[0] >= SECOND), "never more than 25 in a second");
    assert_eq!(bench.open(), []);
    let left = bench.store.scan_prefix(&rows::pieces_prefix(BOT, JOB), 1).unwrap();
    assert!(left.is_empty(), "the list is gone");
}

#[tokio::test(start_paused = true)]
async fn a_killed_process_repeats_nothing_and_says_what_it_does_not_know() {
    let first =
        bench(
            UNLIMITED,
            |_, params, _| {
                if params["chat_id"].as_i64() > Some(1_000) { after(3600 * SECOND, ok()) } else { ok() }
            },
        );
    let run = first.start();
    first.broadcast(1..=3_000, |_| ());
    first.till(|bench| bench.seen().len() >= 1_040).await;
    // As by `kill -9`: nothing is written down any more.
    run.abort();
    let before = first.news();
    let second = first.restarted(UNLIMITED, |_, _, _| ok());
    let in_flight: Vec<_> = second.open().into_iter().filter(|open| open.begun != 0).map(|open| open.to).collect();
    assert!(in_flight.len() >= 40 && in_flight.len() <= 100, "{}", in_flight.len());
    second.start();
    let progress = second.ended().await;
    assert_eq!(progress.unknown, in_flight.len() as u64);
    assert_eq!(progress.sent + progress.unknown, 3_000);
    let again = second.news();
    for chat in 1..=3_000 {
        let times = before.get(&chat).copied().unwrap_or(0) + again.get(&chat).copied().unwrap_or(0);
        let is_unknown = in_flight.contains(&Recipient::Chat(ChatId(chat)));
        assert!(times == 1 || (is_unknown && times == 0), "chat {chat}: {times}");
    }
    assert_eq!(second.ledger().len(), in_flight.len());
    let unknown: Vec<_> = second.failures().into_iter().map(|failure| (failure.to, failure.kind)).collect();
    assert_eq!(unknown, in_flight.iter().map(|to| (to.clone(), FailureKind::Unknown)).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn who_wants_it_at_least_once_gets_it_again_after_a_kill() {
    let first = bench(UNLIMITED, |_, _, _| after(3600 * SECOND, ok()));
    let run = first.start();
    first.broadcast(1..=10, |head| head.delivery = Delivery::AtLeastOnce);
    first.till(|bench| bench.seen().len() == 10).await;
    run.abort();
    let second = first.restarted(UNLIMITED, |_, _, _| ok());
    second.start();
    let progress = second.ended().await;
    assert_eq!((progress.sent, progress.unknown, second.news().len()), (10, 0, 10));
}

#[tokio::test(start_paused = true)]
async fn a_pause_holds_over_a_restart_and_a_cancel_is_the_end() {
    let first = bench(SendSettings::default(), |_, _, _| ok());
    let run = first.start();
    first.broadcast(1..=2_500, |_| ());
    first.till(|bench| bench.seen().len() > 100).await;
    first.wish(Wanted::Pause, 0);
    first.quiet().await;
    let n_seen = first.seen().len();
    sleep(60 * SECOND).await;
    assert_eq!(first.seen().len(), n_seen, "nothing goes out");
    first.stop.send_replace(true);
    run.await.unwrap();
    let second = first.restarted(SendSettings::default(), |_, _, _| ok());
    second.start();
    sleep(60 * SECOND).await;
    assert_eq!(second.seen().len(), 0);
    second.wish(Wanted::Run, 0);
    second.till(|bench| bench.seen().len() > 100).await;
    second.wish(Wanted::Cancel, 0);
    let progress = second.ended().await;
    assert_eq!(progress.sent, (n_seen + second.seen().len()) as u64, "what was under way has ended");
    assert_eq!((progress.unknown, progress.total), (0, 2_500));
    second
        .till(|bench| {
            let rows = bench.store.scan_prefix(&rows::job_prefix(BOT, JOB), usize::MAX).unwrap();
            rows.len() == 3 // head, wish, progress
        })
        .await;
    sleep(60 * SECOND).await;
    assert_eq!(progress.sent, (n_seen + second.seen().len()) as u64);
}

#[tokio::test(start_paused = true)]
async fn a_text_that_nobody_can_get_stops_early_and_goes_on_when_it_is_told_to() {
    let mended = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let is_mended = mended.clone();
    let bench = bench(UNLIMITED, move |_, _, _| match is_mended.load(std::sync::atomic::Ordering::Relaxed) {
        false => error(400, "Bad Request: can't parse entities"),
        true => ok(),
    });
    bench.start();
    bench.broadcast(1..=1_000, |_| ());
    bench.stopped().await;
    sleep(60 * SECOND).await;
    let progress = bench.progress();
    let (_, why) = progress.stopped.clone().unwrap();
    assert!(why.contains("can't parse entities"), "{why}");
    assert!((20..=120).contains(&progress.refused), "{progress:?}");
    mended.store(true, std::sync::atomic::Ordering::Relaxed);
    bench.wish(Wanted::Run, 0);
    let ended = bench.ended().await;
    assert_eq!((ended.sent, ended.refused), (1_000 - progress.refused, progress.refused));
    assert!(bench.news().values().all(|times| *times == 1));
}

#[tokio::test(start_paused = true)]
async fn paid_calls_have_a_rate_of_their_own_and_never_cost_more_than_they_may() {
    let settings = SendSettings { paid_per_second: 500.0, ..SendSettings::default() };
    let play = |_: &str, params: &Value, _: usize| {
        assert_eq!(params["allow_paid_broadcast"], true);
        if params["chat_id"].as_i64().unwrap() % 10 == 0 { blocked() } else { ok() }
    };
    let first = bench(settings, play);
    let run = first.start();
    let paid = |head: &mut HeadRow| {
        head.params = r#"{"allow_paid_broadcast":true,"text":"news"}"#.to_owned();
        head.paid = true;
    };
    first.broadcast(1..=3_000, paid);
    first.wish(Wanted::Run, 1_000);
    first.stopped().await;
    let (progress, news) = (first.progress(), first.news());
    assert!(progress.stopped.unwrap().1.contains("100 Stars"));
    assert!(progress.spent <= 1_000 && progress.sent == progress.spent && progress.sent > 900, "{}", progress.sent);
    let times: Vec<_> = first.seen().iter().map(|seen| seen.at).collect();
    assert!(times.windows(501).all(|window| window[500] - window[0] >= SECOND));
    assert!(times[times.len() - 1] - times[0] < 60 * SECOND, "far faster than bulk");
    first.stop.send_replace(true);
    run.await.unwrap();

    // The cap holds over a restart; a higher one lets it go on.
    let second = first.restarted(settings, play);
    second.start();
    sleep(10 * SECOND).await;
    assert_eq!(second.seen().len(), 0);
    second.wish(Wanted::Run, 5_000);
    let ended = second.ended().await;
    assert_eq!((ended.sent, ended.gone, ended.spent), (2_700, 300, 2_700));
    assert!(second.news().keys().all(|chat| !news.contains_key(chat)));
}

#[tokio::test(start_paused = true)]
async fn a_group_that_moved_gets_it_in_its_new_place_and_a_lost_answer_is_unknown() {
    let bench = bench(UNLIMITED, |_, params, _| match params["chat_id"].as_i64() {
        Some(-5) => answer(
            400,
            json!({ "ok": false, "error_code": 400, "parameters": { "migrate_to_chat_id": -1_005 },
                "description": "Bad Request: group chat was upgraded to a supergroup chat" }),
        ),
        Some(6) => Answer(MS, Err(TransportError::Unknown("reset".to_owned()))),
        _ => ok(),
    });
    bench.start();
    bench.broadcast([-5, 6, 7], |_| ());
    let progress = bench.ended().await;
    assert_eq!((progress.sent, progress.unknown), (2, 1));
    assert_eq!(bench.news(), BTreeMap::from([(-1_005, 1), (-5, 1), (6, 1), (7, 1)]));
    let ledger = bench.ledger();
    assert!(ledger[0].reason.starts_with("broadcast 40: ") && ledger[0].lane == Lane::Chat(ChatId(6)), "{ledger:?}");
}

/// The host knows the supergroup from before, and its lists may be older than that, or hold both ids.
#[tokio::test(start_paused = true)]
async fn who_is_listed_by_an_old_id_gets_it_once_in_his_new_place() {
    const SUPER: i64 = -1_000_000_000_005;
    for (list, sent, gone) in [(vec![-5, 7], 2, 0), (vec![-5, SUPER, 7], 2, 1), (vec![7, SUPER, -5], 2, 1)] {
        let bench = bench(UNLIMITED, |_, _, _| ok());
        let chats = bench.sender.chats().clone();
        bench.blocking(|_| async move { chats.moved(ChatId(-5), ChatId(SUPER)).await.unwrap() });
        bench.start();
        bench.broadcast(list.clone(), |_| ());
        let progress = bench.ended().await;
        assert_eq!((progress.sent, progress.gone), (sent, gone), "{list:?}");
        assert_eq!(bench.news(), BTreeMap::from([(SUPER, 1), (7, 1)]), "{list:?}");
    }
}

/// Nobody has told the host before Telegram refuses the old id.
#[tokio::test(start_paused = true)]
async fn who_is_listed_by_both_ids_gets_it_once_also_where_the_move_is_only_learned_then() {
    for list in [[-5, -1_005], [-1_005, -5]] {
        let bench = bench(UNLIMITED, |_, params, _| match params["chat_id"].as_i64() {
            Some(-5) => answer(
                400,
                json!({ "ok": false, "error_code": 400, "parameters": { "migrate_to_chat_id": -1_005 },
                    "description": "Bad Request: group chat was upgraded to a supergroup chat" }),
            ),
            _ => ok(),
        });
        bench.start();
        bench.broadcast(list, |_| ());
        let progress = bench.ended().await;
        assert_eq!((progress.sent, progress.gone), (1, 1), "{list:?}");
        assert_eq!(bench.news().get(&-1_005), Some(&1), "{list:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_broadcast_keeps_to_the_pace_of_a_group_that_has_moved() {
    const SUPER: i64 = -1_000_000_000_005;
    let bench = bench(SendSettings::default(), |_, _, _| ok());
    let chats = bench.sender.chats().clone();
    bench.blocking(|_| async move { chats.moved(ChatId(-5), ChatId(SUPER)).await.unwrap() });
    bench.start();
    bench.say(SUPER, &["0", "1", "2", "3", "4"]);
    bench.until(|bench| bench.texts(SUPER).len() == 5).await;
    bench.broadcast([-5], |_| ());
    bench.ended().await;
    let times = bench.times(SUPER);
    assert!(times.len() == 6 && times[5] - times[4] >= 2 * SECOND, "{times:?}");
}

#[tokio::test(start_paused = true)]
async fn a_chat_that_is_busy_or_flooded_holds_up_nobody_else() {
    let bench = bench(
        SendSettings::default(),
        |_, params, _| {
            if params["chat_id"].as_i64() <= Some(2) { flood(6_000) } else { ok() }
        },
    );
    bench.start();
    bench.broadcast(1..=1_000, |_| ());
    bench.till(|bench| bench.progress().sent == 998).await;
    assert!(bench.telegram.begun.elapsed() < 600 * SECOND, "{:?}", bench.telegram.begun.elapsed());
    let open = bench.open();
    assert!(open.len() == 2 && open.iter().all(|open| open.begun == 0 && open.not_before > 0), "{open:?}");
}

#[tokio::test(start_paused = true)]
async fn all_known_chats_are_found_counted_and_those_that_are_gone_are_skipped_the_next_time() {
    use crate::store::rows::chat::{self, ChatRow};
    let play = |_: &str, params: &Value, _: usize| {
        if params["chat_id"].as_i64().unwrap() % 100 == 0 { blocked() } else { ok() }
    };
    let bench = bench(UNLIMITED, play);
    let put = |id: i64| Op::Put { key: chat::key(BOT, ChatId(id)), value: ChatRow::default().encode() };
    let ops = (-500..=500).filter(|id| *id != 0).map(put).collect();
    bench.blocking(|store| async move { drop(store.commit(Commit { ops, ..Commit::default() }).await.unwrap()) });
    bench.start();
    bench.broadcast([], |head| head.to = To::KnownChats);
    let progress = bench.ended().await;
    assert_eq!((progress.total, progress.sent, progress.gone), (1_000, 990, 10));
    assert!(bench.news().values().all(|times| *times == 1));

    let again = bench.restarted(UNLIMITED, play);
    let rows = again.store.scan_prefix(&rows::job_prefix(BOT, JOB), usize::MAX).unwrap();
    let ops = rows.into_iter().map(|(key, _)| Op::Delete { key: key.to_vec() }).collect();
    again.blocking(|store| async move { drop(store.commit(Commit { ops, ..Commit::default() }).await.unwrap()) });
    again.start();
    again.broadcast([100, 101, 7_777], |_| ());
    let progress = again.ended().await;
    assert_eq!((progress.sent, progress.gone), (2, 1));
    assert_eq!(again.news().keys().copied().collect::<Vec<_>>(), [101, 7_777]);
}

#[tokio::test(start_paused = true)]
async fn a_plugins_broadcast_keeps_to_its_minute_and_loses_nobody() {
    let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
    let counted = recorder.handle();
    let _counting = metrics::set_default_local_recorder(&recorder);
    let bench = bench(UNLIMITED, |_, _, _| ok());
    bench.sender.limit_bulk([(PluginName::new("news"), 100)].into());
    bench.start();
    bench.broadcast(1..=350, |head| head.owner = "news".to_owned());
    let progress = bench.ended().await;
    assert_eq!((progress.sent, bench.news().len()), (350, 350));
    let times: Vec<_> = bench.seen().iter().map(|seen| seen.at).collect();
    // Between its turn and the call lies the disk, which the paused clock makes slow.
    let least = times.windows(101).map(|window| window[100] - window[0]).min();
    assert!(least >= Some(45 * SECOND), "never more than 100 in a minute: {least:?}");
    assert!(times[349] - times[0] < 240 * SECOND, "and no slower than that: {:?}", times[349] - times[0]);
    let series = "botyard_plugin_limits_total{plugin=\"news\",limit=\"bulk_per_minute\"} ";
    assert!(counted.render().contains(series), "{}", counted.render());
}

#[tokio::test(start_paused = true)]
async fn what_an_operator_sends_and_what_has_no_limit_is_not_slowed_down() {
    for (owner, most) in [("", 5), ("news", 0), ("other", 5)] {
        let bench = bench(UNLIMITED, |_, _, _| ok());
        bench.sender.limit_bulk([(PluginName::new("news"), most)].into());
        bench.start();
        bench.broadcast(1..=100, |head| head.owner = owner.to_owned());
        bench.ended().await;
        let times: Vec<_> = bench.seen().iter().map(|seen| seen.at).collect();
        assert!(times[99] - times[0] < 30 * SECOND, "{owner:?}");
    }
}
