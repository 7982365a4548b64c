//! From saving a plugin file to the first answer of the new version.
//!
//! Cold: the host has never seen the file and compiles it. Warm: it has the compiled code in its cache, as after going
//! back to a version that was there before.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use botyard::simulator::{ALICE, Simulator};
use botyard_tests::{HostBuilder, guest};

use crate::peer;
use crate::report::{Report, median};

pub(crate) async fn measure(quick: bool) -> Report {
    let times = if quick { 3 } else { 10 };
    let simulator = peer::simulator().await;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("versioned.wasm");
    let read = |name| fs::read(guest(name)).expect("it was built");
    let (old, new) = (read("versioned_a"), read("versioned_b"));
    save(&file, &old);
    let _host = HostBuilder::new(&simulator.api_base()).plugin("versioned", &file, "").start();
    // From here on both are in the cache. Their answers begin with their number.
    reload(&simulator, &file, &new, "2: ").await;
    reload(&simulator, &file, &old, "1: ").await;
    let (mut cold, mut warm) = (Vec::new(), Vec::new());
    for n in 0..times {
        warm.push(reload(&simulator, &file, &new, "2: ").await);
        cold.push(reload(&simulator, &file, &marked(&old, n), "1: ").await);
        eprintln!("    {} of {times}: warm {:.0} ms, cold {:.0} ms", n + 1, warm[n], cold[n]);
    }
    let mut report = Report::new(
        format!("reload: from saving a plugin to its first answer, ms; {times} times each"),
        &["median", "best", "worst"],
    );
    for (name, times) in [("not seen before: compiled", cold), ("in the cache", warm)] {
        let (best, worst) = (times.iter().copied().fold(f64::MAX, f64::min), times.iter().copied().fold(0.0, f64::max));
        report.row(name, [median(times), best, worst]);
    }
    report.note("200 ms of each are the wait until nobody writes to the file any more.");
    report
}

/// Saves and asks until the new version answers; milliseconds.
async fn reload(simulator: &Simulator, file: &Path, wasm: &[u8], answer: &str) -> f64 {
    let begun = Instant::now();
    save(file, wasm);
    loop {
        let before = simulator.delivered(ALICE);
        simulator.user_says(ALICE, ALICE, "hello").expect("a chat");
        let messages = simulator.wait_for_messages(ALICE, before + 1, Duration::from_secs(10)).await;
        if messages.expect("an answer").last().is_some_and(|message| message.text().starts_with(answer)) {
            return begun.elapsed().as_secs_f64() * 1e3;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "the new version does not come");
    }
}

fn save(file: &Path, wasm: &[u8]) {
    let beside = file.with_extension("new");
    fs::write(&beside, wasm).expect("writable");
    fs::rename(&beside, file).expect("writable");
}

/// The same plugin in a file that was never seen: with a custom section that says nothing.
fn marked(wasm: &[u8], number: usize) -> Vec<u8> {
    let text = format!("{number:08}");
    // Section 0: its length, the length of its name, the name, the content.
    [wasm, &[0, 13, 4], b"mark", text.as_bytes()].concat()
}
