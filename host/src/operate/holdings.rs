//! What the store holds of plugins, chats and people, row by row: what a row is, whose it is, and what it says.
//!
//! A row is *of* somebody when it stands under their id, waits in their lane, or is an update, a call or a dead letter in
//! which their id stands. Values, states and payloads are the plugins' own and opaque: where one that is somebody
//! else's has the id in it, as decimal digits, it only *mentions* them.

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use super::private;
use crate::domain::{BotId, ChatId, Conversation, EventLane, Lane, Part, ThreadId, UserId};
use crate::store::rows::album::{self, AlbumsRow};
use crate::store::rows::broadcast::{self, Recipient};
use crate::store::rows::chat::{self, ChatRow};
use crate::store::rows::dead::{self, DeadRow};
use crate::store::rows::erasure::Subject;
use crate::store::rows::flood::{self, FloodRow};
use crate::store::rows::fsm::{self, StateRow};
use crate::store::rows::inbox::{self, InboxRow, StoredEvent};
use crate::store::rows::job::{self, HeadRow};
use crate::store::rows::kv::{self, Scope, ValueRow};
use crate::store::rows::language::{self, LanguageRow, Whose};
use crate::store::rows::moved::{self, MovedRow};
use crate::store::rows::outbox::{self, OutboxRow};
use crate::store::rows::parked::{self, ParkedRow};
use crate::store::rows::timer::{self, TimerRow};
use crate::store::rows::unknown::{self, UnknownRow};
use crate::store::rows::version::{self, VersionRow};
use crate::store::rows::{expiry, file, number_of};

/// Stands where a text was that had an erased id in it.
const FORGOTTEN: &str = "erased with somebody's data";

/// What a row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The state of a conversation.
    State,
    /// A state that no version could take over.
    Aside,
    /// A state as it was before a version on trial took it over.
    Before,
    /// A value that a plugin keeps.
    Value,
    /// What a plugin's button stands for, where that is too long for the button.
    Button,
    /// A timer.
    Timer,
    /// A job.
    Job,
    /// An event that waits.
    Event,
    /// A call that waits.
    Call,
    /// A dead letter.
    Dead,
    /// A call with an unknown end.
    Unknown,
    /// What is known of a chat.
    Chat,
    /// That a group has become another chat.
    Moved,
    /// A recipient of a broadcast, or somebody who did not get it.
    Broadcast,
    /// The albums of a chat that were given to plugins of late.
    Albums,
    /// That a state or a value ends, and when.
    Expiry,
    /// That a chat's calls wait for flood control.
    Flood,
    /// Why versions of a plugin were sent back.
    Version,
    /// The language that somebody has chosen.
    Language,
}

