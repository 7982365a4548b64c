//! Real plugin files with bits flipped, pieces missing and sections that lie, and a `bot.toml` with pieces changed: what
//! becomes of them. In a process of its own, because compiling so many takes memory that other tests watch, and what a
//! changed file holds in the token's place is hidden in all texts of the process from then on.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use botyard::config::{Config, Environment, LoadOptions};
use botyard::domain::PluginName;
use botyard::plugin::{Engine, EngineSettings, Grants, HttpClient, Limits, Settings};
use botyard_tests::plugin;
use proptest::prelude::*;

/// One way in which a file can be wrong.
#[derive(Debug, Clone)]
enum Damage {
    Flip(prop::sample::Index, u8),
    Cut(prop::sample::Index),
    Zero(prop::sample::Index, usize),
    Twice(prop::sample::Index, usize),
    /// A section of this kind that says it is so long.
    Section(u8, u32),
}

fn damage() -> impl Strategy<Value = Damage> {
    let place = any::<prop::sample::Index>;
    prop_oneof![
        8 => (place(), 0_u8..8).prop_map(|(at, bit)| Damage::Flip(at, bit)),
        1 => place().prop_map(Damage::Cut),
        1 => (place(), 1_usize..200).prop_map(|(at, length)| Damage::Zero(at, length)),
        1 => (place(), 1_usize..2_000).prop_map(|(at, length)| Damage::Twice(at, length)),
        1 => (0_u8..14, any::<u32>()).prop_map(|(kind, length)| Damage::Section(kind, length)),
    ]
}

fn damaged(mut wasm: Vec<u8>, damages: &[Damage]) -> Vec<u8> {
    for damage in damages {
        if wasm.is_empty() {
            break;
        }
        let length = wasm.len();
        match *damage {
            Damage::Flip(at, bit) => wasm[at.index(length)] ^= 1 << bit,
            Damage::Cut(at) => wasm.truncate(at.index(length)),
            Damage::Zero(at, many) => wasm[at.index(length)..].iter_mut().take(many).for_each(|byte| *byte = 0),
            Damage::Twice(at, many) => {
                let piece: Vec<u8> = wasm[at.index(length)..].iter().take(many).copied().collect();
                wasm.extend(piece);
            }
            Damage::Section(kind, mut said) => {
                wasm.push(kind);
                while said >= 0x80 {
                    wasm.push(said as u8 | 0x80);
                    said >>= 7;
                }
                wasm.push(said as u8);
                wasm.extend([0; 16]);
            }
        }
    }
    wasm
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    /// It loads, or the error says why; nothing in between, and the host goes on.
    #[test]
    fn damaged_files_are_plugins_or_errors(damages in prop::collection::vec(damage(), 1..6), of_module: bool) {
        static ENGINE: LazyLock<Engine> = LazyLock::new(|| {
            let settings = EngineSettings { max_runs: 1, cache_dir: None, http: HttpClient::new([]) };
            Engine::new(settings).expect("an engine")
        });
        static FILES: LazyLock<[Vec<u8>; 2]> = LazyLock::new(|| {
            let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/samples/all-0.1.0.wasm");
            [sample.into(), plugin("counter")].map(|path| std::fs::read(path).expect("it is there"))
        });
        let settings = Settings {
            config: serde_json::json!({}),
            secrets: BTreeMap::new(),
            grants: Grants::default(),
            limits: Limits::default(),
            locales_dir: None,
            default_locale: "en".to_owned(),
        };
        let wasm = damaged(FILES[usize::from(of_module)].clone(), &damages);
        if let Err(error) = ENGINE.load(PluginName::new("damaged"), &wasm, settings) {
            prop_assert!(error.to_string().len() < 100_000);
        }
    }

    /// It can be used, or the errors name their lines; and never with a piece of the token.
    #[test]
    fn changes_to_a_valid_file_make_nothing_panic_and_tell_no_secret(
        changes in prop::collection::vec(
            (any::<prop::sample::Index>(), 0..60_usize, "[\\[\\]{}=\"'#,.\n\u{0}é0-9a-z]{0,4}"), 1..5),
        around_the_token: bool,
    ) {
        const TOKEN: &str = "123456:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw";
        // Every key there is, with a token written into it.
        let bot_toml = include_str!("../../bot.toml");
        let mut text = bot_toml.replace("{ env = \"BOT_TOKEN\" }", &format!("\"{TOKEN}\""));
        prop_assert!(text.contains(TOKEN));
        for (at, gone, new) in &changes {
            let (from, to) = match (around_the_token, text.find("token = ")) {
                (true, Some(token)) => (token, token + 10),
                _ => (0, text.len()),
            };
            let from = text.floor_char_boundary((from + at.index(to - from)).min(text.len()));
            let gone = if around_the_token { gone % 4 } else { *gone };
            let to = text.floor_char_boundary((from + gone).min(text.len()));
            text.replace_range(from..to, new);
        }
        let environment: Environment = [("BOT_TOKEN", TOKEN)].into_iter().collect();
        if let Err(error) = Config::parse(Path::new("/srv/bot.toml"), &text, &environment, LoadOptions::default()) {
            let error = error.to_string();
            prop_assert!(error.lines().all(|line| line.starts_with("/srv/bot.toml:")), "{error}");
            for part in [10..20, 30..TOKEN.len()].map(|part| TOKEN.get(part).expect("letters")) {
                prop_assert!(!error.contains(part), "{error}");
            }
        }
    }
}
