//! The machine that the numbers are from.

use std::fmt;
use std::fs;
use std::io::Write as _;
use std::time::Instant;

use serde_json::{Value, json};

use crate::report::{median, quantile};

pub(crate) struct Machine {
    processor: String,
    cores: usize,
    kernel: String,
    memory_gib: u64,
    fsync_median_ms: f64,
    fsync_p99_ms: f64,
    load: String,
}

impl Machine {
    pub(crate) fn look() -> Self {
        let field = |file: &str, name: &str| {
            let text = fs::read_to_string(file).unwrap_or_default();
            let line = text.lines().find(|line| line.starts_with(name));
            line.and_then(|line| line.split_once(':')).map(|(_, value)| value.trim().to_owned()).unwrap_or_default()
        };
        let memory = field("/proc/meminfo", "MemTotal");
        let memory_kib = memory.split(' ').next().and_then(|number| number.parse::<u64>().ok()).unwrap_or(0);
        let mut fsyncs = fsyncs();
        Self {
            processor: field("/proc/cpuinfo", "model name"),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned(),
            memory_gib: memory_kib >> 20,
            fsync_median_ms: median(fsyncs.iter().copied()),
            fsync_p99_ms: quantile(&mut fsyncs, 0.99),
            load: fs::read_to_string("/proc/loadavg").unwrap_or_default().chars().take(4).collect(),
        }
    }

    pub(crate) fn json(&self) -> Value {
        let Self { processor, cores, kernel, memory_gib, fsync_median_ms, fsync_p99_ms, load } = self;
        json!({
            "processor": processor, "cores": cores, "kernel": kernel, "memory_gib": memory_gib,
            "fsync_median_ms": fsync_median_ms, "fsync_p99_ms": fsync_p99_ms, "load": load,
        })
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { processor, cores, kernel, memory_gib, fsync_median_ms, fsync_p99_ms, load } = self;
        writeln!(f, "{processor}, {cores} cores, {memory_gib} GiB, Linux {kernel}, load {load} at the start")?;
        writeln!(f, "fdatasync of 4 KiB: median {fsync_median_ms:.2} ms, p99 {fsync_p99_ms:.2} ms")
    }
}

/// Milliseconds, in the folder where the hosts under test have their stores.
fn fsyncs() -> Vec<f64> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut file = fs::File::create(folder.path().join("data")).expect("writable");
    let one = |_| {
        file.write_all(&[7; 4096]).expect("writable");
        let begun = Instant::now();
        file.sync_data().expect("it can be synced");
        begun.elapsed().as_secs_f64() * 1e3
    };
    (0..200).map(one).collect()
}
