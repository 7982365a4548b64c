mod bots;

use std::path::Path;

use secrecy::ExposeSecret as _;

use super::*;
use std::time::Duration;

const NO_VARIABLES: [(&str, &str); 0] = [];
const TOKEN: &str = "[bot]\ntoken = { env = \"BOT_TOKEN\" }\n";
const TOKEN_VALUE: &str = "123456:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw";

fn load<'a>(text: &str, variables: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Config, Error> {
    let environment = variables.into_iter().chain([("BOT_TOKEN", TOKEN_VALUE)]).collect();
    Config::parse(Path::new("/srv/bot.toml"), text, &environment, LoadOptions::default())
}

fn good(text: &str) -> Config {
    load(text, NO_VARIABLES).unwrap_or_else(|error| panic!("{error}"))
}

/// The problems, without the folder.
fn problems<'a>(text: &str, variables: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<String> {
    match load(text, variables) {
        Ok(config) => panic!("accepted:\n{}", config.redacted()),
        Err(error) => error.to_string().lines().map(|line| line.replace("/srv/", "")).collect(),
    }
}

#[test]
fn defaults_are_those_of_the_documentation() {
    let config = good(TOKEN);
    assert_eq!(config.bot.token.as_ref().unwrap().expose_secret(), TOKEN_VALUE);
    assert_eq!(config.bot.api_base, "https://api.telegram.org");
    assert_eq!(config.intake, Intake::default());
    assert_eq!(config.intake.poll_timeout, Duration::from_secs(30));
    assert_eq!((config.dispatch.concurrency, config.dispatch.max_attempts), (256, 5));
    assert_eq!(config.send, Send::default());
    assert_eq!(config.store.path, Path::new("/srv/data"));
    assert_eq!(config.i18n, I18n { default_locale: "en".to_owned(), locales: None });
    assert_eq!(config.admin.listen.to_string(), "127.0.0.1:8088");
    assert!(config.plugins.is_empty());
    assert!(config.warnings.iter().any(|warning| warning.message.contains("no plugin")), "{:?}", config.warnings);
}

