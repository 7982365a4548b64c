//! Cron expressions: read, and asked for the next time.
//!
//! An expression speaks of the time that clocks on the wall show. Where these jump, there are two kinds:
//!
//! - With certain hours in it, it means a task of the day: a time that the clock jumps over comes right after the jump,
//!   once; of a time that comes twice the first one counts.
//! - With every hour in it (`*`), it means an interval: it has its time as often as the clock shows it.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, Timestamp};

/// The 29th of February may be eight years away, and a certain day of the week forty; a rarer day is none.
const DAYS_AHEAD: usize = 366 * 41;

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const NAMED: [(&str, &str); 7] = [
    ("@hourly", "0 * * * *"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@weekly", "0 0 * * 0"),
    ("@monthly", "0 0 1 * *"),
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
];

/// A set of times of the day, and of days. Bit n of a field stands for n.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cron {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// Both kinds of day are restricted: one of them is enough.
    either_day: bool,
}

const EVERY_HOUR: u64 = (1 << 24) - 1;

impl Cron {
    pub(super) fn parse(expression: &str) -> Result<Self, String> {
        let expression = expression.trim().to_ascii_lowercase();
        let expression = match NAMED.iter().find(|(name, _)| *name == expression) {
            Some((_, meaning)) => meaning,
            None if expression.starts_with('@') => {
                return Err(format!("unknown; one of {}", NAMED.map(|(name, _)| name).join(", ")));
            }
            None => expression.as_str(),
        };
        let fields: Vec<&str> = expression.split_ascii_whitespace().collect();
        let &[minute, hour, day, month, weekday] = fields.as_slice() else {
            let n = fields.len();
            return Err(format!("it has {n} fields; expected minute, hour, day of the month, month, day of the week"));
        };
        let days = field("day of the month", day, 1, 31, &[])?;
        let weekdays = field("day of the week", weekday, 0, 7, &WEEKDAYS)?;
        let cron = Self {
            minutes: field("minute", minute, 0, 59, &[])?,
            hours: field("hour", hour, 0, 23, &[])?,
            days,
            months: field("month", month, 1, 12, &MONTHS)?,
            // 7 is another name for Sunday.
            weekdays: (weekdays | (weekdays >> 7)) & 0x7f,
            either_day: !day.starts_with('*') && !weekday.starts_with('*'),
        };
        let from = Date::constant(2000, 1, 1);
        if !from.series(jiff::Span::new().days(1)).take(DAYS_AHEAD).any(|date| cron.has_day(date)) {
            return Err("there is no such day in any month".to_owned());
        }
        Ok(cron)
    }

    /// The first time after `now`, both in Unix milliseconds.
    pub(super) fn next(&self, zone: &TimeZone, now: u64) -> Option<u64> {
        let now = Timestamp::from_millisecond(i64::try_from(now).ok()?).ok()?;
        // A day earlier, for what a jump has moved from the end of that day to just after now.
        let first = zone.to_datetime(now).date().checked_sub(jiff::Span::new().days(2)).ok()?;
        let dates = first.series(jiff::Span::new().days(1)).take(DAYS_AHEAD).filter(|date| self.has_day(*date));
        let mut best: Option<(Timestamp, Date)> = None;
        for date in dates {
            // A jump may move a time by a day, never by more.
            if best.is_some_and(|(_, found)| date.duration_since(found).as_hours() > 48) {
                break;
            }
            let found = self.on(date, zone, now);
            if let Some(found) = found
                && best.is_none_or(|(earlier, _)| found < earlier)
            {
                best = Some((found, best.map_or(date, |(_, date)| date)));
            }
        }
        u64::try_from(best?.0.as_millisecond()).ok()
    }

    /// The first time on this day that comes after `now`.
    fn on(&self, date: Date, zone: &TimeZone, now: Timestamp) -> Option<Timestamp> {
        let times = bits(self.hours).flat_map(|hour| bits(self.minutes).map(move |minute| (hour, minute)));
        let instants =
            times.flat_map(|(hour, minute)| self.instants(date.to_datetime(Time::constant(hour, minute, 0, 0)), zone));
        instants.filter(|instant| *instant > now).min()
    }

    /// When the clock on the wall shows this.
    fn instants(&self, shown: DateTime, zone: &TimeZone) -> impl Iterator<Item = Timestamp> + use<> {
        let every_hour = self.hours == EVERY_HOUR;
        let (first, second) = match zone.to_ambiguous_timestamp(shown).offset() {
            AmbiguousOffset::Unambiguous { offset } => (offset.to_timestamp(shown).ok(), None),
            AmbiguousOffset::Fold { before, after } => {
                let again = after.to_timestamp(shown).ok().filter(|_| every_hour);
                (before.to_timestamp(shown).ok(), again)
            }
            AmbiguousOffset::Gap { .. } if every_hour => (None, None),
            AmbiguousOffset::Gap { before, .. } => {
                // As if the clock had not jumped: so much after the jump, or just at it.
                let unmoved = before.to_timestamp(shown).ok();
                let behind = unmoved.and_then(|unmoved| unmoved.checked_add(SignedDuration::from_secs(1)).ok());
                let jump = behind.and_then(|behind| zone.preceding(behind).next().map(|jump| jump.timestamp()));
                (jump, None)
            }
        };
        first.into_iter().chain(second)
    }

    fn has_day(&self, date: Date) -> bool {
        let has = |set: u64, n: i8| set >> n & 1 == 1;
        let day = has(self.days, date.day());
        let weekday = has(self.weekdays, date.weekday().to_sunday_zero_offset());
        has(self.months, date.month()) && if self.either_day { day || weekday } else { day && weekday }
    }
}

/// The numbers of a set, ascending.
fn bits(set: u64) -> impl Iterator<Item = i8> + Clone {
    (0..60).filter(move |n| set >> n & 1 == 1)
}

/// `*`, `5`, `1-5`, `*/15`, `10-40/10`, `mon-fri`, and lists of these.
fn field(what: &str, text: &str, least: u8, most: u8, names: &[&str]) -> Result<u64, String> {
    let number = |text: &str| -> Result<u8, String> {
        let named = names.iter().position(|name| *name == text).and_then(|place| u8::try_from(place).ok());
        let number = named.map(|place| place + least).or_else(|| {
            // `+5` is a number for Rust.
            text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
        });
        number
            .filter(|number| (least..=most).contains(number))
            .ok_or_else(|| format!("`{text}` as {what}; expected a number from {least} to {most}"))
    };
    let mut set = 0;
    for item in text.split(',') {
        let (range, step) = match item.split_once('/') {
            Some((range, step)) => (range, Some(step)),
            None => (item, None),
        };
        let (from, to) = match range.split_once('-') {
            _ if range == "*" => (least, most),
            Some((from, to)) => (number(from)?, number(to)?),
            // `5/15` is `5-59/15`.
            None if step.is_some() => (number(range)?, most),
            None => (number(range)?, number(range)?),
        };
        let step = match step.map(str::parse::<u8>) {
            None => 1,
            Some(Ok(step @ 1..)) => step,
            Some(_) => return Err(format!("`{item}` as {what}: the step must be a number from 1")),
        };
        if from > to {
            return Err(format!("`{item}` as {what}: the range ends before it begins"));
        }
        for n in (from..=to).step_by(step.into()) {
            set |= 1 << n;
        }
    }
    Ok(set)
}
