//! Files on a paused clock: the contents on disk, Telegram in memory.

use std::collections::VecDeque;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::*;
use crate::chats::Chats;
use crate::domain::{BotId, Lane, PluginName};
use crate::files::ServerLimits;
use crate::sender::{SendSettings, Sender};
use crate::store::Store;
use crate::store::rows::outbox::{self, Delivery, OutboxRow, Priority};
use crate::store::rows::unknown;
use crate::telegram::{Client, Progress, Response, Transport, TransportError, lane_of};

const BOT: BotId = BotId(1);

/// What happens to an upload.
#[derive(Clone, Copy)]
enum Fate {
    /// It is taken, after a time.
    Taken(Duration),
    /// The connection breaks in the middle.
    Broken,
    /// It stands still in the middle.
    Stalled,
    /// All of it is there, and no answer comes.
    Unanswered,
}

#[derive(Default)]
struct Telegram {
    fates: Mutex<VecDeque<Fate>>,
    /// The hash of every whole body.
    bodies: Mutex<Vec<Hash>>,
    uploads: AtomicUsize,
    at_once: AtomicUsize,
    most_at_once: AtomicUsize,
    /// Parameters of the calls without files.
    calls: Mutex<Vec<Value>>,
    /// A `file_id` that is not taken.
    stale: Mutex<Option<String>>,
}

fn ok(result: &Value) -> Result<Response, TransportError> {
    let body = json!({ "ok": true, "result": result }).to_string().into();
    Ok(Response { status: 200, body, ..Response::default() })
}

impl Transport for Telegram {
    fn post<'a>(&'a self, _: &'a str, body: Bytes, _: Duration) -> BoxFuture<'a, Result<Response, TransportError>> {
        let params: Value = serde_json::from_slice(&body).unwrap();
        let stale = self.stale.lock().unwrap().clone().is_some_and(|stale| params["document"] == json!(stale));
        self.calls.lock().unwrap().push(params);
        Box::pin(async move {
            if stale {
                let body = br#"{"ok":false,"error_code":400,"description":"Bad Request: wrong file identifier/HTTP URL specified"}"#;
                return Ok(Response { status: 400, body: Bytes::from_static(body), ..Response::default() });
            }
            ok(&json!({ "message_id": 1 }))
        })
    }

    fn upload<'a>(
        &'a self,
        _: &'a str,
        body: &'a Multipart,
        progress: Progress,
    ) -> BoxFuture<'a, Result<Response, TransportError>> {
        let fate = self.fates.lock().unwrap().pop_front().unwrap_or(Fate::Taken(Duration::ZERO));
        let number = self.uploads.fetch_add(1, Ordering::Relaxed) + 1;
        let now = self.at_once.fetch_add(1, Ordering::Relaxed) + 1;
        self.most_at_once.fetch_max(now, Ordering::Relaxed);
        let half = body.length() / 2;
        Box::pin(async move {
            let mut hash = Sha256::new();
            let mut stream = Box::pin(body.stream(progress.clone()));
            let mut middle = false;
            while let Some(piece) = stream.next().await {
                hash.update(piece.unwrap());
                middle = progress.done() > half && !progress.is_whole();
                if middle && matches!(fate, Fate::Broken | Fate::Stalled) {
                    break;
                }
            }
            let answer = match fate {
                Fate::Broken => {
                    assert!(middle);
                    Err(TransportError::BeforeSend("reset by peer".to_owned()))
                }
                Fate::Stalled | Fate::Unanswered => std::future::pending().await,
                Fate::Taken(time) => {
                    self.bodies.lock().unwrap().push(hash.finalize().into());
                    sleep(time).await;
                    let file = json!({ "file_id": format!("ID{number}") });
                    ok(&json!({ "message_id": 1, "document": file, "photo": [file] }))
                }
            };
            self.at_once.fetch_sub(1, Ordering::Relaxed);
            answer
        })
    }
}

struct Bench {
    telegram: Arc<Telegram>,
    store: Store,
    files: Files,
    sender: Sender,
    folder: tempfile::TempDir,
    _stop: watch::Sender<bool>,
}

