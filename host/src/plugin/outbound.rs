//! Calls to the Bot API whose answer a run waits for.
//!
//! They take effect at once, so they are the one thing that a second run of the same event must not repeat:
//! the [`Journal`] remembers them, and answers for them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::domain::PluginName;
use crate::files::{Fetched, Files, Pin};
use crate::store::rows::file::Attached;
use crate::telegram::Refusal;

/// Makes API calls for plugins; the sender does.
pub trait Outbound: Send + Sync {
    /// Calls a method with parameters that are a JSON object, and answers with the `result`, JSON too. Must
    /// answer within `deadline`.
    fn call(
        &self,
        plugin: &PluginName,
        method: &str,
        params: String,
        deadline: Duration,
    ) -> BoxFuture<'_, Result<String, CallError>>;

    /// Shows a chat action with these parameters now and again, for as long as the future is kept; it ends by itself
    /// when that is of no use any more.
    fn keep_acting(&self, params: String) -> BoxFuture<'static, ()>;

    /// Where the files of calls are kept; none where calls can carry none.
    fn files(&self) -> Option<&Files> {
        None
    }

    /// As [`Outbound::call`], with files.
    fn call_with_files(
        &self,
        _plugin: &PluginName,
        _method: &str,
        _params: String,
        _files: Vec<Attachment>,
        _deadline: Duration,
    ) -> BoxFuture<'_, Result<String, CallError>> {
        Box::pin(std::future::ready(Err(CallError::Unreachable(NO_FILES.to_owned()))))
    }

    /// Fetches a file from Telegram, at most `limit` bytes. What is not there in time may be at the next attempt.
    fn fetch(
        &self,
        _file_id: String,
        _limit: u64,
        _deadline: Duration,
    ) -> BoxFuture<'_, Result<Arc<Fetched>, CallError>> {
        Box::pin(std::future::ready(Err(CallError::Unreachable(NO_FILES.to_owned()))))
    }
}

/// What those answer that carry no files.
pub(super) const NO_FILES: &str = "this host carries no files";

/// A file of a call, which is there as long as this lives.
#[derive(Clone)]
pub struct Attachment {
    /// What is sent.
    pub attached: Attached,
    /// Keeps its content.
    pub pin: Arc<Pin>,
}

/// Why a call did not succeed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// Telegram refused; the same call would fail the same way.
    #[error("refused: {description} [{code}]")]
    Refused {
        /// Telegram's code.
        code: u16,
        /// Telegram's description.
        description: String,
        /// What kind of a no it is.
        kind: Refusal,
    },
    /// Flood control: not before this time is over.
    #[error("flooded: not before {0:?}")]
    Flooded(Duration),
    /// It may or may not have taken effect.
    #[error("unknown outcome: {0}")]
    UnknownOutcome(String),
    /// It did not reach Telegram.
    #[error("unreachable: {0}")]
    Unreachable(String),
    /// It is not granted.
    #[error("denied: {0}")]
    Denied(String),
    /// The method or its parameters can't be right.
    #[error("invalid: {0}")]
    Invalid(String),
}

/// The calls that the runs of one event have made. Clones share it; every attempt at the event must be given
/// the same one.
#[derive(Debug, Clone, Default)]
pub struct Journal(Arc<Mutex<Vec<Entry>>>);

#[derive(Debug)]
struct Entry {
    plugin: PluginName,
    method: String,
    params: String,
    /// None while the call is under way, and for ever if its run ended before the answer came.
    answer: Option<Result<String, CallError>>,
}

/// A run's place in the journal: which entries it has been answered from.
#[derive(Debug, Default)]
pub(super) struct Cursor(Vec<usize>);

impl Journal {
    /// What an earlier attempt was answered, if it made this call. A call made twice counts twice. `now` gives the
    /// parameters of a call that names chats by ids that are not theirs any more.
    pub(super) fn recall(
        &self,
        cursor: &mut Cursor,
        plugin: &PluginName,
        method: &str,
        params: &str,
        mut now: impl FnMut(&str) -> Option<String>,
    ) -> Option<Result<String, CallError>> {
        let entries = self.entries();
        let mut wanted = None;
        let found = entries.iter().enumerate().position(|(index, entry)| {
            if cursor.0.contains(&index) || entry.plugin != *plugin || entry.method != method {
                return false;
            }
            if entry.params == params {
                return true;
            }
            let wanted: &String = wanted.get_or_insert_with(|| now(params).unwrap_or_else(|| params.to_owned()));
            now(&entry.params).as_ref().unwrap_or(&entry.params) == wanted
        })?;
        cursor.0.push(found);
        let lost = "an earlier attempt at this event ended before the answer came";
        Some(entries[found].answer.clone().unwrap_or_else(|| Err(CallError::UnknownOutcome(lost.to_owned()))))
    }

