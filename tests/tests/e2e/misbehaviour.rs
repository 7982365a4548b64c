//! Plugins that do what they must not, beside one that behaves.

use std::time::Duration;

use botyard::simulator::{ALICE, Action, BOTIR, Bulk, Fault, User};
use botyard::store::rows::dead::DeadRow;
use botyard_tests::{Host, Module, guest, plugin};

use super::operator::{botyard, done, json};
use super::support::{ask, builder, dead_letters, delivered, next, simulator};

/// How long anything may take on a machine that has much else to do.
const PATIENCE: Duration = Duration::from_secs(60);
/// Chats that nobody else has.
const FIRST_CHAT: i64 = 6_000_000_000;

fn dead(host: &Host) -> f64 {
    host.metrics().sum("botyard_events_total", &["outcome=\"dead\""])
}

/// What becomes of a message to a plugin that does harm.
struct Harm {
    plugin: &'static str,
    text: &'static str,
    /// The limit that is counted.
    limit: Option<&'static str>,
    end: End,
}

enum End {
    /// After so many attempts its event is set aside, for a reason that says all of this.
    Dead(u32, &'static [&'static str]),
    Answered(&'static str),
}

const ATTEMPTS: u32 = 2;

fn dead_after(attempts: u32, plugin: &'static str, text: &'static str, reason: &'static [&'static str]) -> Harm {
    Harm { plugin, text, limit: None, end: End::Dead(attempts, reason) }
}

impl Harm {
    fn at(self, limit: &'static str) -> Self {
        Self { limit: Some(limit), ..self }
    }
}

/// Compiled from Rust: name, configuration, and the guest.
const COMPILED: [(&str, &str, &str); 5] = [
    ("loops", "limits = { cpu = \"50ms\" }", "loops"),
    ("traps", "", "traps"),
    ("eats", "limits = { memory = \"8MiB\" }", "eats_memory"),
    ("panics", "", "panics"),
    ("hogs", "limits = { state = \"1KiB\", value = \"1KiB\", log = \"4KiB\", cpu = \"5s\" }", "hogs_state"),
];

/// Fails with the words of an answer, which must be an error: that a call was not made.
const FAIL_WITH_ANSWER: &str = "
    (if (i32.eqz (i32.load8_u (global.get $answer))) (then unreachable))
    (call $fail (i32.load offset=16 (global.get $answer)) (i32.load offset=20 (global.get $answer)))";

