//! Calls that an operator cancels.

use super::*;

impl Bench {
    /// Cancels rows, and waits for the answer, which the disk has a part in.
    async fn cancel(&self, rows: &[(Lane, u64, Priority)]) -> Vec<Cancelled> {
        let rows = rows.iter().map(|(lane, number, _)| (*lane, *number)).collect();
        self.sender.cancel(rows).await.unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_cancelled_is_never_sent_and_the_rest_keeps_its_order() {
    // One call of the lane takes its time, so the others wait.
    let bench = bench(UNLIMITED, |_, params, _| if params["text"] == "a" { after(10 * SECOND, ok()) } else { ok() });
    bench.start();
    let texts = ["a", "b", "c", "d", "e"].map(|text| message(1, text, Priority::Interactive));
    let rows = bench.put(&texts);
    bench.sender.committed(rows.clone());
    sleep(SECOND).await;
    let view = bench.sender.look(vec![rows[0].0, Lane::Chat(ChatId(9))]).await.unwrap();
    assert_eq!((view[0].in_flight, view[1]), (Some(rows[0].1), LaneView::default()));
    let answers = bench.cancel(&[rows[0], rows[1], rows[3]]).await;
    assert_eq!(answers, [Cancelled::UnderWay, Cancelled::Done, Cancelled::Done], "what is under way is not cancelled");
    assert_eq!(bench.cancel(&[rows[1]]).await, [Cancelled::Gone]);
    sleep(60 * SECOND).await;
    assert_eq!(bench.texts(1), ["a", "c", "e"]);
    assert_eq!(bench.left(), []);
    bench.say(1, &["f"]);
    sleep(SECOND).await;
    assert_eq!(bench.texts(1), ["a", "c", "e", "f"]);
}

#[tokio::test(start_paused = true)]
async fn the_first_of_a_lane_that_waits_can_be_cancelled_and_the_next_waits_as_long() {
    let bench = bench(UNLIMITED, |_, params, times| if params["text"] == "a" && times == 0 { flood(40) } else { ok() });
    bench.start();
    let rows = bench.put(&["a", "b", "c"].map(|text| message(1, text, Priority::Interactive)));
    bench.sender.committed(rows.clone());
    sleep(SECOND).await;
    let [view] = bench.sender.look(vec![rows[0].0]).await.unwrap()[..] else { panic!() };
    assert!(view.in_flight.is_none() && view.waits > 38 * SECOND, "{view:?}");
    assert_eq!(bench.cancel(&rows[..1]).await, [Cancelled::Done]);
    sleep(90 * SECOND).await;
    assert_eq!(bench.texts(1), ["a", "b", "c"]);
    // By its own clock: waiting for the disk takes the paused one as far as it likes.
    let times = bench.times(1);
    assert!(times[1] - times[0] >= 40 * SECOND, "the flood is the chat's: {times:?}");
    assert_eq!(bench.ledger(), [], "a flood is known to have had no effect");
}

#[tokio::test(start_paused = true)]
async fn a_lane_that_is_emptied_goes_on_with_what_comes_later() {
    let bench = bench(UNLIMITED, |_, params, _| if params["text"] == "x" { flood(20) } else { ok() });
    bench.start();
    let rows = bench.put(&["x", "y"].map(|text| message(1, text, Priority::Interactive)));
    bench.sender.committed(rows.clone());
    sleep(SECOND).await;
    assert_eq!(bench.cancel(&rows).await, [Cancelled::Done, Cancelled::Done]);
    bench.say(1, &["z"]);
    sleep(60 * SECOND).await;
    assert_eq!(bench.texts(1), ["x", "z"]);
}

#[tokio::test(start_paused = true)]
async fn what_may_have_been_sent_before_it_was_cancelled_is_written_down() {
    let bench = bench(UNLIMITED, move |_, _, times| match times {
        0 => Answer(10 * MS, Err(TransportError::Unknown("the connection broke".to_owned()))),
        _ => Answer(10 * MS, Err(TransportError::BeforeSend("connection refused".to_owned()))),
    });
    bench.start();
    let rows = bench.put(&[message(1, "a", Priority::Interactive)]);
    bench.sender.committed(rows.clone());
    sleep(20 * SECOND).await;
    // Between two attempts.
    let mut answers = bench.cancel(&rows).await;
    while answers != [Cancelled::Done] {
        sleep(SECOND).await;
        answers = bench.cancel(&rows).await;
    }
    let [row] = &bench.ledger()[..] else { panic!("{:?}", bench.ledger()) };
    assert!(row.maybe_sent && row.reason.contains("cancelled by an operator"), "{row:?}");
}

#[tokio::test(start_paused = true)]
async fn the_rest_of_a_text_that_is_being_sent_stays() {
    let bench = bench(UNLIMITED, |_, _, _| after(10 * SECOND, ok()));
    bench.start();
    let first = bench.put(&[message(1, "a", Priority::Interactive)]);
    let rest = bench.put_as(&["b", "c"].map(|text| message(1, text, Priority::Interactive)), |row| row.follows = true);
    let next = bench.put(&[message(1, "d", Priority::Interactive)]);
    let rows = [first, rest, next].concat();
    bench.sender.committed(rows.clone());
    sleep(SECOND).await;
    use Cancelled::{Done, UnderWay};
    assert_eq!(bench.cancel(&rows).await, [UnderWay, UnderWay, UnderWay, Done]);
    sleep(60 * SECOND).await;
    assert_eq!(bench.texts(1), ["a", "b", "c"]);
}

#[tokio::test(start_paused = true)]
async fn nobody_cancels_anything_when_nothing_is_sent_any_more() {
    let bench = bench(UNLIMITED, |_, _, _| ok());
    let run = bench.start();
    let rows = bench.put(&[message(1, "a", Priority::Interactive)]);
    bench.stop.send_replace(true);
    run.await.unwrap();
    assert_eq!(bench.sender.cancel(vec![(rows[0].0, rows[0].1)]).await, None);
    assert_eq!(bench.left().len(), 1);
}
