//! One plugin is replaced again and again while updates flow; then everything is counted, and the host's memory compared.
//!
//! Every file is a new one to the host, so each is compiled, checked, and let serve at once. The `counter` plugin tells
//! with every answer how often it was asked, so one update that was lost or took effect twice shows.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use botyard::simulator::{Bulk, Simulator, SimulatorSettings};

use crate::chaos::{counts, replace};
use crate::{Host, HostBuilder, plugin, process};

/// Chats that each write once between two reloads.
const CHATS: u64 = 20;

/// What came of it.
#[derive(Debug, Clone, Copy)]
pub struct Report {
    /// Updates without an answer, or with one that came twice or too early.
    pub wrong: u64,
    /// The least memory from the first tenth of the reloads to the fourth, and in the last three tenths, in MiB. Single
    /// moments can't be compared: the store fills a buffer of 8 MiB and begins anew.
    pub memory: (u64, u64),
    /// Compiled modules in memory before the first reload, and at the end.
    pub modules: (usize, usize),
    /// Threads after the first tenth of the reloads, and at the end.
    pub threads: (u64, u64),
}

/// Runs it, after so many rounds of updates without a reload, in which the store comes to the size that it keeps.
/// `progress` is told after every reload which one it was.
///
/// # Panics
/// When a version does not come to serve, or answers stay out.
pub async fn run(warm_up: u32, reloads: u32, mut progress: impl FnMut(u32, &Host)) -> Report {
    let settings = SimulatorSettings { throttle_polls: false, ..SimulatorSettings::default() };
    let simulator = Simulator::start(settings).await.expect("a free port");
    simulator.start_load_mode(true);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let wasm = folder.path().join("counter.wasm");
    let original = std::fs::read(plugin("counter")).expect("it was just built");
    std::fs::write(&wasm, &original).expect("the folder is writable");
    let mut host = HostBuilder::new(&simulator.api_base()).plugin("counter", &wasm, "probation = \"0s\"").start();

    let bulk = Bulk { text: "/count".to_owned(), ..Bulk::new(CHATS, CHATS) };
    simulator.push_updates(&Bulk { count: CHATS * u64::from(warm_up), ..bulk.clone() });
    all_come(&simulator, warm_up, &host).await;
    let modules = process::compiled_modules(host.id());
    let (mut early, mut resident) = (0, Vec::new());
    for n in 1..=reloads {
        let before = serving(&host);
        replace(&wasm, &original, n);
        let begun = Instant::now();
        simulator.push_updates(&bulk);
        while serving(&host) == before {
            assert!(begun.elapsed() < Duration::from_secs(60), "version {n} does not serve:\n{}", host.log());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        resident.push(host.resident_mib());
        if n == (reloads / 10).max(1) {
            early = host.threads();
        }
        progress(n, &host);
    }
    let rounds = warm_up + reloads;
    all_come(&simulator, rounds, &host).await;
    host.settle();
    let least = |from: usize, to: usize| {
        let part = resident.get(from * resident.len() / 10..(to * resident.len()).div_ceil(10));
        part.and_then(|part| part.iter().min().copied()).unwrap_or_default()
    };
    Report {
        wrong: wrong(&simulator, &bulk, rounds),
        modules: (modules, process::compiled_modules(host.id())),
        memory: (least(1, 4), least(7, 10)),
        threads: (early, host.threads()),
    }
}

async fn all_come(simulator: &Simulator, rounds: u32, host: &Host) {
    let all = CHATS * u64::from(rounds);
    let handle = simulator.clone();
    let all_came = simulator.wait_until(Duration::from_secs(120), move || handle.delivered_in_all() >= all).await;
    assert!(all_came, "only {} of {all} answers came:\n{}", simulator.delivered_in_all(), host.log());
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
