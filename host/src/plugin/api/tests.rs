//! Host functions, called as a guest would.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tracing::Level;
use tracing::span::{Attributes, Id, Record};

use super::*;
use crate::domain::PluginName;
use crate::plugin::bindings::botyard::fsm::conversation as fsm;
use crate::plugin::bindings::botyard::log::log::{self, Host as _};
use crate::plugin::bindings::botyard::random::random::Host as _;
use crate::plugin::bindings::botyard::schedule::timers::{self, Host as _};
use crate::plugin::bindings::botyard::storage::key_value::{self as kv, Host as _};
use crate::plugin::bindings::botyard::telegram::bot_api::{self, Host as _};
use crate::plugin::{CallError, Event, Grants, HttpClient, Limits, Standing, Timer};
use crate::store::Store;

mod buttons;
mod limits;
mod reaches;

struct NoCalls;

impl Outbound for NoCalls {
    fn call(&self, _: &PluginName, _: &str, _: String, _: Duration) -> BoxFuture<'_, Result<String, CallError>> {
        unreachable!("none of these tests makes a direct call")
    }

    fn keep_acting(&self, _: String) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

fn context(plugin: &str) -> Context {
    Context {
        name: PluginName::new(plugin),
        config: "{}".into(),
        secrets: BTreeMap::new(),
        grants: Grants::default(),
        limits: Limits::default(),
        allowance: Arc::default(),
        methods: vec!["send*".into()],
        http: vec![],
        tells_expired: false,
        state_version: 1,
        catalogs: Default::default(),
    }
}

struct Bench {
    store: Store,
    _folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { store: Store::open(&folder.path().join("store")).unwrap(), _folder: folder }
    }

    /// A run of `plugin` at `now`, on top of `tx`.
    fn run_with(&self, plugin: &str, now: u64, tx: Tx) -> Host {
        self.host(context(plugin), now, tx, Arc::new(NoCalls))
    }

    fn host(&self, context: Context, now: u64, tx: Tx, outbound: Arc<dyn Outbound>) -> Host {
        let invocation = Invocation {
            id: 5,
            attempt: 1,
            now,
            seed: 77,
            conversation: Conversation { chat: Some(ChatId(1)), ..Default::default() },
            lane: EventLane::whole(crate::domain::Lane::Chat(ChatId(1))),
            bot: BotId(1),
            matched: vec![],
            event: Event::Timer(Timer { id: 1, name: String::new(), payload: vec![], due: 0 }),
            journal: Journal::default(),
            standing: Standing::default(),
            tape: None,
            failed: None,
            listener: Listener::default(),
        };
        let meter = Arc::new(Meter::new(Duration::from_secs(1)));
        Host::running(Arc::new(context), meter, HttpClient::new([]), &invocation, tx, outbound)
    }

    fn run(&self, now: u64) -> Host {
        self.run_with("shop", now, Tx::new(&self.store))
    }
}

fn tx(host: Host) -> Tx {
    host.run.unwrap().tx
}

const PLUGIN: kv::Scope = kv::Scope::Plugin;

fn get(host: &mut Host, key: &str) -> Option<Vec<u8>> {
    kv::Host::get(host, PLUGIN, key.to_owned()).unwrap()
}

#[tokio::test]
async fn values_live_as_long_as_they_were_given() {
    let bench = Bench::new();
    let mut host = bench.run(1_000);
    kv::Host::set(&mut host, PLUGIN, "a".into(), b"1".to_vec(), Some(2)).unwrap().unwrap();
    kv::Host::set(&mut host, PLUGIN, "b".into(), b"2".to_vec(), None).unwrap().unwrap();
    host.increment(PLUGIN, "a".into(), 4).unwrap().unwrap();
    assert_eq!(get(&mut host, "a"), Some(b"5".to_vec()), "a run reads its own writes");
    drop(bench.store.commit(tx(host).into_commit()).await.unwrap());

    for (now, a) in [(2_999, Some(b"5".to_vec())), (3_000, None)] {
        let mut host = bench.run(now);
        assert_eq!(get(&mut host, "a"), a, "counting does not lengthen a life");
        assert_eq!(get(&mut host, "b"), Some(b"2".to_vec()));
    }
    let mut late = bench.run(3_000);
    assert_eq!(late.increment(PLUGIN, "a".into(), -1).unwrap(), Ok(-1), "what is over counts as none");
}

