//! What plugins say they answer to, and what becomes of runs that fail where the plugin has an answer to that.

use botyard::simulator::{ALICE, BOTIR, Chat, ChatKind};
use botyard_tests::{Host, guest, plugin};
use serde_json::json;

use super::support::{ask, builder, dead_letters, next, simulator};

#[tokio::test(flavor = "multi_thread")]
async fn handlers_are_given_what_they_wait_for_and_the_rest_goes_to_others() {
    let simulator = simulator().await;
    let mut host = builder(&simulator)
        .plugin("routes", &guest("routes"), "priority = 1")
        .plugin("echo", &plugin("echo"), "")
        .start();
    for (text, answer) in [
        ("/say 2 hi there", "hi there hi there"),
        ("/s two hi", "Please write it like this: /say TIMES WHAT…"),
        ("/help", "/help – What I can do\n/say TIMES WHAT… – Says something some times"),
        ("/start ref-42", "sent by 42"),
        ("/unknown", "/unknown"),
        ("TEA", "tea for Alice"),
        ("teapot", "teapot"),
        ("/close", "closed"),
    ] {
        assert_eq!(ask(&simulator, ALICE, text).await, answer, "{text}");
    }
    // What the filters keep away begins no run: of the eight, two are none of the plugin's affair.
    let runs = host.metrics().sum("botyard_run_cpu_seconds_count", &["plugin=\"routes\""]);
    assert!((runs - 6.0).abs() < f64::EPSILON, "{runs} runs");
    assert!(host.stop().status.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_is_answered_with_nothing_left_of_what_failed() {
    let simulator = simulator().await;
    let mut host =
        builder(&simulator).sections("[dispatch]\nmax_attempts = 2\n").plugin("routes", &guest("routes"), "").start();
    assert_eq!(ask(&simulator, ALICE, "never").await, "Sorry (1): it can't be done");
    assert_eq!(ask(&simulator, ALICE, "later").await, "Sorry (2): later", "only when no other attempt follows");
    let panicked = ask(&simulator, BOTIR, "panic").await;
    assert!(
        panicked.starts_with("Sorry (1): the plugin panicked at") && panicked.ends_with("deliberate"),
        "{panicked}"
    );
    assert_eq!(ask(&simulator, BOTIR, "left").await, "None");
    assert_eq!((simulator.delivered(ALICE), simulator.delivered(BOTIR)), (2, 2));
    let recovered = host.metrics().sum("botyard_recovered_total", &["plugin=\"routes\""]);
    assert!((recovered - 3.0).abs() < f64::EPSILON, "{recovered}");
    assert!(host.stop().status.success());
    assert!(dead_letters(&host).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_failure_of_a_job_is_answered_when_no_other_attempt_follows() {
    let simulator = simulator().await;
    let mut host = builder(&simulator).plugin("routes", &guest("routes"), "jobs = { attempts = 2 }").start();
    assert_eq!(ask(&simulator, ALICE, "/work never").await, "Sorry (1): it can't be done");
    assert_eq!(ask(&simulator, ALICE, "/work later").await, "Sorry (2): later");
    assert_eq!(simulator.delivered(ALICE), 2);
    let outcomes = ["done", "retried", "dead"]
        .map(|outcome| host.metrics().sum("botyard_jobs_total", &[&format!("outcome=\"{outcome}\"")]));
    assert_eq!(outcomes.map(|n| n as u32), [2, 1, 0]);
    assert!(host.stop().status.success());
    assert!(dead_letters(&host).is_empty());
}

#[test]
fn filters_bring_no_regular_expressions_into_a_plugin() {
    let wasm = std::fs::read(guest("routes")).expect("the guests are built");
    // The names of its functions are in it.
    let has = |name: &str| wasm.windows(name.len()).any(|bytes| bytes == name.as_bytes());
    assert!(has("botyard_sdk") && !has("regex_automata") && !has("botyard_filter"));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_several_who_want_an_event_the_first_has_it_and_what_nobody_wants_is_counted() {
    let simulator = simulator().await;
    let mut host = builder(&simulator)
        .plugin("second", &guest("versioned_b"), "priority = 1")
        .plugin("first", &guest("versioned_a"), "priority = 2")
        .start();
    assert_eq!(ask(&simulator, ALICE, "hello").await, "1: hello");
    let config = std::fs::read_to_string(host.config_file()).expect("readable");
    // Where the operator says nothing, names decide.
    let (equal, swapped) =
        (config.replace("priority = 2", "priority = 1"), config.replace("priority = 2", "priority = 0"));
    for (config, answer) in [(swapped, "2: hello"), (equal, "1: hello")] {
        std::fs::write(host.config_file(), config).expect("writable");
        let mut last = String::new();
        for _ in 0..600 {
            last = ask(&simulator, ALICE, "hello").await;
            if last == answer {
                break;
            }
        }
        assert_eq!(last, answer);
    }
    let said = simulator.delivered(ALICE);
    let unrouted = |host: &Host| host.metrics().sum("botyard_events_total", &["outcome=\"unrouted\""]);
    assert_eq!(unrouted(&host), 0.0);
    let photo = json!({ "message_id": 1, "date": 1, "chat": { "id": ALICE, "type": "private" }, "photo": [] });
    simulator.raw_update(json!({ "message": photo })).expect("an update");
    host.wait_until("it is counted", |host| unrouted(host) == 1.0);
    assert_eq!(simulator.delivered(ALICE), said, "nobody has answered it");
    assert!(host.stop().status.success());
    assert!(dead_letters(&host).is_empty(), "nor is it a failure");
}

/// Who may order it about is asked for each message, and answered from memory until somebody becomes something else.
#[tokio::test(flavor = "multi_thread")]
async fn telegram_is_asked_once_who_is_an_administrator() {
    let simulator = simulator().await;
    let group = -1_003_777_000_111;
    let mut chat = Chat::new(group, ChatKind::Supergroup, "Chess", &[ALICE, BOTIR]);
    chat.admins = vec![ALICE];
    simulator.add_chat(chat);
    let _host = builder(&simulator).plugin("routes", &guest("routes"), "").start();
    let close = async |user: i64| {
        let before = simulator.delivered(group);
        simulator.user_says(group, user, "/close").expect("a member");
        next(&simulator, group, before).await
    };
    let asked = || simulator.call_count("getChatMember");
    for _ in 0..4 {
        assert_eq!(close(ALICE).await, "closed");
    }
    assert_eq!(asked(), 1);
    for _ in 0..3 {
        simulator.user_says(group, BOTIR, "/close").expect("a member");
    }
    assert_eq!((close(ALICE).await.as_str(), asked()), ("closed", 2), "each of them once");
    // Whoever made the bot an administrator may have made others some as well.
    let bot = |status: &str| json!({ "status": status, "user": { "id": 4242, "is_bot": true, "first_name": "Bot" } });
    let update = json!({ "my_chat_member": {
        "chat": { "id": group, "type": "supergroup", "title": "Chess" }, "date": 1,
        "from": { "id": ALICE, "is_bot": false, "first_name": "Alice" },
        "old_chat_member": bot("member"), "new_chat_member": bot("administrator"),
    } });
    simulator.raw_update(update).expect("the host wants to know");
    assert_eq!((close(ALICE).await.as_str(), asked()), ("closed", 3));
}
