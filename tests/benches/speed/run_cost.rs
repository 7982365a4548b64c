//! What one run costs, in this process: the plugin in its fresh instance, the commit, and both.
//!
//! The event is an update of the usual size for `echo`; a commit takes its row out of the inbox and puts the answer
//! into the outbox, as in the host.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use botyard::domain::{BotId, ChatId, Conversation, EventLane, Lane, PluginName};
use botyard::plugin::{
    CallError, Engine, EngineSettings, Event, Grants, HttpClient, Invocation, Journal, Limits, Outbound, Plugin,
    Settings, Update, Verdict,
};
use botyard::store::rows::inbox::{self, InboxRow, StoredEvent};
use botyard::store::rows::outbox::{self, Delivery, Fallback, OutboxRow, Priority};
use botyard::store::{Commit, Op, Store, Tx};
use botyard_tests::{plugin, process};
use tokio::task::JoinSet;

use crate::report::Report;

const BOT: BotId = BotId(4242);
const CHATS: usize = 1_000;
/// As many as the host has under way at once.
const PARALLEL: usize = 256;

/// How far one goes.
#[derive(Clone, Copy)]
enum Until {
    /// The plugin's answer; nothing is written.
    Run,
    /// The commit of what a run writes, without a run.
    CommitApplied,
    CommitDurable,
    Applied,
    Durable,
}

pub(crate) async fn measure(quick: bool) -> Report {
    let bench = Arc::new(Bench::new());
    let share = if quick { 5 } else { 1 };
    let mut report =
        Report::new("run_cost: one run of echo, microseconds", &["one by one", "cpu", "256 at once", "cpu at once"]);
    for (name, until, alone, together) in [
        ("instantiate and call", Until::Run, 20_000, 50_000),
        ("commit, applied", Until::CommitApplied, 5_000, 50_000),
        ("commit, durable", Until::CommitDurable, 500, 50_000),
        ("run and commit, applied", Until::Applied, 5_000, 50_000),
        ("run and commit, durable", Until::Durable, 500, 50_000),
    ] {
        let one_by_one = bench.time(until, alone / share, 1).await;
        let at_once = bench.time(until, together / share, PARALLEL).await;
        report.row(name, [one_by_one.0, one_by_one.1, at_once.0, at_once.1]);
    }
    report.note("`at once` is the time of all of them divided by their number, on all cores together.");
    report
}

struct Bench {
    plugin: Arc<Plugin>,
    store: Store,
    _folder: tempfile::TempDir,
}

/// No call is made.
struct Nobody;

impl Outbound for Nobody {
    fn call(
        &self,
        _: &PluginName,
        _: &str,
        _: String,
        _: Duration,
    ) -> std::pin::Pin<Box<dyn Future<Output = Result<String, CallError>> + Send + '_>> {
        Box::pin(std::future::ready(Err(CallError::Denied("nobody is here".to_owned()))))
    }

    fn keep_acting(&self, _: String) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(std::future::ready(()))
    }
}

impl Bench {
    fn new() -> Self {
        let engine = Engine::new(EngineSettings { max_runs: PARALLEL, cache_dir: None, http: HttpClient::new([]) })
            .expect("an engine");
        let settings = Settings {
            config: serde_json::json!({}),
            secrets: Default::default(),
            grants: Grants::default(),
            limits: Limits::default(),
            locales_dir: None,
            default_locale: "en".to_owned(),
        };
        let wasm = std::fs::read(plugin("echo")).expect("it was built");
        let plugin = engine.load(PluginName::new("echo"), &wasm, settings).expect("it serves");
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = Store::open(&folder.path().join("data")).expect("a store");
        Self { plugin, store, _folder: folder }
    }

    /// Microseconds for each: on the clock, and on the processors.
    async fn time(self: &Arc<Self>, until: Until, count: usize, at_once: usize) -> (f64, f64) {
        let events = Arc::new(self.fill(count).await);
        let next = Arc::new(AtomicUsize::new(0));
        let cpu = || process::processor_time(std::process::id());
        let (begun, cpu_before) = (Instant::now(), cpu());
        let mut tasks = JoinSet::new();
        for _ in 0..at_once {
            let (bench, events, next) = (self.clone(), events.clone(), next.clone());
            tasks.spawn(async move {
                while let Some(&(lane, number)) = events.get(next.fetch_add(1, Ordering::Relaxed)) {
                    bench.one(until, lane, number).await;
                }
            });
        }
        tasks.join_all().await;
        let (took, cpu) = (begun.elapsed(), cpu() - cpu_before);
        let each = |time: Duration| time.as_secs_f64() * 1e6 / count as f64;
        (each(took), each(cpu))
    }