#[test]
fn counting_says_what_it_can_not_count() {
    let bench = Bench::new();
    let mut host = bench.run(0);
    kv::Host::set(&mut host, PLUGIN, "text".into(), b"x".to_vec(), None).unwrap().unwrap();
    kv::Host::set(&mut host, PLUGIN, "big".into(), i64::MAX.to_string().into_bytes(), None).unwrap().unwrap();
    assert!(host.increment(PLUGIN, "text".into(), 1).unwrap().unwrap_err().contains("`text`"));
    assert!(host.increment(PLUGIN, "big".into(), 1).unwrap().unwrap_err().contains("out of range"));
    assert!(kv::Host::set(&mut host, PLUGIN, "k".repeat(513), vec![], None).unwrap().unwrap_err().contains("513"));
    assert!(kv::Host::set(&mut host, PLUGIN, "v".into(), vec![0; (1 << 20) + 1], None).unwrap().is_err());
}

#[test]
fn scans_are_in_order_and_leave_out_what_is_over() {
    let bench = Bench::new();
    let mut host = bench.run(10_000);
    for (key, ttl) in [("a/1", None), ("a/2", Some(0)), ("a/3", None), ("a/4", Some(0)), ("a/5", None), ("b", None)] {
        kv::Host::set(&mut host, PLUGIN, key.into(), key.into(), ttl).unwrap().unwrap();
    }
    kv::Host::set(&mut host, kv::Scope::User(1), "a/9".into(), vec![], None).unwrap().unwrap();
    let mut keys = |prefix: &str, after: Option<&str>, limit| -> Vec<String> {
        let rows = host.scan(PLUGIN, prefix.into(), after.map(Into::into), limit).unwrap();
        rows.into_iter().map(|(key, _)| key).collect()
    };
    assert_eq!(keys("a/", None, 10), ["a/1", "a/3", "a/5"]);
    assert_eq!(keys("a/", None, 2), ["a/1", "a/3"], "a page is full though values are over");
    assert_eq!(keys("a/", Some("a/1"), 10), ["a/3", "a/5"]);
    assert_eq!(keys("a/", Some("a/2"), 1), ["a/3"]);
    assert_eq!(keys("", Some("a/5"), 10), ["b"]);
    assert_eq!(keys("a/", Some("z"), 10), [""; 0]);
    assert_eq!(keys("", None, 0), [""; 0]);
}

#[test]
fn plugins_do_not_meet_in_the_store() {
    let bench = Bench::new();
    let mut host = bench.run(0);
    kv::Host::set(&mut host, PLUGIN, "a".into(), b"1".to_vec(), None).unwrap().unwrap();
    let mut other = bench.run_with("shop2", 0, tx(host));
    assert_eq!(get(&mut other, "a"), None);
    assert_eq!(other.scan(PLUGIN, String::new(), None, 10).unwrap(), []);
}

#[test]
fn timers_of_one_event_never_share_an_id_or_a_row() {
    let bench = Bench::new();
    let mut host = bench.run(0);
    let ids: Vec<u64> = (0..3).map(|_| host.after("t".into(), 10, vec![]).unwrap().unwrap()).collect();
    assert_eq!(ids, [320, 321, 322], "the event's number times 64, and on");
    assert!(host.cancel(321).unwrap());
    assert!(!host.cancel(321).unwrap() && !host.cancel(7).unwrap());

    // Another plugin, for the same event and the same moment.
    let mut other = bench.run_with("other", 0, tx(host));
    let id = other.after("t".into(), 10, vec![]).unwrap().unwrap();
    assert_eq!(id, 320, "each counts for itself");
    assert!(!other.cancel(322).unwrap(), "the timers of others can't be cancelled");
    // The same plugin again, for the same event and another moment.
    let mut again = bench.run_with("shop", 0, tx(other));
    assert_eq!(again.after("t".into(), 99, vec![]).unwrap().unwrap(), 321, "only what was cancelled is free");
    assert_eq!(again.after("t".into(), 99, vec![]).unwrap().unwrap(), 323);
    assert!([320, 321, 322, 323].into_iter().all(|id| again.cancel(id).unwrap()));

    let mut many = bench.run(0);
    assert!((0..64).all(|_| many.at("t".into(), u64::MAX, vec![]).unwrap().is_ok()));
    assert!(many.at("t".into(), 0, vec![]).unwrap().is_err());
}

