//! What follows from plugins, for lanes and for their good name. Events and commits are tested end to end.

use futures_util::FutureExt;

use super::failure::Failure;
use super::*;
use crate::chats::Chats;
use crate::config::OnCrash;
use crate::domain::{ChatId, Conversation, KeyStrategy, Lane};
use crate::plugin::{Engine, EngineSettings, HttpClient, Plugin, RunError, Spent, Verdict, keyed, keyed_as};
use crate::sender::SendSettings;
use crate::store::rows::expiry::ExpiryRow;
use crate::store::rows::fsm::{self, StateRow};
use crate::store::rows::inbox::{InboxRow, StoredEvent};
use crate::store::{Commit, Op};
use crate::telegram::{Client, Token};

const BOT: BotId = BotId(4242);

struct Bench {
    dispatcher: Dispatcher,
    engine: Engine,
    notices: mpsc::UnboundedReceiver<Notice>,
    _folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        let token = Token::parse("4242:of-a-bot-that-is-never-asked-anything").unwrap();
        let client = Arc::new(Client::new("http://127.0.0.1:9", token).unwrap());
        let chats = Chats::open(store.clone(), BOT).unwrap();
        let sender = Sender::new(store.clone(), client, BOT, chats, SendSettings::default(), None);
        let (tell, notices) = mpsc::unbounded_channel();
        let settings = Settings {
            concurrency: 1,
            max_attempts: 5,
            jobs: 1,
            dead: DeadLetters { letters: 2, bytes: 0, age: Duration::ZERO },
            default_locale: "en".to_owned(),
            grace: Duration::ZERO,
            notices: tell,
            cancel_command: Some("cancel".to_owned()),
            cancel_reply: String::new(),
            stale_button_reply: String::new(),
            unsealed_buttons: false,
            album_quiet: Duration::ZERO,
            album_wait: Duration::ZERO,
        };
        let outbound = Arc::new(sender.clone());
        let (dispatcher, _) = Dispatcher::new(store, BOT, sender, outbound, Routes::default(), settings);
        let engine = Engine::new(EngineSettings { max_runs: 1, cache_dir: None, http: HttpClient::new([]) }).unwrap();
        Self { dispatcher, engine, notices, _folder: folder }
    }

    fn serve(&self, plugin: &Arc<Plugin>, trial: Option<&Arc<Plugin>>) {
        let trial = trial.map(|new| Arc::new(Trial::new(new.clone(), plugin, 100, 5)));
        self.dispatcher.set_routes(Routes::new(vec![Entry { trial, ..entry(plugin) }]));
    }

    /// Has a version fail so many different events that its plugin is given a rest.
    fn tire(&self, plugin: &Arc<Plugin>) {
        (1000..1010).for_each(|event| self.ends(plugin, event, Err(RunError::Hung(Duration::ZERO))));
        assert!(self.dispatcher.has_rest(&plugin.name));
    }

    /// A run that handles events ends like this.
    fn ends(&self, plugin: &Arc<Plugin>, event: u64, result: Result<Verdict, RunError>) {
        let version = routes::Version { plugin: plugin.clone(), on_crash: OnCrash::Retry, trial: None };
        self.dispatcher.context.note(&version, event, false, Spent::default(), &result);
    }

    /// Whether what waits is looked at again.
    fn is_resumed(&self) -> bool {
        self.dispatcher.context.resumed.notified().now_or_never().is_some()
    }

    /// The watchdog ends a run of this version.
    fn hang(&self, plugin: &Plugin, event: u64) -> Failure {
        let conversation = Conversation { chat: Some(ChatId(1)), ..Conversation::default() };
        let (name, version, began) = (plugin.name.clone(), plugin.version.to_string(), Instant::now());
        let run = claims::Run { plugin: name, version, conversation, began, due: began };
        self.dispatcher.context.hung(Some(run), event, &InboxRow::new(StoredEvent::Update(Vec::new()), 1))
    }
}

fn entry(plugin: &Arc<Plugin>) -> Entry {
    Entry { plugin: plugin.clone(), trial: None, priority: 0, on_crash: OnCrash::Retry }
}

