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

/// What stands in the store of the conversation: its state, the one kept aside, and the copy from before a trial.
type Kept = [Option<fsm::StateRow>; 3];

fn kept(bench: &Bench) -> Kept {
    let key = [fsm::key, fsm::aside_key, fsm::before_key];
    let rows = key.map(|key| bench.store.get(&key(BOT, &name(), &conversation())).unwrap());
    rows.map(|row| row.map(|row| fsm::StateRow::decode(&row).unwrap()))
}

async fn keep(bench: &Bench, rows: &Kept) {
    let mut tx = Tx::new(&bench.store);
    for (key, row) in [fsm::key, fsm::aside_key, fsm::before_key].into_iter().zip(rows) {
        if let Some(row) = row {
            tx.put(key(BOT, &name(), &conversation()), row.encode());
        }
    }
    drop(bench.store.commit(tx.into_commit()).await.unwrap());
}

const REFUSES: &str =
    "(i32.store8 (global.get $answer) (i32.const 1)) (i32.store offset=8 (global.get $answer) (i32.const 0))
    (global.get $answer)";

#[tokio::test]
async fn what_becomes_of_states_depends_on_what_the_version_is_to_its_plugin() {
    use Standing::{Asked, OnTrial, Serves};
    let takes = TO_NEW.replace("VERSION", "2");
    // Version 2 runs; "confirm" is what its `migrate` makes of a state.
    let new = || Some(fsm::StateRow { name: "confirm".into(), version: 2, ..row(1) });
    let is = |version| Some(row(version));
    for (about, standing, migrate, before, after) in [
        ("the first version on trial keeps a copy", OnTrial, &*takes, [is(1), None, None], [new(), None, is(1)]),
        ("the second keeps the oldest", OnTrial, &*takes, [is(3), None, is(1)], [new(), None, is(1)]),
        ("what it refuses is kept for the one before", OnTrial, REFUSES, [is(1), None, None], [None, is(1), is(1)]),
        ("and stays with that one", OnTrial, &*takes, [None, is(1), is(1)], [None, is(1), is(1)]),
        ("what was refused comes back", Serves, REFUSES, [None, is(2), is(2)], [is(2), None, None]),
        ("and what was taken over", Serves, REFUSES, [is(3), None, is(2)], [is(2), None, None]),
        ("a state kept aside earlier stays", Serves, REFUSES, [None, is(1), is(2)], [is(2), is(1), None]),
        ("a copy of another version helps at last", Serves, REFUSES, [is(3), None, is(1)], [None, is(3), is(1)]),
        ("one that serves keeps no copy", Serves, &*takes, [is(1), None, None], [new(), None, None]),
        ("an opinion is had with the own state", Asked, REFUSES, [is(3), None, is(2)], [is(2), None, None]),
    ] {
        let bench = Bench::new();
        keep(&bench, &before).await;
        let plugin = bench.load(Guest { migrate, state_version: 2, ..Default::default() }, settings());
        let report = bench.run(&plugin, &Invocation { standing, ..invocation() }).await;
        assert_eq!(report.result, Ok(Verdict::Done), "{about}");
        drop(bench.store.commit(report.tx.into_commit()).await.unwrap());
        assert_eq!(kept(&bench), after, "{about}");
    }
}

#[tokio::test]
async fn a_version_that_is_asked_loses_no_state() {
    let bench = Bench::new();
    let before = [Some(row(3)), None, None];
    keep(&bench, &before).await;
    let plugin = bench.load(Guest { migrate: REFUSES, state_version: 2, ..Default::default() }, settings());
    let report = bench.run(&plugin, &Invocation { standing: Standing::Asked, ..invocation() }).await;
    assert!(matches!(report.result, Err(RunError::Host(_))), "{:?}", report.result);
    drop(bench.store.commit(report.tx.into_commit()).await.unwrap());
    assert_eq!(kept(&bench), before);
}

#[tokio::test]
async fn what_has_ended_on_trial_does_not_come_back() {
    let bench = Bench::new();
    keep(&bench, &[Some(row(2)), None, Some(row(1))]).await;
    assert_eq!(run(&bench, REFUSES, "(call $fsm_clear) (global.get $done)").await, Ok(Verdict::Done));
    assert_eq!(kept(&bench), [None, None, None]);
}

