//! `botyard build`: a plugin's crate in, one `.wasm` file out.
//!
//! cargo does the work. The file is loaded once, as the host would, before it takes the place of the one that was
//! there: a host that watches it never sees half a file or a broken one.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use serde_json::Value as Json;

use super::check::size;
use super::exit::{Exit, WrongArgument};
use super::inspect::Inspector;
use super::{say, tell};

/// No operating system, no WASI: a plugin sees the host and nothing else.
const TARGET: &str = "wasm32-unknown-unknown";
const FLAGS: &str = "CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS";
/// Every run begins with fresh memory: a small stack means fewer pages to touch.
const SMALL_STACK: &str = "-Clink-arg=-zstack-size=65536";

/// Build a plugin's crate into a .wasm file
///
/// cargo builds it for wasm32-unknown-unknown, with the profile `plugin` where the workspace has one,
/// else `release`. The file is put in its place only when the host can load it.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Build {
    /// The folder of the plugin's Cargo.toml
    #[arg(value_name = "DIR", default_value = ".")]
    folder: PathBuf,
    /// Where to put it; by default NAME.wasm in the current folder
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl Build {
    pub(super) fn run(self) -> anyhow::Result<Exit> {
        let package = Package::find(&self.folder)?;
        find_target(&self.folder)?;
        tell(&format!("building {} with the profile `{}`", package.name, package.profile));
        let built = package.build(&self.folder)?;
        let summary = Inspector::default()
            .inspect_file(&built)
            .map_err(|error| anyhow!("cargo has built {}, but the host can't load it: {error}", built.display()))?;
        let out = self.out.unwrap_or_else(|| PathBuf::from(format!("{}.wasm", package.name)));
        replace(&built, &out).with_context(|| format!("could not write {}", out.display()))?;
        for warning in &summary.warnings {
            tell(&format!("warning: {warning}"));
        }
        say(&format!("{}: {}, version {}\n", out.display(), size(summary.bytes), summary.version));
        Ok(Exit::Done)
    }
}

pub(super) struct Package {
    pub(super) name: String,
    id: String,
    profile: &'static str,
}

impl Package {
    /// The package whose manifest lies in `folder`.
    pub(super) fn find(folder: &Path) -> anyhow::Result<Self> {
        let manifest = folder.join("Cargo.toml");
        let Ok(manifest) = manifest.canonicalize() else {
            let message = format!("there is no {}; name the folder of a plugin's crate", manifest.display());
            return Err(WrongArgument(message).into());
        };
        let mut metadata = cargo(folder);
        metadata.args(["metadata", "--no-deps", "--format-version", "1", "--manifest-path"]).arg(&manifest);
        let metadata: Json = serde_json::from_slice(&output(metadata)?).context("could not read cargo's metadata")?;
        let package = metadata["packages"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|package| package["manifest_path"].as_str().is_some_and(|path| Path::new(path) == manifest))
            .ok_or_else(|| WrongArgument(format!("{} has no [package]: it is not a plugin", manifest.display())))?;
        let text = |value: &Json| value.as_str().map(str::to_owned).context("cargo's metadata lacks a name");
        let mut targets = package["targets"].as_array().into_iter().flatten();
        if !targets.any(is_cdylib) {
            let message = format!("{} builds no plugin; add:\n\n[lib]\ncrate-type = [\"cdylib\"]", manifest.display());
            return Err(WrongArgument(message).into());
        }
        let workspace = Path::new(metadata["workspace_root"].as_str().unwrap_or_default()).join("Cargo.toml");
        Ok(Self { name: text(&package["name"])?, id: text(&package["id"])?, profile: profile(&workspace) })
    }

