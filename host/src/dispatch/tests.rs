//! What follows from plugins, for lanes and for their good name. Events and commits are tested end to end.

use super::run::Failure;
use super::*;
use crate::chats::Chats;
use crate::config::OnCrash;
use crate::domain::{ChatId, Conversation, KeyStrategy};
use crate::plugin::{Engine, EngineSettings, HttpClient, Plugin, keyed};
use crate::sender::SendSettings;
use crate::store::rows::inbox::{InboxRow, StoredEvent};
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
        let trial = trial.map(|new| Arc::new(Trial::new(new.clone(), plugin, 100)));
        let entry = Entry { plugin: plugin.clone(), trial, priority: 0, on_crash: OnCrash::Retry };
        self.dispatcher.set_routes(Routes::new(vec![entry]));
    }

    /// The watchdog ends a run of this version.
    fn hang(&self, plugin: &Plugin, event: u64) -> Failure {
        let conversation = Conversation { chat: Some(ChatId(1)), ..Conversation::default() };
        let (name, version, began) = (plugin.name.clone(), plugin.version.to_string(), Instant::now());
        let run = claims::Run { plugin: name, version, conversation, began, due: began };
        self.dispatcher.context.hung(Some(run), event, &InboxRow::new(StoredEvent::Update(Vec::new()), 1))
    }
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
async fn a_task_that_breaks_is_heard_of_and_one_that_ends_is_not() {
    let mut helpers = JoinSet::new();
    helpers.spawn(async {});
    let waited = tokio::time::timeout(Duration::from_millis(20), broken(&mut helpers)).await;
    assert!(waited.is_err(), "it goes on");
    helpers.spawn(async { panic!("boom") });
    let ended = tokio::spawn(async move { broken(&mut helpers).await }).await;
    assert!(ended.is_err_and(|error| error.is_panic()));
}
