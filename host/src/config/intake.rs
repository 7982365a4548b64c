//! `[intake]`: how updates are fetched.

use std::time::Duration;

use super::problem;
use super::reader::Reader;
use super::tree::{Node, Value};
use super::units;
use super::webhook::Webhook;
use crate::domain::UPDATE_KINDS;

/// `[intake]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Intake {
    /// `mode`: `"polling"`, or `"webhook"`.
    pub mode: Mode,
    /// `poll_timeout`: how long Telegram holds a poll open when there is nothing to tell; `"30s"`. Whole seconds.
    pub poll_timeout: Duration,
    /// `allowed_updates`: `"auto"`, what the plugins want, or a list of names.
    pub allowed_updates: AllowedUpdates,
    /// `[intake.webhook]`, always there in that mode.
    pub webhook: Option<Webhook>,
}

/// How updates come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// `getUpdates`
    Polling,
    /// `setWebhook`
    Webhook,
}

/// Which updates are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllowedUpdates {
    /// The union of what the plugins want.
    Auto,
    /// These.
    Only(Vec<String>),
}

impl Default for Intake {
    fn default() -> Self {
        Self {
            mode: Mode::Polling,
            poll_timeout: Duration::from_secs(30),
            allowed_updates: AllowedUpdates::Auto,
            webhook: None,
        }
    }
}

impl Intake {
    /// `telegram`: whether the Bot API server is Telegram's own.
    pub(super) fn read(mut section: Reader<'_>, telegram: bool) -> Self {
        let default = Self::default();
        let mode = section.value("mode", mode).unwrap_or(default.mode);
        let webhook = match (mode, section.has("webhook")) {
            (Mode::Polling, false) => {
                // Known all the same, for whoever misspells it.
                section.table("webhook").finish();
                None
            }
            _ => Webhook::read(section.table("webhook"), mode == Mode::Webhook, telegram),
        };
        let mut unknown_kinds = Vec::new();
        let intake = Self {
            mode,
            webhook,
            poll_timeout: section.value("poll_timeout", poll_timeout).unwrap_or(default.poll_timeout),
            allowed_updates: section
                .value("allowed_updates", |node| allowed_updates(node, &mut unknown_kinds))
                .unwrap_or(default.allowed_updates),
        };
        for (origin, name) in unknown_kinds {
            let suggestion = problem::suggest(&name, UPDATE_KINDS);
            section.warn(&origin, format!("`{name}` is no kind of update that this version knows; {suggestion}"));
        }
        section.finish();
        intake
    }
}

fn mode(node: &Node) -> Result<Mode, String> {
    match units::text(node)?.as_str() {
        "polling" => Ok(Mode::Polling),
        "webhook" => Ok(Mode::Webhook),
        _ => units::expected("\"polling\" or \"webhook\"", node),
    }
}

fn poll_timeout(node: &Node) -> Result<Duration, String> {
    // Telegram ends a poll after 50 seconds, whatever it was asked for.
    let timeout = units::duration(node, Duration::ZERO..=Duration::from_secs(50))?;
    if timeout.subsec_nanos() != 0 {
        return Err("Telegram takes whole seconds only, such as \"1s\" or \"30s\"".to_owned());
    }
    Ok(timeout)
}

fn allowed_updates(node: &Node, unknown: &mut Vec<(problem::Origin, String)>) -> Result<AllowedUpdates, String> {
    match &node.value {
        Value::Text(text) if text == "auto" => Ok(AllowedUpdates::Auto),
        Value::Array(_) => {
            let names = units::texts(node)?;
            let is_unknown = |name: &&String| !UPDATE_KINDS.contains(&name.as_str());
            unknown.extend(names.iter().filter(is_unknown).map(|name| (node.origin.clone(), name.clone())));
            Ok(AllowedUpdates::Only(names))
        }
        _ => units::expected("\"auto\" or a list such as [\"message\", \"callback_query\"]", node),
    }
}
