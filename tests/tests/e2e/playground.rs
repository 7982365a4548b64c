//! What the page is told of the inside of a host that plays Telegram itself, and the clock that goes ahead.

use std::time::{Duration, Instant};

use botyard_tests::{Host, HostBuilder, guest, plugin};
use serde_json::{Value, json};

const ALICE: i64 = 1001;

struct Outside {
    http: reqwest::Client,
    base: String,
}

impl Outside {
    fn of(host: &Host) -> Self {
        rustls::crypto::ring::default_provider().install_default().ok();
        Self { http: reqwest::Client::new(), base: host.page() }
    }

    async fn get(&self, path: &str) -> Value {
        let answer = self.http.get(format!("{}{path}", self.base)).send().await.expect("it answers");
        serde_json::from_str(&answer.text().await.expect("a text")).expect("JSON")
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        let request = self.http.post(format!("{}{path}", self.base)).header("content-type", "application/json");
        let answer = request.body(body.to_string()).send().await.expect("it answers");
        serde_json::from_str(&answer.text().await.expect("a text")).expect("JSON")
    }

    async fn says(&self, text: &str) {
        self.post("sim/say", json!({ "chat": ALICE, "user": ALICE, "text": text })).await;
    }

    /// The newest message of the bot, once it has this text.
    async fn hears(&self, text: &str) {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let messages = self.get(&format!("sim/messages?chat={ALICE}&limit=5")).await;
            let is_it = |message: &Value| message["text"] == text && message["from_bot"] == json!(true);
            if messages["messages"].as_array().expect("a list").iter().any(is_it) {
                return;
            }
            assert!(Instant::now() < deadline, "the bot does not say {text}; there is {messages}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

#[tokio::test]
async fn what_a_plugin_did_is_seen_beside_the_chat() {
    let host = HostBuilder::new("http://127.0.0.1:1")
        .simulator()
        .plugin("form", &plugin("form"), "")
        .plugin("showroom", &guest("showroom"), "")
        .start();
    let outside = Outside::of(&host);
    outside.says("/form").await;
    outside.hears("What is your name?").await;
    outside.says("Alice").await;
    outside.hears("How old are you?").await;
    let seen = outside.get("sim/activity").await;
    let run = &seen["runs"][1];
    assert_eq!(
        (&run["plugin"], &run["verdict"], &run["number"]),
        (&json!("form"), &json!("done"), &json!(2)),
        "{seen}"
    );
    assert_eq!((&run["before"]["name"], &run["after"]["name"]), (&json!("name"), &json!("age")));
    assert!(run["after"]["content"].as_str().is_some_and(|content| content.contains("Alice")), "{run}");
    assert_eq!(run["cause"]["update"], seen["updates"][1]["id"]);
    assert_eq!(run["conversation"], json!([ALICE, ALICE, null]));
    let call = &run["calls"][0];
    assert_eq!((&call["method"], &call["params"]["text"]), (&json!("sendMessage"), &json!("How old are you?")));
    assert!(run["cpu_micros"].as_u64() > Some(0) && run["wall_micros"].as_u64() >= run["cpu_micros"].as_u64(), "{run}");

    // A timer of an hour, now; and what was logged when it was set.
    outside.says("/later").await;
    outside.hears("In an hour").await;
    let clock = outside.get("sim/clock").await;
    assert_eq!(clock["moves_host"], true);
    let moved = outside.post("sim/clock", json!({ "to_next_timer": true })).await;
    assert!((3590..=3601).contains(&moved["ahead"].as_i64().expect("a number")), "{moved}");
    outside.hears("It is time").await;
    let seen = outside.get("sim/activity?runs=2").await;
    assert!(seen["runs"][0]["log"][0].as_str().is_some_and(|line| line == "info a timer is set"), "{seen}");
    assert!(seen["runs"][0]["writes"][0].as_str().is_some_and(|line| line.starts_with("timer `bell`")), "{seen}");
    assert_eq!(seen["runs"][1]["cause"]["timer"], "bell");
    assert!(!seen.to_string().contains("simulated-bot-without"), "no token");
}

#[tokio::test]
async fn what_recurs_goes_on_after_a_clock_that_was_a_day_ahead_is_set_right() {
    let mut host = HostBuilder::new("http://127.0.0.1:1")
        .simulator()
        .plugin("reaches", &guest("reaches"), "config = { ring = 0 }")
        .start();
    let outside = Outside::of(&host);
    outside.says("/tick 1000").await;
    outside.hears("tock 1").await;
    outside.post("sim/clock", json!({ "advance_seconds": 86_400 })).await;
    outside.hears("tock 2").await;
    outside.hears("tock 3").await;
    assert!(host.stop().status.success());
    // It is a day earlier again.
    host.start();
    let outside = Outside::of(&host);
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let messages = outside.get(&format!("sim/messages?chat={ALICE}&limit=5")).await;
        let is_tock = |message: &Value| message["text"].as_str().is_some_and(|text| text.starts_with("tock"));
        if messages["messages"].as_array().expect("a list").iter().any(is_tock) {
            break;
        }
        assert!(Instant::now() < deadline, "it is silent");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
