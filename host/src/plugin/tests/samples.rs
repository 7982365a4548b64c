//! Plugins as they were built for each version of the interface, which must run for good.

use std::path::PathBuf;

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
            (1, 7),
            "{path}: a call, a value, a state and its end, and a timer's three rows"
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
