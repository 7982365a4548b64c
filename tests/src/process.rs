//! What Linux tells about a process.

use std::fs;
use std::time::Duration;

/// Time on a processor since the start of a process, all of its threads together, in user code and in the kernel.
///
/// # Panics
/// When there is no such process.
#[must_use]
pub fn processor_time(process: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).expect("it runs");
    // The name before it is in parentheses and may hold anything.
    let (_, fields) = stat.rsplit_once(')').expect("Linux tells it");
    let mut fields = fields.split_whitespace().skip(11).map_while(|field| field.parse::<u64>().ok());
    let ticks = fields.next().zip(fields.next()).map(|(user, kernel)| user + kernel).expect("Linux tells it");
    // Whatever the kernel counts in, it tells in hundredths of a second.
    Duration::from_millis(ticks * 10)
}

/// A number of `/proc/PID/status`; amounts of memory are in KiB.
///
/// # Panics
/// When there is no such process or field.
#[must_use]
pub fn status(process: u32, field: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).expect("Linux tells it")
}

/// How many pieces of code a process has that came from no file of programs: of each module that wasmtime compiled, one.
///
/// # Panics
/// When there is no such process.
#[must_use]
pub fn compiled_modules(process: u32) -> usize {
    let maps = fs::read_to_string(format!("/proc/{process}/maps")).expect("it runs");
    let is_code = |line: &&str| line.contains(" r-xp ") && line.split_whitespace().count() == 5;
    maps.lines().filter(is_code).count()
}
