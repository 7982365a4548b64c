//! From a file to a component: tells what the file is, converts what cargo makes, and checks that plugin and
//! host mean the same interface.
//!
//! `cargo build --target wasm32-unknown-unknown` makes a core module with the interface's description in a
//! section of its own; [`componentise`] wraps it. A module of another compiler, without that section, is given it
//! ([`bare`](super::bare)). Finished components are taken as they are. Whatever can't be a plugin is refused with the
//! reason, before anything is compiled.
//!
//! Plugins built against an older version of an interface run for as long as the interface only grew ([`fits`]); where
//! versions differ by more, the error names both cures.

use std::borrow::Cow;

use wasmtime::component::Component;
use wit_component::ComponentEncoder;

use super::api::wasi;
use super::{Error, bare};

/// What a plugin must export.
pub(super) const EXPORT: &str = "botyard:plugin/handler@0.1.0";

/// What is said of a module's imports that are not offered.
const NO_WASI: &str =
    "of WASI there is something for components, nothing for modules: build for the target wasm32-unknown-unknown";
const UNKNOWN: &str = concat!(
    "unknown to this host, which is botyard ",
    env!("CARGO_PKG_VERSION"),
    ": upgrade the host, or rebuild the plugin with the SDK of this host's version"
);

/// What a plugin may import; the types that all share first.
const OFFERED: [&str; 16] = [
    "botyard:types/types@0.1.0",
    "botyard:telegram/bot-api@0.1.0",
    "botyard:broadcast/broadcasts@0.1.0",
    "botyard:files/files@0.1.0",
    "botyard:telegram/chats@0.1.0",
    "botyard:fsm/conversation@0.1.0",
    "botyard:storage/key-value@0.1.0",
    "botyard:i18n/catalogs@0.1.0",
    "botyard:i18n/languages@0.1.0",
    "botyard:schedule/timers@0.1.0",
    "botyard:jobs/jobs@0.1.0",
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
    let wasm = if described { Cow::Borrowed(wasm) } else { Cow::Owned(bare::describe(wasm)?) };
    // The engine validates what comes out, so doing it here as well would be time lost.
    ComponentEncoder::default()
        .validate(false)
        .module(&wasm)
        .and_then(|mut encoder| encoder.encode())
        .map(Cow::Owned)
        .map_err(|error| not_encoded(&format!("{error:#}")))
}

/// A module tells of what it can't be given before it is a component whose imports could be looked at.
fn not_encoded(error: &str) -> Error {
    let import = error.split_once("failed to resolve import `").and_then(|(_, rest)| rest.split_once('`'));
    match import.map(|(import, _)| import) {
        Some(import) if import.starts_with("wasi") => Error::Imports(format!("`{import}` ({NO_WASI})")),
        Some(import) => Error::Imports(format!("`{import}` ({UNKNOWN})")),
        None => Error::Component(error.to_owned()),
    }
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

/// Why the compiler did not take it, and what mends what is often the matter with components of other languages.
pub(super) fn cannot_be_compiled(error: &wasmtime::Error) -> Error {
    let mut problem = format!("{error:#}");
    if problem.contains("component model async") {
        problem.push_str(" (build it without async functions: componentize-qjs takes `--sync`)");
    } else if problem.contains("the configured maximum") {
        problem.push_str(
            " (where WASI is stubbed, as by `--stub-wasi`, build it without that: the host has what is needed)",
        );
    }
    Error::Compile(problem)
}

/// Checks that the component exports what the host calls, and imports nothing that the host does not offer.
pub(super) fn check_interface(component: &Component) -> Result<(), Error> {
    let engine = component.engine();
    let kind = component.component_type();
    let foreign: Vec<String> = kind.imports(engine).filter_map(|(name, _)| explain(name)).collect();
    if !foreign.is_empty() {
        return Err(Error::Imports(foreign.join("; ")));
    }
    let exports: Vec<&str> = kind.exports(engine).map(|(name, _)| name).collect();
    if exports.iter().any(|export| fits(export, EXPORT)) { Ok(()) } else { Err(other_world(&exports)) }
}

/// The interfaces that a component imports, with their versions; that of the shared types is none of its own, and those of
/// WASI give it nothing.
pub(super) fn interfaces(component: &Component) -> Vec<String> {
    let kind = component.component_type();
    let names = kind.imports(component.engine()).map(|(name, _)| name.to_owned());
    names.filter(|name| base(name) != base(OFFERED[0]) && !wasi::is_of_wasi(name)).collect()
}

fn other_world(exports: &[&str]) -> Error {
    match exports.iter().find(|name| base(name) == base(EXPORT)) {
        Some(other) => Error::OtherVersion { wanted: (*other).to_owned(), offered: EXPORT, cure: cure(other, EXPORT) },
        None => Error::OtherWorld { exports: if exports.is_empty() { "nothing".into() } else { exports.join(", ") } },
    }
}

/// Why an import can't be had; `None` where it can.
fn explain(import: &str) -> Option<String> {
    if wasi::is_of_wasi(import) {
        return wasi::refuses(import).map(|cure| format!("`{import}` ({cure})"));
    }
    match OFFERED.iter().find(|offered| base(offered) == base(import)) {
        Some(offered) if fits(import, offered) => None,
        Some(offered) => Some(format!("`{import}` (this host offers `{offered}`: {})", cure(import, offered))),
        None if import.starts_with("botyard:") => Some(format!("`{import}` ({UNKNOWN})")),
        None => Some(format!("`{import}` (unknown to this host)")),
    }
}

/// What mends a difference between versions.
pub(super) fn cure(wanted: &str, offered: &str) -> &'static str {
    if version(wanted) > version(offered) {
        "the plugin is newer; upgrade the host, or rebuild the plugin with the SDK of this host's version"
    } else {
        "the plugin is older; rebuild it with the SDK of this host's version, or run it on the host it was built for"
    }
}