impl Bench {
    fn new(fates: &[Fate]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("data")).unwrap();
        let files = Files::open(&folder.path().join("data.files"), &store, ServerLimits::default()).unwrap();
        let telegram = Arc::new(Telegram { fates: Mutex::new(fates.iter().copied().collect()), ..Telegram::default() });
        let client = Arc::new(Client::with_transport(telegram.clone()));
        let no_limits = SendSettings {
            overall_per_second: 0.0,
            chat_per_second: 0.0,
            group_per_minute: 0.0,
            bulk_per_second: 0.0,
            ..SendSettings::default()
        };
        let chats = Chats::open(store.clone(), BOT).unwrap();
        let sender = Sender::new(store.clone(), client, BOT, chats, no_limits, Some(files.clone()));
        let (stop, stopped) = watch::channel(false);
        let running = sender.clone();
        tokio::spawn(async move { running.run(stopped).await });
        Self { telegram, store, files, sender, folder, _stop: stop }
    }

    fn file(&self, content: &[u8]) -> (Attached, crate::files::Pin) {
        let mut draft = self.files.draft().unwrap();
        draft.write(content).unwrap();
        let (hash, pin) = draft.keep().unwrap();
        let size = content.len() as u64;
        let number = rand::random();
        let attached =
            Attached { id: "id".into(), hash, size, name: "a.bin".into(), content_type: "x/y".into(), number };
        (attached, pin)
    }

    /// Queues a document for a chat, as a run would.
    async fn queue(&self, chat: i64, content: &[u8], delivery: Delivery) {
        let row = self.put(chat, content, delivery).await;
        self.sender.committed([row]);
    }

    /// The same, but nobody is told yet.
    async fn put(&self, chat: i64, content: &[u8], delivery: Delivery) -> (Lane, u64, Priority) {
        let (file, pin) = self.file(content);
        let params = json!({ "chat_id": chat, "document": "attach://id" }).to_string();
        let lane = lane_of("sendDocument", &params);
        let reference = Op::Put { key: file::reference(BOT, &file), value: Vec::new() };
        let row = OutboxRow {
            plugin: PluginName::new("test"),
            carries: 0,
            event: 1,
            method: "sendDocument".to_owned(),
            params,
            priority: Priority::Interactive,
            attempts: 0,
            queued: unix_millis(),
            delivery,
            begun: 0,
            fallback: crate::store::rows::outbox::Fallback::None,
            follows: false,
            files: vec![file],
        };
        let append = Op::Append { prefix: outbox::lane_prefix(BOT, lane), value: row.encode() };
        let receipt = self.store.commit(Commit { ops: vec![reference, append], ..Commit::default() }).await.unwrap();
        let number = receipt.numbers[0];
        receipt.durable().await.unwrap();
        drop(pin);
        (lane, number, Priority::Interactive)
    }

    /// Waits until nothing is queued and no content is left; so nothing is forgotten in the folder either.
    async fn done(&self) {
        let begun = Instant::now();
        let waiting = || !self.store.scan_prefix(&outbox::bot_prefix(BOT), 1).unwrap().is_empty();
        let contents = || std::fs::read_dir(self.folder.path().join("data.files")).unwrap().count();
        while waiting() || contents() > 0 {
            assert!(begun.elapsed() < Duration::from_secs(7200), "{} files are left", contents());
            sleep(Duration::from_millis(50)).await;
            // The store's threads and the one that removes files keep to real time.
            tokio::task::spawn_blocking(|| std::thread::park_timeout(Duration::from_millis(1))).await.unwrap();
        }
        assert!(self.store.scan_prefix(&file::all_references(), 1).unwrap().is_empty());
    }

    fn uploads(&self) -> usize {
        self.telegram.uploads.load(Ordering::Relaxed)
    }
}

fn content(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at / 7) as u8).collect()
}

