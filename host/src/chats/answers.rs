//! Answers of `getChat`, kept for a while.
//!
//! Only what Telegram itself has answered to that question: what updates show of a chat is less, and a plugin is never
//! given less than it would have got. An answer is forgotten when its time is over, when an update shows that the chat
//! has changed, and when the bot itself changes something there.

use std::collections::HashMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::Chats;
use crate::domain::{ChatId, Lane};

const MOST: usize = 4_096;

/// By the lane of the question: its chat, whether it was asked by number or by name.
#[derive(Default)]
pub(super) struct Answers {
    time: Duration,
    kept: HashMap<Lane, (Instant, String)>,
}

impl Answers {
    pub(super) fn keep_for(&mut self, time: Duration) {
        self.time = time;
        self.kept.clear();
    }

    fn get(&self, lane: Lane, now: Instant) -> Option<String> {
        let (until, answer) = self.kept.get(&lane)?;
        (*until > now).then(|| answer.clone())
    }

    fn keep(&mut self, lane: Lane, answer: &str, now: Instant) {
        if self.time.is_zero() {
            return;
        }
        if self.kept.len() >= MOST {
            self.kept.retain(|_, (until, _)| *until > now);
        }
        if self.kept.len() < MOST {
            self.kept.insert(lane, (now + self.time, answer.to_owned()));
        }
    }
}

/// Nothing but the chat is asked for.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Question<'a> {
    #[serde(borrow)]
    #[expect(dead_code, reason = "its being there is what counts")]
    chat_id: &'a RawValue,
}

/// True for a question that a kept answer can answer.
fn is_question(method: &str, params: &str) -> bool {
    method.eq_ignore_ascii_case("getChat") && serde_json::from_str::<Question<'_>>(params).is_ok()
}

impl Chats {
    /// What Telegram has answered to this question a short while ago.
    #[must_use]
    pub fn full(&self, lane: Lane, method: &str, params: &str) -> Option<String> {
        if !is_question(method, params) {
            return None;
        }
        let answer = self.answers().get(self.lane(lane), Instant::now());
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
    }

    /// Telegram's answer to a call of a plugin, which is kept if it is one that is.
    pub fn keep_answer(&self, lane: Lane, method: &str, params: &str, result: &str) {
        if is_question(method, params) {
            self.answers().keep(self.lane(lane), result, Instant::now());
        }
    }

    /// An update shows that the chat may not be what it was.
    pub(super) fn forget_answer(&self, chat: ChatId) {
        self.forget(Lane::Chat(chat));
    }

    fn forget(&self, lane: Lane) {
        let mut answers = self.answers();
        if !answers.kept.is_empty() {
            answers.kept.remove(&lane);
        }
    }
}

/// Whether a call can change what `getChat` answers. What only sends, asks or answers can't.
fn may_change(method: &str) -> bool {
    let method = method.to_ascii_lowercase();
    !["send", "get", "answer", "forward", "copy"].iter().any(|start| method.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_plain_question_is_answered_from_memory() {
        for (method, params, expected) in [
            ("getChat", r#"{"chat_id":5}"#, true),
            ("getchat", r#"{"chat_id":"@x"}"#, true),
            ("getChat", r#"{"chat_id":5,"full":true}"#, false),
            ("getChat", "{}", false),
            ("getChatMember", r#"{"chat_id":5}"#, false),
        ] {
            assert_eq!(is_question(method, params), expected, "{method} {params}");
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
        answers.keep(lane(1), "a", now);
        assert_eq!(answers.get(lane(1), now), None, "nothing is kept for no time");
        answers.keep_for(Duration::from_secs(10));
        for id in 0..2 * MOST as i64 {
            answers.keep(lane(id), "a", now);
        }
        assert_eq!(answers.kept.len(), MOST);
        assert_eq!(answers.get(lane(1), now + Duration::from_secs(9)).as_deref(), Some("a"));
        let later = now + Duration::from_secs(10);
        assert_eq!(answers.get(lane(1), later), None);
        answers.keep(lane(-1), "b", later);
        assert_eq!(answers.kept.len(), 1);
    }
}
