//! One plugin is replaced again and again while updates flow; then everything is counted, and the host's memory compared.
//!
//! Every file is a new one to the host, so each is compiled, checked, and let serve at once. The `counter` plugin tells
//! with every answer how often it was asked, so one update that was lost or took effect twice shows.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use botyard::simulator::{Bulk, Simulator, SimulatorSettings};

use crate::chaos::{counts, replace};
use crate::{Host, HostBuilder, plugin};

/// Chats that each write once between two reloads.
const CHATS: u64 = 20;

/// What came of it.
#[derive(Debug, Clone, Copy)]
pub struct Report {
    /// Updates without an answer, or with one that came twice or too early.
    pub wrong: u64,
    /// Memory after the first tenth of the reloads, and after the last, in MiB.
    pub memory: (u64, u64),
    /// Threads at the same moments.
    pub threads: (u64, u64),
}

/// Runs it. `progress` is told after every reload which one it was.
///
/// # Panics
/// When a version does not come to serve, or answers stay out.
pub async fn run(reloads: u32, mut progress: impl FnMut(u32, &Host)) -> Report {
    let settings = SimulatorSettings { throttle_polls: false, ..SimulatorSettings::default() };
    let simulator = Simulator::start(settings).await.expect("a free port");
    simulator.start_load_mode(true);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let wasm = folder.path().join("counter.wasm");
    let original = std::fs::read(plugin("counter")).expect("it was just built");
    std::fs::write(&wasm, &original).expect("the folder is writable");
    let mut host = HostBuilder::new(&simulator.api_base()).plugin("counter", &wasm, "probation = \"0s\"").start();

    let bulk = Bulk { text: "/count".to_owned(), ..Bulk::new(CHATS, CHATS) };
    let mut early = None;
    for n in 1..=reloads {
        let before = serving(&host);
        replace(&wasm, &original, n);
        let begun = Instant::now();
        simulator.push_updates(&bulk);
        while serving(&host) == before {
            assert!(begun.elapsed() < Duration::from_secs(60), "version {n} does not serve:\n{}", host.log());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        if n == (reloads / 10).max(1) {
            early = Some((host.resident_mib(), host.threads()));
        }
        progress(n, &host);
    }
    let all = CHATS * u64::from(reloads);
    let handle = simulator.clone();
    let all_came = simulator.wait_until(Duration::from_secs(120), move || handle.delivered_in_all() >= all).await;
    assert!(all_came, "only {} of {all} answers came", simulator.delivered_in_all());
    host.settle();
    let (memory, threads) = early.unwrap_or_default();
    Report {
        wrong: wrong(&simulator, &bulk, reloads),
        memory: (memory, host.resident_mib()),
        threads: (threads, host.threads()),
    }
}

/// The version that serves.
fn serving(host: &Host) -> Option<String> {
    let (_, body) = host.get("/api/plugins")?;
    let version = body.split("\"version\":\"").nth(1)?;
    version.split('"').next().map(str::to_owned)
}

/// Answers that are not the one that was due.
fn wrong(simulator: &Simulator, bulk: &Bulk, each: u32) -> u64 {
    let (mut wrong, mut totals) = (0, HashSet::new());
    for chat in (bulk.first_chat..).take(usize::try_from(CHATS).expect("few")) {
        let told: Vec<(u64, u64)> = simulator.sequence(chat).iter().filter_map(|text| counts(text)).collect();
        let here: Vec<u64> = told.iter().map(|(here, _)| *here).collect();
        wrong += u64::from(here != (1..=u64::from(each)).collect::<Vec<_>>());
        totals.extend(told.into_iter().map(|(_, all)| all));
    }
    wrong + (1..=CHATS * u64::from(each)).filter(|n| !totals.contains(n)).count() as u64
}
