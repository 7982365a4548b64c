//! Finds the host and the plugins, building them first, once per test run.
//!
//! `cargo xtask test` has built them already and says so by `BOTYARD_BUILT`; a plain `cargo test` gets them here, so
//! that no test ever runs against something stale.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;

/// The example plugin `name`.
///
/// # Panics
/// When it can't be built.
#[must_use]
pub fn plugin(name: &str) -> PathBuf {
    build();
    existing(target().join("plugins").join(format!("{name}.wasm")))
}

/// The test guest `name`.
///
/// # Panics
/// When it can't be built.
#[must_use]
pub fn guest(name: &str) -> PathBuf {
    build();
    existing(target().join("guests-wasm").join(format!("{name}.wasm")))
}

/// The host's program.
///
/// # Panics
/// When it can't be built.
#[must_use]
pub fn host() -> PathBuf {
    build();
    let own = std::env::current_exe().expect("a program knows its own path");
    // Tests are in target/PROFILE/deps, programs in target/PROFILE.
    let beside = own.ancestors().skip(1).take(2).map(|folder| folder.join("botyard")).find(|path| path.is_file());
    beside.unwrap_or_else(|| panic!("there is no host near {}; run `cargo xtask test`", own.display()))
}

fn build() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if std::env::var_os("BOTYARD_BUILT").is_some() {
            return;
        }
        let cargo = |arguments: &[&str]| {
            let status = Command::new("cargo").args(arguments).current_dir(root()).status();
            assert!(status.is_ok_and(|status| status.success()), "cargo {} failed", arguments.join(" "));
        };
        // Benchmarks are built for release, and so is what they measure.
        let profile = if cfg!(debug_assertions) { "dev" } else { "release" };
        cargo(&["build", "--quiet", "--package", "botyard", "--profile", profile]);
        cargo(&["xtask", "plugins", "--guests"]);
    });
}

fn existing(path: PathBuf) -> PathBuf {
    assert!(path.exists(), "{} is not there; run `cargo xtask test`", path.display());
    path
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace is one folder up").to_owned()
}

fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}
