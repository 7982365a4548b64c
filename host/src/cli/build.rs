//! `botyard build`: a plugin's crate in, one `.wasm` file out.
//!
//! cargo does the work. The file is loaded once, as the host would, before it takes the place of the one that was
//! there: a host that watches it never sees half a file or a broken one.

pub(super) mod toolchain;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, anyhow};
use clap::Args;
use serde_json::Value as Json;

use self::toolchain::{Toolchain, cargo, output};
use super::check::size;
use super::exit::{Exit, WrongArgument};
use super::inspect::{Inspector, Summary};
use super::{say, tell};

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
        let toolchain = toolchain::find(&self.folder)?;
        tell(&format!("building {} with the profile `{}`; {}", package.name, package.profile, toolchain.describe()));
        let out = self.out.unwrap_or_else(|| PathBuf::from(format!("{}.wasm", package.name)));
        let summary = package.make(&self.folder, &toolchain, &out, false)?;
        say(&format!("{}: {}, version {}\n", out.display(), size(summary.bytes), summary.version));
        Ok(Exit::Done)
    }
}

pub(super) struct Package {
    pub(super) name: String,
    /// Where cargo puts what it makes.
    pub(super) target: PathBuf,
    id: String,
    profile: &'static str,
    /// The profile strips debug information.
    strips: bool,
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
        let metadata: Json =
            serde_json::from_slice(&output(&mut metadata)?).context("could not read cargo's metadata")?;
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
        let (profile, strips) = profile(&workspace);
        Ok(Self {
            name: text(&package["name"])?,
            target: text(&metadata["target_directory"])?.into(),
            id: text(&package["id"])?,
            profile,
            strips,
        })
    }

    /// Where cargo notes what the plugin was made of, once it has been built.
    pub(super) fn dependencies_file(&self) -> Option<PathBuf> {
        let folder = self.target.join(toolchain::TARGET).join(self.profile);
        Some(folder.join(format!("{}.d", self.name.replace('-', "_")))).filter(|file| file.exists())
    }

    /// Builds it so that a change takes as little time as it can, for a host that watches the file and looks for itself
    /// whether it can load it.
    pub(super) fn make_fast(&self, folder: &Path, toolchain: &Toolchain, out: &Path) -> anyhow::Result<()> {
        let profile = self.profile.to_uppercase();
        let settings = [("LTO", "off"), ("CODEGEN_UNITS", "16"), ("INCREMENTAL", "true")];
        let settings = settings.map(|(key, value)| (format!("CARGO_PROFILE_{profile}_{key}"), value));
        let mut cargo = toolchain.build(folder, self.strips);
        cargo.envs(settings);
        let note = self.hush(&mut cargo, "fast");
        let built = self.build(&mut cargo)?;
        note.leave();
        replace(&built, out).with_context(|| format!("could not write {}", out.display()))
    }

    /// Builds it, and puts the file in its place once the host can load it. Quietly: only what goes wrong is told, from
    /// the second time on.
    pub(super) fn make(
        &self,
        folder: &Path,
        toolchain: &Toolchain,
        out: &Path,
        quietly: bool,
    ) -> anyhow::Result<Summary> {
        let mut cargo = toolchain.build(folder, self.strips);
        let note = quietly.then(|| self.hush(&mut cargo, "whole"));
        let built = self.build(&mut cargo)?;
        if let Some(note) = note {
            note.leave();
        }
        let summary = Inspector::default()
            .inspect_file(&built)
            .map_err(|error| anyhow!("cargo has built {}, but the host can't load it: {error}", built.display()))?;
        replace(&built, out).with_context(|| format!("could not write {}", out.display()))?;
        Ok(summary)
    }

    /// Lets cargo speak only of what goes wrong, except when it builds with these settings for the first time: all that
    /// the plugin is made of is compiled then, and whoever waits wants to know for what.
    fn hush(&self, cargo: &mut Command, settings: &str) -> FirstTime {
        let note = FirstTime(self.target.join("botyard").join(format!("built-{settings}")));
        if note.is_over() {
            cargo.arg("--quiet");
        } else {
            tell(
                "the first time, all that a plugin is made of is compiled too: a minute or so; then it takes a second",
            );
        }
        note
    }

    /// Runs cargo, its progress on stderr, and answers with the file it made.
    fn build(&self, build: &mut Command) -> anyhow::Result<PathBuf> {
        build.args(["--profile", self.profile, "--package", &self.id]);
        build.args(["--lib", "--message-format", "json-render-diagnostics"]);
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

/// A note beside what cargo has made, and gone with it, that there was a first time.
struct FirstTime(PathBuf);

impl FirstTime {
    fn is_over(&self) -> bool {
        self.0.exists()
    }

    fn leave(&self) {
        let folder = self.0.parent().unwrap_or(Path::new(""));
        // Without it the next build is told of at length once more.
        fs::create_dir_all(folder).and_then(|()| fs::write(&self.0, "")).unwrap_or_default();
    }
}

fn is_cdylib(target: &Json) -> bool {
    target["crate_types"].as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "cdylib"))
}

/// The profile to build with, and whether it says that debug information is stripped.
pub(super) fn profile(workspace: &Path) -> (&'static str, bool) {
    let manifest = fs::read_to_string(workspace).ok().and_then(|text| text.parse::<toml::Table>().ok());
    let profiles = manifest.as_ref().and_then(|manifest| manifest.get("profile"));
    let named = |name| profiles.and_then(|profiles| profiles.get(name)).and_then(toml::Value::as_table);
    let name = if named("plugin").is_some() { "plugin" } else { "release" };
    let strip = named(name).and_then(|profile| profile.get("strip"));
    (name, strip.is_some_and(|strip| strip.as_bool().unwrap_or(strip.as_str() != Some("none"))))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_build_with_some_settings_is_told_and_no_other() {
        let target = tempfile::tempdir().unwrap();
        let package = Package {
            name: "tea".to_owned(),
            target: target.path().into(),
            id: "tea".to_owned(),
            profile: "release",
            strips: true,
        };
        let is_quiet = |settings: &str| {
            let mut cargo = Command::new("cargo");
            let note = package.hush(&mut cargo, settings);
            (cargo.get_args().any(|arg| arg == "--quiet"), note)
        };
        let (quiet, note) = is_quiet("fast");
        assert!(!quiet);
        assert!(!is_quiet("fast").0, "it may not have succeeded");
        note.leave();
        assert!(is_quiet("fast").0);
        assert!(!is_quiet("whole").0, "other settings compile everything once more");
    }
}
