//! What a run was answered from outside: kept for whoever takes notes, or given again in a replay.
//!
//! It holds calls of the Bot API and HTTP requests, whatever answered them. Files that were fetched are not on it.

mod content;

use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::{CallError, http};
use crate::config::redaction::redact;

pub use self::content::Content;

/// What those are told who ask for more than was recorded.
pub(super) const NOT_ON_TAPE: &str = "this was not recorded";

/// A tape. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Tape(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    /// What is played, and whether it was asked for; none while a tape is recorded.
    played: Option<Vec<(Asked, bool)>>,
    recorded: Vec<Asked>,
}

/// Something that was asked outside.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    /// A method of the Bot API, or an HTTP method and a URL.
    pub what: String,
    /// The parameters; of a request, a hash of its headers and body.
    pub how: Content,
    /// What came back.
    pub answer: Answer,
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The result of a call.
    Result(Content),
    /// A call did not succeed.
    Refused(CallError),
    /// The answer to a request.
    Response {
        /// Its status.
        status: u16,
        /// Its headers.
        headers: Vec<(String, String)>,
        /// Its body.
        body: Content,
        /// Where it came from in the end.
        url: String,
    },
    /// There was none.
    Failed(http::Error),
}

impl From<&Result<String, CallError>> for Answer {
    fn from(answer: &Result<String, CallError>) -> Self {
        match answer {
            Ok(result) => Self::Result(Content::of(result.as_bytes())),
            Err(error) => Self::Refused(error.clone()),
        }
    }
}

impl From<&Result<http::Response, http::Error>> for Answer {
    fn from(answer: &Result<http::Response, http::Error>) -> Self {
        match answer {
            Ok(http::Response { status, headers, body, url }) => {
                Self::Response { status: *status, headers: headers.clone(), body: Content::of(body), url: url.clone() }
            }
            Err(error) => Self::Failed(error.clone()),
        }
    }
}

impl Tape {
    /// One that answers what was recorded, and nothing else.
    #[must_use]
    pub fn playing(asked: Vec<Asked>) -> Self {
        let played = Some(asked.into_iter().map(|asked| (asked, false)).collect());
        Self(Arc::new(Mutex::new(Inner { played, recorded: Vec::new() })))
    }

    /// All that was asked so far, in order.
    #[must_use]
    pub fn recorded(&self) -> Vec<Asked> {
        self.inner().recorded.clone()
    }

    /// Whether it answers, instead of listening.
    pub(super) fn plays(&self) -> bool {
        self.inner().played.is_some()
    }

    /// Writes down what was asked and answered.
    pub(super) fn record(&self, what: &str, how: &str, answer: Answer) {
        let (what, how) = (redact(what).into_owned(), Content::of(how.as_bytes()));
        self.inner().recorded.push(Asked { what, how, answer });
    }

    /// The recorded answer: to the very same question, else to the next one of its kind, which then differs.
    pub(super) fn play(&self, what: &str, how: &str) -> Option<Answer> {
        let (what, how) = (redact(what), Content::of(how.as_bytes()));
        let mut inner = self.inner();
        let played = inner.played.as_mut()?;
        let open = |exact: bool| {
            played.iter().position(|(asked, used)| !used && asked.what == what && (!exact || asked.how == how))
        };
        let place = open(true).or_else(|| open(false))?;
        played[place].1 = true;
        Some(played[place].0.answer.clone())
    }

    fn inner(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(how: &str, answer: &str) -> Asked {
        let (how, answer) = (Content::of(how.as_bytes()), Answer::Result(Content::of(answer.as_bytes())));
        Asked { what: "getChat".to_owned(), how, answer }
    }

    #[test]
    fn an_answer_is_given_once_and_to_its_own_question_first() {
        let tape = Tape::playing(vec![asked("1", "one"), asked("2", "two"), asked("2", "two again")]);
        let play = |what, how| match tape.play(what, how) {
            Some(Answer::Result(answer)) => Some(answer.text().to_owned()),
            _ => None,
        };
        assert_eq!(play("getChat", "2").as_deref(), Some("two"));
        assert_eq!(play("getMe", "1"), None);
        assert_eq!(play("getChat", "3").as_deref(), Some("one"), "the next of its kind");
        assert_eq!(play("getChat", "2").as_deref(), Some("two again"));
        assert_eq!(play("getChat", "2"), None);
        assert!(tape.plays() && !Tape::default().plays());
        assert_eq!(Tape::default().play("getChat", "1"), None);
    }
}
