//! Real plugin files with bits flipped, pieces missing and sections that lie: what becomes of them. In a process of its
//! own, because compiling so many takes memory that other tests watch.

use std::collections::BTreeMap;
use std::sync::LazyLock;

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
}
