//! A new version on trial: which conversations it is given, and when it is sent back. The decisions are pure; a
//! [`Trial`] only keeps count.
//!
//! A version is sent back when it does worse than the one before it, which must be told apart from an event that no
//! version could handle. So an event that it fails twice is given to the old version: if that one handles it, the new
//! one is to blame. Where the two write states of different versions the old one knows less of them, so it is asked last, in the
//! place of the event's last attempt. It serves for good when it has shown that it handles events; where there were none,
//! it is watched for longer, though not for ever.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::domain::Conversation;
use crate::plugin::{Plugin, Spent};
use crate::store::rows::version::PaceRow;

/// Failed attempts of the new version after which the old one is asked.
const ATTEMPTS: u32 = 2;
/// So many events that fail are no accident,
const MANY: usize = 3;
/// and so many are a part of all, where there were
const MORE: usize = 5;
/// so many.
const SAMPLE: u64 = 20;
/// As large a part may fail, or
const TOLERATED: f64 = 0.1;
/// so many times the part that failed before.
const MORE_OFTEN: f64 = 2.0;
/// Before that nothing is said about speed.
const ENOUGH: u64 = 30;
/// So much more time than before is a defect,
const SLOWER: u32 = 5;
/// unless it is nothing to speak of: of processor time, and of time in all.
const NOTICEABLE: Duration = Duration::from_millis(20);
const NOTICEABLE_IN_ALL: Duration = Duration::from_secs(1);
/// Events that a version must have handled before it serves for good.
const PROOF: u64 = 3;
/// How often its probation begins anew where there were fewer.
const LONGEST: u32 = 10;

/// A version that is watched while it serves.
pub struct Trial {
    plugin: Arc<Plugin>,
    share: u8,
    /// Whether the old version knows the states that the new one writes.
    comparable: bool,
    /// Failed attempts after which it is asked.
    patience: u32,
    usual: Usual,
    /// States that it does not take over, of how many.
    lost: (u32, u32),
    tally: Mutex<Tally>,
}

/// Who handles an event of a plugin with a version on trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chosen {
    /// The version on trial.
    New,
    /// The one before it, whose turn it is.
    Old,
    /// The one before it, after the new one has failed.
    SecondOpinion,
}

/// How a run ended, as far as its version is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// The event is handled.
    Well(Spent),
    /// Well, but the event was not for it; or it only looked on.
    Passed(Spent),
    /// The plugin failed.
    Badly,
}

/// What follows when the probation of a version is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// It serves for good.
    Promote,
    /// It has not shown enough: it is watched for as long again.
    WatchOn,
    /// It does not, for this reason.
    RollBack(String),
}

/// How the old version does, as far as that is known.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Usual {
    /// Of a run on average, where there were enough: processor time, and time in all.
    pace: Option<(Duration, Duration)>,
    /// The part of its events that it failed.
    failed: f64,
}

impl Usual {
    fn of(pace: PaceRow) -> Self {
        let mean = |nanos: u64| Duration::from_nanos(nanos / pace.runs.max(1));
        let events = pace.handled + pace.failed;
        Self {
            pace: (pace.runs >= ENOUGH).then(|| (mean(pace.cpu), mean(pace.time))),
            failed: if events >= SAMPLE { share(pace.failed, events) } else { 0.0 },
        }
    }

    /// Of the time in all of one run.
    fn is_slow(&self, time: Duration) -> bool {
        self.pace.is_some_and(|(_, usual)| time > NOTICEABLE_IN_ALL && time > usual * SLOWER)
    }

    fn tolerates(&self, failed: usize, events: u64) -> bool {
        share(failed as u64, events) <= (self.failed * MORE_OFTEN).max(TOLERATED)
    }
}

#[expect(clippy::cast_precision_loss, reason = "it is about a part of them, roughly")]
fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

impl Trial {
    /// Watches `plugin` in the place of `old`, with `share` percent of the conversations, where an event has `max_attempts`.
    #[must_use]
    pub fn new(plugin: Arc<Plugin>, old: &Plugin, share: u8, max_attempts: u32) -> Self {
        let comparable = plugin.manifest.state_version == old.manifest.state_version;
        Self {
            comparable,
            patience: patience(comparable, max_attempts),
            usual: Usual::of(old.pace()),
            lost: (0, 0),
            plugin,
            share,
            tally: Mutex::default(),
        }
    }

    /// So many of the states that there were it does not take over.
    #[must_use]
    pub fn losing(self, lost: u32, states: u32) -> Self {
        Self { lost: (lost, states), ..self }
    }

    /// The version on trial.
    #[must_use]
    pub fn plugin(&self) -> &Arc<Plugin> {
        &self.plugin
    }

