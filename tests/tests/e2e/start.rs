//! Starts that can't succeed: each says what is wrong and what to do, and shows no secret.

use std::path::Path;
use std::process::{Command, Output};

use botyard_tests::{host_program, plugin};

use super::support::{echo_host, simulator};

const TOKEN: &str = "4242:AAEthis-is-a-secret-of-thirty-five-chars";

fn run(folder: &Path, config: Option<&str>) -> (Option<i32>, String) {
    if let Some(config) = config {
        std::fs::write(folder.join("bot.toml"), config).expect("writable");
    }
    let Output { status, stdout, stderr } = Command::new(host_program())
        .args(["run", "--config"])
        .arg(folder.join("bot.toml"))
        .env_remove("BOT_TOKEN")
        .env("TEST_TOKEN", TOKEN)
        .output()
        .expect("it starts");
    let text = format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(!text.contains("this-is-a-secret"), "the token is shown: {text}");
    assert!(!text.contains("panicked"), "{text}");
    (status.code(), text)
}

fn config(api_base: &str, rest: &str) -> String {
    format!(
        "[bot]\ntoken = {{ env = \"TEST_TOKEN\" }}\napi_base = \"{api_base}\"\n[admin]\nlisten = \"127.0.0.1:0\"\n{rest}"
    )
}

fn echo() -> String {
    format!("[plugins.echo]\npath = {:?}\n", plugin("echo").display().to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_start_says_what_is_wrong() {
    let simulator = simulator().await;
    let base = simulator.api_base();
    let text_file = "[plugins.echo]\npath = \"notes.wasm\"\n";
    let cases: [(&str, Option<String>, &[&str]); 9] = [
        ("no file", None, &["bot.toml", "no such file"]),
        ("an empty file", Some(String::new()), &["empty", "[plugins.echo]"]),
        ("no token", Some("[bot]\ntoken = { env = \"BOT_TOKEN\" }\n".to_owned() + &echo()), &["BOT_TOKEN"]),
        (
            "a misspelt key",
            Some(config(&base, "[dispatch]\nconcurency = 5\n")),
            &["bot.toml:7:1", "concurency", "`concurrency`"],
        ),
        (
            "a wrong value",
            Some(config(&base, "[dispatch]\nconcurrency = \"many\"\n")),
            &["bot.toml:7:", "concurrency", "many"],
        ),
        (
            "no such plugin",
            Some(config(&base, "[plugins.gone]\npath = \"gone.wasm\"\n")),
            &["gone.wasm", "plugin `gone`"],
        ),
        ("a text file", Some(config(&base, text_file)), &["notes.wasm", "not WebAssembly"]),
        (
            "a token of no form",
            Some(config(&base, &echo()).replace("{ env = \"TEST_TOKEN\" }", "\"hello\"")),
            &["BotFather"],
        ),
        ("a broken file", Some("[bot\n".to_owned()), &["bot.toml:1:"]),
    ];
    for (what, config, wanted) in cases {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("notes.wasm"), "these are notes").expect("writable");
        let (code, text) = run(folder.path(), config.as_deref());
        assert!(matches!(code, Some(1..=3)), "{what}: exit code {code:?}\n{text}");
        for part in wanted {
            assert!(text.contains(part), "{what}: `{part}` is not in\n{text}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_token_ends_the_start() {
    let simulator = simulator().await;
    let refused = r#"{"ok":false,"error_code":401,"description":"Unauthorized"}"#;
    let action = botyard::simulator::Action::Answer {
        status: 401,
        body: refused.to_owned(),
        content_type: "application/json".to_owned(),
        applied: false,
    };
    simulator.add_fault(botyard::simulator::Fault::on("*", action));
    let folder = tempfile::tempdir().expect("a folder");
    let (code, text) = run(folder.path(), Some(&config(&simulator.api_base(), &echo())));
    assert!(code.is_some_and(|code| code != 0), "{text}");
    assert!(text.contains("401") && text.contains("token"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_in_use_or_not_ours_is_left_alone() {
    let simulator = simulator().await;
    let host = echo_host(&simulator, "");
    let folder = tempfile::tempdir().expect("a folder");
    let in_use = format!("[store]\npath = {:?}\n{}", host.store_dir().display().to_string(), echo());
    let (code, text) = run(folder.path(), Some(&config(&simulator.api_base(), &in_use)));
    assert!(code == Some(3) && text.contains("running host"), "{code:?}: {text}");

    let foreign = folder.path().join("pictures");
    std::fs::create_dir(&foreign).expect("writable");
    std::fs::write(foreign.join("cat.png"), "a cat").expect("writable");
    let (code, text) =
        run(folder.path(), Some(&config(&simulator.api_base(), &format!("[store]\npath = \"pictures\"\n{}", echo()))));
    assert_eq!(code, Some(3), "{text}");
    assert_eq!(
        std::fs::read_dir(&foreign).expect("readable").count(),
        1,
        "nothing is written into a folder that is not ours"
    );

    let (code, text) =
        run(folder.path(), Some(&config(&simulator.api_base(), &format!("[store]\npath = \"bot.toml\"\n{}", echo()))));
    assert!(code == Some(3) && text.contains("bot.toml"), "{code:?}: {text}");
}
