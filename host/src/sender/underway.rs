//! Direct calls that are under way, so that whoever is erased meanwhile is not written down again when they end.
//!
//! Queued calls need none of this: their rows stand in the store, and say by being gone that nothing is to be kept.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::direct::entry;
use crate::domain::{Lane, PluginName};
use crate::store::rows::unknown::UnknownRow;
use crate::telegram::Error;
use bytes::Bytes;

/// All of them. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct UnderWay(Arc<Mutex<Calls>>);

#[derive(Default)]
struct Calls {
    next: u64,
    calls: HashMap<u64, Call>,
}

struct Call {
    plugin: PluginName,
    method: String,
    lane: Lane,
    params: Bytes,
    is_forgotten: bool,
}

/// One of them, for as long as it takes.
pub(super) struct Begun {
    all: UnderWay,
    number: u64,
}

impl UnderWay {
    pub(super) fn begin(&self, plugin: &PluginName, method: &str, lane: Lane, params: Bytes) -> Begun {
        let mut calls = self.calls();
        let number = calls.next;
        calls.next += 1;
        let (plugin, method) = (plugin.clone(), method.to_owned());
        calls.calls.insert(number, Call { plugin, method, lane, params, is_forgotten: false });
        Begun { all: self.clone(), number }
    }

    /// Nothing is to be kept of those of which this is true.
    pub(super) fn forget(&self, is_of: impl Fn(&UnknownRow) -> bool) {
        for call in self.calls().calls.values_mut() {
            let error = Error::UnknownOutcome { method: call.method.clone(), reason: String::new(), silent: false };
            call.is_forgotten |= is_of(&entry(&call.plugin, &call.method, call.lane, &call.params, &error));
        }
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Begun {
    /// Whether anything may be kept of it.
    pub(super) fn may_be_kept(&self) -> bool {
        self.all.calls().calls.get(&self.number).is_some_and(|call| !call.is_forgotten)
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        self.all.calls().calls.remove(&self.number);
    }
}
