//! Guests written by hand, a few instructions each, against the interface's lowest form: they do one thing,
//! and do it exactly.

use std::fmt::Write;
use std::path::Path;

use wit_component::{StringEncoding, embed_component_metadata};
use wit_parser::abi::AbiVariant;
use wit_parser::{Resolve, WorldItem};

use crate::plugin::bare;

/// A guest: what it does, in WebAssembly's text form, and what it says of itself.
///
/// `handle` and `migrate` are function bodies that end with the address of their result on the stack; `$done`,
/// `$pass` and the functions imported below are at hand.
pub(super) struct Guest<'a> {
    pub(super) handle: &'a str,
    pub(super) migrate: &'a str,
    pub(super) describe: &'a str,
    /// What it does whenever the host asks it for memory.
    pub(super) realloc: &'a str,
    /// Further functions and globals.
    pub(super) more: &'a str,
    pub(super) state_version: u32,
    pub(super) methods: &'a [&'a str],
    pub(super) catalogs: &'a [(&'a str, &'a str)],
    pub(super) key: &'a str,
    /// Pages of memory to begin with.
    pub(super) pages: u32,
}

impl Default for Guest<'_> {
    fn default() -> Self {
        Self {
            handle: "(global.get $done)",
            migrate: "unreachable",
            describe: "(global.get $manifest)",
            realloc: "",
            more: "",
            state_version: 0,
            methods: &["*"],
            catalogs: &[],
            key: "chat",
            pages: 1,
        }
    }
}

