//! How long people wait for a healthy plugin while others are kept looping, eating memory and panicking, and while the
//! same others are asked as much and do well: the difference is what misbehaving costs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use botyard::simulator::{Bulk, Simulator};
use botyard_tests::{Host, HostBuilder, guest, plugin};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use crate::peer;
use crate::report::{Report, quantile};

const PER_SECOND: u32 = 100;
const CHATS: i64 = 500;
/// What three plugins do badly.
const BAD: [&str; 3] = ["/loop", "/eat", "/panic"];
/// What the same plugins do well.
const GOOD: [&str; 3] = ["/well", "/eat 1", "/fail 1"];

/// How the others are asked.
#[derive(Clone, Copy)]
struct Volleys {
    /// So many at once of each plugin.
    of: usize,
    every: Duration,
}

const VOLLEYS: [Volleys; 2] =
    [Volleys { of: 1, every: Duration::from_millis(60) }, Volleys { of: 8, every: Duration::from_millis(500) }];

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
    let mut alone = Vec::new();
    let mut beside = VOLLEYS.map(|volleys| [GOOD, BAD].map(|texts| (volleys, texts, Vec::new())));
    let mut bad_runs = 0;
    // In turn, so that what else happens on the machine happens to all.
    for _ in 0..rounds {
        alone.extend(listen(&simulator, PER_SECOND * seconds).await);
        for (volleys, texts, times) in beside.iter_mut().flatten() {
            let over = Arc::new(AtomicBool::new(false));
            let others = tokio::spawn(volleys.ask(simulator.clone(), *texts, over.clone()));
            times.extend(listen(&simulator, PER_SECOND * seconds).await);
            over.store(true, Ordering::Relaxed);
            let asked = others.await.expect("it does not panic");
            if *texts == BAD {
                bad_runs += asked;
                all_given_up(&host, bad_runs).await;
            }
        }
    }
    let end = host.threads();
    let mut row = |name: &str, times: &mut Vec<f64>| {
        let parts = [0.5, 0.9, 0.99, 1.0].map(|part| quantile(times, part));
        report.row(name, parts);
        parts[2]
    };
    let alone = row("alone", &mut alone);
    let mut notes = vec![format!(
        "{rounds} rounds of {seconds} s each, in turn; {bad_runs} bad runs; {begin} threads at the beginning, {end} at the end."
    )];
    for [(volleys, _, well), (_, _, badly)] in &mut beside {
        let at_once = volleys.of * BAD.len();
        let well = row(&format!("beside {at_once} others at a time, who do well"), well);
        let badly = row(&format!("beside {at_once} loops, memory bombs and panics at a time"), badly);
        notes.push(format!(
            "p99 beside {at_once} bad runs at a time: {:.2} times what it is beside as many good ones, {:.2} times what it \
             is alone.",
            badly / well,
            badly / alone,
        ));
    }
    for note in notes {
        report.note(note);
    }
    report
}

impl Volleys {
    /// Asks the others for `texts` again and again until told to stop; answers how often. Volleys are small enough, and
    /// there is some good behaviour between them, that no plugin is given a rest for failing all the time.
    async fn ask(self, simulator: Simulator, texts: [&'static str; 3], over: Arc<AtomicBool>) -> u64 {
        let chat = |n: usize| Bulk::new(0, 0).first_chat + CHATS + i64::try_from(n).expect("few");
        let mut ticks = tokio::time::interval(self.every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut asked = 0;
        while !over.load(Ordering::Relaxed) {
            ticks.tick().await;
            for n in 0..texts.len() * self.of {
                let text = texts[n % texts.len()].to_owned();
                simulator.push_updates(&Bulk { text, first_chat: chat(n), ..Bulk::new(1, 1) });
                asked += 1;
            }
            if asked % 24 == 0 {
                // Between two volleys.
                tokio::time::sleep(self.every / 2).await;
                for (n, text) in GOOD.into_iter().enumerate() {
                    ask(&simulator, chat(100 + n), text).await;
                }
            }
        }
        asked
    }
}

/// Waits until the host has given up so many events.
async fn all_given_up(host: &Arc<Host>, events: u64) {
    let begun = Instant::now();
    while dead(host).await < events {
        assert!(begun.elapsed() < Duration::from_secs(30), "bad runs do not end:\n{}", host.log());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
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
