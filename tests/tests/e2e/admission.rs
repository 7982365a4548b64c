//! Who is let in: `bot.lock` over restarts, and installs that somebody might not have meant.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use botyard::domain::PluginName;
use botyard::simulator::ALICE;
use botyard::store::rows::version::{self, VersionRow};
use botyard::store::{Commit, Op, Store};
use botyard_tests::{Host, guest, host_program, plugin};

use super::operator::{botyard, done, json};
use super::support::{BOT, ask, builder, simulator};

fn replace(path: &Path, new: &Path) {
    let beside = path.with_extension("new");
    std::fs::copy(new, &beside).expect("writable");
    std::fs::rename(&beside, path).expect("writable");
}

fn edit(path: &Path, change: impl Fn(String) -> String) {
    let text = std::fs::read_to_string(path).expect("readable");
    let changed = change(text.clone());
    assert_ne!(text, changed, "nothing to change in {}", path.display());
    std::fs::write(path, changed).expect("writable");
}

/// Its state, and why it is not better.
fn state_of(host: &Host, name: &str) -> (String, String) {
    let list = json(host, &["plugin", "list"]);
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let found = list.as_array().expect("a list").iter().find(|plugin| plugin["name"] == name);
    found.map(|plugin| (text(&plugin["state"]), text(&plugin["reason"]))).unwrap_or_default()
}

/// The same plugin with another hash, beside the host.
fn another(host: &Host, wasm: &Path, name: &str) -> PathBuf {
    let mut bytes = std::fs::read(wasm).expect("it is built");
    // A section without a meaning, with a name of one letter.
    bytes.extend([0, 2, 1, b'x']);
    let path = host.folder().join(name);
    std::fs::write(&path, bytes).expect("writable");
    path
}

#[tokio::test(flavor = "multi_thread")]
async fn where_the_hash_is_pinned_nothing_else_serves_not_even_after_a_restart() {
    let simulator = simulator().await;
    let mut host = builder(&simulator).plugin("counter", &plugin("counter"), "").start();
    done(&host, &["plugin", "install", &plugin("echo").display().to_string(), "--name", "shop", "--yes"]);
    host.wait_until("it serves", |host| state_of(host, "shop").0 == "serving");
    let (lock, installed) = (host.folder().join("bot.lock"), host.folder().join("plugins/shop.wasm"));
    edit(&host.config_file(), |text| {
        text.replace("[plugins.shop]", "[plugins.shop]\nprobation = \"0s\"\npin = \"hash\"")
    });

    // Another file waits, whatever it wants, and what was approved goes on, also over a restart.
    let second = another(&host, &plugin("echo"), "second.wasm");
    host.wait_until("it is pinned", |host| {
        replace(&installed, &second);
        state_of(host, "shop").1.contains("pin = \"hash\"")
    });
    host.stop();
    host.start();
    assert!(state_of(&host, "shop").1.contains("pin = \"hash\""));
    assert_eq!(ask(&simulator, ALICE, "hello").await, "hello");

    // What was approved before stays good to go back to, and nothing else does.
    done(&host, &["plugin", "approve", "shop", "--yes"]);
    host.wait_until("it serves", |host| state_of(host, "shop") == ("serving".to_owned(), String::new()));
    let text = std::fs::read_to_string(&lock).expect("readable");
    let (before, rest) = text.split_once("earlier = [\n").expect("the first one's hash");
    let (_, after) = rest.split_once("]\n").expect("it ends");
    let alone = format!("{before}{after}");
    std::fs::write(&lock, &alone).expect("writable");
    let (code, _, errors) = botyard(&host, &["plugin", "rollback", "shop"]);
    assert!(code != Some(0) && errors.contains("is not let in by bot.lock any more"), "{errors}");

    // It has served, and is not what is approved; nor can that be told when nobody can read what is.
    host.stop();
    let hash = text.lines().find_map(|line| line.strip_prefix("sha256 = ")).expect("it is there").to_owned();
    let none = format!("\"{}\"", "0".repeat(64));
    for (lines, part) in [
        (text.replace(&hash, &none), "is not the file in bot.lock"),
        (format!("<<<<<<< HEAD\n{text}"), "bot.lock can't be read"),
    ] {
        std::fs::write(&lock, lines).expect("writable");
        let why = fails_to_start(&host).await;
        assert!(why.contains(part), "{why}");
    }
    std::fs::write(&lock, &text).expect("writable");
    host.start();
    done(&host, &["plugin", "rollback", "shop"]);
    // The one that was rolled back is not the only one that may serve.
    host.stop();
    host.start();
    assert_eq!(state_of(&host, "shop").0, "stale");
    host.stop();
    std::fs::write(&lock, alone.replace(&hash, &none)).expect("writable");
    let why = fails_to_start(&host).await;
    assert!(why.contains("is not the file in bot.lock"), "{why}");
}

