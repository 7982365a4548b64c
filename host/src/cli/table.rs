//! Columns, times, and texts that others wrote, for a terminal.

/// Rows under a head, each column as wide as its widest cell; the last one runs free.
pub(super) fn table<const N: usize>(head: [&str; N], rows: &[[String; N]]) -> String {
    let head = head.map(str::to_owned);
    let all = || std::iter::once(&head).chain(rows);
    let widths: Vec<usize> =
        (0..N).map(|column| all().map(|row| row[column].chars().count()).max().unwrap_or(0)).collect();
    let mut text = String::new();
    for row in all() {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// Without what would move the cursor or change the colours: texts of plugins and people can hold anything.
pub(super) fn clean(text: &str) -> String {
    text.chars()
        .flat_map(|c| {
            let harmless = !c.is_control() || matches!(c, '\n' | '\t');
            let (plain, escaped) = if harmless { (Some(c), None) } else { (None, Some(c.escape_default())) };
            plain.into_iter().chain(escaped.into_iter().flatten())
        })
        .collect()
}

/// Unix milliseconds as `2026-11-30 04:22:48`, in UTC.
pub(super) fn utc(millis: u64) -> String {
    let (days, second) = (millis / 86_400_000, millis / 1000 % 86_400);
    // Howard Hinnant's `civil_from_days`, for times after 1970.
    let day = days + 719_468;
    let (era, of_era) = (day / 146_097, day % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_in_utc() {
        for (seconds, expected) in [
            (0, "1970-01-01 00:00:00"),
            (951_782_399, "2000-02-28 23:59:59"),
            (951_782_400, "2000-02-29 00:00:00"),
            (1_709_251_200, "2024-03-01 00:00:00"),
            (1_796_012_568, "2026-11-30 04:22:48"),
            (4_102_444_799, "2099-12-31 23:59:59"),
        ] {
            assert_eq!(utc(seconds * 1000), expected);
        }
    }

    #[test]
    fn what_others_wrote_can_not_steer_the_terminal() {
        assert_eq!(clean("a\u{1b}[31mb\rc\u{9b}d\n\tсалом"), "a\\u{1b}[31mb\\rc\\u{9b}d\n\tсалом");
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows =
            [["1".to_owned(), "long".to_owned(), String::new()], ["22".to_owned(), "ü".to_owned(), "x".to_owned()]];
        assert_eq!(table(["N", "A", "B"], &rows), "N   A     B\n1   long\n22  ü     x\n");
    }
}
