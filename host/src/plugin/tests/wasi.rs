//! Guests that were built for WASI, and what they get of it.

use super::*;

const WIT: &str = r#"
package test:wasi;

world more {
    include botyard:plugin/plugin@0.1.0;
    import wasi:io/poll@0.2.3;
    import wasi:io/streams@0.2.3;
    import wasi:cli/environment@0.2.3;
    import wasi:cli/exit@0.2.3;
    import wasi:cli/stdin@0.2.3;
    import wasi:cli/stdout@0.2.3;
    import wasi:cli/stderr@0.2.3;
    import wasi:clocks/monotonic-clock@0.2.3;
    import wasi:clocks/wall-clock@0.2.3;
    import wasi:clocks/sundial@0.2.3;
    import wasi:random/random@0.2.3;
    import wasi:sockets/network@0.2.3;
    import wasi:sockets/tcp-create-socket@0.2.3;
}

package wasi:io@0.2.3 {
    interface error { resource error; }
    interface poll {
        resource pollable { ready: func() -> bool; block: func(); }
        poll: func(in: list<borrow<pollable>>) -> list<u32>;
    }
    interface streams {
        use error.{error};
        use poll.{pollable};
        variant stream-error { last-operation-failed(error), closed }
        resource input-stream { read: func(len: u64) -> result<list<u8>, stream-error>; }
        resource output-stream {
            write: func(contents: list<u8>) -> result<_, stream-error>;
            subscribe: func() -> pollable;
        }
    }
}

package wasi:cli@0.2.3 {
    interface environment {
        get-environment: func() -> list<tuple<string, string>>;
        get-arguments: func() -> list<string>;
    }
    interface exit { exit: func(status: result); }
    interface stdin { use wasi:io/streams@0.2.3.{input-stream}; get-stdin: func() -> input-stream; }
    interface stdout { use wasi:io/streams@0.2.3.{output-stream}; get-stdout: func() -> output-stream; }
    interface stderr { use wasi:io/streams@0.2.3.{output-stream}; get-stderr: func() -> output-stream; }
}

package wasi:clocks@0.2.3 {
    interface monotonic-clock {
        use wasi:io/poll@0.2.3.{pollable};
        now: func() -> u64;
        subscribe-duration: func(when: u64) -> pollable;
    }
    interface wall-clock { record datetime { seconds: u64, nanoseconds: u32 } now: func() -> datetime; }
    interface sundial { shadow: func() -> u32; }
}

package wasi:random@0.2.3 { interface random { get-random-bytes: func(len: u64) -> list<u8>; } }

package wasi:sockets@0.2.3 {
    interface network { enum error-code { unknown, access-denied } enum ip-address-family { ipv4, ipv6 } }
    interface tcp-create-socket {
        use network.{error-code, ip-address-family};
        create-tcp-socket: func(family: ip-address-family) -> result<u32, error-code>;
    }
}
"#;

const IMPORTS: &str = r#"
  (import "wasi:io/poll@0.2.3" "[method]pollable.ready" (func $ready (param i32) (result i32)))
  (import "wasi:io/poll@0.2.3" "[method]pollable.block" (func $block (param i32)))
  (import "wasi:io/poll@0.2.3" "[resource-drop]pollable" (func $drop_pollable (param i32)))
  (import "wasi:io/poll@0.2.3" "poll" (func $poll (param i32 i32 i32)))
  (import "wasi:io/streams@0.2.3" "[method]input-stream.read" (func $read (param i32 i64 i32)))
  (import "wasi:io/streams@0.2.3" "[method]output-stream.write" (func $write (param i32 i32 i32 i32)))
  (import "wasi:io/streams@0.2.3" "[method]output-stream.subscribe" (func $subscribe (param i32) (result i32)))
  (import "wasi:cli/environment@0.2.3" "get-environment" (func $environment (param i32)))
  (import "wasi:cli/environment@0.2.3" "get-arguments" (func $arguments (param i32)))
  (import "wasi:cli/exit@0.2.3" "exit" (func $exit (param i32)))
  (import "wasi:cli/stdin@0.2.3" "get-stdin" (func $stdin (result i32)))
  (import "wasi:cli/stdout@0.2.3" "get-stdout" (func $stdout (result i32)))
  (import "wasi:cli/stderr@0.2.3" "get-stderr" (func $stderr (result i32)))
  (import "wasi:clocks/monotonic-clock@0.2.3" "now" (func $monotonic (result i64)))
  (import "wasi:clocks/monotonic-clock@0.2.3" "subscribe-duration" (func $timer_of (param i64) (result i32)))
  (import "wasi:clocks/wall-clock@0.2.3" "now" (func $wall (param i32)))
  (import "wasi:clocks/sundial@0.2.3" "shadow" (func $shadow (result i32)))
  (import "wasi:random/random@0.2.3" "get-random-bytes" (func $random (param i64 i32)))
  (import "wasi:sockets/tcp-create-socket@0.2.3" "create-tcp-socket" (func $tcp (param i32 i32)))
