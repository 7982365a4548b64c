//! Every limit that a host function keeps: what the plugin is told, and what is counted.

use super::*;
use crate::plugin::bindings::botyard::http::client::{self, Host as _};
use crate::plugin::bindings::botyard::jobs::jobs;
use crate::plugin::{JobLimits, Limit};
use crate::store::rows::counted::Ledger;

/// Answers every call.
struct Calls;

impl Outbound for Calls {
    fn call(&self, _: &PluginName, _: &str, _: String, _: Duration) -> BoxFuture<'_, Result<String, CallError>> {
        Box::pin(std::future::ready(Ok("true".to_owned())))
    }

    fn keep_acting(&self, _: String) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

const NOW: u64 = 1_000_000;
const PARAMS: &str = r#"{"chat_id":1,"text":"hi"}"#;

fn options(long_text: bot_api::LongText) -> bot_api::Options {
    bot_api::Options {
        priority: bot_api::Priority::Normal,
        delivery: bot_api::Delivery::AtLeastOnce,
        long_text,
        bad_markup: bot_api::BadMarkup::Refuse,
    }
}

fn queue(host: &mut Host) -> Result<(), bot_api::CallError> {
    host.enqueue("sendMessage".into(), PARAMS.into(), options(bot_api::LongText::Whole)).unwrap()
}

async fn call(host: &mut Host) -> Result<String, bot_api::CallError> {
    host.call("sendMessage".into(), PARAMS.into()).await.unwrap()
}

async fn fetch(host: &mut Host, method: &str, body: usize) -> Result<(), String> {
    let request = client::Request {
        method: method.into(),
        // Nobody listens there.
        url: "http://127.0.0.1:9/".into(),
        headers: vec![],
        body: vec![0; body],
        timeout_ms: None,
    };
    host.send(request).await.unwrap().map(drop).map_err(|error| format!("{error:?}"))
}

impl Bench {
    fn limited(&self, limits: Limits) -> Host {
        self.limited_by(limits, Arc::default())
    }

    fn limited_by(&self, limits: Limits, allowance: Arc<crate::plugin::allowance::Allowance>) -> Host {
        let here: Vec<crate::domain::OriginPattern> = vec!["http://127.0.0.1:9".parse().unwrap()];
        let grants = Grants { http: here.clone(), ..Grants::default() };
        let context = Context { limits, allowance, http: here, grants, ..context("shop") };
        self.host(context, NOW, Tx::new(&self.store), Arc::new(Calls))
    }
}

