//! A host process with a configuration, a store and an address of its own.

use std::fmt::Write as _;
use std::fs::File;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::{Metrics, build, process};

/// A token as the simulator takes it.
const TOKEN: &str = "4242:test-token-that-must-never-be-seen-anywhere";
/// What Telegram proves itself with at the webhook.
pub const WEBHOOK_SECRET: &str = "webhook-secret-that-must-never-be-seen-anywhere";

/// A running host. It is killed when dropped; its folder stays until then.
pub struct Host {
    folder: TempDir,
    admin: SocketAddr,
    webhook: Option<SocketAddr>,
    simulator: Option<SocketAddr>,
    child: Option<Child>,
}

/// A host that was stopped, and what it left.
pub struct Stopped {
    /// How it ended.
    pub status: ExitStatus,
    /// All that it logged, over all its starts.
    pub log: String,
}

/// What goes into `bot.toml`.
pub struct HostBuilder {
    api_base: String,
    bot: String,
    intake: String,
    webhook: Option<SocketAddr>,
    simulator: Option<SocketAddr>,
    plugins: String,
    sections: String,
    limits: String,
}

impl HostBuilder {
    /// A host that polls this server, with all limits on sending lifted and no plugins.
    #[must_use]
    pub fn new(api_base: &str) -> Self {
        Self {
            api_base: api_base.to_owned(),
            bot: String::new(),
            intake: "poll_timeout = \"5s\"\n".to_owned(),
            webhook: None,
            simulator: None,
            plugins: String::new(),
            sections: String::new(),
            limits: "overall_per_second = 0\nchat_per_second = 0\ngroup_per_minute = 0\nbulk_per_second = 0\n"
                .to_owned(),
        }
    }

    /// Adds an entry under `[plugins]`; `more` is TOML for it.
    #[must_use]
    pub fn plugin(mut self, name: &str, wasm: &Path, more: &str) -> Self {
        writeln!(self.plugins, "[plugins.{name}]\npath = {:?}\n{more}", wasm.display().to_string()).expect("a string");
        self
    }

    /// Adds keys under `[bot]`, in TOML.
    #[must_use]
    pub fn bot(mut self, toml: &str) -> Self {
        self.bot.push_str(toml);
        self
    }

    /// Takes updates through a webhook instead of polling; `more` is TOML for it. With a certificate it speaks TLS.
    ///
    /// # Panics
    /// When there is no free port.
    #[must_use]
    pub fn webhook(mut self, more: &str) -> Self {
        let address = free_port();
        let scheme = if more.contains("certificate") { "https" } else { "http" };
        self.intake = format!(
            "mode = \"webhook\"\n[intake.webhook]\nurl = \"{scheme}://{address}/hook\"\nlisten = \"{address}\"\n\
             secret = {{ env = \"TEST_WEBHOOK_SECRET\" }}\n{more}\n"
        );
        self.webhook = Some(address);
        self
    }

    /// Plays Telegram itself, at [`Host::page`].
    ///
    /// # Panics
    /// When there is no free port.
    #[must_use]
    pub fn simulator(mut self) -> Self {
        self.simulator = Some(free_port());
        self
    }

    /// Adds whole sections, in TOML.
    #[must_use]
    pub fn sections(mut self, toml: &str) -> Self {
        self.sections.push_str(toml);
        self
    }

    /// Replaces what stands under `[send]`.
    #[must_use]
    pub fn send(mut self, toml: &str) -> Self {
        toml.clone_into(&mut self.limits);
        self
    }

    /// Starts it and waits until it polls.
    ///
    /// # Panics
    /// When it does not come up.
    #[must_use]
    pub fn start(self) -> Host {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let port = free_port();
        let Self { api_base, bot, intake, webhook, simulator, plugins, sections, limits } = self;
        let config = format!(
            "[bot]\ntoken = {{ env = \"TEST_TOKEN\" }}\napi_base = \"{api_base}\"\n{bot}\n[intake]\n{intake}\
             [send]\n{limits}\n[admin]\nlisten = \"{port}\"\n{sections}\n{plugins}"
        );
        std::fs::write(folder.path().join("bot.toml"), config).expect("the folder is writable");
        let mut host = Host { folder, admin: port, webhook, simulator, child: None };
        host.start();
        host
    }
}

impl Host {
    /// Starts it (again) on what it left, and waits until it is ready.
    ///
    /// # Panics
    /// When it does not come up.
    pub fn start(&mut self) {
        assert!(self.child.is_none(), "it runs already");
        self.child = Some(self.spawn(&[]));
        self.until_ready();
    }

    /// Starts another one that takes its place; answers how the first ended.
    ///
    /// # Panics
    /// When it does not run, or the other does not come up.
    pub fn replace(&mut self) -> ExitStatus {
        let mut old = self.child.take().expect("it runs");
        self.child = Some(self.spawn(&["--replace"]));
        let mut status = None;
        self.wait_until("the old host has ended", |_| {
            status = old.try_wait().expect("it is our child");
            status.is_some()
        });
        self.until_ready();
        status.expect("it was waited for")
    }

