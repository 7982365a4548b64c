mod guide;

use std::io::Write as _;
use std::path::Path;

use clap::CommandFactory as _;

use super::check::Report;
use super::inspect::Inspector;
use super::logging::Redacting;
use super::*;
use crate::store::Store as Database;

fn parse(line: &str) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(line.split_whitespace())
}

#[test]
fn the_arguments_are_consistent_and_fit_a_terminal() {
    let mut command = Cli::command();
    command.clone().debug_assert();
    command.build();
    let mut helps = vec![command.render_long_help()];
    helps.extend(command.get_subcommands_mut().map(clap::Command::render_long_help));
    for help in helps {
        let help = help.to_string();
        let longest = help.lines().max_by_key(|line| line.chars().count()).unwrap();
        assert!(longest.chars().count() <= 120, "{longest}");
    }
}

#[test]
fn the_simulator_has_an_address_of_its_own() {
    let simulator = |line: &str| match parse(line).unwrap().command {
        Command::Run(run) => run.simulator.map(|address| address.to_string()),
        other => panic!("{other:?}"),
    };
    assert_eq!(simulator("botyard run"), None);
    assert_eq!(simulator("botyard run --simulator").as_deref(), Some("127.0.0.1:8090"));
    assert_eq!(simulator("botyard run --simulator --log debug").as_deref(), Some("127.0.0.1:8090"));
    assert_eq!(simulator("botyard --log warn run -c x --simulator 127.0.0.1:0").as_deref(), Some("127.0.0.1:0"));
    assert_eq!(parse("botyard run --simulator here").unwrap_err().exit_code(), Exit::Usage as i32);
}

/// A report on `text` as the configuration, in a folder of its own that `prepare` fills.
fn check(text: &str, prepare: impl FnOnce(&Path)) -> (Report, String) {
    let folder = tempfile::tempdir().unwrap();
    prepare(folder.path());
    let file = folder.path().join("bot.toml");
    std::fs::write(&file, text).unwrap();
    let examined = Config::examine(&file, LoadOptions::default()).unwrap();
    let report = Report::of(&examined, &mut Inspector::default());
    let table = report.table().replace(&format!("{}/", folder.path().display()), "");
    (report, table)
}

#[test]
fn a_check_tells_everything_at_once() {
    let text = "[bot]\ntoken = \"no token\"\n[plugins.a]\npath = \"none.wasm\"\n[plugins.b]\npath = \"bot.toml\"\n\
                [plugins.c]\npath = \"c\"\nenabled = false\n[store]\npath = \"bot.toml\"\nport = 1\n";
    let (report, table) = check(text, |_| {});
    assert_eq!(report.exit(), Exit::Usage);
    for expected in [
        "WRONG  configuration  bot.toml: 1 problem\n",
        "WRONG  token          the bot's token has a wrong form",
        "WRONG  store          bot.toml: is a file, not a folder\n",
        "WRONG  plugin a       none.wasm: there is no such file; `botyard build` makes it",
        "WRONG  plugin b       bot.toml: the plugin file is not WebAssembly",
        "off    plugin c       c: disabled, not looked at\n",
        "problems:\n  bot.toml:12:1: unknown key `port` in [store]",
        "warnings:\n  bot.toml:2:9: `token` in [bot] is written into the file",
    ] {
        assert!(table.contains(expected), "{expected}\n{table}");
    }
    assert!(!table.contains("no token"), "{table}");
}

#[test]
fn a_check_tells_the_configuration_from_what_it_names() {
    let good = "[bot]\ntoken = \"123456:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw\"\n";
    let (report, table) = check(good, |_| {});
    assert_eq!(report.exit(), Exit::Done, "{table}");
    assert!(report.ok && table.contains("data: will be made"), "{table}");

    let (report, table) = check(&format!("{good}[plugins.a]\npath = \"none\"\n"), |_| {});
    assert_eq!(report.exit(), Exit::Failed, "{table}");

    let (report, table) = check(good, |folder| {
        std::fs::create_dir(folder.join("data")).unwrap();
        std::fs::write(folder.join("data/letter.txt"), "not a store").unwrap();
    });
    assert_eq!(report.exit(), Exit::Failed, "{table}");
    assert!(table.contains("WRONG  store"), "{table}");
}

#[test]
fn a_store_that_a_host_has_open_is_no_mistake() {
    let good = "[bot]\ntoken = \"123456:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw\"\n";
    let mut open = None;
    let (report, table) = check(good, |folder| open = Some(Database::open(&folder.join("data")).unwrap()));
    assert_eq!(report.exit(), Exit::Done, "{table}");
    assert!(table.contains("in use by a running host"), "{table}");
}

