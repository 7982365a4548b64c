//! What plugin authors do: begin a plugin, test it, change it, look at what it does.

#![allow(clippy::disallowed_methods, reason = "real processes take real time")]

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use botyard::simulator::ALICE;
use botyard_tests::{guest, host_program, plugin};
use serde_json::{Value, json};

/// A command that was run: its exit code, and all that it said.
struct Ran {
    code: Option<i32>,
    out: String,
    all: String,
}

fn run(folder: &Path, args: &[&str]) -> Ran {
    let output = command(folder, args).output().expect("it starts");
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    let all = format!("{out}{}", String::from_utf8_lossy(&output.stderr));
    assert!(!all.contains("panicked at host/"), "{all}");
    Ran { code: output.status.code(), out, all }
}

fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(host_program());
    command.args(args).current_dir(folder).stdin(Stdio::null()).env_remove("BOT_TOKEN").env_remove("BOTYARD_LOG");
    // One for all, so that the SDK is compiled once; and without what makes a build slow.
    command.env("CARGO_TARGET_DIR", target()).env("CARGO_PROFILE_RELEASE_LTO", "off");
    command
}

fn target() -> PathBuf {
    let program = host_program();
    program.ancestors().nth(2).expect("programs are in target/PROFILE").join("new-plugins")
}

fn replace(file: &Path, old: &str, new: &str) {
    let text = fs::read_to_string(file).expect("it is there");
    assert!(text.contains(old), "{old} is not in {}", file.display());
    fs::write(file, text.replace(old, new)).expect("writable");
}

#[test]
fn a_new_plugin_is_tested_changed_and_tested_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let made = run(folder.path(), &["new", "tea-shop"]);
    assert_eq!(made.code, Some(0), "{}", made.all);
    assert!(made.out.contains("botyard test") && made.out.contains("botyard dev"), "{}", made.out);
    let again = run(folder.path(), &["new", "tea-shop"]);
    assert!(again.code == Some(2) && again.all.contains("there already"), "{}", again.all);
    let bad = run(folder.path(), &["new", "Tea Shop"]);
    assert!(bad.code == Some(2) && bad.all.contains("such as tea-shop"), "{}", bad.all);

    let folder = folder.path().join("tea-shop");
    let doctor = run(&folder, &["doctor", "--offline"]);
    assert!(doctor.all.contains("warn  plugin tea-shop") && doctor.all.contains("not built yet"), "{}", doctor.all);
    let tested = run(&folder, &["test"]);
    assert!(tested.code == Some(0) && tested.out.contains("all as written"), "{}", tested.all);
    let checked = run(&folder, &["check", "--simulator"]);
    assert_eq!(checked.code, Some(0), "`run --simulator` would not start: {}", checked.all);

    replace(&folder.join("src/lib.rs"), "ctx.reply(ctx.text());", "ctx.reply(format!(\"{}!\", ctx.text()));");
    let tested = run(&folder, &["test"]);
    assert_eq!(tested.code, Some(1), "{}", tested.all);
    for line in ["tea-shop.chat:5: after `Alice: hello`", "- Bot: hello\n", "+ Bot: hello!\n"] {
        assert!(tested.out.contains(line), "`{line}` is not in\n{}", tested.out);
    }
    assert!(!tested.out.contains('\u{1b}'), "colours are for terminals");

    replace(&folder.join("src/lib.rs"), "ctx.text()));", "ctx.txt()));");
    let tested = run(&folder, &["test"]);
    assert!(tested.code == Some(1) && tested.all.contains("src/lib.rs:14"), "{}", tested.all);
}

#[test]
fn every_template_passes_its_tests() {
    let folder = tempfile::tempdir().expect("a folder");
    for template in ["echo", "form", "menu", "shop", "inline", "reminder", "admin"] {
        // Not `menu`, say: their crates share a target folder.
        let name = format!("new-{template}");
        let made = run(folder.path(), &["new", &name, "--template", template]);
        assert_eq!(made.code, Some(0), "{}", made.all);
        let folder = folder.path().join(&name);
        let tested = run(&folder, &["test"]);
        assert_eq!(tested.code, Some(0), "{template}: {}", tested.all);
        let native = Command::new("cargo")
            .args(["test", "--quiet"])
            .current_dir(&folder)
            .env("CARGO_TARGET_DIR", target())
            .env("RUSTFLAGS", "-Dwarnings")
            .envs([("CARGO_PROFILE_DEV_DEBUG", "0"), ("CARGO_INCREMENTAL", "0")])
            .output()
            .expect("cargo is there");
        assert!(native.status.success(), "{template}: {}", String::from_utf8_lossy(&native.stdout));
    }
}

/// A program that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Nothing to be done about a child that can't be killed.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Asks the simulator in another process, in the simplest way; `None` while there is no answer.
fn http(address: &str, request: &str) -> Option<Value> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()
}

