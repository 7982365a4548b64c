//! Echoed messages per second, end to end, against a bare loop that makes the same calls.
//!
//! The host is a process of its own, built for release, with the real `echo.wasm`, everything durable and all limits on
//! sending lifted. The two take turns within one run, so that what else happens to the machine happens to both.

use std::io::BufRead as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use botyard::simulator::{Bulk, Simulator};
use botyard_tests::{HostBuilder, plugin, process};

use crate::report::{Report, median};
use crate::{bare, peer};

const CHATS: u64 = 1_000;

struct Measured {
    per_second: f64,
    cpu_us: f64,
    peer_cpu_us: f64,
    peak_mib: f64,
}

pub(crate) async fn measure(quick: bool) -> Report {
    let (count, rounds) = if quick { (10_000, 2) } else { (50_000, 5) };
    let (mut hosts, mut bares) = (Vec::new(), Vec::new());
    for round in 1..=rounds {
        let host = host(count).await;
        let bare = bare(count).await;
        eprintln!(
            "    round {round} of {rounds}: host {:.0}/s, {:.1} us; bare {:.0}/s, {:.1} us",
            host.per_second, host.cpu_us, bare.per_second, bare.cpu_us
        );
        hosts.push(host);
        bares.push(bare);
    }
    let columns = ["updates/s", "cpu us/update", "peer us/update", "peak MiB"];
    let mut report = Report::new(
        format!("throughput: {count} messages of {CHATS} chats, echoed; medians of {rounds} rounds"),
        &columns,
    );
    let row = |all: &[Measured]| {
        let of = |field: fn(&Measured) -> f64| median(all.iter().map(field));
        [of(|m| m.per_second), of(|m| m.cpu_us), of(|m| m.peer_cpu_us), of(|m| m.peak_mib)]
    };
    let (host, bare) = (row(&hosts), row(&bares));
    report.row("host", host);
    report.row("bare loop", bare);
    report.row("host : bare loop", std::array::from_fn::<_, 4, _>(|column| host[column] / bare[column]));
    report.note("Every message was answered once and in the order of its chat.");
    report.note("The peer (the simulator) runs on the same cores; its own cost is in the third column.");
    report
}

async fn host(count: u64) -> Measured {
    let simulator = peer::simulator().await;
    simulator.start_load_mode(true);
    let mut host = HostBuilder::new(&simulator.api_base()).plugin("echo", &plugin("echo"), "").start();
    let measured = run(&simulator, count, host.id(), || host.settle()).await;
    peer::check_order(&simulator, chats(), count / CHATS);
    host.stop();
    measured
}

async fn bare(count: u64) -> Measured {
    let simulator = peer::simulator().await;
    simulator.start_load_mode(true);
    let mut bare = Bare(
        Command::new(std::env::current_exe().expect("a program knows its own path"))
            .args([bare::ARGUMENT, &simulator.api_base()])
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts"),
    );
    let said = std::io::BufReader::new(bare.0.stdout.take().expect("a pipe")).lines().next();
    assert_eq!(said.and_then(Result::ok).as_deref(), Some(bare::READY));
    run(&simulator, count, bare.0.id(), || {}).await
}

/// Killed when dropped.
struct Bare(Child);

impl Drop for Bare {
    fn drop(&mut self) {
        // Nothing to be done about a child that can't be killed.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Lets `process` answer so many updates. What `settle` waits for is in its processor time, not in the rate.
async fn run(simulator: &Simulator, count: u64, process: u32, settle: impl FnOnce()) -> Measured {
    let cpu = || (process::processor_time(process), process::processor_time(std::process::id()));
    let before = cpu();
    let begun = Instant::now();
    simulator.push_updates(&Bulk::new(count, CHATS));
    peer::delivered(simulator, count).await;
    let took = begun.elapsed();
    settle();
    let after = cpu();
    assert_eq!(simulator.delivered_in_all(), count, "each is answered once");
    let each = |time: Duration| time.as_secs_f64() * 1e6 / count as f64;
    Measured {
        per_second: count as f64 / took.as_secs_f64(),
        cpu_us: each(after.0 - before.0),
        peer_cpu_us: each(after.1 - before.1),
        peak_mib: process::status(process, "VmHWM") as f64 / 1024.0,
    }
}

fn chats() -> impl Iterator<Item = i64> {
    let first = Bulk::new(0, 0).first_chat;
    (0..CHATS).map(move |n| first + n.cast_signed())
}
