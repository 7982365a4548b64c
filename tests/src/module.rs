//! Plugins written by hand in WebAssembly's text form, for what no compiler would make of any source: bytes that are no
//! text, lengths that lie, calls at the wrong time. The host takes them as it takes what a compiler makes that knows
//! nothing of Botyard.

use std::fmt::Write as _;

/// What such a plugin is and does.
///
/// `handle` and `describe` end with the address of their result on the stack. At hand are the functions imported below;
/// `$done`, a verdict; `$manifest`; `$answer`, room for what a host function answers with; `$name`, `$text`, `$empty`
/// (an object without members) and `$garbage` (with their lengths `$name_len` …); and `$fail`, which makes a failure of an address and a length.
pub struct Module {
    /// Its name, and that of the command that it takes.
    pub name: &'static str,
    /// What it does with an event.
    pub handle: String,
    /// What it says of itself.
    pub describe: &'static str,
    /// What it does whenever the host asks it for memory.
    pub realloc: &'static str,
    /// `$text`
    pub text: &'static str,
    /// What else it imports.
    pub imports: &'static str,
    /// What a conversation is to it.
    pub key: &'static str,
    /// Pages of memory.
    pub pages: u32,
}

const IMPORTS: &str = r#"
  (import "botyard:telegram/bot-api@0.1.0" "call" (func $call (param i32 i32 i32 i32 i32)))
  (import "botyard:telegram/bot-api@0.1.0" "enqueue" (func $enqueue (param i32 i32 i32 i32 i32 i32 i32 i32 i32)))
  (import "botyard:telegram/bot-api@0.1.0" "keep-action" (func $keep_action (param i32 i32 i32)))
  (import "botyard:clock/clock@0.1.0" "sleep" (func $sleep (param i64)))
  (import "botyard:log/log@0.1.0" "emit" (func $emit (param i32 i32 i32 i32 i32)))
"#;

impl Module {
    /// One that does this, and is ordinary otherwise.
    #[must_use]
    pub fn new(name: &'static str, handle: impl Into<String>) -> Self {
        Self {
            name,
            handle: handle.into(),
            describe: "(global.get $manifest)",
            realloc: "",
            text: "",
            imports: "",
            key: "chat",
            pages: 1,
        }
    }

    /// The module's bytes.
    ///
    /// # Panics
    /// When it makes no sense.
    #[must_use]
    pub fn wasm(&self) -> Vec<u8> {
        wat::parse_str(self.source()).unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    fn source(&self) -> String {
        let mut data = Data::default();
        let mut globals = String::new();
        let texts = [
            ("name", self.name.as_bytes()),
            ("text", self.text.as_bytes()),
            ("empty", b"{}"),
            ("garbage", b"\xc3\x28\xff"),
        ];
        for (name, bytes) in texts {
            let (at, length) = data.bytes(bytes);
            writeln!(globals, "(global ${name} i32 (i32.const {at})) (global ${name}_len i32 (i32.const {length}))")
                .expect("a string");
        }
        let manifest = self.manifest(&mut data);
        // result<verdict, failure>, and room for the largest answer.
        for (name, at) in [("manifest", manifest), ("done", data.words(&[0; 4])), ("answer", data.words(&[0; 16]))] {
            writeln!(globals, "(global ${name} i32 (i32.const {at}))").expect("a string");
        }
        format!(
            r#"(module {IMPORTS} {imports}
              (memory (export "memory") {pages})
              {globals}
              (global $heap (mut i32) (i32.const 32768))
              (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
                (local $at i32)
                {realloc}
                (local.set $at (i32.and (i32.add (global.get $heap) (i32.const 7)) (i32.const -8)))
                (global.set $heap (i32.add (local.get $at) (local.get 3)))
                (local.get $at))
              (func $fail (param $at i32) (param $length i32) (result i32)
                (i32.store (global.get $done) (i32.const 1))
                (i32.store offset=4 (global.get $done) (local.get $at))
                (i32.store offset=8 (global.get $done) (local.get $length))
                (global.get $done))
              (func (export "botyard:plugin/handler@0.1.0#describe") (result i32) {describe})
              (func $handle (export "botyard:plugin/handler@0.1.0#handle") (param i32) (result i32) {handle})
              (func (export "botyard:plugin/handler@0.1.0#migrate") (param i32 i32 i32 i32 i32) (result i32) unreachable)
              (data (i32.const {base}) "{data}"))"#,
            imports = self.imports,
            pages = self.pages,
            realloc = self.realloc,
            describe = self.describe,
            handle = self.handle,
            base = Data::BASE,
            data = data.escaped(),
        )
    }

    /// As the canonical ABI lays it out: an address and a length for each text and list, in the order of the WIT.
    fn manifest(&self, data: &mut Data) -> u32 {
        let mut text = |text: &str| data.bytes(text.as_bytes());
        let (name, version, key, method) = (text(self.name), text("1.0.0"), text(self.key), text("*"));
        let pair = |(at, length): (u32, u32)| [at, length];
        let (command, methods) = (data.words(&pair(name)), data.words(&pair(method)));
        // The commands are its third list; all else is empty, none or false.
        let mut filter = [0; 21];
        filter[4..6].copy_from_slice(&[command, 1]);
        let filter = data.words(&filter);
        let mut manifest = [0; 22];
        manifest[..4].copy_from_slice(&[pair(name), pair(version)].concat());
        manifest[6..8].copy_from_slice(&[filter, 1]);
        manifest[10..12].copy_from_slice(&pair(key));
        manifest[15..17].copy_from_slice(&[methods, 1]);
        data.words(&manifest)
    }
}

/// The module's static memory.
#[derive(Default)]
struct Data(Vec<u8>);

impl Data {
    const BASE: u32 = 1024;

    fn at(&self) -> u32 {
        Self::BASE + u32::try_from(self.0.len()).expect("little")
    }

    fn bytes(&mut self, bytes: &[u8]) -> (u32, u32) {
        let at = self.at();
        self.0.extend_from_slice(bytes);
        (at, u32::try_from(bytes.len()).expect("little"))
    }

    fn words(&mut self, words: &[u32]) -> u32 {
        self.0.resize(self.0.len().next_multiple_of(8), 0);
        let at = self.at();
        self.0.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        at
    }

    fn escaped(&self) -> String {
        self.0.iter().map(|byte| format!("\\{byte:02x}")).collect()
    }
}
