//! Finds a compiler that can build plugins, and says which.
//!
//! Three ways, in order: the current toolchain has the target; rustup adds it; Debian's compiler is there with the
//! source of the standard library, and builds that too. What only an administrator may install is named, not installed.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

use crate::cli::tell;

/// No operating system, no WASI: a plugin sees the host and nothing else.
pub(in crate::cli) const TARGET: &str = "wasm32-unknown-unknown";
const FLAGS: &str = "CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS";
const LINKER: &str = "CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER";
/// Every run begins with fresh memory: a small stack means fewer pages to touch.
const SMALL_STACK: &str = "-Clink-arg=-zstack-size=65536";
/// Makes a plugin a twelfth smaller; the linker refuses it where debug information is kept.
const SHORT_NUMBERS: &str = "-Clink-arg=--compress-relocations";

const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
const DEBIAN_CARGO: &str = "/usr/bin/cargo";
const DEBIAN_STD: &str = "/usr/lib/rustlib/src/rust/library/std";
const DEBIAN_PACKAGES: &str = "rustc-web cargo-web rust-web-src";

/// A compiler that can build plugins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) enum Toolchain {
    /// The current one.
    Current,
    /// Debian's, with what links.
    Debian { linker: PathBuf },
}

impl Toolchain {
    /// `cargo build` for plugins, in a folder that may choose a toolchain and hold settings for cargo; with a profile
    /// that strips debug information or not.
    pub(super) fn build(&self, folder: &Path, strips: bool) -> Command {
        let mut cargo = match self {
            Self::Current => cargo(folder),
            Self::Debian { .. } => command(DEBIAN_CARGO.into(), folder),
        };
        cargo.args(["build", "--target", TARGET]);
        if std::env::var_os(FLAGS).is_none() {
            let flags = if strips { &[SMALL_STACK, SHORT_NUMBERS][..] } else { &[SMALL_STACK] };
            cargo.env(FLAGS, flags.join(" "));
        }
        // They would replace the flags for the target.
        cargo.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
        if let Self::Debian { linker } = self {
            cargo.arg("-Zbuild-std=std,panic_abort").env("RUSTC", DEBIAN_RUSTC).env("RUSTC_BOOTSTRAP", "1");
            cargo.env(LINKER, linker).env_remove("LD_LIBRARY_PATH").env_remove("RUSTUP_TOOLCHAIN");
        }
        cargo
    }

    /// In words.
    pub(in crate::cli) fn describe(&self) -> String {
        match self {
            Self::Current => format!("the current toolchain has {TARGET}"),
            Self::Debian { linker } => {
                format!("Debian's rustc builds the standard library for {TARGET}, {} links", linker.display())
            }
        }
    }
}

/// Finds a compiler, with rustup's help if it must.
pub(in crate::cli) fn find(folder: &Path) -> anyhow::Result<Toolchain> {
    if let Some(toolchain) = look(folder)? {
        return Ok(toolchain);
    }
    tell(&format!("the compiler lacks the target {TARGET}; trying: rustup target add {TARGET}"));
    let added = Command::new("rustup").args(["target", "add", TARGET]).current_dir(folder).status();
    if added.is_ok_and(|status| status.success()) && has_target(folder)? {
        return Ok(Toolchain::Current);
    }
    bail!(
        "no compiler here can build for {TARGET}, and rustup could not add it; with rustup (https://rustup.rs): \
         `rustup target add {TARGET}`; on Debian: `apt-get install {DEBIAN_PACKAGES}`; with another Rust, install its \
         standard library for that target, or name a compiler that has it in the variable RUSTC"
    )
}

/// What is there already, changing nothing.
pub(in crate::cli) fn look(folder: &Path) -> anyhow::Result<Option<Toolchain>> {
    let current = has_target(folder);
    if current.as_ref().is_ok_and(|has| *has) {
        return Ok(Some(Toolchain::Current));
    }
    match debian() {
        Some(toolchain) => Ok(Some(toolchain)),
        None => current.map(|_| None),
    }
}

