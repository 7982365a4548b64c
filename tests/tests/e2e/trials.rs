//! What becomes of conversations while a new version is on trial and after it, and what it takes to serve for good.

use std::time::Duration;

use botyard::simulator::{ALICE, BOTIR, Bulk, CHIARA};
use botyard::store::rows::fsm::{self, StateRow};
use botyard::store::{Commit, Op, Store};

use super::operator::{botyard, done, state};
use super::support::{BOT, dead_letters, delivered};
use super::versions::Scene;

#[tokio::test(flavor = "multi_thread")]
async fn a_form_goes_on_under_other_names_of_its_states_there_and_back() {
    let mut scene = Scene::of("order_a", "", "[dispatch]\nmax_attempts = 2").await;
    for (user, kind) in [(ALICE, "green"), (BOTIR, "black"), (CHIARA, "odd")] {
        assert_eq!(scene.ask(user, &format!("/order {kind}")).await, "1: how many?");
    }
    scene.save("order_b");
    scene.wait_for_state("trial");
    let so_far = state(&scene.host, "steps").1["reason"].to_string();
    assert!(so_far.contains("1 of 3 conversations begin anew"), "{so_far}");
    assert_eq!(scene.ask(ALICE, "3").await, "2: 3 cups of green");
    assert_eq!(scene.ask(BOTIR, "many").await, "2: a number, please");
    assert_eq!(scene.ask(CHIARA, "/lost").await, "2: cups is lost");
    assert_eq!(scene.ask(CHIARA, "/order white").await, "2: how many?");

    scene.host.kill();
    scene.host.start();
    assert_eq!(state(&scene.host, "steps").0, "trial", "it goes on");
    assert_eq!(scene.ask(BOTIR, "many").await, "2: a number, please");
    assert_eq!(scene.ask(ALICE, "/boom").await, "1: fine", "the version before is asked, and the event is not lost");
    scene.wait_for_state("stale");
    assert_eq!(scene.ask(BOTIR, "5").await, "1: 5 cups of black", "from where the trial had found it");
    assert_eq!(scene.ask(CHIARA, "4").await, "1: 4 cups of odd", "also what the trial could not use");
    assert_eq!(scene.ask(CHIARA, "/lost").await, "1: nothing is lost");
    assert_eq!(scene.ask(ALICE, "/lost").await, "1: nothing is lost", "what had ended there has ended");
    scene.host.stop();
    assert_eq!(dead_letters(&scene.host).len(), 0);
    let store = Store::open(&scene.host.store_dir()).expect("the host has stopped");
    for prefix in fsm::bot_prefixes(BOT) {
        assert_eq!(store.scan_prefix(&prefix, 10).expect("a sound store"), [], "nothing is left of any of it");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_new_version_within_a_trial_is_measured_by_the_one_that_serves() {
    let mut scene = Scene::of("order_a", "", "[dispatch]\nmax_attempts = 1").await;
    for (user, kind) in [(BOTIR, "black"), (CHIARA, "odd")] {
        assert_eq!(scene.ask(user, &format!("/order {kind}")).await, "1: how many?");
    }
    scene.save("order_b");
    scene.wait_for_state("trial");
    let first = scene.version();
    assert_eq!(scene.ask(BOTIR, "many").await, "2: a number, please");
    assert_eq!(scene.ask(CHIARA, "/lost").await, "2: cups is lost");
    scene.save_marked("order_b");
    scene.host.wait_until("the second", |host| state(host, "steps").1["version"] != first.as_str());
    assert_eq!(scene.ask(BOTIR, "more").await, "2: a number, please", "it goes on from where it was");
    assert_eq!(scene.ask(CHIARA, "/lost").await, "2: cups is lost", "it had its own look");
    assert_eq!(scene.ask(BOTIR, "/boom").await, "1: fine", "though an event has one attempt only");
    scene.wait_for_state("stale");
    assert_eq!(scene.ask(BOTIR, "5").await, "1: 5 cups of black");
    assert_eq!(scene.ask(CHIARA, "6").await, "1: 6 cups of odd");
    scene.host.stop();
    assert_eq!(dead_letters(&scene.host).len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_would_find_no_conversation_does_not_serve_unless_somebody_says_so() {
    for probation in ["60s", "0s"] {
        let mut scene = Scene::new(&format!("probation = \"{probation}\"")).await;
        let first = scene.version();
        assert_eq!(scene.ask(ALICE, "/step").await, "1: step 1");
        scene.save("tally");
        let reason = |host: &_| state(host, "steps").1["reason"].as_str().unwrap_or_default().to_owned();
        let why = "its conversations have another key, `chat` in place of `user_in_chat`";
        scene.host.wait_until("it is refused", |host| reason(host).contains(why));
        assert_eq!((state(&scene.host, "steps").0, scene.version()), ("stale".to_owned(), first.clone()));
        assert_eq!(scene.ask(ALICE, "/step").await, "1: step 2", "the one before goes on");
        done(&scene.host, &["plugin", "reload", "steps", "--force"]);
        let serves = if probation == "0s" { "serving" } else { "trial" };
        assert_eq!(state(&scene.host, "steps").0, serves);
        scene.host.stop();
        scene.host.start();
        assert_eq!(state(&scene.host, "steps").0, serves, "it was said once");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn states_that_a_version_can_not_use_lock_nobody_out() {
    for (version, lost) in [
        ("order_b", "2: walking is lost"),
        // Its states have changed, and not their version.
        ("order_a", "1: walking is lost"),
    ] {
        let mut scene = Scene::new("probation = \"0s\"").await;
        let first = scene.version();
        assert_eq!(scene.ask(ALICE, "/step").await, "1: step 1");
        scene.save(version);
        scene.host.wait_until("it serves", |host| {
            let (stands, status) = state(host, "steps");
            stands == "serving" && status["version"] != first.as_str()
        });
        assert!(scene.host.log().contains("can't use will be kept aside"), "it is known before");
        assert_eq!(scene.ask(ALICE, "/lost").await, lost);
        scene.host.stop();
        assert_eq!(dead_letters(&scene.host).len(), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn going_back_to_a_version_that_can_not_use_states_says_so() {
    let mut scene = Scene::new("probation = \"0s\"").await;
    assert_eq!(scene.ask(ALICE, "/step").await, "1: step 1");
    scene.save("versioned_b");
    scene.host.wait_until("the second", |host| state(host, "steps").1["manifest_version"] == "2.0.0");
    assert_eq!(scene.ask(ALICE, "/step").await, "2: step 2, carried over");
    let (code, says, errors) = botyard(&scene.host, &["plugin", "rollback", "steps"]);
    assert!(code == Some(0) && says.contains("1 of the 1 states"), "{says} {errors}");
    assert_eq!(scene.ask(ALICE, "/step").await, "1: step 1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_serves_for_good_once_it_has_shown_what_it_does_and_nothing_is_kept_for_a_rollback() {
    let mut scene = Scene::of("order_a", "probation = \"1s\"", "").await;
    assert_eq!(scene.ask(BOTIR, "/order black").await, "1: how many?");
    scene.save("order_b");
    scene.wait_for_state("trial");
    for _ in 0..4 {
        assert_eq!(scene.ask(BOTIR, "many").await, "2: a number, please");
    }
    done(&scene.host, &["plugin", "pause", "steps"]);
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    done(&scene.host, &["plugin", "resume", "steps"]);
    assert_eq!(state(&scene.host, "steps").0, "trial", "it was given nothing");
    scene.wait_for_state("serving");
    assert_eq!(scene.ask(BOTIR, "5").await, "2: 5 cups of black");
    scene.host.stop();
    let store = Store::open(&scene.host.store_dir()).expect("the host has stopped");
    for prefix in fsm::bot_prefixes(BOT) {
        assert_eq!(store.scan_prefix(&prefix, 10).expect("a sound store"), []);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_that_its_own_version_can_not_read_is_set_aside() {
    let mut scene = Scene::of("order_a", "", "").await;
    assert_eq!(scene.ask(ALICE, "/order green").await, "1: how many?");
    scene.host.stop();
    let store = Store::open(&scene.host.store_dir()).expect("the host has stopped");
    let (key, value) = store.scan_prefix(&fsm::bot_prefixes(BOT)[0], 1).expect("a sound store").remove(0);
    let row = StateRow::decode(&value).expect("a state");
    let row = StateRow { bytes: br#"{"Cups":{"cups":3}}"#.to_vec(), ..row };
    let ops = vec![Op::Put { key: key.to_vec(), value: row.encode() }];
    drop(store.commit(Commit { ops, ..Commit::default() }).await.expect("room"));
    store.close().await.expect("a sound store");
    drop(store);
    scene.host.start();
    scene.simulator.user_says(ALICE, ALICE, "3").expect("a chat");
    assert_eq!(scene.ask(ALICE, "/lost").await, "1: cups is lost");
    assert_eq!(scene.ask(ALICE, "/order black").await, "1: how many?");
    assert_eq!(scene.ask(ALICE, "3").await, "1: 3 cups of black");
    scene.host.stop();
    assert_eq!(dead_letters(&scene.host).len(), 0);
}

/// Has this text said in so many chats, and waits for the answers.
async fn said(scene: &Scene, text: &str, chats: u64) {
    let before = scene.simulator.delivered_in_all();
    scene.simulator.push_updates(&Bulk { text: text.to_owned(), ..Bulk::new(chats, chats) });
    delivered(&scene.simulator, before + chats, Duration::from_secs(60)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_is_far_slower_than_the_one_that_served_is_rolled_back() {
    for (command, why) in [("/tick", "of processor time"), ("/wait", "take more than 5 times the")] {
        let mut scene = Scene::of("order_a", "", "").await;
        said(&scene, command, 40).await;
        if command == "/tick" {
            // The one before has served before this start, and is known by what was kept of it.
            scene.host.stop();
            scene.save("order_b");
            scene.host.start();
        } else {
            scene.save("order_b");
        }
        scene.wait_for_state("trial");
        said(&scene, command, 40).await;
        scene.wait_for_state("stale");
        let reason = state(&scene.host, "steps").1["reason"].to_string();
        assert!(reason.contains(why), "{reason}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_canary_goes_by_its_errors_and_stays_by_what_it_handles() {
    let mut scene = Scene::of("order_a", "canary = 50\nprobation = \"1s\"", "").await;
    scene.save("order_b");
    scene.wait_for_state("trial");
    // Nobody of its share says anything: that is no proof.
    tokio::time::sleep(Duration::from_millis(1_300)).await;
    let (stands, status) = state(&scene.host, "steps");
    assert_eq!(stands, "trial");
    assert!(status["reason"].to_string().contains("handled 0 and failed 0, and is watched until"), "{status}");
    said(&scene, "/boom", 20).await;
    scene.wait_for_state("stale");

    scene.save("versioned_b");
    scene.wait_for_state("trial");
    said(&scene, "/lost", 30).await;
    scene.wait_for_state("serving");
    assert_eq!(state(&scene.host, "steps").1["manifest_version"], "2.0.0");
    scene.host.stop();
    assert_eq!(dead_letters(&scene.host).len(), 0);
}
