//! `[send]`: how fast calls go out. Telegram's own limits are the defaults; a rate of 0 lifts a limit.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::reader::Reader;
use super::units;

/// Any of these is faster than one process can send.
const RATES: RangeInclusive<f64> = 0.0..=1_000_000.0;
/// What Telegram takes of paid messages in a second: a limit that can't be lifted.
const PAID: f64 = 1000.0;

/// What a chat is may change without the bot being told.
const LONGEST_CACHE: Duration = Duration::from_secs(24 * 3600);

/// `[send]`
#[derive(Debug, Clone, PartialEq)]
pub struct Send {
    /// `overall_per_second`: all calls together; 30.
    pub overall_per_second: f64,
    /// `chat_per_second`: to one private chat; 1.
    pub chat_per_second: f64,
    /// `group_per_minute`: to one group or channel; 20.
    pub group_per_minute: f64,
    /// `bulk_per_second`: mass sending, which yields to answers; 25.
    pub bulk_per_second: f64,
    /// `cache_ttl`: for how long an answer of `getChat` is given again without a call, and one of `getChatMember` for a
    /// minute at most; `"10m"`, `"0s"` for never.
    pub cache_ttl: Duration,
    /// `paid_per_second`: mass sending that Telegram is paid for, which takes no more than 1000; 1000.
    pub paid_per_second: f64,
}

impl Default for Send {
    fn default() -> Self {
        Self {
            overall_per_second: 30.0,
            chat_per_second: 1.0,
            group_per_minute: 20.0,
            bulk_per_second: 25.0,
            cache_ttl: Duration::from_secs(600),
            paid_per_second: PAID,
        }
    }
}

impl Send {
    pub(super) fn read(mut section: Reader<'_>) -> Self {
        let default = Self::default();
        let mut rate = |key, default| section.value(key, |node| units::number(node, RATES)).unwrap_or(default);
        let send = Self {
            overall_per_second: rate("overall_per_second", default.overall_per_second),
            chat_per_second: rate("chat_per_second", default.chat_per_second),
            group_per_minute: rate("group_per_minute", default.group_per_minute),
            bulk_per_second: rate("bulk_per_second", default.bulk_per_second),
            cache_ttl: section
                .value("cache_ttl", |node| units::duration(node, Duration::ZERO..=LONGEST_CACHE))
                .unwrap_or(default.cache_ttl),
            paid_per_second: section
                .value("paid_per_second", |node| units::number(node, 0.0..=PAID))
                .map_or(default.paid_per_second, |rate| if rate > 0.0 { rate } else { PAID }),
        };
        section.finish();
        send
    }
}