#[test]
fn a_timer_of_the_past_is_due_now_and_not_before_others() {
    let bench = Bench::new();
    let mut host = bench.run(1_000);
    for due in [0, 999, 1_000, 1_001] {
        host.at("t".into(), due, vec![]).unwrap().unwrap();
    }
    let dues: Vec<_> = host.list(timers::Owner::Conversation).unwrap().into_iter().map(|entry| entry.due).collect();
    assert_eq!(dues, [1_000, 1_000, 1_000, 1_001]);
}

#[tokio::test]
async fn all_timers_of_a_name_are_listed_and_cancelled_however_many_they_are() {
    let bench = Bench::new();
    let many = 1_200;
    let row = |id: u64| {
        let host = bench.run(0);
        let run = host.run.unwrap();
        let row = crate::store::rows::timer::TimerRow {
            plugin: PluginName::new("shop"),
            conversation: run.conversation,
            lane: run.lane,
            name: "t".into(),
            payload: vec![],
            owner: crate::store::rows::timer::Owner::Conversation,
            repeat: None,
            since: 0,
        };
        row.rows(BotId(1), 5, id)
    };
    let ops = (0..many).flat_map(row).map(|(key, value)| crate::store::Op::Put { key, value }).collect();
    drop(bench.store.commit(crate::store::Commit { ops, ..Default::default() }).await.unwrap());
    let owner = timers::Owner::Conversation;
    assert_eq!(bench.run(0).list(owner).unwrap().len() as u64, many);
    let limits = Limits { effects: 2_000, ..Limits::default() };
    let mut host = bench.host(Context { limits, ..context("shop") }, 0, Tx::new(&bench.store), Arc::new(NoCalls));
    assert_eq!(u64::from(host.cancel_by_name("t".into(), owner).unwrap()), many);
    assert!(host.list(owner).unwrap().is_empty());
}

#[tokio::test]
async fn what_is_deleted_or_lives_on_leaves_no_entry_for_its_end() {
    let bench = Bench::new();
    let set = |host: &mut Host, ttl| kv::Host::set(host, PLUGIN, "k".into(), vec![1], ttl).unwrap().unwrap();
    let ends = || bench.store.scan_prefix(&crate::store::rows::expiry::bot_prefix(BotId(1)), 10).unwrap().len();
    for (change, left) in [
        ((|host, set| set(host, Some(50))) as fn(&mut Host, &dyn Fn(&mut Host, Option<u64>)), 1),
        (|host, set| set(host, Some(60)), 1),
        (|host, set| set(host, None), 0),
        (|host, set| set(host, Some(50)), 1),
        (|host, _| kv::Host::delete(host, PLUGIN, "k".into()).unwrap(), 0),
        (|host, set| set(host, Some(50)), 1),
        (
            |host, _| assert!(host.compare_and_set(PLUGIN, "k".into(), Some(vec![1]), Some(vec![2])).unwrap().unwrap()),
            0,
        ),
        (|host, set| set(host, Some(50)), 1),
        (|host, _| assert!(host.compare_and_set(PLUGIN, "k".into(), Some(vec![1]), None).unwrap().unwrap()), 0),
    ] {
        let mut host = bench.run(0);
        change(&mut host, &set);
        drop(bench.store.commit(tx(host).into_commit()).await.unwrap());
        assert_eq!(ends(), left);
    }
}