/// A row, for people and other programs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// What it is.
    pub kind: Kind,
    /// Whose; empty for what is no plugin's.
    #[serde(default)]
    pub plugin: String,
    /// The chat it is of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chat: Option<i64>,
    /// The user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<i64>,
    /// The forum topic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<i64>,
    /// A value's key; else a number or a name that tells such rows apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// A state's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The version of the plugin's state type that wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// Unix milliseconds from which on it reads as absent; 0 for never.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub expires: u64,
    /// The content, where it is JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub json: Option<Json>,
    /// The content in hexadecimal, where it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hex: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Entry {
    fn new(kind: Kind, plugin: &str) -> Self {
        Self {
            kind,
            plugin: plugin.to_owned(),
            chat: None,
            user: None,
            thread: None,
            key: None,
            name: None,
            version: None,
            expires: 0,
            json: None,
            hex: None,
        }
    }

    fn at(mut self, conversation: &Conversation) -> Self {
        self.chat = conversation.chat.map(|id| id.0);
        self.user = conversation.user.map(|id| id.0);
        self.thread = conversation.thread.map(|id| id.0);
        self
    }

    fn in_place(mut self, place: Lane) -> Self {
        match place {
            Lane::Chat(chat) => self.chat = Some(chat.0),
            Lane::User(user) | Lane::Urgent(user) => self.user = Some(user.0),
            // Of a plugin's own events.
            Lane::Other | Lane::Task(_) => {}
        }
        self
    }

    fn in_lane(self, EventLane { place, part }: EventLane) -> Self {
        let mut entry = self.in_place(place);
        let (user, thread) = match part {
            Part::User(user) | Part::Control(user) => (Some(user), None),
            Part::Thread(thread) => (None, Some(thread)),
            Part::UserInThread(user, thread) => (Some(user), Some(thread)),
            Part::Whole | Part::Alone(_) | Part::Move => (None, None),
        };
        entry.user = user.map(|UserId(id)| id).or(entry.user);
        entry.thread = thread.map(|ThreadId(id)| id).or(entry.thread);
        entry
    }

    fn in_scope(mut self, scope: Scope) -> Self {
        match scope {
            Scope::Plugin | Scope::Buttons(None) => {}
            Scope::Chat(chat) | Scope::Buttons(Some(chat)) => self.chat = Some(chat.0),
            Scope::User(user) => self.user = Some(user.0),
        }
        self
    }

    fn bytes(mut self, bytes: &[u8]) -> Self {
        match serde_json::from_slice(bytes) {
            Ok(json) => self.json = Some(json),
            Err(_) => self.hex = Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect()),
        }
        self
    }

    fn says(self, json: Json) -> Self {
        Self { json: Some(json), ..self }
    }

    fn number(self, number: Option<u64>) -> Self {
        Self { key: number.map(|number| number.to_string()), ..self }
    }

    /// Its content.
    ///
    /// # Errors
    /// When it has none, or no hexadecimal digits where they should be.
    pub fn content(&self) -> Result<Vec<u8>, String> {
        match (&self.json, &self.hex) {
            (Some(json), None) => Ok(json.to_string().into_bytes()),
            (None, Some(hex)) => {
                let digits: Option<Vec<u8>> =
                    hex.chars().map(|c| c.to_digit(16).and_then(|d| d.try_into().ok())).collect();
                let digits = digits.filter(|digits| digits.len() % 2 == 0);
                let digits = digits.ok_or("`hex` must be an even number of hexadecimal digits")?;
                Ok(digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
            }
            _ => Err("the content stands either in `json` or in `hex`".to_owned()),
        }
    }
}

/// A row, and what may be done about it.
#[derive(Debug)]
pub(super) struct Holding {
    pub(super) entry: Entry,
    /// What else goes with it.
    pub(super) along: Vec<Vec<u8>>,
    /// What is looked through for ids, beside those that the entry names.
    text: Vec<u8>,
    /// The text was not written by a plugin: an id in it makes the row somebody's.
    is_telling: bool,
}

impl Holding {
    fn of(entry: Entry, text: &[u8], is_telling: bool) -> Self {
        Self { entry, along: Vec::new(), text: text.to_vec(), is_telling }
    }

    /// The row is this one's, who has these ids.
    pub(super) fn is_of(&self, ids: &[Subject]) -> bool {
        let (chat, user) = (self.entry.chat, self.entry.user);
        ids.iter().any(|&subject| {
            let named = match subject {
                Subject::User(UserId(id)) => user == Some(id) || chat == Some(id),
                Subject::Chat(ChatId(id)) => chat == Some(id),
            };
            named || (self.is_telling && mentions(&self.text, id_of(subject)))
        })
    }

    /// The row has an id in it, though it is somebody else's, or the plugin's.
    pub(super) fn mentions(&self, ids: &[Subject]) -> bool {
        mentions_any(&self.text, ids)
    }
}

fn id_of(subject: Subject) -> i64 {
    match subject {
        Subject::User(UserId(id)) | Subject::Chat(ChatId(id)) => id,
    }
}

/// Whether one of the ids stands in a text.
pub(super) fn mentions_any(text: &[u8], ids: &[Subject]) -> bool {
    ids.iter().any(|&subject| mentions(text, id_of(subject)))
}

/// Whether the number stands in a text, as a number of its own.
fn mentions(text: &[u8], id: i64) -> bool {
    let id = id.to_string();
    let is_part = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_digit());
    let is_sign = |byte: Option<&u8>| byte == Some(&b'-');
    text.windows(id.len()).enumerate().any(|(at, window)| {
        let before = at.checked_sub(1).and_then(|at| text.get(at));
        window == id.as_bytes() && !is_part(before) && !is_sign(before) && !is_part(text.get(at + id.len()))
    })
}