#[test]
fn every_key_is_read() {
    let config = load(
        r#"
            [bot]
            token = { file = "/dev/null/none" }
            api_base = "http://127.0.0.1:8081/"
            local_server = true
            local_files = "bot-api"
            [intake]
            mode = "polling"
            poll_timeout = "5s"
            allowed_updates = ["message", "callback_query"]
            [dispatch]
            concurrency = 8
            max_attempts = 2
            [send]
            overall_per_second = 0
            chat_per_second = 0.5
            group_per_minute = 10
            bulk_per_second = 5
            cache_ttl = "1h"
            paid_per_second = 300
            [store]
            path = "/var/lib/bot"
            [i18n]
            default_locale = "uz"
            locales = "texts"
            [admin]
            listen = "localhost:0"
            [plugins.my-shop]
            path = "plugins/shop.wasm"
            enabled = true
            priority = -10
            config = { currency = "UZS", nested = { list = [1, 2.5, true, 2026-01-02] } }
            secrets = { pay = { env = "PAY_KEY" } }
            pin = "hash"
            grants = { methods = ["sendMessage", "answer*", "*"], kinds = ["message"], chats = ["private", -1001557912345, "@News"], broadcast = "paid", http = ["https://api.pay.example:8443"] }
            limits = { memory = "64MiB", cpu = "100ms", time = "1m", state = "1KiB", value = "2KiB", stored = "4MiB", timers = 12, queued = "0B", calls = 7, log = "0B",
                upload = "1GiB", download = "0B", http_bytes = "3MiB", http_calls = 4, http_per_minute = 5,
                calls_per_minute = 8, bulk_per_minute = 0, log_per_minute = "9KiB", http_bytes_per_minute = "10MiB",
                effects = 50, data = "1MiB" }
        "#,
        [("PAY_KEY", "hunter22\n"), ("BOTYARD__BOT__TOKEN", "{ env = \"BOT_TOKEN\" }")],
    )
    .unwrap();
    assert_eq!(config.bot.api_base, "http://127.0.0.1:8081");
    assert_eq!((config.bot.local_server, config.bot.local_files.as_deref()), (true, Some(Path::new("/srv/bot-api"))));
    assert_eq!(config.intake.allowed_updates, AllowedUpdates::Only(vec!["message".into(), "callback_query".into()]));
    assert_eq!(config.intake.poll_timeout, Duration::from_secs(5));
    assert_eq!(config.dispatch, Dispatch { concurrency: 8, max_attempts: 2, ..Dispatch::default() });
    let send = Send {
        overall_per_second: 0.0,
        chat_per_second: 0.5,
        group_per_minute: 10.0,
        bulk_per_second: 5.0,
        cache_ttl: Duration::from_secs(3600),
        paid_per_second: 300.0,
    };
    assert_eq!(config.send, send);
    assert_eq!(config.store.path, Path::new("/var/lib/bot"));
    assert_eq!(config.i18n.locales.as_deref(), Some(Path::new("/srv/texts")));
    assert_eq!(config.admin.listen.to_string(), "127.0.0.1:0");
    let shop = &config.plugins[&PluginName::new("my-shop")];
    assert_eq!((shop.path.as_path(), shop.priority), (Path::new("/srv/plugins/shop.wasm"), -10));
    let nested = serde_json::json!({ "list": [1, 2.5, true, "2026-01-02"] });
    assert_eq!(shop.config, serde_json::json!({ "currency": "UZS", "nested": nested }));
    assert_eq!(shop.secrets["pay"].expose_secret(), "hunter22");
    assert_eq!(shop.grants.methods.as_deref().unwrap().join(" "), "sendMessage answer* *");
    assert_eq!(shop.grants.kinds.as_deref().unwrap(), ["message"]);
    let chats: Vec<_> = shop.grants.chats.as_ref().unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(chats, ["\"private\"", "-1001557912345", "\"@news\""]);
    assert_eq!((shop.pin, shop.grants.broadcast), (Pin::Hash, Broadcasting::Paid));
    assert_eq!(shop.grants.http, ["https://api.pay.example:8443".parse().unwrap()]);
    assert_eq!(
        shop.limits,
        Limits {
            memory: 64 << 20,
            cpu: Duration::from_millis(100),
            time: Duration::from_secs(60),
            state: 1024,
            value: 2048,
            stored: 4 << 20,
            timers: 12,
            queued: 0,
            calls: 7,
            calls_per_minute: 8,
            bulk_per_minute: 0,
            log: 0,
            log_per_minute: 9 << 10,
            upload: 1 << 30,
            download: 0,
            http_bytes: 3 << 20,
            http_calls: 4,
            http_per_minute: 5,
            http_bytes_per_minute: 10 << 20,
            effects: 50,
            data: 1 << 20,
        }
    );
    assert_eq!(config.warnings, []);
}

#[test]
fn all_problems_are_told_at_once_each_with_its_place() {
    let text = r#"[bot]
tokn = "x"
[intake]
poll_timeout = 30
  mode = "hook"
[plugin.echo]
path = "echo.wasm"
[plugins.Echo]
pth = "echo.wasm"
limits = { memry = "1MiB", cpu = "1s" }
"#;
    let expected = [
        "bot.toml:1:2: `token` is missing in [bot]: add `token = { env = \"BOT_TOKEN\" }` with a token from @BotFather, \
         or try the bot without one: botyard run --simulator",
        "bot.toml:2:1: unknown key `tokn` in [bot]; did you mean `token`?",
        "bot.toml:4:16: `poll_timeout` in [intake]: expected a duration such as \"500ms\", \"30s\" or \"2h\", \
         found the number 30",
        "bot.toml:5:10: `mode` in [intake]: expected \"polling\" or \"webhook\", found the text \"hook\"",
        "bot.toml:6:2: unknown key `plugin` at the top level; did you mean `plugins`?",
        "bot.toml:8:10: `path` is missing in [plugins.Echo]: add `path = \"plugins/NAME.wasm\"`, the file that \
         `botyard build` makes",
        "bot.toml:8:10: plugin name \"Echo\": use 1 to 64 of a-z, 0-9, `_` and `-`",
        "bot.toml:9:1: unknown key `pth` in [plugins.Echo]; did you mean `path`?",
        "bot.toml:10:12: unknown key `memry` in [plugins.Echo.limits]; did you mean `memory`?",
    ];
    assert_eq!(problems(text, NO_VARIABLES), expected);
}

