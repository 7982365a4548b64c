//! `cargo xtask bot-api`: the SDK's typed Bot API, made from `sdk/bot-api.json`.
//!
//! The file holds facts only: names, types, what is required, what is one of what. Everything that depends on them is
//! written by [`emit`] and committed; `cargo xtask tidy` says when it is stale. Adding a new Bot API means writing its
//! new lines into the file and calling this.

mod emit;
mod spec;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::workspace::{read, root};
use spec::Spec;

const SPEC: &str = "sdk/bot-api.json";
const MODULES: &str = "sdk/src/api/generated";

/// The command.
pub(crate) fn run(args: &[String]) -> Result<()> {
    if let Some(arg) = args.first() {
        bail!("`cargo xtask bot-api` takes no {arg:?}");
    }
    crate::step("bot-api: the typed Bot API of the SDK", || {
        let files = generate()?;
        for path in strangers(&files)? {
            fs::remove_file(root().join(&path)).with_context(|| format!("cannot remove {path}"))?;
            println!("    removed    {path}");
        }
        for (path, text) in &files {
            let target = root().join(path);
            if fs::read_to_string(&target).ok().as_ref() == Some(text) {
                continue;
            }
            let folder = target.parent().expect("a file lies in a folder");
            fs::create_dir_all(folder)
                .and_then(|()| fs::write(&target, text))
                .with_context(|| format!("cannot write {path}"))?;
            println!("    written    {path}");
        }
        println!("    {} files", files.len());
        Ok(())
    })
}

/// The files that are not what they would be made to now.
pub(crate) fn stale() -> Result<Vec<String>> {
    let files = generate()?;
    let mut stale = strangers(&files)?;
    let differs = |path: &str, text: &String| fs::read_to_string(root().join(path)).ok().as_ref() != Some(text);
    stale.extend(files.iter().filter(|(path, text)| differs(path, text)).map(|(path, _)| path.clone()));
    Ok(stale)
}

/// Path and content of every generated file.
fn generate() -> Result<BTreeMap<String, String>> {
    let text = read(&root().join(SPEC))?;
    let spec = Spec::parse(&text).with_context(|| format!("{SPEC} does not fit"))?;
    emit::files(&spec, MODULES).with_context(|| format!("{SPEC} contradicts itself"))
}

/// Modules that nothing makes any more.
fn strangers(files: &BTreeMap<String, String>) -> Result<Vec<String>> {
    let folder = root().join(MODULES);
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| format!("cannot read the folder {MODULES}"))? {
        let name = entry?.file_name();
        let path = Path::new(MODULES).join(name).to_string_lossy().into_owned();
        if !files.contains_key(&path) {
            found.push(path);
        }
    }
    Ok(found)
}