/// Texts that every guest has in its memory, by the name of a global with their address; `$NAME_len` is the length.
const TEXTS: [(&str, &str); 8] = [
    ("method", "sendMessage"),
    ("params", r#"{"chat_id":7,"text":"hi"}"#),
    ("reason", "no such order"),
    ("file", "src/lib.rs"),
    ("state", "confirm"),
    ("state_bytes", "abc"),
    ("timer", "remind"),
    ("key", "counter"),
];

const IMPORTS: &str = r#"
  (import "botyard:telegram/bot-api@0.1.0" "call" (func $call (param i32 i32 i32 i32 i32)))
  (import "botyard:telegram/bot-api@0.1.0" "enqueue" (func $enqueue (param i32 i32 i32 i32 i32 i32 i32 i32 i32)))
  (import "botyard:fsm/conversation@0.1.0" "get" (func $fsm_get (param i32)))
  (import "botyard:fsm/conversation@0.1.0" "set" (func $fsm_set (param i32 i32 i32 i32 i32 i32 i64 i32)))
  (import "botyard:fsm/conversation@0.1.0" "clear" (func $fsm_clear))
  (import "botyard:fsm/conversation@0.1.0" "unreadable" (func $fsm_unreadable (param i32 i32)))
  (import "botyard:storage/key-value@0.1.0" "increment" (func $increment (param i32 i64 i32 i32 i64 i32)))
  (import "botyard:schedule/timers@0.1.0" "after" (func $after (param i32 i32 i64 i32 i32 i32)))
  (import "botyard:clock/clock@0.1.0" "sleep" (func $sleep (param i64)))
  (import "botyard:log/log@0.1.0" "panicked" (func $panicked (param i32 i32 i32 i32 i32 i32)))
"#;

impl Guest<'_> {
    /// What cargo would make of it: a core module with the interface embedded.
    pub(super) fn module(&self) -> Vec<u8> {
        let mut module = wat::parse_str(self.text()).unwrap();
        let mut resolve = Resolve::default();
        let (package, _) = resolve.push_dir(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../sdk/wit"))).unwrap();
        let world = resolve.select_world(&[package], Some("plugin")).unwrap();
        embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
        module
    }

    /// The same without the interface.
    pub(super) fn bare_module(&self) -> Vec<u8> {
        wat::parse_str(self.text()).unwrap()
    }

    /// With these imports more, which stand in the world `more` of this WIT.
    pub(super) fn module_importing(&self, imports: &str, wit: &str) -> Vec<u8> {
        let mut module = wat::parse_str(self.text().replace(IMPORTS, &format!("{IMPORTS}{imports}"))).unwrap();
        let (mut resolve, _) = bare::interfaces().unwrap();
        let package = resolve.push_str("more.wit", wit).unwrap();
        let world = resolve.select_world(&[package], Some("more")).unwrap();
        embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
        module
    }

    /// Needs every function that the interface has, and not only those that it calls.
    pub(super) fn that_imports_everything(&self) -> Vec<u8> {
        let (resolve, world) = bare::interfaces().unwrap();
        let mut imports = IMPORTS.to_owned();
        for item in resolve.worlds[world].imports.values() {
            let WorldItem::Interface { id, .. } = item else { panic!("only interfaces are imported") };
            let interface = resolve.id_of(*id).unwrap();
            for (name, function) in &resolve.interfaces[*id].functions {
                let key = format!("(import \"{interface}\" \"{name}\"");
                if IMPORTS.contains(&key) {
                    continue;
                }
                let signature = resolve.wasm_signature(AbiVariant::GuestImport, function);
                let types = |of: &[wit_parser::abi::WasmType]| {
                    of.iter()
                        .map(|of| format!(" {}", format!("{of:?}").to_lowercase()))
                        .collect::<String>()
                        .replace("pointerori64", "i64")
                        .replace("pointer", "i32")
                        .replace("length", "i32")
                };
                let (params, results) = (types(&signature.params), types(&signature.results));
                writeln!(imports, "{key} (func (param{params}) (result{results})))").unwrap();
            }
        }
        wat::parse_str(self.text().replace(IMPORTS, &imports)).unwrap()
    }

    fn text(&self) -> String {
        let mut data = Data::default();
        let mut globals = String::new();
        for (name, text) in TEXTS {
            let at = data.text(text);
            writeln!(
                globals,
                "(global ${name} i32 (i32.const {at})) (global ${name}_len i32 (i32.const {}))",
                text.len()
            )
            .unwrap();
        }
        let manifest = self.manifest(&mut data);
        // result<verdict, failure>: 0 for ok; then the verdict, or the failure's message and whether to try again.
        let done = data.words(&[0, 0, 0, 0]);
        let pass = data.words(&[0, 1, 0, 0]);
        let reason = data.text("no such order");
        let refused = data.words(&[1, reason, 13, 1]);
        let refused_for_good = data.words(&[1, reason, 13, 0]);
        for (name, at) in [
            ("manifest", manifest),
            ("done", done),
            ("pass", pass),
            ("refused", refused),
            ("refused_for_good", refused_for_good),
            // Where host functions put their results.
            ("answer", data.words(&[0; 16])),
        ] {
            writeln!(globals, "(global ${name} i32 (i32.const {at}))").unwrap();
        }
        format!(
            r#"(module {IMPORTS}
              (memory (export "memory") {pages})
              {globals}
              (global $heap (mut i32) (i32.const 32768))
              (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
                (local $at i32)
                {realloc}
                (local.set $at (i32.and (i32.add (global.get $heap) (i32.const 7)) (i32.const -8)))
                (global.set $heap (i32.add (local.get $at) (local.get 3)))
                (local.get $at))
              {more}
              (func $describe (export "botyard:plugin/handler@0.1.0#describe") (result i32) {describe})
              (func $handle (export "botyard:plugin/handler@0.1.0#handle") (param i32) (result i32) {handle})
              (func $migrate (export "botyard:plugin/handler@0.1.0#migrate")
                (param $name i32) (param $name_len i32) (param $version i32) (param $bytes i32) (param $bytes_len i32)
                (result i32) {migrate})
              (data (i32.const {base}) "{data}"))"#,
            pages = self.pages,
            realloc = self.realloc,
            more = self.more,
            describe = self.describe,
            handle = self.handle,
            migrate = self.migrate,
            base = Data::BASE,
            data = data.escaped(),
        )
    }

    fn manifest(&self, data: &mut Data) -> u32 {
        let name = data.text("test");
        let version = data.text("1.0.0");
        let key = data.text(self.key);
        let catalogs: Vec<u32> = self
            .catalogs
            .iter()
            .flat_map(|(locale, source)| {
                [data.text(locale), locale.len() as u32, data.text(source), source.len() as u32]
            })
            .collect();
        let catalogs = data.words(&catalogs);
        let methods: Vec<u32> =
            self.methods.iter().flat_map(|method| [data.text(method), method.len() as u32]).collect();
        let methods = data.words(&methods);
        data.words(&[
            name,
            4,
            version,
            5,
            0,
            0,
            0,
            0,
            0,
            0,
            key,
            self.key.len() as u32,
            self.state_version,
            catalogs,
            self.catalogs.len() as u32,
            methods,
            self.methods.len() as u32,
            // Neither servers nor schedules, and no word of expired states or failed runs.
            0,
            0,
            0,
            0,
            0,
        ])
    }
}

/// The guest's static memory.
#[derive(Default)]
struct Data(Vec<u8>);

impl Data {
    const BASE: u32 = 1024;

    fn text(&mut self, text: &str) -> u32 {
        let at = Self::BASE + self.0.len() as u32;
        self.0.extend_from_slice(text.as_bytes());
        at
    }

    fn words(&mut self, words: &[u32]) -> u32 {
        self.0.resize(self.0.len().next_multiple_of(8), 0);
        let at = Self::BASE + self.0.len() as u32;
        self.0.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        at
    }

    fn escaped(&self) -> String {
        self.0.iter().map(|byte| format!("\\{byte:02x}")).collect()
    }
}
