//! What the host reads of an update: just enough to route it.
//!
//! Nothing here can fail on a field: what is absent, of another type or unknown reads as `None`, and the raw
//! bytes go on to the plugin untouched. Values are skipped, not parsed, so depth and size cost nothing.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{ChatId, EventLane, KeyStrategy, Lane, LaneRule, Part, ThreadId, UpdateId, UserId};

/// Every kind of update that the Bot API has, as of 10.3. Others are passed on as they come: this list is for asking and
/// for advice.
pub const UPDATE_KINDS: [&str; 27] = [
    "message",
    "edited_message",
    "channel_post",
    "edited_channel_post",
    "business_connection",
    "business_message",
    "edited_business_message",
    "deleted_business_messages",
    "message_reaction",
    "message_reaction_count",
    "inline_query",
    "chosen_inline_result",
    "callback_query",
    "shipping_query",
    "pre_checkout_query",
    "purchased_paid_media",
    "poll",
    "poll_answer",
    "my_chat_member",
    "chat_member",
    "chat_join_request",
    "chat_boost",
    "removed_chat_boost",
    "guest_message",
    "managed_bot",
    "subscription",
    "stopped_message_generation",
];

/// An update's parts that routing needs, borrowed from the bytes that Telegram sent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct UpdateView<'a> {
    /// `None` where it is missing or not a whole number.
    pub id: Option<UpdateId>,
    /// The name of the field that holds the content: `message`, `callback_query`, ...; empty where there is none.
    pub kind: Cow<'a, str>,
    /// The chat it happened in.
    pub chat: Option<ChatId>,
    /// `private`, `group`, `supergroup` or `channel`.
    pub chat_type: Option<Cow<'a, str>>,
    /// The forum topic.
    pub thread: Option<ThreadId>,
    /// The message it is, or is about.
    pub message_id: Option<i64>,
    /// Who did it.
    pub user: Option<UserId>,
    /// The user's language, as Telegram tells it.
    pub language: Option<Cow<'a, str>>,
    /// Text or caption.
    pub text: Option<Cow<'a, str>>,
    /// What the pressed button carries.
    pub callback_data: Option<Cow<'a, str>>,
    /// The group that has become a supergroup, and that supergroup: what a service message in either says.
    pub moved: Option<(ChatId, ChatId)>,
    /// The chat's object as it stands, unread.
    pub chat_object: Option<&'a str>,
    /// The whole content, unread.
    pub content: &'a str,
    /// The album that a new message is part of.
    pub album: Option<Cow<'a, str>>,
}

/// A command at the beginning of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandView<'a> {
    /// As written, without the slash.
    pub name: &'a str,
    /// The bot it is addressed to, without the `@`.
    pub bot: Option<&'a str>,
    /// What follows, trimmed.
    pub args: &'a str,
}

impl<'a> UpdateView<'a> {
    /// Reads an update.
    ///
    /// # Errors
    /// When the text is not a JSON object.
    pub fn parse(raw: &'a str) -> Result<Self, serde_json::Error> {
        let top: Top<'a> = serde_json::from_str(raw)?;
        let mut view = Self { id: top.id.and_then(integer).map(UpdateId), ..Self::default() };
        if let Some((kind, content)) = top.content {
            view.kind = kind;
            view.read(content);
        }
        Ok(view)
    }

    fn read(&mut self, content: &'a RawValue) {
        self.content = content.get();
        let content = Fields::of(content);
        // A button's message tells where it was pressed; its sender is the bot.
        let place = content.message.map(Fields::of);
        let place = place.as_ref().unwrap_or(&content);
        if let Some(object) = place.chat.or(content.voter_chat).or(content.actor_chat) {
            let chat = Fields::of(object);
            self.chat_object = Some(object.get());
            self.chat = chat.id.and_then(integer).map(ChatId);
            self.chat_type = chat.kind.and_then(string);
        }
        // Outside of forums the same field tells a chain of replies, which is no place to send to.
        if place.is_topic.is_some_and(|is_topic| is_topic.get() == "true") {
            self.thread = place.thread.and_then(integer).map(ThreadId);
        }
        self.message_id = place.message_id.and_then(integer);
        if let Some(user) = content.from.or(content.user).map(Fields::of) {
            self.user = user.id.and_then(integer).map(UserId);
            self.language = user.language.and_then(string);
        }
        if content.message.is_none() {
            self.text = content.text.or(content.caption).and_then(string);
        }
        self.callback_data = content.data.and_then(string);
        let other = |id: Option<&'a RawValue>| id.and_then(integer).map(ChatId);
        self.moved = match (self.chat, other(content.moved_to), other(content.moved_from)) {
            (Some(group), Some(to), _) => Some((group, to)),
            (Some(to), None, Some(group)) => Some((group, to)),
            _ => None,
        };
        if matches!(&*self.kind, "message" | "channel_post" | "business_message") {
            self.album = content.album.and_then(string).filter(|album| !album.is_empty());
        }
    }

