//! The sender on a paused clock: a store on disk, Telegram in memory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::*;
use crate::domain::{ChatId, PluginName};
use crate::store::rows::outbox::{self, Delivery, Fallback, OutboxRow};
use crate::store::rows::unknown;
use crate::store::{Commit, Op};
use crate::telegram::{Response, Transport, TransportError, lane_of};

mod acting;
mod broadcast;
mod calls;
mod cancel;
mod chats;
mod delivery;
mod edits;
mod floods;
mod plain;
mod queries;
mod rows;
mod schedule;

const BOT: BotId = BotId(1);
const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const UNLIMITED: SendSettings = SendSettings {
    overall_per_second: 0.0,
    chat_per_second: 0.0,
    group_per_minute: 0.0,
    bulk_per_second: 0.0,
    paid_per_second: 0.0,
};

/// How Telegram behaves: given the method, its parameters, and how often this same call came before.
type Play = Box<dyn Fn(&str, &Value, usize) -> Answer + Send + Sync>;

/// An answer, and how long it takes.
struct Answer(Duration, Result<Response, TransportError>);

fn answer(status: u16, body: Value) -> Answer {
    Answer(10 * MS, Ok(Response { status, body: body.to_string().into(), ..Response::default() }))
}

fn ok() -> Answer {
    answer(200, json!({ "ok": true, "result": { "message_id": 1 } }))
}

fn error(code: u16, description: &str) -> Answer {
    answer(code, json!({ "ok": false, "error_code": code, "description": description }))
}

/// A success that breaks off.
fn cut() -> Answer {
    let body = Bytes::from_static(br#"{"ok":true,"result":{"mess"#);
    Answer(10 * MS, Ok(Response { status: 200, body, cut: Some("it broke off".to_owned()), ..Response::default() }))
}

fn flood(seconds: u64) -> Answer {
    answer(429, json!({ "ok": false, "error_code": 429, "parameters": { "retry_after": seconds } }))
}

fn after(delay: Duration, answer: Answer) -> Answer {
    Answer(delay, answer.1)
}

/// A call that Telegram saw.
#[derive(Debug, Clone)]
struct Seen {
    at: Duration,
    method: String,
    chat: i64,
    text: String,
}

struct Telegram {
    begun: Instant,
    play: Play,
    seen: Mutex<Vec<Seen>>,
    times: Mutex<HashMap<Bytes, usize>>,
}

impl Transport for Telegram {
    fn post<'a>(
        &'a self,
        method: &'a str,
        body: Bytes,
        deadline: Duration,
    ) -> BoxFuture<'a, Result<Response, TransportError>> {
        Box::pin(async move {
            let params: Value = serde_json::from_slice(&body).unwrap();
            let times = {
                let mut times = self.times.lock().unwrap();
                let times = times.entry(body).or_default();
                *times += 1;
                *times - 1
            };
            self.seen.lock().unwrap().push(Seen {
                at: self.begun.elapsed(),
                method: method.to_owned(),
                chat: params["chat_id"].as_i64().unwrap_or(0),
                text: params["text"].as_str().unwrap_or("").to_owned(),
            });
            let Answer(takes, answer) = (self.play)(method, &params, times);
            if takes > deadline {
                sleep(deadline).await;
                return Err(TransportError::Silence("no answer in time".to_owned()));
            }
            sleep(takes).await;
            answer
        })
    }
}

struct Bench {
    sender: Sender,
    telegram: Arc<Telegram>,
    store: Store,
    folder: Arc<tempfile::TempDir>,
    stop: watch::Sender<bool>,
}

fn bench(settings: SendSettings, play: impl Fn(&str, &Value, usize) -> Answer + Send + Sync + 'static) -> Bench {
    let folder = Arc::new(tempfile::tempdir().unwrap());
    let store = Store::open(folder.path()).unwrap();
    Bench::on(store, folder, settings, Box::new(play))
}

impl Bench {
    fn on(store: Store, folder: Arc<tempfile::TempDir>, settings: SendSettings, play: Play) -> Self {
        let telegram =
            Arc::new(Telegram { begun: Instant::now(), play, seen: Mutex::default(), times: Mutex::default() });
        let client = Arc::new(Client::with_transport(telegram.clone()));
        let chats = Chats::open(store.clone(), BOT).unwrap();
        let sender = Sender::new(store.clone(), client, BOT, chats, settings, None);
        Self { sender, telegram, store, folder, stop: watch::channel(false).0 }
    }

    /// Another process on the same store.
    fn restarted(
        &self,
        settings: SendSettings,
        play: impl Fn(&str, &Value, usize) -> Answer + Send + Sync + 'static,
    ) -> Self {
        // Everything handed in before is applied when this is.
        self.blocking(|store| async move { drop(store.commit(Commit::default()).await) });
        Self::on(self.store.clone(), self.folder.clone(), settings, Box::new(play))
    }

