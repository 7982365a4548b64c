//! States of other versions.

use super::*;

fn row(version: u32) -> fsm::StateRow {
    fsm::StateRow { name: "size".into(), version, expires: NOW + 1_000, bytes: b"old".to_vec() }
}

async fn put(bench: &Bench, row: &fsm::StateRow) {
    let mut tx = Tx::new(&bench.store);
    tx.put(fsm::key(BOT, &name(), &conversation()), row.encode());
    drop(bench.store.commit(tx.into_commit()).await.unwrap());
}

fn state(bench: &Bench) -> Option<fsm::StateRow> {
    let bytes = bench.store.get(&fsm::key(BOT, &name(), &conversation())).unwrap()?;
    Some(fsm::StateRow::decode(&bytes).unwrap())
}

fn aside(bench: &Bench) -> Option<fsm::StateRow> {
    let bytes = bench.store.get(&fsm::aside_key(BOT, &name(), &conversation())).unwrap()?;
    Some(fsm::StateRow::decode(&bytes).unwrap())
}

/// `Ok` with a state named and filled from the guest's texts, of the version in place of `VERSION`.
const TO_NEW: &str = "
    (i32.store8 (global.get $answer) (i32.const 0))
    (i32.store offset=4 (global.get $answer) (global.get $state))
    (i32.store offset=8 (global.get $answer) (global.get $state_len))
    (i32.store offset=12 (global.get $answer) (i32.const VERSION))
    (i32.store offset=16 (global.get $answer) (local.get $bytes))
    (i32.store offset=20 (global.get $answer) (local.get $bytes_len))
    (global.get $answer)";

/// Traps unless `fsm.get` answers as expected: 1 for a state.
fn expects(state: u8) -> String {
    format!(
        "(call $fsm_get (global.get $answer))
         (if (i32.ne (i32.load8_u (global.get $answer)) (i32.const {state})) (then unreachable)) (global.get $done)"
    )
}

async fn run(bench: &Bench, migrate: &str, handle: &str) -> Result<Verdict, RunError> {
    let plugin = bench.load(Guest { migrate, handle, state_version: 2, ..Default::default() }, settings());
    bench.run_and_commit(&plugin).await
}

#[tokio::test]
async fn an_old_state_is_migrated_before_the_event_is_handled() {
    let bench = Bench::new();
    put(&bench, &row(1)).await;
    let result = run(&bench, &TO_NEW.replace("VERSION", "2"), &expects(1)).await;
    assert_eq!(result, Ok(Verdict::Done));
    let migrated = fsm::StateRow { name: "confirm".into(), version: 2, ..row(1) };
    assert_eq!((state(&bench), aside(&bench)), (Some(migrated), None));
}

#[tokio::test]
async fn a_state_of_this_version_is_left_alone() {
    let bench = Bench::new();
    put(&bench, &row(2)).await;
    assert_eq!(run(&bench, "unreachable", &expects(1)).await, Ok(Verdict::Done));
    assert_eq!((state(&bench), aside(&bench)), (Some(row(2)), None));
}

#[tokio::test]
async fn a_state_that_can_not_be_migrated_is_kept_aside_and_locks_nobody_out() {
    let no = "(i32.store8 (global.get $answer) (i32.const 1)) (i32.store offset=8 (global.get $answer) (i32.const 0))
        (global.get $answer)";
    for migrate in ["unreachable", no, &TO_NEW.replace("VERSION", "3"), "(loop $l (br $l)) unreachable"] {
        let bench = Bench::new();
        put(&bench, &row(1)).await;
        let result = run(&bench, migrate, &expects(0)).await;
        assert_eq!(result, Ok(Verdict::Done), "{migrate}");
        assert_eq!((state(&bench), aside(&bench)), (None, Some(row(1))), "{migrate}");
    }
}

#[tokio::test]
async fn a_version_that_serves_no_more_leaves_states_of_others_alone() {
    let bench = Bench::new();
    let guest =
        || Guest { migrate: "unreachable", handle: "(global.get $done)", state_version: 2, ..Default::default() };
    let plugin = bench.load(guest(), settings());
    plugin.set_retired(true);
    // As its successor wrote it, and its own as it was before that one's trial: neither is its own any more.
    put(&bench, &row(3)).await;
    let mut tx = Tx::new(&bench.store);
    let before = fsm::before_key(BOT, &name(), &conversation());
    tx.put(before.clone(), row(2).encode());
    drop(bench.store.commit(tx.into_commit()).await.unwrap());
    assert_eq!(bench.run_and_commit(&plugin).await, Err(RunError::Superseded));
    assert_eq!(expire(&bench, &plugin, &row(3)).await, Err(RunError::Superseded));
    assert_eq!((state(&bench), aside(&bench)), (Some(row(3)), None));
    assert!(bench.store.get(&before).unwrap().is_some());
    // With its own it goes on.
    put(&bench, &row(2)).await;
    assert_eq!(bench.run_and_commit(&plugin).await, Ok(Verdict::Done));
}