#[tokio::test]
async fn lanes_follow_the_keys_of_versions_on_trial_too() {
    let bench = Bench::new();
    let lanes = bench.dispatcher.lanes();
    assert_eq!(*lanes.borrow(), LaneRule { key: KeyStrategy::Chat, cancel: Some("cancel".to_owned()) });
    let (by_user, by_topic) = (keyed(&bench.engine, "user_in_chat"), keyed(&bench.engine, "topic"));
    bench.serve(&by_user, None);
    assert_eq!(lanes.borrow().key, KeyStrategy::UserInChat);
    // Either may be given an event, and none may be handled beside another of its conversation.
    bench.serve(&by_user, Some(&by_topic));
    assert_eq!(lanes.borrow().key, KeyStrategy::Chat);
    bench.serve(&by_topic, None);
    assert_eq!(*lanes.borrow(), LaneRule { key: KeyStrategy::Topic, cancel: Some("cancel".to_owned()) });
}

#[tokio::test]
async fn runs_that_hang_count_as_failures_of_their_version() {
    let mut bench = Bench::new();
    let (old, new) = (keyed(&bench.engine, "chat"), keyed(&bench.engine, "topic"));
    bench.serve(&old, Some(&new));
    let failure = bench.hang(&new, 1);
    assert_eq!((&failure.plugin, &*failure.version), (&new.name, &*new.version.to_string()));
    assert!(failure.reason.contains("the watchdog"), "{}", failure.reason);
    bench.hang(&new, 2);
    // Told twice of the same: by the run itself, and when it was given up.
    bench.hang(&new, 2);
    assert!(bench.notices.try_recv().is_err());
    bench.hang(&new, 3);
    let notice = bench.notices.try_recv().unwrap();
    assert!(matches!(&notice, Notice::Worse { version, .. } if *version == new.version.to_string()), "{notice:?}");
}

#[tokio::test]
async fn a_plugin_that_hangs_again_and_again_is_given_a_rest_and_another_version_is_not_to_blame() {
    let mut bench = Bench::new();
    let (old, new) = (keyed(&bench.engine, "chat"), keyed(&bench.engine, "topic"));
    bench.serve(&new, None);
    for event in 1..=20 {
        let failure = bench.hang(&old, event);
        assert_eq!((&failure.plugin, &*failure.version), (&old.name, &*old.version.to_string()));
    }
    assert!(bench.notices.try_recv().is_err() && !bench.dispatcher.context.must_wait(&new.name, 1));
    for event in 1..=10 {
        bench.hang(&new, event);
    }
    let notice = bench.notices.try_recv().unwrap();
    assert!(matches!(&notice, Notice::Rests { reason, .. } if reason.contains("the watchdog")), "{notice:?}");
    assert!(bench.dispatcher.context.must_wait(&new.name, 11));
}

#[tokio::test]
async fn a_state_that_ends_on_trial_does_not_come_back_from_before_it() {
    let conversation = Conversation { chat: Some(ChatId(1)), ..Conversation::default() };
    for (about, serves, on_trial, copy_stays) in [
        ("on trial", true, true, false),
        ("of a plugin that does not want to hear of it", true, false, false),
        // It may be the copy's end that is told of.
        ("whoever is told of it looks", false, false, true),
    ] {
        let bench = Bench::new();
        let (old, new) = (keyed(&bench.engine, "chat"), keyed(&bench.engine, "topic"));
        if serves {
            bench.serve(&old, on_trial.then_some(&new));
        }
        let (key, copy) = (fsm::key(BOT, &old.name, &conversation), fsm::before_key(BOT, &old.name, &conversation));
        let state = StateRow { name: "cups".to_owned(), version: 2, expires: 5, bytes: Vec::new() }.encode();
        let lane = EventLane::whole(crate::domain::Lane::Chat(ChatId(1)));
        let end = ExpiryRow::State { plugin: old.name.clone(), conversation, lane, tell: true }.encode();
        let rows = [(expiry_key(&key), end), (key.clone(), state.clone()), (copy.clone(), state)];
        let ops = rows.into_iter().map(|(key, value)| Op::Put { key, value }).collect();
        let store = &bench.dispatcher.context.store;
        drop(store.commit(Commit { ops, ..Commit::default() }).await.unwrap());
        let (arrivals, _arrived) = mpsc::unbounded_channel();
        super::expiry::sweep(&bench.dispatcher.context, &arrivals).await.unwrap();
        assert_eq!(store.get(&key).unwrap(), None, "{about}");
        assert_eq!(store.get(&copy).unwrap().is_some(), copy_stays, "{about}");
    }
}

fn expiry_key(of: &[u8]) -> Vec<u8> {
    crate::store::rows::expiry::key(BOT, 5, of)
}