#[test]
fn each_wrong_value_says_what_was_expected() {
    let cases = [
        ("[dispatch]\nconcurrency = 0", "`concurrency` in [dispatch]: 0 is out of range: it must be from 1 to 10000"),
        ("[dispatch]\nconcurrency = \"256\"", "expected a whole number, found the text \"256\""),
        ("[dispatch]\nmax_attempts = 1.5", "expected a whole number, found the number 1.5"),
        ("[dispatch]\nmax_attempts = 99999999999999999999", "the number 99999999999999999999 is too large"),
        ("[send]\nchat_per_second = -1", "-1 is out of range: it must be from 0 to 1000000"),
        ("[send]\nchat_per_second = nan", "NaN is out of range"),
        ("[send]\nchat_per_second = inf", "inf is out of range"),
        ("[intake]\npoll_timeout = \"51s\"", "51s is out of range: it must be from 0s to 50s"),
        ("[intake]\npoll_timeout = \"1500ms\"", "whole seconds only"),
        ("[intake]\npoll_timeout = \"30 seconds\"", "expected a duration such as"),
        ("[intake]\npoll_timeout = \"99999999999999999999h\"", "expected a duration such as"),
        ("bot.local_server = true", "name yours there"),
        ("bot.local_files = \"/srv\"", "only a server with `local_server = true`"),
        ("[intake]\nmode = \"pull\"", "expected \"polling\" or \"webhook\", found the text \"pull\""),
        ("[intake]\nallowed_updates = \"all\"", "expected \"auto\" or a list"),
        ("[intake]\nallowed_updates = [1]", "expected a text in quotes, found the number 1"),
        ("[store]\npath = \"\"", "`path` in [store]: the text is empty"),
        ("[store]\nurl = { env = \"X\" }", "not supported yet"),
        ("[i18n]\ndefault_locale = \"english please\"", "expected a language tag"),
        ("[admin]\nlisten = 8088", "expected a text in quotes, found the number 8088"),
        ("[admin]\nlisten = \"8088\"", "expected an IP address and a port"),
        ("store = 5", "expected a table [store], found a number"),
        ("[webhook]\nurl = \"x\"", "unknown key `webhook` at the top level; known here: bot, intake"),
        ("[plugins.a]\npath = \"a\"\nenabled = \"yes\"", "expected true or false, found the text \"yes\""),
        ("[plugins.a]\npath = \"a\"\npriority = \"high\"", "expected a whole number"),
        ("[plugins.a]\npath = \"a\"\nconfig = 5", "expected a table such as"),
        ("[plugins.a]\npath = \"a\"\nconfig = { a = [inf] }", "a plugin can't be given the number inf"),
        ("[plugins.a]\npath = \"a\"\nlimits.memory = \"32MB\"", "expected a size such as"),
        (
            "[plugins.a]\npath = \"a\"\nlimits.memory = \"1KiB\"",
            "1KiB is out of range: it must be from 128KiB to 256MiB",
        ),
        ("[plugins.a]\npath = \"a\"\ngrants.methods = [\"getupdates\"]", "the host's alone"),
        ("[plugins.a]\npath = \"a\"\ngrants.methods = [\"send Message\"]", "is no method"),
        ("[plugins.a]\npath = \"a\"\ngrants.broadcast = \"free\"", "expected true, false or \"paid\""),
        ("[plugins.a]\npath = \"a\"\ngrants.chats = [\"privat\"]", "\"privat\" is no chat; expected private"),
        ("[plugins.a]\npath = \"a\"\ngrants.chats = [0]", "0 is no chat"),
        ("[plugins.a]\npath = \"a\"\ngrants.chats = 7", "expected a list such as"),
        ("[plugins.a]\npath = \"a\"\npin = \"sha\"", "expected \"rights\" or \"hash\""),
        ("[plugins.a]\npath = \"a\"\ngrants.http = [\"https://a.example/path\"]", "is no origin"),
        ("[plugins.a]\npath = \"a\"\nsecrets = { k = { env = \"NOT_SET\" } }", "NOT_SET is not set"),
        ("[plugins.a]\npath = \"a\"\nsecrets = { k = { env = \"X\", file = \"y\" } }", "needs either `env` or `file`"),
        ("[plugins.a]\npath = \"a\"\nsecrets = { k = {} }", "needs either `env` or `file`"),
        ("[plugins.a]\npath = \"a\"\nsecrets = { k = { evn = \"X\" } }", "did you mean `env`?"),
        (
            "[plugins.a]\npath = \"a\"\nsecrets = { k = { file = \"none\" } }",
            "could not read the secret from /srv/none",
        ),
        ("[plugins.\"a b\"]\npath = \"a\"", "plugin name \"a b\""),
        ("plugins = []", "expected a table [plugins], found a list"),
    ];
    for (text, expected) in cases {
        let text = format!("bot.token = {{ env = \"BOT_TOKEN\" }}\n{text}");
        let found = problems(&text, NO_VARIABLES);
        let expected = expected.replace("/srv/", "");
        assert_eq!(found.len(), 1, "{text}: {found:#?}");
        assert!(found[0].contains(&expected), "{text}: {found:#?}");
    }
}

