//! A host process with its simulator.

use std::env;
use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::http;
use crate::process::Running;
use crate::workspace::{host_binary, root};

/// A start reads the store and compiles the plugins.
const START: Duration = Duration::from_secs(60);
/// The host gives runs and calls in flight a grace of its own, which is shorter.
const STOP: Duration = Duration::from_secs(30);

pub(super) struct Host {
    running: Running,
    /// Where the simulator answers.
    pub(super) address: String,
}

impl Host {
    /// With the settings of `bot.toml` and the log in the terminal.
    pub(super) fn for_a_person(listen: &str) -> Result<Self> {
        Self::start(listen, &mut command())
    }

    /// On free ports, with everything it keeps and logs in `folder`.
    pub(super) fn for_a_check(folder: &Path, slow: Duration) -> Result<Self> {
        let log = log_file(folder);
        let log = File::options().create(true).append(true).open(&log).context("cannot write the host's log")?;
        let listen = free_address()?;
        let mut command = command();
        command
            .env("BOTYARD__STORE__PATH", folder.join("store"))
            .env("BOTYARD__ADMIN__LISTEN", "127.0.0.1:0")
            .env("BOTYARD__PLUGINS__ECHO__CONFIG__SLOW_MS", slow.as_millis().to_string())
            .stdout(log.try_clone().context("cannot write the host's log")?)
            .stderr(log);
        let mut host = Self::start(&listen, &mut command)?;
        host.wait_until_it_serves()?;
        Ok(host)
    }

    fn start(listen: &str, command: &mut Command) -> Result<Self> {
        command.args(["--simulator", listen]);
        Ok(Self { running: Running::start("the host", command)?, address: listen.to_owned() })
    }

    /// Returns when the plugins are loaded: then the host asks the simulator for updates.
    pub(super) fn wait_until_it_serves(&mut self) -> Result<()> {
        let started = Instant::now();
        while !http::get(&self.address, "/sim/calls").is_ok_and(|calls| calls.contains("getUpdates")) {
            if let Some(status) = self.running.wait_for(Duration::from_millis(50))? {
                bail!("the host ended before it was ready ({status})");
            }
            if started.elapsed() > START {
                bail!("the host was not ready within {} seconds", START.as_secs());
            }
        }
        Ok(())
    }

    pub(super) fn wait(&mut self) -> Result<ExitStatus> {
        self.running.wait()
    }

    /// As Ctrl-C does; an error when it does not end cleanly.
    pub(super) fn stop(self) -> Result<()> {
        let status = self.running.stop(STOP)?;
        if !status.success() {
            bail!("the host did not stop cleanly ({status})");
        }
        Ok(())
    }
}

/// A folder that is gone when it is dropped.
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn temporary() -> Result<Self> {
        let folder = env::temp_dir().join(format!("botyard-demo-{}", std::process::id()));
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        Ok(Self(folder))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Left behind, it only takes room.
        fs::remove_dir_all(&self.0).ok();
    }
}

/// The last lines of the log of a checked host.
pub(super) fn log_tail(folder: &Path) -> String {
    let log = fs::read_to_string(log_file(folder)).unwrap_or_default();
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(40)..].join("\n")
}

fn log_file(folder: &Path) -> PathBuf {
    folder.join("host.log")
}

fn command() -> Command {
    let mut command = Command::new(host_binary());
    command.current_dir(root()).args(["run", "--config", "bot.toml"]);
    // The simulator takes any token; a real one has no business here.
    command.env_remove("BOT_TOKEN").env_remove("BOTYARD__BOT__TOKEN").env_remove("BOTYARD__BOT__API_BASE");
    command
}

/// An address that was free a moment ago.
fn free_address() -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").context("cannot listen on 127.0.0.1")?;
    Ok(listener.local_addr().context("cannot listen on 127.0.0.1")?.to_string())
}
