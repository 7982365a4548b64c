//! A run in writing: what one plugin was given, and what it did with it. Made so that the run can be made again, by another
//! version, and so that people can read it. Secrets are not in it.

use serde::{Deserialize, Serialize};

use super::effects::{Effects, hex};
use crate::domain::{BotId, Conversation, EventLane, PluginName};
use crate::plugin::{self, Asked, Content, Event, Invocation, RunError, Verdict};
use crate::store::rows::fsm::{self, StateRow};
use crate::store::rows::inbox::{self, StoredEvent};
use crate::store::rows::kv::{self, Scope, ValueRow};
use crate::store::rows::seal;

/// See the module.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Note {
    /// The event's number.
    pub event: u64,
    /// The plugin's clock, in Unix milliseconds.
    pub now: u64,
    /// Which attempt at the event it was.
    pub attempt: u32,
    /// Whose event it is.
    pub bot: BotId,
    /// The lane that it lay in.
    pub lane: EventLane,
    /// Who was given it.
    pub plugin: PluginName,
    /// In which version.
    pub version: String,
    /// It only looked on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub observes: bool,
    /// The places of the filters that let the event through.
    pub matched: Vec<u32>,
    /// The conversation, by the plugin's own strategy.
    pub conversation: Conversation,
    /// What happened.
    pub what: What,
    /// The rows of the store that it, and what was decided before it, has read.
    pub before: Vec<Row>,
    /// What it has asked outside, and was answered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<Asked>,
    /// What it said.
    pub verdict: Said,
    /// Why a first run failed, in whose place it has answered. What both asked and used up is counted together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovered: Option<String>,
    /// What it wants to be done.
    pub effects: Effects,
    /// Microseconds on a processor.
    pub cpu: u64,
    /// Why nothing came of the event at this attempt; none where it was committed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// What a plugin made of an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Said {
    /// It is handled.
    Done,
    /// It is not this plugin's.
    Passed,
    /// Why there is no verdict.
    Failed(String),
}

impl From<&Result<Verdict, RunError>> for Said {
    fn from(result: &Result<Verdict, RunError>) -> Self {
        match result {
            Ok(Verdict::Done) => Self::Done,
            Ok(Verdict::Pass) => Self::Passed,
            Err(error) => Self::Failed(error.to_string()),
        }
    }
}

/// An event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// An update.
    Update(Content),
    /// Several that are one.
    Album(Vec<Content>),
    /// A timer has rung.
    Timer {
        /// Its id.
        id: u64,
        /// Its name.
        name: String,
        /// What it carries.
        payload: Content,
        /// Unix milliseconds.
        due: u64,
    },
    /// A job's turn has come.
    Job {
        /// Its id.
        id: u64,
        /// Its name.
        name: String,
        /// What it carries.
        payload: Content,
        /// Unix milliseconds.
        queued: u64,
    },
    /// A state has lived out its time.
    Expired {
        /// Its name.
        name: String,
        /// Its version.
        version: u32,
        /// What it was.
        value: Content,
    },
}

impl What {
    fn of(event: &Event) -> Option<Self> {
        let raw = |update: &plugin::Update| Content::of(update.raw.as_bytes());
        Some(match event {
            Event::Update(update) => Self::Update(raw(update)),
            Event::Album(album) => Self::Album(album.updates.iter().map(raw).collect()),
            Event::Timer(timer) => Self::Timer {
                id: timer.id,
                name: timer.name.clone(),
                payload: Content::of(&timer.payload),
                due: timer.due,
            },
            Event::Job(job) => {
                Self::Job { id: job.id, name: job.name.clone(), payload: Content::of(&job.payload), queued: job.queued }
            }
            Event::Expired(state) => {
                Self::Expired { name: state.name.clone(), version: state.version, value: Content::of(&state.bytes) }
            }
            Event::Other(_) => return None,
        })
    }

    /// As it would lie in the inbox; of an album its first message, and then the others.
    #[must_use]
    pub fn stored(&self, plugin: &PluginName, conversation: Conversation) -> (StoredEvent, Vec<Vec<u8>>) {
        let plugin = plugin.clone();
        let event = match self {
            Self::Update(raw) => StoredEvent::Update(raw.bytes()),
            Self::Album(updates) => {
                let mut raws = updates.iter().map(Content::bytes);
                return (StoredEvent::Update(raws.next().unwrap_or_default()), raws.collect());
            }
            Self::Timer { id, name, payload, due } => {
                let (id, name, payload, due) = (*id, name.clone(), payload.bytes(), *due);
                StoredEvent::Timer { plugin, conversation, id, name, payload, due }
            }
            Self::Job { id, name, payload, queued } => {
                let (id, name, payload, queued) = (*id, name.clone(), payload.bytes(), *queued);
                StoredEvent::Job { plugin, conversation, id, name, payload, queued, key: None }
            }
            Self::Expired { name, version, value } => {
                let state = StateRow { name: name.clone(), version: *version, expires: 0, bytes: value.bytes() };
                StoredEvent::Expired { plugin, conversation, state }
            }
        };
        (event, Vec::new())
    }

