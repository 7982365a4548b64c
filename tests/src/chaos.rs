//! Updates flow while the host is killed, the network breaks and the plugin is replaced; then everything is counted.
//!
//! The `counter` plugin tells with every answer how often it was asked, in the chat and over all chats. So the answers
//! say what became of each update: one that was lost leaves the last count too low, one that took effect twice leaves
//! it too high, and an answer that came twice is just that.

use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

use botyard::simulator::{Action, Bulk, Fault, Simulator, SimulatorSettings};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

use crate::{HostBuilder, plugin};

const PER_CHAT: u64 = 50;

/// How updates come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The host asks.
    Polling,
    /// Telegram calls.
    Webhook,
}

/// How much of it.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Updates, fifty for each chat.
    pub updates: u64,
    /// `kill -9`s, at random moments.
    pub kills: u32,
    /// Whether Telegram has its troubles too: 5xx, floods, resets, cut answers.
    pub faults: bool,
    /// Whether the plugin is replaced again and again.
    pub reloads: bool,
    /// How updates come.
    pub mode: Mode,
    /// What the random moments are made from.
    pub seed: u64,
}

/// What came of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Report {
    /// Updates without an effect.
    pub lost: u64,
    /// Answers that came more than once: the Bot API can't prevent it where an answer was in flight.
    pub repeated_answers: u64,
    /// Answers that came before one that was due earlier.
    pub out_of_order: u64,
    /// Counts that no sequence of single effects explains.
    pub wrong_counts: u64,
    /// How often the host was killed.
    pub kills: u32,
    /// How often the plugin was replaced.
    pub reloads: u32,
}

impl Report {
    /// Nothing lost, every count exact, order kept.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.lost == 0 && self.wrong_counts == 0 && self.out_of_order == 0
    }
}

/// Runs it. `progress` is told now and then how many answers have come.
///
/// # Panics
/// When the host does not come up again, or nothing moves for two minutes.
pub async fn run(options: Options, mut progress: impl FnMut(u64)) -> Report {
    let mut random = StdRng::seed_from_u64(options.seed);
    // Telegram would let a chat rest for a minute after the host was away a few times.
    let webhook_second = Duration::from_millis(10);
    let settings = SimulatorSettings { throttle_polls: false, webhook_second, ..SimulatorSettings::default() };
    let simulator = Simulator::start(settings).await.expect("a free port");
    simulator.start_load_mode(true);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let wasm = folder.path().join("counter.wasm");
    let original = std::fs::read(plugin("counter")).expect("it was just built");
    std::fs::write(&wasm, &original).expect("the folder is writable");
    let builder = HostBuilder::new(&simulator.api_base()).plugin("counter", &wasm, "");
    let mut host = match options.mode {
        Mode::Polling => builder.start(),
        Mode::Webhook => builder.webhook("").start(),
    };
    if options.faults {
        add_faults(&simulator, options.seed);
    }

    let chats = (options.updates / PER_CHAT).max(1);
    let bulk = Bulk { text: "/count".to_owned(), ..Bulk::new(chats * PER_CHAT, chats) };
    // In portions, so that every kill finds something under way.
    let portion = PER_CHAT.div_ceil(u64::from(options.kills) + 1);
    let mut waiting = PER_CHAT;
    let mut report = Report::default();
    let (mut silent, mut delivered) = (0, 0);
    // A repeated answer counts as delivered, so the end is told by the counts, not by the number of answers.
    while waiting > 0 || report.kills < options.kills || is_short(&simulator, &bulk) {
        let now = portion.min(waiting);
        if now > 0 {
            simulator.push_updates(&Bulk { count: chats * now, ..bulk.clone() });
            waiting -= now;
        }
        tokio::time::sleep(Duration::from_millis(random.random_range(5..150))).await;
        if report.kills < options.kills {
            if options.reloads && random.random_bool(0.5) {
                report.reloads += 1;
                replace(&wasm, &original, report.reloads);
                // Now and then the kill hits the reload itself.
                tokio::time::sleep(Duration::from_millis(random.random_range(0..600))).await;
            }
            host.kill();
            report.kills += 1;
            host.start();
        }
        let now = simulator.delivered_in_all();
        silent = if now == delivered { silent + 1 } else { 0 };
        assert!(silent < 1_000, "nothing moves any more:\n{}", host.log());
        delivered = now;
        progress(now);
    }
    simulator.clear_faults();
    host.settle();
    count(&simulator, &bulk, &mut report);
    report
}