"#;

/// A plugin with this `handle`. `$sure` traps unless it is given something.
fn load(bench: &Bench, handle: &str, limits: Limits) -> Arc<Plugin> {
    let more = "(func $sure (param i32) (if (i32.eqz (local.get 0)) (then unreachable)))
        (func $print (param i32 i32 i32)
          (call $write (local.get 0) (local.get 1) (local.get 2) (global.get $answer))
          (call $sure (i32.eqz (i32.load8_u (global.get $answer)))))";
    let guest = Guest { handle, more, ..Default::default() };
    bench.engine.load(name(), &guest.module_importing(IMPORTS, WIT), limited(limits)).unwrap()
}

async fn trap(handle: &str) -> String {
    let bench = Bench::new();
    match bench.run(&load(&bench, handle, Limits::default()), &invocation()).await.result {
        Err(RunError::Trapped { message, .. }) => message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_imported_of_wasi_is_no_right_to_be_asked_for() {
    let bench = Bench::new();
    let plugin = load(&bench, "(global.get $done)", Limits::default());
    assert!(!plugin.interfaces.is_empty() && plugin.interfaces.iter().all(|name| name.starts_with("botyard:")));
}

#[tokio::test(start_paused = true)]
async fn the_clocks_are_the_runs_and_move_only_by_what_is_waited() {
    let (seconds, nanos) = (NOW / 1_000, NOW * 1_000_000);
    let later = nanos + 5_000_000_000;
    let handle = format!(
        "(local $timer i32)
        (call $wall (global.get $answer))
        (call $sure (i64.eq (i64.load (global.get $answer)) (i64.const {seconds})))
        (call $sure (i64.eq (call $monotonic) (i64.const {nanos})))
        (local.set $timer (call $timer_of (i64.const 5000000000)))
        (call $sure (i32.eqz (call $ready (local.get $timer))))
        (call $block (local.get $timer))
        (call $sure (call $ready (local.get $timer)))
        (call $sure (i64.eq (call $monotonic) (i64.const {later})))
        (call $wall (global.get $answer))
        (call $sure (i64.eq (i64.load (global.get $answer)) (i64.const {seconds})))
        (call $sleep (i64.const 2000))
        (call $sure (i64.eq (call $monotonic) (i64.const {})))
        (global.get $done)",
        nanos + 7_000_000_000
    );
    let bench = Bench::new();
    let plugin = load(&bench, &handle, Limits::default());
    let start = tokio::time::Instant::now();
    let report = bench.run(&plugin, &invocation()).await;
    assert_eq!(report.result, Ok(Verdict::Done));
    assert_eq!(start.elapsed().as_secs(), 7, "it really waited");
}

#[tokio::test(start_paused = true)]
async fn of_several_the_first_is_waited_for() {
    // Handles of 30 s, 1 s and one that is there at once, at 64, 68 and 72; the answers are the places of those that came.
    let handle = "(i32.store (i32.const 64) (call $timer_of (i64.const 30000000000)))
        (i32.store (i32.const 68) (call $timer_of (i64.const 1000000000)))
        (i32.store (i32.const 72) (call $subscribe (call $stdout)))
        (call $poll (i32.const 64) (i32.const 2) (global.get $answer))
        (call $sure (i32.eq (i32.load offset=4 (global.get $answer)) (i32.const 1)))
        (call $sure (i32.eq (i32.load (i32.load (global.get $answer))) (i32.const 1)))
        (call $poll (i32.const 64) (i32.const 3) (global.get $answer))
        (call $sure (i32.eq (i32.load offset=4 (global.get $answer)) (i32.const 2)))
        (call $sure (i32.eq (i32.load offset=4 (i32.load (global.get $answer))) (i32.const 2)))
        (global.get $done)";
    let bench = Bench::new();
    let start = tokio::time::Instant::now();
    let report = bench.run(&load(&bench, handle, Limits::default()), &invocation()).await;
    assert_eq!((report.result, start.elapsed().as_secs()), (Ok(Verdict::Done), 1));
    assert!(
        trap("(call $poll (i32.const 64) (i32.const 0) (global.get $answer)) unreachable").await.contains("nothing")
    );
}

#[tokio::test(start_paused = true)]
async fn waiting_ends_with_the_runs_time_and_costs_no_processor_time() {
    let bench = Bench::new();
    let time = Duration::from_secs(10);
    let waits = "(call $block (call $timer_of (i64.const -1))) (global.get $done)";
    let report = bench.run(&load(&bench, waits, Limits { time, ..Limits::default() }), &invocation()).await;
    assert_eq!(report.result, Err(RunError::OutOfTime(time)));
    assert!(report.cpu < Duration::from_millis(50), "{:?}", report.cpu);
}

#[tokio::test]
async fn randomness_is_the_same_on_every_attempt() {
    let handle = "(call $random (i64.const 8) (global.get $answer))
        (call $print (call $stdout) (i32.load (global.get $answer)) (i32.load offset=4 (global.get $answer)))
        (global.get $done)";
    let _somebody_listens = tracing::subscriber::set_default(tracing_subscriber::registry());
    let bench = Bench::new();
    let plugin = load(&bench, handle, Limits::default());
    let said = async |invocation: Invocation| bench.run(&plugin, &invocation).await.lines;
    let first = said(invocation()).await;
    assert_eq!((first.len(), said(Invocation { attempt: 2, ..invocation() }).await), (1, first.clone()));
    assert_ne!(said(Invocation { seed: 2, ..invocation() }).await, first);
    let much = trap("(call $random (i64.const 70000) (global.get $answer)) unreachable").await;
    assert!(much.contains("random bytes"), "{much}");
}

#[tokio::test]
async fn what_is_written_is_logged_line_by_line_within_the_limit() {
    let _somebody_listens = tracing::subscriber::set_default(tracing_subscriber::registry());
    // "sendMessage" in two parts, an empty line, and what is not ended: to the error output, too.
    let handle = "(local $out i32) (local $err i32)
        (local.set $out (call $stdout)) (local.set $err (call $stderr))
        (i32.store8 (i32.const 64) (i32.const 10))
        (call $print (local.get $out) (global.get $method) (i32.const 4))
        (call $print (local.get $err) (global.get $reason) (global.get $reason_len))
        (call $print (local.get $out) (i32.add (global.get $method) (i32.const 4)) (i32.const 7))
        (call $print (local.get $out) (i32.const 64) (i32.const 1))
        (call $print (local.get $out) (i32.const 64) (i32.const 1))
        (call $print (local.get $out) (global.get $key) (global.get $key_len))
        (global.get $done)";
    let bench = Bench::new();
    let report = bench.run(&load(&bench, handle, Limits::default()), &invocation()).await;
    assert_eq!(report.lines, ["info sendMessage", "info counter", "warn no such order"]);

    let trapped = "(call $print (call $stderr) (global.get $reason) (global.get $reason_len)) unreachable";
    let report = bench.run(&load(&bench, trapped, Limits::default()), &invocation()).await;
    assert_eq!(report.lines, ["warn no such order"], "the last words are not lost");
    assert!(matches!(report.result, Err(RunError::Trapped { .. })));

    // A line without an end, again and again: what is kept of it is bounded as well.
    let chatters = "(local $out i32) (local $n i32) (local.set $out (call $stdout)) (local.set $n (i32.const 2000))
        (loop $more
          (call $print (local.get $out) (i32.const 0) (i32.const 1024))
          (br_if $more (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
        (global.get $done)";
    let limits = Limits { cpu: Duration::from_secs(5), ..Limits::default() };
    let report = bench.run(&load(&bench, chatters, limits), &invocation()).await;
    assert_eq!((report.result, report.lines.len()), (Ok(Verdict::Done), 0));
}

#[tokio::test]
async fn there_is_nothing_to_read_and_nobody_to_reach() {
    let handle = "(call $environment (global.get $answer))
        (call $sure (i32.eqz (i32.load offset=4 (global.get $answer))))
        (call $arguments (global.get $answer))
        (call $sure (i32.eqz (i32.load offset=4 (global.get $answer))))
        (call $read (call $stdin) (i64.const 100) (global.get $answer))
        (call $sure (i32.eq (i32.load8_u (global.get $answer)) (i32.const 1)))
        (call $sure (i32.eq (i32.load8_u offset=4 (global.get $answer)) (i32.const 1)))
        (call $tcp (i32.const 0) (global.get $answer))
        (call $sure (i32.eq (i32.load8_u (global.get $answer)) (i32.const 1)))
        (call $sure (i32.eq (i32.load8_u offset=4 (global.get $answer)) (i32.const 1)))
        (global.get $done)";
    let bench = Bench::new();
    assert_eq!(bench.run(&load(&bench, handle, Limits::default()), &invocation()).await.result, Ok(Verdict::Done));
    let shadow = trap("(drop (call $shadow)) unreachable").await;
    assert!(shadow.contains("`wasi:clocks/sundial@0.2.3#shadow`, which this host does not offer"), "{shadow}");
    assert!(trap("(call $exit (i32.const 0)) unreachable").await.contains("ended itself"));
}

#[tokio::test]
async fn handles_have_an_end_and_are_had_again_once_they_are_dropped() {
    let held = trap("(loop $more (drop (call $stdout)) (br $more)) unreachable").await;
    assert!(held.contains("1000 handles"), "{held}");
    let dropped = "(local $n i32) (local.set $n (i32.const 5000))
        (loop $more
          (call $drop_pollable (call $timer_of (i64.const 1)))
          (br_if $more (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
        (global.get $done)";
    let bench = Bench::new();
    let plugin = load(&bench, dropped, Limits::default());
    for _ in 0..3 {
        assert_eq!(bench.run(&plugin, &invocation()).await.result, Ok(Verdict::Done));
    }
}