/// What a host says that does not come up.
async fn fails_to_start(host: &Host) -> String {
    let mut child = Command::new(host_program())
        .args(["run", "--config"])
        .arg(host.config_file())
        .env("TEST_TOKEN", "4242:another-secret-of-the-same-bot-that-nobody-sees")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let deadline = Instant::now() + Duration::from_secs(20);
    while child.try_wait().expect("it is our child").is_none() {
        if Instant::now() > deadline {
            child.kill().expect("it is our child");
            panic!("the host is up");
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let output = child.wait_with_output().expect("it has ended");
    assert!(!output.status.success());
    String::from_utf8(output.stderr).expect("text")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_can_not_be_read_lets_nobody_in_and_what_has_served_goes_on() {
    let simulator = simulator().await;
    let mut host = builder(&simulator).plugin("counter", &plugin("counter"), "").start();
    done(&host, &["plugin", "install", &plugin("echo").display().to_string(), "--name", "shop", "--yes"]);
    host.wait_until("it serves", |host| state_of(host, "shop").0 == "serving");
    host.stop();
    std::fs::write(host.folder().join("bot.lock"), "<<<<<<< HEAD").expect("writable");
    let second = another(&host, &plugin("echo"), "second.wasm");
    replace(&host.folder().join("plugins/shop.wasm"), &second);
    host.start();
    let (state, reason) = state_of(&host, "shop");
    assert!(state == "stale" && reason.contains("bot.lock can't be read"), "{state} {reason}");
    assert_eq!(ask(&simulator, ALICE, "hello").await, "hello");
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_takes_anothers_place_unasked_and_what_it_would_get_is_said() {
    let simulator = simulator().await;
    let grants = "secrets = { PAY_KEY = { env = \"PATH\" } }";
    let host = builder(&simulator).plugin("echo", &plugin("echo"), grants).start();
    let config = std::fs::read_to_string(host.config_file()).expect("readable");
    let stranger = another(&host, &plugin("echo"), "nice.wasm").display().to_string();
    let (code, _, errors) = botyard(&host, &["plugin", "install", &stranger, "--yes"]);
    assert!(
        code == Some(2) && errors.contains("[plugins.echo] is another one") && errors.contains("--name"),
        "{errors}"
    );
    assert_eq!(std::fs::read_to_string(host.config_file()).expect("readable"), config);
    assert!(!host.folder().join("bot.lock").exists());

    // It is shown whatever the answer is.
    let (_, _, errors) = botyard(&host, &["plugin", "install", &stranger, "--name", "echo"]);
    assert!(errors.contains("is handed    the secret PAY_KEY"), "{errors}");
    // Under a name of its own it gets nothing of the other's, and comes again as what it is.
    let (code, _, errors) = botyard(&host, &["plugin", "install", &stranger, "--name", "nice", "--yes"]);
    assert!(code == Some(0) && !errors.contains("PAY_KEY") && errors.contains("+ [plugins.nice]"), "{errors}");
    done(&host, &["plugin", "install", &stranger, "--name", "nice", "--yes"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_leaves_what_the_operator_kept_back() {
    let simulator = simulator().await;
    let grants =
        "grants = { methods = [\"sendMessage\"], kinds = [\"message\"], broadcast = false } # no more\npin = \"hash\"";
    let mut host = builder(&simulator).plugin("echo", &plugin("echo"), "").start();
    host.stop();
    let entry = format!("\n[plugins.calls]\npath = {:?}\n{grants}\n", guest("calls").display().to_string());
    edit(&host.config_file(), |text| text + &entry);
    let config = std::fs::read_to_string(host.config_file()).expect("readable");
    let (code, _, errors) = botyard(&host, &["plugin", "approve", "calls", "--yes"]);
    assert!(code == Some(0) && errors.contains("bot.toml stays as it is"), "{errors}");
    assert_eq!(std::fs::read_to_string(host.config_file()).expect("readable"), config);
    host.start();
    let answer = ask(&simulator, ALICE, "/call getChat").await;
    assert!(answer.contains("add \"getChat\" to `grants.methods`"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trial_does_not_begin_anew_with_every_start() {
    let simulator = simulator().await;
    let folder = tempfile::tempdir().expect("a folder");
    let wasm = folder.path().join("echo.wasm");
    replace(&wasm, &plugin("echo"));
    let mut host = builder(&simulator).plugin("echo", &wasm, "probation = \"30s\"").start();
    let second = another(&host, &plugin("echo"), "second.wasm");
    replace(&wasm, &second);
    host.wait_until("it is on trial", |host| state_of(host, "echo").0 == "trial");
    host.stop();
    {
        // It was so for an hour.
        let store = Store::open(&host.store_dir()).expect("the host has stopped");
        let key = version::key(BOT, &PluginName::new("echo"));
        let row = VersionRow::decode(&store.get(&key).expect("a sound store").expect("it is there")).expect("sound");
        let value = VersionRow { trial_since: row.trial_since - 3_600_000, ..row }.encode();
        let ops = vec![Op::Put { key, value }];
        drop(store.commit(Commit { ops, ..Commit::default() }).await.expect("a sound store"));
        store.close().await.expect("a sound store");
    }
    host.start();
    let began = Instant::now();
    for n in 0..4 {
        ask(&simulator, ALICE, &n.to_string()).await;
    }
    host.wait_until("it has proven itself", |host| state_of(host, "echo").0 == "serving");
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}