/// What the plugin is told last, where it is told anything.
async fn run_into(limit: Limit, host: &mut Host) -> Option<String> {
    let told = |result: Result<(), bot_api::CallError>| result.map_err(|error| format!("{error:?}"));
    let result = match limit {
        Limit::State => {
            let state = fsm::State { name: "s".into(), version: 1, bytes: vec![0; 200] };
            fsm::Host::set(host, state, None).unwrap()
        }
        Limit::Value => {
            let long = format!(r#"{{"chat_id":1,"text":"{}"}}"#, "x".repeat(200));
            let options = options(bot_api::LongText::Whole);
            let queued = host.enqueue("sendMessage".into(), long, options);
            assert!(told(queued.unwrap()).unwrap_err().contains("`limits.value` of [plugins.shop] in bot.toml"));
            kv::Host::set(host, kv::Scope::Plugin, "k".into(), vec![0; 200], None).unwrap()
        }
        Limit::Stored => {
            // The key counts too.
            let state = fsm::State { name: "s".into(), version: 1, bytes: vec![0; 40] };
            fsm::Host::set(host, state, None).unwrap().unwrap();
            kv::Host::set(host, kv::Scope::Plugin, "k".into(), vec![0; 40], None).unwrap()
        }
        Limit::Calls => {
            call(host).await.unwrap();
            call(host).await.unwrap();
            told(call(host).await.map(drop))
        }
        Limit::CallsPerMinute => {
            // Direct and queued ones together; the third would be too many for one run, whatever others do.
            call(host).await.unwrap();
            queue(host).unwrap();
            queue(host).unwrap();
            told(queue(host))
        }
        Limit::Log | Limit::LogPerMinute => {
            for _ in 0..4 {
                host.emit(log::Level::Warn, "x".repeat(100), vec![]).unwrap();
            }
            return None;
        }
        Limit::HttpBytes => fetch(host, "POST", 200).await,
        Limit::HttpCalls | Limit::HttpPerMinute => {
            let first = fetch(host, "GET", 0).await.unwrap_err();
            assert!(first.contains("Unreachable"), "{first}");
            let second = fetch(host, "GET", 0).await.unwrap_err();
            assert!(second.contains("Unreachable") || limit == Limit::HttpPerMinute, "{second}");
            fetch(host, "GET", 0).await
        }
        Limit::HttpBytesPerMinute => fetch(host, "POST", 90).await,
        Limit::Effects => {
            queue(host).unwrap();
            kv::Host::set(host, kv::Scope::Plugin, "a".into(), vec![0], None).unwrap().unwrap();
            kv::Host::set(host, kv::Scope::Plugin, "b".into(), vec![0], None).unwrap()
        }
        Limit::Data => {
            // What is read counts too, and that nothing was found; there the interface has no error.
            kv::Host::set(host, kv::Scope::Plugin, "a".into(), vec![0; 500], None).unwrap().unwrap();
            let trap = kv::Host::get(host, kv::Scope::Plugin, "b".into()).unwrap_err();
            Err(trap.to_string())
        }
        Limit::Timers => {
            host.after("a".into(), 5, vec![]).unwrap().unwrap();
            host.after("b".into(), 5, vec![]).unwrap().unwrap();
            host.every("c".into(), 5_000, timers::Misfire::Once, timers::Owner::Plugin, vec![]).unwrap().map(drop)
        }
        Limit::Queued => {
            queue(host).unwrap();
            told(queue(host))
        }
        Limit::JobsWaiting => {
            let options = || jobs::Options { delay_ms: 0, unique_key: None };
            jobs::Host::enqueue(host, "a".into(), vec![], options()).unwrap().unwrap();
            let full = jobs::Host::enqueue(host, "a".into(), vec![], options()).unwrap();
            assert!(matches!(full, Err(jobs::JobError::Full(_))));
            full.map(drop).map_err(|error| format!("{error:?}"))
        }
        Limit::Memory | Limit::Cpu | Limit::Time | Limit::BulkPerMinute | Limit::Upload | Limit::Download => {
            unreachable!("kept elsewhere")
        }
    };
    Some(result.unwrap_err())
}

#[test]
fn every_limit_names_its_line_and_is_counted() {
    let small = Limits {
        state: 100,
        value: 100,
        stored: 120,
        calls: 2,
        calls_per_minute: 3,
        log: 400,
        log_per_minute: 300,
        http_bytes: 100,
        http_calls: 2,
        http_per_minute: 1,
        http_bytes_per_minute: 150,
        effects: 2,
        data: 600,
        ..Limits::default()
    };
    let usual = Limits::default();
    for (limit, limits) in [
        (Limit::State, Limits { state: small.state, ..usual.clone() }),
        (Limit::Value, Limits { value: small.value, ..usual.clone() }),
        (Limit::Stored, Limits { stored: small.stored, ..usual.clone() }),
        (Limit::Calls, Limits { calls: small.calls, ..usual.clone() }),
        (Limit::CallsPerMinute, Limits { calls_per_minute: small.calls_per_minute, ..usual.clone() }),
        (Limit::Log, Limits { log: small.log, ..usual.clone() }),
        (Limit::LogPerMinute, Limits { log_per_minute: small.log_per_minute, ..usual.clone() }),
        (Limit::HttpBytes, Limits { http_bytes: small.http_bytes, ..usual.clone() }),
        (Limit::HttpCalls, Limits { http_calls: small.http_calls, ..usual.clone() }),
        (Limit::HttpPerMinute, Limits { http_per_minute: small.http_per_minute, ..usual.clone() }),
        (Limit::HttpBytesPerMinute, Limits { http_bytes: 100, http_bytes_per_minute: 150, ..usual.clone() }),
        (Limit::Effects, Limits { effects: small.effects, ..usual.clone() }),
        (Limit::Data, Limits { data: small.data, ..usual.clone() }),
        // The bench's event is a timer that rang, so another one has its place.
        (Limit::Timers, Limits { timers: 1, ..usual.clone() }),
        (Limit::Queued, Limits { queued: 100, ..usual.clone() }),
        (Limit::JobsWaiting, Limits { jobs: JobLimits { waiting: 1, ..JobLimits::default() }, ..usual.clone() }),
    ] {
        let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let bench = Bench::new();
        let told = metrics::with_local_recorder(&recorder, || {
            tracing::subscriber::with_default(Arc::new(Lines::default()), || {
                runtime.block_on(async {
                    let mut host = bench.limited(limits);
                    run_into(limit, &mut host).await
                })
            })
        });
        let key = limit.key();
        let section = if limit == Limit::JobsWaiting { "" } else { "limits." };
        let place = format!("`{section}{key}` of [plugins.shop] in bot.toml");
        assert!(told.as_ref().is_none_or(|told| told.contains(&place)), "{key}: {told:?}");
        let rendered = recorder.handle().render();
        let series = format!("botyard_plugin_limits_total{{plugin=\"shop\",limit=\"{key}\"}} ");
        assert!(rendered.contains(&series), "{key}: {rendered}");
        assert_eq!(rendered.matches("limit=").count(), 1, "{key} and no other: {rendered}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_finds_the_calls_of_a_minute_used_up_is_told_for_how_long() {
    let bench = Bench::new();
    let limits = Limits { calls_per_minute: 3, ..Limits::default() };
    let mut first = bench.limited(limits.clone());
    let allowance = first.context.allowance.clone();
    queue(&mut first).unwrap();
    call(&mut first).await.unwrap();
    let run = first.run.as_mut().unwrap();
    assert!(run.short.is_none());
    // A text that becomes two calls counts for two.
    let mut second = bench.limited_by(limits.clone(), allowance.clone());
    let long = format!(r#"{{"chat_id":1,"text":"{}"}}"#, "word ".repeat(1_000));
    let split = second.enqueue("sendMessage".into(), long, options(bot_api::LongText::Split)).unwrap();
    assert!(matches!(split, Err(bot_api::CallError::Flooded(60))), "{split:?}");
    assert_eq!(second.run.as_ref().unwrap().short, Some((Limit::CallsPerMinute, Duration::from_secs(60))));
    assert!(queue(&mut second).is_ok());
    // What was queued and not committed is given back; what was called stays called.
    drop(first);
    drop(second);
    let mut third = bench.limited_by(limits.clone(), allowance.clone());
    assert!(queue(&mut third).is_ok() && queue(&mut third).is_ok());
    assert!(queue(&mut third).is_err());
    tokio::time::sleep(Duration::from_secs(60)).await;
    let mut fourth = bench.limited_by(limits, allowance);
    assert!(queue(&mut fourth).is_ok(), "a minute later");
}

#[tokio::test]
async fn bytes_that_a_request_did_not_need_are_given_back() {
    let bench = Bench::new();
    // Room for one request and its longest answer.
    let limits = Limits { http_bytes: 100, http_bytes_per_minute: 150, ..Limits::default() };
    let mut host = bench.limited(limits);
    for _ in 0..3 {
        // Nobody was reached, so nothing was used.
        assert!(fetch(&mut host, "GET", 0).await.unwrap_err().contains("Unreachable"));
    }
}

async fn commit(bench: &Bench, host: Host) {
    let run = host.run.unwrap();
    let mut tx = run.tx;
    run.growth.hold(&mut tx);
    let held = tx.take_held();
    drop(bench.store.commit(tx.into_commit()).await.unwrap());
    drop(held);
}

#[tokio::test]
async fn a_request_too_many_for_any_run_is_denied_and_not_put_off() {
    let bench = Bench::new();
    let limits = Limits { http_per_minute: 2, ..Limits::default() };
    for minute in 0..2 {
        let mut host = bench.limited(limits.clone());
        for _ in 0..2 {
            assert!(fetch(&mut host, "GET", 0).await.unwrap_err().contains("Unreachable"), "in minute {minute}");
        }
        let denied = fetch(&mut host, "GET", 0).await.unwrap_err();
        assert!(denied.contains("Denied") && denied.contains("`limits.http_per_minute` of [plugins.shop]"), "{denied}");
        assert_eq!(host.run.unwrap().short, None, "no waiting would help");
    }
}

/// All of a plugin's timers, whatever set them, and a job's payload.
#[tokio::test]
async fn timers_are_bounded_and_one_that_rang_makes_room_for_the_next() {
    let bench = Bench::new();
    let limits = Limits { timers: 3, stored: 2_000, ..Limits::default() };
    let set = |host: &mut Host, bytes: usize| host.after("t".into(), 5, vec![0; bytes]).unwrap();
    let mut first = bench.limited(limits.clone());
    // The bench's event is a timer that rang.
    let ids: Vec<_> = (0..4).map(|_| set(&mut first, 10).unwrap()).collect();
    let refused = set(&mut first, 10).unwrap_err();
    assert!(refused.contains("`limits.timers` of [plugins.shop] in bot.toml"), "{refused}");
    // Another run at the same time knows of them.
    let mut beside = bench.limited(limits.clone());
    assert!(set(&mut beside, 0).is_ok() && set(&mut beside, 0).is_err());
    drop(beside);
    assert!(first.cancel(ids[0]).unwrap() && set(&mut first, 10).is_ok() && set(&mut first, 10).is_err());
    commit(&bench, first).await;
    let mut second = bench.limited(limits.clone());
    assert!(set(&mut second, 0).is_ok() && set(&mut second, 0).is_err(), "as many as there were");
    assert_eq!(second.cancel_by_name("t".into(), timers::Owner::Conversation).unwrap(), 5);
    let too_large = set(&mut second, 3_000).unwrap_err();
    assert!(too_large.contains("`limits.stored`"), "payloads count: {too_large}");
    let options = jobs::Options { delay_ms: 0, unique_key: None };
    let too_large = jobs::Host::enqueue(&mut second, "j".into(), vec![0; 3_000], options).unwrap().unwrap_err();
    assert!(format!("{too_large:?}").contains("`limits.stored`"), "jobs too: {too_large:?}");
    assert!(set(&mut second, 1_000).is_ok());
    commit(&bench, second).await;
    assert_eq!(bench.store.used(Ledger::Timers, BotId(1), &PluginName::new("shop")), 1);
    let none = Limits { timers: 0, stored: 0, ..limits };
    let mut free = bench.limited(none);
    assert!((0..20).all(|_| set(&mut free, 0).is_ok()), "0 lifts the limit");
}

#[tokio::test]
async fn who_has_too_much_to_send_is_put_off_until_there_is_room() {
    let bench = Bench::new();
    let limits = Limits { queued: 200, ..Limits::default() };
    let mut first = bench.limited(limits.clone());
    assert!(queue(&mut first).is_ok() && queue(&mut first).is_ok());
    let refused = format!("{:?}", queue(&mut first).unwrap_err());
    assert!(refused.contains("this run alone") && refused.contains("`limits.queued` of [plugins.shop]"), "{refused}");
    assert_eq!(first.run.as_ref().unwrap().short, None, "it would be the same another time");
    commit(&bench, first).await;
    let mut second = bench.limited(limits.clone());
    let refused = queue(&mut second).unwrap_err();
    assert!(matches!(&refused, bot_api::CallError::Denied(text) if text.contains("wait to be sent")), "{refused:?}");
    assert!(matches!(second.run.unwrap().short, Some((Limit::Queued, _))));
    let rows = bench.store.scan_prefix(&crate::store::rows::outbox::bot_prefix(BotId(1)), 10).unwrap();
    let ops = rows.into_iter().map(|(key, _)| crate::store::Op::Delete { key: key.to_vec() }).collect();
    drop(bench.store.commit(crate::store::Commit { ops, ..Default::default() }).await.unwrap());
    assert!(queue(&mut bench.limited(limits)).is_ok(), "it is sent");
}

#[tokio::test]
async fn what_direct_calls_say_and_are_answered_is_held_within_the_data_of_a_run() {
    let bench = Bench::new();
    let mut host = bench.limited(Limits { data: 40, ..Limits::default() });
    assert!(call(&mut host).await.is_ok());
    let refused = format!("{:?}", call(&mut host).await.unwrap_err());
    assert!(refused.contains("`limits.data` of [plugins.shop]"), "{refused}");
}

/// What a run wants to keep is counted against what it lets go of, and against what others want that are not done yet.
#[tokio::test]
async fn what_is_stored_is_bounded_for_all_runs_together() {
    let bench = Bench::new();
    let limits = Limits { stored: 1_000, ..Limits::default() };
    let begin = || bench.limited(limits.clone());
    let set = |host: &mut Host, key: &str, bytes: usize| {
        kv::Host::set(host, kv::Scope::Plugin, key.into(), vec![0; bytes], None).unwrap().is_ok()
    };
    let commit = async |host: Host| commit(&bench, host).await;
    let mut first = begin();
    assert!(set(&mut first, "a", 600));
    assert!(!set(&mut first, "b", 600) && set(&mut first, "a", 700) && set(&mut first, "a", 300));
    // It has taken room for 700 meanwhile.
    let mut second = begin();
    assert!(!set(&mut second, "b", 300) && set(&mut second, "b", 100));
    drop(second);
    commit(first).await;
    let kept = bench.store.kept(BotId(1), &PluginName::new("shop"));
    assert!((300..400).contains(&kept), "{kept}");

    let mut third = begin();
    assert!(set(&mut third, "b", 500) && !set(&mut third, "c", 300));
    kv::Host::delete(&mut third, kv::Scope::Plugin, "a".into()).unwrap();
    assert!(set(&mut third, "c", 300), "what goes makes room");
    commit(third).await;

    // A limit that was lowered since: nothing is lost, and there is a way back.
    let mut fourth = bench.limited(Limits { stored: 100, ..limits.clone() });
    assert!(!set(&mut fourth, "b", 501) && set(&mut fourth, "b", 500) && set(&mut fourth, "b", 10));
    drop(fourth);
    assert!(set(&mut bench.limited(Limits { stored: 0, ..limits.clone() }), "d", 5_000), "0 lifts the limit");
    let other = Context { limits: limits.clone(), ..context("other") };
    let mut other = bench.host(other, NOW, Tx::new(&bench.store), Arc::new(Calls));
    assert!(set(&mut other, "a", 900), "each plugin has its own");
}
