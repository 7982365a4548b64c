//! `cargo xtask chaos`: kills, network faults and reloads while updates flow.

use anyhow::Result;

use crate::{plugins, process, step, workspace};

/// The command. Arguments go to the program.
pub(crate) fn run(args: &[String]) -> Result<()> {
    step("plugins: to WebAssembly", || plugins::build(&[], false, None))?;
    step("host and test tools (the first build takes minutes)", || {
        process::run("the build", workspace::cargo().args(["build", "--workspace", "--all-targets"]))
    })?;
    step("chaos", || {
        let mut command = workspace::cargo();
        command
            .env("BOTYARD_BUILT", "1")
            .args(["run", "--quiet", "-p", "botyard-tests", "--bin", "chaos", "--"])
            .args(args);
        process::run("the chaos test", &mut command)
    })
}
