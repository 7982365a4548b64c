//! Columns, times, and texts that others wrote, for a terminal.

pub(super) use crate::clock::utc;

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

#[cfg(test)]
mod tests {
    use super::*;

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
