//! Child processes: started in a group of their own, ended with everything they started.
//!
//! Ctrl-C reaches only xtask, which hands it on to every group that runs, once; a second one kills them. So the host
//! sees one request to stop and can end cleanly, and neither compilers nor test hosts outlive the command.

use std::collections::BTreeSet;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process_group};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

static GROUPS: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Begins to hand signals on. To be called once, before the first child.
pub(crate) fn watch_signals() -> Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).context("cannot watch for Ctrl-C")?;
    thread::spawn(move || {
        for number in signals.forever() {
            let again = INTERRUPTED.swap(true, Ordering::SeqCst);
            let running = groups().clone();
            if running.is_empty() {
                std::process::exit(130);
            }
            let signal = match number {
                _ if again => Signal::KILL,
                SIGINT => Signal::INT,
                _ => Signal::TERM,
            };
            running.into_iter().for_each(|group| send(group, signal));
        }
    });
    Ok(())
}

/// Whether somebody has asked this command to stop.
pub(crate) fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::SeqCst)
}

/// A child process; dropping it kills its whole group.
pub(crate) struct Running {
    child: Child,
    group: i32,
    what: String,
}

impl Running {
    /// Starts a command. `what` names it in errors.
    pub(crate) fn start(what: &str, command: &mut Command) -> Result<Self> {
        use std::os::unix::process::CommandExt;
        let child = command
            .process_group(0)
            .stdin(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {what} ({})", command.get_program().display()))?;
        let group = i32::try_from(child.id()).expect("process ids fit");
        groups().insert(group);
        let running = Self { child, group, what: what.to_owned() };
        if interrupted() {
            bail!("interrupted"); // between the start and the line above nobody would have told the child
        }
        Ok(running)
    }

    /// Waits for its end.
    pub(crate) fn wait(&mut self) -> Result<ExitStatus> {
        let status = self.child.wait().with_context(|| format!("cannot wait for {}", self.what))?;
        self.forget();
        Ok(status)
    }

    /// Its end, when it comes within `limit`.
    pub(crate) fn wait_for(&mut self, limit: Duration) -> Result<Option<ExitStatus>> {
        let started = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().with_context(|| format!("cannot wait for {}", self.what))? {
                self.forget();
                return Ok(Some(status));
            }
            if started.elapsed() >= limit {
                return Ok(None);
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Asks it to stop, as Ctrl-C does, and waits; killed and an error when it does not within `limit`.
    pub(crate) fn stop(mut self, limit: Duration) -> Result<ExitStatus> {
        send(self.group, Signal::INT);
        match self.wait_for(limit)? {
            Some(status) => Ok(status),
            None => bail!("{} did not stop within {} seconds", self.what, limit.as_secs()),
        }
    }

    pub(crate) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// It has ended. What it leaves behind after Ctrl-C did not hear of it, or did not care.
    fn forget(&mut self) {
        groups().remove(&self.group);
        if interrupted() {
            send(self.group, Signal::KILL);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if groups().remove(&self.group) {
            send(self.group, Signal::KILL);
            self.child.wait().ok();
        }
    }
}

/// Runs a command to its end; an error when it fails.
pub(crate) fn run(what: &str, command: &mut Command) -> Result<()> {
    let status = Running::start(what, command)?.wait()?;
    if interrupted() {
        bail!("interrupted");
    }
    if !status.success() {
        bail!("{what} failed ({status}); its output is above");
    }
    Ok(())
}

/// What a short command prints; none when it can't be run or fails.
pub(crate) fn output_of(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn groups() -> MutexGuard<'static, BTreeSet<i32>> {
    GROUPS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn send(group: i32, signal: Signal) {
    if let Some(group) = Pid::from_raw(group) {
        // It may have ended by itself meanwhile.
        kill_process_group(group, signal).ok();
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};

    use super::*;

    fn shell(script: &str) -> Running {
        Running::start("a shell", Command::new("sh").args(["-c", script]).stdout(Stdio::piped())).unwrap()
    }

    fn first_line(running: &mut Running) -> String {
        let mut line = String::new();
        BufReader::new(running.child().stdout.take().unwrap()).read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    fn is_alive(pid: &str) -> bool {
        // A process that has ended and that nobody has waited for yet still has a number, and the state Z.
        let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        !status.is_empty() && !status.contains(") Z ")
    }

    #[test]
    fn dropping_ends_grandchildren_too() {
        let mut running = shell("sleep 600 & echo $!; wait");
        let grandchild = first_line(&mut running);
        assert!(is_alive(&grandchild));
        drop(running);
        let gone = (0..500).any(|_| {
            thread::sleep(Duration::from_millis(10));
            !is_alive(&grandchild)
        });
        assert!(gone, "process {grandchild} is still there");
    }

    #[test]
    fn stopping_interrupts_and_answers_with_the_status() {
        let mut running = shell("trap 'exit 7' INT; echo ready; while :; do sleep 0.01; done");
        assert_eq!(first_line(&mut running), "ready");
        assert_eq!(running.stop(Duration::from_secs(60)).unwrap().code(), Some(7));
    }

    #[test]
    fn what_does_not_stop_is_killed_and_named() {
        let mut running = shell("trap '' INT; echo $$; while :; do sleep 0.01; done");
        let pid = first_line(&mut running);
        let error = running.stop(Duration::from_millis(50)).unwrap_err();
        assert_eq!(error.to_string(), "a shell did not stop within 0 seconds");
        assert!(!is_alive(&pid));
    }

    #[test]
    fn failures_are_named() {
        let error = run("the shell", Command::new("sh").args(["-c", "exit 3"])).unwrap_err();
        assert!(error.to_string().starts_with("the shell failed (exit status: 3)"), "{error}");
        let error = run("the tool", &mut Command::new("no-such-tool")).unwrap_err();
        assert_eq!(error.to_string(), "cannot start the tool (no-such-tool)");
    }
}
