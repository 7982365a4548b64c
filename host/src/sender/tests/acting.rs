//! Chat actions that are kept up.

use super::*;

const TYPING: &str = "sendChatAction";

fn typing(chat: i64) -> String {
    json!({ "chat_id": chat, "action": "typing" }).to_string()
}

impl Bench {
    fn typed(&self) -> Vec<Duration> {
        self.seen().iter().filter(|seen| seen.method == TYPING).map(|seen| seen.at).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn it_is_shown_again_before_it_fades_and_ends_with_its_task() {
    let bench = bench(UNLIMITED, |_, _, _| ok());
    bench.start();
    let task = tokio::spawn(bench.sender.clone().act_on(typing(1)));
    sleep(12 * SECOND).await;
    let typed = bench.typed();
    assert_eq!(typed.len(), 3, "{typed:?}");
    assert!(typed[0] < SECOND && typed.windows(2).all(|pair| pair[1] - pair[0] < 5 * SECOND), "{typed:?}");
    task.abort();
    sleep(60 * SECOND).await;
    assert_eq!(bench.typed().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn it_is_given_up_when_it_fails_again_and_again_and_at_once_when_it_is_refused() {
    type Trouble = fn() -> Answer;
    let server: Trouble = || error(500, "Internal Server Error");
    let refused: Trouble = || error(403, "Forbidden: bot was kicked from the group chat");
    for (trouble, most) in [(server, 3), (|| flood(3), 3), (refused, 1)] {
        let bench = bench(UNLIMITED, move |method, _, _| if method == TYPING { trouble() } else { ok() });
        bench.start();
        tokio::spawn(bench.sender.clone().act_on(typing(1)));
        let begun = Instant::now();
        for n in 0..20 {
            bench.say(1, &[&format!("{n}")]);
            sleep(30 * SECOND).await;
        }
        assert_eq!(bench.typed().len(), most);
        assert_eq!(bench.texts(1).iter().filter(|text| !text.is_empty()).count(), 20, "{:?}", begun.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_hangs_is_alone_and_delays_no_message() {
    let bench = bench(UNLIMITED, |method, _, _| if method == TYPING { after(600 * SECOND, ok()) } else { ok() });
    bench.start();
    tokio::spawn(bench.sender.clone().act_on(typing(1)));
    tokio::spawn(bench.sender.clone().act_on(typing(1)));
    sleep(SECOND).await;
    assert_eq!(bench.typed().len(), 1, "one at a time in a chat");
    bench.say(1, &["a", "b"]);
    sleep(SECOND).await;
    assert_eq!(bench.texts(1)[1..], ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn where_it_is_left_out_for_a_while_it_goes_on_after() {
    let bench = bench(UNLIMITED, |_, params, times| if params["text"] == "a" && times == 0 { flood(60) } else { ok() });
    bench.start();
    bench.say(1, &["a"]);
    sleep(SECOND).await;
    tokio::spawn(bench.sender.clone().act_on(typing(1)));
    sleep(50 * SECOND).await;
    assert_eq!(bench.typed(), [], "the chat is flooded");
    sleep(30 * SECOND).await;
    assert!(!bench.typed().is_empty());
}
