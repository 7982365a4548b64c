//! What Telegram can't read the markup of.

use super::*;

const BAD: &str = "Bad Request: can't parse entities: Unsupported start tag \"x\" at byte offset 0";

fn marked(text: &str) -> (&'static str, Value, Priority) {
    ("sendMessage", json!({ "chat_id": 1, "text": text, "parse_mode": "HTML" }), Priority::Interactive)
}

#[tokio::test(start_paused = true)]
async fn it_is_sent_once_more_without_if_that_is_wanted() {
    for (fallback, expected) in
        [(Fallback::Plain, vec!["<b>a <x>", "a <x>", "b"]), (Fallback::None, vec!["<b>a <x>", "b"])]
    {
        let bench =
            bench(UNLIMITED, |_, params, _| if params.get("parse_mode").is_some() { error(400, BAD) } else { ok() });
        bench.start();
        let rows = bench.put_as(&[marked("<b>a <x>")], |row| row.fallback = fallback);
        bench.sender.committed(rows);
        bench.say(1, &["b"]);
        bench.until(|bench| bench.texts(1).len() == expected.len()).await;
        assert_eq!(bench.texts(1), expected);
        bench.until(|bench| bench.left().is_empty()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn no_more_than_once_and_also_over_a_restart() {
    let first = bench(UNLIMITED, |_, params, _| match params.get("parse_mode") {
        Some(_) => error(400, BAD),
        None => error(500, "Internal Server Error"),
    });
    let run = first.start();
    let rows =
        first.put_as(&[marked("<b>a")], |row| (row.fallback, row.delivery) = (Fallback::Plain, Delivery::AtMostOnce));
    first.sender.committed(rows);
    first.until(|bench| bench.ledger().len() == 1).await;
    assert_eq!(first.texts(1), ["<b>a", "a"], "and it counts as made then");
    first.stop.send_replace(true);
    run.await.unwrap();

    let first = first.restarted(
        UNLIMITED,
        |_, params, _| {
            if params.get("parse_mode").is_some() { error(400, BAD) } else { flood(3) }
        },
    );
    let run = first.start();
    let rows = first.put_as(&[marked("<b>b")], |row| row.fallback = Fallback::Plain);
    first.sender.committed(rows);
    first.until(|bench| bench.texts(1).len() == 2).await;
    first.stop.send_replace(true);
    run.await.unwrap();
    assert_eq!(first.left()[0].fallback, Fallback::Tried);

    let second = first.restarted(UNLIMITED, |_, _, _| error(400, BAD));
    second.start();
    second.until(|bench| bench.left().is_empty()).await;
    assert_eq!(second.texts(1), ["b"]);
}
