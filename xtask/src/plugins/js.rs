//! Plugins in JavaScript: folders in `plugins/` with a `package.json`, whose `npm run build` leaves `build/NAME.wasm`.
//!
//! They need npm, and what it fetches once, which is checked against the lock file; no script of what was fetched is run by
//! the installation. Without npm or the network they are left out, and it is said why. Every build gives other bytes, so
//! nothing is built whose sources are as they were.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use anyhow::{Context, Result, bail};

use super::{PLUGINS, install};
use crate::process::{self, output_of};
use crate::workspace::{self, root};

const OLDEST_NODE: u32 = 18;
/// What a build leaves in a plugin's folder.
const MADE: [&str; 2] = ["build", "node_modules"];

/// The folder of each plugin.
pub(super) fn find() -> Result<BTreeMap<String, PathBuf>> {
    let folder = root().join(PLUGINS.sources);
    let with_paths = workspace::folders(&folder)?.into_iter().map(|name| (name.clone(), folder.join(name)));
    Ok(with_paths.filter(|(_, path)| path.join("package.json").exists()).collect())
}

/// Builds them, if that is possible here.
pub(super) fn build(plugins: &BTreeMap<String, PathBuf>) -> Result<()> {
    for (name, folder) in plugins {
        if changed(&result(name))? >= changed(folder)?.max(changed(&root().join("sdk/wit"))?) {
            println!("    {name:<12}            unchanged  {}", shown(&result(name)));
            continue;
        }
        if let Err(reason) = fetch(folder) {
            println!("    skipping {name}: {reason:#}");
            continue;
        }
        let mut npm = npm(folder);
        process::run(&format!("`npm run build` of {name}"), npm.args(["run", "build", "--silent"]))?;
        let built = folder.join("build").join(name).with_extension("wasm");
        install(name, &built, &result(name))?;
    }
    Ok(())
}

/// Where a plugin's `.wasm` goes.
pub(super) fn result(name: &str) -> PathBuf {
    root().join(PLUGINS.results).join(name).with_extension("wasm")
}

/// When something was last changed, in a folder everything that is not made by a build; none if it isn't there.
fn changed(path: &Path) -> Result<Option<SystemTime>> {
    let Ok(about) = fs::metadata(path) else { return Ok(None) };
    if !about.is_dir() {
        return Ok(Some(about.modified()?));
    }
    let entries = fs::read_dir(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut last = None;
    for entry in entries {
        let entry = entry?;
        if !MADE.iter().any(|made| entry.file_name() == *made) {
            last = last.max(changed(&entry.path())?);
        }
    }
    Ok(last)
}

/// Sees to it that what the lock file names is there.
fn fetch(folder: &Path) -> Result<()> {
    let cure = "on Debian, `apt-get install npm`";
    output_of(Command::new("npm").arg("--version")).with_context(|| format!("npm is not installed; {cure}"))?;
    let node = output_of(Command::new("node").arg("--version")).context("node is not installed")?;
    let major = node.trim().trim_start_matches('v').split('.').next().and_then(|major| major.parse::<u32>().ok());
    if major.is_none_or(|major| major < OLDEST_NODE) {
        bail!("it takes node {OLDEST_NODE} or newer, and this is {}", node.trim());
    }
    if changed(&folder.join("node_modules/.package-lock.json"))? >= changed(&folder.join("package-lock.json"))? {
        return Ok(());
    }
    println!("    fetching what {} is built with (38 MB)", shown(folder));
    let mut npm = npm(folder);
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]);
    npm.args(["--fetch-retries", "1", "--fetch-timeout", "30000"]);
    process::run("`npm ci`", &mut npm)
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

fn npm(folder: &Path) -> Command {
    let mut npm = Command::new("npm");
    npm.current_dir(folder);
    npm
}
