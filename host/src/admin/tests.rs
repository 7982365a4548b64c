use std::path::Path;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::*;
use crate::dispatch::Recorder;
use crate::domain::{BotId, BotName, PluginName};
use crate::intake::Status;
use crate::operate::Operator;
use crate::store::Store;
use crate::telegram::WebhookInfo;

async fn request(address: SocketAddr, request: &str) -> String {
    request_with(address, request, "host: x\r\n", "").await
}

/// `headers` are whole lines.
async fn request_with(address: SocketAddr, request: &str, headers: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let length = body.len();
    let request = format!("{request} HTTP/1.1\r\n{headers}connection: close\r\ncontent-length: {length}\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn answers_over_http_and_stops_when_told() {
    let listener = bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopping) = watch::channel(false);
    let folder = tempfile::tempdir().unwrap();
    let api = api(folder.path());
    let server = tokio::spawn(serve(listener, api.clone(), stopping));

    assert!(request(address, "GET /healthz").await.starts_with("HTTP/1.1 200"));
    let page = request(address, "GET /").await;
    assert!(page.contains("text/html") && page.contains("default-src 'none'") && page.contains("page.js"), "{page}");
    assert!(request(address, "GET /page.js").await.contains("/api/broadcasts"));
    assert!(request(address, "GET /nothing").await.starts_with("HTTP/1.1 404"));
    assert!(request(address, "POST /healthz").await.starts_with("HTTP/1.1 405"));

    let answer = request(address, "GET /readyz").await;
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("the last good poll is still to come"), "{answer}");
    api.bots.tell(|readiness| readiness.intake(heard()));
    let answer = request(address, "GET /readyz").await;
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.ends_with(r#"{"ready":true,"reasons":[],"notes":[]}"#),
        "{answer}"
    );

    ::metrics::counter!("botyard_api_calls_total", "method" => "getMe", "outcome" => "ok").increment(3);
    let answer = request(address, "GET /metrics").await;
    assert!(answer.contains("text/plain; version=0.0.4"), "{answer}");
    assert!(answer.contains("# HELP botyard_api_calls_total Calls to the Bot API"), "{answer}");
    assert!(answer.contains(r#"botyard_api_calls_total{method="getMe",outcome="ok"} 3"#), "{answer}");

    // A client that never finishes its request does not hold up the stop.
    let mut idle = TcpStream::connect(address).await.unwrap();
    idle.write_all(b"GET / HT").await.unwrap();
    stop.send(true).unwrap();
    tokio::time::timeout(2 * GRACE, server).await.expect("it stops").unwrap().unwrap();
}

fn api(store: &Path) -> Shared {
    let (arrivals, _) = mpsc::unbounded_channel();
    let operator = Operator::on_running(Store::open(store).unwrap(), BotId(42), arrivals);
    let (orders, mut ordered) = mpsc::channel(1);
    let echo: PluginStatus = serde_json::from_value(serde_json::json!({
        "name": "echo", "version": "", "manifest_version": "", "priority": 0, "state": "serving", "since": 0,
        "reason": null, "before": null,
    }))
    .unwrap();
    let mut listed = false;
    tokio::spawn(async move {
        while let Some(order) = ordered.recv().await {
            match order {
                Order::Change { plugin, answer, .. } => {
                    answer
                        .send(Err(OrderError::Unknown { name: plugin, known: vec![PluginName::new("echo")] }))
                        .unwrap();
                }
                Order::List(answer) if !std::mem::replace(&mut listed, true) => {
                    answer.send(vec![echo.clone()]).unwrap()
                }
                _ => {}
            }
        }
    });
    let bots = Bots::default();
    let name = BotName::new("bot");
    bots.expect(&name);
    bots.serves(&name, Served { operator, orders, recorder: Recorder::default() });
    Shared { store: store.to_owned(), bots, hand_over: watch::channel(false).0 }
}

#[tokio::test]
async fn operators_are_answered_and_web_pages_are_not() {
    let listener = bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
    let address = listener.local_addr().unwrap();
    let (_stop, stopping) = watch::channel(false);
    let folder = tempfile::tempdir().unwrap();
    let api = api(folder.path());
    let handing_over = api.hand_over.subscribe();
    tokio::spawn(serve(listener, api, stopping));

    let own = format!("host: {address}\r\n");
    let get = async |path: &str| request_with(address, &format!("GET {path}"), &own, "").await;
    let answer = get("/api/host").await;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let host: Host = serde_json::from_str(body).unwrap();
    assert!(head.starts_with("HTTP/1.1 200") && host.store == folder.path() && host.bot == Some(BotId(42)), "{answer}");
    assert!(get("/api/dead").await.ends_with(r#"{"letters":[],"more":false}"#));
    let answer = get("/api/dead/7").await;
    assert!(answer.starts_with("HTTP/1.1 404") && answer.contains(r#"{"error":"there is no dead letter 7"}"#));

    for headers in [
        "host: evil.example\r\n".to_owned(),
        format!("{own}origin: http://evil.example\r\n"),
        format!("{own}origin: null\r\n"),
    ] {
        for path in ["GET /api/dead", "POST /api/dead/drop"] {
            let answer = request_with(address, path, &headers, r#"{"all":{"plugin":null}}"#).await;
            assert!(answer.starts_with("HTTP/1.1 403") && answer.contains("error"), "{answer}");
        }
    }
    let post = async |headers: &str, body: &str| {
        request_with(address, "POST /api/dead/drop", &format!("{own}{headers}"), body).await
    };
    let json = "content-type: application/json\r\n";
    let answer = post(json, r#"{"numbers":[7]}"#).await;
    assert!(answer.ends_with(r#"{"done":[],"refused":[{"number":7,"reason":"there is no such dead letter"}]}"#));
    assert!(post("", r#"{"numbers":[7]}"#).await.starts_with("HTTP/1.1 415"), "what a form of a page can send");
    assert!(post(json, r#"{"nmbers":[7]}"#).await.starts_with("HTTP/1.1 422"));
    for (store, until, why) in
        [("/elsewhere", u64::MAX, "another store"), (folder.path().to_str().unwrap(), 0, "too late")]
    {
        let body = format!(r#"{{"store":"{store}","until":{until}}}"#);
        let answer = request_with(address, "POST /api/hand-over", &format!("{own}{json}"), &body).await;
        assert!(answer.starts_with("HTTP/1.1 409") && answer.contains(why), "{answer}");
    }
    assert!(!*handing_over.borrow());
    let answer = request_with(address, "POST /api/plugins/form/pause", &own, "").await;
    assert!(answer.starts_with("HTTP/1.1 404") && answer.contains("no plugin `form`"), "{answer}");
    assert!(answer.contains("there is `echo`"), "{answer}");
    let draft = r#"{"method":"sendMessage","params":{"text":"x"},"buttons_of":"form"}"#;
    let answer = request_with(address, "POST /api/broadcasts", &format!("{own}{json}"), draft).await;
    assert!(answer.starts_with("HTTP/1.1 404") && answer.contains("no plugin `form`"), "{answer}");
    let answer = request_with(address, "POST /api/plugins/form/dance", &own, "").await;
    assert!(answer.starts_with("HTTP/1.1 404") && answer.contains("no `dance`"), "{answer}");
    assert!(get("/api/plugins").await.starts_with("HTTP/1.1 503"), "nobody answers any more");
    let long = format!(r#"{{"numbers":[{}7]}}"#, "7,".repeat(200_000));
    assert!(post(json, &long).await.starts_with("HTTP/1.1 413"));
}

#[tokio::test]
async fn a_taken_address_is_named_with_its_key() {
    let first = bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
    let address = first.local_addr().unwrap();
    let message = bind(address).await.unwrap_err().to_string();
    assert!(message.contains(&address.to_string()) && message.contains("[admin]"), "{message}");
}

fn heard() -> Status {
    Status { last_good: Some(Instant::now()), patience: Duration::from_secs(90), ..Status::default() }
}

#[tokio::test(start_paused = true)]
async fn ready_while_polls_are_young_plugins_serve_and_the_store_works() {
    let readiness = Readiness::default();
    let reasons = || -> Vec<String> {
        let report = readiness.report();
        assert_eq!(report.ready, report.reasons.is_empty());
        report.reasons.into_iter().map(|Reason { part, reason }| format!("{part}: {reason}")).collect()
    };
    let problem = |problem: &str| Some(problem.to_owned());
    readiness.intake(Status { problem: problem("could not reach Telegram"), ..Status::default() });
    assert_eq!(reasons(), ["intake: the last good poll is still to come: could not reach Telegram"]);
    let mut status = heard();
    readiness.intake(status.clone());
    assert_eq!(reasons(), [""; 0]);

    tokio::time::advance(Duration::from_secs(90)).await;
    status.problem = problem("server error 502");
    readiness.intake(status.clone());
    assert_eq!(reasons(), [""; 0], "one bad poll is no reason");
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(reasons(), ["intake: the last good poll was 91 s ago: server error 502"]);
    readiness.intake(Status { is_deaf: true, problem: problem("somebody else polls"), ..heard() });
    assert_eq!(reasons(), ["intake: the last good poll was 0 s ago: somebody else polls"], "no use in patience");
    readiness.intake(Status { notes: [("inbox", "much waits".to_owned())].into(), ..heard() });
    assert_eq!(readiness.report().notes, [Reason { part: "intake".to_owned(), reason: "much waits".to_owned() }]);
    let url = "https://x/bot123456:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw".to_owned();
    readiness.intake(Status { webhook: Some(WebhookInfo { url, ..WebhookInfo::default() }), ..heard() });
    assert_eq!(readiness.report().webhook.unwrap().url, "https://x/bot[hidden]");
    readiness.intake(heard());
    assert_eq!(reasons(), [""; 0]);

    let (echo, form) = (PluginName::new("echo"), PluginName::new("form"));
    readiness.plugin_failed(&form, "at https://x/bot123456:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw/getMe");
    readiness.plugin_failed(&echo, "there is no such file");
    assert_eq!(reasons(), ["plugins.echo: there is no such file", "plugins.form: at https://x/bot[hidden]/getMe"]);
    readiness.plugin_ok(&echo);
    readiness.plugin_ok(&form);
    assert_eq!(reasons(), [""; 0]);

    readiness.plugin_stale(&echo, "the file is cut off");
    readiness.config_failed("bot.toml:1:1: unknown key");
    let notes: Vec<String> = readiness.report().notes.into_iter().map(|note| note.part).collect();
    assert_eq!(notes, ["plugins.echo", "config"]);
    assert_eq!(reasons(), [""; 0], "the old serves on");
    readiness.plugin_ok(&echo);
    readiness.config_ok();
    assert_eq!(readiness.report().notes, []);

    readiness.store_failed("the disk is full");
    readiness.stopping();
    assert_eq!(reasons(), ["host: the host is stopping", "store: the disk is full"]);
}

#[tokio::test(start_paused = true)]
async fn chats_that_wait_for_long_are_told_of_until_their_time_is_over() {
    let readiness = Readiness::default();
    readiness.intake(heard());
    let now = tokio::time::Instant::now();
    let floods =
        [("chat 5", 400), ("chat 6", 6775)].map(|(lane, wait)| (lane.to_owned(), now + Duration::from_secs(wait)));
    readiness.chats_flooded(floods.into());
    let notes = || readiness.report().notes.into_iter().map(|note| (note.part, note.reason)).collect::<Vec<_>>();
    let [(part, reason)] = &notes()[..] else { panic!("{:?}", notes()) };
    assert!(part == "send" && reason.contains("chat 6 has to wait for another 6775 s and one other"), "{reason}");
    assert!(readiness.report().ready);
    tokio::time::advance(Duration::from_secs(401)).await;
    assert!(notes()[0].1.contains("6374 s;"), "{:?}", notes());
    tokio::time::advance(Duration::from_secs(6775)).await;
    assert_eq!(notes(), []);
}
