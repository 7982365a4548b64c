//! Against a clock on a wall that is looked at every minute.

use jiff::civil::DateTime;
use proptest::prelude::*;

use super::*;

fn cron(expression: &str, zone: &str) -> Recurrence {
    Rule::Cron { expression: expression.into(), zone: zone.into() }.parse().unwrap()
}

fn millis(text: &str) -> u64 {
    u64::try_from(text.parse::<jiff::Timestamp>().unwrap().as_millisecond()).unwrap()
}

/// Five times from one on, as clocks in the zone show them.
fn times(expression: &str, zone: &str, from: &str, n: usize) -> Vec<String> {
    let recurrence = cron(expression, zone);
    let zone = TimeZone::get(zone).unwrap();
    let next = |now: &u64| recurrence.first_after(*now);
    std::iter::successors(next(&millis(from)), next)
        .take(n)
        .map(|time| {
            let time = jiff::Timestamp::from_millisecond(time.try_into().unwrap()).unwrap();
            let minutes = zone.to_offset(time).seconds() / 60;
            let (sign, minutes) = if minutes < 0 { ('-', -minutes) } else { ('+', minutes) };
            let shown = zone.to_datetime(time);
            format!(
                "{} {:02}:{:02} {sign}{:02}:{:02}",
                shown.date(),
                shown.hour(),
                shown.minute(),
                minutes / 60,
                minutes % 60
            )
        })
        .collect()
}

#[test]
fn the_next_time_is_what_the_clock_on_the_wall_says() {
    for (expression, zone, from, expect) in [
        (
            "0 9 * * *",
            "Asia/Tashkent",
            "2025-03-01T03:59:59.999Z",
            ["2025-03-01 09:00 +05:00", "2025-03-02 09:00 +05:00"],
        ),
        ("0 9 * * *", "Asia/Tashkent", "2025-03-01T04:00:00Z", ["2025-03-02 09:00 +05:00", "2025-03-03 09:00 +05:00"]),
        (
            "*/15 10-11 * * mon-fri",
            "UTC",
            "2025-03-07T11:40:00Z",
            ["2025-03-07 11:45 +00:00", "2025-03-10 10:00 +00:00"],
        ),
        ("0 0 29 2 *", "UTC", "2097-01-01T00:00:00Z", ["2104-02-29 00:00 +00:00", "2108-02-29 00:00 +00:00"]),
        // Both kinds of day: one of them is enough.
        ("0 0 13 * FRI", "UTC", "2025-06-12T00:00:00Z", ["2025-06-13 00:00 +00:00", "2025-06-20 00:00 +00:00"]),
        ("0 0 */2 * fri", "UTC", "2025-06-12T00:00:00Z", ["2025-06-13 00:00 +00:00", "2025-06-27 00:00 +00:00"]),
        ("5/20 0 1 jan,jul 7,1", "UTC", "2025-01-01T00:05:00Z", ["2025-01-01 00:25 +00:00", "2025-01-01 00:45 +00:00"]),
        (
            "@monthly",
            "America/New_York",
            "2025-03-01T05:00:00Z",
            ["2025-04-01 00:00 -04:00", "2025-05-01 00:00 -04:00"],
        ),
        // The clock jumps from 2 to 3 on the 30th: what it jumps over comes right after, once.
        ("30 2 * * *", "Europe/Berlin", "2025-03-29T12:00:00Z", ["2025-03-30 03:00 +02:00", "2025-03-31 02:30 +02:00"]),
        (
            "*/10 2 * * *",
            "Europe/Berlin",
            "2025-03-30T00:59:00Z",
            ["2025-03-30 03:00 +02:00", "2025-03-31 02:00 +02:00"],
        ),
        ("0 3 * * *", "Europe/Berlin", "2025-03-29T12:00:00Z", ["2025-03-30 03:00 +02:00", "2025-03-31 03:00 +02:00"]),
        // From 3 back to 2 on the 26th: the first of the two counts.
        ("30 2 * * *", "Europe/Berlin", "2025-10-25T12:00:00Z", ["2025-10-26 02:30 +02:00", "2025-10-27 02:30 +01:00"]),
        ("30 2 * * *", "Europe/Berlin", "2025-10-26T00:45:00Z", ["2025-10-27 02:30 +01:00", "2025-10-28 02:30 +01:00"]),
        // Intervals go on as if nothing had happened.
        ("30 * * * *", "Europe/Berlin", "2025-10-26T00:00:00Z", ["2025-10-26 02:30 +02:00", "2025-10-26 02:30 +01:00"]),
        ("30 * * * *", "Europe/Berlin", "2025-03-30T00:00:00Z", ["2025-03-30 01:30 +01:00", "2025-03-30 03:30 +02:00"]),
        // Half an hour back; and a whole day that was not.
        (
            "45 1 * * *",
            "Australia/Lord_Howe",
            "2025-04-05T00:00:00Z",
            ["2025-04-06 01:45 +11:00", "2025-04-07 01:45 +10:30"],
        ),
        ("0 9 * * *", "Pacific/Apia", "2011-12-29T12:00:00Z", ["2011-12-29 09:00 -10:00", "2011-12-31 00:00 +14:00"]),
    ] {
        assert_eq!(times(expression, zone, from, 2), expect, "{expression} in {zone} after {from}");
    }
}

