//! `cargo xtask demo`: the host, the example plugins and a simulated Telegram, for a person or for a check.
//!
//! For a person the host runs with the repository's own `bot.toml`, its log in the terminal, and Ctrl-C goes to the
//! host, which ends by itself. `--check` plays a conversation instead, on free ports and with a store that is thrown
//! away, so both can run side by side.

mod host;
mod http;
mod play;
mod stage;

use std::net::TcpListener;

use anyhow::{Context, Result, bail};

use crate::process::run as run_command;
use crate::wasm::Source;
use crate::workspace::cargo;
use crate::{plugins, step};
use host::Host;

/// Where the chat page is served unless told otherwise.
const LISTEN: &str = "127.0.0.1:8090";

/// The command.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let mut checking = false;
    let mut listen = LISTEN.to_owned();
    let mut from = None;
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--check" => checking = true,
            "--listen" => listen = args.next().context("--listen needs an address, such as 127.0.0.1:8090")?.clone(),
            "--wasm-from" => from = Some(plugins::wasm_from(args.next())?),
            other => bail!("`cargo xtask demo` knows no {other:?}; see `cargo xtask help demo`"),
        }
    }
    if !checking {
        // Said now rather than after minutes of building.
        TcpListener::bind(&listen).with_context(|| {
            format!("cannot listen on {listen}; is another demo running? `--listen ADDR` takes another address")
        })?;
    }
    build(from)?;
    if checking {
        step("a conversation with every example plugin, through the simulator", check)
    } else {
        show(&listen)
    }
}

fn build_host() -> Result<()> {
    run_command("building the host", cargo().args(["build", "-p", "botyard", "--bin", "botyard"]))
}

/// Plays the conversation. Host and plugins must have been built.
pub(crate) fn check() -> Result<()> {
    play::conversation()
}

fn build(from: Option<Source>) -> Result<()> {
    step(
        "building the host (the first time this compiles a WebAssembly engine: about ten minutes on two cores)",
        build_host,
    )?;
    step("building the example plugins to WebAssembly", || plugins::build(&[], false, from))
}

fn show(listen: &str) -> Result<()> {
    println!("==> starting the host with bot.toml and a simulated Telegram; its log follows");
    let mut host = Host::for_a_person(listen)?;
    host.wait_until_it_serves()?;
    println!(
        "\n    Chat with the bot:  http://{listen}/\n\n    \
         Try `hello`, `slow hello`, /form, /hello, /count, /menu, /shop, /quiz and /remind. Ctrl-C stops the host;\n    \
         started again, the conversations go on where they were.\n"
    );
    let status = host.wait()?;
    if !status.success() {
        bail!("the host has not stopped cleanly ({status}); its last words are above");
    }
    println!("\n    The host has stopped.");
    Ok(())
}