    fn weight(&self) -> usize {
        match self {
            Self::Update(raw) => raw.weight(),
            Self::Album(updates) => updates.iter().map(Content::weight).sum(),
            Self::Timer { payload, .. } | Self::Job { payload, .. } => payload.weight(),
            Self::Expired { value, .. } => value.weight(),
        }
    }
}

/// A row of the store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Row {
    /// The state of the conversation.
    State {
        /// Its name.
        name: String,
        /// Its version.
        version: u32,
        /// Unix milliseconds from which on it reads as none; 0 for never.
        expires: u64,
        /// What it is.
        value: Content,
    },
    /// A value of the plugin's.
    Value {
        /// Whose.
        scope: Scope,
        /// Its key.
        key: String,
        /// Unix milliseconds from which on it reads as absent; 0 for never.
        expires: u64,
        /// What it is.
        value: Content,
    },
    /// Any other.
    Other {
        /// In hexadecimal digits.
        key: String,
        /// As it is stored.
        value: Content,
    },
}

impl Row {
    fn of(key: &[u8], value: &[u8], bot: BotId, plugin: &PluginName, conversation: &Conversation) -> Self {
        if key == fsm::key(bot, plugin, conversation)
            && let Ok(StateRow { name, version, expires, bytes }) = StateRow::decode(value)
        {
            return Self::State { name, version, expires, value: Content::of(&bytes) };
        }
        if key.starts_with(&kv::plugin_prefix(bot, plugin))
            && let Some((_, scope, name)) = kv::parse_key(key)
            && let Ok(ValueRow { expires, bytes }) = ValueRow::decode(value)
        {
            return Self::Value { scope, key: name, expires, value: Content::of(&bytes) };
        }
        Self::Other { key: hex(key), value: Content::of(value) }
    }

    /// Key and value, as they are stored.
    #[must_use]
    pub fn stored(&self, bot: BotId, plugin: &PluginName, conversation: &Conversation) -> (Vec<u8>, Vec<u8>) {
        match self {
            Self::State { name, version, expires, value } => {
                let (name, version, expires) = (name.clone(), *version, *expires);
                let row = StateRow { name, version, expires, bytes: value.bytes() };
                (fsm::key(bot, plugin, conversation), row.encode())
            }
            Self::Value { scope, key, expires, value } => {
                (kv::key(bot, plugin, *scope, key), ValueRow { expires: *expires, bytes: value.bytes() }.encode())
            }
            Self::Other { key, value } => (Content::Hex(key.clone()).bytes(), value.bytes()),
        }
    }

    fn weight(&self) -> usize {
        match self {
            Self::State { value, .. } | Self::Value { value, .. } => value.weight(),
            Self::Other { key, value } => key.len() + value.weight(),
        }
    }
}

impl Note {
    /// Of a run that has ended; none of one that nobody could make again. `rows` are those that were there and read.
    pub(super) fn of<'a>(
        invocation: &Invocation,
        plugin: &plugin::Plugin,
        observes: bool,
        rows: impl Iterator<Item = (&'a [u8], &'a [u8])>,
        ran: Ran,
    ) -> Option<Self> {
        let (bot, conversation) = (invocation.bot, invocation.conversation);
        let name = &plugin.name;
        let rows = rows.filter(|(key, _)| is_told(key, bot));
        Some(Self {
            event: invocation.id,
            now: invocation.now,
            attempt: invocation.attempt,
            bot,
            lane: invocation.lane,
            plugin: name.clone(),
            version: plugin.version.to_string(),
            observes,
            matched: invocation.matched.clone(),
            conversation,
            what: What::of(&invocation.event)?,
            before: rows.map(|(key, value)| Row::of(key, value, bot, name, &conversation)).collect(),
            asked: ran.asked,
            verdict: ran.verdict,
            recovered: ran.recovered,
            effects: ran.effects,
            cpu: ran.cpu,
            failed: None,
        })
    }

    /// How long it is in writing, but for what the run itself has bounded: about.
    pub(super) fn weight(&self) -> usize {
        self.what.weight() + self.before.iter().map(Row::weight).sum::<usize>()
    }
}

/// The event itself is told already, and what the bot's buttons are sealed with is a secret: replays make do without it.
fn is_told(key: &[u8], bot: BotId) -> bool {
    !key.starts_with(&inbox::bot_prefix(bot)) && *key != seal::key(bot)
}

/// What came of a run.
pub(super) struct Ran {
    pub(super) asked: Vec<Asked>,
    pub(super) verdict: Said,
    pub(super) recovered: Option<String>,
    pub(super) effects: Effects,
    pub(super) cpu: u64,
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::{ChatId, Lane, UserId};

    const BOT: BotId = BotId(42);

