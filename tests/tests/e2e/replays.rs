//! What runs are written down, and made again with another build.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use botyard::simulator::{ALICE, BOTIR, CHIARA};
use botyard_tests::{Host, guest, host_program, plugin};
use serde_json::Value;

use super::operator::botyard;
use super::support::{ask, builder, next, simulator};

/// Begins to record; the file has its first line when it listens.
async fn record(host: &Host, file: &Path, more: &[&str]) -> Child {
    let recording = Command::new(host_program())
        .args(["record", "--out"])
        .arg(file)
        .args(more)
        .arg("--config")
        .arg(host.config_file())
        .env("TEST_TOKEN", "4242:another-secret-of-the-same-bot-that-nobody-sees")
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let deadline = Instant::now() + Duration::from_secs(60);
    while std::fs::metadata(file).map_or(0, |file| file.len()) == 0 {
        assert!(Instant::now() < deadline, "nothing is recorded");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    recording
}

fn notes(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).expect("it is there");
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("each line is JSON"));
    lines.filter_map(|line| line.get("note").cloned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recording_is_played_again_and_shows_what_another_build_does() {
    let simulator = simulator().await;
    let host = builder(&simulator)
        .plugin("versioned", &guest("versioned_a"), "secrets = { key = \"hush-hush-secret\" }")
        .plugin("calls", &guest("calls"), "priority = 9")
        .start();
    assert_eq!(ask(&simulator, ALICE, "/step").await, "1: step 1");
    let file = host.folder().join("all.jsonl");
    let mut recording = record(&host, &file, &["--runs", "4"]).await;
    for (chat, text, answer) in [
        (ALICE, "/step", "1: step 2"),
        (BOTIR, "the key is hush-hush-secret", "1: the key is hush-hush-secret"),
        (ALICE, "/me", "I am botyard_bot"),
        (ALICE, "/step", "1: step 3"),
    ] {
        assert_eq!(ask(&simulator, chat, text).await, answer);
    }
    assert!(recording.wait().expect("it ends").success());

    let text = std::fs::read_to_string(&file).expect("it is there");
    assert!(!text.contains("hush-hush") && !text.contains("another-secret"), "{text}");
    let mode = std::fs::metadata(&file).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "people's messages are for the owner's eyes");
    let all = notes(&file);
    let plugins: Vec<_> = all.iter().map(|note| note["plugin"].as_str().unwrap_or_default()).collect();
    assert_eq!(plugins, ["versioned", "versioned", "calls", "versioned"]);
    let state = all[0]["before"].as_array().expect("a list").iter().find_map(|row| row.get("state"));
    assert_eq!(state.expect("it was read")["value"]["json"]["Walking"]["steps"], 1, "{}", all[0]);
    assert_eq!(all[0]["effects"]["states"][0]["after"]["value"]["Walking"]["steps"], 2);
    assert_eq!(all[2]["asked"][0]["answer"]["result"]["json"]["username"], "botyard_bot", "{}", all[2]);

    // The host goes on: a replay needs nothing of it.
    let path = file.display().to_string();
    let replay = |plugin: &str, build: &str, more: &[&str]| {
        let wasm = guest(build).display().to_string();
        botyard(&host, &[&["replay", &path, "--against", &wasm, "--plugin", plugin], more].concat())
    };
    let (code, out, errors) = replay("versioned", "versioned_a", &[]);
    assert!(code == Some(0) && out.contains("3 runs of versioned, all as recorded"), "{out}{errors}");
    // What Telegram said then is said again.
    let (code, out, errors) = replay("calls", "calls", &[]);
    assert!(code == Some(0) && out.contains("1 runs of calls, all as recorded"), "{out}{errors}");

    let (code, out, errors) = replay("versioned", "versioned_b", &["--json"]);
    assert_eq!(code, Some(1), "{out}{errors}");
    let report: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!((&report["runs"], &report["different"]), (&3.into(), &3.into()), "{report}");
    let lines = |place: usize| {
        let lines = report["differences"][place]["lines"].as_array().expect("a list").clone();
        lines.iter().map(|line| format!("{} {}", line[0], line[1])).collect::<Vec<_>>().join("\n")
    };
    // The second begins where the first began then, and not where the new build would have left it.
    for (place, then, now) in [
        (0, "1: step 2", "2: step 2, carried over"),
        (1, "1: the key is [hidden]", "2: the key is [hidden]"),
        (2, "1: step 3", "2: step 3, carried over"),
    ] {
        let lines = lines(place);
        assert!(lines.contains("\"gone\"") && lines.contains(then), "{lines}");
        assert!(lines.contains("\"new\"") && lines.contains(now), "{lines}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn chosen_languages_and_answered_failures_are_played_again() {
    let simulator = simulator().await;
    let host = builder(&simulator)
        .plugin("routes", &guest("routes"), "")
        .plugin("speaks", &guest("speaks"), "priority = 1")
        .start();
    let file = host.folder().join("all.jsonl");
    let mut recording = record(&host, &file, &["--runs", "3"]).await;
    assert_eq!(ask(&simulator, ALICE, "/chat ru").await, "ru 1 one");
    assert_eq!(ask(&simulator, ALICE, "/who").await, "ru 3 few");
    assert_eq!(ask(&simulator, ALICE, "never").await, "Sorry (1): it can't be done");
    assert!(recording.wait().expect("it ends").success());

    let all = notes(&file);
    assert_eq!(all[0]["effects"]["languages"][0]["after"], "ru", "{}", all[0]);
    assert_eq!(all[2]["verdict"], "done", "one run of both: {}", all[2]);
    assert!(all[2]["recovered"].as_str().is_some_and(|why| why.contains("can't be done")), "{}", all[2]);
    assert_eq!(all[2]["effects"]["calls"].as_array().map(Vec::len), Some(1), "{}", all[2]);
    for plugin in ["speaks", "routes"] {
        let (path, wasm) = (file.display().to_string(), guest(plugin).display().to_string());
        let (code, out, errors) = botyard(&host, &["replay", &path, "--against", &wasm, "--plugin", plugin]);
        assert!(code == Some(0) && out.contains("all as recorded"), "{out}{errors}");
    }
}

/// What was only looked at, and may have changed by the commit, decides as well.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_run_only_peeked_at_is_played_again() {
    let simulator = simulator().await;
    let grants = "grants = { chats = [\"@alice\", \"@botir\"] }";
    let host = builder(&simulator).plugin("tally", &guest("tally"), grants).start();
    ask(&simulator, BOTIR, "/count").await;
    let file = host.folder().join("tally.jsonl");
    let mut recording = record(&host, &file, &["--runs", "2"]).await;
    // Whom a name belongs to is known from their chat.
    let before = simulator.delivered(BOTIR);
    simulator.user_says(ALICE, ALICE, &format!("/say {BOTIR} tea")).expect("a chat");
    assert_eq!(next(&simulator, BOTIR, before).await, "tea");
    let known = ask(&simulator, ALICE, &format!("/known {BOTIR}")).await;
    assert!(known.starts_with(&format!("{BOTIR} Botir")) && known.ends_with(" here"), "{known}");
    assert!(recording.wait().expect("it ends").success());
    let (path, wasm) = (file.display().to_string(), guest("tally").display().to_string());
    let (code, out, errors) = botyard(&host, &["replay", &path, "--against", &wasm]);
    assert!(code == Some(0) && out.contains("2 runs of tally, all as recorded"), "{out}{errors}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recording_ends_with_the_host_and_a_broken_one_is_refused() {
    let simulator = simulator().await;
    let mut host = builder(&simulator).plugin("calls", &guest("calls"), "").start();
    let file = host.folder().join("calls.jsonl");
    let mut recording = record(&host, &file, &["--plugin", "calls"]).await;
    assert_eq!(ask(&simulator, ALICE, "/me").await, "I am botyard_bot");
    let path = file.display().to_string();
    let (code, _, errors) = botyard(&host, &["record", "--out", &path]);
    assert!(code == Some(2) && errors.contains("is there already"), "{errors}");
    let (code, _, errors) = botyard(&host, &["record", "--out", "x.jsonl", "--plugin", "call"]);
    assert!(code == Some(2) && errors.contains("no plugin `call`"), "{errors}");
    let deadline = Instant::now() + Duration::from_secs(30);
    while notes(&file).is_empty() {
        assert!(Instant::now() < deadline, "the run is not recorded");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    host.stop();
    assert!(recording.wait().expect("it ends").success());

    let text = std::fs::read_to_string(&file).expect("it is there");
    std::fs::write(&file, text.split_at(text.len() - 9).0).expect("writable");
    let wasm = guest("calls").display().to_string();
    let (code, _, errors) = botyard(&host, &["replay", &path, "--against", &wasm]);
    assert!(code == Some(2) && errors.contains("calls.jsonl:2: is no line of a recording"), "{code:?} {errors}");
    let (code, _, errors) = botyard(&host, &["replay", &path, "--against", "none.wasm"]);
    assert!(code == Some(2) && errors.contains("there is no file none.wasm"), "{code:?} {errors}");
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_timers_and_buttons_are_played_again_as_well() {
    let simulator = simulator().await;
    let host = builder(&simulator)
        .plugin("jobs", &guest("jobs"), "")
        .plugin("timers", &guest("timers"), "")
        .plugin("menu", &plugin("menu"), "")
        .start();
    let file = host.folder().join("jobs.jsonl");
    let mut recording = record(&host, &file, &["--runs", "6"]).await;
    assert_eq!(ask(&simulator, CHIARA, "/menu").await, "What would you like?");
    simulator.user_presses(CHIARA, CHIARA, None, "Drinks").expect("the button is there");
    let before = simulator.delivered(ALICE);
    assert_eq!(ask(&simulator, ALICE, "/work 1 tea").await, "queued");
    assert_eq!(next(&simulator, ALICE, before + 1).await, "tea: 1");
    assert_eq!(ask(&simulator, BOTIR, "/remind 1 water").await, "set");
    assert!(recording.wait().expect("it ends").success());
    let all = notes(&file);
    let named = |kind: &str| all.iter().filter(|note| note["what"][kind].is_object()).count();
    assert_eq!((named("update"), named("job"), named("timer")), (4, 1, 1), "{all:?}");
    let rows = all.iter().flat_map(|note| note["before"].as_array().expect("a list"));
    let seals = rows.filter(|row| row["other"]["key"].as_str().is_some_and(|key| key.starts_with("53")));
    assert_eq!(seals.count(), 0, "what buttons are sealed with is a secret");
    let queued = all.iter().find_map(|note| note["effects"]["jobs"][0]["payload"].as_array()).expect("a job is queued");
    assert_eq!(queued[1], "tea");

    let path = file.display().to_string();
    for (plugin, wasm) in [("jobs", guest("jobs")), ("timers", guest("timers")), ("menu", plugin("menu"))] {
        let wasm = wasm.display().to_string();
        let (code, out, errors) = botyard(&host, &["replay", &path, "--against", &wasm, "--plugin", plugin]);
        assert!(code == Some(0) && out.contains(&format!("2 runs of {plugin}, all as recorded")), "{out}{errors}");
    }
}