/// What a row is; `None` for what is nobody's, and for broadcasts, which hold many in one row.
pub(super) fn read(bot: BotId, key: &[u8], value: &[u8]) -> Option<Holding> {
    let kind = *key.first()?;
    if let Some((which, plugin, conversation)) = fsm::parse_key(key) {
        let kind = match which {
            b's' => Kind::State,
            b'a' => Kind::Aside,
            _ => Kind::Before,
        };
        let entry = Entry::new(kind, plugin.as_str()).at(&conversation);
        let Ok(row) = StateRow::decode(value) else { return Some(Holding::of(entry.bytes(value), value, false)) };
        let entry = Entry { name: Some(row.name), version: Some(row.version), expires: row.expires, ..entry };
        let along = end_of(bot, row.expires, key);
        return Some(Holding { along, ..Holding::of(entry.bytes(&row.bytes), &row.bytes, false) });
    }
    if let Some((plugin, scope, name)) = kv::parse_key(key) {
        let kind = if matches!(scope, Scope::Buttons(_)) { Kind::Button } else { Kind::Value };
        let entry = Entry::new(kind, plugin.as_str()).in_scope(scope);
        let row = ValueRow::decode(value).ok();
        let (expires, bytes) = row.map_or((0, value.to_vec()), |row| (row.expires, row.bytes));
        let text = [name.as_bytes(), b" ", &bytes].concat();
        let entry = Entry { key: Some(name), expires, ..entry }.bytes(&bytes);
        return Some(Holding { along: end_of(bot, expires, key), ..Holding::of(entry, &text, false) });
    }
    if let Some((_, due, id)) = timer::parse_key(key) {
        let row = TimerRow::decode(value).ok()?;
        let entry = Entry::new(Kind::Timer, row.plugin.as_str()).at(&row.conversation).number(Some(id));
        let along = row.keys(bot, due, id).to_vec();
        let entry = Entry { name: Some(row.name), expires: due, ..entry.bytes(&row.payload) };
        let entry = if entry.chat.is_none() { entry.in_lane(row.lane) } else { entry };
        return Some(Holding { along, ..Holding::of(entry, &row.payload, false) });
    }
    if let Some((plugin, id)) = job::parse_head(key) {
        let row = HeadRow::decode(value).ok()?;
        let entry = Entry::new(Kind::Job, plugin.as_str()).at(&row.conversation).number(Some(id));
        let entry = if entry.chat.is_none() { entry.in_lane(row.lane) } else { entry };
        let text = [row.reason.as_bytes(), b" ", row.key.as_deref().unwrap_or_default().as_bytes()].concat();
        let mut along = vec![job::payload_key(bot, &plugin, id)];
        along.extend(row.key.map(|key| job::unique_key(bot, &plugin, &key)));
        let says = json!({ "queued": row.queued, "attempts": row.attempts });
        return Some(Holding {
            along,
            ..Holding::of(Entry { name: Some(row.name), ..entry }.says(says), &text, false)
        });
    }
    let waits = inbox::parse_key(key).zip(InboxRow::decode(value).ok()).or_else(|| {
        let ParkedRow { lane, row } =
            ParkedRow::decode(value).ok().filter(|_| key.starts_with(&parked::bot_prefix(bot)))?;
        Some(((lane, number_of(key)?), row))
    });
    if let Some(((lane, number), row)) = waits {
        let entry = Entry::new(Kind::Event, plugin_of(&row.event)).in_lane(lane).number(Some(number));
        // A recurring timer whose event is gone goes on.
        let along = match &row.event {
            StoredEvent::Timer { plugin, id, .. } => vec![timer::waiting_key(bot, plugin, *id)],
            _ => Vec::new(),
        };
        return Some(Holding { along, ..of_event(entry, &row.event, &[], "") });
    }
    if let Some((lane, number)) = outbox::parse_key(key) {
        let row = OutboxRow::decode(value).ok()?;
        let entry = Entry::new(Kind::Call, row.plugin.as_str()).in_place(lane).number(Some(number));
        let says = json!({ "method": row.method, "params": parsed(&row.params), "queued": row.queued });
        let along = row.files.iter().map(|attached| file::reference(bot, attached)).collect();
        return Some(Holding { along, ..Holding::of(entry.says(says), row.params.as_bytes(), true) });
    }
    if key.starts_with(&dead::bot_prefix(bot)) {
        let row = DeadRow::decode(value).ok()?;
        let entry = Entry::new(Kind::Dead, &row.plugin).in_lane(row.lane).number(number_of(key));
        return Some(of_event(entry, &row.event, &row.rest, &row.reason));
    }
    if let Some(number) = unknown::parse_key(key) {
        let row = UnknownRow::decode(value).ok()?;
        let entry = Entry::new(Kind::Unknown, &row.plugin).in_place(row.lane).number(Some(number));
        let says = json!({ "method": row.method, "params": parsed(&row.params), "at": row.at });
        let text = format!("{} {}", row.params, row.reason);
        return Some(Holding::of(entry.says(says), text.as_bytes(), true));
    }
    if kind == b'c'
        && let Some(chat) = chat::parse_key(key)
    {
        let entry = Entry { chat: Some(chat.0), ..Entry::new(Kind::Chat, "") };
        let ChatRow { kind, title, username, seen, gone, .. } = ChatRow::decode(value).ok()?;
        let says = json!({ "type": kind, "title": title, "username": username, "seen": seen, "gone": gone });
        return Some(Holding::of(entry.says(says), &[], false));
    }
    if let Some(whose) = language::parse_key(key) {
        let LanguageRow { chosen, told } = LanguageRow::decode(value).ok()?;
        let mut entry = Entry::new(Kind::Language, "").says(json!({ "chosen": chosen, "told": told }));
        match whose {
            Whose::User(user) => entry.user = Some(user.0),
            Whose::Chat(chat) => entry.chat = Some(chat.0),
        }
        return Some(Holding::of(entry, &[], false));
    }
    if let Some(group) = moved::parse_key(key) {
        let row = MovedRow::decode(value).ok()?;
        let entry = Entry { chat: Some(group.0), ..Entry::new(Kind::Moved, "") };
        return Some(Holding::of(entry.says(json!({ "to": row.to.0 })), row.to.to_string().as_bytes(), true));
    }
    if let Some(chat) = album::parse_key(key) {
        let row = AlbumsRow::decode(value).ok()?;
        let entry = Entry { chat: Some(chat.0), ..Entry::new(Kind::Albums, "") };
        return Some(Holding::of(entry.says(row.given().collect()), &[], false));
    }
    if let Some((due, of)) = expiry::parse_key(key) {
        let entry = match (fsm::parse_key(of), kv::parse_key(of)) {
            (Some((_, plugin, conversation)), _) => Entry::new(Kind::Expiry, plugin.as_str()).at(&conversation),
            (_, Some((plugin, scope, name))) => {
                Entry { key: Some(name), ..Entry::new(Kind::Expiry, plugin.as_str()).in_scope(scope) }
            }
            (None, None) => return None,
        };
        let text = entry.key.clone().unwrap_or_default();
        return Some(Holding::of(Entry { expires: due, ..entry }, text.as_bytes(), false));
    }
    if let Some(lane) = flood::parse_key(key) {
        let row = FloodRow::decode(value).ok()?;
        let entry = Entry { expires: row.until, ..Entry::new(Kind::Flood, "").in_place(lane) };
        return Some(Holding::of(entry, &[], false));
    }
    if let Some(plugin) = version::parse_key(key) {
        let row = VersionRow::decode(value).ok()?;
        let reasons: Vec<_> = row.rejected.iter().map(|rejected| rejected.reason.as_str()).collect();
        let entry = Entry::new(Kind::Version, plugin.as_str()).says(json!({ "sent_back": reasons }));
        return Some(Holding::of(entry, reasons.join(" ").as_bytes(), true));
    }
    None
}

