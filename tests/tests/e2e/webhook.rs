//! Updates through a webhook: what Telegram's calls meet, what the host sets, and what it leaves alone.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::{Duration, Instant};

use botyard::simulator::{ALICE, Action, BOTIR, Bulk, Fault, Simulator, SimulatorSettings, User};
use botyard_tests::{Host, HostBuilder, WEBHOOK_SECRET, guest, host_program, plugin};
use serde_json::{Value as Json, json};

use super::support::{ask, builder, dead_letters, delivered, simulator};

/// One in which Telegram's seconds pass quickly.
async fn quick_simulator() -> Simulator {
    let webhook_second = Duration::from_millis(20);
    let settings = SimulatorSettings { throttle_polls: false, webhook_second, ..SimulatorSettings::default() };
    Simulator::start(settings).await.expect("a free port")
}

fn echo(simulator: &Simulator) -> HostBuilder {
    builder(simulator).plugin("echo", &plugin("echo"), "")
}

/// Calls a host's webhook as Telegram does, or somebody else.
struct Caller {
    http: reqwest::Client,
    url: String,
}

impl Caller {
    fn of(host: &Host) -> Self {
        drop(rustls::crypto::ring::default_provider().install_default());
        let http = reqwest::Client::builder().no_proxy().build().expect("a client");
        Self { http, url: format!("http://{}/hook", host.webhook()) }
    }

    async fn call(&self, method: &str, url: &str, secret: Option<(&str, &str)>, body: String) -> reqwest::Response {
        let mut request = self.http.request(method.parse().expect("a method"), url).body(body);
        if let Some((name, value)) = secret {
            request = request.header(name, value);
        }
        request.send().await.expect("an answer")
    }

    async fn deliver(&self, body: impl ToString) -> u16 {
        let secret = Some(("X-Telegram-Bot-Api-Secret-Token", WEBHOOK_SECRET));
        self.call("POST", &self.url, secret, body.to_string()).await.status().as_u16()
    }
}

fn message(id: i64, chat: i64, text: &str) -> Json {
    let person = json!({ "id": chat, "type": "private", "is_bot": false, "first_name": "X" });
    json!({ "update_id": id, "message": { "message_id": id, "date": 1, "chat": person, "from": person, "text": text } })
}

/// What the bot sent to a chat, waited for.
async fn texts(simulator: &Simulator, chat: i64, count: u64) -> Vec<String> {
    let messages = simulator.wait_for_messages(chat, count, Duration::from_secs(20)).await.expect("answers");
    messages.iter().map(|message| message.text().to_owned()).collect()
}

fn change_config(host: &Host, from: &str, to: &str) {
    let text = std::fs::read_to_string(host.config_file()).expect("readable");
    assert!(text.contains(from), "{text}");
    std::fs::write(host.config_file(), text.replace(from, to)).expect("writable");
}

fn readyz(host: &Host) -> (u16, Json) {
    let (status, body) = host.get("/readyz").expect("the host answers");
    (status, serde_json::from_str(&body).expect("JSON"))
}

fn botyard(config: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let Output { status, stdout, stderr } = Command::new(host_program())
        .args(arguments)
        .arg("--config")
        .arg(config)
        .env("TEST_TOKEN", "4242:test-token-that-must-never-be-seen-anywhere")
        .env("TEST_WEBHOOK_SECRET", WEBHOOK_SECRET)
        .output()
        .expect("it starts");
    let text = format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(!text.contains("panicked") && !text.contains("test-token-that"), "{text}");
    (status.code(), text)
}

