//! What an operator lets a plugin do, and which plugins are let in.

use std::path::{Path, PathBuf};

use botyard::simulator::{ALICE, BOTIR};
use botyard_tests::{Host, guest, plugin};

use super::operator::{botyard, done, json};
use super::support::{ask, builder, simulator};

fn replace(path: &Path, new: &Path) {
    let beside = path.with_extension("new");
    std::fs::copy(new, &beside).expect("writable");
    std::fs::rename(&beside, path).expect("writable");
}

fn state_of(host: &Host, name: &str) -> (String, String) {
    let list = json(host, &["plugin", "list"]);
    let plugins = list.as_array().expect("a list");
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let found = plugins.iter().find(|plugin| plugin["name"] == name);
    found.map(|plugin| (text(&plugin["state"]), text(&plugin["reason"]))).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn events_and_calls_stay_within_the_granted_chats() {
    let simulator = simulator().await;
    let grants = format!("priority = 1\ngrants = {{ chats = [{ALICE}, \"@nobody\"], kinds = [\"message\"] }}");
    let _host =
        builder(&simulator).plugin("calls", &guest("calls"), &grants).plugin("free", &guest("calls"), "").start();
    assert_eq!(ask(&simulator, ALICE, &format!("/tell {ALICE}")).await, "told");
    assert_eq!(ask(&simulator, BOTIR, &format!("/tell {BOTIR}")).await, "told", "the next plugin has it");
    for chat in [ALICE, BOTIR] {
        // Told, queued, and that it went well.
        super::support::next(&simulator, chat, 2).await;
    }
    let told = simulator.delivered(BOTIR);
    for (chat, line) in [(BOTIR.to_string(), BOTIR.to_string()), ("@news".to_owned(), "\"@news\"".to_owned())] {
        let answer = ask(&simulator, ALICE, &format!("/tell {chat}")).await;
        let says = format!("add {line} to `grants.chats` of [plugins.calls] in bot.toml");
        assert!(answer.starts_with("error: ") && answer.contains(&says), "{answer}");
    }
    assert_eq!(simulator.delivered(BOTIR), told, "nothing was told or queued");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_is_installed_waits_when_it_wants_more_and_is_removed() {
    let simulator = simulator().await;
    let mut host = builder(&simulator).sections("# My own words.\n").plugin("counter", &plugin("counter"), "").start();
    let echo = plugin("echo").display().to_string();
    let before = std::fs::read_to_string(host.config_file()).expect("readable");

    // Nobody is there to be asked, and the wrong file is not even asked for.
    let (code, _, errors) = botyard(&host, &["plugin", "install", &echo, "--name", "shop"]);
    assert_eq!(code, Some(2), "{errors}");
    assert!(errors.contains("calls        sendMessage") && errors.contains("--yes"), "{errors}");
    let (code, _, errors) = botyard(&host, &["plugin", "install", &echo, "--yes", "--sha256", "00"]);
    assert!(code == Some(1) && errors.contains("another hash"), "{errors}");
    assert_eq!(std::fs::read_to_string(host.config_file()).expect("readable"), before);

    done(&host, &["plugin", "install", &echo, "--name", "shop", "--yes"]);
    host.wait_until("it serves", |host| state_of(host, "shop").0 == "serving");
    assert_eq!(ask(&simulator, ALICE, "hello").await, "hello");
    let config = std::fs::read_to_string(host.config_file()).expect("readable");
    assert!(
        config.contains("# My own words.\n") && config.contains("grants = { methods = [\"sendMessage\"]"),
        "{config}"
    );
    let lock = std::fs::read_to_string(host.folder().join("bot.lock")).expect("it is written");
    assert!(lock.contains("[plugins.shop]\nsha256 = ") && !lock.contains("counter"), "{lock}");
    let inspected = done(&host, &["plugin", "inspect", &echo, "--name", "shop"]);
    assert!(inspected.contains("the same file as the installed `shop`"), "{inspected}");

    // It calls any method, and was let in for one.
    let installed: PathBuf = host.folder().join("plugins/shop.wasm");
    replace(&installed, &guest("calls"));
    host.wait_until("it waits", |host| state_of(host, "shop").1.contains("waits for approval"));
    assert_eq!(state_of(&host, "shop").0, "stale");
    assert_eq!(ask(&simulator, ALICE, "/me").await, "/me", "the old version serves on");
    let (status, body) = host.get("/readyz").expect("it answers");
    assert!(status == 200 && body.contains("waits for approval"), "{body}");
    // Also over a restart.
    host.stop();
    host.start();
    assert_eq!(ask(&simulator, ALICE, "/me").await, "/me");

    let (code, checked, _) = botyard(&host, &["check"]);
    assert!(code == Some(1) && checked.contains("waits for approval"), "{checked}");

    let shown = json(&host, &["plugin", "inspect", &guest("calls").display().to_string(), "--name", "shop"]);
    assert_eq!(shown["compared"]["gains"]["methods"], serde_json::json!(["*"]), "{shown}");
    done(&host, &["plugin", "approve", "shop", "--yes"]);
    host.wait_until("it is let in", |host| matches!(state_of(host, "shop").0.as_str(), "trial" | "serving"));
    let answer = ask(&simulator, ALICE, "/call getChat").await;
    assert!(answer.starts_with("ok"), "the method is granted as well: {answer}");

    done(&host, &["plugin", "remove", "shop", "--yes"]);
    host.wait_until("it is gone", |host| state_of(host, "shop").0.is_empty());
    assert!(!installed.exists());
    let lock = std::fs::read_to_string(host.folder().join("bot.lock")).expect("it is there");
    assert!(!lock.contains("shop"), "{lock}");
    let after = std::fs::read_to_string(host.config_file()).expect("readable");
    assert_eq!(after.trim(), before.trim(), "everything else is as its owner wrote it");
}

#[tokio::test(flavor = "multi_thread")]
async fn several_bots_share_a_lock_and_a_plugin_is_let_in_for_one_or_more_with_its_servers() {
    let (first, second) = (simulator().await, simulator().await);
    let mut host = super::bots::two(&first, &second, "").start();
    let reaches = guest("reaches").display().to_string();
    let serves = |host: &Host, bot: &str| {
        let list = json(host, &["plugin", "list", "--bot", bot]);
        list.as_array().expect("a list").iter().any(|plugin| plugin["name"] == "web")
    };
    let config = |host: &Host| std::fs::read_to_string(host.config_file()).expect("readable");

    let (code, _, errors) = botyard(&host, &["plugin", "install", &reaches, "--bot", "shap", "--yes"]);
    assert!(code == Some(2) && errors.contains("no bot `shap`"), "{errors}");
    let said = done(&host, &["plugin", "install", &reaches, "--name", "web", "--bot", "shop", "--yes"]);
    assert!(said.contains("the host has loaded it"), "{said}");
    assert!(serves(&host, "shop") && !serves(&host, "bot"));
    let text = config(&host);
    assert!(text.contains("bots = [\"shop\"]") && text.contains("http = [\"http://*:*\", \"https://*:*\"]"), "{text}");
    let lock = std::fs::read_to_string(host.folder().join("bot.lock")).expect("it is written");
    assert!(lock.contains("\"https://*:*\""), "{lock}");

    let said = done(&host, &["plugin", "install", &reaches, "--name", "web", "--bot", "bot", "--yes"]);
    assert!(said.contains("the host has loaded it"), "{said}");
    assert!(serves(&host, "shop") && serves(&host, "bot") && config(&host).contains("bots = [\"shop\", \"bot\"]"));
    let (code, _, errors) = botyard(&host, &["plugin", "remove", "web", "--bot", "shop", "--yes"]);
    assert!(code == Some(2) && errors.contains("serves other bots as well"), "{errors}");
    let (code, _, errors) = botyard(&host, &["plugin", "approve", "echo", "--bot", "shop", "--yes"]);
    assert!(code == Some(2) && errors.contains("`echo` does not serve the bot `shop`"), "{errors}");
    done(&host, &["plugin", "remove", "web", "--yes"]);
    host.wait_until("both are without it", |host| !serves(host, "shop") && !serves(host, "bot"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_in_c_answers_like_any_other() {
    let wasm = plugin("echo").with_file_name("hello-c.wasm");
    if !wasm.exists() {
        // `cargo xtask plugins` has said what is missing.
        return;
    }
    let simulator = simulator().await;
    let _host = builder(&simulator).plugin("hello", &wasm, "").start();
    assert_eq!(ask(&simulator, ALICE, "/hello").await, "Hello, world!");
    assert_eq!(ask(&simulator, ALICE, "/hello \"B\\\t\u{1F600}\"").await, "Hello, \"B\\\t\u{1F600}\"!");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_in_javascript_answers_like_any_other() {
    let wasm = plugin("echo").with_file_name("hello-js.wasm");
    if !wasm.exists() {
        // `cargo xtask plugins` has said what is missing.
        return;
    }
    let simulator = simulator().await;
    let _host = builder(&simulator).plugin("hello", &wasm, "").start();
    assert_eq!(ask(&simulator, ALICE, "/hello \"B\\\t\u{1F600}\"").await, "Hello, \"B\\\t\u{1F600}\"!");
    assert_eq!(ask(&simulator, ALICE, "/count").await, "Once.");
    assert_eq!(ask(&simulator, ALICE, "/count").await, "2 times.");
    let mut thrown = std::collections::BTreeSet::new();
    for _ in 0..8 {
        thrown.insert(ask(&simulator, ALICE, "/roll").await);
    }
    assert!(thrown.len() > 1, "the engine was started long ago, and its dice are not of that day: {thrown:?}");
}
