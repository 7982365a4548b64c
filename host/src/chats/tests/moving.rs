//! Groups that become supergroups.

use proptest::prelude::*;

use super::*;
use crate::domain::{Conversation, EventLane, Part, PluginName, ThreadId, UserId};
use crate::store::rows::expiry::{self, ExpiryRow};
use crate::store::rows::fsm::{self, StateRow};
use crate::store::rows::inbox::{self, InboxRow, StoredEvent};
use crate::store::rows::kv::{self, Scope, ValueRow};
use crate::store::rows::moved::{self, MovedRow};
use crate::store::rows::timer::{self, Owner, TimerRow};

const OTHER: ChatId = ChatId(-78);

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// Something that a plugin keeps, and for which chat.
#[derive(Debug, Clone)]
struct Kept {
    plugin: u8,
    what: What,
    chat: Option<ChatId>,
    content: u8,
    /// Unix milliseconds; 0 for never, 1 for long ago.
    expires: u64,
}

#[derive(Debug, Clone)]
enum What {
    State { aside: bool, user: Option<i64>, thread: Option<i64> },
    Value(String),
    Button(String),
    Timer { due: u64, id: u64, lane: EventLane, owner: Owner },
}

fn stays(chat: ChatId) -> ChatId {
    chat
}

fn moves(chat: ChatId) -> ChatId {
    if chat == GROUP { SUPER } else { chat }
}

impl Kept {
    /// What tells it from everything else.
    fn key(&self, now: fn(ChatId) -> ChatId) -> Vec<u8> {
        self.rows(now).swap_remove(0).0
    }

    /// Its rows, with every chat being what it is now.
    fn rows(&self, now: fn(ChatId) -> ChatId) -> Vec<(Vec<u8>, Vec<u8>)> {
        let plugin = PluginName::new(["a", "ab", "shop"][usize::from(self.plugin)]);
        let expires = self.expires;
        let with_end = |key: Vec<u8>, row: Vec<u8>, end: ExpiryRow| {
            let end = (expires != 0).then(|| (expiry::key(BOT, expires, &key), end.encode()));
            std::iter::once((key, row)).chain(end).collect()
        };
        let chat = self.chat.map(now);
        match &self.what {
            What::State { aside, user, thread } => {
                let conversation = Conversation { chat, user: user.map(UserId), thread: thread.map(ThreadId) };
                let lane = EventLane::whole(chat.map_or(Lane::Other, Lane::Chat));
                let row = StateRow { name: "s".into(), version: 1, expires, bytes: vec![self.content] };
                if *aside {
                    return vec![(fsm::aside_key(BOT, &plugin, &conversation), row.encode())];
                }
                let key = fsm::key(BOT, &plugin, &conversation);
                with_end(key, row.encode(), ExpiryRow::State { plugin, conversation, lane, tell: true })
            }
            What::Value(name) => {
                let scope = chat.map_or(Scope::Plugin, Scope::Chat);
                let row = ValueRow { expires, bytes: vec![self.content] };
                with_end(kv::key(BOT, &plugin, scope, name), row.encode(), ExpiryRow::Value)
            }
            What::Button(id) => {
                let row = ValueRow { expires, bytes: vec![self.content] };
                with_end(kv::key(BOT, &plugin, Scope::Buttons(chat), id), row.encode(), ExpiryRow::Value)
            }
            What::Timer { due, id, lane, owner } => {
                let conversation = Conversation { chat, ..Conversation::default() };
                let place = match lane.place {
                    Lane::Chat(chat) => Lane::Chat(now(chat)),
                    other => other,
                };
                let lane = EventLane { place, ..*lane };
                let (name, payload, owner) = ("t".into(), vec![self.content], *owner);
                let row = TimerRow { plugin, conversation, lane, name, payload, owner, repeat: None, since: 0 };
                row.rows(BOT, *due, *id).to_vec()
            }
        }
    }
}