#[test]
fn api_base_is_checked_and_not_repeated() {
    for bad in
        ["api.telegram.org", "ftp://x", "https://", "http://:80", "https://a b", "https://u:p@host", "https://h/?q"]
    {
        let found = problems(&format!("{TOKEN}api_base = {bad:?}"), NO_VARIABLES);
        assert!(found.len() == 1 && found[0].contains("expected an address"), "{bad}: {found:?}");
    }
    let found = problems(&format!("{TOKEN}api_base = \"https://api.telegram.org/bot1:secret\""), NO_VARIABLES);
    assert!(found.len() == 1 && found[0].contains("leave out `/bot`") && !found[0].contains("secret"), "{found:?}");
}

#[test]
fn syntax_errors_have_a_place() {
    let cases = [
        ("[bot]\ntoken = \"abc", "bot.toml:2:"),
        ("[bot]\nключ = \"a\" b = 1", "bot.toml:2:"),
        ("[bot]\n[bot]\n", "bot.toml:2:"),
        ("a = 1\na = 2\n", "bot.toml:2:1: not valid TOML: duplicate key"),
        ("\0", "bot.toml:1:1"),
        ("\u{feff}[bot\n", "bot.toml:1:"),
    ];
    for (text, expected) in cases {
        let found = problems(text, NO_VARIABLES);
        assert!(found[0].starts_with(expected) && found[0].contains("not valid TOML"), "{text:?}: {found:#?}");
    }
}

#[test]
fn columns_count_characters() {
    let found = problems(&format!("{TOKEN}\"ключ\" = 1\n"), NO_VARIABLES);
    assert!(found[0].starts_with("bot.toml:3:1: unknown key `ключ`"), "{found:?}");
    let found = problems("bot = { \"ключ\" = 1, token = \"x\" }\n", NO_VARIABLES);
    assert!(found[0].starts_with("bot.toml:1:9: unknown key"), "{found:?}");
    let found = problems("bot = { token = \"ключ\", tokens = 1 }\n", NO_VARIABLES);
    assert!(found[0].starts_with("bot.toml:1:25: unknown key"), "{found:?}");
}

