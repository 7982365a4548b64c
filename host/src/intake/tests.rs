//! Intake as a whole, against a Telegram in memory and a clock that is moved by hand.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::*;
use crate::chats::Chats;
use crate::domain::{BotId, LaneRule};
use crate::sender::{SendSettings, Sender};
use crate::store::Store;
use crate::telegram::{Client, Response, Transport, TransportError};

const BOT: BotId = BotId(7);
const POLL: Duration = Duration::from_secs(30);
const CONFLICT: &str = r#"{"ok":false,"error_code":409,"description":"Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"}"#;
const WEBHOOK: &str = r#"{"ok":false,"error_code":409,"description":"Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"}"#;
const UNAUTHORIZED: &str = r#"{"ok":false,"error_code":401,"description":"Unauthorized"}"#;

/// What Telegram does with a call.
#[derive(Clone)]
enum Play {
    Say(u16, String),
    /// No answer, and not even the transport notices.
    Hang,
    /// No answer until the deadline.
    Silence,
    Unreachable,
}

fn say(status: u16, body: &str) -> Play {
    Play::Say(status, body.to_owned())
}

fn ok(result: &str) -> Play {
    Play::Say(200, format!("{{\"ok\":true,\"result\":{result}}}"))
}

/// By method: what comes next, the last of it for ever.
#[derive(Default)]
struct Telegram {
    plays: Mutex<Vec<(&'static str, VecDeque<Play>)>>,
    asked: Mutex<Vec<(String, String, Instant)>>,
    rebuilt: Mutex<u32>,
}

impl Telegram {
    fn on(&self, method: &'static str, plays: impl IntoIterator<Item = Play>) {
        let mut all = self.plays.lock().unwrap();
        all.retain(|(known, _)| *known != method);
        all.push((method, plays.into_iter().collect()));
    }

    fn next(&self, method: &str) -> Play {
        let mut plays = self.plays.lock().unwrap();
        let plays = plays.iter_mut().find(|(known, _)| *known == method).map(|(_, plays)| plays);
        match plays {
            Some(plays) if plays.len() > 1 => plays.pop_front().unwrap(),
            Some(plays) => plays.front().cloned().unwrap(),
            None if method == "getWebhookInfo" => ok(r#"{"url":"","pending_update_count":0}"#),
            // As Telegram does, a poll waits.
            None => Play::Silence,
        }
    }

    fn count(&self, method: &str) -> usize {
        self.asked.lock().unwrap().iter().filter(|(asked, ..)| asked == method).count()
    }
}

impl Transport for Telegram {
    fn post<'a>(
        &'a self,
        method: &'a str,
        body: Bytes,
        deadline: Duration,
    ) -> BoxFuture<'a, Result<Response, TransportError>> {
        let body = String::from_utf8(body.to_vec()).unwrap();
        self.asked.lock().unwrap().push((method.to_owned(), body, Instant::now()));
        let play = self.next(method);
        Box::pin(async move {
            match play {
                Play::Say(status, body) => Ok(Response { status, body: body.into(), ..Response::default() }),
                Play::Hang => std::future::pending().await,
                Play::Silence => {
                    tokio::time::sleep(deadline).await;
                    Err(TransportError::Unknown("no answer".to_owned()))
                }
                Play::Unreachable => Err(TransportError::BeforeSend("no such host".to_owned())),
            }
        })
    }

    fn rebuild(&self) {
        *self.rebuilt.lock().unwrap() += 1;
    }
}

struct Running {
    telegram: Arc<Telegram>,
    status: watch::Receiver<Status>,
    settings: watch::Sender<Settings>,
    stop: watch::Sender<bool>,
    task: JoinHandle<Result<(), Error>>,
    begun: Instant,
    _allowed: watch::Sender<Option<Vec<String>>>,
    _orders: mpsc::Sender<SetNow>,
    _folder: tempfile::TempDir,
}

fn settings(fingerprint: u8) -> Settings {
    Settings { fingerprint: [fingerprint; 8], access: None, poll_timeout: POLL, take_over: false, webhook: None }
}

