//! What becomes of a file.

use super::*;

fn refusal(bench: &Bench, wasm: &[u8]) -> String {
    bench.engine.load(name(), wasm, settings()).unwrap_err().to_string()
}

fn component(text: &str) -> Vec<u8> {
    wat::parse_str(format!("(component {text})")).unwrap()
}

#[test]
fn what_can_not_be_a_plugin_is_refused_with_the_reason() {
    let bench = Bench::new();
    let whole = Guest::default().module();
    for (wasm, part) in [
        (vec![], "empty"),
        (b"hello".to_vec(), "it is text"),
        (b"(module)".to_vec(), "text form"),
        (vec![0x7f, b'E', b'L', b'F'], "something else"),
        (b"\0as".to_vec(), "cut off"),
        (b"\0asm\x01".to_vec(), "cut off"),
        (b"\0asm\x02\0\0\0".to_vec(), "unknown version"),
        (whole[..whole.len() / 2].to_vec(), "cut off"),
        (wat::parse_str("(module)").unwrap(), "without the plugin interface"),
        (component(""), "exports nothing"),
        (component(r#"(instance $i) (export "wasi:cli/run@0.2.0" (instance $i))"#), "wasi:cli/run@0.2.0"),
        (
            component(r#"(instance $i) (export "botyard:plugin/handler@0.2.0" (instance $i))"#),
            "speaks `botyard:plugin/handler@0.2.0`, this host `botyard:plugin/handler@0.1.0`",
        ),
        (component(r#"(import "wasi:http/types@0.2.10" (instance))"#), "`wasi:http/types@0.2.10` (HTTP goes through"),
        (component(r#"(import "wasi:http/types@0.2.10" (instance))"#), "--disable http fetch-event"),
        (component(r#"(import "wasi:keyvalue/store@0.2.0" (instance))"#), "store@0.2.0` (of WASI there are clocks"),
        (component(r#"(import "wasi:cli/environment@0.3.0" (instance))"#), "environment@0.3.0` (of WASI there is 0.2"),
        (component(r#"(import "wasi:cli/environment" (instance))"#), "`wasi:cli/environment` (of WASI there is 0.2"),
        (component(r#"(import "wasi:cli/environment@0.2.3" (instance))"#), "exports nothing, and not `botyard:plugin"),
        (
            component(r#"(import "botyard:fsm/conversation@0.2.0" (instance)) (import "shop:tax/rates" (instance))"#),
            "`botyard:fsm/conversation@0.2.0` (this host offers `botyard:fsm/conversation@0.1.0`",
        ),
        (component("(core func (canon task.cancel))"), "componentize-qjs takes `--sync`"),
        (
            component(&format!("(core module $m (memory 1)) {}", "(core instance (instantiate $m))".repeat(3))),
            "3 Wasm linear memories, which exceeds the configured maximum of 2 in the pooling allocator (where WASI is stubbed",
        ),
        (component(r#"(import "shop:tax/rates" (instance))"#), "`shop:tax/rates` (unknown"),
        (component(r#"(import "botyard:log/log@0.2.0" (instance))"#), "upgrade the host, or rebuild the plugin"),
        (component(r#"(import "botyard:log/log@0.0.9" (instance))"#), "the plugin is older; rebuild it"),
        (component(r#"(import "botyard:voice/calls@0.1.0" (instance))"#), "upgrade the host, or rebuild the plugin"),
        (
            component(r#"(instance $i) (export "botyard:plugin/handler@0.0.9" (instance $i))"#),
            "`botyard:plugin/handler@0.0.9`, this host `botyard:plugin/handler@0.1.0`: the plugin is older",
        ),
        (
            wat::parse_str(r#"(module (func (export "botyard:plugin/handler@0.3.0#describe")))"#).unwrap(),
            "`botyard:plugin/handler@0.3.0`, this host `botyard:plugin/handler@0.1.0`: the plugin is newer; upgrade the host",
        ),
        (
            wat::parse_str(r#"(module (func (export "botyard:plugin/handler@0.1.0#describe")))"#).unwrap(),
            "does not fit this host",
        ),
        (component(r#"(instance $i) (export "botyard:plugin/handler@0.1.0" (instance $i))"#), "does not fit"),
    ] {
        let text = refusal(&bench, &wasm);
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn no_part_of_a_file_is_taken_for_the_whole() {
    let bench = Bench::new();
    let whole = Guest::default().module();
    for cut in (0..whole.len()).step_by(97) {
        assert!(bench.engine.load(name(), &whole[..cut], settings()).is_err(), "{cut} of {} bytes", whole.len());
    }
}

#[test]
fn a_module_that_is_not_valid_is_refused() {
    let bench = Bench::new();
    let mut wasm = Guest::default().module();
    // In the code section, where only the compiler looks.
    let code = wasm.windows(2).rposition(|bytes| bytes == [0x0b, 0x0b]).unwrap_or(wasm.len() / 3);
    wasm[code] = 0xff;
    assert!(bench.engine.load(name(), &wasm, settings()).is_err());
}

#[test]
fn a_plugin_describes_itself_without_access_to_anything() {
    let bench = Bench::new();
    let everything =
        format!("{EFFECTS} (call $sleep (i64.const -1)) (call $fsm_get (global.get $answer)) (global.get $manifest)");
    let plugin = bench.load(
        Guest { describe: &everything, state_version: 3, key: "topic", methods: &["send*"], ..Default::default() },
        settings(),
    );
    assert_eq!(rows(&bench.store), rows(&Bench::new().store));
    assert_eq!((plugin.manifest.state_version, plugin.manifest.methods.as_slice()), (3, &["send*".to_owned()][..]));
    assert_eq!(plugin.manifest.key, crate::domain::KeyStrategy::Topic);
    assert_eq!(plugin.version.as_str().len(), 12);
}

#[test]
fn a_plugin_that_says_nothing_sensible_of_itself_is_refused() {
    let bench = Bench::new();
    for (guest, part) in [
        (Guest { describe: "unreachable", ..Default::default() }, "can't describe itself: the plugin trapped"),
        (Guest { key: "person", ..Default::default() }, "unknown key strategy `person`"),
        (Guest { methods: &["../getMe"], ..Default::default() }, "`../getMe`"),
        (Guest { catalogs: &[("en", "a = A\nb = {")], ..Default::default() }, "catalog `en`, line 2"),
        (Guest { pages: 600, ..Default::default() }, "`limits.memory`"),
    ] {
        let text = refusal(&bench, &guest.module());
        assert!(text.contains(part), "{part}: {text}");
    }
    let huge = limited(Limits { memory: 1 << 30, ..Limits::default() });
    let text = bench.engine.load(name(), &Guest::default().module(), huge).unwrap_err().to_string();
    assert!(text.contains("limits.memory"), "{text}");
}

#[test]
fn the_operator_is_told_what_a_plugin_will_not_be_let_do() {
    let bench = Bench::new();
    let grants = Grants { methods: Some(vec!["answer*".into()]), ..Grants::default() };
    let plugin = bench.load(
        Guest { methods: &["answerCallbackQuery", "sendPhoto"], ..Default::default() },
        Settings { grants, ..settings() },
    );
    assert_eq!(plugin.warnings, ["add \"sendPhoto\" to `grants.methods` of [plugins.shop] in bot.toml"]);
}

#[test]
fn the_operators_words_come_before_the_plugins() {
    let bench = Bench::new();
    let locales = bench.folder.path().join("locales");
    std::fs::create_dir_all(locales.join("shop")).unwrap();
    std::fs::write(locales.join("shop/en.ftl"), "hi = Good day").unwrap();
    let plugin = bench.load(
        Guest { catalogs: &[("en", "hi = Hi\nbye = Bye"), ("uz", "hi = Salom")], ..Default::default() },
        Settings { locales_dir: Some(locales), ..settings() },
    );
    let text = |locale, key| plugin.translate(locale, key, &[]).unwrap();
    assert_eq!(
        (text("en", "hi"), text("uz", "hi"), text("uz", "bye")),
        ("Good day".into(), "Salom".into(), "Bye".into())
    );
}

#[test]
fn a_compiled_plugin_is_taken_from_the_cache_and_made_anew_when_that_is_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let engine = || {
        Engine::new(EngineSettings { max_runs: 1, cache_dir: Some(cache.clone()), http: HttpClient::new([]) }).unwrap()
    };
    let wasm = Guest::default().module();
    let load = || engine().load(name(), &wasm, settings()).unwrap();
    let entry = || {
        let entries: Vec<_> = std::fs::read_dir(&cache).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(entries.len(), 1);
        (entries[0].clone(), std::fs::read(&entries[0]).unwrap())
    };
    load();
    let (path, bytes) = entry();

    // A hit marks the entry as used, and writes no new one.
    let long_ago = std::time::SystemTime::UNIX_EPOCH;
    std::fs::File::options().write(true).open(&path).unwrap().set_modified(long_ago).unwrap();
    load();
    assert_ne!(std::fs::metadata(&path).unwrap().modified().unwrap(), long_ago);
    assert_eq!(entry().1, bytes);

    for damage in
        [&bytes[..bytes.len() / 2], &[], &[0; 100], &[&bytes[..bytes.len() - 1], &[!bytes[bytes.len() - 1]]].concat()]
    {
        std::fs::write(&path, damage).unwrap();
        load();
        assert_eq!(entry().1, bytes, "the damaged entry is replaced");
    }
}

#[test]
fn a_cache_that_others_can_write_to_is_not_used() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let engine = Engine::new(EngineSettings {
        max_runs: 1,
        cache_dir: Some(folder.path().to_owned()),
        http: HttpClient::new([]),
    })
    .unwrap();
    engine.load(name(), &Guest::default().module(), settings()).unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_plugin_can_be_loaded_from_within_a_runtime() {
    let bench = Bench::new();
    let plugin = bench.load(Guest::default(), settings());
    assert_eq!(bench.run_and_commit(&plugin).await, Ok(Verdict::Done));
}

#[tokio::test]
async fn plugins_run_without_a_pool_and_within_the_same_limits() {
    let mut bench = Bench::new();
    bench.engine = Engine::without_pool(EngineSettings { max_runs: 2, cache_dir: None, http: HttpClient::new([]) });
    assert_eq!(bench.handle(&format!("{EFFECTS} (global.get $done)"), settings()).await, Ok(Verdict::Done));
    let eats = "(loop $more (br_if $more (i32.ne (memory.grow (i32.const 1)) (i32.const -1)))) unreachable";
    let memory = Limits::default().memory;
    assert_eq!(bench.handle(eats, settings()).await, Err(RunError::OutOfMemory(memory)));
}

#[test]
fn a_description_of_the_interface_that_makes_no_sense_is_an_error() {
    let bench = Bench::new();
    let whole = Guest::default().module();
    let start = whole.windows(14).position(|bytes| bytes == b"component-type").unwrap();
    // Some of these make the library that reads it panic.
    let refused = (start..whole.len()).step_by(7).filter(|place| {
        let mut wasm = whole.clone();
        wasm[*place] ^= 4;
        bench.engine.load(name(), &wasm, settings()).is_err()
    });
    assert!(refused.count() > 50);
}
