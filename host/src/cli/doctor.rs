//! `botyard doctor`: looks at everything that a bot needs on this machine, and says what would mend it. It changes nothing.

mod network;

use std::net::{SocketAddr, TcpListener};
use std::path::Path;

use clap::Args;
use serde::Serialize;

use super::bot::BotFile;
use super::build::toolchain;
use super::check;
use super::exit::Exit;
use super::hand::{Running, block_on};
use super::inspect::Inspector;
use super::table::clean;
use super::{ConfigFile, say};
use crate::config::{Config, LoadOptions, Mode};

/// Less than this, and the bot soon stops; less than the other, and it is time to look.
const FULL: u64 = 200 << 20;
const TIGHT: u64 = 2 << 30;
/// Where `botyard run --simulator` and `botyard dev` serve their page.
const PAGE: SocketAddr = SocketAddr::V4(std::net::SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, 8090));

/// Look at everything that the bot needs on this machine, and say how to mend what is wrong
///
/// The compiler that builds plugins, bot.toml and what it names, the store, disk space and ports; and, with
/// a network, whether Telegram knows each bot's token, whether its webhook is as it should be, or in the way,
/// and whether the clock is right. Nothing is changed or sent to anybody.
///
/// Exit code 0: nothing has failed; 1: something has.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Doctor {
    #[command(flatten)]
    file: ConfigFile,
    /// Ask nobody on the network
    #[arg(long)]
    offline: bool,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// How something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
enum Health {
    Ok,
    /// The bot runs, but somebody should look.
    Warn,
    Fail,
}

/// One thing that was looked at.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Finding {
    health: Health,
    what: String,
    found: String,
    /// What would mend it.
    #[serde(skip_serializing_if = "String::is_empty")]
    mend: String,
}

impl Finding {
    fn new(health: Health, what: &str, found: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { health, what: what.to_owned(), found: found.into(), mend: mend.into() }
    }

    fn ok(what: &str, found: impl Into<String>) -> Self {
        Self::new(Health::Ok, what, found, "")
    }
}

impl Doctor {
    pub(super) fn run(self) -> anyhow::Result<Exit> {
        let mut findings = compiler(Path::new("."));
        let examined = Config::examine(&self.file.config, LoadOptions { token_optional: true });
        match examined {
            Err(error) => findings.push(Finding::new(
                Health::Fail,
                "configuration",
                error.to_string(),
                "`botyard new` makes a folder with one; `botyard check` says more about one that is there",
            )),
            Ok(examined) => {
                findings.extend(configuration(&examined));
                let config = examined.config;
                findings.push(disk(&config.store.path));
                findings.extend(block_on(async {
                    let runs = Running::on(&config).await.is_ok();
                    let mut findings = vec![port("admin port", config.admin.listen, "[admin]", runs)];
                    findings.extend(webhook_ports(&config, runs));
                    if !self.offline {
                        findings.extend(network::look(&config).await);
                    }
                    Ok(findings)
                })?);
            }
        }
        findings.push(page_port());
        let worst = findings.iter().map(|finding| finding.health).max();
        say(&if self.json { format!("{}\n", serde_json::to_string_pretty(&findings)?) } else { text(&findings) });
        Ok(if worst == Some(Health::Fail) { Exit::Failed } else { Exit::Done })
    }
}

fn compiler(folder: &Path) -> Vec<Finding> {
    let what = "compiler";
    let version = match toolchain::version(folder) {
        Some(version) => version,
        // A bot runs without one; only authors need it.
        None => {
            let mend = "to build plugins, install Rust from https://rustup.rs; running them needs none";
            return vec![Finding::new(Health::Warn, what, "there is no rustc here", mend)];
        }
    };
    let target = match toolchain::look(folder) {
        Ok(Some(toolchain)) => Finding::ok("target", toolchain.describe()),
        Ok(None) => Finding::new(
            Health::Warn,
            "target",
            format!("the compiler lacks {}", toolchain::TARGET),
            format!("`botyard build` tries `rustup target add {}` by itself", toolchain::TARGET),
        ),
        Err(error) => Finding::new(Health::Warn, "target", format!("{error:#}"), "see https://rustup.rs"),
    };
    vec![Finding::ok(what, version), target]
}

