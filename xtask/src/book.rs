//! `cargo xtask book`: the guide under `docs/` as a site, in `target/book`.
//!
//! mdBook makes it: an installed one, else the one that this command has cargo build into `target/tools`, once. Nothing is
//! installed outside of `target`. What the guide must hold to without mdBook, `tidy` checks.

use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::process::{output_of, run as run_command};
use crate::workspace::{cargo, root, target_dir};

/// The version that is built where none is installed.
const VERSION: &str = "0.5.4";

/// The command.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let open = match args {
        [] => false,
        [arg] if arg == "--open" => true,
        [arg, ..] => bail!("`cargo xtask book` takes no {arg:?}; see `cargo xtask help book`"),
    };
    crate::step("book: the guide, as a site", build)?;
    if open {
        open_in_browser();
    }
    Ok(())
}

/// Builds the site, anew: pages that are gone go.
pub(crate) fn build() -> Result<()> {
    let mdbook = mdbook()?;
    let mut command = Command::new(mdbook);
    command.arg("build").arg(root().join("docs")).arg("--dest-dir").arg(folder());
    run_command("mdbook", &mut command)?;
    println!("    {}", folder().join("index.html").display());
    Ok(())
}

fn folder() -> PathBuf {
    target_dir().join("book")
}

fn mdbook() -> Result<PathBuf> {
    let works = |program: &PathBuf| output_of(Command::new(program).arg("--version")).is_some();
    let own = target_dir().join("tools/bin/mdbook");
    if let Some(found) = [PathBuf::from("mdbook"), own.clone()].into_iter().find(works) {
        return Ok(found);
    }
    println!("    mdBook is not installed: cargo builds version {VERSION} into target/tools, once (a minute or two)");
    let started = Instant::now();
    let mut command = cargo();
    command
        .args(["install", "mdbook", "--version", VERSION, "--locked", "--no-default-features", "--root"])
        .arg(target_dir().join("tools"))
        .env("CARGO_TARGET_DIR", target_dir().join("tools/build"));
    run_command("`cargo install mdbook`", &mut command)
        .context("without a network, put an mdbook into the PATH, or leave the book out")?;
    // A quarter of a gigabyte that nobody needs again.
    std::fs::remove_dir_all(target_dir().join("tools/build")).ok();
    println!("    mdBook is built ({:.0} s)", started.elapsed().as_secs_f64());
    Ok(own)
}

fn open_in_browser() {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    if output_of(Command::new(program).arg(folder().join("index.html"))).is_none() {
        println!("    there is no browser to open it in; the address is above");
    }
}
