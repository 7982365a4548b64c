//! `botyard:log/log`: log lines, and the last words of a panic.

use std::fmt;

use tracing::field::display;

use super::{Host, Panic, shorten};
use crate::plugin::bindings::botyard::log::log as wit;

/// Bytes of a panic's text and of its file's name that are kept.
const PANIC_BYTES: usize = 4 << 10;

impl wit::Host for Host {
    fn emit(&mut self, level: wit::Level, message: String, fields: Vec<(String, String)>) -> wasmtime::Result<()> {
        let plugin = &self.context.name;
        let event = self.run.as_ref().map(|run| run.event);
        let size = message.len() + fields.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>();
        if self.log_left < size as u64 {
            if self.log_left > 0 {
                tracing::warn!(target: "plugin", %plugin, event, "a run logs too much; its further lines are dropped");
            }
            self.log_left = 0;
            return Ok(());
        }
        self.log_left -= size as u64;
        let fields = (!fields.is_empty()).then(|| display(Fields(&fields)));
        match level {
            wit::Level::Trace => tracing::trace!(target: "plugin", %plugin, event, fields, "{message}"),
            wit::Level::Debug => tracing::debug!(target: "plugin", %plugin, event, fields, "{message}"),
            wit::Level::Info => tracing::info!(target: "plugin", %plugin, event, fields, "{message}"),
            wit::Level::Warn => tracing::warn!(target: "plugin", %plugin, event, fields, "{message}"),
            wit::Level::Error => tracing::error!(target: "plugin", %plugin, event, fields, "{message}"),
        }
        Ok(())
    }

    fn panicked(&mut self, mut message: String, mut file: String, line: u32, _column: u32) -> wasmtime::Result<()> {
        shorten(&mut message, PANIC_BYTES);
        shorten(&mut file, PANIC_BYTES);
        self.panic = Some(Panic { message, file, line });
        Ok(())
    }
}

/// The guest's fields, as `key=value key=value`.
struct Fields<'a>(&'a [(String, String)]);

impl fmt::Display for Fields<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (key, value)) in self.0.iter().enumerate() {
            let space = if index > 0 { " " } else { "" };
            write!(f, "{space}{key}={value:?}")?;
        }
        Ok(())
    }
}
