//! From a file to a component: tells what the file is, converts what cargo makes, and checks that plugin and
//! host mean the same interface.
//!
//! `cargo build --target wasm32-unknown-unknown` makes a core module with the interface's description in a
//! section of its own; [`componentise`] wraps it. Finished components are taken as they are. Whatever can't be
//! a plugin is refused with the reason, before anything is compiled.

use std::borrow::Cow;

use wasmtime::component::Component;
use wit_component::ComponentEncoder;

use super::Error;

/// What a plugin must export.
const EXPORT: &str = "botyard:plugin/handler@0.1.0";

/// What needs a grant of its own.
pub(super) const BROADCASTS: &str = "botyard:broadcast/broadcasts@0.1.0";

/// What a plugin may import.
const OFFERED: [&str; 15] = [
    "botyard:types/types@0.1.0",
    "botyard:telegram/bot-api@0.1.0",
    BROADCASTS,
    "botyard:files/files@0.1.0",
    "botyard:telegram/chats@0.1.0",
    "botyard:fsm/conversation@0.1.0",
    "botyard:storage/key-value@0.1.0",
    "botyard:i18n/catalogs@0.1.0",
    "botyard:i18n/languages@0.1.0",
    "botyard:schedule/timers@0.1.0",
    "botyard:http/client@0.1.0",
    "botyard:clock/clock@0.1.0",
    "botyard:random/random@0.1.0",
    "botyard:config/config@0.1.0",
    "botyard:log/log@0.1.0",
];

const MAGIC: &[u8] = b"\0asm";
const MODULE: [u8; 4] = [1, 0, 0, 0];
const COMPONENT: [u8; 4] = [13, 0, 1, 0];

/// The file as a component.
pub(super) fn componentise(wasm: &[u8]) -> Result<Cow<'_, [u8]>, Error> {
    let header = header(wasm)?;
    let described = sections(wasm)?;
    if header == COMPONENT {
        return Ok(Cow::Borrowed(wasm));
    }
    if !described {
        return Err(Error::NoInterface);
    }
    // The engine validates what comes out, so doing it here as well would be time lost.
    ComponentEncoder::default()
        .validate(false)
        .module(wasm)
        .and_then(|mut encoder| encoder.encode())
        .map(Cow::Owned)
        .map_err(|error| Error::Component(format!("{error:#}")))
}

/// Module or component; everything else is an error.
fn header(wasm: &[u8]) -> Result<[u8; 4], Error> {
    if wasm.is_empty() {
        return Err(Error::Empty);
    }
    if !wasm.starts_with(MAGIC) {
        let cut = wasm.len() < MAGIC.len() && MAGIC.starts_with(wasm);
        return Err(if cut { Error::Truncated { offset: 0 } } else { Error::NotWasm(looks_like(wasm)) });
    }
    let kind = wasm.get(4..8).and_then(|kind| kind.try_into().ok()).ok_or(Error::Truncated { offset: 4 })?;
    match kind {
        MODULE | COMPONENT => Ok(kind),
        _ => Err(Error::Component(format!("an unknown version of WebAssembly: {kind:02x?}"))),
    }
}

fn looks_like(bytes: &[u8]) -> &'static str {
    let begins = |text: &str| bytes.trim_ascii_start().starts_with(text.as_bytes());
    if begins("(module") || begins("(component") {
        "it is WebAssembly's text form"
    } else if begins("version https://git-lfs") {
        "it is a pointer of Git LFS"
    } else if bytes.iter().take(256).all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace()) {
        "it is text"
    } else {
        "it is something else"
    }
}

/// Walks over the sections, so that a file that was cut is told from a file that is wrong. True when one of
/// them describes an interface.
fn sections(wasm: &[u8]) -> Result<bool, Error> {
    let mut offset = 8;
    let mut described = false;
    while let Some(&id) = wasm.get(offset) {
        let cut = Error::Truncated { offset };
        let Some((length, start)) = leb128(wasm, offset + 1) else { return Err(cut) };
        let Some(content) = start.checked_add(length).and_then(|end| wasm.get(start..end)) else { return Err(cut) };
        if id == 0 && leb128(content, 0).is_some_and(|(_, name)| content[name..].starts_with(b"component-type")) {
            described = true;
        }
        offset = start + length;
    }
    Ok(described)
}

/// An unsigned number of at most 32 bits, and where it ends.
fn leb128(bytes: &[u8], start: usize) -> Option<(usize, usize)> {
    let mut value = 0_u64;
    for (index, byte) in bytes.get(start..)?.iter().take(5).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Some((usize::try_from(value).ok()?, start + index + 1));
        }
    }
    None
}

/// Checks that the component exports what the host calls, and imports nothing that the host does not offer.
pub(super) fn check_interface(component: &Component) -> Result<(), Error> {
    let engine = component.engine();
    let kind = component.component_type();
    let foreign: Vec<String> =
        kind.imports(engine).map(|(name, _)| name).filter(|name| !OFFERED.contains(name)).map(explain).collect();
    if !foreign.is_empty() {
        return Err(Error::Imports(foreign.join("; ")));
    }
    let exports: Vec<&str> = kind.exports(engine).map(|(name, _)| name).collect();
    if exports.contains(&EXPORT) { Ok(()) } else { Err(other_world(&exports)) }
}

/// True if the component imports this.
pub(super) fn imports(component: &Component, interface: &str) -> bool {
    component.component_type().imports(component.engine()).any(|(name, _)| name == interface)
}

fn other_world(exports: &[&str]) -> Error {
    match exports.iter().find(|name| base(name) == base(EXPORT)) {
        Some(other) => Error::OtherVersion { wanted: (*other).to_owned(), offered: EXPORT },
        None => Error::OtherWorld { exports: if exports.is_empty() { "nothing".into() } else { exports.join(", ") } },
    }
}

fn explain(import: &str) -> String {
    if import.starts_with("wasi:") {
        return format!("`{import}` (WASI is not offered: build for the target wasm32-unknown-unknown)");
    }
    match OFFERED.iter().find(|offered| base(offered) == base(import)) {
        Some(offered) => {
            format!("`{import}` (this host offers `{offered}`: build with the SDK of this host's version)")
        }
        None => format!("`{import}` (unknown to this host)"),
    }
}

/// An interface's name without its version.
fn base(interface: &str) -> &str {
    interface.split('@').next().unwrap_or(interface)
}
