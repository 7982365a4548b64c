//! Gives what is recorded the bot that it is recorded for as a label.

use metrics::{Counter, Gauge, Histogram, Key, KeyName, Label, Metadata, Recorder, SharedString, Unit};

use crate::whose;

/// In front of the recorder proper.
pub(super) struct ByBot<R>(pub(super) R);

fn labelled(key: &Key) -> Option<Key> {
    let bot = whose::bot()?;
    Some(key.with_extra_labels(vec![Label::new("bot", bot)]))
}

impl<R: Recorder> Recorder for ByBot<R> {
    fn describe_counter(&self, key: KeyName, unit: Option<Unit>, meaning: SharedString) {
        self.0.describe_counter(key, unit, meaning);
    }

    fn describe_gauge(&self, key: KeyName, unit: Option<Unit>, meaning: SharedString) {
        self.0.describe_gauge(key, unit, meaning);
    }

    fn describe_histogram(&self, key: KeyName, unit: Option<Unit>, meaning: SharedString) {
        self.0.describe_histogram(key, unit, meaning);
    }

    fn register_counter(&self, key: &Key, metadata: &Metadata<'_>) -> Counter {
        self.0.register_counter(labelled(key).as_ref().unwrap_or(key), metadata)
    }

    fn register_gauge(&self, key: &Key, metadata: &Metadata<'_>) -> Gauge {
        self.0.register_gauge(labelled(key).as_ref().unwrap_or(key), metadata)
    }

    fn register_histogram(&self, key: &Key, metadata: &Metadata<'_>) -> Histogram {
        self.0.register_histogram(labelled(key).as_ref().unwrap_or(key), metadata)
    }
}
