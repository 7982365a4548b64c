//! Several bots in one host: each with its own plugins and limits, and none that another one harms.

use std::fmt::Write as _;
use std::time::Duration;

use botyard::simulator::{ALICE, Action, BOTIR, Bulk, Fault, Simulator};
use botyard_tests::{Host, HostBuilder, plugin};

use super::operator::{botyard, done, json};
use super::support::{ask, builder, delivered, simulator};

/// A bot of its own at a simulator of its own.
fn shop(simulator: &Simulator, more: &str) -> String {
    section("shop", 777, simulator, more)
}

fn section(name: &str, id: u32, simulator: &Simulator, more: &str) -> String {
    let base = simulator.api_base();
    format!("[bots.{name}]\ntoken = \"{id}:test-token-that-nobody-must-ever-see\"\napi_base = \"{base}\"\n{more}\n")
}

pub(super) fn two(first: &Simulator, second: &Simulator, more: &str) -> HostBuilder {
    builder(first).sections(&shop(second, more)).plugin("echo", &plugin("echo"), "bots = [\"bot\"]").plugin(
        "counter",
        &plugin("counter"),
        "bots = [\"shop\"]",
    )
}

fn ready(host: &Host, path: &str) -> (u16, serde_json::Value) {
    let (status, body) = host.get(path).expect("the host answers");
    (status, serde_json::from_str(&body).expect("JSON"))
}