/// An interface's name without its version.
pub(super) fn base(interface: &str) -> &str {
    interface.split('@').next().unwrap_or(interface)
}

/// True if what was built against `wanted` runs on `offered`: the same interface in a version that only added to it since.
/// Before 1.0 a step of the second number may change anything.
pub(super) fn fits(wanted: &str, offered: &str) -> bool {
    if wanted == offered {
        return true;
    }
    let (Some(old), Some(new)) = (version(wanted), version(offered)) else { return false };
    let line = |version: [u64; 3]| match version {
        [0, 0, patch] => (0, 0, patch),
        [0, minor, _] => (0, minor, 0),
        [major, ..] => (major, 0, 0),
    };
    base(wanted) == base(offered) && line(old) == line(new) && old <= new
}

/// Release versions only: nobody promises anything about others.
fn version(interface: &str) -> Option<[u64; 3]> {
    let mut numbers = interface.split_once('@')?.1.split('.').map(str::parse);
    let version = [numbers.next()?.ok()?, numbers.next()?.ok()?, numbers.next()?.ok()?];
    numbers.next().is_none().then_some(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_built_for_an_older_version_of_the_same_line_runs() {
        for (wanted, offered, expected) in [
            ("a:b/c@0.1.0", "a:b/c@0.1.0", true),
            ("a:b/c@0.1.0", "a:b/c@0.1.3", true),
            ("a:b/c@0.1.4", "a:b/c@0.1.3", false),
            ("a:b/c@0.1.0", "a:b/c@0.2.0", false),
            ("a:b/c@0.0.1", "a:b/c@0.0.2", false),
            ("a:b/c@1.0.0", "a:b/c@1.7.0", true),
            ("a:b/c@1.9.0", "a:b/c@1.7.0", false),
            ("a:b/c@1.0.0", "a:b/c@2.0.0", false),
            ("a:b/d@1.0.0", "a:b/c@1.0.1", false),
            ("a:b/c@0.1.0-rc.1", "a:b/c@0.1.0", false),
            ("a:b/c", "a:b/c@0.1.0", false),
            ("a:b/c@0.1", "a:b/c@0.1.0", false),
        ] {
            assert_eq!(fits(wanted, offered), expected, "{wanted} on {offered}");
        }
        assert!(cure("a:b/c@0.2.0", "a:b/c@0.1.0").contains("upgrade the host, or rebuild"));
        assert!(cure("a:b/c@0.0.9", "a:b/c@0.1.0").contains("older"));
    }
}
