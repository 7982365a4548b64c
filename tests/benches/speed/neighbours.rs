//! How long people wait for a healthy plugin while others are kept looping, eating memory and panicking.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use botyard::simulator::{Bulk, Simulator};
use botyard_tests::{Host, HostBuilder, guest, plugin};
use tokio::task::JoinSet;

use crate::peer;
use crate::report::{Report, quantile};

const PER_SECOND: u32 = 100;
const CHATS: i64 = 500;
/// So many at once of each.
const VOLLEY: usize = 8;
const BAD: [&str; 3] = ["/loop", "/eat", "/panic"];
/// What the same plugins do well.
const GOOD: [&str; 3] = ["/well", "/eat 1", "/fail 1"];

pub(crate) async fn measure(quick: bool) -> Report {
    let (rounds, seconds) = if quick { (3, 2) } else { (10, 4) };
    let mut report = Report::new(
        format!("neighbours: {PER_SECOND} messages/s to a healthy plugin, from message to answer, ms"),
        &["p50", "p90", "p99", "worst"],
    );
    let simulator = peer::simulator().await;
    simulator.start_load_mode(false);
    let limits = "priority = 1\nlimits = { memory = \"8MiB\", cpu = \"50ms\", time = \"5s\" }";
    let host = HostBuilder::new(&simulator.api_base())
        .sections("[dispatch]\nmax_attempts = 1\n")
        .plugin("loops", &guest("loops"), limits)
        .plugin("eats", &guest("eats_memory"), limits)
        .plugin("panics", &guest("panics"), limits)
        .plugin("echo", &plugin("echo"), "")
        .start();
    let host = Arc::new(host);
    let begin = host.threads();
    listen(&simulator, PER_SECOND).await;
    let (mut alone, mut beside, mut bad) = (Vec::new(), Vec::new(), 0);
    // In turn, so that what else happens on the machine happens to both.
    for _ in 0..rounds {
        alone.extend(listen(&simulator, PER_SECOND * seconds).await);
        let over = Arc::new(AtomicBool::new(false));
        let harm = tokio::spawn(harm(simulator.clone(), host.clone(), over.clone(), bad));
        beside.extend(listen(&simulator, PER_SECOND * seconds).await);
        over.store(true, Ordering::Relaxed);
        bad = harm.await.expect("it does not panic");
    }
    let end = host.threads();
    let mut worst_hundredth = Vec::new();
    for (name, times) in [("alone", &mut alone), ("beside 24 loops, memory bombs and panics at once", &mut beside)] {
        let parts = [0.5, 0.9, 0.99, 1.0].map(|part| quantile(times, part));
        worst_hundredth.push(parts[2]);
        report.row(name, parts);
    }
    report.note(format!(
        "{rounds} rounds of {seconds} s each, in turn. p99 beside {bad} bad runs is {:.2} times what it is alone; {begin} \
         threads at the beginning, {end} at the end.",
        worst_hundredth[1] / worst_hundredth[0],
    ));
    report
}

/// Does harm until told to stop, and until all of it is over: volleys small enough, and with some good behaviour between
/// them, that no plugin is given a rest for failing all the time. Takes and answers how many bad runs there were.
async fn harm(simulator: Simulator, host: Arc<Host>, over: Arc<AtomicBool>, mut asked: u64) -> u64 {
    let chat = |n: usize| Bulk::new(0, 0).first_chat + CHATS + i64::try_from(n).expect("few");
    while !over.load(Ordering::Relaxed) {
        for n in 0..BAD.len() * VOLLEY {
            let text = BAD[n % BAD.len()].to_owned();
            simulator.push_updates(&Bulk { text, first_chat: chat(n), ..Bulk::new(1, 1) });
            asked += 1;
        }
        let begun = Instant::now();
        while dead(&host).await < asked {
            assert!(begun.elapsed() < Duration::from_secs(30), "bad runs do not end:\n{}", host.log());
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        for (n, text) in GOOD.into_iter().enumerate() {
            ask(&simulator, chat(100 + n), text).await;
        }
    }
    asked
}

/// How many events the host has given up.
async fn dead(host: &Arc<Host>) -> u64 {
    let host = host.clone();
    let count = move || host.metrics().sum("botyard_events_total", &["outcome=\"dead\""]);
    // A whole number.
    tokio::task::spawn_blocking(count).await.expect("it does not panic") as u64
}

/// The times of so many questions, in milliseconds.
async fn listen(simulator: &Simulator, count: u32) -> Vec<f64> {
    let first = Bulk::new(0, 0).first_chat;
    let mut asked = JoinSet::new();
    let mut ticks = tokio::time::interval(Duration::from_secs(1) / PER_SECOND);
    for n in 0..count {
        ticks.tick().await;
        let (simulator, chat) = (simulator.clone(), first + i64::from(n) % CHATS);
        asked.spawn(async move { ask(&simulator, chat, "quick").await });
    }
    asked.join_all().await
}

async fn ask(simulator: &Simulator, chat: i64, text: &str) -> f64 {
    let before = simulator.delivered(chat);
    let begun = Instant::now();
    simulator.push_updates(&Bulk { text: text.to_owned(), first_chat: chat, ..Bulk::new(1, 1) });
    let answered = simulator.wait_until(Duration::from_secs(30), || simulator.delivered(chat) > before).await;
    assert!(answered, "chat {chat} waits in vain");
    begun.elapsed().as_secs_f64() * 1e3
}