    /// Puts events into the inbox.
    async fn fill(&self, count: usize) -> Vec<(Lane, u64)> {
        let mut events = Vec::with_capacity(count);
        for batch in (0..count).collect::<Vec<_>>().chunks(100) {
            let lanes: Vec<Lane> = batch.iter().map(|n| Lane::Chat(ChatId(chat(*n)))).collect();
            let append = |lane: &Lane| {
                let event = StoredEvent::Update(raw(*lane).into_bytes());
                let row = InboxRow::new(event, 0);
                Op::Append { prefix: inbox::lane_prefix(BOT, EventLane::whole(*lane)), value: row.encode() }
            };
            let ops = lanes.iter().map(append).collect();
            let receipt = self.store.commit(Commit { ops, ..Commit::default() }).await.expect("a store");
            events.extend(lanes.into_iter().zip(receipt.numbers));
        }
        self.store.flushed().await.expect("a store");
        events
    }

    async fn one(&self, until: Until, lane: Lane, number: u64) {
        let mut tx = Tx::new(&self.store);
        tx.delete(inbox::key(BOT, EventLane::whole(lane), number));
        if matches!(until, Until::CommitApplied | Until::CommitDurable) {
            tx.append(outbox::lane_prefix(BOT, lane), answer(lane, number).encode());
        } else {
            let report = self.plugin.run(&invocation(lane, number), tx, Arc::new(Nobody)).await;
            assert_eq!(report.result, Ok(Verdict::Done));
            tx = report.tx;
        }
        if matches!(until, Until::Run) {
            return;
        }
        let receipt = self.store.commit(tx.into_commit()).await.expect("a store");
        if matches!(until, Until::Durable | Until::CommitDurable) {
            receipt.durable().await.expect("a store");
        }
    }
}

fn chat(n: usize) -> i64 {
    7_000_000_000 + i64::try_from(n % CHATS).expect("few")
}

fn raw(lane: Lane) -> String {
    let Lane::Chat(ChatId(chat)) = lane else { panic!("chats only") };
    format!(
        r#"{{"update_id":123456789,"message":{{"message_id":17,"from":{{"id":{chat},"is_bot":false,"first_name":"Load","language_code":"en"}},"chat":{{"id":{chat},"first_name":"Load","type":"private"}},"date":1790000000,"text":"message 17"}}}}"#
    )
}

fn invocation(lane: Lane, number: u64) -> Invocation {
    let Lane::Chat(chat) = lane else { panic!("chats only") };
    Invocation {
        id: number,
        attempt: 1,
        now: 1_790_000_000_000,
        seed: number,
        conversation: Conversation { chat: Some(chat), ..Conversation::default() },
        lane: EventLane::whole(lane),
        bot: BOT,
        matched: vec![0],
        event: Event::Update(Update {
            id: 123_456_789,
            kind: "message".to_owned(),
            chat_id: Some(chat.0),
            chat_type: Some("private".to_owned()),
            thread_id: None,
            message_id: Some(17),
            user_id: Some(chat.0),
            locale: "en".to_owned(),
            text: Some("message 17".to_owned()),
            command: None,
            callback_data: None,
            raw: raw(lane),
        }),
        journal: Journal::default(),
        standing: Default::default(),
        tape: None,
        failed: None,
        listener: Default::default(),
    }
}

fn answer(lane: Lane, number: u64) -> OutboxRow {
    let Lane::Chat(ChatId(chat)) = lane else { panic!("chats only") };
    OutboxRow {
        plugin: PluginName::new("echo"),
        carries: 0,
        event: number,
        method: "sendMessage".to_owned(),
        params: format!(r#"{{"chat_id":{chat},"text":"message 17"}}"#),
        priority: Priority::Interactive,
        attempts: 0,
        queued: 0,
        delivery: Delivery::AtLeastOnce,
        begun: 0,
        files: Vec::new(),
        fallback: Fallback::None,
        follows: false,
    }
}
