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

/// As a compiler makes it that knows nothing of the interface's description.
fn bare() -> Vec<u8> {
    Guest { handle: &format!("{EFFECTS} (global.get $done)"), state_version: 1, ..Default::default() }.bare_module()
}

fn samples() -> Vec<(String, Vec<u8>)> {
    let files = std::fs::read_dir(folder()).unwrap().map(|file| file.unwrap().path());
    let samples = files.filter(|path| path.extension().is_some_and(|ending| ending == "wasm"));
    samples.map(|path| (path.display().to_string(), std::fs::read(&path).unwrap())).collect()
}

#[tokio::test]
async fn what_was_built_for_a_released_interface_still_runs() {
    // The one way to add a sample; see CONTRIBUTING.md.
    if let Ok(version) = std::env::var("BOTYARD_WRITE_SAMPLE") {
        std::fs::write(folder().join(format!("all-{version}.wasm")), newest()).unwrap();
        std::fs::write(folder().join(format!("bare-{version}.wasm")), bare()).unwrap();
    }
    let samples = samples();
    assert!(samples.len() > 1, "of each kind");
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

#[test]
fn a_module_without_a_description_outlives_the_version_that_it_was_built_for() {
    // What the host will offer when the interface has grown.
    let grown = |text: &str| text.replace("@0.1.0", "@0.1.7");
    for (path, wasm) in samples().into_iter().filter(|(path, _)| path.contains("bare-")) {
        let described = crate::plugin::bare::add(&wasm, grown).unwrap();
        let component = wit_component::ComponentEncoder::default().module(&described).unwrap().encode();
        let component = component.unwrap_or_else(|error| panic!("{path}: {error:#}"));
        let text = String::from_utf8_lossy(&component);
        assert!(text.contains("botyard:plugin/handler@0.1.0") && !text.contains("handler@0.1.7"), "{path}");
    }
}
