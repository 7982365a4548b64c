//! Against a server on this machine, and names that mean what a test says.

use std::net::IpAddr;
use std::sync::Mutex;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::HeaderMap as Headers;
use axum::response::{IntoResponse as _, Redirect};
use axum::routing::{any, get};

use super::*;
use crate::domain::OriginPattern;

/// What a server has seen: method, path and headers.
type Seen = Arc<Mutex<Vec<(String, String, Headers)>>>;

struct Peer {
    port: u16,
    seen: Seen,
}

impl Peer {
    /// `/to?URL` redirects, `/see` shows a body, `/long` has a mebibyte, `/drip` never ends.
    async fn start() -> Self {
        let seen = Seen::default();
        let note = {
            let seen = seen.clone();
            move |method: axum::http::Method, uri: axum::http::Uri, headers: Headers| {
                seen.lock().unwrap().push((method.to_string(), uri.path().to_owned(), headers));
            }
        };
        let router = Router::new()
            .route(
                "/see",
                any(move |method, uri, headers, body: Bytes| {
                    note(method, uri, headers);
                    async move { body }
                }),
            )
            .route(
                "/to",
                any(|axum::extract::RawQuery(to): axum::extract::RawQuery| async move {
                    Redirect::temporary(&to.unwrap_or_default())
                }),
            )
            .route(
                "/found",
                any(|axum::extract::RawQuery(to): axum::extract::RawQuery| async move {
                    (axum::http::StatusCode::FOUND, [("location", to.unwrap_or_default())])
                }),
            )
            .route("/round", any(|| async { Redirect::temporary("/round") }))
            .route("/long", get(|| async { vec![0_u8; 1 << 20] }))
            .route(
                "/drip",
                get(|| async {
                    let drops = futures_util::stream::unfold((), |()| async {
                        tokio::time::sleep(Duration::from_millis(20)).await;
                        Some((Ok::<_, std::io::Error>("drop"), ()))
                    });
                    Body::from_stream(drops).into_response()
                }),
            );
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { port, seen }
    }

    fn url(&self, rest: &str) -> String {
        format!("http://127.0.0.1:{}{rest}", self.port)
    }
}

/// Names of the internet and of one's own network that lead to this machine.
fn names() -> Lookup {
    Arc::new(|name| {
        Box::pin(async move {
            let addresses: &[&str] = match name.as_str() {
                "rebound.example" => &["127.0.0.1"],
                "metadata.internal" => &["169.254.169.254"],
                "pay" | "a.pay.internal" => &["127.0.0.1"],
                "six.example" => &["::ffff:127.0.0.1", "fd00::1"],
                _ => return Err(std::io::Error::other("no such name")),
            };
            Ok(addresses.iter().map(|address| address.parse::<IpAddr>().unwrap()).collect())
        })
    })
}

const BUDGET: fn() -> Budget = || Budget {
    bytes: 1000,
    calls: (50, 50),
    per_minute: 100,
    bytes_per_minute: 0,
    allowance: Arc::default(),
    deadline: Instant::now() + Duration::from_secs(5),
};

async fn send_with(client: &HttpClient, granted: &[&str], request: Request, budget: Budget) -> Exchange {
    let declared: Vec<OriginPattern> = ["http://*:*", "https://*:*"].map(|text| text.parse().unwrap()).into();
    let granted: Vec<OriginPattern> = granted.iter().map(|text| text.parse().unwrap()).collect();
    let plugin = PluginName::new("shop");
    let reach = Reach { plugin: &plugin, declared: &declared, granted: &granted };
    client.send(&plugin, &reach, request, budget).await
}

async fn send(granted: &[&str], request: Request) -> Result<Response, Error> {
    send_with(&HttpClient::with_lookup(["http://127.0.0.1:1"], names()), granted, request, BUDGET()).await.result
}

fn request(method: &str, url: &str) -> Request {
    Request { method: method.into(), url: url.into(), headers: vec![], body: vec![], timeout: None }
}

