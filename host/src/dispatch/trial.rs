//! A new version on trial: which conversations it is given, and when it is sent back. The decisions are pure; a
//! [`Trial`] only keeps count.
//!
//! A version is sent back when it does worse than the one before it, which must be told apart from an event that no
//! version could handle. So an event that it fails twice is given to the old version: if that one handles it, the new
//! one is to blame. Where the two write states of different versions the old one can't be asked; then it takes several
//! events that fail, and most of all that there were.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::domain::Conversation;
use crate::plugin::Plugin;

/// Failed attempts of the new version after which the old one is asked.
const ATTEMPTS: u32 = 2;
/// So many events that fail are no accident.
const MANY: usize = 3;
/// Before that nothing is said about speed.
const ENOUGH: u64 = 30;
/// So much more processor time than before is a defect,
const SLOWER: u32 = 5;
/// unless it is nothing to speak of.
const NOTICEABLE: Duration = Duration::from_millis(20);

/// A version that is watched while it serves.
pub struct Trial {
    plugin: Arc<Plugin>,
    share: u8,
    /// Whether the old version may be asked about an event: it reads the states that the new one writes.
    comparable: bool,
    /// The processor time of the old version's runs, where there were enough.
    usual: Option<Duration>,
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
    /// Well, with so much processor time.
    Well(Duration),
    /// The plugin failed.
    Badly,
}

impl Trial {
    /// Watches `plugin` in the place of `old`, with `share` percent of the conversations.
    #[must_use]
    pub fn new(plugin: Arc<Plugin>, old: &Plugin, share: u8) -> Self {
        Self {
            comparable: plugin.manifest.state_version == old.manifest.state_version,
            usual: old.pace().filter(|(runs, _)| *runs >= ENOUGH).map(|(_, mean)| mean),
            plugin,
            share,
            tally: Mutex::default(),
        }
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
            true if self.comparable && attempts >= ATTEMPTS => Chosen::SecondOpinion,
            true => Chosen::New,
        }
    }

    /// Counts a run; answers with the reason if that is enough to send the version back. It says so once.
    pub(super) fn note(&self, event: u64, chosen: Chosen, ended: Ended) -> Option<String> {
        let mut tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        tally.count(event, chosen, ended);
        if tally.is_judged {
            return None;
        }
        let reason = tally.judge(self.usual);
        tally.is_judged = reason.is_some();
        reason
    }
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
    /// Runs that ended well, and their processor time.
    well: u64,
    spent: Duration,
    /// Events that it failed, unless the old version failed them too.
    failed: BTreeSet<u64>,
    /// Events that the old version failed as well.
    hopeless: BTreeSet<u64>,
    /// The old version has handled one that it failed.
    is_outdone: bool,
    is_judged: bool,
}

impl Tally {
    fn count(&mut self, event: u64, chosen: Chosen, ended: Ended) {
        match (chosen, ended) {
            (Chosen::New, Ended::Well(spent)) => {
                self.well += 1;
                self.spent += spent;
                // It was an accident.
                self.failed.remove(&event);
            }
            (Chosen::New, Ended::Badly) if !self.hopeless.contains(&event) => {
                self.failed.insert(event);
            }
            (Chosen::SecondOpinion, Ended::Well(_)) => self.is_outdone |= self.failed.contains(&event),
            (Chosen::SecondOpinion, Ended::Badly) => {
                self.failed.remove(&event);
                self.hopeless.insert(event);
            }
            (Chosen::New, Ended::Badly) | (Chosen::Old, _) => {}
        }
    }

    fn judge(&self, usual: Option<Duration>) -> Option<String> {
        if self.is_outdone {
            return Some("it fails an event that the version before it handles".to_owned());
        }
        let failed = self.failed.len();
        if failed >= MANY && failed as u64 > self.well {
            return Some(format!("it fails {failed} events, and handles {}", self.well));
        }
        let mean = self.spent / u32::try_from(self.well.max(1)).unwrap_or(u32::MAX);
        match usual {
            Some(usual) if self.well >= ENOUGH && mean > NOTICEABLE && mean > usual * SLOWER => {
                Some(format!("its runs take {mean:.0?} of processor time, {usual:.0?} before"))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::{ChatId, UserId};

    const FAST: Ended = Ended::Well(Duration::from_millis(1));
    const SLOW: Ended = Ended::Well(Duration::from_millis(50));

    /// How a version is judged after these runs, by the first words of the reason.
    fn judged(usual: Option<Duration>, runs: &[(u64, Chosen, Ended)]) -> Option<String> {
        let mut tally = Tally::default();
        runs.iter().find_map(|&(event, chosen, ended)| {
            tally.count(event, chosen, ended);
            tally.judge(usual)
        })
    }

    #[test]
    fn an_event_that_only_the_new_version_fails_sends_it_back() {
        use Chosen::{New, SecondOpinion};
        use Ended::Badly;
        let bad = [(1, New, FAST), (2, New, Badly), (2, New, Badly), (2, SecondOpinion, FAST)];
        assert!(judged(None, &bad).unwrap().contains("the version before it handles"));
        let poison = [(2, New, Badly), (2, New, Badly), (2, SecondOpinion, Badly), (2, New, Badly)];
        assert_eq!(judged(None, &poison), None);
        let accident = [(2, New, Badly), (2, New, FAST), (3, SecondOpinion, FAST)];
        assert_eq!(judged(None, &accident), None);
    }

    #[test]
    fn several_events_that_fail_send_it_back_if_they_are_most() {
        use Chosen::{New, Old};
        use Ended::Badly;
        let failing = |first: u64| (first..first + 3).map(|event| (event, New, Badly));
        let all: Vec<_> = failing(1).collect();
        assert!(judged(None, &all).unwrap().contains("3 events"));
        let few: Vec<_> = (10..14).map(|event| (event, New, FAST)).chain(failing(1)).collect();
        assert_eq!(judged(None, &few), None);
        let of_old: Vec<_> = (1..50).map(|event| (event, Old, Badly)).collect();
        assert_eq!(judged(None, &of_old), None);
    }

    #[test]
    fn a_version_that_is_far_slower_is_sent_back_when_there_is_enough_to_compare() {
        let runs: Vec<_> = (0..ENOUGH).map(|event| (event, Chosen::New, SLOW)).collect();
        let usual = |millis| Some(Duration::from_millis(millis));
        assert!(judged(usual(1), &runs).unwrap().contains("processor time"));
        assert_eq!(judged(usual(1), &runs[1..]), None);
        assert_eq!(judged(usual(40), &runs), None);
        assert_eq!(judged(None, &runs), None);
        let fast: Vec<_> = (0..ENOUGH).map(|event| (event, Chosen::New, FAST)).collect();
        assert_eq!(judged(Some(Duration::from_micros(10)), &fast), None);
    }

    proptest! {
        #[test]
        fn a_version_that_never_fails_stays(events in proptest::collection::vec((any::<u64>(), any::<bool>()), 0..200)) {
            let runs: Vec<_> = events
                .into_iter()
                .map(|(event, old)| (event, if old { Chosen::Old } else { Chosen::New }, FAST))
                .collect();
            prop_assert_eq!(judged(Some(Duration::from_micros(1)), &runs), None);
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
