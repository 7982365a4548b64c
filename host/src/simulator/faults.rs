//! What goes wrong, by script: which calls are hit, and how. Deciding is pure; `http.rs` does it to the socket.
//!
//! A rule counts the calls that match its method and chat; the first rule whose turn it is wins, and those after it
//! do not see the call. Chances are drawn from the rule's seed and count alone, so that a run can be repeated.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// One rule. As JSON: `{"method":"send*","chat":7,"nth":3,"do":{"kind":"flood","retry_after":5}}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// The method, in any case; `*` stands for any letters.
    #[serde(default = "any")]
    pub method: String,
    /// Only calls for this chat.
    #[serde(default)]
    pub chat: Option<i64>,
    /// Only the nth matching call, counted from 1.
    #[serde(default)]
    pub nth: Option<u64>,
    /// Only every nth matching call.
    #[serde(default)]
    pub every: Option<u64>,
    /// Only with this chance, from 0 to 1.
    #[serde(default)]
    pub probability: Option<f64>,
    /// Makes the chance repeatable.
    #[serde(default)]
    pub seed: u64,
    /// Only so many times.
    #[serde(default)]
    pub times: Option<u64>,
    /// What happens.
    #[serde(rename = "do")]
    pub action: Action,
}

fn any() -> String {
    "*".to_owned()
}

impl Fault {
    /// Hits every call of a method; narrow it down with the fields.
    #[must_use]
    pub fn on(method: &str, action: Action) -> Self {
        Self {
            method: method.to_owned(),
            chat: None,
            nth: None,
            every: None,
            probability: None,
            seed: 0,
            times: None,
            action,
        }
    }

    /// Hits only the first so many matching calls.
    #[must_use]
    pub fn times(self, times: u64) -> Self {
        Self { times: Some(times), ..self }
    }

    /// Hits only calls for this chat.
    #[must_use]
    pub fn chat(self, chat: i64) -> Self {
        Self { chat: Some(chat), ..self }
    }

    /// Hits only the nth matching call.
    #[must_use]
    pub fn nth(self, nth: u64) -> Self {
        Self { nth: Some(nth), ..self }
    }

    /// Hits every nth matching call.
    #[must_use]
    pub fn every(self, every: u64) -> Self {
        Self { every: Some(every), ..self }
    }

    /// Hits by chance.
    #[must_use]
    pub fn probability(self, probability: f64, seed: u64) -> Self {
        Self { probability: Some(probability), seed, ..self }
    }
}

/// What goes wrong. `applied`: the call takes effect, and only its answer suffers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Action {
    /// 429 with `retry_after`, in body and header; the call has no effect.
    Flood {
        /// In seconds.
        retry_after: u64,
    },
    /// Any other answer: a proxy's HTML page, say.
    Answer {
        /// The HTTP status.
        status: u16,
        /// The body, word for word.
        body: String,
        /// Its type.
        #[serde(default = "html")]
        content_type: String,
        /// See [`Action`].
        #[serde(default)]
        applied: bool,
    },
    /// The call takes effect, but of its answer only so many bytes of the body arrive; `content-length` says more.
    Cut {
        /// How many.
        after: usize,
    },
    /// The connection is reset instead of an answer.
    Reset {
        /// See [`Action`].
        #[serde(default)]
        applied: bool,
    },
    /// The answer comes late.
    Stall {
        /// By how much; in JSON in seconds.
        #[serde(rename = "seconds", with = "seconds")]
        time: Duration,
        /// See [`Action`]: whether it waits after the effect or before.
        #[serde(default)]
        applied: bool,
    },
    /// The request's body is taken in no faster than this. It, and the two that follow, are for calls of any chat: they
    /// happen before the call can be read.
    Slow {
        /// The rate.
        bytes_per_second: u64,
    },
    /// After so many bytes of the request's body nothing more is taken in, and nothing ever comes.
    Hang {
        /// How many.
        after: u64,
    },
    /// After so many bytes of the request's body the connection is reset.
    HangUp {
        /// How many.
        after: u64,
    },
    /// The connection stays open and nothing ever comes.
    Silence {
        /// See [`Action`].
        #[serde(default)]
        applied: bool,
    },
}

fn html() -> String {
    "text/html".to_owned()
}

impl Action {
    fn is_of_body(&self) -> bool {
        matches!(self, Self::Slow { .. } | Self::Hang { .. } | Self::HangUp { .. })
    }

    /// 502 with a page of a proxy.
    #[must_use]
    pub fn bad_gateway() -> Self {
        let body = "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n</html>\r\n".to_owned();
        Self::Answer { status: 502, body, content_type: html(), applied: false }
    }

    /// 500 as Telegram words it while it restarts.
    #[must_use]
    pub fn internal_error() -> Self {
        let body = r#"{"ok":false,"error_code":500,"description":"Internal Server Error: restart"}"#.to_owned();
        Self::Answer { status: 500, body, content_type: "application/json".to_owned(), applied: false }
    }
}

