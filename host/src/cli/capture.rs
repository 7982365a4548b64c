//! Catches what plugins log, for commands that show it beside what the plugins did.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use tracing::field::{Field, Visit};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};

/// One line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct Line {
    pub(super) level: String,
    pub(super) plugin: String,
    pub(super) message: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) fields: String,
}

/// The lines caught so far.
#[derive(Clone, Default)]
pub(super) struct Capture(Arc<Mutex<Vec<Line>>>);

impl Capture {
    /// Catches everything on this thread, and lets nothing through to the log, while the guard lives.
    pub(super) fn begin(&self) -> DefaultGuard {
        tracing::subscriber::set_default(tracing_subscriber::registry().with(self.clone()))
    }

    /// What was caught since the last time.
    pub(super) fn take(&self) -> Vec<Line> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<S: Subscriber> Layer<S> for Capture {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if event.metadata().target() == "plugin" {
            let mut line = Line { level: event.metadata().level().to_string().to_lowercase(), ..Line::default() };
            event.record(&mut line);
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        }
    }
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let slot = match field.name() {
            "message" => &mut self.message,
            "plugin" => &mut self.plugin,
            "fields" => &mut self.fields,
            _ => return,
        };
        *slot = format!("{value:?}");
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { level, plugin, message, fields } = self;
        write!(f, "{level} {plugin}: {message}")?;
        if fields.is_empty() { Ok(()) } else { write!(f, " {fields}") }
    }
}
