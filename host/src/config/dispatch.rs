//! `[dispatch]`: how updates are handled.

use std::time::Duration;

use super::reader::Reader;
use super::tree::{Node, Value};
use super::units;

/// `[dispatch]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dispatch {
    /// `concurrency`: how many events are handled at once, each of another conversation; 256.
    pub concurrency: usize,
    /// `max_attempts`: after so many failed runs an event is set aside as a dead letter; 5.
    pub max_attempts: u32,
    /// `jobs`: how many jobs are worked on at once, of all plugins together; 4.
    pub jobs: usize,
    /// `dead_letters`: so many are kept of each plugin, and of updates that can't be read; the oldest go; 1,000, and 0 for
    /// all.
    pub dead_letters: usize,
    /// `dead_letter_bytes`: bytes of them, in the same way; `"64MiB"`, and 0 for any number.
    pub dead_letter_bytes: u64,
    /// `dead_letter_age`: older ones go; `"90d"`, and `"0s"` for never.
    pub dead_letter_age: Duration,
    /// `acknowledge_callbacks`: a pressed button that has no answer after so long is acknowledged by the host; `"3s"`,
    /// and never early for `"0s"`.
    pub acknowledge_callbacks: Duration,
    /// `cancel_command`: the command, without its slash, that ends a conversation whatever its handler does; none where it
    /// is `""`; "cancel".
    pub cancel_command: Option<String>,
    /// `cancel_reply`: what the user is told then, where the plugin's catalogs have no message `cancelled`.
    pub cancel_reply: String,
    /// `stale_button_reply`: what somebody is told who presses a button that leads nowhere, where its plugin's catalogs
    /// have no message `stale-button`.
    pub stale_button_reply: String,
    /// `unsealed_buttons`: plugins are given presses of buttons that this host has not made, too; false.
    pub unsealed_buttons: bool,
    /// `album_quiet`: an album is complete when no message has joined it for so long; 1 s.
    pub album_quiet: Duration,
    /// `album_wait`: an album is waited for no longer than this; 10 s.
    pub album_wait: Duration,
}

impl Default for Dispatch {
    fn default() -> Self {
        Self {
            concurrency: 256,
            max_attempts: 5,
            jobs: 4,
            dead_letters: 1_000,
            dead_letter_bytes: 64 << 20,
            dead_letter_age: Duration::from_secs(90 * 86_400),
            acknowledge_callbacks: Duration::from_secs(3),
            cancel_command: Some("cancel".to_owned()),
            cancel_reply: "Cancelled.".to_owned(),
            stale_button_reply: "This button is out of date.".to_owned(),
            unsealed_buttons: false,
            album_quiet: Duration::from_secs(1),
            album_wait: Duration::from_secs(10),
        }
    }
}

impl Dispatch {
    pub(super) fn read(mut section: Reader<'_>) -> Self {
        let default = Self::default();
        let concurrency = section.value("concurrency", |node| units::integer(node, 1..=10_000));
        let max_attempts = section.value("max_attempts", |node| units::integer(node, 1..=1_000));
        let jobs = section.value("jobs", |node| units::integer(node, 1..=1_000));
        let dead_letters = section.value("dead_letters", |node| units::integer(node, 0..=10_000_000));
        let dead_letter_bytes = section.bytes("dead_letter_bytes", 0..=1 << 40);
        let dead_letter_age = section.duration("dead_letter_age", Duration::ZERO..=Duration::from_secs(3_650 * 86_400));
        let acknowledge = |node: &_| units::duration(node, Duration::ZERO..=Duration::from_secs(60));
        let acknowledge_callbacks = section.value("acknowledge_callbacks", acknowledge);
        let cancel_command = section.value("cancel_command", command);
        let cancel_reply = section.value("cancel_reply", units::text);
        let stale_button_reply = section.value("stale_button_reply", toast);
        let unsealed_buttons = section.value("unsealed_buttons", units::boolean);
        let album_quiet = section.duration("album_quiet", Duration::ZERO..=Duration::from_secs(60));
        let album_wait = section.duration("album_wait", Duration::ZERO..=Duration::from_secs(120));
        section.finish();
        Self {
            concurrency: concurrency.and_then(|n| n.try_into().ok()).unwrap_or(default.concurrency),
            max_attempts: max_attempts.and_then(|n| n.try_into().ok()).unwrap_or(default.max_attempts),
            jobs: jobs.and_then(|n| n.try_into().ok()).unwrap_or(default.jobs),
            dead_letters: dead_letters.and_then(|n| n.try_into().ok()).unwrap_or(default.dead_letters),
            dead_letter_bytes: dead_letter_bytes.unwrap_or(default.dead_letter_bytes),
            dead_letter_age: dead_letter_age.unwrap_or(default.dead_letter_age),
            acknowledge_callbacks: acknowledge_callbacks.unwrap_or(default.acknowledge_callbacks),
            cancel_command: cancel_command.unwrap_or(default.cancel_command),
            cancel_reply: cancel_reply.unwrap_or(default.cancel_reply),
            stale_button_reply: stale_button_reply.unwrap_or(default.stale_button_reply),
            unsealed_buttons: unsealed_buttons.unwrap_or(default.unsealed_buttons),
            album_quiet: album_quiet.unwrap_or(default.album_quiet),
            album_wait: album_wait.unwrap_or(default.album_wait),
        }
    }
}

/// What Telegram shows for a moment.
fn toast(node: &Node) -> Result<String, String> {
    let text = units::text(node)?;
    match text.chars().count() {
        ..=200 => Ok(text),
        length => {
            Err(format!("the answer to a pressed button can have 200 letters, and this has {length}: shorten it"))
        }
    }
}

fn command(node: &Node) -> Result<Option<String>, String> {
    if matches!(&node.value, Value::Text(text) if text.is_empty()) {
        return Ok(None);
    }
    let name = units::text(node)?;
    let is_word = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    if is_word && name.len() <= 32 {
        return Ok(Some(name));
    }
    Err(format!("`{name}` is not a command: 1 to 32 of a-z, 0-9 and _, without the slash; or \"\" for none"))
}
