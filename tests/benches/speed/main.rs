//! How fast it is: `cargo xtask bench [--quick] [--json] [NAME…]`.
//!
//! - `throughput`: echoed messages per second, end to end, beside a bare HTTP loop that makes the same calls
//! - `run_cost`: what one run costs, and its parts
//! - `reload`: from saving a plugin to its first answer
//! - `latency`: how long others wait while some handlers sleep
//! - `neighbours`: how long others wait while some handlers loop, eat memory and panic
//! - `reading`: what reading one update costs, and whether it is right
//! - `backlog`: how long a hundred thousand waiting updates take when each takes a second, and how much memory
//!
//! Telegram is played by the simulator, in this process. It shares the machine with what is measured, so rates are
//! those of both together; ratios are taken within one run.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "talking to a person is what this program is for")]
#![expect(clippy::disallowed_types, reason = "real time is what is measured")]

mod backlog;
mod bare;
mod latency;
mod machine;
mod neighbours;
mod peer;
mod reading;
mod reload;
mod report;
mod run_cost;
mod throughput;

use std::process::ExitCode;

use serde_json::{Map, Value, json};

use crate::report::Report;

const NAMES: [&str; 7] = ["throughput", "run_cost", "reload", "latency", "neighbours", "reading", "backlog"];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [first, api_base, ..] = &arguments[..]
        && first == bare::ARGUMENT
    {
        return runtime().block_on(bare::run(api_base));
    }
    let (mut quick, mut json, mut is_bench, mut wanted) = (false, false, false, Vec::new());
    for argument in &arguments {
        match argument.as_str() {
            "--quick" => quick = true,
            "--json" => json = true,
            // What cargo adds.
            "--bench" => is_bench = true,
            name if NAMES.contains(&name) => wanted.push(name),
            other => {
                eprintln!("{other:?} is none of --quick, --json, {}", NAMES.join(", "));
                return ExitCode::FAILURE;
            }
        }
    }
    if !is_bench {
        println!("not measured: this is no `cargo bench`");
        return ExitCode::SUCCESS;
    }
    if cfg!(debug_assertions) {
        eprintln!("this build is not optimised: its numbers mean nothing");
    }
    let mut results = Map::new();
    let machine = machine::Machine::look();
    results.insert("machine".to_owned(), machine.json());
    results.insert("quick".to_owned(), json!(quick));
    if !json {
        print!("{machine}");
    }
    for name in NAMES.into_iter().filter(|name| wanted.is_empty() || wanted.contains(name)) {
        eprintln!("... {name}");
        let report: Report = match name {
            "throughput" => runtime().block_on(throughput::measure(quick)),
            "run_cost" => runtime().block_on(run_cost::measure(quick)),
            "neighbours" => runtime().block_on(neighbours::measure(quick)),
            "backlog" => runtime().block_on(backlog::measure(quick)),
            "reading" => reading::measure(quick),
            "reload" => runtime().block_on(reload::measure(quick)),
            _ => runtime().block_on(latency::measure(quick)),
        };
        if !json {
            print!("\n{report}");
        }
        results.insert(name.to_owned(), report.json());
    }
    if json {
        println!("{:#}", Value::Object(results));
    }
    ExitCode::SUCCESS
}

/// As the host has it.
fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime")
}
