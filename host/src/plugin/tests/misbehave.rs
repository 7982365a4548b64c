//! Guests that do harm, and what becomes of it.

use super::*;

/// Grows by a page again and again, and traps once that is refused.
const EAT: &str = "(loop $more (br_if $more (i32.ne (memory.grow (i32.const 1)) (i32.const -1)))) unreachable";

#[tokio::test]
async fn a_trap_tells_where() {
    let bench = Bench::new();
    let guest = Guest {
        more: "(func $divide (param i32) (result i32) (i32.div_u (i32.const 1) (local.get 0)))",
        handle: "(call $divide (i32.const 0))",
        ..Default::default()
    };
    let plugin = bench.load(guest, settings());
    match bench.run_and_commit(&plugin).await {
        Err(RunError::Trapped { message, backtrace }) => {
            assert!(message.contains("divide by zero"), "{message}");
            assert!(backtrace.contains("divide") && backtrace.contains("handle"), "{backtrace}");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_panic_has_its_text_and_place() {
    let bench = Bench::new();
    let panics = "(call $panicked (global.get $reason) (global.get $reason_len) (global.get $file)
        (global.get $file_len) (i32.const 12) (i32.const 5)) unreachable";
    match bench.handle(panics, settings()).await {
        Err(RunError::Panicked { message, file, line, backtrace }) => {
            assert_eq!((message.as_str(), file.as_str(), line), ("no such order", "src/lib.rs", 12));
            assert!(backtrace.contains("handle"), "{backtrace}");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn no_secret_is_kept_with_a_panic() {
    let secret = "t0p-s3cret-in-it";
    crate::config::redaction::hide(secret);
    // Once as the message, and twice, with a line between them, as the file.
    let write = |at: u32| {
        let half = |range: std::ops::Range<usize>| i64::from_le_bytes(secret.as_bytes()[range].try_into().unwrap());
        format!(
            "(i64.store (i32.const {at}) (i64.const {})) (i64.store (i32.const {}) (i64.const {}))",
            half(0..8),
            at + 8,
            half(8..16)
        )
    };
    let panics = format!(
        "{} (i32.store8 (i32.const 60016) (i32.const 10)) {}
        (call $panicked (i32.const 60000) (i32.const 16) (i32.const 60000) (i32.const 33) (i32.const 1) (i32.const 1))
        unreachable",
        write(60_000),
        write(60_017)
    );
    let bench = Bench::new();
    match bench.handle(&panics, settings()).await {
        Err(RunError::Panicked { message, file, .. }) => {
            assert_eq!((message.as_str(), file.as_str()), ("[hidden]", "[hidden] [hidden]"));
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn an_endless_loop_is_out_of_processor_time() {
    let bench = Bench::new();
    let cpu = Duration::from_millis(40);
    let plugin = bench.load(
        Guest { handle: "(loop $l (br $l)) unreachable", ..Default::default() },
        limited(Limits { cpu, ..Limits::default() }),
    );
    let report = bench.run(&plugin, &invocation()).await;
    assert_eq!(report.result, Err(RunError::OutOfCpu(cpu)));
    assert!(report.cpu >= cpu && report.cpu < cpu * 5, "{:?}", report.cpu);
}

#[tokio::test]
async fn waiting_between_bits_of_work_does_not_renew_the_budget() {
    let bench = Bench::new();
    let cpu = Duration::from_millis(20);
    let nibbles = "(local $n i32) (loop $for_ever
        (local.set $n (i32.const 3000000))
        (loop $work (br_if $work (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
        (call $sleep (i64.const 1))
        (br $for_ever)) unreachable";
    let limits = Limits { cpu, ..Limits::default() };
    assert_eq!(bench.handle(nibbles, limited(limits)).await, Err(RunError::OutOfCpu(cpu)));
}

#[tokio::test(start_paused = true)]
async fn a_long_wait_is_out_of_time_and_costs_no_processor_time() {
    let bench = Bench::new();
    let time = Duration::from_secs(10);
    let waits = "(call $sleep (i64.const -1)) (global.get $done)";
    let plugin =
        bench.load(Guest { handle: waits, ..Default::default() }, limited(Limits { time, ..Limits::default() }));
    let report = bench.run(&plugin, &invocation()).await;
    assert_eq!(report.result, Err(RunError::OutOfTime(time)));
    assert!(report.cpu < Duration::from_millis(50), "{:?}", report.cpu);
}

#[tokio::test]
async fn memory_ends_at_the_limit() {
    let bench = Bench::new();
    let memory = 3 << 20;
    let limits = Limits { memory, ..Limits::default() };
    assert_eq!(bench.handle(EAT, limited(limits.clone())).await, Err(RunError::OutOfMemory(memory)));

    // A guest that can do without is not hindered.
    let frugal = "(drop (memory.grow (i32.const 1000))) (global.get $done)";
    assert_eq!(bench.handle(frugal, limited(limits)).await, Ok(Verdict::Done));
}

#[tokio::test]
async fn a_deep_recursion_is_a_trap_of_the_guest() {
    let bench = Bench::new();
    let result = bench.handle("(call $handle (local.get 0))", settings()).await;
    match result {
        Err(RunError::Trapped { message, .. }) => assert!(message.contains("stack"), "{message}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_failure_of_the_host_is_not_the_guests() {
    let bench = Bench::new();
    let mut tx = Tx::new(&bench.store);
    tx.put(fsm::key(BOT, &name(), &conversation()), b"\xff".to_vec());
    drop(bench.store.commit(tx.into_commit()).await.unwrap());
    let result = bench.handle("(call $fsm_get (global.get $answer)) (global.get $done)", settings()).await;
    assert!(matches!(result, Err(RunError::Host(_))), "{result:?}");
}

#[tokio::test]
async fn effects_and_bytes_are_bounded() {
    let bench = Bench::new();
    let refused =
        "(if (i32.ne (i32.load8_u (global.get $answer)) (i32.const 1)) (then unreachable)) (global.get $done)";
    for limits in [
        Limits { effects: 3, ..Limits::default() },
        // The read of a key of 7 bytes, and 12 more.
        Limits { data: 256 + 7 + 12, ..Limits::default() },
        Limits { value: 6, ..Limits::default() },
    ] {
        let result = bench.handle(&format!("{EFFECTS} {refused}"), limited(limits.clone())).await;
        assert_eq!(result, Ok(Verdict::Done), "{limits:?}");
    }
}

#[test]
fn fifty_loops_at_once_leave_the_others_and_the_threads_alone() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("loops")
        .enable_all()
        .build()
        .unwrap();
    let bench = Arc::new(Bench::with_runs(64));
    let cpu = Duration::from_millis(30);
    let endless = Guest { handle: "(loop $l (br $l)) unreachable", ..Default::default() };
    // The machine may be busy with other things, and long runs come last.
    let time = Duration::from_secs(300);
    let loops = bench.load(endless, limited(Limits { cpu, time, ..Limits::default() }));
    let healthy = bench.load(Guest::default(), settings());
    runtime.block_on(async {
        let spawn = |plugin: &Arc<Plugin>| {
            let (bench, plugin) = (bench.clone(), plugin.clone());
            tokio::spawn(async move { bench.run(&plugin, &invocation()).await.result })
        };
        let looping: Vec<_> = (0..50).map(|_| spawn(&loops)).collect();
        let mut answered = 0;
        while !looping.iter().all(|run| run.is_finished()) {
            assert_eq!(spawn(&healthy).await.unwrap(), Ok(Verdict::Done));
            answered += 1;
            assert_eq!(threads(), 2);
        }
        assert!(answered >= 3, "{answered} answers while the loops were running");
        for run in looping {
            assert_eq!(run.await.unwrap(), Err(RunError::OutOfCpu(cpu)));
        }
    });
}

/// Threads of the runtime above.
fn threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    // A thread may end between being listed and being read.
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")).ok());
    names.filter(|name| name.trim() == "loops").count()
}

#[test]
fn memory_comes_back_after_every_run() {
    /// Set in a process that this test has for itself: what others use, which comes and goes, is not in its memory.
    const ALONE: &str = "BOTYARD_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        return runtime.block_on(use_and_give_back_memory());
    }
    let (_, module) = module_path!().split_once("::").unwrap();
    let test = format!("{module}::memory_comes_back_after_every_run");
    let mut alone = std::process::Command::new(std::env::current_exe().unwrap());
    let output = alone.args(["--exact", &test]).env(ALONE, "1").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

async fn use_and_give_back_memory() {
    // Asks for 4 MiB, which must all be zero, touches every page of it, and waits for the others.
    const TOUCH: &str = "(local $at i32) (local.set $at (i32.const 65536)) (drop (memory.grow (i32.const 64)))
        (loop $more
          (if (i32.load8_u (local.get $at)) (then unreachable))
          (i32.store8 (local.get $at) (i32.const 1))
          (br_if $more (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 4096))) (i32.const 4200000))))
        (call $sleep (i64.const 1))";
    let bench = Bench::with_runs(32);
    let plugins = ["(call $sleep (i64.const -1))", "", "(drop (memory.grow (i32.const 1000)))"].map(|end| {
        let handle = format!("{TOUCH} {end} (global.get $done)");
        bench.load(
            Guest { handle: &handle, ..Default::default() },
            limited(Limits {
                time: Duration::from_millis(if end.contains("-1") { 50 } else { 60_000 }),
                cpu: Duration::from_secs(10),
                ..Limits::default()
            }),
        )
    });
    let before = resident();
    let invocation = invocation();
    for _ in 0..1_000 / 32 + 1 {
        let runs = (0..32).map(|run| bench.run(&plugins[run % 3], &invocation));
        for (run, report) in futures_util::future::join_all(runs).await.into_iter().enumerate() {
            let late = matches!(report.result, Err(RunError::OutOfTime(_)));
            assert!(report.result == Ok(Verdict::Done) || (late && run % 3 == 0), "{run}: {:?}", report.result);
        }
    }
    // 32 instances that kept what they got would be 128 MiB.
    let grown = resident().saturating_sub(before);
    assert!(grown < 32 << 20, "{grown} bytes more than before");
}

/// Bytes of this process in memory.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap();
    status.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

#[tokio::test]
async fn the_reason_of_a_failure_has_an_end() {
    let bench = Bench::new();
    // One megabyte of zero bytes as the message.
    let handle = "(i32.store (global.get $answer) (i32.const 1))
        (i32.store offset=4 (global.get $answer) (i32.const 65536))
        (i32.store offset=8 (global.get $answer) (i32.const 1048576))
        (i32.store offset=12 (global.get $answer) (i32.const 1))
        (global.get $answer)";
    let plugin = bench.load(Guest { handle, pages: 20, ..Default::default() }, settings());
    match bench.run(&plugin, &invocation()).await.result {
        Err(RunError::Refused { message, retry: true }) => assert_eq!(message.len(), 4 << 10),
        other => panic!("{:.200}", format!("{other:?}")),
    }
}

#[test]
fn limits_that_end_a_run_name_their_line_and_are_counted() {
    let loops = "(loop $l (br $l)) unreachable";
    let waits = "(call $sleep (i64.const -1)) (global.get $done)";
    let usual = Limits::default;
    for (key, handle, limits) in [
        ("memory", EAT, Limits { memory: 3 << 20, ..usual() }),
        ("cpu", loops, Limits { cpu: Duration::from_millis(20), ..usual() }),
        ("time", waits, Limits { time: Duration::from_millis(20), ..usual() }),
    ] {
        let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let bench = Bench::new();
        let result = metrics::with_local_recorder(&recorder, || {
            runtime.block_on(async { bench.handle(handle, limited(limits)).await })
        });
        let told = result.unwrap_err().with_place(&name());
        assert!(told.contains(&format!("(`limits.{key}`, for a job `jobs.{key}`) of [plugins.shop]")), "{told}");
        let rendered = recorder.handle().render();
        assert!(rendered.contains(&format!("plugin=\"shop\",limit=\"{key}\"}} 1")), "{rendered}");
    }
}

/// Queues a call and fails if that was refused, as the SDK does for who does not look.
const QUEUE_OR_FAIL: &str = "
    (call $enqueue (global.get $method) (global.get $method_len) (global.get $params) (global.get $params_len)
      (i32.const 1) (i32.const 1) (i32.const 0) (i32.const 0) (global.get $answer))
    (if (i32.load8_u (global.get $answer)) (then (return (global.get $refused))))";

#[tokio::test(start_paused = true)]
async fn a_run_that_fails_for_lack_of_calls_is_short_of_them_and_uses_none() {
    let bench = Bench::new();
    let twice = format!("{QUEUE_OR_FAIL} {QUEUE_OR_FAIL} (global.get $done)");
    let plugin = bench.load(
        Guest { handle: &twice, ..Default::default() },
        limited(Limits { calls_per_minute: 5, ..Limits::default() }),
    );
    let invocation = invocation();
    let first = bench.run(&plugin, &invocation).await;
    assert_eq!(bench.run(&plugin, &invocation).await.result, Ok(Verdict::Done), "its report is dropped, not committed");
    let mut reports = vec![first, bench.run(&plugin, &invocation).await];
    // Four are held; the second call of this run is one too many, and its first is given back.
    let third = bench.run(&plugin, &invocation).await;
    let RunError::Short { limit: Limit::CallsPerMinute, wait } = third.result.unwrap_err() else { panic!() };
    assert_eq!(wait, Duration::from_secs(60));
    drop(reports.pop());
    assert_eq!(bench.run(&plugin, &invocation).await.result, Ok(Verdict::Done));
}

#[tokio::test]
async fn nonsense_across_the_interface_is_the_guests_own_trap_beside_a_healthy_one() {
    let bench = Bench::new();
    let healthy = bench.load(Guest::default(), settings());
    // A failure: where its message is, and how long.
    let answer = |at: i64, length: i64| {
        format!(
            "(i32.store8 (i32.const 512) (i32.const 0xff)) (i32.store (global.get $answer) (i32.const 1))
            (i32.store offset=4 (global.get $answer) (i32.const {at}))
            (i32.store offset=8 (global.get $answer) (i32.const {length}))
            (i32.store offset=12 (global.get $answer) (i32.const 1)) (global.get $answer)"
        )
    };
    let queue = |at: i64, length: i64| {
        format!(
            "(i32.store8 (i32.const 512) (i32.const 0xff))
            (call $enqueue (i32.const {at}) (i32.const {length}) (global.get $params) (global.get $params_len)
              (i32.const 1) (i32.const 1) (i32.const 0) (i32.const 0) (global.get $answer)) (global.get $done)"
        )
    };
    let done = "(global.get $done)".to_owned();
    for (what, handle, realloc) in [
        ("words that are no UTF-8", answer(512, 1), ""),
        ("words beyond its memory", answer(0, 1 << 30), ""),
        ("words that wrap around", answer(-8, 16), ""),
        (
            "a verdict that there is not",
            "(i32.store (global.get $answer) (i32.const 7)) (global.get $answer)".into(),
            "",
        ),
        ("an answer outside its memory", "(i32.const -4)".into(), ""),
        ("an answer that is not aligned", "(i32.const 1025)".into(), ""),
        ("a method that is no UTF-8", queue(512, 1), ""),
        ("a method beyond its memory", queue(0, 1 << 30), ""),
        ("a call while it is called back", done.clone(), "(call $sleep (i64.const 1))"),
        ("a call of itself while it is called back", done.clone(), "(drop (call $handle (i32.const 0)))"),
        ("memory from nowhere", done, "(return (i32.const -16))"),
    ] {
        let plugin = bench.load(Guest { handle: &handle, realloc, ..Default::default() }, settings());
        let report = bench.run(&plugin, &invocation()).await;
        // Calling itself within its own code is its own affair.
        let is_its_own = what.contains("of itself") && report.result == Ok(Verdict::Done);
        assert!(is_its_own || matches!(report.result, Err(RunError::Trapped { .. })), "{what}: {:?}", report.result);
        assert_eq!(bench.run_and_commit(&healthy).await, Ok(Verdict::Done), "beside {what}");
    }
    assert!(bench.telegram.made.lock().unwrap().is_empty());
}