/// What stands in the store of the end of a row, which has this key.
fn end_of(bot: BotId, expires: u64, key: &[u8]) -> Vec<Vec<u8>> {
    if expires == 0 { Vec::new() } else { vec![expiry::key(bot, expires, key)] }
}

pub(super) fn plugin_of(event: &StoredEvent) -> &str {
    match event {
        StoredEvent::Update(_) | StoredEvent::Cancel { .. } => "",
        StoredEvent::Timer { plugin, .. } | StoredEvent::Job { plugin, .. } | StoredEvent::Expired { plugin, .. } => {
            plugin.as_str()
        }
    }
}

fn of_event(entry: Entry, event: &StoredEvent, rest: &[Vec<u8>], reason: &str) -> Holding {
    let entry = match event {
        StoredEvent::Timer { conversation, .. }
        | StoredEvent::Job { conversation, .. }
        | StoredEvent::Expired { conversation, .. }
            if entry.chat.is_none() =>
        {
            entry.at(conversation)
        }
        _ => entry,
    };
    let says = private::show(event, rest, true);
    let text = format!("{says} {reason}");
    Holding::of(entry.says(says), text.as_bytes(), true)
}

fn parsed(params: &str) -> Json {
    serde_json::from_str(params).unwrap_or_else(|_| params.into())
}