#[test]
fn a_recurring_timer_replaces_the_one_of_its_name_and_no_other() {
    let bench = Bench::new();
    let mut host = bench.run(1_000);
    let owner = timers::Owner::Conversation;
    let every = |host: &mut Host, name: &str, ms, owner| {
        host.every(name.into(), ms, timers::Misfire::Once, owner, b"x".to_vec()).unwrap()
    };
    let cron = |host: &mut Host, expression: &str, zone: &str| {
        host.cron("news".into(), expression.into(), zone.into(), timers::Misfire::Skip, owner, vec![]).unwrap()
    };
    host.after("news".into(), 5, vec![]).unwrap().unwrap();
    every(&mut host, "news", 1_000, owner).unwrap();
    every(&mut host, "news", 1_000, timers::Owner::Plugin).unwrap();
    every(&mut host, "newsletter", 2_000, owner).unwrap();
    let id = cron(&mut host, "0 9 * * *", "Asia/Tashkent").unwrap();
    let listed = |host: &mut Host, owner| {
        let entries = host.list(owner).unwrap();
        entries.into_iter().map(|entry| (entry.name, entry.due)).collect::<Vec<_>>()
    };
    // In 1970 clocks in Tashkent were six hours ahead.
    let nine = 3 * 3_600_000;
    let news = |due| ("news".to_owned(), due);
    assert_eq!(listed(&mut host, owner), [news(1_005), news(nine), ("newsletter".to_owned(), 3_000)]);
    assert_eq!(listed(&mut host, timers::Owner::Plugin), [news(2_000)]);
    assert!(host.cancel(id).unwrap() && !host.cancel(id).unwrap());
    assert_eq!(host.cancel_by_name("news".into(), owner).unwrap(), 1, "the one that comes once");
    assert_eq!(listed(&mut host, owner).len(), 1);
    assert_eq!(listed(&mut host, timers::Owner::Plugin).len(), 1);

    assert!(every(&mut host, "a", 999, owner).unwrap_err().contains("a second"));
    assert!(every(&mut host, "a\0b", 1_000, owner).unwrap_err().contains("zero byte"));
    assert!(cron(&mut host, "0 25 * * *", "UTC").unwrap_err().contains("hour"));
    assert!(cron(&mut host, "0 9 * * *", "Mars/Olympus").unwrap_err().contains("time zone"));
}

#[tokio::test]
async fn two_runs_that_set_the_same_recurring_timer_do_not_both_commit() {
    let bench = Bench::new();
    let set = || {
        let mut host = bench.run_with("shop", 0, Tx::new(&bench.store));
        let plugin = timers::Owner::Plugin;
        host.every("sweep".into(), 5_000, timers::Misfire::Once, plugin, vec![]).unwrap().unwrap();
        tx(host).into_commit()
    };
    let (first, second) = (set(), set());
    drop(bench.store.commit(first).await.unwrap());
    assert!(bench.store.commit(second).await.is_err(), "there would be two of one name");
}

#[tokio::test]
async fn what_was_read_must_hold_also_where_nothing_was_found() {
    let set = |host: &mut Host, key: &str| {
        kv::Host::set(host, PLUGIN, key.into(), b"1".to_vec(), None).unwrap().unwrap();
    };
    type Look = fn(&mut Host);
    let looks: [(Look, &str, bool); 6] = [
        (|host| drop(get(host, "a/1")), "a/1", true),
        (|host| drop(get(host, "a/2")), "a/1", false),
        (|host| drop(host.scan(PLUGIN, "a/".into(), None, 10).unwrap()), "a/1", true),
        (|host| drop(host.scan(PLUGIN, "a/".into(), None, 10).unwrap()), "b/1", false),
        (|host| drop(host.scan(PLUGIN, "a/".into(), Some("a/5".into()), 10).unwrap()), "a/1", false),
        (
            |host| assert!(!host.compare_and_set(PLUGIN, "a/1".into(), Some(vec![9]), None).unwrap().unwrap()),
            "a/1",
            true,
        ),
    ];
    for (number, (look, written, conflicts)) in looks.into_iter().enumerate() {
        let bench = Bench::new();
        let mut slow = bench.run(0);
        look(&mut slow);
        set(&mut slow, "sum");
        let mut quick = bench.run(0);
        set(&mut quick, written);
        drop(bench.store.commit(tx(quick).into_commit()).await.unwrap());
        assert_eq!(bench.store.commit(tx(slow).into_commit()).await.is_err(), conflicts, "look {number}");
    }
}

#[test]
fn a_value_is_changed_only_from_what_was_expected() {
    let bench = Bench::new();
    let mut host = bench.run(1_000);
    let mut swap = |expected: Option<&[u8]>, new: Option<&[u8]>| {
        host.compare_and_set(PLUGIN, "k".into(), expected.map(Into::into), new.map(Into::into)).unwrap().unwrap()
    };
    assert!(!swap(Some(b"1"), Some(b"2")));
    assert!(swap(None, Some(b"1")));
    assert!(!swap(None, Some(b"2")));
    assert!(swap(Some(b"1"), Some(b"2")));
    assert!(swap(Some(b"2"), None));
    assert!(swap(None, None));
    kv::Host::set(&mut host, PLUGIN, "over".into(), b"1".to_vec(), Some(0)).unwrap().unwrap();
    assert_eq!(host.compare_and_set(PLUGIN, "over".into(), None, Some(vec![2])).unwrap(), Ok(true), "it is over");
    assert!(host.compare_and_set(PLUGIN, "k".repeat(513), None, None).unwrap().is_err());
}