#[test]
fn an_empty_file_is_told_what_is_missing() {
    for text in ["", "\n\n", "# nothing\n"] {
        let message = load(text, NO_VARIABLES).unwrap_err().to_string();
        assert!(message.contains("the file is empty") && message.contains(SMALLEST), "{message}");
    }
    let variables = [("BOTYARD__BOT__TOKEN__ENV", "BOT_TOKEN"), ("BOTYARD__PLUGINS__ECHO__PATH", "echo.wasm")];
    let config = load("", variables).unwrap();
    assert_eq!(config.plugins[&PluginName::new("echo")].path, Path::new("/srv/echo.wasm"));
    assert!(config.bot.token.is_some());
    good(SMALLEST);
}

#[test]
fn a_file_that_cannot_be_read_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let load = |path: &Path| Config::load(path, LoadOptions::default()).unwrap_err().to_string();
    let missing = load(&folder.path().join("bot.toml"));
    assert!(missing.contains("there is no such file") && missing.contains(SMALLEST), "{missing}");
    assert!(load(folder.path()).contains("this is a directory; name the file in it"));
    let file = folder.path().join("latin1.toml");
    std::fs::write(&file, b"[bot]\n# caf\xe9\n").unwrap();
    assert!(load(&file).contains("line 2 is not UTF-8 text"), "{}", load(&file));
    assert!(load(&file.join("below")).contains("could not read the file"));
}

#[test]
fn the_environment_overrides() {
    let text = format!("{TOKEN}[plugins.my-echo]\npath = \"echo.wasm\"\nconfig = {{ slow_ms = 5, Mixed-Case = 1 }}\n");
    let config = load(
        &text,
        [
            ("BOTYARD__BOT__API_BASE", "http://127.0.0.1:9"),
            ("BOTYARD__DISPATCH__CONCURRENCY", "3"),
            ("BOTYARD__STORE__PATH", "2026"),
            ("BOTYARD__PLUGINS__MY_ECHO__CONFIG__SLOW_MS", "200"),
            ("BOTYARD__PLUGINS__MY_ECHO__CONFIG__MIXED_CASE", "two words"),
            ("BOTYARD__PLUGINS__MY_ECHO__CONFIG__NEW__DEEP", "[1, 2]"),
            ("BOTYARD__PLUGINS__OTHER", "{ path = 'other.wasm', priority = 1 }"),
            ("BOTYARD__PLUGINS__OTHER__PRIORITY", "2"),
            ("BOTYARD__PLUGINS__OTHER__SECRETS__PIN", "123456789"),
            ("BOTYARD_LOG", "debug"),
        ],
    )
    .unwrap();
    assert_eq!(config.bot.api_base, "http://127.0.0.1:9");
    assert_eq!(config.dispatch.concurrency, 3);
    assert_eq!(config.store.path, Path::new("/srv/2026"));
    let expected = serde_json::json!({ "slow_ms": 200, "Mixed-Case": "two words", "new": { "deep": [1, 2] } });
    assert_eq!(config.plugins[&PluginName::new("my-echo")].config, expected);
    let other = &config.plugins[&PluginName::new("other")];
    assert_eq!((other.priority, other.path.as_path()), (2, Path::new("/srv/other.wasm")));
    assert_eq!(other.secrets["pin"].expose_secret(), "123456789");
    assert_eq!(config.warnings, []);
}

#[test]
fn a_wrong_override_names_its_variable() {
    let found = problems(
        TOKEN,
        [
            ("BOTYARD__", "1"),
            ("BOTYARD__BOT____X", "1"),
            ("BOTYARD__BOT__TOKN", "123456:secret-secret-secret-secret"),
            ("BOTYARD__DISPATCH__CONCURRENCY", "many"),
            ("BOTYARD__SEND", "fast"),
        ],
    );
    let expected = [
        "BOTYARD__: the name has an empty part; it should be like BOTYARD__SECTION__KEY",
        "BOTYARD__BOT__TOKN: unknown key `tokn` in [bot]; did you mean `token`?",
        "BOTYARD__BOT____X: the name has an empty part; it should be like BOTYARD__SECTION__KEY",
        "BOTYARD__DISPATCH__CONCURRENCY: `concurrency` in [dispatch]: expected a whole number, found the text \"many\"",
        "BOTYARD__SEND: expected a table [send], found a text",
    ];
    assert_eq!(found, expected);
}

