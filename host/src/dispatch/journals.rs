//! What the runs of events under way have done at once, by event: kept in memory until the event is settled, so that another
//! attempt does not do it again. A host that starts knows of none.

use std::sync::PoisonError;

use super::run::Context;
use crate::plugin::Journal;

impl Context {
    pub(super) fn journal(&self, event: u64, observes: bool) -> Journal {
        let journals = self.journals.lock().unwrap_or_else(PoisonError::into_inner);
        journals.get(&(event, observes)).cloned().unwrap_or_default()
    }

    pub(super) fn keep_journal(&self, event: u64, observes: bool, journal: Journal) {
        self.journals.lock().unwrap_or_else(PoisonError::into_inner).insert((event, observes), journal);
    }

    pub(super) fn forget_journal(&self, event: u64) {
        let mut journals = self.journals.lock().unwrap_or_else(PoisonError::into_inner);
        journals.remove(&(event, false));
        journals.remove(&(event, true));
    }
}