    /// Why it can't be handled as an update, if that is so.
    #[must_use]
    pub fn defect(&self) -> Option<&'static str> {
        match self.id {
            None => Some("its update_id is missing or not a whole number"),
            Some(_) if self.kind.is_empty() => Some("it has no content"),
            Some(_) => None,
        }
    }

    /// The group that has become a supergroup, and that supergroup, if that is what this update is about.
    #[must_use]
    pub fn tells_of_a_move(&self) -> Option<(ChatId, ChatId)> {
        self.moved.filter(|_| self.kind == "message")
    }

    /// The lane that the event waits in, where conversations are what `key` says.
    #[must_use]
    pub fn lane(&self, key: KeyStrategy) -> EventLane {
        if let (Some(chat), true) = (self.chat, self.tells_of_a_move().is_some() && key != KeyStrategy::Chat) {
            return EventLane { place: Lane::Chat(chat), part: Part::Move };
        }
        let expires_within_seconds = matches!(&*self.kind, "pre_checkout_query" | "shipping_query" | "inline_query");
        match self.user {
            Some(user) if expires_within_seconds => EventLane::whole(Lane::Urgent(user)),
            user => {
                // An album's messages have to find each other, also where nothing else needs an order.
                let key = if self.album.is_some() { key.join(KeyStrategy::UserInTopic) } else { key };
                EventLane::of(key, self.chat, user, self.thread, self.id.map_or(0, |id| id.0))
            }
        }
    }

    /// The lane in which this message ends a conversation, if it is the command to do so.
    #[must_use]
    pub fn control_lane(&self, rule: &LaneRule) -> Option<EventLane> {
        let wanted = rule.cancel.as_deref().filter(|_| self.kind == "message")?;
        let (user, command) = (self.user?, self.command()?);
        let place = self.lane(rule.key).place;
        command.name.eq_ignore_ascii_case(wanted).then_some(EventLane { place, part: Part::Control(user) })
    }

    /// The command that a message's text begins with.
    #[must_use]
    pub fn command(&self) -> Option<CommandView<'_>> {
        if !matches!(&*self.kind, "message" | "channel_post" | "business_message") {
            return None;
        }
        let rest = self.text.as_deref()?.strip_prefix('/')?;
        let (head, args) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let (name, bot) = match head.split_once('@') {
            Some((name, bot)) => (name, Some(bot)),
            None => (head, None),
        };
        let is_word = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        is_word.then(|| CommandView { name, bot, args: args.trim() })
    }
}

impl CommandView<'_> {
    /// False for a command that names another bot. Names compare without case; an unknown own name accepts all.
    #[must_use]
    pub fn is_for(&self, username: Option<&str>) -> bool {
        match (self.bot, username) {
            (Some(bot), Some(own)) => bot.eq_ignore_ascii_case(own),
            _ => true,
        }
    }
}

/// `update_id` and the one other field.
#[derive(Default)]
struct Top<'a> {
    id: Option<&'a RawValue>,
    content: Option<(Cow<'a, str>, &'a RawValue)>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Top<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TopVisitor;
        impl<'de> Visitor<'de> for TopVisitor {
            type Value = Top<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an update object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut top = Top::default();
                while let Some(Key(key)) = map.next_key()? {
                    if key == "update_id" {
                        top.id = Some(map.next_value()?);
                    } else if top.content.is_none() {
                        top.content = Some((key, map.next_value()?));
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(top)
            }
        }
        deserializer.deserialize_map(TopVisitor)
    }
}

/// A key, borrowed where it has no escapes.
struct Key<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Key<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = Key<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E>(self, key: &'de str) -> Result<Self::Value, E> {
                Ok(Key(Cow::Borrowed(key)))
            }

            fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
                Ok(Key(Cow::Owned(key.to_owned())))
            }
        }
        deserializer.deserialize_str(KeyVisitor)
    }
}

