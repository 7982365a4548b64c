//! Answers of `getChat` and `getChatMember`, kept for a while.
//!
//! Only what Telegram itself has answered to that question: what updates show of a chat is less, and a plugin is never
//! given less than it would have got. An answer is forgotten when its time is over, when an update shows that the chat, or
//! who is in it, has changed, and when the bot itself changes something there. That somebody is not, or not wholly, in a
//! chat is asked anew each time: they may be about to join.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::Chats;
use crate::domain::{ChatId, Lane};
use crate::telegram::is_of_name;

const MOST: usize = 4_096;
/// An administrator may be made one, or be none any more, without an update that the bot gets.
const MEMBERS_FOR: Duration = Duration::from_secs(60);

/// By the lane of the question: its chat, whether it was asked by number or by name. Of members also by their ids, and
/// only in chats that are asked for by their numbers, as updates name them.
#[derive(Default)]
pub(super) struct Answers {
    chats: Kept<Lane>,
    members: Kept<(Lane, i64)>,
}

struct Kept<K> {
    time: Duration,
    kept: HashMap<K, (Instant, String)>,
}

impl<K> Default for Kept<K> {
    fn default() -> Self {
        Self { time: Duration::ZERO, kept: HashMap::new() }
    }
}

impl Answers {
    pub(super) fn keep_for(&mut self, time: Duration) {
        self.chats = Kept { time, ..Kept::default() };
        self.members = Kept { time: time.min(MEMBERS_FOR), ..Kept::default() };
    }

    fn get(&self, lane: Lane, question: Question, now: Instant) -> Option<String> {
        match question {
            Question::Chat => self.chats.get(&lane, now),
            Question::Member(user) => self.members.get(&(lane, user), now),
        }
    }

    fn keep(&mut self, lane: Lane, question: Question, answer: &str, now: Instant) {
        match question {
            Question::Chat => self.chats.keep(lane, answer, now),
            Question::Member(user) if !is_of_name(lane) && is_settled(answer) => {
                self.members.keep((lane, user), answer, now);
            }
            Question::Member(_) => {}
        }
    }
}

impl<K: Eq + Hash> Kept<K> {
    fn get(&self, key: &K, now: Instant) -> Option<String> {
        let (until, answer) = self.kept.get(key)?;
        (*until > now).then(|| answer.clone())
    }

    fn keep(&mut self, key: K, answer: &str, now: Instant) {
        if self.time.is_zero() {
            return;
        }
        if self.kept.len() >= MOST {
            self.kept.retain(|_, (until, _)| *until > now);
        }
        if self.kept.len() < MOST {
            self.kept.insert(key, (now + self.time, answer.to_owned()));
        }
    }
}

/// A question that a kept answer can answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Question {
    /// For a chat.
    Chat,
    /// For somebody in it.
    Member(i64),
}

impl Question {
    /// Nothing but that must be asked for.
    fn of(method: &str, params: &str) -> Option<Self> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Params<'a> {
            #[serde(borrow)]
            #[expect(dead_code, reason = "its being there is what counts")]
            chat_id: &'a RawValue,
            user_id: Option<i64>,
        }
        let is = |name: &str| method.eq_ignore_ascii_case(name);
        if !is("getChat") && !is("getChatMember") {
            return None;
        }
        match serde_json::from_str(params).ok()? {
            Params { user_id: None, .. } if is("getChat") => Some(Self::Chat),
            Params { user_id: Some(user), .. } if is("getChatMember") => Some(Self::Member(user)),
            Params { .. } => None,
        }
    }
}

/// Whether it says that somebody is in the chat, with all that they may do there.
fn is_settled(member: &str) -> bool {
    #[derive(Deserialize)]
    struct Member {
        status: String,
    }
    let status = serde_json::from_str::<Member>(member).map(|member| member.status);
    status.is_ok_and(|status| ["creator", "administrator", "member"].contains(&status.as_str()))
}

impl Chats {
    /// What Telegram has answered to this question a short while ago.
    #[must_use]
    pub fn full(&self, lane: Lane, method: &str, params: &str) -> Option<String> {
        let question = Question::of(method, params)?;
        let answer = self.answers().get(self.lane(lane), question, Instant::now());
        let result = if answer.is_some() { "hit" } else { "miss" };
        metrics::counter!("botyard_chat_cache_total", "result" => result).increment(1);
        answer
    }

    /// A call in this lane has succeeded: what it may have changed is forgotten, and whose name it was is learned.
    pub fn succeeded(&self, lane: Lane, method: &str, result: &[u8]) {
        self.learn_from_answer(lane, method, result);
        if may_change(method) {
            self.forget(self.lane(lane));
        }
        if may_change_members(method) {
            self.forget_members(self.lane(lane));
        }
    }

    /// Telegram's answer to a call of a plugin, which is kept if it is one that is.
    pub fn keep_answer(&self, lane: Lane, method: &str, params: &str, result: &str) {
        if let Some(question) = Question::of(method, params) {
            self.answers().keep(self.lane(lane), question, result, Instant::now());
        }
    }

    /// An update shows that the chat may not be what it was.
    pub(super) fn forget_answer(&self, chat: ChatId) {
        self.forget(Lane::Chat(chat));
    }