#[tokio::test(start_paused = true)]
async fn a_broken_upload_is_made_again_from_its_beginning_even_if_it_must_not_be_made_twice() {
    let bench = Bench::new(&[Fate::Broken, Fate::Stalled, Fate::Taken(Duration::ZERO)]);
    bench.queue(7, &content(900_000), Delivery::AtMostOnce).await;
    bench.done().await;
    assert_eq!(bench.uploads(), 3);
    let bodies = bench.telegram.bodies.lock().unwrap().clone();
    let other = Bench::new(&[]);
    other.queue(7, &content(900_000), Delivery::AtMostOnce).await;
    other.done().await;
    assert_eq!(bodies, *other.telegram.bodies.lock().unwrap(), "the same as if nothing had happened");
    assert!(bench.store.scan_prefix(&unknown::all(), 1).unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_upload_without_an_answer_may_have_taken_effect() {
    let bench = Bench::new(&[Fate::Unanswered]);
    bench.queue(7, &content(100_000), Delivery::AtMostOnce).await;
    bench.done().await;
    assert_eq!(bench.uploads(), 1, "not again");
    assert_eq!(bench.store.scan_prefix(&unknown::all(), 9).unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_many_chats_get_at_once_is_uploaded_once() {
    let bench = Bench::new(&[Fate::Taken(Duration::from_secs(20))]);
    let mut rows = Vec::new();
    for chat in 1..=200 {
        rows.push(bench.put(chat, b"the same for all", Delivery::AtLeastOnce).await);
    }
    bench.sender.committed(rows);
    // More than there are places for calls in flight, and yet a text gets through.
    sleep(Duration::from_secs(1)).await;
    let params = json!({ "chat_id": 999, "text": "hi" }).to_string();
    let plugin = PluginName::new("test");
    let text = bench.sender.call(&plugin, "sendMessage", params, Duration::from_secs(5));
    text.await.expect("nobody waits for an upload to somebody else");
    bench.done().await;
    assert_eq!(bench.uploads(), 1);
    let calls = bench.telegram.calls.lock().unwrap();
    assert_eq!(calls.iter().filter(|params| params["document"] == "ID1").count(), 199);
}

#[tokio::test(start_paused = true)]
async fn few_uploads_are_made_at_a_time() {
    let bench = Bench::new(&[Fate::Taken(Duration::from_secs(3)); 20]);
    let mut rows = Vec::new();
    for chat in 1..=20 {
        rows.push(bench.put(chat, format!("for {chat}").as_bytes(), Delivery::AtLeastOnce).await);
    }
    bench.sender.committed(rows);
    bench.done().await;
    assert_eq!((bench.uploads(), bench.telegram.most_at_once.load(Ordering::Relaxed)), (20, AT_ONCE));
}

#[tokio::test(start_paused = true)]
async fn a_file_id_that_is_not_taken_any_more_is_forgotten() {
    let bench = Bench::new(&[]);
    bench.queue(7, b"content", Delivery::AtLeastOnce).await;
    bench.done().await;
    *bench.telegram.stale.lock().unwrap() = Some("ID1".to_owned());
    for chat in [7, 8] {
        bench.queue(chat, b"content", Delivery::AtLeastOnce).await;
        bench.done().await;
    }
    assert_eq!(bench.uploads(), 2);
    let ids: Vec<Value> =
        bench.telegram.calls.lock().unwrap().iter().map(|params| params["document"].clone()).collect();
    assert_eq!(ids, ["ID1", "ID2"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_too_large_or_gone_is_refused_without_an_upload() {
    let bench = Bench::new(&[]);
    let call = |file: Attached, method: &'static str, field: &'static str| {
        let params = json!({ "chat_id": 7, field: "attach://id" }).to_string();
        let shared = bench.sender.shared.clone();
        async move { call(&shared, method, &params.into(), &[file], Duration::from_secs(9)).await.unwrap_err() }
    };
    let (file, pin) = bench.file(b"small");
    let photo = call(Attached { size: (10 << 20) + 1, ..file.clone() }, "sendPhoto", "photo").await;
    assert!(
        matches!(&photo, Error::Refused { code: 413, description, .. } if description.contains("document")),
        "{photo}"
    );
    let large = call(Attached { size: (50 << 20) + 1, ..file.clone() }, "sendDocument", "document").await;
    assert!(matches!(&large, Error::Refused { code: 413, .. }), "{large}");
    std::fs::remove_file(bench.files.path(&file.hash)).unwrap();
    let gone = call(file, "sendDocument", "document").await;
    assert!(
        matches!(&gone, Error::Refused { description, .. } if description.contains("not there any more")),
        "{gone}"
    );
    assert_eq!(bench.uploads(), 0);
    drop(pin);
}

#[test]
fn what_was_not_used_for_longest_makes_room() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let row = |at: u8| Op::Put {
        key: file::known(BOT, &[at; 32]),
        value: KnownRow { file_id: "x".into(), at: u64::from(100 - at) }.encode(),
    };
    store.commit_blocking(Commit { ops: (0..41).map(row).collect(), ..Commit::default() }).unwrap();
    known::make_room(&store, BOT, 41);
    known::make_room(&store, BOT, 40);
    // Whatever is handed in after it comes after it.
    store.commit_blocking(Commit::default()).unwrap();
    let rows = store.scan_prefix(&file::known_prefix(BOT), 100).unwrap();
    let ages: Vec<u64> = rows.iter().map(|(_, value)| KnownRow::decode(value).unwrap().at).collect();
    assert_eq!(ages.len(), 30);
    assert!(ages.iter().all(|at| *at > 70));
}