fn refuse_token(simulator: &Simulator) {
    let action = Action::Answer {
        status: 401,
        body: r#"{"ok":false,"error_code":401,"description":"Unauthorized"}"#.to_owned(),
        content_type: "application/json".to_owned(),
        applied: false,
    };
    simulator.add_fault(Fault::on("*", action));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_bot_is_answered_by_its_own_plugins() {
    let (first, second) = (simulator().await, simulator().await);
    let mut host = two(&first, &second, "").start();
    host.wait_until("both are ready", |host| ready(host, "/readyz?bot=shop").0 == 200);
    assert_eq!(ask(&first, ALICE, "/count").await, "/count", "the echo");
    let counted = ask(&second, ALICE, "/count").await;
    assert!(counted.starts_with("This chat: 1."), "{counted}");
    assert!(ask(&second, ALICE, "/count").await.starts_with("This chat: 2."));

    let names = |args: &[&str]| -> Vec<String> {
        let list = json(&host, args);
        list.as_array().expect("a list").iter().map(|plugin| plugin["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&["plugin", "list", "--bot", "shop"]), ["counter"]);
    assert_eq!(names(&["plugin", "list", "--bot", "bot"]), ["echo"]);
    let (code, _, errors) = botyard(&host, &["dead", "list"]);
    assert!(code == Some(2) && errors.contains("`bot`, `shop`") && errors.contains("--bot"), "{errors}");
    let (code, _, errors) = botyard(&host, &["dead", "list", "--bot", "shap"]);
    assert!(code == Some(2) && errors.contains("no bot `shap`") && errors.contains("`shop`"), "{errors}");
    assert!(done(&host, &["chats", "list", "--bot", "shop"]).contains(&ALICE.to_string()));
    let checked = done(&host, &["check"]);
    assert!(checked.contains("token of bot") && checked.contains("token of shop"), "{checked}");
    let (status, body) = host.get("/api/summary").expect("an answer");
    assert!(status == 400 && body.contains("several bots"), "{body}");
    assert_eq!(ready(&host, "/api/summary?bot=shop").1["bot"], 777);

    let metrics = host.metrics();
    assert!(metrics.sum("botyard_events_total", &["bot=\"shop\"", "handled"]) >= 2.0);
    assert!(metrics.sum("botyard_events_total", &["bot=\"bot\"", "handled"]) >= 1.0);
    let log = host.stop().log;
    assert!(log.contains("of{bot=shop}") || log.contains("bot=shop"), "{log}");
    // Stopped: on the store itself.
    assert!(done(&host, &["chats", "list", "--bot", "shop"]).contains(&ALICE.to_string()));
    assert!(done(&host, &["chats", "list", "--bot", "bot"]).contains(&ALICE.to_string()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_token_stops_that_bot_only_until_there_is_a_new_one() {
    let (first, second) = (simulator().await, simulator().await);
    refuse_token(&second);
    let mut host = two(&first, &second, "").start();
    assert_eq!(ask(&first, ALICE, "hello").await, "hello");
    host.wait_until("the dead one is told of", |host| {
        let (status, report) = ready(host, "/readyz");
        let reason = report["bots"]["shop"]["reasons"][0]["reason"].as_str().unwrap_or_default().to_owned();
        status == 200 && reason.contains("[bots.shop]")
    });
    assert_eq!(ready(&host, "/readyz?bot=shop").0, 503);
    let (code, _, errors) = botyard(&host, &["plugin", "list", "--bot", "shop"]);
    assert!(code == Some(1) && errors.contains("does not run"), "{errors}");

    second.clear_faults();
    let config = std::fs::read_to_string(host.config_file()).expect("readable");
    let config = config.replace("777:test-token-that", "777:another-test-token-that");
    std::fs::write(host.config_file(), config).expect("writable");
    host.wait_until("it serves", |host| ready(host, "/readyz?bot=shop").0 == 200);
    assert!(ask(&second, ALICE, "/count").await.starts_with("This chat: 1."));

    refuse_token(&second);
    host.wait_until("it is heard that the token is dead", |host| ready(host, "/readyz?bot=shop").0 == 503);
    assert_eq!(ask(&first, ALICE, "still here").await, "still here");
    assert_eq!(ready(&host, "/readyz").0, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_in_one_bot_does_not_slow_the_other() {
    let (first, second) = (simulator().await, simulator().await);
    for simulator in [&first, &second] {
        simulator.start_load_mode(true);
    }
    second.add_fault(Fault::on("sendMessage", Action::Flood { retry_after: 600 }));
    let mut host = two(&first, &second, "").start();
    host.wait_until("both are ready", |host| ready(host, "/readyz?bot=shop").0 == 200);
    let bulk = Bulk { text: "/count".to_owned(), ..Bulk::new(2_000, 200) };
    second.push_updates(&bulk);
    first.push_updates(&Bulk::new(1_000, 100));
    delivered(&first, 1_000, Duration::from_secs(30)).await;
    assert_eq!(second.delivered_in_all(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_bots_begin_although_the_server_loads_only_some_of_them_at_once() {
    let first = simulator().await;
    let mut others = Vec::new();
    let mut sections = String::new();
    for n in 0..29 {
        // A simulator is one bot, whatever the token.
        let simulator = simulator().await;
        if n >= 19 {
            // As Telegram answers for bots that its server has not loaded yet.
            simulator.add_fault(Fault::on("getMe", Action::Flood { retry_after: 1 }).times(1));
        }
        write!(sections, "{}", section(&format!("b{n:02}"), 1000 + n, &simulator, "")).expect("a string");
        others.push(simulator);
    }
    let mut host = builder(&first).sections(&sections).plugin("echo", &plugin("echo"), "").start();
    host.wait_until("all are ready", |host| {
        let (_, report) = ready(host, "/readyz");
        report["bots"].as_object().is_some_and(|bots| bots.len() == 30 && bots.values().all(|bot| bot["ready"] == true))
    });
    for simulator in &others[18..21] {
        assert_eq!(ask(simulator, BOTIR, "hello").await, "hello");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bots_come_and_go_with_the_configuration() {
    let (first, second) = (simulator().await, simulator().await);
    let mut host = builder(&first).plugin("echo", &plugin("echo"), "").start();
    assert_eq!(ask(&first, ALICE, "one").await, "one");
    let config = std::fs::read_to_string(host.config_file()).expect("readable");
    std::fs::write(host.config_file(), format!("{config}{}", shop(&second, ""))).expect("writable");
    host.wait_until("the new one serves", |host| host.get("/readyz?bot=shop").is_some_and(|(status, _)| status == 200));
    assert_eq!(ask(&second, ALICE, "two").await, "two");
    std::fs::write(host.config_file(), config).expect("writable");
    host.wait_until("it is gone", |host| host.get("/readyz?bot=shop").is_some_and(|(status, _)| status == 404));
    second.user_says(ALICE, ALICE, "anybody?").expect("a chat");
    assert_eq!(ask(&first, ALICE, "three").await, "three");
    assert_eq!(second.delivered(ALICE), 1, "nobody listens any more");
    assert!(host.stop().status.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_of_which_no_bot_can_start_does_not_start() {
    let simulator = simulator().await;
    refuse_token(&simulator);
    let folder = tempfile::tempdir().expect("a folder");
    let config = format!(
        "{}{}[admin]\nlisten = \"127.0.0.1:0\"\n[plugins.echo]\npath = {:?}\n",
        shop(&simulator, ""),
        section("desk", 778, &simulator, ""),
        plugin("echo").display().to_string()
    );
    let file = folder.path().join("bot.toml");
    std::fs::write(&file, config).expect("writable");
    let run = std::process::Command::new(botyard_tests::host_program()).args(["run", "--config"]).arg(&file).output();
    let run = run.expect("it starts");
    let text = String::from_utf8_lossy(&run.stderr).into_owned();
    assert!(!run.status.success() && text.contains("401") && !text.contains("nobody-must-ever"), "{text}");
}
