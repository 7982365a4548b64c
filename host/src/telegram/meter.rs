//! Counts calls by method and outcome.
//!
//! The handles of the common case are kept, so that a call costs a lookup and no allocation. Plugins choose
//! the names of methods: past a bound, the rest share one label.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use metrics::{Counter, Histogram, counter, histogram};

use super::Error;

const CALLS: &str = "botyard_api_calls_total";
const SECONDS: &str = "botyard_api_call_seconds";
/// The Bot API has fewer than 200 methods, and no bot uses half of them.
const MOST_METHODS: usize = 100;

#[derive(Default)]
pub(super) struct Meter {
    methods: RwLock<HashMap<Box<str>, Arc<Handles>>>,
}

struct Handles {
    label: String,
    ok: Counter,
    seconds: Histogram,
}

impl Handles {
    fn new(label: &str) -> Self {
        let label = label.to_owned();
        Self {
            ok: counter!(CALLS, "method" => label.clone(), "outcome" => "ok"),
            seconds: histogram!(SECONDS, "method" => label.clone()),
            label,
        }
    }
}

impl Meter {
    pub(super) fn record(&self, method: &str, error: Option<&Error>, took: Duration) {
        let handles = self.handles(method);
        // A long poll takes as long as it waits, which says nothing.
        if method != "getUpdates" {
            handles.seconds.record(took);
        }
        match error {
            None => handles.ok.increment(1),
            Some(error) => {
                counter!(CALLS, "method" => handles.label.clone(), "outcome" => error.outcome()).increment(1);
            }
        }
    }

    fn handles(&self, method: &str) -> Arc<Handles> {
        if let Some(known) = self.methods.read().unwrap_or_else(PoisonError::into_inner).get(method) {
            return known.clone();
        }
        let mut methods = self.methods.write().unwrap_or_else(PoisonError::into_inner);
        let label = if methods.len() < MOST_METHODS { method } else { "other" };
        methods.entry(label.into()).or_insert_with(|| Arc::new(Handles::new(label))).clone()
    }
}