#[test]
fn what_is_no_rule_is_refused_with_the_reason() {
    for (expression, zone, part) in [
        ("0 9 * *", "UTC", "4 fields"),
        ("", "UTC", "0 fields"),
        ("0 0 9 * * *", "UTC", "6 fields"),
        ("60 9 * * *", "UTC", "`60` as minute; expected a number from 0 to 59"),
        ("0 24 * * *", "UTC", "as hour"),
        ("0 9 0 * *", "UTC", "as day of the month"),
        ("0 9 * foo *", "UTC", "`foo` as month"),
        ("0 9 * * 8", "UTC", "as day of the week"),
        ("+5 9 * * *", "UTC", "`+5`"),
        ("*/0 9 * * *", "UTC", "step"),
        ("10-5 9 * * *", "UTC", "ends before it begins"),
        ("1,,2 9 * * *", "UTC", "``"),
        ("0 0 31 2,4,6 *", "UTC", "no such day"),
        ("@dayly", "UTC", "@daily"),
        ("0 9 * * *", "Tashkent", "`Asia/Tashkent`"),
        ("0 9 * * *", "", "time zone"),
        ("0 9 * * *", "../../etc/passwd", "time zone"),
    ] {
        let refused = Rule::Cron { expression: expression.into(), zone: zone.into() }.parse().unwrap_err();
        assert!(refused.contains(part), "{expression} {zone}: {refused}");
    }
    for interval in [Duration::ZERO, Duration::from_millis(999), Duration::MAX] {
        assert!(Rule::Every(interval).parse().unwrap_err().contains("a second"));
    }
}

#[test]
fn what_was_missed_is_made_up_for_once_or_not_at_all() {
    const MINUTE: u64 = 60_000;
    let ten = Rule::Every(Duration::from_secs(600)).parse().unwrap();
    let due = 1_000 * MINUTE;
    for (misfire, late, counts, next) in [
        (Misfire::Once, 0, true, 10),
        (Misfire::Once, 25, true, 30),
        (Misfire::Skip, 1, true, 10),
        (Misfire::Skip, 2, false, 10),
        (Misfire::Skip, 10, false, 20),
    ] {
        assert_eq!(
            ten.turn(misfire, due, due + late * MINUTE),
            (counts, Some(due + next * MINUTE)),
            "{misfire:?} {late}"
        );
    }
    let daily = cron("0 9 * * *", "UTC");
    let due = millis("2025-03-01T09:00:00Z");
    let now = millis("2025-03-04T12:00:00Z");
    assert_eq!(daily.turn(Misfire::Once, due, now), (true, Some(millis("2025-03-05T09:00:00Z"))));
    assert_eq!(daily.turn(Misfire::Skip, due, now), (false, Some(millis("2025-03-05T09:00:00Z"))));
    // A clock that was set back does not make it come twice.
    assert_eq!(daily.turn(Misfire::Once, due, due - 5), (true, Some(millis("2025-03-02T09:00:00Z"))));
}

