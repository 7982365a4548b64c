//! How long people wait for a healthy plugin while fifty chats keep others looping, eating memory and panicking.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use botyard::simulator::{Bulk, Simulator};
use botyard_tests::{HostBuilder, guest, plugin};
use tokio::task::JoinSet;

use crate::peer;
use crate::report::{Report, quantile};

const PER_SECOND: u32 = 100;
const CHATS: i64 = 500;
const BAD_CHATS: i64 = 50;
const BAD: [&str; 3] = ["/loop", "/eat", "/panic"];

pub(crate) async fn measure(quick: bool) -> Report {
    let seconds = if quick { 5 } else { 30 };
    let mut report = Report::new(
        format!("neighbours: {PER_SECOND} messages/s to a healthy plugin for {seconds} s, from message to answer, ms"),
        &["p50", "p90", "p99", "worst"],
    );
    let mut worst_tenth = Vec::new();
    let mut threads = Vec::new();
    for (name, bad) in [("alone", false), ("beside 50 chats of loops, memory bombs and panics", true)] {
        let (mut times, there) = run(PER_SECOND * seconds, bad).await;
        let parts = [0.5, 0.9, 0.99, 1.0].map(|part| quantile(&mut times, part));
        worst_tenth.push(parts[2]);
        threads.push(there);
        report.row(name, parts);
    }
    report.note(format!(
        "p99 beside them is {:.2} times what it is alone; {} threads alone, {} beside them.",
        worst_tenth[1] / worst_tenth[0],
        threads[0],
        threads[1]
    ));
    report
}

/// The times in milliseconds, without those of the first second, and the host's threads at the end.
async fn run(count: u32, bad: bool) -> (Vec<f64>, u64) {
    let simulator = peer::simulator().await;
    simulator.start_load_mode(false);
    let limits = "priority = 1\nlimits = { memory = \"8MiB\", cpu = \"50ms\", time = \"1s\" }";
    let host = HostBuilder::new(&simulator.api_base())
        .sections("[dispatch]\nmax_attempts = 1\n")
        .plugin("loops", &guest("loops"), limits)
        .plugin("eats", &guest("eats_memory"), limits)
        .plugin("panics", &guest("panics"), limits)
        .plugin("echo", &plugin("echo"), "")
        .start();
    let first = Bulk::new(0, 0).first_chat;
    let over = Arc::new(AtomicBool::new(!bad));
    let harm = tokio::spawn({
        let (simulator, over) = (simulator.clone(), over.clone());
        async move {
            let mut ticks = tokio::time::interval(Duration::from_millis(500));
            while !over.load(Ordering::Relaxed) {
                ticks.tick().await;
                for n in 0..BAD_CHATS {
                    let text = BAD[usize::try_from(n).expect("few") % BAD.len()].to_owned();
                    simulator.push_updates(&Bulk { text, first_chat: first + CHATS + n, ..Bulk::new(1, 1) });
                }
            }
        }
    });
    let mut asked = JoinSet::new();
    let mut ticks = tokio::time::interval(Duration::from_secs(1) / PER_SECOND);
    for n in 0..PER_SECOND + count {
        ticks.tick().await;
        let (simulator, chat) = (simulator.clone(), first + i64::from(n) % CHATS);
        asked.spawn(async move { (n < PER_SECOND, ask(&simulator, chat).await) });
    }
    let times = asked.join_all().await;
    let threads = host.threads();
    over.store(true, Ordering::Relaxed);
    harm.await.expect("it does not panic");
    (times.into_iter().filter(|(left_out, _)| !left_out).map(|(_, time)| time).collect(), threads)
}

async fn ask(simulator: &Simulator, chat: i64) -> f64 {
    let before = simulator.delivered(chat);
    let begun = Instant::now();
    simulator.push_updates(&Bulk { text: "quick".to_owned(), first_chat: chat, ..Bulk::new(1, 1) });
    let answered = simulator.wait_until(Duration::from_secs(30), || simulator.delivered(chat) > before).await;
    assert!(answered, "chat {chat} waits in vain");
    begun.elapsed().as_secs_f64() * 1e3
}
