//! `cargo xtask bench`: the release build, measured.

use anyhow::Result;

use crate::{plugins, process, step, workspace};

/// The command. Arguments go to the benchmarks.
pub(crate) fn run(args: &[String]) -> Result<()> {
    step("plugins: to WebAssembly, as they are shipped", || plugins::build(&[], true, None))?;
    step("host: release build (the first one compiles everything anew and takes many minutes)", || {
        process::run("the release build", workspace::cargo().args(["build", "--release", "-p", "botyard"]))
    })?;
    step("benchmarks", || {
        let mut command = workspace::cargo();
        command.args(["bench", "-p", "botyard-tests", "--bench", "speed", "--"]).args(args).env("BOTYARD_BUILT", "1");
        process::run("the benchmarks", &mut command)
    })
}