/// Whether the clock that shows `shown` strikes; told by the letter of the expression, field by field.
fn strikes(fields: &[String; 5], shown: DateTime) -> bool {
    let has = |field: &str, n: i8| {
        field.split(',').any(|item| {
            let (range, step) = item.split_once('/').unwrap_or((item, "1"));
            let (from, to) = match range.split_once('-') {
                Some((from, to)) => (from.parse().unwrap(), to.parse().unwrap()),
                None if range == "*" => return true,
                None => (range.parse::<i8>().unwrap(), range.parse().unwrap()),
            };
            (from..=to).contains(&n) && (n - from) % step.parse::<i8>().unwrap() == 0
        })
    };
    let [minute, hour, day, month, weekday] = fields;
    let (on_day, on_weekday) = (has(day, shown.day()), has(weekday, shown.weekday().to_sunday_zero_offset()));
    let days = if day == "*" || weekday == "*" { on_day && on_weekday } else { on_day || on_weekday };
    has(minute, shown.minute()) && has(hour, shown.hour()) && has(month, shown.month()) && days
}

/// The next time, by looking at the clock every minute for some days.
fn by_looking(fields: &[String; 5], zone: &TimeZone, now: u64) -> Option<u64> {
    let shows = |minute: u64| {
        let instant = jiff::Timestamp::from_millisecond((minute * 60_000).try_into().unwrap()).unwrap();
        zone.to_datetime(instant)
    };
    let every_hour = fields[1] == "*";
    (now / 60_000 + 1..now / 60_000 + 60 * 24 * 5)
        .find(|&minute| {
            let (shown, before) = (shows(minute), shows(minute - 1));
            if every_hour {
                return strikes(fields, shown);
            }
            // Minutes that no clock has shown.
            let mut jumped = before.checked_add(jiff::Span::new().minutes(1)).unwrap();
            while jumped < shown {
                if strikes(fields, jumped) {
                    return true;
                }
                jumped = jumped.checked_add(jiff::Span::new().minutes(1)).unwrap();
            }
            strikes(fields, shown) && (1..=180).all(|back| shows(minute - back) < shown)
        })
        .map(|minute| minute * 60_000)
}

fn field(least: u8, most: u8) -> impl Strategy<Value = String> {
    let number = move || least..=most;
    prop_oneof![
        3 => Just("*".to_owned()),
        2 => number().prop_map(|n| n.to_string()),
        1 => (number(), number()).prop_map(|(a, b)| format!("{}-{}", a.min(b), a.max(b))),
        1 => (number(), number(), 1_u8..20).prop_map(|(a, b, step)| format!("{}-{}/{step}", a.min(b), a.max(b))),
        1 => prop::collection::vec(number(), 1..4)
            .prop_map(|numbers| numbers.iter().map(u8::to_string).collect::<Vec<_>>().join(",")),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    #[test]
    fn agrees_with_a_clock_that_is_looked_at(
        fields in (field(0, 59), field(0, 23), field(1, 28), field(1, 12), field(0, 6)),
        zone in prop::sample::select(vec![
            "UTC", "Europe/Berlin", "America/New_York", "Asia/Tashkent", "Australia/Lord_Howe", "Africa/Casablanca",
            "America/Sao_Paulo", "Pacific/Apia", "Asia/Kathmandu",
        ]),
        // Near a change of the clocks, somewhere.
        near in prop::sample::select(vec![
            "2025-03-30T01:00:00Z", "2025-10-26T01:00:00Z", "2025-03-09T07:00:00Z", "2025-11-02T06:00:00Z",
            "2025-04-05T15:00:00Z", "2025-10-04T15:30:00Z", "2018-11-04T03:00:00Z", "2011-12-30T10:00:00Z",
            "2025-02-23T02:00:00Z", "2025-04-06T02:00:00Z",
        ]),
        minutes in -2_000_i64..1_000,
    ) {
        let fields = <[String; 5]>::from(fields);
        let recurrence = cron(&fields.join(" "), zone);
        let now = millis(near).checked_add_signed(minutes * 60_000 + 1).unwrap();
        let found = recurrence.first_after(now);
        let looked = by_looking(&fields, &TimeZone::get(zone).unwrap(), now);
        match looked {
            Some(_) => prop_assert_eq!(found, looked, "{:?} {} {}", fields, zone, now),
            None => prop_assert!(found.is_none_or(|found| found >= now + 60_000 * 60 * 24 * 4)),
        }
    }
}
