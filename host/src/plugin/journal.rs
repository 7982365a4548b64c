//! What the runs of one event have done at once, and no roll-back undoes: a second run is answered from here instead of
//! doing it again.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::CallError;
use super::http;
use crate::domain::PluginName;

/// The calls and requests that the runs of one event have made. Clones share it; every attempt at the event must be
/// given the same one.
#[derive(Debug, Clone, Default)]
pub struct Journal {
    pub(super) calls: Log<Result<String, CallError>>,
    pub(super) http: Log<Result<http::Response, http::Error>>,
    /// Of the runs that were told of a failure, one per failed run.
    told: Arc<OnceLock<Box<Journal>>>,
}

/// Calls of one kind, which are answered with an `A`.
#[derive(Debug)]
pub(super) struct Log<A>(Arc<Mutex<Vec<Entry<A>>>>);

#[derive(Debug)]
struct Entry<A> {
    plugin: PluginName,
    /// What was called, and with what.
    what: String,
    how: String,
    /// The attempt that made it.
    attempt: u32,
    /// Whether it answers for later attempts too; else for other runs of the same attempt only.
    settled: bool,
    /// None while the call is under way, and for ever if its run ended before the answer came.
    answer: Option<A>,
    /// It certainly had no effect. The places of the others must stay, so the entry does.
    forgotten: bool,
}

/// A run's place in a log: which entries it has been answered from.
#[derive(Debug, Default)]
pub(super) struct Cursor(Vec<usize>);

/// A call in words: method, parameters, and the answer where there is one.
pub(in crate::plugin) type Told = (String, String, Option<Result<String, String>>);

impl Journal {
    /// True if a call of the Bot API that was answered is such a one.
    pub fn any_call(&self, is: impl Fn(&str, &str, &Result<String, CallError>) -> bool) -> bool {
        self.calls.any(&is) || self.told.get().is_some_and(|told| told.calls.any(&is))
    }

    /// The journal of the runs that are told that a run of this one's has failed. It is kept with this one.
    #[must_use]
    pub fn told_of_failure(&self) -> Self {
        Self::clone(self.told.get_or_init(Box::default))
    }

    /// The calls of the Bot API so far.
    #[must_use]
    pub fn calls_told(&self) -> Vec<Told> {
        let told = |entry: &Entry<Result<String, CallError>>| {
            let answer = entry.answer.clone().map(|answer| answer.map_err(|error| error.to_string()));
            (entry.what.clone(), entry.how.clone(), answer)
        };
        self.calls.entries().iter().map(told).collect()
    }
}

impl<A> Entry<A> {
    /// Whether it answers for a run of this plugin.
    fn counts(&self, attempt: u32, plugin: &PluginName) -> bool {
        !self.forgotten && (self.settled || self.attempt == attempt) && self.plugin == *plugin
    }
}

impl<A> Clone for Log<A> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<A> Default for Log<A> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<A: Clone> Log<A> {
    /// What an earlier run was answered, if it made this call; the inner `None` where the answer is not known. A call
    /// made twice counts twice. `now` gives the parameters of a call that names chats by ids that are not theirs any
    /// more.
    pub(super) fn recall(
        &self,
        cursor: &mut Cursor,
        attempt: u32,
        plugin: &PluginName,
        (what, how): (&str, &str),
        mut now: impl FnMut(&str) -> Option<String>,
    ) -> Option<Option<A>> {
        let entries = self.entries();
        let mut wanted = None;
        let found = entries.iter().enumerate().position(|(index, entry)| {
            let counts = entry.counts(attempt, plugin) && entry.what == what;
            if !counts || cursor.0.contains(&index) {
                return false;
            }
            if entry.how == how {
                return true;
            }
            let wanted: &String = wanted.get_or_insert_with(|| now(how).unwrap_or_else(|| how.to_owned()));
            now(&entry.how).as_ref().unwrap_or(&entry.how) == wanted
        })?;
        cursor.0.push(found);
        Some(entries[found].answer.clone())
    }

    /// Notes that a call begins; answers with its place.
    pub(super) fn begin(&self, cursor: &mut Cursor, attempt: u32, plugin: &PluginName, what: &str, how: &str) -> usize {
        let mut entries = self.entries();
        // Only the places of what was forgotten are needed any longer, and who looks on has seen it by now.
        for entry in entries.iter_mut().filter(|entry| entry.forgotten && entry.attempt != attempt) {
            (entry.how, entry.answer) = (String::new(), None);
        }
        entries.push(Entry {
            plugin: plugin.clone(),
            what: what.to_owned(),
            how: how.to_owned(),
            attempt,
            settled: true,
            answer: None,
            forgotten: false,
        });
        cursor.0.push(entries.len() - 1);
        entries.len() - 1
    }

