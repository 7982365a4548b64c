//! The menu behind `/`.

use botyard::simulator::Simulator;
use botyard_tests::{guest, plugin};
use serde_json::{Value, json};

use super::support::{builder, simulator};

/// What Telegram was told: for which language, and which commands.
fn told(simulator: &Simulator) -> Vec<(String, Vec<String>)> {
    let name = |command: &Value| command["command"].as_str().expect("a name").to_owned();
    let told = |call: botyard::simulator::Call| {
        let commands = call.params.get("commands").and_then(Value::as_array).cloned().unwrap_or_default();
        (call.text("language_code").unwrap_or_default().to_owned(), commands.iter().map(name).collect())
    };
    simulator.calls_of("setMyCommands").into_iter().map(told).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_menu_is_told_once_and_again_when_it_changes() {
    let simulator = simulator().await;
    let folder = tempfile::tempdir().expect("a folder");
    let changing = folder.path().join("changing.wasm");
    std::fs::copy(plugin("counter"), &changing).expect("built");
    let mut host =
        builder(&simulator).plugin("form", &plugin("form"), "priority = 2").plugin("changing", &changing, "").start();
    host.wait_until("the menu", |_| !told(&simulator).is_empty());
    let first = told(&simulator);
    assert_eq!(first[0].0, "", "for everybody");
    assert!(first[0].1.contains(&"form".to_owned()) && first[0].1.contains(&"count".to_owned()), "{first:?}");

    host.stop();
    host.start();
    std::fs::copy(guest("versioned_a"), &changing).expect("built");
    host.wait_until("another menu", |_| told(&simulator).len() > first.len());
    let last = told(&simulator).pop().expect("it was told");
    assert!(!last.1.contains(&"count".to_owned()) && last.1.contains(&"form".to_owned()), "{last:?}");
    let of_everybody = told(&simulator).iter().filter(|(language, _)| language.is_empty()).count();
    assert_eq!(of_everybody, 2, "a restart alone tells nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_menu_can_be_left_to_botfather() {
    let simulator = simulator().await;
    let mut host = builder(&simulator).bot("commands = false").plugin("form", &plugin("form"), "").start();
    super::support::ask(&simulator, botyard::simulator::ALICE, "/form").await;
    host.stop();
    assert_eq!(json!(told(&simulator)), json!([]));
}