/// What a row that is of many is once somebody is taken out of it: its kind, the row, and how many times they stood in it.
pub(super) fn without(bot: BotId, key: &[u8], value: &[u8], ids: &[Subject]) -> Option<(Kind, Vec<u8>, u64)> {
    if version::parse_key(key).is_some() {
        let mut row = VersionRow::decode(value).ok()?;
        let mut n = 0;
        for rejected in row.rejected.iter_mut().filter(|rejected| mentions_any(rejected.reason.as_bytes(), ids)) {
            rejected.reason = FORGOTTEN.to_owned();
            n += 1;
        }
        return (n > 0).then(|| (Kind::Version, row.encode(), n));
    }
    without_recipient(bot, key, value, ids).map(|(row, n)| (Kind::Broadcast, row, n))
}

/// That somebody stands in a row of a broadcast.
pub(super) fn in_broadcast(bot: BotId, key: &[u8], value: &[u8], ids: &[Subject]) -> Option<Entry> {
    let (_, times) = without_recipient(bot, key, value, ids)?;
    let entry = Entry { chat: ids.first().copied().map(id_of), ..Entry::new(Kind::Broadcast, "") };
    Some(entry.number(broadcast::id_of(key)).says(json!({ "times": times })))
}

/// In a row of a broadcast places stay as they are: where the broadcast is, is counted in them.
fn without_recipient(bot: BotId, key: &[u8], value: &[u8], ids: &[Subject]) -> Option<(Vec<u8>, u64)> {
    let broadcast_id = broadcast::id_of(key)?;
    let nobody = Recipient::Chat(ChatId(0));
    let mut n = 0;
    let mut forget = |to: &mut Recipient| {
        if matches!(to, Recipient::Chat(ChatId(id)) if ids.iter().any(|&subject| id_of(subject) == *id)) {
            *to = nobody.clone();
            n += 1;
        }
    };
    let row = if key.starts_with(&broadcast::pieces_prefix(bot, broadcast_id)) {
        let mut piece = broadcast::decode_piece(value).ok()?;
        piece.iter_mut().for_each(&mut forget);
        broadcast::encode_piece(&piece)
    } else if key.starts_with(&broadcast::failures_prefix(bot, broadcast_id)) {
        let mut page = broadcast::decode_failures(value).ok()?;
        for failure in &mut page {
            forget(&mut failure.to);
            if mentions_any(failure.reason.as_bytes(), ids) {
                failure.reason.clear();
            }
        }
        broadcast::encode_failures(&page)
    } else if key.starts_with(&broadcast::open_prefix(bot, broadcast_id)) {
        let mut open = broadcast::OpenRow::decode(value).ok()?;
        forget(&mut open.to);
        open.encode()
    } else {
        return None;
    };
    (n > 0).then_some((row, n))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_found_as_a_number_of_its_own() {
        for (text, id, found) in [
            ("{\"id\":47}", 47, true),
            ("47", 47, true),
            ("147 471 -47", 47, false),
            ("x-47y", -47, true),
            ("-471", -47, false),
            ("", 47, false),
        ] {
            assert_eq!(mentions(text.as_bytes(), id), found, "{text}");
        }
    }
}