impl Running {
    /// Begun with a store of its own, and the clock stopped.
    fn begin(telegram: Telegram) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        let telegram = Arc::new(telegram);
        let (status_sender, status) = watch::channel(Status::default());
        let (allowed, allowed_updates) = watch::channel(None);
        let (settings, changing) = watch::channel(settings(1));
        let (orders, ordered) = mpsc::channel(1);
        let client = Arc::new(Client::with_transport(telegram.clone()));
        let (arrivals, _) = mpsc::unbounded_channel();
        let limits = SendSettings {
            overall_per_second: 0.0,
            chat_per_second: 0.0,
            group_per_minute: 0.0,
            bulk_per_second: 0.0,
            ..SendSettings::default()
        };
        let chats = Chats::open(store.clone(), BOT).unwrap();
        let sender = Sender::new(store.clone(), client.clone(), BOT, chats, limits, None);
        let lanes = watch::channel(LaneRule::default()).1;
        let parts = Parts { store, client, bot: BOT, allowed_updates, arrivals, lanes, sender, status: status_sender };
        let (stop, stopping) = watch::channel(false);
        let task = tokio::spawn(Intake { parts, settings: changing, orders: ordered }.run(stopping));
        let begun = Instant::now();
        Self { telegram, status, settings, stop, task, begun, _allowed: allowed, _orders: orders, _folder: folder }
    }

    /// Until something is so, in the time of the stopped clock.
    async fn until(&mut self, what: &str, so: impl Fn(&Self) -> bool) -> Duration {
        let deadline = Instant::now() + Duration::from_secs(7_200);
        while !so(self) {
            assert!(Instant::now() < deadline, "waited in vain until {what}: {:?}", self.status.borrow());
            drop(tokio::time::timeout(Duration::from_millis(500), self.status.changed()).await);
        }
        self.begun.elapsed()
    }

    fn problem(&self) -> String {
        self.status.borrow().problem.clone().unwrap_or_default()
    }
}

#[tokio::test(start_paused = true)]
async fn a_poll_that_hangs_is_aborted_told_of_and_begun_anew() {
    let telegram = Telegram::default();
    telegram.on("getUpdates", [Play::Hang, ok("[]"), Play::Silence]);
    let mut running = Running::begin(telegram);
    let at = running.until("it bites", |running| running.status.borrow().is_deaf).await;
    assert!((75..=90).contains(&at.as_secs()), "{at:?}: twice the poll and 15 s");
    assert_eq!(*running.telegram.rebuilt.lock().unwrap(), 1, "new connections");
    running.until("it hears again", |running| running.status.borrow().problem.is_none()).await;
    assert!(!running.status.borrow().is_deaf);
}

#[tokio::test(start_paused = true)]
async fn the_second_silence_makes_new_connections_and_no_name_is_asked_for_in_a_hot_loop() {
    let mut running = Running::begin(Telegram::default());
    running.until("it is tried thrice", |running| running.telegram.count("getUpdates") == 3).await;
    assert!(*running.telegram.rebuilt.lock().unwrap() >= 1);

    let telegram = Telegram::default();
    telegram.on("getUpdates", [Play::Unreachable]);
    let mut running = Running::begin(telegram);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(running.telegram.count("getUpdates") < 40, "{}", running.telegram.count("getUpdates"));
    running.telegram.on("getUpdates", [ok("[]"), Play::Silence]);
    running.until("the name is found", |running| running.status.borrow().last_good.is_some()).await;
}

#[tokio::test(start_paused = true)]
async fn another_poller_is_told_of_at_once_and_asked_about_seldom() {
    let telegram = Telegram::default();
    telegram.on("getUpdates", [say(409, CONFLICT)]);
    let mut running = Running::begin(telegram);
    let at = running.until("it says so", |running| running.status.borrow().is_deaf).await;
    assert!(at < Duration::from_secs(2), "{at:?}");
    tokio::time::sleep(Duration::from_secs(35)).await;
    let polls = running.telegram.count("getUpdates");
    assert!(polls <= 6, "{polls}");
    let asked = running.telegram.asked.lock().unwrap().clone();
    assert!(
        asked.iter().filter(|(method, ..)| method == "getUpdates").all(|(_, body, _)| body.contains("\"timeout\":0"))
    );
    running.telegram.on("getUpdates", [ok("[]"), Play::Silence]);
    running.until("it goes on", |running| running.status.borrow().problem.is_none()).await;
    assert!(!running.task.is_finished());
}

