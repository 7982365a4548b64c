//! `cargo xtask tidy`: what a reader would object to and no compiler does.
//!
//! Reads the files of the repository, changes nothing, and names every problem with file and line before it fails.

mod book;
mod layers;
mod links;
mod text;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::workspace::{read, root};

/// Folders at the root that hold results, not sources.
const RESULTS: [&str; 5] = ["target", "data", ".git", "plugins/hello-js/node_modules", "plugins/hello-js/build"];
const CHECKED: [&str; 8] = ["rs", "toml", "md", "wit", "ftl", "html", "css", "js"];

/// One file of the repository.
struct File {
    /// Relative to the root, with `/`.
    path: String,
    text: String,
}

impl File {
    fn is(&self, extension: &str) -> bool {
        Path::new(&self.path).extension().is_some_and(|ending| ending == extension)
    }
}

/// What was found, as `path:line: what is wrong`.
#[derive(Default)]
struct Problems(Vec<String>);

impl Problems {
    fn add(&mut self, file: &File, line: usize, what: impl std::fmt::Display) {
        self.0.push(format!("{}:{}: {what}", file.path, line + 1));
    }
}

/// The command.
pub(crate) fn run(args: &[String]) -> Result<()> {
    if let Some(arg) = args.first() {
        bail!("`cargo xtask tidy` takes no {arg:?}");
    }
    crate::step("tidy: layout, layering, forgotten notes, links", check)
}

/// The checks.
pub(crate) fn check() -> Result<()> {
    let files = files()?;
    let mut problems = Problems::default();
    for file in &files {
        text::check(file, &mut problems);
        if file.is("md") {
            links::check(&root(), file, &mut problems);
        }
        if file.path.ends_with("Cargo.toml") && file.path != "Cargo.toml" {
            manifest(file, &mut problems);
        }
    }
    book::check(&files, &mut problems);
    layers::check(&files, &mut problems)?;
    problems
        .0
        .extend(crate::bot_api::stale()?.iter().map(|path| format!("{path}:1: stale: call `cargo xtask bot-api`")));
    if !problems.0.is_empty() {
        problems.0.iter().for_each(|problem| println!("{problem}"));
        bail!("{} things to tidy up, listed above", problems.0.len());
    }
    println!("    {} files looked at", files.len());
    Ok(())
}

fn files() -> Result<Vec<File>> {
    let root = root();
    let mut files = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("cannot read the folder {}", folder.display()))? {
            let path: PathBuf = entry?.path();
            let relative = path.strip_prefix(&root).expect("it was found below the root");
            if path.is_dir() {
                if !RESULTS.iter().any(|name| relative == Path::new(name)) {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|ending| CHECKED.iter().any(|known| ending == *known)) {
                files.push(File { path: relative.to_string_lossy().into_owned(), text: read(&path)? });
            }
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

/// Versions stand once, in the root manifest, and so do the lints.
fn manifest(file: &File, problems: &mut Problems) {
    if file.text.lines().any(|line| line == "[workspace]") {
        // A workspace of its own.
        return;
    }
    let mut section = "";
    for (number, line) in file.text.lines().enumerate() {
        if line.starts_with('[') {
            section = line;
        } else if section.ends_with("dependencies]") && line.contains('=') && !line.starts_with('#') {
            let shared = line.contains("workspace = true") || line.contains("path = ");
            if !shared {
                problems.add(file, number, "versions of dependencies belong in [workspace.dependencies] of the root");
            }
        }
    }
    if !file.text.contains("[lints]\nworkspace = true") {
        problems.add(file, 0, "lacks `[lints]` with `workspace = true`");
    }
}
