//! Where the repository's files lie, and how cargo is called from within cargo.
//!
//! Owns nothing that runs: it only makes paths and commands.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

/// The root of the repository, wherever the command was called.
pub(crate) fn root() -> PathBuf {
    let xtask = env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    xtask.parent().expect("xtask lies in the root of the repository").to_path_buf()
}

/// Where cargo builds the host and the tests.
pub(crate) fn target_dir() -> PathBuf {
    root().join(env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// The host as `cargo build` leaves it.
pub(crate) fn host_binary() -> PathBuf {
    target_dir().join("debug/botyard")
}

/// `cargo` at the root of the repository.
pub(crate) fn cargo() -> Command {
    cargo_at(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// As [`cargo`], with a cargo of one's choice.
pub(crate) fn cargo_at(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root());
    // `cargo run` describes xtask itself in the environment. Build scripts of dependencies that watch these variables
    // would run again for every change between `cargo build` and `cargo xtask`.
    for (name, _) in env::vars_os() {
        let describes_xtask = name.to_str().is_some_and(|name| {
            name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") || name.starts_with("CARGO_BIN_")
        });
        if describes_xtask {
            command.env_remove(name);
        }
    }
    command
}

/// What stands after `key = ` in the `[package]` section of a manifest.
pub(crate) fn package_name(manifest: &Path) -> Result<String> {
    let text = read(manifest)?;
    let package = text.split("\n[").find(|section| section.trim_start_matches('[').starts_with("package]"));
    package
        .and_then(|section| section.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"')))
        .map(str::to_owned)
        .with_context(|| format!("{} has no line `name = \"…\"` in [package]", manifest.display()))
}

/// The names of the folders in `folder`, sorted; none when it does not exist.
pub(crate) fn folders(folder: &Path) -> Result<Vec<String>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| format!("cannot read the folder {}", folder.display())),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// A text file, with its name in the error.
pub(crate) fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}
