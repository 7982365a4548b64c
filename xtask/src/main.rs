//! `cargo xtask …`: what a person or a CI does with this repository, in one place and in Rust.
//!
//! Every command says what it is doing while it does it, works from any folder of the repository, and leaves no child
//! process behind. It never links the host: `cargo xtask` has to begin to speak within seconds on a fresh machine.
//! The first failure ends a command with a sentence that says what to do, and an exit code other than 0.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "talking to a person at a terminal is what this program is for"
)]
#![expect(clippy::disallowed_types, clippy::disallowed_methods, reason = "there is no async runtime here to wait with")]

mod bench;
mod book;
mod bot_api;
mod chaos;
mod demo;
mod help;
mod plugins;
mod process;
mod test;
mod tidy;
mod wasm;
mod workspace;

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, bail};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let outcome = process::watch_signals().and_then(|()| run(&args));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) if process::interrupted() => ExitCode::from(130),
        Err(error) => {
            eprintln!("\nerror: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[String]) -> Result<()> {
    let (command, rest) = match args.split_first() {
        None => ("help", &[][..]),
        Some((command, rest)) => (command.as_str(), rest),
    };
    if rest.iter().any(|arg| arg == "--help" || arg == "-h") {
        return help::print(Some(command));
    }
    match command {
        "demo" => demo::run(rest),
        "test" | "ci" => test::run(rest),
        "plugins" => plugins::run(rest),
        "bench" => bench::run(rest),
        "book" => book::run(rest),
        "bot-api" => bot_api::run(rest),
        "chaos" => chaos::run(rest),
        "tidy" => tidy::run(rest),
        "help" | "--help" | "-h" => help::print(rest.first().map(String::as_str)),
        other => bail!("there is no `cargo xtask {other}`; `cargo xtask help` lists what there is"),
    }
}

/// Says what happens now, does it, and says how long it took.
fn step(what: &str, work: impl FnOnce() -> Result<()>) -> Result<()> {
    println!("==> {what}");
    let started = Instant::now();
    work()?;
    println!("    done in {:.1} s\n", started.elapsed().as_secs_f64());
    Ok(())
}
