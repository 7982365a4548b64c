//! `cargo xtask plugins`: guests to WebAssembly.
//!
//! One cargo call builds all of them, in a target folder of its own so that it never fights with the host's build.
//! Results are written whole (beside, then renamed) and only when their content has changed: a running host that
//! watches them loads each new version once.

mod c;
mod js;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::process::{self, Running};
use crate::wasm::{self, Source};
use crate::workspace::{self, root};

/// A folder of guests, and where their `.wasm` goes.
struct Kind {
    sources: &'static str,
    results: &'static str,
}

const PLUGINS: Kind = Kind { sources: "plugins", results: "target/plugins" };
const GUESTS: Kind = Kind { sources: "tests/guests", results: "target/guests-wasm" };

/// One crate to build.
struct Guest {
    package: String,
    manifest: PathBuf,
    result: PathBuf,
}

/// The command.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let mut names = Vec::new();
    let mut guests = false;
    let mut from = None;
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--guests" => guests = true,
            "--wasm-from" => from = Some(wasm_from(args.next())?),
            flag if flag.starts_with('-') => {
                bail!("`cargo xtask plugins` knows no {flag}; see `cargo xtask help plugins`")
            }
            name => names.push(name.to_owned()),
        }
    }
    build(&names, guests, from)
}

/// The value of `--wasm-from`.
pub(crate) fn wasm_from(value: Option<&String>) -> Result<Source> {
    Source::parse(value.context("--wasm-from needs a value: installed, rustup or debian")?)
}

/// Builds plugins, and the tests' guests when `guests`; with names, only those.
pub(crate) fn build(names: &[String], guests: bool, from: Option<Source>) -> Result<()> {
    let mut wanted = find(&PLUGINS)?;
    if guests {
        wanted.append(&mut find(&GUESTS)?);
    }
    let (mut in_c, mut in_js) = (c::find()?, js::find()?);
    let known: Vec<&String> = wanted.keys().chain(in_c.keys()).chain(in_js.keys()).collect();
    if let Some(name) = names.iter().find(|name| !known.contains(name)) {
        let known: Vec<&str> = known.into_iter().map(String::as_str).collect();
        bail!("there is no plugin {name:?}; there are {}", known.join(", "));
    }
    let is_wanted = |name: &String| names.is_empty() || names.contains(name);
    wanted.retain(|name, _| is_wanted(name));
    in_c.retain(|name, _| is_wanted(name));
    in_js.retain(|name, _| is_wanted(name));
    c::build(&in_c)?;
    js::build(&in_js)?;
    if wanted.is_empty() && !(in_c.is_empty() && in_js.is_empty()) {
        return Ok(());
    }
    if wanted.is_empty() {
        bail!("there is nothing to build in {}", PLUGINS.sources);
    }
    let toolchain = wasm::find(from)?;
    let shown: Vec<&str> = wanted.keys().map(String::as_str).collect();
    println!("    building {}", shown.join(", "));
    let built = compile(&toolchain, &wanted)?;
    for (name, guest) in &wanted {
        let from = built.get(&guest.manifest).with_context(|| {
            format!("{name} gave no .wasm: its Cargo.toml needs `[lib]` with `crate-type = [\"cdylib\"]`")
        })?;
        install(name, from, &guest.result)?;
    }
    Ok(())
}

/// Plays the conversation scripts of the example plugins, each plugin alone, with the host that was built.
pub(crate) fn chats() -> Result<()> {
    let host = root().join("target/debug/botyard");
    let of_cargo = find(&PLUGINS)?.into_iter().map(|(name, guest)| (name, guest.result));
    // Those in JavaScript are there only where they could be built.
    let in_js = js::find()?.into_keys().map(|name| (name.clone(), js::result(&name)));
    for (name, wasm) in of_cargo.chain(in_js.filter(|(_, wasm)| wasm.exists())) {
        let scripts = root().join(PLUGINS.sources).join(&name);
        let mut test = Command::new(&host);
        test.arg("test").arg("--plugin").arg(format!("{name}={}", wasm.display())).arg(scripts);
        process::run(&format!("`botyard test` of {name}"), &mut test)
            .with_context(|| format!("`cargo xtask test build plugins chats` brings {name} up to date first"))?;
    }
    Ok(())
}

fn find(kind: &Kind) -> Result<BTreeMap<String, Guest>> {
    let folder = root().join(kind.sources);
    let mut found = BTreeMap::new();
    for name in workspace::folders(&folder)? {
        let manifest = folder.join(&name).join("Cargo.toml");
        if manifest.exists() {
            let package = workspace::package_name(&manifest)?;
            let result = root().join(kind.results).join(&name).with_extension("wasm");
            found.insert(name, Guest { package, manifest, result });
        }
    }
    Ok(found)
}

/// Runs cargo; answers with the `.wasm` of each manifest.
fn compile(toolchain: &wasm::Toolchain, guests: &BTreeMap<String, Guest>) -> Result<BTreeMap<PathBuf, PathBuf>> {
    let mut command = toolchain.build();
    command.args(["--profile", "plugin", "--message-format", "json-render-diagnostics", "--target-dir"]);
    command.arg(root().join("target/guests")).stdout(Stdio::piped());
    for guest in guests.values() {
        command.args(["-p", &guest.package]);
    }
    let mut cargo = Running::start("cargo", &mut command)?;
    let messages = BufReader::new(cargo.child().stdout.take().expect("stdout is piped"));
    let mut built = BTreeMap::new();
    for line in messages.lines() {
        let line = line.context("cannot read what cargo says")?;
        // Other lines, such as what a build script of a guest prints, are of no interest.
        if let Some((manifest, wasm)) = serde_json::from_str(&line).ok().as_ref().and_then(artifact) {
            built.insert(manifest, wasm);
        }
    }
    let status = cargo.wait()?;
    if process::interrupted() {
        bail!("interrupted");
    }
    if !status.success() {
        bail!("building the guests failed ({status}); cargo's message is above");
    }
    Ok(built)
}

/// Manifest and `.wasm` of a message about one.
fn artifact(message: &Value) -> Option<(PathBuf, PathBuf)> {
    let files = message.get("filenames")?.as_array()?;
    let wasm = files.iter().filter_map(Value::as_str).find(|file| file.ends_with(".wasm"))?;
    Some((message.get("manifest_path")?.as_str()?.into(), wasm.into()))
}

fn install(name: &str, from: &Path, to: &Path) -> Result<()> {
    let content = fs::read(from).with_context(|| format!("cannot read {}", from.display()))?;
    let size = content.len().div_ceil(1024);
    let before = fs::read(to).ok();
    let shown = to.strip_prefix(root()).unwrap_or(to).display().to_string();
    if before.as_ref() == Some(&content) {
        println!("    {name:<12} {size:>5} KiB  unchanged  {shown}");
        return Ok(());
    }
    let folder = to.parent().expect("results lie in a folder");
    let fresh = folder.join(format!(".{name}.wasm.new"));
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(&fresh, &content))
        .and_then(|()| fs::rename(&fresh, to))
        .with_context(|| format!("cannot write {}", to.display()))?;
    let word = if before.is_some() { "changed" } else { "new" };
    println!("    {name:<12} {size:>5} KiB  {word:<9}  {shown}");
    Ok(())
}