#[tokio::test(start_paused = true)]
async fn a_webhook_of_somebody_else_is_named_and_left_alone() {
    let telegram = Telegram::default();
    telegram.on("getUpdates", [say(409, WEBHOOK)]);
    telegram.on("getWebhookInfo", [ok(r#"{"url":"https://production.example/hidden"}"#)]);
    let mut running = Running::begin(telegram);
    running.until("it says so", |running| running.problem().contains("production.example")).await;
    assert!(!running.problem().contains("hidden"));
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!((running.telegram.count("deleteWebhook"), running.telegram.count("getUpdates")), (0, 0));
    running.telegram.on("getWebhookInfo", [ok(r#"{"url":""}"#)]);
    running.telegram.on("getUpdates", [ok("[]"), Play::Silence]);
    running.until("it polls", |running| running.status.borrow().last_good.is_some()).await;
}

#[tokio::test(start_paused = true)]
async fn a_refused_token_is_asked_about_rarely_and_polling_goes_on_when_it_is_good_again() {
    let telegram = Telegram::default();
    telegram.on("getUpdates", [say(401, UNAUTHORIZED)]);
    telegram.on("getMe", [say(401, UNAUTHORIZED)]);
    let mut running = Running::begin(telegram);
    running.until("it says so", |running| running.status.borrow().is_deaf).await;
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    assert_eq!(running.telegram.count("getUpdates"), 1);
    assert!((10..=14).contains(&running.telegram.count("getMe")), "{}", running.telegram.count("getMe"));
    running.telegram.on("getMe", [ok("{}")]);
    running.telegram.on("getUpdates", [ok("[]"), Play::Silence]);
    running.until("it polls", |running| running.status.borrow().problem.is_none()).await;

    // Another token ends the rest at once.
    running.telegram.on("getUpdates", [say(404, r#"{"ok":false,"error_code":404,"description":"Not Found"}"#)]);
    running.telegram.on("getMe", [say(404, r#"{"ok":false,"error_code":404,"description":"Not Found"}"#)]);
    running.until("it is refused again", |running| running.status.borrow().is_deaf).await;
    running.telegram.on("getUpdates", [ok("[]"), Play::Silence]);
    let before = Instant::now();
    running.settings.send_replace(settings(2));
    running.until("it polls with the new one", |running| running.status.borrow().last_good.is_some()).await;
    assert!(before.elapsed() < Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn a_stop_waits_for_no_poll_and_tries_one_confirmation() {
    let telegram = Telegram::default();
    let batch = r#"[{"update_id":41,"message":{"chat":{"id":1}}}]"#;
    telegram.on("getUpdates", [ok(batch), Play::Hang]);
    let mut running = Running::begin(telegram);
    running.until("the second poll is parked", |running| running.telegram.count("getUpdates") == 2).await;
    let before = Instant::now();
    running.stop.send_replace(true);
    (&mut running.task).await.unwrap().unwrap();
    assert!(
        before.elapsed() <= Duration::from_secs(5),
        "{:?}: the confirmation has no answer either",
        before.elapsed()
    );
    let asked = running.telegram.asked.lock().unwrap().clone();
    let polls: Vec<_> = asked.iter().filter(|(method, ..)| method == "getUpdates").collect();
    assert_eq!(polls.len(), 3, "one try");
    assert!(polls[2].1.contains("\"offset\":42") && polls[2].1.contains("\"limit\":1"), "{}", polls[2].1);
}

#[tokio::test(start_paused = true)]
async fn ids_that_jump_down_are_a_new_count_and_the_next_offset_is_theirs() {
    let telegram = Telegram::default();
    let batch = |id: i64| ok(&format!(r#"[{{"update_id":{id},"message":{{"chat":{{"id":1}}}}}}]"#));
    telegram.on("getUpdates", [batch(727_334_707), batch(117_314_199), Play::Silence]);
    let mut running = Running::begin(telegram);
    running.until("both were polled", |running| running.telegram.count("getUpdates") == 3).await;
    let asked = running.telegram.asked.lock().unwrap().clone();
    let offsets: Vec<_> = asked.iter().filter(|(method, ..)| method == "getUpdates").map(|(_, body, _)| body).collect();
    assert!(offsets[1].contains("\"offset\":727334708") && offsets[2].contains("\"offset\":117314200"), "{offsets:?}");
}
