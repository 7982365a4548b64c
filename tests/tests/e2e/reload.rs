//! New versions and new configurations while updates flow.

use std::path::Path;
use std::time::Duration;

use botyard::simulator::{ALICE, BOTIR, Bulk};
use botyard_tests::{Host, guest, plugin};

use super::operator::{done, state};
use super::support::{ask, builder, chats, delivered, simulator};

/// As a careful tool would put a new version in place.
fn replace(path: &Path, new: &Path) {
    let beside = path.with_extension("new");
    std::fs::copy(new, &beside).expect("writable");
    std::fs::rename(&beside, path).expect("writable");
}

fn versions_in(log: &str) -> usize {
    log.lines().filter(|line| line.contains("plugin serves from now on")).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_is_replaced_under_load_and_no_update_is_lost_or_handled_twice() {
    let simulator = simulator().await;
    simulator.start_load_mode(true);
    let folder = tempfile::tempdir().expect("a folder");
    let serving = folder.path().join("versioned.wasm");
    replace(&serving, &guest("versioned_a"));
    let mut host = builder(&simulator).plugin("versioned", &serving, "").start();

    let bulk = Bulk::new(20_000, 200);
    simulator.push_updates(&bulk);
    delivered(&simulator, 500, Duration::from_secs(60)).await;
    replace(&serving, &guest("versioned_b"));
    host.wait_until("the new version serves", |host| versions_in(&host.log()) == 1);
    // More than were under way: these meet the new version.
    let more = Bulk { text: "later {n}".to_owned(), ..Bulk::new(2_000, 200) };
    simulator.push_updates(&more);
    delivered(&simulator, 22_000, Duration::from_secs(120)).await;

    for chat in chats(&bulk) {
        let answers = simulator.sequence(chat);
        let (versions, texts): (Vec<&str>, Vec<&str>) =
            answers.iter().map(|answer| answer.split_once(": ").expect("`VERSION: TEXT`")).unzip();
        let expected: Vec<String> =
            (0..100).map(|n| format!("message {n}")).chain((0..10).map(|n| format!("later {n}"))).collect();
        assert_eq!(texts, expected, "chat {chat}");
        assert!(versions.is_sorted(), "chat {chat}: no event of a lane goes back to the old version");
        assert_eq!(versions.last(), Some(&"2"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn state_is_carried_over_to_the_new_version() {
    let simulator = simulator().await;
    let folder = tempfile::tempdir().expect("a folder");
    let serving = folder.path().join("versioned.wasm");
    replace(&serving, &guest("versioned_a"));
    let mut host = builder(&simulator).plugin("versioned", &serving, "").start();
    assert_eq!(ask(&simulator, ALICE, "/step").await, "1: step 1");
    assert_eq!(ask(&simulator, ALICE, "/step").await, "1: step 2");
    replace(&serving, &guest("versioned_b"));
    host.wait_until("the new version serves", |host| versions_in(&host.log()) == 1);
    assert_eq!(ask(&simulator, ALICE, "/step").await, "2: step 3, carried over");
    assert_eq!(ask(&simulator, BOTIR, "/step").await, "2: step 1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_file_leaves_the_old_version_serving_and_says_why() {
    let simulator = simulator().await;
    let folder = tempfile::tempdir().expect("a folder");
    let serving = folder.path().join("echo.wasm");
    let whole = std::fs::read(plugin("echo")).expect("built");
    std::fs::write(&serving, &whole).expect("writable");
    let mut host = builder(&simulator).plugin("echo", &serving, "").start();
    let failures = |host: &Host| host.metrics().sum("botyard_reloads_total", &["outcome=\"failed\""]);
    let half = whole.get(..whole.len() / 2).expect("half of it");
    for (n, broken) in [half, b"this is a text", b"\0asm\x01\0\0\0"].into_iter().enumerate() {
        std::fs::write(&serving, broken).expect("writable");
        host.wait_until("the failure is counted", |host| failures(host) > n as f64);
        assert_eq!(ask(&simulator, ALICE, "still there?").await, "still there?");
        let (status, report) = host.get("/readyz").expect("it answers");
        assert!(status == 200 && report.contains("echo"), "it serves, with a note: {report}");
    }
    std::fs::write(&serving, &whole).expect("writable");
    host.wait_until("the note is gone", |host| host.get("/readyz").is_some_and(|(_, report)| !report.contains("echo")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_under_way_ends_with_what_it_began_with() {
    let simulator = simulator().await;
    let folder = tempfile::tempdir().expect("a folder");
    let serving = folder.path().join("echo.wasm");
    replace(&serving, &plugin("echo"));
    let mut host = builder(&simulator).plugin("echo", &serving, "config = { slow_ms = 3000 }").start();
    for text in ["slow and steady", "next"] {
        simulator.user_says(ALICE, ALICE, text).expect("a chat");
    }
    host.wait_until("it runs", |host| host.metrics().sum("botyard_lanes", &[]) > 0.0);
    replace(&serving, &guest("versioned_b"));
    host.wait_until("the new version serves", |host| versions_in(&host.log()) == 1);
    assert_eq!(simulator.delivered(ALICE), 0, "the old one is still at it");
    assert_eq!(ask(&simulator, BOTIR, "others").await, "2: others");
    let messages = simulator.wait_for_messages(ALICE, 2, Duration::from_secs(30)).await.expect("both");
    let texts: Vec<_> = messages.iter().map(|message| message.text().to_owned()).collect();
    assert_eq!(texts, ["slow and steady", "2: next"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_does_not_fit_at_the_next_start_leaves_the_last_version_serving() {
    let simulator = simulator().await;
    let folder = tempfile::tempdir().expect("a folder");
    let serving = folder.path().join("versioned.wasm");
    replace(&serving, &guest("versioned_a"));
    let mut host = builder(&simulator).plugin("versioned", &serving, "").start();
    assert_eq!(ask(&simulator, ALICE, "/step").await, "1: step 1");
    assert!(host.stop().status.success());
    simulator.user_says(ALICE, ALICE, "/step").expect("a chat");
    // As after an upgrade of one of the two.
    let other = r#"(module (func (export "botyard:plugin/handler@9.0.0#describe")))"#;
    std::fs::write(&serving, wat::parse_str(other).expect("a module")).expect("writable");
    host.start();
    assert_eq!(super::support::next(&simulator, ALICE, 1).await, "1: step 2");
    let (status, report) = host.get("/readyz").expect("it answers");
    assert!(status == 200 && report.contains("speaks `botyard:plugin/handler@9.0.0`"), "it says why: {report}");
    replace(&serving, &guest("versioned_b"));
    host.wait_until("the new version serves", |host| versions_in(&host.log()) == 1);
    assert_eq!(ask(&simulator, ALICE, "/step").await, "2: step 3, carried over");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_whose_file_comes_after_its_entry_serves_then() {
    let simulator = simulator().await;
    let folder = tempfile::tempdir().expect("a folder");
    let late = folder.path().join("echo.wasm");
    let mut host = builder(&simulator).plugin("counter", &plugin("counter"), "").start();
    let config = std::fs::read_to_string(host.config_file()).expect("readable");
    let wanted = format!("{config}\n[plugins.late]\npath = {:?}\n", late.display().to_string());
    let readyz = |host: &Host, status, part: &str| {
        host.get("/readyz").is_some_and(|(found, report)| found == status && report.contains(part))
    };

    std::fs::write(host.config_file(), &wanted).expect("writable");
    host.wait_until("the plugin is missed", |host| readyz(host, 503, "plugins.late"));
    std::fs::copy(plugin("echo"), &late).expect("writable");
    host.wait_until("it serves", |host| readyz(host, 200, "\"notes\":[]"));
    assert_eq!(ask(&simulator, ALICE, "there?").await, "there?");

    std::fs::write(&late, "a text").expect("writable");
    host.wait_until("it is noted", |host| readyz(host, 200, "plugins.late"));
    std::fs::write(host.config_file(), &config).expect("writable");
    host.wait_until("it is forgotten", |host| readyz(host, 200, "\"notes\":[]"));
}

#[tokio::test(flavor = "multi_thread")]
async fn bot_toml_is_applied_live_and_a_wrong_one_changes_nothing() {
    let simulator = simulator().await;
    let mut host = builder(&simulator).plugin("echo", &plugin("echo"), "").start();
    assert_eq!(ask(&simulator, ALICE, "/count").await, "/count");
    let config = std::fs::read_to_string(host.config_file()).expect("readable");

    let counter = plugin("counter").display().to_string();
    std::fs::write(host.config_file(), format!("{config}\n[plugins.counter]\npath = {counter:?}\npriority = 5\n"))
        .expect("writable");
    host.wait_until("counter serves", |host| versions_in(&host.log()) == 1);
    assert_eq!(ask(&simulator, ALICE, "/count").await, "This chat: 1. All chats: 1.");

    std::fs::write(host.config_file(), format!("{config}\n[plugins.counter]\npth = 1\n")).expect("writable");
    host.wait_until("the mistake is reported", |host| {
        host.get("/readyz").is_some_and(|(_, report)| report.contains("pth"))
    });
    assert_eq!(ask(&simulator, ALICE, "/count").await, "This chat: 2. All chats: 2.");

    std::fs::write(host.config_file(), &config).expect("writable");
    host.wait_until("the mistake is mended", |host| {
        host.get("/readyz").is_some_and(|(_, report)| !report.contains("pth"))
    });
    host.wait_until("counter has gone", |_| true);
    assert_eq!(ask(&simulator, ALICE, "/count").await, "/count", "without counter, echo answers again");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_whose_file_comes_later_serves_as_soon_as_it_is_there() {
    let simulator = simulator().await;
    let mut host = builder(&simulator).plugin("echo", &plugin("echo"), "").start();
    let config = std::fs::read_to_string(host.config_file()).expect("readable");
    let noted = |host: &Host| host.get("/readyz").is_some_and(|(_, report)| report.contains("counter"));
    let later = host.folder().join("counter.wasm");
    let entry = format!("{config}\n[plugins.counter]\npath = \"counter.wasm\"\npriority = 5\n");

    std::fs::write(host.config_file(), &entry).expect("writable");
    host.wait_until("the failure is noted", noted);
    replace(&later, &plugin("counter"));
    host.wait_until("counter serves", |host| versions_in(&host.log()) == 1);
    assert_eq!(ask(&simulator, ALICE, "/count").await, "This chat: 1. All chats: 1.");
    assert!(!noted(&host));

    // Another file that is not there, and back: nothing is wrong any more.
    std::fs::write(host.config_file(), entry.replace("counter.wasm", "nowhere.wasm")).expect("writable");
    host.wait_until("the failure is noted", noted);
    assert_eq!(ask(&simulator, ALICE, "/count").await, "This chat: 2. All chats: 2.");
    std::fs::write(host.config_file(), &entry).expect("writable");
    host.wait_until("the note is gone", |host| !noted(host));

    // Nor when the entry itself has gone.
    std::fs::write(&later, "broken").expect("writable");
    host.wait_until("the broken file is noted", noted);
    std::fs::write(host.config_file(), &config).expect("writable");
    host.wait_until("the note is gone", |host| !noted(host));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_does_not_wait_for_a_plugin_that_takes_minutes_to_compile() {
    let simulator = simulator().await;
    let folder = tempfile::tempdir().expect("a folder");
    let serving = folder.path().join("echo.wasm");
    replace(&serving, &plugin("echo"));
    let mut host = builder(&simulator).plugin("echo", &serving, "").start();
    let slow = folder.path().join("slow.wasm");
    std::fs::write(&slow, nested_loops(100_000)).expect("writable");
    replace(&serving, &slow);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(ask(&simulator, ALICE, "still there?").await, "still there?");
    assert!(!host.log().contains("does not load"), "it is still being compiled");
    let begun = std::time::Instant::now();
    assert!(host.stop().status.success());
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_do_not_wait_for_a_plugin_that_takes_minutes_to_compile() {
    let simulator = simulator().await;
    let folder = tempfile::tempdir().expect("a folder");
    let [echo, steps] = ["echo.wasm", "steps.wasm"].map(|name| folder.path().join(name));
    replace(&echo, &plugin("echo"));
    replace(&steps, &guest("versioned_a"));
    let mut host = builder(&simulator)
        .plugin("echo", &echo, "")
        .plugin("steps", &steps, "probation = \"0s\"\npriority = 1")
        .start();
    replace(&steps, &guest("versioned_b"));
    host.wait_until("the new version serves", |host| versions_in(&host.log()) == 1);
    assert_eq!(ask(&simulator, ALICE, "/step").await, "2: step 1");

    std::fs::write(folder.path().join("slow.wasm"), nested_loops(100_000)).expect("writable");
    replace(&echo, &folder.path().join("slow.wasm"));
    tokio::time::sleep(Duration::from_secs(1)).await;
    let begun = std::time::Instant::now();
    done(&host, &["plugin", "pause", "steps"]);
    assert_eq!(state(&host, "steps").0, "paused");
    done(&host, &["plugin", "resume", "steps"]);
    done(&host, &["plugin", "rollback", "steps"]);
    assert_eq!(ask(&simulator, BOTIR, "/step").await, "1: step 1");
    done(&host, &["plugin", "disable", "steps"]);
    assert_eq!(state(&host, "steps").0, "disabled");
    assert_eq!(ask(&simulator, BOTIR, "/step").await, "/step", "echo has them all");
    done(&host, &["plugin", "disable", "echo"]);
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    let log = host.log();
    let is_of_echo = |line: &&str| line.contains("does not load") && line.contains("plugin=echo");
    assert_eq!(log.lines().find(is_of_echo), None, "it is still being compiled");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_file_does_not_wait_for_the_one_before_it() {
    let simulator = simulator().await;
    let folder = tempfile::tempdir().expect("a folder");
    let echo = folder.path().join("echo.wasm");
    replace(&echo, &plugin("echo"));
    let mut host = builder(&simulator).plugin("echo", &echo, "probation = \"0s\"").start();
    std::fs::write(folder.path().join("slow.wasm"), nested_loops(100_000)).expect("writable");
    replace(&echo, &folder.path().join("slow.wasm"));
    tokio::time::sleep(Duration::from_secs(1)).await;
    let begun = std::time::Instant::now();
    replace(&echo, &guest("versioned_b"));
    host.wait_until("the newer version serves", |host| versions_in(&host.log()) == 1);
    assert_eq!(ask(&simulator, ALICE, "which?").await, "2: which?");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

/// A component that is nothing but a function with so many loops in each other, for which the compiler's time is
/// quadratic.
fn nested_loops(depth: usize) -> Vec<u8> {
    let section = |id: u8, content: &[u8]| [&[id][..], &leb128(content.len()), content].concat();
    // No locals; loops without a type; their ends and the function's own.
    let body = [&[0][..], &[0x03, 0x40].repeat(depth), &[0x0b].repeat(depth + 1)].concat();
    let code = section(10, &[&[1][..], &leb128(body.len()), &body].concat());
    let module = [b"\0asm\x01\0\0\0", &section(1, &[1, 0x60, 0, 0])[..], &section(3, &[1, 0]), &code].concat();
    [b"\0asm\x0d\0\x01\0", &section(1, &module)[..]].concat()
}

fn leb128(mut value: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = u8::try_from(value & 0x7f).expect("seven bits");
        value >>= 7;
        if value == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_reloads_lose_nothing_and_leave_nothing_behind() {
    let report = botyard_tests::soak::run(1, 40, |_, _| {}).await;
    assert_eq!(report.wrong, 0, "{report:?}");
    assert_eq!(report.modules, (1, 1), "the code of every version but the last is gone: {report:?}");
    let ((early, late), (before, after)) = (report.memory, report.threads);
    assert!(late < early + 30 && after <= before + 2, "{report:?}");
}