    /// Waits for the store off the paused clock, which would run on meanwhile.
    fn blocking<T: Send, F: Future<Output = T>>(&self, work: impl FnOnce(Store) -> F + Send) -> T {
        let store = self.store.clone();
        std::thread::scope(|scope| {
            let body = || tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work(store));
            scope.spawn(body).join().unwrap()
        })
    }

    /// Puts calls into the outbox, durably, and tells of them.
    fn queue(&self, calls: &[(&str, Value, Priority)]) {
        let rows = self.put(calls);
        self.sender.committed(rows);
    }

    fn put(&self, calls: &[(&str, Value, Priority)]) -> Vec<(Lane, u64, Priority)> {
        self.put_as(calls, |_| ())
    }

    /// The same with other settings.
    fn put_as(&self, calls: &[(&str, Value, Priority)], change: impl Fn(&mut OutboxRow)) -> Vec<(Lane, u64, Priority)> {
        let mut ops = Vec::new();
        let mut lanes = Vec::new();
        for (method, params, priority) in calls {
            let params = params.to_string();
            // As dispatch does it.
            let lane = self.sender.chats().lane(lane_of(method, &params));
            lanes.push((lane, *priority));
            let mut row = OutboxRow {
                plugin: PluginName::new("test"),
                carries: 0,
                event: 1,
                method: (*method).to_owned(),
                params,
                priority: *priority,
                attempts: 0,
                queued: crate::clock::unix_millis(),
                delivery: Delivery::AtLeastOnce,
                begun: 0,
                files: Vec::new(),
                fallback: Fallback::None,
                follows: false,
            };
            change(&mut row);
            ops.push(Op::Append { prefix: outbox::lane_prefix(BOT, lane), value: row.encode() });
        }
        let numbers = self.blocking(|store| async move {
            let receipt = store.commit(Commit { ops, ..Commit::default() }).await.unwrap();
            let numbers = receipt.numbers.clone();
            receipt.durable().await.unwrap();
            numbers
        });
        lanes.into_iter().zip(numbers).map(|((lane, priority), number)| (lane, number, priority)).collect()
    }

    /// Messages with these texts, to one chat.
    fn say(&self, chat: i64, texts: &[&str]) {
        let calls: Vec<_> = texts.iter().map(|text| message(chat, text, Priority::Interactive)).collect();
        self.queue(&calls);
    }

    fn start(&self) -> JoinHandle<()> {
        let (sender, stop) = (self.sender.clone(), self.stop.subscribe());
        tokio::spawn(async move { sender.run(stop).await.unwrap() })
    }

    fn seen(&self) -> Vec<Seen> {
        self.telegram.seen.lock().unwrap().clone()
    }

    /// What one chat got.
    fn texts(&self, chat: i64) -> Vec<String> {
        self.seen().into_iter().filter(|seen| seen.chat == chat).map(|seen| seen.text).collect()
    }

    fn times(&self, chat: i64) -> Vec<Duration> {
        self.seen().into_iter().filter(|seen| seen.chat == chat).map(|seen| seen.at).collect()
    }

    /// The rows that are in the store once all that was handed in is applied.
    fn left(&self) -> Vec<OutboxRow> {
        self.blocking(|store| async move { drop(store.commit(Commit::default()).await) });
        let rows = self.store.scan_prefix(&outbox::bot_prefix(BOT), usize::MAX).unwrap();
        rows.iter().map(|(_, value)| OutboxRow::decode(value).unwrap()).collect()
    }
}

impl Bench {
    /// What the operator is told of calls without a known end.
    fn ledger(&self) -> Vec<UnknownRow> {
        self.blocking(|store| async move { drop(store.commit(Commit::default()).await) });
        let rows = self.store.scan_prefix(&unknown::bot_prefix(BOT), usize::MAX).unwrap();
        rows.iter().map(|(_, value)| UnknownRow::decode(value).unwrap()).collect()
    }

    /// Waits for something that the store has a part in, whose time is not the paused clock's.
    #[expect(clippy::disallowed_methods, reason = "the store's thread knows nothing of the paused clock")]
    async fn until(&self, is_so: impl Fn(&Self) -> bool) {
        for _ in 0..2_000 {
            if is_so(self) {
                return;
            }
            std::thread::sleep(MS);
            sleep(10 * MS).await;
        }
        panic!("it did not happen");
    }
}

fn message(chat: i64, text: &str, priority: Priority) -> (&'static str, Value, Priority) {
    ("sendMessage", json!({ "chat_id": chat, "text": text }), priority)
}

/// The most that any second holds, its end excluded.
fn most_in_a_second(times: &[Duration]) -> usize {
    times.iter().map(|from| times.iter().filter(|at| **at >= *from && **at < *from + SECOND).count()).max().unwrap_or(0)
}