#[test]
fn the_simulator_needs_no_token() {
    let options = LoadOptions { token_optional: true };
    let parse = |text: &str| Config::parse(Path::new("bot.toml"), text, &Environment::default(), options);
    for text in ["[admin]\n", TOKEN, "[bot]\ntoken = { file = \"/nonexistent\" }\n"] {
        assert!(parse(text).unwrap().bot.token.is_none(), "{text}");
    }
    assert!(parse("[bot]\ntoken = 5\n").unwrap_err().to_string().contains("found a number"));
    for text in ["[admin]\n", TOKEN, "[bot]\ntoken = { file = \"/nonexistent\" }\n"] {
        let path = Path::new("bot.toml");
        let error = Config::parse(path, text, &Environment::default(), LoadOptions::default()).unwrap_err();
        assert!(error.to_string().contains("`token`"), "{text}: {error}");
    }
}

#[test]
fn a_disabled_plugin_needs_no_secrets() {
    let text =
        format!("{TOKEN}[plugins.a]\npath = \"a\"\nenabled = false\nsecrets = {{ k = {{ env = \"NOT_SET\" }} }}\n");
    let config = good(&text);
    assert_eq!(config.enabled().count(), 0);
}

#[test]
fn secrets_are_shown_nowhere() {
    let text =
        "[bot]\ntoken = \"an-odd-token-of-no-form\"\n[plugins.a]\npath = \"a\"\nsecrets = { k = \"pass-phrase\" }\n";
    let config = good(text);
    let warnings: Vec<String> = config.warnings.iter().map(|warning| warning.line(Path::new("bot.toml"))).collect();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[0].starts_with("bot.toml:2:9: `token` in [bot] is written into the file"), "{warnings:?}");
    for shown in [format!("{config:?}"), config.redacted(), warnings.join("\n")] {
        assert!(!shown.contains("an-odd-token") && !shown.contains("pass-phrase"), "{shown}");
    }
    let log = redaction::redact(
        "GET /botan-odd-token-of-no-form/getMe and pass-phrase and 987654321:AAHdqTcvCH1vGWJxfSeofSAs0K5",
    );
    assert_eq!(log, "GET /bot[hidden]/getMe and [hidden] and [hidden]");
    assert_eq!(redaction::redact("at 12:30:45, 100000:short"), "at 12:30:45, 100000:short");
}

#[test]
fn what_is_printed_can_be_read_again() {
    let text = r#"
        bot.token = "some-token-text"
        [plugins.a]
        path = "a.wasm"
        config = { text = "a \"quoted\" line\nand 😀", "odd key" = [1.5, true, {}] }
        grants.methods = ["answer*"]
        limits.cpu = "90s"
    "#;
    let text = text.replace("\"90s\"", "\"60s\"");
    let first = good(&text);
    let again = good(&first.redacted());
    let changes = Config::live_changes(&first, &again);
    assert_eq!(changes, Changes { bot: true, ..Changes::default() }, "{}", first.redacted());
}

#[test]
fn changes_are_told_apart() {
    let plugin = |name: &str, rest: &str| format!("[plugins.{name}]\npath = \"{name}.wasm\"\n{rest}\n");
    let base =
        [TOKEN, &plugin("same", ""), &plugin("b", ""), &plugin("gone", ""), &plugin("off", "enabled = true")].concat();
    let old = good(&base);
    assert!(Config::live_changes(&old, &good(&base)).is_empty());

    let new = [
        TOKEN,
        "api_base = \"http://127.0.0.1:1\"\n[send]\nchat_per_second = 2\n[i18n]\nlocales = \"l\"\n[dispatch]\nmax_attempts = 9\nacknowledge_callbacks = \"0s\"\n",
        "[admin]\nlisten = \"127.0.0.1:1\"\n[store]\npath = \"d\"\n",
        &plugin("same", ""),
        &plugin("b", "config = { x = 1 }"),
        &plugin("off", "enabled = false"),
        &plugin("new", ""),
    ];
    let changes = Config::live_changes(&old, &good(&new.concat()));
    let names = |names: &[&str]| -> Vec<PluginName> { names.iter().map(|name| PluginName::new(name)).collect() };
    let expected = Changes {
        added: names(&["new"]),
        removed: names(&["gone", "off"]),
        changed: names(&["b"]),
        send: true,
        acknowledge: true,
        i18n: true,
        bot: true,
        intake: false,
        needs_restart: vec!["dispatch.max_attempts", "store.path", "admin.listen"],
    };
    assert_eq!(changes, expected);
}

