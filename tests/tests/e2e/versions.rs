//! Versions on trial: what is worse than before is rolled back by itself, and stays away.

use std::path::PathBuf;
use std::time::Duration;

use botyard::simulator::{ALICE, BOTIR, Bulk, Simulator};
use botyard::store::Store;
use botyard::store::rows::timer;
use botyard_tests::{Host, guest, plugin};
use tempfile::TempDir;

use super::operator::{botyard, done, json, state};
use super::support::{BOT, ask, builder, chats, dead_letters, delivered, next, simulator};

/// A host whose plugin's file can be replaced.
pub(crate) struct Scene {
    pub(crate) simulator: Simulator,
    pub(crate) host: Host,
    wasm: PathBuf,
    _folder: TempDir,
}

impl Scene {
    pub(crate) async fn new(config: &str) -> Self {
        Self::of("versioned_a", config, "").await
    }

    /// With this first version, and these sections of bot.toml more.
    pub(crate) async fn of(first: &str, config: &str, sections: &str) -> Self {
        let simulator = simulator().await;
        let folder = tempfile::tempdir().expect("a folder");
        let wasm = folder.path().join("versioned.wasm");
        std::fs::copy(guest(first), &wasm).expect("built");
        let host = builder(&simulator).sections(sections).plugin("steps", &wasm, config).start();
        Self { simulator, host, wasm, _folder: folder }
    }

    pub(crate) fn save(&mut self, version: &str) {
        self.put(&std::fs::read(guest(version)).expect("built"));
    }

    /// The same code in another file: a section more, which nobody looks at.
    pub(crate) fn save_marked(&mut self, version: &str) {
        let wasm = std::fs::read(guest(version)).expect("built");
        self.put(&[&wasm[..], b"\x00\x03\x02ab"].concat());
    }

    fn put(&self, wasm: &[u8]) {
        let beside = self.wasm.with_extension("new");
        std::fs::write(&beside, wasm).expect("writable");
        std::fs::rename(&beside, &self.wasm).expect("writable");
    }

    pub(crate) fn version(&self) -> String {
        state(&self.host, "steps").1["version"].as_str().expect("a hash").to_owned()
    }

    pub(crate) async fn ask(&self, chat: i64, text: &str) -> String {
        ask(&self.simulator, chat, text).await
    }