/// Asks for something and says that it can't read its state, if it has one; else `end`.
fn reads_none(end: &str) -> String {
    format!(
        "(call $fsm_get (global.get $answer))
         (if (i32.eq (i32.load8_u (global.get $answer)) (i32.const 1)) (then
           {EFFECTS} (call $fsm_unreadable (global.get $reason) (global.get $reason_len))
           (return (global.get $refused_for_good))))
         {end}"
    )
}

#[tokio::test]
async fn a_state_of_its_own_that_a_version_can_not_read_locks_nobody_out() {
    for (standing, copy) in [(Standing::Serves, None), (Standing::OnTrial, Some(row(2)))] {
        for end in ["(global.get $done)", "(global.get $pass)"] {
            let bench = Bench::new();
            put(&bench, &row(2)).await;
            let handle = reads_none(end);
            let plugin = bench.load(Guest { handle: &handle, state_version: 2, ..Default::default() }, settings());
            let report = bench.run(&plugin, &Invocation { standing, ..invocation() }).await;
            assert!(report.result.is_ok(), "{:?}", report.result);
            drop(bench.store.commit(report.tx.into_commit()).await.unwrap());
            assert_eq!(kept(&bench), [None, Some(row(2)), copy.clone()], "{standing:?} {end}");
            let rest = bench.store.scan_prefix(&outbox::lane_prefix(BOT, Lane::Chat(ChatId(7))), 10).unwrap();
            assert_eq!(rest, [], "what was asked for before is dropped");
        }
    }
}

#[tokio::test]
async fn an_end_of_which_a_version_can_not_read_the_state_is_settled() {
    let bench = Bench::new();
    let handle = "(call $fsm_unreadable (global.get $reason) (global.get $reason_len)) (global.get $refused_for_good)";
    let plugin = bench.load(Guest { handle, state_version: 2, ..Default::default() }, settings());
    assert_eq!(expire(&bench, &plugin, &row(2)).await, Ok(Verdict::Done));
    assert_eq!(kept(&bench), [None, Some(fsm::StateRow { expires: 0, ..row(2) }), None]);
}

#[tokio::test]
async fn a_state_is_taken_over_before_it_is_known_who_wants_the_event() {
    let bench = Bench::new();
    put(&bench, &row(1)).await;
    let migrate = TO_NEW.replace("VERSION", "2");
    let plugin = bench
        .load(Guest { migrate: &migrate, handle: "unreachable", state_version: 2, ..Default::default() }, settings());
    let invocation = Invocation { standing: Standing::OnTrial, ..invocation() };
    let (tx, taken) = plugin.take_over(&invocation, Tx::new(&bench.store), bench.telegram.clone()).await;
    assert_eq!(taken, Ok(()));
    drop(bench.store.commit(tx.into_commit()).await.unwrap());
    let [state, _, copy] = kept(&bench);
    assert_eq!((state.map(|state| state.name), copy), (Some("confirm".to_owned()), Some(row(1))));
}

#[tokio::test]
async fn a_version_is_asked_what_it_makes_of_a_state() {
    let bench = Bench::new();
    let tried = async |migrate: &str, of| {
        let plugin = bench.load(Guest { migrate, state_version: 2, ..Default::default() }, settings());
        plugin.try_state(&row(of)).await
    };
    let takes = TO_NEW.replace("VERSION", "2");
    assert_eq!(tried(&takes, 1).await, Ok(Tried::Taken));
    assert_eq!(tried(&takes, 2).await, Ok(Tried::Taken), "one of its own");
    assert!(matches!(tried(REFUSES, 2).await, Ok(Tried::Refused(_))));
    assert!(matches!(tried(&TO_NEW.replace("VERSION", "3"), 1).await, Ok(Tried::Refused(_))));
    assert!(matches!(tried("unreachable", 1).await, Err(RunError::Trapped { .. })));
    assert!(matches!(tried("(loop $l (br $l)) unreachable", 1).await, Err(RunError::OutOfCpu(_))));
    assert_eq!(rows(&bench.store), 0);
}
