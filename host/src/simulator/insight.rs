//! What a host in the same process tells the page of itself. The simulator itself knows no host: whoever puts the two
//! together hands this in.

use std::sync::Arc;

use serde_json::{Value, json};

use super::Simulator;

/// See the module.
pub trait Insight: Send + Sync {
    /// What plugins made of events, after this number, the oldest first: objects with a growing `number`.
    fn runs(&self, after: u64) -> Vec<Value>;

    /// When the next timer is due, in Unix milliseconds of the host's clock.
    fn next_timer(&self) -> Option<u64>;
}

impl Simulator {
    /// Lets the page see inside the bot. Only the first one counts.
    pub fn show_inside(&self, insight: Arc<dyn Insight>) {
        self.hub().set_insight(insight);
    }

    /// Tells the pages that there is something new to see inside.
    pub fn nudge(&self) -> impl Fn() + Send + Sync + 'static {
        let events = self.hub().signals.events.clone();
        let nudge: Arc<str> = json!({ "event": "activity" }).to_string().into();
        // Nobody looking is no failure.
        move || drop(events.send(nudge.clone()))
    }
}
