//! Files in both directions, through a real host and over real sockets.

use std::time::{Duration, Instant};

use botyard::simulator::{ALICE, Action, BOTIR, Fault, Simulator, SimulatorSettings};
use botyard_tests::{Host, HostBuilder, guest};

use super::support::{ask, builder, next, simulator};

const LONG: Duration = Duration::from_secs(120);

fn with_files(builder: HostBuilder, limits: &str) -> Host {
    builder.plugin("files", &guest("files"), &format!("limits = {{ {limits} }}")).start()
}

/// Contents that the host keeps.
fn kept(host: &Host) -> usize {
    std::fs::read_dir(host.folder().join("data.files")).map_or(0, Iterator::count)
}

/// The `file_id` of the document that the bot sent last to a chat.
fn last_file(simulator: &Simulator, chat: i64) -> String {
    let message = simulator.bot_messages(chat).pop().expect("a message");
    let content = message.content.expect("a document");
    content["document"]["file_id"].as_str().expect("an id").to_owned()
}

async fn send(simulator: &Simulator, chat: i64, text: &str) -> String {
    ask(simulator, chat, text).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_content_is_uploaded_once_whoever_gets_it_and_after_a_restart_too() {
    let simulator = simulator().await;
    let mut host = with_files(builder(&simulator), "");
    for chat in [ALICE, BOTIR, ALICE] {
        assert_eq!(send(&simulator, chat, "/send hello").await, "a note");
    }
    host.wait_until("the content is done with", |host| kept(host) == 0);
    host.settle();
    host.kill();
    host.start();
    assert_eq!(send(&simulator, BOTIR, "/send hello").await, "a note");
    let uploads = simulator.uploads();
    assert_eq!(uploads.iter().map(|upload| (&*upload.name, upload.size)).collect::<Vec<_>>(), [("note.txt", 5)]);
    send(&simulator, ALICE, "/send other").await;
    assert_eq!(simulator.uploads().len(), 2);
    // In an album, what is known goes by its id and the rest along with it.
    simulator.user_says(ALICE, ALICE, "/photos second").expect("a chat");
    simulator.wait_for_messages(ALICE, 5, LONG).await.expect("two photos");
    simulator.user_says(ALICE, ALICE, "/photos third").expect("a chat");
    simulator.wait_for_messages(ALICE, 7, LONG).await.expect("two photos");
    let names: Vec<_> = simulator.uploads().iter().skip(2).map(|upload| upload.name.clone()).collect();
    assert_eq!(names, ["a.png", "b.png", "b.png"]);
    let stale = send(&simulator, ALICE, "/stale").await;
    assert!(stale.contains("that this run has not made"), "{stale}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_fails_leaves_no_file_and_sends_none() {
    let simulator = simulator().await;
    let mut host = with_files(builder(&simulator), "upload = \"1KiB\"");
    simulator.user_says(ALICE, ALICE, "/fail secret").expect("a chat");
    let dead = |host: &Host| host.metrics().sum("botyard_events_total", &["outcome=\"dead\""]);
    host.wait_until("it has failed", |host| dead(host) == 1.0);
    host.wait_until("the content is gone", |host| kept(host) == 0);
    assert_eq!(send(&simulator, ALICE, "/send small").await, "a note");
    assert_eq!(simulator.uploads().len(), 1);
    let answer = send(&simulator, ALICE, &format!("/call {}", "x".repeat(1025))).await;
    assert!(answer.contains("limits.upload"), "{answer}");
    assert!(host.metrics().sum("botyard_plugin_limits_total", &["limit=\"upload\""]) >= 1.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_committed_is_uploaded_after_a_kill() {
    let simulator = simulator().await;
    let mut host = with_files(builder(&simulator), "");
    simulator.add_fault(Fault::on("sendDocument", Action::Hang { after: 0 }));
    simulator.user_says(ALICE, ALICE, "/send kept").expect("a chat");
    host.wait_until("the upload hangs", |_| simulator.fault_rules()[0].hit > 0);
    assert_eq!(kept(&host), 1);
    host.kill();
    // What a killed run leaves half done, and what nobody needs.
    let folder = host.folder().join("data.files");
    std::fs::write(folder.join("unfinished-3"), "half").expect("it is writable");
    std::fs::write(folder.join("ab".repeat(32)), "of no use").expect("it is writable");
    simulator.clear_faults();
    host.start();
    assert_eq!(next(&simulator, ALICE, 0).await, "a note");
    let upload = &simulator.uploads()[0];
    assert!(upload.size == 4 && upload.hash.starts_with("79f076ab"), "{upload:?}");
    host.wait_until("nothing is left", |host| kept(host) == 0);
    assert_eq!(simulator.uploads().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_breaks_off_is_made_again_whole() {
    let simulator = simulator().await;
    let _host = with_files(builder(&simulator), "cpu = \"5s\"");
    simulator.add_fault(Fault::on("sendDocument", Action::HangUp { after: 3 << 20 }).times(2));
    simulator.user_says(ALICE, ALICE, "/large 12").expect("a chat");
    simulator.wait_for_messages(ALICE, 1, LONG).await.expect("the document");
    assert_eq!(simulator.fault_rules()[0].hit, 2);
    let uploads = simulator.uploads();
    assert_eq!(uploads.iter().map(|upload| upload.size).collect::<Vec<_>>(), [12 << 20]);
    assert_eq!(simulator.delivered(ALICE), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_large_is_refused_with_the_way_out() {
    let simulator = simulator().await;
    let mut host = with_files(builder(&simulator), "cpu = \"10s\", upload = \"100MiB\"");
    simulator.user_says(ALICE, ALICE, "/large 51").expect("a chat");
    let page = Action::Answer {
        status: 413,
        body: "<html><h1>413 Request Entity Too Large</h1></html>".to_owned(),
        content_type: "text/html".to_owned(),
        applied: false,
    };
    host.wait_until("it is refused", |host| host.log().contains("and at most 50 MiB can be sent"));
    assert_eq!(simulator.uploads().len(), 0);
    // And if the server has its own idea.
    simulator.add_fault(Fault::on("sendDocument", page));
    let answer = send(&simulator, BOTIR, "/call fine").await;
    assert!(answer.contains("[413]"), "{answer}");
    assert_eq!(simulator.call_count("sendDocument"), 1, "once is enough");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_fetched_whole_through_trouble_and_without_a_trace_of_the_token() {
    let simulator = simulator().await;
    let host = with_files(builder(&simulator), "download = \"1MiB\", cpu = \"5s\"");
    send(&simulator, ALICE, "/call what is in it").await;
    let id = last_file(&simulator, ALICE);
    for action in [Action::Reset { applied: false }, Action::Cut { after: 3 }, Action::bad_gateway()] {
        simulator.add_fault(Fault::on("file", action).times(1));
    }
    simulator.add_fault(Fault::on("getFile", Action::internal_error()).times(1));
    assert_eq!(send(&simulator, ALICE, &format!("/fetch {id}")).await, "what is in it");
    let asked = simulator.call_count("getFile");
    assert_eq!(send(&simulator, BOTIR, &format!("/fetch {id}")).await, "what is in it");
    assert_eq!(simulator.call_count("getFile"), asked, "it was still there");

    let answer = send(&simulator, ALICE, "/fetch nonsense").await;
    assert!(answer.contains("wrong file_id"), "{answer}");
    simulator.clear_faults();
    simulator.user_says(ALICE, ALICE, "/large 2").expect("a chat");
    simulator.wait_for_messages(ALICE, 4, LONG).await.expect("the document");
    let large = last_file(&simulator, ALICE);
    let answer = send(&simulator, ALICE, &format!("/fetch {large}")).await;
    assert!(answer.contains("`limits.download` of [plugins.files] in bot.toml"), "{answer}");
    assert!(host.metrics().sum("botyard_plugin_limits_total", &["limit=\"download\""]) >= 1.0);

    let _again = send(&simulator, ALICE, &format!("/again {id}")).await;
    let uploads = simulator.uploads();
    let last = uploads.last().expect("it was uploaded under its new name");
    assert_eq!((&*last.name, &last.hash), ("again.txt", &uploads[0].hash));
    let seen = format!("{:?} {}", simulator.messages(ALICE), host.get("/metrics").expect("it answers").1);
    assert!(!seen.contains("test-token-that"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_local_server_s_files_are_read_from_its_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let settings = SimulatorSettings { local_files: Some(folder.path().to_owned()), ..SimulatorSettings::default() };
    let simulator = Simulator::start(settings).await.expect("a free port");
    let local = |more: &str| with_files(builder(&simulator).bot(&format!("local_server = true\n{more}")), "");
    let host = local(&format!("local_files = {:?}", folder.path().display().to_string()));
    send(&simulator, ALICE, "/call from the disk").await;
    let id = last_file(&simulator, ALICE);
    assert_eq!(send(&simulator, ALICE, &format!("/fetch {id}")).await, "from the disk");
    drop(host);
    let _host = local("");
    let answer = send(&simulator, ALICE, &format!("/fetch {id}")).await;
    assert!(answer.contains("name the folder with `local_files` in [bot]"), "{answer}");
    assert_eq!(simulator.call_count("file"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_far_larger_than_the_memory_it_may_take() {
    let folder = tempfile::tempdir().expect("a folder");
    let settings = SimulatorSettings { local_files: Some(folder.path().to_owned()), ..SimulatorSettings::default() };
    let simulator = Simulator::start(settings).await.expect("a free port");
    let limits = "cpu = \"60s\", time = \"5m\", upload = \"2GiB\"";
    let host = with_files(builder(&simulator).bot("local_server = true"), limits);
    // A film of 1,500 MiB takes no more memory, but half a minute: set this to try it.
    let mebibytes: u64 = std::env::var("BOTYARD_LARGE_MIB").map_or(300, |text| text.parse().expect("a number"));
    let begun = Instant::now();
    simulator.user_says(ALICE, ALICE, &format!("/large {mebibytes}")).expect("a chat");
    simulator.wait_for_messages(ALICE, 1, LONG).await.expect("the document");
    let (took, peak) = (begun.elapsed(), host.peak_resident_mib());
    assert_eq!(simulator.uploads()[0].size, mebibytes << 20);
    assert!(peak < 150, "{peak} MiB, {took:?}");
}