#[tokio::test]
async fn only_granted_servers_are_reached_and_refusals_name_the_line() {
    let peer = Peer::start().await;
    let port = peer.port;
    let here = format!("http://127.0.0.1:{port}");
    let dotless = format!("http://pay:{port}");
    let internal = format!("http://a.pay.internal:{port}");
    let rebound = format!("http://rebound.example:{port}");
    let six = format!("http://six.example:{port}");
    for (granted, url, expect) in [
        (&*here, peer.url("/see"), Ok(())),
        (&*dotless, format!("{dotless}/see"), Ok(())),
        (&*internal, format!("{internal}/see"), Ok(())),
        ("http://127.0.0.1:*", peer.url("/see"), Ok(())),
        ("https://*", peer.url("/see"), Err(&*here)),
        // Many at once do not name what is one's own.
        ("http://*:*", peer.url("/see"), Err(&*here)),
        ("http://*:*", format!("{dotless}/see"), Err(&*dotless)),
        ("http://*.pay.internal:*", format!("{internal}/see"), Err(&*internal)),
        // A name of the internet that leads here, granted or not.
        (&*rebound, format!("{rebound}/see"), Err("leads to 127.0.0.1")),
        (&*six, format!("{six}/see"), Err("leads to ::ffff:127.0.0.1")),
        ("http://metadata.internal", "http://metadata.internal/see".into(), Err("leads to 169.254.169.254")),
        ("http://*:*", "http://169.254.169.254/latest".into(), Err("\"http://169.254.169.254\"")),
        ("http://*:*", format!("http://[::ffff:7f00:1]:{port}/see"), Err("grants.http")),
        ("http://127.0.0.1:1", "http://127.0.0.1:1/bot".into(), Err("Bot API")),
        ("http://localhost:1", "http://localhost:1/bot".into(), Err("Bot API")),
        ("https://*:*", "https://api.telegram.org./x".into(), Err("Bot API")),
    ] {
        let answer = send(&[granted], request("GET", &url)).await;
        match (expect, answer) {
            (Ok(()), answer) => assert_eq!(answer.map(|answer| answer.status), Ok(200), "{granted} {url}"),
            (Err(part), Err(Error::Denied(text))) => assert!(text.contains(part), "{granted} {url}: {text}"),
            (Err(part), other) => panic!("{granted} {url}: {other:?} instead of {part}"),
        }
    }
    let undeclared = Reach { plugin: &PluginName::new("shop"), declared: &[], granted: &[here.parse().unwrap()] };
    let client = HttpClient::with_lookup([""], names());
    let answer = client.send(undeclared.plugin, &undeclared, request("GET", &peer.url("/see")), BUDGET()).await;
    assert!(!answer.reached && matches!(answer.result, Err(Error::Denied(text)) if text.contains("manifest")));
}

