//! The state file.

use super::*;

fn settings(folder: &tempfile::TempDir) -> SimulatorSettings {
    SimulatorSettings { state_file: Some(folder.path().join("sim.json")), ..Default::default() }
}

#[tokio::test]
async fn everything_goes_on_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let simulator = Simulator::start(settings(&folder)).await.unwrap();
    let bot = Bot::of(&simulator);
    let unread = simulator.user_says(ALICE, ALICE, "/start 😀").unwrap();
    bot.ok("sendMessage", json!({"chat_id": ALICE, "text": "*hi*", "parse_mode": "Markdown"})).await;
    let before = simulator.messages(ALICE);
    simulator.stop().await.unwrap();
    assert!(bot.try_call("getMe", json!({})).await.is_err(), "the port is closed");

    let simulator = Simulator::start(settings(&folder)).await.unwrap();
    let bot = Bot::of(&simulator);
    assert_eq!(simulator.messages(ALICE), before);
    assert_eq!(bot.poll(json!({})).await[0]["update_id"], unread);
    assert_eq!(simulator.user_says(ALICE, ALICE, "more").unwrap(), unread + 1);
    assert_eq!(bot.ok("sendMessage", json!({"chat_id": ALICE, "text": "x"})).await["message_id"], 4);
}

#[tokio::test]
async fn a_killed_simulator_gives_no_update_id_twice() {
    let folder = tempfile::tempdir().unwrap();
    let simulator = Simulator::start(settings(&folder)).await.unwrap();
    let (_, end) = simulator.push_updates(&Bulk::new(1_000, 10));
    drop(simulator);
    let simulator = Simulator::start(settings(&folder)).await.unwrap();
    assert!(simulator.user_says(ALICE, ALICE, "x").unwrap() > end);
}

#[tokio::test]
async fn changes_are_saved_before_long() {
    let folder = tempfile::tempdir().unwrap();
    let simulator = Simulator::start(settings(&folder)).await.unwrap();
    simulator.user_says(ALICE, ALICE, "remember me").unwrap();
    let saved = || std::fs::read_to_string(folder.path().join("sim.json")).unwrap().contains("remember me");
    let deadline = tokio::time::Instant::now() + SOON;
    while !saved() {
        assert!(tokio::time::Instant::now() < deadline);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_corrupt_file_is_refused_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sim.json");
    for content in ["", "{\"simulator_format\":1", "[]", "{\"simulator_format\":9,\"complete\":true,\"world\":{}}"] {
        std::fs::write(&path, content).unwrap();
        let Err(error) = Simulator::start(settings(&folder)).await else { panic!("{content} was accepted") };
        assert!(error.to_string().contains("move it away"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), content);
    }
    let nowhere = SimulatorSettings { state_file: Some(folder.path().join("no/such/sim.json")), ..Default::default() };
    assert!(matches!(Simulator::start(nowhere).await, Err(Error::Save { .. })));
}