    /// Notes that a call begins; answers with its place.
    pub(super) fn begin(&self, cursor: &mut Cursor, plugin: &PluginName, method: &str, params: &str) -> usize {
        let mut entries = self.entries();
        entries.push(Entry {
            plugin: plugin.clone(),
            method: method.to_owned(),
            params: params.to_owned(),
            answer: None,
        });
        cursor.0.push(entries.len() - 1);
        entries.len() - 1
    }

    /// Notes the answer. A call that certainly had no effect is forgotten: it may be made again.
    pub(super) fn finish(&self, place: usize, answer: &Result<String, CallError>) {
        let mut entries = self.entries();
        match answer {
            Ok(_) | Err(CallError::Refused { .. } | CallError::UnknownOutcome(_)) => {
                entries[place].answer = Some(answer.clone());
            }
            // The places of the others must stay, so the entry does, with a method that no call has.
            Err(_) => entries[place].method.clear(),
        }
    }

    /// True if a call that was answered is such a one.
    pub fn any(&self, is: impl Fn(&str, &str, &Result<String, CallError>) -> bool) -> bool {
        let entries = self.entries();
        entries.iter().any(|entry| entry.answer.as_ref().is_some_and(|answer| is(&entry.method, &entry.params, answer)))
    }

    fn entries(&self) -> std::sync::MutexGuard<'_, Vec<Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const METHOD: &str = "sendMessage";

    fn make(journal: &Journal, cursor: &mut Cursor, params: &str, answer: Result<String, CallError>) {
        let plugin = PluginName::new("shop");
        assert_eq!(journal.recall(cursor, &plugin, METHOD, params, |_| None), None);
        let place = journal.begin(cursor, &plugin, METHOD, params);
        journal.finish(place, &answer);
    }

    #[test]
    fn answers_each_call_of_an_earlier_attempt_once() {
        let journal = Journal::default();
        let plugin = PluginName::new("shop");
        let mut first = Cursor::default();
        make(&journal, &mut first, "{}", Ok("1".into()));
        make(&journal, &mut first, "{}", Ok("2".into()));

        let mut second = Cursor::default();
        let mut recall = |params| journal.recall(&mut second, &plugin, METHOD, params, |_| None);
        assert_eq!(recall("{\"a\":1}"), None);
        assert_eq!(recall("{}"), Some(Ok("1".into())));
        assert_eq!(recall("{}"), Some(Ok("2".into())));
        assert_eq!(recall("{}"), None);
        assert_eq!(journal.recall(&mut Cursor::default(), &PluginName::new("other"), METHOD, "{}", |_| None), None);
    }

    #[test]
    fn forgets_what_had_no_effect_and_keeps_what_may_have_had() {
        for (error, kept) in [
            (CallError::Refused { code: 400, description: "no".into(), kind: Refusal::Call }, true),
            (CallError::UnknownOutcome("cut".into()), true),
            (CallError::Flooded(Duration::from_secs(3)), false),
            (CallError::Unreachable("down".into()), false),
            (CallError::Denied("no".into()), false),
        ] {
            let journal = Journal::default();
            make(&journal, &mut Cursor::default(), "{}", Err(error.clone()));
            let again = journal.recall(&mut Cursor::default(), &PluginName::new("shop"), METHOD, "{}", |_| None);
            assert_eq!(again, kept.then_some(Err(error)));
        }
    }

    #[test]
    fn a_call_that_names_a_group_by_its_old_id_is_the_same_call() {
        let journal = Journal::default();
        let plugin = PluginName::new("shop");
        make(&journal, &mut Cursor::default(), r#"{"chat_id":-5}"#, Ok("1".into()));
        let now = |params: &str| params.contains("-5}").then(|| params.replace("-5}", "-1005}"));
        for (params, found) in
            [(r#"{"chat_id":-1005}"#, true), (r#"{"chat_id":-5}"#, true), (r#"{"chat_id":-6}"#, false)]
        {
            let again = journal.recall(&mut Cursor::default(), &plugin, METHOD, params, now);
            assert_eq!(again.is_some(), found, "{params}");
        }
    }

    #[test]
    fn a_call_whose_run_ended_early_has_an_unknown_outcome() {
        let journal = Journal::default();
        let plugin = PluginName::new("shop");
        journal.begin(&mut Cursor::default(), &plugin, METHOD, "{}");
        let again = journal.recall(&mut Cursor::default(), &plugin, METHOD, "{}", |_| None);
        assert!(matches!(again, Some(Err(CallError::UnknownOutcome(_)))));
    }
}