#[tokio::test]
async fn jobs_leave_it_to_events_to_tell_that_a_rest_is_over() {
    let bench = Bench::new();
    let plugin = keyed(&bench.engine, "chat");
    bench.serve(&plugin, None);
    tokio::time::pause();
    bench.tire(&plugin);
    let context = &bench.dispatcher.context;
    assert!(context.must_jobs_wait(&plugin.name) && context.must_wait(&plugin.name, 1));
    tokio::time::sleep(Duration::from_secs(31)).await;
    assert!(bench.is_resumed());
    assert!(!context.must_jobs_wait(&plugin.name));
    assert!(!context.must_wait(&plugin.name, 1), "the job is no probe");
    assert!(context.must_wait(&plugin.name, 2), "this event is");
    bench.ends(&plugin, 1, Ok(Verdict::Done));
    assert!(bench.is_resumed() && !context.must_wait(&plugin.name, 2));
}

#[tokio::test]
async fn when_the_event_that_was_to_tell_is_gone_another_one_is_looked_at() {
    let bench = Bench::new();
    let plugin = keyed(&bench.engine, "chat");
    bench.serve(&plugin, None);
    tokio::time::pause();
    bench.tire(&plugin);
    let context = &bench.dispatcher.context;
    tokio::time::sleep(Duration::from_secs(31)).await;
    assert!(bench.is_resumed());
    assert!(!context.must_wait(&plugin.name, 1) && context.must_wait(&plugin.name, 2));
    context.let_go_of_probes(2);
    assert!(!bench.is_resumed() && context.must_wait(&plugin.name, 2));
    // Its user has ended the conversation, say.
    context.let_go_of_probes(1);
    assert!(bench.is_resumed(), "whatever waits is woken");
    assert!(!context.must_wait(&plugin.name, 2));
}

#[tokio::test]
async fn a_turn_that_ends_lets_go_of_what_it_was_to_tell() {
    let bench = Bench::new();
    let plugin = keyed(&bench.engine, "chat");
    bench.serve(&plugin, None);
    let (context, lane) = (&bench.dispatcher.context, EventLane::whole(Lane::Chat(ChatId(7))));
    let update = br#"{"update_id":1,"message":{"message_id":1,"date":1,"chat":{"id":7,"type":"private"},"text":"hi"}}"#;
    let value = InboxRow::new(StoredEvent::Update(update.to_vec()), unix_millis()).encode();
    let ops = vec![store::Op::Put { key: inbox::key(BOT, lane, 5), value }];
    context.must_commit(store::Commit { ops, ..Default::default() }).await.unwrap();
    tokio::time::pause();
    bench.tire(&plugin);
    tokio::time::sleep(Duration::from_secs(31)).await;
    assert!(bench.is_resumed());
    assert!(!context.must_wait(&plugin.name, 5) && context.must_wait(&plugin.name, 6));
    context.turn(1, lane).await.unwrap();
    assert!(bench.is_resumed() && !context.must_wait(&plugin.name, 6));
}

#[tokio::test]
async fn a_rest_outlasts_the_changes_of_other_plugins_and_ends_with_its_own() {
    let bench = Bench::new();
    let (shop, other) = (keyed(&bench.engine, "chat"), PluginName::new("other"));
    let [first, second] = ["chat", "topic"].map(|key| keyed_as(&bench.engine, &other, key));
    let serve = |plugins: &[&Arc<Plugin>]| {
        bench.dispatcher.set_routes(Routes::new(plugins.iter().map(|plugin| entry(plugin)).collect()))
    };
    serve(&[&shop, &first]);
    bench.tire(&shop);
    assert_eq!(serve(&[&shop, &second]), []);
    assert_eq!(serve(&[&shop]), []);
    assert!(bench.dispatcher.context.must_wait(&shop.name, 1));
    assert_eq!(serve(&[&keyed(&bench.engine, "topic")]), std::slice::from_ref(&shop.name));
    assert!(!bench.dispatcher.context.must_wait(&shop.name, 1));
    bench.tire(&shop);
    assert_eq!(serve(&[&second]), std::slice::from_ref(&shop.name));
}

#[tokio::test]
async fn a_task_that_breaks_is_heard_of_and_one_that_ends_is_not() {
    let mut helpers = JoinSet::new();
    helpers.spawn(async {});
    let waited = tokio::time::timeout(Duration::from_millis(20), broken(&mut helpers)).await;
    assert!(waited.is_err(), "it goes on");
    helpers.spawn(async { panic!("boom") });
    let ended = tokio::spawn(async move { broken(&mut helpers).await }).await;
    assert!(ended.is_err_and(|error| error.is_panic()));
}