#[tokio::test]
async fn redirections_are_asked_about_one_by_one_and_carry_no_secrets_elsewhere() {
    let (peer, other) = (Peer::start().await, Peer::start().await);
    let (here, there) = (peer.url(""), other.url(""));
    let with_secret = |method: &str, url: &str| Request {
        headers: [("Authorization", "Bearer x"), ("X-Api-Key", "x"), ("Accept", "text/plain")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        body: b"sum=5".to_vec(),
        ..request(method, url)
    };
    let to_there = peer.url(&format!("/to?{}", other.url("/see")));
    let denied = send(&[&here], with_secret("POST", &to_there)).await;
    assert!(
        matches!(&denied, Err(Error::Denied(text)) if text.contains("redirects") && text.contains(&there)),
        "{denied:?}"
    );
    assert!(other.seen.lock().unwrap().is_empty());

    let answer = send(&[&here, &there], with_secret("POST", &to_there)).await.unwrap();
    assert_eq!((answer.status, &*answer.body, answer.url), (200, &b"sum=5"[..], other.url("/see")));
    let (method, _, headers) = other.seen.lock().unwrap().pop().unwrap();
    assert_eq!((method.as_str(), headers.get("accept").is_some()), ("POST", true));
    assert!(headers.get("authorization").is_none() && headers.get("x-api-key").is_none());

    // To the same server they go along, and a 302 makes a GET of a POST.
    send(&[&here], with_secret("POST", &peer.url("/found?/see"))).await.unwrap();
    let (method, _, headers) = peer.seen.lock().unwrap().pop().unwrap();
    assert_eq!((method.as_str(), headers["authorization"].to_str().unwrap()), ("GET", "Bearer x"));

    for (to, part) in [
        (peer.url("/round"), "redirections"),
        (peer.url("/to?http://169.254.169.254/latest/meta-data"), "169.254.169.254"),
        (peer.url("/to?http://127.0.0.1:1/botTOKEN/getMe"), "Bot API"),
        (peer.url("/to?file:///etc/passwd"), "neither https"),
        (peer.url("/to?http://u:p@127.0.0.1/"), "user or password"),
    ] {
        let error = send(&[&here], request("GET", &to)).await.unwrap_err();
        assert!(error.to_string().contains(part), "{to}: {error}");
    }
}

#[tokio::test]
async fn what_is_too_much_or_too_slow_is_cut() {
    let peer = Peer::start().await;
    let here = peer.url("");
    let client = HttpClient::with_lookup([""], names());
    let long = send(&[&here], request("GET", &peer.url("/long"))).await.unwrap_err();
    assert!(matches!(&long, Error::Limited(text) if text.contains("limits.http_bytes")), "{long}");
    let large = Request { body: vec![0; 1001], ..request("POST", &peer.url("/see")) };
    assert!(matches!(send(&[&here], large).await, Err(Error::Limited(_))));

    let begun = Instant::now();
    let slow = Request { timeout: Some(Duration::from_millis(150)), ..request("GET", &peer.url("/drip")) };
    let cut = send_with(&client, &[&here], slow, Budget { bytes: 1 << 20, ..BUDGET() }).await;
    assert!(cut.reached && matches!(cut.result, Err(Error::UnknownOutcome(text)) if text.contains("in time")));
    assert!(begun.elapsed() < Duration::from_secs(3));

    let few = Budget { per_minute: 2, ..BUDGET() };
    let mut kinds = Vec::new();
    for _ in 0..3 {
        kinds.push(send_with(&client, &[&here], request("GET", &peer.url("/see")), few.clone()).await.result);
    }
    // The drip has taken a turn as well.
    assert!(kinds[0].is_ok() && matches!(&kinds[1], Err(Error::Limited(text)) if text.contains("http_per_minute")));

    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let gone =
        send(&["http://127.0.0.1:*"], request("GET", &format!("http://{nobody}/?key=secret"))).await.unwrap_err();
    assert!(matches!(&gone, Error::Unreachable(text) if !text.contains("secret")), "{gone:?}");
}

#[tokio::test]
async fn each_redirection_is_a_request_of_its_own_for_every_limit() {
    let peer = Peer::start().await;
    let here = peer.url("");
    let post = || Request { body: vec![0; 400], ..request("POST", &peer.url("/round")) };
    let asked =
        async |budget: Budget| send_with(&HttpClient::with_lookup([""], names()), &[&here], post(), budget).await;

    let free = asked(BUDGET()).await;
    assert_eq!((free.requests, free.short), (6, None), "the first and five redirections");
    assert!(free.bytes > 6 * 400 && free.taken > 5 * 400, "{free:?}");

    for (budget, limit, requests, waits) in [
        (Budget { calls: (9, 3), ..BUDGET() }, Limit::HttpCalls, 3, false),
        // It has made two before, and can't ever make four.
        (Budget { calls: (9, 7), per_minute: 3, ..BUDGET() }, Limit::HttpPerMinute, 1, false),
        (Budget { bytes_per_minute: 1000, ..BUDGET() }, Limit::HttpBytesPerMinute, 3, true),
    ] {
        let Exchange { result, short, requests: made, .. } = asked(budget).await;
        let told = result.unwrap_err().to_string();
        assert!(told.contains(&format!("`limits.{}` of [plugins.shop] in bot.toml", limit.key())), "{told}");
        assert_eq!((made, short.map(|(limit, _)| limit)), (requests, waits.then_some(limit)), "{told}");
    }
    // Others have used up the minute.
    let client = HttpClient::with_lookup([""], names());
    let budget = Budget { per_minute: 4, ..BUDGET() };
    assert_eq!(send_with(&client, &[&here], request("GET", &peer.url("/see")), budget.clone()).await.requests, 1);
    let second = send_with(&client, &[&here], post(), budget).await;
    assert!(second.requests < 4 && matches!(second.short, Some((Limit::HttpPerMinute, _))), "{second:?}");
}

#[tokio::test]
async fn a_request_that_can_not_be_right_is_not_made() {
    let peer = Peer::start().await;
    let header = |name: &str, value: &str| Request {
        headers: vec![(name.into(), value.into())],
        ..request("GET", &peer.url("/see"))
    };
    for (wrong, part) in [
        (request("GET", "not a url"), "URL"),
        (request("GET", "ftp://a.example/"), "neither"),
        (request("GET", "http://user:pass@a.example/"), "password"),
        (request("CONNECT", &peer.url("/see")), "method"),
        (request("GET POST", &peer.url("/see")), "method"),
        (header("Host", "other.example"), "`host`"),
        (header("content-LENGTH", "5"), "`content-length`"),
        (header("Transfer-Encoding", "chunked"), "own"),
        (header("Connection", "upgrade"), "own"),
        (header("a b", "x"), "name of a header"),
        (header("x", "a\r\nHost: b"), "can't be sent"),
    ] {
        let error = send(&[&peer.url("")], wrong).await.unwrap_err();
        assert!(matches!(&error, Error::Invalid(text) if text.contains(part)), "{part}: {error:?}");
    }
    let heavy = send(&[&peer.url("")], header("x", &"y".repeat(40_000))).await.unwrap_err();
    assert!(matches!(heavy, Error::Limited(_)));
    assert!(peer.seen.lock().unwrap().is_empty());
}
