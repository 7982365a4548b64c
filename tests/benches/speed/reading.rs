//! What reading an update costs, over updates of every shape; and that what is read is what is there.

use std::hint::black_box;
use std::time::Instant;

use botyard::domain::{KeyStrategy, UpdateView};
use botyard_tests::updates::{Sample, check};
use rand::SeedableRng as _;
use rand::rngs::StdRng;

use crate::report::Report;

const PARALLEL: usize = 2;

pub(crate) fn measure(quick: bool) -> Report {
    let (sequential, parallel) = if quick { (50_000, 20_000) } else { (500_000, 200_000) };
    let mut report = Report::new(
        format!("reading: {sequential} updates of every shape, and {parallel} on {PARALLEL} threads at once"),
        &["µs each"],
    );
    let one = run(1, sequential);
    report.row("read and find the lane", [one]);
    let several = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..PARALLEL as u64).map(|n| scope.spawn(move || run(2 + n, parallel / PARALLEL))).collect();
        let times: Vec<f64> = threads.into_iter().map(|thread| thread.join().expect("no reading panics")).collect();
        times.iter().sum::<f64>() / times.len() as f64
    });
    report.row(format!("the same on {PARALLEL} threads"), [several]);
    report.note("every reading was compared with what a JSON value says");
    report
}

/// Microseconds for each.
fn run(seed: u64, count: usize) -> f64 {
    let mut random = StdRng::seed_from_u64(seed);
    let mut spent = 0.0;
    for _ in 0..count.div_ceil(1_000) {
        let samples: Vec<_> = (0..1_000).map(|_| Sample::random(&mut random)).collect();
        let begun = Instant::now();
        for sample in &samples {
            if let Ok(view) = UpdateView::parse(&sample.text) {
                black_box((view.lane(KeyStrategy::Chat), view.command()));
            }
        }
        spent += begun.elapsed().as_secs_f64();
        for sample in &samples {
            check(sample).unwrap_or_else(|problem| panic!("{problem}"));
        }
    }
    spent * 1e6 / (count.div_ceil(1_000) * 1_000) as f64
}