fn configuration(examined: &crate::config::Examined) -> Vec<Finding> {
    let report = check::Report::of(examined, &mut Inspector::default());
    let here = BotFile::find(&examined.config.file, &[]).ok();
    let written_here = here.and_then(|mut bot| bot.take_workshop()).map(|workshop| workshop.out);
    let rows = report.rows().into_iter().map(|row| {
        let [mark, what, file, words] = row;
        let found = if file.is_empty() { words } else { format!("{file}: {words}") };
        match mark.as_str() {
            "ok" | "off" => Finding::ok(&what, found),
            // It is written here, and only waits for the first build.
            _ if written_here.as_deref() == Some(Path::new(&file)) && !Path::new(&file).exists() => {
                let mend = "`botyard dev`, `botyard test` and `botyard build` make it";
                Finding::new(Health::Warn, &what, format!("{file}: not built yet"), mend)
            }
            _ if what.starts_with("plugin ") => Finding::new(Health::Fail, &what, found, ""),
            _ => Finding::new(Health::Fail, &what, found, "`botyard check` shows each problem with its line"),
        }
    });
    let mut findings: Vec<Finding> = rows.collect();
    findings.extend(
        examined
            .problems
            .list
            .iter()
            .map(|problem| Finding::new(Health::Fail, "configuration", problem.line(&examined.problems.file), "")),
    );
    findings.extend(
        examined
            .config
            .warnings
            .iter()
            .map(|warning| Finding::new(Health::Warn, "configuration", warning.line(&examined.problems.file), "")),
    );
    findings
}

/// Of the file system that the store is on, or will be.
fn disk(store: &Path) -> Finding {
    let Some(there) = store.ancestors().find(|folder| folder.exists()) else {
        return Finding::new(Health::Fail, "disk", format!("there is no folder above {}", store.display()), "make one");
    };
    match rustix::fs::statvfs(there) {
        Ok(room) => how_full(room.f_bavail.saturating_mul(room.f_frsize), there),
        Err(error) => Finding::new(Health::Warn, "disk", format!("{}: {error}", there.display()), ""),
    }
}

fn how_full(free: u64, there: &Path) -> Finding {
    let health = if free < FULL {
        Health::Fail
    } else if free < TIGHT {
        Health::Warn
    } else {
        Health::Ok
    };
    let mend = if health == Health::Ok { "" } else { "make room: when the disk is full the bot stops taking updates" };
    let gib = free as f64 / f64::from(1 << 30);
    Finding::new(health, "disk", format!("{gib:.1} GiB left for {}", there.display()), mend)
}

/// `runs`: a host of this configuration has its ports.
fn port(what: &str, address: SocketAddr, section: &str, runs: bool) -> Finding {
    match TcpListener::bind(address) {
        Ok(_) => Finding::ok(what, format!("{address} is free")),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse && runs => {
            Finding::ok(what, format!("the host of this bot runs there ({address})"))
        }
        Err(error) => {
            let found = match error.kind() {
                std::io::ErrorKind::AddrInUse => format!("{address} is in use by something else"),
                _ => format!("{address}: {error}"),
            };
            let mend = format!("stop what uses it, or set another `listen` in {section}");
            Finding::new(Health::Fail, what, found, mend)
        }
    }
}

/// Where Telegram's calls arrive.
fn webhook_ports(config: &Config, runs: bool) -> Vec<Finding> {
    let bots = config.bots.keys().filter_map(|name| config.of(name));
    let listening = bots.filter(|config| config.intake.mode == Mode::Webhook);
    listening
        .filter_map(|config| {
            let listen = config.intake.webhook.as_ref()?.listen;
            Some(port(&called("webhook port", &config), listen, "[intake.webhook]", runs))
        })
        .collect()
}

/// With the bot's name, where there are several.
fn called(what: &str, config: &Config) -> String {
    if config.bots.len() > 1 { format!("{what} of {}", config.name) } else { what.to_owned() }
}

fn page_port() -> Finding {
    match TcpListener::bind(PAGE) {
        Ok(_) => Finding::ok("chat page", format!("{PAGE} is free for --simulator and `botyard dev`")),
        Err(_) => Finding::new(
            Health::Warn,
            "chat page",
            format!("{PAGE} is in use, perhaps by `botyard dev` in another terminal"),
            "name another address: `botyard dev --listen 127.0.0.1:8091`",
        ),
    }
}

fn text(findings: &[Finding]) -> String {
    let width = findings.iter().map(|finding| finding.what.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for Finding { health, what, found, mend } in findings {
        let health = match health {
            Health::Ok => "ok",
            Health::Warn => "warn",
            Health::Fail => "FAIL",
        };
        text += &format!("{health:4}  {what:width$}  {}\n", clean(found).replace('\n', "\n      "));
        if !mend.is_empty() {
            text += &format!("      {:width$}  {mend}\n", "");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_in_time() {
        for (free, health) in [(0, Health::Fail), (FULL, Health::Warn), (TIGHT, Health::Ok)] {
            assert_eq!(how_full(free, Path::new("/data")).health, health, "{free}");
        }
        assert!(disk(Path::new("/no/such/folder")).found.ends_with(" left for /"));
    }

    #[test]
    fn each_line_has_its_mend_below_it() {
        let findings = [Finding::ok("disk", "1 GiB"), Finding::new(Health::Fail, "token", "unknown", "ask @BotFather")];
        assert_eq!(text(&findings), "ok    disk   1 GiB\nFAIL  token  unknown\n             ask @BotFather\n");
    }
}
