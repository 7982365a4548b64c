//! Plugins as they were built for each version of the interface, which must run for good, and what becomes of damaged ones.

use std::path::PathBuf;

use proptest::prelude::*;

use super::*;
use crate::plugin::component::componentise;

fn folder() -> PathBuf {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/samples").into()
}

/// One that needs all that the interface has.
fn newest() -> Vec<u8> {
    let guest = Guest { handle: &format!("{EFFECTS} (global.get $done)"), state_version: 1, ..Default::default() };
    componentise(&guest.that_imports_everything()).unwrap().into_owned()
}

fn samples() -> Vec<(String, Vec<u8>)> {
    let files = std::fs::read_dir(folder()).unwrap().map(|file| file.unwrap().path());
    let samples = files.filter(|path| path.extension().is_some_and(|ending| ending == "wasm"));
    samples.map(|path| (path.display().to_string(), std::fs::read(&path).unwrap())).collect()
}

#[tokio::test]
async fn what_was_built_for_a_released_interface_still_runs() {
    // The one way to add a sample; see CONTRIBUTING.md.
    if let Ok(name) = std::env::var("BOTYARD_WRITE_SAMPLE") {
        std::fs::write(folder().join(name), newest()).unwrap();
    }
    let samples = samples();
    assert!(!samples.is_empty());
    for (path, wasm) in samples {
        let bench = Bench::new();
        let plugin = bench.engine.load(name(), &wasm, settings()).unwrap_or_else(|error| panic!("{path}: {error}"));
        assert_eq!(bench.run_and_commit(&plugin).await, Ok(Verdict::Done), "{path}");
        let queued = bench.store.scan_prefix(&outbox::lane_prefix(BOT, Lane::Chat(ChatId(7))), 10).unwrap();
        assert_eq!(
            (queued.len(), rows(&bench.store)),
            (1, 5),
            "{path}: a call, a value, a state, and a timer's two rows"
        );
    }
}

#[test]
fn a_module_of_any_compiler_becomes_a_plugin() {
    let bench = Bench::new();
    let plugin = bench.engine.load(name(), &Guest::default().bare_module(), settings()).unwrap();
    assert!(plugin.interfaces.contains(&"botyard:telegram/bot-api@0.1.0".to_owned()), "{:?}", plugin.interfaces);
    assert!(!plugin.interfaces.iter().any(|name| name.contains("types")), "{:?}", plugin.interfaces);
}

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
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    /// It loads, or the error says why; nothing in between, and the host goes on. Whatever loads can be run.
    #[test]
    fn damaged_files_are_plugins_or_errors(damages in prop::collection::vec(damage(), 1..6), of_module: bool) {
        thread_local! {
            static BENCH: Bench = Bench::new();
            static FILES: [Vec<u8>; 2] = [newest(), Guest::default().module()];
        }
        let wasm = FILES.with(|files| damaged(files[usize::from(of_module)].clone(), &damages));
        BENCH.with(|bench| {
            let cpu = Duration::from_millis(50);
            match bench.engine.load(name(), &wasm, limited(Limits { cpu, ..Limits::default() })) {
                Ok(plugin) => {
                    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
                    let report = runtime.block_on(bench.run(&plugin, &invocation()));
                    prop_assert!(!matches!(report.result, Err(RunError::Host(_))), "{:?}", report.result);
                }
                Err(error) => prop_assert!(error.to_string().len() < 100_000),
            }
            Ok(())
        })?;
    }
}