    /// Its percentage of the conversations.
    #[must_use]
    pub fn share(&self) -> u8 {
        self.share
    }

    pub(super) fn choose(&self, conversation: &Conversation, attempts: u32) -> Chosen {
        match is_within(conversation, self.share) {
            false => Chosen::Old,
            true if attempts >= self.patience => Chosen::SecondOpinion,
            true => Chosen::New,
        }
    }

    /// Counts a run; answers with the reason if that is enough to send the version back. It says so once.
    pub(super) fn note(&self, event: u64, chosen: Chosen, ended: Ended) -> Option<String> {
        let mut tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        tally.count(event, chosen, ended, &self.usual);
        if tally.is_judged {
            return None;
        }
        let reason = tally.judge(&self.usual, self.comparable);
        tally.is_judged = reason.is_some();
        reason
    }

    /// What follows when its probation is over.
    #[must_use]
    pub fn end(&self) -> End {
        let mut tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        tally.probations += 1;
        tally.end(&self.usual)
    }

    /// How it has done so far, in words.
    #[must_use]
    pub fn so_far(&self) -> String {
        let tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        let (handled, failed) = (tally.handled, tally.failed.len());
        let more =
            if tally.probations > 0 { format!(", and is watched until it has handled {PROOF}") } else { String::new() };
        let lost = match self.lost {
            (0, _) => String::new(),
            (lost, states) => format!("; {lost} of {states} conversations begin anew"),
        };
        format!("has handled {handled} and failed {failed}{more}{lost}")
    }
}

/// Failed attempts of the new version after which the old one is asked: always before the event is given up.
fn patience(comparable: bool, max_attempts: u32) -> u32 {
    let last = max_attempts.saturating_sub(1).max(1);
    if comparable { last.min(ATTEMPTS) } else { last }
}

/// Whether a conversation is among the first `share` percent. The same one always is or is not.
fn is_within(conversation: &Conversation, share: u8) -> bool {
    let mut hasher = DefaultHasher::new();
    conversation.hash(&mut hasher);
    hasher.finish() % 100 < u64::from(share)
}

/// What the runs of a version on trial say of it.
#[derive(Debug, Default)]
struct Tally {
    /// Runs that ended well, their processor time, and those of them that took long in all.
    runs: u64,
    spent: Duration,
    slow: u64,
    /// Events that it handled.
    handled: u64,
    /// Events that it failed, unless the old version failed them too.
    failed: BTreeSet<u64>,
    /// Events that the old version failed as well.
    hopeless: BTreeSet<u64>,
    /// The old version has handled one that it failed.
    is_outdone: bool,
    is_judged: bool,
    /// How often its probation has ended.
    probations: u32,
}

impl Tally {
    fn count(&mut self, event: u64, chosen: Chosen, ended: Ended, usual: &Usual) {
        match (chosen, ended) {
            (Chosen::New, Ended::Well(spent) | Ended::Passed(spent)) => {
                self.runs += 1;
                self.spent += spent.cpu;
                self.slow += u64::from(usual.is_slow(spent.time));
                if matches!(ended, Ended::Well(_)) {
                    self.handled += 1;
                    // It was an accident.
                    self.failed.remove(&event);
                }
            }
            (Chosen::New, Ended::Badly) if !self.hopeless.contains(&event) => {
                self.failed.insert(event);
            }
            (Chosen::SecondOpinion, Ended::Well(_) | Ended::Passed(_)) => {
                self.is_outdone |= self.failed.contains(&event)
            }
            (Chosen::SecondOpinion, Ended::Badly) => {
                self.failed.remove(&event);
                self.hopeless.insert(event);
            }
            (Chosen::New, Ended::Badly) | (Chosen::Old, _) => {}
        }
    }

    fn judge(&self, usual: &Usual, comparable: bool) -> Option<String> {
        if self.is_outdone {
            return Some("it fails an event that the version before it handles".to_owned());
        }
        let (failed, handled) = (self.failed.len(), self.handled);
        let events = failed as u64 + handled;
        if failed >= MANY && failed as u64 > handled {
            return Some(format!("it fails {failed} events, and handles {handled}"));
        }
        // Where the old version can be asked about each, its word decides.
        if !comparable && failed >= MORE && events >= SAMPLE && !usual.tolerates(failed, events) {
            return Some(format!("it fails {failed} of {events} events, which is more often than before"));
        }
        let (cpu, time) = usual.pace.filter(|_| self.runs >= ENOUGH)?;
        let mean = self.spent / u32::try_from(self.runs).unwrap_or(u32::MAX);
        if mean > NOTICEABLE && mean > cpu * SLOWER {
            return Some(format!("its runs take {mean:.0?} of processor time, {cpu:.0?} before"));
        }
        let slow = self.slow;
        (slow > self.runs / 2).then(|| {
            format!(
                "{slow} of its {} runs take more than {SLOWER} times the {time:.0?} that they took before",
                self.runs
            )
        })
    }

