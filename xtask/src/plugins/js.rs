//! Plugins in JavaScript: folders in `plugins/` with a `package.json`, whose `npm run build` leaves `build/NAME.wasm`.
//!
//! They need npm, and what it fetches once, which is checked against the lock file; no script of what was fetched is run by
//! the installation. Without npm or the network they are left out, and it is said why.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::{PLUGINS, install};
use crate::process::{self, output_of};
use crate::workspace::{self, root};

/// The folder of each plugin.
pub(super) fn find() -> Result<BTreeMap<String, PathBuf>> {
    let folder = root().join(PLUGINS.sources);
    let with_paths = workspace::folders(&folder)?.into_iter().map(|name| (name.clone(), folder.join(name)));
    Ok(with_paths.filter(|(_, path)| path.join("package.json").exists()).collect())
}

/// Builds them, if that is possible here.
pub(super) fn build(plugins: &BTreeMap<String, PathBuf>) -> Result<()> {
    for (name, folder) in plugins {
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

/// Sees to it that what the lock file names is there.
fn fetch(folder: &Path) -> Result<()> {
    let cure = "on Debian, `apt-get install npm`";
    output_of(Command::new("npm").arg("--version")).with_context(|| format!("npm is not installed; {cure}"))?;
    let changed = |file: &str| fs::metadata(folder.join(file)).and_then(|data| data.modified()).ok();
    if changed("node_modules/.package-lock.json") >= changed("package-lock.json") {
        return Ok(());
    }
    println!("    fetching what {} is built with (38 MB)", folder.display());
    let mut npm = npm(folder);
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]);
    npm.args(["--fetch-retries", "1", "--fetch-timeout", "30000"]);
    process::run("`npm ci`", &mut npm)
}

fn npm(folder: &Path) -> Command {
    let mut npm = Command::new("npm");
    npm.current_dir(folder);
    npm
}
