//! How intake goes, for those who ask whether the bot hears anything.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::telegram::WebhookInfo;

/// How intake goes.
#[derive(Debug, Clone, Default)]
pub struct Status {
    /// What is to be heard of again and again: `the last good poll`, say.
    pub what: &'static str,
    /// When it last was.
    pub last_good: Option<Instant>,
    /// For how long that is good enough.
    pub patience: Duration,
    /// What went wrong since.
    pub problem: Option<String>,
    /// Whether the bot certainly hears nothing, so that there is no use in patience.
    pub is_deaf: bool,
    /// What should be looked at although updates come, by what it is about.
    pub notes: BTreeMap<&'static str, String>,
    /// What Telegram last said of the webhook, in that mode.
    pub webhook: Option<WebhookInfo>,
}

impl Status {
    /// Begins in another mode: nothing is known of it. Notes stay, as they are not about the mode.
    pub(super) fn begin(sender: &watch::Sender<Self>, what: &'static str, patience: Duration) {
        sender.send_modify(|status| {
            let notes = std::mem::take(&mut status.notes);
            *status = Self { what, patience, notes, ..Self::default() };
        });
    }

    /// All is well now.
    pub(super) fn good(sender: &watch::Sender<Self>) {
        sender.send_modify(|status| {
            (status.last_good, status.problem, status.is_deaf) = (Some(Instant::now()), None, false);
        });
    }

    /// Something went wrong. What is deaf stays so until all is well.
    pub(super) fn trouble(sender: &watch::Sender<Self>, problem: &str, is_deaf: bool) {
        sender.send_modify(|status| {
            status.problem = Some(problem.to_owned());
            status.is_deaf |= is_deaf;
        });
    }

    /// Sets or removes a note.
    pub(super) fn note(sender: &watch::Sender<Self>, about: &'static str, note: Option<String>) {
        sender.send_if_modified(|status| {
            let before = status.notes.get(about).cloned();
            match note.clone() {
                Some(note) => status.notes.insert(about, note),
                None => status.notes.remove(about),
            };
            before != note
        });
    }
}

/// Counts something that an operator should be told of.
pub(super) fn alarm(reason: &'static str) {
    metrics::counter!("botyard_intake_alarms_total", "reason" => reason).increment(1);
}