fn add_faults(simulator: &Simulator, seed: u64) {
    for (n, (method, action, probability)) in [
        ("sendMessage", Action::internal_error(), 0.01),
        ("sendMessage", Action::bad_gateway(), 0.01),
        ("sendMessage", Action::Flood { retry_after: 1 }, 0.005),
        ("sendMessage", Action::Reset { applied: false }, 0.01),
        ("sendMessage", Action::Reset { applied: true }, 0.005),
        ("sendMessage", Action::Cut { after: 9 }, 0.005),
        ("getUpdates", Action::bad_gateway(), 0.02),
        ("getUpdates", Action::Reset { applied: false }, 0.02),
        ("getUpdates", Action::Cut { after: 200 }, 0.02),
        ("getWebhookInfo", Action::bad_gateway(), 0.05),
        ("setWebhook", Action::Reset { applied: true }, 0.2),
        // Deliveries that do not arrive, and such whose 200 does not: those come again.
        ("webhook", Action::Reset { applied: false }, 0.02),
        ("webhook", Action::Reset { applied: true }, 0.05),
        ("webhook", Action::Stall { time: Duration::from_millis(50), applied: false }, 0.02),
    ]
    .into_iter()
    .enumerate()
    {
        simulator.add_fault(Fault::on(method, action).probability(probability, seed + n as u64));
    }
}

/// Puts the same plugin in place as another file: with a custom section of its own at the end.
pub(crate) fn replace(path: &Path, original: &[u8], number: u32) {
    let mut section = vec![0, 9, 4];
    section.extend_from_slice(b"note");
    section.extend_from_slice(&number.to_le_bytes());
    let beside = path.with_extension("new");
    std::fs::write(&beside, [original, &section].concat()).expect("the folder is writable");
    std::fs::rename(&beside, path).expect("the folder is writable");
}

fn chats(bulk: &Bulk) -> impl Iterator<Item = i64> + use<> {
    (bulk.first_chat..).take(usize::try_from(bulk.chats).expect("few"))
}

fn is_short(simulator: &Simulator, bulk: &Bulk) -> bool {
    let is_behind = |chat| {
        let sequence = simulator.sequence(chat);
        sequence.iter().filter_map(|text| counts(text)).map(|(here, _)| here).max() < Some(PER_CHAT)
    };
    simulator.delivered_in_all() < bulk.count || chats(bulk).any(is_behind)
}

fn count(simulator: &Simulator, bulk: &Bulk, report: &mut Report) {
    let mut totals = HashSet::new();
    for chat in chats(bulk) {
        let (mut told, mut highest) = (HashSet::new(), 0);
        for text in simulator.sequence(chat) {
            let Some((here, all)) = counts(&text) else {
                report.wrong_counts += 1;
                continue;
            };
            if !told.insert(here) {
                report.repeated_answers += 1;
                continue;
            }
            totals.insert(all);
            report.out_of_order += u64::from(here < highest);
            highest = highest.max(here);
        }
        report.lost += (1..=PER_CHAT).filter(|n| !told.contains(n)).count() as u64;
        report.wrong_counts += told.iter().filter(|&&n| n == 0 || n > PER_CHAT).count() as u64;
    }
    report.wrong_counts += (1..=bulk.count).filter(|n| !totals.contains(n)).count() as u64;
    report.wrong_counts += totals.iter().filter(|&&n| n > bulk.count).count() as u64;
}

/// `This chat: 3. All chats: 17.`
pub(crate) fn counts(text: &str) -> Option<(u64, u64)> {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok());
    Some((numbers.next()?, numbers.next()?))
}
