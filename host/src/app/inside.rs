//! Lets the simulator's page see inside the bot that runs beside it: what its plugins did, and when the next timer is due.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::dispatch::{Dispatcher, TraceRing, next_timer};
use crate::domain::BotId;
use crate::simulator::{Insight, Simulator};
use crate::store::Store;

struct Inside {
    ring: Arc<TraceRing>,
    store: Store,
    bot: BotId,
}

/// From now on the page sees inside.
pub(super) fn show(simulator: &Simulator, dispatcher: &Dispatcher, store: &Store, bot: BotId) {
    let ring = TraceRing::new(simulator.nudge());
    dispatcher.trace_to(ring.clone());
    simulator.show_inside(Arc::new(Inside { ring, store: store.clone(), bot }));
}

impl Insight for Inside {
    fn runs(&self, after: u64) -> Vec<Value> {
        self.ring.since(after).iter().map(|run| json!(run)).collect()
    }

    fn next_timer(&self) -> Option<u64> {
        next_timer(&self.store, self.bot).ok()?
    }
}