#[test]
fn each_kind_of_failure_has_its_code() {
    let config = Config::load(Path::new("/nonexistent/bot.toml"), LoadOptions::default()).unwrap_err();
    assert_eq!(Exit::of(&anyhow::Error::from(config).context("somewhere")), Exit::Usage);
    let file = tempfile::NamedTempFile::new().unwrap();
    let store = Database::open(file.path()).err().expect("a file is no store");
    assert_eq!(Exit::of(&anyhow::Error::from(store).context("somewhere")), Exit::Store);
    assert_eq!(Exit::of(&anyhow::anyhow!("something")), Exit::Failed);
    assert_eq!(Exit::of(&exit::WrongArgument("x".to_owned()).into()), Exit::Usage);
}

#[test]
fn causes_are_told_once() {
    let cause = std::io::Error::other("the disk is full");
    let telling = anyhow::Error::new(cause).context("could not write: the disk is full").context("export");
    assert_eq!(exit::explain(&telling), "export: could not write: the disk is full");
}

#[test]
fn what_is_logged_holds_no_token() {
    let mut line = Vec::new();
    let text = "{\"url\":\"https://x/bot123456:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw/getMe\"}\n";
    Redacting(&mut line).write_all(text.as_bytes()).unwrap();
    assert_eq!(String::from_utf8(line).unwrap(), "{\"url\":\"https://x/bot[hidden]/getMe\"}\n");
}

#[test]
fn a_saved_store_can_be_restored_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    drop(Database::open(&path("old")).unwrap());
    let run = |line: String| match parse(&line).unwrap().command {
        Command::Store(store) => store.run(),
        other => panic!("{other:?}"),
    };
    let at = |name: &str| path(name).display().to_string();
    let done = |result: anyhow::Result<Exit>| result.unwrap_or_else(|error| panic!("{error:#}"));
    assert_eq!(done(run(format!("botyard store --path {} export {}", at("old"), at("saved")))), Exit::Done);
    assert_eq!(done(run(format!("botyard store import {} --path {}", at("saved"), at("new")))), Exit::Done);
    assert_eq!(done(run(format!("botyard store check --path {}", at("new")))), Exit::Done);

    let again = run(format!("botyard store import {} --path {}", at("saved"), at("new"))).unwrap_err();
    assert_eq!(Exit::of(&again), Exit::Store, "{again:#}");
    let missing = run(format!("botyard store check --path {}", at("none"))).unwrap_err();
    assert_eq!(Exit::of(&missing), Exit::Usage, "{missing:#}");
    assert!(!path("none").exists(), "looking for a store makes none");
}

mod build {
    use crate::cli::build::{Package, profile, replace};
    use crate::cli::exit::Exit;

    #[test]
    fn only_a_plugins_crate_is_built() {
        let folder = tempfile::tempdir().unwrap();
        let find = || Package::find(folder.path()).map(|package| package.name).map_err(|error| error.to_string());
        let write = |manifest: &str| std::fs::write(folder.path().join("Cargo.toml"), manifest).unwrap();
        assert_eq!(Exit::of(&Package::find(folder.path()).err().unwrap()), Exit::Usage);
        assert!(find().unwrap_err().contains("there is no"), "{:?}", find());
        std::fs::create_dir(folder.path().join("src")).unwrap();
        std::fs::write(folder.path().join("src/lib.rs"), "").unwrap();
        write("[package]\nname = \"a-plugin\"\n[workspace]\n");
        assert!(find().unwrap_err().contains("crate-type = [\"cdylib\"]"), "{:?}", find());
        write("[package]\nname = \"a-plugin\"\n[lib]\ncrate-type = [\"cdylib\"]\n[workspace]\n");
        assert_eq!(find().unwrap(), "a-plugin");
    }

    #[test]
    fn the_workspaces_own_profile_is_used_where_there_is_one() {
        let folder = tempfile::tempdir().unwrap();
        let manifest = folder.path().join("Cargo.toml");
        assert_eq!(profile(&manifest), ("release", false));
        for (text, expected) in [
            ("[profile.dev]\nopt-level = 1\n", ("release", false)),
            ("[profile.plugin]\ninherits = \"release\"\n", ("plugin", false)),
            ("[profile.plugin]\nstrip = \"debuginfo\"\n", ("plugin", true)),
            ("[profile.release]\nstrip = true\n", ("release", true)),
            ("[profile.release]\nstrip = \"none\"\n", ("release", false)),
            ("[profile.release]\nstrip = false\n", ("release", false)),
            ("[profile.release]\nstrip = \"debuginfo\"\n[profile.plugin]\ndebug = true", ("plugin", false)),
        ] {
            std::fs::write(&manifest, text).unwrap();
            assert_eq!(profile(&manifest), expected, "{text}");
        }
    }

    #[test]
    fn a_file_is_replaced_whole_and_nothing_is_left_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let (built, out) = (folder.path().join("built"), folder.path().join("new folder/echo.wasm"));
        for content in ["one", "two"] {
            std::fs::write(&built, content).unwrap();
            replace(&built, &out).unwrap();
            assert_eq!(std::fs::read_to_string(&out).unwrap(), content);
        }
        replace(&folder.path().join("none"), &out).unwrap_err();
        assert_eq!(std::fs::read_dir(out.parent().unwrap()).unwrap().count(), 1);
    }
}
