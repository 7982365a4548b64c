//! Core modules of compilers that know nothing of Botyard: the description of the interface is added to them.
//!
//! The names of a module's imports and exports say all that is needed, so any language that compiles to WebAssembly and
//! follows the canonical ABI can make a plugin without a tool of ours. A module that does not export what a plugin must is
//! no plugin, whatever else it is.

use std::collections::BTreeSet;

use wit_component::{StringEncoding, embed_component_metadata};
use wit_parser::{Resolve, SourceMap, WorldId};

use super::Error;
use super::component::{EXPORT, base, cure, fits};

macro_rules! package {
    ($($path:literal),+) => {
        &[$(($path, include_str!(concat!("../../../sdk/wit/", $path)))),+]
    };
}
/// The files of `sdk/wit/`, package by package, each after those that it uses.
const PACKAGES: &[&[(&str, &str)]] = &[
    package!["deps/types/types.wit"],
    package!["deps/telegram/telegram.wit", "deps/telegram/chats.wit"],
    package!["deps/broadcast/broadcast.wit"],
    package!["deps/clock/clock.wit"],
    package!["deps/config/config.wit"],
    package!["deps/files/files.wit"],
    package!["deps/http/http.wit"],
    package!["deps/fsm/fsm.wit"],
    package!["deps/i18n/i18n.wit"],
    package!["deps/jobs/jobs.wit"],
    package!["deps/log/log.wit"],
    package!["deps/random/random.wit"],
    package!["deps/schedule/schedule.wit"],
    package!["deps/storage/storage.wit"],
    package!["world.wit"],
];

/// The module with the description added.
pub(super) fn describe(wasm: &[u8]) -> Result<Vec<u8>, Error> {
    match interface(wasm) {
        None => return Err(Error::NoInterface),
        Some(spoken) if !fits(&spoken, EXPORT) => {
            let cure = cure(&spoken, EXPORT);
            return Err(Error::OtherVersion { wanted: spoken, offered: EXPORT, cure });
        }
        Some(_) => {}
    }
    add(wasm, str::to_owned)
}

/// Adds the description of what is offered, in the versions that the module speaks.
pub(super) fn add(wasm: &[u8], offered: impl Fn(&str) -> String) -> Result<Vec<u8>, Error> {
    let (resolve, world) = parsed(|text| as_spoken(&offered(text), wasm))?;
    let mut module = wasm.to_vec();
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)
        .map_err(|error| broken(&format!("{error:#}")))?;
    Ok(module)
}

/// The interface as this host knows it.
#[cfg(test)]
pub(super) fn interfaces() -> Result<(Resolve, WorldId), Error> {
    parsed(str::to_owned)
}

/// A file of the interface with the versions that the module speaks, where what the host offers has only grown since: the
/// names in the module must be those of its description.
fn as_spoken(text: &str, wasm: &[u8]) -> String {
    let mut spoken = text.to_owned();
    let names = text.split(|c: char| c.is_whitespace() || c == ';' || c == '{').map(|name| name.trim_end_matches('.'));
    let offered: BTreeSet<&str> = names.filter(|name| name.starts_with("botyard:") && name.contains('@')).collect();
    for name in offered {
        // A package stands here without an interface as well, in a module never.
        let package = name.split(['/', '@']).next().unwrap_or(name);
        let Some(version) = version_of(package, wasm) else { continue };
        let (name_then, name_now) = (format!("{}@{version}", base(name)), name);
        if fits(&name_then, name_now) {
            spoken = spoken.replace(name_now, &name_then);
        }
    }
    spoken
}

/// The version in which a module names an interface of the package: all of a package have one.
fn version_of(package: &str, wasm: &[u8]) -> Option<String> {
    let name = format!("{package}/");
    let at = wasm.windows(name.len()).position(|window| window == name.as_bytes())?;
    let rest = wasm[at..].iter().take(100).skip_while(|byte| **byte != b'@').skip(1);
    let version: Vec<u8> = rest.copied().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').collect();
    let version = String::from_utf8(version).ok()?;
    // What stands behind a name may look like a dot.
    Some(version.trim_end_matches('.').to_owned())
}

fn parsed(as_read: impl Fn(&str) -> String) -> Result<(Resolve, WorldId), Error> {
    let mut resolve = Resolve::default();
    let mut world = None;
    for package in PACKAGES {
        let mut sources = SourceMap::new();
        for (path, text) in *package {
            sources.push_str(path, as_read(text));
        }
        let group = sources.parse().map_err(|(_, error)| broken(&error))?;
        world = Some(resolve.push_group(group).map_err(|error| broken(&format!("{error:#}")))?);
    }
    let package = world.expect("there are packages");
    let world = resolve.select_world(&[package], Some("plugin")).map_err(|error| broken(&format!("{error:#}")))?;
    Ok((resolve, world))
}

fn broken(error: &dyn std::fmt::Display) -> Error {
    Error::Component(format!("its interface can't be described: {error}"))
}

/// The name of the interface that the module exports functions of, with its version.
fn interface(wasm: &[u8]) -> Option<String> {
    let name = format!("{}@", base(EXPORT));
    let start = wasm.windows(name.len()).position(|window| window == name.as_bytes())?;
    let length = wasm[start..].iter().take(100).position(|byte| *byte == b'#')?;
    String::from_utf8(wasm[start..start + length].to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;

    #[test]
    fn all_files_of_the_interface_are_known() {
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../sdk/wit"));
        let files = |folder: &Path| -> Vec<PathBuf> {
            let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
            entries.filter(|path| path.extension().is_some_and(|ending| ending == "wit")).collect()
        };
        let mut there = files(root);
        for package in std::fs::read_dir(root.join("deps")).unwrap() {
            there.extend(files(&package.unwrap().path()));
        }
        let known: Vec<_> =
            PACKAGES.iter().flat_map(|package| package.iter()).map(|(path, _)| root.join(path)).collect();
        for file in &there {
            assert!(known.contains(file), "{} is missing in PACKAGES", file.display());
        }
        assert_eq!(known.len(), there.len());
    }

    #[test]
    fn a_module_is_described_in_the_versions_that_it_speaks() {
        let text =
            "package botyard:telegram@0.1.4;\nuse botyard:types/types@0.1.4.{a};\nuse botyard:log/log@0.2.0.{b};\n";
        let module = b"..botyard:telegram/bot-api@0.1.0..botyard:types/types@0.1.2#x..botyard:log/log@0.1.0..";
        let spoken = as_spoken(text, module);
        assert_eq!(
            spoken,
            "package botyard:telegram@0.1.0;\nuse botyard:types/types@0.1.2.{a};\nuse botyard:log/log@0.2.0.{b};\n",
            "another line of versions is no older one, and is refused elsewhere"
        );
        assert_eq!(as_spoken(text, b"botyard:telegram/bot-api@0.1.9"), text, "newer than this host");
    }
}
