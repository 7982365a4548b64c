//! Plugins against guests that do one wrong thing each.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;

use self::guest::Guest;
use super::*;
use crate::domain::{BotId, ChatId, Conversation, EventLane, Lane, PluginName};
use crate::store::rows::{expiry, fsm, kv, outbox, timer};
use crate::store::{Store, Tx};

mod guest;
mod load;
mod misbehave;
mod samples;
mod state;
mod wasi;

const BOT: BotId = BotId(42);
const NOW: u64 = 1_700_000_000_000;

fn conversation() -> Conversation {
    Conversation { chat: Some(ChatId(7)), ..Default::default() }
}

fn name() -> PluginName {
    PluginName::new("shop")
}

fn settings() -> Settings {
    Settings {
        config: serde_json::json!({}),
        secrets: Default::default(),
        grants: Grants::default(),
        limits: Limits::default(),
        locales_dir: None,
        default_locale: "en".into(),
    }
}

fn limited(limits: Limits) -> Settings {
    Settings { limits, ..settings() }
}

fn invocation() -> Invocation {
    let timer = Timer { id: 1, name: "t".into(), payload: vec![], due: NOW };
    Invocation {
        id: 9,
        attempt: 1,
        now: NOW,
        seed: 1,
        conversation: conversation(),
        lane: EventLane::whole(Lane::Chat(ChatId(7))),
        bot: BOT,
        matched: vec![],
        event: Event::Timer(timer),
        journal: Journal::default(),
        standing: Standing::default(),
        tape: None,
        failed: None,
        listener: Default::default(),
    }
}

/// Answers every call with its number, after a while.
#[derive(Default)]
struct Telegram {
    made: Mutex<Vec<String>>,
    finished: Mutex<usize>,
    takes: Duration,
}

impl Outbound for Telegram {
    fn call(&self, _: &PluginName, method: &str, _: String, _: Duration) -> BoxFuture<'_, Result<String, CallError>> {
        self.made.lock().unwrap().push(method.to_owned());
        let number = self.made.lock().unwrap().len();
        Box::pin(async move {
            tokio::time::sleep(self.takes).await;
            *self.finished.lock().unwrap() += 1;
            Ok(number.to_string())
        })
    }

    fn keep_acting(&self, _: String) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

/// A plugin that has this key, and does nothing.
pub(crate) fn keyed(engine: &Engine, key: &str) -> Arc<Plugin> {
    keyed_as(engine, &name(), key)
}

/// The same under another name.
pub(crate) fn keyed_as(engine: &Engine, name: &PluginName, key: &str) -> Arc<Plugin> {
    engine.load(name.clone(), &Guest { key, ..Default::default() }.module(), settings()).unwrap()
}

/// An engine and a store, for one test.
struct Bench {
    engine: Engine,
    store: Store,
    telegram: Arc<Telegram>,
    folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        Self::with_runs(8)
    }

    fn with_runs(max_runs: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let engine = Engine::new(EngineSettings { max_runs, cache_dir: None, http: HttpClient::new([]) }).unwrap();
        let store = Store::open(&folder.path().join("store")).unwrap();
        Self { engine, store, telegram: Arc::default(), folder }
    }

    fn load(&self, guest: Guest<'_>, settings: Settings) -> Arc<Plugin> {
        self.engine.load(name(), &guest.module(), settings).unwrap()
    }

    async fn run(&self, plugin: &Plugin, invocation: &Invocation) -> RunReport {
        plugin.run(invocation, Tx::new(&self.store), self.telegram.clone()).await
    }

    /// Runs a guest with this `handle`, and commits what it leaves.
    async fn handle(&self, handle: &str, settings: Settings) -> Result<Verdict, RunError> {
        let plugin = self.load(Guest { handle, ..Default::default() }, settings);
        self.run_and_commit(&plugin).await
    }

    async fn run_and_commit(&self, plugin: &Plugin) -> Result<Verdict, RunError> {
        let report = self.run(plugin, &invocation()).await;
        drop(self.store.commit(report.tx.into_commit()).await.unwrap());
        report.result
    }
}

/// Two writes, a queued call and a timer.
const EFFECTS: &str = "
    (call $increment (i32.const 0) (i64.const 0) (global.get $key) (global.get $key_len) (i64.const 5) (global.get $answer))
    (call $fsm_set (global.get $state) (global.get $state_len) (i32.const 1) (global.get $state_bytes)
      (global.get $state_bytes_len) (i32.const 1) (i64.const 60) (global.get $answer))
    (call $enqueue (global.get $method) (global.get $method_len) (global.get $params) (global.get $params_len)
      (i32.const 1) (i32.const 1) (i32.const 0) (i32.const 0) (global.get $answer))
    (call $after (global.get $timer) (global.get $timer_len) (i64.const 1000) (global.get $key) (global.get $key_len)
      (global.get $answer))";

fn rows(store: &Store) -> usize {
    store.range(&[1], &[u8::MAX], 100).unwrap().len()
}