#[tokio::test]
async fn a_life_that_is_lengthened_again_and_again_has_one_end() {
    let bench = Bench::new();
    let ends = || bench.store.scan_prefix(&crate::store::rows::expiry::bot_prefix(BotId(1)), 10).unwrap().len();
    let state = || types::State { name: "s".into(), version: 1, bytes: vec![] };
    for now in [1_000, 2_000, 3_000] {
        let mut host = bench.run(now);
        kv::Host::set(&mut host, PLUGIN, "a".into(), b"1".to_vec(), Some(60)).unwrap().unwrap();
        fsm::Host::set(&mut host, state(), Some(60)).unwrap().unwrap();
        drop(bench.store.commit(tx(host).into_commit()).await.unwrap());
        assert_eq!(ends(), 2);
    }
    let mut host = bench.run(4_000);
    fsm::Host::clear(&mut host).unwrap();
    drop(bench.store.commit(tx(host).into_commit()).await.unwrap());
    assert_eq!(ends(), 1);
}

#[test]
fn states_end_and_are_bounded() {
    let bench = Bench::new();
    let mut host = bench.run(1_000);
    let state = |size| types::State { name: "s".into(), version: 1, bytes: vec![0; size] };
    assert!(fsm::Host::set(&mut host, state(64 << 10), None).unwrap().is_err());
    fsm::Host::set(&mut host, state(3), Some(1)).unwrap().unwrap();
    let key = types::StateKey { chat_id: Some(1), user_id: None, thread_id: None };
    assert_eq!(fsm::Host::peek(&mut host, key).unwrap(), Some(state(3)));
    let mut later = bench.run_with("shop", 2_000, tx(host));
    assert_eq!(fsm::Host::peek(&mut later, key).unwrap(), None);
    assert_eq!(fsm::Host::get(&mut later).unwrap(), None);
}

#[test]
fn randomness_is_the_same_on_every_attempt() {
    let bench = Bench::new();
    let draw = || {
        let mut host = bench.run(0);
        (host.bytes(8).unwrap(), host.bytes(8).unwrap())
    };
    assert_eq!(draw(), draw());
    assert_ne!(draw().0, draw().1);
    assert!(bench.run(0).bytes(65_537).is_err());
}

#[test]
fn a_call_that_can_not_be_right_is_not_queued() {
    let bench = Bench::new();
    let mut host = bench.run(0);
    let options = bot_api::Options {
        priority: bot_api::Priority::Bulk,
        delivery: bot_api::Delivery::AtLeastOnce,
        long_text: bot_api::LongText::Split,
        bad_markup: bot_api::BadMarkup::Refuse,
    };
    for (method, params, expect) in [
        ("sendMessage", "{}", None),
        ("sendMessage", " { \"chat_id\" : 1 } ", None),
        ("sendMessage", "[]", Some("invalid")),
        ("sendMessage", "", Some("invalid")),
        ("sendMessage", "{\"a\":}", Some("invalid")),
        ("sendMessage", "{} {}", Some("invalid")),
        ("send/../getMe", "{}", Some("invalid")),
        ("banChatMember", "{}", Some("denied")),
        ("close", "{}", Some("denied")),
    ] {
        let answer = host.enqueue(method.into(), params.into(), options).unwrap();
        let kind = answer.err().map(|error| match error {
            bot_api::CallError::Invalid(_) => "invalid",
            bot_api::CallError::Denied(_) => "denied",
            _ => "other",
        });
        assert_eq!(kind, expect, "{method} {params}");
    }
    assert_eq!(tx(host).into_commit().ops.len(), 2);
}

#[test]
fn flood_waits_are_never_shortened() {
    for (wait, seconds) in [(Duration::from_secs(3), 3), (Duration::from_millis(3_001), 4), (Duration::MAX, u32::MAX)] {
        assert!(
            matches!(bot_api::CallError::from(CallError::Flooded(wait)), bot_api::CallError::Flooded(s) if s == seconds)
        );
    }
}

/// Counts events by level.
#[derive(Default)]
struct Lines(std::sync::Mutex<Vec<Level>>);