    /// Notes the answer. A call that certainly had no effect (`kept` is false) is forgotten: it may be made again. One
    /// that is not `settled` is made again by later attempts only.
    pub(super) fn finish(&self, place: usize, answer: &A, kept: bool, settled: bool) {
        let entry = &mut self.entries()[place];
        entry.answer = Some(answer.clone());
        entry.forgotten = !kept;
        entry.settled = settled;
    }

    /// How many calls a run of this plugin would have been answered from the log for, and did not make.
    pub(super) fn left_over(&self, cursor: &Cursor, attempt: u32, plugin: &PluginName) -> usize {
        let entries = self.entries();
        let counts = |entry: &Entry<A>| entry.counts(attempt, plugin);
        entries.iter().enumerate().filter(|(index, entry)| counts(entry) && !cursor.0.contains(index)).count()
    }

    /// True if a call that was answered is such a one.
    fn any(&self, is: impl Fn(&str, &str, &A) -> bool) -> bool {
        let is = |entry: &Entry<A>| entry.answer.as_ref().is_some_and(|answer| is(&entry.what, &entry.how, answer));
        self.entries().iter().any(is)
    }

    fn entries(&self) -> std::sync::MutexGuard<'_, Vec<Entry<A>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHAT: &str = "sendMessage";

    fn make(log: &Log<u32>, attempt: u32, how: &str, answer: u32, (kept, settled): (bool, bool)) {
        let (plugin, mut cursor) = (PluginName::new("shop"), Cursor::default());
        let place = log.begin(&mut cursor, attempt, &plugin, WHAT, how);
        log.finish(place, &answer, kept, settled);
    }

    #[test]
    fn answers_each_call_of_an_earlier_run_once() {
        let log = Log::default();
        let plugin = PluginName::new("shop");
        make(&log, 1, "{}", 1, (true, true));
        make(&log, 1, "{}", 2, (true, true));

        let mut second = Cursor::default();
        assert_eq!(log.left_over(&second, 2, &plugin), 2);
        let mut recall = |how| log.recall(&mut second, 2, &plugin, (WHAT, how), |_| None);
        assert_eq!(recall("{\"a\":1}"), None);
        assert_eq!(recall("{}"), Some(Some(1)));
        assert_eq!(recall("{}"), Some(Some(2)));
        assert_eq!(recall("{}"), None);
        assert_eq!(log.left_over(&second, 2, &plugin), 0);
        let other = PluginName::new("other");
        assert_eq!(log.recall(&mut Cursor::default(), 1, &other, (WHAT, "{}"), |_| None), None);
    }

    #[test]
    fn what_had_no_effect_is_forgotten_and_what_is_not_settled_is_for_its_own_attempt() {
        for (kept, settled, same_attempt, next_attempt) in [
            (true, true, true, true),
            (true, false, true, false),
            (false, true, false, false),
            (false, false, false, false),
        ] {
            let log = Log::default();
            make(&log, 1, "{}", 7, (kept, settled));
            let plugin = PluginName::new("shop");
            let again =
                |attempt| log.recall(&mut Cursor::default(), attempt, &plugin, (WHAT, "{}"), |_| None) == Some(Some(7));
            assert_eq!((again(1), again(2)), (same_attempt, next_attempt), "{kept} {settled}");
        }
    }

    #[test]
    fn of_what_was_forgotten_the_next_attempt_keeps_no_text() {
        let log = Log::default();
        make(&log, 1, "{\"text\":1}", 1, (false, true));
        make(&log, 1, "{\"text\":2}", 2, (true, true));
        make(&log, 2, "{\"text\":3}", 3, (false, true));
        let entries = log.entries();
        let kept: Vec<_> = entries.iter().map(|entry| (&*entry.how, entry.answer)).collect();
        assert_eq!(kept, [("", None), ("{\"text\":2}", Some(2)), ("{\"text\":3}", Some(3))]);
    }

    #[test]
    fn a_call_whose_run_ended_early_is_not_made_again() {
        let log: Log<u32> = Log::default();
        let plugin = PluginName::new("shop");
        log.begin(&mut Cursor::default(), 1, &plugin, WHAT, "{}");
        assert_eq!(log.recall(&mut Cursor::default(), 2, &plugin, (WHAT, "{}"), |_| None), Some(None));
    }

    #[test]
    fn a_call_that_names_a_group_by_its_old_id_is_the_same_call() {
        let log = Log::default();
        make(&log, 1, r#"{"chat_id":-5}"#, 1, (true, true));
        let now = |params: &str| params.contains("-5}").then(|| params.replace("-5}", "-1005}"));
        for (params, found) in
            [(r#"{"chat_id":-1005}"#, true), (r#"{"chat_id":-5}"#, true), (r#"{"chat_id":-6}"#, false)]
        {
            let again = log.recall(&mut Cursor::default(), 2, &PluginName::new("shop"), (WHAT, params), now);
            assert_eq!(again.is_some(), found, "{params}");
        }
    }
}