/// What the bot answers to Alice.
fn answer(address: &str, text: &str) -> Option<String> {
    let body = json!({ "chat": ALICE, "user": ALICE, "text": text }).to_string();
    let said = format!(
        "POST /sim/say HTTP/1.0\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let message = http(address, &said)?["message_id"].as_i64()?;
    let get = format!("GET /sim/messages?chat={ALICE}&after={message} HTTP/1.0\r\nHost: {address}\r\n\r\n");
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(5) {
        let answered = http(address, &get)?["messages"][0]["text"].as_str().map(str::to_owned);
        if answered.is_some() {
            return answered;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    None
}

#[test]
fn while_it_is_written_every_change_is_live_and_a_broken_one_harms_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    assert_eq!(run(folder.path(), &["new", "dev-tea"]).code, Some(0));
    let folder = folder.path().join("dev-tea");
    let free = || TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port");
    let address = free().to_string();
    let log = fs::File::create(folder.join("target.log")).expect("writable");
    let mut dev = command(&folder, &["dev", "--listen", &address]);
    dev.env("BOTYARD__ADMIN__LISTEN", free().to_string()).env("BOTYARD__SEND__CHAT_PER_SECOND", "0");
    let _dev = Running(dev.stdout(Stdio::null()).stderr(log).spawn().expect("it starts"));
    let said = || fs::read_to_string(folder.join("target.log")).unwrap_or_default();
    let ask = |text: &str, within: Duration, wanted: &str| {
        let begin = Instant::now();
        while begin.elapsed() < within {
            if answer(&address, text).is_some_and(|answer| answer == wanted) {
                return begin.elapsed();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("{wanted:?} is not answered to {text:?}:\n{}", said());
    };
    ask("hello", Duration::from_secs(120), "hello");

    let source = folder.join("src/lib.rs");
    replace(&source, "ctx.reply(ctx.text());", "ctx.reply(format!(\"{}!\", ctx.text()));");
    // Three seconds on a machine that does nothing else.
    ask("hello", Duration::from_secs(30), "hello!");
    replace(&source, "ctx.text()));", "ctx.txt()));");
    let begin = Instant::now();
    while !said().contains("is not built") {
        assert!(begin.elapsed() < Duration::from_secs(30), "{}", said());
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(said().contains("no method named `txt`"), "{}", said());
    ask("still there", Duration::from_secs(10), "still there!");
    replace(&source, "ctx.txt()));", "ctx.text().to_uppercase()));");
    ask("hello", Duration::from_secs(30), "HELLO!");

    // What was written last is what answers, also where it fails: nothing goes back to a version of before.
    replace(
        &source,
        "ctx.reply(format!(\"{}!\", ctx.text().to_uppercase()));",
        "panic!(\"{} is too much\", ctx.text());",
    );
    let begin = Instant::now();
    while !said().contains("hello is too much") {
        assert!(begin.elapsed() < Duration::from_secs(60), "{}", said());
        answer(&address, "hello");
    }
    let begin = Instant::now();
    while !said().contains("became a dead letter") {
        assert!(begin.elapsed() < Duration::from_secs(60), "it is not given to another version: {}", said());
        std::thread::sleep(Duration::from_millis(20));
    }
    replace(&source, "panic!(\"{} is too much\", ctx.text());", "ctx.reply(\"mended\");");
    ask("hello", Duration::from_secs(30), "mended");
    assert!(!said().contains("rolled back") && !said().contains("trial"), "{}", said());
}

/// A file with an update of Alice's.
fn update(folder: &Path, text: &str) -> String {
    let user = json!({ "id": ALICE, "first_name": "Alice", "language_code": "en" });
    let chat = json!({ "id": ALICE, "type": "private", "first_name": "Alice" });
    let update = json!({ "message": { "message_id": 1, "date": 1, "from": user, "chat": chat, "text": text } });
    let file = folder.join("update.json");
    fs::write(&file, update.to_string()).expect("writable");
    file.display().to_string()
}

#[test]
fn one_update_shows_all_that_would_come_of_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let call = |text: &str, plugin: &Path, more: &[&str]| {
        let (update, plugin) = (update(folder, text), plugin.display().to_string());
        let ran = run(folder, &[&["call", &update, "--json", "--plugin", &plugin], more].concat());
        let effects: Value = serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{}", ran.all));
        (ran.code, effects)
    };
    let (code, effects) = call("Zoë", &plugin("form"), &["--state", "name=\"Name\""]);
    assert_eq!(code, Some(0));
    assert_eq!(effects["runs"][0]["verdict"], "took it");
    let of = |effects: &Value| effects["runs"][0]["effects"].clone();
    let made = of(&effects);
    assert_eq!(made["calls"][0]["params"]["text"], "How old are you?");
    assert_eq!(made["states"][0]["before"], json!({ "name": "name", "value": "Name" }));
    assert_eq!(made["states"][0]["after"], json!({ "name": "age", "value": { "Age": { "name": "Zoë" } } }));

    let (file, form) = (update(folder, "Zoë"), plugin("form").display().to_string());
    let nowhere = run(folder, &["call", &file, "--plugin", &form, "--state", "nmae=1"]);
    assert!(nowhere.code == Some(2) && nowhere.all.contains("state nmae (but in age, name)"), "{}", nowhere.all);

    let (_, effects) = call("/count", &plugin("counter"), &[]);
    let values = of(&effects)["values"].clone();
    let values: Vec<_> = values.as_array().expect("a list").iter().map(|value| &value["after"]).collect();
    assert_eq!(values, [&json!(1), &json!(1)]);
    let (_, effects) = call("/remind 60000 tea", &guest("timers"), &[]);
    let timer = &of(&effects)["timers"][0];
    assert_eq!((&timer["payload"], &timer["seconds"]), (&json!("tea"), &json!(60)));
    // The simulated Telegram answers what a plugin waits for.
    let (_, effects) = call("/me", &guest("calls"), &[]);
    assert_eq!(effects["runs"][0]["asked"][0]["what"], "getMe");
    assert_eq!(of(&effects)["calls"][0]["params"]["text"], "I am botyard_bot");

    let (code, effects) = call("/panic", &guest("panics"), &[]);
    assert_eq!(code, Some(1), "{effects}");
    assert!(effects["failed"].as_str().is_some_and(|why| why.contains("panicked at")), "{effects}");
    assert_eq!(of(&effects), json!({}), "what failed leaves nothing: {effects}");
    assert!(
        !folder.join("data").exists() && fs::read_dir(folder).expect("readable").count() == 1,
        "it leaves no trace"
    );
}

/// What is said of a text and one plugin, with these keys in its section.
fn routes_of(folder: &Path, name: &str, keys: &str) -> String {
    let wasm = if name == "echo" { plugin(name) } else { guest(name) };
    let config = format!("[bot]\ntoken = {{ env = \"NO_TOKEN\" }}\n[plugins.{name}]\npath = {wasm:?}\n{keys}\n");
    fs::write(folder.join("bot.toml"), config).expect("writable");
    let text = update(folder, "hello");
    run(folder, &["routes", &text]).all
}

#[test]
fn routes_say_who_is_asked_and_why_others_are_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let plugins = ["form", "echo"].map(|name| format!("{name}={}", plugin(name).display()));
    let routes = |more: &[&str]| {
        run(folder.path(), &[&["routes", "--plugin", &plugins[0], "--plugin", &plugins[1]], more].concat()).out
    };
    let all = routes(&[]);
    assert!(all.contains("/cancel") && all.contains("text that is no command, in state age"), "{all}");
    let text = update(folder.path(), "hello");
    let said = routes(&[&text]);
    assert!(said.contains("echo: 1. is asked") && said.contains("form: is not asked"), "{said}");
    assert!(said.contains("no conversation is open"), "{said}");
    let said = routes(&[&text, "--state", "form:name"]);
    assert!(said.contains("form: 1. is asked") && said.contains("echo: 2. is asked"), "{said}");

    let filters = routes_of(folder.path(), "routes", "");
    assert!(filters.contains("/start, if args_begin(\"ref-\")"), "{filters}");
    let granted = routes_of(folder.path(), "echo", "grants = { kinds = [\"edited_message\"] }");
    assert!(granted.contains("echo: is not asked: `message` is not in `grants.kinds` of [plugins.echo]"), "{granted}");
    let granted = routes_of(folder.path(), "echo", &format!("grants = {{ chats = [\"group\", {ALICE}] }}"));
    assert!(granted.contains("echo: 1. is asked"), "{granted}");
    let granted = routes_of(folder.path(), "echo", "grants = { chats = [\"group\"] }");
    assert!(granted.contains("echo: is not asked: its chat is not in `grants.chats`"), "{granted}");
}

#[test]
fn a_script_meets_failures_time_and_wrong_lines() {
    let folder = tempfile::tempdir().expect("a folder");
    let play = |script: &str, plugin: &Path| {
        fs::write(folder.path().join("x.chat"), script).expect("writable");
        run(folder.path(), &["test", "--plugin", &plugin.display().to_string()])
    };
    let timers = "Alice: /remind 86400000 tea\nBot: set\nwait 23h\nBot says nothing\nwait 1h\nBot: reminder: *\n";
    let fine = play(timers, &guest("timers"));
    assert_eq!(fine.code, Some(0), "{}", fine.all);
    let failed = play("Alice: /panic\n", &guest("panics"));
    assert!(failed.code == Some(1) && failed.out.contains("panicked at"), "{}", failed.all);
    let never_answered = play("Alice: /menu\n...\nAlice presses [Nothing]\n", &plugin("menu"));
    assert!(
        never_answered.code == Some(1) && never_answered.all.contains("no message in chat"),
        "{}",
        never_answered.all
    );
    let wrong = play("Alice: hi\nBot shrugs\n", &plugin("echo"));
    assert!(wrong.code == Some(2) && wrong.all.contains("x.chat:2: "), "{}", wrong.all);
    let set = play("set plugins.echo.confg = 1\nAlice: hi\nBot: hi\n", &plugin("echo"));
    assert!(set.code == Some(2) && set.all.contains("`config`"), "{}", set.all);
    fs::remove_file(folder.path().join("x.chat")).expect("it is there");
    let none = run(folder.path(), &["test", "--plugin", &plugin("echo").display().to_string()]);
    assert!(none.code == Some(2) && none.all.contains("docs/testing.md"), "{}", none.all);
}

/// What each example plugin is allowed to weigh. Who grows beyond it has brought something large in for a small thing: the
/// printing of fractions, a second JSON, tables of Unicode.
#[test]
fn example_plugins_stay_small() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins");
    let mut n_small = 0;
    for entry in fs::read_dir(source).expect("the plugins are there") {
        let folder = entry.expect("it can be read").path();
        if !folder.join("Cargo.toml").exists() {
            continue;
        }
        let wasm = plugin(folder.file_name().and_then(|name| name.to_str()).expect("it is a name"));
        let seen = run(&folder, &["plugin", "inspect", "--json", &wasm.display().to_string()]);
        let seen: Value = serde_json::from_str(&seen.out).unwrap_or_else(|error| panic!("{error}: {}", seen.all));
        let n_methods = seen["rights"]["methods"].as_array().map_or(0, Vec::len);
        let broadcasts = seen["interfaces"].to_string().contains("broadcasts");
        let most = match n_methods {
            0..=3 if !broadcasts => {
                n_small += 1;
                150 << 10
            }
            _ => 200 << 10,
        };
        assert!(seen["bytes"].as_u64() < Some(most), "{} has {} bytes, {most} at most", wasm.display(), seen["bytes"]);
    }
    assert!(n_small >= 8, "{n_small} plugins with three methods at most");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_asks_telegram_and_names_the_mend() {
    let simulator = super::support::simulator().await;
    let folder = tempfile::tempdir().expect("a folder");
    let look = |token: &str| {
        let config = format!(
            "[bot]\ntoken = \"{token}\"\napi_base = \"{}\"\n[admin]\nlisten = \"127.0.0.1:0\"\n[plugins.echo]\npath = {:?}\n",
            simulator.api_base(),
            plugin("echo").display().to_string()
        );
        fs::write(folder.path().join("bot.toml"), config).expect("writable");
        let ran = run(folder.path(), &["doctor", "--json"]);
        assert!(!ran.all.contains("secret"), "the token is shown: {}", ran.all);
        let findings: Vec<Value> = serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{}", ran.all));
        let of = |what: &str| findings.iter().find(|finding| finding["what"] == what).cloned().unwrap_or_default();
        (ran.code, of("bot"), of("webhook"), of("clock"))
    };
    let token = "4242:AAEthis-is-a-secret-of-thirty-five-chars";
    let (code, known, webhook, clock) = look(token);
    assert_eq!((code, &known["health"], &webhook["health"]), (Some(0), &json!("ok"), &json!("ok")));
    assert_eq!(clock["health"], "ok");
    let body = r#"{"ok":false,"error_code":401,"description":"Unauthorized"}"#.to_owned();
    let content_type = "application/json".to_owned();
    let action = botyard::simulator::Action::Answer { status: 401, body, content_type, applied: false };
    simulator.add_fault(botyard::simulator::Fault::on("*", action));
    let (code, unknown, ..) = look(token);
    assert_eq!((code, &unknown["health"]), (Some(1), &json!("fail")), "{unknown}");
    assert!(unknown["mend"].as_str().is_some_and(|mend| mend.contains("@BotFather")), "{unknown}");
    let nowhere = run(folder.path(), &["doctor", "--config", "none.toml", "--offline"]);
    assert!(nowhere.code == Some(1) && nowhere.all.contains("botyard new"), "{}", nowhere.all);
}

#[test]
fn shells_are_told_every_command() {
    for shell in ["bash", "zsh", "fish"] {
        let ran = run(Path::new("."), &["completions", shell]);
        assert_eq!(ran.code, Some(0), "{}", ran.all);
        assert!(["dev", "routes", "doctor"].iter().all(|command| ran.out.contains(command)), "{shell}");
    }
}