fn kept() -> impl Strategy<Value = Kept> {
    let chat = prop_oneof![
        4 => Just(Some(GROUP)),
        2 => Just(Some(SUPER)),
        1 => Just(Some(OTHER)),
        1 => Just(Some(ChatId(77))),
        1 => Just(None),
    ];
    let part = prop::option::of(1..3_i64);
    let place = prop_oneof![Just(Lane::Chat(GROUP)), Just(Lane::Chat(OTHER)), Just(Lane::User(UserId(1)))];
    let of_place = prop_oneof![
        Just(Part::Whole),
        Just(Part::User(UserId(1))),
        Just(Part::UserInThread(UserId(1), ThreadId(2))),
        Just(Part::Alone(3)),
    ];
    let lane = (place, of_place).prop_map(|(place, part)| EventLane { place, part });
    let owner = prop_oneof![Just(Owner::Conversation), Just(Owner::Plugin)];
    let what = prop_oneof![
        3 => (any::<bool>(), part.clone(), part).prop_map(|(aside, user, thread)| What::State { aside, user, thread }),
        3 => "[ab]{0,2}".prop_map(What::Value),
        1 => "[ab]{0,2}".prop_map(What::Button),
        1 => (0..4_u64, any::<u64>(), lane, owner).prop_map(|(due, id, lane, owner)| What::Timer { due, id, lane, owner }),
    ];
    let expires = prop_oneof![6 => Just(0), 1 => Just(1), 2 => Just(u64::MAX)];
    (0..3_u8, what, chat, any::<u8>(), expires).prop_map(|(plugin, what, chat, content, expires)| Kept {
        plugin,
        what,
        chat,
        content,
        expires,
    })
}

/// What the store should hold afterwards.
fn model(before: &[Kept]) -> Rows {
    let rivals: BTreeMap<_, _> = before.iter().map(|kept| (kept.key(stays), kept)).collect();
    let (staying, moving): (Vec<&Kept>, Vec<&Kept>) =
        before.iter().partition(|kept| kept.key(stays) == kept.key(moves));
    let mut after: Rows = staying.into_iter().flat_map(|kept| kept.rows(moves)).collect();
    for kept in moving {
        if rivals.get(&kept.key(moves)).is_none_or(|rival| rival.expires == 1) {
            after.extend(kept.rows(moves));
        }
    }
    after
}

fn rows(store: &Store) -> Rows {
    let mut timers_index = timer::declared_prefix(BOT);
    timers_index.pop();
    let others = [kv::bot_prefix(BOT), expiry::bot_prefix(BOT), timer::bot_prefix(BOT), timers_index];
    let kinds = fsm::bot_prefixes(BOT).into_iter().chain(others);
    let rows = kinds.flat_map(|prefix| store.scan_prefix(&prefix, usize::MAX).unwrap());
    rows.map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
}