    /// Runs cargo, its progress on stderr, and answers with the file it made.
    fn build(&self, folder: &Path) -> anyhow::Result<PathBuf> {
        let mut build = cargo(folder);
        build.args(["build", "--target", TARGET, "--profile", self.profile, "--package", &self.id]);
        build.args(["--lib", "--message-format", "json-render-diagnostics"]);
        if std::env::var_os(FLAGS).is_none() {
            build.env(FLAGS, SMALL_STACK);
        }
        let messages = output(build)?;
        let artifact = messages
            .split(|byte| *byte == b'\n')
            .filter_map(|line| serde_json::from_slice::<Json>(line).ok())
            .filter(|message| message["reason"] == "compiler-artifact" && message["package_id"] == self.id.as_str())
            .filter(|message| is_cdylib(&message["target"]))
            .find_map(|message| {
                let files = message["filenames"].as_array()?;
                files.iter().filter_map(Json::as_str).find(|file| file.ends_with(".wasm")).map(PathBuf::from)
            });
        artifact.context("cargo has built the crate, but no .wasm file")
    }
}

fn is_cdylib(target: &Json) -> bool {
    target["crate_types"].as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "cdylib"))
}

pub(super) fn profile(workspace: &Path) -> &'static str {
    let manifest = fs::read_to_string(workspace).ok().and_then(|text| text.parse::<toml::Table>().ok());
    let has_profile = manifest.is_some_and(|manifest| {
        manifest.get("profile").and_then(|profiles| profiles.get("plugin")).is_some_and(toml::Value::is_table)
    });
    if has_profile { "plugin" } else { "release" }
}

/// Makes sure that the compiler has the target, with rustup's help if it must.
fn find_target(folder: &Path) -> anyhow::Result<()> {
    if has_target(folder)? {
        return Ok(());
    }
    tell(&format!("the compiler lacks the target {TARGET}; trying: rustup target add {TARGET}"));
    let added = Command::new("rustup").args(["target", "add", TARGET]).current_dir(folder).status();
    if added.is_ok_and(|status| status.success()) && has_target(folder)? {
        return Ok(());
    }
    bail!(
        "the compiler lacks the target {TARGET}, and rustup could not add it; with rustup (https://rustup.rs): \
         rustup target add {TARGET}; with another Rust, install its standard library for that target, or name a \
         compiler that has it in the variable RUSTC"
    )
}

fn has_target(folder: &Path) -> anyhow::Result<bool> {
    let mut rustc = tool("RUSTC", "rustc", folder);
    rustc.args(["--print", "target-libdir", "--target", TARGET]);
    let libraries = output(rustc)?;
    let libraries = PathBuf::from(String::from_utf8_lossy(&libraries).trim());
    let names = fs::read_dir(libraries).into_iter().flatten().flatten().map(|entry| entry.file_name());
    Ok(names.into_iter().any(|name| name.to_string_lossy().starts_with("libstd-")))
}

fn cargo(folder: &Path) -> Command {
    let mut cargo = tool("CARGO", "cargo", folder);
    // They would replace the flags for the target, which keep a plugin small.
    cargo.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
    cargo
}

fn tool(variable: &str, name: &str, folder: &Path) -> Command {
    let mut command = Command::new(std::env::var_os(variable).unwrap_or_else(|| OsString::from(name)));
    // Its folder may choose a toolchain and hold settings for cargo.
    command.current_dir(folder).stdin(Stdio::null()).stderr(Stdio::inherit());
    command
}

fn output(mut command: Command) -> anyhow::Result<Vec<u8>> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .with_context(|| format!("could not run {program}; plugins are built with Rust, see https://rustup.rs"))?;
    if !output.status.success() {
        bail!("{program} has failed ({}); what it said is above", output.status);
    }
    Ok(output.stdout)
}

pub(super) fn replace(built: &Path, out: &Path) -> anyhow::Result<()> {
    let folder = out.parent().unwrap_or(Path::new(""));
    fs::create_dir_all(folder)?;
    let name = out.file_name().context("that is not the name of a file")?;
    let unfinished = folder.join(format!(".{}.{}.unfinished", name.to_string_lossy(), std::process::id()));
    let renamed = fs::copy(built, &unfinished).and_then(|_| fs::rename(&unfinished, out));
    if renamed.is_err() {
        // It is of no use to anybody, and may not be there at all.
        fs::remove_file(&unfinished).unwrap_or_default();
    }
    Ok(renamed?)
}
