//! What two builds did with the same event, side by side; pure.

use serde::Serialize;

use super::headline;
use crate::cli::call::show::{effect_lines, question, said};
use crate::dispatch::{Note, Said};

/// A run that went another way.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Difference {
    pub(super) event: u64,
    /// Unix milliseconds.
    pub(super) now: u64,
    what: String,
    /// The version that was recorded, and the one that was tried.
    versions: [String; 2],
    /// What both, one or the other did.
    pub(super) lines: Vec<(Mark, String)>,
}

/// Who did it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Mark {
    /// Both.
    Same,
    /// The recorded build alone.
    Gone,
    /// The new build alone.
    New,
}

impl Difference {
    pub(super) fn title(&self) -> String {
        self.what.clone()
    }
}

/// `None` where both did the same.
pub(super) fn difference(old: &Note, new: Option<&Note>) -> Option<Difference> {
    let not_given = vec!["is not given this event".to_owned()];
    let (then, now) = (deeds(old), new.map_or(not_given, deeds));
    (then != now).then(|| Difference {
        event: old.event,
        now: old.now,
        what: headline(old),
        versions: [old.version.clone(), new.map(|new| new.version.clone()).unwrap_or_default()],
        lines: side_by_side(then, now),
    })
}

/// All that a run did, in lines. What was before is the same for both.
fn deeds(note: &Note) -> Vec<String> {
    let verdict = (note.verdict != Said::Done || note.recovered.is_some()).then(|| said(note));
    let asked = note.asked.iter().map(|asked| format!("asked  {}", question(asked)));
    verdict.into_iter().chain(asked).chain(effect_lines(&note.effects, false)).collect()
}

/// The longest common row of both, and what stands between.
fn side_by_side(then: Vec<String>, now: Vec<String>) -> Vec<(Mark, String)> {
    let (n, m) = (then.len(), now.len());
    let mut longest = vec![vec![0; m + 1]; n + 1];
    for i in (0..n).rev() {
        for j in (0..m).rev() {
            longest[i][j] =
                if then[i] == now[j] { longest[i + 1][j + 1] + 1 } else { longest[i + 1][j].max(longest[i][j + 1]) };
        }
    }
    let (mut i, mut j, mut lines) = (0, 0, Vec::new());
    while i < n || j < m {
        if i < n && j < m && then[i] == now[j] {
            lines.push((Mark::Same, then[i].clone()));
            (i, j) = (i + 1, j + 1);
        } else if i < n && (j == m || longest[i + 1][j] >= longest[i][j + 1]) {
            lines.push((Mark::Gone, then[i].clone()));
            i += 1;
        } else {
            lines.push((Mark::New, now[j].clone()));
            j += 1;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_stands_where_it_happened() {
        let lines = |text: &str| text.chars().map(String::from).collect::<Vec<_>>();
        for (then, now, expected) in [
            ("abc", "abc", "=a=b=c"),
            ("abc", "axc", "=a-b+x=c"),
            ("", "ab", "+a+b"),
            ("ab", "", "-a-b"),
            ("abcd", "bcda", "-a=b=c=d+a"),
        ] {
            let shown: String = side_by_side(lines(then), lines(now))
                .into_iter()
                .map(|(mark, line)| match mark {
                    Mark::Same => format!("={line}"),
                    Mark::Gone => format!("-{line}"),
                    Mark::New => format!("+{line}"),
                })
                .collect();
            assert_eq!(shown, expected);
        }
    }
}