#[test]
fn each_difference_of_a_plugin_is_a_change() {
    let with = |rest: &str, key: &'static str| {
        let text = format!("{TOKEN}[plugins.a]\n{rest}\n");
        load(&text, [("K", key)]).unwrap_or_else(|error| panic!("{error}"))
    };
    let base = "path = \"a\"\nsecrets = { k = { env = \"K\" } }";
    let old = with(base, "one");
    let others = [
        with(base, "two"),
        with("path = \"b\"\nsecrets = { k = { env = \"K\" } }", "one"),
        with("path = \"a\"", "one"),
        with(&format!("{base}\npriority = 1"), "one"),
        with(&format!("{base}\nconfig = {{ a = 1 }}"), "one"),
        with(&format!("{base}\ngrants.methods = []"), "one"),
        with(&format!("{base}\nlimits.calls = 1"), "one"),
    ];
    for new in others {
        assert_eq!(Config::live_changes(&old, &new).changed, [PluginName::new("a")], "{}", new.redacted());
    }
}

proptest::proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in "[\\[\\]a-z.={}\"#\n 0-9é-]{0,80}") {
        if let Err(error) = load(&text, NO_VARIABLES) {
            proptest::prop_assert!(error.to_string().starts_with("/srv/bot.toml:"), "{error}");
        }
    }

    #[test]
    fn durations_and_sizes_survive_printing(number in 0u64..u64::from(u32::MAX)) {
        let range = Duration::ZERO..=Duration::MAX;
        let node = |text: String| tree::Node { origin: Origin::Whole, raw: None, value: tree::Value::Text(text) };
        let duration = Duration::from_millis(number);
        proptest::prop_assert_eq!(units::duration(&node(show_duration(duration)), range), Ok(duration));
        proptest::prop_assert_eq!(units::bytes(&node(show_bytes(number)), 0..=u64::MAX), Ok(number));
    }
}

const WEBHOOK: &str = "[intake]\nmode = \"webhook\"\n[intake.webhook]\n";

#[test]
fn a_webhook_is_read_with_all_its_keys() {
    let least = good(&format!("{TOKEN}{WEBHOOK}url = \"https://bot.example\""));
    let webhook = least.intake.webhook.unwrap();
    assert_eq!((least.intake.mode, webhook.url.as_str()), (Mode::Webhook, "https://bot.example/"));
    assert_eq!((webhook.listen.to_string().as_str(), webhook.max_connections), ("127.0.0.1:8443", 40));
    assert!(webhook.secret.is_none() && webhook.tls.is_none() && webhook.ip_address.is_none());

    let all = load(
        &format!(
            "{TOKEN}{WEBHOOK}url = \"https://bot.example:8443/hook?a=b\"\nlisten = \"[::]:8443\"\n\
             secret = {{ env = \"HOOK_SECRET\" }}\nmax_connections = 100\nip_address = \"203.0.113.7\"\n\
             certificate = \"chain.pem\"\nkey = \"/etc/key.pem\"\nself_signed = true"
        ),
        [("HOOK_SECRET", "a-secret-of-ours")],
    )
    .unwrap();
    let webhook = all.intake.webhook.as_ref().unwrap();
    assert_eq!(webhook.secret.as_ref().unwrap().expose_secret(), "a-secret-of-ours");
    let tls = Tls { certificate: "/srv/chain.pem".into(), key: "/etc/key.pem".into(), self_signed: true };
    assert_eq!(webhook.tls, Some(tls));
    let shown = all.redacted();
    assert!(shown.contains("https://bot.example:8443/hook?a=b") && !shown.contains("a-secret"), "{shown}");
}