fn alias(store: &Store) -> Option<(ChatId, bool)> {
    let row = store.get(&moved::key(BOT, GROUP)).unwrap()?;
    MovedRow::decode(&row).map(|row| (row.to, row.done)).ok()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn everything_moves_and_nothing_else_also_when_it_was_interrupted(
        kept in prop::collection::vec(kept(), 0..60),
        interrupted in prop::option::of(0..30_usize),
        times in 1..3_usize,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut bench = Bench::new();
            // What is put twice under one key stands there once.
            let kept: BTreeMap<_, _> = kept.into_iter().map(|kept| (kept.key(stays), kept)).collect();
            let kept: Vec<Kept> = kept.into_values().collect();
            bench.put(kept.iter().flat_map(|kept| kept.rows(stays))).await;
            let expected = model(&kept);
            if let Some(done) = interrupted {
                // A process that had moved some of it.
                let pending = MovedRow { to: SUPER, at: 1, done: false };
                let mut ops = vec![Op::Put { key: moved::key(BOT, GROUP), value: pending.encode() }];
                for kept in kept.iter().take(done) {
                    for ((old, _), (new, _)) in kept.rows(stays).into_iter().zip(kept.rows(moves)) {
                        // What is the supergroup's own no process touches before the group's takes its place.
                        if old == new {
                            continue;
                        }
                        ops.push(Op::Delete { key: old });
                        if let Some(value) = expected.get(&new) {
                            ops.push(Op::Put { key: new, value: value.clone() });
                        }
                    }
                }
                bench.store.commit(Commit { ops, ..Commit::default() }).await.unwrap();
                bench = bench.again();
                assert!(bench.chats.is_moving(Lane::Chat(GROUP)) && bench.chats.is_moving(Lane::Chat(SUPER)));
                bench.chats.finish_moves().await.unwrap();
            } else {
                for _ in 0..times {
                    bench.chats.moved(GROUP, SUPER).await.unwrap();
                }
            }
            assert_eq!(rows(&bench.store), expected);
            assert_eq!(alias(&bench.store), Some((SUPER, true)));
            assert!(!bench.chats.is_moving(Lane::Chat(GROUP)));
            let bench = bench.again();
            assert_eq!(bench.chats.lane(Lane::Chat(GROUP)), Lane::Chat(SUPER));
            assert_eq!(rows(&bench.store), expected);
        });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_that_race_with_a_move_lose_nothing() {
    const RUNS: usize = 8;
    const TIMES: usize = 60;
    let bench = Bench::new();
    let plugin = PluginName::new("counter");
    // Enough to be moved for the runs to come in between.
    let row = |n: usize| {
        (kv::key(BOT, &plugin, Scope::Chat(GROUP), &format!("x{n}")), ValueRow { expires: 0, bytes: vec![] }.encode())
    };
    for page in 0..6 {
        bench.put((page * 500..(page + 1) * 500).map(row)).await;
    }
    let mut runs = tokio::task::JoinSet::new();
    for run in 0..RUNS {
        let (store, plugin) = (bench.store.clone(), plugin.clone());
        // Half of them speak of the group, half of the supergroup.
        let chat = if run % 2 == 0 { GROUP } else { SUPER };
        runs.spawn(async move {
            for _ in 0..TIMES {
                loop {
                    let mut tx = Tx::new(&store);
                    let chat = moved::current(&mut tx, BOT, chat).unwrap();
                    let key = kv::key(BOT, &plugin, Scope::Chat(chat), &format!("run {run}"));
                    let before = tx.get(&key).unwrap().map_or(0, |row| ValueRow::decode(&row).unwrap().bytes.len());
                    tx.put(key, ValueRow { expires: 0, bytes: vec![0; before + 1] }.encode());
                    match store.commit(tx.into_commit()).await {
                        Ok(_) => break,
                        Err(CommitError::Conflict { .. }) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            }
        });
    }
    tokio::time::sleep(Duration::from_millis(5)).await;
    bench.chats.moved(GROUP, SUPER).await.unwrap();
    while let Some(run) = runs.join_next().await {
        run.unwrap();
    }
    let under = |chat| bench.store.scan_prefix(&kv::scope_prefix(BOT, &plugin, Scope::Chat(chat)), usize::MAX).unwrap();
    assert_eq!(under(GROUP), [], "nothing was written under the old id after the move");
    for run in 0..RUNS {
        let key = kv::key(BOT, &plugin, Scope::Chat(SUPER), &format!("run {run}"));
        let row = bench.store.get(&key).unwrap().map(|row| ValueRow::decode(&row).unwrap().bytes.len());
        assert_eq!(row, Some(TIMES), "run {run}");
    }
}

#[tokio::test]
async fn a_chat_with_more_than_one_commit_holds_moves_whole() {
    let bench = Bench::new();
    let plugin = PluginName::new("log");
    let key = |chat, n: usize| kv::key(BOT, &plugin, Scope::Chat(chat), &format!("{n:05}"));
    for page in 0..10 {
        let row = |n: usize| (key(GROUP, n), ValueRow { expires: 0, bytes: n.to_be_bytes().to_vec() }.encode());
        bench.put((page * 500..(page + 1) * 500).map(row)).await;
    }
    bench.chats.moved(GROUP, SUPER).await.unwrap();
    let rows = bench.store.scan_prefix(&kv::bot_prefix(BOT), usize::MAX).unwrap();
    assert_eq!(rows.len(), 5_000);
    for (n, (found, row)) in rows.iter().enumerate() {
        assert_eq!((found.as_ref(), ValueRow::decode(row).unwrap().bytes), (&*key(SUPER, n), n.to_be_bytes().to_vec()));
    }
}

#[tokio::test]
async fn what_is_no_move_moves_nothing() {
    let bench = Bench::new();
    for (group, to) in [(SUPER, GROUP), (ChatId(5), SUPER), (GROUP, OTHER), (GROUP, ChatId(i64::MIN))] {
        bench.chats.moved(group, to).await.unwrap();
        assert_eq!((alias(&bench.store), bench.chats.lane(Lane::Chat(group))), (None, Lane::Chat(group)));
    }
    bench.chats.moved(GROUP, SUPER).await.unwrap();
    bench.chats.moved(GROUP, ChatId(SUPER.0 - 1)).await.unwrap();
    assert_eq!(alias(&bench.store), Some((SUPER, true)));
    assert!(!bench.chats.is_moving(Lane::Chat(GROUP)));
}

#[tokio::test]
async fn what_is_known_of_the_group_says_where_it_went() {
    let bench = Bench::new();
    bench.notice(message(&json!({ "id": GROUP.0, "type": "group", "title": "Chess" }), "hi")).await;
    bench.chats.moved(GROUP, SUPER).await.unwrap();
    assert!(bench.gone(GROUP).unwrap().contains(&SUPER.to_string()));
    let row = bench.row(SUPER).unwrap();
    assert_eq!((&*row.kind, &*row.title, row.gone), ("supergroup", "Chess", None));
    let params = format!(r#"{{"chat_id":{GROUP},"text":"x"}}"#);
    assert_eq!(bench.chats.redirect(&params).unwrap(), format!(r#"{{"chat_id":{SUPER},"text":"x"}}"#));
    assert_eq!(bench.chats.redirect(r#"{"chat_id":-78}"#), None);
}

#[tokio::test]
async fn the_last_events_of_the_group_go_first_also_after_a_restart() {
    let parts = [
        Part::Whole,
        Part::User(UserId(5)),
        Part::Thread(ThreadId(3)),
        Part::UserInThread(UserId(5), ThreadId(3)),
        Part::Alone(7),
        Part::Control(UserId(5)),
        Part::Move,
    ];
    // Whichever lane of the group it is that something waits in.
    for part in parts {
        let bench = Bench::new();
        let event = inbox::key(BOT, EventLane { place: Lane::Chat(GROUP), part }, 1);
        let row = InboxRow::new(StoredEvent::Update(b"{}".to_vec()), 1);
        bench.put([(event.clone(), row.encode())]).await;
        let elder = |bench: &Bench, chat| bench.chats.elder(Lane::Chat(chat)).unwrap();
        assert_eq!(elder(&bench, SUPER), None);
        bench.chats.moved(GROUP, SUPER).await.unwrap();
        let bench = bench.again();
        assert_eq!(elder(&bench, SUPER), Some(Lane::Chat(GROUP)), "{part:?}");
        assert_eq!(elder(&bench, GROUP), None);
        bench.store.commit(Commit { ops: vec![Op::Delete { key: event }], ..Commit::default() }).await.unwrap();
        assert_eq!(elder(&bench, SUPER), None);
        assert!(!bench.folder.path().as_os_str().is_empty());
    }
}