    pub(crate) fn wait_for_state(&mut self, wanted: &str) {
        self.host.wait_until(wanted, |host| state(host, "steps").0 == wanted);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_fails_what_the_old_one_handles_is_rolled_back_over_restarts() {
    let mut scene = Scene::new("").await;
    assert_eq!(scene.ask(ALICE, "hello").await, "1: hello");
    let good = scene.version();
    scene.save("versioned_worse");
    scene.wait_for_state("trial");
    let worse = scene.version();
    assert_eq!(scene.ask(ALICE, "/step").await, "1.0.1: step 1", "it serves");
    assert_eq!(scene.ask(ALICE, "is it well?").await, "1: is it well?", "the event that it fails is not lost");
    scene.wait_for_state("stale");
    assert_eq!(scene.version(), good);
    assert_eq!(scene.host.metrics().sum("botyard_rollbacks_total", &[]), 1.0);
    assert_eq!(scene.ask(ALICE, "/step").await, "1: step 2");

    scene.host.stop();
    scene.host.start();
    assert_eq!(scene.ask(ALICE, "/step").await, "1: step 3", "though its file holds the other one");
    assert_eq!(state(&scene.host, "steps").0, "stale");
    let versions = json(&scene.host, &["plugin", "versions", "steps"]);
    let states: Vec<_> =
        versions.as_array().expect("a list").iter().map(|kept| (&kept["version"], &kept["state"])).collect();
    assert_eq!(states, [(&good.into(), &"serving".into()), (&worse.clone().into(), &"rejected".into())]);

    done(&scene.host, &["plugin", "reload", "steps"]);
    assert_eq!(state(&scene.host, "steps").0, "trial", "an operator's word");
    assert_eq!(scene.version(), worse);
}

#[tokio::test(flavor = "multi_thread")]
async fn states_that_a_bad_version_took_over_are_readable_after_it() {
    let mut scene = Scene::new("").await;
    assert_eq!(scene.ask(ALICE, "/step").await, "1: step 1");
    assert_eq!(scene.ask(BOTIR, "/step").await, "1: step 1");
    scene.save("versioned_bad");
    scene.wait_for_state("trial");
    assert_eq!(scene.ask(ALICE, "/step").await, "3: step 2", "in the new version's form");
    let bulk = Bulk::new(5, 5);
    let before = scene.simulator.delivered_in_all();
    scene.simulator.push_updates(&bulk);
    delivered(&scene.simulator, before + 5, Duration::from_secs(30)).await;
    scene.wait_for_state("stale");
    assert_eq!(scene.ask(ALICE, "/step").await, "1: step 2", "from where the trial had found it");
    assert_eq!(scene.ask(BOTIR, "/step").await, "1: step 2");
    scene.host.stop();
    assert!(dead_letters(&scene.host).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_does_well_is_kept_and_can_be_gone_back_from() {
    let mut scene = Scene::new("probation = \"1s\"").await;
    let first = scene.version();
    scene.save("versioned_worse");
    scene.wait_for_state("trial");
    for step in 1..4 {
        assert_eq!(scene.ask(ALICE, "/step").await, format!("1.0.1: step {step}"));
    }
    scene.wait_for_state("serving");
    let second = scene.version();
    assert_ne!(first, second);

    let out = done(&scene.host, &["plugin", "rollback", "steps"]);
    assert!(out.contains(&first), "{out}");
    assert_eq!(scene.ask(ALICE, "/step").await, "1: step 4");
    let (code, _, errors) = botyard(&scene.host, &["plugin", "rollback", "steps", "--to", &second]);
    assert!(code == Some(1) && errors.contains("no other version"), "it was sent away: {errors}");
    scene.host.stop();
    scene.host.start();
    assert_eq!(scene.ask(ALICE, "/step").await, "1: step 5");

    done(&scene.host, &["plugin", "disable", "steps"]);
    scene.host.stop();
    scene.host.start();
    assert_eq!(state(&scene.host, "steps").0, "disabled");
    done(&scene.host, &["plugin", "enable", "steps"]);
    assert_eq!(scene.ask(ALICE, "/step").await, "1: step 6");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_switched_off_stays_off_until_it_is_switched_on() {
    let mut scene = Scene::new("probation = \"0s\"").await;
    let first = scene.version();
    scene.save("versioned_worse");
    scene.host.wait_until("it serves", |host| state(host, "steps").1["version"] != first.as_str());
    done(&scene.host, &["plugin", "disable", "steps"]);
    done(&scene.host, &["plugin", "rollback", "steps"]);
    assert_eq!(state(&scene.host, "steps").0, "disabled", "it goes back, and serves when it is switched on");
    scene.save("versioned_b");

    // Out of bot.toml, over a restart, and back.
    let config = std::fs::read_to_string(scene.host.config_file()).expect("readable");
    let (without, _) = config.split_once("[plugins.steps]").expect("it is there");
    let echo = format!("[plugins.echo]\npath = {:?}\n", plugin("echo").display().to_string());
    std::fs::write(scene.host.config_file(), format!("{without}{echo}")).expect("writable");
    scene.host.stop();
    scene.host.start();
    std::fs::write(scene.host.config_file(), format!("{config}\n{echo}")).expect("writable");
    let listed = |host: &Host| json(host, &["plugin", "list"]).as_array().expect("a list").len() == 2;
    scene.host.wait_until("it is back", listed);
    assert_eq!(state(&scene.host, "steps").0, "disabled");
    assert_eq!(scene.ask(ALICE, "/step").await, "/step", "echo answers");

    std::fs::copy(guest("versioned_a"), &scene.wasm).expect("writable");
    done(&scene.host, &["plugin", "enable", "steps"]);
    assert_eq!(scene.version(), first);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_canary_is_given_its_share_of_the_conversations_only() {
    let mut scene = Scene::new("canary = 30").await;
    scene.save("versioned_worse");
    scene.wait_for_state("trial");
    let bulk = Bulk { text: "/step".to_owned(), ..Bulk::new(80, 40) };
    scene.simulator.push_updates(&bulk);
    delivered(&scene.simulator, 80, Duration::from_secs(30)).await;
    let mut versions = Vec::new();
    for chat in chats(&bulk) {
        let answers = scene.simulator.bot_messages(chat);
        let of: Vec<_> = answers.iter().map(|answer| answer.text().split_once(": ").expect("a version").0).collect();
        assert_eq!(of.first(), of.last(), "a conversation stays with its version");
        versions.push(of.first().expect("an answer").to_string());
    }
    let new = versions.iter().filter(|version| *version == "1.0.1").count();
    assert!((3..25).contains(&new), "{new} of 40");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_does_what_the_entry_says() {
    let simulator = simulator().await;
    let mut host = builder(&simulator)
        .plugin("skips", &guest("panics"), "on_crash = \"skip\"\npriority = 1")
        .plugin("echo", &plugin("echo"), "")
        .start();
    simulator.user_says(ALICE, ALICE, "/panic now").expect("a chat");
    assert_eq!(ask(&simulator, ALICE, "hello").await, "hello");
    host.stop();
    let dead = dead_letters(&host);
    assert_eq!(dead.iter().map(|row| row.attempts).collect::<Vec<_>>(), [1]);

    let mut host = builder(&simulator)
        .plugin("pauses", &guest("panics"), "on_crash = \"pause\"\npriority = 1")
        .plugin("echo", &plugin("echo"), "")
        .start();
    simulator.user_says(ALICE, ALICE, "/panic now").expect("a chat");
    host.wait_until("paused", |host| state(host, "pauses").0 == "paused");
    assert_eq!(ask(&simulator, BOTIR, "hello").await, "hello", "other chats go on");
    let list = json(&host, &["plugin", "list"]);
    let paused =
        list.as_array().expect("a list").iter().find(|plugin| plugin["name"] == "pauses").expect("it is there");
    let says = |key: &str, what: &str| paused[key].as_str().is_some_and(|text| text.contains(what));
    assert!(says("reason", "panicked at") && says("backtrace", "panics"), "{paused}");
    let (_, report) = host.get("/readyz").expect("it answers");
    assert!(report.contains("a run crashed, and it is paused"), "{report}");
    let log = host.log();
    let line =
        log.lines().find(|line| line.contains("a run crashed, and the plugin is paused")).expect("it is told of");
    assert!(line.contains("backtrace="), "{line}");
    host.stop();
    assert!(dead_letters(&host).is_empty(), "the event waits");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_fails_event_after_event_is_given_a_rest() {
    let simulator = simulator().await;
    let mut host = builder(&simulator)
        .sections("[dispatch]\nmax_attempts = 1")
        .plugin("fails", &guest("panics"), "")
        .plugin("echo", &plugin("echo"), "")
        .start();
    simulator.push_updates(&Bulk { text: "/panic {n}".to_owned(), ..Bulk::new(40, 40) });
    host.wait_until("it rests", |host| state(host, "fails").0 == "resting");
    assert_eq!(ask(&simulator, ALICE, "hello").await, "hello", "the others don't");
    host.stop();
    let dead = dead_letters(&host).len();
    assert!((10..40).contains(&dead), "{dead}: those under way when the tenth failed, and no more");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_version_on_trial_declares_recurs_until_it_goes() {
    let mut scene = Scene::new(&format!("config = {{ ring = {ALICE} }}")).await;
    scene.save("reaches");
    scene.wait_for_state("trial");
    let rings = || scene.simulator.bot_messages(ALICE).iter().any(|message| message.text() == "ring");
    assert!(scene.simulator.wait_until(Duration::from_secs(10), rings).await, "its schedule");
    assert_eq!(scene.ask(BOTIR, "/hold tea").await, "held");
    assert_eq!(next(&scene.simulator, BOTIR, 1).await, "tea is over", "it hears of the end of its state");

    done(&scene.host, &["plugin", "rollback", "steps"]);
    scene.host.settle();
    scene.host.stop();
    let store = Store::open(&scene.host.store_dir()).expect("the host has stopped");
    assert_eq!(store.scan_prefix(&timer::declared_prefix(BOT), 10).expect("a sound store"), []);
}
