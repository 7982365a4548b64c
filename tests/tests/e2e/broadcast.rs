//! One message to many chats: by command and from a plugin, with kills, pauses and blocked people.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use botyard::domain::ChatId;
use botyard::simulator::{ALICE, Action, Fault, Simulator, User};
use botyard::store::rows::chat::{self, ChatRow};
use botyard::store::{Commit, Op, Store};
use botyard_tests::{Host, guest, host_program, plugin};
use serde_json::Value as Json;

use super::support::{BOT, ask, builder, next, simulator};

const FIRST: i64 = 7_100_000_000;

fn people(simulator: &Simulator, count: i64) -> Vec<i64> {
    let ids: Vec<i64> = (FIRST..FIRST + count).collect();
    for id in &ids {
        simulator.add_user(User::new(*id, "Somebody", None));
    }
    ids
}

fn command(host: &Host, arguments: &[&str]) -> Command {
    let mut command = Command::new(host_program());
    command.arg(arguments[0]).arg("--config").arg(host.config_file()).args(&arguments[1..]);
    command.env("TEST_TOKEN", "4242:another-secret-of-the-same-bot-that-nobody-sees");
    command
}

/// Exit code, stdout and stderr.
fn run(host: &Host, arguments: &[&str], input: &str) -> (Option<i32>, String, String) {
    let mut command = command(host, arguments);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    // A command that does not want its input may have gone.
    child.stdin.take().expect("piped").write_all(input.as_bytes()).ok();
    let output = child.wait_with_output().expect("it ends");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn json(host: &Host, arguments: &[&str], input: &str) -> Json {
    let (code, out, errors) = run(host, &[arguments, &["--json"]].concat(), input);
    assert_eq!(code, Some(0), "{arguments:?}: {out}{errors}");
    serde_json::from_str(&out).expect("JSON")
}

fn list(people: &[i64]) -> String {
    people.iter().map(|id| format!("{id}\n")).collect()
}

fn count(status: &Json, what: &str) -> u64 {
    status[what].as_u64().unwrap_or_else(|| panic!("{what} in {status}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broadcast_survives_kill_9_and_nobody_gets_it_twice() {
    let simulator = simulator().await;
    let people = people(&simulator, 1_500);
    for id in people.iter().step_by(50) {
        simulator.set_blocked(*id, *id, true).expect("a chat");
    }
    for n in 0..10 {
        let flooded = people[n * 100 + 7];
        simulator.add_fault(Fault::on("sendMessage", Action::Flood { retry_after: 1 }).chat(flooded).times(1));
    }
    let mut host = builder(&simulator)
        .send("overall_per_second = 0\nchat_per_second = 0\ngroup_per_minute = 0\nbulk_per_second = 400\n")
        .plugin("echo", &plugin("echo"), "")
        .start();
    let begin = ["broadcast", "--to", "-", "--text", "hello all", "--name", "hello", "--detach"];
    let id = count(&json(&host, &begin, &list(&people)), "id").to_string();
    for kill in 1..=3_u64 {
        let handle = simulator.clone();
        let far = simulator.wait_until(Duration::from_secs(30), move || handle.delivered_in_all() >= kill * 300).await;
        assert!(far, "only {} were delivered", simulator.delivered_in_all());
        host.kill();
        host.start();
        // Answers go on beside it.
        assert_eq!(ask(&simulator, ALICE, "still there?").await, "still there?");
    }
    let (code, out, errors) = run(&host, &["broadcast", "show", &id, "--watch"], "");
    assert_eq!(code, Some(0), "{out}{errors}");
    let status = json(&host, &["broadcast", "show", &id], "");
    assert_eq!(status["state"], "done", "{status}");
    let unknown = count(&status, "unknown");
    let gone = count(&status, "gone");
    assert_eq!(
        (count(&status, "total"), count(&status, "waiting"), count(&status, "refused")),
        (1_500, 0, 0),
        "{status}"
    );
    assert_eq!(count(&status, "sent") + gone + unknown, 1_500, "{status}");
    // A call to one of the thirty may have been under way.
    assert!(gone <= 30 && gone + unknown >= 30 && unknown <= 3 * 100, "{status}");

    let shown = json(&host, &["broadcast", "show", &id, "--failed"], "");
    let missed = shown["missed"].as_array().expect("a list").clone();
    let of_kind = |kind: &str| -> Vec<i64> {
        let of_kind = missed.iter().filter(|missed| missed["kind"] == kind);
        of_kind.map(|missed| missed["chat"].as_str().expect("a text").parse().expect("an id")).collect()
    };
    assert_eq!((of_kind("gone").len() as u64, of_kind("unknown").len() as u64), (gone, unknown));
    let (gone_ids, unknown_ids) = (of_kind("gone"), of_kind("unknown"));
    for id in &people {
        let times = simulator.delivered(*id);
        let expected = u64::from(!gone_ids.contains(id));
        assert!(times == expected || unknown_ids.contains(id) && times == 0, "{id}: {times}");
    }
    // What is unknown is in the ledger too, and can be looked after while the host runs.
    let ledger = json(&host, &["unknown", "list"], "");
    assert_eq!(ledger.as_array().map(Vec::len), Some(usize::try_from(unknown).expect("few")), "{ledger}");
    if let Some(number) = ledger[0]["number"].as_u64() {
        let whole = json(&host, &["unknown", "show", &number.to_string()], "");
        assert!(whole["params"].as_str().is_some_and(|params| params.contains("hello all")), "{whole}");
    }
    assert_eq!(json(&host, &["unknown", "drop", "--all"], "")["done"].as_array().map(Vec::len), Some(unknown as usize));
    assert_eq!(run(&host, &["unknown", "list"], "").1, "none\n");

    // The next one skips those that are gone without asking Telegram.
    let before = simulator.call_count("sendMessage");
    let again = json(&host, &["broadcast", "--to", "-", "--text", "again", "--dry-run"], &list(&people));
    assert_eq!((count(&again, "chats"), count(&again, "gone")), (1_500, gone));
    assert_eq!(simulator.call_count("sendMessage"), before, "a dry run sends nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broadcast_is_queued_paused_resumed_and_cancelled() {
    let simulator = simulator().await;
    let people = people(&simulator, 400);
    let mut host = builder(&simulator)
        .send("overall_per_second = 0\nchat_per_second = 0\ngroup_per_minute = 0\nbulk_per_second = 100\n")
        .plugin("echo", &plugin("echo"), "")
        .start();
    host.stop();
    let (code, out, errors) = run(&host, &["broadcast", "--to", "-", "--text", "queued"], &list(&people));
    assert!(code == Some(0) && out.contains("begins with the next start"), "{out}{errors}");
    host.start();
    let id = count(&json(&host, &["broadcast", "list"], "")[0], "id").to_string();
    let handle = simulator.clone();
    assert!(simulator.wait_until(Duration::from_secs(30), move || handle.delivered_in_all() >= 50).await);
    let (code, out, errors) = run(&host, &["broadcast", "pause", &id], "");
    assert!(code == Some(0) && out.contains("is paused"), "{out}{errors}");
    tokio::time::sleep(Duration::from_millis(300)).await;
    let sent = simulator.delivered_in_all();
    host.kill();
    host.start();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(simulator.delivered_in_all(), sent, "the pause survives");
    // What the page does.
    let (status, page) = host.get("/").expect("a page");
    assert!(status == 200 && page.contains("Broadcasts"), "{page}");
    let (_, summary) = host.get("/api/summary").expect("an answer");
    assert!(summary.contains("\"dead\":0"), "{summary}");
    let (_, broadcasts) = host.get("/api/broadcasts").expect("an answer");
    assert!(broadcasts.contains("\"state\":\"paused\""), "{broadcasts}");

    run(&host, &["broadcast", "resume", &id], "");
    let handle = simulator.clone();
    assert!(simulator.wait_until(Duration::from_secs(30), move || handle.delivered_in_all() >= sent + 50).await);
    let (code, out, _) = run(&host, &["broadcast", "cancel", &id], "");
    assert!(code == Some(0) && out.contains("is cancelled"), "{out}");
    host.wait_until("it has ended", |host| count(&json(host, &["broadcast", "show", &id], ""), "ended") > 0);
    let status = json(&host, &["broadcast", "show", &id], "");
    assert_eq!(count(&status, "sent"), simulator.delivered_in_all());
    assert!(count(&status, "waiting") > 0 && count(&status, "unknown") == 0, "{status}");
    let (code, _, errors) = run(&host, &["broadcast", "resume", &id], "");
    assert!(code == Some(1) && errors.contains("has ended"), "{errors}");
    let (code, _, errors) = run(&host, &["broadcast", "pause", "999"], "");
    assert!(code == Some(1) && errors.contains("no broadcast 999"), "{errors}");

    for (arguments, input, part) in [
        (&["broadcast", "--to", "-", "--text", "x"][..], "7\nanna\n", "standard input:2: \"anna\" is neither"),
        (&["broadcast", "--to", "-", "--text", " "], "7\n", "no text"),
        (&["broadcast", "--to", "-", "--method", "getChat", "--params", "{}"], "7\n", "sends nothing"),
        (&["broadcast", "--all-chats", "--text", "x", "--paid"], "", "--max-stars"),
        (&["broadcast", "--text", "x"], "", "--to"),
    ] {
        let (code, _, errors) = run(&host, arguments, input);
        assert!(code == Some(2) && errors.contains(part), "{arguments:?}: {code:?} {errors}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_with_the_grant_writes_to_many_and_one_without_is_told_what_to_add() {
    let simulator = simulator().await;
    let people = people(&simulator, 60);
    let mut host = builder(&simulator)
        .plugin("news", &guest("announcer"), "grants = { broadcast = true }\npriority = 5")
        .plugin("echo", &plugin("echo"), "")
        .start();
    let ids = people[..20].iter().map(i64::to_string).collect::<Vec<_>>().join(",");
    let id = ask(&simulator, ALICE, &format!("/tell {ids} <b>for you</b>")).await;
    assert!(id.parse::<u64>().is_ok(), "{id}");
    for person in &people[..20] {
        assert_eq!(next(&simulator, *person, 0).await, "for you");
    }
    host.wait_until("it has ended", |host| count(&json(host, &["broadcast", "show", &id], ""), "ended") > 0);
    assert_eq!(ask(&simulator, ALICE, &format!("/how {id}")).await, "State::Done: 20 of 20");
    assert_eq!(json(&host, &["broadcast", "show", &id], "")["plugin"], "news");
    assert_eq!(ask(&simulator, ALICE, &format!("/end {id}")).await, "false", "it has ended");
    let paid = ask(&simulator, ALICE, "/paid x").await;
    assert_eq!(paid, "add `grants.broadcast = \"paid\"` to [plugins.news] in bot.toml");

    // To all that the bot knows, but for those that are gone.
    host.stop();
    let store = Store::open(&host.store_dir()).expect("the host has stopped");
    let row = |id: &i64| {
        let gone = (*id == people[30]).then(|| "blocked".to_owned());
        let value = ChatRow { kind: "private".to_owned(), gone, ..ChatRow::default() }.encode();
        Op::Put { key: chat::key(BOT, ChatId(*id)), value }
    };
    let ops = people[30..].iter().map(row).collect();
    store.commit(Commit { ops, ..Commit::default() }).await.expect("applied").durable().await.expect("durable");
    store.close().await.expect("closed");
    drop(store);
    host.start();
    let id = ask(&simulator, ALICE, "/announce to everybody").await;
    for person in &people[31..] {
        assert_eq!(next(&simulator, *person, 0).await, "to everybody");
    }
    host.wait_until("it has ended", |host| count(&json(host, &["broadcast", "show", &id], ""), "ended") > 0);
    assert_eq!(simulator.delivered(people[30]), 0);
    assert!(count(&json(&host, &["broadcast", "show", &id], ""), "gone") >= 1);

    let denied = builder(&simulator).plugin("news", &guest("announcer"), "").plugin("echo", &plugin("echo"), "");
    host.stop();
    let _denied = denied.start();
    let said = ask(&simulator, ALICE, "/announce x").await;
    assert_eq!(said, "add `grants.broadcast = true` to [plugins.news] in bot.toml");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operators_buttons_are_those_of_the_plugin_that_is_named() {
    let simulator = simulator().await;
    let buttons = guest("buttons");
    let host = builder(&simulator)
        .plugin("a", &buttons, "priority = 2\nconfig = { name = \"a\" }")
        .plugin("b", &buttons, "priority = 1\nconfig = { name = \"b\" }")
        .start();
    let send = |data: &str, more: &[&str]| {
        let button = serde_json::json!({ "text": "Tell", "callback_data": data });
        let params = serde_json::json!({ "reply_markup": { "inline_keyboard": [[button]] } }).to_string();
        let arguments = ["broadcast", "--to", "-", "--text", "News", "--params", &params];
        let (code, _, errors) = run(&host, &[&arguments[..], more].concat(), &ALICE.to_string());
        (code, errors)
    };
    let sent = send("order:pick:7", &["--buttons-of", "b"]);
    assert_eq!(sent.0, Some(0), "{}", sent.1);
    let message = simulator.bot_messages(ALICE).pop().expect("it has arrived").id;
    let before = simulator.delivered(ALICE);
    simulator.user_presses(ALICE, ALICE, Some(message), "Tell").expect("there is such a button");
    assert_eq!(next(&simulator, ALICE, before).await, "b picked 7", "not who is asked first");

    let long = "x".repeat(56);
    for (data, more, expected) in [
        ("order:pick:7", &[][..], "--buttons-of NAME"),
        ("order:pick:7", &["--buttons-of", "c"], "there is no plugin `c`"),
        (&long, &["--buttons-of", "b"], "56 bytes; in an operator's broadcast at most 55"),
    ] {
        let (code, errors) = send(data, more);
        assert!(code == Some(2) && errors.contains(expected), "{code:?} {errors}");
    }
    assert_eq!(simulator.delivered(ALICE), before + 1, "nothing of these was sent");
}