    /// Who is what in the chat may have changed.
    pub(super) fn forget_members(&self, lane: Lane) {
        self.answers().members.kept.retain(|(chat, _), _| *chat != lane);
    }

    fn forget(&self, lane: Lane) {
        self.answers().chats.kept.remove(&lane);
    }
}

/// Whether a call can change what `getChat` answers. What only sends, asks or answers can't.
fn may_change(method: &str) -> bool {
    let method = method.to_ascii_lowercase();
    !["send", "get", "answer", "forward", "copy"].iter().any(|start| method.starts_with(start))
}

/// Whether a call can change who is what in a chat: `promoteChatMember`, `setChatAdministratorCustomTitle` and the like.
fn may_change_members(method: &str) -> bool {
    let method = method.to_ascii_lowercase();
    !method.starts_with("get")
        && ["chatmember", "chatadministrator", "joinrequest"].iter().any(|part| method.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_plain_question_is_answered_from_memory() {
        for (method, params, expected) in [
            ("getChat", r#"{"chat_id":5}"#, Some(Question::Chat)),
            ("getchat", r#"{"chat_id":"@x"}"#, Some(Question::Chat)),
            ("getChat", r#"{"chat_id":5,"full":true}"#, None),
            ("getChat", r#"{"chat_id":5,"user_id":7}"#, None),
            ("getChat", "{}", None),
            ("getChatMember", r#"{"chat_id":5}"#, None),
            ("getChatMember", r#"{"chat_id":5,"user_id":7}"#, Some(Question::Member(7))),
            ("getChatMember", r#"{"chat_id":5,"user_id":"7"}"#, None),
            ("getChatMember", r#"{"chat_id":5,"user_id":7,"more":1}"#, None),
            ("getChatMemberCount", r#"{"chat_id":5}"#, None),
        ] {
            assert_eq!(Question::of(method, params), expected, "{method} {params}");
        }
    }

    #[test]
    fn what_changes_members_is_told_from_what_does_not() {
        for (method, expected) in [
            ("promoteChatMember", true),
            ("restrictchatmember", true),
            ("banChatMember", true),
            ("unbanChatMember", true),
            ("setChatAdministratorCustomTitle", true),
            ("approveChatJoinRequest", true),
            ("getChatMember", false),
            ("getChatAdministrators", false),
            ("deleteMessage", false),
            ("setChatTitle", false),
        ] {
            assert_eq!(may_change_members(method), expected, "{method}");
        }
    }

    #[test]
    fn who_is_not_wholly_there_is_asked_for_each_time() {
        let (now, lane, name) = (Instant::now(), Lane::Chat(ChatId(-5)), crate::telegram::lane_of_name("@x"));
        let mut answers = Answers::default();
        answers.keep_for(Duration::from_secs(600));
        for (lane, answer, kept) in [
            (lane, r#"{"status":"creator"}"#, true),
            (lane, r#"{"status":"administrator","can_be_edited":false}"#, true),
            (lane, r#"{"status":"member"}"#, true),
            (lane, r#"{"status":"left"}"#, false),
            (lane, r#"{"status":"kicked"}"#, false),
            (lane, r#"{"status":"restricted","is_member":true}"#, false),
            (lane, "true", false),
            (name, r#"{"status":"member"}"#, false),
        ] {
            answers.members.kept.clear();
            answers.keep(lane, Question::Member(7), answer, now);
            let get = |after| answers.get(lane, Question::Member(7), now + after).is_some();
            assert_eq!(get(Duration::from_secs(59)), kept, "{answer}");
            assert!(!get(Duration::from_secs(60)), "a minute at most");
        }
    }

    #[test]
    fn what_changes_a_chat_is_told_from_what_does_not() {
        for (method, expected) in [
            ("setChatTitle", true),
            ("pinChatMessage", true),
            ("unpinAllChatMessages", true),
            ("deleteChatPhoto", true),
            ("leaveChat", true),
            ("sendMessage", false),
            ("getChat", false),
            ("answerCallbackQuery", false),
            ("forwardMessages", false),
        ] {
            assert_eq!(may_change(method), expected, "{method}");
        }
    }

    #[test]
    fn an_answer_ends_with_its_time_and_memory_is_bounded() {
        let (now, lane) = (Instant::now(), |id| Lane::Chat(ChatId(id)));
        let mut answers = Answers::default();
        let get = |answers: &Answers, id, now| answers.get(lane(id), Question::Chat, now);
        answers.keep(lane(1), Question::Chat, "a", now);
        assert_eq!(get(&answers, 1, now), None, "nothing is kept for no time");
        answers.keep_for(Duration::from_secs(10));
        for id in 0..2 * MOST as i64 {
            answers.keep(lane(id), Question::Chat, "a", now);
        }
        assert_eq!(answers.chats.kept.len(), MOST);
        assert_eq!(get(&answers, 1, now + Duration::from_secs(9)).as_deref(), Some("a"));
        let later = now + Duration::from_secs(10);
        assert_eq!(get(&answers, 1, later), None);
        answers.keep(lane(-1), Question::Chat, "b", later);
        assert_eq!(answers.chats.kept.len(), 1);
    }
}
