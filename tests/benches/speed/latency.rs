//! How long people wait for their answer while handlers of other chats sleep for a second.

use std::time::{Duration, Instant};

use botyard::simulator::{Bulk, Simulator};
use botyard_tests::{HostBuilder, plugin};
use tokio::task::JoinSet;

use crate::peer;
use crate::report::{Report, quantile};

const PER_SECOND: u32 = 300;
/// One in so many is for a handler that sleeps.
const SLOW_ONE_IN: u32 = 50;
const CHATS: i64 = 1_000;
/// They are asked more seldom than they wake.
const SLOW_CHATS: i64 = 100;

pub(crate) async fn measure(quick: bool) -> Report {
    let seconds = if quick { 5 } else { 30 };
    let mut report = Report::new(
        format!("latency: {PER_SECOND} messages/s for {seconds} s, from message to answer, ms"),
        &["p50", "p90", "p99", "worst"],
    );
    for (name, sleeping) in [("nobody sleeps", false), ("2 % of the handlers sleep 1 s: the others", true)] {
        let mut times = run(PER_SECOND * seconds, sleeping).await;
        report.row(name, [0.5, 0.9, 0.99, 1.0].map(|part| quantile(&mut times, part)));
    }
    report
}

/// The times of those that did not sleep, in milliseconds; without the first second, in which connections are made.
async fn run(count: u32, sleeping: bool) -> Vec<f64> {
    let simulator = peer::simulator().await;
    simulator.start_load_mode(false);
    let _host = HostBuilder::new(&simulator.api_base()).plugin("echo", &plugin("echo"), "").start();
    let first = Bulk::new(0, 0).first_chat;
    let mut asked = JoinSet::new();
    let mut ticks = tokio::time::interval(Duration::from_secs(1) / PER_SECOND);
    for n in 0..PER_SECOND + count {
        ticks.tick().await;
        let slow = sleeping && n % SLOW_ONE_IN == 0;
        let (text, chat) = if slow {
            ("slow", first + CHATS + i64::from(n / SLOW_ONE_IN) % SLOW_CHATS)
        } else {
            ("quick", first + i64::from(n) % CHATS)
        };
        let simulator = simulator.clone();
        asked.spawn(async move { (slow || n < PER_SECOND, ask(&simulator, chat, text).await) });
    }
    let times = asked.join_all().await;
    times.into_iter().filter(|(left_out, _)| !left_out).map(|(_, time)| time).collect()
}

async fn ask(simulator: &Simulator, chat: i64, text: &str) -> f64 {
    let before = simulator.delivered(chat);
    let begun = Instant::now();
    simulator.push_updates(&Bulk { text: text.to_owned(), first_chat: chat, ..Bulk::new(1, 1) });
    let answered = simulator.wait_until(Duration::from_secs(30), || simulator.delivered(chat) > before).await;
    assert!(answered, "chat {chat} waits in vain");
    begun.elapsed().as_secs_f64() * 1e3
}
