//! Telegram, as this process plays it.

use std::time::{Duration, Instant};

use botyard::simulator::{Simulator, SimulatorSettings};

pub(crate) async fn simulator() -> Simulator {
    Simulator::start(SimulatorSettings { throttle_polls: false, ..SimulatorSettings::default() })
        .await
        .expect("a free port")
}

/// Waits until so many messages have arrived, asking seldom: whoever waits here costs what is measured.
pub(crate) async fn delivered(simulator: &Simulator, count: u64) {
    let mut seen = (0, Instant::now());
    loop {
        let sent = simulator.call_count("sendMessage");
        if sent >= count {
            break;
        }
        if sent > seen.0 {
            seen = (sent, Instant::now());
        }
        assert!(seen.1.elapsed() < Duration::from_secs(60), "only {sent} of {count} messages have come");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // A call counts when it arrives, the message when it is played.
    let simulator = simulator.clone();
    let all = simulator.wait_until(Duration::from_secs(5), || simulator.delivered_in_all() >= count).await;
    assert!(all, "only {} of {count} messages were delivered", simulator.delivered_in_all());
}

/// That every chat has got its answers, each once and in order.
pub(crate) fn check_order(simulator: &Simulator, chats: impl Iterator<Item = i64>, in_each: u64) {
    let expected: Vec<String> = (0..in_each).map(|n| format!("message {n}")).collect();
    for chat in chats {
        assert_eq!(simulator.sequence(chat), expected, "chat {chat}");
    }
}
