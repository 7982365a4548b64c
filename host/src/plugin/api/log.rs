//! `botyard:log/log`: log lines, and the last words of a panic.

use std::fmt;

use tracing::field::display;

use super::{Host, Panic, shorten};
use crate::config::redaction::redact;
use crate::plugin::bindings::botyard::log::log as wit;
use crate::plugin::{Limit, allowance};

/// What a line costs besides its text, and each of its fields: what the host adds to them.
pub(super) const LINE_BYTES: usize = 64;
/// Bytes of a panic's text and of its file's name that are kept.
const PANIC_BYTES: usize = 4 << 10;

impl wit::Host for Host {
    fn emit(&mut self, level: wit::Level, message: String, fields: Vec<(String, String)>) -> wasmtime::Result<()> {
        let size = |text: usize| text + LINE_BYTES;
        let size = size(message.len()) + fields.iter().map(|(key, value)| size(key.len() + value.len())).sum::<usize>();
        if !self.charge_log(size) {
            return Ok(());
        }
        if !is_written(level) {
            return Ok(());
        }
        let plugin = &self.context.name;
        let event = self.run.as_ref().map(|run| run.event);
        let line = self.context.allowance.line(size as u64, self.context.limits.log_per_minute);
        if line != allowance::Line::Written {
            let limit = Limit::LogPerMinute.hit(plugin);
            if line == allowance::Line::DroppedAndTold {
                tracing::warn!(target: "plugin", %plugin, event, limit, "a plugin's runs log too much; lines are dropped");
            }
            return Ok(());
        }
        // Before anything is escaped, which would hide a secret with a quote in it from the last filter.
        let message = redact(&message);
        let fields: Vec<_> =
            fields.iter().map(|(key, value)| (redact(key).into_owned(), redact(value).into_owned())).collect();
        let fields = (!fields.is_empty()).then(|| display(Fields(&fields)));
        if self.run.is_some() {
            let level = format!("{level:?}").to_lowercase();
            let level = level.strip_prefix("level::").unwrap_or(&level);
            let after = fields.as_ref().map_or_else(String::new, |fields| format!(" {fields}"));
            self.lines.push(format!("{level} {}{after}", Line(&message)));
        }
        match level {
            wit::Level::Trace => tracing::trace!(target: "plugin", %plugin, event, fields, "{}", Line(&message)),
            wit::Level::Debug => tracing::debug!(target: "plugin", %plugin, event, fields, "{}", Line(&message)),
            wit::Level::Info => tracing::info!(target: "plugin", %plugin, event, fields, "{}", Line(&message)),
            wit::Level::Warn => tracing::warn!(target: "plugin", %plugin, event, fields, "{}", Line(&message)),
            wit::Level::Error => tracing::error!(target: "plugin", %plugin, event, fields, "{}", Line(&message)),
        }
        Ok(())
    }

    fn panicked(&mut self, mut message: String, mut file: String, line: u32, _column: u32) -> wasmtime::Result<()> {
        message = redact(&message).into_owned();
        file = redact(&file.replace(char::is_control, " ")).into_owned();
        shorten(&mut message, PANIC_BYTES);
        shorten(&mut file, PANIC_BYTES);
        self.panic = Some(Panic { message, file, line });
        Ok(())
    }
}

impl Host {
    /// Counts bytes of log text; false when there are none left.
    pub(super) fn charge_log(&mut self, bytes: usize) -> bool {
        if let Some(left) = self.log_left.checked_sub(bytes as u64) {
            self.log_left = left;
            return true;
        }
        if std::mem::take(&mut self.log_left) > 0 {
            let plugin = &self.context.name;
            let event = self.run.as_ref().map(|run| run.event);
            let limit = Limit::Log.hit(plugin);
            tracing::warn!(target: "plugin", %plugin, event, limit, "a run logs too much; its further lines are dropped");
        }
        false
    }
}

/// Whether a line of this level comes into the log at all.
fn is_written(level: wit::Level) -> bool {
    match level {
        wit::Level::Trace => tracing::enabled!(target: "plugin", tracing::Level::TRACE),
        wit::Level::Debug => tracing::enabled!(target: "plugin", tracing::Level::DEBUG),
        wit::Level::Info => tracing::enabled!(target: "plugin", tracing::Level::INFO),
        wit::Level::Warn => tracing::enabled!(target: "plugin", tracing::Level::WARN),
        wit::Level::Error => tracing::enabled!(target: "plugin", tracing::Level::ERROR),
    }
}

/// A text on one line, as `Debug` has it but without quotes: a guest can't write what looks like a line of the host's.
struct Line<'a>(&'a str);

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in self.0.split_inclusive(char::is_control) {
            match part.char_indices().next_back() {
                Some((end, last)) if last.is_control() => {
                    write!(f, "{}{}", part.split_at(end).0, last.escape_default())?;
                }
                _ => f.write_str(part)?,
            }
        }
        Ok(())
    }
}

/// The guest's fields, as `key=value key=value`.
struct Fields<'a>(&'a [(String, String)]);

impl fmt::Display for Fields<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (key, value)) in self.0.iter().enumerate() {
            let space = if index > 0 { " " } else { "" };
            write!(f, "{space}{}={value:?}", Line(key))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_stays_one_line() {
        for (text, line) in [
            ("plain é 🦀", "plain é 🦀"),
            ("a\n2026-01-01 ERROR forged", "a\\n2026-01-01 ERROR forged"),
            ("\u{1b}[31mred\r\n\u{85}", "\\u{1b}[31mred\\r\\n\\u{85}"),
            ("", ""),
        ] {
            assert_eq!(Line(text).to_string(), line);
        }
        let fields = [("k\nforged".to_owned(), "v\n".to_owned())];
        assert_eq!(Fields(&fields).to_string(), "k\\nforged=\"v\\n\"");
    }
}