    pub(in crate::dispatch) fn note(event: u64, plugin: &str) -> Note {
        Note {
            event,
            now: 5,
            attempt: 1,
            bot: BOT,
            lane: EventLane::whole(Lane::Chat(ChatId(7))),
            plugin: PluginName::new(plugin),
            version: "v".to_owned(),
            observes: false,
            matched: vec![0],
            conversation: Conversation { chat: Some(ChatId(7)), ..Conversation::default() },
            what: What::Update(Content::of(br#"{"update_id":1}"#)),
            before: Vec::new(),
            asked: Vec::new(),
            verdict: Said::Done,
            recovered: None,
            effects: Effects::default(),
            cpu: 9,
            failed: None,
        }
    }

    fn rows() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
        let (plugin, other) = (PluginName::new("tea"), PluginName::new("teapot"));
        let conversation = note(1, "tea").conversation;
        let state = |name: String, bytes| StateRow { name, version: 3, expires: 8, bytes }.encode();
        let value = |bytes| ValueRow { expires: 0, bytes }.encode();
        let scope = prop_oneof![
            Just(Scope::Plugin),
            Just(Scope::Chat(ChatId(-7))),
            Just(Scope::User(UserId(7))),
            Just(Scope::Buttons(Some(ChatId(-7)))),
            Just(Scope::Buttons(None)),
        ];
        let bytes = || prop::collection::vec(any::<u8>(), 0..20);
        let elsewhere = Conversation { chat: Some(ChatId(8)), ..Conversation::default() };
        prop_oneof![
            ("[a-z]{1,4}", bytes()).prop_map({
                let key = fsm::key(BOT, &plugin, &conversation);
                move |(name, bytes)| (key.clone(), state(name, bytes))
            }),
            ("[a-z]{1,4}", bytes()).prop_map({
                let key = fsm::key(BOT, &plugin, &elsewhere);
                move |(name, bytes)| (key.clone(), state(name, bytes))
            }),
            (scope, "[a-zé ]{0,6}", bytes())
                .prop_map(move |(scope, key, bytes)| (kv::key(BOT, &plugin, scope, &key), value(bytes))),
            ("[a-z]{1,4}", bytes())
                .prop_map(move |(key, bytes)| (kv::key(BOT, &other, Scope::Plugin, &key), value(bytes))),
            (bytes(), bytes()),
        ]
    }

    proptest! {
        /// Written down, read and put back, every row is as it was, whosever it is.
        #[test]
        fn rows_are_the_same_after_all((key, value) in rows()) {
            let Note { plugin, conversation, .. } = note(1, "tea");
            let row = Row::of(&key, &value, BOT, &plugin, &conversation);
            let read: Row = serde_json::from_str(&serde_json::to_string(&row).unwrap()).unwrap();
            prop_assert_eq!(&read, &row);
            prop_assert_eq!(read.stored(BOT, &plugin, &conversation), (key, value));
        }
    }

    #[test]
    fn the_seal_of_the_buttons_is_in_no_recording() {
        let (plugin, lane) = (PluginName::new("tea"), EventLane::whole(Lane::Other));
        assert!(!is_told(&seal::key(BOT), BOT) && !is_told(&inbox::key(BOT, lane, 1), BOT));
        assert!(is_told(&kv::key(BOT, &plugin, Scope::Plugin, "k"), BOT));
    }

    #[test]
    fn events_are_the_same_after_all() {
        let (plugin, conversation) = (PluginName::new("tea"), note(1, "tea").conversation);
        let raw = |id: u32| format!(r#"{{"update_id": {id}}}"#).into_bytes();
        let state = StateRow { name: "cups".to_owned(), version: 2, expires: 0, bytes: b"\xff".to_vec() };
        let timer = StoredEvent::Timer {
            plugin: plugin.clone(),
            conversation,
            id: 3,
            name: "t".to_owned(),
            payload: b"null".to_vec(),
            due: 4,
        };
        let job = StoredEvent::Job {
            plugin: plugin.clone(),
            conversation,
            id: 3,
            name: "j".to_owned(),
            payload: b"1 ".to_vec(),
            queued: 4,
            key: None,
        };
        for (what, event, rest) in [
            (What::Job { id: 3, name: "j".to_owned(), payload: Content::of(b"1 "), queued: 4 }, job, vec![]),
            (What::Update(Content::of(&raw(1))), StoredEvent::Update(raw(1)), vec![]),
            (
                What::Album([1, 2, 3].map(|id| Content::of(&raw(id))).to_vec()),
                StoredEvent::Update(raw(1)),
                vec![raw(2), raw(3)],
            ),
            (What::Timer { id: 3, name: "t".to_owned(), payload: Content::of(b"null"), due: 4 }, timer, vec![]),
            (
                What::Expired { name: "cups".to_owned(), version: 2, value: Content::of(b"\xff") },
                StoredEvent::Expired { plugin: plugin.clone(), conversation, state },
                vec![],
            ),
        ] {
            let read: What = serde_json::from_str(&serde_json::to_string(&what).unwrap()).unwrap();
            assert_eq!(read.stored(&plugin, conversation), (event, rest));
        }
    }
}
