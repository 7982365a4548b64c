//! Pressed buttons that are acknowledged early.

use super::*;

impl Bench {
    fn acknowledged(&self) -> Vec<Duration> {
        self.seen().iter().filter(|seen| seen.method == METHOD).map(|seen| seen.at).collect()
    }
}

fn expect(bench: &Bench, ids: &[&str]) {
    bench.sender.expect_answers(ids.iter().map(|id| (*id).to_owned()));
}

fn lane(id: &str) -> Lane {
    acknowledgement(id).0
}

#[tokio::test(start_paused = true)]
async fn what_is_open_after_the_time_is_acknowledged_once() {
    let bench = bench(UNLIMITED, |_, _, _| ok());
    bench.sender.acknowledge_after(3 * SECOND);
    bench.start();
    expect(&bench, &["a", "b"]);
    sleep(SECOND).await;
    expect(&bench, &["c"]);
    bench.sender.answered(lane("b"));
    sleep(60 * SECOND).await;
    let times = bench.acknowledged();
    assert!(times[0] >= 3 * SECOND && times[1] >= 4 * SECOND && times[1] < 5 * SECOND, "{times:?}");
    assert_eq!(times.len(), 2);
    assert!(bench.sender.has_acknowledged(lane("a")) && !bench.sender.has_acknowledged(lane("b")));
    bench.sender.answered(lane("a"));
    assert!(!bench.sender.has_acknowledged(lane("a")));
}

#[tokio::test(start_paused = true)]
async fn a_direct_answer_in_time_is_enough() {
    let bench = bench(UNLIMITED, |_, _, _| ok());
    bench.sender.acknowledge_after(3 * SECOND);
    bench.start();
    expect(&bench, &["a"]);
    let params = json!({ "callback_query_id": "a", "text": "yes" }).to_string();
    bench.sender.call(&PluginName::new("shop"), METHOD, params, SECOND).await.unwrap();
    sleep(60 * SECOND).await;
    assert_eq!(bench.acknowledged().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_early_without_a_time() {
    let bench = bench(UNLIMITED, |_, _, _| ok());
    bench.sender.acknowledge_after(Duration::ZERO);
    bench.start();
    expect(&bench, &["a"]);
    sleep(600 * SECOND).await;
    assert_eq!(bench.acknowledged(), []);
}

#[tokio::test(start_paused = true)]
async fn a_failure_leaves_it_to_the_event_and_what_is_too_old_is_as_good_as_done() {
    let bench = bench(UNLIMITED, |_, params, _| match params["callback_query_id"].as_str() {
        Some("a") => error(500, "Internal Server Error"),
        _ => error(400, "Bad Request: query is too old and response timeout expired or query ID is invalid"),
    });
    bench.sender.acknowledge_after(SECOND);
    bench.start();
    expect(&bench, &["a", "b"]);
    sleep(60 * SECOND).await;
    assert_eq!(bench.acknowledged().len(), 2, "each is tried once");
    assert!(!bench.sender.has_acknowledged(lane("a")) && bench.sender.has_acknowledged(lane("b")));
}

#[tokio::test(start_paused = true)]
async fn any_number_of_them_takes_little_room_and_few_connections() {
    let bench = bench(UNLIMITED, |_, _, _| after(SECOND, ok()));
    bench.sender.acknowledge_after(SECOND);
    bench.start();
    bench.sender.expect_answers((0..20_000).map(|n| n.to_string()));
    sleep(1_500 * MS).await;
    assert_eq!(bench.acknowledged().len(), 16);
    sleep(10_000 * SECOND).await;
    assert_eq!(bench.acknowledged().len(), 10_000);
    expect(&bench, &["after"]);
    sleep(5 * SECOND).await;
    assert!(bench.sender.has_acknowledged(lane("after")), "what was never answered makes room in time");
}
