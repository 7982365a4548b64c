//! `cargo xtask test`: every check and test, cheapest first.
//!
//! Steps run one after the other, each says what it does; the first failure ends the run and is named. Host and tests
//! share one profile, guests have theirs: a further one would compile every dependency again.

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::process::{output_of, run as run_command};
use crate::wasm::Source;
use crate::workspace::cargo;
use crate::{book, demo, plugins, step, tidy};

struct Step {
    name: &'static str,
    what: &'static str,
    slow: bool,
    work: fn(Option<Source>) -> Result<()>,
}

const STEPS: [Step; 12] = [
    Step {
        name: "tidy",
        what: "layout, layering, forgotten notes, the guide's contents and links",
        slow: false,
        work: |_| tidy::check(),
    },
    Step { name: "format", what: "rustfmt", slow: false, work: |_| format() },
    Step {
        name: "build",
        what: "host and tests (the first build compiles a WebAssembly engine: ten minutes on two cores)",
        slow: false,
        work: |_| build(),
    },
    Step {
        name: "plugins",
        what: "example plugins and test guests, to WebAssembly",
        slow: false,
        work: |from| plugins::build(&[], true, from),
    },
    Step { name: "clippy", what: "lints over everything, warnings denied", slow: false, work: |_| clippy() },
    Step { name: "docs", what: "API documentation, warnings denied", slow: true, work: |_| docs() },
    Step { name: "book", what: "the guide, as a site", slow: true, work: |_| book::build() },
    Step { name: "test", what: "unit and end-to-end tests", slow: false, work: |_| tests() },
    Step { name: "chats", what: "the example plugins' conversation scripts", slow: false, work: |_| plugins::chats() },
    Step {
        name: "demo",
        what: "a conversation with every example plugin, through the simulator",
        slow: true,
        work: |_| demo::check(),
    },
    Step { name: "browser", what: "the playground in a real browser", slow: true, work: |_| browser() },
    Step { name: "deny", what: "licences and advisories of the dependencies", slow: true, work: |_| deny() },
];

/// The command.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let mut fast = false;
    let mut from = None;
    let mut names = Vec::new();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--fast" => fast = true,
            "--wasm-from" => from = Some(plugins::wasm_from(args.next())?),
            name if STEPS.iter().any(|step| step.name == name) => names.push(name),
            other => bail!("`cargo xtask test` knows no {other:?}; see `cargo xtask help test`"),
        }
    }
    let chosen = |step: &&Step| if names.is_empty() { !(fast && step.slow) } else { names.contains(&step.name) };
    for Step { name, what, work, .. } in STEPS.iter().filter(chosen) {
        step(&format!("{name}: {what}"), || work(from))
            .with_context(|| format!("{name} failed; `cargo xtask test {name}` runs only this step"))?;
    }
    println!("everything that was run is fine");
    Ok(())
}

fn format() -> Result<()> {
    run_command("rustfmt (`cargo fmt --all` mends it)", cargo().args(["fmt", "--all", "--check"]))
}

/// All in one: building the host alone would choose other features of tokio and compile half of the dependencies twice.
fn build() -> Result<()> {
    run_command("the build", cargo().args(["build", "--workspace", "--all-targets"]))
}

fn clippy() -> Result<()> {
    run_command("clippy", cargo().args(["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"]))
}

fn docs() -> Result<()> {
    let mut command = cargo();
    command.args(["doc", "--workspace", "--no-deps", "--quiet"]).env("RUSTDOCFLAGS", "-D warnings");
    run_command("`cargo doc`", &mut command)
}

fn tests() -> Result<()> {
    run_command("`cargo test`", cargo().args(["test", "--workspace"]))
}

/// The programs that the page is tested with, by the names that distributions give them.
const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

fn browser() -> Result<()> {
    let named = std::env::var("BOTYARD_BROWSER").ok().filter(|program| !program.is_empty());
    let works = |program: &str| output_of(Command::new(program).arg("--version")).is_some();
    let Some(program) = named.or_else(|| BROWSERS.iter().find(|name| works(name)).map(|name| (*name).to_owned()))
    else {
        println!("    skipped: there is no Chromium here (`apt-get install chromium`, or name one in BOTYARD_BROWSER)");
        return Ok(());
    };
    let mut command = cargo();
    command.args(["test", "-p", "botyard-tests", "--test", "browser"]).env("BOTYARD_BROWSER", program);
    run_command("the playground's test", &mut command)
}

fn deny() -> Result<()> {
    if output_of(Command::new("cargo-deny").arg("--version")).is_none() {
        println!("    skipped: cargo-deny is not installed");
        return Ok(());
    }
    run_command("cargo-deny", cargo().args(["deny", "check"]))
}