mod seconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer, de};

    pub(super) fn serialize<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(time.as_secs_f64())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        Duration::try_from_secs_f64(f64::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

/// A rule and what it has seen.
#[derive(Debug, Clone, Serialize)]
pub struct Rule {
    /// The rule.
    pub fault: Fault,
    /// Calls that matched method and chat.
    pub seen: u64,
    /// Calls that it hit.
    pub hit: u64,
}

impl Rule {
    pub(super) fn new(fault: Fault) -> Self {
        Self { fault, seen: 0, hit: 0 }
    }

    /// Counts the call if it matches; true if it is hit.
    fn hits(&mut self, method: &str, chat: Option<i64>) -> bool {
        let fault = &self.fault;
        let matches = fault.chat.is_none_or(|wanted| chat == Some(wanted)) && glob(&fault.method, method);
        if !matches {
            return false;
        }
        self.seen += 1;
        let hit = fault.times.is_none_or(|times| self.hit < times)
            && fault.nth.is_none_or(|nth| nth == self.seen)
            && fault.every.is_none_or(|every| every > 0 && self.seen.is_multiple_of(every))
            && fault.probability.is_none_or(|chance| draw(fault.seed, self.seen) < chance);
        self.hit += u64::from(hit);
        hit
    }
}

/// All rules.
#[derive(Debug, Default)]
pub(super) struct Faults {
    pub(super) rules: Vec<Rule>,
}

impl Faults {
    pub(super) fn decide(&mut self, method: &str, chat: Option<i64>) -> Option<Action> {
        self.first(method, chat, false)
    }

    /// What is to happen while a body is taken in.
    pub(super) fn decide_body(&mut self, method: &str) -> Option<Action> {
        self.first(method, None, true)
    }

    fn first(&mut self, method: &str, chat: Option<i64>, of_body: bool) -> Option<Action> {
        let mut rules = self.rules.iter_mut().filter(|rule| rule.fault.action.is_of_body() == of_body);
        rules.find_map(|rule| rule.hits(method, chat).then_some(&rule.fault.action)).cloned()
    }
}

/// A number from 0 to 1 that depends on nothing but its arguments (splitmix64).
fn draw(seed: u64, count: u64) -> f64 {
    let mut z = seed.wrapping_add(count.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ (z >> 31)) as f64 / u64::MAX as f64
}

/// Compares without regard to case; `*` stands for anything.
fn glob(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.to_ascii_lowercase(), text.to_ascii_lowercase());
    let Some((head, tail)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut rest) = text.strip_prefix(head) else { return false };
    let mut parts = tail.split('*').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = rest.split_at(at + part.len()).1,
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hits(fault: Fault, calls: &[(&str, i64)]) -> Vec<usize> {
        let mut faults = Faults { rules: vec![Rule::new(fault)] };
        let hit = |(at, &(method, chat)): (usize, &(&str, i64))| faults.decide(method, Some(chat)).map(|_| at + 1);
        calls.iter().enumerate().filter_map(hit).collect()
    }

    #[test]
    fn rules_choose_their_calls() {
        let calls = [("sendMessage", 1), ("sendPhoto", 2), ("getUpdates", 0), ("sendMessage", 2), ("SENDMESSAGE", 1)];
        let reset = Action::Reset { applied: false };
        let on = |method: &str| Fault::on(method, reset.clone());
        assert_eq!(hits(on("*"), &calls), [1, 2, 3, 4, 5]);
        assert_eq!(hits(on("sendMessage"), &calls), [1, 4, 5]);
        assert_eq!(hits(on("send*"), &calls), [1, 2, 4, 5]);
        assert_eq!(hits(on("*nd*age"), &calls), [1, 4, 5]);
        assert_eq!(hits(on("send*").chat(2), &calls), [2, 4]);
        assert_eq!(hits(on("send*").nth(2), &calls), [2]);
        assert_eq!(hits(on("*").every(2), &calls), [2, 4]);
        assert_eq!(hits(on("*").times(2), &calls), [1, 2]);
        assert_eq!(hits(on("sendMessages"), &calls), [0; 0]);
    }

    #[test]
    fn chances_are_fair_and_repeatable() {
        let calls = vec![("sendMessage", 1); 2000];
        let chance = |seed| hits(Fault::on("*", Action::internal_error()).probability(0.25, seed), &calls);
        assert_eq!(chance(7), chance(7));
        assert_ne!(chance(7), chance(8));
        assert!((400..600).contains(&chance(7).len()), "{}", chance(7).len());
    }

    #[test]
    fn the_first_rule_whose_turn_it_is_wins() {
        let mut faults = Faults::default();
        faults.rules.push(Rule::new(Fault::on("*", Action::bad_gateway()).times(1)));
        faults.rules.push(Rule::new(Fault::on("*", Action::Flood { retry_after: 3 })));
        assert_eq!(faults.decide("getMe", None), Some(Action::bad_gateway()));
        assert_eq!(faults.decide("getMe", None), Some(Action::Flood { retry_after: 3 }));
    }

    #[test]
    fn rules_are_written_as_json() {
        let json = r#"{"method":"send*","nth":2,"do":{"kind":"stall","seconds":0.5}}"#;
        let fault: Fault = serde_json::from_str(json).unwrap();
        let stall = Action::Stall { time: Duration::from_millis(500), applied: false };
        assert_eq!(fault, Fault::on("send*", stall).nth(2));
        assert!(serde_json::from_str::<Fault>(r#"{"methd":"x","do":{"kind":"reset"}}"#).is_err());
    }
}