/// Written by hand, and how they are configured.
fn by_hand() -> Vec<(Module, &'static str)> {
    let asks = |name, text, call: &str| Module { text, ..Module::new(name, format!("{call} {FAIL_WITH_ANSWER}")) };
    const NAME: &str = "(global.get $name) (global.get $name_len)";
    const TEXT: &str = "(global.get $text) (global.get $text_len)";
    const GARBAGE: &str = "(global.get $garbage) (global.get $garbage_len)";
    const ANSWER: &str = "(global.get $answer)";
    const NONE: &str = "(i32.const 0) (i32.const 0)";
    let for_ever = |body: &str| format!("(loop $l {body} (br $l)) unreachable");
    let until_refused = format!(
        "(loop $l (call $call {TEXT} (global.get $empty) (i32.const 2) {ANSWER})
           (br_if $l (i32.eqz (i32.load8_u {ANSWER}))))"
    );
    vec![
        (Module::new("drips", for_ever("(call $sleep (i64.const 3))")), "limits = { time = \"700ms\" }"),
        (Module::new("deep", "(call $handle (local.get 0))"), ""),
        (asks("rings", "getMe", &until_refused), "limits = { calls = 5 }"),
        // As much as its memory holds, and more than a guest may hand over at once.
        (Module { pages: 40, ..Module::new("babbles", "(call $fail (i32.const 65536) (i32.const 2000000))") }, ""),
        (Module { pages: 300, ..Module::new("floods", "(call $fail (i32.const 65536) (i32.const 18000000))") }, ""),
        (Module::new("garbles", format!("(call $fail {GARBAGE})")), ""),
        (Module::new("scrawls", format!("(call $emit (i32.const 2) {GARBAGE} {NONE}) (global.get $done)")), ""),
        (Module { realloc: "(call $sleep (i64.const 1))", ..Module::new("reenters", "(global.get $done)") }, ""),
        (Module::new("strays", "(call $fail (i32.const -8) (i32.const 1000))"), ""),
        (asks("stammers", "{\"chat_id\":7,\"text\":", &format!("(call $call {NAME} {TEXT} {ANSWER})")), ""),
        (asks("queues", "[{\"chat_id\":7}]", &format!("(call $enqueue {NAME} {TEXT} {NONE} {NONE} {ANSWER})")), ""),
        (asks("types", "\"typing\"", &format!("(call $keep_action {TEXT} {ANSWER})")), ""),
        (asks("climbs", "../getMe?x=", &format!("(call $call {TEXT} (global.get $empty) (i32.const 2) {ANSWER})")), ""),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_plugins_do_ends_within_limits_while_echo_answers() {
    let out_of_time =
        dead_after(ATTEMPTS, "drips", "/drips", &["700ms", "`limits.time`", "[plugins.drips] in bot.toml"]);
    let no_json = ["the parameters are not a JSON object"].as_slice();
    let harms = [
        dead_after(ATTEMPTS, "loops", "/loop", &["50ms", "`limits.cpu`", "[plugins.loops] in bot.toml"]).at("cpu"),
        out_of_time.at("time"),
        dead_after(ATTEMPTS, "traps", "/trap", &["trapped"]),
        dead_after(ATTEMPTS, "deep", "/deep", &["trapped", "stack"]),
        dead_after(ATTEMPTS, "eats", "/eat", &["`limits.memory`", "[plugins.eats] in bot.toml"]).at("memory"),
        dead_after(ATTEMPTS, "panics", "/panic at noon", &["deliberate: at noon", "panics/src/lib.rs:"]),
        dead_after(1, "panics", "/refuse", &["refused for good"]),
        Harm { plugin: "hogs", text: "/log 5000", limit: Some("log"), end: End::Answered("logged") },
        Harm { plugin: "hogs", text: "/state 100", limit: None, end: End::Answered("kept") },
        Harm { plugin: "hogs", text: "/value 100", limit: None, end: End::Answered("kept") },
        dead_after(1, "hogs", "/state 5000", &["`limits.state` of [plugins.hogs] in bot.toml"]).at("state"),
        dead_after(1, "hogs", "/value 5000", &["`limits.value` of [plugins.hogs] in bot.toml"]).at("value"),
        dead_after(1, "hogs", "/flood 5000", &["too many writes"]),
        dead_after(1, "rings", "/rings", &["at most 5", "`limits.calls` of [plugins.rings] in bot.toml"]).at("calls"),
        dead_after(1, "babbles", "/babbles", &["the plugin failed"]),
        dead_after(ATTEMPTS, "floods", "/floods", &["trapped"]),
        dead_after(ATTEMPTS, "garbles", "/garbles", &["trapped", "utf-8"]),
        dead_after(ATTEMPTS, "scrawls", "/scrawls", &["trapped", "utf-8"]),
        dead_after(ATTEMPTS, "reenters", "/reenters", &["trapped"]),
        dead_after(ATTEMPTS, "strays", "/strays", &["trapped"]),
        dead_after(1, "stammers", "/stammers", no_json),
        dead_after(1, "queues", "/queues", no_json),
        dead_after(1, "types", "/types", no_json),
        dead_after(1, "climbs", "/climbs", &["is not the name of a Bot API method"]),
    ];
    let simulator = simulator().await;
    let folder = tempfile::tempdir().expect("a folder");
    let mut scene = builder(&simulator).sections(&format!("[dispatch]\nmax_attempts = {ATTEMPTS}\n"));
    for (name, config, wasm) in COMPILED {
        scene = scene.plugin(name, &guest(wasm), &format!("priority = 1\n{config}"));
    }
    for (module, config) in by_hand() {
        let file = folder.path().join(module.name).with_extension("wasm");
        std::fs::write(&file, module.wasm()).expect("writable");
        scene = scene.plugin(module.name, &file, &format!("priority = 1\n{config}"));
    }
    let mut host = scene.plugin("echo", &plugin("echo"), "").start();
    ask(&simulator, BOTIR, "warm up").await;
    let (threads, memory, calls) = (host.threads(), host.resident_mib(), simulator.call_count("getMe"));

    // Each in a chat of its own, whose next message is to be handled when the harm is done.
    let chat = |nth: usize| FIRST_CHAT + i64::try_from(nth).expect("few");
    for (nth, harm) in harms.iter().enumerate() {
        for text in [harm.text, "and now?"] {
            simulator.push_updates(&Bulk { text: text.to_owned(), first_chat: chat(nth), ..Bulk::new(1, 1) });
        }
    }
    let mut said = vec!["warm up".to_owned()];
    let wanted = harms.iter().filter(|harm| matches!(harm.end, End::Dead(..))).count();
    while dead(&host) < wanted as f64 {
        said.push(format!("still there? {}", said.len()));
        assert_eq!(Some(&ask(&simulator, BOTIR, said.last().expect("some")).await), said.last());
        assert!(said.len() < 20_000, "only {} of {wanted} came to an end", dead(&host));
    }
    for (nth, harm) in harms.iter().enumerate() {
        let expected = match harm.end {
            End::Dead(..) => vec!["and now?"],
            End::Answered(answer) => vec![answer, "and now?"],
        };
        let messages =
            simulator.wait_for_messages(chat(nth), expected.len() as u64, PATIENCE).await.expect("they come");
        let texts: Vec<_> = messages.iter().map(|message| message.text().to_owned()).collect();
        assert_eq!(texts, expected, "{}: nothing of a failed run is sent, and the lane goes on", harm.text);
    }
    let texts = |chat| simulator.bot_messages(chat).iter().map(|message| message.text().to_owned()).collect::<Vec<_>>();
    assert_eq!(texts(BOTIR), said, "each answered once, in order");
    assert!(host.threads() <= threads + 2, "{threads} threads before, {} now", host.threads());
    assert!(host.resident_mib() < memory + 60, "{memory} MiB before, {} now", host.resident_mib());
    assert_eq!(simulator.call_count("getMe") - calls, 5, "of the plugin that rings");
    let metrics = host.metrics();
    assert_eq!(dead(&host), wanted as f64);

    let stopped = host.stop();
    assert!(stopped.status.success());
    let lines = stopped.log.lines().filter(|line| line.contains("a line of the hog")).count();
    assert!((10..100).contains(&lines) && stopped.log.contains("a run logs too much"), "{lines} lines of its log");
    assert!(!stopped.log.contains("panicked at host/"), "{}", stopped.log);
    let mut letters = dead_letters(&host);
    for Harm { plugin, text, limit, end } in &harms {
        if let Some(limit) = limit {
            let labels = [&*format!("plugin=\"{plugin}\""), &*format!("limit=\"{limit}\"")];
            assert!(metrics.sum("botyard_plugin_limits_total", &labels) >= 1.0, "{text} counts as limits.{limit}");
        }
        let End::Dead(attempts, reason) = end else { continue };
        let says = |letter: &DeadRow| reason.iter().all(|part| letter.reason.contains(part));
        let found = letters.iter().position(|letter| letter.plugin == *plugin && says(letter));
        let letter = letters.remove(found.unwrap_or_else(|| panic!("{text}: {reason:?} in none of {letters:#?}")));
        assert_eq!(letter.attempts, *attempts, "{text}");
        assert!(letter.reason.len() < 6 << 10, "{text}: {} bytes", letter.reason.len());
    }
    assert_eq!(letters, [], "and no more of them");
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_endless_loops_leave_the_host_responsive() {
    let simulator = simulator().await;
    simulator.start_load_mode(false);
    let mut host = builder(&simulator)
        .sections("[dispatch]\nmax_attempts = 1\n")
        .plugin("loops", &guest("loops"), "priority = 1\nlimits = { cpu = \"100ms\" }")
        .plugin("echo", &plugin("echo"), "")
        .start();
    let threads = host.threads();
    simulator.push_updates(&Bulk { text: "/loop".to_owned(), ..Bulk::new(50, 50) });
    simulator.end_load_mode();
    let mut most_threads = threads;
    let mut asked = 0;
    while dead(&host) < 50.0 {
        let text = format!("hello {asked}");
        assert_eq!(ask(&simulator, BOTIR, &text).await, text);
        most_threads = most_threads.max(host.threads());
        asked += 1;
    }
    assert!(asked > 5, "the loops take 5 s of processor time; echo was answered only {asked} times meanwhile");
    assert!(most_threads <= threads + 2, "{threads} threads before, {most_threads} at most");
    assert!(host.stop().status.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_event_is_tried_again_and_then_handled_once() {
    let simulator = simulator().await;
    let host = builder(&simulator).plugin("panics", &guest("panics"), "").start();
    assert_eq!(ask(&simulator, ALICE, "/fail 3").await, "attempt 3");
    assert_eq!(simulator.delivered(ALICE), 1, "the failed attempts left nothing behind");
    assert!(dead(&host).abs() < f64::EPSILON);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_not_be_loaded_says_why_while_echo_answers() {
    let module = |name| Module::new(name, "(global.get $done)");
    let missing = r#"(import "botyard:telegram/bot-api@0.1.0" "teleport" (func (param i32)))"#;
    let system = r#"(import "wasi_snapshot_preview1" "proc_exit" (func (param i32)))"#;
    let garbled = "(i32.store (global.get $manifest) (global.get $garbage))
        (i32.store offset=4 (global.get $manifest) (global.get $garbage_len)) (global.get $manifest)";
    let cases = [
        (Module { imports: missing, ..module("wishes") }, "::teleport` (unknown to this host"),
        (Module { imports: system, ..module("escapes") }, "::proc_exit` (of WASI there is something for components"),
        (Module { describe: "unreachable", ..module("silent") }, "`unreachable` instruction executed\""),
        (Module { describe: "(loop $l (br $l)) unreachable", ..module("broods") }, "more than 2s of processor time"),
        (Module { describe: garbled, ..module("garbles") }, "utf-8"),
        (Module { describe: "(i32.const -4)", ..module("strays") }, "can't describe itself"),
        (Module { key: "person", ..module("misspells") }, "unknown key strategy `person`"),
    ];
    let simulator = simulator().await;
    let mut host = builder(&simulator).plugin("echo", &plugin("echo"), "").start();
    let good = std::fs::read_to_string(host.config_file()).expect("readable");
    let mut config = good.clone();
    for (module, _) in &cases {
        let file = host.folder().join(module.name).with_extension("wasm");
        std::fs::write(&file, module.wasm()).expect("writable");
        config.push_str(&format!("\n[plugins.{}]\npath = {:?}\n", module.name, file.display().to_string()));
    }
    std::fs::write(host.config_file(), config).expect("writable");
    let report = |host: &Host| host.get("/readyz").map(|(_, report)| report).unwrap_or_default();
    let mut said = Vec::new();
    while !cases.iter().all(|(module, _)| report(&host).contains(&format!("plugins.{}", module.name))) {
        said.push(format!("still there? {}", said.len()));
        assert_eq!(Some(&ask(&simulator, BOTIR, said.last().expect("some")).await), said.last());
        assert!(said.len() < 20_000, "{}", report(&host));
    }
    let report = report(&host);
    for (module, reason) in &cases {
        assert!(report.contains(reason), "{}: {reason} is not in {report}", module.name);
    }
    std::fs::write(host.config_file(), good).expect("writable");
    host.wait_until("they are forgotten", |host| {
        host.get("/readyz").is_some_and(|(status, report)| status == 200 && report.contains("\"notes\":[]"))
    });
    said.push("and now?".to_owned());
    assert_eq!(ask(&simulator, BOTIR, "and now?").await, "and now?");
    let texts: Vec<_> = simulator.bot_messages(BOTIR).iter().map(|message| message.text().to_owned()).collect();
    assert_eq!(texts, said);
    assert!(host.stop().status.success());
}

/// Every value is small, and there is no end of them.
#[tokio::test(flavor = "multi_thread")]
async fn who_stores_more_and_more_is_stopped_and_harms_nobody() {
    const MOST: u64 = 64 << 10;
    let simulator = simulator().await;
    let mut host = builder(&simulator)
        .sections("[dispatch]\nmax_attempts = 1\n")
        .plugin("hog", &guest("hogs_state"), "limits = { stored = \"64KiB\" }")
        .plugin("counter", &plugin("counter"), "")
        .start();
    let stored = |host: &Host, plugin: &str| {
        let list = json(host, &["plugin", "list"]);
        let of = list.as_array().expect("a list").iter().find(|one| one["name"] == plugin).cloned();
        of.expect("it is there")["stored"].as_u64().expect("a number")
    };
    // In many chats at once: each run alone would be within the limit.
    let chats: Vec<i64> = (9_001..9_013).collect();
    for chat in &chats {
        simulator.add_user(User::new(*chat, "Somebody", None));
        simulator.user_says(*chat, *chat, "/pile 10000").expect("a chat");
    }
    host.wait_until("each has an end", |host| {
        let metrics = host.metrics();
        metrics.sum("botyard_events_total", &["outcome=\"dead\""])
            + metrics.sum("botyard_events_total", &["outcome=\"handled\""])
            >= 12.0
    });
    let refused = dead(&host);
    assert!((6.0..=11.0).contains(&refused), "{refused} of 12 were refused");
    let kept = stored(&host, "hog");
    assert!(kept <= MOST && kept > 10_000, "{kept}");
    assert_eq!(host.metrics().sum("botyard_plugin_stored_bytes", &["plugin=\"hog\""]), kept as f64);
    assert!(host.metrics().sum("botyard_plugin_limits_total", &["plugin=\"hog\"", "limit=\"stored\""]) >= refused);
    assert!(ask(&simulator, BOTIR, "/count").await.starts_with("This chat: 1."), "others have their own");

    host.kill();
    let letters = dead_letters(&host);
    assert!(letters.iter().all(|letter| letter.reason.contains("`limits.stored` of [plugins.hog]")), "{letters:?}");
    let (code, out, errors) = botyard(&host, &["store", "check"]);
    assert_eq!(code, Some(0), "the count is right: {out}{errors}");
    host.start();
    assert_eq!(stored(&host, "hog"), kept);
    assert_eq!(ask(&simulator, ALICE, "/value 100").await, "kept", "there is a little room left");
    // Room is made by whoever lets go of something, whoever that is.
    let before = stored(&host, "hog");
    for chat in &chats {
        done(&host, &["state", "erase", "--user", &chat.to_string(), "--yes"]);
    }
    let after = stored(&host, "hog");
    assert!(after < 1_000 && after < before, "{after} of {before}");
    assert_eq!(ask(&simulator, ALICE, "/pile 50000").await, "kept");
    assert_eq!(ask(&simulator, ALICE, "/clear").await, "cleared");
    assert_eq!(ask(&simulator, ALICE, "/pile 50000").await, "kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_granted_is_denied_and_the_answer_says_what_to_add() {
    let simulator = simulator().await;
    let _host = builder(&simulator)
        .plugin("calls", &guest("calls"), "grants = { methods = [\"sendMessage\", \"get*\"] }")
        .start();
    assert_eq!(ask(&simulator, ALICE, "/me").await, "I am botyard_bot");
    let before = simulator.delivered(ALICE);
    simulator.user_says(ALICE, ALICE, "/call sendDice").expect("a chat");
    let answer = next(&simulator, ALICE, before).await;
    assert!(answer.contains("sendDice") && answer.contains("grants.methods"), "{answer}");
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(simulator.call_count("sendDice"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_plugin_sees_the_token_even_where_telegram_tells_it() {
    let simulator = simulator().await;
    let _host = builder(&simulator).plugin("calls", &guest("calls"), "").start();
    // As a server of one's own answers: its folders are named after the tokens.
    let path = "/var/lib/telegram-bot-api/4242:test-token-that-must-never-be-seen-anywhere/documents/file_0.pdf";
    let body = serde_json::json!({ "ok": true, "result": { "file_path": path } }).to_string();
    let answer = Action::Answer { status: 200, body, content_type: "application/json".to_owned(), applied: false };
    simulator.add_fault(Fault::on("getFile", answer));
    let answer = ask(&simulator, ALICE, "/call getFile").await;
    assert!(answer.contains("documents/file_0.pdf") && !answer.contains("test-token"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_only_waits_leaves_places_to_the_others() {
    let simulator = simulator().await;
    let mut host = builder(&simulator)
        .plugin("waits", &guest("loops"), "limits = { time = \"40s\" }\npriority = 1")
        .plugin("echo", &plugin("echo"), "")
        .start();
    assert_eq!(ask(&simulator, ALICE, "warm").await, "warm");
    let threads = host.threads();
    // More than there are places, each for as long as the test takes.
    simulator.push_updates(&Bulk { text: "/wait".to_owned(), first_chat: FIRST_CHAT, ..Bulk::new(600, 600) });
    host.wait_until("it has its share", |host| host.metrics().sum("botyard_crowd", &["plugin=\"waits\""]) == 395.0);
    let began = std::time::Instant::now();
    let bulk = Bulk { text: "hello".to_owned(), first_chat: FIRST_CHAT + 10_000, ..Bulk::new(300, 300) };
    let before = simulator.delivered_in_all();
    simulator.push_updates(&bulk);
    delivered(&simulator, before + 300, PATIENCE).await;
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert_eq!(host.metrics().sum("botyard_crowd", &["plugin=\"waits\""]), 395.0, "they wait as before");
    assert!(host.threads() <= threads + 2, "{threads} threads before, {} now", host.threads());
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_waits_for_a_place_gets_it_when_it_is_free() {
    let simulator = simulator().await;
    let mut host = builder(&simulator)
        .sections("[dispatch]\nconcurrency = 4\nmax_attempts = 1")
        .plugin("waits", &guest("loops"), "limits = { time = \"100ms\" }\npriority = 1")
        .plugin("echo", &plugin("echo"), "")
        .start();
    simulator.push_updates(&Bulk { text: "/wait".to_owned(), ..Bulk::new(8, 8) });
    host.wait_until("all have had their turn", |host| dead(host) >= 8.0);
    assert_eq!(host.metrics().sum("botyard_crowd", &[]), 0.0);
    assert_eq!(ask(&simulator, ALICE, "hello").await, "hello");
}
