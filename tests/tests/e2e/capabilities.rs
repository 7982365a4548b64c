//! What a plugin is given beside the Bot API: HTTP, recurring timers, ends of states, secrets.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use botyard::domain::{ChatId, PluginName};
use botyard::simulator::{ALICE, BOTIR};
use botyard::store::Store;
use botyard::store::rows::{expiry, fsm, kv, timer};
use botyard_tests::{Host, guest};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::support::{BOT, ask, builder, dead_letters, delivered, next, simulator};

/// What a server was sent, whole.
type Requests = Arc<Mutex<Vec<String>>>;

/// A server that answers each request with what `answer` makes of its first line, after `wait`; `/drip` never ends.
async fn server(wait: Duration, answer: impl Fn(&str) -> String + Send + Sync + 'static) -> (u16, Requests) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("it is bound").port();
    let requests = Requests::default();
    let (seen, answer) = (requests.clone(), Arc::new(answer));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (seen, answer) = (seen.clone(), answer.clone());
            tokio::spawn(async move {
                let mut bytes = vec![0; 16 << 10];
                let read = stream.read(&mut bytes).await.unwrap_or(0);
                let request = String::from_utf8_lossy(&bytes[..read]).into_owned();
                let line = request.lines().next().unwrap_or_default().to_owned();
                seen.lock().expect("nobody panics with it").push(request);
                tokio::time::sleep(wait).await;
                if line.contains("/drip") {
                    stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.ok();
                    while stream.write_all(b".").await.is_ok() {
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                }
                stream.write_all(answer(&line).as_bytes()).await.ok();
            });
        }
    });
    (port, requests)
}

fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_reaches_what_it_was_granted_and_nothing_else() {
    let simulator = simulator().await;
    let telegram = simulator.api_base();
    let (other, unseen) = server(Duration::ZERO, |_| ok("secret")).await;
    let (port, requests) = server(Duration::ZERO, move |line| {
        if line.contains("/to-other") {
            return format!("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:{other}/\r\nContent-Length: 0\r\n\r\n");
        }
        ok(if line.contains("/long") { "x".repeat(5000) } else { "hello".to_owned() }.as_str())
    })
    .await;
    let grants = format!(
        "grants = {{ http = [\"http://127.0.0.1:{port}\", \"{telegram}\"] }}\n\
         limits = {{ http_bytes = \"4KiB\", time = \"1s\" }}"
    );
    let mut host = builder(&simulator).plugin("reaches", &guest("reaches"), &grants).start();
    let here = format!("http://127.0.0.1:{port}");
    assert_eq!(ask(&simulator, ALICE, &format!("/get {here}/x")).await, "200 hello");
    assert_eq!(ask(&simulator, ALICE, &format!("/post {here}/x")).await, "200 hello");
    for (url, part) in [
        (
            format!("http://127.0.0.1:{other}/"),
            format!("add \"http://127.0.0.1:{other}\" to `grants.http` of [plugins.reaches]"),
        ),
        (format!("{here}/to-other"), format!("add \"http://127.0.0.1:{other}\"")),
        (format!("{here}/long"), "limits.http_bytes".to_owned()),
        // The run itself has a second: the drip is cut before it, and the run goes on.
        (format!("{here}/drip"), "not whole in time".to_owned()),
        (format!("{telegram}/bot4242:x/getMe"), "Bot API".to_owned()),
        ("http://169.254.169.254/latest".to_owned(), "grants.http".to_owned()),
        (format!("http://localhost:{port}/"), "grants.http".to_owned()),
    ] {
        let answer = ask(&simulator, ALICE, &format!("/get {url}")).await;
        assert!(answer.starts_with("error: ") && answer.contains(&part), "{url}: {answer}");
    }
    assert!(unseen.lock().expect("a list").is_empty());
    let seen = requests.lock().expect("a list").join("\n");
    assert!(seen.contains("authorization: Bearer of-the-plugin") && seen.contains("{\"sum\":5}"), "{seen}");
    assert!(!seen.contains("test-token"));
    assert!(host.metrics().sum("botyard_http_requests_total", &["outcome=\"denied\""]) >= 4.0);
    assert!(host.stop().status.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_made_again_does_not_post_again() {
    let simulator = simulator().await;
    // Slow, so that the second chat's run reads before the first one's has committed.
    let (port, requests) = server(Duration::from_millis(500), |_| ok("once")).await;
    let grants = format!("grants = {{ http = [\"http://127.0.0.1:{port}\"] }}");
    let host = builder(&simulator).plugin("reaches", &guest("reaches"), &grants).start();
    for chat in [ALICE, BOTIR] {
        simulator.user_says(chat, chat, &format!("/race http://127.0.0.1:{port}/pay")).expect("a chat");
    }
    delivered(&simulator, 2, Duration::from_secs(20)).await;
    assert!(host.metrics().sum("botyard_commit_conflicts_total", &[]) >= 1.0, "both read the same counter");
    assert_eq!(requests.lock().expect("a list").len(), 2, "one for each event");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_that_ends_is_told_once_over_a_kill_and_a_new_one_is_not() {
    let simulator = simulator().await;
    let mut host = builder(&simulator).plugin("reaches", &guest("reaches"), "").start();
    assert_eq!(ask(&simulator, ALICE, "/hold tea").await, "held");
    assert_eq!(next(&simulator, ALICE, 1).await, "tea is over");

    // It ends while no host runs.
    assert_eq!(ask(&simulator, BOTIR, "/hold coffee").await, "held");
    host.settle();
    host.kill();
    tokio::time::sleep(Duration::from_millis(1100)).await;
    host.start();
    assert_eq!(next(&simulator, BOTIR, 1).await, "coffee is over");
    // Set again and again, it ends once, a second after the last time.
    for word in ["a", "b", "c"] {
        assert_eq!(ask(&simulator, ALICE, &format!("/hold {word}")).await, "held");
    }
    assert_eq!(next(&simulator, ALICE, 5).await, "c is over");
    host.settle();
    assert!(host.stop().status.success());
    assert_eq!((simulator.delivered(ALICE), simulator.delivered(BOTIR)), (6, 2));
    let store = Store::open(&host.store_dir()).expect("the host has stopped");
    let left = |prefix: &[u8]| store.scan_prefix(prefix, 10).expect("a sound store");
    assert_eq!(left(&fsm::plugin_prefix(BOT, &PluginName::new("reaches"))), []);
    let values = kv::scope_prefix(BOT, &PluginName::new("reaches"), kv::Scope::Chat(ChatId(ALICE)));
    assert_eq!(left(&values), [], "a value with the same time to live");
    assert_eq!(left(&expiry::bot_prefix(BOT)), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn recurring_timers_survive_a_kill_and_end_when_they_are_cancelled_or_no_longer_declared() {
    let simulator = simulator().await;
    let config = format!("config = {{ ring = {BOTIR} }}");
    let mut host = builder(&simulator).plugin("reaches", &guest("reaches"), &config).start();
    assert_eq!(ask(&simulator, ALICE, "/tick 1000").await, "ticking");
    assert_eq!(ask(&simulator, ALICE, "/ticks").await, "[tick]");
    assert_eq!(next(&simulator, ALICE, 2).await, "tock 1");
    assert_eq!(next(&simulator, BOTIR, 0).await, "ring", "the manifest's own, which no run has set");
    host.settle();
    host.kill();
    tokio::time::sleep(Duration::from_millis(2500)).await;
    host.start();
    assert_eq!(next(&simulator, ALICE, 3).await, "tock 2");
    let before = simulator.delivered(BOTIR);
    next(&simulator, BOTIR, before).await;
    let answer = ask_between(&simulator, "/still", "cancelled 1").await;
    assert!(answer, "it is cancelled by its name");

    // Without the plugin nothing recurs.
    let file = std::fs::read_to_string(host.config_file()).expect("it is there");
    let without = file.split("[plugins.reaches]").next().expect("a beginning").to_owned();
    std::fs::write(host.config_file(), without).expect("it is writable");
    host.wait_until("the plugin is gone", |host: &Host| {
        host.get("/api/plugins").is_none_or(|(_, body)| !body.contains("\"reaches\""))
    });
    host.settle();
    assert!(host.stop().status.success());
    let store = Store::open(&host.store_dir()).expect("the host has stopped");
    assert_eq!(store.scan_prefix(&timer::bot_prefix(BOT), 10).expect("a sound store"), []);
    assert_eq!(store.scan_prefix(&timer::declared_prefix(BOT), 10).expect("a sound store"), []);
}

/// Says something in Alice's chat, where other messages come too, and waits for its answer.
async fn ask_between(simulator: &botyard::simulator::Simulator, text: &str, answer: &str) -> bool {
    let before = simulator.delivered(ALICE);
    simulator.user_says(ALICE, ALICE, text).expect("the chat is there");
    for n in before..before + 5 {
        if next(simulator, ALICE, n).await == answer {
            return true;
        }
    }
    false
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_stays_a_secret_whatever_the_plugin_does_with_it() {
    const SECRET: &str = "pa\"ss\\word-of-the-shop";
    let simulator = simulator().await;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("key.txt");
    std::fs::write(&file, format!("{SECRET}\n")).expect("it is writable");
    let config = format!("secrets = {{ pay = {{ file = {:?} }} }}", file.display().to_string());
    let mut host = builder(&simulator)
        .sections("[dispatch]\nmax_attempts = 1\n")
        .plugin("reaches", &guest("reaches"), &config)
        .start();
    for text in ["/leak", "/leak panic"] {
        simulator.user_says(ALICE, ALICE, text).expect("a chat");
    }
    host.wait_until("both are dead letters", |host| {
        host.metrics().sum("botyard_events_total", &["outcome=\"dead\""]) >= 2.0
    });
    let mut shown = String::new();
    for page in ["/metrics", "/readyz", "/api/dead", "/api/plugins"] {
        shown += &host.get(page).map(|(_, body)| body).unwrap_or_default();
    }
    let stopped = host.stop();
    assert!(stopped.log.contains("the secret is [hidden]"), "the line itself is there");
    shown += &stopped.log;
    for letter in dead_letters(&host) {
        assert!(letter.reason.contains("it is [hidden]"), "{}", letter.reason);
        shown += &letter.reason;
    }
    let check = std::process::Command::new(botyard_tests::host_program())
        .args(["check", "--json", "--config"])
        .arg(host.config_file())
        .env("TEST_TOKEN", "4242:test-token-that-must-never-be-seen-anywhere")
        .output()
        .expect("it runs");
    shown += &String::from_utf8_lossy(&check.stdout);
    let store = Store::open(&host.store_dir()).expect("the host has stopped");
    for (_, value) in store.scan_prefix(b"", usize::MAX).expect("a sound store") {
        shown += &String::from_utf8_lossy(&value);
    }
    drop(store);
    assert!(!shown.contains("word-of-the-shop"), "{shown}");

    std::fs::remove_file(&file).expect("it is there");
    let check = std::process::Command::new(botyard_tests::host_program())
        .args(["check", "--config"])
        .arg(host.config_file())
        .env("TEST_TOKEN", "4242:test-token-that-must-never-be-seen-anywhere")
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&check.stdout);
    assert!(check.status.code() == Some(2) && said.contains("key.txt") && said.contains("pay"), "{said}");
}
