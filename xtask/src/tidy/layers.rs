//! The layering of the host: `use crate::…` points downward in the list that opens `host/src/lib.rs`.
//!
//! That list is read here, so what the reader of the crate's documentation sees is what is enforced: each line of it is
//! a layer, parts on one line are neighbours that don't know each other. Unit tests may reach upward (a test of the
//! sender talks to the simulator).

use std::collections::BTreeMap;

use anyhow::{Context, Result};

use super::{File, Problems};

const LIST: &str = "host/src/lib.rs";

pub(super) fn check(files: &[File], problems: &mut Problems) -> Result<()> {
    let lib = files.iter().find(|file| file.path == LIST).context("there is no host/src/lib.rs")?;
    let layers = layers(&lib.text);
    for (number, line) in lib.text.lines().enumerate() {
        let module =
            line.strip_prefix("pub mod ").or_else(|| line.strip_prefix("mod ")).map(|rest| rest.trim_end_matches(';'));
        if let Some(module) = module.filter(|module| !layers.contains_key(*module)) {
            problems.add(lib, number, format_args!("{module} is missing in the list of layers above"));
        }
    }
    for file in files {
        if let Some((module, layer)) = part_of(&file.path).and_then(|part| layers.get_key_value(part)) {
            upward(file, module, *layer, &layers, problems);
        }
    }
    Ok(())
}

/// The line of the list that each module stands on; higher lines have lower numbers.
fn layers(lib: &str) -> BTreeMap<String, usize> {
    let lines = lib.lines().filter_map(|line| line.strip_prefix("//! - "));
    let modules = lines.enumerate().flat_map(|(layer, line)| {
        line.split("[`").skip(1).filter_map(move |rest| Some((rest.split_once("`]")?.0.to_owned(), layer)))
    });
    modules.collect()
}

/// The top-level module that a file of the host belongs to.
fn part_of(path: &str) -> Option<&str> {
    let inside = path.strip_prefix("host/src/")?;
    inside.split('/').next()?.split('.').next()
}

fn upward(file: &File, module: &str, layer: usize, layers: &BTreeMap<String, usize>, problems: &mut Problems) {
    if file.path.ends_with("/tests.rs") || file.path.contains("/tests/") {
        return;
    }
    for (number, line) in file.text.lines().enumerate() {
        if line.trim_start().starts_with("#[cfg(test)]") && file.text.lines().nth(number + 1).is_some_and(opens_module)
        {
            return;
        }
        if line.trim_start().starts_with("//") {
            continue;
        }
        for used in used_modules(line) {
            if used != module && layers.get(used).is_some_and(|&other| other <= layer) {
                problems.add(file, number, format_args!("{module} must not use {used}, which does not stand below it"));
            }
        }
    }
}

fn opens_module(line: &str) -> bool {
    line.trim_start().starts_with("mod ") && line.ends_with('{')
}

/// The modules named after `crate::` on a line, in `crate::{a, b::C}` too.
fn used_modules(line: &str) -> impl Iterator<Item = &str> {
    line.split("crate::").skip(1).flat_map(|rest| {
        let group = rest.strip_prefix('{');
        group.unwrap_or(rest).split(", ").take(if group.is_some() { usize::MAX } else { 1 }).map(|item| {
            let end = item.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(item.len());
            item.get(..end).unwrap_or_default()
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        let lib = "//! - [`app`]\n//! - [`sender`] · [`intake`]\n//! - [`store`]\npub mod app;\n";
        let files = [(LIST, lib), (path, text)].map(|(path, text)| File { path: path.into(), text: text.into() });
        let mut problems = Problems::default();
        check(&files, &mut problems).unwrap();
        problems.0
    }

    #[test]
    fn downward_is_fine() {
        for text in
            ["use crate::store::Store;", "use crate::sender::lanes;", "use crate::{store, unknown};", "// crate::app"]
        {
            assert_eq!(found("host/src/sender/lanes.rs", text), [""; 0], "{text}");
        }
    }

    #[test]
    fn upward_and_sideways_are_named_with_their_line() {
        for (text, used) in [
            ("\nuse crate::app::App;", "app"),
            ("\nlet x = crate::intake::run();", "intake"),
            ("\nuse crate::{store::Store, intake};", "intake"),
        ] {
            let expected = format!("host/src/sender.rs:2: sender must not use {used}, which does not stand below it");
            assert_eq!(found("host/src/sender.rs", text), [expected], "{text}");
        }
    }

    #[test]
    fn tests_may_reach_upward() {
        assert_eq!(found("host/src/store/tests.rs", "use crate::app;"), [""; 0]);
        assert_eq!(found("host/src/store.rs", "#[cfg(test)]\nmod tests {\n    use crate::app;\n}"), [""; 0]);
        assert_eq!(found("host/src/store.rs", "#[cfg(test)]\nmod tests;\nuse crate::app;").len(), 1);
    }

    #[test]
    fn every_module_stands_in_the_list() {
        assert_eq!(found("host/src/lib.rs", "").len(), 0);
        let files = [File { path: LIST.into(), text: "//! - [`app`]\npub mod app;\npub mod other;\n".into() }];
        let mut problems = Problems::default();
        check(&files, &mut problems).unwrap();
        assert_eq!(problems.0, ["host/src/lib.rs:3: other is missing in the list of layers above"]);
    }
}
