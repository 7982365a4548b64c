//! What the tests have in common.

use std::time::Duration;

use botyard::domain::BotId;
use botyard::simulator::{Bulk, Simulator, SimulatorSettings};
use botyard::store::Store;
use botyard::store::rows::dead::{self, DeadRow};
use botyard_tests::{Host, HostBuilder, plugin};

/// The bot of the hosts under test.
pub(crate) const BOT: BotId = BotId(4242);

pub(crate) async fn simulator() -> Simulator {
    Simulator::start(SimulatorSettings { throttle_polls: false, ..SimulatorSettings::default() })
        .await
        .expect("a free port")
}

pub(crate) fn builder(simulator: &Simulator) -> HostBuilder {
    HostBuilder::new(&simulator.api_base())
}

/// A host with the `echo` plugin.
pub(crate) fn echo_host(simulator: &Simulator, config: &str) -> Host {
    builder(simulator).plugin("echo", &plugin("echo"), config).start()
}

/// Sends a text and waits for the bot's next message in the chat.
pub(crate) async fn ask(simulator: &Simulator, chat: i64, text: &str) -> String {
    let before = simulator.delivered(chat);
    simulator.user_says(chat, chat, text).expect("the chat is there");
    next(simulator, chat, before).await
}

/// The bot's message after the first `before` ones.
pub(crate) async fn next(simulator: &Simulator, chat: i64, before: u64) -> String {
    let messages = simulator.wait_for_messages(chat, before + 1, Duration::from_secs(30)).await.expect("an answer");
    messages.get(usize::try_from(before).expect("few")).expect("it was waited for").text().to_owned()
}

/// Waits until the bot has sent so many messages in all.
pub(crate) async fn delivered(simulator: &Simulator, count: u64, within: Duration) {
    let handle = simulator.clone();
    let done = simulator.wait_until(within, move || handle.delivered_in_all() >= count).await;
    assert!(done, "only {} of {count} messages were delivered", simulator.delivered_in_all());
}

/// The ids of the chats that a bulk makes.
pub(crate) fn chats(bulk: &Bulk) -> impl Iterator<Item = i64> + use<> {
    let first = bulk.first_chat;
    (0..bulk.chats).map(move |n| first + i64::try_from(n).expect("few"))
}

/// What a host that was stopped has set aside.
pub(crate) fn dead_letters(host: &Host) -> Vec<DeadRow> {
    let store = Store::open(&host.store_dir()).expect("the host has stopped");
    let rows = store.scan_prefix(&dead::bot_prefix(BOT), usize::MAX).expect("a sound store");
    rows.iter().map(|(_, value)| DeadRow::decode(value).expect("a sound row")).collect()
}