/// The fields of any Telegram object that routing looks at, unparsed.
#[derive(Default, Clone, Copy)]
struct Fields<'a> {
    id: Option<&'a RawValue>,
    kind: Option<&'a RawValue>,
    chat: Option<&'a RawValue>,
    from: Option<&'a RawValue>,
    user: Option<&'a RawValue>,
    voter_chat: Option<&'a RawValue>,
    actor_chat: Option<&'a RawValue>,
    message: Option<&'a RawValue>,
    message_id: Option<&'a RawValue>,
    thread: Option<&'a RawValue>,
    is_topic: Option<&'a RawValue>,
    language: Option<&'a RawValue>,
    text: Option<&'a RawValue>,
    caption: Option<&'a RawValue>,
    data: Option<&'a RawValue>,
    moved_to: Option<&'a RawValue>,
    moved_from: Option<&'a RawValue>,
    album: Option<&'a RawValue>,
}

impl<'a> Fields<'a> {
    /// Empty for anything but an object.
    fn of(value: &'a RawValue) -> Self {
        serde_json::from_str(value.get()).unwrap_or_default()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;
        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Fields::default();
                while let Some(Key(key)) = map.next_key()? {
                    let slot = match &*key {
                        "id" => &mut fields.id,
                        "type" => &mut fields.kind,
                        "chat" => &mut fields.chat,
                        "from" => &mut fields.from,
                        "user" => &mut fields.user,
                        "voter_chat" => &mut fields.voter_chat,
                        "actor_chat" => &mut fields.actor_chat,
                        "message" => &mut fields.message,
                        "message_id" => &mut fields.message_id,
                        "message_thread_id" => &mut fields.thread,
                        "is_topic_message" => &mut fields.is_topic,
                        "language_code" => &mut fields.language,
                        "text" => &mut fields.text,
                        "caption" => &mut fields.caption,
                        "data" => &mut fields.data,
                        "migrate_to_chat_id" => &mut fields.moved_to,
                        "migrate_from_chat_id" => &mut fields.moved_from,
                        "media_group_id" => &mut fields.album,
                        _ => {
                            map.next_value::<IgnoredAny>()?;
                            continue;
                        }
                    };
                    *slot = Some(map.next_value()?);
                }
                Ok(fields)
            }
        }
        deserializer.deserialize_map(FieldsVisitor)
    }
}

/// A whole number, in whatever notation.
fn integer(value: &RawValue) -> Option<i64> {
    let text = value.get().trim_matches('"');
    text.parse().ok().or_else(|| {
        let number: f64 = text.parse().ok()?;
        // Every id has at most 52 significant bits, so a float that is whole holds it exactly.
        let is_exact = number.fract() == 0.0 && number.abs() < 9_007_199_254_740_992.0;
        #[expect(clippy::cast_possible_truncation, reason = "checked to be whole and within 53 bits")]
        is_exact.then_some(number as i64)
    })
}

