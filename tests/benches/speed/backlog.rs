//! A long outage: many updates wait, and each of them takes its handler a second.

use std::time::{Duration, Instant};

use botyard::simulator::Bulk;
use botyard_tests::{HostBuilder, plugin};

use crate::peer;
use crate::report::Report;

const CONCURRENCY: u64 = 256;
const NEWCOMER: i64 = 77;

pub(crate) async fn measure(quick: bool) -> Report {
    let (count, chats) = if quick { (2_560, 2_560) } else { (100_000, 50_000) };
    let mut report = Report::new(
        format!("backlog: {count} updates of {chats} chats wait, each takes a second, {CONCURRENCY} at a time"),
        &["value"],
    );
    let simulator = peer::simulator().await;
    simulator.start_load_mode(false);
    let host = HostBuilder::new(&simulator.api_base())
        .sections(&format!("[dispatch]\nconcurrency = {CONCURRENCY}\n"))
        .plugin("echo", &plugin("echo"), "config = { slow_ms = 1000 }")
        .start();
    let begun = Instant::now();
    simulator.push_updates(&Bulk { text: "slow".to_owned(), ..Bulk::new(count, chats) });
    let limit = Duration::from_secs(3_600);
    let enough = {
        let simulator = simulator.clone();
        move |n| simulator.delivered_in_all() >= n
    };
    // What comes in now comes behind one turn of all chats.
    assert!(simulator.wait_until(limit, || enough(count - chats / 2)).await, "it stands still");
    let asked = Instant::now();
    simulator.push_updates(&Bulk { text: "hello".to_owned(), first_chat: NEWCOMER, ..Bulk::new(1, 1) });
    assert!(simulator.wait_until(limit, || simulator.delivered(NEWCOMER) > 0).await, "the newcomer waits in vain");
    let newcomer = asked.elapsed();
    assert!(simulator.wait_until(limit, || enough(count + 1)).await, "it stands still");
    let ideal = count.div_ceil(CONCURRENCY) as f64;
    report.row("time to drain, s", [begun.elapsed().as_secs_f64()]);
    report.row("the least that is possible, s", [ideal]);
    report.row("a newcomer's answer after, s", [newcomer.as_secs_f64()]);
    report.row("most memory, MiB", [host.peak_resident_mib() as f64]);
    report
}