#[tokio::test]
async fn a_job_reads_the_state_when_it_asks_and_stops_at_another_version_s() {
    let bench = Bench::new();
    let job = || Event::Job(Job { id: 1, name: "j".into(), payload: vec![], queued: NOW });
    let key = fsm::key(BOT, &name(), &conversation());
    put(&bench, &row(2)).await;
    for (handle, reads) in [("(global.get $done)", false), (&*expects(1), true)] {
        let plugin = bench.load(Guest { handle, state_version: 2, ..Default::default() }, settings());
        let report = bench.run(&plugin, &Invocation { event: job(), ..invocation() }).await;
        assert_eq!(report.result, Ok(Verdict::Done));
        assert_eq!(report.tx.seen().any(|(seen, _)| seen == key), reads, "{handle}");
    }
}

#[tokio::test]
async fn a_state_whose_time_is_over_reads_as_none() {
    let bench = Bench::new();
    put(&bench, &fsm::StateRow { expires: NOW, ..row(1) }).await;
    assert_eq!(run(&bench, "unreachable", &expects(0)).await, Ok(Verdict::Done));
}

#[tokio::test]
async fn what_a_failed_migration_asked_for_is_dropped() {
    let bench = Bench::new();
    put(&bench, &row(1)).await;
    let before = rows(&bench.store);
    assert_eq!(run(&bench, &format!("{EFFECTS} unreachable"), "(global.get $done)").await, Ok(Verdict::Done));
    assert_eq!(rows(&bench.store), before, "the state has moved, and nothing has come");
}

/// A run that is told that a state has ended.
async fn expire(bench: &Bench, plugin: &Plugin, ended: &fsm::StateRow) -> Result<Verdict, RunError> {
    let fsm::StateRow { name, version, bytes, .. } = ended.clone();
    let event = Event::Expired(State { name, version, bytes });
    let report = bench.run(plugin, &Invocation { event, ..invocation() }).await;
    drop(bench.store.commit(report.tx.into_commit()).await.unwrap());
    report.result
}

#[tokio::test]
async fn a_state_that_a_trial_had_taken_over_ends_as_it_was_before() {
    let bench = Bench::new();
    let before = fsm::before_key(BOT, &name(), &conversation());
    let mut tx = Tx::new(&bench.store);
    tx.put(before.clone(), row(2).encode());
    drop(bench.store.commit(tx.into_commit()).await.unwrap());
    let guest =
        || Guest { migrate: "unreachable", handle: "(global.get $done)", state_version: 2, ..Default::default() };
    let plugin = bench.load(guest(), settings());
    assert_eq!(expire(&bench, &plugin, &row(3)).await, Ok(Verdict::Done));
    assert_eq!((aside(&bench), bench.store.get(&before).unwrap()), (None, None));
    // Nothing of it is left, so this one can only be kept aside.
    assert_eq!(expire(&bench, &plugin, &row(3)).await, Ok(Verdict::Done));
    assert_eq!(aside(&bench), Some(fsm::StateRow { expires: 0, ..row(3) }));
}

#[tokio::test]
async fn a_state_that_is_taken_back_ends_when_it_was_to_end_before_the_trial() {
    let bench = Bench::new();
    let (mine, theirs) = (row(2), fsm::StateRow { expires: NOW + 9_000, ..row(3) });
    let key = fsm::key(BOT, &name(), &conversation());
    let mut tx = Tx::new(&bench.store);
    tx.put(fsm::before_key(BOT, &name(), &conversation()), mine.encode());
    tx.put(key.clone(), theirs.encode());
    tx.put(expiry::key(BOT, theirs.expires, &key), Vec::new());
    drop(bench.store.commit(tx.into_commit()).await.unwrap());
    assert_eq!(run(&bench, "unreachable", &expects(1)).await, Ok(Verdict::Done));
    assert_eq!(state(&bench).as_ref(), Some(&mine));
    let ends: Vec<_> = bench.store.scan_prefix(&expiry::bot_prefix(BOT), 10).unwrap();
    let ends: Vec<_> = ends.iter().map(|(end, _)| expiry::parse_key(end)).collect();
    assert_eq!(ends, [Some((mine.expires, &*key))]);
}
