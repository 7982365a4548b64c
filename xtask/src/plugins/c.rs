//! Plugins in C: folders in `plugins/` with one `.c` file and no `Cargo.toml`.
//!
//! They need clang and lld, which not everybody has: without them they are left out, and it is said what to install.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{PLUGINS, install};
use crate::process::{self, output_of};
use crate::workspace::{self, root};

/// The `.c` file of each plugin.
pub(super) fn find() -> Result<BTreeMap<String, PathBuf>> {
    let folder = root().join(PLUGINS.sources);
    let mut found = BTreeMap::new();
    for name in workspace::folders(&folder)? {
        let files = fs::read_dir(folder.join(&name)).with_context(|| format!("cannot read {name}"))?;
        let paths: Vec<PathBuf> = files.filter_map(|file| Some(file.ok()?.path())).collect();
        let source = paths.iter().find(|path| path.extension().is_some_and(|ending| ending == "c"));
        if let (Some(source), false) = (source, paths.iter().any(|path| path.ends_with("Cargo.toml"))) {
            found.insert(name, source.clone());
        }
    }
    Ok(found)
}

/// Builds them, if that is possible here.
pub(super) fn build(plugins: &BTreeMap<String, PathBuf>) -> Result<()> {
    if plugins.is_empty() {
        return Ok(());
    }
    if let Err(reason) = compiler() {
        let names: Vec<&str> = plugins.keys().map(String::as_str).collect();
        println!("    skipping {}: {reason:#}", names.join(", "));
        return Ok(());
    }
    let folder = root().join("target/guests/c");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for (name, source) in plugins {
        let built = folder.join(name).with_extension("wasm");
        compile(source, &built)?;
        install(name, &built, &root().join(PLUGINS.results).join(name).with_extension("wasm"))?;
    }
    Ok(())
}

fn compile(source: &Path, built: &Path) -> Result<()> {
    let mut clang = Command::new("clang");
    clang.args(["--target=wasm32", "-O2", "-Wall", "-Wextra", "-Werror", "-nostdlib", "-Wl,--no-entry", "-o"]);
    process::run(&format!("clang on {}", source.display()), clang.arg(built).arg(source))
}

fn compiler() -> Result<()> {
    let cure = "on Debian, `apt-get install clang lld`";
    let targets = output_of(Command::new("clang").arg("--print-targets"));
    let targets = targets.with_context(|| format!("clang is not installed; {cure}"))?;
    if !targets.contains("wasm32") {
        bail!("this clang does not build for WebAssembly; {cure}");
    }
    output_of(Command::new("wasm-ld").arg("--version")).with_context(|| format!("wasm-ld is not installed; {cure}"))?;
    Ok(())
}