impl tracing::Subscriber for Lines {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target() == "plugin"
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        self.0.lock().unwrap().push(*event.metadata().level());
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[test]
fn a_run_that_logs_too_much_is_cut_short_once() {
    let bench = Bench::new();
    let lines = Arc::new(Lines::default());
    tracing::subscriber::with_default(lines.clone(), || {
        let mut host = bench.run(0);
        for _ in 0..10 {
            host.emit(log::Level::Info, "x".repeat(30 << 10), vec![("k".into(), "v".into())]).unwrap();
        }
    });
    assert_eq!(*lines.0.lock().unwrap(), [Level::INFO, Level::INFO, Level::WARN]);
}

#[test]
fn last_words_are_cut_between_characters() {
    let bench = Bench::new();
    let mut host = bench.run(0);
    host.panicked("é".repeat(5_000), "src/lib.rs".into(), 1, 2).unwrap();
    assert_eq!(host.panic.unwrap().message.len(), 4_096);
}

#[test]
fn looking_for_what_is_not_there_is_counted_too() {
    let bench = Bench::new();
    let mut host = bench.run(0);
    let refused = (0..200_000).find(|n| kv::Host::get(&mut host, PLUGIN, format!("no such key {n}")).is_err());
    assert!(refused.is_some(), "a run can make the host remember as many reads as it likes");
    let mut host = bench.run(0);
    let refused = (0..200_000).find(|n| host.scan(PLUGIN, format!("no such key {n}"), None, 1).is_err());
    assert!(refused.is_some());
    let key = |user| types::StateKey { chat_id: None, user_id: Some(user), thread_id: None };
    let mut host = bench.run(0);
    assert!((0..200_000).any(|user| fsm::Host::peek(&mut host, key(user)).is_err()));
}

#[tokio::test]
async fn a_scan_ends_soon_after_the_run_has_read_all_it_may() {
    const VALUE: usize = 1 << 20;
    let bench = Bench::new();
    for n in 0..6 {
        let mut host = bench.run(0);
        for m in 0..10 {
            kv::Host::set(&mut host, PLUGIN, format!("{n}/{m}"), vec![0; VALUE], None).unwrap().unwrap();
        }
        drop(bench.store.commit(tx(host).into_commit()).await.unwrap());
    }
    let held = |host: Host| -> usize {
        let reads = tx(host).into_commit().reads;
        reads
            .iter()
            .map(|read| match read {
                crate::store::Read::Range { seen, .. } => seen.iter().map(|(_, value)| value.len()).sum(),
                crate::store::Read::AtMost { .. } => 0,
                crate::store::Read::Value { .. } => 0,
            })
            .sum()
    };
    let most = (16 << 20) + 17 * (VALUE + 100);
    let mut host = bench.run(0);
    assert!(host.scan(PLUGIN, String::new(), None, 1_000).is_err());
    assert!(held(host) <= most);
    // Nor does what the run itself has deleted come in unseen.
    let mut host = bench.run(0);
    for n in 0..6 {
        for m in 0..10 {
            host.delete(PLUGIN, format!("{n}/{m}")).unwrap();
        }
    }
    assert!(host.scan(PLUGIN, String::new(), None, 1).is_err());
    assert!(held(host) <= most);
}

/// Each is looked at, which takes its time though nothing is logged.
#[test]
fn empty_lines_have_an_end() {
    let bench = Bench::new();
    let lines = Arc::new(Lines::default());
    tracing::subscriber::with_default(lines.clone(), || {
        let mut host = bench.run(0);
        host.write(true, &vec![b'\n'; 1_000]).unwrap();
        host.write(true, b"a line\n").unwrap();
        host.write(false, &vec![b'\n'; 1 << 20]).unwrap();
        assert_eq!(host.log_left, 0);
        host.write(true, b"another line\n").unwrap();
    });
    assert_eq!(*lines.0.lock().unwrap(), [Level::INFO, Level::WARN], "the line, and that there are too many");
}

#[test]
fn lines_without_a_text_are_counted_too() {
    let bench = Bench::new();
    let lines = Arc::new(Lines::default());
    tracing::subscriber::with_default(lines.clone(), || {
        let mut host = bench.run(0);
        for _ in 0..20_000 {
            host.emit(log::Level::Info, String::new(), vec![]).unwrap();
        }
    });
    assert!(lines.0.lock().unwrap().len() < 2_000, "{} lines", lines.0.lock().unwrap().len());
}