#[tokio::test]
async fn what_a_run_asks_for_comes_true_together() {
    let bench = Bench::new();
    assert_eq!(bench.handle(&format!("{EFFECTS} (global.get $done)"), settings()).await, Ok(Verdict::Done));
    let read = |key: Vec<u8>| bench.store.get(&key).unwrap().unwrap();

    let value = kv::ValueRow::decode(&read(kv::key(BOT, &name(), kv::Scope::Plugin, "counter"))).unwrap();
    assert_eq!((value.bytes.as_slice(), value.expires), (&b"5"[..], 0));
    let state = fsm::StateRow::decode(&read(fsm::key(BOT, &name(), &conversation()))).unwrap();
    assert_eq!((state.name.as_str(), state.version, state.expires), ("confirm", 1, NOW + 60_000));
    assert_eq!(state.bytes, b"abc");
    let id = 9 * 64;
    let row = timer::TimerRow::decode(&read(timer::key(BOT, &name(), NOW + 1_000, id))).unwrap();
    assert_eq!(
        (row.name.as_str(), row.payload.as_slice(), row.lane),
        ("remind", &b"counter"[..], EventLane::whole(Lane::Chat(ChatId(7))))
    );
    assert_eq!(read(timer::index_key(BOT, &name(), id)), (NOW + 1_000).to_be_bytes().as_slice());
    let queued = bench.store.scan_prefix(&outbox::lane_prefix(BOT, Lane::Chat(ChatId(7))), 10).unwrap();
    let call = outbox::OutboxRow::decode(&queued[0].1).unwrap();
    assert_eq!((call.method.as_str(), call.event, call.priority), ("sendMessage", 9, outbox::Priority::Normal));
    assert_eq!(call.delivery, outbox::Delivery::AtMostOnce);
    assert_eq!((queued.len(), call.params.as_str()), (1, r#"{"chat_id":7,"text":"hi"}"#));
}

#[tokio::test]
async fn only_done_leaves_anything_behind() {
    let bench = Bench::new();
    let before = rows(&bench.store);
    for (end, expect) in [
        ("(global.get $pass)", Ok(Verdict::Pass)),
        ("(global.get $refused)", Err(RunError::Refused { message: "no such order".into(), retry: true })),
        ("(global.get $refused_for_good)", Err(RunError::Refused { message: "no such order".into(), retry: false })),
    ] {
        assert_eq!(bench.handle(&format!("{EFFECTS} {end}"), settings()).await, expect);
        assert_eq!(rows(&bench.store), before, "{end}");
    }
    let trapped = bench.handle(&format!("{EFFECTS} unreachable"), settings()).await;
    assert!(matches!(trapped, Err(RunError::Trapped { .. })), "{trapped:?}");
    assert_eq!(rows(&bench.store), before);
}

const CALL: &str = "(call $call (global.get $method) (global.get $method_len) (global.get $params)
    (global.get $params_len) (global.get $answer))";

#[tokio::test]
async fn another_attempt_does_not_repeat_a_direct_call() {
    let bench = Bench::new();
    let plugin = bench.load(Guest { handle: &format!("{CALL} {CALL} unreachable"), ..Default::default() }, settings());
    let invocation = invocation();
    let first = bench.run(&plugin, &invocation).await;
    assert_eq!((first.calls, bench.telegram.made.lock().unwrap().len()), (2, 2));
    let second = bench.run(&plugin, &Invocation { attempt: 2, ..invocation }).await;
    assert_eq!((second.calls, bench.telegram.made.lock().unwrap().len()), (0, 2));
}

#[tokio::test]
async fn calls_are_counted_and_granted() {
    // The guest traps unless the answer is an error: 1 in the first byte.
    let refused =
        "(if (i32.ne (i32.load8_u (global.get $answer)) (i32.const 1)) (then unreachable)) (global.get $done)";
    let bench = Bench::new();
    let few = limited(Limits { calls: 1, ..Limits::default() });
    assert_eq!(bench.handle(&format!("{CALL} {CALL} {refused}"), few).await, Ok(Verdict::Done));
    assert_eq!(bench.telegram.made.lock().unwrap().len(), 1);

    let none = Settings { grants: Grants { methods: Some(vec!["answer*".into()]), ..Grants::default() }, ..settings() };
    assert_eq!(bench.handle(&format!("{CALL} {refused}"), none).await, Ok(Verdict::Done));
    assert_eq!(bench.telegram.made.lock().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn nothing_of_a_run_outlives_it() {
    let mut bench = Bench::new();
    bench.telegram = Arc::new(Telegram { takes: Duration::from_secs(60), ..Default::default() });
    let limits = Limits { time: Duration::from_secs(5), ..Limits::default() };
    let result = bench.handle(&format!("{CALL} (global.get $done)"), limited(limits)).await;
    assert_eq!(result, Err(RunError::OutOfTime(Duration::from_secs(5))));
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!((bench.telegram.made.lock().unwrap().len(), *bench.telegram.finished.lock().unwrap()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_run_beyond_the_places_waits_for_one() {
    let bench = Bench::with_runs(2);
    let plugin = bench.load(
        Guest { handle: "(call $sleep (i64.const 1000)) (global.get $done)", ..Default::default() },
        limited(Limits { time: Duration::from_secs(2), ..Limits::default() }),
    );
    let start = tokio::time::Instant::now();
    let invocation = invocation();
    let runs = (0..10).map(|_| bench.run(&plugin, &invocation));
    let results = futures_util::future::join_all(runs).await;
    assert!(results.iter().all(|report| report.result == Ok(Verdict::Done)), "waiting is not the plugin's time");
    assert_eq!(start.elapsed().as_secs(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_run_gives_its_place_back() {
    let bench = Bench::with_runs(1);
    let sleeper = Guest { handle: "(call $sleep (i64.const 1000)) (global.get $done)", ..Default::default() };
    let plugin = bench.load(sleeper, settings());
    for _ in 0..20 {
        let invocation = invocation();
        let run = bench.run(&plugin, &invocation);
        assert!(tokio::time::timeout(Duration::from_millis(10), run).await.is_err());
    }
    assert_eq!(bench.run(&plugin, &invocation()).await.result, Ok(Verdict::Done));
}

#[test]
fn a_run_can_be_spawned() {
    fn sendable<T: Send>(_: &T) {}
    let bench = Bench::new();
    let plugin = bench.load(Guest::default(), settings());
    let invocation = invocation();
    sendable(&bench.run(&plugin, &invocation));
}
