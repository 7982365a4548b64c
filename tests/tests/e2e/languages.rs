//! The languages that people choose, and the buttons that speak them.

use botyard::simulator::{ALICE, BOTIR, GROUP, Simulator};
use botyard_tests::{guest, plugin};

use super::support::{ask, builder, next, simulator};

/// What the bot answers to a command in the group.
async fn in_group(simulator: &Simulator, user: i64, text: &str) -> String {
    let before = simulator.delivered(GROUP);
    simulator.user_says(GROUP, user, text).expect("a group");
    next(simulator, GROUP, before).await
}

/// What comes after a command that answers later.
async fn later(simulator: &Simulator, user: i64, text: &str) -> String {
    let before = simulator.delivered(user);
    simulator.user_says(user, user, text).expect("a chat");
    next(simulator, user, before).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chosen_language_holds_for_all_plugins_over_a_restart() {
    let simulator = simulator().await;
    let mut host = builder(&simulator)
        .plugin("greeter", &plugin("greeter"), "")
        .plugin("speaks", &guest("speaks"), "on_crash = \"skip\"")
        .start();
    // Alice's Telegram is in English, Botir's in Uzbek.
    assert_eq!(ask(&simulator, ALICE, "/who").await, "en 3 other");
    assert_eq!(ask(&simulator, BOTIR, "/who").await, "uz 3 other");
    for text in ["/later", "/job"] {
        assert_eq!(later(&simulator, BOTIR, text).await, "uz 5 other", "{text}: Telegram told it then");
    }

    assert_eq!(ask(&simulator, ALICE, "/language").await, "Which language shall I speak?");
    let before = simulator.delivered(ALICE);
    simulator.user_presses(ALICE, ALICE, None, "Oʻzbekcha").expect("a button");
    assert_eq!(next(&simulator, ALICE, before).await, "Salom, Alice!");
    assert_eq!(ask(&simulator, ALICE, "/who").await, "uz 3 other");

    host.settle();
    host.kill();
    host.start();
    assert_eq!(ask(&simulator, ALICE, "/who").await, "uz 3 other");
    assert_eq!(later(&simulator, ALICE, "/later").await, "uz 5 other");
    // A button from before, in the language of before.
    assert_eq!(ask(&simulator, ALICE, "🌐 Language").await, "Qaysi tilda gapiray?");

    // A run that fails has chosen nothing.
    simulator.user_says(ALICE, ALICE, "/undo ru").expect("a chat");
    assert_eq!(ask(&simulator, ALICE, "/who").await, "uz 3 other");

    let before = simulator.delivered(ALICE);
    simulator.user_presses(ALICE, ALICE, None, "Telegramdagidek").expect("a button");
    assert_eq!(next(&simulator, ALICE, before).await, "Hello, Alice!");
    assert_eq!(ask(&simulator, ALICE, "/who").await, "en 3 other");
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_group_ones_own_choice_goes_before_the_groups() {
    let simulator = simulator().await;
    let mut host =
        builder(&simulator).plugin("greeter", &plugin("greeter"), "").plugin("speaks", &guest("speaks"), "").start();
    assert_eq!(in_group(&simulator, ALICE, "/all").await, "en 1 one", "the default");
    assert_eq!(in_group(&simulator, BOTIR, "/who").await, "uz 3 other", "what Telegram tells of Botir");
    assert_eq!(in_group(&simulator, ALICE, "/chat ru_RU").await, "ru 1 one");
    assert_eq!(in_group(&simulator, BOTIR, "/who").await, "ru 3 few", "he has chosen nothing himself");

    assert_eq!(ask(&simulator, BOTIR, "/language").await, "Qaysi tilda gapiray?");
    let before = simulator.delivered(BOTIR);
    simulator.user_presses(BOTIR, BOTIR, None, "English").expect("a button");
    assert_eq!(next(&simulator, BOTIR, before).await, "Hello, Botir!");
    host.settle();
    host.kill();
    host.start();
    assert_eq!(in_group(&simulator, BOTIR, "/who").await, "en 3 other");
    assert_eq!(in_group(&simulator, BOTIR, "/all").await, "ru 1 one");
    assert_eq!(in_group(&simulator, BOTIR, "/chat").await, "en 1 one");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_keyboard_is_understood_after_its_words_have_changed() {
    let simulator = simulator().await;
    let mut host =
        builder(&simulator).sections("[i18n]\nlocales = \"texts\"\n").plugin("greeter", &plugin("greeter"), "").start();
    assert_eq!(ask(&simulator, ALICE, "🌐 Language").await, "Which language shall I speak?");
    let texts = host.folder().join("texts/greeter");
    std::fs::create_dir_all(&texts).expect("writable");
    std::fs::write(texts.join("en.ftl"), "menu =\n    .language = Tongue\n").expect("writable");
    for _ in 0..2 {
        assert!(host.stop().status.success());
        host.start();
        assert_eq!(ask(&simulator, ALICE, "Tongue").await, "Which language shall I speak?");
        assert_eq!(ask(&simulator, ALICE, "🌐 Language").await, "Which language shall I speak?", "the old keyboard");
        assert_eq!(ask(&simulator, ALICE, "🌐 Til").await, "Which language shall I speak?", "another language's");
    }
}