fn string(value: &RawValue) -> Option<Cow<'_, str>> {
    serde_json::from_str::<Key<'_>>(value.get()).ok().map(|Key(text)| text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(raw: &str) -> UpdateView<'_> {
        UpdateView::parse(raw).unwrap()
    }

    #[test]
    fn reads_a_message() {
        let view = parse(
            r#"{"update_id":7,"message":{"message_id":5,"message_thread_id":9,"is_topic_message":true,"from":{"id":7999999999999,"language_code":"uz"},
                "chat":{"id":-1001557912345,"type":"supergroup"},"text":"/start@MyBot  now 👋"}}"#,
        );
        assert_eq!(view.id, Some(UpdateId(7)));
        assert_eq!(view.kind, "message");
        assert_eq!(view.chat, Some(ChatId(-1_001_557_912_345)));
        assert_eq!(view.chat_type.as_deref(), Some("supergroup"));
        assert_eq!(view.thread, Some(ThreadId(9)));
        assert_eq!(view.user, Some(UserId(7_999_999_999_999)));
        assert_eq!(view.language.as_deref(), Some("uz"));
        let command = view.command().unwrap();
        assert_eq!(command, CommandView { name: "start", bot: Some("MyBot"), args: "now 👋" });
        assert!(command.is_for(Some("mybot")) && command.is_for(None) && !command.is_for(Some("other")));
        assert_eq!(view.lane(KeyStrategy::Chat), EventLane::whole(Lane::Chat(ChatId(-1_001_557_912_345))));
    }

    #[test]
    fn a_callback_is_where_its_message_is_and_from_who_pressed() {
        let view = parse(
            r#"{"callback_query":{"id":"1","from":{"id":3},"data":"menu:back",
                "message":{"message_id":8,"from":{"id":99},"chat":{"id":4,"type":"private"},"text":"Menu"}},"update_id":1}"#,
        );
        assert_eq!((view.chat, view.user), (Some(ChatId(4)), Some(UserId(3))));
        assert_eq!(view.message_id, Some(8));
        assert_eq!(view.callback_data.as_deref(), Some("menu:back"));
        assert_eq!(view.text, None, "the text of the button's message is not what the user said");
    }

    #[test]
    fn either_service_message_tells_of_a_group_that_moved() {
        let moved = |fields: &str| parse(&format!(r#"{{"update_id":1,"message":{{{fields}}}}}"#)).moved;
        let (group, to) = (ChatId(-5), ChatId(-1_000_000_000_009));
        assert_eq!(moved(r#""chat":{"id":-5},"migrate_to_chat_id":-1000000000009"#), Some((group, to)));
        assert_eq!(moved(r#""chat":{"id":-1000000000009},"migrate_from_chat_id":-5"#), Some((group, to)));
        assert_eq!(moved(r#""chat":{"id":-5},"reply_to_message":{"migrate_to_chat_id":-1000000000009}"#), None);
        assert_eq!(moved(r#""chat":{"id":-5},"migrate_to_chat_id":"soon""#), None);
        assert!(group.is_basic_group() && !group.is_supergroup() && to.is_supergroup() && !to.is_basic_group());
        assert!(!ChatId(5).is_basic_group() && !ChatId(-1_000_000_000_000).is_supergroup());
    }

    #[test]
    fn lanes_of_kinds_without_a_chat() {
        let lane = |raw| parse(raw).lane(KeyStrategy::UserInChat).place;
        assert_eq!(lane(r#"{"update_id":1,"inline_query":{"id":"1","from":{"id":3}}}"#), Lane::Urgent(UserId(3)));
        assert_eq!(lane(r#"{"update_id":1,"chosen_inline_result":{"from":{"id":3}}}"#), Lane::User(UserId(3)));
        assert_eq!(lane(r#"{"update_id":1,"poll_answer":{"user":{"id":3}}}"#), Lane::User(UserId(3)));
        assert_eq!(lane(r#"{"update_id":1,"poll_answer":{"voter_chat":{"id":-3}}}"#), Lane::Chat(ChatId(-3)));
        assert_eq!(
            lane(r#"{"update_id":1,"channel_post":{"chat":{"id":-7},"sender_chat":{"id":-7}}}"#),
            Lane::Chat(ChatId(-7))
        );
        assert_eq!(lane(r#"{"update_id":1,"poll":{"id":"3"}}"#), Lane::Other);
    }

    #[test]
    fn no_field_can_make_it_fail() {
        for raw in [
            r"{}",
            r#"{"update_id":"x"}"#,
            r#"{"update_id":1,"message":null}"#,
            r#"{"update_id":1,"message":[1,2]}"#,
            r#"{"update_id":1,"message":{"chat":5,"from":"me","text":{"a":1}}}"#,
            r#"{"update_id":1,"message":{"chat":{"id":1e400},"text":"\ud83d"}}"#,
            r#"{"update_id":1,"something_new":{"chat":{"id":5}},"another":{}}"#,
        ] {
            parse(raw);
        }
        assert_eq!(parse(r#"{"update_id":1.0e3,"m":{}}"#).id, Some(UpdateId(1000)));
        assert_eq!(parse(r#"{"update_id":"12"}"#).id, Some(UpdateId(12)));
        assert_eq!(parse(r#"{"update_id":1.5}"#).id, None);
        assert_eq!(parse(r#"{"update_id":1,"m\u0065ssage":{"t\u0065xt":"\ud83d\ude00"}}"#).text.as_deref(), Some("😀"));
    }

    #[test]
    fn depth_costs_nothing() {
        let bomb = format!(
            r#"{{"update_id":1,"message":{{"x":{}{},"text":"hi"}}}}"#,
            "[".repeat(100_000),
            "]".repeat(100_000)
        );
        assert_eq!(parse(&bomb).text.as_deref(), Some("hi"));
    }

    proptest! {
        /// Any bytes, and any field with any value: reading ends, and whatever is read has a lane.
        #[test]
        fn whatever_comes_is_read(bytes in prop::collection::vec(any::<u8>(), 0..200), field in "[a-z_]{0,9}", value in ".{0,40}") {
            let texts = [
                String::from_utf8_lossy(&bytes).into_owned(),
                format!(r#"{{"update_id":{value},"message":{{"{field}":{value}}}}}"#),
                serde_json::json!({ "update_id": 7, "message": { &field: value, "chat": { &field: value } } }).to_string(),
            ];
            for text in &texts {
                let Ok(view) = UpdateView::parse(text) else { continue };
                for key in KeyStrategy::ALL {
                    let lane = view.lane(key);
                    prop_assert_eq!(EventLane::decode(&lane.encode()), Some(lane));
                }
                prop_assert!(view.command().is_none_or(|command| !command.name.is_empty()));
            }
        }
    }

    #[test]
    fn what_is_an_order_to_the_host() {
        let rule = LaneRule { key: KeyStrategy::UserInChat, cancel: Some("cancel".to_owned()) };
        let lane = |kind: &str, text: &str| {
            let update = serde_json::json!({ "update_id": 1, kind: { "chat": { "id": -5 }, "from": { "id": 7 }, "text": text } });
            parse(&update.to_string()).control_lane(&rule).map(|lane| lane.to_string())
        };
        for text in ["/cancel", "/CANCEL now", "/cancel@some_bot"] {
            assert_eq!(lane("message", text).as_deref(), Some("chat -5, control by user 7"), "{text}");
        }
        for (kind, text) in [("message", "/cancelled"), ("message", "cancel"), ("channel_post", "/cancel")] {
            assert_eq!(lane(kind, text), None, "{kind} {text}");
        }
        let nobody = parse(r#"{"update_id":1,"message":{"chat":{"id":-5},"text":"/cancel"}}"#);
        assert_eq!(nobody.control_lane(&rule), None);
    }

    #[test]
    fn only_new_messages_are_part_of_an_album() {
        let album = |kind: &str| {
            let update = serde_json::json!({ "update_id": 1, kind: { "chat": { "id": 5 }, "media_group_id": "9" } });
            parse(&update.to_string()).album.map(Cow::into_owned)
        };
        assert_eq!(album("message").as_deref(), Some("9"));
        assert_eq!(album("channel_post").as_deref(), Some("9"));
        assert_eq!(album("edited_message"), None, "an edit is no new picture");
    }

    #[test]
    fn a_move_is_found_by_all_of_the_chat_where_its_people_have_lanes() {
        let lane = |key| {
            let update =
                r#"{"update_id":1,"message":{"chat":{"id":-1000000000009},"from":{"id":7},"migrate_from_chat_id":-5}}"#;
            parse(update).lane(key)
        };
        let place = Lane::Chat(ChatId(-1_000_000_000_009));
        assert_eq!(lane(KeyStrategy::Chat), EventLane::whole(place), "everything of the chat is in order");
        for key in KeyStrategy::ALL.into_iter().filter(|key| *key != KeyStrategy::Chat) {
            assert_eq!(lane(key), EventLane { place, part: Part::Move }, "{key:?}");
        }
    }

    #[test]
    fn the_messages_of_an_album_share_a_lane_whatever_the_key() {
        let lane = |id: i64, album: Option<&str>, key| {
            let update = serde_json::json!({
                "update_id": id, "message": { "chat": { "id": -5 }, "from": { "id": 7 }, "media_group_id": album },
            });
            parse(&update.to_string()).lane(key)
        };
        for key in KeyStrategy::ALL {
            assert_eq!(lane(1, Some("9"), key), lane(2, Some("9"), key), "{key:?}");
        }
        assert_ne!(lane(1, None, KeyStrategy::Unordered), lane(2, None, KeyStrategy::Unordered));
    }

    #[test]
    fn what_is_no_command() {
        for text in ["start", "/", "/ start", "//x", "/é", "/a-b", " /start", "/@bot"] {
            let raw = serde_json::json!({ "update_id": 1, "message": { "text": text } }).to_string();
            assert_eq!(parse(&raw).command(), None, "{text}");
        }
    }
}