#[tokio::test(flavor = "multi_thread")]
async fn updates_come_through_the_webhook_and_the_host_never_polls_nor_deletes_it() {
    let simulator = simulator().await;
    let mut host = echo(&simulator).webhook("max_connections = 7").start();
    let set = simulator.calls_of("setWebhook");
    assert_eq!(set.len(), 1, "{set:?}");
    assert_eq!(set[0].text("secret_token"), Some(WEBHOOK_SECRET));
    assert_eq!(
        (&set[0].params["max_connections"], set[0].params.contains_key("drop_pending_updates")),
        (&json!(7), false)
    );
    assert_eq!(
        set[0].params["allowed_updates"],
        json!(["message", "my_chat_member"]),
        "what the plugins want, and the host"
    );
    assert_eq!(ask(&simulator, ALICE, "hello").await, "hello");
    assert_eq!(readyz(&host).1["webhook"]["pending_update_count"], 0);
    assert!(host.metrics().sum("botyard_updates_total", &["outcome=\"accepted\"", "kind=\"message\""]) > 0.0);

    let stopped = host.stop();
    assert!(stopped.status.success(), "{}", stopped.log);
    simulator.user_says(ALICE, ALICE, "while it was away").expect("a chat");
    assert!(simulator.webhook().is_some(), "another host may have taken over");
    host.start();
    assert_eq!(texts(&simulator, ALICE, 2).await[1], "while it was away");
    assert_eq!(simulator.calls_of("setWebhook").len(), 1, "it is as it should be");
    assert_eq!((simulator.call_count("getUpdates"), simulator.call_count("deleteWebhook")), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_album_whose_messages_come_beside_each_other_is_given_in_order() {
    let simulator = simulator().await;
    let albums = builder(&simulator).plugin("albums", &guest("albums"), "");
    let host = albums.webhook("").start();
    let caller = Caller::of(&host);
    let picture = |id: i64, caption: &str| {
        let mut update = message(id, ALICE, caption);
        let message = update["message"].as_object_mut().expect("an object");
        let caption = message.remove("text").expect("it was there");
        message.insert("media_group_id".to_owned(), "one".into());
        if caption != "" {
            message.insert("caption".to_owned(), caption);
        }
        update
    };
    let (third, first, second) = (picture(803, ""), picture(801, "caption"), picture(802, ""));
    assert_eq!(caller.deliver(&third).await, 200);
    assert_eq!(tokio::join!(caller.deliver(&second), caller.deliver(&first)), (200, 200));
    // What Telegram has no answer to comes again.
    assert_eq!(caller.deliver(&second).await, 200);
    assert_eq!(texts(&simulator, ALICE, 1).await, ["album 801 802 803 \"caption\""]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_handler_delays_no_answer_and_what_comes_again_is_recognised() {
    let simulator = simulator().await;
    let slow = builder(&simulator).plugin("echo", &plugin("echo"), "config = { slow_ms = 1500 }");
    let host = slow.webhook("").start();
    let caller = Caller::of(&host);
    let begun = Instant::now();
    // Telegram's retries, at once and beside each other.
    let same = || caller.deliver(message(900, ALICE, "slow one"));
    let answers = tokio::join!(same(), same(), same());
    assert_eq!(answers, (200, 200, 200));
    assert!(begun.elapsed() < Duration::from_millis(1_400), "{:?}", begun.elapsed());
    assert_eq!(same().await, 200);
    // Out of order, which begins no new count: the duplicates stay known.
    for id in [905, 903, 904, 903, 900, 905] {
        assert_eq!(caller.deliver(message(id, BOTIR, &format!("no {id}"))).await, 200);
    }
    assert_eq!(texts(&simulator, BOTIR, 3).await, ["no 905", "no 903", "no 904"]);
    assert_eq!(texts(&simulator, ALICE, 1).await, ["slow one"]);
    // A captured request, long after: far from the numbers of now, and noticed.
    assert_eq!(caller.deliver(message(900_000, BOTIR, "later")).await, 200);
    assert_eq!(caller.deliver(message(903, BOTIR, "no 903")).await, 200);
    assert_eq!(texts(&simulator, BOTIR, 4).await[3], "later");
    assert!(host.metrics().sum("botyard_updates_far_total", &[]) >= 2.0);
    assert_eq!((simulator.delivered(ALICE), simulator.delivered(BOTIR)), (1, 4));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_answered_with_200_survives_a_kill() {
    let simulator = simulator().await;
    let mut host = echo(&simulator).webhook("").start();
    let chats = 8_000_000_000..8_000_000_100;
    chats.clone().for_each(|chat| simulator.add_user(User::new(chat, "X", None)));
    for some in chats.clone().collect::<Vec<_>>().chunks(25) {
        // Beside each other, so that they share commits; killed as soon as the last answer is there.
        let caller = Arc::new(Caller::of(&host));
        let calls: Vec<_> = some
            .iter()
            .map(|&chat| {
                let caller = caller.clone();
                tokio::spawn(async move { caller.deliver(message(chat - 7_999_999_000, chat, "kept")).await })
            })
            .collect();
        for call in calls {
            assert_eq!(call.await.expect("no panic"), 200);
        }
        host.kill();
        host.start();
    }
    for chat in chats {
        assert_eq!(texts(&simulator, chat, 1).await.first().map(String::as_str), Some("kept"), "{chat}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_does_not_know_the_secret_is_refused_before_the_body_is_read() {
    let simulator = simulator().await;
    let host = echo(&simulator).webhook("").start();
    let caller = Caller::of(&host);
    let header = "X-Telegram-Bot-Api-Secret-Token";
    let evil = message(1, ALICE, "evil").to_string();
    let status = async |method: &str, url: &str, secret, body: &str| {
        caller.call(method, url, secret, body.to_owned()).await.status().as_u16()
    };
    let url = caller.url.clone();
    let cut = WEBHOOK_SECRET.get(1..).expect("text of one byte a character");
    for secret in [None, Some((header, "")), Some((header, "guess")), Some((header, cut))] {
        assert_eq!(status("POST", &url, secret, &evil).await, 401);
    }
    assert_eq!(status("POST", &url, Some(("Secret-Token", WEBHOOK_SECRET)), &evil).await, 401);
    let right = Some((header, WEBHOOK_SECRET));
    assert_eq!(status("GET", &url, right, "").await, 405);
    assert_eq!(status("POST", &url.replace("/hook", "/"), right, &evil).await, 404);
    // The answer may come before the body has gone out; then the rest of it finds nobody any more.
    let too_large = caller.http.post(&url).header(header, WEBHOOK_SECRET).body("x".repeat((1 << 20) + 1));
    assert_eq!(too_large.send().await.map_or(413, |answer| answer.status().as_u16()), 413);
    // Not even the body of a stranger is waited for.
    let mut socket = tokio::net::TcpStream::connect(host.webhook()).await.expect("it listens");
    let head = "POST /hook HTTP/1.1\r\nhost: x\r\ncontent-length: 500\r\n\r\n{";
    tokio::io::AsyncWriteExt::write_all(&mut socket, head.as_bytes()).await.expect("written");
    let mut answer = [0; 12];
    tokio::io::AsyncReadExt::read_exact(&mut socket, &mut answer).await.expect("an answer");
    assert_eq!(&answer, b"HTTP/1.1 401");
    // The header's name has no case.
    let good = message(2, ALICE, "good").to_string();
    assert_eq!(status("POST", &url, Some(("x-telegram-bot-api-SECRET-token", WEBHOOK_SECRET)), &good).await, 200);
    assert_eq!(texts(&simulator, ALICE, 1).await, ["good"]);
    assert!(host.metrics().sum("botyard_webhook_requests_total", &["outcome=\"wrong_secret\""]) >= 6.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_not_be_read_blocks_nobody_and_is_kept() {
    let simulator = simulator().await;
    let mut host = echo(&simulator).webhook("").start();
    let caller = Caller::of(&host);
    for body in ["<html>", "", "[]", "{\"message\":{}}", "{\"update_id\":77}"] {
        assert_eq!(caller.deliver(body).await, 200, "{body}");
    }
    assert_eq!(caller.deliver(message(78, ALICE, "goes on")).await, 200);
    assert_eq!(texts(&simulator, ALICE, 1).await, ["goes on"]);
    host.stop();
    assert_eq!(dead_letters(&host).len(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn lanes_that_fail_are_taken_when_the_trouble_is_over() {
    let simulator = quick_simulator().await;
    let host = echo(&simulator).webhook("").start();
    // Telegram can't reach the host, in more chats than it keeps open at once.
    simulator.add_fault(Fault::on("webhook", Action::Reset { applied: false }));
    let bulk = Bulk { text: "no {n}".to_owned(), ..Bulk::new(200, 100) };
    simulator.push_updates(&bulk);
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!((simulator.delivered_in_all(), simulator.waiting_updates()), (0, 200));
    simulator.clear_faults();
    delivered(&simulator, 200, Duration::from_secs(30)).await;
    for chat in super::support::chats(&bulk) {
        assert_eq!(texts(&simulator, chat, 2).await, ["no 0", "no 1"]);
    }
    drop(host);
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_that_only_telegram_sees_are_reported() {
    let simulator = quick_simulator().await;
    let mut host = echo(&simulator).webhook("").start();
    simulator.add_fault(Fault::on("webhook", Action::Reset { applied: false }));
    simulator.user_says(ALICE, ALICE, "hello?").expect("a chat");
    let failed =
        simulator.wait_until(Duration::from_secs(5), || simulator.fault_rules().iter().any(|rule| rule.hit > 1));
    tokio::select! {
        _ = failed => {}
        () = tokio::time::sleep(Duration::from_millis(300)) => {}
    }
    // An operator's look comes before the next one of the host's own.
    let (code, said) = botyard(&host.config_file(), &["webhook", "info"]);
    assert!(code == Some(0) && said.contains("last error") && said.contains("Connection failed"), "{said}");
    let (code, said) = botyard(&host.config_file(), &["webhook", "set", "--json"]);
    assert!(code == Some(0) && said.contains("\"pending_update_count\": 1"), "{said}");
    host.wait_until("it says so", |host| readyz(host).1["webhook"]["pending_update_count"] == 1);
    assert!(host.metrics().sum("botyard_telegram_pending_updates", &[]) >= 1.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_configuration_is_set_and_both_secrets_are_good_meanwhile() {
    let simulator = simulator().await;
    let mut host = echo(&simulator).webhook("").start();
    let caller = Caller::of(&host);
    change_config(&host, "secret = { env = \"TEST_WEBHOOK_SECRET\" }", "secret = \"the-new-one\"\nmax_connections = 3");
    host.wait_until("it is set anew", |_| simulator.calls_of("setWebhook").len() == 2);
    let set = simulator.calls_of("setWebhook").pop().expect("just now");
    assert_eq!((set.text("secret_token"), &set.params["max_connections"]), (Some("the-new-one"), &json!(3)));
    // What was under way with the old one is taken, and what comes with the new one too.
    assert_eq!(caller.deliver(message(1, ALICE, "old")).await, 200);
    let new = Some(("x-telegram-bot-api-secret-token", "the-new-one"));
    let answer = caller.call("POST", &caller.url, new, message(2, ALICE, "new").to_string()).await;
    assert_eq!(answer.status(), 200);
    assert_eq!(texts(&simulator, ALICE, 2).await, ["old", "new"]);
    assert_eq!(ask(&simulator, BOTIR, "and Telegram").await, "and Telegram");
}

#[tokio::test(flavor = "multi_thread")]
async fn polling_and_webhook_change_over_while_the_host_runs() {
    let simulator = simulator().await;
    let mut host = echo(&simulator).webhook("").start();
    assert_eq!(ask(&simulator, ALICE, "by webhook").await, "by webhook");
    change_config(&host, "mode = \"webhook\"", "mode = \"polling\"");
    host.wait_until("it polls", |_| simulator.call_count("getUpdates") > 0);
    assert_eq!(simulator.webhook(), None, "its own webhook it removes");
    assert_eq!(simulator.calls_of("deleteWebhook")[0].params["drop_pending_updates"], false);
    assert_eq!(ask(&simulator, ALICE, "by polling").await, "by polling");
    change_config(&host, "mode = \"polling\"", "mode = \"webhook\"");
    host.wait_until("it is set again", |_| simulator.webhook().is_some());
    let polls = simulator.call_count("getUpdates");
    assert_eq!(ask(&simulator, ALICE, "by webhook again").await, "by webhook again");
    assert_eq!(simulator.call_count("getUpdates"), polls);
    assert_eq!(simulator.delivered(ALICE), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_of_somebody_else_is_left_alone_unless_told_otherwise() {
    let simulator = simulator().await;
    simulator.set_webhook(Some("https://production.example/secret-path"));
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("bot.toml");
    let text = format!(
        "[bot]\ntoken = {{ env = \"TEST_TOKEN\" }}\napi_base = {:?}\n[admin]\nlisten = \"127.0.0.1:0\"\n\
         [plugins.echo]\npath = {:?}\n",
        simulator.api_base(),
        plugin("echo").display().to_string()
    );
    std::fs::write(&config, &text).expect("writable");
    let (code, said) = botyard(&config, &["run"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("production.example") && said.contains("--take-over"), "{said}");
    assert!(!said.contains("secret-path"), "{said}");
    assert!(simulator.webhook().is_some() && simulator.call_count("getUpdates") == 0);

    let (code, said) = botyard(&config, &["webhook", "delete"]);
    assert!(code == Some(2) && said.contains("--yes"), "{said}");
    simulator.user_says(ALICE, ALICE, "waits").expect("a chat");
    let (code, said) = botyard(&config, &["webhook", "delete", "--yes"]);
    assert!(code == Some(0) && said.contains("1 updates still wait"), "{said}");
    assert_eq!((simulator.webhook(), simulator.waiting_updates()), (None, 1));

    // Set while the host polls: it hears nothing, says so at once, and goes on when it can.
    let mut host = echo(&simulator).start();
    assert_eq!(texts(&simulator, ALICE, 1).await, ["waits"]);
    simulator.set_webhook(Some("https://production.example/secret-path"));
    host.wait_until("it is not ready", |host| readyz(host).0 == 503);
    let reasons = readyz(&host).1["reasons"].to_string();
    assert!(reasons.contains("production.example") || reasons.contains("setWebhook"), "{reasons}");
    assert!(simulator.webhook().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_of_its_own_with_a_certificate_that_telegram_is_given() {
    let simulator = simulator().await;
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
    let more = format!(
        "certificate = {:?}\nkey = {:?}\nself_signed = true",
        data.join("test-only.pem").display().to_string(),
        data.join("test-only.key.pem").display().to_string()
    );
    let host = echo(&simulator).webhook(&more).start();
    assert_eq!(ask(&simulator, ALICE, "in private").await, "in private");
    assert_eq!(readyz(&host).1["webhook"]["has_custom_certificate"], true);
    assert_eq!(simulator.calls_of("setWebhook").len(), 1);
}