    fn end(&self, usual: &Usual) -> End {
        let (failed, handled) = (self.failed.len(), self.handled);
        let events = failed as u64 + handled;
        let does_well = usual.tolerates(failed, events);
        if does_well && handled >= PROOF {
            return End::Promote;
        }
        match (self.probations >= LONGEST, does_well) {
            (false, _) => End::WatchOn,
            // Nothing speaks against it.
            (true, true) => End::Promote,
            (true, false) => End::RollBack(format!("it fails {failed} of {events} events")),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::{ChatId, UserId};

    const FAST: Ended = well(1, 1);
    const SLOW: Ended = well(50, 50);
    /// It waits for somebody.
    const DAWDLES: Ended = well(1, 2_000);

    const fn well(cpu: u64, time: u64) -> Ended {
        Ended::Well(Spent { cpu: Duration::from_millis(cpu), time: Duration::from_millis(time) })
    }

    fn usual(cpu: u64, time: u64) -> Usual {
        Usual { pace: Some((Duration::from_millis(cpu), Duration::from_millis(time))), failed: 0.0 }
    }

    fn tally(usual: &Usual, runs: &[(u64, Chosen, Ended)]) -> Tally {
        let mut tally = Tally::default();
        runs.iter().for_each(|&(event, chosen, ended)| tally.count(event, chosen, ended, usual));
        tally
    }

    /// How a version is judged in the course of these runs.
    fn judged_by(usual: &Usual, comparable: bool, runs: &[(u64, Chosen, Ended)]) -> Option<String> {
        let mut tally = Tally::default();
        runs.iter().find_map(|&(event, chosen, ended)| {
            tally.count(event, chosen, ended, usual);
            tally.judge(usual, comparable)
        })
    }

    fn judged(runs: &[(u64, Chosen, Ended)]) -> Option<String> {
        judged_by(&Usual::default(), true, runs)
    }

    #[test]
    fn an_event_that_only_the_new_version_fails_sends_it_back() {
        use Chosen::{New, SecondOpinion};
        use Ended::Badly;
        let bad = [(1, New, FAST), (2, New, Badly), (2, New, Badly), (2, SecondOpinion, FAST)];
        assert!(judged(&bad).unwrap().contains("the version before it handles"));
        let poison = [(2, New, Badly), (2, New, Badly), (2, SecondOpinion, Badly), (2, New, Badly)];
        assert_eq!(judged(&poison), None);
        let accident = [(2, New, Badly), (2, New, FAST), (3, SecondOpinion, FAST)];
        assert_eq!(judged(&accident), None);
        let observed = [(2, New, Badly), (2, New, Ended::Passed(Spent::default())), (2, SecondOpinion, FAST)];
        assert!(judged(&observed).is_some(), "who only looked on has handled nothing");
    }

    #[test]
    fn several_events_that_fail_send_it_back_if_they_are_most() {
        use Chosen::{New, Old};
        use Ended::Badly;
        let failing = |first: u64| (first..first + 3).map(|event| (event, New, Badly));
        let all: Vec<_> = failing(1).collect();
        assert!(judged(&all).unwrap().contains("3 events"));
        let passing = (10..14).map(|event| (event, New, Ended::Passed(Spent::default()))).chain(failing(1));
        assert!(judged(&passing.collect::<Vec<_>>()).is_some(), "it has handled nothing");
        let few: Vec<_> = (10..14).map(|event| (event, New, FAST)).chain(failing(1)).collect();
        assert_eq!(judged(&few), None);
        let of_old: Vec<_> = (1..50).map(|event| (event, Old, Badly)).collect();
        assert_eq!(judged(&of_old), None);
    }

    #[test]
    fn a_version_that_fails_more_often_than_before_is_sent_back_where_the_old_one_does_not_know_its_states() {
        let a_third: Vec<_> =
            (0..30).map(|event| (event, Chosen::New, if event % 3 == 0 { Ended::Badly } else { FAST })).collect();
        assert!(judged_by(&Usual::default(), false, &a_third).unwrap().contains("more often than before"));
        assert_eq!(judged_by(&Usual::default(), true, &a_third), None, "the old one is asked about each");
        let as_before = Usual { failed: 0.3, ..Usual::default() };
        assert_eq!(judged_by(&as_before, false, &a_third), None);
    }

    #[test]
    fn a_version_that_is_far_slower_is_sent_back_when_there_is_enough_to_compare() {
        let runs = |ended| (0..ENOUGH).map(|event| (event, Chosen::New, ended)).collect::<Vec<_>>();
        let judged = |usual: Usual, runs: &[_]| judged_by(&usual, true, runs);
        let slow = runs(SLOW);
        assert!(judged(usual(1, 1), &slow).unwrap().contains("processor time"));
        assert_eq!(judged(usual(1, 1), &slow[1..]), None);
        assert_eq!(judged(usual(40, 40), &slow), None);
        assert_eq!(judged(Usual::default(), &slow), None);
        let fast = Usual { pace: Some((Duration::from_micros(10), Duration::from_micros(10))), failed: 0.0 };
        assert_eq!(judged(fast, &runs(FAST)), None);

        let mut waiting = runs(DAWDLES);
        assert!(judged(usual(1, 100), &waiting).unwrap().contains("100ms"), "time that it waits counts as well");
        assert_eq!(judged(usual(1, 900), &waiting), None, "it always waited");
        waiting[..15].iter_mut().for_each(|run| run.2 = FAST);
        assert_eq!(judged(usual(1, 100), &waiting), None, "some that wait long say nothing");
    }

    #[test]
    fn the_usual_is_what_the_old_version_has_shown() {
        let row = PaceRow { runs: 100, handled: 90, failed: 10, cpu: 200_000_000, time: 3_000_000_000 };
        let pace = (Duration::from_millis(2), Duration::from_millis(30));
        assert_eq!(Usual::of(row), Usual { pace: Some(pace), failed: 0.1 });
        assert_eq!(Usual::of(PaceRow { runs: 29, handled: 9, ..row }), Usual::default(), "too few");
    }

    #[test]
    fn it_serves_for_good_by_what_it_has_shown() {
        use Chosen::New;
        let usual = Usual::default();
        let well: Vec<_> = (0..PROOF).map(|event| (event, New, FAST)).collect();
        let one_bad: Vec<_> = (10..20).map(|event| (event, New, FAST)).chain([(1, New, Ended::Badly)]).collect();
        let two_of_two = vec![(1, New, Ended::Badly), (2, New, Ended::Badly)];
        let passing: Vec<_> = (0..9).map(|event| (event, New, Ended::Passed(Spent::default()))).collect();
        let back = || End::RollBack("it fails 2 of 2 events".to_owned());
        for (about, runs, first, last) in [
            ("well", well, End::Promote, End::Promote),
            ("an accident among many", one_bad, End::Promote, End::Promote),
            ("nothing said", vec![], End::WatchOn, End::Promote),
            ("nothing for it", passing, End::WatchOn, End::Promote),
            ("nothing went well", two_of_two, End::WatchOn, back()),
        ] {
            let mut tally = tally(&usual, &runs);
            tally.probations = 1;
            assert_eq!(tally.end(&usual), first, "{about}");
            tally.probations = LONGEST;
            assert_eq!(tally.end(&usual), last, "{about}, at last");
        }
    }

    #[test]
    fn the_old_version_is_asked_before_an_event_is_given_up() {
        for (comparable, max_attempts, asked_after) in
            [(true, 5, 2), (true, 2, 1), (true, 1, 1), (false, 5, 4), (false, 2, 1), (false, 1, 1)]
        {
            assert_eq!(patience(comparable, max_attempts), asked_after, "{comparable} {max_attempts}");
        }
    }

    proptest! {
        #[test]
        fn a_version_that_never_fails_stays(events in proptest::collection::vec((any::<u64>(), any::<bool>()), 0..200)) {
            let runs: Vec<_> = events
                .into_iter()
                .map(|(event, old)| (event, if old { Chosen::Old } else { Chosen::New }, FAST))
                .collect();
            prop_assert_eq!(judged_by(&usual(1, 1), false, &runs), None);
        }

        #[test]
        fn larger_shares_hold_the_smaller_ones(chat: i64, user: i64, share in 1_u8..100) {
            let conversation = Conversation { chat: Some(ChatId(chat)), user: Some(UserId(user)), thread: None };
            prop_assert!(!is_within(&conversation, share) || is_within(&conversation, share + 1));
            prop_assert!(is_within(&conversation, 100));
        }
    }

    #[test]
    fn a_share_is_about_what_it_says() {
        let chats = (0..10_000).map(|id| Conversation { chat: Some(ChatId(id)), ..Conversation::default() });
        let taken = chats.filter(|chat| is_within(chat, 10)).count();
        assert!((800..1_200).contains(&taken), "{taken}");
    }
}