/// What the compiler says of itself; `None` where there is none.
pub(in crate::cli) fn version(folder: &Path) -> Option<String> {
    let mut rustc = command(std::env::var_os("RUSTC").unwrap_or_else(|| OsString::from("rustc")), folder);
    rustc.arg("--version").stderr(Stdio::null());
    output(&mut rustc).ok().map(|said| String::from_utf8_lossy(&said).trim().to_owned())
}

fn has_target(folder: &Path) -> anyhow::Result<bool> {
    let mut rustc = command(std::env::var_os("RUSTC").unwrap_or_else(|| OsString::from("rustc")), folder);
    rustc.args(["--print", "target-libdir", "--target", TARGET]);
    let libraries = output(&mut rustc)?;
    let libraries = PathBuf::from(String::from_utf8_lossy(&libraries).trim());
    let names = fs::read_dir(libraries).into_iter().flatten().flatten().map(|entry| entry.file_name());
    Ok(names.into_iter().any(|name| name.to_string_lossy().starts_with("libstd-")))
}

/// Debian's compiler, if it is there, new enough, and can link.
fn debian() -> Option<Toolchain> {
    let is_there = [DEBIAN_RUSTC, DEBIAN_CARGO, DEBIAN_STD].iter().all(|path| Path::new(path).exists());
    if !is_there
        || minor(&said(DEBIAN_RUSTC, &["--version"])?) < minor(concat!("rustc ", env!("CARGO_PKG_RUST_VERSION")))
    {
        return None;
    }
    let mut places = Vec::new();
    for rustc in ["rustc", DEBIAN_RUSTC] {
        if let (Some(sysroot), Some(host)) =
            (said(rustc, &["--print", "sysroot"]), said(rustc, &["--print", "host-tuple"]))
        {
            places.push(Path::new(&sysroot).join("lib/rustlib").join(host).join("bin/rust-lld"));
        }
    }
    places.extend(["/usr/bin/rust-lld", "/usr/bin/wasm-ld"].map(PathBuf::from));
    let linker = places.into_iter().find(|place| place.exists())?;
    Some(Toolchain::Debian { linker })
}

/// 1 and 95 of `rustc 1.95.0 (…)`.
fn minor(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split_whitespace().nth(1)?.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

fn said(program: &str, args: &[&str]) -> Option<String> {
    let output = Command::new(program).args(args).env_remove("LD_LIBRARY_PATH").stdin(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// cargo, run in a folder.
pub(super) fn cargo(folder: &Path) -> Command {
    command(std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")), folder)
}

fn command(program: OsString, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(folder).stdin(Stdio::null()).stderr(Stdio::inherit());
    command
}

/// What a program says on stdout, if it ends well.
pub(super) fn output(command: &mut Command) -> anyhow::Result<Vec<u8>> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .with_context(|| format!("could not run {program}; plugins are built with Rust, see https://rustup.rs"))?;
    if !output.status.success() {
        bail!("{program} has failed ({}); what it said is above", output.status);
    }
    Ok(output.stdout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        assert_eq!(minor("rustc 1.95.0 (abc 2026-01-01)"), Some((1, 95)));
        assert!(minor("rustc 1.100.1") > minor("rustc 1.95"));
        assert!(minor("nonsense") < minor("rustc 1.0"));
    }

    #[test]
    fn debians_compiler_builds_the_standard_library_itself() {
        let debian = Toolchain::Debian { linker: "/usr/bin/wasm-ld".into() };
        let command = debian.build(Path::new("."), true);
        assert_eq!(command.get_program(), DEBIAN_CARGO);
        assert!(command.get_args().any(|arg| arg == "-Zbuild-std=std,panic_abort"));
        let variable = |name: &str| command.get_envs().find(|(key, _)| *key == name).and_then(|(_, value)| value);
        assert_eq!(variable("RUSTC"), Some(DEBIAN_RUSTC.as_ref()));
        assert_eq!(variable(LINKER), Some("/usr/bin/wasm-ld".as_ref()));
        let current = Toolchain::Current.build(Path::new("."), false);
        assert!(current.get_args().all(|arg| arg != "-Zbuild-std=std,panic_abort"));
    }
}
