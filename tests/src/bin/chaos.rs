//! `cargo xtask chaos`: see `chaos.rs` of the library beside this.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people")]

use std::process::ExitCode;

use botyard_tests::chaos::{Mode, Options, run};
use botyard_tests::soak;

const USAGE: &str = "usage: cargo xtask chaos [--updates N] [--kills K] [--seed S] [--mode polling|webhook|both]
       cargo xtask chaos --reloads N";

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, value] = &arguments[..]
        && flag == "--reloads"
    {
        return match value.parse() {
            Ok(reloads @ 1..) => soak(reloads).await,
            _ => {
                eprintln!("`{value}` is not a number of reloads\n{USAGE}");
                ExitCode::from(2)
            }
        };
    }
    let (options, modes) = match options(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(problem) => {
            eprintln!("{problem}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let mut is_clean = true;
    for mode in modes {
        is_clean &= once(Options { mode, ..options }).await;
    }
    if is_clean { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Twenty updates each.
const WARM_UP: u32 = 600;

/// Memory may be a tenth more in the last tenths than it is after the first.
async fn soak(reloads: u32) -> ExitCode {
    println!("{reloads} reloads while updates flow");
    let report = soak::run(WARM_UP, reloads, |n, host| {
        if n % (reloads / 10).max(1) == 0 {
            println!("  {n} reloads, {} MiB, {} threads", host.resident_mib(), host.threads());
        }
    })
    .await;
    let soak::Report { wrong, memory: (early, late), modules, threads } = report;
    println!(
        "wrong answers: {wrong}\nmemory: at least {early} MiB in tenths 2 to 4, {late} MiB in tenths 8 to 10\ncompiled modules: {} before, {} at the end\nthreads: {} after a tenth, {} at the end",
        modules.0, modules.1, threads.0, threads.1
    );
    if wrong == 0 && modules.1 == modules.0 && late <= early + early / 10 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

async fn once(options: Options) -> bool {
    println!(
        "{} updates by {}, {} kills, network faults and reloads; seed {} (repeat it with --seed)",
        options.updates,
        match options.mode {
            Mode::Polling => "polling",
            Mode::Webhook => "webhook",
        },
        options.kills,
        options.seed
    );
    let mut said = 0;
    let report = run(options, |answers| {
        if answers >= said + options.updates / 5 {
            said = answers;
            println!("  {answers} answers");
        }
    })
    .await;
    println!(
        "killed {} times, replaced {} times\nlost: {}\nwrong counts: {}\nout of order: {}\nanswers that came twice: {}",
        report.kills, report.reloads, report.lost, report.wrong_counts, report.out_of_order, report.repeated_answers
    );
    report.is_clean()
}

fn options(mut arguments: impl Iterator<Item = String>) -> Result<(Options, Vec<Mode>), String> {
    let (faults, reloads, mode, seed) = (true, true, Mode::Polling, rand::random());
    let mut options = Options { updates: 2_000, kills: 10, faults, reloads, mode, seed };
    let mut modes = vec![Mode::Polling, Mode::Webhook];
    while let Some(flag) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("`{flag}` needs a value"))?;
        let number = |value: &str| value.parse::<u64>().map_err(|_| format!("`{value}` is not a number"));
        match flag.as_str() {
            "--updates" => options.updates = number(&value)?.max(50),
            "--kills" => options.kills = u32::try_from(number(&value)?).map_err(|_| "too many kills".to_owned())?,
            "--seed" => options.seed = number(&value)?,
            "--mode" => {
                modes = match value.as_str() {
                    "polling" => vec![Mode::Polling],
                    "webhook" => vec![Mode::Webhook],
                    "both" => modes,
                    _ => return Err(format!("there is no mode `{value}`")),
                }
            }
            _ => return Err(format!("there is no `{flag}`")),
        }
    }
    Ok((options, modes))
}