    fn until_ready(&mut self) {
        self.wait_until("the host is ready", |host| host.get("/readyz").is_some_and(|(status, _)| status == 200));
    }

    fn spawn(&self, more: &[&str]) -> Child {
        let log = File::options().append(true).create(true).open(self.log_file()).expect("the folder is writable");
        let simulator = self.simulator.map(|address| format!("--simulator={address}"));
        Command::new(build::host())
            .args(["run", "--config"])
            .arg(self.config_file())
            .args(simulator)
            .args(more)
            .env("TEST_TOKEN", TOKEN)
            .env("TEST_WEBHOOK_SECRET", WEBHOOK_SECRET)
            .env("BOTYARD_LOG", "info")
            .env_remove("BOT_TOKEN")
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a file"))
            .stderr(log)
            .spawn()
            .expect("the host starts")
    }

    /// Where the page of its own simulator is.
    ///
    /// # Panics
    /// When it has none.
    #[must_use]
    pub fn page(&self) -> String {
        format!("http://{}/", self.simulator.expect("it was built with one"))
    }

    /// `kill -9`
    ///
    /// # Panics
    /// When it does not run.
    pub fn kill(&mut self) {
        let mut child = self.child.take().expect("it runs");
        child.kill().expect("it can be killed");
        child.wait().expect("it is gone");
    }

    /// SIGTERM, and waits for the end.
    ///
    /// # Panics
    /// When it does not stop in time.
    pub fn stop(&mut self) -> Stopped {
        let mut child = self.child.take().expect("it runs");
        let id = child.id().to_string();
        let signalled = Command::new("kill").args(["-TERM", &id]).status().expect("kill is there");
        assert!(signalled.success());
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            if let Some(status) = child.try_wait().expect("it is our child") {
                return Stopped { status, log: self.log() };
            }
            if Instant::now() > deadline {
                child.kill().expect("it can be killed");
                panic!("the host does not stop:\n{}", self.log());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// All that it logged.
    #[must_use]
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.log_file()).unwrap_or_default()
    }

    /// Where its webhook listens.
    ///
    /// # Panics
    /// When it has none.
    #[must_use]
    pub fn webhook(&self) -> SocketAddr {
        self.webhook.expect("it takes updates through a webhook")
    }

    /// Where its `bot.toml` is.
    #[must_use]
    pub fn config_file(&self) -> PathBuf {
        self.folder.path().join("bot.toml")
    }

    /// Where its store is.
    #[must_use]
    pub fn store_dir(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Its folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What `/metrics` says now.
    ///
    /// # Panics
    /// When it does not answer.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        Metrics::parse(&self.get("/metrics").expect("the host answers").1)
    }

    /// Status and body of an admin page; `None` when there is no answer.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<(u16, String)> {
        crate::metrics::get(self.admin, path)
    }

    /// Resident memory, in MiB.
    #[must_use]
    pub fn resident_mib(&self) -> u64 {
        process::status(self.id(), "VmRSS") / 1024
    }

    /// Highest resident memory since the start, in MiB.
    #[must_use]
    pub fn peak_resident_mib(&self) -> u64 {
        process::status(self.id(), "VmHWM") / 1024
    }

    /// How many threads it has.
    #[must_use]
    pub fn threads(&self) -> u64 {
        process::status(self.id(), "Threads")
    }

    /// The number of its process.
    ///
    /// # Panics
    /// When it does not run.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.as_ref().expect("it runs").id()
    }

    /// Waits for something to become true.
    ///
    /// # Panics
    /// When it does not within 60 s, or the host has ended meanwhile.
    pub fn wait_until(&mut self, what: &str, mut is_true: impl FnMut(&Self) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !is_true(self) {
            let ended = self.child.as_mut().and_then(|child| child.try_wait().ok().flatten());
            assert!(ended.is_none(), "waiting until {what}, but the host has ended:\n{}", self.log());
            assert!(Instant::now() < deadline, "waited in vain until {what}:\n{}", self.log());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until everything that was handled is sent, and what was sent is durably done with: a kill now repeats
    /// nothing.
    ///
    /// # Panics
    /// When that does not come about.
    pub fn settle(&mut self) {
        let mut seen = None;
        self.wait_until("all is sent and durable", |host| {
            let metrics = host.metrics();
            let commits = |state| metrics.sum("botyard_store_commits_total", &[state]);
            let quiet = metrics.sum("botyard_send_queue", &[]) == 0.0 && commits("applied") == commits("durable");
            // Twice the same: what is just being handed over is in neither number.
            let now = quiet.then(|| commits("applied"));
            std::thread::sleep(Duration::from_millis(20));
            now.is_some() && std::mem::replace(&mut seen, now) == now
        });
    }

    fn log_file(&self) -> PathBuf {
        self.folder.path().join("log")
    }
}

fn free_port() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port")
}

impl Drop for Host {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // Nothing to be done about a child that can't be killed.
            child.kill().ok();
            child.wait().ok();
        }
        if !std::thread::panicking() {
            assert!(!self.log().contains("test-token-that"), "the token is in the log");
            assert!(!self.log().contains("webhook-secret-that"), "the webhook's secret is in the log");
        }
    }
}