#[test]
fn a_webhook_that_telegram_would_not_call_is_refused() {
    for (rest, wanted) in [
        ("", "`url` is missing in [intake.webhook]"),
        ("url = \"http://bot.example\"", "Telegram calls `https` only"),
        ("url = \"https://bot.example:8080\"", "ports 443, 80, 88 and 8443 only, not 8080"),
        ("url = \"https://me:pw@bot.example\"", "without user"),
        ("url = \"bot.example/hook\"", "expected an address"),
        ("url = \"https://bot.example\"\nsecret = { env = \"HOOK_SECRET\" }", "1 to 256 of A-Z"),
        ("url = \"https://bot.example\"\nmax_connections = 101", "from 1 to 100"),
        ("url = \"https://bot.example\"\nself_signed = true", "needs both `certificate` and `key`"),
        ("url = \"https://bot.example\"\ncertificate = \"a.pem\"", "needs both `certificate` and `key`"),
        ("url = \"https://bot.example\"\nip_address = \"bot\"", "expected an IP address"),
        ("url = \"https://bot.example\"\nlissen = 5", "did you mean `listen`?"),
    ] {
        let found = problems(&format!("{TOKEN}{WEBHOOK}{rest}"), [("HOOK_SECRET", "with space")]);
        assert!(found.iter().any(|problem| problem.contains(wanted)), "{rest}: {found:?}");
        assert!(!found.iter().any(|problem| problem.contains("with space") || problem.contains("pw")), "{found:?}");
    }
    // A Bot API server of one's own is less particular.
    let own = "[bot]\ntoken = { env = \"BOT_TOKEN\" }\napi_base = \"http://127.0.0.1:8081\"\n";
    let config = good(&format!("{own}{WEBHOOK}url = \"http://10.0.0.7:9000/x\"\nmax_connections = 5000"));
    assert_eq!(config.intake.webhook.unwrap().max_connections, 5000);
}

#[test]
fn files_with_secrets_are_part_of_the_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token.txt");
    std::fs::write(&file, TOKEN_VALUE).unwrap();
    let config = good(&format!("[bot]\ntoken = {{ file = {:?} }}", file.display().to_string()));
    assert_eq!(config.files, [file]);
}

#[test]
fn every_limit_is_shown_and_stands_in_the_table_of_the_documentation() {
    let limits = Limits { memory: 1 << 30, state: 3 << 10, value: 1_500, log: 0, ..Limits::default() };
    let shown = limits.shown();
    for (key, value) in [
        ("memory", "1GiB"),
        ("state", "3KiB"),
        ("value", "1500B"),
        ("log", "0B"),
        ("cpu", "200ms"),
        ("time", "30s"),
        ("calls_per_minute", "60000"),
        ("http_bytes_per_minute", "64MiB"),
    ] {
        assert_eq!(shown[key], value, "{key}");
    }
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/operating.md");
    let docs = std::fs::read_to_string(docs).unwrap();
    let in_table = |key: &str| docs.contains(&format!("| `{key}` | {} |", Limits::default().shown()[key]));
    let missing: Vec<_> = shown.keys().filter(|key| !in_table(key)).collect();
    assert!(missing.is_empty(), "not in docs/operating.md with their defaults: {missing:?}");
}

#[test]
fn bytes_that_are_no_text_are_an_error_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bot.toml");
    for bytes in [&b"\xff\xfe[bot]\n"[..], b"[bot]\ntoken = \"\xc3\x28\"\n", b"\0", &[0x80; 4096]] {
        std::fs::write(&path, bytes).unwrap();
        let error = Config::load(&path, LoadOptions::default()).unwrap_err().to_string();
        assert!(error.contains("bot.toml"), "{error}");
    }
}
