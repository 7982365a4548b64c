//! Timers: how many there may be, and what becomes of those of plugins that are not there.

use std::time::Duration;

use botyard::domain::PluginName;
use botyard::simulator::{ALICE, BOTIR};
use botyard::store::Store;
use botyard::store::rows::counted::Ledger;
use botyard::store::rows::{parked, timer};
use botyard_tests::{Host, guest, plugin};

use super::operator::{botyard, done, json};
use super::support::{BOT, ask, builder, dead_letters, next, simulator};

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_sets_timers_without_end_has_an_end_and_the_timers_of_others_ring_in_time() {
    let simulator = simulator().await;
    let mut host = builder(&simulator)
        .plugin("timers", &guest("timers"), "limits = { timers = 150, stored = \"100KiB\" }")
        .plugin("reaches", &guest("reaches"), "config = { ring = 0 }")
        .start();
    assert_eq!(ask(&simulator, ALICE, "/flood").await, "flooding");
    let hits = |host: &Host, limit| host.metrics().sum("botyard_plugin_limits_total", &["plugin=\"timers\"", limit]);
    host.wait_until("it has all that it may", |host| {
        hits(host, "limit=\"timers\"") + hits(host, "limit=\"stored\"") > 300.0
    });
    assert_eq!(ask(&simulator, BOTIR, "/tick 1000").await, "ticking");
    for n in 1..=2 {
        let begun = std::time::Instant::now();
        assert_eq!(next(&simulator, BOTIR, n).await, format!("tock {n}"));
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    }
    assert!(host.stop().status.success());
    let store = Store::open(&host.store_dir()).expect("the host has stopped");
    let used = |ledger| store.used(ledger, BOT, &PluginName::new("timers"));
    assert!((1..=150).contains(&used(Ledger::Timers)), "{}", used(Ledger::Timers));
    assert!(used(Ledger::Kept) <= 100 << 10, "{}", used(Ledger::Kept));
    assert_eq!(store.check().expect("it is whole").problems, Vec::<String>::new());
    drop(store);
    assert_eq!(dead_letters(&host).len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_for_a_plugin_that_does_not_serve_waits_for_it_and_is_dropped_by_an_order() {
    let simulator = simulator().await;
    let mut host = builder(&simulator)
        .plugin("timers", &guest("timers"), "priority = 1")
        .plugin("reaches", &guest("reaches"), "priority = 2\nconfig = { ring = 0 }")
        .plugin("echo", &plugin("echo"), "")
        .start();
    // One rings, and waits for a paused plugin in the chat's lane; another one rings later; and a state ends.
    assert_eq!(ask(&simulator, ALICE, "/remind 1 tea").await, "set");
    assert_eq!(next(&simulator, ALICE, 1).await, "reminder: tea");
    assert_eq!(ask(&simulator, BOTIR, "/hold coffee").await, "held");
    assert_eq!(ask(&simulator, ALICE, "/remind 300 cake").await, "set");
    done(&host, &["plugin", "pause", "timers"]);
    host.wait_until("it has rung", |host| host.metrics().sum("botyard_timers_total", &["outcome=\"fired\""]) >= 2.0);
    done(&host, &["plugin", "disable", "timers"]);
    done(&host, &["plugin", "disable", "reaches"]);
    assert_eq!(ask(&simulator, ALICE, "the chat goes on").await, "the chat goes on");
    host.wait_until("the state has ended", |host| {
        host.metrics().sum("botyard_expired_total", &["what=\"state\""]) >= 1.0
    });
    let outcome = |host: &Host, outcome| host.metrics().sum("botyard_events_total", &[outcome]);
    assert!(outcome(&host, "outcome=\"parked\"") >= 1.0);
    // Over a restart too.
    assert!(host.stop().status.success());
    host.start();
    assert_eq!(ask(&simulator, BOTIR, "here too").await, "here too");
    let (alice, botir) = (simulator.delivered(ALICE), simulator.delivered(BOTIR));
    done(&host, &["plugin", "resume", "timers"]);
    done(&host, &["plugin", "enable", "timers"]);
    done(&host, &["plugin", "enable", "reaches"]);
    assert_eq!(next(&simulator, ALICE, alice).await, "reminder: cake");
    assert_eq!(next(&simulator, BOTIR, botir).await, "coffee is over");

    assert_eq!(ask(&simulator, ALICE, "/remind 100000 never").await, "set");
    let (code, _, errors) = botyard(&host, &["plugin", "forget", "timers", "--yes"]);
    assert!(code == Some(2) && errors.contains("plugin remove"), "{errors}");
    let file = std::fs::read_to_string(host.config_file()).expect("it is there");
    let gone = file.replace("[plugins.timers]", "[plugins.renamed]");
    std::fs::write(host.config_file(), gone).expect("it is writable");
    host.wait_until("it has another name", |host: &Host| {
        host.get("/api/plugins")
            .is_some_and(|(_, body)| body.contains("\"name\":\"renamed\"") && !body.contains("\"name\":\"timers\""))
    });
    let list = done(&host, &["plugin", "list"]);
    assert!(list.contains("something left of: `timers`"), "{list}");
    let left = json(&host, &["plugin", "left"]);
    assert_eq!((left[0]["plugin"].as_str(), left[0]["timers"].as_u64()), (Some("timers"), Some(1)), "{left}");
    let (code, _, errors) = botyard(&host, &["plugin", "forget", "timers"]);
    assert!(code == Some(2) && errors.contains("--yes"), "{errors}");
    assert!(done(&host, &["plugin", "forget", "timers", "--yes"]).contains("are dropped"));
    assert!(done(&host, &["plugin", "left"]).starts_with("nothing is left"));

    assert!(host.stop().status.success());
    let store = Store::open(&host.store_dir()).expect("the host has stopped");
    for prefix in [timer::bot_prefix(BOT), parked::bot_prefix(BOT)] {
        let rows = store.scan_prefix(&prefix, 10).expect("a sound store");
        let rows: Vec<_> = rows.iter().filter(|(key, _)| !key.windows(7).any(|name| name == b"reaches")).collect();
        assert!(rows.is_empty(), "{rows:?}");
    }
    drop(store);
    assert_eq!(dead_letters(&host).len(), 0);
}
