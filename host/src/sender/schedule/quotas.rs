//! The rates of the settings as quotas, and which of them a lane keeps to.

use std::time::Duration;

use super::super::SendSettings;
use crate::domain::{ChatId, Lane};
use crate::limit::Quota;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

pub(super) struct Quotas {
    private: Option<Quota>,
    group: Option<Quota>,
    pub(super) overall: Option<Quota>,
    pub(super) bulk: Option<Quota>,
    pub(super) paid: Option<Quota>,
}

impl Quotas {
    pub(super) fn new(settings: &SendSettings) -> Self {
        Self {
            private: Quota::new(settings.chat_per_second, SECOND, 3),
            group: sliding(settings.group_per_minute, MINUTE, 5),
            overall: sliding(settings.overall_per_second, SECOND, burst_of(settings.overall_per_second)),
            bulk: sliding(settings.bulk_per_second, SECOND, burst_of(settings.bulk_per_second)),
            paid: sliding(settings.paid_per_second, SECOND, burst_of(settings.paid_per_second)),
        }
    }

    /// Limits are for what people see in chats: messages and edits.
    pub(super) fn of(&self, lane: Lane) -> Option<&Quota> {
        match lane {
            Lane::Chat(ChatId(..0)) => self.group.as_ref(),
            Lane::Chat(_) => self.private.as_ref(),
            Lane::Urgent(_) | Lane::User(_) | Lane::Other | Lane::Task(_) => None,
        }
    }
}

fn sliding(rate: f64, span: Duration, burst: u32) -> Option<Quota> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates, and no rate is negative")]
    let most = rate.ceil() as u32;
    // Calls don't travel equally fast: a little more room keeps the limit at Telegram's end too.
    Quota::new(rate, span, burst).map(|quota| quota.at_most(most, span + Duration::from_millis(20)))
}

/// A tenth of a second's worth: timers are late by a millisecond or so, which should not lower the rate.
fn burst_of(rate: f64) -> u32 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates, and no rate is negative")]
    let burst = (rate / 10.0).ceil() as u32;
    burst.max(1)
}
